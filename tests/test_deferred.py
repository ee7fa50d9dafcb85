"""Values whose computation is put off: once, whoever asks first, and again after an exception."""

import threading

import pytest

from gradplane._deferred import Deferred


def test_a_value_is_computed_once_when_it_is_asked_for():
    calls = []

    def double(x):
        calls.append(x)
        return 2 * x

    value = Deferred(double, 21)
    assert calls == []
    assert (value.get(), value.get(), calls) == (42, 42, [21])


def test_two_threads_that_ask_at_once_get_the_value_of_one_computation():
    begun, calls = threading.Event(), []

    def slow():
        begun.set()
        calls.append(1)
        return object()

    value, found = Deferred(slow), []
    others = [threading.Thread(target=lambda: found.append(value.get())) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert begun.is_set() and calls == [1] and found[0] is found[1]


def test_an_exception_goes_to_whoever_asks():
    value = Deferred(int, "no number")
    for _ in range(2):
        with pytest.raises(ValueError, match="no number"):
            value.get()
