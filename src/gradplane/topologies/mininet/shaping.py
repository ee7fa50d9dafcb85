"""Rates, delays and queues on real interfaces, by tc: a token bucket, and netem where available."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial

from gradplane.topologies.description import Link
from gradplane.topologies.mininet.netns import within
from gradplane.topologies.topology_errors import NetworkError

_FRAME = 1514
_BURST = 0.001
"""Seconds of data that may leave in a burst; the kernel's timers are finer than that."""


def shape(link: Link, pid: int, interface: str) -> None:
    """Shape what `interface`, an end of the link in the namespace of `pid`, sends.

    Raises NetworkError where the kernel cannot: many have no netem, which a delay needs.
    """
    parent = "root"
    if link.delay:
        limit = ["limit", str(link.queue)]
        netem = ["handle", "1:", "netem", "delay", f"{link.delay / 1000:.3f}us", *limit]
        _add(link, pid, interface, parent, netem, _NO_NETEM)
        parent = "parent 1:1"
    if link.rate is not None:
        burst = max(2 * _FRAME, round(link.rate / 8 * _BURST))
        size = ["burst", str(burst), "limit", str(link.queue * _FRAME)]
        tbf = ["handle", "2:", "tbf", "rate", f"{link.rate}bit", *size]
        _add(link, pid, interface, parent, tbf, _NO_TBF)
        queue = ["handle", "3:", "pfifo", "limit", str(link.queue)]
        _add(link, pid, interface, "parent 2:1", queue, _NO_TBF)


def dropped(pid: int, interface: str) -> int:
    """Return the number of packets that the queues of `interface` have dropped."""
    show = ["tc", "-s", "-j", "qdisc", "show", "dev", interface]
    output = within(pid, lambda: subprocess.run(show, capture_output=True, check=True).stdout)
    # The root's count includes the drops of its children.
    drops = [queue["drops"] for queue in json.loads(output) if queue.get("root")]
    return int(sum(drops))


_NO_NETEM = (
    "a delay needs the kernel's netem, which this kernel refuses: leave the delay out, or use"
    " --net sim, where delays are virtual"
)
_NO_TBF = (
    "a rate needs the kernel's tbf, which this kernel refuses: leave the rate out, or use"
    " --net sim, where rates are virtual"
)


def _add(link: Link, pid: int, interface: str, parent: str, queue: list[str], why: str) -> None:
    command = ["tc", "qdisc", "add", "dev", interface, *parent.split(), *queue]
    run: Callable[[], subprocess.CompletedProcess[str]] = partial(
        subprocess.run, command, capture_output=True, text=True, check=False
    )
    done = within(pid, run)
    if done.returncode != 0:
        raise NetworkError(f"link {link.name}: {why} (tc: {done.stderr.strip()})")
