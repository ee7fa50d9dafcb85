"""Calls in the network namespaces of other processes."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from gradplane.switch.ports import offload

T = TypeVar("T")

_CLONE_NEWNET = 0x40000000  # linux/sched.h


def within(pid: int, function: Callable[[], T]) -> T:
    """Call `function()` in the network namespace of process `pid`.

    Raises OSError where that fails. A namespace belongs to a thread; a new thread enters it and
    ends there, so that no other thread of this process ever changes its namespace.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            _enter(pid)
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name=f"network namespace of {pid}")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def switch_off_offloads(pid: int, interface: str) -> None:
    """Make packets leave `interface`, in the namespace of `pid`, as they are on a wire.

    That is, with complete checksums and without segments beyond the MTU.
    """
    within(pid, lambda: offload.switch_off(interface))


def _enter(pid: int) -> None:
    file = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(file, _CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), f"/proc/{pid}/ns/net")
    finally:
        os.close(file)
