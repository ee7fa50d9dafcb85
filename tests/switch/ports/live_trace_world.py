"""Runs inside a network namespace of its own: a live switch under traffic, and who traces it.

Prints what was seen as JSON. Argument: a folder for files.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from live_switch_world import ROUTER, TIMEOUT, build_links, hostile, install, raw, switch_command
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradplane.switch.daemon.clients import SERVICE
from gradplane.switch.daemon.clients import TRACE as METHOD
from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS

HEAD = (
    Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:99")
    / IP(src="10.0.9.1", dst="10.0.1.7", ttl=9)
    / UDP(sport=1, dport=2, chksum=0)
)
CHOSEN = 100  # every so many packets have another time to live
NEVER = ("--where", "hdr.ipv4.ttl == 200")  # chooses nothing, not even what kernels send
HOSTILE = [b"", b"\xff\xfe", b"[]", b"3", b'{"port": "1"}', b'{"port": true}', b'{"port": -1}',
           b'{"count": 1e999}', b'{"where": 5}', b'{"prt": 1}', b"[" * 100_000, b'{"port": 1' * 99,
           b'{"where": "' + b"(" * 5000 + b'"}', b'{"where": "\\u0000"}']  # fmt: skip


def main(folder: Path) -> None:
    seen: dict[str, Any] = {}
    # Processes inherit that it is ignored, as it is where a shell runs the tests in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    build_links()
    options = ["-i", "1@s1", "-i", "2@s2", "--device-id", "1"]
    command = switch_command(str(ROUTER), *options, "--", "--grpc-server-addr", "127.0.0.1:0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as switch:
        try:
            assert switch.stdout is not None
            address = json.loads(switch.stdout.readline())["grpc"]
            observe(seen, address, folder)
            waiting = trace(address, *NEVER)
            ready(waiting)
        finally:
            switch.send_signal(signal.SIGTERM)
            seen["exit status"] = switch.wait(TIMEOUT)
        seen["when the switch stops"] = ended(waiting)
    print(json.dumps(seen))


def observe(seen: dict[str, Any], address: str, folder: Path) -> None:
    asyncio.run(install(address, folder))
    with traffic(seen):
        done = ended(trace(address, "--where", "hdr.ipv4.ttl == 77", "--next", "3", "--json"))
        seen["chosen"] = [summary(line) for line in done["out"].splitlines()]
        done = ended(trace(address, "--port", "1", "--next", "2"))
        seen["text"] = done["out"].splitlines()[:4]
        interrupted = trace(address, *NEVER)
        ready(interrupted)
        interrupted.send_signal(signal.SIGINT)
        seen["interrupted"] = ended(interrupted)
    seen["wrong"] = ended(trace(address, "--where", "hdr.ipv4.tttl == 1"))
    seen["hostile"] = hostile(address, METHOD, HOSTILE)
    seen["too many"] = too_many(address)
    waiting = trace(address, *NEVER)
    ready(waiting)
    asyncio.run(install(address, folder, again=True))
    seen["another program"] = ended(waiting)


@contextmanager
def traffic(seen: dict[str, Any]) -> Any:
    """Send numbered packets into port 1; note whether each left through port 2, once, in order."""
    head, stop, sent, host = bytes(HEAD), threading.Event(), [0], raw("h1")
    got: list[int] = []
    finished = threading.Event()
    other = Ether(head)
    other[IP].ttl = 77
    del other[IP].chksum
    heads = [bytes(other), *[head] * (CHOSEN - 1)]

    def send() -> None:
        while not stop.is_set():
            for number in range(sent[0], sent[0] + 50):
                host.send(heads[number % CHOSEN] + number.to_bytes(4, "big"))
            sent[0] += 50
            while sent[0] - len(got) > 100 and not stop.is_set():  # no more than a socket holds
                time.sleep(0.0005)

    def read(sink: socket.socket) -> None:
        while not finished.is_set():
            try:
                data, where = sink.recvfrom(2048)
            except TimeoutError:
                continue
            if where[2] != socket.PACKET_OUTGOING and data[12:14] == b"\x08\x00":
                got.append(int.from_bytes(data[42:46], "big"))

    def await_true(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + TIMEOUT
        while not condition() and time.monotonic() < end:
            time.sleep(0.005)

    sink = raw("h2")
    sink.settimeout(0.1)
    sender, reader = threading.Thread(target=send), threading.Thread(target=read, args=(sink,))
    sender.start()
    reader.start()
    try:
        yield
    finally:
        await_true(lambda: sent[0] > 1000)  # on a slow machine as well
        stop.set()
        sender.join()
        await_true(lambda: len(got) >= sent[0])
        finished.set()
        reader.join()
    seen["every packet once and in order"] = got == list(range(sent[0]))
    seen["many packets"] = sent[0] > 1000


def trace(address: str, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gradplane", "trace", "--at", address, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ready(process: subprocess.Popen[str]) -> None:
    """Wait until the switch looks at packets for the process."""
    assert process.stderr is not None
    assert process.stderr.readline().startswith("waiting for packets")


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate(timeout=TIMEOUT)
    return {"out": out, "err": errors, "status": process.returncode}


def summary(line: str) -> dict[str, Any]:
    trace = json.loads(line)
    number = int(trace["packet"][84:92], 16)
    kinds = [event["kind"] for event in trace["events"]]
    (port, packet) = (trace["outputs"][0][key] for key in ("port", "packet"))
    return {
        "chosen": number % CHOSEN == 0,
        "port": trace["port"],
        "table": kinds.count("table"),
        "sent": [port, int(packet[44:46], 16)],
    }


def too_many(address: str) -> dict[str, Any]:
    """Check the message to the last client; afterwards there is room again."""
    with grpc.insecure_channel(address) as channel:
        open_trace = channel.unary_stream(f"/{SERVICE}/{METHOD}")
        calls = [open_trace(b"{}", timeout=TIMEOUT) for _ in range(DEFAULT_LIMITS.traces)]
        for call in calls:
            call.initial_metadata()
        refused = ended(trace(address))
        for call in calls:
            call.cancel()
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            again = open_trace(b'{"count": 0}', timeout=TIMEOUT)
            if again.code() is grpc.StatusCode.OK:
                return refused
    raise AssertionError("traces that were cancelled go on")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
