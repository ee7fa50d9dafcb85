"""Packets in memory as the kernel wants them for many at once: recvmmsg(2) and sendmmsg(2)."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

BATCH = 1024  # packets read with one system call: the most that it takes
MAX_PACKET = 1 << 16
# Short packets lie close together, for memory is slow by the page. Of a longer one, what does not
# fit its slot goes to an area of its own, and what did is copied to stand before that.
_SLOT = 256
_AREA = MAX_PACKET + 2 * _SLOT

NO_CONTROL = np.dtype([])
_VECTOR = np.dtype([("base", np.uint64), ("length", np.uint64)])  # struct iovec
_MESSAGE = np.dtype(  # struct mmsghdr
    {
        "names": ["vectors", "vector count", "control", "control size", "length"],
        "formats": [np.uint64, np.uint64, np.uint64, np.uint64, np.uint32],
        "offsets": [16, 24, 32, 40, 56],
        "itemsize": 64,
    }
)
_libc = ctypes.CDLL(None, use_errno=True)
_ARGUMENTS = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
_libc.sendmmsg.argtypes = _ARGUMENTS
_libc.recvmmsg.argtypes = (*_ARGUMENTS, ctypes.c_void_p)


class Arrivals:
    """Packets that arrived together, `count` of them: packet i is data[starts[i]:ends[i]], and
    what the kernel said of it, `header` bytes, is before it; more of that, with a socket option,
    is in controls[i], a control message of type `control`."""

    def __init__(
        self, header: int = 0, control: np.dtype[Any] = NO_CONTROL, slots: int = BATCH
    ) -> None:
        self.count = 0
        self.starts: Ints = np.zeros(0, dtype=np.int64)
        self.ends = self.starts
        self._header = header
        # From mmap, so that pages which no packet ever needed take no memory.
        self._memory = memoryview(mmap.mmap(-1, slots * (_SLOT + _AREA)))
        self.data: Bytes = np.frombuffer(self._memory, dtype=np.uint8)
        split = slots * _SLOT
        self._slots = self.data[:split].reshape(slots, _SLOT)
        self._areas = self.data[split:].reshape(slots, _AREA)
        self._slot_starts = np.arange(slots, dtype=np.int64) * _SLOT
        self._area_starts = np.arange(slots, dtype=np.int64) * _AREA + split
        self._vectors, self._messages = _messages(slots, 2)
        self._vectors["base"][:, 0] = self.data.ctypes.data + self._slot_starts
        self._vectors["base"][:, 1] = self.data.ctypes.data + self._area_starts + _SLOT
        self._vectors["length"] = _SLOT, MAX_PACKET + header
        self.controls = np.zeros(slots, dtype=control)
        self._messages["control"] = self.controls.ctypes.data + np.arange(slots) * control.itemsize
        self._address = self._messages.ctypes.data
        self._lengths = self._messages["length"]

    def receive(self, descriptor: int, flags: int) -> None:
        """Take what waits at a socket. Raises OSError, EAGAIN where nothing does."""
        self.count = 0
        self._messages["control size"] = self.controls.itemsize
        count = _checked(_libc.recvmmsg(descriptor, self._address, len(self._slots), flags, None))
        lengths = self._lengths[:count]
        begins = self._slot_starts[:count]
        if count and lengths.max() > _SLOT:
            long = np.flatnonzero(lengths > _SLOT)
            self._areas[long, :_SLOT] = self._slots[long]
            begins = np.where(lengths > _SLOT, self._area_starts[:count], begins)
        self.ends = begins + np.maximum(lengths, self._header)
        self.starts = begins + self._header
        self.count = count

    def first_bytes(self) -> Bytes:
        """The first byte of each header."""
        return self._slots[: self.count, 0]

    def __getitem__(self, i: int) -> memoryview:
        """Header and packet of arrival i."""
        return self._memory[self.starts[i] - self._header : self.ends[i]]


class Departures:
    """Packets about to be sent, of any number."""

    def __init__(self) -> None:
        self._vectors, self._messages = _messages(BATCH, 1)

    def put(self, data: Bytes, starts: Ints, lengths: Ints) -> None:
        """Packet i is `lengths[i]` bytes of `data` from `starts[i]`; `data` must live until they
        are sent."""
        if len(starts) > len(self._vectors):
            self._vectors, self._messages = _messages(2 * len(starts), 1)
        self._vectors["base"][: len(starts), 0] = data.ctypes.data + starts
        self._vectors["length"][: len(starts), 0] = lengths

    def length(self, i: int) -> int:
        """Bytes of packet i."""
        return int(self._vectors["length"][i, 0])

    def send(self, descriptor: int, first: int, end: int) -> int:
        """Send packets first to end - 1, in order; how many were. Raises OSError if the first
        could not be."""
        address = self._messages.ctypes.data + first * _MESSAGE.itemsize
        return _checked(_libc.sendmmsg(descriptor, address, end - first, 0))


def _messages(count: int, parts: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Messages, and the vectors of each."""
    vectors, messages = np.zeros((count, parts), dtype=_VECTOR), np.zeros(count, dtype=_MESSAGE)
    step = np.uint64(parts * _VECTOR.itemsize)
    messages["vectors"] = np.uint64(vectors.ctypes.data) + np.arange(count, dtype=np.uint64) * step
    messages["vector count"] = parts
    return vectors, messages


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
