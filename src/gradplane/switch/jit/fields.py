"""The bits of a list of fields, over which hashes and checksums are computed.

Fields of invalid headers are left out, so a list is split into groups that are present or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Array, Bits, Bool, Fields, Header, Type, Varbit
from gradplane.switch.ir.walk import header_of
from gradplane.switch.jit import native_memory
from gradplane.switch.jit.expressions import Expressions
from gradplane.switch.jit.headers import NativeHeaderCodec, Number, clear_rest, copy_bits
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.value_layout import container


@dataclass(slots=True)
class Group:
    """Numbers with their widths, or a varbit of at most `most` bits; present if `valid`."""

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
        """Return whether the list is one group of leaves, present as a whole or not at all."""
        return len(self.groups) <= 1 and not any(g.varbit for g in self.groups)

    @property
    def most(self) -> int:
        """The greatest size in bytes."""
        return sum(g.bits for g in self.groups) // 8 + 1

    def sum16(self, exact: bool = False) -> Operand:
        """Return a fixed list's sum (i64) of 16-bit words, the last filled up with zeros; if it
        need not be exact, a number with the same ones' complement sum."""
        f, total = self.f, "0"
        for group in self.groups:
            for number in NativeHeaderCodec(self.code.unit, f).numbers(group.numbers):
                for part in self._halves(number):
                    words = [part]
                    if exact:
                        low = f.binary("and", "i64", part, 0xFFFF)
                        words = [low, f.binary("lshr", "i64", part, 16)]
                    for word in words:
                        total = f.binary("add", "i64", total, word)
            total = f.select(group.valid, "i64", total, 0)
        return total

    def _halves(self, number: Number) -> list[Operand]:
        """Return a number, moved to its place in 16-bit words, as 32-bit parts in i64s. Within a
        32-bit word its place is the header's as a rule, whose word LLVM then takes whole."""
        f, end = self.f, number.start + number.width
        shift = -end % (32 if number.start // 32 == (end - 1) // 32 else 16)
        low = f.binary("shl", "i64", number.value, shift) if shift else number.value
        if number.width + shift <= 32:
            return [low]
        parts = [f.binary("and", "i64", low, 0xFFFF_FFFF), f.binary("lshr", "i64", low, 32)]
        if number.width + shift > 64:
            parts.append(f.binary("lshr", "i64", number.value, 64 - shift))
        return parts

    def written(self, payload: tuple[Operand, Operand] | None = None) -> tuple[Operand, Operand]:
        """Return address and length of all bytes, a payload's (address, length) behind them."""
        f = self.f
        size = str(self.most + 16)
        if payload is not None:
            size = f.binary("add", "i64", payload[1], size)
        target = native_memory.reserve(f, "scratch", size)
        at = f.variable("i64", 0)
        for group in self.groups:
            with f.when(group.valid):
                self._write(group, target, at.get(), len(self.groups) == 1)
                at.increase(self._size(group))
        clear_rest(f, target, at.get())
        length = f.binary("lshr", "i64", f.binary("add", "i64", at.get(), 7), 3)
        if payload is not None:
            f.copy(f.add(target, length), *payload)
            length = f.binary("add", "i64", length, payload[1])
        return target, length

    def _size(self, group: Group) -> Operand:
        if not group.varbit:
            return str(group.bits)
        return self.f.resize(self.f.load("i32", group.varbit), 32, 64)

    def _write(self, group: Group, target: Operand, at: Operand, alone: bool) -> None:
        f, codec = self.f, NativeHeaderCodec(self.code.unit, self.f)
        if group.varbit:
            bits = container(group.most)
            buffer, size = f.alloca(bits // 8), self._size(group)
            codec.reverse(f.add(group.varbit, 8), buffer, bits // 8)
            copy_bits(f, target, at, buffer, f.binary("sub", "i64", bits, size), size)
            return
        numbers = codec.numbers(group.numbers)
        if alone:
            codec.pack(numbers, target)
        else:
            buffer = f.alloca(-(-group.bits // 8))
            codec.pack(numbers, buffer)
            copy_bits(f, target, at, buffer, 0, group.bits)

    # -- flattening -----------------------------------------------------------------------------

    def _add(self, e: ir.Expr) -> None:
        if isinstance(e, ir.Make) and not isinstance(e.type, Header):
            for part in e.fields:
                self._add(part)
            return
        owner = header_of(e)
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
            case Array(element=element, size=size):
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
        """Add a number, to the last group if that is present under the same condition."""
        width = t.width if isinstance(t, Bits) else 1
        if not width:
            return
        if not self.groups or self.groups[-1].valid != valid or self.groups[-1].varbit:
            self.groups.append(Group(valid))
        self.groups[-1].numbers.append((width, number))
