"""Random P4 statements as text."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from source_types import COLOUR, ERROR, ITEM, Types
from source_values import Place, Scope, Values, random_bits

from gradplane.switch.ir.types import BOOL, Bits, Type

Maker = Callable[["Statements"], str | None]
"""Writes a statement, or None where what it needs is not in scope."""
OPERATORS = ("+", "-", "*", "&", "|", "^", "|+|", "|-|")


class Statements:
    """Writes statements on what is in scope.

    `more`: statements of the place, such as a table's application. `stacks`: header stacks.
    `ways_out`: statements that leave, which stand below an `if`. `plain`: no other control flow
    than a parser state may have.
    """

    def __init__(
        self,
        rng: random.Random,
        types: Types,
        scope: Scope,
        more: list[Maker] | None = None,
        stacks: tuple[str, ...] = (),
        ways_out: tuple[str, ...] = (),
        plain: bool = False,
    ) -> None:
        self.rng = rng
        self.types = types
        self.scope = scope
        self.values = Values(rng, scope, types.literals)
        self.more = more or []
        self.stacks = stacks
        self.ways_out = ways_out
        self.plain = plain
        self.loops = 0

    def block(self, count: int, depth: int = 3) -> str:
        """Return statements in braces; what they declare ends with them."""
        with self.inside():
            body = " ".join(self.statement(depth) for _ in range(count))
        return f"{{ {body} }}"

    def statement(self, depth: int) -> str:
        kinds = ["assign"] * 6 + ["compound", "compound", "slice", "declare", "struct", "call"]
        kinds += ["stack", "element"] * bool(self.stacks) + ["valid"] * bool(self.scope.valid)
        kinds += ["special"] * 5 * bool(self.more)
        if depth > 0:
            kinds += ["if", "if", "nested"]
        if depth > 0 and not self.plain:
            kinds += ["switch", "leave"] + ["loop"] * (self.loops < 2)
        made: str = getattr(self, f"_{self.rng.choice(kinds)}")(depth)
        return made

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Limit the scope of declarations to this context."""
        kept = list(self.scope.places)
        yield
        self.scope.places[:] = kept

    # -- assignments ----------------------------------------------------------------------------

    def _assign(self, depth: int) -> str:
        place = self._place()
        return f"{place.text} = {self.values.value(place.type)};"

    def _compound(self, depth: int) -> str:
        place = self._number()
        t = place.type
        kind = self.rng.randrange(6)
        if kind == 0:
            return self._changed(place.text, self.rng.choice(["<<", ">>"]), Bits(8))
        return self._changed(place.text, self.rng.choice(OPERATORS), t)

    def _changed(self, place: str, op: str, t: Type) -> str:
        return f"CHANGE({place}, {op}, {op}=, ({self.values.value(t, 2)}));"

    def _slice(self, depth: int) -> str:
        place = self._number()
        assert isinstance(place.type, Bits)
        t = Bits(self.rng.randrange(1, place.type.width + 1))
        bits = self.values.slice_of(place, t.width)
        if not self.rng.randrange(3):
            return self._changed(bits, self.rng.choice(OPERATORS), t)
        return f"{bits} = {self.values.value(t, 2)};"

    def _struct(self, depth: int) -> str:
        """Return a value of a declared type as a whole."""
        places = [p for p in self.scope.places if p.writable and p.type in self.types.literals]
        if not places:
            return self._assign(depth)
        place = self.rng.choice(places)
        return f"{place.text} = {self.values.value(place.type, 2)};"

    def _declare(self, depth: int) -> str:
        t: Type = random_bits(self.rng)
        if not self.rng.randrange(4):
            t = self.rng.choice([BOOL, COLOUR, ERROR, *self.types.literals])
        made = self.types.name("v")
        start = f" = {self.values.value(t, 2)}" if self.rng.randrange(4) else ""
        self.scope.places += self.types.places(made, t)
        return f"{t} {made}{start};"

    def _place(self) -> Place:
        return self.rng.choice([p for p in self.scope.places if p.writable])

    def _number(self) -> Place:
        places = [p for p in self.scope.places if p.writable and isinstance(p.type, Bits)]
        return self.rng.choice(places)

    # -- headers --------------------------------------------------------------------------------

    def _stack(self, depth: int) -> str:
        kind = self.rng.choice(["push_front", "pop_front"])
        return f"{self.rng.choice(self.stacks)}.{kind}({self.rng.randrange(1, 5)});"

    def _element(self, depth: int) -> str:
        """Return an element chosen while the program runs."""
        stack, index = self.rng.choice(self.stacks), f"m.small ^ {self.values.value(Bits(3), 1)}"
        kind = self.rng.randrange(4)
        if kind == 0:
            return f"{stack}[{index}].{self.rng.choice(['setValid', 'setInvalid'])}();"
        if kind == 1:
            return f"{stack}[{index}] = {self.values.value(ITEM, 2)};"
        if kind == 2:
            return f"{stack}[{index}].a {self.rng.choice(OPERATORS)}= {stack}[0].a;"
        return f"{stack}[{index}].b = {self.values.value(Bits(16, True), 2)};"

    def _valid(self, depth: int) -> str:
        header = self.rng.choice(self.scope.valid)
        if header.endswith(".u"):  # a union is made valid by its headers
            header += ".right"
        return f"{header}.{self.rng.choice(['setValid', 'setInvalid'])}();"

    # -- control flow ---------------------------------------------------------------------------

    def _if(self, depth: int) -> str:
        other = f" else {self.block(1, depth - 1)}" if self.rng.randrange(2) else ""
        return f"if ({self.values.value(BOOL, 2)}) {self.block(2, depth - 1)}{other}"

    def _nested(self, depth: int) -> str:
        return self.block(2, depth - 1)

    def _switch(self, depth: int) -> str:
        if not self.rng.randrange(3):
            labels = ["colour_t.Red", "colour_t.Blue", "colour_t.Green"]
            on = self.values.value(COLOUR, 1)
        else:
            t = Bits(self.rng.choice([2, 3, 9, 70]))
            labels = [f"{t.width}w{n}" for n in self.rng.sample(range(1 << min(t.width, 5)), 3)]
            on = self.values.value(t, 2)
        first, second, third = labels
        cases = f"{first}: {self.block(1, depth - 1)} {second}:"
        cases += f" {third}: {self.block(1, depth - 1)}"
        if self.rng.randrange(2):
            cases += f" default: {self.block(1, depth - 1)}"
        return f"switch ({on}) {{ {cases} }}"

    def _loop(self, depth: int) -> str:
        """Return a handful of rounds, or one for each number or value in a list."""
        made = self.types.name("i")
        self.loops += 1
        with self.inside():
            if self.rng.randrange(2):
                head = f"for (bit<8> {made} = 0; {made} < {self.rng.randrange(6)}; {made} += 1)"
                self.scope.places.append(Place(made, Bits(8), False))
            else:
                t = Bits(self.rng.choice([4, 8, 16]))
                low = self.rng.randrange(9)
                high = self.rng.randrange(low, low + 5)
                head = f"EACH({t}, {made}, {t.width}w{low}, {t.width}w{high})"
                self.scope.places.append(Place(made, t, False))
            body = self.block(2, depth - 1)
        self.loops -= 1
        return f"{head} {body}"

    def _leave(self, depth: int) -> str:
        ways = [*self.ways_out, *["break;", "continue;"] * bool(self.loops)]
        if not ways:
            return self._assign(depth)
        return f"if ({self.values.value(BOOL, 2)}) {{ {self.rng.choice(ways)} }}"

    # -- calls ----------------------------------------------------------------------------------

    def _call(self, depth: int) -> str:
        """Return a function, for what it does to its arguments."""
        calls = [make for _, make in self.scope.sources]
        call = self.rng.choice(calls)(self.values, 2) if calls else None
        return f"{call};" if call else self._assign(depth)

    def _special(self, depth: int) -> str:
        return self.rng.choice(self.more)(self) or self._assign(depth)
