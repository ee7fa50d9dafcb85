"""Parser value sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.match_fields import KeyField, Match, key_fields

Member = tuple[Match, ...]

PARSERS = 18
"""The parsers of a pipe and side of a chip."""
PORTS_A_PARSER = 4


def parser_of(local_port: int) -> int:
    """Return the parser of a port, by its number in its pipe."""
    return local_port // PORTS_A_PARSER


class ParserValueSet:
    """The members that a select's `value_set` case stands for; empty at the start.

    Where members may have masks in all fields, a value alone has the full one. `own`: more members
    of single parsers of a chip's pipe, by their numbers; both are replaced as they change.
    `by_parser`: the control plane gives each parser members of its own.
    """

    def __init__(self, value_set: ir.ValueSet) -> None:
        self.name = value_set.name
        self.size = value_set.size
        self._masked = value_set.masked
        self.fields = [
            replace(f, kind="ternary") if self._masked and f.kind == "exact" else f
            for f in key_fields(f"value set {value_set.name}", value_set.fields)
        ]
        self.members: list[Member] = []
        self.own: Mapping[int, list[Member]] = {}
        self.by_parser = False

    def of(self, parser: int | None) -> list[Member]:
        """Return the members of a single parser, or those that all have."""
        return self.members if parser is None else self.own.get(parser, [])

    def replace(self, members: Sequence[Sequence[Match]], parser: int | None = None) -> None:
        """Set all members, or those of a single parser; raises TableError and changes nothing if
        one is not possible."""
        if len(members) > self.size:
            raise TableError(
                "RESOURCE_EXHAUSTED",
                f"value set {self.name}: {len(members)} members for its size of {self.size}",
            )
        self.put([self._canonical(member) for member in members], parser)

    def put(self, members: list[Member], parser: int | None = None) -> None:
        """Set the members, unchecked."""
        if parser is None:
            self.members = members
        else:
            others = {n: own for n, own in self.own.items() if n != parser}
            self.own = {**others, parser: members} if members else others

    def contains(self, key: Sequence[int], parser: int = 0) -> bool:
        """Return whether one of the members matches in a parser."""
        members = [*self.members, *self.own[parser]] if parser in self.own else self.members
        return any(self._matches(member, key) for member in members)

    def _canonical(self, member: Sequence[Match]) -> Member:
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

    def _matches(self, member: Member, key: Sequence[int]) -> bool:
        triples = zip(self.fields, member, key, strict=True)
        return all(f.matches(match, value) for f, match, value in triples)
