"""Measure the live switch on veth pairs beside a C forwarder: python benchmarks/switch_ports.py.

A sender, the switch and a sink share the machine's cores, so the measured rate is that of the three
together. The C forwarder takes the switch's place in alternating runs, with the same socket
options. Everything is inside a network namespace, which needs root or user namespaces.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import finsy
import numpy as np
from switch_memory import LANES, ROUTER, ROUTES, lanes_packets, router_packets

from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text

HERE = Path(__file__).parent
RUNS, SECONDS, STARTED = 5, 1.0, 60.0
ENTRIES = 10_000

Entries = list[Any]


def main() -> None:
    if "inside" not in sys.argv:
        sys.exit(subprocess.call([*_isolated(), sys.executable, __file__, "inside"]))
    compiler = shutil.which("cc")
    if compiler is None:
        sys.exit("no C compiler here: the sender, the sink and the forwarder are in C")
    with tempfile.TemporaryDirectory() as folder:
        logging.disable(logging.WARNING)  # finsy's, about gNMI
        Bench(Path(folder), compiler).run()


def _isolated() -> list[str]:
    """Enter a new network namespace, inside a user namespace where not root."""
    return ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]


class Bench:
    """The network: sender h1 - s1 switch s2 - h2 sink."""

    def __init__(self, folder: Path, compiler: str) -> None:
        self.folder = folder
        self.tool = folder / "ports"
        command = [compiler, "-O2", "-o", self.tool, HERE / "ports.c"]
        subprocess.run(command, check=True)
        _links()

    def run(self) -> None:
        small = self._file("router", _split(router_packets()))
        large = self._file("lanes", _split(lanes_packets()))
        rows = [
            ("router, 128 bytes", small, ROUTER, router_entries(), "h2"),
            ("128 lanes, 144 bytes", large, LANES, lanes_entries(), "h1"),
        ]
        for row in rows:
            self._compare(*row)
        self._inserts(small)

    def _compare(
        self, name: str, packets: Path, program: Path, entries: Entries, sink: str
    ) -> None:
        """Print the best of alternating runs. `sink`: the interface that the switch sends to."""
        ours, plain, memory = [], [], 0
        for _ in range(RUNS):
            with self._forwarder() as pid:
                plain.append(self._measured(packets, pid, "h2"))
            with switch(program) as live:
                asyncio.run(install(live.address, program, entries))
                ours.append(self._measured(packets, live.pid, sink))
                memory = max(memory, live.memory())
        for what, runs in (("switch", ours), ("forwarder", plain)):
            rate, cost = max(r for r, _ in runs), min(c for _, c in runs)
            print(f"{name:22}{what:10}{rate:10,.0f}/s{cost:8.2f} us of CPU per packet", flush=True)
        rate = max(r for r, _ in ours) / max(r for r, _ in plain)
        cost = min(c for _, c in plain) / min(c for _, c in ours)
        print(f"{'':22}ratio {rate:.2f}, by CPU time {cost:.2f}; memory {memory} MiB", flush=True)

    def _inserts(self, packets: Path) -> None:
        """Time inserts over P4Runtime, without traffic and with as much as the switch takes."""
        for busy in (False, True):
            with switch(ROUTER) as live:
                asyncio.run(install(live.address, ROUTER, router_entries()))
                with self._sending(packets) if busy else nullcontext():
                    time.sleep(0.5)
                    first, start = _received("h2"), time.perf_counter()
                    took = asyncio.run(install(live.address, ROUTER, host_entries()))
                    rate = (_received("h2") - first) / (time.perf_counter() - start)
                load = f"with {rate:,.0f} packets/s" if busy else "without traffic"
                print(f"{ENTRIES:,} entries over P4Runtime, {load}: {took:.2f} s", flush=True)

    def _measured(self, packets: Path, pid: int, sink: str) -> tuple[float, float]:
        """Return the packets per second at the sink, and a packet's processor time in us."""
        before = _cpu(pid)
        count, seconds = self._counted(packets, sink)
        return count / seconds, (_cpu(pid) - before) / max(count, 1) * 1e6

    def _counted(self, packets: Path, at: str) -> tuple[int, float]:
        """Return the number of packets that reached the sink, and the seconds it took."""
        command = [self.tool, "sink", at]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sink:
            assert sink.stdin is not None and sink.stdout is not None
            sink.stdout.readline()
            command = [self.tool, "generate", "h1", packets, str(SECONDS)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            time.sleep(0.3)
            sink.stdin.close()
            count, seconds = sink.stdout.read().split()
        return int(count), max(float(seconds), 1e-9)

    @contextmanager
    def _sending(self, packets: Path) -> Iterator[None]:
        command = [self.tool, "generate", "h1", packets, str(STARTED)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as sender:
            try:
                yield
            finally:
                sender.kill()

    @contextmanager
    def _forwarder(self) -> Iterator[int]:
        command = [self.tool, "forward", "s1", "s2"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as forwarder:
            assert forwarder.stdout is not None
            forwarder.stdout.readline()
            try:
                yield forwarder.pid
            finally:
                forwarder.kill()

    def _file(self, name: str, packets: Sequence[bytes]) -> Path:
        path = self.folder / name
        path.write_bytes(b"".join(struct.pack("=I", len(p)) + p for p in packets[:4096]))
        return path


class Live:
    """A running switch process."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.pid = process.pid
        self.address = address

    def memory(self) -> int:
        """Return the resident memory in MiB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) >> 10


@contextmanager
def switch(program: Path) -> Iterator[Live]:
    command = [sys.executable, "-m", "gradplane", "switch", program, "-i", "1@s1", "-i", "2@s2"]
    command += ["--device-id", "1", "--", "--grpc-server-addr", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent) as process:
        assert process.stdout is not None
        try:
            yield Live(process, json.loads(process.stdout.readline())["grpc"])
        finally:
            process.terminate()


async def install(address: str, program: Path, entries: Entries) -> float:
    """Insert entries for a running program; return the seconds until all are installed."""
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / "p4info.txt"
        info.write_text(p4info_text(build_p4info(compile_program(program))))
        async with finsy.Switch("sw", address, finsy.SwitchOptions(p4info=info)) as live:
            start = time.perf_counter()
            await live.write(entries)
            return time.perf_counter() - start


def router_entries() -> Entries:
    return [_route(f"10.0.{i}.0/24", i, 2) for i in range(ROUTES)]


def host_entries() -> Entries:
    return [_route(f"11.0.{i >> 8}.{i & 255}/32", i, 2) for i in range(ENTRIES)]


def _route(prefix: str, mac: int, port: int) -> Any:
    action = finsy.P4TableAction("forward", mac=mac, port=port)
    return +finsy.P4TableEntry("routes", match=finsy.Match(dst_addr=prefix), action=action)


def lanes_entries() -> Entries:
    """Install one code per lane; a packet costs the same whether it hits or misses."""
    return [
        +finsy.P4TableEntry(
            f"lane{lane >> 3:x}{lane & 7}.values",
            match=finsy.Match(code=code),
            action=finsy.P4TableAction(f"lane{lane >> 3:x}{lane & 7}.set", found=code),
        )
        for lane in range(128)
        for code in range(16)
    ]


def _split(arrays: Any) -> list[bytes]:
    _, data, offsets = arrays
    whole = np.asarray(data).tobytes()
    return [whole[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]


def _cpu(pid: int) -> float:
    """Return the processor seconds of a process's first thread, which runs the packets."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _received(interface: str) -> int:
    """Return the packets received by an interface, whether or not anybody reads them."""
    shown = subprocess.check_output(["ip", "-j", "-s", "link", "show", interface])
    return int(json.loads(shown)[0]["stats64"]["rx"]["packets"])


def _ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True)


def _links() -> None:
    _ip("link set lo up")
    for i in (1, 2):
        _ip(f"link add h{i} type veth peer name s{i}")
        for end in (f"h{i}", f"s{i}"):
            Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
            off = ["tx", "off", "tso", "off", "gso", "off", "gro", "off"]
            subprocess.run(["ethtool", "-K", end, *off], check=True, stdout=subprocess.DEVNULL)
            _ip(f"link set {end} up")


if __name__ == "__main__":
    main()
