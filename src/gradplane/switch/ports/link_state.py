"""The link state of ports, as the kernel reports it."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence

from gradplane.switch.runtime.interfaces import flags
from gradplane.switch.runtime.links import Links

_RTMGRP_LINK = 1  # linux/rtnetlink.h
_SIZE = 1 << 16

log = logging.getLogger(__name__)


class LinkWatch:
    """Reports ports that go down or up to `links`, for (port, interface) pairs.

    A port is down while its interface is set down, has no carrier (for a veth pair: the other end
    is down) or does not exist.
    """

    def __init__(self, interfaces: Sequence[tuple[int, str]], links: Links) -> None:
        self._interfaces = dict(interfaces)
        self._links = links
        self._changes = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._changes.setblocking(False)
        self._changes.bind((0, _RTMGRP_LINK))
        self._check()

    def fileno(self) -> int:
        """Return the descriptor for epoll: readable when the link of some interface changed."""
        return self._changes.fileno()

    def update(self) -> None:
        """Check all ports after some interface changed."""
        while True:
            try:
                self._changes.recv(_SIZE)
            except BlockingIOError:
                break
            except OSError:  # ENOBUFS: more changes than the buffer holds
                continue
        self._check()

    def add(self, port: int, interface: str) -> None:
        """Watch a port, which may have been down under another interface."""
        self._interfaces[port] = interface
        self._check()

    def remove(self, port: int) -> None:
        """Watch a port no longer: it is down."""
        del self._interfaces[port]
        self._links.set(port, False)

    def close(self) -> None:
        self._changes.close()

    def _check(self) -> None:
        for port, interface in self._interfaces.items():
            _, up = flags(interface) or (False, False)
            if up == (port in self._links.down):
                log.info("port %d: %s is %s", port, interface, "up" if up else "down")
                self._links.set(port, up)
