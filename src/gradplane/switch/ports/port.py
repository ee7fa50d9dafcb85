"""A port of the switch: one network interface, read and written as raw Ethernet packets."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from gradplane._privileges import remedy
from gradplane.switch.ports.kernel_batches import BATCH, Arrivals, Departures, Ring
from gradplane.switch.ports.offload import switch_off
from gradplane.switch.runtime.control_errors import SwitchError

_RECEIVE_QUEUE = _SEND_QUEUE = 8 << 20  # bytes; the socket's queue must not overflow before tc's

# linux/if_packet.h, linux/if_ether.h, asm/socket.h
_ETH_P_ALL = 0x0003
_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP = 1
_PACKET_STATISTICS = 6
_PACKET_AUXDATA = 8
_PACKET_VNET_HDR = 15
_PACKET_IGNORE_OUTGOING = 23
_PACKET_MR_PROMISC = 1
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_SIOCGIFMTU = 0x8921
_LINK_HEADERS = 22  # bytes beside the MTU: Ethernet and two VLAN tags

_NO_PACKET = (errno.EAGAIN, errno.EINTR)
_GONE = (errno.ENETDOWN, errno.ENODEV, errno.ENXIO)
_TOO_LONG = (
    "port %d: a packet of %d bytes is longer than the MTU of %s allows and is dropped; if hosts"
    " send through segmentation offload, switch it off there: ethtool -K INTERFACE tso off gso off"
)

_MISSED = (
    "port %d: %d packets from %s were lost until now, since the switch did not read them in time:"
    " it gets more than it can take, or other programs have the processor"
)

log = logging.getLogger(__name__)


class PortError(SwitchError):
    """A port cannot be opened; the message names the interface and the remedy."""


class Port:
    """Port `number` on the network interface `interface`.

    Packets sent by this machine on the interface are not received. Raises PortError where the
    interface or the permission is missing.
    """

    def __init__(self, number: int, interface: str) -> None:
        self.number = number
        self.interface = interface
        self.dropped = 0  # packets that could not be sent
        self.missed = 0  # packets that came while the ring was full
        self._said, self._next_warning = 0, 0.0  # of those, in the log; when the next line may be
        self._too_long = False
        self._in, self._ring, self._out, self._index = _opened(interface)
        refused = switch_off(interface)
        if refused:
            log.info("port %d: %s keeps its %s on", number, interface, ", ".join(refused))

    def reopen(self) -> bool:
        """Open the interface again if it was removed and one of its name exists again.

        Returns True if so; `fileno` is another one then.
        """
        try:
            if socket.if_nametoindex(self.interface) == self._index:
                return False
            opened = _opened(self.interface)
        except (OSError, PortError):
            return False
        self.close()
        self._in, self._ring, self._out, self._index = opened
        switch_off(self.interface)
        log.warning("port %d: %s exists again", self.number, self.interface)
        return True

    def fileno(self) -> int:
        """Return the descriptor for epoll: readable when packets wait."""
        return self._in.fileno()

    @property
    def index(self) -> int:
        """The kernel's number of the interface."""
        return self._index

    def receive(self, arrivals: Arrivals) -> None:
        """Take the packets that wait, at most a batch; none while the interface is down."""
        try:
            if self._ring is None:
                self._receive(arrivals)
            else:
                self._take(arrivals, self._ring)
        except OSError as error:
            self._failed(error)

    def _take(self, arrivals: Arrivals, ring: Ring) -> None:
        before = arrivals.count
        arrivals.take(ring)
        arrivals.restore()
        while ring.copied():
            self._receive(arrivals, 1)
            arrivals.take(ring)
            arrivals.restore()
        if ring.losing():
            self._note_missed()
        if arrivals.count == before:  # woken for an error: the interface is down or gone
            error = self._in.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))

    def _note_missed(self, last: bool = False) -> None:
        """Count what the kernel had no room for since the last time; warn once a second, and with
        the last of them."""
        statistics = self._in.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        self.missed += struct.unpack("=II", statistics)[1]
        if self.missed > self._said and (last or time.monotonic() >= self._next_warning):
            self._said, self._next_warning = self.missed, time.monotonic() + 1.0
            log.warning(_MISSED, self.number, self.missed, self.interface)

    def _receive(self, arrivals: Arrivals, most: int = BATCH) -> None:
        arrivals.receive(self._in.fileno(), socket.MSG_DONTWAIT, most)
        arrivals.restore()

    def send(self, packets: Departures, first: int, end: int) -> None:
        """Send packets first to end - 1.

        Those that the interface refuses are dropped and counted.
        """
        while first < end:
            try:
                first += packets.send(self._out.fileno(), first, end)
            except OSError as error:
                self._lost(error, packets.length(first))
                first += 1

    def close(self) -> None:
        if self._ring is not None:
            self._note_missed(last=True)
            self._ring.close()
        self._in.close()
        self._out.close()

    def _lost(self, error: OSError, size: int) -> None:
        self.dropped += 1
        if error.errno == errno.EMSGSIZE and not self._too_long:
            self._too_long = True
            log.warning(_TOO_LONG, self.number, size, self.interface)

    def _failed(self, error: OSError) -> None:
        if error.errno in _NO_PACKET:
            return
        log.warning("port %d: %s: %s", self.number, self.interface, error.strerror)
        if error.errno not in _GONE:
            raise error


