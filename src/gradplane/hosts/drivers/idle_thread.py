"""A thread of low priority, for work that should only take processor time that nobody else needs.

The hosts of a run share the machine's processors, which idle while packets are on their way. The
kernels that do the work run without the interpreter's lock.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gradplane._deferred import Deferred

_NICER = 10  # than the thread that receives and sends; 19 is the most


class IdleThread:
    """A thread that computes values in order. It starts with the first one."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "idle", _yield_to_others)

    def compute(self, value: Deferred[Any]) -> None:
        """Compute a value. Whoever asks for it gets its exception, if there is one."""
        self._thread.submit(value.get)

    def close(self) -> None:
        """End the thread; values that it has not begun are not computed."""
        self._thread.shutdown(cancel_futures=True)


def _yield_to_others() -> None:
    thread = threading.get_native_id()
    niceness = os.getpriority(os.PRIO_PROCESS, thread)
    os.setpriority(os.PRIO_PROCESS, thread, niceness + _NICER)
