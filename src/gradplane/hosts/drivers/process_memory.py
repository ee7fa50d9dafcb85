"""The memory of a host's process: settings by which a round takes no more of it than the last one.

Every round allocates and frees the same few arrays of the gradient's size. By default the C library
returns such memory to the kernel, which then clears each page again; and Python's collector visits
all objects of the libraries, again and again, of which none is ever freed.
"""

import ctypes
import gc

# malloc.h. Setting one of them ends their adjustment by the library itself.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 1 << 30  # bytes of free memory
_LONGEST = 32 << 20  # bytes of an array whose memory is kept: the largest that glibc accepts


def keep_memory() -> None:
    """Keep freed memory for the next array, where the C library is glibc."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, _LONGEST)
        set_option(_TRIM_THRESHOLD, _KEPT)


def exempt_loaded_objects() -> None:
    """Exempt all objects so far, most of them of libraries, from Python's garbage collection."""
    gc.collect()
    gc.freeze()
