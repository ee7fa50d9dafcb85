"""Packets in memory in the form of the system calls for many at once: recvmmsg(2), sendmmsg(2)."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.switch.jit.native_code import Native
from gradplane.switch.ports.batch_kernels import BLOCK, MESSAGE, batches
from gradplane.switch.ports.offload import NEEDS_CHECKSUM, VNET_HEADER, complete_open
from gradplane.switch.ports.vlan import AUXDATA, HAS_TAG, STATUS_AT, restore_tags

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

BATCH = 1024  # packets read with one system call: its maximum
MAX_PACKET = 1 << 16
# Short packets lie close together, since memory is slow by the page. The end of a longer packet
# goes to a separate area, and its beginning is copied from the slot to stand before that.
_SLOT = 256
_AREA = MAX_PACKET + 2 * _SLOT
_FIRST, _COUNT, _MARKED = (BLOCK.index(name) for name in ("first", "count", "marked"))

_VECTOR = np.dtype([("base", np.uint64), ("length", np.uint64)])  # struct iovec
_MESSAGE = np.dtype(  # struct mmsghdr
    {
        "names": ["vectors", "vector count", "control", "control size", "length"],
        "formats": [np.uint64, np.uint64, np.uint64, np.uint64, np.uint32],
        "offsets": [16, 24, 32, 40, 56],
        "itemsize": MESSAGE,
    }
)
_libc = ctypes.CDLL(None, use_errno=True)
_ARGUMENTS = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
_libc.sendmmsg.argtypes = _ARGUMENTS


class Arrivals:
    """Packets that arrived, `count` of them: packet i is data[starts[i]:ends[i]].

    Before each packet is its virtio_net_hdr; controls[i] holds the kernel's AUXDATA. `marked`: True
    if, of those received last, a checksum is open or a tag was removed.
    """

    def __init__(self, slots: int = BATCH) -> None:
        # Allocated with mmap, so that pages that no packet needed take no memory.
        self._memory = memoryview(mmap.mmap(-1, slots * (_SLOT + _AREA)))
        self.data: Bytes = np.frombuffer(self._memory, dtype=np.uint8)
        self._slots = self.data[: slots * _SLOT].reshape(slots, _SLOT)
        self._vectors, self._messages = _messages(slots, 2)
        first = self.data.ctypes.data
        behind = first + slots * _SLOT + _SLOT
        self._vectors["base"][:, 0] = first + np.arange(slots, dtype=np.uint64) * _SLOT
        self._vectors["base"][:, 1] = behind + np.arange(slots, dtype=np.uint64) * _AREA
        self._vectors["length"] = _SLOT, MAX_PACKET + VNET_HEADER.size
        self.controls = np.zeros(slots, dtype=AUXDATA)
        controls = self.controls.ctypes.data + np.arange(slots) * AUXDATA.itemsize
        self._messages["control"] = controls
        self._messages["control size"] = AUXDATA.itemsize
        self._starts, self._ends = np.zeros((2, slots), dtype=np.int64)
        arrays = (self._messages, self.data, self._starts, self._ends, self.controls)
        block = [*(array.ctypes.data for array in arrays), slots, 0, 0, 0]
        self._block = memoryview(np.array(block, dtype=np.int64))  # type: ignore[arg-type]
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._block))
        self._receive = _native().function("receive", ctypes.c_void_p, *[ctypes.c_int64] * 2)
        self.clear()

    @property
    def full(self) -> bool:
        """True if there is no room for another packet."""
        return self.count == len(self._slots)

    def clear(self) -> None:
        """Forget all packets."""
        self.count = self._first = 0
        self.marked = False

    def receive(self, descriptor: int, flags: int) -> None:
        """Take the packets that wait at a socket, as far as there is room, behind those here.

        Raises OSError, with EAGAIN where there are none.
        """
        self._first, self.marked = self.count, False
        self._block[_FIRST] = self.count
        self._receive(self._address, descriptor, flags)
        count = self._block[_COUNT]
        if count < 0:
            raise OSError(-count, os.strerror(-count))
        self.count += count
        self.marked = bool(self._block[_MARKED])

    @property
    def starts(self) -> Ints:
        """Where each packet begins in `data`."""
        return self._starts[: self.count]

    @property
    def ends(self) -> Ints:
        """Where each packet ends in `data`."""
        return self._ends[: self.count]

    def first_bytes(self) -> Bytes:
        """Return the first byte of each header."""
        return self._slots[: self.count, 0]

    def restore(self) -> None:
        """Complete open checksums and insert removed tags in the packets received last."""
        if not self.marked:
            return
        last = slice(self._first, self.count)
        for i in np.flatnonzero(self.first_bytes()[last] & NEEDS_CHECKSUM).tolist():
            complete_open(self[self._first + i])
        restore_tags(self.data, self._starts[last], self.controls[last])

    def __getitem__(self, i: int) -> memoryview:
        """Return header and packet of arrival i."""
        return self._memory[self.starts[i] - VNET_HEADER.size : self.ends[i]]


class Departures:
    """Packets to send, of any number."""

    def __init__(self) -> None:
        self._allocate(BATCH)
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self._put = _native().function("put", *[pointer] * 3, number, number, pointer)
        self._mixed = ctypes.c_int64()

    def put(self, rows: Ints, data: Bytes, order: Ints | None = None) -> bool:
        """Set the packets to send, at least one; return True if they are for several ports.

        Packet i ends in `data` at its row's end (port, end, cause) and begins where the one before
        it ends; they are sent in this order, or in that of the numbers in `order`. `data` must live
        until they are sent.
        """
        if len(rows) > len(self._vectors):
            self._allocate(2 * len(rows))
        numbers = None if order is None else order.ctypes.data
        arrays = self._places[0], rows.ctypes.data, numbers
        self._put(*arrays, len(rows), data.ctypes.data, ctypes.byref(self._mixed))
        return self._mixed.value != 0

    def _allocate(self, count: int) -> None:
        self._vectors, self._messages = _messages(count, 1)
        # Kept, as NumPy takes longer to find an array's address than the rest of a call.
        self._places = self._vectors.ctypes.data, self._messages.ctypes.data

    def length(self, i: int) -> int:
        """Return the bytes of packet i."""
        return int(self._vectors["length"][i, 0])

    def send(self, descriptor: int, first: int, end: int) -> int:
        """Send packets first to end - 1, in order, and return how many were sent.

        Raises OSError if the first could not be sent.
        """
        address = self._places[1] + first * MESSAGE
        count = _libc.sendmmsg(descriptor, address, end - first, 0)
        if count < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return int(count)


def _native() -> Native:
    return batches(
        slot=_SLOT, area=_AREA, header=VNET_HEADER.size, mark=NEEDS_CHECKSUM,
        control=AUXDATA.itemsize, status=STATUS_AT, status_mark=HAS_TAG,
    )  # fmt: skip


def _messages(count: int, parts: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Make messages, and the vectors of each."""
    vectors, messages = np.zeros((count, parts), dtype=_VECTOR), np.zeros(count, dtype=_MESSAGE)
    step = np.uint64(parts * _VECTOR.itemsize)
    messages["vectors"] = np.uint64(vectors.ctypes.data) + np.arange(count, dtype=np.uint64) * step
    messages["vector count"] = parts
    return vectors, messages
