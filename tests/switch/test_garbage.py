"""The live switch's setting of Python's garbage collector."""

import gc
import weakref

from gradplane.switch.daemon.live_switch import short_collections, visit_all


class Ring:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.me = self


def test_survivors_are_left_alone_until_they_are_to_be_visited() -> None:
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


def test_what_is_new_is_freed_at_once() -> None:
    with short_collections():
        gc.collect()
        seen = weakref.ref(Ring())
        gc.collect()
        assert seen() is None
