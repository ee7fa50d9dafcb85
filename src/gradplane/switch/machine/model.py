"""A program loaded into the interpreter, and one packet's pass through it, on any architecture."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from gradplane.switch.interp.interpreter_values import Frame
from gradplane.switch.interp.packet import Abort
from gradplane.switch.interp.statements import Statements
from gradplane.switch.interp.user_externs import Implementations, UserExterns
from gradplane.switch.ir import nodes as ir
from gradplane.switch.machine.extern_table import ExternCompiler, Externs
from gradplane.switch.machine.externs.direct_resources import DirectResources
from gradplane.switch.machine.interpreted_paths import InterpretedPath
from gradplane.switch.machine.weaving import DEFLECT, QUEUE_CHANGED, Path
from gradplane.switch.runtime.control_messages import Fault
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
from gradplane.switch.runtime.port_queues import DEFLECTED, QueueTimes, Waiting
from gradplane.switch.runtime.replicas import CloneSession, Replica
from gradplane.switch.runtime.state import PipeState, State
from gradplane.switch.source import NOWHERE

if TYPE_CHECKING:
    from gradplane.switch.interp.trace_events import TraceEvent

Departure = list[Any]
"""The arguments of egress: of a packet, the packet and its values."""


class Parsed(Exception):
    """Raised by a pass that is to end behind the parser."""


class Implementation(Protocol):
    """The part of an architecture's implementation that a model needs."""

    @property
    def externs(self) -> Externs: ...

    @property
    def direct(self) -> DirectResources: ...


class Architecture(Protocol):
    """The part of an architecture's record that a model needs."""

    @property
    def groups(self) -> int: ...

    @property
    def implementation(self) -> Implementation: ...

    def path(self, program: ir.Program) -> Path: ...


