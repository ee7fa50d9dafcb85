"""The chunks of one reduce as a table: a row a chunk, and the kernels that step many at once.

The columns are NumPy's, the kernels Numba's. Which transition an event makes is looked up in
`switch_states`; a kernel decides only which event a chunk has.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._kernels import njit
from gradplane.hosts.protocols.switch_states import (
    CHUNK,
    ILLEGAL,
    ChunkEvent,
    ChunkState,
    transitions,
)
from gradplane.hosts.wire.aggregation import BARE, INFINITE_NORM

Table = npt.NDArray[np.void]
Ints = npt.NDArray[np.int64]

ROW = np.dtype(
    [
        ("state", np.uint8),  # the position of its ChunkState
        ("open", np.uint8),  # 1 if its partition is sending or silent
        ("count", np.uint16),  # workers in the result; 0: none in hand
        ("attempts", np.uint16),
        ("notices", np.uint16),
        ("bitmap", np.uint64),  # children of the worker's switch in the result
        ("sent_at", np.int64),  # ns, of the last attempt
        ("deadline", np.int64),  # ns, where it is pending
        ("at", np.int64),  # ns, when its result came
    ]
)

_STATES, _EVENTS = list(ChunkState), list(ChunkEvent)
AFTER = transitions(CHUNK)
WAITING, EARLY, PENDING, MISSED, DONE = (np.uint8(_STATES.index(s)) for s in _STATES)
TURN, RESULT, _RETRY, _EXPIRY, _OVERTAKEN = (_EVENTS.index(e) for e in _EVENTS)

ALL = 1 << 30
"""The number of chunks to advance() where nothing limits it."""

# What accept() says of a packet.
OUTSIDE, NEW, KNOWN, OTHER_NORM, BEYOND_TABLE, WITHOUT_SUMS = range(6)


def make(chunks: int) -> Table:
    """Return the table of so many chunks, all of them waiting."""
    return np.zeros(chunks, ROW)


@njit(cache=True, nogil=True)
def step(row, event, table):  # type: ignore[no-untyped-def]
    """Make the transition of an event of a chunk; AssertionError if its state has no row for it."""
    after = table[row.state, event]
    if after == ILLEGAL:
        raise AssertionError("a chunk has an event that its state has no row for")
    row.state = after


@njit(cache=True, nogil=True)
def _unpack(body, sums):  # type: ignore[no-untyped-def]
    """Unpack sums in network order, one, two or four bytes each; return the largest."""
    largest = np.uint32(0)
    if body.size == sums.size:
        for lane in range(sums.size):
            sums[lane] = body[lane]
            largest = max(largest, np.uint32(body[lane]))
    elif body.size == 2 * sums.size:
        for lane in range(sums.size):
            total = np.uint16(body[2 * lane]) << np.uint16(8) | np.uint16(body[2 * lane + 1])
            sums[lane] = total
            largest = max(largest, np.uint32(total))
    else:
        for lane in range(sums.size):
            word = np.uint32(0)
            for place in range(4):
                word = np.uint32(word << np.uint32(8) | body[4 * lane + place])
            sums[lane] = word
            largest = max(largest, word)
    return np.int64(largest)


@njit(cache=True, nogil=True)
def accept(  # type: ignore[no-untyped-def]
    first, table, own, ends, norms, most, packets, body, parsed, sums, known, turns, now, after,
    found,
):  # fmt: skip
    """Take results, one after the other, in the order of their packets.

    first: number of the reduce's first chunk. table: its rows. own: from which index up to which
    this worker needs the sums; it leaves the others alone. ends: int64[partitions], the index after
    a partition's last chunk; norms: int64[partitions], -1 where not known. most: the table's
    largest number. packets: uint8[n, bytes], the sums in network order from `body` on; parsed:
    int64[n, 5], type, chunk number, workers, bitmap, norm. sums: unsigned[chunks, lanes], of which
    those are not written that are known, uint8[chunks]. turns: int64[window], by chain the chunk
    whose turn it is. found: int64[n], set to one of the constants above for the reduce's chunks.
    Returns how many chunks ended, when the last of those that were sent once was sent, -1 for none,
    how many results were refused, and how many packets were looked at: up to the first whose sums
    are not those that are known, which is not taken.
    """
    ended, sent_at, refused = 0, -1, 0
    unpacked = np.empty(sums.shape[1], sums.dtype)
    end = body + sums.shape[1] * sums.itemsize
    for i in range(len(parsed)):
        number, workers, bitmap, norm = parsed[i, 1], parsed[i, 2], parsed[i, 3], parsed[i, 4]
        index = number - first
        if index < 0 or index >= len(table):
            continue
        row = table[index]
        if row.state == EARLY or row.state == DONE:
            found[i] = KNOWN
            continue
        part = 0
        while index >= ends[part]:
            part += 1
        if norm >= INFINITE_NORM or (norms[part] >= 0 and norms[part] != norm):
            found[i] = OTHER_NORM
            refused += 1
            continue
        if own[0] <= index < own[1]:
            if packets[i, 1] & BARE:
                found[i] = WITHOUT_SUMS
                refused += 1
                continue
            if _unpack(packets[i, body:end], unpacked) > most * workers:
                found[i] = BEYOND_TABLE
                refused += 1
                continue
            other = sums.dtype.type(0)
            for lane in range(unpacked.size):  # an assignment takes long to compile
                if known[index]:
                    other |= sums[index, lane] ^ unpacked[lane]
                else:
                    sums[index, lane] = unpacked[lane]
            if other:
                return ended, sent_at, refused, i
            known[index] = 1
        found[i] = NEW
        norms[part] = norm
        row.count, row.bitmap, row.at = workers, bitmap, now
        if row.attempts == 1:
            sent_at = row.sent_at
        if row.state == PENDING:
            turns[number % len(turns)] += len(turns)
            ended += 1
        step(row, RESULT, after)
    return ended, sent_at, refused, len(parsed)


@njit(cache=True, nogil=True)
def send(table, indices, now, deadline):  # type: ignore[no-untyped-def]
    """Note a further attempt of some chunks."""
    for index in indices:
        row = table[index]
        row.attempts += np.uint16(1)
        row.sent_at, row.deadline = now, deadline


@njit(cache=True, nogil=True)
def advance(first, table, turns, after, out, start, most):  # type: ignore[no-untyped-def]
    """Give the chunks of each chain their turns, up to the first that must wait.

    Writes the indices of those that are now pending to out, int64[window], in the chains' order
    from chain `start` on. Beyond `most` of them only the first of all chunks may be another one,
    for which other workers may wait. Returns their number, and how many chunks ended because
    their result had come early.
    """
    pending, ended = 0, 0
    for i in range(len(turns)):
        chain = (start + i) % len(turns)
        while True:
            index = turns[chain] - first
            if index < 0 or index >= len(table):
                break
            row = table[index]
            if not row.open or (row.state != WAITING and row.state != EARLY):
                break
            waited = row.state == WAITING
            if waited and pending >= most and turns[chain] > turns.min():
                break
            step(row, TURN, after)
            if waited:
                out[pending] = index
                pending += 1
                break
            ended += 1
            turns[chain] += len(turns)
    return pending, ended


@njit(cache=True, nogil=True)
def give_up(first, table, indices, expired, turns, after):  # type: ignore[no-untyped-def]
    """End pending chunks without a result: expired, or overtaken. Returns their number."""
    for index in indices:
        row = table[index]
        step(row, _EXPIRY if expired else _OVERTAKEN, after)
        turns[(first + index) % len(turns)] += len(turns)
    return len(indices)


@njit(cache=True, nogil=True)
def retry(table, indices, after):  # type: ignore[no-untyped-def]
    """Step pending chunks that are sent again."""
    for index in indices:
        step(table[index], _RETRY, after)


def pending(table: Table) -> npt.NDArray[Any]:
    """Return which chunks are pending, bool[n]."""
    return np.asarray(table["state"] == PENDING)


def tail(table: Table) -> int | None:
    """Return the index of the chunk that was sent last, if it is pending."""
    if not table["attempts"].any():
        return None
    index = len(table) - 1 - int(table["sent_at"][::-1].argmax())
    return index if table["state"][index] == PENDING else None


def due(table: Table, now: int) -> Ints:
    """Return the indices of the pending chunks whose deadline has come."""
    found: Ints = (pending(table) & (table["deadline"] <= now)).nonzero()[0]
    return found
