"""v1model's traffic manager as native code: clones, replicas, packets that come again.

See gradplane.switch.arch.v1model, whose steps these are.
"""

from __future__ import annotations

from gradplane.switch.arch.fieldlists import FieldLists, Path
from gradplane.switch.arch.v1model import PASS_LIMIT
from gradplane.switch.arch.v1packet import InstanceType
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Fields, Type
from gradplane.switch.jit import vectors
from gradplane.switch.jit.context import NONE, make_context
from gradplane.switch.jit.expressions import Expressions, Unit
from gradplane.switch.jit.externs import Externs, Site
from gradplane.switch.jit.headers import clear_rest, copy_bits
from gradplane.switch.jit.text import Function, Operand

NODE = {"data": 0, "capacity": 8, "length": 16, "type": 24, "passes": 32}
NODE_META = 40
DEPARTURE = {"port": 0, "rid": 8, "passes": 16}
DEPARTURE_CONTEXT = 64
GROUPS = 1 << 16  # multicast groups and clone sessions that can exist
CLONED_AGAIN = f"a packet was cloned {PASS_LIMIT} times in a row"


class Traffic:
    """Copies of packets, what becomes of them, and the standard metadata; writes the functions
    that ingress and egress call."""

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

    def control(self, name: str) -> ir.Control:
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
        self.check(f, result, after)
        return result

    def check(self, f: Function, result: Operand, after: str) -> None:
        with f.when(f.compare("slt", "i32", result, 0)):
            self.fault(f, f.resize(f.op(f"sub i32 0, {result}"), 32, 64))
            f.go(after)

    def write_preserve(self) -> None:
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

    def push(self, f: Function, context: Operand, replica: dict[str, Operand]) -> None:
        """Queues a copy for egress."""
        record = vectors.reserve(f, "queue", self.record_size)
        for name, value in replica.items():
            f.store("i64", value, f.add(record, DEPARTURE[name]), 8)
        f.copy(f.add(record, DEPARTURE_CONTEXT), context, self.context.size)
        vectors.extend(f, "queue", self.record_size)

    def write_replicate(self) -> None:
        """void replicate(ptr context, i64 first replica, i64 count, i64 passes)"""
        params = [("ptr", "%c"), ("i64", "%first"), ("i64", "%count"), ("i64", "%passes")]
        f = self.module.function("replicate", "void", params, attributes="noinline ")
        self.context.clear_notes(f, "%c", keep=("truncate",))
        replicas = f.word("replicas")
        with f.count("%count") as i:
            at = f.binary("shl", "i64", f.binary("add", "i64", "%first", i), 4)
            replica = f.add(replicas, at)
            port, rid = f.load("i64", replica, 8), f.load("i64", f.add(replica, 8), 8)
            self.push(f, "%c", {"port": port, "rid": rid, "passes": "%passes"})
        f.ret()

    def write_clone(self) -> None:
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

    def write_deparse(self) -> None:
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

    def write_come_again(self) -> None:
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
