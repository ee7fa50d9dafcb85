"""Leave out of a woven path what no packet of the program can reach.

A packet's values are zero at its begin. A field of theirs that neither the program nor the path
ever sets to something else is zero for good, and a branch of the path that wants it set is never
taken: a program without clones has no code for clones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Struct
from gradplane.switch.ir.walk import bodies, nested, operands, rewrite, statements, writes
from gradplane.switch.machine.extern_table import Externs
from gradplane.switch.machine.path_texts import NOTES, variables_of
from gradplane.switch.machine.weaving import BLOCK_CALLS, Entry, Path, WovenPipeline, called

Value: TypeAlias = tuple[str, str]
"""A packet's kind, and the name of one of its values; an entry point, and a variable of it."""

Values: TypeAlias = dict[ir.Expr, set[Value]]
"""The values that variables stand for, or are copies of."""

_OF_PACKETS = "begin", "copy", "measure"
"""The primitives that change whole packets; they set no field to anything new."""


class Place(NamedTuple):
    """A field of a packet's value; "": all of its fields."""

    value: Value
    field: str


def without_unreached(path: Path, program: ir.Program, externs: Externs) -> Path:
    """Return a path without the branches that the packets of a program cannot take."""
    if not program.user_extern_calls:  # their methods are not looked into
        for pipeline in path.pipelines:
            _reduce(pipeline, path.texts, externs)
    return path


def _reduce(pipeline: WovenPipeline, texts: Mapping[str, ir.Control], externs: Externs) -> None:
    found = set(_set_by_blocks(pipeline, texts, externs))
    entries = [_EntryPoint(entry, found) for entry in pipeline.entries.values()]
    while more := {place for entry in entries for place in entry.sets()} - found:
        found |= more
    for entry in entries:
        entry.reduce()
    left = called({name: entry.body for name, entry in pipeline.entries.items()})
    for name in set(pipeline.entries) - set(left):
        del pipeline.entries[name]


