"""v1model's way of a packet as native code: gradplane.switch.arch.v1model, step by step.

process(ptr ports, ptr data, ptr offsets, i64 count): packets with all that comes of them.
once(ptr data, i64 size, i64 port, i64 type, ptr meta, i64 passes): one pass.
release(): frees what the code allocated.

What leaves is appended to vector `out`, with a record (port, end in `out`, cause) in `sent`. What
comes again is in vector `again`, as nodes: bytes (ptr, capacity, length), type, passes, metadata.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradplane.switch.arch.v1model import PASS_LIMIT
from gradplane.switch.arch.v1packet import DROP_PORT, InstanceType
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit import vectors
from gradplane.switch.jit.blocks import control_function, deparser_function
from gradplane.switch.jit.context import NONE, Context
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import Externs, tell
from gradplane.switch.jit.parsers import parser_function
from gradplane.switch.jit.text import Function, Operand
from gradplane.switch.jit.traffic import (
    DEPARTURE,
    DEPARTURE_CONTEXT,
    NODE,
    NODE_META,
    Traffic,
)

CAUSED_AGAIN = f"a packet came round {PASS_LIMIT} times"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What the engine must know of the code: the layout of a packet's memory, a node's size."""

    context: Context
    node_size: int


def build(unit: Unit, program: ir.Program, externs: Externs, passes: int) -> Pipeline:
    """Compiles a v1model program; `passes`: the most that one injected packet may take."""
    return _Builder(unit, program, externs, passes).build()


class _Builder(Traffic):
    """Writes all functions of a program."""

    def build(self) -> Pipeline:
        calls = self.externs
        parser_function(self.unit, "parser", self.parser, self.context, calls)
        for name in ("vr", "ig", "eg", "ck"):
            control_function(self.unit, name, self.control(name), self.context, calls)
        dep = self.control("dep")
        self.most = deparser_function(self.unit, "dep", dep, self.context, calls)
        self.write_preserve()
        self.write_replicate()
        self.write_clone()
        self.write_deparse()
        self.write_come_again()
        self._egress()
        self._arrive()
        self._process()
        self._once()
        self._release()
        return Pipeline(self.context, self.node_size)

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
            self.push(f, c, {"port": port, "rid": rid, "passes": "%passes"})
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
                tell(f, "messages", self.storm, count, 8)
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
        made = f.binary("udiv", "i64", f.word("nodes made", "i64", fixed=False), self.node_size)
        with f.count(made) as i:
            node = f.add(nodes, f.binary("mul", "i64", i, self.node_size))
            f.intrinsic("free", "void", ("ptr", f.load("ptr", node, 8)))
        for name in vectors.NAMES:
            f.intrinsic("free", "void", ("ptr", vectors.data(f, name)))
        f.ret()
