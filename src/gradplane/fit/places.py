"""The bits of storage that expressions read and statements write.

For statements: how often they read and set which places, and in which actions. For a header's
fields: their neighbours, since the chip keeps a byte of a packet in one container.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir import walk
from gradplane.switch.ir.nodes import Var
from gradplane.switch.ir.types import (
    Annotations,
    Array,
    Bits,
    Bool,
    Fields,
    Header,
    Type,
    Varbit,
    bit_width,
)
from gradplane.switch.ir.walk import nested, operands
from gradplane.switch.source import Span

VALID = -1
"""The number of a header's validity in a path."""


@dataclass(frozen=True, slots=True)
class Place:
    """Bits `high` to `low` of a field or variable without fields: a variable, and field numbers."""

    var: ir.Var
    path: tuple[int, ...]
    name: str
    width: int
    high: int
    low: int

    @property
    def field(self) -> tuple[ir.Var, tuple[int, ...]]:
        """The whole field."""
        return self.var, self.path

    @property
    def storage(self) -> tuple[object, tuple[int, ...]]:
        """The whole field, the same in parser, control and deparser, whose parameters of one type
        are one storage."""
        return (str(self.var.type) if self.path else self.var), self.path

    @property
    def bits(self) -> int:
        return self.high - self.low + 1

    @property
    def of_header(self) -> bool:
        """Whether it is a header's validity."""
        return bool(self.path) and self.path[-1] == VALID

    def overlaps(self, other: Place) -> bool:
        """Return whether both have a bit in common."""
        return self.field == other.field and self.low <= other.high and other.low <= self.high


def leaves(e: ir.Expr) -> Iterator[Place]:
    """Yield the fields without fields of their own that an l-value consists of.

    An element of a stack by a changing index is any of the stack's.
    """
    found = _base(e)
    if found is None:
        return
    (var, path, name, t), slices = found
    for place in _spread(var, path, name, t):
        high, low = place.high, place.low
        for hi, lo in reversed(slices):
            high, low = low + hi, low + lo
        yield Place(var, place.path, place.name, place.width, high, low)


_Root = tuple[ir.Var, tuple[int, ...], str, Type]


def _base(e: ir.Expr) -> tuple[_Root, list[tuple[int, int]]] | None:
    """Return an l-value without the slices around it, and those, the outermost first."""
    match e:
        case ir.SliceOf(base=base, hi=hi, lo=lo):
            found = _base(base)
            return None if found is None else (found[0], [(hi, lo), *found[1]])
        case ir.Var():
            return (e, (), e.name, e.type), []
        case ir.FieldOf(base=base, index=index, name=name):
            found = _base(base)
            if found is None:
                return None
            var, path, text, t = found[0]
            if isinstance(t, Array):  # by a changing index: the first stands for all
                path, t = (*path, 0), t.element
            return (var, (*path, index), f"{text}.{name}", e.type), []
        case ir.ElementOf(base=base, index=ir.Const(value=int() as at)):
            found = _base(base)
            if found is None:
                return None
            var, path, text, _ = found[0]
            return (var, (*path, at), f"{text}[{at}]", e.type), []
        case ir.ElementOf(base=base) | ir.NextOf(base=base) | ir.LastOf(base=base):
            return _base(base)
    return None


def _spread(var: ir.Var, path: tuple[int, ...], name: str, t: Type) -> Iterator[Place]:
    match t:
        case Fields(fields=fields):
            if isinstance(t, Header):
                yield Place(var, (*path, VALID), f"{name}.$valid", 1, 0, 0)
            for n, field in enumerate(fields):
                yield from _spread(var, (*path, n), f"{name}.{field.name}", field.type)
        case Array(element=element, size=size):
            for n in range(size):
                yield from _spread(var, (*path, n), f"{name}[{n}]", element)
        case Bits(width=width) | Varbit(width=width):
            yield Place(var, path, name, width, width - 1, 0)
        case Bool():
            yield Place(var, path, name, 1, 0, 0)


def reads(e: ir.Expr) -> Iterator[Place]:
    """Yield the places that an expression reads."""
    match e:
        case ir.IsValid(base=base):
            yield from (p for p in leaves(base) if p.of_header)
        case ir.LValue():
            if isinstance(e, ir.SliceOf) and _base(e) is None:
                yield from reads(e.base)
                return
            yield from leaves(e)
            if isinstance(e, ir.ElementOf):
                yield from reads(e.index)
        case _:
            for part in operands(e):
                yield from reads(part)


