"""A QueueWatch on two veth pairs, one of them slow; runs in a network namespace.

Prints, as JSON, the lengths it reports and those that tc prints.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess

from gradplane.switch.ports.port import Port
from gradplane.switch.ports.queue_lengths import IDLE_INTERVAL, INTERVAL, QueueWatch
from gradplane.switch.runtime.links import Links

FRAME = bytes.fromhex("ffffffffffff 020000000001 1234") + bytes(986)
SLOW = ["tbf", "rate", "8bit", "burst", "2000", "limit", "100000"]
now = 0.0


def main() -> None:
    for name in ("fast", "slow"):
        run("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}-peer")
        run("ip", "link", "set", name, "addrgenmode", "none")  # sends nothing by itself
        run("ip", "link", "set", name, "up")
        run("ip", "link", "set", f"{name}-peer", "up")
    links = Links([1, 2])
    ports = {1: Port(1, "fast"), 2: Port(2, "slow")}
    watch = QueueWatch(ports, links, lambda: now)
    seen: dict[str, object] = {"no queue": look(watch, links)}
    try:
        run("tc", "qdisc", "add", "dev", "slow", "root", *SLOW)
    except subprocess.CalledProcessError:
        print(json.dumps({"no tbf": True}))
        return
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind(("slow", 0))
        for _ in range(12):
            sender.send(FRAME)
    seen["too early"] = look(watch, links, INTERVAL)
    seen["later"] = look(watch, links, IDLE_INTERVAL)
    statistics = run("tc", "-s", "qdisc", "show", "dev", "slow")
    found = re.search(r"backlog \S+ (\d+)p", statistics)
    assert found is not None, statistics
    seen["tc"] = int(found[1])
    run("tc", "qdisc", "del", "dev", "slow", "root")
    seen["without it"] = look(watch, links, INTERVAL)
    watch.close()
    print(json.dumps(seen))


def look(watch: QueueWatch, links: Links, seconds: float = 0.0) -> list[int]:
    """Let the seconds pass and return the lengths of ports 1 and 2."""
    global now
    now += seconds
    watch.update()
    return links.queued[1:3].tolist()


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
