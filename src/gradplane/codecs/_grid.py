"""The base of codecs on a grid over [-M, M]: partitions, bytes, codes and sums.

The grid has g + 1 values. Per partition of at most 2^20 values, M = t / sqrt(d) * l if rotated
(d lanes, l the largest norm of all workers'), else M = t * l (l the largest magnitude). With H not
normalised both factors sqrt(d) cancel: a position on the grid is scale * (H D x) + g / 2 with
scale = g / (2 t l).

A rotation takes a power of two of lanes. Version 1 of the format pads the last partition to one.
Version 2 cuts a vector of more than 1024 values into blocks of 1024 lanes: as many partitions of
2^20 as there are, then one for each binary digit of the number of blocks that are left, the largest
first. The padding, less than a block, is in the first partition, and so no partition is small.
Version 3 cuts so, too, and has codes of 1 and 2 bits in fields of their own width; before, they had
4 bits.

Bytes, per partition: l (float32), if rotated the rotation's seed (uint32), the packed codes.
"""

import functools
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gradplane.codecs import _hadamard, _packing, _quantise
from gradplane.codecs._base import (
    Codec,
    CodecError,
    Codes,
    Context,
    Floats,
    Partition,
    Reader,
    State,
    check_array,
    check_int,
)
from gradplane.codecs._network_limits import sum_bits
from gradplane.codecs._random import key

Sums = npt.NDArray[np.integer[Any]]
MAX_GRANULARITY = 4095


class Fields(Protocol):
    """The interface of the packing modules, _packing and _bits."""

    def packed_size(self, count: int, bits: int) -> int: ...
    def pack(self, codes: Codes, bits: int) -> bytes: ...
    def unpack(self, data: Codes, count: int, bits: int) -> Codes: ...


class _Read(NamedTuple):
    """The encoded fields of one partition."""

    shared: float
    spin: int
    fields: Codes


