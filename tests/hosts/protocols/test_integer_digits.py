"""Integers as digits of a codec's table: their looked-up codes add up to the sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane import codecs
from gradplane.hosts.protocols.integer_digits import IntegerDigits, digits


@pytest.mark.parametrize(
    ("name", "arguments", "base", "lanes"),
    [
        ("thc", {}, 13, 9),
        ("thc", {"granularity": 20}, 11, 10),
        ("uniform_thc", {}, 16, 8),
        ("terngrad", {}, 3, 21),
        ("signsgd", {}, 2, 32),
    ],
)
def test_a_table_gives_a_base(name, arguments, base, lanes):
    table = tuple(codecs.get(name, **arguments).table)
    found = digits(table)
    numbers = [table[code] for code in found.codes]
    assert numbers == list(range(found.first, numbers[-1] + 1, found.step))
    assert (found.base, IntegerDigits(table, 4).lanes(1)) == (base, lanes)


@given(
    st.sampled_from(["thc", "uniform_thc", "terngrad", "signsgd"]),
    st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=4, max_size=4), min_size=1),
    st.sampled_from([np.int32, np.int64]),
)
def test_sums_of_numbers_are_sums_of_integers(name, rows, kind):
    table = np.array(codecs.get(name).table)
    carrier = IntegerDigits(tuple(table.tolist()), np.dtype(kind).itemsize)
    xs = np.array(rows).astype(kind)
    sums = sum(table[carrier.codes(x, None, 0)[0]] for x in xs)
    found = carrier.decode_sum(sums, 4, len(xs), None)
    assert np.array_equal(found, xs.sum(axis=0, dtype=kind)) and found.dtype == kind
