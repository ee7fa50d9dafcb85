"""Columns of integers in JSON: they come back, and damage is named."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane.hosts.packed_columns import pack, unpack


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50))
def test_columns_come_back(values):
    packed = json.loads(json.dumps(pack(np.array(values, np.uint64))))
    assert unpack(packed, len(values)).tolist() == values


def test_equal_values_are_one_number_and_steps_are_small():
    assert pack(np.full(1000, 7)) == 7
    assert list(pack(10**15 + np.arange(1000))) == ["<i8"]  # the first is far from 0
    (text,) = pack(10**15 + np.arange(1000)).values()
    assert len(text) < 200


@pytest.mark.parametrize(
    "packed, message",
    [
        ({"<i1": "AAAA"}, "a damaged column"),
        (pack(np.arange(3)), "a column of 3 numbers, not 4"),
        ({"<f4": ""}, "a column of type <f4"),
    ],
)
def test_damage_is_named(packed, message):
    with pytest.raises(ValueError, match=message):
        unpack(packed, 4)
