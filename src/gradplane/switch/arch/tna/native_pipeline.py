"""TNA as machine code: gradplane.switch.arch.tna.pipeline, step by step.

Here is what lies between the pipelines (gradplane.switch.arch.tna.native_pipe): the choice of a
pipe, replication, mirroring and recirculation. Bytes of packets are in vector `between`, each
behind room for the egress header, and records of those that wait for egress in `queue`.
"""

from __future__ import annotations

from gradplane.switch.arch.tna.chips import LOCAL_PORTS, PIPE_BITS, RECIRCULATE, chip_of
from gradplane.switch.arch.tna.layouts import pipelines
from gradplane.switch.arch.tna.mirroring import MIRROR_HEADER, RESUBMIT_HEADER
from gradplane.switch.arch.tna.native_pipe import DEPARTURE, ROOM, TIMES, NativePipe, size_of
from gradplane.switch.arch.tna.pipe_scopes import pipeline_numbers
from gradplane.switch.arch.tna.pipeline import DROPPED, NO_DESTINATION, NOT_PARSED
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit import native_memory
from gradplane.switch.jit.entry_points import ARRIVE, NODE_META, WAITING, WAITING_HEAD
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import (
    ALL_PIPES,
    ALL_REGISTERS,
    PIPE,
    REGISTERS,
    RUNNING_PIPE,
    Externs,
    Site,
    pipe_words,
    post,
)
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.table_layout import DIRECT
from gradplane.switch.jit.traffic_manager import Traffic
from gradplane.switch.runtime.control_messages import HEAD_BYTES
from gradplane.switch.runtime.egress_queues import QUEUES

_HEADER_MEMORY = 256


