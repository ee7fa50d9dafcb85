"""The fields that a pipeline carries in one direction, and from which stage to which.

-1 is the parser, the number of stages the deparser.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.placement import Placement
from gradplane.fit.places import VALID, Place, read_by, written_by
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Header
from gradplane.switch.ir.walk import nested, statements

PARSER = -1
_OUTPUTS = ("_for_tm_", "_for_deparser_", "_for_output_")
"""The parts of the names of structs that a control sets for the chip."""


@dataclass(slots=True)
class Carried:
    """A field: its bits, and from where to where it is alive.

    header: the one it is part of, "" for metadata. offset: its first bit in the header. computed:
    an ALU, a key or a condition has it; carries: it is added or subtracted; made: it is of a header
    that the control makes valid. states: the parser states that extract it.
    """

    name: str
    width: int
    header: str
    offset: int
    first: int
    last: int
    computed: bool = False
    carries: bool = False
    made: bool = False
    states: frozenset[str] = frozenset()


_Key = tuple[object, tuple[int, ...]]


class LiveFields:
    """Collects the fields of one direction of a pipeline. end: the number of stages."""

    def __init__(self, end: int) -> None:
        self.end = end
        self.fields: dict[_Key, Carried] = {}

    def parser(self, parser: ir.Parser) -> None:
        """Add what a parser extracts and sets."""
        for state in parser.states.values():
            for stmt in nested(state.body):
                fields = self._set(written_by(stmt), PARSER)
                if isinstance(stmt, ir.Extract):
                    for field in fields:
                        field.states |= {state.name}

    def control(self, tables: Sequence[LogicalTable], placement: Placement) -> None:
        """Add what placed tables read and write."""
        for table in tables:
            first = placement.first_stage_of(table)
            last = placement.stage_of(table)
            for place in table.key:
                self._get(place, last).computed = True
            for operation in table.operations:
                for place in operation.reads:
                    self._get(place, last).computed = True
                for place in operation.writes:
                    field = self._set([place], first)[0]
                    field.computed = True
                    field.carries |= operation.carries
                if operation.carries:
                    for place in operation.reads:
                        self._field(place).carries |= operation.writes != []

    def made_valid(self, control: ir.Control) -> None:
        """Mark the fields of headers that a control makes valid: a packet may have those beside any
        that its parser extracts."""
        headers = {
            (owner, path[:-1])
            for stmt in statements(control)
            if _makes_valid(stmt)
            for owner, path in (place.storage for place in written_by(stmt) if place.of_header)
        }
        for (owner, path), field in self.fields.items():
            field.made |= any((owner, path[:n]) in headers for n in range(len(path)))

    def deparser(self, control: ir.Control) -> None:
        """Add what a deparser emits and reads, and what it gives to the chip."""
        for stmt in statements(control):
            for place in read_by(stmt):
                self._read(place, self.end)

    def outputs(self) -> None:
        """Let what is set for the traffic manager and the deparser live to the end."""
        for (owner, _), field in self.fields.items():
            if isinstance(owner, str) and any(part in owner for part in _OUTPUTS):
                field.last = self.end

    # -- one field --------------------------------------------------------------------------

    def _field(self, place: Place) -> Carried:
        key = place.storage
        if key not in self.fields:
            header, offset = self._place_in_header(place)
            self.fields[key] = Carried(
                place.name, place.width, header, offset, self.end + 1, PARSER - 1
            )
        return self.fields[key]

    def _place_in_header(self, place: Place) -> tuple[str, int]:
        t = place.var.type
        name = place.var.name
        offset = 0
        inside = ""
        for step in place.path:
            if step == VALID:
                return "", 0
            fields = getattr(t, "fields", None)
            if fields is None:  # a stack
                t = getattr(t, "element", t)
                name = f"{name}[{step}]"
            else:
                if inside or isinstance(t, Header):
                    inside = inside or name
                    offset += sum(getattr(f.type, "width", 1) for f in fields[:step])
                t = fields[step].type
                name = f"{name}.{fields[step].name}"
        return inside, offset

    def _set(self, places: Iterable[Place], stage: int) -> list[Carried]:
        found = []
        for place in places:
            field = self._field(place)
            field.first = min(field.first, stage)
            field.last = max(field.last, stage)
            found.append(field)
        return found

    def _get(self, place: Place, stage: int) -> Carried:
        field = self._field(place)
        field.first = min(field.first, stage)
        field.last = max(field.last, stage)
        return field

    def _read(self, place: Place, stage: int) -> None:
        """Note that a field is read, if there is one: what nothing sets takes no container."""
        key = place.storage
        if key in self.fields:
            self.fields[key].last = max(self.fields[key].last, stage)


def _makes_valid(stmt: ir.Stmt) -> bool:
    """Return whether a statement may make a header valid: it says so, or sets the header to another
    one. Headers go to a called control and back in their struct; they only stay what they are."""
    if isinstance(stmt, ir.SetValid):
        return stmt.valid
    return isinstance(stmt, ir.Assign) and isinstance(stmt.target.type, Header)


def coexisting(parser: ir.Parser) -> dict[str, set[str]]:
    """Return, for each state of a parser, the states that a packet may pass as well."""
    after: dict[str, set[str]] = {
        name: {case.next for case in state.cases if case.next in parser.states}
        for name, state in parser.states.items()
    }
    reached: dict[str, set[str]] = {}
    for name in after:
        seen = {name}
        pending = [name]
        while pending:
            for follower in after[pending.pop()]:
                if follower not in seen:
                    seen.add(follower)
                    pending.append(follower)
        reached[name] = seen
    for name, seen in [(n, set(s)) for n, s in reached.items()]:
        for other in seen:
            reached[other].add(name)
    return reached
