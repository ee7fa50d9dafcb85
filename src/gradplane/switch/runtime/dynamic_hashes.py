"""Hashes whose algorithm the control plane may replace with a CRC.

As in the chip's hash matrices, the fields that a CRC takes are filled up to whole bytes in front,
those of an exclusive or behind; and a result that is wider than its CRC repeats it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, bit_width
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

COUNT, BITS, SKIPPED, FIRST = 0, 1, 2, 3
"""The positions of the words in DynamicHash.span_memory: how many spans, of how many bits, and the
zeros in front of what they take; from FIRST on each start and length."""
_RESULT_BITS = 64


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
        self.filled_in_front = is_crc(instance)
        self._repeat = repetition(instance)
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
            data = self._taken(data, self.spans)
        if self.crc is not None:
            return self.crc(data)
        return self._own(data) * self._repeat % (1 << _RESULT_BITS)

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
        if spans is None:
            self.span_memory[:FIRST] = 0
            return
        taken = sum(length for _, length in spans)
        self.span_memory[:FIRST] = (len(spans), total, self._in_front(taken))
        for i, (start, length) in enumerate(spans):
            place = FIRST + 2 * i
            self.span_memory[place : place + 2] = (start + self._in_front(total), length)

    def _in_front(self, bits: int) -> int:
        return -bits % 8 if self.filled_in_front else 0

    def _taken(self, data: bytes, spans: Spans) -> bytes:
        """Return the bits of the spans one after the other, filled up with zeros."""
        whole, size = int.from_bytes(data, "big"), 8 * len(data) - self._in_front(self.total)
        value = total = 0
        for start, length in spans:
            value = value << length | whole >> (size - start - length) & ((1 << length) - 1)
            total += length
        pad = -total % 8
        behind = pad - self._in_front(total)
        return (value << behind).to_bytes((total + pad) // 8, "big")


def is_crc(instance: ir.ExternInstance) -> bool:
    """Return whether a program's hash is a CRC, by name or by a polynomial."""
    return instance.word("algorithm").startswith("crc") or polynomial_of(instance) is not None


def filled(instance: ir.ExternInstance, fields: Sequence[ir.Expr]) -> list[ir.Expr]:
    """Return what a hash takes: fields, for a CRC with the zeros in front that make whole bytes."""
    bits = filling(instance, (bit_width(e.type) for e in fields))
    return [build.number(Bits(bits), 0), *fields] if bits else list(fields)


def filling(instance: ir.ExternInstance, widths: Iterable[int | None]) -> int:
    """Return how many zeros a hash has in front of fields of these widths (None: not fixed)."""
    known = list(widths)
    if not is_crc(instance) or None in known:
        return 0
    return -sum(width for width in known if width is not None) % 8


def repetition(instance: ir.ExternInstance) -> int:
    """Return the factor that repeats a CRC in 64 bits: 1 for a function that is not repeated."""
    made = _polynomial(instance)
    if made is not None and not made.number("extended", 0):
        return 1
    crc = polynomial_of(instance)
    width = crc.width if crc is not None else _WIDTHS.get(instance.word("algorithm"), _RESULT_BITS)
    return sum(1 << at for at in range(0, _RESULT_BITS, width))


_WIDTHS = {"crc8": 8, "crc16": 16, "crc32": 32}


def selector_hash(selector: ir.ExternInstance) -> ir.ExternInstance | None:
    """Return the hash instance that a selector was made with; None if it names an algorithm."""
    made = (a for a in selector.args if isinstance(a, ir.ExternInstance))
    return next((a for a in made if a.kind == "hash"), None)


def is_symmetric(instance: ir.ExternInstance) -> bool:
    """Return whether a hash or a selector has symmetric fields, which nothing changes later."""
    return any(a.name == "symmetric" for a in instance.annotations)


def polynomial_of(instance: ir.ExternInstance) -> Crc | None:
    """Return the CRC of a hash that was made with a CRCPolynomial; None without."""
    made = _polynomial(instance)
    if made is None:
        return None
    width = bit_width(made.type_args[0]) or 0
    mask = (1 << width) - 1
    coefficients, initial, final = (made.number(r) & mask for r in ("coefficients", "init", "xor"))
    return Crc(width, coefficients, initial, final, bool(made.number("reversed")))


def _polynomial(instance: ir.ExternInstance) -> ir.ExternInstance | None:
    return next((a for a in instance.args if isinstance(a, ir.ExternInstance)), None)
