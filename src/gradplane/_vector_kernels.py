"""Kernels on vectors. Import it where they are called: Numba takes a third of a second to load."""

from gradplane._kernels import njit


@njit(cache=True, nogil=True)
def below(bits, mask, limit):  # type: ignore[no-untyped-def]
    """Return whether all numbers under a mask are below a limit."""
    largest = bits.dtype.type(0)
    for i in range(bits.size):
        value = bits.dtype.type(bits[i] & mask)  # numbers of the same size: as many at once
        largest = value if value > largest else largest
    return largest < limit


@njit(cache=True, nogil=True)
def add(x, y, out):  # type: ignore[no-untyped-def]
    """Set out to x + y."""
    for i in range(x.size):
        out[i] = x[i] + y[i]


@njit(cache=True, nogil=True)
def descend(parameters, velocity, mean, momentum, decay, lr, out, changed):  # type: ignore[no-untyped-def]
    """Step by momentum: set changed to momentum * velocity + mean + decay * parameters, and out
    to parameters - lr * changed."""
    for i in range(out.size):
        step = velocity[i] * momentum + mean[i]
        if decay != 0:
            step += decay * parameters[i]
        changed[i] = step
        out[i] = parameters[i] - lr * step


@njit(cache=True, nogil=True)
def sum_beyond(sizes, each):  # type: ignore[no-untyped-def]
    """Return the sum of what is above `each` of every size."""
    total = 0
    for size in sizes:
        total += max(size - each, 0)
    return total
