"""The packets between one worker and the switch, in batches: made on the way out, checked on the
way in."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gradplane._kernels import njit
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Peer, Send
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import HEADER_SIZE, Header, Type
from gradplane.hosts.wire.payloads import Bytes, Ints, Payloads

# Columns of a parsed packet.
KIND, NUMBER, WORKERS, BITMAP, NORM = range(5)

# Why a packet is refused, in place of its kind; the negative numbers of these.
_REASONS = ("", "malformed", "another job", "no result", "no such slot", "count")
_MALFORMED, _OTHER_JOB, _NO_RESULT, _NO_SLOT, _COUNT = range(-1, -6, -1)
_NORM_RESULT, _INDICES, _SUMS = int(Type.NORM_RESULT), int(Type.INDICES), int(Type.SUMS)
_STRAGGLER, _PARTIAL, _STATUS = int(Type.STRAGGLER), int(Type.PARTIAL), int(Type.STATUS)
_HEADER, _SUMS_SIZE, _VERSION = HEADER_SIZE, aggregation.SUMS_SIZE, aggregation.VERSION
_SLOT_AT, _ROUND_AT = aggregation.SLOT_AT, aggregation.ROUND_AT
_TYPES, _ANSWER = int(max(Type)), aggregation.STATUS_ANSWER


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Packets of one type from the switch, in the order in which they came.

    parsed: int64[n, 5], the columns above: type, chunk number, workers in the result, bitmap (its
    64 bits), norm. packets: uint8[n, bytes], whole rows, which are contiguous: a kernel is compiled
    for one layout, and a part of a row is contiguous only where there is a single row.
    """

    kind: Type
    parsed: Ints
    packets: Bytes

    def body(self, i: int, sum_bits: int) -> bytes:
        """Return what follows the header of packet i."""
        end = HEADER_SIZE + aggregation.body_size(self.kind, sum_bits)
        return self.packets[i, HEADER_SIZE:end].tobytes()

    def header(self, i: int, slots: int) -> tuple[int, int]:
        """Return slot and round of packet i."""
        number = int(self.parsed[i, NUMBER])
        return number % slots, number // slots + 1


