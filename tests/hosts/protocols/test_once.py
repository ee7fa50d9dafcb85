"""A function that remembers its last call gives what it would give anew."""

import weakref

import numpy as np
import pytest

from gradplane.hosts.protocols.once import Common, Once, constant, is_constant


def test_equal_arguments_are_worked_on_once():
    calls = []

    @Once
    def total(x, factor):
        calls.append(factor)
        return int(x.sum()) * factor

    x = np.arange(5, dtype=np.uint8)
    assert [total(x, 2), total(x.copy(), 2), total(x, 3), total(x, 3)] == [20, 20, 30, 30]
    assert calls == [2, 3]
    x[0] = 1
    assert total(x, 3) == 33
    assert total(x.astype(np.uint16), 3) == total(x.reshape(1, -1), 3) == 33
    assert calls == [2, 3, 3, 3, 3]


def test_a_result_may_be_changed_by_its_caller():
    doubled = Once(lambda x: 2 * x)
    x = np.ones(3)
    for _ in range(3):
        result = doubled(x)
        assert (result == 2).all()
        result[:] = 0


def test_large_arrays_are_not_kept():
    calls = []
    count = Once(lambda x: calls.append(x.size) or x.size)
    large = np.zeros(10**6)
    assert count(large) == count(large) == 10**6
    assert len(calls) == 2


def test_errors_are_not_remembered():
    @Once
    def fails(x):
        raise ValueError(x)

    for _ in range(2):
        with pytest.raises(ValueError, match="7"):
            fails(7)


def test_large_arrays_that_nobody_changes_are_known_by_their_memory():
    calls = []

    @Once
    def doubled(x):
        calls.append(x.size)
        return 2 * x

    large = constant(np.ones(10**6, np.float32))
    assert doubled(large[:500_000]) is doubled(large[:500_000])
    assert (doubled(large[1:500_001]) == 2).all()
    assert calls == [500_000, 500_000]
    assert is_constant(doubled(large[:500_000]))
    assert not is_constant(large.copy())


def test_a_large_result_is_kept_only_once_somebody_asked_for_it_again():
    calls = []

    @Once
    def doubled(x):
        calls.append(x.size)
        return 2 * x

    x = constant(np.ones(10**6, np.float32))
    had = doubled(x)
    assert doubled(x) is had
    gone = weakref.ref(had)
    del had
    assert gone() is None
    for _ in range(3):  # as three workers of one process do, one after the other
        doubled(x)
    assert len(calls) == 2


def test_equal_arrays_become_one():
    common = Common()
    first = common(np.arange(9, dtype=np.uint16))
    assert common(np.arange(9, dtype=np.uint16)) is first
    assert is_constant(first)
    for other in (
        np.arange(9, dtype=np.uint32),
        np.arange(9, dtype=np.uint32).reshape(3, 3),
        np.arange(1, 10, dtype=np.uint32).reshape(3, 3),
    ):
        assert common(other) is other
    last = np.zeros(1001, np.uint8)
    changed = last.copy()
    changed[-1] = 1
    assert common(last) is not common(changed)
