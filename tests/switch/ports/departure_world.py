"""A live switch whose own queue limits a port; runs in a network namespace.

Prints, as JSON, what arrived: for each packet its number, the depths and the waiting time that
egress saw; and the switch's account of its queues.
"""

from __future__ import annotations

import json
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from v1programs import source

from gradplane.switch.daemon.clients import CommandClient

PROGRAM = source(
    types="header q_t { bit<8> enq; bit<8> deq; bit<32> waited; }",
    headers="q_t q;",
    ingress="s.egress_spec = 2;",
    egress="h.q.setValid(); h.q.enq = (bit<8>) s.enq_qdepth; h.q.deq = (bit<8>) s.deq_qdepth;"
    "h.q.waited = s.deq_timedelta;",
)
RATE, DEPTH, SENT = 50, 20, 30
TIMEOUT = 60.0


def main(folder: Path) -> None:
    for i in (1, 2):
        ip(f"link add h{i} type veth peer name s{i}")
        for end in (f"h{i}", f"s{i}"):
            ip(f"link set {end} addrgenmode none")  # sends nothing by itself
            ip(f"link set {end} up")
    ip("link set lo up")
    program, commands = folder / "queue.p4", folder / "commands.txt"
    program.write_text(PROGRAM)
    commands.write_text(f"set_queue_rate {RATE} 2\nset_queue_depth {DEPTH} 2\n")
    code = "import sys; from gradplane.switch.daemon import live_switch as live; "
    code += "sys.exit(live.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, str(program), "--commands", str(commands)]
    command += ["-i", "1@s1", "-i", "2@s2", "--", "--grpc-server-addr", "127.0.0.1:0"]
    log = (folder / "log").open("w+")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as switch:
        try:
            assert switch.stdout is not None
            address = json.loads(switch.stdout.readline())["grpc"]
            seen = observe(address)
        finally:
            switch.send_signal(signal.SIGTERM)
            status = switch.wait(TIMEOUT)
    log.seek(0)
    print(json.dumps({**seen, "status": status, "log": log.read()}))


def observe(address: str) -> dict[str, object]:
    host1, host2 = raw("h1"), raw("h2")
    batch(host1, SENT)
    arrived = [read(host2) for _ in range(DEPTH)]
    with CommandClient(address) as client:
        [answer] = client.run("show_queues", "test")
    batch(host1, 5)  # some wait as the switch ends
    return {"arrived": arrived, "queues": answer["output"]}


def batch(host: socket.socket, count: int) -> None:
    for i in range(count):
        host.send(bytes([i, 1, 2, 3]) + b"payload" * 3 + bytes(60))


def read(host: socket.socket) -> tuple[int, int, int, int, bool]:
    ready, _, _ = select.select([host], [], [], TIMEOUT)
    assert ready, "no packet came"
    data = host.recv(2048)
    whole = data[10:31] == b"payload" * 3
    return data[0], data[4], data[5], int.from_bytes(data[6:10], "big"), whole


def raw(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    opened.bind((interface, 0))
    opened.setsockopt(263, 23, 1)  # what is sent here is not received
    return opened


def ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
