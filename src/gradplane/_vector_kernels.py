"""Kernels on vectors. Import it where they are called: Numba takes a third of a second to load."""

from numba import njit


@njit(cache=True, nogil=True)
def below(bits, mask, limit):  # type: ignore[no-untyped-def]
    """Return whether all numbers under a mask are below a limit."""
    largest = mask ^ mask
    for i in range(bits.size):
        largest = max(largest, bits[i] & mask)
    return largest < limit


@njit(cache=True, nogil=True)
def add(x, y, out):  # type: ignore[no-untyped-def]
    """Set out to x + y."""
    for i in range(x.size):
        out[i] = x[i] + y[i]
