"""Machine code, and where it lies."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

from gradplane.switch.jit.native_code import Native

ASSEMBLY = """
@cells = global [1000 x i64] zeroinitializer
@addends = constant [3 x i64] [i64 1, i64 20, i64 300]

define void @sum(i64* %place, i64 %i) {
  %cell = getelementptr [1000 x i64], [1000 x i64]* @cells, i64 0, i64 %i
  %value = load i64, i64* %cell
  %where = getelementptr [3 x i64], [3 x i64]* @addends, i64 0, i64 %i
  %addend = load i64, i64* %where
  %sum = add i64 %value, %addend
  store i64 %sum, i64* %place
  ret void
}
"""

_NO_RESERVE = 0x4000
_SIZE = 10 << 30


@contextmanager
def scattered_pages() -> Iterator[None]:
    """A context in which the free places are single pages, gigabytes apart."""
    page, libc = mmap.PAGESIZE, ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    start = libc.mmap(None, _SIZE, 0, private, -1, 0)
    filled = []
    while not filled or filled[-1] > start:
        filled.append(libc.mmap(None, page, 0, private, -1, 0))
    for hole in range(9, 0, -2):
        libc.munmap(start + (hole << 30), page)
    try:
        yield
    finally:
        for address in filled:
            libc.munmap(address, page)
        libc.munmap(start, _SIZE)


def test_code_and_its_data_lie_together() -> None:
    """LLVM aborts the process where they are more than 2 GiB apart."""
    with scattered_pages():
        native = Native(ASSEMBLY, cached=False)
        places = [native.function_address("sum"), native.address("cells")]
        places.append(native.address("addends"))
    assert max(places) - min(places) < 1 << 20
    found = ctypes.c_int64()
    native.function("sum", ctypes.c_void_p, ctypes.c_int64)(ctypes.addressof(found), 1)
    assert found.value == 20
