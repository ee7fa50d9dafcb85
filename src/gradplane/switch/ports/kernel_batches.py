"""Packets in memory in the form of the system calls for many at once: recvmmsg(2), sendmmsg(2).

VLAN tags are restored: the kernel removes the outermost tag of a packet that arrives and reports it
beside the packet (linux/if_packet.h, struct tpacket_auxdata).

What is done for each packet of a batch, beside the system calls, is machine code: NumPy would pass
over the batch a dozen times, and its start-up costs as much as a small batch.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.switch.jit.llvm_text import Function, Module, Operand
from gradplane.switch.jit.native_code import Native
from gradplane.switch.ports.offload import NEEDS_CHECKSUM, VNET_HEADER, complete_open

# Sizes and offsets of the kernel's structs (linux/socket.h, bits/types/struct_iovec.h).
MESSAGE, VECTOR = 64, 16
MESSAGE_CONTROL_SIZE, MESSAGE_LENGTH = 40, 56

BLOCK = ("messages", "data", "starts", "ends", "controls", "slots", "first", "count", "marked")
"""The block of 8-byte words that `receive` works on. It fills the slots from `first` on, and sets
`count` to how many it filled, or to a negative error number if the call failed, and `marked` to
nonzero if one of their headers or control messages has its mark."""


@cache
def batches(
    slot: int, area: int, header: int, mark: int, control: int, status: int, status_mark: int
) -> Native:
    """Compile the two functions of a port's batches.

    receive(ptr block, i64 descriptor, i64 flags): calls recvmmsg and finds where each packet is.

    put(ptr vectors, ptr rows, ptr order, i64 count, i64 data, ptr mixed): writes what sendmmsg
    sends, in the order of `order` or, if that is null, of the rows (port, end, cause). Sets the
    word `mixed` to nonzero if the ports differ.

    slot, area: bytes of a message's two parts; the areas follow all slots. header: bytes before a
    packet, `mark` a mask of the first. control: bytes of a control message, `status` the offset of
    a word in it and `status_mark` a mask of that word.
    """
    module = Module()
    _Receive(module, slot, area, header, control).write(mark, status, status_mark)
    _put(module)
    return Native(module.text())


class _Receive:
    def __init__(self, module: Module, slot: int, area: int, header: int, control: int) -> None:
        self.slot, self.area, self.header, self.control = slot, area, header, control
        params = [("ptr", "%block"), ("i64", "%descriptor"), ("i64", "%flags")]
        self.f = module.function("receive", "void", params, exported=True)

    def write(self, mark: int, status: int, status_mark: int) -> None:
        f = self.f
        messages, data, starts, ends, controls = (self._get("ptr", name) for name in BLOCK[:5])
        slots, first = self._get("i64", "slots"), self._get("i64", "first")
        count = self._received(messages, slots, first)
        marks = f.variable("i64", 0)
        with f.count(count) as arrival:
            i = f.binary("add", "i64", first, arrival)
            message = f.add(messages, f.binary("mul", "i64", i, MESSAGE))
            length = f.resize(f.load("i32", f.add(message, MESSAGE_LENGTH)), 32, 64)
            begin = f.variable("i64", f.binary("mul", "i64", i, self.slot))
            slot = f.add(data, begin.get())
            with f.when(f.compare("ugt", "i64", length, self.slot)):
                at = f.binary("mul", "i64", slots, self.slot)
                begin.set(f.binary("add", "i64", at, f.binary("mul", "i64", i, self.area)))
                f.copy(f.add(data, begin.get()), slot, self.slot)
            start = f.binary("add", "i64", begin.get(), self.header)
            f.store("i64", start, f.item(starts, "i64", i))
            least = (("i64", length), ("i64", self.header))
            size = f.intrinsic("llvm.umax.i64", "i64", *least)
            f.store("i64", f.binary("add", "i64", begin.get(), size), f.item(ends, "i64", i))
            flags = f.resize(f.load("i8", slot), 8, 64)
            reported = f.add(controls, f.binary("mul", "i64", i, self.control))
            word = f.resize(f.load("i32", f.add(reported, status)), 32, 64)
            for value, mask in ((flags, mark), (word, status_mark)):
                found = f.binary("and", "i64", value, mask)
                marks.set(f.binary("or", "i64", marks.get(), found))
            f.store("i64", self.control, f.add(message, MESSAGE_CONTROL_SIZE))
        self._set("marked", marks.get())
        f.ret()

    def _received(self, messages: Operand, slots: Operand, first: Operand) -> Operand:
        """Receive messages and return their number; leave the function if the call failed."""
        f = self.f
        messages = f.add(messages, f.binary("mul", "i64", first, MESSAGE))
        slots = f.binary("sub", "i64", slots, first)
        descriptor, flags = (f.resize(n, 64, 32) for n in ("%descriptor", "%flags"))
        args = (("i32", descriptor), ("ptr", messages), ("i32", f.resize(slots, 64, 32)),
                ("i32", flags), ("ptr", "null"))  # fmt: skip
        result = f.intrinsic("recvmmsg", "i32", *args)
        with f.when(f.compare("slt", "i32", result, 0)):
            error = f.load("i32", f.intrinsic("__errno_location", "ptr"))
            self._set("count", f.resize(f.op(f"sub i32 0, {error}"), 32, 64, True))
            f.ret()
        count = f.resize(result, 32, 64)
        self._set("count", count)
        return count

    def _get(self, kind: str, name: str) -> Operand:
        return self.f.load(kind, self.f.add("%block", 8 * BLOCK.index(name)))

    def _set(self, name: str, value: Operand) -> None:
        self.f.store("i64", value, self.f.add("%block", 8 * BLOCK.index(name)))


def _put(module: Module) -> None:
    params = [("ptr", "%vectors"), ("ptr", "%rows"), ("ptr", "%order"), ("i64", "%count"),
              ("i64", "%data"), ("ptr", "%mixed")]  # fmt: skip
    f = module.function("put", "void", params, exported=True)
    unordered = f.compare("eq", "ptr", "%order", "null")
    first, mixed = f.load("i64", "%rows"), f.variable("i64", 0)
    with f.count("%count") as i:
        number = f.variable("i64", i)
        with f.unless(unordered):
            number.set(f.load("i64", f.item("%order", "i64", i)))
        start = f.variable("i64", 0)
        with f.when(f.compare("ne", "i64", number.get(), 0)):
            start.set(_end(f, f.binary("sub", "i64", number.get(), 1)))
        vector = f.add("%vectors", f.binary("mul", "i64", i, VECTOR))
        size = f.binary("sub", "i64", _end(f, number.get()), start.get())
        f.store("i64", f.binary("add", "i64", "%data", start.get()), vector)
        f.store("i64", size, f.add(vector, 8))
        port = f.load("i64", f.item("%rows", "[3 x i64]", i))
        other = f.binary("xor", "i64", port, first)
        mixed.set(f.binary("or", "i64", mixed.get(), other))
    f.store("i64", mixed.get(), "%mixed")
    f.ret()


def _end(f: Function, row: Operand) -> Operand:
    return f.load("i64", f.item(f.item("%rows", "[3 x i64]", row), "i64", 1))


STATUS_AT = 16
AUXDATA = np.dtype(  # the control message
    {
        "names": ["status", "tci", "tpid"],
        "formats": [np.uint32, np.uint16, np.uint16],
        "offsets": [STATUS_AT, 32, 34],
        "itemsize": 40,
    }
)
HAS_TAG, _HAS_TPID = 1 << 4, 1 << 6
_DEFAULT_TPID = 0x8100
_ADDRESSES = np.arange(12)  # bytes of the MAC addresses, before the tag
_TAG = np.arange(4)


def restore_tags(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], reported: npt.NDArray[Any]
) -> None:
    """Insert the removed tags in packets that begin at `starts` in `data`; `reported`: AUXDATA, one
    a packet. The packets grow by four bytes to the front.
    """
    tagged = np.flatnonzero(reported["status"] & HAS_TAG)
    if not len(tagged):
        return
    reported, at = reported[tagged], starts[tagged, None]
    data[at - 4 + _ADDRESSES] = data[at + _ADDRESSES]
    tags = np.empty((len(tagged), 2), dtype=">u2")
    tags[:, 0] = np.where(reported["status"] & _HAS_TPID, reported["tpid"], _DEFAULT_TPID)
    tags[:, 1] = reported["tci"]
    data[at + len(_ADDRESSES) - 4 + _TAG] = tags.view(np.uint8)
    starts[tagged] -= 4


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
