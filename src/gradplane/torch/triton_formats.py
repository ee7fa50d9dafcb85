"""Triton's kernels of the formats whose bytes have a fixed size, equal to the codecs to the bit.

Halves (float16, bfloat16), int8, OCP's MX formats, blocks with a step (ZeRO++, SDP4Bit) and
SwitchML's integers. What the codecs compute in float64 is computed in float64 here, and values are
rounded to integers by one addition and one subtraction. An encoder or decoder returns, beside its
result, a flag that is raised where the codec itself would refuse values or bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from gradplane.codecs import _bits, mxfp, sdp4bit
from gradplane.codecs._random import key
from gradplane.codecs.bfloat16 import BFloat16
from gradplane.codecs.float16 import Float16
from gradplane.codecs.int8 import Int8
from gradplane.codecs.mxfp import MXFP
from gradplane.codecs.sdp4bit import SDP4Bit
from gradplane.codecs.switchml import SwitchML
from gradplane.codecs.zeropp import ZeroPP
from gradplane.torch.triton_launch import (
    GOLDEN,
    INFINITY,
    blank,
    flag,
    launch,
    magnitude,
    mix,
    on,
    places,
    raised,
    ready,
    rounded,
    signed,
)

TILE = 1024  # values of a program
ALL = 2**40  # more values than a vector has
_GROUPS = TILE // 8  # eight codes of b bits are b bytes
_ROWS = TILE // mxfp.BLOCK
_BLOCK = tl.constexpr(mxfp.BLOCK)
_ORDER = tl.constexpr(sdp4bit.ORDER)

Encoded = tuple[torch.Tensor, torch.Tensor]
"""Bytes, uint8; and the flag."""
Decoded = tuple[torch.Tensor, torch.Tensor]
"""Values, float32[n]; and the flag."""


def tiles(n: int) -> tuple[int]:
    """Return the programs of n values."""
    return (-(-n // TILE),)


def _bits_of(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


# Halves


def encode_halves(codec: Float16 | BFloat16, x: torch.Tensor) -> Encoded:
    """Return two bytes a value."""
    out, wrong, brain = blank(x, x.numel(), torch.int16), flag(x), isinstance(codec, BFloat16)
    # the least magnitude that rounds to infinity
    limit = 0x7F7F8000 if brain else _bits_of(65520.0)
    options = {"BRAIN": brain, "LIMIT": limit, "TILE": TILE}
    launch(_halves, tiles(x.numel()), x, out, wrong, x.numel(), **options)
    return out.view(torch.uint8), wrong


def decode_halves(codec: Float16 | BFloat16, data: torch.Tensor, n: int) -> Decoded:
    """Return the values of halves."""
    out, wrong, brain = blank(data, n, torch.float32), flag(data), isinstance(codec, BFloat16)
    halves = data.view(torch.int16)
    launch(_wholes, tiles(n), halves, out, wrong, n, BRAIN=brain, TILE=TILE)
    return out, wrong


@triton.jit(do_not_specialize=["n"])
def _halves(x, out, wrong, n, BRAIN: tl.constexpr, LIMIT: tl.constexpr, TILE: tl.constexpr):
    place = places(TILE)
    value = tl.load(x + place, mask=place < n, other=0.0)
    large = magnitude(value) >= LIMIT
    if BRAIN:
        bits = value.to(tl.uint32, bitcast=True)
        half = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).to(tl.int16)
    else:
        half = tl.where(large, 0.0, value).to(tl.float16).to(tl.int16, bitcast=True)
    tl.store(out + place, half, mask=place < n)
    raised(wrong, large)


@triton.jit(do_not_specialize=["n"])
def _wholes(halves, out, wrong, n, BRAIN: tl.constexpr, TILE: tl.constexpr):
    place = places(TILE)
    half = tl.load(halves + place, mask=place < n, other=0)
    if BRAIN:
        value = (half.to(tl.int32) << 16).to(tl.float32, bitcast=True)
    else:
        value = half.to(tl.float16, bitcast=True).to(tl.float32)
    tl.store(out + place, value, mask=place < n)
    raised(wrong, magnitude(value) >= INFINITY)


# Integers of eight bits


def encode_int8(codec: Int8, x: torch.Tensor) -> Encoded:
    """Return the largest magnitude, float32, and a byte a value."""
    out, most, n = blank(x, 4 + x.numel(), torch.int8), flag(x), x.numel()
    launch(_largest, tiles(n), x, most, n, EACH=ALL, TILE=TILE)
    launch(_octets, tiles(n), x, most, out[4:], n, TILE=TILE)
    out[:4].view(torch.int32).copy_(most)
    return out.view(torch.uint8), most >= INFINITY.value


def decode_int8(codec: Int8, data: torch.Tensor, n: int) -> Decoded:
    """Return the values of codes from -127 to 127."""
    out, wrong = blank(data, n, torch.float32), flag(data)
    most = data[:4].view(torch.float32)
    launch(_from_octets, tiles(n), data[4:].view(torch.int8), most, out, wrong, n, TILE=TILE)
    return out, wrong | ~((most >= 0) & (most < np.inf))


@triton.jit(do_not_specialize=["n"])
def _largest(x, most, n, EACH: tl.constexpr, TILE: tl.constexpr):
    """Raise `most` to the bits of the largest magnitude of each so many values."""
    place, owner = places(TILE), tl.program_id(0).to(tl.int64) * TILE // EACH
    raised(most + owner, magnitude(tl.load(x + place, mask=place < n, other=0.0)))


@triton.jit(do_not_specialize=["n"])
def _octets(x, most, out, n, TILE: tl.constexpr):
    place = places(TILE)
    value = tl.load(x + place, mask=place < n, other=0.0).to(tl.float64)
    m = tl.load(most).to(tl.float32, bitcast=True).to(tl.float64)
    code = rounded(127.0 * value / tl.where(m > 0, m, 1.0))
    tl.store(out + place, tl.where(m > 0, code, 0.0).to(tl.int32).to(tl.int8), mask=place < n)


@triton.jit(do_not_specialize=["n"])
def _from_octets(codes, most, out, wrong, n, TILE: tl.constexpr):
    place = places(TILE)
    code = tl.load(codes + place, mask=place < n, other=0)
    value = code.to(tl.float64) * tl.load(most).to(tl.float64) / 127.0
    tl.store(out + place, value.to(tl.float32), mask=place < n)
    raised(wrong, code == -128)


# MX formats


def encode_mx(codec: MXFP, x: torch.Tensor) -> Encoded:
    """Return the blocks' scales, a byte each, and the elements."""
    kind, n, wrong = codec._element, x.numel(), flag(x)
    blocks, size = -(-n // mxfp.BLOCK), _bits.packed_size(n, kind.bits)
    out = blank(x, blocks + size)
    options = {"EMAX": kind.emax, "BIAS": kind.bias, "MANTISSA": kind.mantissa}
    options |= {"LARGEST": kind.largest, "WIDTH": kind.bits, "ROWS": _ROWS}
    launch(_elements, tiles(n), x, out[:blocks], out[blocks:], wrong, n, size, **options)
    return out, wrong


def decode_mx(codec: MXFP, data: torch.Tensor, n: int) -> Decoded:
    """Return the values of elements and their blocks' scales."""
    kind, wrong, out = codec._element, flag(data), blank(data, n, torch.float32)
    blocks, size = -(-n // mxfp.BLOCK), _bits.packed_size(n, kind.bits)
    values = on(kind.values(), data.device)
    given = values, data[:blocks], data[blocks:], out, wrong, n, size
    launch(_from_elements, tiles(n), *given, WIDTH=kind.bits, ROWS=_ROWS)
    return out, wrong


@triton.jit(do_not_specialize=["n", "size"])
def _elements(
    x, scales, packed, wrong, n, size,
    EMAX: tl.constexpr, BIAS: tl.constexpr, MANTISSA: tl.constexpr, LARGEST: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Round each 32 values to elements, as codecs/mxfp.py does."""
    row = places(ROWS)
    place = row[:, None] * _BLOCK + tl.arange(0, _BLOCK)[None, :]
    value = tl.load(x + place, mask=place < n, other=0.0)
    bits = magnitude(value)
    most = tl.max(bits, axis=1)
    scale = tl.maximum((most >> 23) - EMAX, 0)
    tl.store(scales + row, scale.to(tl.uint8), mask=row * _BLOCK < n)
    least = (scale + 1 - BIAS)[:, None]  # float32's exponent field of the first normal code
    drop: tl.constexpr = 23 - MANTISSA
    half: tl.constexpr = (1 << (22 - MANTISSA)) - 1
    normal = ((bits + half + ((bits >> drop) & 1)) >> drop) - ((least - 1) << MANTISSA)
    wide = tl.abs(value).to(tl.float64)
    small = _code(wide * _power(127 + MANTISSA - least))
    exponent = ((wide.to(tl.int64, bitcast=True) >> 52) - 1023).to(tl.int32)
    exponent = tl.maximum(exponent, least - 127)
    tiny = ((exponent - least + 127) << MANTISSA) + _code(wide * _power(MANTISSA - exponent))
    small = tl.where((least >= 1) | (bits == 0), small, tiny)
    code = tl.where((bits >> 23) >= tl.maximum(least, 1), normal, small)
    code = tl.minimum(code, LARGEST)
    code |= tl.where(value.to(tl.int32, bitcast=True) < 0, 1 << (WIDTH - 1), 0)
    first = tl.program_id(0).to(tl.int64) * (ROWS * 4)
    _pack(packed, tl.reshape(code, [ROWS * 4, 8]), first, size, WIDTH, ROWS * 4)
    raised(wrong, most >= INFINITY)


@triton.jit
def _code(units):
    """Round float64 to int32; what is beyond every element becomes 4096."""
    return rounded(tl.minimum(units, 4096.0)).to(tl.int32)


@triton.jit(do_not_specialize=["n", "size"])
def _from_elements(
    values, scales, packed, out, wrong, n, size, WIDTH: tl.constexpr, ROWS: tl.constexpr
):
    row = places(ROWS)
    place = row[:, None] * _BLOCK + tl.arange(0, _BLOCK)[None, :]
    first = tl.program_id(0).to(tl.int64) * (ROWS * 4)
    code = tl.reshape(_unpack(packed, first, size, WIDTH, ROWS * 4), [ROWS, _BLOCK])
    scale = tl.load(scales + row, mask=row * _BLOCK < n, other=0).to(tl.int32)
    power = tl.where(scale == 0, 1 << 22, scale << 23).to(tl.float32, bitcast=True)
    value = tl.load(values + code) * power[:, None]
    tl.store(out + place, value, mask=place < n)
    bad = tl.where(place < n, magnitude(value) >= INFINITY, code > 0)
    raised(wrong, bad | (scale == 255)[:, None])


# Blocks of integers with a step


def encode_blocks(codec: ZeroPP | SDP4Bit, x: torch.Tensor, seed: int, worker: int) -> Encoded:
    """Return the blocks' steps, float32, and the codes."""
    n, spread = x.numel(), isinstance(codec, SDP4Bit)
    order, m = (sdp4bit.ORDER, sdp4bit._padded(n)) if spread else (0, n)
    blocks, size = -(-m // codec.block), _bits.packed_size(m, codec.bits)
    out, wrong, scales = blank(x, 4 * blocks + size), flag(x), blank(x, blocks, torch.float64)
    tile = min(TILE, max(8, triton.next_power_of_2(codec.block)))
    levels = (1 << codec.bits - 1) - spread
    limit = _bits_of(1e37) + 1 if spread else INFINITY.value
    given = x, out[: 4 * blocks].view(torch.float32), scales, wrong, n, m
    options = {"BLOCK": codec.block, "LEVELS": levels, "LIMIT": limit, "ORDER": order, "TILE": tile}
    launch(_steps, (blocks,), *given, **options, num_warps=max(1, tile // 256))
    word = signed(key(seed, worker, "rounding")) if spread else 0
    rest = x, scales, out[4 * blocks :], n, m, size, word
    options = {"STOCHASTIC": spread, "BLOCK": codec.block, "ORDER": order}
    launch(_codes, tiles(m), *rest, **options, WIDTH=codec.bits, GROUPS=_GROUPS)
    return out, wrong


def decode_blocks(codec: ZeroPP | SDP4Bit, data: torch.Tensor, n: int) -> Decoded:
    """Return the values of codes and their blocks' steps."""
    order, m = (sdp4bit.ORDER, sdp4bit._padded(n)) if isinstance(codec, SDP4Bit) else (0, n)
    blocks, size = -(-m // codec.block), _bits.packed_size(m, codec.bits)
    out, wrong = blank(data, n, torch.float32), flag(data)
    given = data[: 4 * blocks].view(torch.float32), data[4 * blocks :], out, wrong
    options = {"BLOCK": codec.block, "ORDER": order, "WIDTH": codec.bits, "GROUPS": _GROUPS}
    launch(_from_codes, tiles(m), *given, n, m, size, **options)
    return out, wrong


@triton.jit(do_not_specialize=["n", "m"])
def _steps(
    x, steps, scales, wrong, n, m, BLOCK: tl.constexpr,
    LEVELS: tl.constexpr, LIMIT: tl.constexpr, ORDER: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write a block's step, its largest magnitude over the levels, and the reciprocal."""
    number = tl.program_id(0).to(tl.int64)
    stop = tl.minimum((number + 1) * BLOCK, m)
    most = tl.full([TILE], 0, tl.int32)
    large = tl.full([TILE], 0, tl.int32)
    for first in range(number * BLOCK, stop, TILE):
        place = first + tl.arange(0, TILE)
        value = tl.load(x + place, mask=(place < stop) & (place < n), other=0.0)
        large = tl.maximum(large, magnitude(value))
        if ORDER:
            value = _spread(value, TILE)
        most = tl.maximum(most, magnitude(value))
    top = tl.max(most).to(tl.float32, bitcast=True)
    step = tl.div_rn(top, top * 0.0 + LEVELS)
    tl.store(steps + number, step)
    positive = tl.where(step > 0, step, 1.0).to(tl.float64)
    tl.store(scales + number, tl.where(step > 0, 1.0 / positive, 0.0))
    raised(wrong, large >= LIMIT)


@triton.jit(do_not_specialize=["n", "m", "size", "key"])
def _codes(
    x, scales, packed, n, m, size, key, STOCHASTIC: tl.constexpr,
    BLOCK: tl.constexpr, ORDER: tl.constexpr, WIDTH: tl.constexpr, GROUPS: tl.constexpr,
):  # fmt: skip
    """Round values to steps: to nearest, or up with the probability that makes them unbiased."""
    place = places(GROUPS * 8)
    value = tl.load(x + place, mask=place < n, other=0.0)
    if ORDER:
        value = _spread(value, GROUPS * 8)
    spot = value.to(tl.float64) * tl.load(scales + place // BLOCK, mask=place < m, other=0.0)
    if STOCHASTIC:
        word = mix(key.to(tl.uint64) + (place + 1).to(tl.uint64) * GOLDEN)
        uniform = (word >> 11).to(tl.int64).to(tl.float64) * 1.1102230246251565e-16  # 2^-53
        low = tl.floor(spot)
        code = low.to(tl.int32) + (uniform < spot - low).to(tl.int32)
    else:
        code = rounded(spot).to(tl.int32)
    top: tl.constexpr = (1 << (WIDTH - 1)) - 1
    code = tl.minimum(tl.maximum(code, -top - 1), top) + top + 1
    code = tl.reshape(tl.where(place < m, code, 0), [GROUPS, 8])
    _pack(packed, code, tl.program_id(0).to(tl.int64) * GROUPS, size, WIDTH, GROUPS)


@triton.jit(do_not_specialize=["n", "m", "size"])
def _from_codes(
    steps, packed, out, wrong, n, m, size,
    BLOCK: tl.constexpr, ORDER: tl.constexpr, WIDTH: tl.constexpr, GROUPS: tl.constexpr,
):  # fmt: skip
    place = places(GROUPS * 8)
    first = tl.program_id(0).to(tl.int64) * GROUPS
    code = tl.reshape(_unpack(packed, first, size, WIDTH, GROUPS), [GROUPS * 8])
    step = tl.load(steps + place // BLOCK, mask=place < m, other=0.0)
    top: tl.constexpr = (1 << (WIDTH - 1)) - 1
    value = tl.where(place < m, (code - top - 1).to(tl.float32) * step, 0.0)
    if ORDER:
        value = _spread(value, GROUPS * 8) * 0.03125  # 1 / 32
    tl.store(out + place, value, mask=place < n)
    # what is no magnitude, -0 among it, has larger bits than infinity's
    odd = step.to(tl.uint32, bitcast=True) >= INFINITY
    raised(wrong, odd | (magnitude(value) >= INFINITY) | ((place >= m) & (code > 0)))


@triton.jit
def _spread(value, SIZE: tl.constexpr):
    """Apply the Hadamard transform to each 32 of float32[SIZE], without a factor.

    A stage takes neighbours, and puts sums into the first half and differences into the second:
    after five, each value is in its place again, as in triton_thc.py."""
    value = tl.reshape(value, [SIZE // _ORDER, _ORDER])
    for _ in tl.static_range(5):
        low, high = tl.split(tl.reshape(value, [SIZE // _ORDER, _ORDER // 2, 2]))
        value = tl.permute(tl.join(low + high, low - high), [0, 2, 1])
        value = tl.reshape(value, [SIZE // _ORDER, _ORDER])
    return tl.reshape(value, [SIZE])


# SwitchML's integers


def switchml_statistic(codec: SwitchML, x: torch.Tensor) -> torch.Tensor:
    """Return codec.local of float32[n], in the CPU's memory: float32[partitions]; infinity where
    the codec refuses the values."""
    return torch.from_numpy(finished_switchml(switchml_largest(codec, x).cpu().numpy()))


def switchml_largest(codec: SwitchML, x: torch.Tensor) -> torch.Tensor:
    """Return the bits of each partition's largest magnitude, int32[partitions]."""
    x = ready(x)
    n, size = x.numel(), codec._max_partition
    most = flag(x, -(-n // size))
    launch(_largest, tiles(n), x, most, n, EACH=size, TILE=TILE)
    return most


def finished_switchml(bits: Any) -> Any:
    """Return the statistics of switchml_largest() in the CPU's memory; infinity where the codec
    refuses the values."""
    found = np.ldexp(np.float32(1), np.frexp(bits.view(np.float32))[1] - 1)
    found = np.where(bits < INFINITY.value, np.where(bits > 0, found, np.float32(0)), np.inf)
    return found.astype(np.float32)


def switchml_codes(codec: SwitchML, x: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
    """Return codec.codes, packed: uint8[4 n]. shared: float32[partitions], all workers'."""
    x = ready(x)
    out = blank(x, x.numel(), torch.int32)
    _launch_integers(codec, x, shared, out, digits=True)
    return out.view(torch.uint8)


def encode_switchml(codec: SwitchML, x: torch.Tensor, shared: torch.Tensor) -> Encoded:
    """Return each partition's statistic, float32, and its integers."""
    x = ready(x)
    size, n = codec._max_partition, x.numel()
    out = blank(x, n + len(shared), torch.int32)
    out[:: size + 1] = shared.to(x.device).view(torch.int32)
    return out.view(torch.uint8), _launch_integers(codec, x, shared, out, digits=False)


def _launch_integers(
    codec: SwitchML, x: torch.Tensor, shared: torch.Tensor, out: torch.Tensor, digits: bool
) -> torch.Tensor:
    """Write integers, or their digits; return the flag."""
    wrong = flag(x)
    found = codec._shared(shared.cpu().numpy(), x.numel()).astype(np.float64)
    with np.errstate(divide="ignore"):
        scales = np.where(found > 0, codec.limit / (2 * found), 0.0)
    given = x, on(scales, x.device), out, wrong, codec.limit, x.numel()
    options = {"DIGITS": digits, "SIZE": codec._max_partition, "TILE": TILE}
    launch(_integers, tiles(x.numel()), *given, **options)
    return wrong


def switchml_mean(
    codec: SwitchML, sums: torch.Tensor, n: int, count: int | torch.Tensor, shared: torch.Tensor
) -> torch.Tensor:
    """Return codec.decode_sum: the mean, float32[n], of so many workers' digits.

    count: of all lanes, or an integer of each, which is 0 where the sum is missing."""
    out, sums = blank(sums, n, torch.float32), sums.contiguous()
    scales = _value_scales(codec, shared, n, sums.device)
    each = isinstance(count, torch.Tensor)
    options = {"EACH": each, "SIZE": codec._max_partition, "TILE": TILE // 8}
    launch(_digit_means, (-(-n // (TILE // 8)),), sums, count, scales, out, n, **options)
    return out


def decode_switchml(codec: SwitchML, data: torch.Tensor, n: int) -> Decoded:
    """Return the values of integers."""
    words = data.view(torch.int32)
    shared = words[:: codec._max_partition + 1].view(torch.float32).cpu()
    if not bool(((shared >= 0) & (shared < np.inf)).all()):
        return blank(data, n, torch.float32), flag(data) + 1
    return _launch_values(codec, words, n, shared, digits=False)


def switchml_values(
    codec: SwitchML, packed: torch.Tensor, n: int, shared: torch.Tensor
) -> torch.Tensor:
    """Return the values, float32[n], of switchml_codes()."""
    return _launch_values(codec, packed.view(torch.int32), n, shared, digits=True)[0]


def _launch_values(
    codec: SwitchML, words: torch.Tensor, n: int, shared: torch.Tensor, digits: bool
) -> Decoded:
    out, wrong = blank(words, n, torch.float32), flag(words)
    given = words, _value_scales(codec, shared, n, words.device), out, wrong, codec.limit, n
    options = {"DIGITS": digits, "SIZE": codec._max_partition, "TILE": TILE}
    launch(_from_integers, tiles(n), *given, **options)
    return out, wrong


def _value_scales(codec: SwitchML, shared: torch.Tensor, n: int, device: Any) -> torch.Tensor:
    found = codec._shared(shared.cpu().numpy(), n).astype(np.float64)
    return on(2 * found / codec.limit, device)


@triton.jit(do_not_specialize=["n", "limit"])
def _integers(
    x, scales, out, wrong, limit, n,
    DIGITS: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write integers, behind a word for each partition; or their eight digits, all the highest
    first, without such words."""
    place = places(TILE)
    value = tl.load(x + place, mask=place < n, other=0.0)
    raised(wrong, magnitude(value) >= INFINITY)
    part = place // SIZE
    found = rounded(value.to(tl.float64) * tl.load(scales + part, mask=place < n, other=0.0))
    top = limit.to(tl.float64)
    found = tl.minimum(tl.maximum(found, -top), top).to(tl.int32)
    if DIGITS:
        word = _swapped(found ^ -0x80000000)
        tl.store(out + place, word, mask=place < n)
    else:
        tl.store(out + place + part + 1, found, mask=place < n)


@triton.jit(do_not_specialize=["n"])
def _digit_means(
    sums, count, scales, out, n, EACH: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr
):
    place = places(TILE)
    lane = place[:, None] * 8 + tl.arange(0, 8)[None, :]
    inside = (place < n)[:, None]
    digits = tl.load(sums + lane, mask=inside, other=0).to(tl.int64)
    total = tl.sum(digits << (28 - 4 * tl.arange(0, 8)).to(tl.int64)[None, :], axis=1)
    if EACH:
        lanes = tl.load(count + lane, mask=inside, other=0).to(tl.int64)
        workers = tl.max(lanes, axis=1)
        workers = tl.where(tl.min(lanes, axis=1) == workers, workers, 0)
    else:
        workers = tl.full([TILE], 0, tl.int64) + count
    total = tl.where(workers > 0, total - (workers << 31), 0)
    mean = total.to(tl.float64) / tl.maximum(workers, 1).to(tl.float64)
    value = mean * tl.load(scales + place // SIZE, mask=place < n, other=0.0)
    tl.store(out + place, _within(value), mask=place < n)


@triton.jit
def _swapped(word):
    """Return int32 words with their bytes in the opposite order."""
    word = word.to(tl.uint32, bitcast=True)
    word = ((word & 0x00FF00FF) << 8) | ((word >> 8) & 0x00FF00FF)
    return ((word << 16) | (word >> 16)).to(tl.int32, bitcast=True)


@triton.jit(do_not_specialize=["n", "limit"])
def _from_integers(
    words, scales, out, wrong, limit, n,
    DIGITS: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write the values of what _integers writes."""
    place = places(TILE)
    part = place // SIZE
    if DIGITS:
        found = _swapped(tl.load(words + place, mask=place < n, other=0)) ^ -0x80000000
    else:
        found = tl.load(words + place + part + 1, mask=place < n, other=0)
    found = found.to(tl.int64)
    value = found.to(tl.float64) * tl.load(scales + part, mask=place < n, other=0.0)
    tl.store(out + place, _within(value), mask=place < n)
    raised(wrong, (found > limit) | (found < -limit))


@triton.jit
def _within(value):
    """Clamp float64 values to float32's range, and round them to it."""
    most = 3.4028234663852886e38
    return tl.minimum(tl.maximum(value, -most), most).to(tl.float32)


# Codes without gaps, the first in the lowest bits


@triton.jit
def _pack(packed, code, first, size, WIDTH: tl.constexpr, GROUPS: tl.constexpr):
    """Store int32[GROUPS, 8] codes of so many bits from group `first` on, in `size` bytes."""
    shift = (tl.arange(0, 8) * WIDTH).to(tl.uint64)[None, :]
    word = tl.sum(code.to(tl.uint64) << shift, axis=1)
    octet = tl.arange(0, 8)[None, :]
    place = (first + tl.arange(0, GROUPS))[:, None] * WIDTH + octet
    byte = (word[:, None] >> (octet * 8).to(tl.uint64)) & 255
    tl.store(packed + place, byte.to(tl.uint8), mask=(octet < WIDTH) & (place < size))


@triton.jit
def _unpack(packed, first, size, WIDTH: tl.constexpr, GROUPS: tl.constexpr):
    """Return codes, int32[GROUPS, 8], from group `first` on; 0 behind the bytes."""
    octet = tl.arange(0, 8)[None, :]
    place = (first + tl.arange(0, GROUPS))[:, None] * WIDTH + octet
    inside = (octet < WIDTH) & (place < size)
    byte = tl.load(packed + place, mask=inside, other=0).to(tl.uint64)
    word = tl.sum(byte << (octet * 8).to(tl.uint64), axis=1)[:, None]
    return ((word >> (octet * WIDTH).to(tl.uint64)) & ((1 << WIDTH) - 1)).to(tl.int32)


@triton.jit
def _power(exponent):
    """Return 2^exponent, float64, of int32 from -1022 to 1023."""
    return ((exponent + 1023).to(tl.int64) << 52).to(tl.float64, bitcast=True)
