"""THC's kernels in Triton: norms, codes and means on the device, equal to the codecs to the bit.

The lanes of a vector are rows of 1024. A partition is 2^k rows, or a part of one, and its Hadamard
transform two launches: the stages within rows, then those between rows, on columns of up to 1024
rows (2^20 lanes, the largest partition; partitions come in descending order, so none crosses such a
border). What the first launch leaves for the second is float32, for 8 * 2^20 lanes at a time, which
stays in the cache of an H100. All partitions are in the same launches, whatever their size: tables
say of each row whose it is, and stages beyond a partition's size do nothing.

Every float operation is one of the codec's own, in its order. Launches forbid fused
multiplications (`EXACT`), a division is div_rn, and square roots are the host's. A sum's 8 chains
of a norm are those of codecs/_hadamard.py. docs/pytorch.md says what differs without such care.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl

from gradplane.codecs import CodecError, code_bits, key
from gradplane.codecs._grid import GridCodec, _spin
from gradplane.codecs._grid import _signs as _signs_key
from gradplane.codecs._quantise import cells
from gradplane.codecs._rotation import CUTS
from gradplane.torch.triton_launch import (
    GOLDEN,
    INFINITY,
    blank,
    flag,
    launch,
    magnitude,
    mix,
    on,
    raised,
    ready,
    signed,
)

ROW = 1024  # lanes of a row, and the most rows of a partition
BATCH = 8 * ROW * ROW  # lanes between the two launches
_TILE = 8192  # lanes of a program of the second launch: more would not fit its registers
_ROWS = 4  # rows of a program of the first
_UNROLL = 32  # values of a chain of squares that are loaded at once

SUMS, VALUES = 0, -1
"""Stand-ins for the width of fields where sums or values are decoded in place of codes."""

_ROW = tl.constexpr(ROW)
_VALUES = tl.constexpr(VALUES)
_WORDS = tl.constexpr(ROW // 64)  # of 64 signs, in a row
_FIELDS = tl.constexpr(5)  # numbers of a partition, see _bounds()


def norm_sums(codec: GridCodec, x: torch.Tensor) -> torch.Tensor:
    """Return float64[partitions, 8]: sums of the squares of every eighth value of a partition."""
    x = ready(x)
    bounds = _tables(codec, x.numel(), x.device).bounds
    out = x.new_empty((len(bounds), 8), dtype=torch.float64)
    launch(_squares, (len(bounds),), x, bounds, out, UNROLL=_UNROLL, num_warps=1)
    return out


def norms(codec: GridCodec, x: torch.Tensor) -> torch.Tensor:
    """Return `codec.local` of float32[n] in a device's memory: float32[partitions], on the CPU.

    Raises CodecError where a norm is beyond float32, or x is not finite.
    """
    return torch.from_numpy(finished_norms(codec, x.numel(), norm_sums(codec, x).cpu().numpy()))


def finished_norms(codec: GridCodec, n: int, s: Any) -> Any:
    """Return the norms of n values' partitions, float32, from norm_sums() in the CPU's memory."""
    four = s[:, :4] + s[:, 4:]
    two = four[:, :2] + four[:, 2:]
    found = np.sqrt(two[:, 0] + two[:, 1])
    for k in np.flatnonzero(~(found <= np.finfo(np.float32).max)):
        part = codec.partitions(n)[k]
        raise CodecError(
            f"the norm of values {part.start} to {part.stop - 1} is {found[k]:.3g}, "
            "beyond float32: scale the vector down"
        )
    return found.astype(np.float32)


def codes(
    codec: GridCodec,
    x: torch.Tensor,
    shared: torch.Tensor,
    seed: int = 0,
    worker: int = 0,
    packed: bool = False,
) -> torch.Tensor:
    """Return `codec.codes`, uint8[lanes(n)] of float32[n]; or packed in fields as it packs them."""
    return _coded(codec, x, shared, seed, worker, _width(codec) if packed else 8)[0]


def _coded(
    codec: GridCodec, x: torch.Tensor, shared: torch.Tensor, seed: int, worker: int, width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the codes in fields of so many bits, and a flag: raised where x is not finite."""
    x, lanes = ready(x), codec.lanes(x.numel())
    out, wrong = blank(x, -(-lanes * width // 8)), flag(x)
    tables = _tables(codec, x.numel(), x.device)
    norm = _float64(codec, shared, x.numel())
    with np.errstate(divide="ignore"):
        scale = np.where(norm == 0, 0, codec.granularity / (2 * codec.threshold * norm))
    scales = on(scale, x.device)
    signs = _signs_keys(_spins(seed, len(norm)), x.device)
    found = _cells(codec, x.device)
    rounding = signed(key(seed, worker, "rounding"))
    grid = x.new_empty(min(BATCH, -(-lanes // ROW) * ROW))
    where = tables.part, tables.bounds
    for first, stop in _batches(lanes):
        rows, tiles, within, between = _launches(first, stop)
        launch(_flip_rows, rows, x, *where, signs, scales, grid, wrong, first, stop, **within)
        rounds = found, found.numel(), out, rounding, first, stop
        launch(_round_columns, tiles, grid, *where, *rounds, WIDTH=width, **between)
    return out, wrong


def mean(
    codec: GridCodec,
    sums: torch.Tensor,
    n: int,
    count: int | torch.Tensor,
    shared: torch.Tensor,
    seed: int = 0,
) -> torch.Tensor:
    """Return `codec.decode_sum`, float32[n], of sums of `count` workers' looked-up codes.

    count: of all lanes, or an integer of each, which is 0 where the sum is missing.
    """
    return _decoded(codec, sums.contiguous(), n, count, shared, _spins(seed, len(shared)), SUMS)


def values(
    codec: GridCodec, packed: torch.Tensor, n: int, shared: torch.Tensor, seed: int
) -> torch.Tensor:
    """Return the values, float32[n], of one worker's packed codes: `mean` of its own alone."""
    return _decoded(codec, packed, n, 1, shared, _spins(seed, len(shared)), _width(codec))


def encode(
    codec: GridCodec, x: torch.Tensor, shared: torch.Tensor | None, seed: int, worker: int
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the codec's bytes, and a flag: raised where it refuses x; None where it refuses the
    norm of x, of which shared may be the workers' largest."""
    x = ready(x)
    try:
        shared = norms(codec, x) if shared is None else shared
    except CodecError:
        return None
    packed, wrong = _coded(codec, x, shared, seed, worker, _width(codec))
    head = np.empty((len(shared), 2), np.uint32)
    head[:, 0] = shared.numpy().view(np.uint32)
    head[:, 1] = _spins(seed, len(shared))
    given = on(head.astype("<u4").view(np.uint8), x.device)
    cuts = [part.lane * _width(codec) // 8 for part in codec.partitions(x.numel())]
    parts = [*zip(given, packed.tensor_split(cuts[1:]), strict=True)] if cuts else []
    return torch.cat([packed[:0], *(each for part in parts for each in part)]), wrong


def decode(codec: GridCodec, data: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the values of bytes, float32[n], and a flag: raised where the codec refuses them."""
    sizes = [codec._packed_size(part) for part in codec.partitions(n)]
    pieces = data.split([size for own in sizes for size in (8, own)])
    packed = torch.cat([data[:0], *pieces[1::2]])
    words = torch.cat([data[:0], *pieces[::2]]).cpu().numpy().view("<u4").reshape(-1, 2)
    shared, spins = words[:, 0].copy().view(np.float32), words[:, 1]
    width = _width(codec)
    unused = (1 << width) - (1 << codec.bits)  # bits of a field that no code has
    wrong = (packed & unused * (255 // ((1 << width) - 1))).any()
    if rest := codec.lanes(n) * width % 8:  # of the last byte, as of the others all are used
        wrong = wrong | ((packed[-1] & (255 >> rest)) > 0)
    if not ((shared >= 0) & (shared < np.inf)).all():
        return data.new_empty(0, dtype=torch.float32), flag(data) + 1
    norm = torch.from_numpy(shared)
    return _decoded(codec, packed, n, 1, norm, spins, width), wrong


def rotated(x: torch.Tensor, seed: int) -> torch.Tensor:
    """Return codecs.rotated() of float32[n]."""
    x = ready(x)
    where, signs, scales = _turning(x.numel(), seed, x.device)
    out, wrong = x.new_empty(CUTS.lanes(x.numel())), flag(x)
    grid = x.new_empty(min(BATCH, -(-out.numel() // ROW) * ROW))
    for first, stop in _batches(out.numel()):
        rows, tiles, within, between = _launches(first, stop)
        launch(_flip_rows, rows, x, *where, signs, scales, grid, wrong, first, stop, **within)
        launch(_columns, tiles, grid, *where, out, first, stop, **between)
    return out


def unrotated(y: torch.Tensor, n: int, seed: int) -> torch.Tensor:
    """Return codecs.unrotated(): float32[n]."""
    where, signs, scales = _turning(n, seed, y.device)
    out, given = y.new_empty(n), (y.contiguous(), _numbers(CUTS, y.device), 1.0, 0)
    grid = y.new_empty(min(BATCH, -(-y.numel() // ROW) * ROW))
    for first, stop in _batches(CUTS.lanes(n)):
        rows, tiles, within, between = _launches(first, stop)
        options = {"EACH": False, "WIDTH": VALUES} | within
        launch(_centre_rows, rows, *given, *where, grid, first, stop, **options)
        launch(_flip_columns, tiles, grid, *where, signs, scales, out, first, stop, **between)
    return out


def _turning(n: int, seed: int, device: torch.device) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """Return the tables, the keys of signs and the scales of a vector's transform by itself."""
    tables, parts = _tables(CUTS, n, device), CUTS.partitions(n)
    keys = np.array([signed(key(seed, k)) for k in range(len(parts))], np.int64)
    scales = np.array([1 / math.sqrt(part.lanes) for part in parts])
    return (tables.part, tables.bounds), on(keys, device), on(scales, device)


def _decoded(
    codec: GridCodec,
    given: torch.Tensor,
    n: int,
    count: int | torch.Tensor,
    shared: torch.Tensor,
    spins: Any,
    width: int,
) -> torch.Tensor:
    """Return the mean of `count` workers' sums (width SUMS) or, of one, packed codes in fields."""
    lanes, device = codec.lanes(n), given.device
    tables = _tables(codec, n, device)
    sizes = np.array([part.lanes for part in codec.partitions(n)], np.float64)
    scale = codec.threshold * _float64(codec, shared, n) / codec.granularity / sizes
    scales, signs = on(scale, device), _signs_keys(tuple(spins), device)
    each = isinstance(count, torch.Tensor)
    workers = count if isinstance(count, torch.Tensor) else float(count)
    numbers = _numbers(codec, device)
    out = torch.empty(n, dtype=torch.float32, device=device)
    grid = out.new_empty(min(BATCH, -(-lanes // ROW) * ROW))
    where = tables.part, tables.bounds
    for first, stop in _batches(lanes):
        rows, tiles, within, between = _launches(first, stop)
        steps = given, numbers, workers, codec.granularity
        options = {"EACH": each, "WIDTH": width} | within
        launch(_centre_rows, rows, *steps, *where, grid, first, stop, **options)
        launch(_flip_columns, tiles, grid, *where, signs, scales, out, first, stop, **between)
    return out


class _Tables:
    """Where partitions lie: `part`, int32[rows], whose a row is; `bounds`, int64[parts, 5]."""

    def __init__(self, codec: GridCodec, n: int, device: torch.device) -> None:
        parts = codec.partitions(n)
        rows = [-(-part.lanes // ROW) for part in parts]
        owner = np.repeat(np.arange(len(parts), dtype=np.int32), rows)
        self.part = on(owner, device)
        self.bounds = on(_bounds(parts), device)


def _bounds(parts: Any) -> Any:
    """Return, for each partition: start, stop, first lane, lanes, first row; int64."""
    rows = [(p.start, p.stop, p.lane, p.lanes, p.lane // ROW) for p in parts]
    return np.array(rows, np.int64).reshape(-1, 5)


@functools.lru_cache(maxsize=64)
def _tables(codec: GridCodec, n: int, device: torch.device) -> _Tables:
    return _Tables(codec, n, device)


@functools.lru_cache(maxsize=64)
def _cells(codec: GridCodec, device: torch.device) -> torch.Tensor:
    return on(cells(codec.table), device)


@functools.lru_cache(maxsize=64)
def _numbers(codec: GridCodec, device: torch.device) -> torch.Tensor:
    """Return the codec's table, int32."""
    return on(np.array(codec.table, np.int32), device)


def _width(codec: GridCodec) -> int:
    """Return the bits of a field."""
    return code_bits(1 << codec._field_bits)


def _spins(seed: int, count: int) -> tuple[int, ...]:
    """Return the seeds of the partitions' rotations, uint32."""
    return tuple(_spin(seed, k) for k in range(count))


@functools.lru_cache(maxsize=256)
def _signs_keys(spins: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Return the keys of the partitions' signs, uint64 in int64."""
    return on(np.array([signed(_signs_key(int(spin))) for spin in spins], np.int64), device)


def _float64(codec: GridCodec, shared: torch.Tensor, n: int) -> Any:
    """Return the shared statistic of n values in float64; CodecError where it is not one."""
    return codec._shared(shared.detach().cpu().numpy(), n).astype(np.float64)


def _batches(lanes: int) -> Iterator[tuple[int, int]]:
    """Yield the lanes [first, stop) of two launches: whole partitions of 2^20, then the rest."""
    whole = lanes - lanes % (ROW * ROW)
    for first in range(0, whole, BATCH):
        yield first, min(first + BATCH, whole)
    if whole < lanes:
        yield whole, lanes


class _Launches(NamedTuple):
    """The programs of the launches of a batch, and their options."""

    rows: tuple[int]
    tiles: tuple[int, int]
    within: dict[str, Any]
    between: dict[str, Any]


def _launches(first: int, stop: int) -> _Launches:
    lanes = stop - first
    rows, whole = -(-lanes // ROW), lanes % (ROW * ROW) == 0
    high = ROW if whole else 1 << (rows - 1).bit_length()
    wide = min(ROW, _TILE // high)
    warps = max(1, high * wide // 512)
    within = {"ROWS": _ROWS, "WHOLE": lanes % ROW == 0, "num_warps": 4}
    between = {"HIGH": high, "WIDE": wide, "WHOLE": whole, "num_warps": warps}
    tiles = -(-rows // high), ROW // wide
    return _Launches((-(-rows // _ROWS),), tiles, within, between)


# The launches


@triton.jit
def _squares(x, bounds, out, UNROLL: tl.constexpr):
    """Sum a partition's squares in eight chains, each from its first value to its last."""
    part = tl.program_id(0)
    start = tl.load(bounds + part * _FIELDS)
    stop = tl.load(bounds + part * _FIELDS + 1)
    chain = tl.arange(0, 8)
    sums = tl.full([8], 0.0, tl.float64)
    for first in range(start, stop, 8 * UNROLL):
        for k in tl.static_range(UNROLL):
            place = first + 8 * k + chain
            value = tl.load(x + place, mask=place < stop, other=0.0).to(tl.float64)
            sums += value * value
    tl.store(out + part * 8 + chain, sums)


@triton.jit(do_not_specialize=["total"])
def _flip_rows(
    x, part, bounds, keys, scales, grid, wrong, first, total,
    ROWS: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Set grid to the stages within rows of H of D x * scale."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    own = first // _ROW + row.to(tl.int64)
    inside = own * _ROW < total
    owner = tl.load(part + own, mask=inside, other=0)
    begin = tl.load(bounds + owner * _FIELDS)
    stop = tl.load(bounds + owner * _FIELDS + 1)
    height = own - tl.load(bounds + owner * _FIELDS + 4)  # above it in its partition
    column = tl.arange(0, _ROW)
    place = (begin + height * _ROW)[:, None] + column[None, :]
    value = tl.load(x + place, mask=inside[:, None] & (place < stop[:, None]), other=0.0)
    raised(wrong, magnitude(value) >= INFINITY)
    signs = _signs(tl.load(keys + owner), height * _WORDS, 0, ROWS, _ROW)
    scale = tl.load(scales + owner)[:, None]
    flipped = _flipped(value, scale, 1267650600228229401496703205376.0, signs)  # 2^100
    found = _row_stages(flipped, _lanes(part, bounds, own, total), ROWS, WHOLE)
    tl.store(grid + row[:, None] * _ROW + column[None, :], found, mask=inside[:, None])


@triton.jit(do_not_specialize=["steps", "key", "total"])
def _round_columns(
    grid, part, bounds, cells, steps, out, key, first, total,
    WIDTH: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Apply the stages between rows, round to codes on a grid of so many steps, and pack them in
    fields of WIDTH bits."""
    row = tl.program_id(0) * HIGH + tl.arange(0, HIGH)
    place = row[:, None] * _ROW + (tl.program_id(1) * WIDE + tl.arange(0, WIDE))[None, :]
    lane = first + place.to(tl.int64)
    inside = lane < total
    lanes = _lanes(part, bounds, first // _ROW + row.to(tl.int64), total)
    value = tl.load(grid + place, mask=inside, other=0.0)
    value = _column_stages(value, lanes, HIGH, WIDE, WHOLE)
    top = steps.to(tl.float32)
    value = tl.minimum(tl.maximum(value + top * 0.5, 0.0), top)
    cell = tl.minimum(value.to(tl.int32), steps - 1)
    found = tl.load(cells + cell)
    low = (found & 4095).to(tl.float32)
    gap = ((found >> 12) & 4095).to(tl.float32)
    word = mix(key.to(tl.uint64) + (lane + 1).to(tl.uint64) * GOLDEN)
    uniform = (word >> 40).to(tl.int32).to(tl.float32) * 5.9604644775390625e-08  # 2^-24
    up = uniform * gap < value - low
    code = ((found >> 24) & 255) + up.to(tl.int32)
    code = tl.where(inside, code, 0)
    for k in tl.static_range(3):
        if WIDTH << k < 8:  # join neighbours to fields of twice the width
            left, right = tl.split(tl.reshape(code, [HIGH, WIDE >> (k + 1), 2]))
            code = (left << (WIDTH << k)) | right
    each: tl.constexpr = 8 // WIDTH
    column = tl.program_id(1) * (WIDE // each) + tl.arange(0, WIDE // each)
    octet = first // each + row.to(tl.int64)[:, None] * (_ROW // each) + column[None, :]
    tl.store(out + octet, code.to(tl.uint8), mask=octet * each < total)


@triton.jit(do_not_specialize=["total"])
def _columns(
    grid, part, bounds, out, first, total,
    HIGH: tl.constexpr, WIDE: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Apply the stages between rows, and write the lanes."""
    row = tl.program_id(0) * HIGH + tl.arange(0, HIGH)
    place = row[:, None] * _ROW + (tl.program_id(1) * WIDE + tl.arange(0, WIDE))[None, :]
    lane = first + place.to(tl.int64)
    lanes = _lanes(part, bounds, first // _ROW + row.to(tl.int64), total)
    value = tl.load(grid + place, mask=lane < total, other=0.0)
    value = _column_stages(value, lanes, HIGH, WIDE, WHOLE)
    tl.store(out + lane, value, mask=lane < total)


@triton.jit(do_not_specialize=["steps", "total"])
def _centre_rows(
    sums, numbers, workers, steps, part, bounds, grid, first, total,
    EACH: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Set grid to the stages within rows of H of the means, in half steps from the middle.

    WIDTH: of fields that have codes, to be looked up among the numbers; or SUMS; or VALUES, of
    which the stages are taken as they are."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    place = row[:, None] * _ROW + tl.arange(0, _ROW)[None, :]
    lane = first + place.to(tl.int64)
    inside = lane < total
    lanes = _lanes(part, bounds, first // _ROW + row.to(tl.int64), total)
    if WIDTH > 0:
        byte = tl.load(sums + lane * WIDTH // 8, mask=inside, other=0).to(tl.int32)
        code = (byte >> (8 - WIDTH - (lane * WIDTH % 8)).to(tl.int32)) & ((1 << WIDTH) - 1)
        value = tl.load(numbers + code, mask=inside, other=0).to(tl.float32)
    else:
        value = tl.load(sums + lane, mask=inside, other=0).to(tl.float32)
    if EACH:
        count = tl.load(workers + lane, mask=inside, other=0).to(tl.float32)
    else:
        count = tl.full([ROWS, _ROW], 0.0, tl.float32) + workers
    if WIDTH == _VALUES:
        middle = value
    else:
        centred = value * 2.0 - count * steps.to(tl.float32)
        middle = tl.where(count > 0, tl.div_rn(centred, tl.where(count > 0, count, 1.0)), 0.0)
        middle = tl.where(inside, middle, 0.0)
    tl.store(grid + place, _row_stages(middle, lanes, ROWS, WHOLE), mask=inside)


@triton.jit(do_not_specialize=["total"])
def _flip_columns(
    grid, part, bounds, keys, scales, out, first, total,
    HIGH: tl.constexpr, WIDE: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Apply the stages between rows, and write the values of D H y * scale."""
    row = tl.program_id(0) * HIGH + tl.arange(0, HIGH)
    column = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    place = row[:, None] * _ROW + column[None, :]
    own = first // _ROW + row.to(tl.int64)
    inside = own * _ROW < total
    lanes = _lanes(part, bounds, own, total)
    mask = first + place.to(tl.int64) < total
    value = _column_stages(tl.load(grid + place, mask=mask, other=0.0), lanes, HIGH, WIDE, WHOLE)
    owner = tl.load(part + own, mask=inside, other=0)
    begin = tl.load(bounds + owner * _FIELDS)
    stop = tl.load(bounds + owner * _FIELDS + 1)
    height = own - tl.load(bounds + owner * _FIELDS + 4)
    signs = _signs(tl.load(keys + owner), height * _WORDS, tl.program_id(1) * WIDE, HIGH, WIDE)
    scale = tl.load(scales + owner)[:, None]
    found = _flipped(value, scale, 3.4028234663852886e38, signs)
    target = (begin + height * _ROW)[:, None] + column[None, :]
    tl.store(out + target, found, mask=inside[:, None] & (target < stop[:, None]))


# Their parts


@triton.jit
def _lanes(part, bounds, row, total):
    """Return how many lanes the partitions of rows have; of rows beyond the last, 0."""
    inside = row * _ROW < total
    owner = tl.load(part + row, mask=inside, other=0)
    return tl.load(bounds + owner * _FIELDS + 3, mask=inside, other=0).to(tl.int32)


@triton.jit
def _row_stages(a, lanes, ROWS: tl.constexpr, WHOLE: tl.constexpr):
    """Apply the stages within rows to float32[ROWS, 1024].

    A stage takes neighbours, and puts sums into the first half and differences into the second:
    after ten, each value is in its place again (Pease, J. ACM 15, 1968). WHOLE: rows have 1024
    lanes; else those of a partition, and later stages only move the values.
    """
    for stage in tl.static_range(10):
        upper, lower = tl.split(tl.reshape(a, [ROWS, _ROW // 2, 2]))
        if WHOLE:
            one, other = upper + lower, upper - lower
        else:
            active = (lanes > (1 << stage))[:, None]
            one = tl.where(active, upper + lower, upper)
            other = tl.where(active, upper - lower, lower)
        a = tl.reshape(tl.permute(tl.join(one, other), [0, 2, 1]), [ROWS, _ROW])
    return a


@triton.jit
def _column_stages(a, lanes, HIGH: tl.constexpr, WIDE: tl.constexpr, WHOLE: tl.constexpr):
    """Apply the stages between rows to float32[HIGH, WIDE], as _row_stages does within them.

    WHOLE: it is part of one partition; else `lanes` are those of the rows' partitions.
    """
    a = tl.permute(a, [1, 0])
    for stage in tl.static_range(10):
        if (1 << stage) < HIGH:
            upper, lower = tl.split(tl.reshape(a, [WIDE, HIGH // 2, 2]))
            if WHOLE:
                one, other = upper + lower, upper - lower
            else:
                first, second = tl.split(tl.reshape(lanes, [HIGH // 2, 2]))
                lanes = tl.reshape(tl.permute(tl.join(first, second), [1, 0]), [HIGH])
                active = (first > (_ROW << stage))[None, :]
                one = tl.where(active, upper + lower, upper)
                other = tl.where(active, upper - lower, lower)
            a = tl.reshape(tl.permute(tl.join(one, other), [0, 2, 1]), [WIDE, HIGH])
    return tl.permute(a, [1, 0])


@triton.jit
def _flipped(value, scale, bound, signs):
    """Return float32 values scaled in float64, clamped to the bound, and negated by signs."""
    scaled = value.to(tl.float64) * scale
    scaled = tl.minimum(tl.maximum(scaled, -bound), bound).to(tl.float32)
    # Triton's minus is 0 - x, which has no -0.
    bits = scaled.to(tl.int32, bitcast=True) ^ (signs.to(tl.int32) << 31)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def _signs(keys, words, column, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """Return bits [ROWS, WIDE]: 1 where a sign is minus; words: of a row's first sign."""
    count: tl.constexpr = (WIDE + 63) // 64
    each: tl.constexpr = WIDE // count
    number = words[:, None] + (column // 64 + tl.arange(0, count))[None, :] + 1
    word = mix(keys.to(tl.uint64)[:, None] + number.to(tl.uint64) * GOLDEN)
    shift = (column % 64 + tl.arange(0, each)).to(tl.uint64)
    bits = (word[:, :, None] >> shift[None, None, :]) & 1
    return tl.reshape(bits, [ROWS, WIDE])
