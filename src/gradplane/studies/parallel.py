"""The parts of a study that do not depend on each other, on all processors."""

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from gradplane.runs import isolation

T = TypeVar("T")


def each(
    function: Callable[..., T], cases: Sequence[tuple[Any, ...]], what: str, alone: bool = False
) -> list[T]:
    """Return function(*case) of each case, in their order; `what` names a case for people.

    With several processors and cases each runs in a process of its own, so function, cases and
    results are pickled; the first exception ends it all. alone: one after another, for cases that
    take all processors themselves. Progress goes to stderr.
    """
    processors = len(os.sched_getaffinity(0))
    if alone or min(processors, len(cases)) < 2:
        return [_reported(function(*case), n, len(cases), what) for n, case in enumerate(cases, 1)]
    with ThreadPoolExecutor(processors) as pool:
        tasks = [pool.submit(isolation.apart, function, *case) for case in cases]
        try:
            for number, task in enumerate(as_completed(tasks), 1):
                _reported(task.result(), number, len(tasks), what)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [task.result() for task in tasks]


def _reported(result: T, number: int, of: int, what: str) -> T:
    if of > 1:
        print(f"{what} {number} of {of} done", file=sys.stderr, flush=True)
    return result
