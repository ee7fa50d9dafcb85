"""The types that a random program declares, and values of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count

from source_values import Named, Place, Values, random_bits

from gradplane.switch.ir.types import BOOL, Bits, Type

COLOUR, KIND, ERROR, ID = Named("colour_t"), Named("kind_t"), Named("error"), Named("id_t")
ITEM, LEFT, RIGHT, EITHER = Named("item_t"), Named("left_t"), Named("right_t"), Named("either_t")
FIELDS, OPTION, INNER = Named("fields_t"), Named("option_t"), Named("inner_t")
HEADERS, META, EMPTY = Named("headers_t"), Named("meta_t"), Named("empty_t")
ITEMS, STACK = Named("item_t[3]"), 3
SIZE = 3  # elements of arrays
ERRORS = ("NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort",
          "ParserTimeout", "Strange", "Other")  # fmt: skip

Members = dict[str, Type]
Literal = Callable[[Values, int], str]


class Types:
    """`declarations`: their text. `structs`, `headers`: fields by type; `literals`: what writes a
    value."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._names = count()
        self.id = Bits(rng.choice([7, 16, 32]))
        self.kind = Bits(rng.choice([3, 8, 40]))
        self.pair = Named(f"pair_t<{random_bits(rng)}>")
        self.tuple_parts = [random_bits(rng), BOOL, random_bits(rng)]
        self.tuple = Named(f"tuple<{', '.join(str(t) for t in self.tuple_parts)}>")
        self.element = random_bits(rng)
        self.array = Named(f"{self.element}[{SIZE}]")
        self.headers: dict[Type, Members] = {
            ITEM: {"a": Bits(8), "b": Bits(16, True)},
            LEFT: {"x": Bits(24)},
            RIGHT: {"y": Bits(8), "z": Bits(40)},
            FIELDS: self._fields(),
        }
        inner: Members = {"p": Bits(12), "q": Bits(9, True), "item": ITEM, "ok": BOOL}
        pair: Members = dict.fromkeys("pq", _argument(self.pair))
        meta: Members = {"i": Bits(32), "yes": BOOL, "inner": INNER, "pair": self.pair,
                         "two": self.tuple, "colour": COLOUR, "kind": KIND, "id": ID, "e": ERROR,
                         "wide": random_bits(rng), "small": Bits(3), "stack": ITEMS,
                         "many": self.array}  # fmt: skip
        self.structs: dict[Type, Members] = {
            INNER: inner,
            self.pair: pair,
            HEADERS: {"f": FIELDS, "items": ITEMS, "u": EITHER, "plain": ITEM, "o": OPTION},
            META: meta,
            EMPTY: {},
        }
        self.literals: dict[Type, Literal] = {
            COLOUR: lambda v, d: f"colour_t.{v.rng.choice(['Red', 'Green', 'Blue'])}",
            ERROR: lambda v, d: f"error.{v.rng.choice(ERRORS)}",
            KIND: self._kind,
            ID: lambda v, d: f"((id_t) {v.value(self.id, d)})",
            self.tuple: lambda v, d: _listed(v, self.tuple_parts, d),
            self.array: lambda v, d: f"(({self.array}) {_listed(v, [self.element] * SIZE, d)})",
            **{t: self._made(t) for t in (INNER, self.pair, EMPTY, *self.headers)},
        }

    def name(self, what: str) -> str:
        """Return a name that the program does not have yet."""
        return f"{what}{next(self._names)}"

    def constant(self, t: Type) -> str:
        """Return a value known at compile time, of a type that is not a number's."""
        members = {COLOUR: ["colour_t.Red", "colour_t.Blue"], KIND: ["kind_t.A", "kind_t.C"],
                   ERROR: ["error.NoError", "error.Strange"]}  # fmt: skip
        return self.rng.choice(members.get(t, ["true", "false"]))

    def _fields(self) -> Members:
        """Return fields, mostly of whole bytes."""
        made: Members = {f"f{i}": random_bits(self.rng) for i in range(self.rng.randrange(3, 8))}
        total = sum(t.width for t in made.values() if isinstance(t, Bits))
        return {**made, "rest": Bits(16 - total % 8 + (not self.rng.randrange(8)))}

    def _kind(self, values: Values, depth: int) -> str:
        if values.rng.randrange(3):
            return f"kind_t.{values.rng.choice('ABC')}"
        return f"((kind_t) {values.value(self.kind, depth)})"

    def _made(self, t: Type) -> Literal:
        """Return a literal: a list, or fields by name."""
        members = self.headers[t] if t in self.headers else self.structs[t]

        def made(values: Values, depth: int) -> str:
            if values.rng.randrange(2) or not members:
                return f"({t}) {_listed(values, list(members.values()), depth)}"
            named = (f"{name} = {values.value(m, depth)}" for name, m in members.items())
            return f"({t}) {{ {', '.join(named)} }}"

        return made

    # -- declarations ---------------------------------------------------------------------------

    @property
    def declarations(self) -> str:
        headers = "\n".join(f"header {t} {{ {_members(m)} }}" for t, m in self.headers.items())
        structs = "\n".join(
            f"struct {t} {{ {_members(m)} }}"
            for t, m in self.structs.items()
            if t not in (self.pair, META)
        )
        return f"""
error {{ Strange, Other }}
enum colour_t {{ Red, Green, Blue }}
enum {self.kind} kind_t {{ A = 1, B = 2, C = 7 }}
type {self.id} id_t;
header option_t {{ bit<8> size; varbit<40> data; }}
struct pair_t<T> {{ T p; T q; }}
{headers}
header_union either_t {{ left_t left; right_t right; }}
{structs}
struct meta_t {{ {_members(self.structs[META])} @field_list(1) bit<8> rounds; }}
"""

    # -- what is in a value ---------------------------------------------------------------------

    def places(self, text: str, t: Type, writable: bool = True) -> Iterator[Place]:
        """Yield a value and everything in it that can be named."""
        if isinstance(t, Bits) or t == BOOL or t in self.literals:
            yield Place(text, t, writable)
        if t == self.tuple:
            for i, part in enumerate(self.tuple_parts):
                yield from self.places(f"{text}[{i}]", part, False)
        for name, member in self._members(t).items():
            yield from self.places(f"{text}.{name}", member, writable)
        for i in range(STACK if t == ITEMS else 0):
            yield from self.places(f"{text}[{i}]", ITEM, writable)
        for index in [*range(SIZE), "m.small"] if t == self.array and text == "m.many" else []:
            yield Place(f"{text}[{index}]", self.element, writable)

    def _members(self, t: Type) -> Members:
        if t == EITHER:
            return {"left": LEFT, "right": RIGHT}
        if t == OPTION:
            return {"size": Bits(8)}
        return self.headers.get(t) or self.structs.get(t) or {}

    def valid(self, text: str, t: Type) -> Iterator[str]:
        """Yield the headers and unions in a value."""
        if t in self.headers or t in (OPTION, EITHER):
            yield text
        for name, member in self._members(t).items():
            yield from self.valid(f"{text}.{name}", member)
        for i in range(STACK if t == ITEMS else 0):
            yield f"{text}[{i}]"

    def carried(self) -> Type:
        """Return the type of metadata that an architecture takes along."""
        return self.rng.choice([EMPTY, INNER, ITEM, self.pair, self.tuple, Bits(9), META, HEADERS])


def _members(members: Members) -> str:
    return " ".join(f"{t} {name};" for name, t in members.items())


def _listed(values: Values, types: list[Type], depth: int) -> str:
    return f"{{ {', '.join(values.value(t, depth) for t in types)} }}"


def _argument(pair: Named) -> Type:
    """Return a type argument of pair_t<...>."""
    text = pair.name[len("pair_t<") : -1]
    width = int(text[text.index("<") + 1 : -1])
    return Bits(width, text.startswith("int"))
