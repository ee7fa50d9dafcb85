"""The codecs on torch tensors, on whatever device these are, equal to the bit.

CUDA tensors take kernels in Triton where it is installed. Others go through the codecs, but for
THC's kernels of torch's own operations here, `plain_codes` and `plain_mean`: every step of them is
a float32 operation in the codec's order, or an integer one.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

import torch

from gradplane import _splitmix64
from gradplane.codecs import Codec, code_bits, key
from gradplane.codecs._feedback import Residual
from gradplane.codecs._grid import GridCodec
from gradplane.codecs._quantise import cells
from gradplane.codecs.threelc import ThreeLC

DEVICES = {"cuda"}
"""The types of devices whose tensors take Triton's kernels."""
_BOUND = 2.0**100  # as in codecs/_hadamard.py


def encode(
    codec: Codec,
    x: torch.Tensor,
    shared: torch.Tensor | None = None,
    seed: int = 0,
    state: Any = None,
    worker: int = 0,
) -> tuple[torch.Tensor, Any]:
    """Return `codec.encode` of float32[n]: bytes, uint8 on the device of x, and the new state.

    state: as the codec's, but of 3LC the error of earlier rounds, float32[n], or None for zeros.
    CodecError as the codec raises it."""
    one = _triton(x, "triton_codecs")
    if one is not None and one.has(codec):
        found = one.encode(codec, x, shared, seed, state, worker)
        if found is not None:
            made: tuple[torch.Tensor, Any] = found
            return made
    error = isinstance(codec, ThreeLC) and codec.accumulate
    if error:
        state = codec.start(x.numel()) if state is None else Residual(state.cpu().numpy(), None)
    values = x.detach().reshape(-1).cpu().numpy()
    data, state = codec.encode(values, _array(shared), seed, state, worker)
    after = torch.from_numpy(state.error).to(x.device) if error else state
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).to(x.device), after


def decode(codec: Codec, data: torch.Tensor, n: int) -> torch.Tensor:
    """Return `codec.decode` of bytes, uint8: float32[n] on their device. CodecError as its."""
    one = _triton(data, "triton_codecs")
    if one is not None and one.has(codec):
        values: torch.Tensor | None = one.decode(codec, data, n)
        if values is not None:
            return values
    return torch.from_numpy(codec.decode(data.cpu().numpy().tobytes(), n)).to(data.device)


def thc_norms(codec: GridCodec, x: torch.Tensor) -> torch.Tensor:
    """Return `codec.local`, float32[partitions] in the CPU's memory, of float32[n]."""
    if (faster := _triton(x, "triton_thc")) is not None:
        norms: torch.Tensor = faster.norms(codec, x)
        return norms
    return torch.from_numpy(codec.local(x.detach().cpu().numpy()))


def thc_codes(
    codec: GridCodec, x: torch.Tensor, shared: torch.Tensor, seed: int = 0, worker: int = 0
) -> torch.Tensor:
    """Return `codec.codes`: uint8[lanes(n)] of float32[n], for a codec that rotates.

    shared: float32, the workers' largest norm of each partition, as from `codec.combine`.
    """
    one = _triton(x, "triton_thc")
    return (one.codes if one else plain_codes)(codec, x, shared, seed, worker)


def thc_mean(
    codec: GridCodec, sums: torch.Tensor, n: int, count: int, shared: torch.Tensor, seed: int = 0
) -> torch.Tensor:
    """Return `codec.decode_sum`: the mean, float32[n], of `count` workers' looked-up codes."""
    one = _triton(sums, "triton_thc")
    return (one.mean if one else plain_mean)(codec, sums, n, count, shared, seed)


@cache
def has_triton() -> bool:
    """Return whether Triton is installed."""
    return importlib.util.find_spec("triton") is not None


def _triton(x: torch.Tensor, module: str) -> Any:
    """Return a module of Triton's kernels, for a CUDA tensor; None where it is not installed."""
    if x.device.type not in DEVICES or not has_triton():
        return None
    return importlib.import_module(f"gradplane.torch.{module}")


def _array(shared: torch.Tensor | None) -> Any:
    return None if shared is None else shared.cpu().numpy()


def plain_codes(
    codec: GridCodec, x: torch.Tensor, shared: torch.Tensor, seed: int = 0, worker: int = 0
) -> torch.Tensor:
    """Return what thc_codes does, by torch's operations."""
    rounding, parts = key(seed, worker, "rounding"), []
    for k, part in enumerate(codec.partitions(x.numel())):
        norm = float(shared[k])
        if norm == 0:
            grid = x.new_zeros(part.lanes)
        else:
            scale = codec.granularity / (2 * codec.threshold * norm)
            grid = rotate(x[part.start : part.stop], part.lanes, _signs(seed, k), scale)
        parts.append(quantise(grid, codec.table, rounding, part.lane))
    return torch.cat(parts) if parts else x.new_zeros(0, dtype=torch.uint8)


