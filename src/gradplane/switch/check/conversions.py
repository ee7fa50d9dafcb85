"""Implicit conversions to the type that a context requires, and explicit casts (section 8.11)."""

from __future__ import annotations

from typing import Any

from gradplane.switch.check.checker_types import (
    ANY,
    DefaultLiteral,
    ListLiteral,
    StructLiteral,
    is_padded,
)
from gradplane.switch.check.context import Context
from gradplane.switch.ir import ops
from gradplane.switch.ir.types import (
    BOOL,
    Array,
    Bits,
    Fields,
    Header,
    Integer,
    List,
    NewType,
    SerEnum,
    Struct,
    Tuple,
    Type,
    Union,
)
from gradplane.switch.syntax import ast


def coerce(c: Context, e: ast.Expr, target: Type, what: str) -> bool:
    """Convert `e` implicitly to type `target`; report an error if that is not possible."""
    t = e.type
    assert t is not None, e
    if t is target:
        return True
    if isinstance(t, Integer) and isinstance(target, Bits):
        return _constant(c, e, target)
    if t == target or ANY in (t, target):
        return True
    if isinstance(t, Integer) and isinstance(target, NewType) and isinstance(_base(target), Bits):
        # p4c accepts it, the specification does not
        c.warn(e, "mismatch", f"P4_16 requires a cast from int to {target}", f"({target}) ...")
        _constant(c, e, _base(target))
        e.type = target
        return True
    if isinstance(t, SerEnum) and t.underlying == target:
        return True
    if isinstance(t, ListLiteral | StructLiteral | DefaultLiteral):
        return _literal(c, e, target, what)
    c.error(e, f"{what} must be {target}, not {t}", _hint(target, t))
    return False


def _hint(target: Type, t: Type) -> str:
    if isinstance(target, Bits) and isinstance(t, Bits):
        what = "width" if target.width != t.width else "sign"
        return f"a cast changes the {what}: ({target}) ..." if _one_step(target, t) else ""
    return ""


def _one_step(target: Bits, t: Bits) -> bool:
    return target.width == t.width or target.signed == t.signed


def _base(t: Type) -> Type:
    """Return the type that a `type` declaration, or several of them, is based on."""
    return _base(t.underlying) if isinstance(t, NewType) else t


def _constant(c: Context, e: ast.Expr, target: Type) -> bool:
    e.type = target
    if e.const is None:  # an error in it has been reported already
        return True
    wrapped = ops.wrap(target)(e.const)
    if wrapped != e.const:
        c.warn(e, "overflow", f"{e.const} does not fit {target}: it becomes {wrapped}")
    e.const = wrapped
    return True


def _literal(c: Context, e: ast.Expr, target: Type, what: str) -> bool:
    """Convert a list, struct, `...` or `{#}` literal, or a ?: of such literals."""
    match e:
        case ast.Ternary(then=then, other=other):
            e.type = target
            return coerce(c, then, target, what) and coerce(c, other, target, what)
        case ast.ListExpr():
            return _list(c, e, target, what)
        case ast.StructExpr():
            return _struct(c, e, target, what)
        case ast.InvalidHeader():
            if isinstance(target, Header | Union):
                e.type = target
                return True
        case ast.Dots():
            e.type = target
            return True
    c.error(e, f"{what} must be {target}, not {e.type}")
    return False


def _list(c: Context, e: ast.ListExpr, target: Type, what: str) -> bool:
    dots = bool(e.elements) and isinstance(e.elements[-1], ast.Dots)
    values = e.elements[:-1] if dots else e.elements
    match target:
        case Struct(fields=fields) | Header(fields=fields):
            types = [f.type for f in fields]
        case Tuple(elements=elements):
            types = list(elements)
        case List(element=element) if not dots:
            types = [element] * len(values)
        case Array(element=element, size=size):
            types = [element] * size
        case _:
            c.error(e, f"{what} must be {target}, not {e.type}")
            return False
    padded = is_padded(target)
    if padded:
        types.pop()
    if len(values) > len(types) or (len(values) < len(types) and not dots):
        c.error(e, f"{target} takes {len(types)} values, {len(values)} given")
        return False
    if padded and not dots:
        e.elements.append(ast.Dots(span=e.span))
    e.type = target
    pairs = zip(values, types, strict=False)
    return all([coerce(c, v, t, f"element {i}") for i, (v, t) in enumerate(pairs)])


def _struct(c: Context, e: ast.StructExpr, target: Type, what: str) -> bool:
    if not isinstance(target, Struct | Header):
        c.error(e, f"{what} must be {target}, not {e.type}")
        return False
    e.type = target
    given = {name for name, _ in e.fields}
    padded = is_padded(target)
    wanted = target.fields[:-1] if padded else target.fields
    missing = [f.name for f in wanted if f.name not in given]
    if missing and not e.dots:
        c.error(e, f"{target} has no value for {', '.join(missing)}", "end with `...` for defaults")
    e.dots |= padded
    return all([_struct_field(c, target, name, value) for name, value in e.fields])


def _struct_field(c: Context, target: Fields, name: str, value: ast.Expr) -> bool:
    index = target.index(name)
    if index is None:
        c.error(value, f"{target} has no field {name}")
        return False
    return coerce(c, value, target.fields[index].type, f"field {name}")


def settle(c: Context, e: ast.Expr) -> Type:
    """Give a literal the type it has without a context: a list becomes a tuple."""
    match e, e.type:
        case ast.ListExpr(), ListLiteral(dots=False):
            e.type = Tuple(tuple(_with_width(c, x) for x in e.elements))
        case ast.Ternary(then=then, other=other), ListLiteral():
            e.type = c.exprs.common(then, other)
            if e.type is None:
                c.error(e, f"the branches of ?: differ: {then.type} and {other.type}")
                e.type = ANY
        case _, ListLiteral() | StructLiteral() | DefaultLiteral():
            c.error(e, "the type of this cannot be inferred here", "cast it: (T) {...}")
            e.type = ANY
    assert e.type is not None
    return e.type


def _with_width(c: Context, e: ast.Expr) -> Type:
    """Return the type of a tuple's element; an int gets the width it needs, at least 32 bits."""
    t = settle(c, e)
    if isinstance(t, Integer) and isinstance(e.const, int):
        t = Bits(max(32, e.const.bit_length() + (e.const < 0)), signed=e.const < 0)
        coerce(c, e, t, "an element")
    return t


def cast_allowed(target: Type, source: Type, const: Any) -> bool:
    """Return whether the cast (target) applies to a value of type source."""
    if target == source:
        return True
    match target, source:
        case NewType(underlying=inner), NewType(underlying=other):
            return inner == other or cast_allowed(inner, source, const)
        case NewType(underlying=inner), _:
            return source == inner or cast_allowed(inner, source, const)
        case _, NewType(underlying=inner):
            through = isinstance(inner, NewType) and cast_allowed(target, inner, const)
            return target == inner or through
        case Bits(), Bits():
            return target.width == source.width or target.signed == source.signed
        case Bits() | Integer(), Integer():
            return True
        case Integer(), Bits():
            return True
        case Bits(width=1, signed=False), _ if source == BOOL:
            return True
        case _, Bits(width=1, signed=False) if target == BOOL:
            return True
        case _, Integer() if target == BOOL:
            return const in (0, 1)
        case SerEnum(underlying=inner), Bits() | Integer():
            return source == inner or isinstance(source, Integer)
        case _, SerEnum(underlying=inner):
            return cast_allowed(target, inner, const)
    return False
