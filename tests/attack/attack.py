"""One bad client against the others: python tests/attack/attack.py [--minutes 60] [--only NAME].

A switch serves P4Runtime and BFRuntime, and a page server a page. While an attack goes on, another
client of each measures how long its own requests take; an attack succeeds where more than 1% of
them take longer than 100 ms, or than n times as long where n threads of the machine want each of
its processors. Without --minutes each attack takes 5 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import U128, p4r

from gradplane import _bfruntime as bf

HERE = Path(__file__).parent
LIMIT = 0.1  # seconds that another client's request may take, but for 1% of them
PAUSE = 0.02  # seconds between the requests of a client that measures
PRIMARY = 1 << 64  # its election id
SECONDS = 5.0
SWING = 1.0  # seconds before others measure
FILLED = 50_000  # cells of the counter that are not 0
PATIENCE = 60.0
P4RT, BFRT = "/p4.v1.P4Runtime/", f"/{bf.SERVICE}/"
_SWITCH = """import sys; from gradplane.switch.daemon import live_switch as live
sys.exit(live.main(sys.argv[1:]))"""
_PAGES = """from starlette.responses import PlainTextResponse
from starlette.routing import Route
from gradplane.pages.viewer.local_server import LocalServer
server = LocalServer([Route("/", lambda request: PlainTextResponse("page"))])
print('"' + server.url + '"', flush=True)
server.run()"""


@dataclass(frozen=True)
class Target:
    """The addresses of what is attacked, and the ids of the program's table, action and counter."""

    p4rt: str
    bfrt: str
    pages: str
    ids: dict[str, int] = field(default_factory=dict)


# -- the attacks -----------------------------------------------------------------------------------

Attack = Callable[[Target], Awaitable[None]]
ATTACKS: dict[str, Attack] = {}
SENT = {"nothing": ""}  # what each attack sends, in a few words


def attack(sent: str) -> Callable[[Attack], Attack]:
    def register(run: Attack) -> Attack:
        name = run.__name__.replace("_", " ")
        ATTACKS[name], SENT[name] = run, sent
        return run

    return register


def channel(address: str, **options: int) -> grpc.aio.Channel:
    """A connection of its own: channels to one address share one otherwise."""
    given = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    return grpc.aio.insecure_channel(address, options=[*given, *options.items()])


async def never(first: Sequence[bytes] = ()) -> Any:
    """Yield some messages, then none, and do not end."""
    for one in first:
        yield one
    await asyncio.Event().wait()


async def ended(calls: Sequence[Any]) -> None:
    """Wait until all calls have ended, in whatever way."""
    for call in calls:
        with suppress(grpc.RpcError, asyncio.CancelledError):
            await call.code()


async def _silent(address: str, method: str, count: int) -> None:
    async with channel(address) as open_one:
        call = open_one.stream_unary(method)
        await ended([call(never()) for _ in range(count)])


@attack("48 calls at a time")
async def silent_calls_of_p4runtime(target: Target) -> None:
    """Calls whose headers come and whose request does not."""
    while True:
        await _silent(target.p4rt, f"{P4RT}Write", 48)


@attack("48 calls at a time")
async def silent_calls_of_bfruntime(target: Target) -> None:
    while True:
        await _silent(target.bfrt, f"{BFRT}Write", 48)


@attack("2,000 calls")
async def thousands_of_silent_calls(target: Target) -> None:
    both = ((target.p4rt, f"{P4RT}Write"), (target.bfrt, f"{BFRT}Read"))
    await asyncio.gather(*(_silent(*one, 500) for one in both for _ in range(2)))
    await asyncio.Event().wait()


def wildcard(target: Target) -> bytes:
    request = p4r.ReadRequest(device_id=1)
    request.entities.add().counter_entry.counter_id = target.ids["cells"]
    return request.SerializeToString()


def bf_wildcard(target: Target) -> bytes:
    request = bf.message("ReadRequest")(target={"pipe_id": 0xFFFF})
    request.entities.add().table_entry.table_id = target.ids["bf cells"]
    return bytes(request.SerializeToString())


async def _reads(address: str, method: str, request: bytes, count: int) -> None:
    async def read(open_one: grpc.aio.Channel) -> None:
        while True:
            with suppress(grpc.RpcError):
                async for _ in open_one.unary_stream(method)(request):
                    pass

    async with channel(address) as open_one:
        await asyncio.gather(*(read(open_one) for _ in range(count)))