class GridCodec(Codec):
    """A codec that sends b-bit indices of grid values. Subclasses define the grid."""

    bits: int
    version: int = 3
    _max_partition: ClassVar[int] = 2**20
    _block: ClassVar[int] = 2**10
    _fields: ClassVar[Fields] = _packing

    @property
    @abstractmethod
    def granularity(self) -> int:
        """The number of steps of the grid, g: it has g + 1 values."""

    @property
    @abstractmethod
    def rotate(self) -> bool:
        """True if the randomized Hadamard transform comes first."""

    @property
    @abstractmethod
    def threshold(self) -> float:
        """Half the grid's width, t, in units of the statistic (rotated: of l / sqrt(d))."""

    @property
    def summable(self) -> bool:
        """True: the sum of the codes' table values decodes to the mean."""
        return True

    def sum_bits(self, workers: int) -> int:
        """Return ceil(log2(g * workers + 1))."""
        return sum_bits(self.granularity, check_int("workers", workers, 1))

    def partitions(self, n: int) -> tuple[Partition, ...]:
        """Cut into at most 2^20 values each; if rotated, as the version of the format has it."""
        n = check_int("n", n, 0)
        if self.rotate and self.version > 1 and n > self._block:
            return _blocks(n, self._max_partition, self._block)
        return _partitions(n, self._max_partition, self.rotate)

    def max_size(self, n: int) -> int:
        """Return exactly the bytes of n values."""
        scalars = 8 if self.rotate else 4
        return sum(scalars + self._packed_size(part) for part in self.partitions(n))

    @property
    def _field_bits(self) -> int:
        """The bits of a packed code: before version 3 codes of fewer than 4 had 4."""
        return self.bits if self.version > 2 else max(self.bits, 4)

    def _packed_size(self, part: Partition) -> int:
        return self._fields.packed_size(part.lanes, self._field_bits)

    def _local(self, x: Floats, state: State) -> Floats:
        """Return, for each partition, the norm if rotated, else the largest magnitude: float32."""
        return np.array([self._statistic(x, p) for p in self.partitions(x.size)], np.float32)

    def _codes(self, x: Floats, context: Context) -> tuple[Codes, State]:
        """Round independently of other workers, after a rotation that all share."""
        shared = self._shared_or_local(x, context)
        out = np.empty(self.lanes(x.size), np.uint8)
        rounding = key(context.seed, context.worker, "rounding")
        for k, part in enumerate(self.partitions(x.size)):
            lanes = slice(part.lane, part.lane + part.lanes)
            grid = self._to_grid(x[part.start : part.stop], part, shared[k], _spin(context.seed, k))
            out[lanes] = _quantise.quantise(grid, self._cells, rounding, part.lane)
        return out, context.state

    def decode_sum(
        self, sums: Sums, n: int, count: int | Sums, shared: Floats | None, seed: int = 0
    ) -> Floats:
        """Decode sums; a missing lane's estimate is 0 before the inverse rotation."""
        shared = self._shared(shared, n)
        self._check_sums(sums, n, count)
        return self._filled(_quantise.centre(sums, count, self.granularity), n, shared, seed)

    def _decode_codes(self, codes: Codes, n: int, shared: Floats | None, seed: int = 0) -> Floats:
        """Return the vector of one worker's codes, without their sums."""
        if type(self).decode_sum is not GridCodec.decode_sum:
            return super()._decode_codes(codes, n, shared, seed)
        middle = _quantise.look_up(codes, self._middles)
        return self._filled(middle, n, self._shared(shared, n), seed)

    def _filled(self, middle: Floats, n: int, shared: Floats, seed: int) -> Floats:
        """Return n values from grid positions in half steps from the middle."""
        out = np.empty(n, np.float32)
        for k, part in enumerate(self.partitions(n)):
            lanes = middle[part.lane : part.lane + part.lanes]
            self._fill(out[part.start : part.stop], lanes, shared[k], _spin(seed, k))
        return out

    @functools.cached_property
    def _middles(self) -> Floats:
        """The table's values in half steps from the grid's middle."""
        middles: Floats = 2 * np.array(self.table, np.float32) - np.float32(self.granularity)
        return middles

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        shared = self._shared_or_local(x, context)
        codes, state = self._codes(x, replace(context, shared=shared))
        own = (codes[part.lane : part.lane + part.lanes] for part in self.partitions(x.size))
        fields = (self._fields.pack(some, self._field_bits) for some in own)
        return self._framed(fields, shared, context.seed), state

    def _framed(self, fields: Iterable[Any], shared: Floats, seed: int) -> bytes:
        """Return the bytes of partitions' packed codes, each behind its scalars."""
        out = []
        for k, packed in enumerate(fields):
            out.append(shared[k : k + 1].astype("<f4").tobytes())
            if self.rotate:
                out.append(_spin(seed, k).to_bytes(4, "little"))
            out.append(packed)
        return b"".join(out)

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = self._reader(data, n)
        parts = [self._read(reader, k, part) for k, part in enumerate(self.partitions(n))]
        reader.end()
        shared = self._shared(np.array([part.shared for part in parts], np.float32), n)
        out = np.empty(n, np.float32)
        for k, part in enumerate(self.partitions(n)):
            middle = self._values(parts[k].fields, part)
            self._fill(out[part.start : part.stop], middle, shared[k], parts[k].spin)
        return out

    def _values(self, fields: Codes, part: Partition) -> Floats:
        """Return the grid positions of a partition's packed codes, in half steps."""
        table = self._middles
        if self._fields is _packing and len(table) == 16 and part.lanes == 2 * fields.size:
            return _quantise.look_up_pairs(fields, table)  # no code is beyond the table
        codes = self._fields.unpack(fields, part.lanes, self._field_bits)
        self._check_codes(codes, part)
        return _quantise.look_up(codes, table)

    def add_codes(self, data: bytes, n: int, shared: Floats | None, sums: Sums) -> None:
        """Look the codes up and add them, in one pass over the fields; see Codec.add_codes."""
        reader, shared = self._reader(data, n), self._shared(shared, n)
        check_array("sums", sums, "integer", (self.lanes(n),))
        parts = [self._read(reader, k, part) for k, part in enumerate(self.partitions(n))]
        reader.end()
        for k, part in enumerate(self.partitions(n)):
            if parts[k].shared != shared[k]:
                raise CodecError(
                    f"statistic {parts[k].shared} of partition {k} is not the workers' {shared[k]}"
                )
            codes = sums[part.lane : part.lane + part.lanes]
            self._add_fields(parts[k].fields, part, codes)

    def _add_fields(self, fields: Codes, part: Partition, sums: Sums) -> None:
        values = np.array(self.table, sums.dtype)
        if self._fields is _packing and values.size == 16 and not part.lanes % 2:
            pairs = _quantise.pairs(values)
            _quantise.add_looked_up(fields, pairs, sums.view(pairs.dtype))
            return
        codes = self._fields.unpack(fields, part.lanes, self._field_bits)
        self._check_codes(codes, part)
        _quantise.add_looked_up(codes, values, sums)

    def _reader(self, data: bytes, n: int) -> Reader:
        """Return a reader of bytes that are long enough for the partitions' statistics."""
        reader = Reader(data)
        reader.need(4 * (n // self._max_partition), f"statistics of {n} values")
        return reader

    def _read(self, reader: Reader, k: int, part: Partition) -> "_Read":
        shared = reader.array("<f4", 1, f"statistic of partition {k}")[0]
        spin = reader.array("<u4", 1, f"rotation seed of partition {k}")[0] if self.rotate else 0
        size = self._packed_size(part)
        return _Read(shared, int(spin), reader.array("u1", size, f"codes of partition {k}"))

    @functools.cached_property
    def _cells(self) -> _quantise.Cells:
        return _quantise.cells(self.table)

    def _statistic(self, x: Floats, part: Partition) -> float:
        values = x[part.start : part.stop]
        if not self.rotate:
            return float(np.abs(values).max())
        norm = _hadamard.norm(values)
        if norm > float(np.finfo(np.float32).max):
            raise CodecError(
                f"the norm of values {part.start} to {part.stop - 1} is {norm:.3g}, "
                "beyond float32: scale the vector down"
            )
        return norm

    def _to_grid(self, x: Floats, part: Partition, shared: float, spin: int) -> Floats:
        """Return one partition's positions on the grid, from its middle, before clamping."""
        if shared == 0:
            return np.zeros(part.lanes, np.float32)
        scale = self.granularity / (2 * self.threshold * float(shared))
        if self.rotate:
            return _hadamard.rotate(x, part.lanes, _signs(spin), scale)
        positions = x.astype(np.float64) * scale
        return np.clip(positions, -self.granularity, self.granularity).astype(np.float32)

    def _fill(self, out: Floats, middle: Floats, shared: float, spin: int) -> None:
        """Write one partition's values from grid positions in half steps from the middle."""
        scale = self.threshold * float(shared) / self.granularity
        if self.rotate:
            _hadamard.unrotate(middle, out, _signs(spin), scale / middle.size)
        else:
            out[:] = middle.astype(np.float64) * scale

    def _shared_or_local(self, x: Floats, context: Context) -> Floats:
        """Return the shared statistic or, where none is given, that of x alone."""
        shared = self._local(x, None) if context.shared is None else context.shared
        return self._shared(shared, x.size)

    def _shared(self, shared: Floats | None, n: int) -> Floats:
        """Return the shared statistic if it fits n values; else CodecError."""
        parts = self.partitions(n)
        shared = check_array(f"{self.name}'s shared statistic", shared, "float32", (len(parts),))
        for k, value in enumerate(shared):
            if not 0 <= value < np.inf:
                raise CodecError(f"statistic {value} of partition {k} is not a magnitude")
        return shared

    def _check_codes(self, codes: Codes, part: Partition) -> None:
        if codes.size and codes.max() >= len(self.table):
            lane = int(np.argmax(codes >= len(self.table)))
            raise CodecError(
                f"code {codes[lane]} at lane {part.lane + lane} is beyond {len(self.table) - 1}"
            )

    def _check_sums(self, sums: Sums, n: int, count: int | Sums) -> None:
        lanes = self.lanes(n)
        check_array("sums", sums, "integer", (lanes,))
        counts = np.asarray(count)
        check_array("count", counts, "integer", (lanes,) if counts.ndim else ())
        plain = sums.dtype.kind == "u" and not counts.ndim
        if plain and sums.max(initial=0) <= self.granularity * int(counts):
            return
        wrong = (sums < 0) | (sums > self.granularity * counts.astype(np.int64))
        if wrong.any():
            lane = int(np.argmax(wrong))
            workers = int(np.broadcast_to(counts, lanes)[lane])
            raise CodecError(
                f"sum {sums[lane]} at lane {lane} is not from 0 to granularity x count "
                f"= {self.granularity} x {workers} = {self.granularity * workers}"
            )


# All workers of a job rotate alike, and many may be in one process.
@functools.lru_cache(maxsize=1024)
def _spin(seed: int, partition: int) -> int:
    """Return the rotation's uint32 seed, as the bytes hold it."""
    return key(seed, "rotation", partition) & 0xFFFFFFFF


@functools.lru_cache(maxsize=1024)
def _signs(spin: int) -> int:
    """Return the key of a rotation's signs."""
    return key(spin, "signs")


@functools.lru_cache(maxsize=256)
def _partitions(n: int, size: int, padded: bool) -> tuple[Partition, ...]:
    parts = []
    for start in range(0, n, size):
        stop = min(start + size, n)
        lanes = 1 << (stop - start - 1).bit_length() if padded else stop - start
        parts.append(Partition(start, stop, start, lanes))
    return tuple(parts)


@functools.lru_cache(maxsize=256)
def _blocks(n: int, size: int, block: int) -> tuple[Partition, ...]:
    """Cut n values by the binary digits of their number of blocks; the first partition is padded.

    Each partition's values, cut by themselves, are one partition of as many lanes."""
    padding, left, lane = -n % block, n, 0
    parts: list[Partition] = []
    while left > 0:
        lanes = min(size, 1 << ((left + (0 if parts else padding)).bit_length() - 1))
        start = n - left
        left -= lanes if parts else lanes - padding
        parts.append(Partition(start, n - left, lane, lanes))
        lane += lanes
    return tuple(parts)
