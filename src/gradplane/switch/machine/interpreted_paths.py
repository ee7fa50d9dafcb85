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
from gradplane.switch.interp.packet import Abort
from gradplane.switch.interp.statements import Observer, Statements
from gradplane.switch.interp.trace_events import Copied, TraceEvent
from gradplane.switch.interp.traced_statements import TracedStatements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Struct
from gradplane.switch.machine.model import Model, Pass, SwitchPacket
from gradplane.switch.machine.path_texts import NOTES
from gradplane.switch.machine.weaving import (
    DEFLECT,
    QUEUE_CHANGED,
    Entry,
    Packet,
    Path,
    WovenPipeline,
    numbered_blocks,
)
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.packet_passes import Arrival
from gradplane.switch.runtime.port_queues import DEFLECTED, Waiting
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.runtime.state import PipeState
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


class Parsed(Exception):
    """Raised by a pass that is to end behind the parser."""


class InterpretedPath:
    """The closures of a path through a pipeline. `compiler` compiles the program's blocks, in its
    frame."""

    def __init__(self, path: Path, pipeline: WovenPipeline, compiler: Statements) -> None:
        frame = compiler.frame
        self.path = path
        self.pipeline = pipeline
        self.traced = isinstance(compiler, TracedStatements)
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
        errors = compiler.expressions.errors
        plain = Statements(frame, compiler.state, errors, _Primitives(self))
        self._entries: dict[str, Callable[[Sequence[Any]], None]] = {}
        for name, entry in pipeline.entries.items():
            self._entries[name] = self._entry(entry, plain)
        self.env: Env = frame.new()

    def slot(self, e: ir.Expr) -> int:
        """Return the slot of a value of a packet."""
        assert isinstance(e, ir.Var), e
        return self._frame.slot(e)

    def part_slots(self, packet: Slots, block: str) -> list[int]:
        """Return the slots of a packet's values that a block takes, in order."""
        return [packet.names[name] for name in self.pipeline.blocks[block][2]]

    @staticmethod
    def _slots(var: ir.Var, memory: Packet, compiler: Statements) -> Slots:
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

    def entry(self, name: str) -> Callable[[Sequence[Any]], None]:
        """Return the function that runs an entry point of the pass that is running."""
        return lambda args: self._entries[name](args)


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


class PathModel(Model[list[InterpretedPath]]):
    """A loaded program whose packet path is text. It is compiled for each pipe, once for those that
    run the same pipeline with the same tables and externs."""

    @cached_property
    def path(self) -> Path:
        return self.architecture.path(self.program)

    @cached_property
    def places(self) -> dict[str, int]:
        """The positions of the parameters of egress."""
        return {name: i for i, name in enumerate(self.path.departure)}

    def compiled(self, kind: Callable[..., Statements]) -> list[InterpretedPath]:
        path, state = self.path, self.state
        if any(QUEUE_CHANGED in pipeline.entries for pipeline in path.pipelines):
            state.queue_changed = self._queue_changed
        if not state.scopes.differ:
            made = [InterpretedPath(path, p, self.block_compiler(kind)) for p in path.pipelines]
            return [made[number] for number in path.pipes]
        return [
            InterpretedPath(
                path, path.pipelines[number], self.block_compiler(kind, PipeState(state, pipe))
            )
            for pipe, number in enumerate(path.pipes)
        ]

    def new_pass(
        self, pipeline: list[InterpretedPath], events: list[TraceEvent] | None
    ) -> PathPass:
        return PathPass(self, pipeline, events)

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
        work = PathPass(self, self._plain, None)
        work.parsing = True
        with suppress(Parsed):
            work.ingress(arrival)
        compiled = self._plain[self.path.pipe_of(arrival.port)]
        name = compiled.pipeline.parser
        packet = compiled.slots[next(iter(compiled.pipeline.ingress.packets))]
        return [compiled.env[slot] for slot in compiled.part_slots(packet, name)]

    def _queue_changed(self, port: int, priority: int, length: int) -> None:
        """Run the path's entry point for a queue's new length, in each pipe: so each pipe's
        registers follow all queues."""
        current = self.state.current_pipe
        running, work = current.number, PathPass(self, self._plain, None)
        try:
            for pipe, compiled in enumerate(self._plain):
                current.number = pipe
                if QUEUE_CHANGED in compiled.pipeline.entries:
                    interrupted = compiled.env[compiled.work]
                    compiled.run(QUEUE_CHANGED, work, (port, priority, length))
                    compiled.env[compiled.work] = interrupted
        except Abort as abort:
            self.state.drops[str(abort)] += 1
        finally:
            current.number = running


class PathPass(Pass[Departure]):
    """One arrival's pass along a path. parsing: it ends behind the parser. replicas: those that the
    path has asked for, by their numbers."""

    def __init__(
        self, model: PathModel, pipes: list[InterpretedPath], events: list[TraceEvent] | None
    ) -> None:
        super().__init__(model, events)
        self.path = model.path
        self.places = model.places
        self.pipes = pipes
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

    def pipe(self, port: int) -> InterpretedPath:
        """Return the pipeline of a port's pipe, which runs from now on."""
        number = self.state.current_pipe.number = self.path.pipe_of(port)
        return self.pipes[number]

    def ingress(self, arrival: Arrival) -> None:
        known: dict[str, Any] = {
            "bytes": [arrival.packet, len(arrival.packet)],
            "port": arrival.port,
            "kind": arrival.kind,
            "passes": arrival.passes,
        }
        kept = iter(arrival.meta or ())
        args = []
        compiled = self.pipe(arrival.port)
        for param in compiled.pipeline.ingress.params:
            if param.name in ARRIVAL:
                args.append(known[param.name])
            else:
                args.append(next(kept, None))
        compiled.run("ingress", self, args)

    def egress(self, departure: Departure) -> None:
        self.pipe(departure[self.places["port"]]).run("egress", self, departure)

    def deflect(self, port: int, now: int, departure: Departure) -> Waiting | None:
        """Put a packet that found its queue full into another, if it asks for that."""
        queues = self.state.links.queues
        if port not in queues.deflections or DEFLECT not in self.places:
            return None
        if departure[self.places[DEFLECT]] != 1:
            return None
        to, queue = queues.deflections[port]
        self.note(Copied, f"deflected to queue {queue} of port {to}")
        moved = list(departure)
        for name, value in (("port", to), ("queue", queue), (DEFLECT, DEFLECTED)):
            moved[self.places[name]] = value
        return queues.put(to, queue, now, self.model, moved, self.events, deflected=True)
