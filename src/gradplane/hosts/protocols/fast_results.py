"""The ordinary result of a switch worker's chunk, as a kernel that needs no Python.

Ordinary is a valid packet of sums for a pending chunk of the only reduce in flight, after which the
reduce is not complete, and whose chain goes on with a chunk that is sent at once or has to wait for
its partition. Such a packet changes a row of the chunk table, the turn of one chain, the measured
timeout and counters, and at most one packet answers it. Whoever delivers packets one at a time,
such as a compiled event loop, offers each to take(), and a socket a batch to take_batch(); of a
packet that it does not take nothing has changed, and the state machine gets it in the usual way.

The kernel works on the state machine's own state: the records of the worker, of its reduce
(`switch_reduce.REDUCE`) and of its timeout. It is called between two events of the state machine,
never during one.
"""

from typing import Any

import numpy as np

from gradplane._addresses import Record, Whole, address_of, carray, copy, pointer
from gradplane._kernels import njit
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols import chunk_table
from gradplane.hosts.protocols.chunk_table import AFTER, PENDING, ROW, WAITING, Ints
from gradplane.hosts.protocols.switch_packets import (
    bitmap_of,
    chunk_number,
    indices_size,
    packet_kind,
    packet_number,
)
from gradplane.hosts.protocols.switch_reduce import REDUCE
from gradplane.hosts.retransmission_timeout import TIMEOUT, RetransmissionTimeout, estimate, smooth
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import HEADER_SIZE, Type

UNTAKEN, NO_ANSWER = -1, 0
"""Answers of take() beside the address of a payload."""

WORKER = np.dtype(
    [(name, np.int64) for name in ("patience", "job", "epoch", "sum_bits", "code_bits")]
    + [(name, np.int64) for name in ("slots", "workers", "children", "body", "window")]
    + [(name, np.int64) for name in ("most", "lanes", "answer_size", "turns", "timeout")]
    + [(name, np.int64) for name in ("reduce", "alarm", "results", "bare", "answers")]
)
"""A worker. children: of its switch; body: where the sums of a result begin. turns, timeout:
addresses of its array and of its TIMEOUT. reduce: the address of the REDUCE of its only reduce in
flight; 0 where there is none or several. alarm: when its timer runs out, NO_ALARM where it is not
set. results, answers: packets taken and sent by the kernel; bare: those taken without sums."""

NO_ALARM = -1
_smooth: Any = njit(smooth)
_estimate: Any = njit(estimate)
_SUMS, _BARE = int(Type.SUMS), aggregation.BARE
_RESULT, _TURN = chunk_table.RESULT, chunk_table.TURN
_NORM_AT = aggregation.NORM_AT
_COUNT_AT = aggregation.COUNT_AT


def body_at(job: JobConfig) -> int:
    """Return where the sums of a result begin: behind a path where switches sum in levels."""
    return HEADER_SIZE + (aggregation.PATH_SIZE if job.leaves else 0)


class WorkerRecord(Record):
    """One worker's record. Packets that answer results are of `answer_size` bytes.

    most: the largest number of the codec's table. turns: int64[window], by chain the chunk whose
    turn it is. patience: timeouts after which a chunk's deadline is.
    """

    layout = WORKER
    epoch, sum_bits, answer_size, body, reduce, alarm = (Whole() for _ in range(6))
    results, bare, answers = Whole(), Whole(), Whole()

    def __init__(
        self,
        job: JobConfig,
        worker: int,
        most: int,
        turns: Ints,
        patience: int,
        timeout: RetransmissionTimeout,
    ) -> None:
        transport = job.transport
        lanes = aggregation.LANES[transport.sum_bits]
        self._memory = turns, timeout  # whose addresses the record has
        super().__init__(
            patience=patience, job=job.number, epoch=transport.epoch,
            sum_bits=transport.sum_bits, code_bits=transport.code_bits, slots=transport.slots,
            workers=job.workers, children=len(job.rack(worker)), body=body_at(job),
            window=len(turns), most=most, lanes=lanes,
            answer_size=indices_size(transport), turns=address_of(turns), timeout=timeout.address,
            alarm=NO_ALARM,
        )  # fmt: skip

    def take_counts(self) -> tuple[int, int, int]:
        """Return the numbers of results taken, of packets that answered them, and of the results
        without sums, since the last call."""
        taken = self.results, self.answers, self.bare
        self.results = self.bare = self.answers = 0
        return taken


