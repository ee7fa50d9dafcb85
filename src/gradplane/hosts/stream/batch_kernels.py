"""Compiled passes over a batch of a Stream's datagrams; `segments` has their format.

data: uint8[n, stride], sizes: int64[n]; datagram i is data[i, : sizes[i]].
"""

from numba import njit

SEGMENT = 1400  # bytes of a message in a segment that is not its last
VALUES = 1024  # bytes of values in a full segment
MAGIC, DATA_KIND, VALUES_KIND = 0xDA, 1, 3
_START, _DATA_HEADER, _VALUES_HEADER = 4, 28, 16
_CONNECTION, _SEQUENCE, _MESSAGE, _INDEX, _COUNT = 4, 12, 16, 20, 24  # where in a header


@njit(cache=True, nogil=True)
def message_bytes(data, sizes):  # type: ignore[no-untyped-def]
    """Return how many bytes of messages datagrams carry; acknowledgements carry none."""
    total = 0
    for i in range(len(sizes)):
        if sizes[i] >= _START and data[i, 0] == MAGIC:
            if data[i, 1] == DATA_KIND:
                total += max(sizes[i] - _DATA_HEADER, 0)
            elif data[i, 1] == VALUES_KIND:
                total += max(sizes[i] - _VALUES_HEADER, 0)
    return total


@njit(cache=True, nogil=True)
def run_ends(data, sizes, ends):  # type: ignore[no-untyped-def]
    """Find the runs of segments that follow each other, all full but a run's last one.

    Writes the end of each run to `ends`, int64[n], and returns their number. A datagram that holds
    no segment is a run by itself; so may be one that does.
    """
    runs = 0
    for i in range(1, len(sizes)):
        if not _follows(data[i - 1], sizes[i - 1], data[i], sizes[i]):
            ends[runs] = i
            runs += 1
    ends[runs] = len(sizes)
    return runs + 1


@njit(cache=True, nogil=True)
def _follows(before, size_before, here, size):  # type: ignore[no-untyped-def]
    """Return whether a segment follows the one before, which is full."""
    if min(size_before, size) <= _VALUES_HEADER or here[0] != MAGIC or here[2] != 0:
        return False
    for at in range(_SEQUENCE):  # magic, kind, flags, connection
        if before[at] != here[at]:
            return False
    if _number(before, _SEQUENCE) + 1 != _number(here, _SEQUENCE):
        return False
    if here[1] == VALUES_KIND:
        full = _VALUES_HEADER + VALUES
        return here[3] == 0 and size_before == full and size <= full and size % 4 == 0
    full = _DATA_HEADER + SEGMENT
    if here[1] != DATA_KIND or here[3] > 1 or size_before != full or size <= _DATA_HEADER:
        return False
    index, count = _number(here, _INDEX), _number(here, _COUNT)
    same = _number(before, _MESSAGE) == _number(here, _MESSAGE)
    same = same and _number(before, _COUNT) == count and _number(before, _INDEX) + 1 == index
    # A data segment before the message's last is full, but where values follow.
    return same and (size == full and index < count or size < full and index + 1 == count)


@njit(cache=True, nogil=True)
def _number(row, start):  # type: ignore[no-untyped-def]
    """Return the 32-bit big-endian number at `start`."""
    value = 0
    for at in range(start, start + 4):
        value = value << 8 | row[at]
    return value
