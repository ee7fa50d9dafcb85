"""Digests that are computed when one of them is wanted, together with others that will be.

Of many workers in one process each has a vector and codes whose digests its records need: many are
hashed faster at once than one by one (`sha256_lanes`).
"""

import threading
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy.typing as npt

from gradplane._deferred import Deferred
from gradplane.hosts import sha256_lanes
from gradplane.hosts.digest import digest, little_endian
from gradplane.hosts.protocols.once import Once

_MOST = 64
_LEAST = 1 << 16  # bytes of the one that is wanted, for which it pays
_LANES = 8  # of vectors that are in use on average, for which it pays
_BLOCK = 64  # of SHA-256, bytes
_lock = threading.Lock()  # of:
_waiting: "list[weakref.ref[PooledDigest]]" = []
_once = Once(digest)  # of constant vectors, which several workers may have


class PooledDigest(Deferred[str]):
    """The digest of arrays one after the other, which nobody changes until it is known."""

    def __init__(self, *parts: npt.NDArray[Any]) -> None:
        self.parts = parts
        self.nbytes = sum(part.nbytes for part in parts)
        super().__init__(_once, *parts)
        with _lock:
            _waiting.append(weakref.ref(self))

    def get(self) -> str:
        """Return it; compute it, once, if that has not been done. From any thread."""
        with self._lock, ExitStack() as held:
            if self.waits:
                found = _others(self, held)
                if found:
                    _compute([self, *found])
                else:
                    self.set(_once(*self.parts))
            return self._value

    @property
    def waits(self) -> bool:
        """Whether it is not computed."""
        return self._work is not None

    def take(self, until: ExitStack) -> bool:
        """Keep other threads from computing it; return whether it is to be computed."""
        if not self._lock.acquire(blocking=False):
            return False
        until.callback(self._lock.release)
        return self.waits

    def set(self, value: str) -> None:
        """Set the value, while it is taken."""
        self._value, self._work, self.parts = value, None, ()


def _others(wanted: PooledDigest, until: ExitStack) -> list[PooledDigest]:
    """Take digests to compute with one that is; none where they are few or small."""
    if wanted.nbytes < _LEAST or not sha256_lanes.worthwhile():
        return []
    with _lock:
        living = [one for known in _waiting if (one := known()) is not None and one.waits]
        some = living[:_MOST]
        sizes = [one.nbytes for one in some]
        if sum(sizes) < _LANES * max(sizes, default=1):
            some = []
        _waiting[:] = map(weakref.ref, living[len(some) :])
        return [one for one in some if one is not wanted and one.take(until)]


def _compute(digests: Sequence[PooledDigest]) -> None:
    """Set the values of digests that are taken, of equal memory once."""
    alike: dict[tuple[tuple[int, int], ...], list[PooledDigest]] = {}
    for one in digests:
        known = _once.known(*one.parts)
        if known is not None:
            one.set(known)
        elif any(part.nbytes % _BLOCK for part in one.parts[:-1]):
            one.set(_once(*one.parts))
        else:
            alike.setdefault(tuple(map(_memory, one.parts)), []).append(one)
    groups = sorted(alike.values(), key=lambda group: -group[0].nbytes)
    messages = [[little_endian(part) for part in group[0].parts] for group in groups]
    for group, value in zip(groups, sha256_lanes.digests(messages), strict=True):
        _once.remember(value, *group[0].parts)
        for one in group:
            one.set(value)


def _memory(part: npt.NDArray[Any]) -> tuple[int, int]:
    start: int = part.__array_interface__["data"][0]
    return start, part.nbytes
