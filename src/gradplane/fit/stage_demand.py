"""The resources of a stage that one table takes, or all tables in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import ceil

from gradplane.fit.chip_resources import HASH_DIST_BITS, STAGE
from gradplane.fit.places import Place, byte_count

UNITS_OF_GROUP = 3
"""The hash distribution units that one hash group feeds."""


@dataclass(slots=True)
class Demand:
    """The amounts of each resource taken of a stage, the places on both crossbars, and hashes.

    hashes: the bits of each, by what it is of. Tables that need the same bytes or the same hash
    share them."""

    amounts: Counter[str] = field(default_factory=Counter)
    exact: set[Place] = field(default_factory=set)
    ternary: set[Place] = field(default_factory=set)
    hashes: dict[object, int] = field(default_factory=dict)

    def add(self, other: Demand) -> None:
        self.amounts.update(other.amounts)
        self.exact |= other.exact
        self.ternary |= other.ternary
        self.hashes.update(other.hashes)

    def with_(self, other: Demand) -> Demand:
        """Return the sum of two demands."""
        both = Demand(Counter(self.amounts), set(self.exact), set(self.ternary), dict(self.hashes))
        both.add(other)
        return both

    def totals(self) -> dict[str, int]:
        """Return the amount of each resource."""
        found = {name: self.amounts[name] for name in STAGE}
        found["exact_bytes"] += byte_count(self.exact)
        found["ternary_bytes"] += byte_count(self.ternary)
        found["hash_units"] += sum(ceil(bits / HASH_DIST_BITS) for bits in self.hashes.values())
        found["hash_bits"] += sum(self.hashes.values())
        found["hash_groups"] += ceil(found["hash_units"] / UNITS_OF_GROUP)
        return found

    def lacking(self) -> list[str]:
        """Return the resources of which it is more than a stage has."""
        return [name for name, n in self.totals().items() if n > STAGE[name].amount]
