"""The interface of an observer that follows packets through a pipeline's tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from gradplane.switch.runtime.entries import Entry

ReadValues = Callable[[], list[Any]]
"""Returns the values of a control's parameters, in order, as they are now."""


class StageProbe(Protocol):
    """Is called for each packet that is traced, in the order of what happens to it."""

    def begin(self, gress: str, pipe: int, values: list[Any], read: ReadValues) -> None:
        """A control begins: "ingress" or "egress", of a pipe; `values`: of its parameters."""

    def applied(self, table: str, entry: Entry | None) -> None:
        """A table was looked up in the control; its action is to run. None: a miss."""

    def end(self) -> None:
        """The control is over."""
