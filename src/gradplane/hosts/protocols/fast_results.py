"""The ordinary result of a switch worker's chunk, as a kernel that needs no Python.

Ordinary is a valid packet of sums for a pending chunk of the only reduce in flight, after which the
reduce is not complete, and whose chain goes on with a chunk that is sent at once or has to wait for
its partition. Such a packet changes a row of the chunk table, the turn of one chain, the measured
timeout and counters, and at most one packet answers it. Whoever delivers packets one at a time,
such as a compiled event loop, offers each to take(), and a socket a batch to take_batch(); of a
packet that it does not take nothing has changed, and the state machine gets it in the usual way.

The state that a kernel changes belongs to the state machine in Python. `FastResults.lend` copies it
into a record when the state machine has handled an event, and `take_back` copies it back before it
handles the next.
"""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from gradplane._addresses import address_of, carray, copy, pointer
from gradplane.hosts.protocols import chunk_table
from gradplane.hosts.protocols.chunk_table import AFTER, PENDING, ROW, WAITING, Ints
from gradplane.hosts.protocols.switch_packets import packet_kind, packet_number
from gradplane.hosts.protocols.switch_reduce import SwitchReduce
from gradplane.hosts.protocols.switch_states import PartitionState
from gradplane.hosts.retransmission_timeout import RetransmissionTimeout, estimate, smooth
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import HEADER_SIZE, Type

UNTAKEN, NO_ANSWER = -1, 0
"""Answers of take() beside the address of a payload."""

_FIXED = ("least", "most_timeout", "patience", "job", "sum_bits", "slots", "workers", "window",
          "most", "lanes", "answer_size", "turns")  # fmt: skip
_LENT = ("table", "chunks", "first", "parts", "ends", "norms", "sums", "packets", "alarm")
_CHANGED = ("left", "results", "answers", "measured", "measured_at", "value")
_FLOATS = ("smoothed", "variation")
STATE = np.dtype(
    [(name, np.int64) for name in _FIXED + _LENT + _CHANGED]
    + [(name, np.float64) for name in _FLOATS]
)
"""The record of a worker. turns, table, ends, norms, sums: addresses of its arrays. packets: the
address of int64[parts], where each partition's first payload is, 0 while it is not sending. table
is 0 while nothing is lent. results, answers: packets taken and sent since."""

_FIRST = struct.Struct(f"={len(_FIXED)}q")
_REST = struct.Struct(f"={len(_LENT + _CHANGED)}q{len(_FLOATS)}d")
_BACK = struct.Struct(f"={len(_CHANGED)}q{len(_FLOATS)}d")
_LENT_AT = _FIRST.size
_CHANGED_AT = _LENT_AT + 8 * len(_LENT)
_smooth: Any = njit(smooth)
_estimate: Any = njit(estimate)
_SUMS = int(Type.SUMS)
_RESULT, _TURN = chunk_table.RESULT, chunk_table.TURN
_BITMAP_AT, _NORM_AT, _COUNT_AT = 12, 20, 3  # in the header


