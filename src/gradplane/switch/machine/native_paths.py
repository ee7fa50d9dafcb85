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

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields
from gradplane.switch.ir.walk import nested, statements
from gradplane.switch.jit import native_memory
from gradplane.switch.jit.blocks import control_function, deparser_function
from gradplane.switch.jit.entry_points import ARRIVE, NODE_META, Pipeline
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import Externs, NativeCall
from gradplane.switch.jit.headers import aligned, clear_rest, copy_bits
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.parsers import parser_function
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.value_layout import Context, Parts, scalar_width
from gradplane.switch.machine import kept_bytes
from gradplane.switch.machine.native_traffic import (
    PacketMemory,
    Traffic,
    calls_in,
    constants,
    is_bytes,
    is_number,
)
from gradplane.switch.machine.weaving import (
    BLOCK_CALLS,
    Entry,
    Path,
    WovenPipeline,
    numbered_blocks,
)

INLINED = 200  # statements of egress up to which its code is there twice


class NativePipeline:
    """The functions of a pipeline, whose names follow the pipeline's. memories: by the packets'
    kind. emitted: the most bytes that each deparser can emit. called: how often each entry point is
    called by others. aligned: whether what blocks extract and emit is whole bytes."""

    def __init__(self, traffic: Traffic, woven: WovenPipeline) -> None:
        self.traffic = traffic
        self.woven = woven
        self.emitted: dict[str, int] = {}
        self.called = Counter(constants(call)[0] for call in calls_in(woven) if call.name == "call")
        self.memories = traffic.memories[woven.name]
        self.aligned = all(
            aligned(traffic.unit, block)
            for name, (block, *_) in woven.blocks.items()
            if isinstance(block, ir.Parser) or name in woven.deparsers
        )

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
                self._write_deparse(self.deparser(name), function, context)
            else:
                control_function(unit, function, block, context, calls, values)
        for entry in self.woven.native:
            if entry is self.woven.ingress:
                self._ingress(entry)
            else:
                self._entry(entry)

    def _write_deparse(self, name: str, block: str, context: Context) -> None:
        """Write i64 name(ptr parts..., ptr target), which writes emitted headers and the payload.

        The function returns the number of bytes, or a negative fault."""
        args = [("ptr", part) for part in (*context.given, "%target")]
        f = self.traffic.module.function(name, "i64", args, attributes="alwaysinline ")
        result = f.call("i32", block, *args)
        with f.when(f.compare("slt", "i32", result, 0)):
            f.ret(f.resize(result, 32, 64, True))
        emitted = f.word("emitted", "i64", fixed=False)
        position, size, data = (
            context.get(f, context.given, name) for name in ("position", "bits", "data")
        )
        left = f.binary("sub", "i64", size, position)
        bits = f.binary("add", "i64", emitted, left)
        if self.aligned:
            self._copy_payload(f, emitted, data, position, left)
            f.ret(f.binary("lshr", "i64", bits, 3))
            return
        odd = f.binary("and", "i64", f.binary("or", "i64", emitted, position), 7)
        slow, fast, end = f.label(), f.label(), f.label()
        f.branch(f.compare("ne", "i64", odd, 0), slow, fast)
        f.at(fast)
        self._copy_payload(f, emitted, data, position, left)
        f.go(end)
        f.at(slow)
        copy_bits(f, "%target", emitted, data, position, left)
        f.go(end)
        f.at(end)
        clear_rest(f, "%target", bits)
        f.ret(f.binary("lshr", "i64", f.binary("add", "i64", bits, 7), 3))

    @staticmethod
    def _copy_payload(
        f: Function, emitted: Operand, data: Operand, position: Operand, left: Operand
    ) -> None:
        """Copy whole bytes behind whole bytes; all numbers count bits."""
        source = f.add(data, f.binary("lshr", "i64", position, 3))
        target = f.add("%target", f.binary("lshr", "i64", emitted, 3))
        f.copy(target, source, f.binary("lshr", "i64", left, 3))

    def block(self, name: str) -> str:
        return f"{self.woven.name}block.{name}"

    def deparser(self, name: str) -> str:
        """Return the function that writes headers and payload."""
        return f"{self.woven.name}deparse.{name}"

    # -- the entry points -----------------------------------------------------------------------

    def _function(self, entry: Entry, params: list[tuple[str, str]]) -> Function:
        """Begin an entry point's function. One that is called once is apart so that its caller
        stays small. Egress has two: ingress, which it follows at once, and the queue."""
        ends = entry in (self.woven.ingress, self.woven.egress)
        alone = ends and self.traffic.pipes is not None
        large = entry is self.woven.egress and self._statements(entry) > INLINED
        apart = alone or large or self.called[entry.name] == 1
        attributes = "noinline " if apart else "alwaysinline " if ends else ""
        name = self.woven.name + entry.name
        return self.traffic.module.function(name, "void", params, attributes=attributes)

    def _statements(self, entry: Entry) -> int:
        """Return the number of statements in the blocks that an entry point runs."""
        calls = [s for s in nested(entry.body) if isinstance(s, ir.CallExtern)]
        names = {constants(call)[0] for call in calls if call.name in BLOCK_CALLS}
        return sum(1 for name in names for _ in statements(self.woven.blocks[name][0]))

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
            elif param in entry.packets:
                params += [("ptr", part) for part in self._parts(entry, i)]
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
                code.take_packet(param, self._parts(entry, i))
            elif is_bytes(param.type):
                code.take_bytes(param, f"%p{i}", f"%p{i}.size")
            elif is_number(param.type):
                code.take_number(param, f"%p{i}")
            else:
                code.places[param] = f"%p{i}"
        code.body(entry.body)
        f.at(code.exit)
        f.ret()

    def _parts(self, entry: Entry, position: int) -> Parts:
        """Return the parameters for the parts of a packet's memory."""
        context = self.memories[entry.packets[entry.params[position]].kind].context
        return [f"%p{position}.{i}" for i in range(len(context.starts))]


