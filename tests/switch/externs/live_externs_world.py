"""Runs inside a network namespace of its own: a live switch with --externs, and programs that are
pushed to it. Prints what was seen as JSON. Argument: a folder.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import finsy

from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text

sys.path.insert(0, str(Path(__file__).parent.parent))
from v1programs import packet, source

FOLDER = Path(sys.argv[1])
TIMEOUT = 60.0
COUNT = "extern Count { Count(); bit<8> next(in bit<8> x); }"
EXTERNS = """
class Count:
    def __init__(self):
        self.value = 0

    def next(self, x):
        if x == 9:
            raise RuntimeError("nine")
        self.value += 1
        return self.value
"""


def main() -> None:
    # The kernel's own IPv6 packets would be counted, too.
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    for i in (1, 2):
        ip = f"ip link add h{i} type veth peer name s{i}"
        for command in (ip, f"ip link set h{i} up", f"ip link set s{i} up"):
            subprocess.run(command.split(), check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    (FOLDER / "externs.py").write_text(EXTERNS)
    seen: dict[str, Any] = {}
    options = ["-i", "1@s1", "-i", "2@s2", "--externs", str(FOLDER / "externs.py")]
    program = "import sys; from gradplane.switch.daemon import live_switch as live; "
    program += "sys.exit(live.main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, *options, "--device-id", "1"]
    command += ["--", "--grpc-server-addr", "127.0.0.1:0"]
    log = (FOLDER / "log").open("w")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as switch:
        try:
            assert switch.stdout is not None
            asyncio.run(observe(seen, json.loads(switch.stdout.readline())["grpc"]))
        finally:
            switch.send_signal(signal.SIGTERM)
            seen["exit status"] = switch.wait(TIMEOUT)
    seen["log"] = (FOLDER / "log").read_text()
    print(json.dumps(seen))


async def observe(seen: dict[str, Any], address: str) -> None:
    ingress = "s.egress_spec = 2; h.a.y = c.next(h.a.x);"
    counting = source(types=COUNT, ingress_locals="Count() c;", ingress=ingress)
    await push(address, counting)
    host1, host2 = raw("h1"), raw("h2")
    seen["counted"] = [exchange(host1, host2, x) for x in (1, 9, 2)]
    await push(address, counting + "\n")
    seen["after a push"] = exchange(host1, host2, 1)


async def push(address: str, text: str) -> None:
    info = p4info_text(build_p4info(compile_program("pushed.p4", text=text)))
    (FOLDER / "p4info.txt").write_text(info)
    options = finsy.SwitchOptions(p4info=FOLDER / "p4info.txt", p4blob=text.encode(), p4force=True)
    async with finsy.Switch("sw", address, options):
        pass


def raw(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    opened.bind((interface, 0))
    opened.settimeout(1.0)
    return opened


def exchange(host1: socket.socket, host2: socket.socket, x: int) -> int | None:
    """Return field y of the packet when it comes out; None if it does not."""
    host1.send(packet(x=x, z=0x77, payload=bytes(60)))
    try:
        while True:
            data, address = host2.recvfrom(2048)
            if address[2] != socket.PACKET_OUTGOING and data[3] == 0x77:
                return data[2]
    except TimeoutError:
        return None


if __name__ == "__main__":
    main()