class TnaTraffic(Traffic):
    """The functions of a TNA program: arrivals, the traffic manager and departures."""

    drops = {
        "parser": NOT_PARSED,
        "ingress": f"ingress: {DROPPED}",
        "egress": f"egress: {DROPPED}",
        "nowhere": NO_DESTINATION,
    }
    record_size = 112
    deflection = {name: WAITING_HEAD + DEPARTURE[name] for name in ("port", "queue", "deflect")}

    def __init__(self, unit: Unit, program: ir.Program, externs: Externs, passes: int) -> None:
        super().__init__(unit, program, externs, passes)
        self.chip = chip_of(program)
        self.meta_size = self.chip.port_metadata
        self.front = size_of(self.chip.egress_header)
        externs.pipes_have_registers = bool(externs.register_places)
        own = [
            self.module.word(name) for name in pipe_words(program, externs.tables.shapes.values())
        ]
        self.pipe_words = range(own[0], own[-1] + 1)
        assert list(self.pipe_words) == own, own
        self.pipes = [
            NativePipe(self, package, number) for number, package in enumerate(pipelines(program))
        ]

    def memory(self) -> dict[str, int]:
        words = {MIRROR_HEADER: _HEADER_MEMORY, RESUBMIT_HEADER: _HEADER_MEMORY}
        for pipe in self.pipes:
            words |= pipe.memory()
        return words

    def blocks(self) -> None:
        self._replicate()
        self._mirror()
        for pipe in self.pipes:
            pipe.write()

    def arrive(self) -> None:
        f = self.module.function("arrive", "void", ARRIVE)
        self.start_pass(f)
        native_memory.set_length(f, "between", 0)
        self._in_pipe(f, "%port", "ingress", ARRIVE)
        self.departures(f)
        f.ret()

    def _in_pipe(
        self, f: Function, port: Operand, name: str, args: list[tuple[str, Operand]]
    ) -> None:
        """Call a function of the pipe that a port belongs to, with the pipe's tables and registers.

        The functions are not inlined: state words do not change while one of them runs."""
        number = f.binary("lshr", "i64", port, PIPE_BITS)
        pipe = f.binary("urem", "i64", number, self.chip.pipes)
        self._enter(f, pipe)
        f.store("i64", pipe, f.word_address(PIPE), 8)
        if self.externs.pipes_have_registers:
            place = f.binary("mul", "i64", pipe, self.externs.register_bytes)
            f.store("ptr", f.add(f.word(ALL_REGISTERS), place), f.word_address(REGISTERS), 8)
        if len(self.pipes) == 1:
            f.call("void", f"pipe0.{name}.pass", *args)
            return
        end, labels = f.label(), [f.label() for _ in self.pipes]
        numbers = pipeline_numbers(self.program)
        f.choose("i64", pipe, end, [(i, labels[number]) for i, number in enumerate(numbers)])
        for i, label in enumerate(labels):
            f.at(label)
            f.call("void", f"pipe{i}.{name}.pass", *args)
            f.go(end)
        f.at(end)

    def _enter(self, f: Function, pipe: Operand) -> None:
        """Put the pipe's words in place, if the pipes have tables or externs of their own."""
        words = f.word(ALL_PIPES, fixed=False)
        differ = f.compare("ne", "ptr", words, "null")
        other = f.compare("ne", "i64", f.word(RUNNING_PIPE, "i64", fixed=False), pipe)
        with f.when(f.binary("and", "i1", differ, other)):
            size = 8 * len(self.pipe_words)
            own = f.add(words, f.binary("mul", "i64", pipe, size))
            f.copy(f.word_address(DIRECT), own, size)
            f.store("i64", pipe, f.word_address(RUNNING_PIPE), 8)

    # -- the traffic manager --------------------------------------------------------------------

    def push(self, f: Function, **fields: Operand | int) -> None:
        """Pass a packet in `between` on to egress."""
        fields |= dict.fromkeys(("waited", *TIMES), 0)
        record = self.new_record(f, DEPARTURE, fields)
        port, queue, at, size = (str(fields[n]) for n in ("port", "queue", "at", "size"))
        data = f.add(f.add(native_memory.data(f, "between"), at), self.front)
        self.enqueue(f, record, port, queue, data, size)

    def restore(self, f: Function, record: Operand, head: Operand, data: Operand) -> None:
        size = f.load("i64", f.add(head, WAITING["size"]), 8)
        native_memory.set_length(f, "between", 0)
        whole = f.binary("add", "i64", size, self.front)
        target = native_memory.reserve(f, "between", f.binary("add", "i64", whole, ROOM))
        f.copy(f.add(target, self.front), data, size)
        native_memory.extend(f, "between", whole)
        f.store("i64", 0, f.add(record, DEPARTURE["at"]), 8)
        f.store("i64", 1, f.add(record, DEPARTURE["waited"]), 8)
        for name in TIMES:
            value = f.load("i64", f.add(head, WAITING[name]), 8)
            f.store("i64", value, f.add(record, DEPARTURE[name]), 8)

    def departures(self, f: Function) -> None:
        with self.queued(f, self.record_size) as record:
            args = [("i64", f.load("i64", f.add(record, o), 8)) for o in DEPARTURE.values()]
            self._in_pipe(f, args[2][1], "egress", args)

    def _replicate(self) -> None:
        """Write void replicate(i64 port, i64 rid, i64 first, i64 queue, i64 service, i64 bypass,
        i64 deflect, i64 size, i64 passes): one copy of the packet at the start of `between`."""
        names = ("port", "rid", "first", "queue", "service", "bypass", "deflect", "size", "passes")
        f = self.module.function("replicate", "void", [("i64", f"%{n}") for n in names])
        with f.when(f.compare("ne", "i64", "%bypass", 0)):
            data = f.add(native_memory.data(f, "between"), self.front)
            with f.when(self.recirculates(f, "%port")):
                self.take_in(f, data, "%size", "%port", "%passes")
                f.ret()
            f.copy(native_memory.reserve(f, "out", "%size"), data, "%size")
            self.send(f, "%port", "%size")
            f.ret()
        self.push(f, at=0, size="%size", port="%port", rid="%rid", first="%first",
                  queue="%queue", service="%service", passes="%passes",
                  deflect="%deflect")  # fmt: skip
        f.ret()

    def recirculates(self, f: Function, port: Operand) -> Operand:
        """Return whether packets that leave by a port come back."""
        local = f.binary("and", "i64", port, LOCAL_PORTS - 1)
        place = f.binary("sub", "i64", local, self.chip.recirculation.start)
        inside = f.compare("ult", "i64", place, len(self.chip.recirculation))
        other = f.compare("ne", "i64", port, self.chip.cpu_port)
        flag = f.load("i8", f.add(f.word("loopback"), f.binary("and", "i64", port, QUEUES - 1)), 1)
        looped = f.compare("ne", "i8", flag, 0)
        return f.binary("or", "i1", f.binary("and", "i1", inside, other), looped)

    def take_in(
        self, f: Function, data: Operand, size: Operand, port: Operand, passes: Operand
    ) -> None:
        """Take a packet in again by a port that leads back."""
        self._report_returned(f, data, size, port)
        node = self.node(f, size, RECIRCULATE, port, passes)
        f.copy(f.load("ptr", node, 8), data, size)
        f.clear(f.add(node, NODE_META), self.meta_size)
        self.take_node(f, node, size)

    def _report_returned(self, f: Function, data: Operand, size: Operand, port: Operand) -> None:
        wanted = f.load("i8", f.word("recirculation"), 1)
        with f.when(f.compare("ne", "i8", wanted, 0)):
            record = f.alloca(8 + HEAD_BYTES)
            f.clear(record, 8 + HEAD_BYTES)
            f.store("i64", port, record, 8)
            count = f.intrinsic("llvm.umin.i64", "i64", ("i64", size), ("i64", HEAD_BYTES))
            f.copy(f.add(record, 8), data, count)
            site = self.externs.site(Site("returned", ""))
            post(f, "messages", site, record, 8 + HEAD_BYTES)

    def _mirror(self) -> None:
        """Write void mirror(i64 session, ptr data, i64 size, i64 header size, i64 passes)."""
        params = [("i64", "%session"), ("ptr", "%data"), ("i64", "%size"), ("i64", "%head"),
                  ("i64", "%passes")]  # fmt: skip
        f = self.module.function("mirror", "void", params, attributes="noinline ")
        first, count, truncate, service, passes = self.open_session(f, "%session", "%passes")
        total = f.binary("add", "i64", "%head", "%size")
        least = f.intrinsic("llvm.umin.i64", "i64", ("i64", total), ("i64", truncate))
        size = f.select(f.compare("eq", "i64", truncate, 0), "i64", total, least)
        at = native_memory.length(f, "between")
        room = f.binary("add", "i64", total, self.front + ROOM)
        target = f.add(native_memory.reserve(f, "between", room), self.front)
        f.copy(target, f.word(MIRROR_HEADER), "%head")
        f.copy(f.add(target, "%head"), "%data", "%size")
        native_memory.extend(f, "between", f.binary("add", "i64", size, self.front))
        with f.count(count) as i:
            port, instance = self.replica(f, f.binary("add", "i64", first, i))
            self.push(f, at=at, size=size, port=port, rid=instance, first=0, queue=service,
                      service=service, passes=passes, deflect=0)  # fmt: skip
        f.ret()
