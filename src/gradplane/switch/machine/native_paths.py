"""A woven path as machine code: void arrive(...), the ingress of a pass, and void egress(...).

Egress has a parameter for each of the path's (the address of a packet, or of a value that is no
number; the bytes' address and size; i64 for a number), and `times`: the address of the times that
the packet spent in a queue, null if it did not wait. A record in the queue holds the same: `times`,
numbers and bytes, then values, then the packet's memory.

The bytes that a pass keeps lie in blocks of memory that do not move while it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, Fields, Type
from gradplane.switch.ir.walk import nested
from gradplane.switch.jit import native_memory
from gradplane.switch.jit.blocks import control_function, deparser_function
from gradplane.switch.jit.entry_points import ARRIVE, NODE_META, WAITING
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import Externs, NativeCall
from gradplane.switch.jit.guarded_headers import guarded_headers
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.parsers import parser_function
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.traffic_manager import Traffic
from gradplane.switch.jit.value_layout import Context, make_context, scalar_width
from gradplane.switch.machine.interpreted_paths import ARRIVAL
from gradplane.switch.machine.path_texts import NOTES
from gradplane.switch.machine.weaving import Entry, Path

HEADERS = "hdr"  # the name of a packet's headers, which only the program's blocks read and write
ROOM = 16  # bytes that may be written behind a packet's end
KEEP = "keep"  # where a deparser's bytes go to that stay until the pass is over

_DIRECT = (
    "direct_counter", "direct_meter", "direct_register", "direct_lpf", "direct_wred",
)  # fmt: skip


@dataclass(slots=True)
class PacketMemory:
    """The layout of the packets of one kind."""

    context: Context

    def forget_lookups(self, f: Function, c: Operand) -> None:
        """Forget what lookups of direct counters and meters found."""
        for offset in self.context.direct.values():
            f.store("i64", 0, f.add(c, offset), 8)


class PathTraffic(Traffic):
    """The functions of a program whose packet path is text.

    memories: by the packets' kind. emitted: the most bytes that each deparser can emit.
    kept_metadata: metadata that a packet keeps for a further pass, with their places in a node.
    """

    def __init__(
        self, unit: Unit, program: ir.Program, externs: Externs, passes: int, path: Path
    ) -> None:
        super().__init__(unit, program, externs, passes)
        self.path = path
        self.drops: dict[str, str] = {}
        self.emitted: dict[str, int] = {}
        kinds = {m.kind: m.parts for entry in path.entries for m in entry.packets.values()}
        self.memories = {k: PacketMemory(self._context(k, parts)) for k, parts in kinds.items()}
        self.packet_words: dict[str, int] = {}
        self.kept_metadata: list[tuple[ir.Var, int]] = []
        end = NODE_META
        for param in path.ingress.params:
            if param.name not in ARRIVAL:
                self.kept_metadata.append((param, end))
                end += -(-unit.layouts.of(param.type).size // 16) * 16
        self.meta_size = end - NODE_META
        self.record_size = 0
        if path.egress is not None:
            self.record = self._record(path.egress)

    def _context(self, kind: str, parts: dict[str, ir.Var]) -> Context:
        direct = [i.name for i in self.program.externs if i.kind in _DIRECT]
        types = {name: part.type for name, part in parts.items()}
        context = make_context(self.unit.layouts, types, (), direct, NOTES)
        if self.path.notes is not None and NOTES in parts:
            context.shared[self.path.notes] = NOTES
        if HEADERS in types:
            blocks = [
                (block, block.params[names.index(HEADERS)].var)
                for block, of, names in self.path.blocks.values()
                if of == kind and HEADERS in names
            ]
            start = context.values[HEADERS]
            spans = guarded_headers(self.unit.layouts, types[HEADERS], blocks)
            context.unread = [(start + first, start + end) for first, end in spans]
        return context

    def _record(self, egress: Entry) -> dict[ir.Var, int]:
        """Return the places of egress's parameters in a record of the queue."""
        places, end = {}, 8  # behind `times`
        for param in sorted(egress.params, key=lambda p: p in egress.packets):
            places[param] = end
            end += self._room(egress, param)
        self.record_size = -(-end // 16) * 16
        return places

    def _room(self, egress: Entry, param: ir.Var) -> int:
        if param in egress.packets:
            return self.memories[egress.packets[param].kind].context.size
        size = 8 if is_number(param.type) else self.unit.layouts.of(param.type).size
        return -(-size // 8) * 8

    def memory(self) -> dict[str, int]:
        return self.packet_words

    # -- the program's blocks -------------------------------------------------------------------

    def blocks(self) -> None:
        unit, calls = self.unit, self.externs
        for name, (block, kind, values) in self.path.blocks.items():
            context = self.memories[kind].context
            if isinstance(block, ir.Parser):
                parser_function(unit, f"block.{name}", block, context, calls, values)
            elif name in self.path.deparsers:
                args = (unit, f"block.{name}", block, context, calls, values)
                self.emitted[name] = deparser_function(*args)
                self.write_deparse(self.deparser(name), f"block.{name}", context)
            else:
                control_function(unit, f"block.{name}", block, context, calls, values)
        if self.path.egress is not None:
            self._egress(self.path.egress)

    @staticmethod
    def deparser(name: str) -> str:
        """Return the function that writes headers and payload."""
        return f"deparse.{name}"

    # -- the entry points -----------------------------------------------------------------------

    def arrive(self) -> None:
        f = self.module.function("arrive", "void", ARRIVE)
        self.start_pass(f)
        entry = self.path.ingress
        code = PathCode(self, f, entry)
        given = {"port": "%port", "kind": "%kind", "passes": "%passes"}
        metadata = {param: at - NODE_META for param, at in self.kept_metadata}
        for param in entry.params:
            if param.name == "bytes":
                code.take_bytes(param, "%data", "%size")
            elif param in metadata:
                code.places[param] = f.add("%meta", metadata[param])
            else:
                code.take_number(param, given[param.name])
        code.body(entry.body)
        f.at(code.exit)
        if self.path.egress is not None:
            self.departures(f)
        f.ret()

    def _egress(self, entry: Entry) -> None:
        params: list[tuple[str, str]] = []
        for i, param in enumerate(entry.params):
            if is_bytes(param.type):
                params += [("ptr", f"%p{i}"), ("i64", f"%p{i}.size")]
            else:
                params.append(("i64" if is_number(param.type) else "ptr", f"%p{i}"))
        params.append(("ptr", "%times"))
        f = self.module.function("egress", "void", params, attributes="noinline ")
        code = PathCode(self, f, entry, "%times")
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

    def packet_word(self, entry: Entry, var: ir.Var) -> str:
        """Return the state word with the address of a packet's memory."""
        name = f"{entry.name}: {var.name}"
        self.packet_words[name] = self.memories[entry.packets[var].kind].context.size
        return name

    # -- the queue ------------------------------------------------------------------------------

    def departures(self, f: Function) -> None:
        egress = self.path.egress
        assert egress is not None
        with self.queued(f, self.record_size) as record:
            args: list[tuple[str, Operand]] = []
            for param in egress.params:
                at = f.add(record, self.record[param])
                if param in egress.packets:
                    args.append(("ptr", self._taken_out(f, egress, param, at)))
                elif is_bytes(param.type):
                    args += [("ptr", f.load("ptr", at, 8)), ("i64", f.load("i64", f.add(at, 8), 8))]
                elif is_number(param.type):
                    args.append(("i64", f.load("i64", at, 8)))
                else:
                    args.append(("ptr", at))
            times = f.load("ptr", record, 8)
            f.call("void", "egress", *args, ("ptr", times))

    def _taken_out(self, f: Function, egress: Entry, param: ir.Var, at: Operand) -> Operand:
        """Copy a packet out of the queue, which may move while it is in egress."""
        memory = self.memories[egress.packets[param].kind]
        c = f.word(self.packet_word(egress, param))
        f.copy(c, at, memory.context.size)
        return c

    def restore(self, f: Function, record: Operand, head: Operand, data: Operand) -> None:
        egress = self.path.egress
        assert egress is not None
        f.store("ptr", f.add(head, WAITING["enq_timestamp"]), record, 8)
        for param in egress.params:
            at = f.add(record, self.record[param])
            if param in egress.packets:
                memory = self.memories[egress.packets[param].kind]
                memory.context.set(f, at, "data", data)
                memory.forget_lookups(f, at)
            elif is_bytes(param.type):
                f.store("ptr", data, at, 8)

    # -- bytes that a pass keeps ------------------------------------------------------------------

    @cached_property
    def keeps(self) -> bool:
        """Whether the path keeps bytes."""
        stmts = (s for e in self.path.entries for s in nested(e.body))
        calls = (s for s in stmts if isinstance(s, ir.CallExtern))
        return any(c.name == KEEP or KEEP in constants(c) for c in calls)

    def start_empty(self, f: Function) -> None:
        super().start_empty(f)
        if self.keeps:
            if not self.module.has("keep"):
                self._keep()
            f.call("void", "forget")

    @staticmethod
    def keep(f: Function, room: Operand) -> Operand:
        """Return an address with room for so many bytes, which `kept` takes."""
        return f.call("ptr", "keep", ("i64", room))

    @staticmethod
    def kept(f: Function, size: Operand) -> None:
        whole = f.binary("and", "i64", f.binary("add", "i64", size, 2 * ROOM - 1), -ROOM)
        native_memory.extend(f, "kept", whole)

    def _keep(self) -> None:
        """Write ptr keep(i64 size), and void forget(), which empties the memory.

        A block that is full stays where it is until then: its address is at the start of the
        next."""
        f = self.module.function("keep", "ptr", [("i64", "%size")])
        native_memory.vector_words(self.module, "kept")
        length = native_memory.length(f, "kept")
        need = f.binary("add", "i64", f.binary("add", "i64", length, "%size"), ROOM)
        capacity = f.word("kept:capacity", "i64", fixed=False)
        with f.when(f.compare("ugt", "i64", need, capacity)):
            more = f.binary("add", "i64", f.binary("shl", "i64", need, 1), 4096)
            block = f.intrinsic("malloc", "ptr", ("i64", more))
            f.store("ptr", native_memory.data(f, "kept"), block, 8)
            f.store("ptr", block, f.word_address("kept:data"), 8)
            f.store("i64", more, f.word_address("kept:capacity"), 8)
            f.store("i64", ROOM, f.word_address("kept:length"), 8)
        at = native_memory.length(f, "kept")
        f.ret(f.add(native_memory.data(f, "kept"), at))
        f = self.module.function("forget", "void", [])
        f.store("i64", ROOM, f.word_address("kept:length"), 8)
        block = native_memory.data(f, "kept")
        with f.when(f.compare("eq", "ptr", block, "null")):
            f.ret()
        with f.loop() as end:
            older, more = f.load("ptr", block, 8), f.label()
            f.branch(f.compare("eq", "ptr", older, "null"), end, more)
            f.at(more)
            f.store("ptr", f.load("ptr", older, 8), block, 8)
            f.intrinsic("free", "void", ("ptr", older))
        f.ret()


class PathCode(Statements):
    """Compiles an entry point. homes: where bytes lie; node: the last packet that is processed
    again; failed: the label to go to on a fault, after it was reported."""

    def __init__(
        self, traffic: PathTraffic, f: Function, entry: Entry, times: Operand = "null"
    ) -> None:
        memory = next(iter(traffic.memories.values()))
        super().__init__(traffic.unit, f, memory.context, _Primitives(traffic.externs))
        self.traffic = traffic
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
                self.take_packet(var, f.word(traffic.packet_word(entry, var)))

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
        return self.traffic.memories[self.entry.packets[var].kind], self._packets[var]

    def owner(self, part: ir.Expr) -> tuple[PacketMemory, Operand]:
        """Return those of the packet that a value belongs to."""
        return self.packet(self.entry.packet_of(part))

    def run_block(self, name: str, c: Operand) -> Operand:
        """Call a block; end the path on a fault. Return a parser's error (i32)."""
        return self.traffic.run(self.f, f"block.{name}", c, self.failed)

    def give_up(self, reason: str) -> None:
        self.traffic.fault(self.f, self.calls.fault(reason))
        self.f.go(self.failed)

    # -- egress ---------------------------------------------------------------------------------

    def call_egress(self, args: Sequence[ir.Expr]) -> None:
        """Call egress with the packet itself."""
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
        self.f.call("void", "egress", *passed, ("ptr", "null"))

    def push(self, port: Operand, priority: Operand, args: Sequence[ir.Expr]) -> None:
        """Pass a packet on to egress, by way of the queue."""
        f, traffic, egress = self.f, self.traffic, self.traffic.path.egress
        assert egress is not None
        record = native_memory.reserve(f, "queue", traffic.record_size)
        f.store("ptr", "null", record, 8)
        data, size = "null", "0"
        for param, arg in zip(egress.params, args, strict=True):
            at = f.add(record, traffic.record[param])
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
