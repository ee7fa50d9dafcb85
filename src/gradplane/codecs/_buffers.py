"""Bytes objects that a kernel fills in place.

`array.tobytes()` of a large array is several times slower than the codecs here: it copies, and
into memory of 4 KiB pages, each of which costs a page fault.
"""

import ctypes
import mmap

import numpy as np

from gradplane.codecs._base import Codes

_HUGE = 2**22  # below, the allocator mostly returns memory that is already mapped


def blank(size: int) -> tuple[bytes, Codes]:
    """Return a new bytes object and a writable uint8 view of it.

    Write before other code sees the object, and keep it alive as long as the view.
    """
    data = _new(None, size)
    address = _address(data)
    if size >= _HUGE:
        _advise(address, size)
    return data, np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def to_bytes(array: Codes) -> bytes:
    """Return array.tobytes(), for large arrays faster."""
    data, view = blank(array.size)
    view[:] = array
    return data


def _advise(address: int, size: int) -> None:
    """Ask for huge pages where the system has them; a refusal changes only the speed."""
    advice, madvise = getattr(mmap, "MADV_HUGEPAGE", None), getattr(_libc, "madvise", None)
    if advice is None or madvise is None:
        return
    start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    madvise(ctypes.c_void_p(start), ctypes.c_size_t(address + size - start), ctypes.c_int(advice))


_libc = ctypes.CDLL(None)
# In Python's C interface the caller fills a bytes object that was made from a null pointer.
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_char_p, ctypes.c_ssize_t)(
    ("PyBytes_FromStringAndSize", ctypes.pythonapi)
)
_address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(
    ("PyBytes_AsString", ctypes.pythonapi)
)
