"""References for codecs: the papers' formulas on plain arrays, without bytes or packets.

A formula takes one tensor of all workers, float32[workers, *shape], a memory that it keeps between
rounds (a dict, empty before the first) and a source of chance, and returns what all workers get,
float32[shape]. Nothing of the codecs is used but THC's optimal table.
"""

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.codecs import Floats

Chance = np.random.Generator
Memory = dict[str, Any]
Formula = Callable[[Floats, Memory, Chance], Floats]
OfOne = Callable[[Floats, Chance], Floats]
"""Returns one worker's tensor as it arrives."""


def alone(arrives: OfOne) -> Formula:
    """Return the mean of what arrives of each worker."""

    def formula(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
        return _mean([arrives(x, chance) for x in tensors])

    return formula


def fed_back(arrives: OfOne) -> Formula:
    """Return the same with error feedback: what did not arrive is added to the next tensor."""

    def formula(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
        total = tensors + memory.get("error", np.float32(0))
        sent = np.stack([arrives(x, chance) for x in total])
        memory["error"] = total - sent
        return _mean(sent)

    return formula


def _mean(sent: Any) -> Floats:
    return np.asarray(np.mean(sent, axis=0, dtype=np.float64), np.float32)


def exact(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
    """Return the mean."""
    return _mean(tensors)


def half(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
    """Divide by the workers, round to float16 and add in float16, as PyTorch's fp16 hook does."""
    halves = (tensors / np.float32(len(tensors))).astype(np.float16)
    return np.asarray(np.add.reduce(halves, axis=0, dtype=np.float16), np.float32)


def brain_half(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
    """Do the same with bfloat16, as PyTorch's bf16 hook does."""
    total = np.zeros(tensors.shape[1:], np.float32)
    for x in tensors / np.float32(len(tensors)):
        total = _upper_half(total + _upper_half(x))
    return total


def _upper_half(x: Floats) -> Floats:
    bits = x.astype(np.float32).view(np.uint32)
    nearest = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (nearest & np.uint32(0xFFFF0000)).view(np.float32)


def cut(x: Floats, chance: Chance, bits: int) -> Floats:
    """Clear the low bits (ADT, and INCEPTIONN's truncation)."""
    kept = np.uint32(2**32 - 2**bits)
    return (x.view(np.uint32) & kept).view(np.float32)


def inceptionn(x: Floats, chance: Chance, k: int) -> Floats:
    """Keep 32, 16, 8 or 0 bits by magnitude, under the error bound 2^-k (algorithms 2 and 3)."""
    size, middle = np.abs(x), 2.0 ** -(k // 2)
    long, short = np.floor(size * 2**15) / 2**15, np.floor(size / middle * 2**7) * middle / 2**7
    fixed = np.where(size >= middle, long, np.where(size >= 2.0**-k, short, 0))
    return np.where(size >= 1, x, np.sign(x) * fixed).astype(np.float32)


def eight_bits(x: Floats, chance: Chance) -> Floats:
    """Round to the nearest of 255 even steps (3LC, section 4.2)."""
    step = _largest(x) / 127
    return np.asarray(step * np.rint(x / step), np.float32)


def _largest(x: Floats) -> float:
    """Return the largest magnitude; of zeros 1, so that one can divide by it."""
    return float(np.abs(x).max(initial=0)) or 1.0


def ternary(x: Floats, chance: Chance) -> Floats:
    """Send the largest magnitude with a value's sign, with probability |x| / largest."""
    most = _largest(x)
    taken = chance.random(x.shape) < np.abs(x) / most
    return np.asarray(most * taken * np.sign(x), np.float32)


def terngrad(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
    """Clip at 2.5 standard deviations, then do so under the workers' largest (TernGrad)."""
    limits = np.array([2.5 * float(x.std()) for x in tensors])
    clipped = [np.clip(x, -limit, limit) for x, limit in zip(tensors, limits, strict=True)]
    most = max(_largest(x) if np.any(x) else 0.0 for x in clipped) or 1.0
    taken = [chance.random(x.shape) < np.abs(x) / most for x in clipped]
    return _mean([most * t * np.sign(x) for t, x in zip(taken, clipped, strict=True)])


def one_bit(x: Floats, chance: Chance) -> Floats:
    """Send each side's mean (Seide et al.; 3LC's MQE 1-bit)."""
    up = x >= 0
    high, low = (float(x[side].mean()) if side.any() else 0.0 for side in (up, ~up))
    return np.where(up, np.float32(high), np.float32(low))


def sign(x: Floats, chance: Chance) -> Floats:
    """Send signs times the mean magnitude (EF-SignSGD, algorithm 1)."""
    return np.asarray(np.where(x < 0, -1, 1) * np.abs(x).mean(dtype=np.float64), np.float32)


def vote(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
    """Send the majority's sign (signSGD); times the largest mean magnitude, as its rate is ours."""
    scale = max(float(np.abs(x).mean()) for x in tensors)
    return np.asarray(scale * np.sign(np.where(tensors < 0, -1, 1).sum(axis=0)), np.float32)


def three_values(x: Floats, chance: Chance, s: float) -> Floats:
    """Round to -m, 0 or m, m being s times the largest magnitude (3LC, section 3.1)."""
    m = s * _largest(x)
    return np.asarray(m * np.rint(x / m), np.float32)


def large(x: Floats, chance: Chance, fraction: float) -> Floats:
    """Send the largest magnitudes."""
    size = np.abs(x)
    least = np.partition(size.ravel(), -_kept(x.size, fraction))[-_kept(x.size, fraction)]
    return np.where(size >= least, x, np.float32(0))


def _kept(n: int, fraction: float) -> int:
    return max(1, round(fraction * n))


def at_random(fraction: float) -> Formula:
    """Return random-k with error feedback: all workers send the same positions."""

    def formula(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
        total = tensors + memory.get("error", np.float32(0))
        mask = np.zeros(total[0].size, bool)
        mask[chance.permutation(mask.size)[: _kept(mask.size, fraction)]] = True
        sent = total * mask.reshape(total[0].shape)
        memory["error"] = total - sent
        return _mean(sent)

    return formula


def deep(fraction: float, momentum: float = 0.9) -> Formula:
    """Return deep gradient compression: momentum correction and factor masking."""

    def formula(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
        u = np.float32(momentum) * memory.get("u", np.zeros_like(tensors)) + tensors
        v = memory.get("v", np.zeros_like(tensors)) + u
        sent = np.stack([large(x, chance, fraction) for x in v])
        memory["u"], memory["v"] = np.where(sent != 0, 0, u), v - sent
        return _mean(sent)

    return formula


def levels(x: Floats, chance: Chance, count: int, bucket: int) -> Floats:
    """Round to levels of each bucket's norm at random (QSGD)."""
    found = np.empty(x.size, np.float32)
    for start in range(0, x.size, bucket):
        piece = x.ravel()[start : start + bucket]
        norm = float(np.linalg.norm(piece)) or 1.0
        level = np.floor(np.abs(piece) / norm * count + chance.random(piece.size))
        found[start : start + bucket] = np.sign(piece) * level * norm / count
    return found.reshape(x.shape)


def powers(x: Floats, chance: Chance) -> Floats:
    """Round to a power of two at random (natural compression)."""
    mantissa, exponent = np.frexp(np.abs(x).astype(np.float64))  # x = mantissa * 2^exponent
    up = chance.random(x.shape) < 2 * mantissa - 1
    return np.asarray(np.sign(x) * np.ldexp(1.0, exponent - 1 + up) * (x != 0), np.float32)


def low_rank(rank: int) -> Formula:
    """Return PowerSGD (algorithm 1), warm-started, with error feedback.

    Tensors that P and Q would not halve go as they are, as in PyTorch's hook."""

    def formula(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
        total = tensors + memory.get("error", np.float32(0))
        matrices = total.reshape(len(total), total.shape[1] if total.ndim > 1 else 1, -1)
        rows, columns = matrices.shape[1:]
        kept = min(rank, rows, columns)
        if 2 * kept * (rows + columns) >= rows * columns:
            return _mean(tensors)
        q = memory.get("q", None)
        q = chance.standard_normal((columns, kept)) if q is None else q
        p = np.linalg.qr((matrices @ np.linalg.qr(q)[0]).mean(axis=0))[0]
        memory["q"] = (matrices.transpose(0, 2, 1) @ p).mean(axis=0)
        found = np.asarray((p @ memory["q"].T).reshape(tensors.shape[1:]), np.float32)
        memory["error"] = total - found
        return found

    return formula


def homomorphic(table: tuple[int, ...], p: float) -> Formula:
    """Return THC (algorithm 3): rotate, clamp, round to the table's values, add, rotate back."""
    threshold, places = -NormalDist().inv_cdf(p / 2), np.array(table)

    def formula(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
        total = (tensors + memory.get("error", np.float32(0))).reshape(len(tensors), -1)
        n, lanes = total.shape[1], 1 << (total.shape[1] - 1).bit_length()
        padded = np.pad(total, ((0, 0), (0, lanes - n)))
        signs = chance.choice([-1.0, 1.0], lanes)
        largest = max(float(np.linalg.norm(x)) for x in total) or 1.0
        limit = threshold / lanes**0.5 * largest
        at = (np.clip(_hadamard(padded * signs), -limit, limit) / limit + 1) * places[-1] / 2
        low = np.clip(np.searchsorted(places, at, "right") - 1, 0, len(places) - 2)
        share = (at - places[low]) / (places[low + 1] - places[low])
        codes = low + (chance.random(at.shape) < share)
        sent = (_hadamard((2 * places[codes] / places[-1] - 1) * limit) * signs)[:, :n]
        memory["error"] = (total - sent).reshape(tensors.shape).astype(np.float32)
        return _mean(sent).reshape(tensors.shape[1:])

    return formula


def _hadamard(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the orthonormal Hadamard transform of each row; its own inverse."""
    rows, n = x.shape
    width = 1
    while width < n:
        pairs = x.reshape(rows, n // (2 * width), 2, width)
        x = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), axis=2)
        x, width = x.reshape(rows, n), 2 * width
    return np.asarray(x / n**0.5, np.float64)


def microscaled(
    x: Floats, chance: Chance, mantissa: int, least: int, emax: int, largest: float
) -> Floats:
    """Round blocks of 32 to floats of few bits times a power of two (OCP's MX formats).

    least, emax: the exponents of the smallest normal element and of the largest one."""
    blocks = _blocks(x, 32)
    most = np.abs(blocks).max(axis=1, keepdims=True)
    scale = np.exp2(np.floor(np.log2(np.where(most > 0, most, 1))) - emax)
    places = blocks / scale
    exponent = np.floor(np.log2(np.maximum(np.abs(places), 2.0**least)))
    step = np.exp2(exponent - mantissa)
    found = np.clip(np.rint(places / step) * step, -largest, largest) * scale
    return np.asarray(found.reshape(-1)[: x.size].reshape(x.shape), np.float32)


def _blocks(x: Floats, size: int) -> npt.NDArray[np.float64]:
    """Return the values in rows of `size`, the last one filled with zeros."""
    padded = np.pad(x.ravel().astype(np.float64), (0, -x.size % size))
    return padded.reshape(-1, size)


def block_integers(x: Floats, chance: Chance, bits: int, size: int) -> Floats:
    """Round to even steps of each block's largest magnitude (ZeRO++, as DeepSpeed does)."""
    blocks, top = _blocks(x, size), 2 ** (bits - 1)
    step = np.abs(blocks).max(axis=1, keepdims=True) / top
    codes = np.clip(np.rint(blocks / np.where(step > 0, step, 1)), -top, top - 1)
    return np.asarray((codes * step).ravel()[: x.size].reshape(x.shape), np.float32)


def rotated_integers(x: Floats, chance: Chance, bits: int, size: int) -> Floats:
    """Transform each 32 values, and round to steps of each block at random (SDP4Bit)."""
    rotated = _hadamard(_blocks(x, 32)).ravel()
    blocks, top = _blocks(rotated.astype(np.float32), size), 2 ** (bits - 1) - 1
    step = np.abs(blocks).max(axis=1, keepdims=True) / top
    places = blocks / np.where(step > 0, step, 1)
    codes = np.clip(np.floor(places + chance.random(places.shape)), -top - 1, top)
    back = _hadamard((codes * step).ravel()[: rotated.size].reshape(-1, 32))
    return np.asarray(back.ravel()[: x.size].reshape(x.shape), np.float32)


def grouped(bits: float) -> Formula:
    """Return DynamiQ (section 3) with so many bits a value, as one server adds it: 2, 4 or 8 bits
    for each 256 values by their squared norms over all workers, each 16 with a scale of a byte.

    Rounding is correlated: each worker has another part of [0, 1), in a random order."""

    def formula(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
        flat = tensors.reshape(len(tensors), -1).astype(np.float64)
        n = flat.shape[1]
        padded = np.pad(flat, ((0, 0), (0, -n % 256))).reshape(len(flat), -1, 16, 16)
        counts = np.minimum(256, n - 256 * np.arange(padded.shape[1]))
        shift = padded.sum(axis=(0, 2, 3)) / counts / len(flat)
        power = (padded**2).sum(axis=(0, 2, 3))
        widths = _widths(power, counts, n * (bits - 48 / 256 - 8 / 16))
        order = chance.random(padded.shape).argsort(axis=0)
        u = (order + chance.random(padded.shape)) / len(flat)
        rest = padded - shift[:, None, None]
        sent = np.empty_like(rest)
        for width, epsilon in ((2, 0.23), (4, 0.18), (8, 0.1)):
            powers = (1 + 2 * epsilon**2) ** np.arange(2 ** (width - 1))
            places, own = (powers - 1) / (powers[-1] - 1), widths == width
            sent[:, own] = _in_groups(rest[:, own], places, u[:, own], chance)
        found = (sent.mean(axis=0) + shift[:, None, None]).ravel()[:n]
        return np.asarray(found.reshape(tensors.shape[1:]), np.float32)

    return formula


def _widths(power: Any, counts: Any, budget: float) -> Any:
    """Return 2, 4 or 8 bits: those of the least threshold that keeps the budget of bits."""
    widths = np.full(power.size, 2)
    for t in sorted({*power, *(power * 512 / 17)}, reverse=True):
        tried = np.where(power * (1 + 1e-9) >= t, 8, np.where(power * 512 / 17 >= t, 4, 2))
        if (tried * counts).sum() > budget:
            break
        widths = tried
    return widths


def _in_groups(x: Any, places: Any, u: Any, chance: Chance) -> Any:
    """Round values[..., 16, 16] to these places of [0, 1] times each 16's scale, and that to 255
    steps of the largest of the 256."""
    most = np.abs(x).max(axis=-1, keepdims=True)
    step = np.abs(x).max(axis=(-2, -1), keepdims=True) / 255
    scale = step * np.floor(most / np.where(step > 0, step, 1) + chance.random(most.shape))
    share = np.abs(x) / np.where(most > 0, most, 1)
    low = np.clip(np.searchsorted(places, share, "right") - 1, 0, len(places) - 2)
    up = u < (share - places[low]) / (places[low + 1] - places[low])
    return np.sign(x) * places[low + up] * scale


def integers(tensors: Floats, memory: Memory, chance: Chance) -> Floats:
    """Round to 32-bit integers that add without overflow (SwitchML)."""
    step = 2 * _largest(tensors) * len(tensors) / (2**31 - 1)
    return _mean(step * np.rint(tensors / step))