def byte_count(places: Iterable[Place]) -> int:
    """Return the bytes that places lie in, each once. Validities of headers are bits of a byte."""
    found: set[object] = set()
    valid = 0
    for place in set(places):
        if place.of_header:
            valid += 1
        else:
            field = place.field
            found.update((field, n) for n in range(place.low // 8, place.high // 8 + 1))
    return len(found) + (valid + 7) // 8


def read_by(stmt: ir.Stmt) -> Iterator[Place]:
    """Yield the places that a statement itself reads."""
    for e in walk.reads(stmt):
        yield from reads(e)


def written_by(stmt: ir.Stmt) -> Iterator[Place]:
    """Yield the places that a statement itself sets."""
    for target in walk.writes(stmt):
        yield from leaves(target)


def count_reads(stmts: Sequence[ir.Stmt]) -> Counter[ir.Var]:
    """Return how often statements, and those inside them, read each variable without fields."""
    found: Counter[ir.Var] = Counter()
    for stmt in nested(stmts):
        found.update(place.var for place in read_by(stmt))
    return found


def across_actions(
    stmts: Sequence[ir.Stmt], called_actions: Mapping[Span, Span]
) -> frozenset[ir.Var]:
    """Return the variables that statements of different actions (or of none) use."""
    users: dict[ir.Var, set[Span | None]] = {}
    for stmt in stmts:
        own = called_actions.get(stmt.span)
        for inner in nested([stmt]):
            for place in (*read_by(inner), *written_by(inner)):
                users.setdefault(place.var, set()).add(own)
    return frozenset(var for var, actions in users.items() if len(actions) > 1)


def indices(stmts: Sequence[ir.Stmt]) -> frozenset[ir.Var]:
    """Return the variables that hand an index on to an access to a register."""
    reads_ = (s.body[0] for s in nested(stmts) if isinstance(s, ir.Block) and s.access is not None)
    args = (read.args[0] for read in reads_ if isinstance(read, ir.CallExtern) and read.args)
    return frozenset(arg for arg in args if isinstance(arg, ir.Var))


HeaderByte = tuple[Var, tuple[int, ...], int]
"""A byte of a header: the header's variable and path, and the byte's number."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a header: where it begins, counted from the header's first bit."""

    path: tuple[int, ...]
    name: str
    start: int
    width: int
    padding: bool  # or laid out by the compiler

    def bytes_of(self, high: int, low: int) -> range:
        """Return the bytes of the header that bits of the field lie in."""
        last = self.start + self.width - 1
        return range((last - high) // 8, (last - low) // 8 + 1)


def header_bytes(place: Place) -> int | None:
    """Return the bytes of the header that a field is in, None of metadata and `@flexible` ones."""
    header, _ = _header_of(place)
    if header is None or _has(header.annotations, "flexible"):
        return None
    return sum(f.width for f in _flat(header, (), 0)) // 8


def bytes_of(place: Place) -> Iterator[HeaderByte]:
    """Yield the bytes of headers that a place lies in, if other fields may be in them."""
    header, path = _header_of(place)
    if header is None or place.of_header or _has(header.annotations, "flexible"):
        return
    own = next((f for f in _flat(header, (), 0) if f.path == path), None)
    if own is not None and not own.padding:
        before = place.path[: len(place.path) - len(path)]
        for byte in own.bytes_of(place.high, place.low):
            yield place.var, before, byte


def alignment(place: Place) -> int | None:
    """Return where a place ends in its byte of the packet: 0 at the byte's last bit, 7 at its
    first. None of what is in no header, or is laid out by the compiler."""
    header, path = _header_of(place)
    if header is None or place.of_header or _has(header.annotations, "flexible"):
        return None
    own = next((f for f in _flat(header, (), 0) if f.path == path), None)
    if own is None or own.padding:
        return None
    return (place.low - own.start - own.width) % 8


def neighbours(place: Place) -> list[str]:
    """Return the names of the other fields in the bytes of a header's field, without padding.

    The chip's compiler lays out `@flexible` fields itself, so they have none."""
    header, path = _header_of(place)
    if header is None or place.of_header or _has(header.annotations, "flexible"):
        return []
    fields = list(_flat(header, (), 0))
    own = next((f for f in fields if f.path == path), None)
    if own is None or own.padding:
        return []
    taken = set(own.bytes_of(place.high, place.low))
    others = (f for f in fields if f is not own and not f.padding)
    return [f.name for f in others if taken.intersection(f.bytes_of(f.width - 1, 0))]


def _has(annotations: Annotations, name: str) -> bool:
    return any(a.name == name for a in annotations)


def _header_of(place: Place) -> tuple[Header | None, tuple[int, ...]]:
    """Return the header that a place is in, and the field's path inside it."""
    found: tuple[Header | None, tuple[int, ...]] = (None, ())
    t: Type = place.var.type
    for n, step in enumerate(place.path):
        if isinstance(t, Header):
            found = t, place.path[n:]
        if isinstance(t, Array):
            t = t.element
        elif isinstance(t, Fields) and step >= 0:
            t = t.fields[step].type
    return found


def _flat(t: Fields, path: tuple[int, ...], start: int) -> Iterator[_Field]:
    for n, field in enumerate(t.fields):
        width = bit_width(field.type) or 0
        if isinstance(field.type, Fields):
            yield from _flat(field.type, (*path, n), start)
            width = sum(f.width for f in _flat(field.type, (), 0))
        else:
            padding = _has(field.annotations, "padding") or _has(field.annotations, "flexible")
            yield _Field((*path, n), field.name, start, width, padding)
        start += width