def plain_mean(
    codec: GridCodec, sums: torch.Tensor, n: int, count: int, shared: torch.Tensor, seed: int = 0
) -> torch.Tensor:
    """Return what thc_mean does, by torch's operations."""
    steps = 2 * sums.to(torch.float32) - float(codec.granularity * count)
    # CUDA multiplies by the reciprocal of a number, or of a tensor without dimensions: other bits.
    workers = steps.new_full((1,), float(count))
    middle = steps / workers if count else torch.zeros_like(steps)
    parts = []
    for k, part in enumerate(codec.partitions(n)):
        scale = codec.threshold * float(shared[k]) / codec.granularity / part.lanes
        lanes = middle[part.lane : part.lane + part.lanes]
        parts.append(unrotate(lanes, part.stop - part.start, _signs(seed, k), scale))
    return torch.cat(parts) if parts else middle.new_zeros(0)


def rotate(x: torch.Tensor, lanes: int, key: int, scale: float) -> torch.Tensor:
    """Return H D x * scale, float32[lanes], x padded with zeros; lanes is a power of two."""
    out = x.new_zeros(lanes)
    out[: x.numel()] = _flipped(x, key, scale, _BOUND)
    return fwht(out)


def unrotate(y: torch.Tensor, n: int, key: int, scale: float) -> torch.Tensor:
    """Return the first n values of D H y * scale, float32."""
    return _flipped(fwht(y)[:n], key, scale, torch.finfo(torch.float32).max)


def fwht(a: torch.Tensor) -> torch.Tensor:
    """Return the Hadamard transform of float32[power of two], Sylvester order, not normalised."""
    h = 1
    while h < a.numel():
        pairs = a.reshape(-1, 2, h)
        upper, lower = pairs[:, 0], pairs[:, 1]
        a = torch.stack((upper + lower, upper - lower), 1).reshape(-1)
        h *= 2
    return a


def quantise(y: torch.Tensor, table: tuple[int, ...], key: int, first: int) -> torch.Tensor:
    """Return codes, uint8, of grid positions, stochastically rounded; see codecs/_quantise.py."""
    packed = torch.from_numpy(cells(table)).to(y.device)
    low, gap = ((packed >> place & 4095).to(torch.float32) for place in (0, 12))
    below = (packed >> 24 & 255).to(torch.uint8)
    count = packed.numel()
    value = (y + count / 2).clamp(0, count)
    cell = value.to(torch.int32).clamp(max=count - 1).long()
    words = _words(key, first, y.numel(), y.device)
    uniform = _shifted(words, 40).to(torch.float32) * 2.0**-24
    up = uniform * gap[cell] < value - low[cell]
    return below[cell] + up.to(torch.uint8)


def pack(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Return uint8 codes packed as the switch reads them, in fields of 1, 2, 4 or 8 bits."""
    places = _places(bits, codes.device)
    padding = codes.new_zeros(-codes.numel() % places.numel())
    fields = torch.cat((codes, padding)).reshape(-1, places.numel())
    return (fields << places).sum(1, dtype=torch.uint8)


def unpack(data: torch.Tensor, count: int, bits: int) -> torch.Tensor:
    """Return `count` codes, uint8, of packed ones."""
    mask = (1 << code_bits(1 << bits)) - 1
    return (data[:, None] >> _places(bits, data.device) & mask).reshape(-1)[:count]


def _places(bits: int, device: torch.device) -> torch.Tensor:
    """Return by how much the fields in a byte are shifted."""
    width = code_bits(1 << bits)
    return torch.arange(8 - width, -1, -width, dtype=torch.uint8, device=device)


def _signs(seed: int, partition: int) -> int:
    """Return the key of a partition's signs."""
    return key(key(seed, "rotation", partition) & 0xFFFFFFFF, "signs")


def _flipped(x: torch.Tensor, key: int, scale: float, bound: float) -> torch.Tensor:
    """Return D x * scale in float32, scaled in float64 and clamped to the bound."""
    scaled = (x.to(torch.float64) * scale).clamp(-bound, bound).to(torch.float32)
    words = _words(key, 0, (x.numel() + 63) // 64, x.device)
    places = torch.arange(64, device=x.device)
    bits = (words[:, None] >> places & 1).reshape(-1)[: x.numel()]
    return torch.where(bits.bool(), -scaled, scaled)


def _words(key: int, first: int, count: int, device: torch.device) -> torch.Tensor:
    """Return words of SplitMix64's stream, uint64 in int64; see codecs/_random.py."""
    positions = torch.arange(first + 1, first + count + 1, dtype=torch.int64, device=device)
    z = positions * _signed(_splitmix64.GOLDEN) + _signed(key)
    for shift, factor in _splitmix64.STEPS:
        z = (z ^ _shifted(z, int(shift))) * _signed(factor)
    return z ^ _shifted(z, int(_splitmix64.LAST_SHIFT))


def _shifted(z: torch.Tensor, places: int) -> torch.Tensor:
    """Shift right without the sign: torch shifts int64 with it."""
    return z >> places & (1 << 64 - places) - 1


def _signed(word: int) -> int:
    word = int(word) & 2**64 - 1
    return word - 2**64 if word >> 63 else word
