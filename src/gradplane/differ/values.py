"""Numbers by their width, so that entries, packets and the program meet in the same ones."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

from gradplane.switch.ir.types import Bits

PORTS = range(1, 9)
_MOST, _NEW = 40, 3  # numbers of a width; random ones among them


class Values:
    """Random values that occur in the program, or did before."""

    def __init__(self, rng: random.Random, known: Iterable[tuple[int, int]]) -> None:
        """known: width and value of the program's numbers."""
        self._rng = rng
        self._known: dict[int, list[int]] = defaultdict(list)
        for width, value in known:
            if value not in self._known[width]:
                self._known[width].append(value)

    def value(self, width: int) -> int:
        """Return a value that occurs elsewhere in program or entries, or sometimes any other."""
        rng, known = self._rng, self._known[width]
        if not known or len(known) < _NEW or (len(known) < _MOST and rng.random() < 0.05):
            known.append(rng.choice((rng.getrandbits(width), rng.randrange(9) % (1 << width))))
        return rng.choice(known)

    def port(self, width: int) -> int:
        """Return a port's number where the width is a port's, else a value."""
        return self._rng.choice(PORTS) if width == 9 else self.value(width)

    def argument(self, t: object) -> int:
        """Return a value of a parameter's type."""
        if not isinstance(t, Bits):
            return self._rng.randrange(2)
        value = self.port(t.width)
        return value - (1 << t.width) if t.signed and value >> (t.width - 1) else value
