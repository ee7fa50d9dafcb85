"""Packet tests (STF) on the real simple_switch, with the JSON that our back end makes.

Packets go in and out through files (packet_files.py). Entries are those that our own switch makes
of the test's lines, given to simple_switch over simple_switch_CLI.
"""

import os
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from packet_files import PacketFiles

from gradplane.differ.inputs import Inputs
from gradplane.switch.arch.load_checks import prepare
from gradplane.switch.arch.registry import architecture
from gradplane.switch.backends.bmv2 import compile_text
from gradplane.switch.compiler import compile_source
from gradplane.switch.p4runtime.digest_calls import digest_calls
from gradplane.switch.runtime.entries import ActionData, Entry
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.stf.stf_grammar import Statement, parse
from gradplane.switch.stf.tester import Clock, Tester, packet_bytes
from gradplane.switch.switch import Switch

SWITCHES = {"v1model": "simple_switch", "psa": "psa_switch"}
PROMPT = b"RuntimeCmd: "
PORTS = range(16)  # those that are watched beside the ones that a test names
QUIET, LONGEST = 0.25, 30  # seconds without a packet that end a test; for anything else


def available(arch: str = "v1model") -> bool:
    """Return whether an architecture's switch and its command line are on PATH."""
    return all(shutil.which(name) for name in (SWITCHES[arch], f"{SWITCHES[arch]}_CLI"))


@cache
def _help(switch: str) -> str:
    """Return a switch's list of options, which are those that it was built with."""
    return subprocess.run([switch, "--help"], capture_output=True, text=True).stdout


def run(program: Path, folder: Path, test: Path | None = None) -> list[str]:
    """Run a test, else that beside the program; what is wrong, nothing if it passed."""
    compiled = compile_source(program, [program.parent], None)
    model = Switch(program, clock=Clock())
    found = architecture(None, compiled.program)
    prepare(compiled.program, found)
    names = {t: name for name, (t, _) in digest_calls(compiled.program).items()}
    file = folder / f"{program.stem}.json"
    file.write_text(compile_text(found.name, compiled.program, names))
    test = program.with_suffix(".stf") if test is None else test
    statements = parse(test.read_text(), str(test))
    tester = _Bmv2Tester(model, str(test))
    with ExitStack() as stack:
        tester.start(stack, file, SWITCHES[found.name], statements)
        for statement in statements:
            tester.run(statement)
        tester.collect_expected()
    return [*tester.expectations.failures(), *tester.problems]


def random_packets(program: Path, folder: Path, count: int, seed: int) -> list[str]:
    """Give random packets to both switches, which have the same random entries of tables without
    action profiles; return what is wrong: each refused entry, and the first packet that differs."""
    compiled = compile_source(program, [program.parent], None)
    found = architecture(None, compiled.program)
    prepare(compiled.program, found)
    guide, model = (Switch(program, clock=Clock()) for _ in range(2))
    inputs = Inputs(guide.program, seed)
    inputs.populate(guide)
    packets = [(port % len(PORTS), packet) for port, packet in inputs.packets(guide, count)]
    file = folder / f"{program.stem}.json"
    file.write_text(compile_text(found.name, compiled.program, {}))
    tester = _Bmv2Tester(model, str(file))
    lines = "".join(f"packet {port} {packet.hex()}\n" for port, packet in packets)
    with ExitStack() as stack:
        tester.start(stack, file, SWITCHES[found.name], parse(lines, str(file)))
        for name, table in guide.state.tables.items():
            for entry in table.entries() if not table.table.entries else ():
                tester.insert(model.state.tables[name], entry)
        for number, (port, packet) in enumerate(packets):
            expected = sorted((p, b) for p, b in model.process(port, packet) if p in PORTS)
            if (there := sorted(tester.given(len(expected)))) != expected:
                what = f"packet {number}: {port} {packet.hex()}"
                return [*tester.problems, f"{what}\nhere  {expected}\nthere {there}"]
    return tester.problems


