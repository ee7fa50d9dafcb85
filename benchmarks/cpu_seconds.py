"""Measure what costs no packets: python benchmarks/cpu_seconds.py [ROW ...].

Each row is in seconds of processor time, or in MiB, so that other load changes it little. A switch
is a process of its own, measured from outside; its client's time does not count. benchmarks/
against.py runs the rows under two versions of the package.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc

HERE = Path(__file__).parent
PROGRAM, ROUTER = HERE / "counted.p4", HERE / "router.p4"
ENTRIES, BATCH = 100_000, 500
ROUTES, ACL, PACKETS = 10_000, 500, 100_000
_TICKS = os.sysconf("SC_CLK_TCK")
_WRONG = """[topology]
kind = "star"
wrkers = 4
[[job]]
model = { name = "mlp", hidden = [54] }
data = "digits"
"""


def main() -> None:
    asked = sys.argv[1:] or list(ROWS)
    for row in asked:
        if row not in ROWS:
            sys.exit(f'no row "{row}"; rows: {", ".join(ROWS)}')
        for name, value, unit in ROWS[row]():
            print(f"{name}: {value:.2f} {unit}", flush=True)


Found = Iterator[tuple[str, float, str]]


# -- processes --------------------------------------------------------------------------------


class Process:
    """A switch in a process of its own, and a controller's connection to it."""

    def __init__(self, program: Path) -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{one.getsockname()[1]}"
        command = ["-m", "gradplane", "switch", str(program), "--device-id", "1"]
        command += ["--", "--grpc-server-addr", self.address]
        self.process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert b"ready" in self.process.stdout.readline(), "the switch did not start"

    def seconds(self) -> float:
        """Return the processor time that it has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def mib(self, what: str = "VmRSS") -> float:
        """Return its memory; VmHWM: the most it had."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


@contextmanager
def switch(program: Path) -> Iterator[Process]:
    process = Process(program)
    try:
        yield process
    finally:
        process.end()


@contextmanager
def controller(process: Process) -> Iterator[tuple[Any, p4i.P4Info]]:
    """Become the primary; yield the stub, and P4Info."""
    with grpc.insecure_channel(process.address) as channel:
        stub, done = p4r_grpc.P4RuntimeStub(channel), threading.Event()

        def requests() -> Iterator[p4r.StreamMessageRequest]:
            asked = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
            yield p4r.StreamMessageRequest(arbitration=asked)
            done.wait()

        stream = stub.StreamChannel(requests())  # which lives as long as its name
        next(iter(stream))
        request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
        yield stub, stub.GetForwardingPipelineConfig(request).config.p4info
        done.set()


def _command(*arguments: str) -> float:
    """Return the processor time of a command of gradplane, which may fail."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-m", "gradplane", *arguments]
    subprocess.run(command, stdout=quiet, stderr=quiet, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# -- rows -------------------------------------------------------------------------------------


def start() -> Found:
    """A switch until its port answers, its program compiled before."""
    with switch(ROUTER):
        pass
    with switch(ROUTER) as process:
        yield "start of a switch", process.seconds(), "s"
        yield "memory of a switch", process.mib(), "MiB"


def message() -> Found:
    """The message to an experiment file with a misspelt key."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "wrong.toml"
        file.write_text(_WRONG)
        yield "message to a wrong experiment", _command("run", str(file)), "s"


def fit() -> Found:
    """The fit of the shipped TNA program, which is compiled anew."""
    yield "p4 fit thc_tna.p4", _command("p4", "fit", "thc_tna.p4"), "s"


def entries() -> Found:
    """Exact entries over P4Runtime: processor time and memory of the switch."""
    with switch(PROGRAM) as process, controller(process) as (stub, info):
        writes = _writes(info)
        before = process.seconds(), process.mib()
        for write in writes:
            stub.Write(write)
        yield f"{ENTRIES:,} entries", process.seconds() - before[0], "s"
        yield f"{ENTRIES:,} entries, memory", process.mib() - before[1], "MiB"
        yield f"{ENTRIES:,} entries, switch", process.mib(), "MiB"


