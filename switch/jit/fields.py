"""The bits of a list of fields: what hashes and checksums are computed over.

Fields of invalid headers are left out, so a list is cut into groups that are there or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Bits, Bool, Fields, Header, Stack, Type, Varbit
from gradplane.switch.jit import vectors
from gradplane.switch.jit.expressions import Expressions
from gradplane.switch.jit.headers import Codec, copy_bits
from gradplane.switch.jit.layout import container
from gradplane.switch.jit.text import Operand


@dataclass(slots=True)
class Group:
    """Numbers with their widths, or a varbit in memory of at most `most` bits; present if `valid`.
    """

    valid: Operand
    numbers: list[tuple[int, Operand]] = field(default_factory=list)
    varbit: Operand = ""
    most: int = 0

    @property
    def bits(self) -> int:
        """Size; the most for a varbit."""
        return self.most or sum(width for width, _ in self.numbers)


class FieldList:
    """The groups of an expression, in order."""

    def __init__(self, code: Expressions, exprs: list[ir.Expr]) -> None:
        self.code = code
        self.f = code.f
        self.groups: list[Group] = []
        self._valid: dict[str, Operand] = {}
        for e in exprs:
            self._add(e)

    @property
    def fixed(self) -> bool:
        """Whether it is one group of leaves: present as a whole or not at all."""
        return len(self.groups) <= 1 and not any(g.varbit for g in self.groups)

    @property
    def most(self) -> int:
        """The greatest size in bytes."""
        return sum(g.bits for g in self.groups) // 8 + 1

    def sum16(self) -> Operand:
        """Of a fixed list: the sum (i64) of its 16-bit words, the last filled up with zeros."""
        total: Operand = "0"
        at = 0
        for group in self.groups:
            for width, number in group.numbers:
                at += width
                for part in self._words32(number, width, -at % 16):
                    total = self.f.binary("add", "i64", total, part)
            total = self.f.select(group.valid, "i64", total, 0)
        return total

    def _words32(self, number: Operand, size: int, shift: int) -> list[Operand]:
        """A number, moved to its place in a 16-bit word, as 32-bit parts in i64s."""
        width = -(-(size + shift) // 32) * 32
        wide = self.f.resize(number, size, width)
        wide = self.f.binary("shl", f"i{width}", wide, shift) if shift else wide
        parts = []
        for low in range(0, width, 32):
            part = self.f.binary("lshr", f"i{width}", wide, low) if low else wide
            parts.append(self.f.resize(self.f.resize(part, width, 32), 32, 64))
        return parts

    def written(self, payload: tuple[Operand, Operand] | None = None) -> tuple[Operand, Operand]:
        """Address and length of all bytes, those of a payload (address, length) behind them."""
        f = self.f
        size = str(self.most + 16)
        if payload is not None:
            size = f.binary("add", "i64", payload[1], size)
        target = vectors.reserve(f, "scratch", size)
        at = f.variable("i64", 0)
        for group in self.groups:
            with f.when(group.valid):
                self._write(group, target, at.get(), len(self.groups) == 1)
                at.increase(self._size(group))
        self._fill(target, at.get())
        length = f.binary("lshr", "i64", f.binary("add", "i64", at.get(), 7), 3)
        if payload is not None:
            f.copy(f.add(target, length), *payload)
            length = f.binary("add", "i64", length, payload[1])
        return target, length

    def _fill(self, target: Operand, bits: Operand) -> None:
        """Zeros for what is missing to a whole byte."""
        f = self.f
        odd = f.binary("and", "i64", bits, 7)
        with f.when(f.compare("ne", "i64", odd, 0)):
            last = f.add(target, f.binary("lshr", "i64", bits, 3))
            mask = f.binary("ashr", "i8", "-128", f.resize(f.binary("sub", "i64", odd, 1), 64, 8))
            f.store("i8", f.binary("and", "i8", f.load("i8", last), mask), last)

    def _size(self, group: Group) -> Operand:
        if not group.varbit:
            return str(group.bits)
        return self.f.resize(self.f.load("i32", group.varbit), 32, 64)

    def _write(self, group: Group, target: Operand, at: Operand, alone: bool) -> None:
        f, codec = self.f, Codec(self.code.unit, self.f)
        if group.varbit:
            bits = container(group.most)
            buffer, size = f.alloca(bits // 8), self._size(group)
            value = f.load(f"i{bits}", f.add(group.varbit, 8), min(bits // 8, 8))
            codec.put_big_endian(value, buffer, bits // 8)
            start = f.binary("sub", "i64", bits, size)
            copy_bits(self.code.unit, f, target, at, buffer, start, size)
            return
        bits = -(-group.bits // 8) * 8
        number = codec.joined(group.numbers, bits)
        if alone:
            codec.put_big_endian(number, target, bits // 8)
        else:
            buffer = f.alloca(bits // 8)
            codec.put_big_endian(number, buffer, bits // 8)
            copy_bits(self.code.unit, f, target, at, buffer, 0, group.bits)

    # -- flattening -----------------------------------------------------------------------------

    def _add(self, e: ir.Expr) -> None:
        if isinstance(e, ir.Make) and not isinstance(e.type, Header):
            for part in e.fields:
                self._add(part)
            return
        owner = _owner(e)
        valid: Operand = "true"
        if owner is not None:
            name = expression_text(owner)
            if name not in self._valid:
                address = self.code.address(owner)
                self._valid[name] = self.code.valid(address, owner.type)
            valid = self._valid[name]
        if isinstance(e.type, Bits | Bool):
            self._number(e.type, self.code.value(e), valid)
        else:
            self._value(e.type, self.code.address(e), valid)

    def _value(self, t: Type, address: Operand, valid: Operand) -> None:
        f = self.f
        match t:
            case Bits() | Bool():
                self._number(t, self.code.load(t, address), valid)
            case Varbit(width=width):
                self.groups.append(Group(valid, varbit=address, most=width))
            case Stack(element=element, size=size):
                for i in range(size):
                    self._value(element, self.code.item(t, address, i), valid)
            case Fields(fields=fields):
                if isinstance(t, Header):
                    valid = f.binary("and", "i1", valid, self.code.valid(address, t))
                offsets = self.code.layouts.of(t).offsets
                for one, offset in zip(fields, offsets, strict=True):
                    self._value(one.type, f.add(address, offset), valid)
            case _:
                raise AssertionError(t)

    def _number(self, t: Type, number: Operand, valid: Operand) -> None:
        """Joins the last group if that is present under the same condition."""
        width = t.width if isinstance(t, Bits) else 1
        if not width:
            return
        if not self.groups or self.groups[-1].valid != valid or self.groups[-1].varbit:
            self.groups.append(Group(valid))
        self.groups[-1].numbers.append((width, number))


def _owner(e: ir.Expr) -> ir.Expr | None:
    """The header that a field belongs to."""
    while isinstance(e, ir.FieldOf):
        e = e.base
        if isinstance(e.type, Header):
            return e
    return None
