"""The CRCs whose parameters the control plane may change: crc16_custom and crc32_custom of `hash`.

As in p4c and simple_switch, each call of `hash` is a separate calculation, named calc,
calc_0, calc_1 and so on: first the calls in actions of tables, in source order, then those in the
controls. A program that was compiled elsewhere brings the names with it, and may use a calculation
in several calls. A calculation starts out as the standard CRC. (Parameters as in R. Williams, A
Painless Guide to CRC Error Detection Algorithms, 1993.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import blocks, nested, statements
from gradplane.switch.runtime.fixed_crcs import remainders, reversed_bits

WIDTHS = {"crc16_custom": 16, "crc32_custom": 32}
ROWS, ORDER, START, SHIFT, REVERSED, FINAL, WORDS = 0, 256, 512, 513, 514, 515, 516
"""The positions of the words in CustomCrc.memory."""

_BITS, _MASK = 32, 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class CrcParameters:
    """The parameters of a CRC.

    polynomial: without its highest bit. reflect_data: take each byte from its lowest bit on."""

    polynomial: int
    initial: int
    final: int
    reflect_data: bool
    reflect_remainder: bool


STANDARD = {
    16: CrcParameters(0x8005, 0, 0, True, True),
    32: CrcParameters(0x04C11DB7, _MASK, _MASK, True, True),
}


class CustomCrc:
    """A calculation of `width` bits, 16 or 32. Compiled code reads `memory` (uint32): a
    row for each byte, each byte's bits in the order in which they are taken, and single words. The
    remainder is kept in the upper bits of 32, so that both widths are computed alike."""

    def __init__(self, name: str, width: int) -> None:
        self.name = name
        self.width = width
        self.standard = STANDARD[width]
        self.memory = np.zeros(WORDS, dtype=np.uint32)
        self.set(self.standard)

    def set(self, p: CrcParameters) -> None:
        """Change the parameters, from the next packet on."""
        shift = _BITS - self.width
        order = [reversed_bits(b, 8) if p.reflect_data else b for b in range(256)]
        rows = [row >> _BITS for row in remainders(p.polynomial << shift + _BITS)]
        rest = [p.initial << shift, shift, int(p.reflect_remainder), p.final]
        self.parameters = p
        self.memory[:] = rows + order + rest

    def __call__(self, data: bytes) -> int:
        words = self.memory.tolist()
        remainder = words[START]
        for byte in data:
            remainder = words[words[ORDER + byte] ^ (remainder >> 24)] ^ (remainder << 8 & _MASK)
        if words[REVERSED]:
            remainder = reversed_bits(remainder, _BITS)
        else:
            remainder >>= words[SHIFT]
        value: int = remainder ^ words[FINAL]
        return value


def custom_crcs(program: ir.Program) -> dict[ir.CallExtern, tuple[str, int]]:
    """Return the name and width of each call of `hash` with such an algorithm."""
    found = {}
    for i, call in enumerate(_hash_calls(program)):
        algorithm = call.args[1]
        name = str(algorithm.value) if isinstance(algorithm, ir.Const) else ""
        if name in WIDTHS:
            by_place = f"calc_{i - 1}" if i else "calc"
            found[call] = (call.calculation or by_place, WIDTHS[name])
    return found


def _hash_calls(program: ir.Program) -> Iterator[ir.CallExtern]:
    seen: set[ir.Stmt] = set()
    bodies = [nested(action.body) for action in program.actions]
    bodies += [statements(block) for _, block in blocks(program.package)]
    for body in bodies:
        for stmt in body:
            if not isinstance(stmt, ir.CallExtern) or stmt.instance or stmt in seen:
                continue
            if stmt.name == "hash":
                seen.add(stmt)
                yield stmt
