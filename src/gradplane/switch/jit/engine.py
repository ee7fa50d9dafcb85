"""The engine: compiles a program, fills in its state words and passes packets through it."""

from __future__ import annotations

import ctypes
import logging
import struct
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradplane.switch.interp.user_externs import UserExterns
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.entry_points import NODE, NODE_META, WAITING, Pipeline
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import (
    ALL_PIPES,
    ALL_REGISTERS,
    REGISTERS,
    RUNNING_PIPE,
    Builders,
    Externs,
    Site,
    adjustment_word,
    counter_word,
    filter_word,
    meter_word,
)
from gradplane.switch.jit.hash_algorithms import crc_word, hash_word, span_word
from gradplane.switch.jit.llvm_text import Module
from gradplane.switch.jit.native_code import Native
from gradplane.switch.jit.native_memory import SetWord, VectorTransfer
from gradplane.switch.jit.native_mirrors import GroupMirror, TableMirror, ValueSetMirror
from gradplane.switch.jit.native_rng import RNG
from gradplane.switch.jit.table_apply import Observe
from gradplane.switch.jit.table_layout import DIRECT, Shape
from gradplane.switch.jit.user_extern_calls import WORD, Buffer, Callback, Read, reader
from gradplane.switch.jit.value_layout import Layouts
from gradplane.switch.runtime.control_messages import Digest, Fault, PacketIn, ReturnedPacket
from gradplane.switch.runtime.packet_buffers import Bytes, Ints, Sent, outputs
from gradplane.switch.runtime.packet_passes import (
    TOO_MANY_PASSES,
    Arrival,
    NativePass,
    Output,
    PassResult,
    SharedCode,
)
from gradplane.switch.runtime.pipe_scopes import Resources
from gradplane.switch.runtime.port_queues import DEFLECTED, QueueTimes, Waiting
from gradplane.switch.runtime.shared_memory import LINE, block
from gradplane.switch.runtime.state import State

_HEAD = struct.Struct("=qqq")  # of a packet that waits: whole, port, priority
_TIMES = struct.Struct("=qqqq")
_WORD = struct.Struct("=q")
_SENT = struct.Struct("=qqq")  # port, end of the bytes, cause
_SETTINGS = ("now", "nanoseconds", "microseconds", "global rid", "logging", "queues engaged",
             "priority queues")  # fmt: skip
_UNLIMITED = 1 << 62

Report = tuple[int, Callable[[Any], None], Any]  # cause, the function that reports it, of what

WritePath = Callable[[Unit, ir.Program, Externs], Pipeline]
"""Writes a program along the path of a packet."""

log = logging.getLogger("gradplane.switch")


class Written(NamedTuple):
    """A program as LLVM assembly, and what its engines need to know of it: the positions of the
    state words by name, the layouts of values, the pipeline, the sources of messages, the tables'
    shapes by name, the bytes of the direct and plain ones, and the calls of Python."""

    text: str
    words: Mapping[str, int]
    layouts: Layouts
    pipeline: Pipeline
    sites: Sequence[Site]
    shapes: Mapping[str, Shape]
    direct_size: int
    python_calls: Sequence[Buffer]


_written: weakref.WeakKeyDictionary[ir.Program, dict[int, Written]] = weakref.WeakKeyDictionary()
"""The written code of a program by drop port, which alone may differ between its engines."""


def write(
    program: ir.Program, state: State, path: WritePath,
    builders: Builders, observe: Observe, sessions: int, groups: int,
) -> Written:  # fmt: skip
    """Write a program, once for all its engines: see Engine."""
    known = _written.setdefault(program, {})
    if state.drop_port not in known:
        module, layouts = Module(), Layouts()
        errors = {name: code for code, name in enumerate(program.errors)}
        unit = Unit(module, layouts, errors, state.drop_port, groups, sessions)
        externs = Externs(unit, program, state.profiles, builders, observe)
        pipeline = path(unit, program, externs)
        known[state.drop_port] = Written(
            module.text(), module.words, layouts, pipeline, externs.sites, externs.tables.shapes,
            externs.tables.direct_size, externs.python_calls,
        )  # fmt: skip
    return known[state.drop_port]


