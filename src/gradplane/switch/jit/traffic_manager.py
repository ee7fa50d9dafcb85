"""The shared parts of a packet's path as native code: faults and drops, the queue, groups
and sessions, deparsing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gradplane.switch.jit import native_memory
from gradplane.switch.jit.entry_points import WAITING, WAITING_HEAD, EntryPoints
from gradplane.switch.jit.headers import clear_rest, copy_bits
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.value_layout import Context
from gradplane.switch.runtime.egress_queues import CLASSES, QUEUES
from gradplane.switch.runtime.packet_passes import (
    CLONE_LIMIT,
    CLONED_TOO_OFTEN,
    PASS_LIMIT,
    TOO_MANY_CLONES,
    TOO_OFTEN,
)


class Traffic(EntryPoints):
    """Writes what happens to a packet between its blocks; an architecture derives from it.

    record_size: bytes of the architecture's record of a packet between ingress and egress; 0 for an
    architecture without egress.
    """

    record_size = 0

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

    def run(self, f: Function, block: str, context: Operand, after: str) -> Operand:
        """Call a block; on a fault, report it and go to `after`."""
        result = f.call("i32", block, ("ptr", context))
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
        native_memory.set_length(f, "digests", 0)
        f.store("i64", 0, f.word_address("clones"), 8)

    def send_digests(self, f: Function) -> None:
        size = native_memory.length(f, "digests")
        with f.when(f.compare("ne", "i64", size, 0)):
            f.copy(
                native_memory.reserve(f, "messages", size), native_memory.data(f, "digests"), size
            )
            native_memory.extend(f, "messages", size)

    # -- the queue of packets that wait for egress ----------------------------------------------

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

    def restore(self, f: Function, record: Operand, head: Operand, data: Operand) -> None:
        """Complete the record of a packet that waited, with its bytes at `data`."""
        raise AssertionError("an architecture without egress has no queues")

    def departures(self, f: Function) -> None:
        """Pass all that is queued through egress, and what egress queues."""
        raise AssertionError("an architecture without egress has no queues")

    def depart(self) -> None:
        params = [("ptr", "%records"), ("i64", "%count")]
        f = self.module.function("depart", "void", params, exported=True)
        native_memory.set_length(f, "again", 0)
        native_memory.set_length(f, "waiting", 0)
        if self.record_size:
            self._depart(f)
        f.ret()

    def _depart(self, f: Function) -> None:
        at = f.variable("i64", 0)
        with f.count("%count") as i:
            f.store("i64", i, f.word_address("cause"), 8)
            self.start_empty(f)
            head = f.add("%records", at.get())
            at.increase(f.load("i64", head, 8))
            waited = f.add(head, WAITING_HEAD)
            record = native_memory.reserve(f, "queue", self.record_size)
            f.copy(record, waited, self.record_size)
            self.restore(f, record, head, f.add(waited, self.record_size))
            native_memory.extend(f, "queue", self.record_size)
            self.departures(f)

    @contextmanager
    def queued(self, f: Function, size: int) -> Iterator[Operand]:
        """Loop over the records in the queue, those included that are queued meanwhile: the address
        of each."""
        at = f.variable("i64", 0)
        with f.loop() as end:
            more = f.label()
            length = native_memory.length(f, "queue")
            f.branch(f.compare("ult", "i64", at.get(), length), more, end)
            f.at(more)
            yield f.add(native_memory.data(f, "queue"), at.get())
            at.increase(size)

    @staticmethod
    def queue_is_empty(f: Function) -> Operand:
        return f.compare("eq", "i64", native_memory.length(f, "queue"), 0)

    # -- groups and sessions --------------------------------------------------------------------

    def members(self, f: Function, group: Operand, after: str) -> tuple[Operand, Operand]:
        """Return a multicast group's first replica and their number; if there are none, count a
        drop and go to `after`."""
        with f.when(f.compare("uge", "i64", group, self.unit.groups)):
            self.count_drop(f, "beyond")
            f.go(after)
        row = f.add(f.word("groups"), f.binary("shl", "i64", group, 4))
        first, count = f.load("i64", row, 8), f.load("i64", f.add(row, 8), 8)
        with f.when(f.compare("eq", "i64", count, 0)):
            lost = f.item(f.word("lost groups"), "i64", group)
            f.store("i64", f.binary("add", "i64", f.load("i64", lost, 8), 1), lost, 8)
            self.count_drop(f, "groups")
            f.go(after)
        return first, count

    def group_size(self, f: Function, group: Operand) -> Operand:
        """Return the number of a multicast group's replicas."""
        row = f.add(f.word("groups"), f.binary("shl", "i64", group, 4))
        return f.load("i64", f.add(row, 8), 8)

    def replica(self, f: Function, number: Operand) -> tuple[Operand, Operand]:
        """Return a replica's port and instance."""
        replica = f.add(f.word("replicas"), f.binary("shl", "i64", number, 4))
        return f.load("i64", replica, 8), f.load("i64", f.add(replica, 8), 8)

    def open_session(
        self, f: Function, session: Operand, passes: Operand, after: str
    ) -> tuple[Operand, Operand, Operand, Operand]:
        """Return a clone session's first replica, their number, truncation and class of service. If
        there is none or the clones take too many passes, go to `after`."""
        with f.unless(self.session_exists(f, session)):
            f.go(after)
        more = f.binary("add", "i64", passes, 1)
        with f.when(f.compare("uge", "i64", more, PASS_LIMIT)):
            self.fault(f, self.externs.fault(CLONED_TOO_OFTEN))
            f.go(after)
        row = self._session_row(f, session)
        first, count, truncate, service = (f.load("i64", f.add(row, 8 * i), 8) for i in range(4))
        clones = f.binary("add", "i64", f.word("clones", "i64", fixed=False), count)
        f.store("i64", clones, f.word_address("clones"), 8)
        with f.when(f.compare("ugt", "i64", clones, CLONE_LIMIT)):
            self.fault(f, self.externs.fault(TOO_MANY_CLONES))
            f.go(after)
        return first, count, truncate, f.binary("sub", "i64", service, 1)

    def session_exists(self, f: Function, session: Operand) -> Operand:
        known = f.compare("ult", "i64", session, self.unit.sessions)
        row = self._session_row(f, f.select(known, "i64", session, 0))
        exists = f.compare("ne", "i64", f.load("i64", f.add(row, 24), 8), 0)
        return f.binary("and", "i1", known, exists)

    def _session_row(self, f: Function, session: Operand) -> Operand:
        return f.add(f.word("sessions"), f.binary("shl", "i64", session, 5))

    # -- the end of a pass ----------------------------------------------------------------------

    def write_deparse(self, name: str, block: str, context: Context) -> None:
        """Write i64 name(ptr context, ptr target), which writes emitted headers and the payload.

        The function returns the number of bytes, or a negative fault."""
        f = self.module.function(name, "i64", [("ptr", "%c"), ("ptr", "%target")])
        result = f.call("i32", block, ("ptr", "%c"), ("ptr", "%target"))
        with f.when(f.compare("slt", "i32", result, 0)):
            f.ret(f.resize(result, 32, 64, True))
        emitted = f.word("emitted", "i64", fixed=False)
        position = context.get(f, "%c", "position")
        left = f.binary("sub", "i64", context.get(f, "%c", "bits"), position)
        data = context.get(f, "%c", "data")
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
        f.ret(f.binary("lshr", "i64", f.binary("add", "i64", bits, 7), 3))

    @staticmethod
    def room(f: Function, context: Context, c: Operand, emitted: int) -> Operand:
        """Return the most bytes that deparsing the packet at `c` can give, with so many emitted."""
        size = f.binary("lshr", "i64", context.get(f, c, "bits"), 3)
        return f.binary("add", "i64", size, emitted + 16)

    def deparsed(
        self, f: Function, deparse: str, context: Operand, target: Operand, after: str
    ) -> Operand:
        """Return the bytes written to `target`; on a fault, report it and go to `after`."""
        size = f.call("i64", deparse, ("ptr", context), ("ptr", target))
        with f.when(f.compare("slt", "i64", size, 0)):
            self.fault(f, f.op(f"sub i64 0, {size}"))
            f.go(after)
        return size

    def send(self, f: Function, port: Operand, size: Operand) -> None:
        """Send the bytes after the end of `out` as a packet."""
        native_memory.extend(f, "out", size)
        record = native_memory.reserve(f, "sent", 24)
        cause = f.word("cause", "i64", fixed=False)
        for i, value in enumerate((port, native_memory.length(f, "out"), cause)):
            f.store("i64", value, f.add(record, 8 * i), 8)
        native_memory.extend(f, "sent", 24)
