"""Parser value sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.match_fields import KeyField, Match, key_fields


class ParserValueSet:
    """The members that a select's `value_set` case stands for; empty at the start.

    Where members may have masks in all fields, a value alone has the full one."""

    def __init__(self, value_set: ir.ValueSet) -> None:
        self.name = value_set.name
        self.size = value_set.size
        self._masked = value_set.masked
        self.fields = [
            replace(f, kind="ternary") if self._masked and f.kind == "exact" else f
            for f in key_fields(f"value set {value_set.name}", value_set.fields)
        ]
        self.members: list[tuple[Match, ...]] = []

    def replace(self, members: Sequence[Sequence[Match]]) -> None:
        """Set all members; raises TableError and changes nothing if one is not possible."""
        if len(members) > self.size:
            raise TableError(
                "RESOURCE_EXHAUSTED",
                f"value set {self.name}: {len(members)} members for its size of {self.size}",
            )
        self.members = [self._canonical(member) for member in members]

    def clear(self) -> None:
        """Remove all members."""
        self.members = []

    def contains(self, key: Sequence[int]) -> bool:
        """Return whether one of the members matches."""
        return any(self._matches(member, key) for member in self.members)

    def _canonical(self, member: Sequence[Match]) -> tuple[Match, ...]:
        if len(member) != len(self.fields):
            raise TableError(
                "INVALID_ARGUMENT",
                f"value set {self.name}: {len(member)} matches given for {len(self.fields)} fields",
            )
        pairs = zip(self.fields, member, strict=True)
        return tuple(field.canonical(self._whole(field, match)) for field, match in pairs)

    def _whole(self, field: KeyField, match: Match) -> Match:
        """Return a field's match, with the full mask if it is a value alone."""
        if self._masked and field.kind == "ternary" and match is not None and len(match) == 1:
            return (match[0], field.full)
        return match

    def _matches(self, member: tuple[Match, ...], key: Sequence[int]) -> bool:
        triples = zip(self.fields, member, key, strict=True)
        return all(f.matches(match, value) for f, match, value in triples)
