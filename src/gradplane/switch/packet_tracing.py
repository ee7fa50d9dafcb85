"""Traces of chosen packets of a running switch; Switch.tracing makes them."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gradplane.switch.runtime.packet_buffers import Bytes, Ints

if TYPE_CHECKING:
    from gradplane.switch.interp.trace_events import Trace, TraceEvent

WAITING = 1000  # traces that may wait to be read; while so many wait, none is made


class PacketWatcher(Protocol):
    """Chooses packets to trace; the interpreter runs them. `port`: only from there, None: any.
    Its methods are called under the switch's lock."""

    port: int | None

    def wants(self, port: int, packet: bytes) -> bool:
        """Return True if a packet is to be traced; `deliver` must follow then."""

    def deliver(self, trace: Trace) -> None:
        """Take the trace of a packet."""


class Tracing:
    """A queue of traces, to iterate over from any thread.

    Iteration waits for the next trace; it ends after `count` traces or, after `close`, with those
    that are in the queue. Packets that arrive while WAITING traces wait are not traced.
    """

    def __init__(
        self,
        port: int | None,
        chooses: Callable[[int, bytes], bool] | None,
        count: int | None,
        end: Callable[[Tracing], None],
    ) -> None:
        self.port = port
        self._chooses = chooses
        self._left = count
        self._end = end
        self._traces: queue.SimpleQueue[Trace | None] = queue.SimpleQueue()
        if count is not None and count <= 0:
            self._traces.put(None)

    # -- for the switch, under its lock ----------------------------------------------------------

    def wants(self, port: int, packet: bytes) -> bool:
        """Return True if a packet is to be traced; `deliver` must follow then."""
        if self.port not in (None, port) or self._left == 0 or self._traces.qsize() >= WAITING:
            return False
        return self._chooses is None or self._chooses(port, packet)

    def deliver(self, trace: Trace) -> None:
        self._traces.put(trace)
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self.close()

    # -- for the reader ---------------------------------------------------------------------------

    def get(self, timeout: float | None = None) -> Trace | None:
        """Return the next trace, None after the last.

        Raises TimeoutError after `timeout` seconds.
        """
        try:
            trace = self._traces.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"no packet was traced within {timeout} s") from None
        if trace is None:
            self._traces.put(None)  # for the next call
        return trace

    def __iter__(self) -> Iterator[Trace]:
        while (trace := self.get()) is not None:
            yield trace

    def close(self) -> None:
        """Stop choosing packets."""
        self._end(self)
        self._traces.put(None)

    def __enter__(self) -> Tracing:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Watchers:
    """The watchers of a switch; false while there are none."""

    def __init__(self) -> None:
        self._all: list[PacketWatcher] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, watcher: PacketWatcher) -> None:
        """Let a watcher choose from the packets to come."""
        self._all.append(watcher)

    def remove(self, watcher: PacketWatcher) -> None:
        """End what `add` began; a watcher that is gone already is no error."""
        if watcher in self._all:
            self._all.remove(watcher)

    def wanting(self, port: int, packet: bytes) -> list[PacketWatcher]:
        """Return the watchers that want a packet's trace."""
        return [watcher for watcher in self._all if watcher.wants(port, packet)]

    def chosen(
        self, ports: Ints, data: Bytes, starts: Ints, ends: Ints
    ) -> Iterator[tuple[int, bytes, list[PacketWatcher]]]:
        """Yield the packets of a batch that some want: index, packet, the watchers.

        Packet i is data[starts[i]:ends[i]], from ports[i]."""
        for i, port in enumerate(ports.tolist()):
            if not any(watcher.port in (None, port) for watcher in self._all):
                continue
            packet = data[starts[i] : ends[i]].tobytes()
            if wanting := self.wanting(port, packet):
                yield i, packet, wanting


class UnfinishedTraces:
    """Traces of packets of which a part waits in a queue; each is delivered when nothing does."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[Any]] = {}  # [trace, tracings, passes to come] by its events

    def begin(self, trace: Trace, tracings: Sequence[PacketWatcher], passes: int) -> None:
        """Deliver a trace as soon as so many passes through egress are over."""
        self._waiting[id(trace.events)] = [trace, tracings, 0]
        self.went_on(trace.events, [], passes)

    def went_on(
        self, events: list[TraceEvent], outputs: list[tuple[int, bytes]], change: int
    ) -> None:
        """Take note of packets that left, and of a change in the number of passes to come."""
        unfinished = self._waiting.get(id(events))
        if unfinished is None:
            return
        trace, tracings, _ = unfinished
        trace.outputs.extend(outputs)
        unfinished[2] += change
        if not unfinished[2]:
            del self._waiting[id(events)]
            for tracing in tracings:
                tracing.deliver(trace)
