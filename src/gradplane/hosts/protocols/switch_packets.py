"""The packets between one worker and the switch, in batches: made on the way out, checked on the
way in."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gradplane._kernels import njit
from gradplane.codecs._packing import join
from gradplane.hosts.config import JobConfig, Transport
from gradplane.hosts.protocols.actions import Peer, Send
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import HEADER_SIZE, Header, Type
from gradplane.hosts.wire.payloads import ECN_CAPABLE, Bytes, Ints, Payloads

# Columns of a parsed packet.
KIND, NUMBER, WORKERS, BITMAP, NORM = range(5)

# Why a packet is refused, in place of its kind; the negative numbers of these.
_REASONS = (
    "", "malformed", "another job", "no result", "no such slot", "count", "damaged header",
    "another epoch",
)  # fmt: skip
_MALFORMED, _OTHER_JOB, _NO_RESULT, _NO_SLOT, _COUNT, _DAMAGED, _OTHER_EPOCH = range(-1, -8, -1)
_NORM_RESULT, _INDICES, _SUMS = int(Type.NORM_RESULT), int(Type.INDICES), int(Type.SUMS)
_STRAGGLER, _PARTIAL, _STATUS = int(Type.STRAGGLER), int(Type.PARTIAL), int(Type.STATUS)
_EPOCH = int(Type.EPOCH)
_HEADER, _SUMS_SIZE, _VERSION = HEADER_SIZE, aggregation.SUMS_SIZE, aggregation.VERSION
_SLOT_AT, _ROUND_AT = aggregation.SLOT_AT, aggregation.ROUND_AT
_BITMAP_AT, _NORM_AT = aggregation.BITMAP_AT, aggregation.NORM_AT
_COUNT_AT, _EPOCH_AT, _CHECKSUM_AT = (
    aggregation.COUNT_AT, aggregation.EPOCH_AT, aggregation.CHECKSUM_AT,
)  # fmt: skip
_CODE_BITS_AT = aggregation.EPOCH_AT + 1
_HALF = aggregation.ROUNDS // 2
_TYPES, _ANSWER = int(max(Type)), aggregation.STATUS_ANSWER
_REPEATS, _REPEATED = aggregation.REPEATS, aggregation.REPEATED
_PATH, _UNCOUNTED, _PATH_SIZE = aggregation.PATH, aggregation.UNCOUNTED, aggregation.PATH_SIZE
_BARE = aggregation.BARE


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Packets of one type from the switch, in the order in which they came.

    parsed: int64[n, 5], the columns above: type, chunk number, workers in the result (of an EPOCH
    notice: the epoch), bitmap (64 bits: of the worker's own switch), norm. packets: uint8[n,
    bytes], whole rows, which are contiguous: a kernel is compiled for one layout, and a part of a
    row is contiguous only where there is a single row. marked: as in Payloads.
    """

    kind: Type
    parsed: Ints
    packets: Bytes
    marked: npt.NDArray[np.bool_] | None = None

    def sums(self, i: int) -> bytes | None:
        """Return what follows the header of packet i of SUMS, and its path; None for nothing."""
        if self.packets[i, 1] & _BARE:
            return None
        start = aggregation.header_size(self.packets[i, :2].tobytes())
        return self.packets[i, start : start + aggregation.SUMS_SIZE].tobytes()

    def header(self, i: int, slots: int) -> tuple[int, int]:
        """Return slot and round of packet i."""
        return aggregation.place(int(self.parsed[i, NUMBER]), slots)


