"""The codecs that 3LC is compared with: 8-bit integers, 3-value, 1-bit and sparse ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_reference import Int8, OneBit, Sparse, Ternary

from gradplane import codecs
from gradplane.codecs import CodecError, ErrorFeedback

NAMES = ("int8", "ternary", "onebit", "sparse")
finite = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=80)


def message(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(CodecError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def normal(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([n, seed]).standard_normal(n).astype(np.float32)


def decoded(name: str, x: np.ndarray, params: dict[str, Any] | None = None, **chance: int) -> Any:
    codec = codecs.get(name, **(params or {}))
    return codec.decode(codec.encode(x, **chance)[0], x.size)


@settings(max_examples=200)
@given(finite)
def test_any_values_are_encoded_as_the_reference_does(values: list[float]) -> None:
    x = np.array(values, np.float32)
    references = {
        "int8": Int8(),
        "ternary": Ternary(3, 2),
        "onebit": OneBit(),
        "sparse": Sparse(3, 2),
    }
    for name, reference in references.items():
        data, _ = codecs.get(name).encode(x, seed=3, worker=2)
        assert data == reference.encode(x.tolist()), name
        assert codecs.get(name).decode(data, x.size).tolist() == reference.decode(data, x.size)


@pytest.mark.parametrize("n", [1, 1000, 100_000])
@pytest.mark.parametrize("scale", [1e-38, 1.0, 1e37])
def test_int8_error_is_at_most_half_a_step(n: int, scale: float) -> None:
    x = (scale * normal(n)).astype(np.float32)
    error = decoded("int8", x).astype(np.float64) - x
    m = float(np.abs(x).max())
    assert np.abs(error).max() <= m / 254 + 1e-7 * m + 1e-45
    assert np.abs(decoded("int8", x)).max() == np.float32(m)


def test_ternary_is_unbiased_to_four_standard_errors() -> None:
    x, rounds = np.append(normal(60), [0, 1e-30, -1e-45]).astype(np.float32), 4000
    drawn = [decoded("ternary", x, seed=s, worker=1) for s in range(rounds)]
    mean = np.mean(drawn, axis=0, dtype=np.float64)
    m = float(np.abs(x).max())
    tolerance = 4 * np.sqrt(np.abs(x) * (m - np.abs(x)) / rounds)
    assert (np.abs(mean - x) <= tolerance + m * 2**-24 * 4 + 1e-6).all()


def test_ternary_workers_draw_apart() -> None:
    x = np.full(1000, 0.5, np.float32)
    x[0] = 1
    one, two = decoded("ternary", x, worker=0), decoded("ternary", x, worker=1)
    assert 0.4 < np.mean(one != two) < 0.6
    assert np.array_equal(one, decoded("ternary", x, worker=0))
    assert not np.array_equal(one, decoded("ternary", x, seed=1))
    assert len(codecs.get("ternary").encode(x)[0]) == 4 + 200


@pytest.mark.parametrize("n", [1, 7, 8, 9, 100_000])
def test_onebit_levels_are_the_means_of_both_sides(n: int) -> None:
    x = normal(n)
    x[::50] = 0
    y = decoded("onebit", x)
    for side in (x < 0, x >= 0):
        if side.any():
            assert len(np.unique(y[side])) == 1
            assert y[side][0] == np.float32(x[side].mean(dtype=np.float64))
    assert np.linalg.norm(x - y) <= np.linalg.norm(x)


def test_onebit_of_one_side_only() -> None:
    for sign in (1, -1):
        x = sign * np.arange(1, 12, dtype=np.float32)
        assert np.unique(decoded("onebit", x)).tolist() == [sign * 6.0]


def test_sparse_sends_the_largest_exactly() -> None:
    x = normal(2000)
    y = decoded("sparse", x)
    expected = np.argsort(-np.abs(x))[:100]
    assert set(np.flatnonzero(y)) == set(expected)
    assert np.array_equal(y[expected], x[expected])


def test_sparse_threshold_from_a_sample_sends_about_the_fraction() -> None:
    x = normal(100_000)
    sent = [
        np.count_nonzero(decoded("sparse", x, {"sample": 4096}, worker=w)) / x.size
        for w in range(4)
    ]
    assert all(0.04 < part < 0.06 for part in sent) and len(set(sent)) == 4


def test_sparse_sends_ties_but_no_zeros() -> None:
    codec = codecs.get("sparse")
    equal = np.full(100, -2, np.float32)
    assert np.array_equal(decoded("sparse", equal), equal)
    assert len(codec.encode(equal)[0]) == codec.max_size(100)
    few = np.zeros(1000, np.float32)
    few[5] = 1
    assert len(codec.encode(few)[0]) == 125 + 4


@pytest.mark.parametrize("name", NAMES[2:])
def test_error_feedback_sends_all_in_the_end(name: str) -> None:
    codec, x = ErrorFeedback(codecs.get(name)), normal(500)
    state, received = codec.start(500), np.zeros(500)
    for step in range(300):
        data, state = codec.encode(x, seed=step, state=state)
        received += codec.decode(data, 500)
    assert np.linalg.norm(received / 300 - x) < 0.06 * np.linalg.norm(x)


@pytest.mark.parametrize(
    "name, n, data, text",
    [
        ("int8", 2, b"\0\0\x80\x3f\x01\x80", "corrupted: code -128 at index 1"),
        ("int8", 2, b"\0\0\x80\xff\x01\x00", "corrupted: m = -inf is not a magnitude"),
        ("int8", 2, b"\0\0", "truncated: m, 4 bytes from byte 0 on, 2 left"),
        ("int8", 2, bytes(5), "truncated: 2 codes, 2 bytes from byte 4 on, 1 left"),
        ("ternary", 5, bytes(4) + b"\xf3", "corrupted: byte 243 at group 0 is above 242"),
        (
            "ternary",
            4,
            bytes(4) + b"\x7a",
            "corrupted: digits beyond the 4 of the vector are not 0",
        ),
        (
            "onebit",
            3,
            b"\0\0\x80\xbf" + bytes(5),
            "corrupted: mean of the values not below 0 = -1.0 is not a magnitude",
        ),
        (
            "onebit",
            3,
            bytes(4) + b"\0\0\x80\x3f\0",
            "corrupted: mean of the values below 0 = 1.0",
        ),
        ("onebit", 3, bytes(8) + b"\x08", "corrupted: bits beyond the 3 of the bitmap are not 0"),
        (
            "onebit",
            9,
            bytes(9),
            "truncated: bitmap of 9 values, 2 bytes from byte 8 on, 1 left",
        ),
        (
            "sparse",
            3,
            b"\x05" + bytes(7),
            "truncated: 2 values, 8 bytes from byte 1 on, 7 left",
        ),
        ("sparse", 3, b"\x04\0\0\x80\x7f", "infinity at index 2"),
    ],
)
def test_damaged_bytes(name: str, n: int, data: bytes, text: str) -> None:
    assert message(codecs.get(name).decode, data, n) == text


@settings(max_examples=300)
@given(st.sampled_from(NAMES), st.integers(1, 100), st.data())
def test_no_damage_does_more_than_change_values_or_raise(
    name: str, n: int, data: st.DataObject
) -> None:
    codec = codecs.get(name)
    sent = bytearray(codec.encode(normal(n))[0])
    for _ in range(data.draw(st.integers(1, 4))):
        sent[data.draw(st.integers(0, len(sent) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        y = codec.decode(bytes(sent), n)
    except CodecError:
        return
    assert np.isfinite(y).all() and y.shape == (n,)


@pytest.mark.parametrize(
    "params, text",
    [
        ({"fraction": 0}, "fraction must be a number above 0 and at most 1, got 0"),
        ({"fraction": 1.5}, "fraction must be a number above 0 and at most 1, got 1.5"),
        ({"sample": 0}, "sample must be at least 1, got 0"),
    ],
)
def test_wrong_parameters_of_sparse(params: dict[str, Any], text: str) -> None:
    assert message(codecs.get, "sparse", **params) == text
