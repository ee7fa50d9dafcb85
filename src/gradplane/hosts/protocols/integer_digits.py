"""Integers through a switch that sums a codec's codes: exact sums, whatever the codec is.

A switch looks codes up in the codec's table and adds what it finds. Where b of the table's numbers
are equally spaced, first, first + step, ..., a code can carry a digit of base b: the sum of the
workers' numbers gives the sum of their digits, and those give the sum of the integers. It has the
integers' type, and wraps in it as any addition of such integers. THC's table with granularity 30
has the odd numbers from 3 to 27, so base 13: nine digits, and four and a half bytes, for an int32.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.codecs import Partition

Integers = npt.NDArray[np.signedinteger[Any]]
Words = npt.NDArray[np.unsignedinteger[Any]]

_PARTITION = 1 << 16  # values


@dataclass(frozen=True)
class Digits:
    """Codes of a table whose numbers are equally spaced: `codes` by digit."""

    codes: tuple[int, ...]
    first: int
    step: int

    @property
    def base(self) -> int:
        """The number of digits."""
        return len(self.codes)


@functools.cache
def digits(table: tuple[int, ...]) -> Digits:
    """Return the most numbers of a table that are equally spaced; two always are."""
    places = {number: code for code, number in enumerate(table)}
    found: list[Digits] = []
    for k, first in enumerate(table):
        for step in {later - first for later in table[k + 1 :]}:
            codes, number = [], first
            while number in places:
                codes.append(places[number])
                number += step
            found.append(Digits(tuple(codes), first, step))
    return max(found, key=lambda each: (each.base, -each.first))


@dataclass(frozen=True)
class IntegerDigits:
    """Takes the codec's place in a reduce of integers of `size` bytes: no norm, no state, no loss.

    table: the codec's. decode_sum() returns the sum, not the mean, in the integers' type.
    """

    table: tuple[int, ...]
    size: int

    @property
    def _digits(self) -> Digits:
        return digits(self.table)

    @functools.cached_property
    def _count(self) -> int:
        """The digits of an integer."""
        return next(k for k in range(1, 65) if self._digits.base**k >= 1 << 8 * self.size)

    def partitions(self, n: int) -> tuple[Partition, ...]:
        """Cut a vector of n integers."""
        cuts = [(begin, min(begin + _PARTITION, n)) for begin in range(0, n, _PARTITION)]
        count = self._count
        return tuple(Partition(a, b, a * count, (b - a) * count) for a, b in cuts)

    def lanes(self, n: int) -> int:
        """Return the number of codes of n integers."""
        return n * self._count

    def start(self, n: int) -> None:
        """Return the state: there is none."""

    def skip(self, x: Integers, state: None = None) -> None:
        """Return the state after a reduce in which nothing was sent."""

    def local(self, x: Integers, state: None = None) -> None:
        """Return the statistic that workers share: there is none."""

    def deferred(self, state: None) -> tuple[()]:
        """Return what codes() put off: nothing."""
        return ()

    def codes(
        self, x: Integers, shared: Any, seed: int, state: None = None, worker: int = 0
    ) -> tuple[npt.NDArray[np.uint8], None]:
        """Return the codes of the digits, the lowest digit first."""
        base, codes = self._digits.base, np.array(self._digits.codes, np.uint8)
        rest: Words = x.astype(f"i{self.size}").view(f"u{self.size}")
        out = np.empty((x.size, self._count), np.uint8)
        for place in range(self._count):
            rest, digit = np.divmod(rest, rest.dtype.type(base))
            out[:, place] = codes[digit]
        return out.reshape(-1), None

    def decode_sum(
        self, sums: npt.NDArray[Any], n: int, count: int, shared: Any, seed: int = 0
    ) -> Integers:
        """Return the sums of the integers of `count` workers."""
        found = sums.astype(np.uint64).reshape(n, self._count)
        found = (found - np.uint64(count * self._digits.first)) // np.uint64(self._digits.step)
        total = np.zeros(n, np.uint64)
        for place in reversed(range(self._count)):
            total = total * np.uint64(self._digits.base) + found[:, place]
        wrapped: Integers = total.astype(f"u{self.size}").view(f"i{self.size}")
        return wrapped