class SwitchPackets:
    """The maker and checker of one worker's packets. `refused` counts by reason."""

    def __init__(self, job: JobConfig, worker: int, refused: Counter[str]) -> None:
        self._job, self._worker, self._refused = job, worker, refused
        self._source_port = job.addresses.worker_addresses[worker][1]

    def make(self, kind: Type, number: int, norm: int = 0, flags: int = 0) -> Send:
        """Return a packet about a chunk that consists of the header only."""
        header = self._header(kind, number, norm, flags)
        return self.send(Payloads.of([header]))

    def send(self, payloads: Payloads) -> Send:
        """Return the action that sends these payloads to the switch."""
        return Send(self._source_port, *self._job.addresses.aggregator, payloads)

    def indices(self, first: int, codes: npt.NDArray[np.uint8], norm: int) -> Bytes:
        """Return the payloads of a partition's INDICES packets, uint8[chunks, bytes].

        first: number of its first chunk. codes: uint8[lanes], below 16; the last packet is filled
        up with 0.
        """
        job, lanes = self._job, aggregation.LANES[self._job.transport.sum_bits]
        count = -(-codes.size // lanes)
        packets = np.empty((count, HEADER_SIZE + lanes // 2), np.uint8)
        template = self._header(Type.INDICES, first, norm, 0)
        _head(np.frombuffer(template, np.uint8), first, job.transport.slots, packets)
        _pack(codes, packets)
        return packets

    def _header(self, kind: Type, number: int, norm: int, flags: int) -> bytes:
        job = self._job
        place = (
            number % job.transport.slots,
            number // job.transport.slots + 1,
            job.transport.sum_bits,
        )
        return Header(kind, job.number, self._worker, *place, norm, flags=flags).pack()

    def parse(self, source: Peer, payloads: Payloads) -> list[Results]:
        """Return the packets that are for this worker, a batch for each run of one type."""
        if source != self._job.addresses.aggregator:
            self._refused["stranger"] += len(payloads)
            return []
        job, n = self._job, len(payloads)
        parsed = np.empty((n, 5), np.int64)
        limits = (job.number, job.transport.sum_bits, job.transport.slots, job.workers)
        if _parse(payloads.data, payloads.sizes, *limits, parsed):
            wrong = parsed[:, KIND] < 0
            reasons = [_REASONS[-kind] for kind in parsed[wrong, KIND].tolist()]
            self._refused.update(reasons)
            parsed, data = parsed[~wrong], payloads.data[~wrong]
        else:
            data = payloads.data
        kinds = parsed[:, KIND]
        if not len(kinds):
            return []
        edges = [0, len(kinds)]
        if len(kinds) > 1:
            edges[1:1] = (np.flatnonzero(np.diff(kinds)) + 1).tolist()
        return [
            Results(Type(int(kinds[a])), parsed[a:b], data[a:b])
            for a, b in zip(edges, edges[1:], strict=False)
        ]


@njit(cache=True, nogil=True)
def _head(template, first, slots, packets):  # type: ignore[no-untyped-def]
    """Write the headers of chunks `first` and up, which are equal but for slot and round."""
    for row in range(len(packets)):
        number = first + row
        slot, round = number % slots, number // slots + 1
        header = packets[row, :_HEADER]
        header[:] = template
        for i in range(2):
            header[_SLOT_AT + i] = slot >> (8 - 8 * i) & 0xFF
        for i in range(4):
            header[_ROUND_AT + i] = round >> (24 - 8 * i) & 0xFF


@njit(cache=True, nogil=True)
def _pack(codes, packets):  # type: ignore[no-untyped-def]
    """Write 4-bit codes behind the headers, the first of two in a byte's high half."""
    size = packets.shape[1] - _HEADER
    for row in range(len(packets)):
        some = codes[2 * size * row : 2 * size * (row + 1)]
        whole = some.size // 2
        body = packets[row, _HEADER:]
        for i in range(whole):
            body[i] = some[2 * i] << np.uint8(4) | some[2 * i + 1]
        if whole < size:
            body[whole:] = 0
            if some.size % 2:
                body[whole] = some[some.size - 1] << np.uint8(4)


@njit(cache=True, nogil=True)
def packet_number(row, start, size):  # type: ignore[no-untyped-def]
    """Return the big-endian number of so many bytes of a row."""
    value = np.uint64(0)
    for i in range(start, start + size):
        value = value << np.uint64(8) | np.uint64(row[i])
    return value


@njit(cache=True, nogil=True)
def _parse(data, sizes, job, sum_bits, slots, workers, parsed):  # type: ignore[no-untyped-def]
    """Fill the columns of each packet; return how many are refused."""
    refused = 0
    for i in range(len(sizes)):
        kind = packet_kind(data[i], sizes[i], job, sum_bits, slots, workers)
        parsed[i, KIND] = kind
        if kind < 0:
            refused += 1
            continue
        row = data[i]
        slot, round = np.int64(packet_number(row, 4, 2)), np.int64(packet_number(row, 8, 4))
        parsed[i, NUMBER] = (round - 1) * slots + slot
        parsed[i, WORKERS] = row[3]
        parsed[i, BITMAP] = np.int64(packet_number(row, 12, 8))
        parsed[i, NORM] = np.int64(packet_number(row, 20, 4))
    return refused


@njit(cache=True, nogil=True)
def packet_kind(row, size, job, sum_bits, slots, workers):  # type: ignore[no-untyped-def]
    """Return a packet's type, or why it is refused."""
    if size < _HEADER or row[0] >> 4 != _VERSION:
        return _MALFORMED
    kind = np.int64(row[0] & 15)
    if kind == 0 or kind > _TYPES or (row[7] != 8 and row[7] != 16):
        return _MALFORMED
    body = 0
    if kind == _INDICES:
        body = _SUMS_SIZE // 2 if row[7] == 8 else _SUMS_SIZE // 4
    elif kind in (_SUMS, _PARTIAL):
        body = _SUMS_SIZE
    if size != _HEADER + body:
        return _MALFORMED
    if row[2] != job or row[7] != sum_bits:
        return _OTHER_JOB
    if kind not in (_NORM_RESULT, _SUMS, _STRAGGLER, _STATUS) or row[6] != 0:
        return _NO_RESULT
    if kind == _STATUS:
        return kind if row[1] & _ANSWER else _NO_RESULT
    if np.int64(packet_number(row, 4, 2)) >= slots or packet_number(row, 8, 4) == 0:
        return _NO_SLOT
    if kind == _SUMS:
        bitmap = packet_number(row, 12, 8)
        count = 0
        for worker in range(64):
            if bitmap >> np.uint64(worker) & np.uint64(1):
                if worker >= workers:
                    return _COUNT
                count += 1
        if count == 0 or count != row[3]:
            return _COUNT
    return kind