def _opened(interface: str) -> tuple[socket.socket, Ring | None, socket.socket, int]:
    """Open an interface: return its receiving socket and ring, its sending socket, its index."""
    with _explained(interface), ExitStack() as on_failure:
        # Protocol 0: they receive nothing until they are bound.
        receiving, sending = (
            on_failure.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            for _ in range(2)
        )
        ring = _listen(receiving, interface)
        if ring is not None:
            on_failure.callback(ring.close)
        index = socket.if_nametoindex(interface)
        receiving.bind((interface, _ETH_P_ALL))
        membership = struct.pack("=IHH8x", index, _PACKET_MR_PROMISC, 0)
        receiving.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, membership)
        _speak(sending, interface)
        on_failure.pop_all()
    return receiving, ring, sending, index


def _listen(opened: socket.socket, interface: str) -> Ring | None:
    """Set a socket to receive without what this machine sends; return its ring, if it has one."""
    opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    opened.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    opened.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
    _set_buffer(opened, _SO_RCVBUFFORCE, socket.SO_RCVBUF, _RECEIVE_QUEUE)
    request = fcntl.ioctl(opened, _SIOCGIFMTU, struct.pack("16sI12x", interface.encode(), 0))
    try:
        return Ring(opened, longest=struct.unpack("16xI12x", request)[0] + _LINK_HEADERS)
    except OSError as error:
        log.info("%s is read without shared memory: %s", interface, error.strerror)
        return None


def _speak(opened: socket.socket, interface: str) -> None:
    """Set a socket to send only, through the interface's queueing discipline."""
    opened.setblocking(False)
    _set_buffer(opened, _SO_SNDBUFFORCE, socket.SO_SNDBUF, _SEND_QUEUE)
    opened.bind((interface, 0))


def _set_buffer(opened: socket.socket, forced: int, allowed: int, size: int) -> None:
    try:
        opened.setsockopt(socket.SOL_SOCKET, forced, size)
    except PermissionError:  # in a user namespace: up to the system's limit
        opened.setsockopt(socket.SOL_SOCKET, allowed, size)


@contextmanager
def _explained(interface: str) -> Iterator[None]:
    """Raise PortError for what goes wrong with an interface."""
    names = sorted(name for _, name in socket.if_nameindex())
    if interface not in names:
        raise PortError(
            f'interface "{interface}" does not exist; there are: {", ".join(names)}. Create it'
            f" first, for example: ip link add {interface} type veth peer name {interface}-peer"
        )
    try:
        yield
    except PermissionError as error:
        raise PortError(
            f'raw sockets on interface "{interface}" are not permitted: they need CAP_NET_RAW;'
            f" {remedy(['NET_RAW'])}, or run in a user namespace"
            " (unshare --map-root-user --net)"
        ) from error
    except OSError as error:
        raise PortError(f'interface "{interface}" cannot be a port: {error}') from error
