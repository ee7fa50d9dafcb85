"""Plain NumPy implementations of codecs, to compare the compiled kernels with.

Each has the input and output of its codec; the benchmark checks that the bytes are equal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradplane.codecs import key
from gradplane.codecs._random import words


@dataclass(frozen=True)
class Form:
    """encode(x, params) -> bytes; decode(data, n, params) -> float32[n], None for a Python loop."""

    encode: Callable[[np.ndarray, dict[str, Any]], bytes]
    decode: Callable[[bytes, int, dict[str, Any]], np.ndarray] | None


def first_bytes(x: np.ndarray, keep: int) -> bytes:
    return x.astype(">f4").view(np.uint8).reshape(-1, 4)[:, :keep].tobytes()


def from_first_bytes(data: bytes, n: int, keep: int) -> np.ndarray:
    out = np.zeros((n, 4), np.uint8)
    out[:, :keep] = np.frombuffer(data, np.uint8).reshape(n, keep)
    return out.view(">f4").ravel().astype(np.float32)


def inceptionn(x: np.ndarray, params: dict[str, Any]) -> bytes:
    bound = params.get("bound", 10)
    size, middle = np.abs(x), 2.0 ** -(bound // 2)
    tags = (size >= 2.0**-bound).astype(np.uint8) + (size >= middle) + (size >= 1)
    sign = np.signbit(x).astype(np.uint32) << 31
    byte = sign | ((size * 2**7 / middle).astype(np.uint32) << 24)
    half = sign | ((size * 2**15).astype(np.uint32) << 16)
    vectors = np.choose(tags, [0, byte, half, x.view(np.uint32)])
    rows = -(-x.size // 8)
    tags = np.pad(tags, (0, 8 * rows - x.size)).reshape(rows, 8)
    vectors = np.pad(vectors, (0, 8 * rows - x.size)).astype(">u4")
    heads = (tags.astype(np.uint32) << np.arange(0, 16, 2)).sum(1).astype(">u2")
    table = np.concatenate(
        [heads.view(np.uint8).reshape(rows, 2)] + [vectors.view(np.uint8).reshape(rows, 32)], axis=1
    )
    used = np.arange(4) < np.array([0, 1, 2, 4])[tags][:, :, None]
    used = np.concatenate([np.ones((rows, 2), bool), used.reshape(rows, 32)], axis=1)
    return table[used].tobytes()


def to_groups(digits: np.ndarray) -> np.ndarray:
    parts = np.pad(digits, (0, -digits.size % 5)).reshape(5, -1)
    return parts[0] * 81 + parts[1] * 27 + parts[2] * 9 + parts[3] * 3 + parts[4]


def to_digits(groups: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([groups // w % 3 for w in (81, 27, 9, 3, 1)])[:n]


def to_runs(groups: np.ndarray) -> np.ndarray:
    zero = np.concatenate([[False], groups == 121, [False]])
    edges = np.flatnonzero(zero[1:] != zero[:-1]).reshape(-1, 2)
    lengths = edges[:, 1] - edges[:, 0]
    place = np.flatnonzero(groups == 121)
    start, stop = np.repeat(edges[:, 0], lengths), np.repeat(edges[:, 1], lengths)
    first = (place - start) % 14 == 0
    run = np.minimum(14, stop - place)[first]
    out, kept = groups.copy(), groups != 121
    out[place[first]] = np.where(run > 1, 241 + run, 121)
    kept[place[first]] = True
    return out[kept]


def from_runs(coded: np.ndarray) -> np.ndarray:
    run = coded >= 243
    return np.repeat(np.where(run, 121, coded), np.where(run, coded.astype(int) - 241, 1))


def threelc(x: np.ndarray, params: dict[str, Any]) -> bytes:
    m = np.float32(np.abs(x).max() * np.float32(params.get("s", 1.0)))
    groups = to_groups((np.rint(x / m) + 1).astype(np.uint8))
    return m.tobytes() + (to_runs(groups) if params.get("zero_runs", True) else groups).tobytes()


def from_threelc(data: bytes, n: int, params: dict[str, Any]) -> np.ndarray:
    groups = np.frombuffer(data, np.uint8, offset=4)
    groups = from_runs(groups) if params.get("zero_runs", True) else groups
    return (to_digits(groups, n).astype(np.float32) - 1) * np.frombuffer(data, "<f4", 1)


def int8(x: np.ndarray, params: dict[str, Any]) -> bytes:
    m = np.abs(x).max()
    return m.tobytes() + np.rint(x.astype(np.float64) * 127 / m).astype(np.int8).tobytes()


def from_int8(data: bytes, n: int, params: dict[str, Any]) -> np.ndarray:
    m, codes = np.frombuffer(data, "<f4", 1), np.frombuffer(data, np.int8, offset=4)
    return (codes * m.astype(np.float64) / 127).astype(np.float32)


def ternary(x: np.ndarray, params: dict[str, Any]) -> bytes:
    m = np.abs(x).max()
    u = (words(key(0, 0, "rounding"), 0, x.size) >> np.uint64(40)) * 2.0**-24
    taken = u * float(m) < np.abs(x)
    return m.tobytes() + to_groups((1 + taken * np.sign(x)).astype(np.uint8)).tobytes()


def from_ternary(data: bytes, n: int, params: dict[str, Any]) -> np.ndarray:
    return from_threelc(data, n, {"zero_runs": False})


def onebit(x: np.ndarray, params: dict[str, Any]) -> bytes:
    below = x < 0
    means = [x[~below].mean(dtype=np.float64), x[below].mean(dtype=np.float64)]
    return np.array(means, "<f4").tobytes() + np.packbits(below, bitorder="little").tobytes()


def from_onebit(data: bytes, n: int, params: dict[str, Any]) -> np.ndarray:
    bits = np.unpackbits(np.frombuffer(data, np.uint8, offset=8), bitorder="little")[:n]
    return np.frombuffer(data, "<f4", 2)[bits]


def sparse(x: np.ndarray, params: dict[str, Any]) -> bytes:
    picks = (words(key(0, 0, "sample"), 0, 2**14) >> np.uint64(32)) * np.uint64(x.size)
    sample = np.sort(np.abs(x[picks >> np.uint64(32)]))
    large = np.abs(x) >= sample[-int(np.ceil(0.05 * sample.size))]
    return np.packbits(large, bitorder="little").tobytes() + x[large].tobytes()


def from_sparse(data: bytes, n: int, params: dict[str, Any]) -> np.ndarray:
    size = -(-n // 8)
    bits = np.unpackbits(np.frombuffer(data, np.uint8, size), bitorder="little")[:n]
    out = np.zeros(n, np.float32)
    out[bits == 1] = np.frombuffer(data, "<f4", offset=size)
    return out


FORMS = {
    "adt": Form(
        lambda x, p: first_bytes(x, p["keep"]), lambda d, n, p: from_first_bytes(d, n, p["keep"])
    ),
    "truncation": Form(
        lambda x, p: first_bytes(x, 4 - p["drop"] // 8),
        lambda d, n, p: from_first_bytes(d, n, 4 - p["drop"] // 8),
    ),
    "inceptionn": Form(inceptionn, None),  # where a burst starts depends on all before it
    "threelc": Form(threelc, from_threelc),
    "int8": Form(int8, from_int8),
    "ternary": Form(ternary, from_ternary),
    "onebit": Form(onebit, from_onebit),
    "sparse": Form(sparse, from_sparse),
}
