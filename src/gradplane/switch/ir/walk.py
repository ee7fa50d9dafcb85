"""The walker: every walk over the IR, from the roles that its nodes declare (`roles.py`).

A node class or a field without a role is an error when this module is imported. Walks go into what
a node consists of, and into a table that is applied; into its actions only where that is said.

The last part is aliasing: whether two expressions can name the same storage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, TypeVar

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.roles import FieldRole, Role, node_classes, roles_of
from gradplane.switch.ir.types import Header, Union

N = TypeVar("N")
Block = ir.Parser | ir.Control
Pick = Callable[[Any], Sequence[Any]]

_CLASSES = node_classes(ir)
_ROLES = {c: roles_of(c, {*_CLASSES, "Argument"}) for c in _CLASSES.values()}
_BELOW: dict[str, list[type]] = {}  # by a class's name: itself and the classes below it
for _class in _CLASSES.values():
    for _base in _class.__mro__:
        _BELOW.setdefault(_base.__name__, []).append(_class)


# -- one node -----------------------------------------------------------------------------------


def operands(e: ir.Expr | ir.Match) -> Sequence[ir.Expr]:
    """Return the operands of an expression, or of a component of a keyset."""
    return _OPERANDS[type(e)](e)


def reads(node: object) -> list[ir.Expr]:
    """Return the expressions that a statement itself reads: indices on the way to the places that
    it writes are among them."""
    found = _collected(node, _READS)
    for place in _collected(node, _WRITES):
        found += indices(place)
    return found


def writes(stmt: ir.Stmt) -> list[ir.LValue]:
    """Return the places that a statement itself writes."""
    return _collected(stmt, _WRITES)


def expressions(node: object) -> list[ir.Expr]:
    """Return the expressions that a statement itself holds, read or written, each once."""
    return _collected(node, _EXPRESSIONS)


def bodies(node: object) -> list[list[ir.Stmt]]:
    """Return the statements inside a node: a statement, a state, a block, an action."""
    return _collected(node, _BODIES)


def declares(node: object) -> list[ir.Var]:
    """Return the variables that a node declares."""
    return _collected(node, _DECLARES)


def _collected(node: object, table: _Picks) -> list[Any]:
    found: list[Any] = []
    for pick in table[type(node)]:
        found += pick(node)
    return found


def _listed(value: Any) -> Sequence[Any]:
    """Return a field's value as a list: one thing, several, or none."""
    if isinstance(value, dict):
        return tuple(value.values())
    return value if isinstance(value, list) else () if value is None else (value,)


def _operands_of(node: type) -> Pick:
    names = [f.name for f in _ROLES[node] if f.role is Role.READS]
    if not names:
        return lambda e: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda e: _listed(get(e))


def _pick(field: FieldRole, wanted: Collection[Role], table: _Picks) -> Pick | None:
    """Return the function that gives, as a list, what a node holds in a field in one of the roles;
    None if that is nothing."""
    get = attrgetter(field.name)
    if field.role is Role.PARTS and _held(field, wanted):
        return lambda node: [e for part in _listed(get(node)) for e in _collected(part, table)]
    if field.role is Role.PASSED and not _WAYS.keys().isdisjoint(wanted):
        return _passed(get, {way for role in wanted for way in _WAYS[role]})
    if field.role not in wanted:
        return None
    if field.role is Role.BODY:
        return lambda node: [body for _, body in get(node)] if field.paired else [get(node)]
    return lambda node: _listed(get(node))


_WAYS = {Role.READS: ("", "in", "inout"), Role.WRITES: ("out", "inout")}


def _passed(get: Callable[[Any], Any], ways: Collection[str]) -> Pick:
    """Return the function that gives the arguments of a call that go one of these ways."""

    def pick(node: Any) -> list[Any]:
        values = _listed(get(node))
        own = node.directions if hasattr(node, "directions") else [node.direction] * len(values)
        pairs = zip(values, own, strict=True)
        return [v for v, way in pairs if way in ways and isinstance(v, ir.Expr)]

    return pick


