"""How many packets a second a program takes on this machine, and what each way of theirs costs.

Times are of the processor, so that other processes change them little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from gradplane.switch.interp.trace_events import Applied, Called, Copied, Entered, Extracted, Trace
from gradplane.switch.runtime.packet_buffers import pack

if TYPE_CHECKING:
    from gradplane.switch.switch import Switch

Packet = tuple[int, bytes]
"""Its port and its bytes."""
BATCH = 4096  # packets at least, so that the call itself takes nothing
TRACED = 5000  # packets at most: a trace takes as long as thousands of packets
SECONDS = 0.5  # of processor time for each figure
SINGLY = 1000  # packets at most that are given one by one
LEAST_RUNS = 3


class Way(NamedTuple):
    """A way through a program that some packets take, and the processor time of one of them.

    headers: the names of those that are extracted; steps: tables with the action that ran, and
    copies; passes: how often the first block ran; lookups, calls: of tables, and of externs."""

    headers: str
    steps: str
    passes: int
    lookups: int
    calls: int
    packets: int = 0
    ns: float = 0.0


class Rates(NamedTuple):
    """Figures of a program with these packets. size: mean bytes; batch, single, traced: ns of a
    packet in `process_buffer`, in `process` and in `trace`; ways: those that take the most time
    altogether first."""

    packets: int
    size: float
    leaving: int
    batch: float
    single: float
    traced: float
    ways: list[Way]


def measure(make: Callable[[], Switch], packets: Sequence[Packet]) -> Rates:
    """Measure a program. make: returns a new switch with its entries; packets: not empty.

    A program with state may treat a packet otherwise when it comes again: all figures but those of
    `trace` are of packets that come many times."""
    ways, traced = _ways(make(), packets[:TRACED])
    measured = ((way, len(own), in_batches(make(), own)) for way, own in ways.items())
    found = [way._replace(packets=count, ns=ns) for way, count, ns in measured]
    found.sort(key=lambda way: -way.packets * way.ns)
    left = {cause for cause, _, _ in make().process_batch(*_lists(packets))}
    return Rates(
        packets=len(packets), size=float(mean(len(data) for _, data in packets)), leaving=len(left),
        batch=in_batches(make(), packets), single=_singly(make(), packets[:SINGLY]), traced=traced,
        ways=found,
    )  # fmt: skip


def _lists(packets: Sequence[Packet]) -> tuple[list[int], list[bytes]]:
    return [port for port, _ in packets], [data for _, data in packets]


def in_batches(switch: Switch, packets: Sequence[Packet]) -> float:
    """Return the ns of processor time that a packet takes, of many in one call."""
    ports, data = _lists(list(packets) * -(-BATCH // len(packets)))
    arrays = pack(ports, data)
    return _least(lambda: switch.process_buffer(*arrays)) / len(ports)


def _singly(switch: Switch, packets: Sequence[Packet]) -> float:
    def run() -> None:
        for port, data in packets:
            switch.process(port, data)

    return _least(run) / len(packets)


def _least(call: Callable[[], object]) -> float:
    """Return the least ns of several calls, of which the first compiles and warms up."""
    call()
    found: list[float] = []
    while len(found) < LEAST_RUNS or sum(found) < SECONDS * 1e9:
        begin = time.thread_time_ns()
        call()
        found.append(time.thread_time_ns() - begin)
    return min(found)


def _ways(switch: Switch, packets: Sequence[Packet]) -> tuple[dict[Way, list[Packet]], float]:
    """Return the packets by their ways, in the order in which these come, and the ns of a trace."""
    ways: dict[Way, list[Packet]] = {}
    switch.trace(*packets[0])  # warms up
    spent = 0
    for port, data in packets:
        begin = time.thread_time_ns()
        trace = switch.trace(port, data)
        spent += time.thread_time_ns() - begin
        ways.setdefault(_way(trace), []).append((port, data))
    return ways, spent / len(packets)


def _way(trace: Trace) -> Way:
    blocks = [event.block for event in trace.events if isinstance(event, Entered)]
    return Way(
        headers=" ".join(_headers(trace)), steps=", ".join(_steps(trace)),
        passes=blocks.count(blocks[0]) if blocks else 0,
        lookups=sum(isinstance(event, Applied) for event in trace.events),
        calls=sum(isinstance(event, Called) for event in trace.events),
    )  # fmt: skip


def _headers(trace: Trace) -> Iterator[str]:
    """Yield the headers that are extracted, each once, without the name of their struct."""
    names = (event.header for event in trace.events if isinstance(event, Extracted))
    yield from dict.fromkeys(map(_short, names))


def _steps(trace: Trace) -> Iterator[str]:
    """Yield tables with their actions, and copies, each once."""
    found: dict[str, None] = {}
    for event in trace.events:
        if isinstance(event, Applied):
            found[f"{_short(event.table)}: {_short(event.action)}"] = None
        elif isinstance(event, Copied):
            found[event.what] = None
    yield from found


def _short(name: str) -> str:
    return name.rpartition(".")[2]
