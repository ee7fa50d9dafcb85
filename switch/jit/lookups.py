"""Finding a table's record: one native function for each form of table.

ptr lookup(ptr words, i<K> key, range keys...) gives the action part, the default one on a miss.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.shapes import MULTIPLIER, TOMBSTONE, WORDS, Shape
from gradplane.switch.jit.text import Function, Operand


class Lookups:
    """Writes lookups into functions of a module."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self._functions: dict[tuple[object, ...], str] = {}

    def find(self, f: Function, shape: Shape, keys: Sequence[Operand]) -> Operand:
        """The action part for a key, which has an operand a match field."""
        for part in WORDS:
            f.module.word(shape.word(part))
        if shape.kind == "none":
            return f.word(shape.word("default"))
        if shape.kind == "direct":
            index = joined(f, shape, keys, 64)
            offset = f.binary("mul", "i64", index, shape.stride)
            return f.add(f.word(shape.word("records")), offset)
        return self._call(f, shape, keys)

    def _call(self, f: Function, shape: Shape, keys: Sequence[Operand]) -> Operand:
        width = 64 * max(shape.words, 1)
        args = [("ptr", f.word_address(shape.word(WORDS[0])))]
        args += [(f"i{width}", joined(f, shape, keys, width))]
        args += [(f"i{max(shape.fields[i].width, 1)}", keys[i]) for i in shape.ranges]
        return f.call("ptr", self._function(shape), *args)

    def _function(self, shape: Shape) -> str:
        same = shape.same_lookup()
        if same not in self._functions:
            name = f"lookup.{len(self._functions)}"
            self._functions[same] = name
            _Writer(self.unit, name, shape).write()
        return self._functions[same]


def joined(f: Function, shape: Shape, keys: Sequence[Operand], width: int) -> Operand:
    """All fields but ranges as one number, the first in the highest bits."""
    number: Operand = "0"
    for i, (field, key) in enumerate(zip(shape.fields, keys, strict=True)):
        if i in shape.ranges or not field.width:
            continue
        part = f.resize(key, field.width, width)
        if number != "0":
            shifted = f.binary("shl", f"i{width}", number, field.width)
            part = f.binary("or", f"i{width}", shifted, part)
        number = part
    return number


class _Writer:
    """Writes one lookup function."""

    def __init__(self, unit: Unit, name: str, shape: Shape) -> None:
        self.shape = shape
        self.width = 64 * max(shape.words, 1)
        params = [("ptr", "%words"), (f"i{self.width}", "%key")]
        params += [(f"i{max(shape.fields[i].width, 1)}", f"%r{i}") for i in shape.ranges]
        self.f = unit.module.function(name, "ptr", params)

    def write(self) -> None:
        {"hash": self._hash, "prefix": self._prefix, "scan": self._scan}[self.shape.kind]()
        self.f.ret(self._word("default", "ptr"))

    def _word(self, part: str, kind: str) -> Operand:
        return self.f.load(kind, self.f.add("%words", 8 * WORDS.index(part)))

    def _split(self, number: Operand) -> list[Operand]:
        """64-bit words, the lowest first."""
        f, out = self.f, []
        for i in range(self.shape.words):
            shifted = f.binary("lshr", f"i{self.width}", number, 64 * i) if i else number
            out.append(f.resize(shifted, self.width, 64))
        return out

    def _hash(self) -> None:
        self._probe(self._split("%key"))

    def _prefix(self) -> None:
        f, keys, words = self.f, self._split("%key"), self.shape.words
        order = self._word("order", "ptr")
        with f.count(self._word("count", "i64")) as i:
            group = f.add(order, f.binary("mul", "i64", i, 8 * (words + 1)))
            row = [f.load("i64", f.add(group, 8 * j)) for j in range(words + 1)]
            masked = [f.binary("and", "i64", k, m) for k, m in zip(keys, row, strict=False)]
            self._probe([*masked, row[words]])

    def _probe(self, words: Sequence[Operand]) -> None:
        """Returns the record with this key, or goes on if there is none."""
        f = self.f
        index, mask = self._word("index", "ptr"), self._word("mask", "i64")
        records = self._word("records", "ptr")
        at = f.variable("i64", _hashed(f, words))
        with f.loop() as end:
            place = f.binary("and", "i64", at.get(), mask)
            number = f.load("i32", f.item(index, "i32", place))
            used = f.label()
            f.branch(f.compare("eq", "i32", number, 0), end, used)
            f.at(used)
            with f.when(f.compare("ne", "i32", number, TOMBSTONE - (1 << 32))):
                self._try(records, number, words)
            at.set(f.binary("add", "i64", place, 1))

    def _try(self, records: Operand, number: Operand, words: Sequence[Operand]) -> None:
        f = self.f
        slot = f.binary("sub", "i64", f.resize(number, 32, 64), 1)
        record = f.add(records, f.binary("mul", "i64", slot, self.shape.stride))
        same: Operand = "true"
        for i, word in enumerate(words):
            equal = f.compare("eq", "i64", f.load("i64", f.add(record, 8 * i)), word)
            same = f.binary("and", "i1", same, equal)
        with f.when(same):
            f.ret(f.add(record, self.shape.key_size))

    def _scan(self) -> None:
        f, keys = self.f, self._split("%key")
        order, records = self._word("order", "ptr"), self._word("records", "ptr")
        with f.count(self._word("count", "i64")) as i:
            slot = f.resize(f.load("i32", f.item(order, "i32", i)), 32, 64)
            record = f.add(records, f.binary("mul", "i64", slot, self.shape.stride))
            with f.when(self._covers(record, keys)):
                f.ret(f.add(record, self.shape.key_size))

    def _covers(self, record: Operand, keys: Sequence[Operand]) -> Operand:
        """(key xor value) and mask is 0, and the range fields are within their bounds."""
        f, different = self.f, "0"
        for j, key in enumerate(keys):
            value = f.load("i64", f.add(record, 16 * j))
            mask = f.load("i64", f.add(record, 16 * j + 8))
            one = f.binary("and", "i64", f.binary("xor", "i64", key, value), mask)
            different = f.binary("or", "i64", different, one)
        found = f.compare("eq", "i64", different, 0)
        for i in self.shape.ranges:
            found = f.binary("and", "i1", found, self._in_range(record, i))
        return found

    def _in_range(self, record: Operand, i: int) -> Operand:
        f, field = self.f, self.shape.fields[i]
        width, size = max(field.width, 1), 8 * (-(-field.width // 64))
        at, how = self.shape.range_at(i), "sle" if field.signed else "ule"
        low, high = (
            f.resize(f.load(f"i{8 * size}", f.add(record, offset), 8), 8 * size, width)
            for offset in (at, at + size)
        )
        least = f.compare(how, f"i{width}", low, f"%r{i}")
        return f.binary("and", "i1", least, f.compare(how, f"i{width}", f"%r{i}", high))


def _hashed(f: Function, words: Sequence[Operand]) -> Operand:
    """gradplane.switch.jit.shapes.hashed"""
    h: Operand = "0"
    for word in words:
        mixed = f.binary("xor", "i64", h, word)
        h = f.binary("mul", "i64", mixed, MULTIPLIER - (1 << 64))
        h = f.binary("xor", "i64", h, f.binary("lshr", "i64", h, 32))
    return h