def _held(field: FieldRole, wanted: Collection[Role]) -> bool:
    """Return whether the parts of a node, of the classes that the field can have, hold anything."""
    below = (c for name in field.types for c in _BELOW.get(name, ()))
    inner = (f for c in below if c is not ir.Package for f in _ROLES[c])
    return any(
        f.role in wanted
        or (f.role is Role.PASSED and not _WAYS.keys().isdisjoint(wanted))
        or (f.role is Role.PARTS and _held(f, wanted))
        for f in inner
    )


class _Picks(dict[type, list[Pick]]):
    """For each class, the functions that give what it holds in these roles; made on first use."""

    def __init__(self, *wanted: Role) -> None:
        self._wanted = set(wanted)

    def __missing__(self, node: type) -> list[Pick]:
        picks = (_pick(field, self._wanted, self) for field in _ROLES.get(node, ()))
        found = self[node] = [pick for pick in picks if pick is not None]
        return found


_READS = _Picks(Role.READS)
_WRITES = _Picks(Role.WRITES)
_EXPRESSIONS = _Picks(Role.READS, Role.WRITES)
_BODIES = _Picks(Role.BODY)
_DECLARES = _Picks(Role.DECLARES)
_OPERANDS = {c: _operands_of(c) for c in _CLASSES.values() if issubclass(c, ir.Expr | ir.Match)}


# -- expressions --------------------------------------------------------------------------------


def within(e: ir.Expr) -> Iterator[ir.Expr]:
    """Yield an expression and those inside it. Not recursive: they may nest deep."""
    pending = [e]
    while pending:
        e = pending.pop()
        yield e
        pending += reversed(operands(e))


