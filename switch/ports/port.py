"""A port of the switch: one network interface, read and written as raw Ethernet packets."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack
from typing import ClassVar

from gradplane.switch.ports.errors import PortError
from gradplane.switch.ports.offload import VNET_HEADER, switch_off, without_header

BATCH = 64  # packets read with one system call
MAX_PACKET = 1 << 16
_BUFFER = MAX_PACKET + VNET_HEADER.size
_RECEIVE_QUEUE = 8 << 20

# linux/if_packet.h, linux/if_ether.h, asm/socket.h
_ETH_P_ALL = 0x0003
_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP = 1
_PACKET_VNET_HDR = 15
_PACKET_IGNORE_OUTGOING = 23
_PACKET_MR_PROMISC = 1
_SO_RCVBUFFORCE = 33

_NO_PACKET = (errno.EAGAIN, errno.EINTR)
_GONE = (errno.ENETDOWN, errno.ENODEV, errno.ENXIO)
_TOO_LONG = (
    "port %d: a packet of %d bytes is longer than the MTU of %s allows and is dropped; if hosts"
    " send through segmentation offload, switch it off there: ethtool -K INTERFACE tso off gso off"
)

log = logging.getLogger(__name__)
_libc = ctypes.CDLL(None, use_errno=True)


class _Iovec(ctypes.Structure):
    _fields_: ClassVar = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Message(ctypes.Structure):
    _fields_: ClassVar = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("vector", ctypes.POINTER(_Iovec)),
        ("vector_length", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class _BatchMessage(ctypes.Structure):
    _fields_: ClassVar = [("message", _Message), ("received", ctypes.c_uint)]


class Port:
    """Port `number` on the network interface `interface`.

    Packets sent by this machine on the interface are not received. Raises PortError where the
    interface or the permission is missing.
    """

    def __init__(self, number: int, interface: str) -> None:
        self.number = number
        self.interface = interface
        self.dropped = 0  # packets that could not be sent
        self._too_long = False
        self._in = _open(interface, _listen)
        try:
            self._out = _open(interface, _speak)
        except PortError:
            self._in.close()
            raise
        refused = switch_off(interface)
        if refused:
            log.info("port %d: %s keeps its %s on", number, interface, ", ".join(refused))
        self._buffer = (ctypes.c_char * (_BUFFER * BATCH))()
        self._view = memoryview(self._buffer).cast("B")
        self._vectors = (_Iovec * BATCH)()
        self._messages = (_BatchMessage * BATCH)()
        start = ctypes.addressof(self._buffer)
        for i, (vector, batch) in enumerate(zip(self._vectors, self._messages, strict=True)):
            vector.base, vector.length = start + i * _BUFFER, _BUFFER
            batch.message.vector = ctypes.pointer(vector)
            batch.message.vector_length = 1

    def fileno(self) -> int:
        """For poll and epoll: readable when packets wait."""
        return self._in.fileno()

    def receive(self) -> list[bytes]:
        """The packets that wait, at most BATCH; none when the interface is down."""
        count: int = _libc.recvmmsg(
            self._in.fileno(), self._messages, BATCH, socket.MSG_DONTWAIT, None
        )
        if count < 0:
            self._failed(ctypes.get_errno())
            return []
        packets = []
        for i in range(count):
            start = i * _BUFFER
            received = bytes(self._view[start : start + self._messages[i].received])
            packets.append(without_header(received))
        return packets

    def send(self, packet: bytes) -> None:
        """Send one packet; if the interface cannot take it, it is dropped and counted."""
        try:
            self._out.send(packet)
        except OSError as error:
            self.dropped += 1
            if error.errno == errno.EMSGSIZE and not self._too_long:
                self._too_long = True
                log.warning(_TOO_LONG, self.number, len(packet), self.interface)

    def close(self) -> None:
        self._in.close()
        self._out.close()

    def _failed(self, code: int) -> None:
        if code in _NO_PACKET:
            return
        log.warning("port %d: %s: %s", self.number, self.interface, os.strerror(code))
        if code not in _GONE:
            raise OSError(code, os.strerror(code), self.interface)


def _listen(opened: socket.socket, interface: str) -> None:
    """Receive what arrives, in promiscuous mode; not what this machine sends."""
    opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    opened.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_QUEUE)
    except PermissionError:  # in a user namespace: as much as the system allows
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_QUEUE)
    opened.bind((interface, _ETH_P_ALL))
    index = socket.if_nametoindex(interface)
    membership = struct.pack("=IHH8x", index, _PACKET_MR_PROMISC, 0)
    opened.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, membership)


def _speak(opened: socket.socket, interface: str) -> None:
    """Send only, through the interface's queueing discipline: it may limit the link's rate."""
    opened.setblocking(False)
    opened.bind((interface, 0))


def _open(interface: str, configure: Callable[[socket.socket, str], None]) -> socket.socket:
    names = sorted(name for _, name in socket.if_nameindex())
    if interface not in names:
        raise PortError(
            f'interface "{interface}" does not exist; there are: {", ".join(names)}. Create it'
            f" first, for example: ip link add {interface} type veth peer name {interface}-peer"
        )
    with ExitStack() as on_failure:
        try:
            # Protocol 0: nothing arrives until it is bound.
            opened = on_failure.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            configure(opened, interface)
        except PermissionError as error:
            raise PortError(
                f'raw sockets on interface "{interface}" are not permitted: they take CAP_NET_RAW;'
                " run as root, or in a user namespace (unshare --map-root-user --net)"
            ) from error
        except OSError as error:
            raise PortError(f'interface "{interface}" cannot be a port: {error}') from error
        on_failure.pop_all()
    return opened
