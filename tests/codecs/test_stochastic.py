"""Codecs with random rounding: their mean is the vector, their variance within its bound."""

import numpy as np
import pytest
import scipy.linalg

from gradplane import codecs
from gradplane.codecs import Codec

Array = np.ndarray
MAX = float(np.finfo(np.float32).max)


def terngrad(codec: Codec, x: Array) -> Array:
    s = np.abs(x).max(initial=0)
    return np.abs(x) * (s - np.abs(x))


def qsgd(codec: Codec, x: Array) -> Array:
    heads = np.arange(0, x.size, codec.bucket)
    norms = np.sqrt(np.add.reduceat(x * x, heads)).astype(np.float32).astype(np.float64)
    step = np.repeat(norms, codec.bucket)[: x.size] / codec.levels
    part = np.abs(x) / np.where(step > 0, step, 1) % 1
    return part * (1 - part) * step * step


def natural(codec: Codec, x: Array) -> Array:
    _, exponent = np.frexp(np.abs(x).max(initial=0) * (1 - 1e-12))
    lowest = np.ldexp(1.0, int(exponent) - codec.levels + 1)
    power = np.ldexp(1.0, np.frexp(x)[1] - 1)
    power = np.where(np.abs(x) < lowest, 0, power)
    gap = np.where(power == 0, lowest, power)
    return (np.abs(x) - power) * (power + gap - np.abs(x))


