"""The dependencies between logical tables: how many stages the later one must be behind.

The kinds are those of the RMT paper, section 4: match and action dependencies need a later stage;
a successor, and a table that overwrites what another reads, may be in the same stage. A table at
the end of a control is behind the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.places import Place

MATCH, ACTION, ANTI, SUCCESSOR, END = "match", "action", "anti", "successor", "end"
LATER = (MATCH, ACTION, END)


@dataclass(frozen=True, slots=True)
class Dependency:
    """`after` depends on `before`. place: the field that it is about; None for a successor
    and at the end."""

    kind: str
    before: LogicalTable
    after: LogicalTable
    place: Place | None

    @property
    def distance(self) -> int:
        """The stages that must be between both."""
        return 1 if self.kind in LATER else 0


def dependencies(tables: Sequence[LogicalTable]) -> list[Dependency]:
    """Return the strongest dependency of each pair of tables of one control."""
    written = [_by_field(t.writes) for t in tables]
    matched = [_by_field(t.key) for t in tables]
    read = [_by_field(t.reads) for t in tables]
    found: list[Dependency] = []
    for j, after in enumerate(tables):
        for i, before in enumerate(tables[:j]):
            if before.excludes(after):
                continue
            place = _common(written[i], matched[j])
            if place is not None:
                found.append(Dependency(MATCH, before, after, place))
                continue
            place = _common(written[i], read[j]) or _common(written[i], written[j])
            if place is not None:
                found.append(Dependency(ACTION, before, after, place))
                continue
            if after.at_end and not (before.arms or before.at_end):
                found.append(Dependency(END, before, after, None))
                continue
            if after.at_end or before in after.deciders:
                found.append(Dependency(SUCCESSOR, before, after, None))
                continue
            place = _common(matched[i], written[j]) or _common(read[i], written[j])
            if place is not None:
                found.append(Dependency(ANTI, before, after, place))
    return found


_Fields = dict[object, list[Place]]


def _by_field(places: Iterable[Place]) -> _Fields:
    found: _Fields = {}
    for place in places:
        found.setdefault(place.field, []).append(place)
    return found


def _common(first: _Fields, second: _Fields) -> Place | None:
    """Return a place that both have a bit of."""
    if len(second) < len(first):
        first, second = second, first
    for name, places in first.items():
        for other in second.get(name, ()):
            for place in places:
                if place.overlaps(other):
                    return place
    return None


def longest_chain(tables: Sequence[LogicalTable], edges: Sequence[Dependency]) -> list[Dependency]:
    """Return the dependencies along the chain that needs the most stages, without those that close
    a circle, which a table that is applied twice may be in."""
    into: dict[LogicalTable, list[Dependency]] = {}
    for edge in edges:
        into.setdefault(edge.after, []).append(edge)
    depth: dict[LogicalTable, int] = {}
    by: dict[LogicalTable, Dependency] = {}
    for table in tables:  # in the program's order, which is one of the dependencies, too
        depth[table] = 0
        for edge in into.get(table, ()):
            if edge.before not in depth:
                continue
            far = depth[edge.before] + edge.distance
            if far > depth[table] or (far == depth[table] and edge.distance and table not in by):
                depth[table], by[table] = far, edge
    if not tables:
        return []
    last = max(tables, key=lambda t: depth[t])
    chain: list[Dependency] = []
    while last in by:
        chain.append(by[last])
        last = by[last].before
    return [edge for edge in reversed(chain) if edge.distance]


def tables_of(chain: Sequence[Dependency]) -> list[LogicalTable]:
    """Return the tables that a chain of dependencies joins."""
    return [*(edge.before for edge in chain[:1]), *(edge.after for edge in chain)]
