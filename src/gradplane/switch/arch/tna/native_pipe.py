"""One pipeline of a TNA program as machine code: its passes through ingress and egress.

A packet in ingress is in vector `arriving`, behind the chip's header. Bytes of packets between the
pipelines are in vector `between`, each behind room for the egress header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane.switch.arch.native_blocks import NativeBlocks
from gradplane.switch.arch.tna import true_accounting
from gradplane.switch.arch.tna.chips import FCS, INGRESS_HEADER, LOCAL_PORTS, PIPE_BITS, RESUBMIT
from gradplane.switch.arch.tna.layouts import EGRESS, GROUPS, INGRESS, PORT, is_set, layout
from gradplane.switch.arch.tna.mirroring import (
    MIRROR_SESSION,
    MIRROR_SIZE,
    RESUBMIT_HEADER,
    RESUBMIT_SIZE,
)
from gradplane.switch.arch.tna.parser_choices import parsers_of_ports
from gradplane.switch.arch.tna.parser_errors import flags_of, reads_errors
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Header, bit_width
from gradplane.switch.jit import native_memory
from gradplane.switch.jit.entry_points import ARRIVE, DEFLECTED, NODE_META
from gradplane.switch.jit.expressions import Expressions, Unit
from gradplane.switch.jit.externs import Site, post
from gradplane.switch.jit.headers import HeaderCodecs
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.value_layout import NONE, scalar_width
from gradplane.switch.runtime.egress_queues import QUEUES

if TYPE_CHECKING:
    from gradplane.switch.arch.tna.native_pipeline import TnaTraffic

# A record of a packet that goes to egress, and the parameters of its pass: `at` is of the room for
# the header in `between`, `size` of the packet. waited: whether the packet was in a queue of the
# switch's own, which gives the times after it.
DEPARTURE = {"at": 0, "size": 8, "port": 16, "rid": 24, "first": 32, "queue": 40, "service": 48,
             "passes": 56, "waited": 64, "enq_timestamp": 72, "enq_qdepth": 80,
             "deq_timedelta": 88, "deq_qdepth": 96, "deflect": 104}  # fmt: skip
TIMES = ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth")
_NOTES = ("length", MIRROR_SESSION, MIRROR_SIZE, RESUBMIT_SIZE)
ROOM = 16  # bytes that may be written behind a packet's end


class NativePipe:
    """The functions of one pipeline: pipeN.ingress.pass and pipeN.egress.pass."""

    def __init__(self, traffic: TnaTraffic, package: ir.Package, number: int) -> None:
        self.traffic = traffic
        self.name = f"pipe{number}"
        prefix = f"{self.name}."
        self.ingress = NativeBlocks(traffic, package, layout(package, INGRESS), _NOTES, prefix)
        self.counted = true_accounting.notes(traffic.program)
        notes = (*_NOTES, *self.counted)
        self.egress = NativeBlocks(traffic, package, layout(package, EGRESS), notes, prefix)
        self.keeps_errors = reads_errors(package)
        self.parsers = {
            names[0]: parsers_of_ports(package, names[0], traffic.chip)
            for names in (INGRESS, EGRESS)
        }

    def memory(self) -> dict[str, int]:
        return {
            f"{self.name} ingress packet": self.ingress.context.size,
            f"{self.name} egress packet": self.egress.context.size,
        }

    def write(self) -> None:
        self.ingress.write()
        self.egress.write()
        self._ingress()
        self._egress()

    def _begin(
        self, f: Function, side: NativeBlocks, c: Operand, data: Operand, front: int, size: Operand
    ) -> None:
        """Begin with a packet of `size` bytes behind a front of so many."""
        context = side.context
        context.begin(f, c, data, f.binary("add", "i64", size, front))
        context.set(f, c, "length", f.binary("add", "i64", size, FCS))
        context.set(f, c, MIRROR_SESSION, NONE)
        context.set(f, c, RESUBMIT_SIZE, NONE)

    def _parse(self, f: Function, side: NativeBlocks, name: str, c: Operand, after: str) -> Operand:
        """Run a side's parser for %port; return its error as flags."""
        error = self._run_parser(f, side, name, c, after)
        flags = f.module.constant("i64", flags_of(self.traffic.program.errors))
        found = f.load("i64", f.item(flags, "i64", error), 8)
        now = f.word("nanoseconds", "i64")
        side.put(f, c, "parser", global_tstamp=now, parser_err=found)
        return found

    def _run_parser(
        self, f: Function, side: NativeBlocks, name: str, c: Operand, after: str
    ) -> Operand:
        """Run the parser of %port; return its error (i64)."""
        of_ports = self.parsers[name]
        names = list(dict.fromkeys(of_ports))
        if len(names) == 1:
            return side.run(f, names[0], c, after)
        numbers = f.module.constant("i64", [names.index(parser) for parser in of_ports])
        number = f.load("i64", f.item(numbers, "i64", "%port"), 8)
        error, end, labels = f.variable("i64", 0), f.label(), [f.label() for _ in names]
        f.choose("i64", number, end, list(enumerate(labels)))
        for parser, label in zip(names, labels, strict=True):
            f.at(label)
            error.set(side.run(f, parser, c, after))
            f.go(end)
        f.at(end)
        return error.get()

    # -- ingress --------------------------------------------------------------------------------

    def _send_digests(self, f: Function) -> None:
        """Send the digests of a packet that came by %port, behind its pipe."""
        with f.when(f.compare("ne", "i64", native_memory.length(f, "digests"), 0)):
            pipe = f.alloca(8)
            f.store("i64", f.binary("lshr", "i64", "%port", PIPE_BITS), pipe, 8)
            post(f, "messages", self.traffic.externs.site(Site("pipe", "")), pipe, 8)
        self.traffic.send_digests(f)

    def _ingress(self) -> None:
        traffic, side = self.traffic, self.ingress
        f = traffic.module.function(
            f"{self.name}.ingress.pass", "void", ARRIVE, attributes="noinline "
        )
        c, end = f.word(f"{self.name} ingress packet"), f.label()
        front = size_of(INGRESS_HEADER) + traffic.chip.port_metadata
        self._begin(f, side, c, self._arriving(f, front), front, "%size")
        flags = self._parse(f, side, "ingress_parser", c, end)
        if not self.keeps_errors:
            with f.when(f.compare("ne", "i64", flags, 0)):
                traffic.count_drop(f, "parser")
                f.go(end)
        traffic.run(f, f"{self.name}.ingress", c, end)
        room = f.binary("add", "i64", side.room(f, c), traffic.front + ROOM)
        target = f.add(native_memory.reserve(f, "between", room), traffic.front)
        size = side.deparse(f, c, target, end)
        native_memory.extend(f, "between", f.binary("add", "i64", size, traffic.front))
        self._send_digests(f)
        control = side.get(f, c, "deparser", "drop_ctl")
        self._mirror_ingress(f, c, control, size)
        self._resubmit(f, c, control, end)
        self._copies(f, c, control, size)
        f.go(end)
        f.at(end)
        f.ret()

    def _arriving(self, f: Function, front: int) -> Operand:
        """Copy the packet behind the ingress header and the metadata of its port."""
        room = f.binary("add", "i64", "%size", front + ROOM)
        data, size = native_memory.reserve(f, "arriving", room), size_of(INGRESS_HEADER)
        again = f.compare("eq", "i64", "%kind", RESUBMIT)
        flag, now = f.resize(again, 1, 64), f.word("nanoseconds", "i64")
        _put_header(
            self.traffic.unit, f, INGRESS_HEADER, data, resubmit_flag=flag, ingress_port="%port",
            ingress_mac_tstamp=now,
        )  # fmt: skip
        meta, count = f.add(data, size), front - size
        own = f.add(f.word("port metadata"), f.binary("mul", "i64", "%port", count))
        f.copy(meta, f.select(again, "ptr", "%meta", own), count)
        f.copy(f.add(data, front), "%data", "%size")
        return data

    def _mirror_ingress(self, f: Function, c: Operand, control: Operand, size: Operand) -> None:
        """Mirror the packet as it came or, on Tofino 2 if asked for, as it leaves."""
        side, context = self.ingress, self.ingress.context
        session = context.get(f, c, MIRROR_SESSION)
        with f.when(_both(f, f.compare("ne", "i64", session, NONE), _clear(f, control, 4))):
            head = context.get(f, c, MIRROR_SIZE)
            data, length = f.variable("ptr", "%data"), f.variable("i64", "%size")
            outgoing = side.get(f, c, "deparser", "mirror_io_select")
            with f.when(f.compare("ne", "i64", outgoing, 0)):
                # The copy goes behind the packet in one vector, which must not move meanwhile.
                room = f.binary("add", "i64", size, self.traffic.front + ROOM)
                native_memory.reserve(f, "between", f.binary("add", "i64", room, head))
                data.set(f.add(native_memory.data(f, "between"), self.traffic.front))
                length.set(size)
            args = (("i64", session), ("ptr", data.get()), ("i64", length.get()), ("i64", head),
                    ("i64", "%passes"))  # fmt: skip
            f.call("void", "mirror", *args)

    def _resubmit(self, f: Function, c: Operand, control: Operand, end: str) -> None:
        traffic = self.traffic
        size = self.ingress.context.get(f, c, RESUBMIT_SIZE)
        with f.when(_both(f, f.compare("ne", "i64", size, NONE), _clear(f, control, 1))):
            node = traffic.node(f, "%size", RESUBMIT, "%port", "%passes")
            f.copy(f.load("ptr", node, 8), "%data", "%size")
            f.clear(f.add(node, NODE_META), traffic.meta_size)
            f.copy(f.add(node, NODE_META), f.word(RESUBMIT_HEADER), size)
            traffic.take_node(f, node, "%size")
            f.go(end)

    def _copies(self, f: Function, c: Operand, control: Operand, size: Operand) -> None:
        """Make the copies that the traffic manager is asked for."""
        unicast = _set(f, self._tm(f, c, is_set(PORT)))
        cpu = _both(f, _set(f, self._tm(f, c, "copy_to_cpu")), _clear(f, control, 2))
        groups = [(self._tm(f, c, name), self._asked(f, c, name)) for name in GROUPS]
        some = f.binary("or", "i1", unicast, cpu)
        for _, asked in groups:
            some = f.binary("or", "i1", some, asked)
        with f.when(_clear(f, control, 1)):
            with f.when(unicast):
                port, rid = self._tm(f, c, PORT), self._tm(f, c, "rid")
                self._copy(f, c, port, rid, 0, size)
            for group, asked in groups:
                with f.when(asked):
                    self._multicast(f, c, group, size)
        with f.when(cpu):
            chosen = f.word("cpu port", "i64")
            known = f.compare("sge", "i64", chosen, 0)
            port = f.select(known, "i64", chosen, self.traffic.chip.cpu_port)
            self._copy(f, c, port, 0, 0, size)
        done = f.label()
        with f.unless(_clear(f, control, 1)):
            self.traffic.count_drop(f, "ingress")
            f.go(done)
        with f.unless(some):
            self.traffic.count_drop(f, "nowhere")
        f.go(done)
        f.at(done)

    def _tm(self, f: Function, c: Operand, name: str) -> Operand:
        return self.ingress.get(f, c, "tm", name)

    def _multicast(self, f: Function, c: Operand, group: Operand, size: Operand) -> None:
        after = f.label()
        start, count = self.traffic.members(f, group, after)
        with f.count(count) as i:
            number = f.binary("add", "i64", start, i)
            port, rid = self.traffic.replica(f, number)
            first = f.resize(f.compare("eq", "i64", i, 0), 1, 64)
            with f.unless(self._pruned(f, c, number, port, rid)):
                self._copy(f, c, port, rid, first, size)
        f.go(after)
        f.at(after)

    def _asked(self, f: Function, c: Operand, name: str) -> Operand:
        """Return whether a packet goes to a multicast group, as in the interpreter."""
        zero = _both(
            f, _set(f, self._tm(f, c, is_set(name))), _set(f, self.traffic.group_size(f, "0"))
        )
        return f.binary("or", "i1", _set(f, self._tm(f, c, name)), zero)

    def _pruned(
        self, f: Function, c: Operand, number: Operand, port: Operand, rid: Operand
    ) -> Operand:
        """Return whether exclusion keeps a replica from leaving, as in the interpreter."""
        own = f.load("i64", f.item(f.word("exclusions"), "i64", number), 8)
        first = f.compare("eq", "i64", own, self._tm(f, c, "level1_exclusion_id"))
        packet = self._tm(f, c, "rid")
        same = f.compare("eq", "i64", packet, rid)
        whole = f.compare("eq", "i64", packet, f.word("global rid", "i64"))
        row = f.binary(
            "mul",
            "i64",
            self._tm(f, c, "level2_exclusion_id"),
            self.traffic.chip.pipes * LOCAL_PORTS,
        )
        place = f.add(f.word("pruned"), f.binary("add", "i64", row, port))
        listed = f.compare("ne", "i8", f.load("i8", place, 1), 0)
        second = _both(f, f.binary("or", "i1", same, whole), listed)
        return f.binary("or", "i1", first, second)

    def _copy(
        self, f: Function, c: Operand, port: Operand, rid: Operand | int, first: Operand | int,
        size: Operand,
    ) -> None:  # fmt: skip
        names = ("qid", "ingress_cos", "bypass_egress", "deflect_on_drop")
        asked = [self._tm(f, c, name) for name in names]
        args = (port, rid, first, *asked, size, "%passes")
        f.call("void", "replicate", *(("i64", arg) for arg in args))

    # -- egress ---------------------------------------------------------------------------------

    def _egress(self) -> None:
        """Write void pipeN.egress.pass(i64 at, i64 size, ...), the fields of a record."""
        traffic, side = self.traffic, self.egress
        params = [("i64", f"%{name}") for name in DEPARTURE]
        f = traffic.module.function(
            f"{self.name}.egress.pass", "void", params, attributes="noinline "
        )
        c, end = f.word(f"{self.name} egress packet"), f.label()
        data = f.add(native_memory.data(f, "between"), "%at")
        self._egress_header(f, data)
        self._begin(f, side, c, data, traffic.front, "%size")
        true_accounting.start_native(f, side.context, c, self.counted)
        self._parse(f, side, "egress_parser", c, end)
        traffic.run(f, f"{self.name}.egress", c, end)
        target = native_memory.reserve(f, "out", side.room(f, c))
        size = side.deparse(f, c, target, end)
        more = f.binary("sub", "i64", size, "%size")
        true_accounting.correct_native(f, side.context, c, self.counted, more)
        control = side.get(f, c, "deparser", "drop_ctl")
        session = side.context.get(f, c, MIRROR_SESSION)
        with f.when(_both(f, f.compare("ne", "i64", session, NONE), _clear(f, control, 4))):
            head = side.context.get(f, c, MIRROR_SIZE)
            args = (("i64", session), ("ptr", target), ("i64", size), ("i64", head),
                    ("i64", "%passes"))  # fmt: skip
            f.call("void", "mirror", *args)
        with f.unless(_clear(f, control, 1)):
            traffic.count_drop(f, "egress")
            f.go(end)
        with f.when(traffic.recirculates(f, "%port")):
            traffic.take_in(f, target, size, "%port", "%passes")
            f.go(end)
        traffic.send(f, "%port", size)
        f.go(end)
        f.at(end)
        f.ret()

    def _egress_header(self, f: Function, data: Operand) -> None:
        at = f.binary("shl", "i64", f.binary("and", "i64", "%port", QUEUES - 1), 3)
        queued = f.load("i64", f.add(f.word("queued"), at), 8)
        now = f.word("microseconds", "i64")
        deflected = f.resize(f.compare("eq", "i64", "%deflect", DEFLECTED), 1, 64)
        waited = f.compare("ne", "i64", "%waited", 0)
        times = dict(zip(TIMES, (now, queued, "0", queued), strict=True))
        enq_time, enq_depth, delta, deq_depth = (
            f.select(waited, "i64", f"%{name}", value) for name, value in times.items()
        )
        _put_header(
            self.traffic.unit, f, self.traffic.chip.egress_header, data, egress_port="%port",
            enq_qdepth=enq_depth, enq_tstamp=f.binary("mul", "i64", enq_time, 1000),
            deq_qdepth=deq_depth, deq_timedelta=f.binary("mul", "i64", delta, 1000),
            egress_rid="%rid", egress_rid_first="%first", egress_qid="%queue",
            egress_cos="%service", deflection_flag=deflected,
            pkt_length=f.binary("add", "i64", "%size", FCS),
        )  # fmt: skip


def _put_header(
    unit: Unit, f: Function, t: Header, target: Operand, **fields: Operand | int
) -> None:
    """Write a header that the chip puts in front of packets, from i64."""
    place = unit.layouts.of(t)
    header = f.alloca(place.size, max(place.align, 8))
    f.clear(header, place.size)
    for field, offset in zip(t.fields, place.offsets, strict=True):
        if field.name in fields:
            value = str(fields[field.name])
            if value.startswith("%"):
                value = f.resize(value, 64, scalar_width(field.type))
            Expressions(unit, f, {}).put(field.type, value, f.add(header, offset))
    HeaderCodecs(unit).encode(f, t, header, target)


def size_of(t: Header) -> int:
    """Return the bytes of a header of fixed size."""
    return (bit_width(t) or 0) // 8


def _set(f: Function, value: Operand) -> Operand:
    return f.compare("ne", "i64", value, 0)


def _clear(f: Function, control: Operand, bit: int) -> Operand:
    """Return whether a bit of drop_ctl is clear."""
    return f.compare("eq", "i64", f.binary("and", "i64", control, bit), 0)


def _both(f: Function, a: Operand, b: Operand) -> Operand:
    return f.binary("and", "i1", a, b)
