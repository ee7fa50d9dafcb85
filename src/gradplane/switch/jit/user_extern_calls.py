"""Calls from machine code back to Python: of user-defined externs, and of what adds entries.

The values of a call are in one buffer, inputs first, then room for the results, each as in
`value_layout`. Machine code finds the function to call in a state word, so that neither its text
nor the code kept on disk holds an address.

`reader` and `writer` of the interpreter's values there are made once for a type at an offset.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from struct import Struct as Packed
from typing import Any, NamedTuple

from gradplane.switch.interp.interpreter_values import HeaderValue, StackValue
from gradplane.switch.interp.packet import Abort
from gradplane.switch.interp.user_externs import Invoke, UserExterns, inputs
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Array, Bits, Bool, Fields, Header, Stack, Type, Varbit
from gradplane.switch.jit.expressions import is_scalar
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.value_layout import Layouts, container
from gradplane.switch.runtime.state import State

Read = Callable[[bytes], Any]
Write = Callable[[bytearray, Any], None]

_WORDS = {8: Packed("<B"), 16: Packed("<H"), 32: Packed("<I"), 64: Packed("<Q")}


def reader(layouts: Layouts, t: Type, at: int = 0) -> Read:
    """Return the function from bytes to the value at an offset."""
    match t:
        case Bits(width=width, signed=True) if width:
            bits, half = _read_bits(at, width), 1 << width >> 1
            return lambda data: (bits(data) ^ half) - half
        case Bits(width=width):
            return _read_bits(at, width)
        case Bool():
            return lambda data: data[at] != 0
        case Varbit(width=width):
            length, number = _read_bits(at, 32), _read_bits(at + 8, width)
            return lambda data: (length(data), number(data))
        case Stack():
            items = [reader(layouts, *spot) for spot in _items(layouts, t, at)]
            following = _read_bits(at, 32)
            return lambda data: StackValue([item(data) for item in items], following(data))
        case Array():
            items = [reader(layouts, *spot) for spot in _items(layouts, t, at)]
            return lambda data: [item(data) for item in items]
        case Fields():
            fields = [reader(layouts, *spot) for spot in _fields(layouts, t, at)]
            if isinstance(t, Header):
                valid = at + layouts.of(t).valid
                return lambda data: HeaderValue(data[valid] != 0, [f(data) for f in fields])
            return lambda data: [field(data) for field in fields]
    raise AssertionError(t)


def writer(layouts: Layouts, t: Type, at: int = 0) -> Write:
    """Return the function that writes a value at an offset; bytes between its parts stay."""
    match t:
        case Bits(width=width):
            bits, mask = _write_bits(at, width), (1 << width) - 1
            return lambda data, value: bits(data, value & mask)
        case Bool():
            return _write_bits(at, 1)
        case Varbit(width=width):
            parts: list[Write] = [_write_bits(at, 32), _write_bits(at + 8, width)]
            return lambda data, value: _each(parts, data, value)
        case Stack():
            items = [writer(layouts, *spot) for spot in _items(layouts, t, at)]
            following = _write_bits(at, 32)

            def stack(data: bytearray, value: StackValue) -> None:
                following(data, value.next)
                _each(items, data, value.items)

            return stack
        case Array():
            items = [writer(layouts, *spot) for spot in _items(layouts, t, at)]
            return lambda data, value: _each(items, data, value)
        case Fields():
            fields = [writer(layouts, *spot) for spot in _fields(layouts, t, at)]
            if not isinstance(t, Header):
                return lambda data, value: _each(fields, data, value)
            valid = _write_bits(at + layouts.of(t).valid, 1)

            def header(data: bytearray, value: HeaderValue) -> None:
                valid(data, value.valid)
                _each(fields, data, value.fields)

            return header
    raise AssertionError(t)


def _each(writes: Sequence[Write], data: bytearray, values: Sequence[Any]) -> None:
    for write, value in zip(writes, values, strict=True):
        write(data, value)


def _read_bits(at: int, width: int) -> Read:
    bits = container(width)
    if bits in _WORDS:
        unpack = _WORDS[bits].unpack_from
        return lambda data: unpack(data, at)[0]
    end = at + bits // 8
    return lambda data: int.from_bytes(data[at:end], "little")


def _write_bits(at: int, width: int) -> Write:
    bits = container(width)
    if bits in _WORDS:
        pack = _WORDS[bits].pack_into
        return lambda data, value: pack(data, at, value)
    size = bits // 8

    def write(data: bytearray, value: int) -> None:
        data[at : at + size] = value.to_bytes(size, "little")

    return write


def _items(layouts: Layouts, t: Array, at: int) -> list[tuple[Type, int]]:
    start, size = at + layouts.of(t).offsets[0], layouts.of(t.element).size
    return [(t.element, start + i * size) for i in range(t.size)]


def _fields(layouts: Layouts, t: Fields, at: int) -> list[tuple[Type, int]]:
    offsets = layouts.of(t).offsets
    return [(f.type, at + offset) for f, offset in zip(t.fields, offsets, strict=True)]


WORD = "user externs"
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


Implement = Callable[[UserExterns | None, State], Invoke]
"""Returns what a call runs, of a program's user-defined externs and its state."""