class _EntryPoint:
    """An entry point, with what is `found` to be set anywhere."""

    def __init__(self, entry: Entry, found: set[Place]) -> None:
        self.entry = entry
        self._found = found
        self._values: Values = {
            part: {(packet.kind, name)}
            for packet in entry.packets.values()
            for name, part in packet.parts.items()
        }
        self._values |= {var: {(entry.name, f"{var.name} {var.id}")} for var in entry.locals}

    def reduce(self) -> None:
        """Leave out what cannot be reached, and the variables and packets of it."""
        entry = self.entry
        rewrite(entry.body, self._left)
        used = {e for stmt in nested(entry.body) for e in variables_of(stmt)}
        entry.locals[:] = [var for var in entry.locals if var in used]
        for var, packet in list(entry.packets.items()):
            if var not in entry.params and used.isdisjoint({var, *packet.parts.values()}):
                del entry.packets[var]

    def _left(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        """Return what is left of a statement: of an `if` that is decided, one of its branches."""
        way = self._decided(stmt)
        return [stmt] if way is None else way

    def sets(self) -> Iterator[Place]:
        """Yield what those statements set that can be reached."""
        for stmt in self._within(self.entry.body):
            if isinstance(stmt, ir.CallExtern) and stmt.name in (*_OF_PACKETS, *BLOCK_CALLS):
                if stmt.result is not None:
                    yield from _places(stmt.result, self._values)
            elif not (isinstance(stmt, ir.Assign) and _is_zero(self._folded(stmt.value))):
                for target in writes(stmt):
                    assert target not in self.entry.packets, stmt
                    yield from _places(target, self._values)

    def _within(self, body: Iterable[ir.Stmt]) -> Iterator[ir.Stmt]:
        for stmt in body:
            way = self._decided(stmt)
            if way is None:
                yield stmt
            for inner in bodies(stmt) if way is None else [way]:
                yield from self._within(inner)

    def _decided(self, stmt: ir.Stmt) -> list[ir.Stmt] | None:
        """Return the branch of an `if` that is always taken; None if there is none."""
        if not isinstance(stmt, ir.If):
            return None
        cond = self._folded(stmt.cond)
        if not isinstance(cond, ir.Const):
            return None
        return stmt.then if cond.value else stmt.other

    def _folded(self, e: ir.Expr) -> ir.Expr:
        """Return a condition, or a part of it, with zeros for fields that are never set."""
        match e:
            case ir.FieldOf() | ir.Var():
                places = set(_places(e, self._values))
                places |= {Place(place.value, "") for place in places}
                if places and not places & self._found:
                    return build.zero(e.type)
            case ir.Unary():
                return build.unary(e.op, self._folded(e.operand))
            case ir.Binary():
                return build.binary(e.op, self._folded(e.left), self._folded(e.right))
            case ir.Cast():
                return build.cast(e.type, self._folded(e.operand))
        return e


# -- the program's blocks -----------------------------------------------------------------------


def _set_by_blocks(
    pipeline: WovenPipeline, texts: Mapping[str, ir.Control], externs: Externs
) -> Iterator[Place]:
    """Yield what the blocks set, and the texts that their calls stand for."""
    for block, kind, parts in pipeline.blocks.values():
        values: Values = {
            param.var: {(kind, part)} for param, part in zip(block.params, parts, strict=False)
        }
        body = list(statements(block))
        _add_copies(body, values)
        for stmt in body:
            if isinstance(stmt, ir.CallExtern) and (names := _texts_of(stmt, externs)):
                for name in names:
                    yield from _set_by_text(texts[name], stmt, (kind, NOTES), values)
            elif not _copies(stmt):
                for target in writes(stmt):
                    yield from _places(target, values)


def _copies(stmt: ir.Stmt) -> bool:
    """Return whether a statement assigns a variable to another one, or zeros."""
    if not isinstance(stmt, ir.Assign):
        return False
    whole = isinstance(stmt.target, ir.Var) and isinstance(stmt.value, ir.Var)
    return whole or _is_zero(stmt.value)


def _add_copies(body: Iterable[ir.Stmt], values: Values) -> None:
    """Add the variables that values are copied to or from: what is set in one may be in all."""
    pairs = [(s.target, s.value) for s in body if isinstance(s, ir.Assign) and _copies(s)]
    changed = True
    while changed:
        changed = False
        for a, b in pairs:
            both = values.get(a, set()) | values.get(b, set())
            for var in (a, b):
                if isinstance(var, ir.Var) and values.get(var, set()) != both:
                    values[var], changed = both, True


def _texts_of(call: ir.CallExtern, externs: Externs) -> tuple[str, ...]:
    row = externs.get((call.instance.type if call.instance else "", call.name))
    return () if row is None else row.bodies


def _set_by_text(
    text: ir.Control, call: ir.CallExtern, notes: Value, values: Values
) -> Iterator[Place]:
    """Yield what an extern's text sets in the notes, in the result and in the arguments."""
    args = iter(call.args)
    own: Values = {}
    for param in text.params:
        if param.name == NOTES:
            own[param.var] = {notes}
            continue
        given = call.result if param.name == "result" else next(args, None)
        if given in values:
            own[param.var] = values[given]
        elif given is not None and param.direction != "in":
            yield from _places(given, values)
    for stmt in nested(text.body):
        if not _copies(stmt):
            for target in writes(stmt):
                yield from _places(target, own)


def _places(place: ir.Expr, values: Values) -> Iterator[Place]:
    """Yield the fields of packets' values that a place is, or is in."""
    field = ""
    while not isinstance(place, ir.Var):
        if isinstance(place, ir.FieldOf):
            field = place.name
        inner = operands(place)
        if not inner:
            return
        place = inner[0]
    for value in values.get(place, ()):
        yield Place(value, field)


def _is_zero(e: ir.Expr) -> bool:
    if isinstance(e, ir.Make) and isinstance(e.type, Struct):
        return all(map(_is_zero, e.fields))
    return isinstance(e, ir.Zero) or (isinstance(e, ir.Const) and e.value in (0, False))
