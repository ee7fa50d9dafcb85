"""A UDP socket that sends and receives in batches: recvmmsg(2), sendmmsg(2), and UDP GSO.

With GSO (Linux 4.18, UDP_SEGMENT) the kernel cuts one long payload into datagrams of equal size,
so that a batch passes most of its stack once. UDP_GRO, its counterpart, would gain nothing here:
networks for experiments have GRO off on every link, as the switch must see each packet.

The ordinary results of a switch worker are taken and answered by a kernel (ordinary_exchange.py);
Python gets the datagrams from the first other one on.
"""

import contextlib
import ctypes
import errno
import functools
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.hosts.drivers.ordinary_exchange import (
    NEVER,
    Arrivals,
    Outcome,
    Trains,
    exchange,
    polled,
)
from gradplane.hosts.protocols.fast_results import WorkerRecord
from gradplane.hosts.wire.payloads import ECN_MARKED, Payloads

BATCH = 256  # datagrams taken from a socket before timers get a turn
LONGEST = 2048  # bytes of a datagram; longer ones are dropped
BUFFER_BYTES = 8 << 20
_MOST_SENT = 1024  # datagrams in one call of sendmmsg: UIO_MAXIOV

# struct cmsghdr, and a uint16 as its data
_CONTROL = struct.Struct("=QiiH6x")
_CONTROL_LENGTH = 18

# linux/udp.h, asm-generic/socket.h, bits/socket.h
_UDP_SEGMENT = 103
_MOST_SEGMENTS, _MOST_BYTES = 64, 65507  # of one GSO send
_IP_RECVTOS = 13  # linux/in.h
_RECEIVED_TOS = 24, 16  # bytes of the control message with a packet's ToS, and where that is
_SO_RCVBUFFORCE = 33  # beyond net.core.rmem_max, where one may
_MSG_TRUNC = 0x20

