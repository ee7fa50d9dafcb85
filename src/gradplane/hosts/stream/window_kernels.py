"""Compiled steps over the window of a Stream's sending half.

state, attempts, sent_at, transmission: arrays by sequence number modulo their length; `oldest` is
the first segment that has not arrived, `next` the first that was never sent.
"""

import numpy as np
from numba import njit

ARRIVED, FLIGHT, LOST = 0, 1, 2


@njit(cache=True, nogil=True)
def take(  # type: ignore[no-untyped-def]
    state, attempts, sent_at, transmission, oldest, next, stop, window, transmissions, now, chosen
):
    """Choose the segments to send now: those that were lost, then new ones below `stop`.

    `window` is how many may be in flight; transmissions, how many there were. Writes the sequence
    numbers to chosen, int64[window's largest], and returns how many there are, and the new `next`.
    """
    size = len(state)
    room = window
    for sequence in range(oldest, next):
        if state[sequence % size] == FLIGHT:
            room -= 1
    count = 0
    for sequence in range(oldest, next):
        if count < room and state[sequence % size] == LOST:
            chosen[count] = sequence
            count += 1
    new = max(min(next + room - count, stop, oldest + size), next)
    for sequence in range(next, new):
        attempts[sequence % size] = 0
        chosen[count] = sequence
        count += 1
    for i in range(count):
        slot = chosen[i] % size
        state[slot], sent_at[slot] = FLIGHT, now
        attempts[slot] += 1
        transmission[slot] = transmissions + 1 + i
    return count, new


@njit(cache=True, nogil=True)
def arrive(  # type: ignore[no-untyped-def]
    state, attempts, sent_at, transmission, oldest, next, before, beyond
):
    """Mark the segments as arrived that an acknowledgement covers.

    Those are all before number `before`, and `before` + 1 + i for each bit i of beyond, uint8[n],
    lowest bits first. Of the segments that were in flight until now, returns how many there are,
    the last transmission, and when the last one was sent that was sent once, -1 for none, and the
    last of all; then the new `oldest`.
    """
    size = len(state)
    arrived, newest, once, last = 0, np.int64(-1), np.int64(-1), np.int64(-1)
    for sequence in range(oldest, next):
        ahead = sequence - before - 1
        covered = sequence < before
        if 0 <= ahead < 8 * len(beyond):
            covered = beyond[ahead // 8] >> (ahead % 8) & 1 != 0
        if not covered:
            continue
        slot = sequence % size
        if state[slot] == FLIGHT:
            arrived += 1
            newest, last = max(newest, transmission[slot]), max(last, sent_at[slot])
            if attempts[slot] == 1:
                once = max(once, sent_at[slot])
        state[slot] = ARRIVED
    while oldest < next and state[oldest % size] == ARRIVED:
        oldest += 1
    return arrived, newest, once, last, oldest


@njit(cache=True, nogil=True)
def overtake(state, transmission, oldest, next, limit):  # type: ignore[no-untyped-def]
    """Mark as lost what is in flight since transmission `limit` or before.

    Returns the last of their transmissions, -1 if there are none.
    """
    last = np.int64(-1)
    for sequence in range(oldest, next):
        slot = sequence % len(state)
        if state[slot] == FLIGHT and transmission[slot] <= limit:
            state[slot] = LOST
            last = max(last, transmission[slot])
    return last


@njit(cache=True, nogil=True)
def first_sent(state, sent_at, oldest, next):  # type: ignore[no-untyped-def]
    """Return when the segment in flight was sent that was sent first; -1 if none is."""
    first = np.int64(-1)
    for sequence in range(oldest, next):
        slot = sequence % len(state)
        if state[slot] == FLIGHT and (first < 0 or sent_at[slot] < first):
            first = sent_at[slot]
    return first
