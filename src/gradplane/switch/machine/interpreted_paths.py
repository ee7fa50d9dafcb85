"""A woven path in the interpreter: the entry points and blocks of a program as closures over one
frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradplane.switch.interp.blocks import Block, control_block, parser_block
from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Frame, Run, copier, maker
from gradplane.switch.interp.packet import Packet
from gradplane.switch.interp.statements import OnlyCalls, Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Struct
from gradplane.switch.machine import weaving
from gradplane.switch.machine.path_texts import NOTES
from gradplane.switch.machine.weaving import Entry, Path, WovenPipeline, numbered_blocks
from gradplane.switch.runtime.control_messages import Digest
from gradplane.switch.source import Span

ARRIVAL = ("bytes", "port", "kind", "passes")
"""The first parameters of ingress; the others are metadata of the pass before."""

WORK = ir.Var(Struct("work", ()), "work", -2)
"""The variable of the interpreter's frame that holds the pass."""


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


class Slots(NamedTuple):
    """A packet in the frame: the slots of the packet, of its values, and of its notes; what makes
    and copies the values."""

    packet: int
    names: dict[str, int]
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

    def numbered_blocks(self) -> list[str]:
        """Return the blocks that `run_one` chooses among."""
        return numbered_blocks(self.stmt, self.compiled.pipeline)

    def struct(self) -> Callable[[Env, list[Any]], None]:
        """Return the function that assigns the result, a struct."""
        target = self.stmt.result
        return (lambda env, value: None) if target is None else self.statements.store(target)


class InterpretedPath:
    """The closures of a path through a pipeline. `compiler` compiles the program's blocks, in its
    frame."""

    def __init__(self, path: Path, pipeline: WovenPipeline, compiler: Statements) -> None:
        frame = compiler.frame
        self.path = path
        self.pipeline = pipeline
        self.traced = compiler.traced
        self._frame = frame
        self.work = frame.slot(WORK)
        self.notes = None if path.notes is None else frame.slot(path.notes)
        self.slots = {
            var: self._slots(var, memory, compiler)
            for entry in pipeline.entries.values()
            for var, memory in entry.packets.items()
        }
        self.blocks: dict[str, Block] = {}
        for name, (block, _, _) in pipeline.blocks.items():
            if isinstance(block, ir.Parser):
                self.blocks[name] = parser_block(block, compiler)
            else:
                self.blocks[name] = control_block(block, compiler)
        plain = compiler.beside(_Primitives(self))
        self._entries: dict[str, Callable[[Sequence[Any]], None]] = {}
        for name, entry in pipeline.entries.items():
            self._entries[name] = self._entry(entry, plain)
        arrival = [param.name for param in pipeline.ingress.params]
        assert tuple(arrival[: len(ARRIVAL)]) == ARRIVAL, arrival
        self.nothing_kept = [None] * (len(arrival) - len(ARRIVAL))
        self.env: Env = frame.new()

    def slot(self, e: ir.Expr) -> int:
        """Return the slot of a value of a packet."""
        assert isinstance(e, ir.Var), e
        return self._frame.slot(e)

    def part_slots(self, packet: Slots, block: str) -> list[int]:
        """Return the slots of a packet's values that a block takes, in order."""
        return [packet.names[name] for name in self.pipeline.blocks[block][2]]

    @staticmethod
    def _slots(var: ir.Var, memory: weaving.Packet, compiler: Statements) -> Slots:
        parts = memory.parts.values()
        places = [compiler.frame.slot(part) for part in parts]
        notes = compiler.frame.slot(memory.parts[NOTES]) if NOTES in memory.parts else None
        return Slots(
            compiler.frame.slot(var),
            dict(zip(memory.parts, places, strict=True)),
            places,
            [maker(part.type) for part in parts],
            [copier(part.type) for part in parts],
            notes,
        )

    def _entry(self, entry: Entry, plain: Statements) -> Callable[[Sequence[Any]], None]:
        bind = self._binding(entry.params, plain.frame)
        zero, body = plain.frame.zeroing(entry.locals), plain.body(entry.body).run

        def run(args: Sequence[Any]) -> None:
            env = self.env
            bind(env, args)
            zero(env)
            body(env)

        return run

    def _binding(
        self, params: Sequence[ir.Var], frame: Frame
    ) -> Callable[[Env, Sequence[Any]], None]:
        """Return the function that gives parameters their values."""
        packets = [(i, self.slots[param]) for i, param in enumerate(params) if param in self.slots]
        start, end = frame.run_of([param for param in params if param not in self.slots])

        def bind(env: Env, args: Sequence[Any]) -> None:
            env[start:end] = args

        def bind_packets(env: Env, args: Sequence[Any]) -> None:
            rest = list(args)
            for at, packet in reversed(packets):
                env[packet.packet], values = rest.pop(at)
                for place, one in zip(packet.parts, values, strict=True):
                    env[place] = one
            env[start:end] = rest

        return bind_packets if packets else bind

    def run(self, name: str, work: object, args: Sequence[Any]) -> None:
        self.env[self.work] = work
        self._entries[name](args)

    def entry(self, name: str) -> Callable[[Sequence[Any]], None]:
        """Return the function that runs an entry point of the pass that is running."""
        return lambda args: self._entries[name](args)


class _Primitives(OnlyCalls):
    """Compiles the calls of a path (interp.statements.Externs)."""

    def __init__(self, compiled: InterpretedPath) -> None:
        self._compiled = compiled

    def call(self, call: ir.CallExtern, statements: Statements) -> Run:
        made = PathCall(call, statements, self._compiled)
        run = self._compiled.path.rows[call.name].interpret(made)
        return _placed(run, made.work, call.span) if self._compiled.traced else run


def _placed(run: Run, work: int, place: Span) -> Run:
    """Let a trace name the line of the call that it follows."""

    def run_there(env: Env) -> Any:
        env[work].place = place
        return run(env)

    return run_there
