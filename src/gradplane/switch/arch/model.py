"""What the architectures share: a loaded program, and one packet's pass through it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

from gradplane.switch.arch.extern_call import source_lines
from gradplane.switch.arch.externs import ExternCompiler
from gradplane.switch.arch.user_externs import Implementations, OwnExterns
from gradplane.switch.interp.packet import Packet
from gradplane.switch.interp.statements import Abort, Statements
from gradplane.switch.interp.trace_events import Copied, Dropped, Entered, Event, Sent
from gradplane.switch.interp.traced_statements import TracedStatements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.control_messages import Digest, Fault
from gradplane.switch.runtime.replicas import CloneSession, Replica
from gradplane.switch.runtime.state import State
from gradplane.switch.source import CompileError, Diagnostic

PASS_LIMIT = 1000  # times that a packet and its copies may be processed one after the other
CLONE_LIMIT = 10 * PASS_LIMIT  # clones of one arrival, and their clones
GROUPS = 1 << 16  # multicast groups that can exist
TOO_OFTEN = f"a packet came round {PASS_LIMIT} times"
CLONED_TOO_OFTEN = f"a packet was cloned {PASS_LIMIT} times in a row"
TOO_MANY_CLONES = f"a packet was cloned more than {CLONE_LIMIT} times"
NO_SUCH_GROUP = f"multicast group of {GROUPS} or more"

Output = tuple[int, bytes]
P = TypeVar("P")  # an architecture's compiled blocks
D = TypeVar("D")  # an architecture's packet on its way to egress


@dataclass(slots=True)
class Arrival:
    """A packet about to be parsed.

    `kind`: 0 from a port; how else a packet comes in, each architecture numbers. `meta`: what it
    brings from the pass before, None where there is nothing. `passes`: how often the packet it
    comes from was processed before.
    """

    port: int
    packet: bytes
    kind: int = 0
    meta: Any = None
    passes: int = 0


@dataclass(slots=True)
class Result:
    """What one pass gave: packets that leave, and packets that come in again."""

    outputs: list[Output] = field(default_factory=list)
    again: list[Arrival] = field(default_factory=list)


class SwitchPacket(Packet):
    """A packet with its `digests`, told when ingress is over."""

    __slots__ = ("digests",)

    def __init__(self, data: bytes, events: list[Any] | None = None) -> None:
        super().__init__(data, events)
        self.digests: list[Digest] = []


class Model(ABC, Generic[P]):
    """A loaded program. `run` takes one arrival through; raises CompileError when made if the
    program uses what is not implemented. `externs`: the program's own, in Python."""

    cpu_port: ClassVar[int | None] = None
    """The port to the control plane, where the architecture says which that is."""
    sessions: ClassVar[int] = 1 << 15
    """Clone sessions that can exist; simple_switch has so many."""
    ports: ClassVar[int] = 1 << 9
    """Ports that can exist: their numbers are below it."""
    externs: ClassVar[ExternCompiler]

    def __init__(
        self, program: ir.Program, state: State, externs: Implementations | None = None
    ) -> None:
        self.check(program)
        self.program = program
        self.state = state
        self.compiler = self.externs
        self.own: OwnExterns | None = None
        if program.own_calls or any(e.own is not None for e in program.externs):
            self.own = OwnExterns(program, state, externs)
            self.compiler = replace(self.externs, own=self.own)
            self.own.give_methods(
                lambda frame: Statements(frame, state, error_codes(program), self.compiler)
            )
        self._plain = self.compiled(Statements)
        self._traced: P | None = None

    @classmethod
    def check(cls, program: ir.Program) -> None:
        """Completes the program in place; raises CompileError for what it may not use."""
        problems = cls.load(program)
        if problems:
            raise CompileError(problems, source_lines([p.span for p in problems]))

    @staticmethod
    @abstractmethod
    def load(program: ir.Program) -> list[Diagnostic]:
        """Completes the program in place (done twice it changes nothing more) -> what the program
        uses that the architecture, or this implementation of it, does not have."""

    @abstractmethod
    def compiled(self, kind: Callable[..., Statements]) -> P:
        """The program's blocks."""

    @abstractmethod
    def new_pass(self, pipeline: P, events: list[Event] | None) -> Pass[Any]:
        """What takes one arrival through the blocks."""

    @property
    @abstractmethod
    def parser(self) -> ir.Parser:
        """What parses a packet that arrives."""

    @abstractmethod
    def parsed(self, arrival: Arrival) -> list[Any]:
        """The parser's parameters after it ran on a packet, which has no other effect."""

    def run(self, arrival: Arrival, events: list[Event] | None = None) -> Result:
        """Processes a packet to its end, its clones and replicas included.

        `events`, if given, gets what happens. Never raises, whatever the packet.
        """
        if events is None:
            return self.new_pass(self._plain, None).run(arrival)
        if self._traced is None:
            self._traced = self.compiled(TracedStatements)
        return self.new_pass(self._traced, events).run(arrival)


