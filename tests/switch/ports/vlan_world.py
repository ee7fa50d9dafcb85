"""Runs inside a network namespace of its own: frames sent into a veth pair, and as a port reads
them at the other end. Prints both, as hex, as JSON."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import time

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

from gradplane.switch.ports.kernel_batches import Arrivals
from gradplane.switch.ports.port import Port
from gradplane.switch.ports.port import log as port_log

TIMEOUT = 60.0
ADDRESSES = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
DATAGRAM = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=4000, dport=4000)
FRAMES = [
    ADDRESSES / DATAGRAM / b"none",
    ADDRESSES / Dot1Q(vlan=5, prio=3) / DATAGRAM / b"one",
    ADDRESSES / Dot1Q(vlan=0, id=1) / DATAGRAM / b"priority",
    ADDRESSES / Dot1AD(vlan=7) / Dot1Q(vlan=4095) / DATAGRAM / b"two",
    ADDRESSES / Dot1Q(vlan=9) / DATAGRAM / bytes(1400),  # longer than a slot
    ADDRESSES / DATAGRAM / bytes(8900),  # longer than a frame of the ring was made for
    ADDRESSES / Dot1Q(vlan=9) / DATAGRAM / bytes(8900),
    ADDRESSES / DATAGRAM / b"none again",
]


def main() -> None:
    for arguments in ("link add h1 type veth peer name s1", "link set h1 up", "link set s1 up"):
        subprocess.run(["ip", *arguments.split()], check=True)
    wait_until_up("h1")
    port = Port(1, "s1")
    for name in ("h1", "s1"):
        subprocess.run(["ip", "link", "set", name, "mtu", "9000"], check=True)
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind(("h1", 0))
    sent = [bytes(frame) for frame in FRAMES]
    for frame in sent:
        sender.send(frame)
    received: list[bytes] = []
    arrivals = Arrivals()
    while len(received) < len(sent):
        ready, _, _ = select.select([port], [], [], TIMEOUT)
        assert ready, f"{len(received)} of {len(sent)} frames came"
        arrivals.clear()
        port.receive(arrivals)
        spans = zip(arrivals.starts, arrivals.ends, strict=True)
        frames = [arrivals.data[start:end].tobytes() for start, end in spans]
        received += [f for f in frames if f[:12] == sent[0][:12]]  # the kernel speaks IPv6, too
    flood(sender, port, arrivals)
    print(json.dumps({"sent": [f.hex() for f in sent], "received": [f.hex() for f in received]}))


def flood(sender: socket.socket, port: Port, arrivals: Arrivals) -> None:
    """Send more than the ring holds before any is read: what is missing is counted, to the end."""
    sent, whole = 5000, bytes(FRAMES[0])
    for _ in range(sent):
        sender.send(whole)
    found = 0
    while found + port.missed < sent:
        arrivals.clear()
        port.receive(arrivals)
        if not arrivals.count:
            sender.send(whole)  # which tells of those before it
            sent += 1
        found += arrivals.count
    assert 2900 < port.missed < 3000, port.missed  # 5,000 - 2,048; the kernel sends some of its own
    lines: list[str] = []
    port_log.addFilter(lambda record: bool(lines.append(record.getMessage())))
    for _ in range(sent):
        sender.send(whole)
    port.close()  # before anything was read
    assert f": {port.missed} packets from {port.interface} were lost" in lines[-1], lines
    assert port.missed > 5800, port.missed


def wait_until_up(name: str) -> None:
    """Wait until the kernel has noted the carrier: it drops what is sent before."""
    end = time.monotonic() + TIMEOUT
    while True:
        shown = subprocess.run(["ip", "link", "show", name], capture_output=True, text=True)
        if "state UP" in shown.stdout:
            return
        assert time.monotonic() < end, shown
        time.sleep(0.01)


if __name__ == "__main__":
    main()
