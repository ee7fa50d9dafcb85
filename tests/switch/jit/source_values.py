"""Random P4 expressions as text, of a given type, on what is in scope.

What can be written in two ways is a macro, so that one program means the same twice: as it is, and
with SPELLED_OUT defined, where less is left to the compiler (no constant is folded, `op=` is an
operation and an assignment, and so on).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from gradplane.switch.ir.ops import limits
from gradplane.switch.ir.types import BOOL, Bits, Type

MACROS = """
T same<T>(in T x) { return x; }
#ifdef SPELLED_OUT
#define LITERAL(x) same(x)
#define NEGATED(x) (0 - x)
#define INVERTED(x) (-x - 1)
#define AND(a, b) (a ? b : false)
#define OR(a, b) (a ? true : b)
#define CHANGE(place, op, assign, x) place = place op x
#define EACH(t, i, low, high) for (t i = low; i <= high; i = i + 1)
#define HIT(table) !table.apply().miss
#else
#define LITERAL(x) x
#define NEGATED(x) (-x)
#define INVERTED(x) (~x)
#define AND(a, b) (a && b)
#define OR(a, b) (a || b)
#define CHANGE(place, op, assign, x) place assign x
#define EACH(t, i, low, high) for (t i in low .. high)
#define HIT(table) table.apply().hit
#endif
"""

EDGES = (1, 2, 3, 4, 7, 8, 9, 12, 16, 24, 31, 32, 33, 48, 63, 64, 65, 96, 128)


@dataclass(frozen=True)
class Named(Type):
    """A type that the program declares."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Place:
    """An expression of a type; `writable`: also an l-value."""

    text: str
    type: Type
    writable: bool = True


Source = tuple[Type, Callable[["Values", int], str | None]]
"""A type and what makes a call with such a result, of arguments of a depth; None: not here."""


@dataclass
class Scope:
    """The places that an expression may use. `valid`: headers whose validity may be tested."""

    places: list[Place] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    valid: list[str] = field(default_factory=list)


def random_bits(rng: random.Random) -> Bits:
    width = rng.choice(EDGES) if rng.randrange(3) else rng.randrange(1, 80)
    return Bits(width, width > 1 and not rng.randrange(4))


