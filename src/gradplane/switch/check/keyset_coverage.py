"""Sets of values that keysets match, and whether one includes another.

Entries of large tables that have one key and action data, all integers of few bits, are checked
fast. What an entry of another form, or with a mistake, means or lacks is left to the general rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gradplane.switch.ir.types import Bits, SerEnum, Type
from gradplane.switch.syntax import ast


@dataclass(frozen=True, slots=True)
class Masked:
    """The numbers of `width` bits that equal `value` in the bits of `mask`."""

    value: int
    mask: int
    width: int


@dataclass(frozen=True, slots=True)
class Between:
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class One:
    """A single value of any type."""

    value: object


@dataclass(frozen=True, slots=True)
class Any_:
    """All values."""


Known = Masked | Between | One | Any_
MAX_COMPARED = 256  # limit on the keysets of several values that later ones are compared with


def known_sets(keyset: ast.Expr, types: Sequence[Type]) -> list[Known] | None:
    """Return what a checked keyset matches, one set for each key; None if it is not constant."""
    if isinstance(keyset, ast.DefaultKey):
        return [Any_() for _ in types]
    several = isinstance(keyset, ast.TupleKey | ast.ListExpr) and len(types) != 1
    elements = getattr(keyset, "elements", [keyset])
    parts = elements if several or isinstance(keyset, ast.TupleKey) else [keyset]
    found = [_known(e, t) for e, t in zip(parts, types, strict=False)]
    if len(parts) != len(types) or None in found:
        return None
    return [s for s in found if s is not None]


def single(sets: list[Known]) -> tuple[Known, ...] | int:
    """Return the number that is all a keyset matches, or its sets as a key of a dictionary."""
    match sets:
        case [One(value=int() as number)]:
            return number
    return tuple(sets)


def _known(e: ast.Expr, t: Type) -> Known | None:
    number = t.underlying if isinstance(t, SerEnum) else t
    match e:
        case ast.DefaultKey():
            return Any_()
        case ast.Range(low=ast.Expr(const=int() as low), high=ast.Expr(const=int() as high)):
            return Between(low, high)
        case ast.Mask(value=ast.Expr(const=int() as v), mask=ast.Expr(const=int() as m)):
            if isinstance(number, Bits) and not number.signed:
                return Masked(v & m, m, number.width)
        case ast.Expr(const=value) if value is not None:
            return One(value)
    return None


def covers(one: Sequence[Known], other: Sequence[Known]) -> bool:
    """Return whether `one` matches everything that `other` matches, key by key."""
    return all(map(_holds, one, other))


def _holds(a: Known, b: Known) -> bool:
    match a, b:
        case Any_(), _:
            return True
        case One(value=x), One(value=y):
            return x == y
        case One(value=x), Between(low=low, high=high):
            return low == high == x
        case Between(low=low, high=high), One(value=int() as y):
            return low <= y <= high
        case Between(), Between():
            return a.low <= b.low and b.high <= a.high
        case Between(low=low, high=high), Masked():
            return low <= b.value and b.value | ~b.mask & (1 << b.width) - 1 <= high
        case Masked(), One(value=int() as y):
            return y & a.mask == a.value
        case Masked(), Masked():
            return a.mask & b.mask == a.mask and b.value & a.mask == a.value
        case Masked(mask=mask), Between(low=low, high=high):
            same_below = (low ^ high).bit_length()  # bits that vary within the range
            return low <= high and not mask & (1 << same_below) - 1 and low & mask == a.value
        case Masked(mask=0), Any_():
            return True
    return False


class Earlier:
    """The keysets before the current one, in order."""

    def __init__(self) -> None:
        self._values: dict[tuple[Known, ...], int] = {}  # the keysets of single values
        self._sets: list[tuple[int, list[Known]]] = []
        self._count = 0

    def cover(self, sets: list[Known] | None) -> int | None:
        """Return the position of an earlier keyset that includes this one, then add this one."""
        at = None if sets is None else self._cover(sets)
        if sets is not None and all(isinstance(s, One) for s in sets):
            self._values.setdefault(tuple(sets), self._count)
        elif sets is not None and len(self._sets) < MAX_COMPARED:
            self._sets.append((self._count, sets))
        self._count += 1
        return at

    def _cover(self, sets: list[Known]) -> int | None:
        found = self._values.get(tuple(sets))
        wide = (i for i, earlier in self._sets if covers(earlier, sets))
        return found if found is not None else next(wide, None)


# -- entries of integers alone ----------------------------------------------------------------


Use = TypeVar("Use")


class PlainEntries(Generic[Use]):
    """The rules of one table for its plain entries."""

    def __init__(
        self,
        keys: Sequence[Type],
        data: Mapping[str, Sequence[Type] | None],
        use: Callable[[str, list[ast.Expr]], Use],
    ) -> None:
        """Set the types of the keys, and of the data of each action by its name.

        data: None for an action whose entries may repeat bound arguments. use: makes the record of
        an action's use with its data.
        """
        self._key = _unsigned(keys[0]) if len(keys) == 1 else None
        self._data = {name: _all_unsigned(types) for name, types in data.items()}
        self._use = use

    def take(self, entry: ast.TableEntry) -> bool:
        """Check an entry that the parser marked as plain; return whether it is right."""
        action, key = entry.action, entry.keyset
        types = self._data.get(action.name)
        if self._key is None or types is None or action.dot:
            return False
        args = action.args or []
        if len(args) != len(types) or not _fits(key, self._key):
            return False
        values: list[ast.Expr] = []
        for argument, t in zip(args, types, strict=True):
            value = argument.expr
            if value is None or not _fits(value, t):
                return False
            values.append(value)
        action.info = self._use(action.name, values)
        return True


def _unsigned(t: Type) -> Bits | None:
    return t if isinstance(t, Bits) and not t.signed else None


def _all_unsigned(types: Sequence[Type] | None) -> list[Bits] | None:
    found = [t for t in types or () if isinstance(t, Bits) and not t.signed]
    return found if types is not None and len(found) == len(types) else None


def _fits(e: ast.Expr, t: Bits) -> bool:
    """Give an integer its type, if it fits; return whether it does."""
    assert isinstance(e, ast.IntLit), e
    same = e.width is None or e.width == t.width and not e.signed
    if not same or e.value >> t.width:
        return False
    e.type, e.const = t, e.value
    return True