@njit(cache=True, nogil=True)
def take(address, payload, size, now):  # type: ignore[no-untyped-def]
    """Take a UDP payload for the worker whose record is at `address`, if it is ordinary.

    payload: its address; size: its bytes. It comes from the job's aggregator, and no impairment
    rules on it. Returns UNTAKEN, NO_ANSWER or the address of the payload that answers it, and the
    bytes of that.
    """
    state = carray(pointer(address), (1,), WORKER)[0]
    if state.reduce == 0 or state.alarm == NO_ALARM:
        return UNTAKEN, 0
    reduce = carray(pointer(state.reduce), (1,), REDUCE)[0]
    if reduce.sending == 0:
        return UNTAKEN, 0
    packet = carray(pointer(payload), (size,), np.uint8)
    widths = (state.sum_bits, state.code_bits)
    place = (state.job, state.epoch, *widths, state.slots, state.workers, state.children)
    if packet_kind(packet, size, *place) != _SUMS:
        return UNTAKEN, 0
    number = chunk_number(packet, state.slots, reduce.first)
    index = number - reduce.first
    if index < 0 or index >= reduce.chunks or reduce.left <= 1:
        return UNTAKEN, 0
    table = carray(pointer(reduce.table), (reduce.chunks,), ROW)
    row = table[index]
    if row.state != PENDING:
        return UNTAKEN, 0
    ends = carray(pointer(reduce.ends), (reduce.parts,), np.int64)
    norms = carray(pointer(reduce.norms), (reduce.parts,), np.int64)
    part = _part(ends, index)
    if norms[part] != np.int64(packet_number(packet, _NORM_AT, 4)):
        return UNTAKEN, 0

    # The next chunk of the chain: its payload, if it is sent now.
    answer = NO_ANSWER
    following = index + state.window
    if following < reduce.chunks:
        answer = _answer(state, reduce, table, ends, following)
        if answer == UNTAKEN:
            return UNTAKEN, 0
    timeout = carray(pointer(state.timeout), (1,), TIMEOUT)[0]
    measured, value = timeout.measured, timeout.value
    smoothed, variation = timeout.smoothed, timeout.variation
    if row.attempts == 1:
        smoothed, variation = _smooth(measured != 0, smoothed, variation, now - row.sent_at)
        measured = 1
        value = _estimate(smoothed, variation, timeout.least, timeout.most)
    deadline = now + state.patience * value
    if answer != NO_ANSWER and deadline < state.alarm:
        return UNTAKEN, 0

    count = np.int64(packet_number(packet, _COUNT_AT, 2))
    own = carray(pointer(reduce.own), (2,), np.int64)
    bare = packet[1] & _BARE != 0
    if own[0] <= index < own[1]:
        body, most = packet[state.body :], state.most * count
        known = carray(pointer(reduce.known), (reduce.chunks,), np.uint8)
        row_at = (reduce.sums, index, state.lanes, state.sum_bits)
        if bare:
            return UNTAKEN, 0
        if known[index]:
            if not _equal(body, *row_at, most):
                return UNTAKEN, 0
        elif not _scatter(body, *row_at, most):
            return UNTAKEN, 0
        known[index] = 1
    timeout.measured, timeout.value = measured, value
    timeout.smoothed, timeout.variation = smoothed, variation
    row.count, row.at = count, now
    row.bitmap = bitmap_of(packet)
    chunk_table.step(row, _RESULT, AFTER)
    turns = carray(pointer(state.turns), (state.window,), np.int64)
    turns[number % state.window] += state.window
    reduce.left -= 1
    state.results += 1
    state.bare += bare
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
    """Return whether a worker's only reduce has more chunks to come than are in flight."""
    state = carray(pointer(address), (1,), WORKER)[0]
    if state.reduce == 0:
        return False
    return carray(pointer(state.reduce), (1,), REDUCE)[0].left > state.window


