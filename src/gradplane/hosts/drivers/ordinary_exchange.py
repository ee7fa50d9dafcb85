"""A switch worker's exchange of ordinary packets with its switch: a loop that needs no Python.

It takes results that arrive (fast_results.py), sends what answers them and waits for more, until
there is something for Python: another packet, a file with data to read, a timer, an error.

The first results wake it while the switch still sends the others. As long as many are to come, it
lets some gather, so that both sides have less to do for each.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from gradplane._kernels import njit
from gradplane.hosts.protocols.fast_results import many_left, take_batch

POLLED = np.dtype([("descriptor", np.int32), ("events", np.int16), ("returned", np.int16)])
"""struct pollfd."""
READABLE = 1  # POLLIN

NEVER = 1 << 62
"""A time that does not come, ns."""

_GATHERING = 200_000  # ns; a quarter of what a window of 128 packets takes in the switch
_MONOTONIC = 1
_DONTWAIT = 0x40
_NAME, _VECTORS, _COUNT = 0, 2, 3  # words of a struct mmsghdr
_VECTOR = 16  # bytes of a struct iovec

_recvmmsg: Any = types.ExternalFunction(
    "recvmmsg", types.int32(types.int32, types.int64, types.uint32, types.int32, types.int64)
)
_sendmmsg: Any = types.ExternalFunction(
    "sendmmsg", types.int32(types.int32, types.int64, types.uint32, types.int32)
)
_ppoll: Any = types.ExternalFunction(
    "ppoll", types.int32(types.int64, types.uint64, types.int64, types.int64)
)
_nanosleep: Any = types.ExternalFunction("nanosleep", types.int32(types.int64, types.int64))
_clock_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.int64))


class Arrivals(NamedTuple):
    """Where recvmmsg puts packets: `messages` is the address of their structures, of which
    sizes, uint32[n], are the lengths. data, names: as take_batch()."""

    messages: int
    data: npt.NDArray[np.uint8]
    names: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.uint32]


class Trains(NamedTuple):
    """Packets for sendmmsg with GSO: `words`, int64[n, 8], structures of messages of at most
    `longest` packets each; 0: without GSO Python has to send. vectors: uint64[n, 2], the address
    and bytes of each packet."""

    words: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.uint64]
    longest: int


class Outcome(NamedTuple):
    """The end of the exchange: of its last batch of `arrived` packets the first `taken` are done
    with, and of the `answers` to them, of `size` bytes each, the first `sent` are sent."""

    arrived: int
    taken: int
    answers: int
    sent: int
    size: int


@njit(cache=True, nogil=True)
def exchange(record, peer, descriptor, arrivals, trains, files, now, until):  # type: ignore[no-untyped-def]
    """Exchange packets with `peer` on a socket that is readable; return an Outcome's fields.

    record: the address of the worker's record. peer: uint64[2], a sockaddr_in. files: POLLED[n],
    the files to wait for; the first is the socket's. now, until: the time, and that of the next
    timer.
    """
    clock = np.empty(2, np.int64)
    origin = now - _monotonic(clock)
    while True:
        count = np.int64(_recvmmsg(descriptor, arrivals.messages, len(arrivals.data), _DONTWAIT, 0))
        if count <= 0:  # nothing left, or an error that the network reported
            return 0, 0, 0, 0, 0
        now = origin + _monotonic(clock)
        packets = arrivals.data, arrivals.names, arrivals.sizes
        taken, answers, size = take_batch(record, peer[0], *packets, count, now, trains.vectors)
        sent = _send(descriptor, peer, trains, answers)
        if taken < count or sent < answers or not _wait(files, until - now, clock):
            return count, taken, answers, sent, size
        if many_left(record):
            _pause(_GATHERING, clock)


@njit(cache=True, nogil=True)
def _monotonic(clock):  # type: ignore[no-untyped-def]
    """Return the time of the monotonic clock."""
    _clock_gettime(_MONOTONIC, np.int64(clock.ctypes.data))
    return clock[0] * 1_000_000_000 + clock[1]


@njit(cache=True, nogil=True)
def _send(descriptor, peer, trains, answers):  # type: ignore[no-untyped-def]
    """Send the first vectors; return how many were sent."""
    if answers == 0 or trains.longest == 0:
        return 0
    count = 0
    for first in range(0, answers, trains.longest):
        words = trains.words[count]
        words[_NAME] = peer.ctypes.data
        words[_VECTORS] = trains.vectors.ctypes.data + _VECTOR * first
        words[_COUNT] = min(trains.longest, answers - first)
        count += 1
    sent = _sendmmsg(descriptor, np.int64(trains.words.ctypes.data), count, 0)
    return min(max(np.int64(sent), 0) * trains.longest, answers)


@njit(cache=True, nogil=True)
def _pause(ns, clock):  # type: ignore[no-untyped-def]
    clock[0], clock[1] = 0, ns
    _nanosleep(np.int64(clock.ctypes.data), 0)


@njit(cache=True, nogil=True)
def _wait(files, patience, clock):  # type: ignore[no-untyped-def]
    """Wait for so many ns; return whether only the first file is readable."""
    if patience <= 0:
        return False
    clock[0], clock[1] = patience // 1_000_000_000, patience % 1_000_000_000
    where = np.int64(files.ctypes.data), np.uint64(len(files)), np.int64(clock.ctypes.data)
    return _ppoll(*where, 0) == 1 and files[0]["returned"] == READABLE


def polled(descriptors: list[int]) -> npt.NDArray[Any]:
    """Return the structures to wait for files to become readable."""
    files = np.zeros(len(descriptors), POLLED)
    files["descriptor"], files["events"] = descriptors, READABLE
    return files
