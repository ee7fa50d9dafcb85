"""v1model as machine code: gradplane.switch.arch.v1model.pipeline, step by step."""

from __future__ import annotations

from gradplane.switch.arch.native_blocks import NativeBlocks
from gradplane.switch.arch.v1model.field_lists import FieldLists, Path
from gradplane.switch.arch.v1model.packet import COPYING, PIPELINE, InstanceType
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields
from gradplane.switch.jit import native_vectors
from gradplane.switch.jit.entry_points import ARRIVE, NODE_META, WAITING
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import Externs
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.packet_context import NONE
from gradplane.switch.jit.traffic_manager import Traffic
from gradplane.switch.runtime.egress_queues import QUEUES

NOTES = ("truncate", "clone", "resubmit", "recirculate")  # of calls
# A record in the queue: these, and the packet's context.
DEPARTURE = {"port": 0, "rid": 8, "passes": 16}
QUEUEING = {"enq_timestamp": 24, "enq_qdepth": 32, "deq_timedelta": 40, "deq_qdepth": 48}
DEPARTURE_CONTEXT = 64


class V1Traffic(Traffic):
    """The functions of a v1model program."""

    def __init__(self, unit: Unit, program: ir.Program, externs: Externs, passes: int) -> None:
        super().__init__(unit, program, externs, passes)
        self.drops = {
            place: f"{place}: egress_spec is {unit.drop_port}" for place in ("ingress", "egress")
        }
        notes = (*NOTES, "clone_list", "checksum_error")
        self.pipeline = NativeBlocks(self, program.package, PIPELINE, notes)
        self.context = self.pipeline.context
        self.lists = FieldLists(
            self.context.types["meta"], [program.package.control(name) for name in COPYING]
        )
        # The standard metadata lie behind the metadata: both are kept as one.
        last = "standard" if self.lists.standard else "meta"
        self.meta_size = self._kept_at(last) + self.context.sizes[last]
        self.record_size = DEPARTURE_CONTEXT + self.context.size

    def memory(self) -> dict[str, int]:
        names = ("first packet", "second packet", "third packet")
        return dict.fromkeys(names, self.context.size)

    def blocks(self) -> None:
        self.pipeline.write()
        self._preserve()
        self._replicate()
        self._clone()
        self._egress()

    def put(self, f: Function, c: Operand, name: str, value: Operand | int) -> None:
        """Set a field of the standard metadata."""
        self.pipeline.put(f, c, "standard", **{name: value})

    def get(self, f: Function, c: Operand, name: str) -> Operand:
        """Return a field of the standard metadata, as i64."""
        return self.pipeline.get(f, c, "standard", name)

    def _clear_notes(self, f: Function, c: Operand, keep: tuple[str, ...] = ()) -> None:
        """Set the notes as they are before any extern is called."""
        for name in NOTES:
            if name not in keep:
                self.context.set(f, c, name, NONE)
        self.context.set(f, c, "checksum_error", 0)
        self._clear_direct(f, c)

    def _clear_direct(self, f: Function, c: Operand) -> None:
        for offset in self.context.direct.values():
            f.store("i64", 0, f.add(c, offset), 8)

    # -- copies ---------------------------------------------------------------------------------

    def _preserve(self) -> None:
        """Write void preserve(i64 field list, ptr metadata, ptr fresh): copies a list's fields."""
        params = [("i64", "%list"), ("ptr", "%from"), ("ptr", "%to")]
        f = self.module.function("preserve", "void", params)
        f.clear("%to", self.meta_size)
        lists = self.lists.paths
        end, labels = f.label(), {number: f.label() for number in lists}
        f.choose("i64", "%list", end, list(labels.items()))
        for number, paths in lists.items():
            f.at(labels[number])
            for path, t in paths:
                at, size = self._offset(path), self.unit.layouts.of(t).size
                f.copy(f.add("%to", at), f.add("%from", at), size)
            f.go(end)
        f.at(end)
        f.ret()

    def _kept_at(self, name: str) -> int:
        """Return a value's offset from the metadata."""
        return self.context.values[name] - self.context.values["meta"]

    def _offset(self, path: Path) -> int:
        name = ("meta", "standard")[path[0]]
        offset, t = self._kept_at(name), self.context.types[name]
        for index in path[1:]:
            assert isinstance(t, Fields), t
            offset += self.unit.layouts.of(t).offsets[index]
            t = t.fields[index].type
        return offset

    def _push(self, f: Function, context: Operand, replica: dict[str, Operand]) -> None:
        """Pass a replica on to egress."""
        fields: dict[str, Operand | int] = {**replica, **self._not_waited(f, replica["port"])}
        record = self.new_record(f, DEPARTURE | QUEUEING, fields)
        f.copy(f.add(record, DEPARTURE_CONTEXT), context, self.context.size)
        size = f.binary("lshr", "i64", self.context.get(f, context, "bits"), 3)
        data, priority = self.context.get(f, context, "data"), self.get(f, context, "priority")
        self.enqueue(f, record, replica["port"], priority, data, size)

    def restore(self, f: Function, record: Operand, head: Operand, data: Operand) -> None:
        for name, place in QUEUEING.items():
            f.store("i64", f.load("i64", f.add(head, WAITING[name]), 8), f.add(record, place), 8)
        context = f.add(record, DEPARTURE_CONTEXT)
        self.context.set(f, context, "data", data)
        self._clear_direct(f, context)

    @staticmethod
    def _not_waited(f: Function, port: Operand) -> dict[str, Operand | int]:
        """Return the queueing metadata of a packet that did not wait here; others may wait at the
        port's interface."""
        at = f.binary("shl", "i64", f.binary("and", "i64", port, QUEUES - 1), 3)
        queued = f.load("i64", f.add(f.word("queued"), at), 8)
        now = f.word("microseconds", "i64")
        return dict(zip(QUEUEING, (now, queued, 0, queued), strict=True))

    def _replicate(self) -> None:
        """Write void replicate(ptr context, i64 first replica, i64 count, i64 passes)."""
        params = [("ptr", "%c"), ("i64", "%first"), ("i64", "%count"), ("i64", "%passes")]
        f = self.module.function("replicate", "void", params, attributes="noinline ")
        self._clear_notes(f, "%c", keep=("truncate",))
        with f.count("%count") as i:
            port, rid = self.replica(f, f.binary("add", "i64", "%first", i))
            self._push(f, "%c", {"port": port, "rid": rid, "passes": "%passes"})
        f.ret()

    def _clone(self) -> None:
        """Write void clone(ptr packet, ptr metadata, i64 session, i64 list, i64 type, i64 passes).

        The packet's own metadata is overwritten: the packet is a copy already.
        """
        params = [("ptr", "%c"), ("ptr", "%meta"), ("i64", "%session"), ("i64", "%list"),
                  ("i64", "%type"), ("i64", "%passes")]  # fmt: skip
        f = self.module.function("clone", "void", params, attributes="noinline ")
        first, count, truncate, _, passes = self.open_session(f, "%session", "%passes")
        whole = f.compare("eq", "i64", truncate, 0)
        self.context.set(f, "%c", "truncate", f.select(whole, "i64", str(NONE), truncate))
        meta = self.context.value(f, "%c", "meta")
        if not self.lists.standard:
            f.clear(self.context.value(f, "%c", "standard"), self.context.sizes["standard"])
        f.call("void", "preserve", ("i64", "%list"), ("ptr", "%meta"), ("ptr", meta))
        self.put(f, "%c", "instance_type", "%type")
        args = (("ptr", "%c"), ("i64", first), ("i64", count), ("i64", passes))
        f.call("void", "replicate", *args)
        f.ret()

    def _call_clone(
        self, f: Function, packet: Operand, original: Operand, session: Operand, which: Operand,
        kind: InstanceType, passes: Operand,
    ) -> None:  # fmt: skip
        meta = self.context.value(f, original, "meta")
        args = (("ptr", packet), ("ptr", meta), ("i64", session), ("i64", which),
                ("i64", int(kind)), ("i64", passes))  # fmt: skip
        f.call("void", "clone", *args)

    def _node_of(
        self, f: Function, room: Operand, kind: InstanceType, name: str, context: Operand
    ) -> Operand:
        """Make the node of a packet that is resubmitted or recirculated (`name`: the note)."""
        node = self.node(f, room, int(kind), 0, "%passes")
        which, meta = self.context.get(f, context, name), self.context.value(f, context, "meta")
        args = (("i64", which), ("ptr", meta), ("ptr", f.add(node, NODE_META)))
        f.call("void", "preserve", *args)
        return node

    # -- egress ---------------------------------------------------------------------------------

    def _egress(self) -> None:
        """Write void egress(ptr context, i64 port, i64 rid, i64 passes)."""
        params = [("ptr", "%c"), ("i64", "%port"), ("i64", "%rid"), ("i64", "%passes")]
        f = self.module.function("egress", "void", params, attributes="noinline ")
        end = f.label()
        self._departing(f)
        self.run(f, "eg", "%c", end)
        self._clone_egress(f)
        spec = self.get(f, "%c", "egress_spec")
        with f.when(f.compare("eq", "i64", spec, self.unit.drop_port)):
            self.count_drop(f, "egress")
            f.go(end)
        self.run(f, "ck", "%c", end)
        room = self.pipeline.room(f, "%c")
        again = f.compare("ne", "i64", self.context.get(f, "%c", "recirculate"), NONE)
        with f.when(again):
            node = self._node_of(f, room, InstanceType.RECIRCULATED, "recirculate", "%c")
            self.take_node(f, node, self.pipeline.deparse(f, "%c", f.load("ptr", node, 8), end))
            f.go(end)
        size = self.pipeline.deparse(f, "%c", native_vectors.reserve(f, "out", room), end)
        # "Not truncated" is -1, the greatest number when compared unsigned.
        most = self.context.get(f, "%c", "truncate")
        self.send(f, "%port", f.intrinsic("llvm.umin.i64", "i64", ("i64", size), ("i64", most)))
        f.at(end)
        f.ret()

    def _departing(self, f: Function) -> None:
        """Set the standard metadata that egress finds but what concerns queues."""
        length = f.binary("lshr", "i64", self.context.get(f, "%c", "bits"), 3)
        grown = f.binary("ashr", "i64", self.context.get(f, "%c", "grown"), 3)
        now = f.word("microseconds", "i64")
        self.put(f, "%c", "egress_port", "%port")
        self.put(f, "%c", "egress_rid", "%rid")
        self.put(f, "%c", "packet_length", f.binary("add", "i64", length, grown))
        self.put(f, "%c", "egress_global_timestamp", now)
        self.put(f, "%c", "egress_spec", 0)
        self.context.set(f, "%c", "clone", NONE)

    def _clone_egress(self, f: Function) -> None:
        """Clone the packet to egress as it is now, headers included."""
        session = self.context.get(f, "%c", "clone")
        with f.when(f.compare("ne", "i64", session, NONE)):
            which = self.context.get(f, "%c", "clone_list")
            copy = f.word("third packet")
            f.copy(copy, "%c", self.context.size)
            self._call_clone(f, copy, "%c", session, which, InstanceType.EGRESS_CLONE, "%passes")

    # -- ingress --------------------------------------------------------------------------------

    def arrive(self) -> None:
        f = self.module.function("arrive", "void", ARRIVE)
        self.start_pass(f)
        c, depart = f.word("first packet"), f.label()
        self._begin(f, c)
        error = self.pipeline.run(f, "p", c, depart)
        if none := self.unit.errors["NoError"]:
            error = f.select(f.compare("eq", "i64", error, 0), "i64", none, error)
        self.put(f, c, "parser_error", error)
        self.run(f, "vr", c, depart)
        self.put(f, c, "checksum_error", self.context.get(f, c, "checksum_error"))
        self.run(f, "ig", c, depart)
        self._clone_ingress(f, c, depart)
        self.send_digests(f)
        self._after_ingress(f, c, depart)
        f.at(depart)
        self.departures(f)
        f.ret()

    def _begin(self, f: Function, c: Operand) -> None:
        """Set the values that parsing starts from."""
        self._fresh(f, c)
        with f.when(f.compare("ne", "ptr", "%meta", "null")):
            f.copy(self.context.value(f, c, "meta"), "%meta", self.meta_size)
        self.put(f, c, "instance_type", "%kind")
        self.put(f, c, "packet_length", "%size")
        normal = f.compare("eq", "i64", "%kind", int(InstanceType.NORMAL))
        with f.when(normal):
            self.put(f, c, "ingress_port", "%port")
            self.put(f, c, "ingress_global_timestamp", f.word("microseconds", "i64"))

    def _fresh(self, f: Function, c: Operand) -> None:
        self.context.begin(f, c, "%data", "%size")
        self._clear_notes(f, c)

    def _clone_ingress(self, f: Function, c: Operand, after: str) -> None:
        """Clone the packet to egress as it arrived: it is parsed anew."""
        session = self.context.get(f, c, "clone")
        with f.when(f.compare("ne", "i64", session, NONE)), \
             f.when(self.session_exists(f, session)):  # fmt: skip
            copy, which = f.word("second packet"), self.context.get(f, c, "clone_list")
            self._fresh(f, copy)
            self.put(f, copy, "ingress_port", "%port")
            self.run(f, "p", copy, after)
            kind = InstanceType.INGRESS_CLONE
            self._call_clone(f, copy, c, session, which, kind, "%passes")

    def _after_ingress(self, f: Function, c: Operand, depart: str) -> None:
        resubmit = self.context.get(f, c, "resubmit")
        with f.when(f.compare("ne", "i64", resubmit, NONE)):
            node = self._node_of(f, "%size", InstanceType.RESUBMITTED, "resubmit", c)
            f.copy(f.load("ptr", node, 8), "%data", "%size")
            self.take_node(f, node, "%size")
            f.go(depart)
        group = self.get(f, c, "mcast_grp")
        with f.when(f.compare("ne", "i64", group, 0)):
            first, count = self.members(f, group, depart)
            self.put(f, c, "instance_type", int(InstanceType.REPLICATED))
            self.context.set(f, c, "truncate", NONE)  # as in simple_switch: replicas are whole
            args = (("ptr", c), ("i64", first), ("i64", count), ("i64", "%passes"))
            f.call("void", "replicate", *args)
            f.go(depart)
        port = self.get(f, c, "egress_spec")
        with f.when(f.compare("eq", "i64", port, self.unit.drop_port)):
            self.count_drop(f, "ingress")
            f.go(depart)
        self._unicast(f, c, port, depart)

    def _unicast(self, f: Function, c: Operand, port: Operand, depart: str) -> None:
        """Pass egress at once, unless clones go first or ports have queues."""
        self.put(f, c, "instance_type", int(InstanceType.NORMAL))
        rid = self.get(f, c, "egress_rid")
        waits = f.op(f"xor i1 {self.queue_is_empty(f)}, true")
        with f.when(f.binary("or", "i1", waits, self.engaged(f))):
            self._push(f, c, {"port": port, "rid": rid, "passes": "%passes"})
            f.go(depart)
        for name, value in self._not_waited(f, port).items():
            self.put(f, c, name, value)
        args = (("ptr", c), ("i64", port), ("i64", rid), ("i64", "%passes"))
        f.call("void", "egress", *args)
        f.go(depart)

    def departures(self, f: Function) -> None:
        c = f.word("first packet")
        with self.queued(f, self.record_size) as record:
            row = {n: f.load("i64", f.add(record, o), 8) for n, o in DEPARTURE.items()}
            times = {n: f.load("i64", f.add(record, o), 8) for n, o in QUEUEING.items()}
            f.copy(c, f.add(record, DEPARTURE_CONTEXT), self.context.size)
            for name, value in times.items():
                self.put(f, c, name, value)
            args = (("ptr", c), *(("i64", row[n]) for n in DEPARTURE))
            f.call("void", "egress", *args)
