"""all_finite() says what NumPy says of each value, and does not read what is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gradplane._finite import all_finite, is_known_finite, known_finite


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@given(data=st.data())
def test_one_value_that_is_not_finite_is_found(kind, data):
    x = data.draw(arrays.arrays(kind, st.integers(0, 70)))
    for vector in (x, x[::2]):
        assert all_finite(vector) == np.isfinite(vector).all()
    finite = np.nan_to_num(x)
    assert all_finite(finite)
    if x.size:
        finite[data.draw(st.integers(0, x.size - 1))] = data.draw(
            st.sampled_from([np.inf, -np.inf, np.nan, -np.nan])
        )
        assert not all_finite(finite)


def test_a_known_array_and_its_parts_are_not_read():
    known = known_finite(np.zeros(8, np.float32))
    other = known.copy()
    known[3] = other[3] = np.nan  # against the rule, to see whether anybody looks
    assert all_finite(known) and all_finite(known[2:5]) and all_finite(known[2:][::2])
    assert not is_known_finite(other) and not all_finite(other[2:5])


def test_memory_that_is_used_again_is_not_known():
    for _ in range(100):
        assert not all_finite(np.full(1000, np.nan, np.float32))
        assert all_finite(known_finite(np.zeros(1000, np.float32)))
