"""Machine code for each packet of a batch, beside the system calls.

NumPy would pass over the batch a dozen times, and its start-up costs as much as a small batch.
"""

from __future__ import annotations

from functools import cache

from gradplane.switch.jit.llvm_text import Function, Module, Operand
from gradplane.switch.jit.native_code import Native

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
