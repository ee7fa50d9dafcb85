"""Memory by its address, for Numba's kernels: words, copies, arrays, and calls of other code.

A `Record` is state that Python and kernels share.

Kernels that walk over arrays of several owners get those as addresses in an array of integers, so
that a call of the kernel converts few arguments. Nothing is checked: the owners keep the memory
alive while a kernel runs.
"""

from ctypes import addressof, c_char
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.numpy_support import carray as carray

_WORD, _BYTE = ir.IntType(64), ir.IntType(8)


def address_of(array: npt.NDArray[Any]) -> int:
    """Return the address of a contiguous array's first element."""
    if array.dtype.names is not None:
        array = array.view(np.uint8)  # every field would be described
    if not array.size or not array.flags.writeable:
        return int(array.__array_interface__["data"][0])
    return addressof(c_char.from_buffer(array))  # type: ignore[arg-type]  # five times as fast


class Record:
    """State that lies in memory at `address`, where kernels read and write it, too.

    A subclass has a `layout`, all of whose fields are int64 or float64, and gives those that Python
    uses as Whole and Real.
    """

    layout: ClassVar[np.dtype[Any]]

    def __init__(self, **values: float) -> None:
        """Set some fields; the others are 0."""
        memory = np.zeros(1, self.layout)
        for name, value in values.items():
            memory[name] = value
        self.address = address_of(memory)
        self.words: Any = memory.view(np.int64).data
        self.reals: Any = memory.view(np.float64).data


class Whole:
    """A field of a Record that is an int64."""

    def __set_name__(self, owner: type[Record], name: str) -> None:
        self._at = place_of(owner.layout, name)

    def __get__(self, record: Record, owner: type[Record]) -> int:
        value: int = record.words[self._at]
        return value

    def __set__(self, record: Record, value: int) -> None:
        record.words[self._at] = value


class Real:
    """A field of a Record that is a float64."""

    def __set_name__(self, owner: type[Record], name: str) -> None:
        self._at = place_of(owner.layout, name)

    def __get__(self, record: Record, owner: type[Record]) -> float:
        value: float = record.reals[self._at]
        return value

    def __set__(self, record: Record, value: float) -> None:
        record.reals[self._at] = value


def place_of(layout: np.dtype[Any], name: str) -> int:
    """Return the number of a field of 8 bytes."""
    assert layout.fields is not None
    return layout.fields[name][1] // 8


def _load(typing: Any, address: Any) -> Any:
    """Return the int64 at an address."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], _WORD.as_pointer()))

    return types.int64(types.int64), code


def _store(typing: Any, address: Any, value: Any) -> Any:
    """Set the int64 at an address."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[1], builder.inttoptr(arguments[0], _WORD.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


def _copy(typing: Any, target: Any, source: Any, size: Any) -> Any:
    """Copy so many bytes between addresses; the two ranges must not overlap."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, start = (builder.inttoptr(a, _BYTE.as_pointer()) for a in arguments[:2])
        cgutils.raw_memcpy(builder, to, start, arguments[2], 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), code


def _pointer(typing: Any, address: Any) -> Any:
    """Return an address as the pointer that `numba.carray` takes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], _BYTE.as_pointer())

    return types.voidptr(types.int64), code


def _call_six(typing: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    """Call the function at an address, which takes six 8-byte words and returns nothing."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = ir.FunctionType(ir.VoidType(), [_WORD] * 6)
        builder.call(builder.inttoptr(arguments[0], made.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 7), code


# Numba's type of an intrinsic is that of its definition, with the typing context.
load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
copy: Any = intrinsic(_copy)
pointer: Any = intrinsic(_pointer)
call_six: Any = intrinsic(_call_six)
