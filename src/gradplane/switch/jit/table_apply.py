"""Applying a table: key, lookup, counters and meters, action.

The lookup of a table's record is one native function for each form of table:

    ptr lookup(ptr words, i<K> key, range keys...) gives the action part, the default one on a miss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.hash_tables import BLOCK
from gradplane.switch.jit.llvm_text import Function, Operand, Variable
from gradplane.switch.jit.statements import Lookup, Statements
from gradplane.switch.jit.table_layout import (
    DIRECT,
    EMPTY_GROUP,
    FEW,
    MULTIPLIER,
    TOMBSTONE,
    WORDS,
    LookupOutcome,
    Plain,
    Shape,
    shape_of,
    with_places,
)
from gradplane.switch.jit.value_layout import scalar_width


class Lookups:
    """Writes lookups into functions of a module."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self._functions: dict[tuple[object, ...], str] = {}

    def find(self, f: Function, shape: Shape, keys: Sequence[Operand]) -> Operand:
        """Return the action part for a key, which has an operand for each match field."""
        if shape.kind == "direct":
            return self.record(f, shape, joined(f, shape, keys, 64))
        for part in WORDS:
            f.module.word(shape.word(part))
        if shape.kind == "none":
            return f.word(shape.word("default"))
        return self._call(f, shape, keys)

    def record(self, f: Function, shape: Shape, index: Operand) -> Operand:
        """Return the address of a direct or plain table's record.

        The fixed part comes last, so that it can be part of the instruction that loads."""
        if shape.turns:  # the tables' turns come between the last field and the others
            rest = f.binary("and", "i64", index, -1 << shape.low)
            apart = f.binary("mul", "i64", rest, (1 << shape.turns) - 1)
            index = f.binary("add", "i64", index, apart)
        start = f.add(f.word(DIRECT), f.binary("mul", "i64", index, shape.stride))
        return f.add(start, shape.records)

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
    """Join all fields into one number, the first in the highest bits."""
    number: Operand = "0"
    for field, key in zip(shape.fields, keys, strict=True):
        if not field.width:
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
        self._read = self.f.load if shape.grows else self.f.fixed

    def write(self) -> None:
        {"hash": self._hash, "lpm": self._lpm, "tuples": self._tuples}[self.shape.kind]()
        self.f.ret(self._word("default", "ptr"))

    def _word(self, part: str, kind: str) -> Operand:
        return self._read(kind, self.f.add("%words", 8 * WORDS.index(part)), 8)

    def _split(self, number: Operand) -> list[Operand]:
        """Split a number into 64-bit words, the lowest first."""
        f, out = self.f, []
        for i in range(self.shape.words):
            shifted = f.binary("lshr", f"i{self.width}", number, 64 * i) if i else number
            out.append(f.resize(shifted, self.width, 64))
        return out

    def _hash(self) -> None:
        self._probe(self._split("%key"))

    def _lpm(self) -> None:
        """Try the lengths whose bits the guard has, the longest first."""
        f, shape = self.f, self.shape
        order = "null" if shape.short else self._word("order", "ptr")
        assert shape.guard is not None, shape
        bits, words = shape.guard
        behind = sum(field.width for field in shape.fields[shape.lpm + 1 :])
        above = behind + shape.fields[shape.lpm].width
        start = above - bits
        shifted = f.binary("lshr", f"i{self.width}", "%key", start) if start else "%key"
        first = f.binary("and", "i64", f.resize(shifted, self.width, 64), (1 << bits) - 1)
        guard = f.add(self._word("guard", "ptr"), f.binary("mul", "i64", first, 8 * words))
        for word in reversed(range(words)):
            left = f.variable("i64", self._read("i64", f.add(guard, 8 * word), 8))
            with f.loop() as end:
                lengths, more = left.get(), f.label()
                f.branch(f.compare("eq", "i64", lengths, 0), end, more)
                f.at(more)
                zeros = f.intrinsic("llvm.ctlz.i64", "i64", ("i64", lengths), ("i1", "true"))
                top = f.binary("lshr", "i64", -(1 << 63), zeros)
                left.set(f.binary("xor", "i64", lengths, top))
                length = f.binary("sub", "i64", 63 + 64 * word, zeros)
                if shape.short:
                    self._probe([self._with_length(behind, above, length)])
                else:
                    row = f.binary("mul", "i64", length, 8 * (shape.words + 1))
                    self._probe(self._masks(f.add(order, row)))

    def _with_length(self, behind: int, top: int, length: Operand) -> Operand:
        """Return the masked key, with the prefix's length above it; the lpm field is between the
        bits `behind` and `top`."""
        f = self.f
        mask = f.binary("shl", "i64", -1, f.binary("sub", "i64", top, length))
        if behind:
            mask = f.binary("or", "i64", mask, (1 << behind) - 1)
        above = f.binary("shl", "i64", length, self.shape.bits)
        return f.binary("or", "i64", f.binary("and", "i64", "%key", mask), above)

    def _masks(self, group: Operand) -> list[Operand]:
        """Return the masked key's words and the group's number."""
        f, keys = self.f, self._split("%key")
        row = [self._read("i64", f.add(group, 8 * j), 8) for j in range(len(keys) + 1)]
        return [*(f.binary("and", "i64", k, m) for k, m in zip(keys, row, strict=False)), row[-1]]

    def _probe(self, words: Sequence[Operand]) -> None:
        """Return the record with this key, or go on if there is none."""
        with self._found(words) as record:
            self.f.ret(self.f.add(record, self.shape.key_size))

    @contextmanager
    def _found(self, words: Sequence[Operand]) -> Iterator[Operand]:
        """Run what is written inside on the record with this key, if there is one; it must not end
        in the middle."""
        f = self.f
        index, mask = self._word("index", "ptr"), self._word("mask", "i64")
        records, out = self._word("records", "ptr"), f.label()
        at = f.variable("i64", _hashed(f, words))
        with f.loop() as end:
            place = f.binary("and", "i64", at.get(), mask)
            number = self._read("i32", f.item(index, "i32", place), 4)
            used = f.label()
            f.branch(f.compare("eq", "i32", number, 0), end, used)
            f.at(used)
            with f.when(f.compare("ne", "i32", number, TOMBSTONE - (1 << 32))):
                record = self._record(records, f.resize(number, 32, 64))
                with f.when(self._same(record, words)):
                    yield record
                    f.go(out)
            at.set(f.binary("add", "i64", place, 1))
        f.at(out)

    def _record(self, records: Operand, number: Operand) -> Operand:
        """Return the address of the record of a number plus 1."""
        slot = self.f.binary("sub", "i64", number, 1)
        return self.f.add(records, self.f.binary("mul", "i64", slot, self.shape.stride))

    def _same(self, record: Operand, words: Sequence[Operand]) -> Operand:
        f, same = self.f, "true"
        for i, word in enumerate(words):
            equal = f.compare("eq", "i64", self._read("i64", f.add(record, 8 * i), 8), word)
            same = f.binary("and", "i1", same, equal)
        return same

    def _tuples(self) -> None:
        """Find the best record of all groups that the key can be in."""
        f, count = self.f, self._word("count", "i64")
        best, found = f.variable("i64", 0), f.variable("ptr", self._word("default", "ptr"))
        few, many = f.label(), f.label()
        f.branch(f.compare("ule", "i64", count, FEW), few, many)
        f.at(few)
        with f.count(count) as group:
            self._try(group, best, found)
        f.ret(found.get())
        f.at(many)
        rows = self._guard_rows()
        blocks = f.binary("lshr", "i64", f.binary("add", "i64", count, BLOCK - 1), 6)
        with f.count(blocks) as block:
            bits: Operand = "-1"
            for row in rows:
                bits = f.binary("and", "i64", bits, self._read("i64", f.item(row, "i64", block), 8))
            left, first = f.variable("i64", bits), f.binary("shl", "i64", block, 6)
            with f.loop() as end:
                more = f.label()
                f.branch(f.compare("eq", "i64", left.get(), 0), end, more)
                f.at(more)
                args = (("i64", left.get()), ("i1", "true"))
                place = f.intrinsic("llvm.cttz.i64", "i64", *args)
                lower = f.binary("sub", "i64", left.get(), 1)
                left.set(f.binary("and", "i64", left.get(), lower))
                self._try(f.binary("add", "i64", first, place), best, found)
        f.ret(found.get())

    def _guard_rows(self) -> list[Operand]:
        """Return the addresses of the rows of the key's bytes."""
        f, guard, size = self.f, self._word("guard", "ptr"), self._word("row", "i64")
        rows = []
        for i in range(self.shape.guarded):
            shifted = f.binary("lshr", f"i{self.width}", "%key", 8 * i) if i else "%key"
            byte = f.binary("and", "i64", f.resize(shifted, self.width, 64), 0xFF)
            number = f.binary("add", "i64", byte, i << 8)
            rows.append(f.add(guard, f.binary("mul", "i64", number, size)))
        return rows

    def _try(self, group: Operand, best: Variable, found: Variable) -> None:
        """Search a group if it can hold a better record."""
        f, size = self.f, 8 * (self.shape.words + 2)
        row = f.add(self._word("order", "ptr"), f.binary("mul", "i64", group, size))
        limit = self._read("i64", f.add(row, size - 8), 8)
        with f.when(f.compare("ugt", "i64", limit, best.get())), \
             self._found(self._masks(row)) as record:  # fmt: skip
            self._chain(self._word("records", "ptr"), record, best, found)

    def _chain(self, records: Operand, first: Operand, best: Variable, found: Variable) -> None:
        """Take the first record of a chain whose ranges cover the key, if it is better."""
        f, shape = self.f, self.shape
        at = f.variable("ptr", first)
        with f.loop() as end:
            record, better = at.get(), f.label()
            rank = self._read("i64", f.add(record, shape.rank_at), 8)
            f.branch(f.compare("ugt", "i64", rank, best.get()), better, end)
            f.at(better)
            covers: Operand = "true"
            for i in shape.ranges:
                covers = f.binary("and", "i1", covers, self._in_range(record, i))
            with f.when(covers):
                best.set(rank)
                found.set(f.add(record, shape.key_size))
                f.go(end)
            number, more = self._read("i64", f.add(record, shape.next_at), 8), f.label()
            f.branch(f.compare("eq", "i64", number, 0), end, more)
            f.at(more)
            at.set(self._record(records, number))

    def _in_range(self, record: Operand, i: int) -> Operand:
        f, field = self.f, self.shape.fields[i]
        width, size = max(field.width, 1), 8 * (-(-field.width // 64))
        at, how = self.shape.range_at(i), "sle" if field.signed else "ule"
        low, high = (
            f.resize(self._read(f"i{8 * size}", f.add(record, offset), 8), 8 * size, width)
            for offset in (at, at + size)
        )
        least = f.compare(how, f"i{width}", low, f"%r{i}")
        return f.binary("and", "i1", least, f.compare(how, f"i{width}", f"%r{i}", high))


def _hashed(f: Function, words: Sequence[Operand]) -> Operand:
    """Return the hash of a key's words, as table_layout.hashed computes it."""
    h: Operand = "0"
    for word in words:
        mixed = f.binary("xor", "i64", h, word)
        h = f.binary("mul", "i64", mixed, MULTIPLIER - (1 << 64))
        h = f.binary("xor", "i64", h, f.binary("lshr", "i64", h, 32))
    return h


Selection = Callable[[ir.Table, Statements], Operand]
Observe = Callable[[ir.Table, Shape, Statements, Operand], None]
"""A function of a table, its shape, the code, and the address of the action part that was found."""


def of_entry(f: Function, shape: Shape, kind: str, address: Operand, align: int) -> Operand:
    """Load from an entry's record, which changes only where packets add entries."""
    return (f.load if shape.grows else f.fixed)(kind, address, align)


class Tables:
    """Compiles table applies. `shapes` by table name; `direct_size`: bytes of the direct and plain
    ones. `selection` gives the hash over a table's selector keys (i64). `observe` writes what is
    done with direct counters and meters on each lookup."""

    def __init__(
        self, unit: Unit, program: ir.Program, selection: Selection, observe: Observe
    ) -> None:
        shapes = [shape_of(t, unit.layouts) for t in program.tables]
        self.shapes, self.direct_size = with_places(shapes)
        self._lookups = Lookups(unit)
        self._selection = selection
        self._observe = observe

    def apply(self, s: ir.ApplyTable, code: Statements) -> None:
        """Write an apply statement, without its key setup."""
        shape = self.shapes[s.table.name]
        keys = [code.value(k.expr) for k in s.table.keys if k.match_kind != "selector"]
        if shape.plain is not None:
            self._apply_plain(s, shape, shape.plain, code, joined(code.f, shape, keys, 64))
            return
        entry = self._lookups.find(code.f, shape, keys)
        if s.table.auto_delete:
            entry = _unexpired(shape, code, entry)
        code.lookup = Lookup(s.table, shape, keys, entry)
        part = self._chosen(s.table, shape, code, entry)
        f, bits = code.f, shape.action.tag_bits
        tag = of_entry(f, shape, f"i{bits}", f.add(part, shape.action.tag), bits // 8)
        hit = self._hit(shape, code, entry, tag)
        number = _number(shape, code, tag)
        self._observe(s.table, shape, code, entry)
        if not s.table.timed_by_calls:
            _note_time(shape, code, entry, hit)
        _set_results(s, shape, code, hit, number)
        _dispatch(s.table, shape, code, part, number)

    def _apply_plain(
        self, s: ir.ApplyTable, shape: Shape, plain: Plain, code: Statements, index: Operand
    ) -> None:
        f, record = code.f, self._lookups.record(code.f, shape, index)
        values = [_outcome(code, o, record) for o in plain.outcomes]
        partial = [o.target for o in plain.outcomes if len(o.actions) < len(s.table.actions)]
        if s.hit is None and s.action_run is None and code.zeros.issuperset(partial):
            for outcome, value in zip(plain.outcomes, values, strict=True):
                code.store(outcome.target, value)
            return
        tag = f.fixed("i8", f.add(f.add(f.word(DIRECT), index), shape.tags), 1)
        number = _number(shape, code, tag)
        _set_results(s, shape, code, self._hit(shape, code, record, tag), number)
        known: Operand = "true"
        for target in partial:
            known = f.binary("and", "i1", known, _known_zero(code, target))
        # LLVM usually sees which of the two it is, and drops the other.
        by_record, by_action, end = f.label(), f.label(), f.label()
        f.branch(known, by_record, by_action)
        f.at(by_record)
        for outcome, value in zip(plain.outcomes, values, strict=True):
            code.store(outcome.target, value)
        f.go(end)
        f.at(by_action)
        labels = [f.label() for _ in s.table.actions]
        f.choose("i8", number, labels[0], list(enumerate(labels))[1:])
        for action, label in enumerate(labels):
            f.at(label)
            for outcome, value in zip(plain.outcomes, values, strict=True):
                if action in outcome.actions:
                    code.store(outcome.target, value)
            f.go(end)
        f.at(end)

    def _chosen(self, table: ir.Table, shape: Shape, code: Statements, entry: Operand) -> Operand:
        """Return the action part that runs: with a profile, that of the chosen member."""
        if shape.choice is None:
            return entry
        f, selection = code.f, self._selection(table, code)
        first = f.fixed("i32", f.add(entry, shape.entry.tag), 4)
        count = f.fixed("i32", f.add(entry, shape.entry.tag + 4), 4)
        none = f.compare("eq", "i32", count, 0)
        divisor = f.resize(f.select(none, "i32", "1", count), 32, 64)
        turn = f.binary("urem", "i64", selection, divisor)
        number = f.binary("add", "i64", f.resize(first, 32, 64), turn)
        number = f.select(none, "i64", str(EMPTY_GROUP), number)
        offset = f.binary("mul", "i64", number, shape.choice.size)
        return f.add(f.word(shape.word("choices")), offset)

    def _hit(self, shape: Shape, code: Statements, entry: Operand, tag: Operand) -> Operand:
        f, bits = code.f, shape.action.tag_bits
        if shape.choice is None:
            return f.compare("ne", f"i{bits}", f.binary("and", f"i{bits}", tag, -shape.hit), 0)
        return f.compare("ne", "ptr", entry, f.word(shape.word("default")))


def _number(shape: Shape, code: Statements, tag: Operand) -> Operand:
    """Return the action's number, of as many bits as the tag. Other bits of it are never set."""
    return code.f.binary("and", f"i{shape.action.tag_bits}", tag, shape.numbers)


def _set_results(
    s: ir.ApplyTable, shape: Shape, code: Statements, hit: Operand, number: Operand
) -> None:
    """Set those of the results `hit` and `action_run` that the statement has."""
    if s.hit is not None:
        code.store(s.hit, hit)
    if s.action_run is not None:
        code.store_number(s.action_run, number, shape.action.tag_bits)


def _outcome(code: Statements, outcome: LookupOutcome, record: Operand) -> Operand:
    """Return the value for a target in a plain table's record."""
    t, f = outcome.target.type, code.f
    bits = 8 * outcome.size
    value = f.fixed(f"i{bits}", f.add(record, outcome.offset), min(outcome.size, 8))
    return f.resize(value, bits, scalar_width(t))


def _known_zero(code: Statements, target: ir.LValue) -> Operand:
    """Return whether LLVM knows at compile time that a scalar is 0 (i1)."""
    f, kind = code.f, f"i{scalar_width(target.type)}"
    value = code.value(target)
    constant = f.intrinsic(f"llvm.is.constant.{kind}", "i1", (kind, value))
    return f.binary("and", "i1", constant, f.compare("eq", kind, value, 0))


def _note_time(shape: Shape, code: Statements, entry: Operand, hit: Operand) -> None:
    """Set the time of the last hit."""
    f, part = code.f, shape.entry
    if part.times is not None:
        with f.when(hit):
            cells = of_entry(f, shape, "ptr", f.add(entry, part.times), 8)
            f.store("i64", f.word("now", "i64"), cells, 8)


def _unexpired(shape: Shape, code: Statements, entry: Operand) -> Operand:
    """Return the entry, or the default one if its time is over."""
    f, found = code.f, code.f.variable("ptr", entry)
    assert shape.entry.times is not None, shape
    cells = of_entry(f, shape, "ptr", f.add(entry, shape.entry.times), 8)
    with f.when(f.compare("ne", "ptr", cells, "null")):
        idle = f.binary("sub", "i64", f.word("now", "i64"), f.load("i64", cells, 8))
        timeout = f.load("i64", f.add(cells, 8), 8)
        over = f.compare("sge", "i64", idle, timeout)
        with f.when(f.binary("and", "i1", f.compare("ne", "i64", timeout, 0), over)):
            found.set(f.word(shape.word("default")))
    return found.get()


def _dispatch(
    table: ir.Table, shape: Shape, code: Statements, part: Operand, number: Operand
) -> None:
    """Run the action of this number with the data in `part`."""
    f, end = code.f, code.f.label()
    labels = [f.label() for _ in table.actions]
    if not labels:
        return
    # The first action is the default case, which saves a comparison.
    f.choose(f"i{shape.action.tag_bits}", number, labels[0], list(enumerate(labels))[1:])
    for choice, label, args in zip(table.actions, labels, shape.action.args, strict=True):
        f.at(label)
        for param, (offset, size) in zip(choice.action.params, args, strict=True):
            code.local(param, clear=False)
            value = of_entry(f, shape, f"i{8 * size}", f.add(part, offset), min(size, 8))
            f.store(f"i{8 * size}", value, code.places[param], min(size, 8))
        code.body(choice.action.body)
        f.go(end)
    f.at(end)
