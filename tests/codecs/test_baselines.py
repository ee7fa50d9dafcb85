"""The guarantees of the baseline codecs, over sizes and kinds of vectors; rounds; damaged bytes."""

from typing import Any

import baseline_reference as reference
import ml_dtypes
import numpy as np
import pytest
import scipy.linalg

from gradplane import codecs
from gradplane.codecs import Codec, CodecError

Array = np.ndarray
NAMES = [
    "bfloat16",
    "dgc",
    "dynamiq",
    "efsignsgd",
    "mxfp",
    "natural",
    "powersgd",
    "qsgd",
    "randomk",
    "sdp4bit",
    "signsgd",
    "switchml",
    "terngrad",
    "topk",
    "zeropp",
]
SIZES = [1, 2, 3, 1000, 100_000]
KINDS = ["normal", "zeros", "equal", "denormal", "tiny", "huge", "mixed"]


def vector(kind: str, n: int, seed: int = 0) -> Array:
    normal = np.random.default_rng([n, seed]).standard_normal(n)
    made = {
        "normal": normal,
        "zeros": -0.0 * normal,
        "equal": np.full(n, 0.1),
        "denormal": normal * 1e-42,
        "tiny": normal * 1e-30,
        "huge": normal * 1e34,
        "mixed": normal * 10.0 ** np.random.default_rng(n).integers(-44, 30, n),
    }[kind]
    return made.astype(np.float32)


def coded(codec: Codec, x: Array, **chance: int) -> Array:
    """Return x as a receiver decodes it, in float64."""
    data, _ = codec.encode(x, state=codec.start(x.size), **chance)
    assert len(data) <= codec.max_size(x.size)
    return codec.decode(data, x.size).astype(np.float64)


def squared(x: Array) -> float:
    return float(np.dot(x.astype(np.float64), x.astype(np.float64)))


every_vector = pytest.mark.parametrize("x", [vector(k, n) for k in KINDS for n in SIZES])


@every_vector
def test_bfloat16_is_the_nearest(x: Array) -> None:
    error = np.abs(coded(codecs.get("bfloat16"), x) - x)
    assert (error <= np.maximum(np.abs(x) * 2.0**-8, 2.0**-134)).all()


ELEMENTS = {
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}


