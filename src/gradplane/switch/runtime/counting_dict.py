"""A dict that counts its changes, so that its mirrors can detect them."""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class WatchedDict(dict[K, V]):
    """A dict whose `changes` grows with every change of an item, but not inside the items."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = 0

    def __setitem__(self, key: K, value: V) -> None:
        self.changes += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        self.changes += 1
        super().__delitem__(key)

    def pop(self, key: K, *default: Any) -> Any:
        self.changes += 1
        return super().pop(key, *default)

    def clear(self) -> None:
        self.changes += 1
        super().clear()

    def update(self, *args: Any, **kwargs: Any) -> None:
        self.changes += 1
        super().update(*args, **kwargs)
