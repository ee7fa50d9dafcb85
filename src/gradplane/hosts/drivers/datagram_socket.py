"""A UDP socket that sends and receives in batches: recvmmsg(2), sendmmsg(2), and UDP GSO.

With GSO (Linux 4.18, UDP_SEGMENT) the kernel cuts one long payload into datagrams of equal size,
so that a batch passes most of its stack once. UDP_GRO, its counterpart, would gain nothing here:
networks for experiments have GRO off on every link, as the switch must see each packet.
"""

import ctypes
import errno
import socket
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.hosts.wire.payloads import Payloads

BATCH = 256  # datagrams taken from a socket before timers get a turn
LONGEST = 2048  # bytes of a datagram; longer ones are dropped
BUFFER_BYTES = 8 << 20
_MOST_SENT = 1024  # datagrams in one call of sendmmsg: UIO_MAXIOV

# linux/udp.h, asm-generic/socket.h, bits/socket.h
_UDP_SEGMENT = 103
_MOST_SEGMENTS, _MOST_BYTES = 64, 65507  # of one GSO send
_SO_RCVBUFFORCE = 33  # beyond net.core.rmem_max, where one may
_MSG_TRUNC = 0x20

_VECTOR = np.dtype([("base", np.uint64), ("length", np.uint64)])  # struct iovec
_MESSAGE = np.dtype(  # struct mmsghdr
    {
        "names": ["name", "name size", "vectors", "vector count", "flags", "length"],
        "formats": [np.uint64, np.uint32, np.uint64, np.uint64, np.uint32, np.uint32],
        "offsets": [0, 8, 16, 24, 48, 56],
        "itemsize": 64,
    }
)
_NAME = 16  # bytes of struct sockaddr_in
_NOT_SEGMENTED = (errno.EIO, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOPROTOOPT, errno.EMSGSIZE)

_libc = ctypes.CDLL(None, use_errno=True)
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int
_libc.recvmmsg.argtypes = (_NUMBER, _POINTER, ctypes.c_uint, _NUMBER, _POINTER)
_libc.sendmmsg.argtypes = (_NUMBER, _POINTER, ctypes.c_uint, _NUMBER)

OnBatch = Callable[[str, int, Payloads], None]
"""Called with IP, source port and payloads, which are valid until it returns."""


