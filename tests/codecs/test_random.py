"""The generator: values belong to a key and a position."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thc_reference import key as slow_key
from thc_reference import word as slow_word

from gradplane.codecs import CodecError, _random, key


@given(st.integers(0, 2**64 - 1), st.integers(0, 10**6), st.integers(0, 200), st.integers(0, 200))
def test_a_value_does_not_depend_on_how_the_stream_is_cut(
    stream: int, first: int, cut: int, more: int
) -> None:
    for draw in (_random.words, _random.uniforms, _random.signs):
        whole = draw(stream, first, cut + more)
        parts = [draw(stream, first, cut), draw(stream, first + cut, more)]
        assert np.array_equal(whole, np.concatenate(parts))


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**40))
def test_words_are_splitmix64(stream: int, first: int) -> None:
    assert _random.words(stream, first, 3).tolist() == [
        slow_word(stream, first + i) for i in range(3)
    ]


def test_every_part_of_a_key_matters() -> None:
    assert key(1, 2, 3, "rounding") == slow_key(1, 2, 3, "rounding")
    numbers = [(1, 23), (12, 3), (1, 2, 3), (-1,), (2**70,), (2**70 + 1,)]
    parts = [*numbers, ("1", 23), (1, "23"), ("1/23",)]
    assert len({key(*p) for p in parts}) == len(parts)
    assert key(np.int64(5), "x") == key(5, "x")


def test_a_key_is_made_of_integers_and_words() -> None:
    with pytest.raises(CodecError) as caught:
        key(1, 2.5)
    assert str(caught.value) == "a key is made of integers and words, got 2.5"


def test_uniforms_and_signs_are_balanced() -> None:
    u, s = _random.uniforms(key("balance"), 0, 10**6), _random.signs(key("signs"), 0, 10**6)
    assert u.min() >= 0 and u.max() < 1
    assert abs(u.mean() - 1 / 2) < 4 * (1 / 12 / 1e6) ** 0.5
    assert abs(np.mean(u * u) - 1 / 3) < 4 * (4 / 45 / 1e6) ** 0.5
    assert abs(s.mean()) < 4e-3 and set(np.unique(s)) == {-1, 1}
