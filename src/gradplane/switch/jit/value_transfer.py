"""Readers and writers of the interpreter's values in native memory (`value_layout`).

Functions are made once for a type at an offset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct as Packed
from typing import Any

from gradplane.switch.interp.interpreter_values import HeaderValue, StackValue
from gradplane.switch.ir.types import Bits, Bool, Fields, Header, Stack, Type, Varbit
from gradplane.switch.jit.value_layout import Layouts, container

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


def _items(layouts: Layouts, t: Stack, at: int) -> list[tuple[Type, int]]:
    start, size = at + layouts.of(t).offsets[0], layouts.of(t.element).size
    return [(t.element, start + i * size) for i in range(t.size)]


def _fields(layouts: Layouts, t: Fields, at: int) -> list[tuple[Type, int]]:
    offsets = layouts.of(t).offsets
    return [(f.type, at + offset) for f, offset in zip(t.fields, offsets, strict=True)]