class Engine:
    """A compiled program on a State, which the interpreter may share.

    path, builders, observe, sessions, groups: the architecture's path of a packet, its externs,
    what its tables do with direct counters and meters on each lookup, and its limits. cpu_port:
    packets that leave there become PacketIn messages. cache: keep the machine code on disk. quick:
    as in Native.
    user_externs: the implementations of user-defined externs; without, the program has none.
    Raises CompileError for what it cannot compile. Not safe for threads: callers hold a lock.
    """

    def __init__(
        self, program: ir.Program, state: State, path: WritePath,
        builders: Builders, observe: Observe, sessions: int, groups: int,
        cpu_port: int | None = None, cache: bool = True, user_externs: UserExterns | None = None,
        quick: bool = False,
    ) -> None:  # fmt: skip
        self.state = state
        self.cpu_port = cpu_port
        written = write(program, state, path, builders, observe, sessions, groups)
        self._written, self._layouts, self._pipeline = written, written.layouts, written.pipeline
        self._cached = cache
        self._sites = [(site, self._reader(site)) for site in written.sites]
        self._native = Native(written.text, cache, quick)
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self._process = self._native.function("process", *[pointer] * 4, number)
        self._once = self._native.function("once", pointer, number, number, number, pointer, number)
        self._depart = self._native.function("depart", pointer, number)
        self._at = written.words
        self._words = _words(self._native.address("state"), len(self._at))
        self._settings = [self._at.get(name) for name in _SETTINGS]
        drops = self._pipeline.drops.items()
        self._drops = [(self._at[word], why) for word, why in drops if word in self._at]
        self._one = (ctypes.c_int64 * 3)()  # the arrays of a batch of one packet: port, start, end
        self._out, self._sent = transfers = [
            VectorTransfer(self._words, self._at[f"{name}:data"]) for name in ("out", "sent")
        ]
        release = self._native.function("release")
        weakref.finalize(self, _release, self._native, release, transfers).atexit = False
        self._now = state.start
        self._kept: list[Any] = []  # what native code points to
        self._python: Callback | None = None
        if written.python_calls:
            self._python = Callback(user_externs, state, written.python_calls, self._layouts)
        self._share(groups, sessions)

    # -- packets --------------------------------------------------------------------------------

    def process(self, ports: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent:
        """Process packets, data[starts[i]:ends[i]], and all packets that they cause.

        The positions are not checked. Arrays are contiguous."""
        self._prepare()
        self._process(_address(ports), _address(data), _address(starts), _address(ends), len(ports))
        return self._finish()

    def process_one(self, port: int, packet: bytes) -> list[Output]:
        """Process one packet: as `process`, without arrays."""
        self._prepare()
        one, data = self._one, b"".join((packet,))
        one[0], one[2] = port, len(data)
        at = ctypes.addressof(one)
        self._process(at, data, at + 8, at + 16, 1)
        return self._left()

    def _left(self) -> list[Output]:
        """Finish a few packets: as `_finish`, without arrays where that can be."""
        if self.cpu_port is not None or self._words[self._at["messages:data"] + 1]:
            return _outputs(self._finish())
        rows, out = self._emptied("sent"), self._emptied("out")
        self._settle()
        left, start = [], 0
        for port, end, _ in _SENT.iter_unpack(rows):
            left.append((port, out[start:end]))
            start = end
        return left

    def run(self, arrival: Arrival) -> PassResult:
        """Run one pass; arrivals that are resubmitted or recirculated carry native metadata."""
        self._prepare()
        meta = None if arrival.meta is None else ctypes.create_string_buffer(arrival.meta)
        data = arrival.packet
        self._once(
            ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data), arrival.port,
            arrival.kind, meta, arrival.passes,
        )  # fmt: skip
        return self._result()

    def depart(self, items: Sequence[tuple[Waiting, QueueTimes]]) -> PassResult:
        """Run egress of packets that leave queues, and of their clones that do not wait."""
        self._prepare()
        records = bytearray()
        for item, times in items:
            start = len(records)
            records += item.departure
            _TIMES.pack_into(
                records, start + WAITING["enq_timestamp"],
                times.enq_timestamp, times.enq_qdepth, times.deq_timedelta, times.deq_qdepth,
            )  # fmt: skip
        self._depart(_address(records), len(items))
        return self._result()

    def native_pass(self, shared: SharedCode | None) -> NativePass | None:
        """Return what compiled code needs to run passes; it lives as long as the engine. None for
        passes that call Python. shared: see `Switch.native_pass`."""
        if self._python is not None:
            return None
        native, text = self._native, self._written.text
        if shared is not None:
            if text not in shared:
                shared[text] = Native(text, self._cached)
            native = shared[text]
        cell = {name: 0 for name in ("now", "microseconds")}
        first = native.address("state")
        for name in (*cell, "sent", "out", "again", "messages", "waiting"):
            at = self._at.get(name if name in cell else f"{name}:data")
            cell[name] = 0 if at is None else first + 8 * at
        return NativePass(
            once=native.function_address("once"), start=self.state.start,
            node_size=self._pipeline.node_size, meta_size=self._pipeline.meta_size,
            cpu_port=-1 if self.cpu_port is None else self.cpu_port, state=first,
            own=self._native.address("state"), words=len(self._at), **cell,
        )  # fmt: skip

    def begin_native_passes(self) -> None:
        """Update native memory, before passes that compiled code runs."""
        self._prepare()

    def end_native_passes(self) -> None:
        """Count the drops of passes that compiled code ran."""
        self._count_drops()

    def native_result(self) -> PassResult:
        """Return the result of a pass that compiled code has just run, and report its messages."""
        self._now = self.state.clock()
        return self._result()

    def _result(self) -> PassResult:
        again = self._again()
        before = self.state.links.queues.waiting
        left = self._left()
        return PassResult(left, again, self.state.links.queues.waiting - before)

    def _prepare(self) -> None:
        """Update native memory from the state: time, groups, value sets, changed tables."""
        state = self.state
        self._now = now = state.clock()
        queues, age = state.links.queues, now - state.start
        settings = (
            now, age, age // 1000, -1 if state.global_rid is None else state.global_rid,
            log.isEnabledFor(logging.INFO), queues.engaged, queues.priorities or _UNLIMITED,
        )  # fmt: skip
        for at, value in zip(self._settings, settings, strict=True):
            if at is not None:
                self._words[at] = value
        self._out.prepare()
        self._sent.prepare()
        for refresh in (*self._refresh, *self._refresh_tables):
            refresh()

    def _emptied(self, name: str) -> bytes:
        """Return a vector's bytes and empty it."""
        words, at = self._words, self._at[name + ":data"]
        length = words[at + 1]
        if not length:
            return b""
        words[at + 1] = 0
        return ctypes.string_at(words[at], length)

    def _finish(self) -> Sent:
        """Return the packets sent, empty the vectors and report the messages."""
        rows = self._sent.take().view(np.int64).reshape(-1, 3)
        out = self._out.take()
        messages = list(self._reports(self._emptied("messages")))
        if self.cpu_port is not None and (rows[:, 0] == self.cpu_port).any():
            rows, out, arrived = self._without_cpu(rows, out)
            # After the cause's other messages, as if packets were processed one by one.
            messages = sorted(messages + arrived, key=lambda message: message[0])
        for _, report, message in messages:
            report(message)
        self._settle()
        return rows, out

    def _settle(self) -> None:
        """Do what is left after a batch whose messages are reported."""
        self._put_into_queues(self._emptied("waiting"))
        self._count_drops()
        if self._python is not None:
            self._python.raise_again()

    def _put_into_queues(self, records: bytes) -> None:
        """Put packets into the queues of their ports."""
        at, queues, now = 0, self.state.links.queues, self._now
        while at < len(records):
            whole, port, priority = _HEAD.unpack_from(records, at)
            record = records[at : at + whole]
            item = queues.put(port, priority, now, self, record) or self._deflect(port, record)
            if item is None:
                self.state.drops[queues.full(port, priority)] += 1
            else:
                self.state.queue_changed(item.port, item.priority, item.enqueue_depth + 1)
            at += whole

    def _deflect(self, port: int, record: bytes) -> Waiting | None:
        """Put a packet that found its queue full into the port's other one, if it asks for it."""
        to, places = self.state.links.queues.deflections.get(port), self._pipeline.deflection
        if to is None or not places or _WORD.unpack_from(record, places["deflect"]) != (1,):
            return None
        moved = bytearray(record)
        _HEAD.pack_into(moved, 0, len(moved), *to)
        for name, value in (("port", to[0]), ("queue", to[1]), ("deflect", DEFLECTED)):
            _WORD.pack_into(moved, places[name], value)
        return self.state.links.queues.put(*to, self._now, self, bytes(moved), deflected=True)

    def _again(self) -> list[Arrival]:
        nodes, size = self._emptied("again"), self._pipeline.node_size
        return [self._arrival(nodes[at : at + size]) for at in range(0, len(nodes), size)]

    def _arrival(self, node: bytes) -> Arrival:
        data, length, port, kind, passes = (
            int.from_bytes(node[NODE[n] : NODE[n] + 8], "little")
            for n in ("data", "length", "port", "kind", "passes")
        )
        meta = node[NODE_META : NODE_META + self._pipeline.meta_size]
        packet = ctypes.string_at(data, length)
        return Arrival(port, packet, kind, meta, passes)

    # -- messages -------------------------------------------------------------------------------

    def _reader(self, site: Site) -> Read:
        """Return the reader of the value that comes with a message, if one does."""
        return reader(self._layouts, site.type) if site.type is not None else lambda data: None

    def _reports(self, messages: bytes) -> Iterator[Report]:
        at, pipe = 0, None
        while at < len(messages):
            site, cause, size = np.frombuffer(messages, np.int64, 3, at).tolist()
            data = messages[at + 24 : at + 24 + size]
            if self._sites[site][0].kind == "pipe":
                pipe = int.from_bytes(data, "little")
            else:
                yield cause, self._report, (site, data, pipe)
            at += 24 + size

    def _report(self, message: tuple[int, bytes, int | None]) -> None:
        number, data, pipe = message
        site, read = self._sites[number]
        match site.kind:
            case "fault":
                self._fault(site.text, 1, f"packet dropped: {site.text}")
            case "user extern":
                assert self._python is not None
                detail = self._python.failures.popleft().detail
                self._fault(site.text, 1, f"packet dropped: {detail}")
            case "storm":
                left = int.from_bytes(data, "little")
                self._fault(TOO_MANY_PASSES, left, f"{left} packets dropped: {TOO_MANY_PASSES}")
            case "digest":
                assert site.type is not None
                self.state.report(Digest(site.text, site.type, read(data), pipe))
            case "returned":
                port = int.from_bytes(data[:8], "little")
                self.state.report(ReturnedPacket(port, bytes(data[8:])))
            case "log":
                from gradplane.switch.interp.trace_events import log_message

                log.info("%s", log_message(site.text, site.type, read(data)))

    def _without_cpu(self, rows: Ints, out: Bytes) -> tuple[Ints, Bytes, list[Report]]:
        """Return the packets that leave, and the reports of those to the control plane."""
        assert self.cpu_port is not None
        there = rows[:, 0] == self.cpu_port
        ends = rows[:, 1]
        lengths = ends - np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
        data, report = out.tobytes(), self.state.report
        spans = zip((ends - lengths)[there].tolist(), *rows[there, 1:].T.tolist(), strict=True)
        reports: list[Report] = [
            (cause, report, PacketIn(data[start:end])) for start, end, cause in spans
        ]
        rest = rows[~there].copy()
        rest[:, 1] = np.cumsum(lengths[~there])
        return rest, out[np.repeat(~there, lengths)], reports

    def _fault(self, reason: str, count: int, text: str) -> None:
        self.state.drops[reason] += count
        self.state.report(Fault(text))

    def _count_drops(self) -> None:
        words = self._words
        for at, reason in self._drops:
            if words[at]:
                self.state.drops[reason] += words[at]
                words[at] = 0
        if self._take("drops: groups"):
            for group in np.flatnonzero(self._lost).tolist():
                reason = f"multicast group {group} has no members"
                self.state.drops[reason] += int(self._lost[group])
            self._lost.fill(0)

    # -- state words ----------------------------------------------------------------------------

    def _set(self, name: str, value: int) -> None:
        at = self._at.get(name)
        if at is not None:
            self._words[at] = value

    def _take(self, name: str) -> int:
        at = self._at.get(name)
        if at is None:
            return 0
        value = self._words[at]
        if value:
            self._words[at] = 0
        return value

    def _point(self, name: str, array: Any) -> None:
        """Set a word to the address of an array, which is kept alive."""
        self._kept.append(array)
        self._set(name, _address(array))

    def _share(self, groups: int, sessions: int) -> None:
        """Point native code to the state's memory."""
        state = self.state
        self._set("cpu port", -1 if state.cpu_port is None else state.cpu_port)
        self._point(REGISTERS, state.register_memory)
        self._point(ALL_REGISTERS, state.register_memory)
        self._point("port metadata", state.port_metadata)
        self._point("pruned", state.pruned)
        self._point(RNG, state.rng.state)
        self._point("queued", state.links.queued)
        self._point("loopback", state.links.loopback)
        self._point("recirculation", state.links.recirculation)
        self._point("port queues", state.links.queues.flags)
        self._point("port classes", state.links.queues.classes)
        for hash in state.hashes.values():
            self._point(hash_word(hash.name), hash.memory)
            self._point(span_word(hash.name), hash.span_memory)
        for crc in state.crcs.values():
            self._point(crc_word(crc.name), crc.memory)
        if self._python is not None:
            self._set(WORD, self._python.address)
        self._lost = np.zeros(groups, dtype=np.int64)
        self._point("lost groups", self._lost)
        self._point("expire times", state.expire_times.cells)
        self._point("flow ids", state.flow_ids)
        self._refresh: list[Callable[[], None]] = [
            GroupMirror(state, groups, sessions, self._set).refresh
        ]
        self.share_pipes()

    def share_pipes(self) -> None:
        """Point native code to the tables and externs of each pipe.

        It is called again when pipes share others than before.
        """
        scopes, pipe_words = self.state.scopes, self._pipeline.pipe_words
        for table in scopes.every("tables"):
            table.watchers.clear()
        self._refresh_tables: list[Callable[[], None]] = []
        self._kept_of_pipes: list[Any] = []
        if not scopes.differ:
            self._set(ALL_PIPES, 0)
            self._share_pipe(scopes.pipes[0], self._set)
            return
        words = np.zeros((len(scopes.pipes), len(pipe_words)), dtype=np.int64)
        for resources, row in zip(scopes.pipes, words, strict=True):
            self._share_pipe(resources, partial(self._set_of_pipe, row))
        self._kept_of_pipes.append(words)
        self._set(ALL_PIPES, _address(words))

    def _set_of_pipe(self, row: Ints, name: str, value: int) -> None:
        """Set a word that each pipe has; the next packet takes it over (NativePipes)."""
        at = self._at.get(name)
        if at is not None:
            row[at - self._pipeline.pipe_words.start] = value
            self._set(RUNNING_PIPE, -1)

    def _share_pipe(self, resources: Resources, set_word: SetWord) -> None:
        def point(name: str, array: Any) -> None:
            self._kept_of_pipes.append(array)
            set_word(name, _address(array))

        for counter in resources.counters.values():
            point(counter_word(counter.name, "packets"), counter.packets)
            point(counter_word(counter.name, "bytes"), counter.bytes)
        for meter in resources.meters.values():
            point(meter_word(meter.name), meter.memory)
        for adjustment in resources.adjustments.values():
            point(adjustment_word(adjustment.name), adjustment.memory)
        for filter in resources.filters.values():
            point(filter_word(filter.name), filter.cells)
        direct = block(self._written.direct_size + LINE)
        point(DIRECT, direct)
        for name, table in resources.tables.items():
            mirror = TableMirror(table, self._written.shapes[name], set_word, direct)
            if table.profile is not None:
                self._refresh_tables.append(mirror.refresh)
        for value_set in resources.value_sets.values():
            self._refresh_tables.append(ValueSetMirror(value_set, set_word).refresh)


def _outputs(sent: Sent) -> list[Output]:
    return [(port, packet) for _, port, packet in outputs(*sent)]


def _release(
    native: Native, release: Callable[[], None], transfers: Sequence[VectorTransfer]
) -> None:
    """Free the native memory; `native` is a parameter so that it lives until then."""
    release()
    for transfer in transfers:
        transfer.close()


def _words(address: int, count: int) -> memoryview[int]:
    memory = (ctypes.c_char * (8 * max(count, 1))).from_address(address)
    return memoryview(memory).cast("B").cast("q")


def _address(array: Any) -> int:
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        return int(array.__array_interface__["data"][0])
    return ctypes.addressof(_START.from_buffer(array))


_START = ctypes.c_char * 0
