"""Measure the live switch on one core and on two: python benchmarks/switch_cores.py.

Sender and sink would take the second core. So packets wait at four ports of a switch that is
stopped; then it goes on, and the time until the last of each port has passed counts. That one has a
type of its own, for which a sink sleeps: to look at counters meanwhile takes a third of a core.
Everything is inside a network namespace, which needs root or user namespaces.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from switch_ports import _isolated

PORTS, BURST, BURSTS, PROCESSES = 4, 1900, 12, 3
SIZES = 64, 1500
LAST = 0x88B5  # EtherType for experiments (IEEE 802)
PATIENCE = 5.0  # seconds for a burst
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header link_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { link_t link; }
struct metadata_t { }
parser Take(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(h.link); transition accept; }
}
control Verify(inout headers_t h, inout metadata_t m) { apply { } }
control In(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    register<bit<32>>(16) last;
    apply {
        last.write((bit<32>) s.ingress_port, (bit<32>) h.link.src);
        s.egress_spec = ((s.ingress_port - 1) ^ 1) + 1;
    }
}
control Out(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control Compute(inout headers_t h, inout metadata_t m) { apply { } }
control Give(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(Take(), Verify(), In(), Out(), Compute(), Give()) main;
"""


def main() -> None:
    if "inside" not in sys.argv:
        sys.exit(subprocess.call([*_isolated(), sys.executable, __file__, "inside"]))
    _ip("link", "set", "lo", "up")
    for port in range(1, PORTS + 1):
        _ip("link", "add", f"s{port}", "type", "veth", "peer", "name", f"h{port}")
        for name in (f"s{port}", f"h{port}"):
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
            _ip("link", "set", name, "up")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "pairs.p4"
        program.write_text(PROGRAM)
        for size in SIZES:
            rates: dict[int, list[float]] = {1: [], 2: []}
            for _ in range(PROCESSES):
                for cores, found in rates.items():
                    found += _bursts(program, cores, size)
            one, two = median(rates[1]), median(rates[2])
            print(
                f"{size} bytes, {PORTS} ports: one core {one:,.0f} packets/s, two {two:,.0f},"
                f" ratio {two / one:.2f}",
                flush=True,
            )


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def _bursts(program: Path, cores: int, size: int) -> list[float]:
    """Return the packets a second of several bursts."""
    with _switch(program, cores) as pid, ExitStack() as stack:
        senders, sinks = (
            [stack.enter_context(_opened(port, kind)) for port in range(1, PORTS + 1)]
            for kind in (0, LAST)
        )
        found = [_burst(pid, senders, sinks, size) for _ in range(BURSTS)]
        return found[1:]  # the first warms up


def _burst(pid: int, senders: list[socket.socket], sinks: list[socket.socket], size: int) -> float:
    os.kill(pid, signal.SIGSTOP)
    for sender in senders:
        for kind in [*[0x1234] * (BURST - 1), LAST]:
            sender.send(bytes(12) + kind.to_bytes(2, "big") + bytes(size - 14))
    before, waiting = _sent(), set(sinks)
    begin = time.perf_counter()
    os.kill(pid, signal.SIGCONT)
    while waiting:
        ready = select.select(waiting, (), (), PATIENCE)[0]
        end = time.perf_counter()
        assert ready, f"no last packet in {PATIENCE:.0f} s"
        for sink in ready:
            sink.recv(1 << 16)
            waiting.remove(sink)
    return (_sent() - before) / (end - begin)


def _sent() -> int:
    """Return the packets that the switch's interfaces were given, also those that the kernel then
    had no room for."""
    lines = (line.split() for line in Path("/proc/self/net/dev").read_text().splitlines()[2:])
    return sum(int(line[10]) + int(line[12]) for line in lines if line[0].startswith("s"))


def _opened(port: int, kind: int) -> socket.socket:
    """Return a socket that gets the packets of a type from a port, none of type 0, and sends."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.bind((f"h{port}", kind))
    return opened


@contextmanager
def _switch(program: Path, cores: int) -> Iterator[int]:
    command = [sys.executable, "-m", "gradplane", "switch", str(program), "--cores", str(cores)]
    for port in range(1, PORTS + 1):
        command += ["-i", f"{port}@s{port}"]
    command += ["--", "--grpc-server-addr", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["ready"]
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGCONT)  # where it is stopped
            process.terminate()


if __name__ == "__main__":
    main()