@attack("2 x 1,000,000 cells")
async def wildcard_reads_of_p4runtime(target: Target) -> None:
    await _reads(target.p4rt, f"{P4RT}Read", wildcard(target), 2)


@attack("2 x 1,000,000 cells")
async def wildcard_reads_of_bfruntime(target: Target) -> None:
    await _reads(target.bfrt, f"{BFRT}Read", bf_wildcard(target), 2)


@attack("200 reads")
async def slow_readers(target: Target) -> None:
    """Reads of everything, of which one message is taken."""
    async with channel(target.p4rt) as one, channel(target.bfrt) as other:
        calls = [one.unary_stream(f"{P4RT}Read")(wildcard(target)) for _ in range(100)]
        calls += [other.unary_stream(f"{BFRT}Read")(bf_wildcard(target)) for _ in range(100)]
        for call in calls:
            with suppress(grpc.RpcError):
                await call.read()
        await asyncio.Event().wait()


@attack("2 dumps at a time")
async def dumps_of_the_state(target: Target) -> None:
    await _reads(target.p4rt, "/gradplane.Switch/State", b"{}", 2)


@attack("200 MiB each")
async def messages_of_200_mib(target: Target) -> None:
    update = b"\x22\x04\x08\x01\x12\x00"  # an update with nothing in it
    message = update * ((200 << 20) // len(update))
    while True:
        for address, method in ((target.p4rt, f"{P4RT}Write"), (target.bfrt, f"{BFRT}Write")):
            async with channel(address, **{"grpc.max_send_message_length": -1}) as open_one:
                await ended([open_one.unary_unary(method)(message)])


@attack("30 MiB each")
async def messages_of_30_mib(target: Target) -> None:
    """Those that the transport takes: nothing in them may be looked at."""
    message = b"\x22\x04\x08\x01\x12\x00" * (5 << 20)
    while True:
        for address, method in ((target.p4rt, f"{P4RT}Write"), (target.bfrt, f"{BFRT}Write")):
            async with channel(address, **{"grpc.max_send_message_length": -1}) as open_one:
                await ended([open_one.unary_unary(method)(message)])
        await asyncio.sleep(1)


@attack("40 MiB each")
async def roles_with_long_names(target: Target) -> None:
    while True:
        for i in range(6):
            update = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
            update.role.name = f"{i}" + "x" * (40 << 20)
            message = p4r.StreamMessageRequest(arbitration=update).SerializeToString()
            async with channel(target.p4rt, **{"grpc.max_send_message_length": -1}) as open_one:
                call = open_one.stream_stream(f"{P4RT}StreamChannel")(never([message]))
                with suppress(grpc.RpcError):
                    await call.read()
                call.cancel()
        await asyncio.sleep(1)


@attack("one after the other")
async def thousands_of_roles(target: Target) -> None:
    async with channel(target.p4rt) as open_one:
        for i in range(1 << 30):
            update = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
            update.role.name = f"role {i}"
            message = p4r.StreamMessageRequest(arbitration=update).SerializeToString()
            call = open_one.stream_stream(f"{P4RT}StreamChannel")(never([message]))
            with suppress(grpc.RpcError):
                await call.read()
            call.cancel()


@attack("2,000 streams")
async def thousands_of_streams(target: Target) -> None:
    async def open_many(address: str, method: str) -> None:
        async with channel(address) as open_one:
            await ended([open_one.stream_stream(method)(never()) for _ in range(500)])

    while True:
        ways = ((target.p4rt, f"{P4RT}StreamChannel"), (target.bfrt, f"{BFRT}StreamChannel"))
        await asyncio.gather(*(open_many(*way) for way in ways for _ in range(2)))


@attack("8 x 20,000 notices")
async def slow_readers_of_streams(target: Target) -> None:
    """Backups that announce themselves again and again, and take no answer."""
    update = p4r.MasterArbitrationUpdate(device_id=1)

    async def talk(open_one: grpc.aio.Channel) -> None:
        call = open_one.stream_stream(f"{P4RT}StreamChannel")()
        with suppress(grpc.RpcError):
            for _ in range(20_000):
                await call.write(p4r.StreamMessageRequest(arbitration=update).SerializeToString())
        await asyncio.Event().wait()

    async with channel(target.p4rt) as open_one:
        await asyncio.gather(*(talk(open_one) for _ in range(8)))


def _update(target: Target, kind: int) -> tuple[Any, Any]:
    request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1), role="bulk")
    return request, request.updates.add(type=kind).entity


