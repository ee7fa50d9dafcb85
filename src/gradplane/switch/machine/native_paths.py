"""A woven path as machine code: void arrive(...), which begins a pass, and a function for each
entry point of each pipeline: ingress, egress, and those that the path's text calls.

Those but ingress have a parameter for each of the path's (the address of a packet, or of a value
that is no number; the bytes' address and size; i64 for a number). Egress has `times`, too: the
address of the times that the packet spent in a queue, null if it did not wait. A record in the
queue holds the same: `times`, numbers and bytes, then values, then the packet's memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, Fields, Type, bit_width
from gradplane.switch.ir.walk import nested
from gradplane.switch.jit import native_memory
from gradplane.switch.jit.blocks import control_function, deparser_function
from gradplane.switch.jit.entry_points import ARRIVE, NODE_META, WAITING, WAITING_HEAD
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import Externs, NativeCall
from gradplane.switch.jit.guarded_headers import guarded_headers
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.parsers import parser_function
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.traffic_manager import Traffic
from gradplane.switch.jit.value_layout import Context, make_context, scalar_width
from gradplane.switch.machine import kept_bytes
from gradplane.switch.machine.interpreted_paths import ARRIVAL
from gradplane.switch.machine.native_pipes import NativePipes
from gradplane.switch.machine.path_texts import NOTES
from gradplane.switch.machine.weaving import (
    DEFLECT,
    Entry,
    Packet,
    Path,
    WovenPipeline,
    numbered_blocks,
)
from gradplane.switch.runtime.shared_memory import LINE

HEADERS = "hdr"  # the name of a packet's headers, which only the program's blocks read and write
KEEP = "keep"  # where a deparser's bytes go to that stay until the pass is over
LENGTH = "length"  # the number that `measure` sets

_DIRECT = (
    "direct_counter", "direct_meter", "direct_register", "direct_lpf", "direct_wred",
)  # fmt: skip


@dataclass(slots=True)
class PacketMemory:
    """The layout of the packets of one kind. slots: the architecture's own."""

    context: Context
    slots: Sequence[str] = ()

    def forget_lookups(self, f: Function, c: Operand) -> None:
        """Forget what lookups of direct counters and meters found."""
        for offset in self.context.direct.values():
            f.store("i64", 0, f.add(c, offset), 8)


