"""Check the keysets of select cases, table entries and value sets (section 13.6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradplane.switch.check.checker_types import ANY, ListLiteral, SetType
from gradplane.switch.ir.types import Bits, Integer, SerEnum, Struct, Tuple, Type
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.check.checker import Checker

# The forms that entries allow for a key of each match kind, besides a single value.
_SPECIAL = (ast.Mask, ast.Range, ast.DefaultKey)
_FORMS = {
    "exact": (),
    "atcam_partition_index": (),
    "lpm": (ast.Mask, ast.DefaultKey),
    "ternary": (ast.Mask, ast.DefaultKey),
    "range": (ast.Range, ast.DefaultKey),
    "optional": (ast.DefaultKey,),
}


class KeysetChecker:
    def __init__(self, checker: Checker) -> None:
        self.c = checker

    def select(self, keyset: ast.Expr, types: Sequence[Type]) -> None:
        """Check the keyset of a select case against the types of the select's expressions."""
        if isinstance(keyset, ast.DefaultKey):
            return
        if isinstance(keyset, ast.Name) and self._value_set(keyset, types):
            return
        for element, t in self._elements(keyset, types):
            self._element(element, t)

    def entry(self, keyset: ast.Expr, types: Sequence[Type], kinds: Sequence[str]) -> None:
        """Check the keyset of a table entry: constants, in the forms its match kinds allow."""
        if isinstance(keyset, ast.DefaultKey) and len(types) != 1:  # for all keys
            exact = next((kind for kind in kinds if _FORMS.get(kind) == ()), None)
            if exact is not None:
                self._fits_kind(keyset, exact)
            return
        for i, (element, t) in enumerate(self._elements(keyset, types)):
            self._element(element, t)
            self._fits_kind(element, kinds[i])
            for part in _bounds(element):
                if part.type != ANY and not self.c.compile_time(part):
                    self.c.error(part, "an entry's key must be known at compile time")

    def _names_value_set(self, e: ast.Name) -> bool:
        found = self.c.scopes.find(e.name, e.dot)
        return bool(found) and isinstance(found[0], ast.ValueSetDecl)

    def _value_set(self, e: ast.Name, types: Sequence[Type]) -> bool:
        if not self._names_value_set(e):
            return False
        t = self.c.exprs.check(e)
        assert isinstance(t, SetType)
        fits = list(types) in ([t.element], components(t.element))
        if not fits and ANY not in types:
            given = ", ".join(map(str, types))
            self.c.error(e, f"value set {e.name} holds {t.element}, the select is over {given}")
        return True

    def _elements(self, keyset: ast.Expr, types: Sequence[Type]) -> list[tuple[ast.Expr, Type]]:
        if isinstance(keyset, ast.TupleKey) or isinstance(keyset, ast.ListExpr) and len(types) != 1:
            elements = keyset.elements
        else:
            elements = [keyset]
        if len(elements) != len(types):
            self.c.error(keyset, f"{len(types)} keys are needed here, {len(elements)} given")
            return []
        return list(zip(elements, types, strict=True))

    def _element(self, e: ast.Expr, t: Type) -> None:
        match e:
            case ast.DefaultKey():
                return
            case ast.Dots():
                self.c.error(e, "... cannot be a key", "write _ or default")
            case ast.Range(low=low, high=high):
                self._range(e, low, high, t)
            case ast.Mask(value=value, mask=mask):
                self._mask(e, value, mask, t)
            case ast.Name() if self._value_set(e, [t]):
                return
            case _:
                self.c.exprs.value(e)
                self.c.exprs.coerce(e, matched(e, t), "a key")

    def _range(self, e: ast.Range, low: ast.Expr, high: ast.Expr, t: Type) -> None:
        if not isinstance(_number(t), Bits | Integer) and t != ANY:
            self.c.error(e, f"a range cannot match {t}")
        fits = True
        for bound in (low, high):
            self.c.exprs.value(bound)
            fits &= self.c.exprs.coerce(bound, matched(bound, t), "a bound of the range")
        known = isinstance(low.const, int) and isinstance(high.const, int)
        if fits and known and isinstance(_number(t), Bits) and low.const > high.const:
            what = f"the range {low.const}..{high.const} is empty: the lower bound first"
            if self.c.context == "table":
                self.c.error(e, what)
            else:
                self.c.warn(e, "unreachable", what)

    def _mask(self, e: ast.Mask, value: ast.Expr, mask: ast.Expr, t: Type) -> None:
        if not isinstance(_number(t), Bits | Integer) and t != ANY:
            self.c.error(e, f"a mask cannot match {t}")
        for part in (value, mask):
            self.c.exprs.value(part)
            self.c.exprs.coerce(part, _number(t), "a masked key")

    def _fits_kind(self, e: ast.Expr, kind: str) -> None:
        if not isinstance(e, _SPECIAL):
            return
        forms = _FORMS.get(kind)
        if forms is not None and not isinstance(e, forms):
            written = {ast.Mask: "a mask", ast.Range: "a range", ast.DefaultKey: "a don't-care"}
            self.c.error(e, f"{written[type(e)]} cannot be given for a key matched {kind}")
        if kind == "lpm" and isinstance(e, ast.Mask) and isinstance(e.mask.const, int):
            width = e.mask.type.width if isinstance(e.mask.type, Bits) else 0
            inverted = ~e.mask.const & ((1 << width) - 1)
            if inverted & (inverted + 1):
                self.c.error(e.mask, "the mask of an lpm key must be a prefix: ones, then zeros")


def matched(e: ast.Expr, t: Type) -> Type:
    """Return the type that a checked value must have to match one of type t.

    For a serializable enum that is a member or a number, since the enum is converted (8.12.2).
    """
    return t if e.type == t else _number(t)


def _number(t: Type) -> Type:
    return t.underlying if isinstance(t, SerEnum) else t


def _bounds(e: ast.Expr) -> list[ast.Expr]:
    match e:
        case ast.DefaultKey():
            return []
        case ast.Range(low=a, high=b) | ast.Mask(value=a, mask=b):
            return [a, b]
    return [e]


def parts(t: Type) -> list[Type]:
    """Return the types of the parts of a struct, tuple or list; none for other types."""
    match t:
        case Struct(fields=fields):
            return [f.type for f in fields]
        case Tuple(elements=elements) | ListLiteral(elements=elements):
            return list(elements)
    return []


def components(t: Type) -> list[Type]:
    """Return the types of the parts of a type, down to those that are matched; else the type."""
    return [c for part in parts(t) for c in components(part)] or [t]


def spread(keyset: ast.Expr, types: Sequence[Type]) -> ast.Expr:
    """Return a keyset over values of these types as one over their components."""
    if isinstance(keyset, ast.DefaultKey | ast.Name) or not any(map(parts, types)):
        return keyset
    elements = getattr(keyset, "elements", [keyset])
    if len(elements) != len(types):
        return keyset
    flat = [x for e, t in zip(elements, types, strict=True) for x in _spread(e, t)]
    return ast.TupleKey(flat, span=keyset.span)


def _spread(e: ast.Expr, t: Type) -> list[ast.Expr]:
    if isinstance(e, ast.DefaultKey):
        return [ast.DefaultKey(span=e.span) for _ in components(t)]
    inner = parts(t)
    if isinstance(e, ast.ListExpr | ast.TupleKey) and len(e.elements) == len(inner):
        return [x for y, p in zip(e.elements, inner, strict=True) for x in _spread(y, p)]
    return [e]