class SwitchPackets:
    """The maker and checker of one worker's packets. `refused` counts by reason.

    epoch: the job's, which its packets have, and of which results are taken.
    """

    def __init__(self, job: JobConfig, worker: int, refused: Counter[str]) -> None:
        rack = job.rack(worker)
        self._job, self._refused = job, refused
        self.epoch = job.transport.epoch
        self._rack, self._number = rack, rack.index(worker)  # at its switch
        self._children = len(rack)
        self._source_port = job.addresses.worker_addresses[worker][1]
        self._tos = ECN_CAPABLE if job.transport.ecn else 0

    def make(self, kind: Type, number: int, norm: int = 0, flags: int = 0) -> Send:
        """Return a packet about a chunk that consists of the header only."""
        header = self._header(kind, number, norm, flags)
        return self.send(Payloads.of([header]))

    def send(self, payloads: Payloads) -> Send:
        """Return the action that sends these payloads to the switch."""
        return Send(self._source_port, *self._job.addresses.aggregator, payloads, self._tos)

    def send_indices(self, packets: Bytes) -> Send:
        """Return the action that sends rows of indices(), of which some end with the header."""
        sizes = np.where(packets[:, 1] & _REPEATS, _HEADER, packets.shape[1])
        return self.send(Payloads(packets, sizes))

    def indices(
        self,
        first: int,
        codes: npt.NDArray[np.uint8],
        norm: int,
        packets: Bytes,
        owner: int | None = None,
    ) -> None:
        """Write the payloads of a partition's INDICES packets, uint8[chunks, indices_size()].

        first: number of its first chunk. codes: uint8[lanes], below 2^code_bits; the last packet
        is filled up with 0. owner: the only worker that needs the sums; None: all do. Where the job
        sends nonzero blocks only, one whose indices repeat has the flag, and ends with the header.
        """
        transport = self._job.transport
        template = self._header(Type.INDICES, first, norm, 0, self._child(owner))
        _head(np.frombuffer(template, np.uint8), first, transport.slots, packets)
        _pack(codes, transport.code_bits, packets)
        if transport.nonzero_blocks:
            _shorten(packets)

    def _child(self, owner: int | None) -> int:
        """Return the number plus 1 of a worker at this worker's switch, as INDICES have it."""
        if owner is None:
            return 0
        return self._rack.index(owner) + 1 if owner in self._rack else aggregation.NOBODY

    def _header(self, kind: Type, number: int, norm: int, flags: int, count: int = 0) -> bytes:
        job = self._job
        place = aggregation.place(number, job.transport.slots)
        who = (kind, job.number, self._number)
        bits, width = job.transport.sum_bits, job.transport.code_bits
        fields = (*who, *place, bits, norm)
        header = Header(*fields, flags=flags, count=count, epoch=self.epoch, code_bits=width)
        return header.pack()

    def parse(self, source: Peer, payloads: Payloads, near: int) -> list[Results]:
        """Return the packets that are for this worker, a batch for each run of one type.

        near: a chunk's number that those of the packets are near, since rounds count modulo 2^32.
        """
        if source != self._job.addresses.aggregator:
            self._refused["stranger"] += len(payloads)
            return []
        job, n = self._job, len(payloads)
        parsed = np.empty((n, 5), np.int64)
        transport = job.transport
        if transport.nonzero_blocks:
            payloads = _whole(payloads, transport)
        widths = transport.sum_bits, transport.code_bits
        limits = (self.epoch, *widths, transport.slots, job.workers, self._children)
        if _parse(payloads.data, payloads.sizes, job.number, *limits, near, parsed):
            wrong = parsed[:, KIND] < 0
            reasons = [_REASONS[-kind] for kind in parsed[wrong, KIND].tolist()]
            self._refused.update(reasons)
            parsed, payloads = parsed[~wrong], payloads.select(~wrong)
        data, marked = payloads.data, payloads.marked
        kinds = parsed[:, KIND]
        if not len(kinds):
            return []
        edges = [0, len(kinds)]
        if len(kinds) > 1:
            edges[1:1] = ((kinds[1:] != kinds[:-1]).nonzero()[0] + 1).tolist()
        return [
            Results(
                Type(int(kinds[a])), parsed[a:b], data[a:b], None if marked is None else marked[a:b]
            )
            for a, b in zip(edges, edges[1:], strict=False)
        ]


def indices_size(transport: Transport) -> int:
    """Return the bytes of a packet of indices, with its header."""
    widths = transport.sum_bits, transport.code_bits
    return HEADER_SIZE + aggregation.body_size(Type.INDICES, *widths)


def _whole(payloads: Payloads, transport: Transport) -> Payloads:
    """Return the payloads with whole sums in place of those that repeat."""
    unit = aggregation.body_size(
        Type.SUMS, transport.sum_bits, transport.code_bits, aggregation.REPEATS
    )
    stride = _HEADER + _PATH_SIZE + _SUMS_SIZE
    data = np.zeros((len(payloads), max(stride, payloads.data.shape[1])), np.uint8)
    data[:, : payloads.data.shape[1]] = payloads.data
    sizes = payloads.sizes.copy()
    _repeat(data, sizes, unit)
    return Payloads(data, sizes, payloads.marked)


