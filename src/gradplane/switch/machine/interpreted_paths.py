"""A woven path in the interpreter: the entry points and blocks of a program as closures over one
frame, and a packet's pass through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gradplane.switch.interp.blocks import Block, control_block, parser_block
from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Load, Run, copier, maker
from gradplane.switch.interp.statements import Observer, Statements
from gradplane.switch.interp.trace_events import TraceEvent
from gradplane.switch.interp.traced_statements import TracedStatements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Struct
from gradplane.switch.machine.model import Model, Pass, SwitchPacket
from gradplane.switch.machine.path_texts import NOTES
from gradplane.switch.machine.weaving import Entry, Packet, Path
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.packet_passes import Arrival
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.source import Span

Departure = list[Any]
"""The arguments of egress: of a packet, the packet and its values."""

ARRIVAL = ("bytes", "port", "kind", "passes")
"""The parameters of ingress that are not metadata of the pass before."""


WORK = ir.Var(Struct("work", ()), "work", -2)
"""The variable of the interpreter's frame that holds the pass."""


@dataclass(frozen=True, slots=True)
class Slots:
    """A packet in the frame: the slots of the packet, of its values, and of its notes; what makes
    and copies the values."""

    packet: int
    parts: list[int]
    makers: list[Callable[[], Any]]
    copiers: list[Callable[[Any], Any]]
    notes: int | None

    def copy(self, env: Env) -> tuple[SwitchPacket, list[Any]]:
        """Return a copy of the packet and of its values."""
        values = [copy(env[part]) for copy, part in zip(self.copiers, self.parts, strict=True)]
        return env[self.packet].copy(), values

    def take(self, env: Env) -> tuple[SwitchPacket, list[Any]]:
        """Return the packet and its values themselves."""
        return env[self.packet], [env[part] for part in self.parts]


class PathCall(Call):
    """A call of a primitive in a path, as the interpreter's closures see it."""

    def __init__(self, stmt: ir.CallExtern, statements: Any, compiled: InterpretedPath) -> None:
        super().__init__(stmt, statements)
        self.compiled = compiled
        self.work = compiled.work

    def packet(self, position: int) -> Slots:
        """Return the packet that is an argument."""
        arg = self.stmt.args[position]
        assert isinstance(arg, ir.Var), arg
        return self.compiled.slots[arg]

    def owner(self, position: int) -> Slots:
        """Return the packet that a value belongs to."""
        part = self.compiled.slot(self.stmt.args[position])
        return next(s for s in self.compiled.slots.values() if part in s.parts)

    def struct(self) -> Callable[[Env, list[Any]], None]:
        """Return the function that assigns the result, a struct."""
        target = self.stmt.result
        return (lambda env, value: None) if target is None else self.statements.store(target)


class Parsed(Exception):
    """Raised by a pass that is to end behind the parser."""


class InterpretedPath:
    """The closures of a path. `compiler` compiles the program's blocks, in its frame."""

    def __init__(self, path: Path, compiler: Statements) -> None:
        frame = compiler.frame
        self.path = path
        self.traced = isinstance(compiler, TracedStatements)
        self._frame = frame
        self.work = frame.slot(WORK)
        self.notes = None if path.notes is None else frame.slot(path.notes)
        self.slots = {
            var: self._slots(var, memory, compiler)
            for entry in path.entries
            for var, memory in entry.packets.items()
        }
        self.blocks: dict[str, Block] = {}
        for name, (block, _, _) in path.blocks.items():
            if isinstance(block, ir.Parser):
                self.blocks[name] = parser_block(block, compiler)
            else:
                self.blocks[name] = control_block(block, compiler)
        errors = compiler.expressions.errors
        plain = Statements(frame, compiler.state, errors, _Primitives(self))
        self._entries = {entry.name: self._entry(entry, plain) for entry in path.entries}
        self.env: Env = frame.new()

    def slot(self, e: ir.Expr) -> int:
        """Return the slot of a value of a packet."""
        assert isinstance(e, ir.Var), e
        return self._frame.slot(e)

    @staticmethod
    def _slots(var: ir.Var, memory: Packet, compiler: Statements) -> Slots:
        parts = memory.parts.values()
        places = [compiler.frame.slot(part) for part in parts]
        notes = compiler.frame.slot(memory.parts[NOTES]) if NOTES in memory.parts else None
        return Slots(
            compiler.frame.slot(var),
            places,
            [maker(part.type) for part in parts],
            [copier(part.type) for part in parts],
            notes,
        )

    def _entry(self, entry: Entry, plain: Statements) -> Callable[[Sequence[Any]], None]:
        binds = [self._bind(param, plain) for param in entry.params]
        zero, body = plain.frame.zeroing(entry.locals), plain.body(entry.body).run

        def run(args: Sequence[Any]) -> None:
            env = self.env
            for bind, arg in zip(binds, args, strict=True):
                bind(env, arg)
            zero(env)
            body(env)

        return run

    def _bind(self, param: ir.Var, plain: Statements) -> Callable[[Env, Any], None]:
        if param not in self.slots:
            slot = plain.frame.slot(param)
            return lambda env, value: env.__setitem__(slot, value)
        packet = self.slots[param]

        def bind(env: Env, value: tuple[SwitchPacket, list[Any]]) -> None:
            env[packet.packet], values = value
            for place, one in zip(packet.parts, values, strict=True):
                env[place] = one

        return bind

    def run(self, name: str, work: PathPass, args: Sequence[Any]) -> None:
        self.env[self.work] = work
        self._entries[name](args)


