"""Random numbers by counting: the n-th draw depends on the seed and n only."""

from __future__ import annotations

import numpy as np

from gradplane._splitmix64 import MASK, mix


class Rng:
    """A stream of 64-bit numbers, which `state` (uint64: seed, draws so far) determines."""

    def __init__(self, seed: int) -> None:
        # Seeds and counts are small numbers: the seed is inverted so that seeds share no draws.
        self.state = np.array([mix(~seed & MASK), 0], dtype=np.uint64)

    def draw(self) -> int:
        """Return the next number, 0 to 2^64 - 1."""
        seed, count = (int(v) for v in self.state)
        self.state[1] = (count + 1) & MASK
        return mix(seed ^ mix(count))

    def between(self, low: int, high: int) -> int:
        """Return a number from low to high, both included; low if high is less."""
        span = high - low + 1
        if span <= 1:
            return low
        value = 0
        for _ in range((span - 1).bit_length() // 64 + 1):
            value = value << 64 | self.draw()
        return low + value % span