@njit(cache=True, nogil=True)
def _part(ends, index):  # type: ignore[no-untyped-def]
    """Return the partition of a chunk."""
    part = 0
    while index >= ends[part]:
        part += 1
    return part


@njit(cache=True, nogil=True)
def _answer(state, reduce, table, ends, index):  # type: ignore[no-untyped-def]
    """Return where the payload of a chunk is whose turn comes; NO_ANSWER if it has to wait."""
    row, part = table[index], _part(ends, index)
    start = ends[part - 1] if part else 0
    if row.state != WAITING or (not row.open and index == start):
        return UNTAKEN  # its result was early, or its turn starts its partition
    if not row.open:
        return NO_ANSWER
    packets = carray(pointer(reduce.packets), (reduce.parts,), np.int64)
    if packets[part] == 0:
        return UNTAKEN  # a silent partition
    return packets[part] + (index - start) * state.answer_size


@njit(cache=True, nogil=True)
def _equal_words(start, sums, lanes, most):  # type: ignore[no-untyped-def]
    """Compare sums of 32 bits; see `_equal`."""
    row = carray(pointer(sums), (lanes,), np.uint32)
    words = carray(pointer(start), (lanes,), np.uint32)
    low, other, greatest = np.uint32(0xFF00FF), np.uint32(0), np.uint32(0)
    for lane in range(lanes):
        word = words[lane]
        word = word << np.uint32(16) | word >> np.uint32(16)
        total = np.uint32((word & low) << np.uint32(8) | word >> np.uint32(8) & low)
        other |= total ^ row[lane]
        greatest = max(greatest, total)
    return other == 0 and greatest <= most


@njit(cache=True, nogil=True)
def _scatter_words(body, sums, index, lanes, most):  # type: ignore[no-untyped-def]
    """Unpack sums of 32 bits; see `_scatter`."""
    row = carray(pointer(sums + 4 * index * lanes), (lanes,), np.uint32)
    words = carray(pointer(np.int64(body.ctypes.data)), (lanes,), np.uint32)
    low, greatest = np.uint32(0xFF00FF), np.uint32(0)
    for lane in range(lanes):
        word = words[lane]
        word = word << np.uint32(16) | word >> np.uint32(16)
        total = np.uint32((word & low) << np.uint32(8) | word >> np.uint32(8) & low)
        greatest = max(greatest, total)
        row[lane] = total
    if greatest > most:
        row[:] = 0  # as it was
        return False
    return True


@njit(cache=True, nogil=True)
def _equal(body, sums, index, lanes, sum_bits, most):  # type: ignore[no-untyped-def]
    """Return whether sums are those in row `index` of the array at `sums`, none above `most`."""
    start = np.int64(body.ctypes.data)
    if sum_bits == 8:
        row = carray(pointer(sums + index * lanes), (lanes,), np.uint8)
        other, greatest = np.uint8(0), np.uint8(0)
        for lane in range(lanes):
            other |= row[lane] ^ body[lane]
            greatest = max(greatest, body[lane])
        return other == 0 and greatest <= most
    if sum_bits == 32:
        return _equal_words(start, sums + 4 * index * lanes, lanes, most)
    halves = carray(pointer(sums + 2 * index * lanes), (lanes,), np.uint16)
    words = carray(pointer(start), (lanes,), np.uint16)
    differing, largest = np.uint16(0), np.uint16(0)
    for lane in range(lanes):
        word = words[lane]
        total = np.uint16(word << np.uint16(8) | word >> np.uint16(8))
        differing |= total ^ halves[lane]
        largest = max(largest, total)
    return differing == 0 and largest <= most


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
    if sum_bits == 32:
        return _scatter_words(body, sums, index, lanes, most)
    row = carray(pointer(sums + 2 * index * lanes), (lanes,), np.uint16)
    words = carray(pointer(np.int64(body.ctypes.data)), (lanes,), np.uint16)
    greatest = np.uint16(0)
    for lane in range(lanes):
        word = words[lane]
        total = np.uint16(word << np.uint16(8) | word >> np.uint16(8))
        greatest = max(greatest, total)
        row[lane] = total
    if greatest > most:
        row[:] = 0  # as it was
        return False
    return True
