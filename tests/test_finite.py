"""all_finite() says what NumPy says of each value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gradplane._finite import all_finite


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