def _writes(info: p4i.P4Info) -> list[p4r.WriteRequest]:
    table = next(t for t in info.tables if t.preamble.alias == "macs")
    action = next(a for a in info.actions if a.preamble.alias == "set_vrf")
    found = []
    for first in range(0, ENTRIES, BATCH):
        request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1))
        for number in range(first, first + BATCH):
            update = request.updates.add(type=p4r.Update.INSERT)
            entry = update.entity.table_entry
            entry.table_id = table.preamble.id
            entry.match.add(field_id=1).exact.value = _bytes(1 << 40 | number)
            entry.action.action.action_id = action.preamble.id
            entry.action.action.params.add(param_id=1, value=_bytes(number % 60_000))
        found.append(request)
    return found


def _bytes(value: int) -> bytes:
    return value.to_bytes(max(1, -(-value.bit_length() // 8)), "big")


def counter() -> Found:
    """A wildcard read of a counter; and the longest wait of another client meanwhile."""
    with switch(PROGRAM) as process, controller(process) as (stub, info):
        number = info.counters[0].preamble.id
        all_cells = p4r.ReadRequest(device_id=1)
        all_cells.entities.add().counter_entry.counter_id = number
        one_cell = p4r.ReadRequest(device_id=1)
        one_cell.entities.add().counter_entry.CopyFrom(
            p4r.CounterEntry(counter_id=number, index=p4r.Index(index=7))
        )
        before, cells, waits = process.seconds(), 0, [0.0]
        ended = threading.Event()

        def other() -> None:
            with grpc.insecure_channel(process.address) as channel:
                second = p4r_grpc.P4RuntimeStub(channel)
                while not ended.wait(0.05):
                    began = time.perf_counter()
                    list(second.Read(one_cell))
                    waits.append(time.perf_counter() - began)

        thread = threading.Thread(target=other)
        former = sys.getswitchinterval()
        sys.setswitchinterval(0.0002)  # or it waits for the first client, in this process
        thread.start()
        for response in stub.Read(all_cells):
            cells += len(response.entities)
        ended.set()
        thread.join()
        sys.setswitchinterval(former)
        assert cells == 1_000_000, cells
        yield "read of 1,000,000 cells", process.seconds() - before, "s"
        yield "median wait of another client", sorted(waits)[len(waits) // 2] * 1e3, "ms"
        yield "its longest wait", max(waits) * 1e3, "ms"


def packets() -> Found:
    """Packets one by one through `process`, of a router with an ACL."""
    from gradplane.switch import Switch

    sw = Switch(PROGRAM)
    sw.table("macs").add({"hdr.ethernet.dst_addr": 1}, "set_vrf", {"vrf": 1})
    for n in range(ROUTES):
        match = {"meta.vrf": 1, "hdr.ipv4.dst_addr": (10 << 24 | n << 8, 24)}
        sw.table("routes").add(match, "set_next_hop", {"next_hop": n % 64})
    for n in range(64):
        sw.table("next_hops").add({"meta.next_hop": n}, "forward", {"mac": n, "port": n % 8})
    for n in range(ACL):
        match = {"hdr.ipv4.src_addr": (n << 16, 0xFFFF0000), "hdr.ipv4.protocol": (6, 255)}
        sw.table("acl").add(match, "drop", {}, priority=n + 1)
    made = [_packet(n * 37 % ROUTES) for n in range(1000)]
    for packet in made:
        assert sw.process(1, packet), "a packet leaves"
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        for _ in range(PACKETS // 3 // len(made)):
            for packet in made:
                sw.process(1, packet)
        taken = time.process_time() - began
        best = min(best, taken / (PACKETS // 3 // len(made) * len(made)))
    yield "a packet by process()", best * 1e6, "us"


def _packet(route: int) -> bytes:
    ethernet = (1).to_bytes(6, "big") + (2).to_bytes(6, "big") + b"\x08\0"
    addresses = (192 << 24 | 168 << 16 | 1).to_bytes(4, "big")
    addresses += (10 << 24 | route << 8 | 5).to_bytes(4, "big")
    return (
        ethernet
        + bytes.fromhex("4500002e00000000401100 00".replace(" ", ""))
        + addresses
        + (bytes(26))
    )


ROWS: dict[str, Callable[[], Found]] = {
    "start": start, "message": message, "fit": fit, "entries": entries, "counter": counter,
    "packets": packets,
}  # fmt: skip

if __name__ == "__main__":
    main()