class Pass(ABC, Generic[D]):
    """One arrival's way: through ingress, then all that was queued through egress."""

    def __init__(self, state: State, events: list[Event] | None) -> None:
        self.state = state
        self.events = events
        self.result = Result()
        self.queue: deque[D] = deque()
        self.clones = 0

    @abstractmethod
    def ingress(self, arrival: Arrival) -> None: ...

    @abstractmethod
    def egress(self, departure: D) -> None: ...

    def run(self, arrival: Arrival) -> Result:
        if arrival.passes >= PASS_LIMIT:
            self.fault(TOO_OFTEN)
            return self.result
        try:
            self.ingress(arrival)
        except Abort as abort:
            self.fault(str(abort), abort.told)
        while self.queue:
            try:
                self.egress(self.queue.popleft())
            except Abort as abort:
                self.fault(str(abort), abort.told)
        return self.result

    # -- copies ---------------------------------------------------------------------------------

    def members(self, group: int) -> list[Replica]:
        """A multicast group's ports; where there are none, the packet is dropped."""
        replicas = self.state.links.live(self.state.multicast.get(group, []))
        if replicas:
            ports = ", ".join(str(r.port) for r in replicas)
            self.note(Copied, f"multicast group {group} to ports {ports}")
        elif group < GROUPS:
            self.drop(f"multicast group {group} has no members")
        else:
            self.drop(NO_SUCH_GROUP)
        return replicas

    def session(self, number: int, passes: int) -> CloneSession | None:
        """A clone session; None if there is none, or too many clones come of each other."""
        session = self.state.clone_sessions.get(number)
        if session is None:
            self.note(Copied, f"not cloned: there is no clone session {number}")
            return None
        if passes + 1 >= PASS_LIMIT:
            self.fault(CLONED_TOO_OFTEN)
            return None
        self.clones += len(session.replicas)
        if self.clones > CLONE_LIMIT:
            self.fault(TOO_MANY_CLONES)
            return None
        live = self.state.links.live(session.replicas)
        ports = ", ".join(str(r.port) for r in live)
        self.note(Copied, f"cloned to session {number}, ports {ports}")
        return replace(session, replicas=live)

    def send(self, port: int, data: bytes) -> None:
        self.result.outputs.append((port, data))
        if self.events is not None:
            self.events.append(Sent(port, data))

    # -- what is told ---------------------------------------------------------------------------

    def enter(self, block: str) -> None:
        self.note(Entered, block)

    def note(self, kind: Callable[[str], Event], text: str) -> None:
        if self.events is not None:
            self.events.append(kind(text))

    def drop(self, reason: str) -> None:
        self.state.drops[reason] += 1
        self.note(Dropped, reason)

    def fault(self, reason: str, told: str = "") -> None:
        """Drops a packet for what its program should not have done, and tells of it: of the
        reason, or of more than that."""
        self.state.drops[reason] += 1
        self.note(Dropped, told or reason)
        self.state.tell(Fault(f"packet dropped: {told or reason}"))


def error_codes(program: ir.Program) -> dict[str, int]:
    return {name: code for code, name in enumerate(program.errors)}


def parser_of(package: ir.Package, name: str) -> ir.Parser:
    """A package's argument that is a parser."""
    arg = package.args[name]
    assert isinstance(arg, ir.Parser), arg
    return arg


def control_of(package: ir.Package, name: str) -> ir.Control:
    """A package's argument that is a control."""
    arg = package.args[name]
    assert isinstance(arg, ir.Control), arg
    return arg