class Model:
    """A loaded program. `run` takes one arrival along its packet path, which is compiled for each
    pipe: once for those that run the same pipeline with the same tables and externs.

    externs: implements user-defined externs. later: compile on first use, where native code runs
    the packets and has refused what cannot be compiled. Raises CompileError for calls of externs
    that are not implemented.
    """

    def __init__(
        self,
        architecture: Architecture,
        program: ir.Program,
        state: State,
        externs: Implementations | None = None,
        later: bool = False,
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
            self.compiler = self.compiler._replace(user_externs=self.user_externs)
            self.user_externs.give_methods(
                lambda frame: Statements(frame, state, error_codes(program), self.compiler)
            )
        self.path = architecture.path(program)
        self.places = {name: i for i, name in enumerate(self.path.departure)}
        """The positions of the parameters of egress."""
        self._compiled: dict[type[Statements], list[InterpretedPath]] = {}
        asked = any(QUEUE_CHANGED in pipeline.entries for pipeline in self.path.pipelines)
        if asked:
            state.queue_changed = self._queue_changed
        if asked or not later:
            self._pipes(Statements)

    def compile_again(self) -> None:
        """Forget what was compiled, since pipes share other tables or externs than before."""
        self._compiled.clear()

    def _pipes(self, kind: type[Statements]) -> list[InterpretedPath]:
        """Return the closures of each pipe."""
        if kind not in self._compiled:
            self._compiled[kind] = self.compile(kind)
        return self._compiled[kind]

    def compile(self, kind: Callable[..., Statements]) -> list[InterpretedPath]:
        """Compile the blocks and the path for each pipe. kind: makes the compiler of statements."""
        path, state = self.path, self.state
        if not state.scopes.differ:
            made = [InterpretedPath(path, p, self._blocks(kind, state)) for p in path.pipelines]
            return [made[number] for number in path.pipes]
        return [
            InterpretedPath(
                path, path.pipelines[number], self._blocks(kind, PipeState(state, pipe))
            )
            for pipe, number in enumerate(path.pipes)
        ]

    def _blocks(self, kind: Callable[..., Statements], state: State) -> Statements:
        """Return a compiler of blocks, with a frame for their variables. state: a pipe's."""
        return kind(Frame(), state, error_codes(self.program), self.compiler)

    def run(self, arrival: Arrival, events: list[TraceEvent] | None = None) -> PassResult:
        """Process a packet to its end, its clones and replicas included.

        `events`, if given, gets what happens. Never raises, whatever the packet.
        """
        return self._pass(events).run(arrival)

    def depart(self, item: Waiting, times: QueueTimes) -> PassResult:
        """Run egress of a packet that leaves a queue, and of its clones that do not wait."""
        return self._pass(item.events).leave_queue(item.departure, times)

    def _pass(self, events: list[TraceEvent] | None) -> Pass:
        kind = Statements
        if events is not None:
            from gradplane.switch.interp.traced_statements import TracedStatements as kind
        return Pass(self, self._pipes(kind), events)

    @property
    def parsers(self) -> list[ir.Parser]:
        """The parsers of packets that arrive, one for each pipeline."""
        blocks = (p.blocks[p.parser][0] for p in self.path.pipelines)
        return [block for block in blocks if isinstance(block, ir.Parser)]

    def pipeline_of(self, port: int) -> int:
        """Return the number of the pipeline that parses what arrives at a port."""
        return self.path.pipes[self.path.pipe_of(port)]

    def parsed(self, arrival: Arrival) -> list[Any]:
        """Run the parser on a packet, without other effects; return its parameters."""
        work = self._pass(None)
        work.parsing = True
        with suppress(Parsed):
            work.ingress(arrival)
        compiled = work.pipes[self.path.pipe_of(arrival.port)]
        name = compiled.pipeline.parser
        packet = compiled.slots[next(iter(compiled.pipeline.ingress.packets))]
        return [compiled.env[slot] for slot in compiled.part_slots(packet, name)]

    def _queue_changed(self, port: int, priority: int, length: int) -> None:
        """Run the path's entry point for a queue's new length, in each pipe: so each pipe's
        registers follow all queues."""
        current = self.state.current_pipe
        running, work = current.number, self._pass(None)
        try:
            for pipe, compiled in enumerate(work.pipes):
                current.number = pipe
                if QUEUE_CHANGED in compiled.pipeline.entries:
                    interrupted = compiled.env[compiled.work]
                    compiled.run(QUEUE_CHANGED, work, (port, priority, length))
                    compiled.env[compiled.work] = interrupted
        except Abort as abort:
            self.state.drops[str(abort)] += 1
        finally:
            current.number = running


class Pass:
    """One arrival's pass along a path: through ingress, then all that does not wait in a port's
    queue through egress.

    waited: of the packet in egress, None if it did not wait in a queue. place: the line of the
    path's text that runs, for traces. parsing: the pass ends behind the parser. replicas: those
    that the path has asked for, by their numbers.
    """

    def __init__(
        self, model: Model, pipes: list[InterpretedPath], events: list[TraceEvent] | None
    ) -> None:
        self.model = model
        self.state = model.state
        self.path = model.path
        self.places = model.places
        self.pipes = pipes
        self.events = events
        self.result = PassResult()
        self.queue: deque[Departure] = deque()
        self.waited: QueueTimes | None = None
        self.place = NOWHERE
        self.parsing = False
        self.replicas: list[Replica] = []

    def run(self, arrival: Arrival) -> PassResult:
        if arrival.passes >= PASS_LIMIT:
            self.fault(TOO_OFTEN)
            return self.result
        try:
            self.ingress(arrival)
        except Abort as abort:
            self.fault(str(abort), abort.detail)
        return self._empty_queue()

    def leave_queue(self, departure: Departure, times: QueueTimes) -> PassResult:
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

    def depart(self, port: int, priority: int, departure: Departure) -> None:
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
                from gradplane.switch.interp.trace_events import Queued

                event = Queued(item.port, item.priority, item.enqueue_depth, span=self.place)
                self.events.append(event)

    def deflect(self, port: int, now: int, departure: Departure) -> Waiting | None:
        """Put a packet that found its queue full into another, if it asks for that."""
        queues = self.state.links.queues
        if port not in queues.deflections or DEFLECT not in self.places:
            return None
        if departure[self.places[DEFLECT]] != 1:
            return None
        to, queue = queues.deflections[port]
        self.note("copy", f"deflected to queue {queue} of port {to}")
        moved = list(departure)
        for name, value in (("port", to), ("queue", queue), (DEFLECT, DEFLECTED)):
            moved[self.places[name]] = value
        return queues.put(to, queue, now, self.model, moved, self.events, deflected=True)

    # -- the path --------------------------------------------------------------------------------

    def behind_parser(self) -> None:
        if self.parsing:
            raise Parsed

    def pipe(self, port: int) -> InterpretedPath:
        """Return the pipeline of a port's pipe, which runs from now on."""
        current, path = self.state.current_pipe, self.path
        current.number, current.parser = path.pipe_of(port), path.parser_of(port)
        return self.pipes[current.number]

    def ingress(self, arrival: Arrival) -> None:
        data, compiled = arrival.packet, self.pipe(arrival.port)
        kept = arrival.meta or compiled.nothing_kept
        place = arrival.port, arrival.kind, arrival.passes
        compiled.run("ingress", self, ([data, len(data)], *place, *kept))

    def egress(self, departure: Departure) -> None:
        self.pipe(departure[self.places["port"]]).run("egress", self, departure)

    # -- replicas -------------------------------------------------------------------------------

    def take_replicas(self, replicas: list[Replica]) -> tuple[int, int]:
        """Number replicas that the path has asked for; return the first's number, and how many
        there are."""
        first = len(self.replicas)
        self.replicas += replicas
        return first, len(replicas)

    def members(self, group: int) -> list[Replica]:
        """Return a multicast group's replicas; if there are none, drop the packet."""
        replicas = self.state.links.live(self.state.multicast.get(group, []))
        groups = self.model.architecture.groups
        if replicas:
            ports = ", ".join(str(r.port) for r in replicas)
            self.note("copy", f"multicast group {group} to ports {ports}")
        elif group < groups:
            self.drop(f"multicast group {group} has no members")
        else:
            self.drop(no_such_group(groups))
        return replicas

    def session(self, number: int, passes: int) -> CloneSession | None:
        """Return a clone session; None if there is none, or if there are too many clones."""
        session = self.state.clone_sessions.get(number)
        if session is None:
            self.note("copy", f"not cloned: there is no clone session {number}")
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
        self.note("copy", f"cloned to session {number}, ports {ports}")
        return replace(session, replicas=live)

    def send(self, port: int, data: bytes) -> None:
        self.result.outputs.append((port, data))
        if self.events is not None:
            from gradplane.switch.interp.trace_events import Sent

            self.events.append(Sent(port, data, span=self.place))

    # -- events --------------------------------------------------------------------------------

    def enter(self, block: str) -> None:
        self.note("enter", block)

    def note(self, kind: str, text: str) -> None:
        """Add an event of a kind that has one text."""
        if self.events is not None:
            from gradplane.switch.interp.trace_events import OF_ONE_TEXT

            self.events.append(OF_ONE_TEXT[kind](text, span=self.place))

    def drop(self, reason: str) -> None:
        self.state.drops[reason] += 1
        self.note("drop", reason)

    def fault(self, reason: str, detail: str = "") -> None:
        """Drop a packet because of a fault of its program; count and report the reason.

        The trace and the control plane get the longer text `detail` if there is one."""
        self.state.drops[reason] += 1
        self.note("drop", detail or reason)
        self.state.report(Fault(f"packet dropped: {detail or reason}"))


def error_codes(program: ir.Program) -> dict[str, int]:
    return {name: code for code, name in enumerate(program.errors)}
