"""v1model's way of a packet as native code: gradplane.switch.arch.v1model, step by step.

process(ptr ports, ptr data, ptr offsets, i64 count): packets with all that comes of them.
once(ptr data, i64 size, i64 port, i64 type, ptr meta, i64 passes): one pass.
release(): frees what the code allocated.

What leaves is appended to vector `out`, with a record (port, end in `out`, cause) in `sent`. What
comes again is in vector `again`, as nodes: bytes (ptr, capacity, length), type, passes, metadata.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradplane.switch.arch.fieldlists import FieldLists, Path
from gradplane.switch.arch.v1model import PASS_LIMIT
from gradplane.switch.arch.v1packet import DROP_PORT, InstanceType
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Fields, Type
from gradplane.switch.jit import vectors
from gradplane.switch.jit.blocks import control_function, deparser_function
from gradplane.switch.jit.context import NONE, Context, make_context
from gradplane.switch.jit.expressions import Expressions, Unit
from gradplane.switch.jit.externs import Externs, Site, tell
from gradplane.switch.jit.headers import clear_rest, copy_bits
from gradplane.switch.jit.parsers import parser_function
from gradplane.switch.jit.text import Function, Operand

NODE = {"data": 0, "capacity": 8, "length": 16, "type": 24, "passes": 32}
NODE_META = 40
DEPARTURE = {"port": 0, "rid": 8, "passes": 16}
DEPARTURE_CONTEXT = 64
GROUPS = 1 << 16  # multicast groups and clone sessions that can exist
CAUSED_AGAIN = f"a packet came round {PASS_LIMIT} times"
CLONED_AGAIN = f"a packet was cloned {PASS_LIMIT} times in a row"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What the engine must know of the code: the layout of a packet's memory and of a node."""

    context: Context
    node_size: int
    externs: Externs
    storm: int  # the site of the message that a packet took too many passes


def build(unit: Unit, program: ir.Program, externs: Externs, passes: int) -> Pipeline:
    """Compiles a v1model program; `passes`: the most that one injected packet may take."""
    return _Builder(unit, program, externs, passes).build()


