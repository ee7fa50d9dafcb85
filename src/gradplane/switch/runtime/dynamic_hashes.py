"""Hashes whose algorithm the control plane may replace with a CRC."""

from __future__ import annotations

import numpy as np

from gradplane.switch.runtime.fixed_crcs import Crc, rows_of

ROWS, START, SHIFT, FINAL, REFLECTED, USED, WORDS = 0, 256, 257, 258, 259, 260, 261
"""The positions of the words in DynamicHash.memory."""


class DynamicHash:
    """A hash of the program: `crc` is the CRC in place of the program's algorithm, None without.

    Compiled code reads `memory` (uint64): the rows of the 256 bytes, and single words."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.crc: Crc | None = None
        self.memory = np.zeros(WORDS, dtype=np.uint64)

    def set(self, crc: Crc | None) -> None:
        """Compute a CRC from the next packet on; None: the program's algorithm."""
        self.crc = crc
        self.memory[USED] = crc is not None
        if crc is not None:
            self.memory[ROWS:START] = rows_of(crc)
            rest = (crc.start, crc.shift, crc.final, int(crc.reflected))
            self.memory[START:USED] = rest
