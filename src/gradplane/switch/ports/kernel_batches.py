"""Packets in memory as the kernel gives and takes many at once: in memory that it shares with this
process (packet(7), PACKET_RX_RING), and by system calls: recvmmsg(2), sendmmsg(2).

VLAN tags are restored: the kernel removes the outermost tag of a packet that arrives and reports it
beside the packet (linux/if_packet.h, struct tpacket_auxdata).

What is done for each packet of a batch, beside the system calls, is machine code: NumPy would pass
over the batch a dozen times, and its start-up costs as much as a small batch.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gradplane.switch.jit.llvm_text import Function, Module, Operand, Variable
from gradplane.switch.jit.native_code import Native
from gradplane.switch.ports.offload import NEEDS_CHECKSUM, VNET_HEADER, complete_open

# Sizes and offsets of the kernel's structs (linux/socket.h, bits/types/struct_iovec.h).
MESSAGE, VECTOR = 64, 16
MESSAGE_CONTROL_SIZE, MESSAGE_LENGTH = 40, 56

BLOCK = ("messages", "data", "starts", "ends", "controls", "slots", "first", "count", "marked")
"""The block of 8-byte words that `receive` works on. It fills the slots from `first` on, and sets
`count` to how many it filled, or to a negative error number if the call failed, and `marked` to
nonzero if one of their headers or control messages has its mark."""

RING = ("frames", "size", "number", "next", "status")
"""The block of 8-byte words of a ring: its address, the bytes and the number of its frames, which
is filled next, and the bits of the status of all that were taken since it was 0."""

# linux/if_packet.h: offsets in struct tpacket2_hdr, and bits of its status.
_FRAME_LENGTH, _FRAME_KEPT, _FRAME_PACKET, _FRAME_TAG = 4, 8, 12, 24
_FRAME_READY, _FRAME_COPIED, _FRAME_LOSING = 1 << 0, 1 << 1, 1 << 2


@cache
def batches(
    slot: int, area: int, header: int, mark: int, control: int, status: int, status_mark: int
) -> Native:
    """Compile the functions of a port's batches.

    receive(ptr block, i64 descriptor, i64 flags, i64 most): calls recvmmsg, for at most so many
    packets, and finds where each is.

    take(ptr block, ptr ring): does the same with the packets that wait in a ring, up to one that is
    longer than a frame.

    put(ptr vectors, ptr rows, ptr order, i64 count, i64 data, ptr mixed): writes what sendmmsg
    sends, in the order of `order` or, if that is null, of the rows (port, end, cause). Sets the
    word `mixed` to nonzero if the ports differ.

    slot, area: bytes of a message's two parts; the areas follow all slots. header: bytes before a
    packet, `mark` a mask of the first. control: bytes of a control message, `status` the offset of
    a word in it and `status_mark` a mask of that word.
    """
    module = Module()
    layout = _Layout(slot, area, header, mark, control, status, status_mark)
    _Receive(module, layout).write()
    _Take(module, layout).write()
    _put(module)
    return Native(module.text())


class _Layout(NamedTuple):
    """The numbers of `batches`."""

    slot: int
    area: int
    header: int
    mark: int
    control: int
    status: int
    status_mark: int


class _Block:
    """A function that fills slots of the block."""

    def __init__(
        self, module: Module, layout: _Layout, name: str, *params: tuple[str, str]
    ) -> None:
        self.layout = layout
        self.f = module.function(name, "void", [("ptr", "%block"), *params], exported=True)
        places = ("messages", "data", "starts", "ends", "controls")
        self.messages, self.data, self.starts, self.ends, self.controls = (
            self.get("ptr", name) for name in places
        )
        self.slots, self.first = self.get("i64", "slots"), self.get("i64", "first")
        self.marks = self.f.variable("i64", 0)

    def get(self, kind: str, name: str) -> Operand:
        return self.f.load(kind, self.f.add("%block", 8 * BLOCK.index(name)))

    def set(self, name: str, value: Operand) -> None:
        self.f.store("i64", value, self.f.add("%block", 8 * BLOCK.index(name)))

    def begin(self, i: Operand, length: Operand) -> tuple[Operand, Operand]:
        """Return where slot i begins in `data`, and where its packet of a length does."""
        f, layout = self.f, self.layout
        slot = f.binary("mul", "i64", i, layout.slot)
        areas = f.binary("mul", "i64", self.slots, layout.slot)
        area = f.binary("add", "i64", areas, f.binary("mul", "i64", i, layout.area))
        long = f.compare("ugt", "i64", length, layout.slot)
        return slot, f.select(long, "i64", area, slot)

    def place(self, i: Operand, begin: Operand, length: Operand) -> None:
        """Note where packet i is, which has `length` bytes with its header."""
        f, header = self.f, self.layout.header
        f.store("i64", f.binary("add", "i64", begin, header), f.item(self.starts, "i64", i))
        size = f.intrinsic("llvm.umax.i64", "i64", ("i64", length), ("i64", header))
        f.store("i64", f.binary("add", "i64", begin, size), f.item(self.ends, "i64", i))
        for kind, address, mask in (
            ("i8", f.add(self.data, begin), self.layout.mark),
            ("i32", f.add(self.control(i), self.layout.status), self.layout.status_mark),
        ):
            word = f.resize(f.load(kind, address), int(kind[1:]), 64)
            found = f.binary("and", "i64", word, mask)
            self.marks.set(f.binary("or", "i64", self.marks.get(), found))

    def control(self, i: Operand) -> Operand:
        return self.f.add(self.controls, self.f.binary("mul", "i64", i, self.layout.control))

    def end(self, count: Operand) -> None:
        self.set("marked", self.marks.get())
        self.set("count", count)
        self.f.ret()


class _Receive(_Block):
    def __init__(self, module: Module, layout: _Layout) -> None:
        params = [("i64", name) for name in ("%descriptor", "%flags", "%most")]
        super().__init__(module, layout, "receive", *params)

    def write(self) -> None:
        f, layout = self.f, self.layout
        count = self._received()
        with f.count(count) as arrival:
            i = f.binary("add", "i64", self.first, arrival)
            message = f.add(self.messages, f.binary("mul", "i64", i, MESSAGE))
            length = f.resize(f.load("i32", f.add(message, MESSAGE_LENGTH)), 32, 64)
            slot, begin = self.begin(i, length)
            with f.when(f.compare("ne", "i64", slot, begin)):
                f.copy(f.add(self.data, begin), f.add(self.data, slot), layout.slot)
            self.place(i, begin, length)
            f.store("i64", layout.control, f.add(message, MESSAGE_CONTROL_SIZE))
        self.end(count)

    def _received(self) -> Operand:
        """Receive messages and return their number; leave the function if the call failed."""
        f = self.f
        messages = f.add(self.messages, f.binary("mul", "i64", self.first, MESSAGE))
        room = ("i64", f.binary("sub", "i64", self.slots, self.first))
        most = f.intrinsic("llvm.umin.i64", "i64", room, ("i64", "%most"))
        descriptor, flags, most = (f.resize(n, 64, 32) for n in ("%descriptor", "%flags", most))
        args = (("i32", descriptor), ("ptr", messages), ("i32", most), ("i32", flags),
                ("ptr", "null"))  # fmt: skip
        result = f.intrinsic("recvmmsg", "i32", *args)
        with f.when(f.compare("slt", "i32", result, 0)):
            error = f.load("i32", f.intrinsic("__errno_location", "ptr"))
            self.set("count", f.resize(f.op(f"sub i32 0, {error}"), 32, 64, True))
            f.ret()
        return f.resize(result, 32, 64)


class _Take(_Block):
    def __init__(self, module: Module, layout: _Layout) -> None:
        super().__init__(module, layout, "take", ("ptr", "%ring"))

    def write(self) -> None:
        f = self.f
        frames, size, number = self._ring("ptr", "frames"), *map(self._word, ("size", "number"))
        i, at = f.variable("i64", self.first), f.variable("i64", self._word("next"))
        seen = f.variable("i64", self._word("status"))
        with f.loop() as end:
            frame = f.add(frames, f.binary("mul", "i64", at.get(), size))
            status = f.op(f"load atomic i32, ptr {frame} acquire, align 4")
            ready, room = f.binary("and", "i32", status, _FRAME_READY), f.label()
            f.branch(f.compare("ne", "i32", ready, 0), room, end)
            f.at(room)
            go_on = f.label()
            f.branch(f.compare("ult", "i64", i.get(), self.slots), go_on, end)
            f.at(go_on)
            copied = f.binary("and", "i32", status, _FRAME_COPIED)
            self._copy(i, frame, status)
            f.do(f"store atomic i32 0, ptr {frame} release, align 4")
            behind = f.binary("add", "i64", at.get(), 1)
            at.set(f.select(f.compare("eq", "i64", behind, number), "i64", 0, behind))
            seen.set(f.binary("or", "i64", seen.get(), f.resize(status, 32, 64)))
            with f.when(f.compare("ne", "i32", copied, 0)):
                f.go(end)
        self._set_ring("next", at.get())
        self._set_ring("status", seen.get())
        self.end(f.binary("sub", "i64", i.get(), self.first))

    def _copy(self, i: Variable, frame: Operand, status: Operand) -> None:
        """Copy a packet that is whole, with its header, to slot i."""
        f, header = self.f, self.layout.header
        whole, kept = (f.load("i32", f.add(frame, at)) for at in (_FRAME_LENGTH, _FRAME_KEPT))
        with f.when(f.compare("eq", "i32", whole, kept)):
            length = f.binary("add", "i64", f.resize(kept, 32, 64), header)
            _, begin = self.begin(i.get(), length)
            packet = f.resize(f.load("i16", f.add(frame, _FRAME_PACKET)), 16, 64)
            source = f.add(frame, f.binary("sub", "i64", packet, header))
            f.copy(f.add(self.data, begin), source, length)
            control = self.control(i.get())
            f.store("i32", status, f.add(control, self.layout.status))
            f.store("i32", f.load("i32", f.add(frame, _FRAME_TAG)), f.add(control, TAG_AT))
            self.place(i.get(), begin, length)
            i.increase()

    def _word(self, name: str) -> Operand:
        return self._ring("i64", name)

    def _ring(self, kind: str, name: str) -> Operand:
        return self.f.load(kind, self.f.add("%ring", 8 * RING.index(name)))

    def _set_ring(self, name: str, value: Operand | int) -> None:
        self.f.store("i64", value, self.f.add("%ring", 8 * RING.index(name)))


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


STATUS_AT, TAG_AT = 16, 32
AUXDATA = np.dtype(  # the control message
    {
        "names": ["status", "tci", "tpid"],
        "formats": [np.uint32, np.uint16, np.uint16],
        "offsets": [STATUS_AT, TAG_AT, TAG_AT + 2],
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
# linux/if_packet.h
_SOL_PACKET = 263
_PACKET_RX_RING, _PACKET_COPY_THRESH, _PACKET_VERSION, _TPACKET_V2 = 5, 7, 10, 1
# A ring's memory, the least that the kernel allots at once, a frame's bytes before the packet.
_RING, _RING_BLOCK, _FRAME_HEAD = 4 << 20, 64 << 10, 128
_LARGEST_FRAME = 16 << 10
_STATUS = RING.index("status")
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
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self._receive = _native().function("receive", pointer, number, number, number)
        self._take = _native().function("take", pointer, pointer)
        self.clear()

    @property
    def full(self) -> bool:
        """True if there is no room for another packet."""
        return self.count == len(self._slots)

    def clear(self) -> None:
        """Forget all packets."""
        self.count = self._first = 0
        self.marked = False

    def receive(self, descriptor: int, flags: int, most: int = BATCH) -> None:
        """Take packets that wait at a socket, as far as there is room, behind those here.

        Raises OSError, with EAGAIN where there are none.
        """
        self._fill(self._receive, descriptor, flags, most)

    def take(self, ring: Ring) -> None:
        """Take the packets that wait in a ring, as far as there is room, behind those here."""
        self._fill(self._take, ring.address)

    def _fill(self, function: Callable[..., None], *arguments: int) -> None:
        self._first = self._block[_FIRST] = self.count
        function(self._address, *arguments)
        count = self._block[_COUNT]
        self.marked = count > 0 and bool(self._block[_MARKED])
        if count < 0:
            raise OSError(-count, os.strerror(-count))
        self.count += count

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
        return self.data[self.starts - VNET_HEADER.size]

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


class Ring:
    """The memory in which the kernel writes what arrives at a packet socket, in frames of one size.

    longest: bytes of the longest packet that a frame should hold; of longer ones, and of any over
    16 KiB, the ring holds the beginning, and the socket the whole. The socket's options that change
    what the kernel writes before a packet are set already. Raises OSError where the kernel has no
    such memory, or none left.
    """

    def __init__(self, opened: socket.socket, longest: int) -> None:
        size = min(1 << (longest + _FRAME_HEAD - 1).bit_length(), _LARGEST_FRAME)
        blocks = _RING // _RING_BLOCK
        request = struct.pack("=4I", _RING_BLOCK, blocks, size, _RING // size)
        opened.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        opened.setsockopt(_SOL_PACKET, _PACKET_COPY_THRESH, 1)
        opened.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
        self._memory = mmap.mmap(opened.fileno(), _RING)
        frames = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._words = np.array([frames, size, _RING // size, 0, 0], dtype=np.int64)
        self.address = self._words.ctypes.data

    def copied(self) -> bool:
        """Return True, once, if the next packet waits at the socket."""
        return self._seen(_FRAME_COPIED)

    def losing(self) -> bool:
        """Return True, once, if packets came while the ring was full."""
        return self._seen(_FRAME_LOSING)

    def _seen(self, bit: int) -> bool:
        found = int(self._words[_STATUS])
        self._words[_STATUS] = found & ~bit
        return bool(found & bit)

    def close(self) -> None:
        self._memory.close()


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