class _Builder:
    def __init__(self, unit: Unit, program: ir.Program, externs: Externs, passes: int) -> None:
        self.unit = unit
        self.module = unit.module
        self.externs = externs
        self.passes = passes
        self.args = program.package.args
        parser = self.args["p"]
        assert isinstance(parser, ir.Parser), parser
        self.parser = parser
        types = [p.var.type for p in parser.params]
        meters = [i.name for i in program.externs if i.type == "direct_meter"]
        self.context = make_context(unit.layouts, types, meters)
        self.node_size = -(-(NODE_META + self.context.sizes[1]) // 16) * 16
        self.record_size = DEPARTURE_CONTEXT + self.context.size
        self.most = 0
        self.storm = externs.site(Site("storm", ""))

    def build(self) -> Pipeline:
        calls = self.externs
        parser_function(self.unit, "parser", self.parser, self.context, calls)
        for name in ("vr", "ig", "eg", "ck"):
            control_function(self.unit, name, self._control(name), self.context, calls)
        dep = self._control("dep")
        self.most = deparser_function(self.unit, "dep", dep, self.context, calls)
        self._preserve()
        self._replicate()
        self._clone()
        self._deparse()
        self._come_again()
        self._egress()
        self._arrive()
        self._process()
        self._once()
        self._release()
        return Pipeline(self.context, self.node_size, self.externs, self.storm)

    def _control(self, name: str) -> ir.Control:
        control = self.args[name]
        assert isinstance(control, ir.Control), control
        return control

    # -- standard metadata ----------------------------------------------------------------------

    def put(self, f: Function, context: Operand, name: str, value: Operand | int) -> None:
        """Sets a field of the standard metadata from an i64, if there is such a field."""
        found = self._field(name)
        if found is not None:
            t, offset = found
            code = Expressions(self.unit, f, {})
            number = f.resize(str(value), 64, t.width) if isinstance(value, str) else str(value)
            code.put(t, number, f.add(context, offset))

    def get(self, f: Function, context: Operand, name: str) -> Operand:
        """A field of the standard metadata as i64; 0 if there is none."""
        found = self._field(name)
        if found is None:
            return "0"
        t, offset = found
        value = Expressions(self.unit, f, {}).load(t, f.add(context, offset))
        return f.resize(value, t.width, 64)

    def _field(self, name: str) -> tuple[Bits, int] | None:
        t = self.context.types[2]
        assert isinstance(t, Fields), t
        index = t.index(name)
        if index is None:
            return None
        offset = self.context.values[2] + self.unit.layouts.of(t).offsets[index]
        found = t.fields[index].type
        assert isinstance(found, Bits), found
        return found, offset

    # -- small functions ------------------------------------------------------------------------

    def fault(self, f: Function, site: Operand | int) -> None:
        """Drops a packet and tells why."""
        if not self.module.has("fault"):
            made = self.module.function("fault", "void", [("i64", "%site")], attributes="cold ")
            record = vectors.reserve(made, "messages", 24)
            cause = made.word("cause", "i64", fixed=False)
            for i, value in enumerate(("%site", cause, "0")):
                made.store("i64", value, made.add(record, 8 * i), 1)
            vectors.extend(made, "messages", 24)
            made.ret()
        f.call("void", "fault", ("i64", site))

    def count_drop(self, f: Function, where: str) -> None:
        address = f.word_address(f"drops: {where}")
        f.store("i64", f.binary("add", "i64", f.load("i64", address, 8), 1), address, 8)

    def run(self, f: Function, block: str, context: Operand, after: str) -> Operand:
        """Calls a block; at a fault tells of it and goes to `after`."""
        result = f.call("i32", block, ("ptr", context))
        self._check(f, result, after)
        return result

    def _check(self, f: Function, result: Operand, after: str) -> None:
        with f.when(f.compare("slt", "i32", result, 0)):
            self.fault(f, f.resize(f.op(f"sub i32 0, {result}"), 32, 64))
            f.go(after)

    def _preserve(self) -> None:
        """void preserve(i64 field list, ptr metadata, ptr fresh): only the list's fields."""
        params = [("i64", "%list"), ("ptr", "%from"), ("ptr", "%to")]
        f = self.module.function("preserve", "void", params)
        f.clear("%to", self.context.sizes[1])
        lists = FieldLists(self.context.types[1]).paths
        end, labels = f.label(), {number: f.label() for number in lists}
        f.choose("i64", "%list", end, list(labels.items()))
        for number, paths in lists.items():
            f.at(labels[number])
            for path, t in paths:
                at = self._offset(self.context.types[1], path)
                size = self.unit.layouts.of(t).size
                f.copy(f.add("%to", at), f.add("%from", at), size)
            f.go(end)
        f.at(end)
        f.ret()

    def _offset(self, t: Type, path: Path) -> int:
        offset = 0
        for index in path:
            assert isinstance(t, Fields), t
            offset += self.unit.layouts.of(t).offsets[index]
            t = t.fields[index].type
        return offset

    # -- copies ---------------------------------------------------------------------------------

    def _push(self, f: Function, context: Operand, replica: dict[str, Operand]) -> None:
        """Queues a copy for egress."""
        record = vectors.reserve(f, "queue", self.record_size)
        for name, value in replica.items():
            f.store("i64", value, f.add(record, DEPARTURE[name]), 8)
        f.copy(f.add(record, DEPARTURE_CONTEXT), context, self.context.size)
        vectors.extend(f, "queue", self.record_size)

    def _replicate(self) -> None:
        """void replicate(ptr context, i64 first replica, i64 count, i64 passes)"""
        params = [("ptr", "%c"), ("i64", "%first"), ("i64", "%count"), ("i64", "%passes")]
        f = self.module.function("replicate", "void", params, attributes="noinline ")
        self.context.clear_notes(f, "%c", keep=("truncate",))
        replicas = f.word("replicas")
        with f.count("%count") as i:
            at = f.binary("shl", "i64", f.binary("add", "i64", "%first", i), 4)
            replica = f.add(replicas, at)
            port, rid = f.load("i64", replica, 8), f.load("i64", f.add(replica, 8), 8)
            self._push(f, "%c", {"port": port, "rid": rid, "passes": "%passes"})
        f.ret()

    def _clone(self) -> None:
        """void clone(ptr packet, ptr metadata, i64 session, i64 list, i64 type, i64 passes)

        The packet's own metadata are lost: it is a copy already.
        """
        params = [("ptr", "%c"), ("ptr", "%meta"), ("i64", "%session"), ("i64", "%list"),
                  ("i64", "%type"), ("i64", "%passes")]  # fmt: skip
        f = self.module.function("clone", "void", params, attributes="noinline ")
        with f.unless(self.session_exists(f, "%session")):
            f.ret()
        passes = f.binary("add", "i64", "%passes", 1)
        with f.when(f.compare("uge", "i64", passes, PASS_LIMIT)):
            self.fault(f, self.externs.fault(CLONED_AGAIN))
            f.ret()
        first, count, truncate = self._session(f, "%session")
        whole = f.compare("eq", "i64", truncate, 0)
        self.context.set(f, "%c", "truncate", f.select(whole, "i64", str(NONE), truncate))
        meta = self.context.value(f, "%c", 1)
        f.call("void", "preserve", ("i64", "%list"), ("ptr", "%meta"), ("ptr", meta))
        f.clear(self.context.value(f, "%c", 2), self.context.sizes[2])
        self.put(f, "%c", "instance_type", "%type")
        args = (("ptr", "%c"), ("i64", first), ("i64", count), ("i64", passes))
        f.call("void", "replicate", *args)
        f.ret()

    def _session(self, f: Function, session: Operand) -> tuple[Operand, Operand, Operand]:
        row = self._session_row(f, session)
        first, count, truncate = (f.load("i64", f.add(row, 8 * i), 8) for i in range(3))
        return first, count, truncate

    def _session_row(self, f: Function, session: Operand) -> Operand:
        return f.add(f.word("sessions"), f.binary("shl", "i64", session, 5))

    def session_exists(self, f: Function, session: Operand) -> Operand:
        known = f.compare("ult", "i64", session, GROUPS)
        row = self._session_row(f, f.select(known, "i64", session, 0))
        exists = f.compare("ne", "i64", f.load("i64", f.add(row, 24), 8), 0)
        return f.binary("and", "i1", known, exists)

    # -- the end of a pass ----------------------------------------------------------------------

    def _deparse(self) -> None:
        """i64 deparse(ptr context, ptr target): what was emitted and the payload -> bytes, or a
        negative fault."""
        f = self.module.function("deparse", "i64", [("ptr", "%c"), ("ptr", "%target")])
        result = f.call("i32", "dep", ("ptr", "%c"), ("ptr", "%target"))
        with f.when(f.compare("slt", "i32", result, 0)):
            f.ret(f.resize(result, 32, 64, True))
        emitted = f.word("emitted", "i64", fixed=False)
        position = self.context.get(f, "%c", "position")
        left = f.binary("sub", "i64", self.context.get(f, "%c", "bits"), position)
        data = self.context.get(f, "%c", "data")
        odd = f.binary("and", "i64", f.binary("or", "i64", emitted, position), 7)
        slow, fast, end = f.label(), f.label(), f.label()
        f.branch(f.compare("ne", "i64", odd, 0), slow, fast)
        f.at(fast)
        source = f.add(data, f.binary("lshr", "i64", position, 3))
        target = f.add("%target", f.binary("lshr", "i64", emitted, 3))
        f.copy(target, source, f.binary("lshr", "i64", left, 3))
        f.go(end)
        f.at(slow)
        copy_bits(f, "%target", emitted, data, position, left)
        f.go(end)
        f.at(end)
        bits = f.binary("add", "i64", emitted, left)
        clear_rest(f, "%target", bits)
        size = f.binary("lshr", "i64", f.binary("add", "i64", bits, 7), 3)
        # "Not truncated" is -1, the greatest number when compared unsigned.
        most = self.context.get(f, "%c", "truncate")
        f.ret(f.intrinsic("llvm.umin.i64", "i64", ("i64", size), ("i64", most)))

    def room(self, f: Function, context: Operand) -> Operand:
        """The most bytes that deparsing can give."""
        size = f.binary("lshr", "i64", self.context.get(f, context, "bits"), 3)
        return f.binary("add", "i64", size, self.most + 16)

    def _come_again(self) -> None:
        """ptr come_again(i64 bytes, i64 type, i64 list, ptr metadata, i64 passes): a node with room
        for so many bytes; the caller fills it in and takes it into `again`."""
        params = [("i64", "%room"), ("i64", "%type"), ("i64", "%list"), ("ptr", "%meta"),
                  ("i64", "%passes")]  # fmt: skip
        f = self.module.function("come_again", "ptr", params)
        node = vectors.reserve(f, "again", self.node_size)
        end = f.binary("add", "i64", vectors.length(f, "again"), self.node_size)
        with f.when(f.compare("ugt", "i64", end, f.word("nodes made", "i64", fixed=False))):
            f.store("ptr", "null", node, 8)
            f.store("i64", 0, f.add(node, NODE["capacity"]), 8)
            f.store("i64", end, f.word_address("nodes made"), 8)
        capacity = f.load("i64", f.add(node, NODE["capacity"]), 8)
        with f.when(f.compare("ult", "i64", capacity, "%room")):
            data = f.load("ptr", node, 8)
            bigger = f.binary("add", "i64", "%room", 512)
            data = f.intrinsic("realloc", "ptr", ("ptr", data), ("i64", bigger))
            f.store("ptr", data, node, 8)
            f.store("i64", bigger, f.add(node, NODE["capacity"]), 8)
        f.store("i64", "%type", f.add(node, NODE["type"]), 8)
        passes = f.binary("add", "i64", "%passes", 1)
        f.store("i64", passes, f.add(node, NODE["passes"]), 8)
        args = (("i64", "%list"), ("ptr", "%meta"), ("ptr", f.add(node, NODE_META)))
        f.call("void", "preserve", *args)
        f.ret(node)

    def node_of(
        self, f: Function, room: Operand, kind: InstanceType, name: str, context: Operand,
        passes: Operand,
    ) -> Operand:  # fmt: skip
        """A node for a packet that was resubmitted or recirculated (`name`: the note)."""
        meta, which = self.context.value(f, context, 1), self.context.get(f, context, name)
        args = (("i64", room), ("i64", int(kind)), ("i64", which), ("ptr", meta), ("i64", passes))
        return f.call("ptr", "come_again", *args)

    # -- egress ---------------------------------------------------------------------------------

    def _egress(self) -> None:
        """void egress(ptr context, i64 port, i64 rid, i64 passes)"""
        params = [("ptr", "%c"), ("i64", "%port"), ("i64", "%rid"), ("i64", "%passes")]
        f = self.module.function("egress", "void", params, attributes="noinline ")
        end = f.label()
        self._departing(f)
        self.run(f, "eg", "%c", end)
        self._clone_egress(f)
        spec = self.get(f, "%c", "egress_spec")
        with f.when(f.compare("eq", "i64", spec, DROP_PORT)):
            self.count_drop(f, "egress")
            f.go(end)
        self.run(f, "ck", "%c", end)
        again = f.compare("ne", "i64", self.context.get(f, "%c", "recirculate"), NONE)
        with f.when(again):
            kind = InstanceType.RECIRCULATED
            node = self.node_of(f, self.room(f, "%c"), kind, "recirculate", "%c", "%passes")
            target = f.load("ptr", node, 8)
            size = self._deparsed(f, target, end)
            f.store("i64", size, f.add(node, NODE["length"]), 8)
            vectors.extend(f, "again", self.node_size)
            f.go(end)
        size = self._deparsed(f, vectors.reserve(f, "out", self.room(f, "%c")), end)
        vectors.extend(f, "out", size)
        self._send(f)
        f.at(end)
        f.ret()

    def _deparsed(self, f: Function, target: Operand, after: str) -> Operand:
        size = f.call("i64", "deparse", ("ptr", "%c"), ("ptr", target))
        with f.when(f.compare("slt", "i64", size, 0)):
            self.fault(f, f.op(f"sub i64 0, {size}"))
            f.go(after)
        return size

    def _send(self, f: Function) -> None:
        record = vectors.reserve(f, "sent", 24)
        cause = f.word("cause", "i64", fixed=False)
        for i, value in enumerate(("%port", vectors.length(f, "out"), cause)):
            f.store("i64", value, f.add(record, 8 * i), 8)
        vectors.extend(f, "sent", 24)

    def _departing(self, f: Function) -> None:
        """Sets the standard metadata that egress finds."""
        length = f.binary("lshr", "i64", self.context.get(f, "%c", "bits"), 3)
        grown = f.binary("ashr", "i64", self.context.get(f, "%c", "grown"), 3)
        now = f.word("microseconds", "i64")
        self.put(f, "%c", "egress_port", "%port")
        self.put(f, "%c", "egress_rid", "%rid")
        self.put(f, "%c", "packet_length", f.binary("add", "i64", length, grown))
        self.put(f, "%c", "egress_global_timestamp", now)
        self.put(f, "%c", "enq_timestamp", now)
        for name in ("egress_spec", "enq_qdepth", "deq_timedelta", "deq_qdepth"):
            self.put(f, "%c", name, 0)
        self.context.set(f, "%c", "clone", NONE)

    def _clone_egress(self, f: Function) -> None:
        """To egress again as it is now, headers included."""
        session = self.context.get(f, "%c", "clone")
        with f.when(f.compare("ne", "i64", session, NONE)):
            which = self.context.get(f, "%c", "clone_list")
            copy = f.word("third packet")
            f.copy(copy, "%c", self.context.size)
            self._call_clone(f, copy, "%c", session, which, InstanceType.EGRESS_CLONE, "%passes")

    def _call_clone(
        self, f: Function, packet: Operand, original: Operand, session: Operand, which: Operand,
        kind: InstanceType, passes: Operand,
    ) -> None:  # fmt: skip
        meta = self.context.value(f, original, 1)
        args = (("ptr", packet), ("ptr", meta), ("i64", session), ("i64", which),
                ("i64", int(kind)), ("i64", passes))  # fmt: skip
        f.call("void", "clone", *args)

    # -- ingress --------------------------------------------------------------------------------

    def _arrive(self) -> None:
        """void arrive(ptr data, i64 size, i64 port, i64 type, ptr metadata or null, i64 passes)"""
        params = [("ptr", "%data"), ("i64", "%size"), ("i64", "%port"), ("i64", "%type"),
                  ("ptr", "%meta"), ("i64", "%passes")]  # fmt: skip
        f = self.module.function("arrive", "void", params)
        with f.when(f.compare("uge", "i64", "%passes", PASS_LIMIT)):
            self.fault(f, self.externs.fault(CAUSED_AGAIN))
            f.ret()
        vectors.set_length(f, "queue", 0)
        vectors.set_length(f, "digests", 0)
        c, depart = f.word("first packet"), f.label()
        self._begin(f, c)
        error = self.run(f, "parser", c, depart)
        self.put(f, c, "parser_error", f.resize(error, 32, 64))
        self.run(f, "vr", c, depart)
        self.put(f, c, "checksum_error", self.context.get(f, c, "checksum_error"))
        self.run(f, "ig", c, depart)
        self._clone_ingress(f, c, depart)
        self._tell_digests(f)
        self._after_ingress(f, c, depart)
        f.at(depart)
        self._departures(f)
        f.ret()

    def _begin(self, f: Function, c: Operand) -> None:
        """The values that parsing starts from."""
        self._fresh(f, c)
        with f.when(f.compare("ne", "ptr", "%meta", "null")):
            f.copy(self.context.value(f, c, 1), "%meta", self.context.sizes[1])
        self.put(f, c, "instance_type", "%type")
        self.put(f, c, "packet_length", "%size")
        normal = f.compare("eq", "i64", "%type", int(InstanceType.NORMAL))
        with f.when(normal):
            self.put(f, c, "ingress_port", "%port")
            self.put(f, c, "ingress_global_timestamp", f.word("microseconds", "i64"))

    def _fresh(self, f: Function, c: Operand) -> None:
        start = self.context.values[0]
        f.clear(f.add(c, start), self.context.size - start)
        self.context.set(f, c, "data", "%data")
        self.context.set(f, c, "bits", f.binary("shl", "i64", "%size", 3))
        self.context.set(f, c, "position", 0)
        self.context.set(f, c, "grown", 0)
        self.context.clear_notes(f, c)

    def _clone_ingress(self, f: Function, c: Operand, after: str) -> None:
        """To egress as it arrived: the packet is parsed anew."""
        session = self.context.get(f, c, "clone")
        with f.when(f.compare("ne", "i64", session, NONE)), \
             f.when(self.session_exists(f, session)):  # fmt: skip
            copy, which = f.word("second packet"), self.context.get(f, c, "clone_list")
            self._fresh(f, copy)
            self.put(f, copy, "ingress_port", "%port")
            self.run(f, "parser", copy, after)
            kind = InstanceType.INGRESS_CLONE
            self._call_clone(f, copy, c, session, which, kind, "%passes")

    def _tell_digests(self, f: Function) -> None:
        size = vectors.length(f, "digests")
        with f.when(f.compare("ne", "i64", size, 0)):
            f.copy(vectors.reserve(f, "messages", size), vectors.data(f, "digests"), size)
            vectors.extend(f, "messages", size)

    def _after_ingress(self, f: Function, c: Operand, depart: str) -> None:
        resubmit = self.context.get(f, c, "resubmit")
        with f.when(f.compare("ne", "i64", resubmit, NONE)):
            kind = InstanceType.RESUBMITTED
            node = self.node_of(f, "%size", kind, "resubmit", c, "%passes")
            f.copy(f.load("ptr", node, 8), "%data", "%size")
            f.store("i64", "%size", f.add(node, NODE["length"]), 8)
            vectors.extend(f, "again", self.node_size)
            f.go(depart)
        group = self.get(f, c, "mcast_grp")
        with f.when(f.compare("ne", "i64", group, 0)):
            self._multicast(f, c, group, depart)
        port = self.get(f, c, "egress_spec")
        with f.when(f.compare("eq", "i64", port, DROP_PORT)):
            self.count_drop(f, "ingress")
            f.go(depart)
        self._unicast(f, c, port, depart)

    def _multicast(self, f: Function, c: Operand, group: Operand, depart: str) -> None:
        row = f.add(f.word("groups"), f.binary("shl", "i64", group, 4))
        first, count = f.load("i64", row, 8), f.load("i64", f.add(row, 8), 8)
        with f.when(f.compare("eq", "i64", count, 0)):
            lost = f.item(f.word("lost groups"), "i64", group)
            f.store("i64", f.binary("add", "i64", f.load("i64", lost, 8), 1), lost, 8)
            self.count_drop(f, "groups")
            f.go(depart)
        self.put(f, c, "instance_type", int(InstanceType.REPLICATED))
        args = (("ptr", c), ("i64", first), ("i64", count), ("i64", "%passes"))
        f.call("void", "replicate", *args)
        f.go(depart)

    def _unicast(self, f: Function, c: Operand, port: Operand, depart: str) -> None:
        """Through egress at once, unless clones are to go before."""
        self.put(f, c, "instance_type", int(InstanceType.NORMAL))
        rid = self.get(f, c, "egress_rid")
        with f.when(f.compare("ne", "i64", vectors.length(f, "queue"), 0)):
            self._push(f, c, {"port": port, "rid": rid, "passes": "%passes"})
            f.go(depart)
        args = (("ptr", c), ("i64", port), ("i64", rid), ("i64", "%passes"))
        f.call("void", "egress", *args)
        f.go(depart)

    def _departures(self, f: Function) -> None:
        """All that is queued for egress, and what egress queues."""
        at, c = f.variable("i64", 0), f.word("first packet")
        with f.loop() as end:
            more = f.label()
            f.branch(f.compare("ult", "i64", at.get(), vectors.length(f, "queue")), more, end)
            f.at(more)
            record = f.add(vectors.data(f, "queue"), at.get())
            row = {n: f.load("i64", f.add(record, o), 8) for n, o in DEPARTURE.items()}
            f.copy(c, f.add(record, DEPARTURE_CONTEXT), self.context.size)
            args = (("ptr", c), *(("i64", row[n]) for n in DEPARTURE))
            f.call("void", "egress", *args)
            at.increase(self.record_size)

    # -- entry points ---------------------------------------------------------------------------

    def _process(self) -> None:
        params = [("ptr", "%ports"), ("ptr", "%data"), ("ptr", "%offsets"), ("i64", "%count")]
        f = self.module.function("process", "void", params, exported=True)
        with f.count("%count") as i:
            f.store("i64", i, f.word_address("cause"), 8)
            start = f.load("i64", f.item("%offsets", "i64", i), 8)
            end = f.load("i64", f.item("%offsets", "i64", f.binary("add", "i64", i, 1)), 8)
            port = f.load("i64", f.item("%ports", "i64", i), 8)
            vectors.set_length(f, "again", 0)
            data, size = f.add("%data", start), f.binary("sub", "i64", end, start)
            self._call_arrive(f, data, size, port, "0", "null", "0")
            with f.when(f.compare("ne", "i64", vectors.length(f, "again"), 0)):
                f.call("void", "again")
        f.ret()
        self._again()

    def _call_arrive(self, f: Function, *args: Operand) -> None:
        kinds = ("ptr", "i64", "i64", "i64", "ptr", "i64")
        f.call("void", "arrive", *zip(kinds, args, strict=True))

    def _again(self) -> None:
        """void again(): runs the waiting packets until none is left, or too many passes are."""
        f = self.module.function("again", "void", [], attributes="noinline ")
        at, passes = f.variable("i64", 0), f.variable("i64", 1)
        with f.loop() as end:
            more = f.label()
            f.branch(f.compare("ult", "i64", at.get(), vectors.length(f, "again")), more, end)
            f.at(more)
            full = f.compare("uge", "i64", passes.get(), self.passes)
            with f.when(full):
                left = f.binary("sub", "i64", vectors.length(f, "again"), at.get())
                count = f.alloca(8)
                f.store("i64", f.binary("udiv", "i64", left, self.node_size), count, 8)
                tell(f, self.unit, "messages", self.storm, count, 8)
                f.ret()
            node = f.add(vectors.data(f, "again"), at.get())
            data = f.load("ptr", node, 8)
            row = {n: f.load("i64", f.add(node, NODE[n]), 8) for n in ("length", "type", "passes")}
            meta = f.add(node, NODE_META)
            self._call_arrive(f, data, row["length"], "0", row["type"], meta, row["passes"])
            at.increase(self.node_size)
            passes.increase()
        f.ret()

    def _once(self) -> None:
        params = [("ptr", "%data"), ("i64", "%size"), ("i64", "%port"), ("i64", "%type"),
                  ("ptr", "%meta"), ("i64", "%passes")]  # fmt: skip
        f = self.module.function("once", "void", params, exported=True)
        f.store("i64", 0, f.word_address("cause"), 8)
        vectors.set_length(f, "again", 0)
        self._call_arrive(f, "%data", "%size", "%port", "%type", "%meta", "%passes")
        f.ret()

    def _release(self) -> None:
        f = self.module.function("release", "void", [], exported=True)
        nodes = vectors.data(f, "again")
        with f.count(f.word("nodes made", "i64", fixed=False)) as at:
            whole = f.binary("urem", "i64", at, self.node_size)
            with f.when(f.compare("eq", "i64", whole, 0)):
                f.intrinsic("free", "void", ("ptr", f.load("ptr", f.add(nodes, at), 8)))
        for name in vectors.NAMES:
            f.intrinsic("free", "void", ("ptr", vectors.data(f, name)))
        f.ret()