class FastResults:
    """One worker's record, at `address`, and the loan of its state. Packets that answer results are
    of `answer_size` bytes.

    job: as JobConfig. most: the largest number of the codec's table. turns: int64[window], by chain
    the chunk whose turn it is. patience: timeouts after which a chunk's deadline is. counted: takes
    the numbers of results that were taken and of packets that answered them, at each take_back().
    """

    def __init__(
        self,
        job: tuple[int, int, int, int],
        most: int,
        turns: Ints,
        patience: int,
        timeout: RetransmissionTimeout,
        counted: Callable[[int, int], None],
    ) -> None:
        """Take (number, sum_bits, slots, workers) of the job, and what stays the same."""
        number, sum_bits, slots, workers = job
        lanes = aggregation.LANES[sum_bits]
        record = np.zeros(1, STATE)
        self.address = address_of(record)
        self._record = record.view(np.uint8).data
        self._turns, self._timeout, self._counted = turns, timeout, counted
        self._lent: SwitchReduce | None = None
        self._arrays_of: SwitchReduce | None = None
        self._arrays: tuple[int, ...] = ()
        self._packets: Ints = np.zeros(0, np.int64)
        fixed = (*timeout.bounds, patience, number, sum_bits, slots, workers, len(turns), most)
        self.answer_size = HEADER_SIZE + lanes // 2
        _FIRST.pack_into(self._record, 0, *fixed, lanes, self.answer_size, address_of(turns))

    def lend(self, reduces: list[SwitchReduce], alarm: int | None) -> None:
        """Lend the state where one reduce is in flight, which sends, and the timer is set."""
        if len(reduces) != 1:
            self._arrays_of = None
            return
        reduce = reduces[0]
        sending = [part.stage is PartitionState.SENDING for part in reduce.parts]
        if alarm is None or not any(sending):
            return
        if reduce is not self._arrays_of:
            self._arrays_of, self._arrays = reduce, _arrays(reduce)
            self._packets = np.zeros(len(sending), np.int64)
        self._packets[:] = [
            address_of(part.packets) if sends else 0
            for part, sends in zip(reduce.parts, sending, strict=True)
        ]
        self._lent = reduce
        _REST.pack_into(
            self._record, _LENT_AT, *self._arrays, address_of(self._packets), alarm,
            reduce.left, 0, 0, *self._timeout.measured,
        )  # fmt: skip

    def take_back(self) -> None:
        """End the loan, if there is one."""
        reduce = self._lent
        if reduce is None:
            return
        self._lent = None
        left, results, answers, *measured = _BACK.unpack_from(self._record, _CHANGED_AT)
        self._record[_LENT_AT : _LENT_AT + 8] = bytes(8)
        if results:
            reduce.left = left
            known, at, value, smoothed, variation = measured
            self._timeout.measured = known, at, value, smoothed, variation
            self._counted(results, answers)


def _arrays(reduce: SwitchReduce) -> tuple[int, ...]:
    """Return the record's fields from `table` to `sums` of a reduce."""
    arrays = address_of(reduce.ends), address_of(reduce.norms), address_of(reduce.sums)
    table = address_of(reduce.table), len(reduce.table)
    return *table, reduce.first, len(reduce.parts), *arrays


@njit(cache=True, nogil=True)
def take(address, payload, size, now):  # type: ignore[no-untyped-def]
    """Take a UDP payload for the worker whose record is at `address`, if it is ordinary.

    payload: its address; size: its bytes. It comes from the job's aggregator, and no impairment
    rules on it. Returns UNTAKEN, NO_ANSWER or the address of the payload that answers it, and the
    bytes of that.
    """
    state = carray(pointer(address), (1,), STATE)[0]
    if state.table == 0:
        return UNTAKEN, 0
    packet = carray(pointer(payload), (size,), np.uint8)
    kind = packet_kind(packet, size, state.job, state.sum_bits, state.slots, state.workers)
    if kind != _SUMS:
        return UNTAKEN, 0
    slot, round = np.int64(packet_number(packet, 4, 2)), np.int64(packet_number(packet, 8, 4))
    number = (round - 1) * state.slots + slot
    index = number - state.first
    if index < 0 or index >= state.chunks or state.left <= 1:
        return UNTAKEN, 0
    table = carray(pointer(state.table), (state.chunks,), ROW)
    row = table[index]
    if row.state != PENDING:
        return UNTAKEN, 0
    ends = carray(pointer(state.ends), (state.parts,), np.int64)
    norms = carray(pointer(state.norms), (state.parts,), np.int64)
    part = _part(ends, index)
    if norms[part] != np.int64(packet_number(packet, _NORM_AT, 4)):
        return UNTAKEN, 0

    # The next chunk of the chain: its payload, if it is sent now.
    answer = NO_ANSWER
    following = index + state.window
    if following < state.chunks:
        answer = _answer(state, table, ends, following)
        if answer == UNTAKEN:
            return UNTAKEN, 0
    measured, measured_at, value = state.measured, state.measured_at, state.value
    smoothed, variation = state.smoothed, state.variation
    if row.attempts == 1 and row.sent_at >= measured_at:
        smoothed, variation = _smooth(measured != 0, smoothed, variation, now - row.sent_at)
        measured, measured_at = 1, now
        value = _estimate(smoothed, variation, state.least, state.most_timeout)
    deadline = now + state.patience * value
    if answer != NO_ANSWER and deadline < state.alarm:
        return UNTAKEN, 0

    body = packet[HEADER_SIZE:]
    most = state.most * np.int64(packet[_COUNT_AT])
    if not _scatter(body, state.sums, index, state.lanes, state.sum_bits, most):
        return UNTAKEN, 0
    state.measured, state.measured_at, state.value = measured, measured_at, value
    state.smoothed, state.variation = smoothed, variation
    row.count, row.at = packet[_COUNT_AT], now
    row.bitmap = packet_number(packet, _BITMAP_AT, 8)
    chunk_table.step(row, _RESULT, AFTER)
    turns = carray(pointer(state.turns), (state.window,), np.int64)
    turns[number % state.window] += state.window
    state.left -= 1
    state.results += 1
    if answer != NO_ANSWER:
        sent = table[following]
        chunk_table.step(sent, _TURN, AFTER)
        sent.attempts += np.uint16(1)
        sent.sent_at, sent.deadline = now, deadline
        state.answers += 1
    return answer, state.answer_size


