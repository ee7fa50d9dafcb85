"""Check parsers: states, transitions, select (specification, chapter 13); and the keysets of select
cases, table entries and value sets (section 13.6).
"""

from __future__ import annotations

from collections.abc import Sequence

from gradplane._suggestions import did_you_mean
from gradplane.switch.check.checker_types import ANY, ListLiteral, SetType
from gradplane.switch.check.context import Context
from gradplane.switch.check.keyset_coverage import Earlier, known_sets
from gradplane.switch.ir.types import (
    BOOL,
    INTEGER,
    Bits,
    Enum,
    Error,
    Integer,
    NewType,
    SerEnum,
    Struct,
    Tuple,
    Type,
)
from gradplane.switch.syntax import ast

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
    def __init__(self, checker: Context) -> None:
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


# -- parsers ----------------------------------------------------------------------------------


FINAL = ("accept", "reject")


class ParserChecker:
    def __init__(self, checker: Context) -> None:
        self.c = checker

    def check(self, decl: ast.ParserDecl) -> None:
        with self.c.inside("parser"), self.c.scopes.nested():
            self.c.types.declare_variables(decl)
            self.c.decls.block_params(decl)
            params = self.c.scopes.current
            with self.c.scopes.nested():
                self.c.decls.locals(decl.locals, params)
                self._states(decl)

    def _states(self, decl: ast.ParserDecl) -> None:
        states: dict[str, ast.ParserState] = {}
        for s in decl.states:
            if s.name in FINAL:
                self.c.error(s, f"state {s.name} is built in and cannot be declared")
            elif s.name in states:
                self.c.error(s, f"state {s.name} is declared twice", f"at {states[s.name].span}")
            states[s.name] = s
        self._distinct(decl, states)
        if "start" not in states:
            self.c.error(decl, f"parser {decl.name} has no state start")
        for s in decl.states:
            self.c.annotations(s)
            with self.c.scopes.nested():
                self.c.stmts.body(s.body)
                self._transition(s, states)
        self._unreachable(decl, states)

    def _distinct(self, decl: ast.ParserDecl, states: dict[str, ast.ParserState]) -> None:
        for member in decl.locals:
            if member.name in states:
                place = states[member.name]
                self.c.error(
                    place,
                    f"state {member.name} has the name of another declaration in this parser",
                    f"at {member.name_span or member.span}",
                )

    def _transition(self, s: ast.ParserState, states: dict[str, ast.ParserState]) -> None:
        if isinstance(s.transition, str):
            self._target(s.transition, s, states)
        elif isinstance(s.transition, ast.Select):
            self._select(s.transition, states)

    def _target(self, name: str, place: ast.Node, states: dict[str, ast.ParserState]) -> None:
        if name in states or name in FINAL:
            return
        span = getattr(place, "transition_span", None) or place.span
        hint = did_you_mean(name, [*states, *FINAL])
        self.c.reporter.error(span, f"there is no state {name}", hint)

    def _select(self, select: ast.Select, states: dict[str, ast.ParserState]) -> None:
        given = [self.c.exprs.value(e) for e in select.exprs]
        nested = parts(given[0]) or given if len(given) == 1 else given
        select.one_list = len(given) == 1 and isinstance(select.exprs[0], ast.ListExpr)
        select.exprs = [x for e in select.exprs for x in self._elements(e)]
        places = [e for e in select.exprs for _ in components(e.type or ANY)]
        scalars = [t for one in nested for t in components(one)]
        types = [self._select_type(e, t) for e, t in zip(places, scalars, strict=True)]
        for case in select.cases:
            self._target(case.state, case, states)
            case.keyset = spread(case.keyset, nested)
            self.c.keysets.select(case.keyset, types)
        self._covered(select.cases, types)

    def _covered(self, cases: Sequence[ast.SelectCase], types: Sequence[Type]) -> None:
        """Warn of cases that are never reached because an earlier one includes them."""
        earlier = Earlier()
        for case in cases:
            at = earlier.cover(known_sets(case.keyset, types))
            if at is not None and isinstance(cases[at].keyset, ast.DefaultKey):
                what = "this case is never reached: it follows default"
                self.c.warn(case, "unreachable", what)
                return
            if at is not None:
                what = "this case is never reached: an earlier case matches all its values"
                self.c.warn(case, "unreachable", what, f"the one at {cases[at].span}")

    def _elements(self, e: ast.Expr) -> list[ast.Expr]:
        """Return the elements of a list and of the lists in it; else the expression itself."""
        if not isinstance(e, ast.ListExpr) or not e.elements:
            return [e]
        if isinstance(e.elements[-1], ast.Dots):
            self.c.error(e.elements.pop(), "select cannot be on ...")
        return [x for element in e.elements for x in self._elements(element)]

    def _select_type(self, e: ast.Expr, t: Type) -> Type:
        if t == INTEGER:
            self.c.error(e, "select needs a value of known width", "write 8w1 instead of 1")
            return ANY
        if not isinstance(t, Bits | Enum | SerEnum | Error | NewType) and t not in (BOOL, ANY):
            self.c.error(e, f"select cannot be on {t}")
            return ANY
        return t

    def _unreachable(self, decl: ast.ParserDecl, states: dict[str, ast.ParserState]) -> None:
        reached, todo = set(), ["start"]
        while todo:
            name = todo.pop()
            if name in reached or name not in states:
                continue
            reached.add(name)
            todo += successors(states[name])
        for name, s in states.items():
            if name not in reached and name not in FINAL and "start" in states:
                self.c.warn(s, "unreachable", f"state {name} is never reached")


def successors(s: ast.ParserState) -> list[str]:
    """Return the states that a state's transition names."""
    if isinstance(s.transition, ast.Select):
        return [case.state for case in s.transition.cases]
    return [s.transition] if s.transition is not None else []
