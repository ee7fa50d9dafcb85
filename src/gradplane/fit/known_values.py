"""The values that fields were set to, which the chip's compiler puts into later statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradplane.fit.places import Place
from gradplane.fit.values import Value

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