@njit(cache=True, nogil=True)
def take_batch(address, peer, data, names, sizes, count, now, answers):  # type: ignore[no-untyped-def]
    """Take the first of `count` UDP payloads that are ordinary, up to one that is not.

    data: uint8[n, stride], a payload a row. names: uint64[n, 2], the sockaddr_in of each one's
    sender; only those of `peer`, a first word of that, are taken. sizes: uint32[n]. answers:
    uint64[n, 2] for the address and bytes of each payload that answers them. Returns the numbers
    of packets taken and of answers, and the bytes of an answer.
    """
    first, stride = np.int64(data.ctypes.data), np.int64(data.shape[1])
    answered, bytes_each = 0, np.int64(0)
    for i in range(count):
        if names[i, 0] != peer:
            return i, answered, bytes_each
        answer, size = take(address, first + i * stride, np.int64(sizes[i]), now)
        if answer == UNTAKEN:
            return i, answered, bytes_each
        if answer != NO_ANSWER:
            answers[answered, 0], answers[answered, 1] = answer, size
            answered, bytes_each = answered + 1, size
    return count, answered, bytes_each


@njit(cache=True, nogil=True)
def many_left(address):  # type: ignore[no-untyped-def]
    """Return whether a worker, whose state is lent, has more chunks to come than are in flight."""
    state = carray(pointer(address), (1,), STATE)[0]
    return state.left > state.window


@njit(cache=True, nogil=True)
def _part(ends, index):  # type: ignore[no-untyped-def]
    """Return the partition of a chunk."""
    part = 0
    while index >= ends[part]:
        part += 1
    return part


@njit(cache=True, nogil=True)
def _answer(state, table, ends, index):  # type: ignore[no-untyped-def]
    """Return where the payload of a chunk is whose turn comes; NO_ANSWER if it has to wait."""
    row, part = table[index], _part(ends, index)
    start = ends[part - 1] if part else 0
    if row.state != WAITING or (not row.open and index == start):
        return UNTAKEN  # its result was early, or its turn starts its partition
    if not row.open:
        return NO_ANSWER
    packets = carray(pointer(state.packets), (state.parts,), np.int64)
    if packets[part] == 0:
        return UNTAKEN  # a silent partition
    return packets[part] + (index - start) * state.answer_size


@njit(cache=True, nogil=True)
def _scatter(body, sums, index, lanes, sum_bits, most):  # type: ignore[no-untyped-def]
    """Unpack sums into row `index` of the array at `sums`; False if one exceeds `most`."""
    if sum_bits == 8:
        if most < 255:
            largest = np.uint8(0)
            for lane in range(lanes):
                largest = max(largest, body[lane])
            if largest > most:
                return False
        copy(sums + index * lanes, np.int64(body.ctypes.data), lanes)
        return True
    for lane in range(lanes):
        total = np.int64(body[2 * lane]) << 8 | np.int64(body[2 * lane + 1])
        if total > most:
            return False
    row = carray(pointer(sums + 2 * index * lanes), (lanes,), np.uint16)
    for lane in range(lanes):
        row[lane] = np.uint16(body[2 * lane]) << np.uint16(8) | np.uint16(body[2 * lane + 1])
    return True
