"""Values that statements compute, and the operations that put them into fields.

`KnownValues` are those that fields were set to, which the chip's compiler puts into later
statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradplane.fit.chip_resources import Impossible
from gradplane.fit.places import Place
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import bit_width
from gradplane.switch.source import Span


@dataclass(frozen=True, slots=True)
class Use:
    """The use of an extern instance.

    index: "constant", "data" (of the action), "field" or "direct"; inputs: the places that its
    index or its data come from. bits: of its result (a hash) or of its index.
    """

    instance: ir.ExternInstance
    index: str
    index_bits: int
    inputs: tuple[Place, ...]
    hashed: bool
    result_bits: int
    span: Span
    index_inputs: tuple[Place, ...] = ()
    hashes: tuple[ir.ExternInstance, ...] = ()


@dataclass(slots=True)
class Value:
    """The value of an expression: places read, operations on the way, externs used.

    steps: operations after each other; sources: operands; carries: one of the operations adds or
    subtracts. constant: an operand is a number that does not stand in the ALU's instruction.
    called: it comes from a function (min, max) or an extern, which the chip's compiler does not put
    into later statements. ages: after how many of the run's operations a place was read, where it
    was read."""

    places: tuple[Place, ...] = ()
    steps: int = 0
    uses: tuple[Use, ...] = ()
    sources: int = 0
    carries: bool = False
    impossible: Impossible | None = None
    constant: bool = False
    called: bool = False
    ages: dict[Place, int] = field(default_factory=dict)


@dataclass(slots=True)
class Operation:
    """An operation of an action: the places that it writes, and the value that it puts there.

    called: the action that is called directly and that it is part of; block: the @in_hash block.
    number: of the operations of its run before it."""

    writes: list[Place]
    value: Value
    span: Span
    called: Span | None = None
    number: int = 0
    block: Span | None = None

    @property
    def at_once_with(self) -> Span | None:
        """The action or block whose statements are one action of the chip, None of others."""
        return self.called or self.block

    @property
    def reads(self) -> tuple[Place, ...]:
        return self.value.places

    @property
    def carries(self) -> bool:
        return self.value.carries


def all_of(parts: Sequence[Value]) -> Value:
    """Return the value of an operator's operands together."""
    return Value(
        tuple(p for part in parts for p in part.places),
        max((part.steps for part in parts), default=0),
        tuple(use for part in parts for use in part.uses),
        sum(part.sources for part in parts),
        any(part.carries for part in parts),
        next((part.impossible for part in parts if part.impossible), None),
        any(part.constant for part in parts),
        any(part.called for part in parts),
        {place: age for part in parts for place, age in part.ages.items()},
    )


def is_given(value: Value) -> bool:
    """Return whether a value is what a hash or an access gives, as it is."""
    return value.steps == 0 and any(use.instance.kind != "random" for use in value.uses)


def accesses(value: Value) -> bool:
    """Return whether an extern other than a hash is used for a value."""
    return any(use.instance.kind != "hash" for use in value.uses)


def hashable(value: Value) -> bool:
    """Return whether a hash can compute a value: exclusive ors, masks and parts of fields."""
    return bool(value.places) and not (value.carries or value.uses or value.impossible)


def by_hash(value: Value, stmt: ir.Assign) -> Value:
    """Return the value that a hash of an @in_hash block gives."""
    bits = bit_width(stmt.target.type) or 1
    hash_ = ir.ExternInstance(
        "Hash", "in_hash", [stmt.target.type], [], span=stmt.span, kind="hash"
    )
    use = Use(hash_, "field", 0, tuple(dict.fromkeys(value.places)), True, bits, stmt.span)
    return Value(value.places, 0, (use,), 1)


Known = dict[object, Value]
"""The values of fields, by the field."""


@dataclass(slots=True)
class KnownValues:
    """The values that statements of an action, or outside actions, see in the place of a field.

    in_action: the statements are an action's. copies: what all statements behind see; hashes: what
    only those of the same action of the chip see, set to a hash, or by a called action to anything.
    """

    in_action: bool
    copies: Known = field(default_factory=dict)
    hashes: Known = field(default_factory=dict)

    def get(self, place: Place, in_call: bool) -> Value | None:
        """Return the value that a statement before has put into a field. in_call: it is read in an
        action that is called directly, which sees its own statements only."""
        outside = None if in_call else self.copies.get(place.field)
        return self.hashes.get(place.field) or outside

    def remember(self, places: Sequence[Place], value: Value, in_call: bool) -> None:
        """Note what a field was set to, if later statements see the value in its place."""
        if value.impossible or value.called:
            return
        if len(places) != 1 or places[0].bits != places[0].width:
            return
        name = places[0].field
        if self.in_action:
            if value.steps == 0 or not (value.uses or reads_any(value, places)):
                self.copies[name] = value
        elif in_call or any(u.instance.kind == "hash" for u in value.uses):
            if value.steps == 0:
                self.hashes[name] = value
        elif not value.uses and not reads_any(value, places):
            self.copies[name] = value

    def forget(self, places: Sequence[Place]) -> None:
        """Forget what was set from places that now change, and what these were set to."""
        forget(self.copies, places, computed_only=self.in_action)
        forget(self.hashes, places, computed_only=True)

    def restore(self, copies: Mapping[object, Value]) -> None:
        """Take back all but these copies."""
        self.hashes.clear()
        self.copies.clear()
        self.copies.update(copies)


def forget(known: Known, places: Sequence[Place], computed_only: bool = False) -> None:
    """Remove what is known of places that change, and values from them (computed ones only)."""
    for place in places:
        known.pop(place.field, None)
    for name, value in list(known.items()):
        if (value.steps or not computed_only) and reads_any(value, places):
            del known[name]


def in_all(known: Sequence[Known]) -> Known:
    """Return what is known in the same way at the ends of all branches."""
    if not known:
        return {}
    return {
        name: value
        for name, value in known[0].items()
        if all(other.get(name) is value for other in known[1:])
    }


def reads_any(value: Value, places: Sequence[Place]) -> bool:
    """Return whether a value is computed from bits of one of these places."""
    return any(p.overlaps(q) for p in value.places for q in places)
