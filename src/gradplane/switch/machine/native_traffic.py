"""The path of a packet between its blocks, as machine code: faults and drops, the queue, groups and
sessions, deparsing; void arrive(...), which begins a pass, and void depart(...), which runs egress
of packets that waited.

A record in the queue holds what egress takes: the address of the times that the packet spent in a
port's queue (null if it did not wait), numbers and bytes, then values, then the packet's memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, Fields, Struct, Type, bit_width
from gradplane.switch.ir.walk import fields_named, nested
from gradplane.switch.jit import native_memory
from gradplane.switch.jit.entry_points import (
    ARRIVE,
    NODE,
    NODE_META,
    WAITING,
    WAITING_HEAD,
    Pipeline,
    write_entry_points,
    write_make_node,
)
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import Externs, Site
from gradplane.switch.jit.guarded_headers import guarded_headers, named_whole
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.value_layout import Context, Parts, make_context
from gradplane.switch.machine import kept_bytes
from gradplane.switch.machine.interpreted_paths import ARRIVAL
from gradplane.switch.machine.native_pipes import NativePipes
from gradplane.switch.machine.path_texts import NOTES
from gradplane.switch.machine.weaving import DEFLECT, Entry, Packet, Path, WovenPipeline
from gradplane.switch.runtime.egress_queues import CLASSES, NO_QUEUE, QUEUES
from gradplane.switch.runtime.packet_passes import (
    PASS_LIMIT,
    PASSES_A_PACKET,
    TOO_OFTEN,
    no_such_group,
)

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

    def forget_lookups(self, f: Function, c: Parts) -> None:
        """Forget what lookups of direct counters and meters found."""
        for offset in self.context.direct.values():
            f.store("i64", 0, self.context.at(f, c, offset), 8)


class Traffic:
    """Writes what happens to a packet between its blocks.

    primitives: the names of those that the path uses. drops: places that count drops, and the
    reasons. memories: the layouts of packets, by pipeline and kind. kept_metadata: metadata that a
    packet keeps for a further pass, by the names of ingress's parameters, with their places in a
    node. record: the places of egress's parameters in a record of the queue; record_size: 0 without
    egress. deflection: in the record of a packet that waits, the places of "port", "queue" and
    "deflect": 1 for a packet that goes to another queue if its own is full, DEFLECTED for one that
    has; empty where the path deflects none."""

    def __init__(self, unit: Unit, program: ir.Program, externs: Externs, path: Path) -> None:
        self.unit = unit
        self.module = unit.module
        self.program = program
        self.externs = externs
        self.path = path
        self._storm = externs.site(Site("storm", ""))
        self.drops: dict[str, str] = {}
        calls = [call for pipeline in path.pipelines for call in calls_in(pipeline)]
        self.primitives = {call.name for call in calls}
        self.keeps = any(c.name in (KEEP, "joined") or KEEP in constants(c) for c in calls)
        self.front = max(map(_front, path.pipelines))
        self.pipes = NativePipes(path, program, externs) if len(path.pipes) > 1 else None
        self.memories = {pipeline.name: self._memories(pipeline) for pipeline in path.pipelines}
        self.kept_metadata: dict[str, int] = {}
        ingresses = [pipeline.ingress for pipeline in path.pipelines]
        end = NODE_META
        for param in path.pipelines[0].ingress.params:
            if param.name not in ARRIVAL:
                self.kept_metadata[param.name] = end
                end += -(-unit.layouts.of(param.type).size // 16) * 16
        self._kept_fields = {name: _fields_read(ingresses, name) for name in self.kept_metadata}
        self.meta_size = end - NODE_META
        self.node_size = -(-end // 16) * 16
        self.record: dict[str, int] = {}
        egress = path.pipelines[0].egress
        self.record_size = 0 if egress is None else self._lay_out(egress)
        self.deflection: Mapping[str, int] = {}
        if DEFLECT in self.record:
            names = ("port", "queue", DEFLECT)
            self.deflection = {name: WAITING_HEAD + self.record[name] for name in names}

    def finish(self) -> Pipeline:
        """Write the functions that lead to the path's, after these."""
        write_make_node(self.module, self.node_size)
        self._arrive()
        self._depart()
        write_entry_points(self.module, self.node_size, self._storm, PASSES_A_PACKET)
        reasons = {**self.drops, "beyond": no_such_group(self.unit.groups), "no queue": NO_QUEUE}
        drops = {f"drops: {where}": reason for where, reason in reasons.items()}
        words = range(0) if self.pipes is None else self.pipes.words
        return Pipeline(self.node_size, self.meta_size, drops, words, self.deflection)

    # -- packets' memory ------------------------------------------------------------------------

    def _memories(self, woven: WovenPipeline) -> dict[str, PacketMemory]:
        packets = {memory.kind: memory for e in woven.native for memory in e.packets.values()}
        return {kind: self._memory(woven, memory) for kind, memory in packets.items()}

    def _memory(self, woven: WovenPipeline, packet: Packet) -> PacketMemory:
        layouts, path = self.unit.layouts, self.path
        slots = woven.slots.get(packet.kind, ())
        direct = [i.name for i in self.program.externs if i.kind in _DIRECT]
        types = {name: part.type for name, part in packet.parts.items()}
        measured = [LENGTH] if "measure" in self.primitives else []
        blocks = [
            (block, block.params[names.index(HEADERS)].var)
            for block, of, names in woven.blocks.values()
            if of == packet.kind and HEADERS in names
        ]
        in_parts = [] if any(named_whole(*block) for block in blocks) else [HEADERS]
        in_parts = [name for name in in_parts if isinstance(types.get(name), Struct)]
        context = make_context(layouts, types, [*measured, *slots], direct, in_parts)
        if path.notes is not None and NOTES in packet.parts:
            context.shared[path.notes] = NOTES
        if HEADERS in types:
            start = context.values[HEADERS]
            spans = guarded_headers(layouts, types[HEADERS], blocks)
            context.unread = [(start + first, start + end) for first, end in spans]
        return PacketMemory(context, slots)

    def take_node(self, f: Function, node: Operand, size: Operand) -> None:
        """Let a packet take a further pass."""
        f.store("i64", size, f.add(node, NODE["length"]), 8)
        native_memory.extend(f, "again", self.node_size)

    def keep(self, code: Statements, args: Sequence[ir.Expr], node: Operand) -> None:
        """Write the metadata that a packet keeps to its node: what ingress reads of it."""
        for (name, offset), arg in zip(self.kept_metadata.items(), args, strict=False):
            place, fields = code.f.add(node, offset), self._kept_fields[name]
            if fields is None:
                code.write(arg, place)
                continue
            for i in sorted(fields):
                at = self.unit.layouts.of(arg.type).offsets[i]
                code.write(expression_builder.field(arg, i), code.f.add(place, at))

    @property
    def has_digests(self) -> bool:
        """Return whether blocks that are written send digests."""
        return any(site.kind == "digest" for site in self.externs.sites)

    # -- small functions ------------------------------------------------------------------------

    def fault(self, f: Function, site: Operand | int) -> None:
        """Drop a packet and report why."""
        if not self.module.has("fault"):
            made = self.module.function("fault", "void", [("i64", "%site")], attributes="cold ")
            record = native_memory.reserve(made, "messages", 24)
            cause = made.word("cause", "i64", fixed=False)
            for i, value in enumerate(("%site", cause, "0")):
                made.store("i64", value, made.add(record, 8 * i), 1)
            native_memory.extend(made, "messages", 24)
            made.ret()
        f.call("void", "fault", ("i64", site))

    def count_drop(self, f: Function, where: str) -> None:
        address = f.word_address(f"drops: {where}")
        f.store("i64", f.binary("add", "i64", f.load("i64", address, 8), 1), address, 8)

    def run(self, f: Function, block: str, c: Parts, after: str) -> Operand:
        """Call a block; on a fault, report it and go to `after`."""
        result = f.call("i32", block, *(("ptr", part) for part in c))
        with f.when(f.compare("slt", "i32", result, 0)):
            self.fault(f, f.resize(f.op(f"sub i32 0, {result}"), 32, 64))
            f.go(after)
        return result

    def start_pass(self, f: Function) -> None:
        """Begin a pass with an empty queue; return at once if the packet has taken too many."""
        with f.when(f.compare("uge", "i64", "%passes", PASS_LIMIT)):
            self.fault(f, self.externs.fault(TOO_OFTEN))
            f.ret()
        self.start_empty(f)

    def start_empty(self, f: Function) -> None:
        """Empty what belongs to one pass."""
        native_memory.set_length(f, "queue", 0)
        if self.has_digests:
            native_memory.set_length(f, "digests", 0)
        if "session" in self.primitives:
            f.store("i64", 0, f.word_address("clones"), 8)
        if self.keeps:
            kept_bytes.forget(f)

    # -- to egress ------------------------------------------------------------------------------

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
            return self._memory_of(egress, param).context.size
        size = 8 if is_number(param.type) else self.unit.layouts.of(param.type).size
        return -(-size // 8) * 8

    def _arrive(self) -> None:
        f = self.module.function("arrive", "void", ARRIVE)
        self.start_pass(f)
        self._run(f, "%port", "ingress", ARRIVE)
        if self.record:
            self._departures()
            with f.when(f.compare("ne", "i64", native_memory.length(f, "queue"), 0)):
                f.call("void", "departures")
        f.ret()

    def _run(
        self, f: Function, port: Operand, entry: str, args: Sequence[tuple[str, Operand]]
    ) -> None:
        """Run an entry point in the pipe that a port belongs to."""
        if self.pipes is None:
            f.call("void", self.path.pipelines[0].name + entry, *args)
        else:
            self.pipes.call(f, port, entry, args)

    def enqueue(
        self, f: Function, record: Operand, port: Operand, priority: Operand, data: Operand,
        size: Operand,
    ) -> None:  # fmt: skip
        """Pass a packet on to egress, by way of the port's queue if it has one. record: of the
        packet, behind the end of the queue; data, size: its bytes, if it has to wait."""
        end = f.label()
        with f.when(self.engaged(f)):
            if not self.module.has("hold"):
                self._hold()
            args = (("ptr", record), ("i64", port), ("i64", priority), ("ptr", data), ("i64", size))
            held = f.call("i1", "hold", *args)
            with f.when(held):
                f.go(end)
        native_memory.extend(f, "queue", self.record_size)
        f.at(end)

    @staticmethod
    def engaged(f: Function) -> Operand:
        """Return whether ports have queues of the switch's own."""
        return f.compare("ne", "i64", f.word("queues engaged", "i64"), 0)

    def _hold(self) -> None:
        """i1 hold(ptr record, i64 port, i64 priority, ptr data, i64 size): copies a packet to
        `waiting` if its port has queues, or drops it if it has none of the priority; gives 1 then.
        """
        params = [("ptr", "%record"), ("i64", "%port"), ("i64", "%priority"), ("ptr", "%data"),
                  ("i64", "%size")]  # fmt: skip
        f = self.module.function("hold", "i1", params, attributes="noinline ")
        with f.when(f.compare("uge", "i64", "%port", QUEUES)):
            f.ret("false")
        priority = f.variable("i64", "%priority")
        with f.when(f.compare("ult", "i64", "%priority", CLASSES)):
            row = f.add(f.word("port classes"), f.binary("mul", "i64", "%port", CLASSES))
            priority.set(f.resize(f.load("i8", f.add(row, "%priority"), 1), 8, 64))
        queue = priority.get()
        with f.when(f.compare("uge", "i64", queue, f.word("priority queues", "i64"))):
            self.count_drop(f, "no queue")
            f.ret("true")
        flag = f.load("i64", f.item(f.word("port queues"), "i64", "%port"), 8)
        with f.when(f.compare("eq", "i64", flag, 0)):
            f.ret("false")
        fixed = WAITING_HEAD + self.record_size
        whole = f.binary("add", "i64", "%size", fixed + 15)
        whole = f.binary("and", "i64", whole, -16)
        head = native_memory.reserve(f, "waiting", whole)
        values = {"whole": whole, "port": "%port", "priority": queue, "size": "%size"}
        for name, value in values.items():
            f.store("i64", value, f.add(head, WAITING[name]), 8)
        f.copy(f.add(head, WAITING_HEAD), "%record", self.record_size)
        f.copy(f.add(head, fixed), "%data", "%size")
        native_memory.extend(f, "waiting", whole)
        f.ret("true")

    def _depart(self) -> None:
        params = [("ptr", "%records"), ("i64", "%count")]
        f = self.module.function("depart", "void", params, exported=True)
        native_memory.set_length(f, "again", 0)
        native_memory.set_length(f, "waiting", 0)
        if self.record_size:
            self._depart_all(f)
        f.ret()

    def _depart_all(self, f: Function) -> None:
        at = f.variable("i64", 0)
        with f.count("%count") as i:
            f.store("i64", i, f.word_address("cause"), 8)
            self.start_empty(f)
            head = f.add("%records", at.get())
            at.increase(f.load("i64", head, 8))
            waited = f.add(head, WAITING_HEAD)
            record = native_memory.reserve(f, "queue", self.record_size)
            f.copy(record, waited, self.record_size)
            self._restore(f, record, head, f.add(waited, self.record_size))
            native_memory.extend(f, "queue", self.record_size)
            f.call("void", "departures")

    def _restore(self, f: Function, record: Operand, head: Operand, data: Operand) -> None:
        """Complete the record of a packet that waited, with its bytes at `data`."""
        egress = self.path.pipelines[0].egress
        assert egress is not None
        f.store("ptr", f.add(head, WAITING["enq_timestamp"]), record, 8)
        for param in egress.params:
            at = f.add(record, self.record[param.name])
            if param in egress.packets:
                memory = self._memory_of(egress, param)
                c = memory.context.whole(f, at)
                memory.context.set(f, c, "data", data)
                memory.forget_lookups(f, c)
            elif is_bytes(param.type):
                f.store("ptr", data, at, 8)

    def _departures(self) -> None:
        """Write void departures(): egress of the packets in the queue."""
        f = self.module.function("departures", "void", [], attributes="noinline ")
        egress = self.path.pipelines[0].egress
        assert egress is not None
        with self._queued(f) as record:
            args: list[tuple[str, Operand]] = []
            port: Operand = "0"
            for param in egress.params:
                at = f.add(record, self.record[param.name])
                if param in egress.packets:
                    args += [("ptr", part) for part in self._taken_out(f, egress, param, at)]
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
        f.ret()

    def _taken_out(self, f: Function, egress: Entry, param: ir.Var, at: Operand) -> Parts:
        """Copy a packet out of the queue, which may move while it is in egress."""
        context = self._memory_of(egress, param).context
        c = context.local(f, param.name)
        context.copy(f, c, context.whole(f, at))
        return c

    def _memory_of(self, egress: Entry, param: ir.Var) -> PacketMemory:
        return self.memories[self.path.pipelines[0].name][egress.packets[param].kind]

    @contextmanager
    def _queued(self, f: Function) -> Iterator[Operand]:
        """Loop over the records in the queue, those included that are queued meanwhile: the address
        of each."""
        at = f.variable("i64", 0)
        with f.loop() as end:
            more = f.label()
            length = native_memory.length(f, "queue")
            f.branch(f.compare("ult", "i64", at.get(), length), more, end)
            f.at(more)
            yield f.add(native_memory.data(f, "queue"), at.get())
            at.increase(self.record_size)


def calls_in(pipeline: WovenPipeline) -> list[ir.CallExtern]:
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


def _fields_read(ingresses: Sequence[Entry], name: str) -> set[int] | None:
    """Return the fields of a parameter that entry points read; None for the whole."""
    found: set[int] = set()
    for entry in ingresses:
        param = next(p for p in entry.params if p.name == name)
        fields = fields_named(nested(entry.body), param)
        if fields is None:
            return None
        found |= fields
    return found


def is_number(t: Type) -> bool:
    return isinstance(t, Bits | Bool)


def is_bytes(t: Type) -> bool:
    return isinstance(t, Fields) and t.name == "bytes_t"


def constants(call: ir.CallExtern) -> list[str]:
    """Return the strings among a call's arguments."""
    return [a.value for a in call.args if isinstance(a, ir.Const) and isinstance(a.value, str)]
