"""Applying a table: key, lookup, counters and meters, action."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.llvm_text import Operand
from gradplane.switch.jit.lookups import Lookups, joined
from gradplane.switch.jit.small_exact_tables import LookupOutcome, Plain
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.table_layout import DIRECT, EMPTY_GROUP, Shape, shape_of, with_places
from gradplane.switch.jit.value_layout import scalar_width

Selection = Callable[[ir.Table, Statements], Operand]
Observe = Callable[[ir.Table, Shape, Statements, Operand], None]
"""A function of a table, its shape, the code, and the address of the action part that was found."""


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
        part = self._chosen(s.table, shape, code, entry)
        f, bits = code.f, shape.action.tag_bits
        tag = f.fixed(f"i{bits}", f.add(part, shape.action.tag), bits // 8)
        hit = self._hit(shape, code, entry, tag)
        number = _number(shape, code, tag)
        self._observe(s.table, shape, code, entry)
        _note_time(shape, code, entry, hit)
        _set_results(s, shape, code, hit, number)
        _dispatch(s.table, shape, code, part, number)

    def _apply_plain(
        self, s: ir.ApplyTable, shape: Shape, plain: Plain, code: Statements, index: Operand
    ) -> None:
        f, record = code.f, self._lookups.record(code.f, shape, index)
        values = [_outcome(code, o, record) for o in plain.outcomes]
        tag = f.fixed("i8", f.add(f.add(f.word(DIRECT), index), shape.tags), 1)
        number = _number(shape, code, tag)
        _set_results(s, shape, code, self._hit(shape, code, record, tag), number)
        known: Operand = "true"
        for outcome in plain.outcomes:
            if len(outcome.actions) < len(s.table.actions):
                known = f.binary("and", "i1", known, _known_zero(code, outcome.target))
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
            cells = f.fixed("ptr", f.add(entry, part.times), 8)
            f.store("i64", f.word("now", "i64"), cells, 8)


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
            value = f.fixed(f"i{8 * size}", f.add(part, offset), min(size, 8))
            f.store(f"i{8 * size}", value, code.places[param], min(size, 8))
        code.body(choice.action.body)
        f.go(end)
    f.at(end)
