"""Parser value sets: members in an array, compared one by one.

A member has for each field three numbers of whole 8-byte words: value (or low), mask, high. A
match is (key & mask) == value, or for range fields low <= key <= high.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.value_layout import scalar_width
from gradplane.switch.runtime.match_fields import KeyField
from gradplane.switch.runtime.valuesets import ParserValueSet


def value_set_word(name: str, part: str) -> str:
    """Name of a state word: part "members" or "count"."""
    return f"value set {name}: {part}"


def contains(
    unit: Unit, f: Function, value_set: ir.ValueSet, types: Sequence[Type],
    keys: Sequence[Operand],
) -> Operand:  # fmt: skip
    """Return whether one of the members matches, as i1."""
    name = f"member.{value_set.name}"
    widths = [scalar_width(t) for t in types]
    fields = ParserValueSet(value_set).fields
    if not unit.module.has(name):
        _write(unit, name, value_set, fields, widths)
    return f.call("i1", name, *((f"i{w}", key) for w, key in zip(widths, keys, strict=True)))


def _write(
    unit: Unit, name: str, value_set: ir.ValueSet, fields: Sequence[KeyField],
    widths: Sequence[int],
) -> None:  # fmt: skip
    params = [(f"i{w}", f"%k{i}") for i, w in enumerate(widths)]
    f = unit.module.function(f"{name}", "i1", params)
    members = f.word(value_set_word(value_set.name, "members"))
    count = f.word(value_set_word(value_set.name, "count"), "i64")
    with f.count(count) as i:
        member = f.add(members, f.binary("mul", "i64", i, member_size(fields)))
        found: Operand = "true"
        at = 0
        for k, (field, width) in enumerate(zip(fields, widths, strict=True)):
            size = 8 * field_words(field)
            row = [
                f.resize(f.load(f"i{8 * size}", f.add(member, at + j * size), 8), 8 * size, width)
                for j in range(3)
            ]
            found = f.binary("and", "i1", found, _matches(f, field, f"i{width}", f"%k{k}", row))
            at += 3 * size
        with f.when(found):
            f.ret("true")
    f.ret("false")


def _matches(
    f: Function, field: KeyField, kind: str, key: Operand, row: Sequence[Operand]
) -> Operand:
    value, mask, high = row
    if field.kind == "range":
        how = "sle" if field.signed else "ule"
        least = f.compare(how, kind, value, key)
        return f.binary("and", "i1", least, f.compare(how, kind, key, high))
    return f.compare("eq", kind, f.binary("and", kind, key, mask), value)


def field_words(field: KeyField) -> int:
    return max(1, -(-field.width // 64))


def member_size(fields: Sequence[KeyField]) -> int:
    """Return the size of a member in bytes."""
    return sum(24 * field_words(f) for f in fields)


def member_bytes(value_set: ParserValueSet) -> bytes:
    """Return all members as the native code reads them."""
    out = bytearray()
    for member in value_set.members:
        for field, match in zip(value_set.fields, member, strict=True):
            for number in _row(field, match):
                out += number.to_bytes(8 * field_words(field), "little")
    return bytes(out)


def _row(field: KeyField, match: tuple[int, ...] | None) -> tuple[int, int, int]:
    if field.kind == "range":
        half = 1 << field.width >> 1 if field.signed else 0
        low, high = match if match is not None else (half, half ^ field.full)
        return low, 0, high
    if match is None:
        return 0, 0, 0
    if field.kind == "lpm":
        return match[0], field.mask(match[1]), 0
    return match[0], match[1] if field.kind == "ternary" else field.full, 0
