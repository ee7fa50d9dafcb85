"""Runs inside a network namespace of its own: two veth pairs, a live switch under BFRuntime.

Prints what was seen as JSON. Argument: a P4 program.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bfrt_client import Client

TIMEOUT = 60.0


def main(program: str) -> None:
    ip("link set lo up")
    for i in (1, 2):
        ip(f"link add h{i} type veth peer name s{i}")
        for end in (f"h{i}", f"s{i}"):
            ip(f"link set {end} up")
            offload = ["ethtool", "-K", end, "tx", "off", "tso", "off", "gso", "off", "gro", "off"]
            subprocess.run(offload, check=False, capture_output=True)
    code = "import sys; from gradplane.switch.daemon import live_switch as live; "
    code += "sys.exit(live.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, program, "-i", "1@s1", "-i", "2@s2",
               "--bfrt-addr", "127.0.0.1:0", "--", "--grpc-server-addr", "127.0.0.1:0"]  # fmt: skip
    seen: dict[str, Any] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as switch:
        try:
            assert switch.stdout is not None
            with Client(json.loads(switch.stdout.readline())["bfrt"]) as client:
                observe(client, seen)
        finally:
            switch.send_signal(signal.SIGTERM)
            seen["exit status"] = switch.wait(TIMEOUT)
    print(json.dumps(seen))


def ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True)


def has_carrier(interface: str) -> bool:
    command = ["ip", "-j", "link", "show", interface]
    shown = subprocess.run(command, capture_output=True, check=True).stdout
    return "NO-CARRIER" not in json.loads(shown)[0]["flags"]


def raw(interface: str) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
    made.bind((interface, 0))
    made.settimeout(TIMEOUT)
    return made


def observe(client: Client, seen: dict[str, Any]) -> None:
    host1, host2 = raw("h1"), raw("h2")
    frame = bytes.fromhex("0200000000aa0200000000bb1234") + bytes(range(50))
    client.add("macs", {"h.ethernet.dst": 0x0200000000AA}, "Ingress.send", port=2)
    host1.send(frame)
    while (received := host2.recv(2048))[:14] != frame[:14]:
        pass
    seen["forwarded"] = received == frame
    seen["kept"], seen["let go"] = kept_and_let_go(client, host1, host2, frame[:-1])
    seen["names"] = {p["$DEV_PORT"]: [p["$PORT_NAME"], p["$PORT_UP"]] for p in client.read("$PORT")}
    (counted,) = client.read("$PORT_STAT", {"$DEV_PORT": 2})
    seen["counted"] = counted["$FramesTransmittedOK"] >= 1
    client.add("$PORT", {"$DEV_PORT": 1}, SPEED="BF_SPEED_10G", FEC="BF_FEC_TYP_NONE")
    seen["disabled"] = client.read("$PORT", {"$DEV_PORT": 1})[0]["$PORT_UP"]
    seen["link of a disabled port"] = has_carrier("h1")
    client.write(("MODIFY", client.entry("$PORT", {"$DEV_PORT": 1}, PORT_ENABLE=True)))
    seen["enabled"] = comes_to_be(client, 1, up=True)
    seen["link of an enabled port"] = has_carrier("h1")
    host1.send(frame)
    seen["forwarded again"] = arrives(host2, frame)
    ip("link set h2 down")
    seen["up"] = comes_to_be(client, 2, up=False)


def arrives(receiver: socket.socket, frame: bytes) -> bool:
    """Return whether a frame comes; the kernel sends others when a link comes up."""
    try:
        while receiver.recv(2048)[:14] != frame[:14]:
            pass
    except TimeoutError:
        return False
    return True


def comes_to_be(client: Client, port: int, up: bool) -> bool:
    """Wait for the state of a link, which the kernel reports; return what it is at last."""
    end, seen = time.monotonic() + TIMEOUT, not up
    while seen != up and time.monotonic() < end:
        seen = client.read("$PORT", {"$DEV_PORT": port})[0]["$PORT_UP"]
        time.sleep(0.02)
    return seen


def kept_and_let_go(
    client: Client, sender: socket.socket, receiver: socket.socket, frame: bytes
) -> tuple[bool, bool]:
    """Stop the queue of port 2, send it a frame, and start it again."""
    queue = {"pg_id": 0, "pg_queue": 16}

    def schedule(enable: bool) -> None:
        change = client.entry("tf1.tm.queue.sched_cfg", queue, scheduling_enable=enable)
        client.write(("MODIFY", change), target={"pipe_id": 0})

    schedule(False)
    sender.send(frame)
    end, waiting = time.monotonic() + TIMEOUT, 0
    while waiting != 1 and time.monotonic() < end:
        (counts,) = client.read("tf1.tm.counter.queue", queue, pipe=0)
        waiting = counts["usage_cells"]
    schedule(True)
    while (received := receiver.recv(2048))[:14] != frame[:14]:
        pass
    return waiting == 1, received == frame


if __name__ == "__main__":
    main(sys.argv[1])
