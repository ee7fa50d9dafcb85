"""Network interfaces of this machine, also as a live switch's ports: state and counters, as the
kernel has them."""

from __future__ import annotations

import fcntl
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914  # linux/sockios.h
_IFF_UP, _IFF_RUNNING = 1, 1 << 6  # linux/if.h
_REQUEST = "16sH22x"  # struct ifreq with ifr_flags


class Interface(Protocol):
    """A port's number and the name of its network interface."""

    @property
    def number(self) -> int: ...

    @property
    def interface(self) -> str: ...


class Interfaces(Protocol):
    """The interfaces of a live switch, which are its ports."""

    def status(self) -> Sequence[Interface]: ...

    def enable(self, interface: str, up: bool) -> None:
        """Set an interface up or down. Raises OSError."""


def flags(interface: str) -> tuple[bool, bool] | None:
    """Return whether an interface is set up, and whether it has a link; None if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        try:
            bits = _flags(control, interface)
        except OSError:
            return None
    return bool(bits & _IFF_UP), bits & (_IFF_UP | _IFF_RUNNING) == _IFF_UP | _IFF_RUNNING


def set_up(interface: str, up: bool) -> None:
    """Set an interface up or down. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        bits = _flags(control, interface)
        bits = bits | _IFF_UP if up else bits & ~_IFF_UP
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack(_REQUEST, interface.encode(), bits))


def _flags(control: socket.socket, interface: str) -> int:
    answer = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack(_REQUEST, interface.encode(), 0))
    return int(struct.unpack_from("H", answer, 16)[0])


def interface_counts() -> dict[str, list[int]]:
    """Return the columns of /proc/net/dev, by the interfaces' names.

    They are those of the process's network namespace; /sys may show another one's.
    """
    found = {}
    for line in Path("/proc/self/net/dev").read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        found[name.strip()] = [int(number) for number in numbers.split()]
    return found
