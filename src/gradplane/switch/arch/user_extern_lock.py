"""The lock of a switch whose program has externs of its own."""

from __future__ import annotations

from threading import RLock, get_ident

from gradplane.switch.arch.user_externs import OwnExterns
from gradplane.switch.runtime.control_errors import SwitchError


class OwnLock:
    """A switch's lock that an extern of its program cannot take: it runs in the middle of a packet,
    where nothing may change. Raises SwitchError then."""

    def __init__(self, own: OwnExterns) -> None:
        self._own = own
        self._lock = RLock()

    def __enter__(self) -> None:
        if self._own.thread == get_ident():
            raise SwitchError("an extern cannot use the switch that is calling it")
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()
