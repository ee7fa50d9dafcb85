"""The live switch's setting of Python's garbage collector.

In a process of their own: in one that runs tests a collection visits millions of objects.
"""

import gc
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from gradplane.switch.daemon.live_switch import short_collections, visit_all


class Ring:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.me = self


def survivors() -> None:
    ring = Ring()
    seen = weakref.ref(ring)
    with short_collections():
        gc.collect()
        assert gc.get_freeze_count() > 0
        del ring
        gc.collect()
        assert seen() is not None
        visit_all()
        gc.collect()
        assert seen() is None
    assert gc.get_freeze_count() == 0


def what_is_new() -> None:
    with short_collections():
        gc.collect()
        seen = weakref.ref(Ring())
        gc.collect()
        assert seen() is None


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Callable[[Callable[[], None]], Any]]:
    """Return a function that calls another one in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        yield lambda function: processes.submit(function).result()


def test_survivors_are_left_alone_until_they_are_to_be_visited(elsewhere: Any) -> None:
    elsewhere(survivors)


def test_what_is_new_is_freed_at_once(elsewhere: Any) -> None:
    elsewhere(what_is_new)
