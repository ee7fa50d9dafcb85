"""The sections of the JSON that all architectures have: arrays, action profiles, deparsers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from gradplane.switch.backends.bmv2.actions import ExternCalls, PrimitiveWriter, source_info
from gradplane.switch.backends.bmv2.control_flow import Pipeline, table_size
from gradplane.switch.backends.bmv2.expressions import Expressions
from gradplane.switch.backends.bmv2.storage import (
    FieldAt,
    HeaderAt,
    Json,
    Place,
    StackAt,
    Storage,
    StructAt,
    UnionAt,
    scalar_width,
)
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Fields
from gradplane.switch.source import Span, refuse


class Resources(ExternCalls, Protocol):
    """A translator of extern calls, with what a table's direct meter and a selector need."""

    def meter_result(self, meter: ir.ExternInstance) -> FieldAt:
        """Return the field that has a direct meter's colour after its table's lookup."""

    def inputs(self, data: ir.Expr, span: Span, code: PrimitiveWriter | None) -> list[Json]:
        """Return the fields of a list."""


class Sections:
    """Makes the sections of a program; architectures derive theirs."""

    def __init__(self, program: ir.Program, storage: Storage, resources: Resources) -> None:
        self._program, self._storage, self._resources = program, storage, resources

    @property
    def errors(self) -> list[list[object]]:
        """The program's errors with their codes."""
        return [[name, code] for code, name in enumerate(self._program.errors)]

    # -- arrays ---------------------------------------------------------------------------------

    def _arrays(
        self, kinds: tuple[str, str], describe: Callable[[ir.ExternInstance], Json]
    ) -> list[Json]:
        instances = [e for e in self._program.externs if e.kind in kinds]
        return [
            {"name": e.name, "id": at} | describe(e) | source_info(e.span)
            for at, e in enumerate(instances)
        ]

    def counters(self) -> list[Json]:
        """Return the counters, direct ones included."""
        return self._arrays(("counter", "direct_counter"), self._counter)

    def _counter(self, e: ir.ExternInstance) -> Json:
        if e.kind == "counter":
            return {"size": e.number("size"), "is_direct": False}
        return {"is_direct": True} | self._owner(e)

    def meters(self) -> list[Json]:
        """Return the meters, direct ones included."""
        return self._arrays(("meter", "direct_meter"), self._meter)

    def _meter(self, e: ir.ExternInstance) -> Json:
        direct = e.kind == "direct_meter"
        found: Json = {"is_direct": direct, "rate_count": 2, "type": e.word("unit")}
        if not direct:
            return found | {"size": e.number("size")}
        result = self._resources.meter_result(e).reference
        return found | {"result_target": result} | self._owner(e)

    def _owner(self, e: ir.ExternInstance) -> Json:
        """Return the table of a direct counter or meter, which has a cell per entry."""
        for table in self._program.tables:
            if e in (table.counter, table.meter):
                return {"binding": table.name, "size": table_size(table)}
        return {"binding": None, "size": 0}

    def registers(self) -> list[Json]:
        """Return the registers."""
        return self._arrays(("register", "register"), self._register)

    def _register(self, e: ir.ExternInstance) -> Json:
        (cell,) = e.type_args[:1]
        if not isinstance(cell, Bits) and isinstance(cell, Fields):
            raise refuse(e.span, f"BMv2's registers hold numbers, no {cell}")
        if initial := e.number("initial", 0):
            raise refuse(e.span, f"BMv2's registers start with 0, not with {initial}")
        return {"size": e.number("size"), "bitwidth": scalar_width(cell)}

    # -- action profiles ------------------------------------------------------------------------

    def add_profiles(self, pipelines: Sequence[Pipeline], graphs: Sequence[Json]) -> None:
        """Add the action profiles to the JSON of the pipelines that use them."""
        number = 0
        for pipeline, graph in zip(pipelines, graphs, strict=True):
            graph["action_profiles"] = []
            for profile, tables in pipeline.profiles.items():
                graph["action_profiles"].append(self._profile(number, profile, tables))
                number += 1

    def _profile(self, at: int, profile: ir.ExternInstance, tables: list[ir.Table]) -> Json:
        found: Json = {"name": profile.name, "id": at}
        if profile.kind != "action_selector":
            return found | {"max_size": profile.number("size")}
        algorithm, size = hash_name(profile.word("algorithm")), profile.number("size")
        inputs: list[Json] = []
        for key in tables[0].keys:
            if key.match_kind == "selector":
                inputs += self._resources.inputs(key.expr, profile.span, None)
        return found | {"max_size": size, "selector": {"algo": algorithm, "input": inputs}}

    # -- the packet -----------------------------------------------------------------------------

    @property
    def value_sets(self) -> list[Json]:
        """The parsers' value sets."""
        return [self._value_set(*numbered) for numbered in enumerate(self._program.value_sets)]

    def _value_set(self, at: int, value_set: ir.ValueSet) -> Json:
        width = sum(scalar_width(f.expr.type) for f in value_set.fields)
        return {
            "name": value_set.name,
            "id": at,
            "compressed_bitwidth": width,
            "max_size": value_set.size,
        } | source_info(value_set.span)

    def deparser(self, name: str, control: ir.Control, number: int = 0) -> Json:
        """Return a deparser. Raises CompileError for one with conditions."""
        order, code = list[str](), PrimitiveWriter(self._storage, self._resources)
        expressions = Expressions(self._storage, span=control.span)
        for stmt in control.body:
            place = expressions.place(stmt.value) if isinstance(stmt, ir.Emit) else None
            if place is not None:
                order += headers(place)
            elif order or isinstance(stmt, ir.Emit):
                raise refuse(stmt.span, "BMv2's deparsers emit headers and do nothing else")
            else:
                code.statement(stmt)
        primitives = code.finished()
        if any(entry["op"].startswith("_jump") for entry in primitives):
            raise refuse(control.span, "BMv2's deparsers have no conditions")
        found: Json = {"name": name, "id": number, "order": order}
        return found | {"primitives": primitives} | source_info(control.span)


def hash_name(algorithm: object) -> str:
    """Return an algorithm's name in BMv2."""
    name = str(algorithm).lower()
    return {"target_default": "crc16", "ones_complement16": "csum16"}.get(name, name)


def headers(place: Place) -> list[str]:
    """Return the header instances of a place, in the order in which they are emitted."""
    if isinstance(place, HeaderAt):
        return [place.name]
    if isinstance(place, StackAt):
        return [name for i in range(place.type.size) for name in headers(place.element(i))]
    if isinstance(place, StructAt):
        return [name for member in place.members for name in headers(member)]
    if isinstance(place, UnionAt):
        return [name for i in range(len(place.type.fields)) for name in headers(place.member(i))]
    return []
