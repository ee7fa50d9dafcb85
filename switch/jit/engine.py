"""The engine: a program compiled, its state words filled in, packets through."""

from __future__ import annotations

import ctypes
import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.switch.arch.v1externs import log_message
from gradplane.switch.arch.v1model import Arrival, Output, Result
from gradplane.switch.arch.v1packet import InstanceType
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit import pipeline
from gradplane.switch.jit.chance import CHANCE
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import Externs, Site, counter_word, meter_word, register_word
from gradplane.switch.jit.groups import GroupMirror, ValueSetMirror
from gradplane.switch.jit.layout import Layouts
from gradplane.switch.jit.mirrors import TableMirror
from gradplane.switch.jit.native import Native
from gradplane.switch.jit.pipeline import Pipeline
from gradplane.switch.jit.text import Module
from gradplane.switch.jit.traffic import GROUPS, NODE, NODE_META
from gradplane.switch.runtime.errors import SwitchError
from gradplane.switch.runtime.messages import Digest, Fault, PacketIn
from gradplane.switch.runtime.state import State

Rows = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Buffers = tuple[Rows, Bytes, Rows, Rows]
Told = tuple[int, Callable[[], None]]  # cause, what tells of it
Sent = tuple[Rows, Bytes]
"""What left: rows of (port, end of its bytes, cause), and the bytes one after the other."""

BATCH = 4096  # packets for which process_buffer holds the lock

log = logging.getLogger("gradplane.switch")