class Buffer(NamedTuple):
    """The offsets of a call's values, in bytes: inputs from the start, results from `back`."""

    implement: Implement
    inputs: Sequence[tuple[Type, int]]
    places: Sequence[tuple[Type, int]]
    back: int
    size: int
    align: int

    @staticmethod
    def of(
        implement: Implement, given: Sequence[Type], results: Sequence[Type], layouts: Layouts
    ) -> Buffer:
        end, offsets, align = 0, [], 8
        types = [*given, *results]
        for t in types:
            place = layouts.of(t)
            end = -(-end // place.align) * place.align
            offsets.append(end)
            end += place.size
            align = max(align, place.align)
        spots = list(zip(types, offsets, strict=True))
        back = [*offsets, end][len(given)]
        return Buffer(implement, spots[: len(given)], spots[len(given) :], back, end, align)

    @staticmethod
    def of_user_extern(call: ir.CallUserExtern, layouts: Layouts) -> Buffer:
        """Return the buffer of a user-defined extern's call."""

        def implement(externs: UserExterns | None, state: State) -> Invoke:
            assert externs is not None, call.name
            return externs.invoke(call)

        given = [value.type for value, _ in inputs(call)]
        return Buffer.of(implement, given, [var.type for var, _ in call.places], layouts)


Fill = Callable[[Operand], None]
"""Writes an input to an address."""


def call_python(
    buffer: Buffer, fills: Iterable[Fill], site: int, fault: int, code: Statements
) -> Operand:
    """Write a call; return the address of the buffer, which has the results. The packet is dropped
    with `fault` if the implementation fails."""
    f = code.f
    memory = f.alloca(buffer.size, buffer.align)
    for fill, (_, offset) in zip(fills, buffer.inputs, strict=True):
        fill(f.add(memory, offset))
    failed = f.op(f"call i64 {f.word(WORD)}(i64 {site}, ptr {memory})")
    with f.when(f.compare("ne", "i64", failed, 0)):
        f.ret(-fault)
    return memory


def call_user_extern(
    call: ir.CallUserExtern, buffer: Buffer, site: int, fault: int, code: Statements
) -> None:
    """Write a call of a user-defined extern."""
    f = code.f
    fills = [partial(code.write, value) for value, _ in inputs(call)]
    memory = call_python(buffer, fills, site, fault, code)
    for (var, _), (t, offset) in zip(call.places, buffer.places, strict=True):
        source = f.add(memory, offset)
        if is_scalar(t):
            code.store(var, code.load(t, source))
        else:
            f.copy(code.place(var), source, code.layouts.of(t).size)


class Callback:
    """The function that machine code calls, its `address` in the state word WORD.

    `failures`: of packets, in order, until the engine reports them. `raised`: an exception that is
    not a packet's (KeyboardInterrupt, for example), to be raised when machine code has returned.
    """

    def __init__(
        self, externs: UserExterns | None, state: State, buffers: Sequence[Buffer], layouts: Layouts
    ) -> None:
        self._sites = [_Site(b, b.implement(externs, state), layouts) for b in buffers]
        self._function = _CALLBACK(self._call)
        self.failures: deque[Abort] = deque()
        self.raised: BaseException | None = None

    @property
    def address(self) -> int:
        return ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def raise_again(self) -> None:
        """Raise the exception that was kept, once."""
        raised, self.raised = self.raised, None
        if raised is not None:
            raise raised

    def _call(self, site: int, address: int) -> int:
        """Return 0, or 1 if the packet is dropped."""
        try:
            self._sites[site].call(address)
        except Abort as abort:
            self.failures.append(abort)
            return 1
        except BaseException as raised:
            self.raised = raised
            self.failures.append(Abort(f"{raised!r}"))
            return 1
        return 0


class _Site:
    """One call in the program: reads its values, calls the implementation, writes its results."""

    def __init__(self, buffer: Buffer, invoke: Invoke, layouts: Layouts) -> None:
        self._invoke = invoke
        self._reads = [reader(layouts, t, at) for t, at in buffer.inputs]
        self._writes = [writer(layouts, t, at - buffer.back) for t, at in buffer.places]
        self._back = buffer.back
        self._room = buffer.size - buffer.back

    def call(self, address: int) -> None:
        data = ctypes.string_at(address, self._back)
        results = self._invoke([read(data) for read in self._reads])
        if self._room:
            written = bytearray(self._room)
            for write, value in zip(self._writes, results, strict=True):
                write(written, value)
            ctypes.memmove(address + self._back, bytes(written), self._room)
