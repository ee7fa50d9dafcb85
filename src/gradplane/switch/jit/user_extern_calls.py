"""Calls of user-defined externs: from machine code back to Python.

The values of a call are in one buffer, inputs first, then room for the results, each as in
`value_layout`. Machine code finds the function to call in a state word, so that neither its text
nor the code kept on disk holds an address.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from gradplane.switch.interp.packet import Abort
from gradplane.switch.interp.user_externs import Invoke, UserExterns, inputs
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type
from gradplane.switch.jit.expressions import is_scalar
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.value_layout import Layouts
from gradplane.switch.jit.value_transfer import reader, writer

WORD = "user externs"
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class Buffer:
    """The offsets of a call's values, in bytes: inputs from the start, results from `back`."""

    call: ir.CallUserExtern
    inputs: Sequence[tuple[Type, int]]
    places: Sequence[tuple[Type, int]]
    back: int
    size: int
    align: int

    @staticmethod
    def of(call: ir.CallUserExtern, layouts: Layouts) -> Buffer:
        given = [value.type for value, _ in inputs(call)]
        types = given + [var.type for var, _ in call.places]
        end, offsets, align = 0, [], 8
        for t in types:
            place = layouts.of(t)
            end = -(-end // place.align) * place.align
            offsets.append(end)
            end += place.size
            align = max(align, place.align)
        spots = list(zip(types, offsets, strict=True))
        back = [*offsets, end][len(given)]
        return Buffer(call, spots[: len(given)], spots[len(given) :], back, end, align)


def call_user_extern(
    call: ir.CallUserExtern, buffer: Buffer, site: int, fault: int, code: Statements
) -> None:
    """Write a call; the packet is dropped with `fault` if the implementation fails."""
    f = code.f
    memory = f.alloca(buffer.size, buffer.align)
    for (value, _), (_, offset) in zip(inputs(call), buffer.inputs, strict=True):
        code.write(value, f.add(memory, offset))
    failed = f.op(f"call i64 {f.word(WORD)}(i64 {site}, ptr {memory})")
    with f.when(f.compare("ne", "i64", failed, 0)):
        f.ret(-fault)
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

    def __init__(self, externs: UserExterns, buffers: Sequence[Buffer], layouts: Layouts) -> None:
        self._sites = [_Site(buffer, externs.invoke(buffer.call), layouts) for buffer in buffers]
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
