"""The baseline codecs once more: pure Python, value by value, exact fractions where they decide.

Nothing of gradplane is used. Slow on purpose. A function encodes a vector (a list of floats that
are float32 numbers) and returns the bytes and what they decode to.
"""

import math
import struct
from fractions import Fraction

from thc_reference import Grid, f32, hadamard, key, word

Encoded = tuple[bytes, list[float]]
PARTITION = 2**20


def floats(values: list[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def fields(codes: list[int], width: int) -> bytes:
    """Return one big number whose lowest bits are the first code."""
    number = sum(code << (i * width) for i, code in enumerate(codes))
    return number.to_bytes((len(codes) * width + 7) // 8, "little")


def uniform(stream: int, position: int) -> Fraction:
    return Fraction(word(stream, position) >> 11, 2**53)


def norm(values: list[float]) -> float:
    return math.sqrt(math.fsum(v * v for v in values))


def pieces(x: list[float], size: int) -> list[list[float]]:
    return [x[a : a + size] for a in range(0, len(x), size)]


def sign(v: float) -> int:
    return -1 if v < 0 else 1


def bfloat16(x: list[float]) -> Encoded:
    out = b""
    for v in x:
        (bits,) = struct.unpack("<I", struct.pack("<f", v))
        half, rest = divmod(bits, 2**16)
        half += rest > 2**15 or (rest == 2**15 and half % 2 == 1)
        out += struct.pack("<H", half)
    halves = struct.unpack(f"<{len(x)}H", out)
    return out, [struct.unpack("<f", struct.pack("<I", h << 16))[0] for h in halves]


def terngrad_scales(x: list[float], clip: float | None, size: int = PARTITION) -> list[float]:
    scales = []
    for piece in pieces(x, size):
        largest = max(map(abs, piece))
        if clip is not None:
            largest = min(largest, clip * norm(piece) / math.sqrt(len(piece)))
        scales.append(f32(largest))
    return scales


def terngrad(
    x: list[float], scales: list[float], seed: int, worker: int, size: int = PARTITION
) -> Encoded:
    grid, stream = Grid(2, [0, 1, 2], None, size), key(seed, worker, "rounding")
    data, decoded = b"", []
    for k, piece in enumerate(pieces(x, size)):
        places = grid.positions(piece, len(piece), scales[k], 0)
        codes = [grid.code(p, word(stream, k * size + i)) for i, p in enumerate(places)]
        data += floats([scales[k]]) + fields(codes, 2)
        decoded += [(code - 1) * scales[k] for code in codes]
    return data, decoded


def signsgd_scales(x: list[float], size: int = PARTITION) -> list[float]:
    return [f32(math.fsum(map(abs, piece)) / len(piece)) for piece in pieces(x, size)]


def signsgd(x: list[float], scales: list[float], size: int = PARTITION) -> Encoded:
    data, decoded = b"", []
    for piece, scale in zip(pieces(x, size), scales, strict=True):
        data += floats([scale]) + fields([int(v >= 0) for v in piece], 1)
        decoded += [sign(v) * scale for v in piece]
    return data, decoded


def efsignsgd(rounds: list[list[float]]) -> list[Encoded]:
    error, out = [0.0] * len(rounds[0]), []
    for x in rounds:
        total = [f32(v + e) for v, e in zip(x, error, strict=True)]
        out.append(signsgd(total, signsgd_scales(total)))
        error = [f32(p - y) for p, y in zip(total, out[-1][1], strict=True)]
    return out


def kept(n: int, fraction: float, k: int | None) -> int:
    return min(n, max(1, round(fraction * n)) if k is None else k)


def largest(x: list[float], k: int) -> list[int]:
    return sorted(sorted(range(len(x)), key=lambda i: (-abs(x[i]), i))[:k])


def sparse(x: list[float], places: list[int]) -> Encoded:
    decoded = [v if i in set(places) else 0.0 for i, v in enumerate(x)]
    data = struct.pack(f"<{len(places)}I", *places)
    return data + floats([x[i] for i in places]), decoded


def topk(x: list[float], fraction: float = 0.1, k: int | None = None) -> Encoded:
    return sparse(x, largest(x, kept(len(x), fraction, k)))


def randomk(
    x: list[float], seed: int, fraction: float = 0.1, k: int | None = None, unbiased: bool = False
) -> Encoded:
    n, stream = len(x), key(seed, "positions")
    count = kept(n, fraction, k)
    lots = sorted(range(n), key=lambda i: (-(word(stream, i) >> 32), i))
    places = sorted(lots[:count])
    decoded = [0.0] * n
    for i in places:
        decoded[i] = f32(x[i] * (n / count)) if unbiased else x[i]
    return struct.pack("<Q", stream) + floats([decoded[i] for i in places]), decoded


def dgc(
    rounds: list[list[float]],
    fraction: float = 0.001,
    momentum: float = 0.9,
    clip: float | None = None,
    warmup: int = 0,
) -> list[Encoded]:
    n, out = len(rounds[0]), []
    u, v = [0.0] * n, [0.0] * n
    for t, x in enumerate(rounds):
        if clip is not None and norm(x) > clip:
            x = [f32(g * (clip / norm(x))) for g in x]
        u = [f32(f32(f32(momentum) * a) + g) for a, g in zip(u, x, strict=True)]
        v = [f32(b + a) for b, a in zip(v, u, strict=True)]
        density = max(fraction, 4.0 ** -(t // warmup + 1)) if warmup else fraction
        places = largest(v, kept(n, density, None))
        data, decoded = sparse(v, places)
        out.append((struct.pack("<I", len(places)) + data, decoded))
        for i in places:
            u[i] = v[i] = 0.0
    return out


def qsgd(x: list[float], seed: int, worker: int, levels: int = 7, bucket: int = 512) -> Encoded:
    stream, codes, decoded = key(seed, worker, "rounding"), [], []
    norms = [f32(norm(piece)) for piece in pieces(x, bucket)]
    for i, v in enumerate(x):
        r = norms[i // bucket]
        place = min(Fraction(abs(v)) * levels / Fraction(r), Fraction(levels)) if r else Fraction(0)
        level = math.floor(place)
        level += uniform(stream, i) < place - level
        codes.append(2 * level + (level > 0 and v < 0))
        decoded.append(f32(sign(v) * (level * (r / levels))) if level else 0.0)
    return floats(norms) + fields(codes, 1 + levels.bit_length()), decoded


MX = {  # bits of exponent and mantissa, bias, largest number: OCP MX 1.0, tables 1 to 5
    "e5m2": (5, 2, 15, 57344),
    "e4m3": (4, 3, 7, 448),
    "e3m2": (3, 2, 3, 28),
    "e2m3": (2, 3, 1, 7.5),
    "e2m1": (2, 1, 1, 6),
}


def mx_magnitudes(element: str) -> list[Fraction]:
    """Return the magnitude of each code, up to the largest number."""
    exponent, mantissa, bias, largest = MX[element]
    found = []
    for field in range(2**exponent):
        for part in range(2**mantissa):
            whole = Fraction(part, 2**mantissa) + (field > 0)
            found.append(whole * Fraction(2) ** (max(field, 1) - bias))
    return [value for value in found if value <= largest]


def mxfp(x: list[float], element: str) -> Encoded:
    exponent, mantissa, _, largest = MX[element]
    magnitudes, emax = mx_magnitudes(element), math.floor(math.log2(largest))
    scales, codes, decoded = [], [], []
    for piece in pieces(x, 32):
        most, shared = max(map(abs, piece)), -127
        while most and Fraction(2) ** (shared + emax + 1) <= most:
            shared += 1
        scales.append(shared + 127)
        for v in piece:
            wanted = Fraction(abs(v)) / Fraction(2) ** shared
            # of two as near the even code
            code = min(range(len(magnitudes)), key=lambda c: (abs(magnitudes[c] - wanted), c % 2))
            negative = math.copysign(1, v) < 0
            codes.append(code + (negative << exponent + mantissa))
            decoded.append(f32(float(magnitudes[code] * Fraction(2) ** shared)) * (-1) ** negative)
    return bytes(scales) + fields(codes, 1 + exponent + mantissa), decoded


def rounded_blocks(
    x: list[float], bits: int, block: int, levels: int, stream: int | None
) -> Encoded:
    """Integers that share a step: to nearest, or with a stream rounded up at random."""
    top, steps, codes, decoded = 2 ** (bits - 1) - 1, [], [], []
    for start in range(0, len(x), block):
        piece = x[start : start + block]
        step = f32(max(map(abs, piece)) / levels)
        steps.append(step)
        for i, v in enumerate(piece, start):
            place = Fraction(v) / Fraction(step) if step else Fraction(0)
            low = math.floor(place)
            code = round(place) if stream is None else low + (uniform(stream, i) < place - low)
            code = min(max(code, -top - 1), top)
            codes.append(code + top + 1)
            decoded.append(f32(f32(code) * step))
    return floats(steps) + fields(codes, bits), decoded


def zeropp(x: list[float], bits: int = 4, block: int = 256) -> Encoded:
    return rounded_blocks(x, bits, block, 2 ** (bits - 1), None)


def sdp4bit(x: list[float], seed: int, worker: int, bits: int = 4, block: int = 128) -> Encoded:
    padded = x + [0.0] * (-len(x) % 32)
    values = [v for piece in pieces(padded, 32) for v in hadamard(piece)]
    stream, levels = key(seed, worker, "rounding"), 2 ** (bits - 1) - 1
    data, received = rounded_blocks(values, bits, block, levels, stream)
    back = [f32(v / 32) for piece in pieces(received, 32) for v in hadamard(piece)]
    return data, back[: len(x)]


def in_order(values: list[float]) -> float:
    """Return the sum, added one by one: from Python 3.12 on sum() does more."""
    total = 0.0
    for v in values:
        total += v
    return total


def dynamiq(x: list[float], seed: int, worker: int, bits: float = 5.0, workers: int = 1) -> Encoded:
    supers = pieces(x, 256)
    means = [f32(in_order(piece) / len(piece)) for piece in supers]
    norms = [f32(min(in_order([v * v for v in piece]), 1e36)) for piece in supers]
    data, received = bfloat16(means + norms)
    means, norms = received[: len(supers)], received[len(supers) :]
    budget = int(bits * len(x)) - 48 * len(supers) - 8 * len(pieces(x, 16))
    limits = {k * Fraction(f) for f in norms if f > 0 for k in (1, Fraction(512, 17))}

    def widths(limit: Fraction | float) -> list[int]:
        low = limit * Fraction(17, 512) if isinstance(limit, Fraction) else limit
        return [8 if f >= limit else 4 if f >= low else 2 for f in norms]

    def fits(limit: Fraction) -> bool:
        return sum(w * len(p) for w, p in zip(widths(limit), supers, strict=True)) <= budget

    found = widths(min(filter(fits, limits), default=math.inf))
    rest = [[f32(v - m) for v in p] for p, m in zip(supers, means, strict=True)]
    decoded: list[list[float]] = [[] for _ in supers]
    for width in (2, 4, 8):
        own = [s for s, w in enumerate(found) if w == width]
        values = [v for s in own for v in rest[s]]
        sent, received = grouped(values, width, seed, worker, workers)
        data += sent
        for s, piece in zip(own, pieces(received, 256), strict=True):
            decoded[s] = [f32(v + means[s]) for v in piece]
    return data, [v for piece in decoded for v in piece]


def grouped(x: list[float], bits: int, seed: int, worker: int, workers: int) -> Encoded:
    """DynamiQ's super-groups of 256 and groups of 16, all of one width."""
    top, epsilon = 2 ** (bits - 1) - 1, {2: 0.23, 4: 0.18, 8: 0.1}[bits]
    powers = [1.0]
    for _ in range(top):
        powers.append(powers[-1] * (1 + 2 * epsilon**2))
    places = [(p - 1) / (powers[-1] - 1) for p in powers]
    order = key(seed, bits, "order")
    part, scaling = key(seed, bits, worker, "part"), key(seed, bits, worker, "scale")
    largest, scales, codes, decoded = b"", [], [], []
    for s, piece in enumerate(pieces(x, 256)):
        number = struct.unpack("<I", floats([max(map(abs, piece))]))[0]
        half = -(-number // 2**16)
        most = struct.unpack("<f", struct.pack("<I", half << 16))[0]
        half = half if most >= 2.0**-118 else 0
        largest += struct.pack("<H", half)
        for g, group in enumerate(pieces(piece, 16), 16 * s):
            peak = max(map(abs, group))
            place = peak * 255 / most if half else 0.0
            scales.append(math.floor(place) + (uniform(scaling, g) < place - math.floor(place)))
            for i, v in enumerate(group, 16 * g):
                share = abs(v) / peak if half and peak else 0.0
                low = max(r for r in range(top) if places[r] <= share)
                words = [word(order, i * workers + w) for w in range(workers)]
                before = sorted(range(workers), key=lambda w: (words[w], w)).index(worker % workers)
                u = (before + float(uniform(part, i))) / workers
                step = (share - places[low]) / (places[low + 1] - places[low])
                r = low + (u < step or step >= 1)
                codes.append(r + (top + 1) * (r > 0 and v < 0))
                decoded.append(f32((-1 if v < 0 else 1) * places[r] * (scales[-1] * most / 255)))
    return largest + bytes(scales) + fields(codes, bits), decoded


def natural(x: list[float], seed: int, worker: int, bits: int = 9) -> Encoded:
    levels = 2 ** (bits - 1) - 1
    top, most = -149, max(map(abs, x), default=0.0)
    while 2.0**top < most:
        top += 1
    stream, codes, decoded = key(seed, worker, "rounding"), [], []
    powers = [Fraction(0), *(Fraction(2) ** (top - levels + k) for k in range(1, levels + 1))]
    for i, v in enumerate(x):
        magnitude = Fraction(abs(v))
        low = max(k for k in range(levels + 1) if powers[k] <= magnitude)
        up = low < levels and (magnitude - powers[low]) / (powers[low + 1] - powers[low])
        level = low + (uniform(stream, i) < up)
        codes.append(level + (levels + 1) * (level > 0 and v < 0))
        decoded.append(f32(sign(v) * float(powers[level])) if level else 0.0)
    return struct.pack("<h", top) + fields(codes, bits), decoded


def powersgd(
    rounds: list[list[float]], seeds: list[int], rank: int = 4, columns: int | None = None
) -> list[Encoded]:
    n, out = len(rounds[0]), []
    width = min(columns or math.ceil(math.sqrt(n)), n)
    height = -(-n // width)
    r = min(rank, height, width)
    q = [[0.0] * width for _ in range(r)]
    for x, seed in zip(rounds, seeds, strict=True):
        matrix = pieces(x + [0.0] * (height * width - n), width)
        stream = key(seed, "columns")
        for c in range(r):
            if not any(q[c]):
                lots = [uniform(stream, c * width + j) for j in range(width)]
                q[c] = [f32(float(u - Fraction(1, 2))) for u in lots]
        p = orthonormal([[dot(row, q[c]) for row in matrix] for c in range(r)])
        p = [[f32(v) for v in column] for column in p]
        turned = list(zip(*matrix, strict=True))
        q = [[f32(dot(column, p[c])) for column in turned] for c in range(r)]
        decoded = [
            f32(sum(p[c][i] * q[c][j] for c in range(r)))
            for i in range(height)
            for j in range(width)
        ]
        out.append((b"".join(map(floats, p + q)), decoded[:n]))
    return out


def dot(a: list[float], b: list[float]) -> float:
    return math.fsum(v * w for v, w in zip(a, b, strict=True))


def orthonormal(columns: list[list[float]]) -> list[list[float]]:
    out: list[list[float]] = []
    for column in columns:
        before = norm(column)
        for other in out:
            part = dot(column, other)
            column = [v - part * w for v, w in zip(column, other, strict=True)]
        after = norm(column)
        out.append([v / after if after > 1e-8 * before else 0.0 for v in column])
    return out


def switchml_scales(x: list[float], size: int = PARTITION) -> list[float]:
    scales = []
    for piece in pieces(x, size):
        most = max(map(abs, piece))
        scales.append(2.0 ** (math.frexp(most)[1] - 1) if most else 0.0)
    return scales


def switchml(
    x: list[float], scales: list[float], workers: int = 64, size: int = PARTITION
) -> Encoded:
    limit = (2**31 - 1) // workers
    data, decoded = b"", []
    for piece, scale in zip(pieces(x, size), scales, strict=True):
        step = Fraction(2 * scale) / limit
        places = [round(Fraction(v) / step) if step else 0 for v in piece]
        codes = [max(-limit, min(limit, place)) for place in places]
        data += floats([scale]) + struct.pack(f"<{len(piece)}i", *codes)
        decoded += [f32(code * (2 * scale / limit)) for code in codes]
    return data, decoded