class Crashed(Exception):
    """BMv2 itself crashed: one built with NDEBUG does at an index beyond an array."""


class _Bmv2Tester(Tester):
    """Gives packets and entries to simple_switch; our switch only translates names."""

    def __init__(self, switch: Switch, file: str) -> None:
        super().__init__(switch, Clock(), file)
        self._handles_there: dict[Entry, int] = {}

    def start(
        self, stack: ExitStack, file: Path, switch: str, statements: Sequence[Statement]
    ) -> None:
        given = [s.args for s in statements if s.command == "packet"]
        packets = [(int(a["port"]), packet_bytes(a["data"])) for a in given]
        named = {int(s.args["port"]) for s in statements if s.command == "expect"}
        self._files = PacketFiles(file.parent, packets, {*PORTS, *named})
        stack.callback(self._files.close)
        thrift = str(_free_port())
        command = [switch, str(file), *self._files.options(), "--thrift-port", thrift]
        if "--notifications-addr" in _help(switch):  # else all of a machine share one address
            command += ["--notifications-addr", f"ipc://{file.with_suffix('.notes')}"]
        command += ["--log-file", str(file.with_suffix("")), "--log-flush"]
        if "--priority-queues" in _help(switch):  # else a packet with a priority is dropped
            command += ["--", "--priority-queues", "8"]
        out = file.with_suffix(".out")
        process = subprocess.Popen(
            command, stdout=stack.enter_context(out.open("wb")), stderr=subprocess.STDOUT
        )
        stack.callback(_end, process)
        self._cli = stack.enter_context(_cli(f"{switch}_CLI", thrift, process, out))

    def command(self, line: str) -> str:
        return self._cli(line)

    # -- statements -----------------------------------------------------------------------------

    def packet(self, line: int, port: str, data: str) -> None:
        self.expectations.ports.add(int(port))
        self._files.send()
        self.collect(0.03)

    def wait(self, line: int) -> None:
        self.collect()

    def add(self, line: int, **args: str) -> None:  # type: ignore[override]
        before = {id(e) for t in self.switch.state.tables.values() for e in t.entries()}
        super().add(line, **args)
        for table in self.switch.state.tables.values():
            for entry in table.entries():
                if id(entry) not in before:
                    self._add(table, entry)

    def insert(self, table: MatchTable, entry: Entry) -> None:
        """Insert an entry here if it is taken there."""
        before = len(self.problems)
        self._add(table, entry)
        if len(self.problems) == before and isinstance(entry.action, ActionData):
            table.insert(Entry(entry.matches, entry.action, entry.priority))

    def given(self, count: int) -> list[tuple[int, bytes]]:
        """Let the next packet in; return what leaves, `count` packets at least if they come."""
        self._files.send()
        found = list[tuple[int, bytes]]()
        last = start = time.monotonic()
        while (now := time.monotonic()) < last + (QUIET if len(found) >= count else 2):
            for one in self._files.sent():
                found.append(one)
                last = now
            if now > start + LONGEST:
                break
            time.sleep(0.005)
        return found

    def setdefault(self, line: int, table: str, action: str, args: str) -> None:
        super().setdefault(line, table, action, args)
        state = self._table(table).state
        self.command(f"table_set_default {state.table.name} {_action(state, state.default)}")

    def remove(self, line: int, **args: str) -> None:  # type: ignore[override]
        before = self._entries()
        super().remove(line, **args)
        left = {id(e) for _, e in self._entries()}
        for table, entry in before:
            if id(entry) not in left:
                self.command(f"table_delete {table.table.name} {self._handles_there[entry]}")

    def _entries(self) -> list[tuple[MatchTable, Entry]]:
        return [(t, e) for t in self.switch.state.tables.values() for e in t.entries()]

    def _command(self, *words: str) -> None:
        super()._command(*words)
        self.command(" ".join(map(_word, words)))

    def check_counter(self, line: int, name: str, index: str, **rest: str) -> None:  # type: ignore[override]
        """Do nothing: counters are compared over P4Runtime."""

    def _add(self, table: MatchTable, entry: Entry) -> None:
        if not isinstance(entry.action, ActionData):
            return
        matches = " ".join(
            _match(f.kind, f.width, m) for f, m in zip(table.fields, entry.matches, strict=True)
        )
        action = table.table.actions[entry.action.index].action.name
        data = " ".join(map(str, _arguments(table, entry.action)))
        text = f"table_add {table.table.name} {action} {matches} => {data}"
        if table.with_priority:
            text += f" {2**31 - 1 - entry.priority}"
        answer = self.command(text)
        found = [w for w in answer.split() if w.isdigit()]
        if "handle" not in answer:
            self.problems.append(f"{text}: {answer}")
            return
        self._handles_there[entry] = int(found[-1])

    def collect_expected(self) -> None:
        """Take what leaves until all that is expected has, however slow the machine is."""
        end = time.monotonic() + LONGEST
        self.collect()
        while self.expectations.failures() and time.monotonic() < end:
            self.collect()

    def collect(self, quiet: float = QUIET) -> None:
        """Take what leaves until nothing does for a while, or for ever."""
        end = time.monotonic() + LONGEST
        last = time.monotonic()
        while (now := time.monotonic()) < min(end, last + quiet):
            for port, packet in self._files.sent():
                self.expectations.sent(port, packet)
                last = now
            time.sleep(0.005)