async def _writes(target: Target, request: p4r.WriteRequest) -> None:
    """Send a request again and again, as the primary of a role."""
    update = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
    update.role.name = request.role
    message = p4r.StreamMessageRequest(arbitration=update).SerializeToString()
    async with channel(target.p4rt, **{"grpc.max_send_message_length": -1}) as open_one:
        stream = open_one.stream_stream(f"{P4RT}StreamChannel")(never([message]))
        await stream.read()
        while True:
            with suppress(grpc.RpcError):
                await open_one.unary_unary(f"{P4RT}Write")(request.SerializeToString())


@attack("20,000 updates each")
async def writes_of_many_updates(target: Target) -> None:
    request, entity = _update(target, p4r.Update.MODIFY)
    cell = entity.counter_entry
    cell.counter_id, cell.data.packet_count = target.ids["cells"], 1
    cell.index.index = 5
    request.updates.extend([request.updates[0]] * 19_999)
    await _writes(target, request)


@attack("1,000,000 cells each")
async def writes_of_all_cells(target: Target) -> None:
    request, entity = _update(target, p4r.Update.MODIFY)
    entity.counter_entry.counter_id = target.ids["cells"]
    entity.counter_entry.data.packet_count = 1
    await _writes(target, request)


async def _half_open(address: str, data: bytes, count: int) -> None:
    host, _, port = address.rpartition(":")
    writers = []
    for _ in range(count):
        with suppress(OSError):
            writers.append((await asyncio.open_connection(host, int(port)))[1])
            writers[-1].write(data)
    await asyncio.Event().wait()


@attack("1,000 connections")
async def half_open_connections(target: Target) -> None:
    """Connections on which half a request comes, or nothing at all."""
    pages = target.pages.split("/")[2]
    await asyncio.gather(
        _half_open(pages, b"GET / HTTP/1.1\r\nHost: local", 600),
        _half_open(target.p4rt, b"PRI * HTTP/2.0\r\n", 200),
        _half_open(target.bfrt, b"", 200),
    )


def run_attack(name: str, target: Target) -> None:
    """Carry out an attack until this process is ended."""
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # calls that the server ends
    asyncio.run(ATTACKS[name](target))  # type: ignore[arg-type]


def attacks(target: Target, channel: Any) -> None:
    """For each name received: carry out that attack until the next message. "" ends it.

    An attack is in a forked process of its own, which need not import what this one has."""
    fork = multiprocessing.get_context("fork")
    while name := channel.recv():
        attacker = fork.Process(target=run_attack, args=(name, target))
        attacker.start()
        channel.recv()
        attacker.kill()
        attacker.join()
        channel.send("over")


# -- the other clients -----------------------------------------------------------------------------


def primary(open_one: grpc.Channel, election_id: int) -> tuple[Any, Any]:
    """Become the primary; return the function of Write, and the stream."""
    update = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(election_id))
    stream = open_one.stream_stream(
        f"{P4RT}StreamChannel",
        p4r.StreamMessageRequest.SerializeToString,
        p4r.StreamMessageResponse.FromString,
    )(chain([p4r.StreamMessageRequest(arbitration=update)], iter(queue.Queue().get, None)))
    assert next(stream).arbitration.status.code == 0
    return open_one.unary_unary(f"{P4RT}Write", p4r.WriteRequest.SerializeToString, None), stream


def p4runtime_client(target: Target) -> tuple[Callable[[], Any], Callable[[], None]]:
    """Return a function that writes as the primary, and one that ends the client."""
    open_one = grpc.insecure_channel(target.p4rt)
    write, stream = primary(open_one, PRIMARY)
    request = p4r.WriteRequest(device_id=1, election_id=U128.encode(PRIMARY))
    entry = request.updates.add(type=p4r.Update.INSERT).entity.table_entry
    entry.table_id = target.ids["written"]
    entry.match.add(field_id=1).exact.value = b"\7"
    entry.action.action.action_id = target.ids["forward"]
    entry.action.action.params.add(param_id=1, value=b"\1")
    with suppress(grpc.RpcError):  # it is there already
        write(request, timeout=PATIENCE)
    request.updates[0].type = p4r.Update.MODIFY

    def end() -> None:
        stream.cancel()
        open_one.close()

    return lambda: write(request, timeout=PATIENCE), end


