"""Memory that native code reads, with its address in a state word.

`VectorTransfer` gives the output of native code to Python without a copy. A large vector's memory
becomes a NumPy array's, and the vector gets other memory. When nothing refers to the array any
more, its memory is kept for the next call, which then writes to warm pages and cache lines.

Vectors grow in native code: a pointer, a length and a capacity among the state words.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.switch.jit.llvm_text import Function, Module, Operand

SetWord = Callable[[str, int], None]


class Memory:
    """Bytes at a fixed address until they grow; zero at first."""

    def __init__(self, name: str, set_word: SetWord, size: int = 64) -> None:
        self._name = name
        self._set_word = set_word
        self.array: npt.NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)
        self.view = memoryview(b"")
        self.grow(size)

    def grow(self, size: int) -> None:
        """Make room for at least `size` bytes."""
        if size <= len(self.array) and len(self.array):
            return
        bigger = np.zeros(max(size, 2 * len(self.array), 64), dtype=np.uint8)
        bigger[: len(self.array)] = self.array
        self.array = bigger
        self.view = memoryview(bigger)  # type: ignore[arg-type]
        self._set_word(self._name, int(bigger.__array_interface__["data"][0]))

    def write(self, at: int, data: bytes) -> None:
        self.view[at : at + len(data)] = data


COPIED = 1 << 15  # bytes up to which a copy is cheaper
SPARE = 2  # pieces of memory that are kept

_libc = ctypes.CDLL(None)
_libc.free.argtypes = [ctypes.c_void_p]
_libc.free.restype = None


class VectorTransfer:
    """Transfers a vector: `words` are the engine's state words, `at` the first of the vector's
    (address, length, capacity)."""

    def __init__(self, words: memoryview[int], at: int) -> None:
        self._words = words
        self._at = at
        self._spare: list[tuple[int, int]] = []
        self._open = True

    def prepare(self) -> None:
        """Give the vector memory that was returned, if it has none."""
        at = self._at
        if not self._words[at] and self._spare:
            self._words[at], self._words[at + 2] = self._spare.pop()

    def take(self) -> npt.NDArray[np.uint8]:
        """Return the vector's bytes and empty it."""
        at = self._at
        start, length, capacity = self._words[at : at + 3].tolist()
        self._words[at + 1] = 0
        if length <= COPIED:
            return np.frombuffer(ctypes.string_at(start, length) if length else b"", np.uint8)
        memory = _Bytes.from_address(start)
        reference = weakref.ref(memory, _forgotten)
        _taken[id(reference)] = reference, self, start, capacity
        self._words[at] = self._words[at + 2] = 0
        return np.frombuffer(memoryview(memory), np.uint8, length)

    def close(self) -> None:
        """Free spare memory, now and when more is returned."""
        self._open = False
        while self._spare:
            _libc.free(self._spare.pop()[0])

    def back(self, start: int, capacity: int) -> None:
        """Take memory back that no array is in any more."""
        if self._open and len(self._spare) < SPARE:
            self._spare.append((start, capacity))
        else:
            _libc.free(start)


_Bytes = ctypes.c_uint8 * (1 << 40)  # of any number: to make a type takes longer than a small batch
_taken: dict[int, tuple[weakref.ref[Any], VectorTransfer, int, int]] = {}
"""The memory that arrays hold, by the reference's id. weakref.finalize takes 10 us a call."""


def _forgotten(reference: weakref.ref[Any]) -> None:
    _, transfer, start, capacity = _taken.pop(id(reference))
    transfer.back(start, capacity)


NAMES = ("again", "digests", "kept", "messages", "out", "queue", "scratch", "sent", "waiting")


def vector_words(module: Module, name: str) -> None:
    """Allot a vector's words, next to each other."""
    for part in ("data", "length", "capacity"):
        module.word(f"{name}:{part}")


def reserve(f: Function, name: str, size: Operand | int) -> Operand:
    """Return the address of the vector's end, with room for `size` bytes behind it."""
    module = f.module
    if not module.has("grow"):
        _grow(module)
    vector_words(module, name)
    return f.call("ptr", "reserve", ("ptr", f.word_address(f"{name}:data")), ("i64", size))


def length(f: Function, name: str) -> Operand:
    vector_words(f.module, name)
    return f.word(f"{name}:length", "i64", fixed=False)


def set_length(f: Function, name: str, value: Operand | int) -> None:
    vector_words(f.module, name)
    f.store("i64", value, f.word_address(f"{name}:length"), 8)


def extend(f: Function, name: str, size: Operand | int) -> None:
    """Take bytes written behind the end into the vector."""
    set_length(f, name, f.binary("add", "i64", length(f, name), size))


def data(f: Function, name: str) -> Operand:
    vector_words(f.module, name)
    return f.word(f"{name}:data", "ptr", fixed=False)


def _grow(module: Module) -> None:
    """Write ptr reserve(ptr vector, i64 size), and its slow path ptr grow(...)."""
    params = [("ptr", "%vector"), ("i64", "%size")]
    f = module.function("grow", "ptr", params, attributes="noinline cold ")
    old = f.load("i64", f.add("%vector", 8))
    need = f.binary("add", "i64", old, "%size")
    capacity = f.binary("add", "i64", f.binary("shl", "i64", need, 1), 4096)
    start = f.intrinsic("realloc", "ptr", ("ptr", f.load("ptr", "%vector")), ("i64", capacity))
    f.store("ptr", start, "%vector")
    f.store("i64", capacity, f.add("%vector", 16))
    f.ret(f.add(start, old))
    f = module.function("reserve", "ptr", params, attributes="alwaysinline ")
    old = f.load("i64", f.add("%vector", 8))
    need = f.binary("add", "i64", old, "%size")
    full = f.compare("ugt", "i64", need, f.load("i64", f.add("%vector", 16)))
    with f.when(full):
        f.ret(f.call("ptr", "grow", ("ptr", "%vector"), ("i64", "%size")))
    f.ret(f.add(f.load("ptr", "%vector"), old))
