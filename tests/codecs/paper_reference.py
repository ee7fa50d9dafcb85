"""INCEPTIONN, ADT, 3LC and the codecs 3LC compares itself with, once more: value by value.

Nothing of gradplane is used; values are Python floats, and exact fractions where they decide.
Slow on purpose.
"""

import math
import struct
from fractions import Fraction

from thc_reference import f32, key, word


def pack_floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


class Inceptionn:
    def __init__(self, bound: int = 10, nonfinite: bool = False) -> None:
        self.least = Fraction(1, 2**bound)
        self.middle = Fraction(1, 2 ** (bound // 2))

    def encode(self, x: list[float]) -> bytes:
        return self.encode_words([struct.unpack(">I", struct.pack(">f", v))[0] for v in x])

    def encode_words(self, words: list[int]) -> bytes:
        """Encode values given by their bits: a signalling NaN is none after it was a float."""
        out = b""
        for start in range(0, len(words), 8):
            pairs = [self.vector(word.to_bytes(4, "big")) for word in words[start : start + 8]]
            head = sum(tag << (2 * i) for i, (tag, _) in enumerate(pairs))
            out += struct.pack(">H", head) + b"".join(vector for _, vector in pairs)
        return out

    def vector(self, octets: bytes) -> tuple[int, bytes]:
        (v,) = struct.unpack(">f", octets)
        if not math.isfinite(v) or abs(v) >= 1:
            return 3, octets
        negative, size = v < 0, Fraction(abs(v))
        if size >= self.middle:
            return 2, struct.pack(">H", negative << 15 | math.floor(size * 2**15))
        if size >= self.least:
            return 1, struct.pack(">B", negative << 7 | math.floor(size / self.middle * 2**7))
        return 0, b""

    def decode(self, data: bytes, n: int) -> list[float]:
        out: list[float] = []
        while len(out) < n:
            (head,), data = struct.unpack(">H", data[:2]), data[2:]
            for i in range(8):
                tag = head >> (2 * i) & 3
                size = (0, 1, 2, 4)[tag]
                out.append(self.value(tag, data[:size]))
                data = data[size:]
        assert not data
        return out[:n]

    def value(self, tag: int, vector: bytes) -> float:
        if tag == 0:
            return 0.0
        if tag == 3:
            return struct.unpack(">f", vector)[0]
        bits = int.from_bytes(vector, "big")
        top = 8 * len(vector) - 1
        unit = Fraction(1, 2**15) if tag == 2 else self.middle / 2**7
        return float((-1) ** (bits >> top) * (bits & (1 << top) - 1) * unit)


class Bytes:
    """ADT and truncation: the first bytes of each value, the most significant first."""

    def __init__(self, keep: int = 2) -> None:
        self.keep = keep

    def encode(self, x: list[float]) -> bytes:
        return b"".join(struct.pack(">f", v)[: self.keep] for v in x)

    def decode(self, data: bytes, n: int) -> list[float]:
        pieces = [data[i * self.keep :][: self.keep] for i in range(n)]
        return [struct.unpack(">f", piece.ljust(4, b"\0"))[0] for piece in pieces]


def to_groups(digits: list[int]) -> list[int]:
    """Encode in base 3^5, in five partitions."""
    digits = digits + [0] * (-len(digits) % 5)
    size = len(digits) // 5
    return [int("".join(str(digits[p * size + i]) for p in range(5)), 3) for i in range(size)]


def to_digits(groups: list[int], n: int) -> list[int]:
    columns = []
    for group in groups:
        columns.append([group // 3**power % 3 for power in (4, 3, 2, 1, 0)])
    return [column[p] for p in range(5) for column in columns][:n]


def to_runs(groups: list[int]) -> bytes:
    """Encode runs of zeros, by looking ahead."""
    out = []
    while groups:
        run = 0
        while run < min(14, len(groups)) and groups[run] == 121:
            run += 1
        out.append(groups[0] if run < 2 else 243 + run - 2)
        groups = groups[max(run, 1) :]
    return bytes(out)


def from_runs(data: bytes) -> list[int]:
    out = []
    for byte in data:
        out += [byte] if byte < 243 else [121] * (byte - 243 + 2)
    return out


class ThreeLC:
    def __init__(self, s: float = 1.0, zero_runs: bool = True, **_: object) -> None:
        self.s, self.zero_runs = f32(s), zero_runs
        self.error: list[float] = []

    def encode(self, x: list[float]) -> bytes:
        total = [f32(v + e) for v, e in zip(x, self.error or [0.0] * len(x), strict=True)]
        m = f32(max(map(abs, total), default=0.0) * self.s)
        # Python's round() of a fraction takes ties to even
        rounded = [round(Fraction(v) / Fraction(m)) if m else 0 for v in total]
        self.error = [f32(v - m * r) for v, r in zip(total, rounded, strict=True)]
        groups = to_groups([r + 1 for r in rounded])
        return pack_floats(m) + (to_runs(groups) if self.zero_runs else bytes(groups))

    def decode(self, data: bytes, n: int) -> list[float]:
        (m,) = struct.unpack("<f", data[:4])
        groups = from_runs(data[4:]) if self.zero_runs else list(data[4:])
        assert len(groups) == math.ceil(n / 5)
        return [m * (digit - 1) for digit in to_digits(groups, n)]


class Int8:
    def encode(self, x: list[float]) -> bytes:
        m = max(map(abs, x), default=0.0)
        codes = [round(127 * Fraction(v) / Fraction(m)) if m else 0 for v in x]
        return pack_floats(m) + struct.pack(f"{len(x)}b", *codes)

    def decode(self, data: bytes, n: int) -> list[float]:
        (m,) = struct.unpack("<f", data[:4])
        return [f32(float(code * Fraction(m) / 127)) for code in struct.unpack(f"{n}b", data[4:])]


class Ternary:
    def __init__(self, seed: int, worker: int) -> None:
        self.stream = key(seed, worker, "rounding")

    def encode(self, x: list[float]) -> bytes:
        m = max(map(abs, x), default=0.0)
        digits = []
        for i, v in enumerate(x):
            u = Fraction(word(self.stream, i) >> 40, 2**24)
            taken = m > 0 and u < Fraction(abs(v)) / Fraction(m)
            digits.append(1 + taken * (1 if v > 0 else -1))
        return pack_floats(m) + bytes(to_groups(digits))

    def decode(self, data: bytes, n: int) -> list[float]:
        (m,) = struct.unpack("<f", data[:4])
        return [m * (digit - 1) for digit in to_digits(list(data[4:]), n)]


def bitmap(flags: list[bool]) -> bytes:
    flags = flags + [False] * (-len(flags) % 8)
    return bytes(
        sum(flag << i for i, flag in enumerate(flags[start : start + 8]))
        for start in range(0, len(flags), 8)
    )


def from_bitmap(data: bytes, n: int) -> list[bool]:
    return [bool(data[i // 8] >> (i % 8) & 1) for i in range(n)]


class OneBit:
    def encode(self, x: list[float]) -> bytes:
        sides = [[v for v in x if v >= 0], [v for v in x if v < 0]]
        means = [float(sum(map(Fraction, side)) / max(len(side), 1)) for side in sides]
        return pack_floats(*means) + bitmap([v < 0 for v in x])

    def decode(self, data: bytes, n: int) -> list[float]:
        means = struct.unpack("<2f", data[:8])
        return [means[below] for below in from_bitmap(data[8:], n)]


class Sparse:
    def __init__(self, seed: int, worker: int, fraction: float = 0.05, sample: int = 2**14) -> None:
        self.fraction, self.sample = fraction, sample
        self.stream = key(seed, worker, "sample")

    def encode(self, x: list[float]) -> bytes:
        looked_at = list(map(abs, x))
        if self.sample < len(x):
            words = [word(self.stream, i) for i in range(self.sample)]
            looked_at = [abs(x[(w >> 32) * len(x) >> 32]) for w in words]
        rank = math.ceil(self.fraction * len(looked_at))
        threshold = sorted(looked_at, reverse=True)[rank - 1] if x else 0.0
        large = [abs(v) >= threshold and v != 0 for v in x]
        sent = [v for v, is_large in zip(x, large, strict=True) if is_large]
        return bitmap(large) + pack_floats(*sent)

    def decode(self, data: bytes, n: int) -> list[float]:
        large = from_bitmap(data, n)
        values = iter(struct.unpack(f"<{sum(large)}f", data[-(-n // 8) :]))
        return [next(values) if is_large else 0.0 for is_large in large]
