"""PSA as machine code: gradplane.switch.arch.psa.pipeline, step by step.

Bytes of packets between the pipelines are in vector `between`, and records of the packets that
wait for egress, with their metadata, in `queue`.
"""

from __future__ import annotations

from gradplane.switch.arch.native_blocks import NativeBlocks
from gradplane.switch.arch.psa import PORT_RECIRCULATE
from gradplane.switch.arch.psa.packet import BROUGHT, EGRESS, INGRESS, PacketPath, pipelines
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit import native_vectors
from gradplane.switch.jit.entry_points import ARRIVE, NODE_META, WAITING
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import Externs
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.traffic_manager import Traffic

# A record in the queue; `at` and `size` are of the packet's bytes in `between`.
DEPARTURE = {"at": 0, "size": 8, "port": 16, "instance": 24, "path": 32, "service": 40,
             "passes": 48}  # fmt: skip
DEPARTURE_META = 64


class PsaTraffic(Traffic):
    """The functions of a PSA program."""

    drops = {"ingress": "ingress: drop is set", "egress": "egress: drop is set"}

    def __init__(self, unit: Unit, program: ir.Program, externs: Externs, passes: int) -> None:
        super().__init__(unit, program, externs, passes)
        ingress, egress = pipelines(program)
        self.ingress = NativeBlocks(self, ingress, INGRESS)
        self.egress = NativeBlocks(self, egress, EGRESS)
        into = self.ingress.context.sizes
        self.meta_size = max(into["resubmit"], into["recirculate"])
        across = self.egress.context.sizes
        most = max(across[name] for name in ("normal", "clone_i2e", "clone_e2e"))
        self.record_size = -(-(DEPARTURE_META + most) // 16) * 16

    def memory(self) -> dict[str, int]:
        return {
            "ingress packet": self.ingress.context.size,
            "egress packet": self.egress.context.size,
        }

    def blocks(self) -> None:
        self.ingress.write()
        self.egress.write()
        self._clone()
        self._egress()

    # -- the queue ------------------------------------------------------------------------------

    def _push(self, f: Function, meta: Operand, most: int, **fields: Operand | int) -> None:
        """Pass a packet on to egress, with so many bytes of metadata."""
        record = self.new_record(f, DEPARTURE, fields)
        f.copy(f.add(record, DEPARTURE_META), meta, most)
        port, service, at, size = (str(fields[n]) for n in ("port", "service", "at", "size"))
        data = f.add(native_vectors.data(f, "between"), at)
        self.enqueue(f, record, port, service, data, size)

    def restore(self, f: Function, record: Operand, head: Operand, data: Operand) -> None:
        size = f.load("i64", f.add(head, WAITING["size"]), 8)
        native_vectors.set_length(f, "between", 0)
        f.copy(native_vectors.reserve(f, "between", size), data, size)
        native_vectors.extend(f, "between", size)
        f.store("i64", 0, f.add(record, DEPARTURE["at"]), 8)

    def _clone(self) -> None:
        """Write void clone(i64 session, i64 path, ptr data, i64 size, ptr meta, i64 passes)."""
        params = [("i64", "%session"), ("i64", "%path"), ("ptr", "%data"), ("i64", "%size"),
                  ("ptr", "%meta"), ("i64", "%passes")]  # fmt: skip
        f = self.module.function("clone", "void", params, attributes="noinline ")
        first, count, truncate, service, passes = self.open_session(f, "%session", "%passes")
        whole = f.compare("eq", "i64", truncate, 0)
        least = f.intrinsic("llvm.umin.i64", "i64", ("i64", "%size"), ("i64", truncate))
        size = f.select(whole, "i64", "%size", least)
        at = native_vectors.length(f, "between")
        f.copy(native_vectors.reserve(f, "between", size), "%data", size)
        native_vectors.extend(f, "between", size)
        sizes = self.egress.context.sizes
        i2e = f.compare("eq", "i64", "%path", int(PacketPath.CLONE_I2E))
        for path in (PacketPath.CLONE_I2E, PacketPath.CLONE_E2E):
            this = i2e if path == PacketPath.CLONE_I2E else f.binary("xor", "i1", i2e, "true")
            with f.when(this), f.count(count) as i:
                port, instance = self.replica(f, f.binary("add", "i64", first, i))
                self._push(f, "%meta", sizes[BROUGHT[path]], at=at, size=size, port=port,
                           instance=instance, path=int(path), service=service,
                           passes=passes)  # fmt: skip
        f.ret()

    def _clone_if_set(
        self,
        f: Function,
        side: NativeBlocks,
        c: Operand,
        path: PacketPath,
        data: Operand,
        size: Operand,
    ) -> None:
        with f.when(_is_set(f, side, c, "clone")):
            session = side.get(f, c, "ostd", "clone_session_id")
            meta = side.context.value(f, c, f"to {BROUGHT[path]}")
            args = (("i64", session), ("i64", int(path)), ("ptr", data), ("i64", size),
                    ("ptr", meta), ("i64", "%passes"))  # fmt: skip
            f.call("void", "clone", *args)

    def _pass_again(
        self, f: Function, side: NativeBlocks, c: Operand, path: PacketPath, port: Operand | int,
        data: Operand, size: Operand,
    ) -> None:  # fmt: skip
        """Resubmit or recirculate a packet."""
        node, value = self.node(f, size, int(path), port, "%passes"), f"to {BROUGHT[path]}"
        f.copy(f.load("ptr", node, 8), data, size)
        meta = side.context.value(f, c, value)
        f.copy(f.add(node, NODE_META), meta, side.context.sizes[value])
        self.take_node(f, node, size)

    # -- ingress --------------------------------------------------------------------------------

    def arrive(self) -> None:
        f, side = self.module.function("arrive", "void", ARRIVE), self.ingress
        self.start_pass(f)
        native_vectors.set_length(f, "between", 0)
        c, depart = f.word("ingress packet"), f.label()
        side.context.begin(f, c, "%data", "%size")
        self._take_meta(f, side, c, "%kind", (PacketPath.RESUBMIT, PacketPath.RECIRCULATE))
        side.put(f, c, "parser istd", ingress_port="%port", packet_path="%kind")
        error = side.run(f, "ip", c, depart)
        now = f.word("microseconds", "i64")
        side.put(f, c, "istd", ingress_port="%port", packet_path="%kind", ingress_timestamp=now,
                 parser_error=error)  # fmt: skip
        side.put(f, c, "ostd", drop=1)
        self.run(f, "ig", c, depart)
        target = native_vectors.reserve(f, "between", side.room(f, c))
        size = side.deparse(f, c, target, depart)
        native_vectors.extend(f, "between", size)
        self.send_digests(f)
        self._after_ingress(f, c, size, depart)
        f.at(depart)
        self.departures(f)
        f.ret()

    def _take_meta(
        self,
        f: Function,
        side: NativeBlocks,
        c: Operand,
        kind: Operand,
        paths: tuple[PacketPath, ...],
    ) -> None:
        """Copy the metadata from the previous pass (%meta) to the value for the packet's path."""
        end, labels = f.label(), {path: f.label() for path in paths}
        f.choose("i64", kind, end, [(int(path), label) for path, label in labels.items()])
        for path, label in labels.items():
            f.at(label)
            name = BROUGHT[path]
            f.copy(side.context.value(f, c, name), "%meta", side.context.sizes[name])
            f.go(end)
        f.at(end)

    def _after_ingress(self, f: Function, c: Operand, size: Operand, depart: str) -> None:
        side = self.ingress
        self._clone_if_set(f, side, c, PacketPath.CLONE_I2E, "%data", "%size")
        with f.when(_is_set(f, side, c, "drop")):
            self.count_drop(f, "ingress")
            f.go(depart)
        with f.when(_is_set(f, side, c, "resubmit")):
            self._pass_again(f, side, c, PacketPath.RESUBMIT, "%port", "%data", "%size")
            f.go(depart)
        meta, most = side.context.value(f, c, "to normal"), side.context.sizes["to normal"]
        service = side.get(f, c, "ostd", "class_of_service")
        group = side.get(f, c, "ostd", "multicast_group")
        with f.when(f.compare("ne", "i64", group, 0)):
            first, count = self.members(f, group, depart)
            with f.count(count) as i:
                port, instance = self.replica(f, f.binary("add", "i64", first, i))
                self._push(f, meta, most, at=0, size=size, port=port, instance=instance,
                           path=int(PacketPath.NORMAL_MULTICAST), service=service,
                           passes="%passes")  # fmt: skip
            f.go(depart)
        port = side.get(f, c, "ostd", "egress_port")
        path = int(PacketPath.NORMAL_UNICAST)
        waits = f.op(f"xor i1 {self.queue_is_empty(f)}, true")
        with f.when(f.binary("or", "i1", waits, self.engaged(f))):
            self._push(f, meta, most, at=0, size=size, port=port, instance=0, path=path,
                       service=service, passes="%passes")  # fmt: skip
            f.go(depart)
        between = native_vectors.data(f, "between")
        self._call_egress(f, meta, between, size, port, "0", str(path), service, "%passes")
        f.go(depart)

    # -- egress ---------------------------------------------------------------------------------

    def _call_egress(self, f: Function, meta: Operand, data: Operand, *fields: Operand) -> None:
        args = (("ptr", meta), ("ptr", data), *(("i64", value) for value in fields))
        f.call("void", "egress", *args)

    def departures(self, f: Function) -> None:
        with self.queued(f, self.record_size) as record:
            start, *rest = (f.load("i64", f.add(record, o), 8) for o in DEPARTURE.values())
            data = f.add(native_vectors.data(f, "between"), start)
            self._call_egress(f, f.add(record, DEPARTURE_META), data, *rest)

    def _egress(self) -> None:
        """Write void egress(ptr meta, ptr data, i64 size, i64 port, i64 instance, i64 path, ...).

        The last two parameters are the class of service and the passes."""
        params = [("ptr", "%meta"), ("ptr", "%data"),
                  *(("i64", f"%{name}") for name in DEPARTURE if name != "at")]  # fmt: skip
        f = self.module.function("egress", "void", params, attributes="noinline ")
        side, c, end = self.egress, f.word("egress packet"), f.label()
        side.context.begin(f, c, "%data", "%size")
        paths = (PacketPath.NORMAL_UNICAST, PacketPath.NORMAL_MULTICAST, PacketPath.CLONE_I2E,
                 PacketPath.CLONE_E2E)  # fmt: skip
        self._take_meta(f, side, c, "%path", paths)
        side.put(f, c, "parser istd", egress_port="%port", packet_path="%path")
        error = side.run(f, "ep", c, end)
        now = f.word("microseconds", "i64")
        side.put(f, c, "istd", class_of_service="%service", egress_port="%port",
                 packet_path="%path", instance="%instance", egress_timestamp=now,
                 parser_error=error)  # fmt: skip
        self.run(f, "eg", c, end)
        side.put(f, c, "deparser istd", egress_port="%port")
        target = native_vectors.reserve(f, "out", side.room(f, c))
        size = side.deparse(f, c, target, end)
        self._clone_if_set(f, side, c, PacketPath.CLONE_E2E, target, size)
        with f.when(_is_set(f, side, c, "drop")):
            self.count_drop(f, "egress")
            f.go(end)
        with f.when(f.compare("eq", "i64", "%port", PORT_RECIRCULATE)):
            self._pass_again(f, side, c, PacketPath.RECIRCULATE, PORT_RECIRCULATE, target, size)
            f.go(end)
        self.send(f, "%port", size)
        f.at(end)
        f.ret()


def _is_set(f: Function, side: NativeBlocks, c: Operand, name: str) -> Operand:
    """Return the flag of the output metadata as an operand."""
    return f.compare("ne", "i64", side.get(f, c, "ostd", name), 0)
