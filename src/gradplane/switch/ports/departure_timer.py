"""A timer for epoll: readable from a moment of the monotonic clock on (timerfd_create(2))."""

from __future__ import annotations

import ctypes
import os
import struct
import time

# linux/timerfd.h; struct itimerspec: interval and value, each of seconds and nanoseconds.
_TFD_TIMER_ABSTIME = 1
_ITIMERSPEC = struct.Struct("=qqqq")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.timerfd_settime.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p]


class DepartureTimer:
    """A timer that is not set. Raises OSError where the kernel gives none."""

    def __init__(self) -> None:
        self._set: int | None = None
        self._descriptor = _libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise _error()

    def fileno(self) -> int:
        """Return the descriptor for epoll."""
        return int(self._descriptor)

    def set(self, at: int | None) -> None:
        """Set the timer to a time of time.monotonic_ns; None: it stays silent."""
        if at == self._set:
            return
        self._set = at
        # Zero would switch the timer off.
        value = (0, 0) if at is None else divmod(max(at, 1), 10**9)
        spec = _ITIMERSPEC.pack(0, 0, *value)
        if _libc.timerfd_settime(self._descriptor, _TFD_TIMER_ABSTIME, spec, None) != 0:
            raise _error()

    def close(self) -> None:
        os.close(self._descriptor)


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