class _Primitives:
    """Compiles the calls of a path (interp.statements.Externs)."""

    def __init__(self, compiled: InterpretedPath) -> None:
        self._compiled = compiled

    def call(self, call: ir.CallExtern, statements: Statements) -> Run:
        made = PathCall(call, statements, self._compiled)
        run = self._compiled.path.rows[call.name].interpret(made)
        return _placed(run, made.work, call.span) if self._compiled.traced else run

    def call_user_extern(self, call: ir.CallUserExtern, statements: Statements) -> Run:
        raise AssertionError(call.name)

    def observer(self, table: MatchTable, statements: Statements) -> Observer | None:
        raise AssertionError(table)

    def selection(self, table: ir.Table, statements: Statements) -> Load:
        raise AssertionError(table)


def _placed(run: Run, work: int, place: Span) -> Run:
    """Let a trace name the line of the call that it follows."""

    def run_there(env: Env) -> Any:
        env[work].place = place
        return run(env)

    return run_there


class PathModel(Model[InterpretedPath]):
    """A loaded program whose packet path is text."""

    @cached_property
    def path(self) -> Path:
        return self.architecture.path(self.program)

    def compiled(self, kind: Callable[..., Statements]) -> InterpretedPath:
        return InterpretedPath(self.path, self.block_compiler(kind))

    def new_pass(self, pipeline: InterpretedPath, events: list[TraceEvent] | None) -> PathPass:
        return PathPass(self, pipeline, events)

    @property
    def parser(self) -> ir.Parser:
        block = self.path.blocks[self.path.parser][0]
        assert isinstance(block, ir.Parser), block
        return block

    def parsed(self, arrival: Arrival) -> list[Any]:
        work = PathPass(self, self._plain, None)
        work.parsing = True
        with suppress(Parsed):
            work.ingress(arrival)
        block = self._plain.blocks[self.path.parser]
        return [self._plain.env[slot] for slot in block.slots]


class PathPass(Pass[Departure]):
    """One arrival's pass along a path. parsing: it ends behind the parser. replicas: those that the
    path has asked for, by their numbers."""

    def __init__(
        self, model: PathModel, compiled: InterpretedPath, events: list[TraceEvent] | None
    ) -> None:
        super().__init__(model, events)
        self.compiled = compiled
        self.parsing = False
        self.replicas: list[Replica] = []

    def behind_parser(self) -> None:
        if self.parsing:
            raise Parsed

    def take_replicas(self, replicas: list[Replica]) -> tuple[int, int]:
        """Number replicas that the path has asked for; return the first's number, and how many
        there are."""
        first = len(self.replicas)
        self.replicas += replicas
        return first, len(replicas)

    def ingress(self, arrival: Arrival) -> None:
        known: dict[str, Any] = {
            "bytes": [arrival.packet, len(arrival.packet)],
            "port": arrival.port,
            "kind": arrival.kind,
            "passes": arrival.passes,
        }
        kept = iter(arrival.meta or ())
        args = []
        for param in self.compiled.path.ingress.params:
            if param.name in ARRIVAL:
                args.append(known[param.name])
            else:
                args.append(next(kept, None))
        self.compiled.run("ingress", self, args)

    def egress(self, departure: Departure) -> None:
        self.compiled.run("egress", self, departure)
