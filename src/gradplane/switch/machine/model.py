"""A program loaded into the interpreter, and one packet's pass through it, on any architecture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from gradplane.switch.interp.interpreter_values import Frame
from gradplane.switch.interp.packet import Abort, Packet
from gradplane.switch.interp.statements import Statements
from gradplane.switch.interp.trace_events import Copied, Dropped, Entered, Queued, Sent, TraceEvent
from gradplane.switch.interp.traced_statements import TracedStatements
from gradplane.switch.interp.user_externs import Implementations, UserExterns
from gradplane.switch.ir import nodes as ir
from gradplane.switch.machine.extern_table import ExternCompiler, Externs
from gradplane.switch.machine.externs.direct_resources import DirectResources
from gradplane.switch.machine.weaving import Path
from gradplane.switch.runtime.control_messages import Digest, Fault
from gradplane.switch.runtime.egress_queues import NO_QUEUE
from gradplane.switch.runtime.packet_passes import (
    CLONE_LIMIT,
    CLONED_TOO_OFTEN,
    PASS_LIMIT,
    TOO_MANY_CLONES,
    TOO_OFTEN,
    Arrival,
    PassResult,
    no_such_group,
)
from gradplane.switch.runtime.port_queues import QueueTimes, Waiting
from gradplane.switch.runtime.replicas import CloneSession, Replica
from gradplane.switch.runtime.state import State
from gradplane.switch.source import NOWHERE

P = TypeVar("P")  # an architecture's compiled blocks
D = TypeVar("D")  # an architecture's packet on its way to egress


class Implementation(Protocol):
    """What a model needs of an architecture's implementation."""

    @property
    def externs(self) -> Externs: ...

    @property
    def direct(self) -> DirectResources: ...


class Architecture(Protocol):
    """What a model needs of an architecture's record."""

    @property
    def groups(self) -> int: ...

    @property
    def implementation(self) -> Implementation: ...

    def path(self, program: ir.Program) -> Path: ...


class SwitchPacket(Packet):
    """A packet with its `digests`, which are sent when ingress is over, with what the last lookups
    found (`direct`, by the name of a direct counter or meter), and with what corrects the bytes
    that counters have counted (`counted`, by their names)."""

    __slots__ = ("counted", "digests", "direct")

    def __init__(self, data: bytes, events: list[Any] | None = None) -> None:
        super().__init__(data, events)
        self.digests: list[Digest] = []
        self.direct: dict[str, Any] = {}
        self.counted: dict[str, Callable[[int], None]] = {}

    def copy(self) -> SwitchPacket:
        """Return a packet with the same input and parser position, to pass egress once more."""
        twin = SwitchPacket(self.data, self.events)
        twin.position = self.position
        twin.length = self.length
        twin.grown = self.grown
        return twin


class Model(ABC, Generic[P]):
    """A loaded program. `run` takes one arrival through; an architecture says how.

    externs: implements user-defined externs. Raises CompileError for calls of externs that are not
    implemented.
    """

    def __init__(
        self,
        architecture: Architecture,
        program: ir.Program,
        state: State,
        externs: Implementations | None = None,
    ) -> None:
        self.architecture = architecture
        self.program = program
        self.state = state
        self.clone_limit = CLONE_LIMIT
        made = architecture.implementation
        self.compiler = ExternCompiler(made.externs, made.direct)
        self.user_externs: UserExterns | None = None
        if program.user_extern_calls or any(e.user_extern is not None for e in program.externs):
            self.user_externs = UserExterns(program, state, externs)
            self.compiler = replace(self.compiler, user_externs=self.user_externs)
            self.user_externs.give_methods(
                lambda frame: Statements(frame, state, error_codes(program), self.compiler)
            )
        self._plain = self.compiled(Statements)
        self._traced: P | None = None

    def block_compiler(
        self, kind: Callable[..., Statements], state: State | None = None
    ) -> Statements:
        """Return a compiler of blocks, with a frame for their variables. state: a pipe's."""
        return kind(Frame(), state or self.state, error_codes(self.program), self.compiler)

    def compile_again(self) -> None:
        """Compile the blocks again, since pipes share other tables or externs than before."""
        self._plain = self.compiled(Statements)
        self._traced = None

    @abstractmethod
    def compiled(self, kind: Callable[..., Statements]) -> P:
        """Compile the program's blocks."""

    @abstractmethod
    def new_pass(self, pipeline: P, events: list[TraceEvent] | None) -> Pass[Any]:
        """Return a new pass, which takes one arrival through the blocks."""

    @property
    @abstractmethod
    def parsers(self) -> Sequence[ir.Parser]:
        """The parsers of packets that arrive, one for each pipeline."""

    @abstractmethod
    def pipeline_of(self, port: int) -> int:
        """Return the number of the pipeline that parses what arrives at a port."""

    @abstractmethod
    def parsed(self, arrival: Arrival) -> list[Any]:
        """Run the parser on a packet, without other effects; return its parameters."""

    def run(self, arrival: Arrival, events: list[TraceEvent] | None = None) -> PassResult:
        """Process a packet to its end, its clones and replicas included.

        `events`, if given, gets what happens. Never raises, whatever the packet.
        """
        return self._pass(events).run(arrival)

    def depart(self, item: Waiting, times: QueueTimes) -> PassResult:
        """Run egress of a packet that leaves a queue, and of its clones that do not wait."""
        return self._pass(item.events).leave_queue(item.departure, times)

    def _pass(self, events: list[TraceEvent] | None) -> Pass[Any]:
        if events is None:
            return self.new_pass(self._plain, None)
        if self._traced is None:
            self._traced = self.compiled(TracedStatements)
        return self.new_pass(self._traced, events)


