"""The journal of a store: batches of changes that undo themselves when they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from contextlib import AbstractContextManager
from threading import local
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

K = TypeVar("K")
V = TypeVar("V")

Bytes = bytearray | npt.NDArray[np.uint8]
Step = Callable[..., object]
"""Takes one change back, if it is still as the change left it."""


class _Open(local):
    """The steps of the thread's open batch; None outside one."""

    steps: list[tuple[Step, tuple[Any, ...]]] | None = None


class Journal:
    """The changes of the batches that are open, each thread's apart.

    Whoever changes memory records how to take the change back; outside a batch nothing is kept. A
    step restores only what was written, and leaves what packets have written since. `lock` is held
    while steps run.
    """

    def __init__(self, lock: AbstractContextManager[Any]) -> None:
        self._lock = lock
        self._open = _Open()

    def batch(self) -> Batch:
        """Return a context whose changes are undone, last first, if it ends with an exception.

        Within another one it is a part of that one, which may be undone later as a whole.
        """
        return Batch(self._open, self._lock)

    def trial(self) -> Batch:
        """Return a context whose changes are undone however it ends."""
        return Batch(self._open, self._lock, kept=False)

    @property
    def open(self) -> bool:
        """Whether a batch of this thread is open, so that steps are kept."""
        return self._open.steps is not None

    def record(self, step: Step, *args: Any) -> None:
        """Note how to take a change back that was just made: call `step` with these arguments."""
        steps = self._open.steps
        if steps is not None:
            steps.append((step, args))

    def put(self, items: MutableMapping[K, V], key: K, value: V | None) -> None:
        """Set an item, None: remove it; a step restores it unless it was set again meanwhile."""
        former = items.get(key)
        _put(items, key, value)
        self.record(_put_back, items, key, value, former)

    def put_all(self, items: MutableMapping[K, V], values: Iterable[tuple[K, V | None]]) -> None:
        """Set several items, as `put` does."""
        for key, value in values:
            self.put(items, key, value)

    def set(self, owner: object, name: str, value: Any) -> None:
        """Set an attribute; a step restores it unless it was set again meanwhile."""
        former = getattr(owner, name)
        setattr(owner, name, value)

        def step() -> None:
            if getattr(owner, name) == value:
                setattr(owner, name, former)

        self.record(step)

    def splice(self, cells: Bytes, at: slice, values: Sequence[int] | bytes) -> None:
        """Set a part of some bytes, which keeps its length."""
        view = memoryview(cells)  # type: ignore[arg-type]
        former = bytes(view[at])
        view[at] = bytes(values)

        def step() -> None:
            view[at] = former

        self.record(step)


class Batch:
    """A context of changes that happen all or not at all; never, unless they are `kept`."""

    __slots__ = ("_kept", "_lock", "_mark", "_open")

    def __init__(self, open: _Open, lock: AbstractContextManager[Any], kept: bool = True) -> None:
        self._open, self._lock, self._mark, self._kept = open, lock, 0, kept

    def __enter__(self) -> None:
        steps = self._open.steps
        if steps is None:
            self._open.steps, self._mark = [], -1
        else:
            self._mark = len(steps)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        steps, first = self._open.steps, max(self._mark, 0)
        assert steps is not None
        if (kind is not None or not self._kept) and len(steps) > first:
            self._open.steps = None  # steps record nothing
            with self._lock:
                while len(steps) > first:
                    step, args = steps.pop()
                    step(*args)
        self._open.steps = None if self._mark < 0 else steps


def _put(items: MutableMapping[K, V], key: K, value: V | None) -> None:
    if value is None:
        items.pop(key, None)
    else:
        items[key] = value


def _put_back(items: MutableMapping[K, V], key: K, value: V | None, former: V | None) -> None:
    if items.get(key) is value:
        _put(items, key, former)
