"""THC and uniform THC: rounding, sums in the network, missing lanes, partitions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thc_reference import Grid

from gradplane import codecs
from gradplane.codecs import Codec, CodecError, _hadamard, _quantise, _random, _table, key
from gradplane.codecs._grid import GridCodec

CODECS = [
    codecs.get("thc"),
    codecs.get("thc", bits=2, granularity=6, p=1 / 8),
    codecs.get("thc", bits=8, granularity=255, p=1 / 1024),
    codecs.get("uniform_thc", bits=3),
    codecs.get("uniform_thc", rotate=False),
]
each = pytest.mark.parametrize("codec", CODECS, ids=repr)


def normal(n: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (scale * np.random.default_rng([n, seed]).standard_normal(n)).astype(np.float32)


def table_values(codec: Codec, *args: Any, **kwargs: Any) -> np.ndarray:
    return np.array(codec.table)[codec.codes(*args, **kwargs)[0]]


@each
@settings(max_examples=30)
@given(n=st.integers(0, 300), workers=st.integers(1, 9), seed=st.integers(0, 2**64))
def test_the_decoded_sum_is_the_mean_of_the_decoded(
    codec: Codec, n: int, workers: int, seed: int
) -> None:
    xs = [normal(n, w, scale=1 + w) for w in range(workers)]
    shared = codec.combine([codec.local(x) for x in xs])
    sent = [codec.encode(x, shared, seed, worker=w)[0] for w, x in enumerate(xs)]
    sums = sum(table_values(codec, x, shared, seed, worker=w) for w, x in enumerate(xs))
    got = codec.decode_sum(sums, n, workers, shared, seed)
    mean = np.mean([codec.decode(data, n).astype(np.float64) for data in sent], axis=0)
    np.testing.assert_allclose(got, mean, rtol=0, atol=1e-6 * float(shared.max(initial=1)))


VECTORS = {
    "normal": lambda n: np.random.default_rng(n).standard_normal(n),
    "denormals": lambda n: 1e-41 * np.random.default_rng(n).standard_normal(n),
    "zeros": np.zeros,
    "all equal": lambda n: np.full(n, 0.7),
    "huge": lambda n: 1e34 * np.random.default_rng(n).standard_normal(n),
    "tiny": lambda n: 1e-30 * np.random.default_rng(n).standard_normal(n),
}


@pytest.mark.parametrize("kind", VECTORS)
@pytest.mark.parametrize("n", [1, 1000, 100_000])
def test_the_sum_decodes_to_the_decodeds_mean_at_every_size(n: int, kind: str) -> None:
    codec, x = codecs.get("thc"), VECTORS[kind](n).astype(np.float32)
    vectors = [x, (x / 2).astype(np.float32), -x]
    shared = codec.combine([codec.local(v) for v in vectors])
    sums, mean = np.zeros(codec.lanes(n), np.int64), np.zeros(n)
    for worker, vector in enumerate(vectors):
        codes, _ = codec.codes(vector, shared, 5, worker=worker)
        sums += np.array(codec.table)[codes]
        data, _ = codec.encode(vector, shared, 5, worker=worker)
        mean += codec.decode(data, n).astype(np.float64) / 3
    tolerance = 1e-5 * float(np.abs(x).max()) + 1e-44  # float32's rounding in two transforms
    assert np.abs(codec.decode_sum(sums, n, 3, shared, 5) - mean).max() <= tolerance


@each
def test_a_code_is_what_encode_sends(codec: Codec) -> None:
    x = normal(100)
    data, _ = codec.encode(x, seed=3, worker=1)
    values = table_values(codec, x, seed=3, worker=1)
    assert values.shape == (codec.lanes(100),)
    alone = codec.decode_sum(values, 100, 1, codec.local(x), 3)
    assert np.array_equal(alone, codec.decode(data, 100))


@each
def test_rounding_is_unbiased_within_the_clamped_range(codec: Codec) -> None:
    workers, x = 4000, normal(48)
    x[5] = 40  # clamped, where the range is the norm's
    shared = codec.local(x)
    grid = Grid(codec.bits, list(codec.table), getattr(codec, "p", None) if codec.rotate else None)
    spin = key(9, "rotation", 0) % 2**32
    expected = grid.positions(x.tolist(), codec.lanes(48), float(shared[0]), spin)
    values = [table_values(codec, x, shared, seed=9, worker=w) for w in range(workers)]
    table = np.array(codec.table)
    for lane, position in enumerate(expected):
        low = table[table <= position].max()
        high = table[table >= position].min()
        tolerance = 4 * ((position - low) * (high - position) / workers) ** 0.5
        got = np.mean([v[lane] for v in values])
        assert abs(got - position) <= tolerance + 1e-9, (lane, position, got)


def test_workers_share_the_rotation_and_round_apart() -> None:
    codec, x = codecs.get("thc"), normal(1000)
    data = [codec.encode(x, seed=4, worker=w)[0] for w in (0, 1)]
    assert data[0][:8] == data[1][:8]
    differing = np.mean(codec.codes(x, seed=4)[0] != codec.codes(x, seed=4, worker=1)[0])
    assert 0.2 < differing < 0.5
    assert codec.encode(x, seed=5)[0][4:8] != data[0][4:8]


def test_the_mean_over_workers_gets_better_with_their_number() -> None:
    codec, x = codecs.get("uniform_thc", p=1 / 1024), normal(4096)
    errors = []
    for workers in (1, 16):
        sums = sum(table_values(codec, x, worker=w) for w in range(workers))
        error = codec.decode_sum(sums, 4096, workers, codec.local(x)) - x
        errors.append(float(np.dot(error, error)))
    assert 12 < errors[0] / errors[1] < 20


def test_each_bit_takes_almost_an_order_of_magnitude_off_the_error() -> None:
    """THC, figure 15: ten copies of a lognormal vector, p = 1/1024."""
    x = np.random.default_rng(0).lognormal(0, 1, 2**14).astype(np.float32)
    nmse = []
    for bits in (2, 3, 4):
        codec = codecs.get("thc", bits=bits, granularity=31, p=1 / 1024)
        sums = sum(table_values(codec, x, worker=w) for w in range(10))
        error = codec.decode_sum(sums, x.size, 10, codec.local(x)) - x
        nmse.append(float(np.dot(error, error) / np.dot(x, x)))
    assert 3 < nmse[0] / nmse[1] < 10 and 3 < nmse[1] / nmse[2] < 10
    assert nmse[2] < 0.01


def test_missing_lanes_are_zero_before_the_inverse_rotation() -> None:
    codec, x = codecs.get("thc"), normal(200)
    shared, counts = codec.local(x), np.full(256, 3)
    sums = sum(table_values(codec, x, shared, 8, worker=w) for w in range(3))
    counts[64:128], sums[64:128] = 0, 0
    counts[128:192] -= 1
    sums[128:192] = sum(table_values(codec, x, shared, 8, worker=w) for w in range(2))[128:192]
    spin = key(key(8, "rotation", 0) & 0xFFFFFFFF, "signs")
    y = codec.decode_sum(sums, 256, counts, shared, 8)  # the padding's values, too
    lanes = _hadamard.rotate(y, 256, spin, 1 / 16)
    top = _table.threshold(1 / 32) / 16 * shared[0]
    expected = top * (2 * sums / np.maximum(counts, 1) / 30 - 1) * (counts > 0)
    np.testing.assert_allclose(lanes, expected, atol=1e-5)
    assert np.array_equal(y[:200], codec.decode_sum(sums, 200, counts, shared, 8))


@each
def test_nothing_arrived_gives_zeros(codec: Codec) -> None:
    none = np.zeros(codec.lanes(50), np.uint8)
    shared = codec.local(normal(50))
    assert not codec.decode_sum(none, 50, 0, shared).any()
    assert not codec.decode_sum(none, 50, none, shared).any()


@each
def test_one_count_a_lane_is_as_one_count(codec: Codec) -> None:
    sums = table_values(codec, normal(50))
    per_lane = np.ones(codec.lanes(50), np.uint8)
    shared = codec.local(normal(50))
    assert np.array_equal(
        codec.decode_sum(sums, 50, per_lane, shared), codec.decode_sum(sums, 50, 1, shared)
    )


@each
@pytest.mark.parametrize("n", [15, 16, 17, 31, 32, 33, 50])
def test_partitions_stand_alone(codec: Codec, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GridCodec, "_max_partition", 16)
    x = normal(n)
    x[16:] *= 100
    parts = codec.partitions(n)
    assert [(p.start, p.stop) for p in parts] == [(i, min(i + 16, n)) for i in range(0, n, 16)]
    assert all(p.lanes == 16 for p in parts[:-1]) and codec.lanes(n) == sum(p.lanes for p in parts)
    data, _ = codec.encode(x, seed=6)
    first, _ = codec.encode(x[:16], seed=6)
    assert data[: len(first)] == first and len(data) == codec.max_size(n)
    assert np.array_equal(codec.decode(data, n)[:16], codec.decode(first, min(n, 16)))
    assert np.array_equal(codec.local(x)[:1], codec.local(x[:16]))


def test_partitions_are_of_a_million_values_and_only_the_last_is_padded() -> None:
    """In version 1; vectors of at most a block are cut so in both."""
    codec = codecs.get("thc", version=1)
    assert [p.lanes for p in codec.partitions(2**20)] == [2**20]
    assert [p.lanes for p in codec.partitions(2**21 + 5)] == [2**20, 2**20, 8]
    for either in (codec, codecs.get("thc")):
        assert [either.lanes(n) for n in (0, 1, 2, 3, 1000)] == [0, 1, 2, 4, 1024]
    assert codecs.get("uniform_thc", rotate=False).lanes(1000) == 1000


BLOCK, PACKET = 1024, 1024  # lanes


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_version_2_is_cut_into_powers_of_two_with_little_padding(bits: int) -> None:
    codec = codecs.get("thc", bits=bits, granularity=255 if bits == 8 else 30)
    sizes = [*range(1025, 9000, 7), *range(65_536, 140_000, 101), 2**20 - 1, 2**20 + 1, 25_557_032]
    for n in sizes:
        parts = codec.partitions(n)
        assert (parts[0].start, parts[-1].stop) == (0, n)
        assert all(a.stop == b.start for a, b in zip(parts, parts[1:], strict=False))
        assert all(p.lanes.bit_count() == 1 and p.lanes >= BLOCK for p in parts)
        assert [p.lane for p in parts] == [
            sum(p.lanes for p in parts[:k]) for k in range(len(parts))
        ]
        assert all(codec.lanes(p.stop - p.start) == p.lanes for p in parts)  # as a switch has them
        assert codec.lanes(n) <= -(-n // PACKET) * PACKET  # below: no packet beyond the need
        if n >= 65_536:
            assert codec.max_size(n) - n * bits / 8 <= 0.03 * codec.max_size(n)
    assert [p.lanes for p in codec.partitions(67_286)] == [65_536, 2048]


@pytest.mark.parametrize("n", [1500, 67_286, 70_001])
def test_version_2_has_the_error_of_a_vector_without_padding(n: int) -> None:
    """Also where the vector's parts differ in size a hundredfold: each has a norm of its own."""

    def error(x: np.ndarray) -> float:
        codec = codecs.get("thc")
        wrong = codec.decode(codec.encode(x)[0], x.size) - x
        return float(wrong @ wrong) / float(x @ x)

    x = normal(n)
    assert error(x) < 1.05 * error(normal(2**16)) < 0.022  # the paper's figures: 0.02 at b = 4
    x[: n // 3] *= 0.01
    assert error(x) < 1.05 * error(normal(2**16))


def test_payload_is_an_eighth_and_sums_need_the_bits_that_hold_them() -> None:
    codec = codecs.get("thc")
    assert codec.max_size(2**20) == 2**19 + 8
    assert [codec.sum_bits(w) for w in (1, 8, 9, 2184, 2185)] == [5, 8, 9, 16, 17]
    with pytest.raises(CodecError) as caught:
        codec.sum_bits(0)
    assert str(caught.value) == "workers must be at least 1, got 0"


def test_a_worker_louder_than_the_shared_norm_is_clamped() -> None:
    codec = codecs.get("thc")
    for scale in (10, 1e20, 1e38):
        x = normal(64, scale=scale / 8)
        codes, _ = codec.codes(x, np.array([1e-3], np.float32))
        assert set(codes) <= {0, 15}
        y = codec.decode(codec.encode(x, np.array([1e-3], np.float32))[0], 64)
        assert np.dot(y, x) > 0 and np.linalg.norm(y) < 1e-2


def test_a_shared_statistic_of_zero_gives_zeros() -> None:
    for codec in CODECS:
        data, _ = codec.encode(normal(64), np.zeros(1, np.float32))
        assert not codec.decode(data, 64).any()


def test_a_norm_beyond_float32_is_refused() -> None:
    with pytest.raises(CodecError) as caught:
        codecs.get("thc").local(np.full(100, 3e38, np.float32))
    assert str(caught.value) == (
        "the norm of values 0 to 99 is 3e+39, beyond float32: scale the vector down"
    )


def test_estimates_stay_finite_at_the_end_of_the_range() -> None:
    codec, x = codecs.get("thc", p=1e-12), np.zeros(64, np.float32)
    x[3] = 3.4e38
    assert np.isfinite(codec.decode(codec.encode(x)[0], 64)).all()


ONE = np.ones(1, np.float32)
SUMS = np.zeros(4, np.uint8)


@pytest.mark.parametrize(
    "args, text",
    [
        ((SUMS, 4, 1, None), "thc's shared statistic must be float32 of shape (1,), got NoneType"),
        (
            (SUMS, 4, 1, np.ones(2)),
            "thc's shared statistic must be float32 of shape (1,), got float64 of shape (2,)",
        ),
        ((SUMS, 4, 1, -ONE), "statistic -1.0 of partition 0 is not a magnitude"),
        ((SUMS, 4, 1, ONE * np.nan), "statistic nan of partition 0 is not a magnitude"),
        ((SUMS, 5, 1, ONE), "sums must be integer of shape (8,), got uint8 of shape (4,)"),
        (
            (SUMS * 1.0, 4, 1, ONE),
            "sums must be integer of shape (4,), got float64 of shape (4,)",
        ),
        ((SUMS, 4, 1.5, ONE), "count must be integer of shape (), got float64 of shape ()"),
        (
            (SUMS, 4, SUMS[:3], ONE),
            "count must be integer of shape (4,), got uint8 of shape (3,)",
        ),
        (
            (SUMS + np.uint8(61), 4, 2, ONE),
            "sum 61 at lane 0 is not from 0 to granularity x count = 30 x 2 = 60",
        ),
        (
            (np.array([0, 0, 1, 0]), 4, np.array([1, 1, 0, 1]), ONE),
            "sum 1 at lane 2 is not from 0 to granularity x count = 30 x 0 = 0",
        ),
        (
            (np.array([0, -1, 0, 0]), 4, 1, ONE),
            "sum -1 at lane 1 is not from 0 to granularity x count = 30 x 1 = 30",
        ),
    ],
)
def test_wrong_sums_are_refused(args: Any, text: str) -> None:
    with pytest.raises(CodecError) as caught:
        codecs.get("thc").decode_sum(*args)
    assert str(caught.value) == text


def test_damaged_bytes_are_named() -> None:
    codec = codecs.get("thc", bits=3, granularity=12)
    data, _ = codec.encode(normal(4))
    for changed, text in (
        (b"\0\0\xc0\x7f" + data[4:], "statistic nan of partition 0 is not a magnitude"),
        (data[:-1] + b"\x19", "code 9 at lane 3 does not fit 3 bits"),
        (data[:6], "truncated: rotation seed of partition 0, 4 bytes from byte 4 on, 2 left"),
        (data[:9], "truncated: codes of partition 0, 2 bytes from byte 8 on, 1 left"),
    ):
        with pytest.raises(CodecError) as caught:
            codec.decode(changed, 4)
        assert str(caught.value) == text


@pytest.mark.parametrize("bits, size", [(1, 8192), (2, 16384), (3, 32768), (4, 32768), (5, 65536)])
def test_a_code_takes_its_own_bits_or_the_next_width_of_the_switch(bits: int, size: int) -> None:
    x, granularity = normal(65536), 2**bits + 6
    codec = codecs.get("thc", bits=bits, granularity=granularity)
    data, _ = codec.encode(x)
    assert len(data) == codec.max_size(x.size) == 8 + size
    before = codecs.get("thc", bits=bits, granularity=granularity, version=2)
    old, _ = before.encode(x)
    assert len(old) == 8 + max(size, 32768)
    assert np.array_equal(codec.decode(data, x.size), before.decode(old, x.size))
    shared = codec.local(x)
    sums = [np.zeros(codec.lanes(x.size), np.uint16) for _ in range(2)]
    codec.add_codes(data, x.size, shared, sums[0])
    before.add_codes(old, x.size, shared, sums[1])
    assert np.array_equal(*sums)


def test_no_statistic_to_combine() -> None:
    with pytest.raises(CodecError) as caught:
        codecs.get("thc").combine([])
    assert str(caught.value) == "thc: no worker's statistic to combine"


@pytest.mark.parametrize("bits, granularity", [(1, 1), (4, 30), (8, 1023)])
@pytest.mark.parametrize("n", [1, 8, 1003])
def test_lanes_are_rounded_as_one_by_one(bits: int, granularity: int, n: int) -> None:
    codec = codecs.get("thc", bits=bits, granularity=granularity)
    y = normal(n, scale=granularity / 4)
    value = np.clip(y + np.float32(granularity / 2), 0, granularity)
    cell = np.minimum(value.astype(int), granularity - 1)
    below = np.searchsorted(codec.table, cell, side="right") - 1
    low, gap = np.take(codec.table, below), np.diff(codec.table)[below]
    chance = (_random.words(77, 5, n) >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)
    up = chance * gap.astype(np.float32) < value - low.astype(np.float32)
    cells = _quantise.cells(codec.table)
    assert np.array_equal(_quantise.quantise(y, cells, 77, 5), below + up)