def write_path(unit: Unit, program: ir.Program, externs: Externs, path: Path) -> Pipeline:
    """Write the functions of a program along a path: those of its pipelines, and what leads to
    them."""
    traffic = Traffic(unit, program, externs, path)
    if traffic.keeps:
        kept_bytes.write_functions(traffic.module, traffic.front)
    for woven in path.pipelines:
        NativePipeline(traffic, woven).write()
    return traffic.finish()


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
        self._packets: dict[ir.Var, Parts] = {}
        for var in entry.locals:
            self.local(var)
        for var in entry.packets:
            if var not in entry.params:
                memory = pipeline.memories[entry.packets[var].kind]
                self.take_packet(var, memory.context.local(f, var.name))

    # -- parameters -----------------------------------------------------------------------------

    def take_packet(self, var: ir.Var, c: Parts) -> None:
        """Give a packet and its values their places."""
        self._packets[var] = c
        context = self.packet(var)[0].context
        for name, part in self.entry.packets[var].parts.items():
            self.stand_for(part, context, c, name)

    def take_number(self, param: ir.Var, value: Operand) -> None:
        self.local(param, clear=False)
        self.put(param.type, self.f.resize(value, 64, scalar_width(param.type)), self.places[param])

    def take_bytes(self, param: ir.Var, address: Operand, size: Operand) -> None:
        self.local(param, clear=False)
        self.f.store("ptr", address, self.places[param], 8)
        self.f.store("i64", size, self.f.add(self.places[param], 8), 8)

    # -- packets --------------------------------------------------------------------------------

    def packet(self, var: ir.Expr) -> tuple[PacketMemory, Parts]:
        """Return the layout and the parts of a packet's memory."""
        assert isinstance(var, ir.Var), var
        return self.pipeline.memories[self.entry.packets[var].kind], self._packets[var]

    def owner(self, part: ir.Expr) -> tuple[PacketMemory, Parts]:
        """Return those of the packet that a value belongs to."""
        return self.packet(self.entry.packet_of(part))

    def run_block(self, name: str, c: Parts) -> Operand:
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
                passed += [("ptr", part) for part in self.packet(arg)[1]]
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
                waiting = memory.context.whole(f, at)
                memory.context.copy(f, waiting, c)
                memory.forget_lookups(f, waiting)
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