@every_vector
@pytest.mark.parametrize("element", ELEMENTS)
def test_mxfp_rounds_as_the_formats_do(x: Array, element: str) -> None:
    """Beside Google's ml_dtypes: scaled in float64, and cut to the largest number."""
    kind, info = ELEMENTS[element], ml_dtypes.finfo(ELEMENTS[element])
    blocks = np.zeros((-(-x.size // 32), 32))
    blocks.reshape(-1)[: x.size] = x
    most = np.abs(blocks).max(axis=1, keepdims=True)
    shared = np.where(most > 0, np.frexp(most)[1] - np.frexp(float(info.max))[1], -127)
    scale = 2.0 ** np.maximum(shared, -127)
    elements = np.clip(blocks / scale, float(info.min), float(info.max)).astype(kind)
    expected = (elements.astype(np.float64) * scale).reshape(-1)[: x.size]
    assert np.array_equal(coded(codecs.get("mxfp", element=element), x), expected)


@every_vector
@pytest.mark.parametrize("bits, block", [(4, 256), (8, 100), (5, 1)])
def test_zeropps_error_is_half_a_step_but_for_the_largest(x: Array, bits: int, block: int) -> None:
    y = coded(codecs.get("zeropp", bits=bits, block=block), x)
    starts = np.arange(0, x.size, block)
    most = np.maximum.reduceat(np.abs(x), starts).astype(np.float64)
    step = np.repeat(most / 2 ** (bits - 1), block)[: x.size]
    bound = np.where(x > (2 ** (bits - 1) - 1) * step, 1, 0.5) * step
    rounding = 2.0**-24 * np.abs(x) + 2.0**-149 * 2 ** (bits - 1)  # of values, and of tiny steps
    assert (np.abs(y - x) <= bound + rounding).all()


@every_vector
@pytest.mark.parametrize("bits, block", [(4, 128), (8, 512), (2, 32)])
def test_sdp4bits_error_is_a_step_of_the_transform(x: Array, bits: int, block: int) -> None:
    y = coded(codecs.get("sdp4bit", bits=bits, block=block), x, seed=3)
    padded = np.zeros((-(-x.size // 32), 32))
    padded.reshape(-1)[: x.size] = x
    transformed = (padded @ scipy.linalg.hadamard(32)).reshape(-1)
    starts = np.arange(0, transformed.size, block)
    most = np.maximum.reduceat(np.abs(transformed), starts)
    step = np.repeat(most / (2 ** (bits - 1) - 1), block)[: transformed.size].reshape(-1, 32)
    bound = (step**2).sum(axis=1) / 32 * (1 + 1e-5) + 1e-82
    error = np.zeros_like(padded)
    error.reshape(-1)[: x.size] = y - x
    assert ((error**2).sum(axis=1) <= bound).all()


@every_vector
@pytest.mark.parametrize("fraction", [0.001, 0.1, 1.0])
def test_topk_sends_the_largest_as_they_are(x: Array, fraction: float) -> None:
    y = coded(codecs.get("topk", fraction=fraction), x)
    k = max(1, round(fraction * x.size))
    sent = y != 0
    assert sent.sum() <= k and np.array_equal(y[sent], x[sent])
    assert np.abs(y[sent]).min(initial=np.inf) >= np.abs(x[~sent]).max(initial=0)
    assert squared(y - x) <= (1 - k / x.size) * squared(x) * (1 + 1e-12)


@every_vector
def test_random_k_sends_some_as_they_are(x: Array) -> None:
    y = coded(codecs.get("randomk", k=10), x)
    assert np.array_equal(y[y != 0], x[y != 0])
    assert np.count_nonzero(y) <= min(10, x.size)


@every_vector
@pytest.mark.parametrize("name", ["signsgd", "efsignsgd"])
def test_signs_err_by_what_their_scale_leaves(x: Array, name: str) -> None:
    y = coded(codecs.get(name), x)
    scale = np.abs(x.astype(np.float64)).mean()
    assert np.allclose(y, np.where(x < 0, -scale, scale), rtol=1e-6, atol=1e-45)
    left = squared(x) - scale**2 * x.size
    assert squared(y - x) <= left + 1e-6 * squared(x) + 1e-89 * x.size


@every_vector
def test_power_sgd_projects(x: Array) -> None:
    y = coded(codecs.get("powersgd"), x, seed=4)
    assert squared(y - x) <= squared(x) * (1 + 1e-5) + 1e-89 * x.size


@every_vector
@pytest.mark.parametrize("workers", [1, 64, 65536])
def test_switchml_rounds_to_its_grid(x: Array, workers: int) -> None:
    codec = codecs.get("switchml", workers=workers)
    step = 2 * float(codec.local(x)[0]) / codec.limit
    error = np.abs(coded(codec, x) - x)
    assert (error <= step / 2 + np.abs(x) * 2.0**-24 + 1e-45).all()
    assert float(codec.local(x)[0]) <= np.abs(x).max() <= 2 * float(codec.local(x)[0])


# Rounds


def rounds(n: int, count: int) -> list[Array]:
    return [vector("normal", n, seed) for seed in range(count)]


def assert_rounds_match(codec: Codec, xs: list[Array], seeds: list[int], expected: Any) -> None:
    state = codec.start(xs[0].size)
    for x, seed, (data, decoded) in zip(xs, seeds, expected, strict=True):
        got, state = codec.encode(x, seed=seed, state=state)
        assert got.hex() == data.hex()
        assert codec.decode(got, x.size).tolist() == decoded


@pytest.mark.parametrize(
    "params",
    [
        {"fraction": 0.1},
        {"fraction": 0.1, "momentum": 0, "clip": 3.0},
        {"fraction": 0.02, "warmup": 2, "clip": 5},
    ],
)
def test_dgc_over_rounds(params: dict[str, Any]) -> None:
    xs = rounds(60, 8)
    expected = reference.dgc([x.tolist() for x in xs], **params)
    assert_rounds_match(codecs.get("dgc", **params), xs, [0] * 8, expected)


def test_efsignsgd_over_rounds() -> None:
    xs = rounds(60, 8)
    expected = reference.efsignsgd([x.tolist() for x in xs])
    assert_rounds_match(codecs.get("efsignsgd"), xs, [0] * 8, expected)


@pytest.mark.parametrize("params", [{"rank": 2}, {"rank": 3, "columns": 4}, {"rank": 1}])
def test_powersgd_over_rounds(params: dict[str, Any]) -> None:
    xs, seeds = [np.zeros(59, np.float32), *rounds(59, 4)], [3, 4, 5, 6, 7]
    expected = reference.powersgd([x.tolist() for x in xs], seeds, **params)
    assert_rounds_match(codecs.get("powersgd", **params), xs, seeds, expected)


def test_powersgd_finds_a_matrix_of_its_rank_and_tracks_it() -> None:
    chance = np.random.default_rng(0)
    matrix = chance.standard_normal((40, 3)) @ chance.standard_normal((3, 50))
    x = matrix.ravel().astype(np.float32)
    for rank, most in ((3, 1e-10), (8, 1e-10), (2, 1.0)):
        y = coded(codecs.get("powersgd", rank=rank, columns=50), x)
        assert squared(y - x) <= most * squared(x)
    codec, noisy = codecs.get("powersgd", rank=3, columns=50), x + vector("normal", 2000)
    state, errors = codec.start(2000), []
    for seed in range(5):
        data, state = codec.encode(noisy, seed=seed, state=state)
        errors.append(squared(codec.decode(data, 2000) - noisy))
    best = (np.linalg.svd(noisy.reshape(40, 50), compute_uv=False)[3:] ** 2).sum()
    assert errors[0] > errors[4] and errors[4] < 1.01 * best


def test_dgc_warms_up_by_powers_of_a_quarter() -> None:
    codec = codecs.get("dgc", fraction=0.01, warmup=2)
    densities = [codec.density(r) for r in range(8)]
    assert densities == [0.25, 0.25, 0.0625, 0.0625, 0.015625, 0.015625, 0.01, 0.01]
    assert codecs.get("dgc", fraction=0.01).density(0) == 0.01
    assert codec.density(10**9) == 0.01


def test_dgc_loses_nothing_without_momentum() -> None:
    codec, given, received = codecs.get("dgc", fraction=0.05, momentum=0.0), 0.0, 0.0
    state = codec.start(500)
    for t, x in enumerate(rounds(500, 30)):
        given = given + x.astype(np.float64)
        if t % 7 == 3:
            state = codec.skip(x, state)
            continue
        data, state = codec.encode(x, state=state)
        received = received + codec.decode(data, 500)
    np.testing.assert_allclose(received + state.unsent, given, atol=1e-4)
    assert state.rounds == 30


def test_feedback_around_a_codec_with_memory_feeds_back_once() -> None:
    for name in ("dgc", "efsignsgd"):
        codec = codecs.get(name)
        wrapped = codecs.ErrorFeedback(codec)
        state, sent = wrapped.start(300), np.zeros(300)
        for x in rounds(300, 60):
            data, state = wrapped.encode(x, state=state)
            sent += codec.decode(data, 300)
        given = np.sum(rounds(300, 60), axis=0)
        np.testing.assert_allclose(sent + state.error, given, atol=1e-3)
        assert np.abs(state.error).max() < 60
        assert codec.memoryless.memoryless == codec.memoryless != codec
    bare = codecs.get("dgc", fraction=0.1, warmup=2).memoryless
    _, state = bare.encode(x, state=bare.skip(x, bare.start(300)))
    data, _ = bare.encode(x, state=state)
    assert len(data) == 4 + 8 * 30
    assert np.array_equal(bare.decode(data, 300), coded(codecs.get("topk"), x).astype(np.float32))


def test_encoding_leaves_the_old_state_alone() -> None:
    for name in ("dgc", "efsignsgd", "powersgd"):
        codec, x = codecs.get(name), vector("normal", 100)
        _, state = codec.encode(x, state=codec.start(100))
        first = codec.encode(x, state=state)[0]
        assert codec.encode(x, state=state)[0] == first
        assert codec.skip(x, state) is not None and codec.encode(x, state=state)[0] == first


# Sums in the network

SUMMED = [
    codecs.get("terngrad"),
    codecs.get("terngrad", clip=None),
    codecs.get("signsgd"),
    codecs.get("switchml"),
    codecs.get("switchml", workers=1),
]
each_summed = pytest.mark.parametrize("codec", SUMMED, ids=repr)


def table_values(codec: Codec, *args: Any, **kwargs: Any) -> Array:
    return np.array(codec.table)[codec.codes(*args, **kwargs)[0]]


@each_summed
@pytest.mark.parametrize("n", [0, 1, 5, 300])
@pytest.mark.parametrize("workers", [1, 4, 9])
def test_the_decoded_sum_is_the_mean_of_the_decoded(codec: Codec, n: int, workers: int) -> None:
    xs = [vector("normal", n, w) * np.float32(1 + w) for w in range(workers)]
    shared = codec.combine([codec.local(x) for x in xs])
    sent = [codec.encode(x, shared, 3, worker=w)[0] for w, x in enumerate(xs)]
    sums = sum(table_values(codec, x, shared, 3, worker=w) for w, x in enumerate(xs))
    assert int(sums.max(initial=0)).bit_length() <= codec.sum_bits(workers)
    got = codec.decode_sum(sums, n, workers, shared, 3)
    mean = np.mean([codec.decode(data, n).astype(np.float64) for data in sent], axis=0)
    np.testing.assert_allclose(got, mean, rtol=0, atol=3e-7 * float(shared.max(initial=1)))


@each_summed
def test_missing_lanes_are_zero_and_others_count_by_themselves(codec: Codec) -> None:
    x = vector("normal", 64)
    shared = codec.local(x)
    values = [table_values(codec, x, shared, 3, worker=w) for w in range(3)]
    lanes = codec.lanes(64)
    counts, sums = np.full(lanes, 3), sum(values)
    counts[: lanes // 4], sums[: lanes // 4] = 0, 0
    counts[lanes // 2 :] = 2
    sums[lanes // 2 :] = (values[0] + values[1])[lanes // 2 :]
    y = codec.decode_sum(sums, 64, counts, shared, 3)
    assert not y[:16].any()
    assert np.array_equal(y[16:32], codec.decode_sum(sum(values), 64, 3, shared, 3)[16:32])
    two = codec.decode_sum(values[0] + values[1], 64, 2, shared, 3)
    assert np.array_equal(y[32:], two[32:])


@each_summed
def test_feedback_by_codes_is_feedback_by_bytes(codec: Codec) -> None:
    wrapped, x = codecs.ErrorFeedback(codec), vector("normal", 100)
    state, shared = wrapped.start(100), 2 * codec.local(x)
    codes, by_codes = wrapped.codes(x, shared, 3, state, worker=2)
    _, by_bytes = wrapped.encode(x, shared, 3, state, worker=2)
    assert codes.dtype == np.uint8 and codes.max() < len(codec.table) <= 16
    assert np.array_equal(by_codes.error, by_bytes.error)


def test_majority_vote() -> None:
    x = np.array([[1, 1, -1, -2, 0], [3, -1, -1, 2, 0], [1, 1, -9, -1, 0]], np.float32)
    shared = np.array([2], np.float32)
    for vote, expected in ((True, [2, 2, -2, -2, 2]), (False, [2, 2 / 3, -2, -2 / 3, 2])):
        codec = codecs.get("signsgd", vote=vote)
        sums = sum(codec.codes(row)[0].astype(int) for row in x)
        got = codec.decode_sum(sums, 5, 3, shared)
        np.testing.assert_allclose(got, np.array(expected, np.float32))
    codec = codecs.get("signsgd", vote=True)
    sums, counts = np.array([1, 0, 2, 0]), np.array([2, 0, 3, 1], np.uint8)
    assert codec.decode_sum(sums, 4, counts, shared).tolist() == [0, 0, 2, -2]
    with pytest.raises(CodecError, match="^sum 3 at lane 0 is not from 0 to"):
        codec.decode_sum(sums + 2, 4, counts, shared)


def test_switchml_adds_exact_integers_in_digits() -> None:
    codec, workers = codecs.get("switchml", workers=4), 4
    xs = [vector("normal", 200, w) for w in range(workers)]
    shared = codec.combine([codec.local(x) for x in xs])
    sent = [codec.encode(x, shared)[0] for x in xs]
    integers = np.sum([np.frombuffer(data, "<i4", 200, 4).astype(np.int64) for data in sent], 0)
    assert np.abs(integers).max() < 2**31
    digits = sum(table_values(codec, x, shared) for x in xs).reshape(200, 8)
    assert np.array_equal(digits @ 16 ** np.arange(7, -1, -1) - workers * 2**31, integers)
    assert (codec.lanes(200), codec.sum_bits(17), codec.sum_bits(18)) == (1600, 8, 9)


def test_switchml_wants_all_digits_of_a_value_from_equally_many() -> None:
    codec, x = codecs.get("switchml"), vector("normal", 3)
    counts = np.ones(24, int)
    counts[11] = 0
    sums = table_values(codec, x) * counts
    y = codec.decode_sum(sums, 3, counts, codec.local(x))
    assert y[1] == 0 and np.allclose(y[[0, 2]], x[[0, 2]])


@pytest.mark.parametrize("name", ["terngrad", "signsgd", "switchml"])
def test_a_worker_louder_than_the_shared_scale_is_clamped(name: str) -> None:
    codec, x = codecs.get(name), vector("normal", 50)
    for scale in (1e-3, 1e-30, 0.0):
        shared = np.array([scale], np.float32)
        y = codec.decode(codec.encode(x, shared)[0], 50)
        assert np.abs(y).max() <= 2 * scale and (x * y >= 0).all()


# Parameters and damage


@pytest.mark.parametrize(
    "name, params, text",
    [
        ("terngrad", {"clip": 0}, "clip must be a number above 0, or None, got 0"),
        ("terngrad", {"clip": "2"}, "clip must be a number above 0, or None, got '2'"),
        ("terngrad", {"clip": float("inf")}, "clip must be a number above 0, or None, got inf"),
        ("signsgd", {"vote": 1}, "vote must be True or False, got 1"),
        ("topk", {"fraction": 0}, "fraction must be a number above 0 and at most 1, got 0"),
        ("topk", {"fraction": 1.1}, "fraction must be a number above 0 and at most 1, got 1.1"),
        ("topk", {"k": 0}, "k must be at least 1, got 0"),
        ("randomk", {"k": 1.5}, "k must be an integer at least 1, got 1.5"),
        ("randomk", {"unbiased": None}, "unbiased must be True or False, got None"),
        ("dgc", {"fraction": True}, "fraction must be a number above 0 and at most 1, got True"),
        ("dgc", {"momentum": 1}, "momentum must be a number from 0 to below 1, got 1"),
        ("dgc", {"clip": -1.0}, "clip must be a number above 0, or None, got -1.0"),
        ("dgc", {"warmup": -1}, "warmup must be at least 0, got -1"),
        ("dgc", {"accumulate": 1}, "accumulate must be True or False, got 1"),
        ("efsignsgd", {"accumulate": 0}, "accumulate must be True or False, got 0"),
        ("qsgd", {"levels": 0}, "levels must be from 1 to 32767, got 0"),
        ("qsgd", {"bucket": 0}, "bucket must be from 1 to 2147483648, got 0"),
        ("natural", {"bits": 10}, "bits must be from 2 to 9, got 10"),
        (
            "mxfp",
            {"element": "e5m3"},
            'element must be one of "e5m2", "e4m3", "e3m2", "e2m3", "e2m1", got \'e5m3\'',
        ),
        ("zeropp", {"bits": 3}, "bits must be from 4 to 8, got 3"),
        ("zeropp", {"block": 0}, "block must be from 1 to 2147483648, got 0"),
        ("sdp4bit", {"bits": 1}, "bits must be from 2 to 8, got 1"),
        ("sdp4bit", {"block": 48}, "block must be a multiple of 32, got 48"),
        ("dynamiq", {"bits": 2}, "bits must be a number from 2.6875 to 8.6875, got 2"),
        ("dynamiq", {"workers": 0}, "workers must be from 1 to 65536, got 0"),
        ("powersgd", {"rank": 0}, "rank must be from 1 to 64, got 0"),
        ("powersgd", {"columns": 0}, "columns must be at least 1, got 0"),
        ("switchml", {"workers": 65537}, "workers must be from 1 to 65536, got 65537"),
    ],
)
def test_wrong_parameters(name: str, params: dict[str, Any], text: str) -> None:
    with pytest.raises(CodecError) as caught:
        codecs.get(name, **params)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "name, params, data, n, text",
    [
        ("bfloat16", {}, "803f807f", 2, "infinity at index 1"),
        ("terngrad", {}, "0000803f" + "f1", 4, "code 3 at lane 2 is beyond 2"),
        ("terngrad", {}, "0000c07f" + "00", 4, "statistic nan of partition 0 is not a magnitude"),
        ("signsgd", {}, "0000803f" + "ff", 3, "the 5 bits after code 2 must be 0, got 0x1f"),
        ("efsignsgd", {}, "000080bf" + "00", 3, "statistic -1.0 of partition 0 is not a magnitude"),
        ("topk", {"k": 1}, "05000000" + "0000803f", 5, "index 5 at place 0 is not below 5"),
        (
            "topk",
            {"k": 2},
            "0300000003000000" + "0000803f0000803f",
            5,
            "index 3 at place 1 follows 3",
        ),
        ("topk", {"k": 1}, "00000000" + "0000c07f", 5, "NaN at index 0"),
        ("dgc", {}, "02000000", 5, "2 values, of 5 at most 1 are sent"),
        ("randomk", {"k": 1}, "00" * 8 + "000080ff", 5, "-infinity at index 0"),
        ("qsgd", {}, "0000c07f" + "02", 1, "norm nan of bucket 0 is not a magnitude"),
        ("qsgd", {"levels": 5}, "0000803f" + "c2", 2, "code 12 at index 1 is none of 5 levels"),
        ("qsgd", {}, "0000803f" + "01", 1, "code 1 at index 0 is none of 7 levels"),
        ("natural", {"bits": 8}, "8000" + "00", 1, "exponent 128 is not from -149 to 127"),
        ("natural", {"bits": 8}, "7f00" + "0080", 2, "code 128 at index 1 is a negative zero"),
        ("mxfp", {}, "ff" + "00", 1, "the scale of block 0 is NaN"),
        ("mxfp", {}, "7f" + "7f", 1, "NaN at index 0"),
        ("mxfp", {"element": "e5m2"}, "7f" + "7c", 1, "NaN at index 0"),
        ("mxfp", {}, "fe" + "7e", 1, "infinity at index 0"),
        ("mxfp", {"element": "e3m2"}, "7f" + "40", 1, "the 2 bits after code 0 must be 0, got 0x1"),
        ("zeropp", {}, "000080ff" + "08", 1, "step -inf of block 0 is not a magnitude"),
        ("zeropp", {}, "ffff7f7f" + "00", 1, "-infinity at index 0"),
        ("sdp4bit", {}, "0000c07f" + "88" * 16, 1, "step nan of block 0 is not a magnitude"),
        (
            "dynamiq",
            {},
            "000080bf",
            1,
            "corrupted: -1.0, squared norm of super-group 0, is negative",
        ),
        (
            *("dynamiq", {}, "00000000" + "807f" + "ff" + "01", 1),
            "inf, the largest of super-group 0, is not a magnitude",
        ),
        ("powersgd", {}, "0000803f" + "0000807f", 1, "infinity at index 1"),
        (
            "switchml",
            {"workers": 2},
            "0000803f" + "00000000" + "00000080",
            2,
            "integer -2147483648 at index 1 is beyond (2^31 - 1) / 2 workers = 1073741823",
        ),
    ],
)
def test_damaged_bytes_are_named(
    name: str, params: dict[str, Any], data: str, n: int, text: str
) -> None:
    with pytest.raises(CodecError) as caught:
        codecs.get(name, **params).decode(bytes.fromhex(data), n)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "name, params, x, text",
    [
        ("bfloat16", {}, [0, -3.4e38], "-3.3999999521443642e+38 at index 1 is beyond bfloat16"),
        ("randomk", {"k": 1, "unbiased": True}, [1e38] * 9, "9.999999680285692e+37 times n / k"),
        ("qsgd", {}, [3e38] * 9, "the norm of bucket 0 is 9e+38, beyond float32: scale the"),
        ("natural", {}, [0, 2e38], "1.9999999360571385e+38 at index 1 is beyond 2^127: scale"),
        ("sdp4bit", {}, [0, -2e37], "-1.9999999867631625e+37 at index 1 is beyond 1e37: scale"),
        ("powersgd", {}, [3e38] * 9, "a value "),
    ],
)
def test_values_too_large_for_a_format(
    name: str, params: dict[str, Any], x: list[float], text: str
) -> None:
    codec = codecs.get(name, **params)
    with pytest.raises(CodecError) as caught:
        codec.encode(np.array(x, np.float32), state=codec.start(len(x)))
    assert str(caught.value).startswith(text) and "beyond" in str(caught.value)


@pytest.mark.parametrize("name", ["dgc", "powersgd"])
def test_state_of_another_kind_or_size(name: str) -> None:
    codec, x = codecs.get(name), vector("normal", 4)
    for state, text in (
        (None, f"{name} needs the state of start(n) or of the last call"),
        (codec.start(5), f"{name}: the state is for 5 values, the vector has 4"),
    ):
        with pytest.raises(CodecError) as caught:
            codec.encode(x, state=state)
        assert str(caught.value) == text


def test_dgc_refuses_a_sum_that_overflows() -> None:
    codec, x = codecs.get("dgc"), np.full(3, 3e38, np.float32)
    with pytest.raises(CodecError) as caught:
        codec.skip(x, codec.skip(x, codec.start(3)))
    assert str(caught.value) == "infinity at index 0"


@pytest.mark.parametrize("name", NAMES)
def test_flipped_bits_give_an_error_or_finite_values(name: str) -> None:
    codec, chance = codecs.get(name), np.random.default_rng(1)
    good, _ = codec.encode(vector("normal", 40), state=codec.start(40))
    for _ in range(400):
        data = bytearray(good)
        for _ in range(chance.integers(1, 4)):
            data[chance.integers(len(data))] ^= 1 << chance.integers(8)
        try:
            y = codec.decode(bytes(data), 40)
        except CodecError:
            continue
        assert y.dtype == np.float32 and y.shape == (40,) and np.isfinite(y).all()