@njit(cache=True, nogil=True)
def _repeat(data, sizes, unit):  # type: ignore[no-untyped-def]
    """Repeat the sums, of `unit` bytes, of the results that have no more."""
    for i in range(len(sizes)):
        row = data[i]
        start = _HEADER + (_PATH_SIZE if row[1] & _PATH else 0)
        if sizes[i] == start + unit and row[0] & 15 == _SUMS and row[1] & _REPEATS:
            for at in range(start + unit, start + _SUMS_SIZE):
                row[at] = row[at - unit]
            sizes[i] = start + _SUMS_SIZE


@njit(cache=True, nogil=True)
def _shorten(packets):  # type: ignore[no-untyped-def]
    """Put the first bytes of indices that repeat them into the header, with the flag."""
    for row in packets:
        at = _HEADER + _REPEATED
        while at < len(row) and row[at] == row[at - _REPEATED]:
            at += 1
        if at == len(row):
            row[1] |= _REPEATS
            row[_BITMAP_AT : _BITMAP_AT + _REPEATED] = row[_HEADER : _HEADER + _REPEATED]
            write_checksum(row)


@njit(cache=True, nogil=True)
def _head(template, first, slots, packets):  # type: ignore[no-untyped-def]
    """Write the headers of chunks `first` and up, which are equal but for slot and round, and so
    for the checksum."""
    fixed = words_sum(template, _HEADER)
    for i in range(_SLOT_AT, _ROUND_AT + 4, 2):
        if i < _SLOT_AT + 2 or i >= _ROUND_AT:
            fixed -= np.int64(packet_number(template, i, 2))
    fixed -= np.int64(packet_number(template, _CHECKSUM_AT, 2))
    for row in range(len(packets)):
        number = first + row
        slot, round = number % slots, (number // slots + 1) & 0xFFFFFFFF
        header = packets[row, :_HEADER]
        for i in range(_HEADER):
            header[i] = template[i]
        total = fixed + slot + (round >> 16) + (round & 0xFFFF)
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        header[_CHECKSUM_AT] = 0xFF - (total >> 8)
        header[_CHECKSUM_AT + 1] = 0xFF - (total & 0xFF)
        for i in range(2):
            header[_SLOT_AT + i] = slot >> (8 - 8 * i) & 0xFF
        for i in range(4):
            header[_ROUND_AT + i] = round >> (24 - 8 * i) & 0xFF


@njit(cache=True, nogil=True)
def _pack(codes, width, packets):  # type: ignore[no-untyped-def]
    """Write codes of so many bits behind the headers."""
    lanes = (packets.shape[1] - _HEADER) * 8 // width
    for row in range(len(packets)):
        join(codes[lanes * row : lanes * (row + 1)], width, packets[row, _HEADER:])


@njit(cache=True, nogil=True, general=True)
def packet_number(row, start, size):  # type: ignore[no-untyped-def]
    """Return the big-endian number of so many bytes of a row."""
    value = np.uint64(0)
    for i in range(start, start + size):
        value = value << np.uint64(8) | np.uint64(row[i])
    return value


@njit(cache=True, nogil=True, general=True)
def words_sum(row, size):  # type: ignore[no-untyped-def]
    """Return the sum of the 16-bit words of a header of so many bytes: 0 modulo 65535 where its
    checksum is right."""
    total = np.int64(0)
    for i in range(0, size, 2):
        total += np.int64(row[i]) << 8 | np.int64(row[i + 1])
    return total


@njit(cache=True, nogil=True)
def write_checksum(row):  # type: ignore[no-untyped-def]
    """Write the checksum of a packet's header, which has no path."""
    row[_CHECKSUM_AT : _CHECKSUM_AT + 2] = 0
    total = words_sum(row, _HEADER)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    row[_CHECKSUM_AT] = 0xFF - (total >> 8)
    row[_CHECKSUM_AT + 1] = 0xFF - (total & 0xFF)


@njit(cache=True, nogil=True)
def bitmap_of(row):  # type: ignore[no-untyped-def]
    """Return who of the worker's switch is in a result, which a path says where there is one;
    nobody is of a rack that was not counted."""
    if row[1] & _UNCOUNTED:
        return np.uint64(0)
    return packet_number(row, _HEADER if row[1] & _PATH else _BITMAP_AT, 8)


@njit(cache=True, nogil=True)
def chunk_number(row, slots, near):  # type: ignore[no-untyped-def]
    """Return the number of the chunk of a packet, that of its slot and round next to `near`."""
    slot, round = (
        np.int64(packet_number(row, _SLOT_AT, 2)),
        np.int64(packet_number(row, _ROUND_AT, 4)),
    )
    here = near // slots + 1
    ahead = (round - here + _HALF) % (2 * _HALF) - _HALF
    return (here + ahead - 1) * slots + slot


@njit(cache=True, nogil=True)
def _parse(  # type: ignore[no-untyped-def]
    data, sizes, job, epoch, sum_bits, code_bits, slots, workers, children, near, parsed
):
    """Fill the columns of each packet; return how many are refused."""
    refused = 0
    for i in range(len(sizes)):
        place = job, epoch, sum_bits, code_bits, slots, workers, children
        kind = packet_kind(data[i], sizes[i], *place)
        parsed[i, KIND] = kind
        if kind < 0:
            refused += 1
            continue
        row = data[i]
        parsed[i, NUMBER] = chunk_number(row, slots, near)
        counted = packet_number(row, _COUNT_AT, 2)
        parsed[i, WORKERS] = np.int64(row[_EPOCH_AT] if kind == _EPOCH else counted)
        parsed[i, BITMAP] = np.int64(bitmap_of(row))
        parsed[i, NORM] = np.int64(packet_number(row, _NORM_AT, 4))
    return refused


@njit(cache=True, nogil=True)
def packet_kind(  # type: ignore[no-untyped-def]
    row, size, job, epoch, sum_bits, code_bits, slots, workers, children
):
    """Return a packet's type, or why it is refused. children: of the worker's switch; there are
    others where they are fewer than the job's workers, and then its results have a path."""
    if size < _HEADER or row[0] >> 4 != _VERSION:
        return _MALFORMED
    header = _HEADER + _PATH_SIZE if row[1] & _PATH else _HEADER
    if size < header:
        return _MALFORMED
    if words_sum(row, header) % 0xFFFF:
        return _DAMAGED
    kind = np.int64(row[0] & 15)
    if kind == 0 or kind > _TYPES or row[7] not in (8, 16, 32):
        return _MALFORMED
    if row[_CODE_BITS_AT] not in (1, 2, 4, 8):
        return _MALFORMED
    body = np.int64(0)
    if kind == _INDICES:
        body = _SUMS_SIZE * np.int64(row[_CODE_BITS_AT]) // np.int64(row[7])
    elif kind == _PARTIAL or (kind == _SUMS and not row[1] & _BARE):
        body = np.int64(_SUMS_SIZE)
    if size != header + body:
        return _MALFORMED
    if row[2] != job or row[7] != sum_bits or row[_CODE_BITS_AT] != code_bits:
        return _OTHER_JOB
    if kind not in (_NORM_RESULT, _SUMS, _STRAGGLER, _STATUS, _EPOCH) or row[6] != 0:
        return _NO_RESULT
    if kind in (_NORM_RESULT, _SUMS) and (header != _HEADER) != (children < workers):
        return _NO_RESULT
    if kind == _EPOCH:
        return kind if row[_EPOCH_AT] != epoch else _NO_RESULT
    if row[_EPOCH_AT] != epoch:
        return _OTHER_EPOCH
    if kind == _STATUS:
        return kind if row[1] & _ANSWER else _NO_RESULT
    if np.int64(packet_number(row, _SLOT_AT, 2)) >= slots:
        return _NO_SLOT
    if kind == _SUMS:
        bitmap = bitmap_of(row)
        count = 0
        for worker in range(64):
            if bitmap >> np.uint64(worker) & np.uint64(1):
                if worker >= children:
                    return _COUNT
                count += 1
        summed = np.int64(packet_number(row, _COUNT_AT, 2))
        if summed == 0 or count > summed or summed - count > workers - children:
            return _COUNT
    return kind