def bfruntime_client(target: Target) -> tuple[Callable[[], Any], Callable[[], None]]:
    open_one = grpc.insecure_channel(target.bfrt)
    write = open_one.unary_unary(f"{BFRT}Write", bf.WriteRequest.SerializeToString, None)
    request = bf.WriteRequest(target={"pipe_id": 0xFFFF})
    update = request.updates.add(type=bf.Update.INSERT_OR_MODIFY)
    entry = update.entity.table_entry
    entry.table_id = target.ids["bf written"]
    entry.key.fields.add(field_id=1).exact.value = bytes(3) + b"\x09"
    entry.data.action_id = target.ids["bf forward"]
    entry.data.fields.add(field_id=1, stream=b"\0\1")
    return lambda: write(request, timeout=PATIENCE), open_one.close


def page_client(target: Target) -> tuple[Callable[[], Any], Callable[[], None]]:
    def get() -> None:
        with urllib.request.urlopen(target.pages, timeout=PATIENCE) as answer:
            assert answer.read() == b"page"

    return get, lambda: None


CLIENTS = {"P4Runtime": p4runtime_client, "BFRuntime": bfruntime_client, "pages": page_client}


def measure(target: Target, channel: Any) -> None:
    """For each number of seconds received: make requests of each client for so long; send their
    times, and what went wrong. None ends it."""
    clients = {name: make(target) for name, make in CLIENTS.items()}
    for request, _ in clients.values():
        request()  # the first one takes longer
    channel.send("ready")
    while seconds := channel.recv():
        channel.send(_requests({name: request for name, (request, _) in clients.items()}, seconds))
    for _, stop in clients.values():
        stop()


