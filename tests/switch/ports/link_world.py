"""Runs inside a network namespace of its own: ports that go down and up. Prints which were seen
down after each step, as JSON."""

from __future__ import annotations

import json
import select
import subprocess
import time

from gradplane.switch.ports.link_state import LinkWatch
from gradplane.switch.runtime.links import Links

TIMEOUT = 60.0
STEPS = ["link set s1 down", "link set s1 up", "link set h2 down", "link set h2 up", "link del s3"]
EXPECTED = [[1], [], [2], [], [3]]


def main() -> None:
    for i in (1, 2, 3):
        ip(f"link add h{i} type veth peer name s{i}")
        ip(f"link set h{i} up")
    links = Links([1, 2, 3])
    watch = LinkWatch([(1, "s1"), (2, "s2"), (3, "s3")], links)
    seen = [sorted(links.down)]
    for i in (1, 2, 3):
        ip(f"link set s{i} up")
    seen.append(wait(watch, links, []))
    for step, expected in zip(STEPS, EXPECTED, strict=True):
        ip(step)
        seen.append(wait(watch, links, expected))
    watch.close()
    print(json.dumps(seen))


def ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True)


def wait(watch: LinkWatch, links: Links, expected: list[int]) -> list[int]:
    """Return the ports that are down, once they are those expected or time is over."""
    end = time.monotonic() + TIMEOUT
    while sorted(links.down) != expected and time.monotonic() < end:
        ready, _, _ = select.select([watch], [], [], end - time.monotonic())
        if ready:
            watch.update()
    return sorted(links.down)


main()
