"""Measure the JIT engine in memory, beside equivalent C: python benchmarks/switch_memory.py.

Speeds are those of one core, on arrays (Switch.process_buffer): the best of several runs that
alternate with the baseline's. Start-up is the time of a new process to its first packet out.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gradplane.switch import Switch
from gradplane.switch.runtime.hashes import csum16
from gradplane.switch.runtime.packet_buffers import pack

HERE = Path(__file__).parent
ROUTER, LANES = HERE / "router.p4", HERE / "lanes.p4"
THC = HERE.parent / "p4" / "thc.p4"
JOB, WORKERS, SLOTS, ROUNDS, PASSES = 3, 4, 4, 100, 8
ROUTES, ROUTER_PACKETS, PACKET_BYTES = 250, 4096, 128
RUNS = 400

Arrays = tuple[Any, Any, Any]


def main() -> None:
    compiler = shutil.which("gcc")
    library = None if compiler is None else _compile(compiler)
    if library is None:
        print("gcc is not installed: no baseline")
    lanes(library)
    thc(library)
    router(library)
    for name, path in (("router", ROUTER), ("128 lanes", LANES), ("thc.p4", THC)):
        start_up(name, path)
    print(f"memory used: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


def _compile(compiler: str) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:  # a library that is loaded needs no file
        target = Path(folder) / "baseline.so"
        command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", target]
        subprocess.run([*command, HERE / "baseline.c"], check=True)
        return ctypes.CDLL(str(target))


def best(*calls: Callable[[], object], runs: int = RUNS) -> list[float]:
    """Return the least processor time of each, in seconds, over alternating runs."""
    least = [float("inf")] * len(calls)
    for _ in range(runs):
        for i, call in enumerate(calls):
            start = time.thread_time()
            call()
            least[i] = min(least[i], time.thread_time() - start)
    return least


def report(name: str, unit: str, times: list[float], count: int) -> None:
    ours, *baseline = (t / count * 1e9 for t in times)
    text = f"{name}: {ours:.0f} ns a {unit} ({1e3 / ours:.2f} million a second)"
    if baseline:
        text += f"; C: {baseline[0]:.0f} ns; ratio {ours / baseline[0]:.2f}"
    print(text)


# -- 128 lookups and register additions per packet ------------------------------------------------


def lanes(library: ctypes.CDLL | None) -> None:
    switch, (ports, data, offsets) = _lanes_switch(), lanes_packets()
    runs: list[Callable[[], object]] = [lambda: switch.process_buffer(ports, data, offsets)]
    if library is not None:
        values = np.tile(np.arange(256, dtype=np.uint8), 128).tobytes()
        state = ctypes.create_string_buffer(values, 128 * (256 + 4 * (256 + 16)))
        out, to = np.zeros(528 * len(ports), dtype=np.uint8), np.zeros_like(ports)
        args = [a.ctypes.data_as(ctypes.c_void_p) for a in (ports, data, offsets, out, to)]
        count = ctypes.c_int64(len(ports))
        runs.append(lambda: library.lanes(state, *args[:3], count, *args[3:]))
    report("128 lanes", "packet", best(*runs), len(ports))


def _lanes_switch() -> Switch:
    switch = Switch(LANES, engine="jit")
    for lane in range(128):
        table = switch.table(f"lane{lane >> 3:x}{lane & 7}.values")
        for code in range(256):
            table.add({"code": code}, "set", {"found": code})
    return switch


def lanes_packets() -> Arrays:
    rng = np.random.default_rng(3)
    packets = [
        bytes(12) + b"\x88\xb5" + bytes([0, number // 4 % 256]) + codes.tobytes()
        for number, codes in enumerate(rng.integers(0, 256, (4096, 128), dtype=np.uint8))
    ]
    return pack([1 + number % 4 for number in range(len(packets))], packets)


# -- the same in thc.p4, 8 passes per packet --------------------------------------------------


def thc(library: ctypes.CDLL | None) -> None:
    switch, (ports, data, offsets) = _thc_switch(), _thc_packets()
    states = switch.register("slot_state")

    def ours() -> None:
        states.clear()  # every slot is unused again
        switch.process_buffer(ports, data, offsets)

    runs: list[Callable[[], object]] = [ours]
    if library is not None:
        state = ctypes.create_string_buffer(128 * (4096 + 64) + 32 * (2048 + 16) * 4)
        out, count = ctypes.create_string_buffer(2048), ctypes.c_int64(len(ports))
        where = data.ctypes.data_as(ctypes.c_void_p), offsets.ctypes.data_as(ctypes.c_void_p)
        runs.append(lambda: library.thc(state, *where, count, out))
    report("thc.p4, 128 lanes", "pass", best(*runs), len(ports) * PASSES)


def _thc_switch() -> Switch:
    switch = Switch(THC, engine="jit")
    switch.table("routes").add({"dst_addr": ("10.0.0.254", 32)}, "aggregate")
    for block in range(32):
        for lane in range(4):
            table, action = switch.table(f"block{block}.lookup{lane}"), f"block{block}.set{lane}"
            for index in range(16):
                table.add({"job": JOB, "index": index}, action, {"value": index})
    for w in range(WORKERS):
        admitted = {"workers": WORKERS, "quorum": WORKERS, "slot_base": 0, "slots": SLOTS,
                    "group": 1, "worker_bit": 1 << w, "epoch": 1, "next_only": 1}  # fmt: skip
        match = {"job": JOB, "worker": w, "port": w + 1}
        switch.table("members").add(match, "admit", admitted)
        receiver = {"src_mac": 1, "mac": w, "src_ip": 1, "ip": w, "port": 20000}
        switch.table("receivers").add({"job": JOB, "worker": w}, "deliver", receiver)
    switch.multicast(1, [(w + 1, w + 1) for w in range(WORKERS)])
    return switch


def _thc_packets() -> Arrays:
    rng = np.random.default_rng(1)
    ports, packets = [], []
    for number in range(1, ROUNDS + 1):
        for slot in range(SLOTS):
            for w in range(WORKERS):
                codes = rng.integers(0, 256, 512, dtype=np.uint8).tobytes()
                place = (0x23, 0, JOB, w, slot, 0, 8, number)
                head = struct.pack(">BBBBHBBIQIHBB", *place, 0, 1, 0, 1, 4)
                head += csum16(head).to_bytes(2, "big")
                ports.append(w + 1)
                packets.append(_datagram(head + codes))
    return pack(ports, packets)


def _datagram(payload: bytes) -> bytes:
    udp = struct.pack(">HHHH", 20000, 18256, 8 + len(payload), 0) + payload
    return _ethernet(_ipv4(20 + len(udp), 17, bytes([10, 0, 0, 254])) + udp)


def _ethernet(payload: bytes) -> bytes:
    return bytes(11) + b"\1" + b"\x08\x00" + payload


def _ipv4(length: int, protocol: int, to: bytes) -> bytes:
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 7, 0, 64, protocol, 0, b"\n\0\0\1", to)
    return head[:10] + csum16(head).to_bytes(2, "big") + head[12:]


# -- the router ---------------------------------------------------------------------------------


def router(library: ctypes.CDLL | None) -> None:
    switch, (ports, data, offsets) = _router_switch(), router_packets()
    runs: list[Callable[[], object]] = [lambda: switch.process_buffer(ports, data, offsets)]
    if library is not None:
        hops = np.zeros((1 << 16, 8), dtype=np.uint8)
        hops[:ROUTES, 6] = 2
        out, to = np.zeros(len(data), dtype=np.uint8), np.zeros(len(ports), dtype=np.int64)
        args = [a.ctypes.data_as(ctypes.c_void_p) for a in (hops, data, offsets, out, to)]
        count = ctypes.c_int64(len(ports))
        runs.append(lambda: library.router(*args[:3], count, *args[3:]))
    report(f"router, {PACKET_BYTES} bytes", "packet", best(*runs), len(ports))


def _router_switch() -> Switch:
    switch = Switch(ROUTER, engine="jit")
    routes = switch.table("routes")
    for i in range(ROUTES):
        routes.add({"dst_addr": (f"10.0.{i}.0", 24)}, "forward", {"mac": i, "port": 2})
    routes.add({"dst_addr": ("0.0.0.0", 0)}, "forward", {"mac": 1, "port": 3})
    return switch


def router_packets() -> Arrays:
    rng = np.random.default_rng(2)
    size = PACKET_BYTES - 14
    hosts = rng.integers(0, (ROUTES, 256), (ROUTER_PACKETS, 2)).tolist()
    packets = [
        _ethernet(_ipv4(size, 17, bytes([10, 0, a, b])) + bytes(size - 20)) for a, b in hosts
    ]
    return pack([1] * len(packets), packets)


# -- start-up -----------------------------------------------------------------------------------

_FIRST_PACKET = """
import sys
from gradplane.switch import Switch
Switch(sys.argv[1], engine="jit").process(1, bytes(64))
"""


def start_up(name: str, program: Path) -> None:
    """Time a new process to its first packet, without and with the cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"XDG_CACHE_HOME": cache}
        times = []
        for _ in range(4):
            start = time.perf_counter()
            command = [sys.executable, "-c", _FIRST_PACKET, str(program)]
            subprocess.run(command, check=True, env=environment, cwd=HERE.parent)
            times.append(time.perf_counter() - start)
    cold, cached = times[0], min(times[1:])
    print(f"{name}: first packet after {cold:.2f} s, from the cache after {cached:.2f} s")


if __name__ == "__main__":
    main()