_VECTOR = 16  # bytes of struct iovec: address and length
_MESSAGE = np.dtype(  # struct mmsghdr
    {
        "names": [
            "name",
            "name size",
            "vectors",
            "vector count",
            "control",
            "control size",
            "flags",
            "length",
        ],
        "formats": [np.uint64, np.uint32, *[np.uint64] * 4, np.uint32, np.uint32],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 56],
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


@dataclass(frozen=True)
class OrdinaryResults:
    """The kernel that takes a port's ordinary packets from `peer`, (IP, port); `now` is the time
    in ns. It waits for more until the time `until`, or until a file other than the socket can be
    read. files: returns the structures to wait for, given the socket's descriptor, the first."""

    results: WorkerRecord
    peer: tuple[str, int]
    now: Callable[[], int]
    until: Callable[[], int] = lambda: NEVER
    files: Callable[[int], npt.NDArray[Any]] = lambda own: polled([own])


class DatagramSocket:
    """A socket bound to (ip, port). OSError if that fails.

    unsent: datagrams that the kernel refused, such as for want of a route. too_long: those that
    arrived and were longer than LONGEST.
    """

    def __init__(self, ip: str, port: int, ordinary: OrdinaryResults | None = None) -> None:
        self.unsent = self.too_long = 0
        self._ordinary = ordinary
        self._tos = 0
        self._marks: npt.NDArray[np.uint8] | None = None  # control messages, where marks are read
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
        self._trains = _Trains(self._departures)
        self._peers: dict[int, tuple[str, int]] = {}

    def fileno(self) -> int:
        """Return the descriptor, which is readable when datagrams wait."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def receive(self, on_batch: OnBatch) -> None:
        """Take the datagrams that wait, at most BATCH: a call for each peer, in its order."""
        first = 0
        if self._ordinary is None:
            arguments = (self._arrivals.address, BATCH, socket.MSG_DONTWAIT, None)
            count = _libc.recvmmsg(self.fileno(), *arguments)
        else:
            count, first = self._exchange(self._ordinary)
        if count <= first:  # nothing left, or an error that the network reported
            return
        messages = self._arrivals.messages[first:count]
        sizes = messages["length"].astype(np.int64)
        names = self._names[first:count, 0].copy()  # family, port and address
        cut = messages["flags"] & _MSG_TRUNC != 0
        payloads = Payloads(self._data[first:count], sizes, self._marked(first, count))
        if cut.any():
            self.too_long += int(cut.sum())
            payloads, names = payloads.select(~cut), names[~cut]
            if not len(payloads):
                return
        peers = dict.fromkeys(names.tolist())
        changes = (names[1:] != names[:-1]).nonzero()[0]
        edges = [0, *(changes + 1).tolist(), len(names)]
        for name, first, end in zip(peers, edges, edges[1:], strict=False):
            if len(edges) == len(peers) + 1:  # one run of datagrams each: no need to copy them
                some = payloads.part(first, end)
            else:
                used = payloads.data[:, : payloads.sizes.max()]
                some = replace(payloads, data=used).select(names == name)
            on_batch(*self._peer(name), some)

    def send(self, ip: str, port: int, payloads: Payloads, tos: int = 0) -> None:
        """Send datagrams; wait while the interface's queue is full."""
        if len(payloads) == 1:
            self._set_tos(tos)
            self._send_one(ip, port, payloads)
            return
        for start in range(0, len(payloads), _MOST_SENT):
            rows = slice(start, start + _MOST_SENT)
            data, sizes = payloads.data[rows], payloads.sizes[rows]
            self._departures.point(data, sizes)
            stride = data.shape[1]
            equal = stride if (sizes[:-1] == stride).all() else 0
            self._transmit((ip, port), len(sizes), equal, tos)

    def _marked(self, first: int, count: int) -> npt.NDArray[np.bool_] | None:
        """Return which messages were marked; None where none is, or no marks are read."""
        if self._marks is None:
            return None
        some = slice(first, count)
        known = self._arrivals.messages["control size"][some] == _RECEIVED_TOS[0]
        self._arrivals.messages["control size"] = _RECEIVED_TOS[0]
        marked: npt.NDArray[np.bool_] = known & (
            self._marks[some, _RECEIVED_TOS[1]] & ECN_MARKED == ECN_MARKED
        )
        return marked if marked.any() else None

    def _read_marks(self) -> None:
        """Let the kernel say of each packet that arrives whether it was marked."""
        self._socket.setsockopt(socket.IPPROTO_IP, _IP_RECVTOS, 1)
        self._marks = np.zeros((BATCH, _RECEIVED_TOS[0]), np.uint8)
        rows = np.arange(BATCH, dtype=np.uint64) * np.uint64(_RECEIVED_TOS[0])
        self._arrivals.messages["control"] = np.uint64(self._marks.ctypes.data) + rows
        self._arrivals.messages["control size"] = _RECEIVED_TOS[0]

    def _exchange(self, ordinary: OrdinaryResults) -> tuple[int, int]:
        """Let the kernel exchange packets; return the number of the last ones, and of those it
        took."""
        record, name = ordinary.results.address, _name(*ordinary.peer)
        arrivals = Arrivals(self._arrivals.address, self._data, self._names, self._arrivals.lengths)
        trains = self._trains.of(ordinary.results.answer_size, self._segments)
        self._set_tos(0)
        place = (record, name, self.fileno(), arrivals, trains)
        times = (ordinary.files(self.fileno()), ordinary.now(), ordinary.until())
        outcome = Outcome(*exchange(*place, *times))
        if outcome.sent < outcome.answers:
            some = self._departures.vectors[outcome.sent : outcome.answers].copy()
            self._departures.vectors[: len(some)] = some
            self._transmit(ordinary.peer, len(some), outcome.size, 0)
        return outcome.arrived, outcome.taken

    def _peer(self, name: int) -> tuple[str, int]:
        if name not in self._peers:
            _, port, address = struct.unpack("!HH4s", struct.pack("=Q", name))
            self._peers[name] = socket.inet_ntoa(address), port
        return self._peers[name]

    def _set_tos(self, tos: int) -> None:
        if tos != self._tos:
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
            # Linux takes a priority from the mark: 0x28 waits behind all else in pfifo_fast
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0)
            self._tos = tos
            if tos & ECN_MARKED and self._marks is None:  # who says that he heeds them
                self._read_marks()

    def _send_one(self, ip: str, port: int, payloads: Payloads) -> None:
        try:
            self._socket.sendto(payloads[0], (ip, port))
        except OSError:
            self.unsent += 1

    def _transmit(self, peer: tuple[str, int], count: int, size: int, tos: int) -> None:
        """Send the first `count` departures.

        size: the bytes of each, of which the last may have fewer; 0 where they differ.
        """
        self._set_tos(tos)
        name = _name(*peer)
        if self._segments and 0 < size <= _MOST_BYTES and self._send_trains(name, count, size):
            return
        messages = self._departures.messages
        messages["name"], messages["name size"] = name.ctypes.data, _NAME
        first = 0
        while first < count:
            sent = self._send_messages(self._departures, first, count)
            self.unsent += sent == 0
            first += max(sent, 1)

    def _send_trains(self, name: npt.NDArray[np.uint64], count: int, size: int) -> bool:
        """Send with GSO; return False, with nothing sent, where the kernel refuses."""
        trains, lengths = self._trains, self._trains.couple(name, count, size)
        first = 0
        while first < len(lengths):
            sent = self._send_messages(trains, first, len(lengths))
            if sent == 0:
                if first == 0 and ctypes.get_errno() in _NOT_SEGMENTED:
                    self._segments = False
                    return False
                self.unsent += lengths[first]
            first += max(sent, 1)
        return True

    def _send_messages(self, messages: "_Messages | _Trains", first: int, end: int) -> int:
        """Send messages `first` to `end` - 1; return how many were, 0 if the first was refused."""
        address = messages.address + first * _MESSAGE.itemsize
        return max(int(_libc.sendmmsg(self.fileno(), address, end - first, 0)), 0)


