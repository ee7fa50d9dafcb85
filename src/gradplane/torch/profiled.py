"""The stages of a bucket as named ranges of PyTorch's profiler.

The profiler sees the threads that it was started in, and the network's thread is none of them. What
a thread's TorchScript forks belongs to that thread's profile, however, wherever it runs: so each
bucket forks a function that waits for the marks that the network's thread sets. (torch 2.13.0:
record_function on another thread, or in a future's callback, leaves no trace.)
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from gradplane.hosts.protocols.phases import Phase

_native: Any = torch._C  # of which torch's type information has little
_MOST = 128  # marks of a bucket; the last range has what comes after them
_SOURCE = """
def shown(names: List[str], marks: List[Future[Tensor]]):
    torch.jit.wait(marks[0])
    at = 0
    while names[at] != "":
        record = torch.ops.profiler._record_function_enter_new(names[at])
        at += 1
        torch.jit.wait(marks[at])
        torch.ops.profiler._record_function_exit(record)

def gradplane(names: List[str], marks: List[Future[Tensor]]):
    return torch.jit.fork(shown, names, marks)
"""


class Ranges:
    """The ranges of one bucket, of which each lasts until the next, or close()."""

    def __init__(self) -> None:
        """Belong to the profile of this thread."""
        self._names = _native.ScriptList([""] * _MOST)
        self._marks: list[Any] = [torch.futures.Future() for _ in range(_MOST)]
        self._at = 0
        self._shown = _unit().gradplane(self._names, self._marks)

    def __call__(self, phase: Phase) -> None:
        """Begin a range, from any thread."""
        if self._at < _MOST - 1:
            self._names[self._at] = f"gradplane::{phase}"
            self._mark()

    def close(self) -> None:
        """End the last range; wait until the profile has it."""
        self._mark()
        self._shown.wait()

    def _mark(self) -> None:
        self._at += 1
        self._marks[self._at - 1].set_result(None)


def ranges() -> Ranges | None:
    """Return the ranges of a bucket that this thread reduces; None where nothing profiles it."""
    return Ranges() if _native._autograd._profiler_enabled() else None


@cache
def _unit() -> Any:
    return torch.jit.CompilationUnit(_SOURCE)