class NativePipeline:
    """The functions of a pipeline, whose names follow the pipeline's. memories: by the packets'
    kind. emitted: the most bytes that each deparser can emit. called: how often each entry point is
    called by others."""

    def __init__(self, traffic: PathTraffic, woven: WovenPipeline) -> None:
        self.traffic = traffic
        self.woven = woven
        self.emitted: dict[str, int] = {}
        self.called = Counter(constants(call)[0] for call in _calls(woven) if call.name == "call")
        packets = {memory.kind: memory for e in woven.native for memory in e.packets.values()}
        self.memories = {kind: self._memory(memory) for kind, memory in packets.items()}

    def _memory(self, packet: Packet) -> PacketMemory:
        layouts, path, own = self.traffic.unit.layouts, self.traffic.path, self.woven.slots
        slots = own.get(packet.kind, ())
        direct = [i.name for i in self.traffic.program.externs if i.kind in _DIRECT]
        types = {name: part.type for name, part in packet.parts.items()}
        measured = [LENGTH] if "measure" in self.traffic.primitives else []
        context = make_context(layouts, types, [*measured, *slots], direct)
        if path.notes is not None and NOTES in packet.parts:
            context.shared[path.notes] = NOTES
        if HEADERS in types:
            blocks = [
                (block, block.params[names.index(HEADERS)].var)
                for block, of, names in self.woven.blocks.values()
                if of == packet.kind and HEADERS in names
            ]
            start = context.values[HEADERS]
            spans = guarded_headers(layouts, types[HEADERS], blocks)
            context.unread = [(start + first, start + end) for first, end in spans]
        return PacketMemory(context, slots)

    def packet_memory(self, entry: Entry, var: ir.Var) -> Operand:
        """Return the address of a packet's memory, which may be read in whole vectors."""
        size = self.memories[entry.packets[var].kind].context.size + LINE
        return self.traffic.module.memory(f"{self.woven.name}{entry.name}: {var.name}", size)

    # -- the program's blocks -------------------------------------------------------------------

    def write(self) -> None:
        """Write the functions of the blocks and of the entry points."""
        unit, calls = self.traffic.unit, self.traffic.externs
        used = {name for name, (_, kind, _) in self.woven.blocks.items() if kind in self.memories}
        for name, (block, kind, values) in self.woven.blocks.items():
            if name not in used:
                continue
            context, function = self.memories[kind].context, self.block(name)
            if isinstance(block, ir.Parser):
                parser_function(unit, function, block, context, calls, values)
            elif name in self.woven.deparsers:
                args = (unit, function, block, context, calls, values)
                self.emitted[name] = deparser_function(*args)
                self.traffic.write_deparse(self.deparser(name), function, context)
            else:
                control_function(unit, function, block, context, calls, values)
        for entry in self.woven.native:
            if entry is self.woven.ingress:
                self._ingress(entry)
            else:
                self._entry(entry)

    def block(self, name: str) -> str:
        return f"{self.woven.name}block.{name}"

    def deparser(self, name: str) -> str:
        """Return the function that writes headers and payload."""
        return f"{self.woven.name}deparse.{name}"

    # -- the entry points -----------------------------------------------------------------------

    def _function(self, entry: Entry, params: list[tuple[str, str]]) -> Function:
        """Begin an entry point's function. One that is called once is apart so that its caller
        stays small."""
        alone = entry is self.woven.ingress and self.traffic.pipes is not None
        apart = self.called[entry.name] == 1
        attributes = "noinline " if alone or apart or entry is self.woven.egress else ""
        name = self.woven.name + entry.name
        return self.traffic.module.function(name, "void", params, attributes=attributes)

    def _ingress(self, entry: Entry) -> None:
        f = self._function(entry, ARRIVE)
        code = PathCode(self, f, entry)
        given = {"port": "%port", "kind": "%kind", "passes": "%passes"}
        kept = self.traffic.kept_metadata
        for param in entry.params:
            if param.name == "bytes":
                code.take_bytes(param, "%data", "%size")
            elif param.name in given:
                code.take_number(param, given[param.name])
            else:
                code.places[param] = f.add("%meta", kept[param.name] - NODE_META)
        code.body(entry.body)
        f.at(code.exit)
        f.ret()

    def _entry(self, entry: Entry) -> None:
        params: list[tuple[str, str]] = []
        for i, param in enumerate(entry.params):
            if is_bytes(param.type):
                params += [("ptr", f"%p{i}"), ("i64", f"%p{i}.size")]
            else:
                params.append(("i64" if is_number(param.type) else "ptr", f"%p{i}"))
        times = "null"
        if entry is self.woven.egress:
            times = "%times"
            params.append(("ptr", times))
        f = self._function(entry, params)
        code = PathCode(self, f, entry, times)
        for i, param in enumerate(entry.params):
            if param in entry.packets:
                code.take_packet(param, f"%p{i}")
            elif is_bytes(param.type):
                code.take_bytes(param, f"%p{i}", f"%p{i}.size")
            elif is_number(param.type):
                code.take_number(param, f"%p{i}")
            else:
                code.places[param] = f"%p{i}"
        code.body(entry.body)
        f.at(code.exit)
        f.ret()