class DatagramSocket:
    """A socket bound to (ip, port). OSError if that fails.

    unsent: datagrams that the kernel refused, such as for want of a route. too_long: those that
    arrived and were longer than LONGEST.
    """

    def __init__(self, ip: str, port: int) -> None:
        self.unsent = self.too_long = 0
        self._tos = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            _enlarge(self._socket)
            self._socket.bind((ip, port))
        except OSError:
            self._socket.close()
            raise
        self._segments = _can_segment(self._socket)
        self._data = np.zeros((BATCH, LONGEST), np.uint8)
        self._names = np.zeros((BATCH, _NAME // 8), np.uint64)
        self._arrivals = _Messages(BATCH)
        self._arrivals.point(self._data, np.full(BATCH, LONGEST))
        names = self._names.ctypes.data + _NAME * np.arange(BATCH, dtype=np.uint64)
        self._arrivals.messages["name"] = names
        self._arrivals.messages["name size"] = _NAME
        self._departures = _Messages(_MOST_SENT)
        self._peers: dict[int, tuple[str, int]] = {}

    def fileno(self) -> int:
        """Return the descriptor, which is readable when datagrams wait."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def receive(self, on_batch: OnBatch) -> None:
        """Take the datagrams that wait, at most BATCH: a call for each peer, in its order."""
        messages = self._arrivals.messages
        arguments = (messages.ctypes.data, BATCH, socket.MSG_DONTWAIT, None)
        count = _libc.recvmmsg(self.fileno(), *arguments)
        if count <= 0:  # nothing left, or an error that the network reported
            return
        sizes = messages["length"][:count].astype(np.int64)
        names = self._names[:count, 0].copy()  # family, port and address
        cut = messages["flags"][:count] & _MSG_TRUNC != 0
        payloads = Payloads(self._data[:count], sizes)
        if cut.any():
            self.too_long += int(cut.sum())
            payloads, names = payloads.select(~cut), names[~cut]
            if not len(payloads):
                return
        peers = dict.fromkeys(names.tolist())
        edges = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1).tolist(), len(names)]
        for name, first, end in zip(peers, edges, edges[1:], strict=False):
            if len(edges) == len(peers) + 1:  # one run of datagrams each: no need to copy them
                some = Payloads(payloads.data[first:end], payloads.sizes[first:end])
            else:
                some = payloads.select(names == name)
            on_batch(*self._peer(name), some)

    def send(self, ip: str, port: int, payloads: Payloads, tos: int = 0) -> None:
        """Send datagrams; wait while the interface's queue is full."""
        if tos != self._tos:
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
            self._tos = tos
        if len(payloads) == 1:
            self._send_one(ip, port, payloads)
        elif not (self._segments and self._send_segments(ip, port, payloads)):
            self._send_many(ip, port, payloads)

    def _peer(self, name: int) -> tuple[str, int]:
        if name not in self._peers:
            _, port, address = struct.unpack("!HH4s", struct.pack("=Q", name))
            self._peers[name] = socket.inet_ntoa(address), port
        return self._peers[name]

    def _send_one(self, ip: str, port: int, payloads: Payloads) -> None:
        try:
            self._socket.sendto(payloads[0], (ip, port))
        except OSError:
            self.unsent += 1

    def _send_segments(self, ip: str, port: int, payloads: Payloads) -> bool:
        """Send with GSO; False, with nothing sent, where the batch or the kernel does not fit."""
        data, sizes = payloads.data, payloads.sizes
        stride = data.shape[1]
        if (sizes[:-1] != stride).any() or not data.flags.c_contiguous:
            return False
        rows = min(_MOST_SEGMENTS, _MOST_BYTES // stride)
        control = [(socket.IPPROTO_UDP, _UDP_SEGMENT, struct.pack("=H", stride))]
        flat = data.reshape(-1).data[: stride * (len(sizes) - 1) + int(sizes[-1])]
        for start in range(0, len(sizes), rows):
            some = flat[start * stride : (start + rows) * stride]
            try:
                self._socket.sendmsg([some], control, 0, (ip, port))
            except OSError as error:
                if start == 0 and error.errno in _NOT_SEGMENTED:
                    self._segments = False
                    return False
                self.unsent += min(rows, len(sizes) - start)
        return True

    def _send_many(self, ip: str, port: int, payloads: Payloads) -> None:
        name = np.frombuffer(struct.pack("=H", socket.AF_INET) + struct.pack("!H", port)
                             + socket.inet_aton(ip) + bytes(8), np.uint8)  # fmt: skip
        departures = self._departures
        for start in range(0, len(payloads), _MOST_SENT):
            rows = slice(start, start + _MOST_SENT)
            data, sizes = payloads.data[rows], payloads.sizes[rows]
            departures.point(data, sizes)
            departures.messages["name"] = name.ctypes.data
            departures.messages["name size"] = _NAME
            first = 0
            while first < len(sizes):
                address = departures.messages.ctypes.data + first * _MESSAGE.itemsize
                sent = _libc.sendmmsg(self.fileno(), address, len(sizes) - first, 0)
                if sent < 0:
                    self.unsent += 1
                first += max(sent, 1)


class _Messages:
    """Structures for the system calls for many datagrams, one part each."""

    def __init__(self, count: int) -> None:
        self._vectors = np.zeros(count, _VECTOR)
        self.messages: npt.NDArray[Any] = np.zeros(count, _MESSAGE)
        places = np.arange(count, dtype=np.uint64) * np.uint64(_VECTOR.itemsize)
        self.messages["vectors"] = np.uint64(self._vectors.ctypes.data) + places
        self.messages["vector count"] = 1

    def point(self, data: npt.NDArray[np.uint8], sizes: npt.NDArray[Any]) -> None:
        """Let the first messages be the rows of `data`, which must live as long."""
        assert data.strides[1] == 1, "the bytes of a payload lie side by side"
        rows = np.arange(len(sizes), dtype=np.uint64) * np.uint64(data.strides[0])
        self._vectors["base"][: len(sizes)] = np.uint64(data.ctypes.data) + rows
        self._vectors["length"][: len(sizes)] = sizes


def _can_segment(opened: socket.socket) -> bool:
    try:
        opened.getsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT)
    except OSError:
        return False
    return True


def _enlarge(opened: socket.socket) -> None:
    """Enlarge the buffer: a whole window of results may arrive while a gradient is computed."""
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER_BYTES)
    except OSError:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
