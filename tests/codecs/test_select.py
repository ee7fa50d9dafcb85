"""The k largest: exact for any keys, ties to the lowest index."""

import numpy as np
import pytest
from baseline_reference import largest as slow_largest
from hypothesis import given
from hypothesis import strategies as st

from gradplane.codecs._select import largest, largest_magnitudes

KEYS = st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 3), st.integers(2**31, 2**31 + 5))


@given(st.lists(KEYS, min_size=1, max_size=60), st.data())
def test_it_is_what_sorting_gives(keys: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(0, len(keys)))
    expected = sorted(sorted(range(len(keys)), key=lambda i: (-keys[i], i))[:k])
    got = largest(np.array(keys, np.uint32), k)
    assert got.dtype == np.uint32 and got.tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 1000, 100_000])
@pytest.mark.parametrize("kind", ["normal", "few", "equal", "denormal", "huge", "zeros"])
def test_magnitudes_of_any_vector(n: int, kind: str) -> None:
    normal = np.random.default_rng(n).standard_normal(n)
    x = {
        "normal": normal,
        "few": normal.round(),
        "equal": np.full(n, -0.5),
        "denormal": normal * 1e-43,
        "huge": normal.clip(-3, 3) * 1e38,
        "zeros": normal * 0,
    }[kind].astype(np.float32)
    for k in {1, n // 10, n // 2, n - 1, n} - {0}:
        assert largest_magnitudes(x, k).tolist() == slow_largest(x.tolist(), k)