class Pass(ABC, Generic[D]):
    """One arrival's pass: through ingress, then all that does not wait in a port's queue through
    egress. `waited`: of the packet in egress, None if it did not wait in a queue. `place`: the line
    of the architecture's text that runs, where it has one, for traces."""

    def __init__(self, model: Model[Any], events: list[TraceEvent] | None) -> None:
        self.model = model
        self.state = model.state
        self.groups = model.architecture.groups
        self.events = events
        self.result = PassResult()
        self.queue: deque[D] = deque()
        self.waited: QueueTimes | None = None
        self.place = NOWHERE

    @abstractmethod
    def ingress(self, arrival: Arrival) -> None: ...

    @abstractmethod
    def egress(self, departure: D) -> None: ...

    def run(self, arrival: Arrival) -> PassResult:
        if arrival.passes >= PASS_LIMIT:
            self.fault(TOO_OFTEN)
            return self.result
        try:
            self.ingress(arrival)
        except Abort as abort:
            self.fault(str(abort), abort.detail)
        return self._empty_queue()

    def leave_queue(self, departure: D, times: QueueTimes) -> PassResult:
        """Run egress of a packet that waited in a port's queue."""
        self.queue.append(departure)
        self.waited = times
        return self._empty_queue()

    def _empty_queue(self) -> PassResult:
        while self.queue:
            try:
                self.egress(self.queue.popleft())
            except Abort as abort:
                self.fault(str(abort), abort.detail)
            self.waited = None
        return self.result

    def depart(self, port: int, priority: int, departure: D) -> None:
        """Pass a packet on to egress, by way of the port's queue if it has one."""
        queues = self.state.links.queues
        priority = queues.serving(port, priority)
        if queues.lacks(port, priority):
            self.drop(NO_QUEUE)
        elif not queues.holds(port):
            self.queue.append(departure)
        else:
            now = self.state.clock()
            item = queues.put(port, priority, now, self.model, departure, self.events)
            item = item or self.deflect(port, now, departure)
            if item is None:
                self.drop(queues.full(port, priority))
                return
            self.result.waiting += 1
            self.state.queue_changed(item.port, item.priority, item.enqueue_depth + 1)
            if self.events is not None:
                event = Queued(item.port, item.priority, item.enqueue_depth, span=self.place)
                self.events.append(event)

    @abstractmethod
    def deflect(self, port: int, now: int, departure: D) -> Waiting | None:
        """Put a packet that found its queue full into another, where the architecture can."""

    # -- replicas -------------------------------------------------------------------------------

    def members(self, group: int) -> list[Replica]:
        """Return a multicast group's replicas; if there are none, drop the packet."""
        replicas = self.state.links.live(self.state.multicast.get(group, []))
        if replicas:
            ports = ", ".join(str(r.port) for r in replicas)
            self.note(Copied, f"multicast group {group} to ports {ports}")
        elif group < self.groups:
            self.drop(f"multicast group {group} has no members")
        else:
            self.drop(no_such_group(self.groups))
        return replicas

    def session(self, number: int, passes: int) -> CloneSession | None:
        """Return a clone session; None if there is none, or if there are too many clones."""
        session = self.state.clone_sessions.get(number)
        if session is None:
            self.note(Copied, f"not cloned: there is no clone session {number}")
            return None
        if passes + 1 >= PASS_LIMIT:
            self.fault(CLONED_TOO_OFTEN)
            return None
        self.result.clones += len(session.replicas)
        if self.result.clones > self.model.clone_limit:
            self.fault(TOO_MANY_CLONES)
            return None
        live = self.state.links.live(session.replicas)
        ports = ", ".join(str(r.port) for r in live)
        self.note(Copied, f"cloned to session {number}, ports {ports}")
        return replace(session, replicas=live)

    def send(self, port: int, data: bytes) -> None:
        self.result.outputs.append((port, data))
        if self.events is not None:
            self.events.append(Sent(port, data, span=self.place))

    # -- events --------------------------------------------------------------------------------

    def enter(self, block: str) -> None:
        self.note(Entered, block)

    def note(self, kind: Callable[..., TraceEvent], text: str) -> None:
        if self.events is not None:
            self.events.append(kind(text, span=self.place))

    def drop(self, reason: str) -> None:
        self.state.drops[reason] += 1
        self.note(Dropped, reason)

    def fault(self, reason: str, detail: str = "") -> None:
        """Drop a packet because of a fault of its program; count and report the reason.

        The trace and the control plane get the longer text `detail` if there is one."""
        self.state.drops[reason] += 1
        self.note(Dropped, detail or reason)
        self.state.report(Fault(f"packet dropped: {detail or reason}"))


def error_codes(program: ir.Program) -> dict[str, int]:
    return {name: code for code, name in enumerate(program.errors)}