def _arguments(table: MatchTable, data: ActionData) -> list[int]:
    params = table.table.actions[data.index].action.params
    widths = [getattr(p.type, "width", 1) for p in params]
    return [int(v) & ((1 << w) - 1) for v, w in zip(data.args, widths, strict=True)]


def _action(table: MatchTable, data: ActionData) -> str:
    name = table.table.actions[data.index].action.name
    return " ".join([name, *map(str, _arguments(table, data))])


def _match(kind: str, width: int, match: Any) -> str:
    ones = (1 << width) - 1
    if kind == "lpm":
        value, length = match or (0, 0)
        return f"{value:#x}/{length}"
    if kind == "range":
        low, high = match or (0, ones)
        return f"{low:#x}->{high:#x}"
    if kind == "ternary":
        value, mask = match or (0, 0)
        return f"{value:#x}&&&{mask:#x}"
    if kind == "optional":
        value, mask = (match[0], ones) if match else (0, 0)
        return f"{value:#x}&&&{mask:#x}"
    return f"{match[0]:#x}"


def _word(word: str) -> str:
    """Return a word of a command, with numbers as simple_switch_CLI reads them."""
    try:
        return str(int(word, 0))
    except ValueError:
        return word


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _cli(name: str, thrift: str, switch: subprocess.Popen[bytes], log: Path) -> Iterator[Any]:
    """Provide a function that gives a line to simple_switch_CLI and returns its answer."""
    _wait_for(int(thrift), switch, log)
    pipe = subprocess.PIPE
    command = [name, "--thrift-port", thrift]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, env=environment
    )
    assert process.stdin and process.stdout

    def read() -> str:
        found, end = b"", time.monotonic() + LONGEST
        while not found.endswith(PROMPT) and time.monotonic() < end:
            if select.select([process.stdout], [], [], 0.1)[0]:
                found += os.read(process.stdout.fileno(), 65536)
            elif process.poll() is not None:
                break
        return found.removesuffix(PROMPT).decode()

    def ask(line: str) -> str:
        if (status := switch.poll()) is not None and status < 0:
            raise Crashed(f"the switch ended with signal {-status}")
        process.stdin.write(f"{line}\n".encode())
        process.stdin.flush()
        return read()

    read()
    try:
        yield ask
    finally:
        _end(process)


def _wait_for(port: int, switch: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if switch.poll() is not None:
            raise AssertionError(f"the switch ended: {log.read_text()[-2000:]}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("simple_switch did not start")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