class PathTraffic(Traffic):
    """The functions of a program: those of the pipelines, and what leads to them.

    primitives: the names of those that the path uses. kept_metadata: metadata that a packet keeps
    for a further pass, by the names of ingress's parameters, with their places in a node. record:
    the places of egress's parameters in a record of the queue.
    """

    def __init__(
        self, unit: Unit, program: ir.Program, externs: Externs, passes: int, path: Path
    ) -> None:
        super().__init__(unit, program, externs, passes)
        self.path = path
        self.drops: dict[str, str] = {}
        calls = [call for p in path.pipelines for call in _calls(p)]
        self.primitives = {call.name for call in calls}
        self.keeps = any(c.name in (KEEP, "joined") or KEEP in constants(c) for c in calls)
        self.front = max(map(_front, path.pipelines))
        self.pipes: NativePipes | None = None
        if len(path.pipes) > 1:
            self.pipes = NativePipes(path, program, externs)
            self.pipe_words = self.pipes.words
        self.pipelines = [NativePipeline(self, pipeline) for pipeline in path.pipelines]
        self.kept_metadata: dict[str, int] = {}
        end = NODE_META
        for param in path.pipelines[0].ingress.params:
            if param.name not in ARRIVAL:
                self.kept_metadata[param.name] = end
                end += -(-unit.layouts.of(param.type).size // 16) * 16
        self.meta_size = end - NODE_META
        self.record: dict[str, int] = {}
        egress = path.pipelines[0].egress
        self.record_size = 0 if egress is None else self._lay_out(egress)
        if DEFLECT in self.record:
            names = ("port", "queue", DEFLECT)
            self.deflection = {name: WAITING_HEAD + self.record[name] for name in names}

    def _lay_out(self, egress: Entry) -> int:
        """Lay out a record of the queue; return its size."""
        end = 8  # behind `times`
        for param in sorted(egress.params, key=lambda p: p in egress.packets):
            self.record[param.name] = end
            end += self._room(egress, param)
        size = -(-end // 16) * 16
        assert self.front <= size, "headers are written over the record of a packet that waited"
        return size

    def _room(self, egress: Entry, param: ir.Var) -> int:
        if param in egress.packets:
            assert self.pipes is None, "pipelines have packets of other sizes"
            return self.pipelines[0].memories[egress.packets[param].kind].context.size
        size = 8 if is_number(param.type) else self.unit.layouts.of(param.type).size
        return -(-size // 8) * 8

    def blocks(self) -> None:
        if self.keeps:
            kept_bytes.write_functions(self.module, self.front)
        for pipeline in self.pipelines:
            pipeline.write()

    def start_empty(self, f: Function) -> None:
        super().start_empty(f)
        if self.keeps:
            kept_bytes.forget(f)

    def arrive(self) -> None:
        f = self.module.function("arrive", "void", ARRIVE)
        self.start_pass(f)
        self._run(f, "%port", "ingress", ARRIVE)
        if self.record:
            self.departures(f)
        f.ret()

    def _run(
        self, f: Function, port: Operand, entry: str, args: Sequence[tuple[str, Operand]]
    ) -> None:
        """Run an entry point in the pipe that a port belongs to."""
        if self.pipes is None:
            f.call("void", self.path.pipelines[0].name + entry, *args)
        else:
            self.pipes.call(f, port, entry, args)

    # -- the queue ------------------------------------------------------------------------------

    def departures(self, f: Function) -> None:
        egress = self.path.pipelines[0].egress
        assert egress is not None
        with self.queued(f, self.record_size) as record:
            args: list[tuple[str, Operand]] = []
            port: Operand = "0"
            for param in egress.params:
                at = f.add(record, self.record[param.name])
                if param in egress.packets:
                    args.append(("ptr", self._taken_out(f, egress, param, at)))
                elif is_bytes(param.type):
                    args += [("ptr", f.load("ptr", at, 8)), ("i64", f.load("i64", f.add(at, 8), 8))]
                elif is_number(param.type):
                    args.append(("i64", f.load("i64", at, 8)))
                else:
                    args.append(("ptr", at))
                if param.name == "port":
                    port = args[-1][1]
            times = f.load("ptr", record, 8)
            self._run(f, port, "egress", [*args, ("ptr", times)])

    def _taken_out(self, f: Function, egress: Entry, param: ir.Var, at: Operand) -> Operand:
        """Copy a packet out of the queue, which may move while it is in egress."""
        pipeline = self.pipelines[0]
        c = pipeline.packet_memory(egress, param)
        f.copy(c, at, pipeline.memories[egress.packets[param].kind].context.size)
        return c

    def restore(self, f: Function, record: Operand, head: Operand, data: Operand) -> None:
        egress = self.path.pipelines[0].egress
        assert egress is not None
        f.store("ptr", f.add(head, WAITING["enq_timestamp"]), record, 8)
        for param in egress.params:
            at = f.add(record, self.record[param.name])
            if param in egress.packets:
                memory = self.pipelines[0].memories[egress.packets[param].kind]
                memory.context.set(f, at, "data", data)
                memory.forget_lookups(f, at)
            elif is_bytes(param.type):
                f.store("ptr", data, at, 8)


def _calls(pipeline: WovenPipeline) -> list[ir.CallExtern]:
    """Return the calls of primitives in what native code runs."""
    stmts = (stmt for entry in pipeline.native for stmt in nested(entry.body))
    return [stmt for stmt in stmts if isinstance(stmt, ir.CallExtern)]


def _front(pipeline: WovenPipeline) -> int:
    """Return the most bytes that an entry point puts in front of a packet, rounded up to 16."""
    sizes = [0]
    for entry in pipeline.native:
        calls = [s for s in nested(entry.body) if isinstance(s, ir.CallExtern)]
        sizes.append(sum(size_of(call.args[0].type) for call in calls if call.name == "behind"))
    return -(-max(sizes) // 16) * 16


def size_of(t: Type) -> int:
    """Return the bytes of a header of fixed size."""
    return (bit_width(t) or 0) // 8


class PathCode(Statements):
    """Compiles an entry point. homes: where bytes lie; node: the last packet that is processed
    again; failed: the label to go to on a fault, after it was reported."""

    def __init__(
        self, pipeline: NativePipeline, f: Function, entry: Entry, times: Operand = "null"
    ) -> None:
        traffic, memory = pipeline.traffic, next(iter(pipeline.memories.values()))
        super().__init__(traffic.unit, f, memory.context, _Primitives(traffic.externs))
        self.traffic = traffic
        self.pipeline = pipeline
        self.entry = entry
        self.times = times
        self.homes: dict[ir.Expr, str] = {}
        self.node = f.variable("ptr", "null")
        self.failed = self.exit
        self._packets: dict[ir.Var, Operand] = {}
        for var in entry.locals:
            self.local(var)
        for var in entry.packets:
            if var not in entry.params:
                self.take_packet(var, pipeline.packet_memory(entry, var))

    # -- parameters -----------------------------------------------------------------------------

    def take_packet(self, var: ir.Var, c: Operand) -> None:
        """Give a packet and its values their places."""
        self._packets[var] = c
        memory, context = self.entry.packets[var], self.packet(var)[0].context
        for name, part in memory.parts.items():
            self.places[part] = context.value(self.f, c, name)

    def take_number(self, param: ir.Var, value: Operand) -> None:
        self.local(param, clear=False)
        self.put(param.type, self.f.resize(value, 64, scalar_width(param.type)), self.places[param])

    def take_bytes(self, param: ir.Var, address: Operand, size: Operand) -> None:
        self.local(param, clear=False)
        self.f.store("ptr", address, self.places[param], 8)
        self.f.store("i64", size, self.f.add(self.places[param], 8), 8)

    # -- packets --------------------------------------------------------------------------------

    def packet(self, var: ir.Expr) -> tuple[PacketMemory, Operand]:
        """Return the layout and the address of a packet's memory."""
        assert isinstance(var, ir.Var), var
        return self.pipeline.memories[self.entry.packets[var].kind], self._packets[var]

    def owner(self, part: ir.Expr) -> tuple[PacketMemory, Operand]:
        """Return those of the packet that a value belongs to."""
        return self.packet(self.entry.packet_of(part))

    def run_block(self, name: str, c: Operand) -> Operand:
        """Call a block; end the path on a fault. Return a parser's error (i32)."""
        return self.traffic.run(self.f, self.pipeline.block(name), c, self.failed)

    def give_up(self, reason: str) -> None:
        self.traffic.fault(self.f, self.calls.fault(reason))
        self.f.go(self.failed)

    # -- other entry points ---------------------------------------------------------------------

    def call_entry(self, name: str, args: Sequence[ir.Expr], *more: tuple[str, Operand]) -> None:
        """Call an entry point of the pipeline, packets by their addresses."""
        passed: list[tuple[str, Operand]] = []
        for arg in args:
            if arg in self._packets:
                passed.append(("ptr", self.packet(arg)[1]))
            elif is_number(arg.type):
                passed.append(("i64", self.number(arg, 64)))
            elif is_bytes(arg.type):
                place = self.address(arg)
                passed.append(("ptr", self.f.load("ptr", place, 8)))
                passed.append(("i64", self.f.load("i64", self.f.add(place, 8), 8)))
            else:
                passed.append(("ptr", self.address(arg)))
        self.f.call("void", self.pipeline.woven.name + name, *passed, *more)

    def push(self, port: Operand, priority: Operand, args: Sequence[ir.Expr]) -> None:
        """Pass a packet on to egress, by way of the queue."""
        f, traffic, egress = self.f, self.traffic, self.pipeline.woven.egress
        assert egress is not None
        record = native_memory.reserve(f, "queue", traffic.record_size)
        f.store("ptr", "null", record, 8)
        data, size = "null", "0"
        for param, arg in zip(egress.params, args, strict=True):
            at = f.add(record, traffic.record[param.name])
            if arg in self._packets:
                memory, c = self.packet(arg)
                f.copy(at, c, memory.context.size)
                memory.forget_lookups(f, at)
                data = memory.context.get(f, c, "data")
                size = f.binary("lshr", "i64", memory.context.get(f, c, "bits"), 3)
            elif is_number(param.type):
                f.store("i64", self.number(arg, 64), at, 8)
            else:
                self.write(arg, at)
                if is_bytes(param.type):
                    data, size = f.load("ptr", at, 8), f.load("i64", f.add(at, 8), 8)
        traffic.enqueue(f, record, port, priority, data, size)


class NativePathCall(NativeCall):
    """A call of a primitive in a path, being compiled."""

    code: PathCode

    def __init__(self, stmt: ir.CallExtern, code: PathCode) -> None:
        super().__init__(stmt, code, code.traffic.externs)
        self.traffic = code.traffic

    def numbered_blocks(self) -> list[str]:
        """Return the blocks that `run_one` chooses among."""
        return numbered_blocks(self.stmt, self.code.pipeline.woven)

    def give_fields(self, *values: Operand | int) -> None:
        """Assign a struct of numbers, each an i64, to the result."""
        target = self.stmt.result
        if target is None:
            return
        assert isinstance(target.type, Fields), target.type
        place = self.code.place(target)
        offsets = self.code.layouts.of(target.type).offsets
        for field, offset, value in zip(target.type.fields, offsets, values, strict=True):
            width = scalar_width(field.type)
            number = self.f.resize(str(value), 64, width) if isinstance(value, str) else str(value)
            self.code.put(field.type, number, self.f.add(place, offset))

    def bytes(self, position: int) -> tuple[Operand, Operand]:
        """Return address and size of bytes."""
        place = self.code.address(self.args[position])
        return self.f.load("ptr", place, 8), self.f.load("i64", self.f.add(place, 8), 8)

    def give_bytes(self, address: Operand, size: Operand, home: str) -> None:
        """Assign bytes to the result; home: where they lie, as in `deparse`."""
        target = self.stmt.result
        if target is not None:
            place = self.code.place(target)
            self.f.store("ptr", address, place, 8)
            self.f.store("i64", size, self.f.add(place, 8), 8)
            self.code.homes[target] = home

    def home(self, position: int) -> str:
        arg = self.args[position]
        return self.code.homes.get(arg, "")


class _Primitives:
    """Compiles the calls of a path (jit.statements.Calls)."""

    def __init__(self, externs: Externs) -> None:
        self.fault = externs.fault

    def call(self, s: ir.CallExtern, code: Statements) -> None:
        assert isinstance(code, PathCode)
        code.traffic.path.rows[s.name].compile(NativePathCall(s, code))

    def apply(self, s: ir.ApplyTable, code: Statements) -> None:
        raise AssertionError(s.table.name)

    def call_user_extern(self, s: ir.CallUserExtern, code: Statements) -> None:
        raise AssertionError(s.name)


def is_number(t: Type) -> bool:
    return isinstance(t, Bits | Bool)


def is_bytes(t: Type) -> bool:
    return isinstance(t, Fields) and t.name == "bytes_t"


def constants(call: ir.CallExtern) -> list[str]:
    """Return the strings among a call's arguments."""
    return [a.value for a in call.args if isinstance(a, ir.Const) and isinstance(a.value, str)]