def _requests(
    clients: dict[str, Callable[[], Any]], seconds: float
) -> tuple[dict[str, list[float]], dict[str, str]]:
    found: dict[str, list[float]] = {name: [] for name in clients}
    errors: dict[str, str] = {}
    end = time.monotonic() + seconds

    def work(name: str) -> None:
        while time.monotonic() < end:
            start = time.monotonic()
            try:
                clients[name]()
            except grpc.RpcError as error:
                errors[name] = f"{error.code()}: {error.details()}"
            except Exception as error:
                errors[name] = f"{type(error).__name__}: {error}"
            found[name].append(time.monotonic() - start)
            time.sleep(PAUSE)

    threads = [threading.Thread(target=work, args=(name,)) for name in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found, errors


# -- one attack after the other --------------------------------------------------------------------


@dataclass
class Result:
    """What the other clients saw during an attack: seconds, errors; the switch's memory in MiB."""

    name: str
    times: dict[str, list[float]]
    errors: dict[str, str]
    memory: float
    work: float  # processor time of the switch, in a second

    def share(self, client: str, part: float) -> float:
        times = sorted(self.times[client])
        return times[min(int(len(times) * part), len(times) - 1)]

    def row(self) -> str:
        write = next(iter(CLIENTS))
        times = [self.share(write, 0.5), *(self.share(client, 0.99) for client in CLIENTS)]
        cells = "".join(f"{seconds * 1e3:6.0f}" for seconds in times)
        what = f"{self.name:27} {SENT[self.name]:20}"
        verdict = "FAILED" if self.errors else "SLOW" if succeeded(self) else "ok"
        faults = "".join(f"\n  {c}: {text}" for c, text in self.errors.items())
        return f"{what}{cells}{self.work * 100:4.0f}%{self.memory:5.0f}  {verdict}{faults}"


def limit() -> float:
    """Return the seconds that another client's request may take, for what else the machine does."""
    return LIMIT * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def succeeded(result: Result) -> bool:
    """Return whether an attack kept another client from being served."""
    slowest = max(result.share(client, 0.99) for client in CLIENTS)
    return bool(result.errors) or slowest > limit()


@contextmanager
def running(code: str, *arguments: str) -> Iterator[tuple[Any, int]]:
    """Run Python code in a process; yield the line of JSON that it prints first, and its pid."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline()), process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


class World:
    """The switch and the page server, for attacks one after the other."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> World:
        try:
            options = ["--device-id", "1", "--bfrt-addr", "127.0.0.1:0"]
            options += ["--", "--grpc-server-addr", "127.0.0.1:0"]
            switch = running(_SWITCH, str(HERE / "target.p4"), *options)
            ready, self._pid = self._stack.enter_context(switch)
            pages, _ = self._stack.enter_context(running(_PAGES))
            self.target = Target(ready["grpc"], ready["bfrt"], pages)
            self.target.ids.update(ids(self.target))
            fill(self.target)
            self._attacks = self._stack.enter_context(beside(attacks, self.target, ""))
            self._clients = self._stack.enter_context(beside(measure, self.target, None))
            assert self._clients.recv() == "ready"
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def result(self, name: str, seconds: float) -> Result:
        """Carry out an attack ("" for none) for some time; return what others saw meanwhile."""
        if name:
            self._attacks.send(name)
            time.sleep(SWING)  # until it is in full swing
        before = _processor_time(self._pid)
        self._clients.send(seconds)
        times, errors = self._clients.recv()
        work = (_processor_time(self._pid) - before) / seconds
        memory = _memory(self._pid)
        if name:
            self._attacks.send("end")
            assert self._attacks.recv() == "over"
        return Result(name or "nothing", times, errors, memory, work)


@contextmanager
def beside(function: Callable[[Target, Any], None], target: Target, end: object) -> Iterator[Any]:
    """Run function(target, channel) in a new process; yield the other end of the channel, on which
    `end` is sent last."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=function, args=(target, there))
    process.start()
    there.close()
    try:
        yield here
    finally:
        with suppress(OSError):
            here.send(end)
        process.join(PATIENCE)
        process.kill()


def ids(target: Target) -> dict[str, int]:
    """Return the program's numbers in both protocols."""
    with grpc.insecure_channel(target.p4rt) as open_one:
        call = open_one.unary_unary(
            f"{P4RT}GetForwardingPipelineConfig",
            p4r.GetForwardingPipelineConfigRequest.SerializeToString,
            p4r.GetForwardingPipelineConfigResponse.FromString,
        )
        info = call(p4r.GetForwardingPipelineConfigRequest(device_id=1)).config.p4info
    objects = [*info.tables, *info.actions, *info.counters]
    found = {o.preamble.name.rpartition(".")[2]: o.preamble.id for o in objects}
    with grpc.insecure_channel(target.bfrt) as open_one:
        request = bf.message("GetForwardingPipelineConfigRequest")
        response = bf.message("GetForwardingPipelineConfigResponse")
        name = f"{BFRT}GetForwardingPipelineConfig"
        call = open_one.unary_unary(name, request.SerializeToString, response.FromString)
        (config,) = call(request()).config
    for table in json.loads(config.bfruntime_info)["tables"]:
        found[f"bf {table['name'].rpartition('.')[2]}"] = table["id"]
        for action in table.get("action_specs", ()):
            found[f"bf {action['name'].rpartition('.')[2]}"] = action["id"]
    return found


def fill(target: Target) -> None:
    """Set cells of the counter, so that the state is large."""
    with grpc.insecure_channel(target.p4rt) as open_one:
        write, stream = primary(open_one, 1)
        request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1))
        for cell in range(FILLED):
            entry = request.updates.add(type=p4r.Update.MODIFY).entity.counter_entry
            entry.counter_id, entry.index.index = target.ids["cells"], cell
            entry.data.packet_count = 1
        write(request, timeout=PATIENCE)
        stream.cancel()


def _processor_time(pid: int) -> float:
    """Return the seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, help="of all attacks together")
    parser.add_argument("--only", choices=ATTACKS, action="append")
    options = parser.parse_args()
    names = options.only or list(ATTACKS)
    seconds = options.minutes * 60 / len(names) if options.minutes else SECONDS
    print(
        f"{seconds:.0f} s each, in ms; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )
    print(f"{'':48}{'P4Runtime':>12}{'BFRT':>6}{'pages':>6}")
    print(f"{'attack':27} {'sent':20}{'p50':>6}" + f"{'p99':>6}" * 3 + "  CPU  MiB  verdict")
    failed: list[str] = []
    with World() as world:
        for name in ["", *names]:
            result = world.result(name, seconds)
            failed += [result.name] * succeeded(result)
            print(result.row(), flush=True)
    print(f"load {os.getloadavg()[0]:.1f}; the limit at 99% is {limit() * 1e3:.0f} ms now")
    of = len(names) + 1
    print(
        f"{len(failed)} of {of} failed or slow: {', '.join(failed)}" if failed else f"all {of} ok"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
