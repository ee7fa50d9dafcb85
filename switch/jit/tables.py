"""Applying a table: key, lookup, counters and meters, action."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.lookups import Lookups
from gradplane.switch.jit.meters import execute_meter
from gradplane.switch.jit.shapes import Shape, shape_of
from gradplane.switch.jit.statements import Statements
from gradplane.switch.jit.text import Operand

Selection = Callable[[ir.Table, Statements], Operand]


class Tables:
    """`shapes` by table name. `selection` gives the hash over a table's selector keys (i64)."""

    def __init__(self, unit: Unit, program: ir.Program, selection: Selection) -> None:
        self.shapes = {t.name: shape_of(t, unit.layouts) for t in program.tables}
        self._lookups = Lookups(unit)
        self._selection = selection

    def apply(self, s: ir.ApplyTable, code: Statements) -> None:
        """The code of an apply statement, its key setup left out."""
        shape = self.shapes[s.table.name]
        keys = [code.value(k.expr) for k in s.table.keys if k.match_kind != "selector"]
        entry = self._lookups.find(code.f, shape, keys)
        part = self._chosen(s.table, shape, code, entry)
        f, bits = code.f, shape.action.tag_bits
        tag = f.load(f"i{bits}", f.add(part, shape.action.tag))
        hit = self._hit(shape, code, entry, tag)
        number = f.binary("and", f"i{bits}", tag, shape.hit - 1)
        _observe(s.table, shape, code, entry, hit)
        if s.hit is not None:
            code.store(s.hit, hit)
        if s.action_run is not None:
            code.store_number(s.action_run, number, bits)
        _dispatch(s.table, shape, code, part, number)

    def _chosen(self, table: ir.Table, shape: Shape, code: Statements, entry: Operand) -> Operand:
        """The action part that runs: of a profile, that of the chosen member."""
        if shape.choice is None:
            return entry
        f, selection = code.f, self._selection(table, code)
        first = f.load("i32", f.add(entry, shape.entry.tag))
        count = f.load("i32", f.add(entry, shape.entry.tag + 4))
        none = f.compare("eq", "i32", count, 0)
        divisor = f.resize(f.select(none, "i32", "1", count), 32, 64)
        turn = f.binary("urem", "i64", selection, divisor)
        number = f.binary("add", "i64", f.resize(first, 32, 64), turn)
        number = f.select(none, "i64", "0", number)
        offset = f.binary("mul", "i64", number, shape.choice.size)
        return f.add(f.word(shape.word("choices")), offset)

    def _hit(self, shape: Shape, code: Statements, entry: Operand, tag: Operand) -> Operand:
        f, bits = code.f, shape.action.tag_bits
        if shape.choice is None:
            return f.compare("ne", f"i{bits}", f.binary("and", f"i{bits}", tag, -shape.hit), 0)
        return f.compare("ne", "ptr", entry, f.word(shape.word("default")))


def _observe(table: ir.Table, shape: Shape, code: Statements, entry: Operand, hit: Operand) -> None:
    """Direct counter and meter, and the time of the last hit."""
    f, part = code.f, shape.entry
    bits = code.context.get(f, "%c", "bits")
    size = f.binary("lshr", "i64", bits, 3)
    if part.counter is not None:
        cells = f.load("ptr", f.add(entry, part.counter))
        for at, amount in ((cells, "1"), (f.add(cells, 8), size)):
            f.store("i64", f.binary("add", "i64", f.load("i64", at, 8), amount), at, 8)
    if part.meter is not None and table.meter is not None:
        cells = f.load("ptr", f.add(entry, part.meter))
        amount = "1" if table.meter.args[0] == "packets" else size
        colour = execute_meter(code.unit, f, cells, amount)
        f.store("i32", colour, f.add("%c", code.context.colours[table.meter.name]), 4)
    if part.times is not None:
        with f.when(hit):
            cells = f.load("ptr", f.add(entry, part.times))
            f.store("i64", f.word("now", "i64"), cells, 8)
            f.store("i64", 0, f.add(cells, 8), 8)


def _dispatch(
    table: ir.Table, shape: Shape, code: Statements, part: Operand, number: Operand
) -> None:
    """Runs the action of this number with the data in `part`."""
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
            code.f.copy(code.places[param], f.add(part, offset), size)
        code.body(choice.action.body)
        f.go(end)
    f.at(end)
