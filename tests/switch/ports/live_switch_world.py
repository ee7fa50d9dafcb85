"""Runs inside a network namespace of its own: two veth pairs, a live switch, a controller.

Prints what was seen as JSON. Argument: a folder for captures.
"""

from __future__ import annotations

import asyncio
import json
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import finsy
import grpc
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

from gradplane.switch.compiler import compile_program
from gradplane.switch.daemon.clients import SERVICE
from gradplane.switch.p4runtime.device_config import device_config
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text

ROUTER = Path(__file__).parent.parent / "p4runtime" / "programs" / "router.p4"
TIMEOUT = 60.0


def main(folder: Path) -> None:
    seen: dict[str, Any] = {}
    build_links()
    seen["missing interface"] = subprocess.run(
        switch_command("-i", "1@nope"), capture_output=True, text=True
    ).stderr
    options = ["-i", "1@s1", "-i", "2@s2", "--device-id", "1", "--pcap", str(folder / "pcap")]
    command = switch_command(*options, "--", "--grpc-server-addr", "127.0.0.1:0")
    log = (folder / "log").open("w")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as switch:
        try:
            assert switch.stdout is not None
            seen["ready"] = json.loads(switch.stdout.readline())
            observe(seen, folder)
        finally:
            switch.send_signal(signal.SIGTERM)
            seen["exit status"] = switch.wait(TIMEOUT)
    seen["log"] = (folder / "log").read_text()
    seen["captures"] = {
        name: payloads(folder / "pcap" / f"{name}.pcap") for name in ("s1_in", "s2_out")
    }
    print(json.dumps(seen))


def switch_command(*options: str) -> list[str]:
    program = "import sys; from gradplane.switch.daemon import live_switch as live; "
    program += "sys.exit(live.main(sys.argv[1:]))"
    return [sys.executable, "-c", program, *options]


def build_links() -> None:
    ip("link set lo up")
    for i in (1, 2):
        add_link(i)
    ip("addr add 10.0.9.1/24 dev h1")
    ip("route add 10.0.1.0/24 via 10.0.9.254 dev h1")
    ip("neigh add 10.0.9.254 lladdr 02:00:00:00:00:99 dev h1")


def add_link(i: int) -> None:
    ip(f"link add h{i} type veth peer name s{i}")
    ip(f"link set h{i} up")
    ip(f"link set s{i} up")


def ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True)


def observe(seen: dict[str, Any], folder: Path) -> None:
    host1, host2 = raw("h1"), raw("h2")
    send_udp("lost")
    asyncio.run(install(seen["ready"]["grpc"], folder))
    seen["without a program"] = "lost"
    send_udp("hello")
    packet = receive(host2)
    seen["forwarded"] = summary(packet)
    seen["udp checksum"] = checksum(packet)
    host1.send(b"\x02" * 14 + b"garbage")
    host1.send(bytes(Ether(type=0x0800)) + b"\x45")
    send_udp("again")
    seen["after garbage"] = summary(receive(host2))
    subprocess.run(["ip", "link", "set", "s2", "mtu", "1000"], check=True)
    send_udp("long" * 300)
    send_udp("short")
    seen["after one too long"] = summary(receive(host2))
    for state in ("down", "up"):
        subprocess.run(["ip", "link", "set", "s1", state], check=True)
    seen["after the interface was down"] = sent_until_received("back", host2)
    subprocess.run(["ip", "link", "del", "s2"], check=True)
    send_udp("nowhere")
    add_link(2)
    seen["with another interface of its name"] = sent_until_received("afresh", raw("h2"))


def sent_until_received(payload: str, host: socket.socket) -> dict[str, Any]:
    """Send repeatedly, since a link takes a moment to come up."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        send_udp(payload)
        with suppress(AssertionError):
            return summary(receive(host, 0.2))
    raise AssertionError("nothing came")


async def install(address: str, folder: Path, again: bool = False) -> None:
    """Push a program and add a route; `again`: even if it is the one that runs."""
    (folder / "p4info.txt").write_text(p4info_text(build_p4info(compile_program(ROUTER))))
    options = finsy.SwitchOptions(
        p4info=folder / "p4info.txt", p4blob=device_config(ROUTER), p4force=again
    )
    async with finsy.Switch("sw", address, options) as switch:
        action = finsy.P4TableAction("ipv4_forward", dstAddr="02:00:00:00:00:02", port=2)
        match = finsy.Match(dst="10.0.1.0/24")
        await switch.write([+finsy.P4TableEntry("ipv4_lpm", match=match, action=action)])


def raw(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    opened.bind((interface, 0))
    return opened


def send_udp(payload: str) -> None:
    """Send through the host's own stack, which leaves the UDP checksum open."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(payload.encode(), ("10.0.1.7", 4000))


def receive(host: socket.socket, patience: float = TIMEOUT) -> Ether:
    """Return the next UDP packet to port 4000 that reaches the host; each packet within `patience`
    s."""
    while True:
        ready, _, _ = select.select([host], [], [], patience)
        assert ready, "no packet came"
        data, address = host.recvfrom(2048)
        packet = Ether(data)
        if address[2] != socket.PACKET_OUTGOING and UDP in packet and packet[UDP].dport == 4000:
            return packet


def summary(packet: Ether) -> dict[str, Any]:
    payload = bytes(packet[UDP].payload).decode()
    return {"dst": packet.dst, "ttl": packet[IP].ttl, "payload": payload}


def checksum(packet: Ether) -> str:
    there = packet[UDP].chksum
    del packet[UDP].chksum
    return "right" if Ether(bytes(packet))[UDP].chksum == there else "wrong"


def payloads(path: Path) -> list[str]:
    """Return the payloads of the UDP packets to port 4000 that came after there was a program."""
    with RawPcapReader(str(path)) as reader:
        packets = [Ether(data) for data, _ in reader]
    texts = [bytes(p[UDP].payload) for p in packets if UDP in p and p[UDP].dport == 4000]
    return [t.decode() for t in texts if re.fullmatch(b"[a-z]+", t) and t != b"lost"]


def hostile(address: str, method: str, requests: Iterable[bytes]) -> list[str]:
    """Send invalid requests to a method of the switch's service; return their statuses."""
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_stream(f"/{SERVICE}/{method}")
        statuses = []
        for request in requests:
            try:
                list(call(request, timeout=TIMEOUT))
            except grpc.RpcError as error:
                statuses.append(error.code().name)
        return statuses


if __name__ == "__main__":
    main(Path(sys.argv[1]))
