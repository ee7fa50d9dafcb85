"""Hashes whose algorithm the control plane may replace with a CRC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import bit_width
from gradplane.switch.runtime.fixed_crcs import Crc, rows_of
from gradplane.switch.runtime.hashes import HASHES

ROWS, START, SHIFT, FINAL, REFLECTED, USED, WORDS = 0, 256, 257, 258, 259, 260, 261
"""The positions of the words in DynamicHash.memory."""


Spans = Sequence[tuple[int, int]]


def no_hash(data: bytes) -> int:
    """Stand for an algorithm that is no function of the data: random."""
    raise AssertionError("a random hash is drawn, not computed")


SPANS = 64
"""The most parts of fields that a hash can be configured to take."""

COUNT, BITS, FIRST = 0, 1, 2
"""The positions of the words in DynamicHash.span_memory; from FIRST on each start and length."""


class DynamicHash:
    """A hash of the program, whose algorithm is not random. `algorithm`: the program's, the CRC of
    its polynomial or the name in the source. `crc`: the CRC in place of it, None without. `spans`:
    the bits that it takes of the program's, each with its start and length, the first bit on top;
    None: all, in order; `total`: the bits of all. `shown`: what a notation keeps of both, under its
    own names.

    Compiled code reads `memory` (uint64): the rows of the 256 bytes, and single words; and
    `span_memory` (int64)."""

    def __init__(self, instance: ir.ExternInstance) -> None:
        self.name = instance.name
        self.crc: Crc | None = None
        self.algorithm = polynomial_of(instance) or instance.word("algorithm")
        own = self.algorithm
        self._own = HASHES.get(own, no_hash) if isinstance(own, str) else own
        self.memory = np.zeros(WORDS, dtype=np.uint64)
        self.spans: Spans | None = None
        self.total = 0
        self.shown: dict[str, Any] = {}
        self.span_memory = np.zeros(FIRST + 2 * SPANS, dtype=np.int64)

    def compute(self, data: bytes) -> int:
        """Return the hash of data, with all its bits."""
        if self.spans is not None and len(data) == -(-int(self.span_memory[BITS]) // 8):
            data = _taken(data, self.spans)
        return (self.crc or self._own)(data)

    def set(self, crc: Crc | None) -> None:
        """Compute a CRC from the next packet on; None: the program's algorithm."""
        self.crc = crc
        self.memory[USED] = crc is not None
        if crc is not None:
            self.memory[ROWS:START] = rows_of(crc)
            rest = (crc.start, crc.shift, crc.final, int(crc.reflected))
            self.memory[START:USED] = rest

    def take(self, spans: Spans | None, total: int) -> None:
        """Hash these spans of the program's `total` bits from the next packet on; None: all."""
        assert spans is None or len(spans) <= SPANS, len(spans)
        self.spans, self.total = spans, total
        self.span_memory[:FIRST] = (0, 0) if spans is None else (len(spans), total)
        for i, span in enumerate(spans or ()):
            self.span_memory[FIRST + 2 * i : FIRST + 2 * i + 2] = span


def _taken(data: bytes, spans: Spans) -> bytes:
    """Return the bits of the spans one after the other, filled up with zeros."""
    whole, size = int.from_bytes(data, "big"), 8 * len(data)
    value = total = 0
    for start, length in spans:
        value = value << length | whole >> (size - start - length) & ((1 << length) - 1)
        total += length
    pad = -total % 8
    return (value << pad).to_bytes((total + pad) // 8, "big")


def selector_hash(selector: ir.ExternInstance) -> ir.ExternInstance | None:
    """Return the hash instance that a selector was made with; None if it names an algorithm."""
    made = (a for a in selector.args if isinstance(a, ir.ExternInstance))
    return next((a for a in made if a.kind == "hash"), None)


def is_symmetric(instance: ir.ExternInstance) -> bool:
    """Return whether a hash or a selector has symmetric fields, which nothing changes later."""
    return any(a.name == "symmetric" for a in instance.annotations)


def polynomial_of(instance: ir.ExternInstance) -> Crc | None:
    """Return the CRC of a hash that was made with a CRCPolynomial; None without."""
    made = next((a for a in instance.args if isinstance(a, ir.ExternInstance)), None)
    if made is None:
        return None
    width = bit_width(made.type_args[0]) or 0
    mask = (1 << width) - 1
    coefficients, initial, final = (made.number(r) & mask for r in ("coefficients", "init", "xor"))
    return Crc(width, coefficients, initial, final, bool(made.number("reversed")))