class _Messages:
    """Structures for the system calls for many datagrams, one part each.

    vectors: uint64[count, 2], address and bytes of each. lengths: uint32[count], a view.
    """

    def __init__(self, count: int) -> None:
        self.vectors = np.zeros((count, 2), np.uint64)
        self.messages: npt.NDArray[Any] = np.zeros(count, _MESSAGE)
        places = np.arange(count, dtype=np.uint64) * np.uint64(_VECTOR)
        self.messages["vectors"] = np.uint64(self.vectors.ctypes.data) + places
        self.messages["vector count"] = 1
        self.lengths = self.messages["length"]
        self.address = self.messages.ctypes.data

    def point(self, data: npt.NDArray[np.uint8], sizes: npt.NDArray[Any]) -> None:
        """Let the first messages be the rows of `data`, which must live as long."""
        assert data.strides[1] == 1, "the bytes of a payload lie side by side"
        rows = np.arange(len(sizes), dtype=np.uint64) * np.uint64(data.strides[0])
        self.vectors[: len(sizes), 0] = np.uint64(data.ctypes.data) + rows
        self.vectors[: len(sizes), 1] = sizes


class _Trains:
    """Messages that consist of many datagrams of equal size each, for GSO: those of `cars`."""

    def __init__(self, cars: _Messages) -> None:
        self._cars = cars
        self._messages = np.zeros(len(cars.vectors), _MESSAGE)
        self._words = self._messages.view(np.int64).reshape(len(self._messages), -1)
        self.address = self._messages.ctypes.data
        self._control = np.zeros(_CONTROL.size, np.uint8)
        self._messages["control"] = self._control.ctypes.data
        self._messages["control size"] = _CONTROL.size
        self._messages["name size"] = _NAME

    def couple(self, name: npt.NDArray[np.uint64], count: int, size: int) -> list[int]:
        """Make trains of the first `count` datagrams, to the peer of that name; return the number
        of datagrams of each."""
        longest = self._prepare(size)
        starts = range(0, count, longest)
        lengths = [min(longest, count - start) for start in starts]
        some = self._messages[: len(starts)]
        some["name"] = name.ctypes.data
        some["vectors"] = self._cars.vectors.ctypes.data + _VECTOR * np.array(starts)
        some["vector count"] = lengths
        return lengths

    def of(self, size: int, segmented: bool) -> Trains:
        """Return the structures for a kernel that sends datagrams of this size each."""
        longest = self._prepare(size) if segmented and size <= _MOST_BYTES else 0
        return Trains(self._words, self._cars.vectors, longest)

    def _prepare(self, size: int) -> int:
        """Set the size of each datagram; return the most in a train."""
        header = _CONTROL_LENGTH, socket.IPPROTO_UDP, _UDP_SEGMENT, size
        _CONTROL.pack_into(self._control.data, 0, *header)
        return min(_MOST_SEGMENTS, _MOST_BYTES // size)


def load_kernel(results: WorkerRecord) -> None:
    """Load the compiled kernel that exchanges ordinary packets, at a socket that gets none."""
    ordinary = OrdinaryResults(results, ("127.0.0.1", 0), lambda: 0)
    with contextlib.closing(DatagramSocket("0.0.0.0", 0, ordinary)) as opened:
        opened.receive(lambda ip, port, payloads: None)


@functools.cache
def _name(ip: str, port: int) -> npt.NDArray[np.uint64]:
    """Return a peer's struct sockaddr_in, uint64[2]: family, port and address, and zero."""
    family, place = struct.pack("=H", socket.AF_INET), struct.pack("!H", port)
    return np.frombuffer(family + place + socket.inet_aton(ip) + bytes(8), np.uint64)


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
