"""THC and uniform THC once more: pure Python, value by value, exact fractions where they decide.

Nothing of gradplane is used; tables are given. Slow on purpose.
"""

import hashlib
import math
import struct
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

MASK = 2**64 - 1


def f32(x: float) -> float:
    return struct.unpack("<f", struct.pack("<f", x))[0]


def key(*parts: int | str) -> int:
    text = "/".join(str(p) if isinstance(p, int) else f"'{p}'" for p in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def word(stream: int, position: int) -> int:
    z = (stream + (position + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def sign(spin: int, position: int) -> int:
    return -1 if word(key(spin, "signs"), position // 64) >> (position % 64) & 1 else 1


def hadamard(values: list[float]) -> list[float]:
    """Transform in Sylvester order, every sum rounded to float32."""
    if len(values) == 1:
        return values
    pairs = list(zip(values[0::2], values[1::2], strict=True))
    plus = hadamard([f32(x + y) for x, y in pairs])
    minus = hadamard([f32(x - y) for x, y in pairs])
    return [v for pair in zip(plus, minus, strict=True) for v in pair]


@dataclass
class Grid:
    """`t` is None for no rotation; `size` the most values in a partition; `block` None for the
    format's version 1, else the lanes of a block of version 2; `narrow`: fields of version 3."""

    bits: int
    table: list[int]
    p: float | None
    size: int = 2**20
    block: int | None = None
    narrow: bool = False

    @property
    def g(self) -> int:
        return self.table[-1]

    @property
    def t(self) -> float:
        return -NormalDist().inv_cdf(self.p / 2) if self.p else 1.0

    @property
    def width(self) -> int:
        """The bits of a field."""
        return min(w for w in (1, 2, 4, 8) if w >= self.bits and (self.narrow or w >= 4))

    def parts(self, n: int) -> list[tuple[int, int, int]]:
        """Return (start, stop, lanes) of each partition."""
        if self.p and self.block and n > self.block:
            blocks = math.ceil(n / self.block)
            sizes = [self.size] * (blocks * self.block // self.size)
            rest = blocks * self.block % self.size
            sizes += [2**k for k in reversed(range(rest.bit_length())) if rest >> k & 1]
            values = [sizes[0] - (blocks * self.block - n), *sizes[1:]]
            ends = [sum(values[: k + 1]) for k in range(len(values))]
            return [(e - v, e, d) for e, v, d in zip(ends, values, sizes, strict=True)]
        cuts = [(a, min(a + self.size, n)) for a in range(0, n, self.size)]
        return [(a, b, 2 ** math.ceil(math.log2(b - a)) if self.p else b - a) for a, b in cuts]

    def local(self, x: list[float]) -> list[float]:
        pieces = [x[a:b] for a, b, _ in self.parts(len(x))]
        if self.p:
            return [f32(math.sqrt(math.fsum(v * v for v in piece))) for piece in pieces]
        return [max(map(abs, piece)) for piece in pieces]

    def positions(self, x: list[float], lanes: int, l: float, spin: int) -> list[float]:  # noqa: E741
        """Return the position on the grid, 0 to g, clamped."""
        scale = self.g / (2 * self.t * l) if l else 0.0
        y = [f32(v * scale) for v in x] + [0.0] * (lanes - len(x))
        if self.p:
            y = hadamard([v * sign(spin, i) for i, v in enumerate(y)])
        return [min(max(f32(v + self.g / 2), 0.0), self.g) for v in y]

    def code(self, position: float, word: int) -> int:
        z = max(z for z in range(len(self.table) - 1) if self.table[z] <= position)
        low, high = self.table[z], self.table[z + 1]
        return z + (Fraction(word >> 40, 2**24) < (Fraction(position) - low) / (high - low))

    def encode(self, x: list[float], shared: list[float], seed: int, worker: int) -> bytes:
        out, lane = b"", 0
        for k, (a, b, lanes) in enumerate(self.parts(len(x))):
            spin = key(seed, "rotation", k) % 2**32
            out += struct.pack("<f", shared[k]) + (struct.pack("<I", spin) if self.p else b"")
            stream = key(seed, worker, "rounding")
            y = self.positions(x[a:b], lanes, shared[k], spin)
            codes = [self.code(v, word(stream, lane + i)) for i, v in enumerate(y)]
            lane += lanes
            out += packed(codes, self.width)
        return out

    def decode(self, data: bytes, n: int) -> list[float]:
        out: list[float] = []
        for a, b, lanes in self.parts(n):
            (l,), data = struct.unpack("<f", data[:4]), data[4:]  # noqa: E741
            if self.p:
                (spin,), data = struct.unpack("<I", data[:4]), data[4:]
            size = math.ceil(lanes * self.width / 8)
            bits, data = "".join(f"{byte:08b}" for byte in data[:size]), data[size:]
            fields = (bits[self.width * i : self.width * (i + 1)] for i in range(lanes))
            y = [2.0 * self.table[int(field, 2)] - self.g for field in fields]
            scale = self.t * l / self.g
            if self.p:
                y = [v * sign(spin, i) for i, v in enumerate(hadamard(y))]
                scale /= lanes
            out += [f32(v * scale) for v in y[: b - a]]
        assert not data
        return out


def packed(codes: list[int], width: int) -> bytes:
    bits = "".join(f"{code:0{width}b}" for code in codes)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
