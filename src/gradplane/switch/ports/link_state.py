"""Which ports have a link, as the kernel tells it."""

from __future__ import annotations

import fcntl
import logging
import socket
import struct
from collections.abc import Sequence

from gradplane.switch.runtime.links import Links

_RTMGRP_LINK = 1  # linux/rtnetlink.h
_SIOCGIFFLAGS = 0x8913
_IFF_UP, _IFF_RUNNING = 1, 1 << 6  # linux/if.h
_SIZE = 1 << 16

log = logging.getLogger(__name__)


class LinkWatch:
    """Tells `links` of the ports that go down or up, on (port, interface) pairs.

    A port is down while its interface is set down, has no carrier (of a veth pair: the other end is
    down) or is gone.
    """

    def __init__(self, interfaces: Sequence[tuple[int, str]], links: Links) -> None:
        self._interfaces = interfaces
        self._links = links
        self._changes = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._changes.setblocking(False)
        self._changes.bind((0, _RTMGRP_LINK))
        self._look()

    def fileno(self) -> int:
        """For epoll: readable when the link of some interface changed."""
        return self._changes.fileno()

    def update(self) -> None:
        """Look at the ports again, since some interface changed, whatever it was."""
        while True:
            try:
                self._changes.recv(_SIZE)
            except BlockingIOError:
                break
            except OSError:  # ENOBUFS: there were more changes than room for them
                continue
        self._look()

    def close(self) -> None:
        self._changes.close()

    def _look(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for port, interface in self._interfaces:
                up = _has_link(control, interface)
                if up == (port in self._links.down):
                    log.info("port %d: %s is %s", port, interface, "up" if up else "down")
                    self._links.set(port, up)


def _has_link(control: socket.socket, interface: str) -> bool:
    request = struct.pack("16sh22x", interface.encode(), 0)
    try:
        (flags,) = struct.unpack_from("H", fcntl.ioctl(control, _SIOCGIFFLAGS, request), 16)
    except OSError:
        return False
    wanted = _IFF_UP | _IFF_RUNNING
    return bool(flags & wanted == wanted)