def indices(place: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the indices on the way to a place."""
    while not isinstance(place, ir.Var) and (inner := operands(place)):
        yield from inner[1:] if isinstance(place, ir.ElementOf) else ()
        place = inner[0]


def variables(e: ir.Expr) -> set[ir.Var]:
    """Return the variables that an expression reads."""
    return {part for part in within(e) if isinstance(part, ir.Var)}


def fields_named(nodes: Iterable[object], var: ir.Var) -> set[int] | None:
    """Return the positions of the fields of a struct that statements or states name; None if one
    names the whole."""
    found: set[int] = set()
    for node in nodes:
        pending = expressions(node)
        while pending:
            e = pending.pop()
            if e is var:
                return None
            if isinstance(e, ir.FieldOf) and e.base is var:
                found.add(e.index)
            else:
                pending += operands(e)
    return found


def with_operands(e: N, new: Sequence[ir.Expr]) -> N:
    """Return an expression with other operands; the same one if they are the same."""
    old = operands(e)  # type: ignore[arg-type]
    if all(a is b for a, b in zip(old, new, strict=True)):
        return e
    left = iter(new)
    changed = {}
    for name, *_ in (f for f in _ROLES[type(e)] if f.role is Role.READS):
        value = getattr(e, name)
        changed[name] = [next(left) for _ in value] if isinstance(value, list) else next(left)
    return replace(e, **changed)  # type: ignore[type-var]


def same_value(a: object, b: object) -> bool:
    """Compare two expressions, or parts of them, by their form: a + b is not the same as b + a."""
    if not isinstance(a, ir.Expr) or isinstance(a, ir.Var):
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(map(same_value, a, b))
        return a is b if isinstance(a, ir.Var) else a == b
    return type(a) is type(b) and all(
        same_value(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.compare
    )


# -- statements ---------------------------------------------------------------------------------


def nested(
    stmts: Iterable[ir.Stmt], enters: Callable[[ir.Stmt], bool] | None = None
) -> Iterator[ir.Stmt]:
    """Yield statements and those inside them in source order. Not recursive: they may nest deep.

    enters: says which statements to yield, with those inside them; all by default.
    """
    pending = list(stmts)[::-1]
    while pending:
        stmt = pending.pop()
        if enters is not None and not enters(stmt):
            continue
        yield stmt
        for body in reversed(bodies(stmt)):
            pending += reversed(body)


def outside_helpers(stmt: ir.Stmt) -> bool:
    """Return whether a statement is no block that stands for a helper's call."""
    return not (isinstance(stmt, ir.Block) and stmt.name == ir.HELPER)


def with_actions(stmts: Iterable[ir.Stmt]) -> Iterator[ir.Stmt]:
    """Yield statements and those inside them, and behind the application of a table those of its
    actions, each action once."""
    seen: set[ir.Action] = set()
    for stmt in nested(stmts):
        yield stmt
        if isinstance(stmt, ir.ApplyTable):
            for choice in stmt.table.actions:
                if choice.action not in seen:
                    seen.add(choice.action)
                    yield from nested(choice.action.body)


def rewrite(body: list[ir.Stmt], change: Callable[[ir.Stmt], list[ir.Stmt]]) -> None:
    """Replace each statement by what `change` returns for it, in place, from the inside out."""
    for stmt in body:
        for inner in bodies(stmt):
            rewrite(inner, change)
    body[:] = [new for stmt in body for new in change(stmt)]


# -- programs -----------------------------------------------------------------------------------


def blocks(package: ir.Package) -> Iterator[tuple[str, Block]]:
    """Return the parsers and controls of a package and of those inside it, by parameter name."""
    for name, arg in package.args.items():
        if isinstance(arg, Block):
            yield name, arg
        elif isinstance(arg, ir.Package):
            yield from ((f"{name}.{inner}", block) for inner, block in blocks(arg))


def statements(block: Block) -> Iterator[ir.Stmt]:
    """Return all statements of a block, also those of the actions of the tables it applies."""
    return with_actions(stmt for body in bodies(block) for stmt in body)


def actions(block: Block) -> list[ir.Action]:
    """Return the actions of the tables that a block applies, each once."""
    applied = (s.table for s in statements(block) if isinstance(s, ir.ApplyTable))
    return list(dict.fromkeys(choice.action for table in applied for choice in table.actions))


def action_number(table: ir.Table, name: str) -> int | None:
    """Return the position of the action that a program means by a name; None if there is none."""
    names = [choice.action.name for choice in table.actions]
    return next((i for i, n in enumerate(names) if f".{n}".endswith(f".{name}")), None)


def path(e: ir.Expr) -> tuple[ir.Var, tuple[int, ...]] | None:
    """Return an l-value's variable and field numbers; None if an index is dynamic."""
    steps: list[int] = []
    while True:
        match e:
            case ir.Var():
                return e, tuple(reversed(steps))
            case ir.FieldOf(base=base, index=index):
                steps.append(index)
                e = base
            case ir.ElementOf(base=base, index=ir.Const(value=int() as at)):
                steps.append(at)
                e = base
            case _:
                return None


def independent(e: ir.Expr) -> bool:
    """Return whether `e` names fixed storage: always the same variable, field, element."""
    return path(e) is not None


def in_header(e: ir.Expr) -> bool:
    """Return whether an l-value is part of a header, or of a union."""
    while isinstance(e, ir.FieldOf | ir.SliceOf | ir.ElementOf):
        e = e.base
        if isinstance(e.type, Header | Union):
            return True
    return False


def header_of(e: ir.Expr) -> ir.Expr | None:
    """Return the header that a field belongs to."""
    while isinstance(e, ir.FieldOf | ir.ElementOf):
        e = e.base
        if isinstance(e.type, Header):
            return e
    return None


def overlap(a: ir.Expr, b: ir.Expr) -> bool:
    """Return whether a store to one could change the other."""
    pa, pb = path(a), path(b)
    if pa is None or pb is None:
        return bool(variables(a) & variables(b))
    if pa[0] is not pb[0]:
        return False
    shared = min(len(pa[1]), len(pb[1]))
    return pa[1][:shared] == pb[1][:shared]
