"""Measure p4/tos_compress.p4 in memory, beside the Numba codec on the same values.

    python benchmarks/tos_compress.py

Packets of 256 values go through Switch.process_buffer on one core: from a host's port to the
fabric, compressed, and from the fabric to a host. The codec gets all values in one call and parses
no packets. Times are processor time, the best of several alternating runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradplane import codecs
from gradplane.switch import Switch
from gradplane.switch.runtime.packet_buffers import pack

PROGRAM = Path(__file__).parent.parent / "p4" / "tos_compress.p4"
VALUES, PACKETS, RUNS, BOUND = 256, 2000, 20, 10
HOST, FABRIC, NEAR, FAR = 1, 2, "10.0.0.1", "10.0.1.1"  # port and address on either side

_START = (
    "import sys; from gradplane.switch import Switch; Switch(sys.argv[1]).process(1, bytes(64))"
)


def main() -> None:
    for name, scale in (("gradients", 0.01), ("values of all classes", 0.5)):
        compare(name, scale)
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        environment = os.environ | {"XDG_CACHE_HOME": cache}
        subprocess.run([sys.executable, "-c", _START, PROGRAM], check=True, env=environment)
        print(f"ToS compression: first packet after {time.perf_counter() - start:.2f} s")


def compare(name: str, scale: float) -> None:
    """Print the speed of both directions on normally distributed values."""
    rng = np.random.default_rng(1)
    vectors = [rng.normal(0, scale, VALUES).astype(np.float32) for _ in range(PACKETS)]
    switch, codec = make_switch(), codecs.get("inceptionn", bound=BOUND)
    whole = np.concatenate(vectors)
    encoded, _ = codec.encode(whole)
    near = pack([HOST] * PACKETS, [datagram(FAR, x) for x in vectors])
    fabric = [out for x in vectors for _, out in switch.process(HOST, datagram(FAR, x))]
    # The same packets on their way to the host of this switch.
    back = pack([FABRIC] * PACKETS, [towards_host(packet) for packet in fabric])
    runs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "compress": (
            lambda: switch.process_buffer(*near),
            lambda: codec.encode(whole),
        ),
        "decompress": (
            lambda: switch.process_buffer(*back),
            lambda: codec.decode(encoded, whole.size),
        ),
    }
    for way, (ours, theirs) in runs.items():
        a, b = (t / PACKETS for t in best(ours, theirs))
        print(
            f"ToS compression, {name}, {way}: {1e-3 / a:.0f} thousand packets of {VALUES} values"
            f" a second; a packet {a * 1e6:.2f} us, codec {b * 1e6:.2f} us, ratio {a / b:.2f}"
        )


def make_switch() -> Switch:
    switch = Switch(PROGRAM, engine="jit")
    install(switch)
    return switch


def install(switch: Switch) -> None:
    """Install a host on port 1; everything else is behind port 2."""
    for address, port in ((NEAR, HOST), (FAR, FABRIC)):
        route = {"mac": port, "port": port}
        switch.table("routes").add({"dst_addr": (address, 32)}, "forward", route)
    switch.table("host_ports").add({"port": HOST}, "host")
    switch.table("to_host_ports").add({"port": HOST}, "host")
    switch.table("bounds").add({"dst_addr": ("0.0.0.0", 0)}, "set_bound", {"k": BOUND})


def datagram(to: str, values: np.ndarray) -> bytes:
    """Return a marked packet of values."""
    payload = values.astype(">f4").tobytes()
    return bytes(Ether() / IP(src=NEAR, dst=to, tos=0x28) / UDP(sport=7, dport=7) / payload)


def towards_host(packet: bytes) -> bytes:
    """Return a compressed packet with the destination replaced by the host's address."""
    back = Ether(packet)
    back[IP].dst = NEAR
    del back[IP].chksum, back[UDP].chksum
    return bytes(back)


def best(*runs: Callable[[], object]) -> list[float]:
    """Return the least processor time of each, in seconds, over alternating runs."""
    least = [float("inf")] * len(runs)
    for _ in range(RUNS):
        for i, run in enumerate(runs):
            start = time.thread_time()
            run()
            least[i] = min(least[i], time.thread_time() - start)
    return least


if __name__ == "__main__":
    main()