class Values:
    """Writes expressions. `literals`: for a declared type, what makes one of its values."""

    def __init__(
        self,
        rng: random.Random,
        scope: Scope,
        literals: dict[Type, Callable[[Values, int], str]],
    ) -> None:
        self.rng = rng
        self.scope = scope
        self.literals = literals

    def value(self, t: Type, depth: int = 3) -> str:
        if t == BOOL:
            return self._bool(depth)
        if isinstance(t, Bits):
            return self._bits(t, depth)
        same = self._of(t)
        if same and self.rng.randrange(3):
            return self.rng.choice(same)
        return self.literals[t](self, depth - 1)

    def target(self, t: Type) -> str | None:
        """Return an l-value of a type: a place, or for unsigned bits a slice of a wider one."""
        same = [p.text for p in self.scope.places if p.type == t and p.writable]
        if isinstance(t, Bits) and not t.signed and not (same and self.rng.randrange(3)):
            wider = [p for p in self.scope.places if p.writable and _wider(p.type, t)]
            if wider:
                return self.slice_of(self.rng.choice(wider), t.width)
        return self.rng.choice(same) if same else None

    def slice_of(self, place: Place, width: int) -> str:
        assert isinstance(place.type, Bits)
        low = self.rng.randrange(place.type.width - width + 1)
        return f"{place.text}[{low + width - 1}:{low}]"

    def literal(self, t: Bits) -> str:
        low, high = limits(t)
        edges = [low, high, 0, min(1, high), self.rng.randint(low, high)]
        number = self.rng.choice(edges)
        return f"({t}) {number}" if number < 0 else f"{t.width}{'s' if t.signed else 'w'}{number}"

    def _of(self, t: Type) -> list[str]:
        return [p.text for p in self.scope.places if p.type == t]

    # -- numbers --------------------------------------------------------------------------------

    def _bits(self, t: Bits, depth: int) -> str:
        if depth <= 0 or not self.rng.randrange(5):
            return self._leaf(t)
        kinds = ["arithmetic"] * 5 + ["unary", "shift", "shift", "cast", "cast", "mux", "call"]
        if not t.signed:
            kinds += ["slice", "slice", "divide"] + ["concat"] * 2 * (t.width > 1)
        made: str = getattr(self, f"_{self.rng.choice(kinds)}_of")(t, depth - 1)
        return made

    def _leaf(self, t: Bits) -> str:
        same = self._of(t)
        if same and self.rng.randrange(4):
            return self.rng.choice(same)
        others = [p for p in self.scope.places if isinstance(p.type, Bits)]
        if others and self.rng.randrange(2):
            return self._converted(self.rng.choice(others), t)
        return f"LITERAL({self.literal(t)})"

    @staticmethod
    def _converted(place: Place, t: Bits) -> str:
        """Convert by the casts of the language: width and sign are not changed at once."""
        old = place.type
        assert isinstance(old, Bits)
        if old == t:
            return place.text
        between = f"({Bits(t.width, old.signed)}) " if old.signed != t.signed else ""
        return f"(({t}) {between}{place.text})"

    def _arithmetic_of(self, t: Bits, depth: int) -> str:
        op = self.rng.choice(["+", "-", "*", "|+|", "|-|", "&", "|", "^"])
        return f"({self.value(t, depth)} {op} {self.value(t, depth)})"

    def _divide_of(self, t: Bits, depth: int) -> str:
        places = [p for p in self.scope.places if p.type == t and p.writable]
        if not places:
            return self._leaf(t)
        divisor = self.rng.choice(places).text
        return f"({self.value(t, depth)} {self.rng.choice('/%')} ({divisor} | 1))"

    def _unary_of(self, t: Bits, depth: int) -> str:
        return f"{self.rng.choice(['NEGATED', 'INVERTED'])}({self.value(t, depth)})"

    def _shift_of(self, t: Bits, depth: int) -> str:
        op = self.rng.choice(["<<", ">>"])
        if self.rng.randrange(2):
            return f"({self.value(t, depth)} {op} {self.rng.randrange(t.width + 3)})"
        amount = Bits(self.rng.choice([1, 3, 8, 9, 32, 129]))
        return f"({self.value(t, depth)} {op} {self.value(amount, depth)})"

    def _cast_of(self, t: Bits, depth: int) -> str:
        if t == Bits(1) and self.rng.randrange(2):
            return f"((bit<1>) {self._bool(depth)})"
        other = random_bits(self.rng)
        if other.width != t.width:
            other = Bits(other.width, t.signed)
        return f"(({t}) {self.value(other, depth)})"

    def _mux_of(self, t: Bits, depth: int) -> str:
        return f"({self._bool(depth)} ? {self.value(t, depth)} : {self.value(t, depth)})"

    def _slice_of(self, t: Bits, depth: int) -> str:
        low, more = self.rng.randrange(40), self.rng.randrange(5)
        wide = self.value(Bits(t.width + low + more, bool(self.rng.randrange(2))), depth)
        return f"({wide})[{low + t.width - 1}:{low}]"

    def _concat_of(self, t: Bits, depth: int) -> str:
        left = self.rng.randrange(1, t.width)
        right = Bits(t.width - left, bool(self.rng.randrange(2)) and t.width - left > 1)
        return f"({self.value(Bits(left), depth)} ++ {self.value(right, depth)})"

    def _call_of(self, t: Bits, depth: int) -> str:
        """Return a call, with its result cast to the type."""
        calls = [(r, make) for r, make in self.scope.sources if isinstance(r, Bits)]
        if not calls:
            return self._leaf(t)
        result, make = self.rng.choice(calls)
        call = make(self, depth)
        return self._converted(Place(call, result), t) if call else self._leaf(t)

    # -- truth ----------------------------------------------------------------------------------

    def _bool(self, depth: int) -> str:
        places = self._of(BOOL)
        kind = self.rng.randrange(9 if depth > 0 else 3)
        if kind == 0 or (kind == 1 and not places) or (kind == 2 and not self.scope.valid):
            return self.rng.choice(["true", "false"])
        if kind == 1:
            return self.rng.choice(places)
        if kind == 2:
            return f"{self.rng.choice(self.scope.valid)}.isValid()"
        if kind == 3:
            op = self.rng.choice(["AND", "OR"])
            return f"{op}({self._bool(depth - 1)}, {self._bool(depth - 1)})"
        if kind == 4:
            return f"(!{self._bool(depth - 1)})"
        if kind == 5:
            return self._same(depth - 1)
        t = random_bits(self.rng)
        op = self.rng.choice(["==", "!=", "<", "<=", ">", ">="])
        return f"({self.value(t, depth - 1)} {op} {self.value(t, depth - 1)})"

    def _same(self, depth: int) -> str:
        """Return two values of any type that is in scope: structs, headers, enums."""
        places = [p for p in self.scope.places if p.type in self.literals]
        if not places:
            return self._bool(0)
        place = self.rng.choice(places)
        other = self.rng.choice(self._of(place.type))
        return f"({place.text} {self.rng.choice(['==', '!='])} {other})"


def _wider(t: Type, than: Bits) -> bool:
    return isinstance(t, Bits) and t.width > than.width
