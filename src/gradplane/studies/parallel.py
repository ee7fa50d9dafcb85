"""The parts of a study that do not depend on each other, on all processors."""

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any, TypeVar

from gradplane.runs import isolation

T = TypeVar("T")


def each(
    function: Callable[..., T], cases: Sequence[tuple[Any, ...]], what: str, alone: bool = False
) -> list[T]:
    """Return function(*case) of each case, in their order; `what` names a case for people.

    With several processors and cases they run in processes of their own, one after another in each,
    so function, cases and results are pickled; the first exception ends it all. alone: one after
    another here, for cases that take all processors themselves. Progress goes to stderr.
    """
    processors = min(len(os.sched_getaffinity(0)), len(cases))
    if alone or processors < 2:
        return [_reported(function(*case), n, len(cases), what) for n, case in enumerate(cases, 1)]
    free: SimpleQueue[Callable[..., T]] = SimpleQueue()

    def run(case: tuple[Any, ...]) -> T:
        process = free.get()
        try:
            return process(function, *case)
        finally:
            free.put(process)

    # The processes end first, also after an exception: then no thread waits for one.
    with ThreadPoolExecutor(processors) as pool, ExitStack() as processes:
        for _ in range(processors):
            free.put(processes.enter_context(isolation.apart()))
        tasks = [pool.submit(run, case) for case in cases]
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