class Engine:
    """A compiled v1model program on a State, which the interpreter may share.

    passes: the most that one injected packet may take. cpu_port: packets that leave there become
    PacketIn messages. cache: keep the machine code on disk.
    Raises CompileError for what it cannot compile. Not safe for threads: callers hold a lock.
    """

    def __init__(
        self, program: ir.Program, state: State, passes: int, cpu_port: int | None = None,
        cache: bool = True,
    ) -> None:  # fmt: skip
        self.state = state
        self.passes = passes
        self.cpu_port = cpu_port
        self._module = Module()
        self._layouts = Layouts()
        errors = {name: code for code, name in enumerate(program.errors)}
        unit = Unit(self._module, self._layouts, errors)
        externs = Externs(unit, program, state.profiles)
        self._pipeline: Pipeline = pipeline.build(unit, program, externs, passes)
        self._sites = externs.sites
        self._native = Native(self._module.text(), cache)
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self._process = self._native.function("process", pointer, pointer, pointer, number)
        self._once = self._native.function("once", pointer, number, number, number, pointer, number)
        self._words = _words(self._native.address("state"), len(self._module.words))
        release = self._native.function("release")
        weakref.finalize(self, _release, self._native, release).atexit = False
        self._kept: list[Any] = []  # what native code points to
        self._share(externs)

    # -- packets --------------------------------------------------------------------------------

    def process(
        self,
        ports: npt.NDArray[np.int64],
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
    ) -> Sent:
        """Runs packets to their end, all that comes of them included. Arrays are contiguous."""
        self._prepare()
        self._process(_address(ports), _address(data), _address(offsets), len(ports))
        return self._finish()

    def process_one(self, port: int, packet: bytes) -> list[Output]:
        """One packet."""
        return outputs(*self.process(*pack([port], [packet])))

    def process_list(
        self, ports: Sequence[int], packets: Sequence[bytes]
    ) -> list[tuple[int, int, bytes]]:
        """Packets one after the other -> (cause, port, packet) for all that leaves."""
        rows, out = self.process(*pack(ports, packets))
        causes = rows[:, 2].tolist()
        return [(c, *o) for c, o in zip(causes, outputs(rows, out), strict=True)]

    def process_buffer(
        self,
        lock: AbstractContextManager[Any],
        ports: npt.NDArray[np.integer],
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.integer],
    ) -> Buffers:
        """Any number of packets, in batches between which others can have the lock.

        -> ports, data, offsets, causes. Raises SwitchError for offsets that are not within the
        data.
        """
        where = np.ascontiguousarray(ports, dtype=np.int64)
        whole = np.ascontiguousarray(data, dtype=np.uint8)
        at = np.ascontiguousarray(offsets, dtype=np.int64)
        _check(len(where), len(whole), at)
        results = []
        for start in range(0, len(where), BATCH):
            part = where[start : start + BATCH]
            with lock:
                results.append(self.process(part, whole, at[start : start + len(part) + 1]))
        return _joined(results)

    def run(self, arrival: Arrival) -> Result:
        """One pass; arrivals that come again carry native metadata."""
        self._prepare()
        meta = None if arrival.meta is None else ctypes.create_string_buffer(arrival.meta)
        data = arrival.packet
        self._once(
            ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data), arrival.port,
            int(arrival.instance_type), meta, arrival.passes,
        )  # fmt: skip
        again = self._again()
        return Result(outputs(*self._finish()), again)

    def _prepare(self) -> None:
        """Brings native memory up to the state: time, groups, value sets, changed tables."""
        state = self.state
        now = state.clock()
        self._set("now", now)
        self._set("microseconds", (now - state.start) // 1000)
        self._set("logging", int(log.isEnabledFor(logging.INFO)))
        for refresh in self._refresh:
            refresh()

    def _vector(self, name: str) -> bytes:
        """A copy of a vector's bytes."""
        at = self._module.words
        start, length = (self._words[at[f"{name}:{part}"]] for part in ("data", "length"))
        return ctypes.string_at(start, length) if length else b""

    def _finish(self) -> Sent:
        """What was sent, the vectors emptied; tells what happened."""
        rows = np.frombuffer(self._vector("sent"), dtype=np.int64).reshape(-1, 3)
        out = np.frombuffer(self._vector("out"), dtype=np.uint8)
        messages = list(self._told(self._vector("messages")))
        for name in ("sent", "out", "messages"):
            self._set(f"{name}:length", 0)
        if self.cpu_port is not None and (rows[:, 0] == self.cpu_port).any():
            rows, out, arrived = self._without_cpu(rows, out)
            # After what else their cause made the switch tell, as one packet at a time has it.
            messages = sorted(messages + arrived, key=lambda message: message[0])
        for _, tell in messages:
            tell()
        self._count_drops()
        return rows, out

    def _again(self) -> list[Arrival]:
        nodes, size = self._vector("again"), self._pipeline.node_size
        return [self._arrival(nodes[at : at + size]) for at in range(0, len(nodes), size)]

    def _arrival(self, node: bytes) -> Arrival:
        data, length, kind, passes = (
            int.from_bytes(node[NODE[n] : NODE[n] + 8], "little")
            for n in ("data", "length", "type", "passes")
        )
        meta = node[NODE_META : NODE_META + self._pipeline.context.sizes[1]]
        packet = ctypes.string_at(data, length)
        return Arrival(0, packet, InstanceType(kind), meta, passes)

    # -- messages -------------------------------------------------------------------------------

    def _told(self, messages: bytes) -> Iterator[Told]:
        at = 0
        while at < len(messages):
            site, cause, size = np.frombuffer(messages, np.int64, 3, at).tolist()
            data = messages[at + 24 : at + 24 + size]
            yield cause, partial(self._tell, self._sites[site], data)
            at += 24 + size

    def _tell(self, site: Site, data: bytes) -> None:
        match site.kind:
            case "fault":
                self._fault(site.text, 1, f"packet dropped: {site.text}")
            case "storm":
                left = int.from_bytes(data, "little")
                reason = f"one packet took {self.passes} passes"
                self._fault(reason, left, f"{left} packets dropped: {reason}")
            case "digest":
                assert site.type is not None
                value = self._layouts.read(site.type, data)
                self.state.tell(Digest(site.text, site.type, value))
            case "log":
                value = None if site.type is None else self._layouts.read(site.type, data)
                log.info("%s", log_message(site.text, site.type, value))

    def _without_cpu(self, rows: Rows, out: Bytes) -> tuple[Rows, Bytes, list[Told]]:
        """What leaves, and what goes to the control plane."""
        assert self.cpu_port is not None
        there = rows[:, 0] == self.cpu_port
        ends = rows[:, 1]
        lengths = ends - np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
        told: list[Told] = []
        for start, end, cause in zip(
            (ends - lengths)[there].tolist(), *rows[there, 1:].T.tolist(), strict=True
        ):
            packet = PacketIn(out[start:end].tobytes())
            told.append((cause, partial(self.state.tell, packet)))
        rest = rows[~there].copy()
        rest[:, 1] = np.cumsum(lengths[~there])
        return rest, out[np.repeat(~there, lengths)], told

    def _fault(self, reason: str, count: int, text: str) -> None:
        self.state.drops[reason] += count
        self.state.tell(Fault(text))

    def _count_drops(self) -> None:
        for where in ("ingress", "egress"):
            count = self._take(f"drops: {where}")
            if count:
                self.state.drops[f"{where}: egress_spec is 511"] += count
        if self._take("drops: groups"):
            for group in np.flatnonzero(self._lost).tolist():
                reason = f"multicast group {group} has no members"
                self.state.drops[reason] += int(self._lost[group])
            self._lost.fill(0)

    # -- state words ----------------------------------------------------------------------------

    def _set(self, name: str, value: int) -> None:
        at = self._module.words.get(name)
        if at is not None:
            self._words[at] = value

    def _take(self, name: str) -> int:
        at = self._module.words.get(name)
        if at is None:
            return 0
        value = self._words[at]
        self._words[at] = 0
        return value

    def _point(self, name: str, array: Any) -> None:
        """Sets a word to the address of an array, which is kept alive."""
        self._kept.append(array)
        self._set(name, _address(array))

    def _share(self, externs: Externs) -> None:
        """Points native code to the state's memory."""
        state = self.state
        for register in state.registers.values():
            self._point(register_word(register.name), register.memory)
        for counter in state.counters.values():
            self._point(counter_word(counter.name, "packets"), counter.packets)
            self._point(counter_word(counter.name, "bytes"), counter.bytes)
        for meter in state.meters.values():
            self._point(meter_word(meter.name), np.asarray(meter.addresses))
        self._point(CHANCE, state.chance.state)
        for name in ("first packet", "second packet", "third packet"):
            self._point(name, np.zeros(self._pipeline.context.size + 64, dtype=np.uint8))
        self._lost = np.zeros(GROUPS, dtype=np.int64)
        self._point("lost groups", self._lost)
        self._refresh: list[Callable[[], None]] = [GroupMirror(state, self._set).refresh]
        for name, table in state.tables.items():
            mirror = TableMirror(table, externs.tables.shapes[name], self._set)
            if table.profile is not None:
                self._refresh.append(mirror.refresh)
        for value_set in state.value_sets.values():
            self._refresh.append(ValueSetMirror(value_set, self._set).refresh)


def _check(count: int, size: int, offsets: npt.NDArray[np.int64]) -> None:
    if len(offsets) != count + 1:
        raise SwitchError(f"{count} ports need {count + 1} offsets, not {len(offsets)}")
    if count and (offsets[0] < 0 or offsets[-1] > size or (np.diff(offsets) < 0).any()):
        what = "the offsets do not rise from 0 or more"
        raise SwitchError(f"{what} to at most {size}, the data's size")


def _joined(results: Sequence[Sent]) -> Buffers:
    """The batches' results as one."""
    if len(results) == 1:
        ((whole, data),) = results
    else:
        parts, size = [np.zeros((0, 3), dtype=np.int64)], 0
        for i, (rows, out) in enumerate(results):
            parts.append(rows + np.array([0, size, i * BATCH]))
            size += len(out)
        whole = np.concatenate(parts)
        data = np.concatenate([np.zeros(0, dtype=np.uint8), *(out for _, out in results)])
    ends = np.concatenate([np.zeros(1, dtype=np.int64), whole[:, 1]])
    return whole[:, 0].copy(), data, ends, whole[:, 2].copy()


def outputs(rows: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> list[Output]:
    """(port, packet) pairs."""
    whole, start, out = data.tobytes(), 0, []
    for port, end, _ in rows.tolist():
        out.append((port, whole[start:end]))
        start = end
    return out


def pack(ports: Sequence[int], packets: Sequence[bytes]) -> tuple[Any, Any, Any]:
    """Lists as the arrays that process() takes."""
    lengths = np.fromiter((len(p) for p in packets), dtype=np.int64, count=len(packets))
    offsets = np.zeros(len(packets) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.frombuffer(b"".join(packets) or b"\0", dtype=np.uint8)
    return np.array(ports, dtype=np.int64), data, offsets


def _release(native: Native, release: Callable[[], None]) -> None:
    """`native` is named to live until then."""
    release()


def _words(address: int, count: int) -> memoryview[int]:
    memory = (ctypes.c_char * (8 * max(count, 1))).from_address(address)
    return memoryview(memory).cast("B").cast("q")


def _address(array: Any) -> int:
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0])
    return ctypes.addressof(ctypes.c_char.from_buffer(array))
