"""Computations that are put off until their values are wanted, or a processor has nothing to do."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class Deferred(Generic[Value]):
    """The value of a pure function of `arguments`, which nobody changes until it is computed."""

    def __init__(self, function: Callable[..., Value], *arguments: Any) -> None:
        self._lock = threading.Lock()
        self._work: tuple[Callable[..., Value], tuple[Any, ...]] | None = function, arguments
        self._value: Value

    def get(self) -> Value:
        """Return the value; compute it, once, if that has not been done. From any thread."""
        with self._lock:
            if self._work is not None:
                function, arguments = self._work
                self._value, self._work = function(*arguments), None
            return self._value
