"""The packets of one round of a recorded run, and what a switch did with each of them.

They come from the re-enactment: its packets are those of the run, bit for bit, in an order that
gives the recorded sums; those that came too late or never are among them. Packets that a switch
only forwards, such as messages to a parameter server, are not sent in a re-enactment.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gradplane.aggregations.needs import Answer
from gradplane.experiment.deployment import Deployment
from gradplane.hosts.protocols.actions import Peer
from gradplane.runs.progress import left
from gradplane.runs.records.run_data import RunData
from gradplane.runs.replayer import reenactment
from gradplane.runs.replayer.reenactment import Line, Reenactment
from gradplane.runs.replayer.replay_network import ReplayNetwork
from gradplane.switch.interp.trace_events import Trace

Frame = tuple[int, bytes]
"""A port and the frame that enters or leaves there."""

_KEPT = 8  # rounds whose packets are remembered


@dataclass(frozen=True)
class Pass:
    """A frame that a switch processes, and the frames that leave."""

    switch: str
    entered: Frame
    left: tuple[Frame, ...]


@dataclass
class SentPacket:
    """A datagram of a host. passes: places in RoundPackets.passes, none if it never arrived at a
    switch. answers: what arrives at hosts because of it. late: it came after the result."""

    source: Peer
    payload: bytes
    passes: list[int] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    late: bool = False


@dataclass
class RoundPackets:
    """The packets of a round. registers: by switch, its registers' memory before the first one."""

    packets: list[SentPacket] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    registers: dict[str, npt.NDArray[np.uint8]] = field(default_factory=dict)


@dataclass(frozen=True)
class CellChange:
    """A register's cell that a packet has changed."""

    register: str
    index: int
    before: int
    after: int


@dataclass(frozen=True)
class TracedPass:
    """A frame's pass through a switch."""

    trace: Trace
    changes: list[CellChange]


class RecordedPackets:
    """The packets of a job's rounds, one round at a time; a context manager."""

    def __init__(self, run: RunData, job: int) -> None:
        self._run, self._job = run, job
        self._outcomes = reenactment.read_outcomes(run.arrivals)[job]
        self._found: dict[int, RoundPackets] = {}
        self._exit = ExitStack()
        self._next = 0  # the round that the re-enactment comes to next
        self._under_way: tuple[int, int, float] | None = None  # first and last round, since when
        self._network: _RecordingNetwork | None = None
        self._lines: Iterator[Line] = iter(())
        self._tracer: ReplayNetwork | None = None

    def __enter__(self) -> RecordedPackets:
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def of(self, round: int) -> RoundPackets:
        """Return a round's packets. Raises ReplayError for records that cannot be re-enacted.

        Earlier rounds are trained again for it, but once: going forward is quick.
        """
        if round not in self._found:
            if self._network is None or round < self._next:
                self._begin()
            self._under_way = self._next, round, time.monotonic()
            try:
                found = self._re_enacted(round)
            finally:
                self._under_way = None
            if len(self._found) == _KEPT:
                del self._found[next(iter(self._found))]
            self._found[round] = found
        return self._found[round]

    def _re_enacted(self, round: int) -> RoundPackets:
        assert self._network is not None
        self._network.begin(round == self._next)
        for line in self._lines:
            if line["kind"] != "round" or line["round"] < self._next:
                continue
            self._next = line["round"] + 1
            if line["round"] == round:
                break
            self._network.begin(self._next == round)
        return self._network.found

    def under_way(self) -> str:
        """Return how far a call of `of` in another thread is, in words; "" if there is none."""
        if (asked := self._under_way) is None:
            return ""
        first, wanted, since = asked
        done, total = self._next - first, wanted + 1 - first
        rest = left(time.monotonic() - since, done, total)
        return f"re-enacting the run: round {self._next} of {wanted}{rest}"

    def trace(self, round: int, place: int) -> TracedPass:
        """Let the switch process pass `place` of a round once more, and look on."""
        found = self.of(round)
        wanted = found.passes[place]
        if self._tracer is None:
            self._tracer = self._exit.enter_context(ReplayNetwork(self._run.deployment))
        switch = self._tracer.switch(wanted.switch)
        memory = switch.state.register_memory
        memory[:] = found.registers[wanted.switch]
        for earlier in found.passes[:place]:
            if earlier.switch == wanted.switch:
                switch.process(*earlier.entered)
        registers = switch.state.registers
        before = {name: np.array(register.values) for name, register in registers.items()}
        trace = switch.trace(*wanted.entered)
        changes = []
        for name, register in registers.items():
            after = np.array(register.values)
            for index in np.flatnonzero(before[name] != after).tolist():
                changes.append(CellChange(name, index, int(before[name][index]), int(after[index])))
        return TracedPass(trace, changes)

    def _begin(self) -> None:
        """Begin the re-enactment anew."""
        self._network = network = _RecordingNetwork(self._run.deployment)
        self._exit.enter_context(network)
        deployed = self._run.deployment.jobs[self._job]
        self._lines = iter(Reenactment(deployed, self._outcomes, network))
        self._next = 0


class _RecordingNetwork(ReplayNetwork):
    """A network that keeps the packets of a round."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(deployment)
        self.found = RoundPackets()
        self._keeps = False
        self._held: dict[tuple[Peer, bytes], SentPacket] = {}
        self._left: list[Frame] = []

    def begin(self, keeps: bool) -> None:
        """Begin a round, whose packets are wanted or not."""
        self.found, self._keeps = RoundPackets(), keeps
        self._held.clear()
        if keeps:
            for name in self.switches:
                self.found.registers[name] = self.switch(name).state.register_memory.copy()

    def held(self, source: Peer, payload: bytes) -> None:
        if self._keeps:
            packet = self._held[source, payload] = SentPacket(source, payload)
            self.found.packets.append(packet)

    def send(self, source: Peer, to: Peer, payload: bytes, tos: int = 0) -> list[Answer]:
        if not self._keeps:
            return super().send(source, to, payload, tos)
        packet = self._held.pop((source, payload), None)
        if packet is None:
            packet = SentPacket(source, payload)
            self.found.packets.append(packet)
        else:
            packet.late = True
        first = len(self.found.passes)
        packet.answers = super().send(source, to, payload, tos)
        packet.passes = list(range(first, len(self.found.passes)))
        return packet.answers

    def _pass(self, switch: str, port: int, frame: bytes) -> None:
        self._left = []
        super()._pass(switch, port, frame)
        if self._keeps:
            self.found.passes.append(Pass(switch, (port, frame), tuple(self._left)))

    def _transmit(self, node: str, port: int, frame: bytes) -> None:
        self._left.append((port, frame))
        super()._transmit(node, port, frame)