def sdp4bit(codec: Codec, x: Array) -> Array:
    """Each transformed value's variance reaches all 32 in equal parts."""
    padded = np.zeros(-(-x.size // 32) * 32)
    padded[: x.size] = x
    transformed = (padded.reshape(-1, 32) @ scipy.linalg.hadamard(32)).reshape(-1)
    heads = np.arange(0, transformed.size, codec.block)
    most = np.maximum.reduceat(np.abs(transformed), heads).astype(np.float32)
    levels = np.float32(2 ** (codec.bits - 1) - 1)
    step = np.repeat((most / levels).astype(np.float64), codec.block)[: transformed.size]
    part = np.abs(transformed) / np.where(step > 0, step, 1) % 1
    variance = (part * (1 - part) * step**2).reshape(-1, 32).sum(axis=1) / 32**2
    return np.repeat(variance, 32)[: x.size]


def randomk(codec: Codec, x: Array) -> Array:
    k = max(1, round(codec.fraction * x.size))
    return x * x * (x.size / k - 1)


UNBIASED = [
    (codecs.get("terngrad", clip=None), terngrad),
    (codecs.get("qsgd"), qsgd),
    (codecs.get("qsgd", levels=1, bucket=64), qsgd),
    (codecs.get("qsgd", levels=1000, bucket=3), qsgd),
    (codecs.get("natural"), natural),
    (codecs.get("natural", bits=8), natural),
    (codecs.get("natural", bits=3), natural),
    (codecs.get("randomk", unbiased=True), randomk),
    (codecs.get("sdp4bit"), sdp4bit),
    (codecs.get("sdp4bit", bits=2, block=64), sdp4bit),
]
NAMES = [str(codec) for codec, _ in UNBIASED]
each = pytest.mark.parametrize("codec, variance", UNBIASED, ids=NAMES)


def vector(kind: str, n: int) -> Array:
    chance = np.random.default_rng([n, len(kind)])
    normal = chance.standard_normal(n)
    made = {
        "normal": normal,
        "lognormal": chance.lognormal(0, 1, n),
        "equal": np.full(n, -0.3),
        "sparse": normal * (chance.random(n) < 0.1),
        "denormal": normal * 1e-41,
        "tiny": normal * 1e-30,
        "huge": normal * 1e34,
    }[kind]
    return made.astype(np.float32)


@each
def test_the_mean_of_many_draws_is_the_vector(codec: Codec, variance: object) -> None:
    draws, x = 4000, vector("normal", 48)
    x[5], x[6] = 0, 4
    decoded = [
        codec.decode(codec.encode(x, seed=s, worker=s % 7)[0], 48).astype(np.float64)
        for s in range(draws)
    ]
    wide = x.astype(np.float64)
    standard_error = np.sqrt(variance(codec, wide) / draws)
    slack = 2.0**-22 * np.abs(wide).max()
    assert (np.abs(np.mean(decoded, axis=0) - wide) <= 4 * standard_error + slack).all()


@each
@pytest.mark.parametrize("n", [1, 2, 3, 1000, 100_000])
@pytest.mark.parametrize(
    "kind", ["normal", "lognormal", "equal", "sparse", "denormal", "tiny", "huge"]
)
def test_one_draw_of_any_vector_is_balanced(
    codec: Codec, variance: object, n: int, kind: str
) -> None:
    """Errors with random signs add up to what their variance allows."""
    x = vector(kind, n)
    wide = x.astype(np.float64)
    y = codec.decode(codec.encode(x, seed=n, worker=1)[0], n).astype(np.float64)
    signs = np.random.default_rng(n).choice([-1.0, 1.0], n)
    deviation = np.sqrt(variance(codec, wide).sum())
    if codec.name == "randomk" and kind in ("equal", "denormal"):
        deviation += np.abs(wide).sum() / n**0.5  # without replacement; and coarse float32 steps
    slack = n * (2.0**-22 * np.abs(wide).max() + 1.5e-45)
    assert abs(np.dot(signs, y - wide)) <= 4.5 * deviation + slack


@pytest.mark.parametrize("levels, bucket", [(1, 64), (7, 512), (100, 100), (32767, 10**6)])
def test_qsgd_keeps_the_papers_bound(levels: int, bucket: int) -> None:
    codec, x = codecs.get("qsgd", levels=levels, bucket=bucket), vector("normal", 100_000)
    error = codec.decode(codec.encode(x)[0], x.size) - x
    d = min(bucket, x.size)
    bound = min(d / levels**2, d**0.5 / levels)
    assert np.dot(error, error) <= 1.05 * bound * np.dot(x, x)


def test_natural_errs_by_less_than_the_value_and_an_eighth_of_its_square() -> None:
    codec, x = codecs.get("natural"), vector("normal", 100_000)
    error = np.abs(codec.decode(codec.encode(x)[0], x.size) - x).astype(np.float64)
    assert (error < np.abs(x)).all()
    assert np.dot(error, error) <= np.dot(x, x) / 8
    powers = np.ldexp(np.float32(1), np.arange(-149, 106)) * np.float32(-1)
    assert np.array_equal(codec.decode(codec.encode(powers)[0], powers.size), powers)


def test_terngrad_clips_at_a_multiple_of_the_root_mean_square() -> None:
    x = vector("lognormal", 10_000)
    for clip in (0.5, 2.5):
        codec = codecs.get("terngrad", clip=clip)
        limit = clip * np.sqrt(np.mean(x.astype(np.float64) ** 2))
        assert np.isclose(codec.local(x)[0], limit)
        y = codec.decode(codec.encode(x)[0], x.size)
        assert set(np.unique(y)) == {0, codec.local(x)[0]}
        assert (y[x >= limit] > 0).all()
    assert codecs.get("terngrad", clip=1000).local(x)[0] == x.max()


def test_workers_draw_apart_and_random_positions_are_shared() -> None:
    x = vector("normal", 1000)
    for name in ("terngrad", "qsgd", "natural"):
        codec = codecs.get(name)
        assert codec.encode(x, worker=0)[0] != codec.encode(x, worker=1)[0]
    codec = codecs.get("randomk")
    one, other = codec.encode(x, seed=3)[0], codec.encode(x, seed=4)[0]
    assert codec.encode(x, seed=3, worker=1)[0] == one
    places = [np.flatnonzero(codec.decode(data, 1000)) for data in (one, other)]
    assert not np.array_equal(*places) and places[0].size == 100


def test_random_positions_are_all_equally_likely() -> None:
    codec, x = codecs.get("randomk", k=3), np.ones(10, np.float32)
    hits = sum(codec.decode(codec.encode(x, seed=s)[0], 10) for s in range(4000))
    assert np.abs(hits - 1200).max() < 4 * (4000 * 0.3 * 0.7) ** 0.5
