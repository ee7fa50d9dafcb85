"""INCEPTIONN and truncation: exact bits, bounds, damaged bytes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from paper_reference import Bytes, Inceptionn

from gradplane import codecs
from gradplane.codecs import CodecError

BOUNDS = (6, 8, 10)
each_bound = pytest.mark.parametrize("bound", BOUNDS)
words = st.lists(st.integers(0, 2**32 - 1), max_size=60)


def message(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(CodecError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def wide(n: int, seed: int = 0) -> np.ndarray:
    """Return magnitudes over 40 powers of two around 1, of both signs."""
    chance = np.random.default_rng([n, seed])
    signs = chance.choice((-1, 1), n)
    return (signs * 2.0 ** chance.uniform(-30, 10, n)).astype(np.float32)


@each_bound
@settings(max_examples=150)
@given(words)
@example([0x7F800001, 0xFFBFFFFF, 0x7FC00000, 0x7F800000])  # signalling and quiet NaN, infinity
def test_any_bits_are_encoded_as_the_reference_does(bound: int, words: list[int]) -> None:
    x = np.array(words, np.uint32).view(np.float32)
    codec = codecs.get("inceptionn", bound=bound, nonfinite=True)
    reference = Inceptionn(bound)
    data, _ = codec.encode(x)
    assert data == reference.encode_words(words)
    expected = np.array(reference.decode(data, x.size), np.float32)
    decoded = codec.decode(data, x.size)
    np.testing.assert_array_equal(decoded, expected)
    verbatim = np.abs(x) >= 1
    verbatim |= ~np.isfinite(x)
    assert np.array_equal(decoded.view(np.uint32)[verbatim], np.array(words, np.uint32)[verbatim])


@each_bound
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 1023, 1024, 1025, 8191, 100_000])
def test_error_stays_below_the_bound_and_is_towards_zero(bound: int, n: int) -> None:
    x, codec = wide(n), codecs.get("inceptionn", bound=bound)
    y = codec.decode(codec.encode(x)[0], n)
    assert np.abs(x.astype(np.float64) - y).max() < 2.0**-bound
    assert (np.abs(y) <= np.abs(x)).all() and (y * x >= 0).all()
    large = np.abs(x) >= 1
    assert np.array_equal(x[large], y[large])


@each_bound
def test_error_at_the_edges_of_every_exponent(bound: int) -> None:
    powers = 2.0 ** np.arange(-149, 128)
    x = np.concatenate([powers, powers * (2 - 2.0**-23), -powers]).astype(np.float32)
    codec = codecs.get("inceptionn", bound=bound)
    y = codec.decode(codec.encode(x)[0], x.size).astype(np.float64)
    small = (1 - 2.0**-15) * 2.0**-bound  # the largest value that is dropped is just below
    assert np.abs(y - x).max() < 2.0**-bound and np.abs(y - x).max() > small
    kept = np.abs(x) >= 2.0**-bound
    middle = 2.0 ** -(bound // 2)
    assert np.abs(y - x)[kept].max() < middle / 2**7
    assert np.abs(y - x)[np.abs(x) >= middle].max() < 2.0**-15


def test_bytes_of_one_burst() -> None:
    """Tags 3, 2, 1, 0 twice: 2 + 4 + 2 + 1 bytes, then 4 + 2 + 1, most significant first."""
    x = np.array([1.5, 0.5, 2.0**-6, 2.0**-11, -1.5, -0.25, -(2.0**-10), -0.0], np.float32)
    data, _ = codecs.get("inceptionn").encode(x)
    assert data.hex() == "1b1b" + "3fc00000" + "4000" + "40" + "bfc00000" + "a000" + "84"


def test_nan_and_infinity_pass_if_asked_to() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.1], np.float32)
    x.view(np.uint32)[0] |= 0x1234
    codec = codecs.get("inceptionn", nonfinite=True)
    y = codec.decode(codec.encode(x)[0], 4)
    assert np.array_equal(x.view(np.uint32)[:3], y.view(np.uint32)[:3])
    data, _ = codec.encode(x)
    assert message(codecs.get("inceptionn").decode, data, 4) == "NaN at index 0"
    assert message(codecs.get("inceptionn").encode, x) == "NaN at index 0"
    assert codec.local(x) is None
    shape = message(codec.encode, x.reshape(2, 2))
    assert shape == "expected float32 of shape (n,), got float32 of shape (2, 2)"


def test_the_ratio_is_16_for_zeros_and_below_1_for_large_values() -> None:
    codec = codecs.get("inceptionn")
    assert len(codec.encode(np.zeros(800, np.float32))[0]) == 200
    assert len(codec.encode(np.ones(800, np.float32))[0]) == codec.max_size(800) == 3400


def test_damaged_bytes() -> None:
    codec = codecs.get("inceptionn")
    data, _ = codec.encode(np.full(12, 0.5, np.float32))
    assert len(data) == 2 + 16 + 2 + 8
    cases = {
        data[:17]: "truncated: the burst from value 0 on is not whole in 17 bytes",
        data[:18]: "truncated: the burst from value 8 on is not whole in 18 bytes",
        data[:-1]: "truncated: the burst from value 8 on is not whole in 27 bytes",
        data + b"\0": "1 bytes too many: 28 expected, got 29",
        data[:18] + b"\x02" + data[19:]: "corrupted: the last burst has a tag for value 12 of 12",
    }
    for changed, text in cases.items():
        assert message(codec.decode, changed, 12) == text
    assert message(codec.decode, b"abc", 0) == "3 bytes too many: 0 expected, got 3"


@settings(max_examples=300)
@given(st.integers(1, 60), st.data())
def test_no_damage_does_more_than_change_values_or_raise(n: int, data: st.DataObject) -> None:
    codec = codecs.get("inceptionn", bound=data.draw(st.sampled_from(BOUNDS)))
    sent = bytearray(codec.encode(wide(n))[0])
    for _ in range(data.draw(st.integers(1, 4))):
        sent[data.draw(st.integers(0, len(sent) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        y = codec.decode(bytes(sent), n)
    except CodecError:
        return
    assert np.isfinite(y).all() and y.shape == (n,)


@settings(max_examples=100)
@given(words, st.integers(1, 4))
def test_truncation_and_adt_are_the_first_bytes(words: list[int], keep: int) -> None:
    x = np.array(words, np.uint32).view(np.float32)
    x = x[np.isfinite(x)]
    reference = Bytes(keep).encode(x.tolist())
    adt = codecs.get("adt", keep=keep)
    assert adt.encode(x)[0] == reference
    if keep < 4:
        truncation = codecs.get("truncation", drop=8 * (4 - keep))
        assert truncation.encode(x)[0] == reference
        assert np.array_equal(truncation.decode(reference, x.size), adt.decode(reference, x.size))


@pytest.mark.parametrize("drop, bound", [(8, 2.0**-15), (16, 2.0**-7), (24, 3 / 4)])
@pytest.mark.parametrize("n", [1, 63, 100_000])
def test_truncation_error_of_normal_values(drop: int, bound: float, n: int) -> None:
    x, codec = wide(n), codecs.get("truncation", drop=drop)
    y = codec.decode(codec.encode(x)[0], n)
    assert (np.abs(x - y) < bound * np.abs(x)).all() and (np.abs(y) <= np.abs(x)).all()


@pytest.mark.parametrize(
    "name, params, text",
    [
        ("inceptionn", {"bound": 7}, "bound must be 6, 8 or 10, got 7"),
        ("inceptionn", {"bound": 12}, "bound must be from 6 to 10, got 12"),
        ("inceptionn", {"nonfinite": 1}, "nonfinite must be True or False, got 1"),
        ("truncation", {"drop": 12}, "drop must be 8, 16 or 24, got 12"),
        ("truncation", {"drop": 32}, "drop must be from 8 to 24, got 32"),
    ],
)
def test_wrong_parameters(name: str, params: dict[str, Any], text: str) -> None:
    assert message(codecs.get, name, **params) == text


def test_truncation_says_what_is_missing() -> None:
    codec = codecs.get("truncation")
    text = "truncated: 2 bytes of each of 3 values, 6 bytes from byte 0 on, 5 left"
    assert message(codec.decode, b"12345", 3) == text
    assert message(codec.decode, b"\x7f\x80", 1) == "infinity at index 0"
