"""Type inference: bind type variables so that a formal type becomes the actual one."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.check.checker_types import (
    AnyType,
    BlockType,
    DefaultLiteral,
    ExternType,
    ListLiteral,
    ParamType,
    Signature,
    StructLiteral,
    Substitution,
    TypeVar,
    substitute,
)
from gradplane.switch.ir.types import Fields, Integer, List, Stack, Tuple, Type


class Inference:
    """Bindings for a set of type variables, extended by `unify`."""

    def __init__(self, variables: Iterable[TypeVar]) -> None:
        self.variables = set(variables)
        self.bound: dict[TypeVar, Type] = {}

    @property
    def widths_known(self) -> Substitution:
        """The final bindings: a variable bound to int may still get a width."""
        return {v: t for v, t in self.bound.items() if not isinstance(t, Integer)}

    def unify(self, formal: Type, actual: Type) -> bool:
        """Return whether `actual` matches `formal`; bind variables in doing so.

        Implicit conversions (an int constant, a list for a struct) are left to the caller and match
        here.
        """
        formal = substitute(formal, self.widths_known)
        if any(isinstance(t, TypeVar) and t.name == "_" for t in (formal, actual)):
            return True  # `_` matches every type
        if isinstance(formal, TypeVar) and formal in self.variables:
            return self._bind(formal, actual)
        if isinstance(actual, TypeVar) and actual in self.variables:
            return self._bind(actual, formal)
        if isinstance(actual, ListLiteral | StructLiteral):
            return self._literal(formal, actual)
        if isinstance(actual, AnyType | Integer | DefaultLiteral):
            return True
        match formal, actual:
            case Stack(element=f, size=n), Stack(element=a, size=m):
                return n == m and self.unify(f, a)
            case Tuple(elements=fs), Tuple(elements=as_):
                return len(fs) == len(as_) and all(map(self.unify, fs, as_))
            case List(element=f), List(element=a):
                return self.unify(f, a)
            case ExternType(args=fs), ExternType(args=as_):
                return formal.decl is actual.decl and all(map(self.unify, fs, as_))
            case Fields(args=fs), Fields(args=as_) if fs or as_:
                return formal.name == actual.name and all(map(self.unify, fs, as_))
            case BlockType(), BlockType():
                return formal.kind == actual.kind and self._params(formal.params, actual.params)
        return formal == actual or isinstance(formal, AnyType)

    def _literal(self, formal: Type, actual: ListLiteral | StructLiteral) -> bool:
        """Match the members that both have; what is left over the caller reports."""
        members: Iterable[Type] = ()
        if isinstance(formal, Fields):
            members = (f.type for f in formal.fields)
        elif isinstance(formal, Tuple):
            members = formal.elements
        if isinstance(actual, ListLiteral):
            pairs = list(zip(members, actual.elements, strict=False))
        else:
            given = dict(actual.fields)
            fields = formal.fields if isinstance(formal, Fields) else ()
            pairs = [(f.type, given[f.name]) for f in fields if f.name in given]
        return all(self.unify(f, a) for f, a in pairs)

    def same(self, formal: Signature, actual: Signature) -> bool:
        """Return whether a function has the required parameters and result."""
        return self._params(formal.params, actual.params) and self.unify(
            formal.result, actual.result
        )

    def _params(self, formal: tuple[ParamType, ...], actual: tuple[ParamType, ...]) -> bool:
        """Match parameters; the architecture may omit optional ones and defaults at the end."""
        return (
            len(formal) >= len(actual)
            and all(f.optional or f.default is not None for f in formal[len(actual) :])
            and all(
                f.direction == a.direction and self.unify(f.type, a.type)
                for f, a in zip(formal, actual, strict=False)
            )
        )

    def _bind(self, var: TypeVar, actual: Type) -> bool:
        if actual == var or isinstance(actual, DefaultLiteral | StructLiteral):
            return True
        known = self.bound.get(var)
        if known is None or isinstance(known, Integer):
            self.bound[var] = settled(actual)
            return True
        return isinstance(actual, Integer | ListLiteral | StructLiteral) or known == actual


def settled(t: Type) -> Type:
    """Return the type of a literal that nothing else determines: a list is a tuple."""
    if isinstance(t, ListLiteral):
        return Tuple(tuple(settled(e) for e in t.elements))
    return t
