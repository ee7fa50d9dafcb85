"""The bytes that the control plane adds to packets' lengths where a meter measures them."""

from __future__ import annotations

import numpy as np

METERS = ("meter", "direct_meter")
SET, BYTES = 0, 1
"""The positions of the words in ByteAdjustment.memory."""


class ByteAdjustment:
    """The adjustment of a meter: bytes that are added to each length, in place of what the program
    subtracts; None: the program's. Compiled code reads `memory` (int64)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.memory = np.zeros(2, dtype=np.int64)

    @property
    def bytes(self) -> int | None:
        return int(self.memory[BYTES]) if self.memory[SET] else None

    def set(self, number: int | None) -> None:
        """Replace the adjustment from the next packet on."""
        self.memory[BYTES] = number or 0
        self.memory[SET] = number is not None
