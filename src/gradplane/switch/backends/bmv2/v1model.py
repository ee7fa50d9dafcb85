"""A v1model program as the JSON that simple_switch loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gradplane.switch.arch.v1model.field_lists import NO_LIST, FieldLists
from gradplane.switch.arch.v1model.packet import COPYING
from gradplane.switch.backends.bmv2.actions import Primitives, source_info
from gradplane.switch.backends.bmv2.control_flow import Actions, Numbers, Pipeline, root_variable
from gradplane.switch.backends.bmv2.expressions import Expressions, both, op
from gradplane.switch.backends.bmv2.externs import LIST_OFFSET, V1Externs
from gradplane.switch.backends.bmv2.parsers import ParserStates
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
from gradplane.switch.ir.aliasing import variables
from gradplane.switch.ir.statement_walk import statements
from gradplane.switch.ir.types import Bits, Fields, Type
from gradplane.switch.source import refuse

STANDARD = "standard_metadata"
USER = "userMetadata"
_BLOCKS = ("p", "vr", "ig", "eg", "ck", "dep")


def to_json(program: ir.Program, digests: Mapping[Type, str]) -> Json:
    """Return BMv2's JSON for a v1model program that its architecture has checked.

    digests: the names in P4Info of digests, by the type of their data. Raises CompileError for what
    BMv2 cannot do, with the place in the source.
    """
    return _V1Program(program, digests).json()


class _V1Program:
    def __init__(self, program: ir.Program, digests: Mapping[Type, str]) -> None:
        self._program, package = program, program.package
        self._storage = Storage()
        self._externs = V1Externs(self._storage, digests)
        self._actions = Actions(self._storage, self._externs)
        self._parser = package.parser("p")
        controls = [package.control(name) for name in _BLOCKS[1:]]
        self._controls = dict(zip(_BLOCKS[1:], controls, strict=True))
        self._lay_out([self._parser, *controls])
        self._checksums: list[Json] = []

    def _lay_out(self, blocks: Sequence[ir.Parser | ir.Control]) -> None:
        """Give the blocks' parameters the places that they share."""
        storage, params = self._storage, self._parser.params
        self._headers = storage.declare("", params[0].var.type)
        self._metadata = storage.declare("", params[1].var.type, USER)
        self._standard = storage.declare("", params[2].var.type, STANDARD)
        for block in blocks:
            for param, place in zip(
                block.params, (self._headers, self._metadata, self._standard), strict=False
            ):
                storage.share([param.var], place)

    def json(self) -> Json:
        """Return the whole file."""
        program = self._program
        states = ParserStates(self._parser, self._storage, self._externs, program.errors)
        parser = states.json()
        numbers = Numbers()
        ingress = Pipeline("ingress", self._controls["ig"], self._actions, numbers)
        egress = Pipeline("egress", self._controls["eg"], self._actions, numbers)
        computed = self._actions.code()
        self._checksums_of("vr", verify=True, code=None)
        self._checksums_of("ck", verify=False, code=computed)
        pipelines = [ingress.json(0), egress.json(1, computed if computed else None)]
        for pipeline, graph in zip((ingress, egress), pipelines, strict=True):
            graph["action_profiles"] = [
                self._profile(at, profile, tables)
                for at, (profile, tables) in enumerate(pipeline.profiles.items())
            ]
        self._number_profiles(pipelines)
        found: Json = {
            "__meta__": {"version": [2, 23], "compiler": "gradplane"},
            "errors": [[name, code] for code, name in enumerate(program.errors)],
            "enums": [],
            "parsers": [parser],
            "parse_vsets": [
                self._value_set(*numbered) for numbered in enumerate(program.value_sets)
            ],
            "deparsers": [self._deparser()],
            "meter_arrays": self._arrays("meter", "direct_meter", self._meter),
            "counter_arrays": self._arrays("counter", "direct_counter", self._counter),
            "register_arrays": self._arrays("register", "register", self._register),
            "calculations": self._externs.calculations,
            "learn_lists": self._externs.learn_lists,
            "actions": self._actions.json,
            "pipelines": pipelines,
            "checksums": self._checksums,
            "force_arith": [],
            "extern_instances": [],
            "field_lists": self._field_lists(),
            "field_aliases": self._aliases(),
            "program": str(self._parser.span.file),
        }
        return self._storage.sections() | found

    # -- externs --------------------------------------------------------------------------------

    def _arrays(self, *kinds: object) -> list[Json]:
        *names, describe = kinds
        instances = [e for e in self._program.externs if e.kind in names]
        return [
            {"name": e.name, "id": at} | describe(e) | source_info(e.span)  # type: ignore[operator]
            for at, e in enumerate(instances)
        ]

    def _counter(self, e: ir.ExternInstance) -> Json:
        if e.kind == "counter":
            return {"size": e.number("size"), "is_direct": False}
        return {"is_direct": True} | self._owner(e)

    def _meter(self, e: ir.ExternInstance) -> Json:
        direct = e.kind == "direct_meter"
        found: Json = {"is_direct": direct, "rate_count": 2, "type": e.word("unit")}
        if not direct:
            return found | {"size": e.number("size")}
        result = self._externs.meter_result(e).reference
        return found | {"result_target": result} | self._owner(e)

    def _owner(self, e: ir.ExternInstance) -> Json:
        """Return the table of a direct counter or meter, which has a cell per entry."""
        for table in self._program.tables:
            if e in (table.counter, table.meter):
                return {"binding": table.name, "size": table.size}
        return {"binding": None, "size": 0}

    def _register(self, e: ir.ExternInstance) -> Json:
        (cell,) = e.type_args[:1]
        if not isinstance(cell, Bits) and isinstance(cell, Fields):
            raise refuse(e.span, f"BMv2's registers hold numbers, no {cell}")
        return {"size": e.number("size"), "bitwidth": scalar_width(cell)}

    def _profile(self, at: int, profile: ir.ExternInstance, tables: list[ir.Table]) -> Json:
        found: Json = {"name": profile.name, "id": at}
        if profile.kind != "action_selector":
            return found | {"max_size": profile.number("size")}
        algorithm, size = profile.word("algorithm"), profile.number("size")
        inputs: list[Json] = []
        for key in tables[0].keys:
            if key.match_kind == "selector":
                inputs += self._externs.inputs(key.expr, profile.span, None)
        return found | {"max_size": size, "selector": {"algo": algorithm, "input": inputs}}

    def _number_profiles(self, pipelines: list[Json]) -> None:
        every = [profile for pipeline in pipelines for profile in pipeline["action_profiles"]]
        for at, profile in enumerate(every):
            profile["id"] = at

    def _value_set(self, at: int, value_set: ir.ValueSet) -> Json:
        width = sum(scalar_width(f.expr.type) for f in value_set.fields)
        return {
            "name": value_set.name,
            "id": at,
            "compressed_bitwidth": width,
            "max_size": value_set.size,
        } | source_info(value_set.span)

    # -- checksums ------------------------------------------------------------------------------

    def _checksums_of(self, block: str, verify: bool, code: Primitives | None) -> None:
        control = self._controls[block]
        code_of = Expressions(self._storage, span=control.span)
        for stmt, conditions in _calls(control, control.body, code_of, code):
            data, target = stmt.args[1], code_of.place(stmt.args[2])
            if not isinstance(target, FieldAt):
                raise refuse(stmt.span, "BMv2 needs a field as the checksum")
            inputs = self._externs.inputs(data, stmt.span, code)
            if stmt.name.endswith("with_payload"):
                inputs.append({"type": "payload"})
            algorithm = stmt.args[3]
            assert isinstance(algorithm, ir.Const), stmt
            cond = code_of.value(stmt.args[0])
            for outer in reversed(conditions):
                cond = both(outer, cond)
            at = len(self._checksums)
            self._checksums.append(
                {
                    "name": f"cksum_{at}",
                    "id": at,
                    "target": target.reference,
                    "type": "generic",
                    "calculation": self._externs.calculation(str(algorithm.value), inputs),
                    "verify": verify,
                    "update": not verify,
                    "if_cond": cond,
                }
                | source_info(stmt.span)
            )

    # -- the packet -----------------------------------------------------------------------------

    def _deparser(self) -> Json:
        control, order = self._controls["dep"], list[str]()
        expressions = Expressions(self._storage, span=control.span)
        for stmt in control.body:
            place = expressions.place(stmt.value) if isinstance(stmt, ir.Emit) else None
            if place is None:
                raise refuse(stmt.span, "BMv2's deparsers emit headers and do nothing else")
            order += _headers(place)
        return {"name": "deparser", "id": 0, "order": order} | source_info(control.span)

    def _field_lists(self) -> list[Json]:
        controls = [self._program.package.control(name) for name in COPYING]
        lists = FieldLists(self._parser.params[1].var.type, controls)
        found = {NO_LIST + LIST_OFFSET: list[Json]()}
        for listed, places in lists.paths.items():
            elements: list[Json] = []
            for steps, _ in places:
                place: Place = (self._metadata, self._standard)[steps[0]]
                for index in steps[1:]:
                    assert isinstance(place, StructAt), place
                    place = place.member(index)
                elements += _elements(place)
            found[listed + LIST_OFFSET] = elements
        for used in _used_lists(self._program):  # an empty list, if no field is in it
            found.setdefault(used + LIST_OFFSET, [])
        return [
            {"id": at, "name": f"fl_{at}", "elements": elements} for at, elements in found.items()
        ]

    def _aliases(self) -> list[Json | list[object]]:
        t = self._parser.params[2].var.type
        assert isinstance(t, Fields), t
        return [
            [str(annotation.values[0]), [STANDARD, member.name]]
            for member in t.fields
            for annotation in member.annotations
            if annotation.name == "alias" and annotation.values
        ]


def _calls(
    control: ir.Control,
    stmts: Sequence[ir.Stmt],
    code: Expressions,
    before: Primitives | None,
    outer: Sequence[Json] = (),
    late: set[ir.Var] | None = None,
) -> Iterator[tuple[ir.CallExtern, list[Json]]]:
    """Return the checksum calls of a block, each with the conditions around it.

    Assignments ahead of the first call are done in `before`. Later ones can only be to local
    variables, and are passed over: lists have been traced to the fields that they are made of. A
    call that still reads such a variable, one of `late`, is refused.
    """
    called, late = False, set[ir.Var]() if late is None else late
    for stmt in stmts:
        if isinstance(stmt, ir.If):
            cond = code.value(stmt.cond)
            yield from _calls(control, stmt.then, code, None, [*outer, cond], late)
            other = op("not", None, cond)
            yield from _calls(control, stmt.other, code, None, [*outer, other], late)
        elif isinstance(stmt, ir.CallExtern) and "_checksum" in stmt.name:
            if late & (variables(stmt.args[0]) | variables(stmt.args[1])):
                text = "BMv2 has no assignment between checksums, and this one needs its result"
                raise refuse(stmt.span, text)
            yield stmt, list(outer)
            called = True
        elif isinstance(stmt, ir.Assign) and before is not None and not called:
            before.statement(stmt)
        elif isinstance(stmt, ir.Assign) and root_variable(stmt.target) in control.locals:
            late |= variables(stmt.target)
        else:
            raise refuse(stmt.span, "BMv2's checksum blocks verify or update, and do nothing else")


def _headers(place: Place) -> list[str]:
    """Return the header instances of a place, in the order in which they are emitted."""
    if isinstance(place, HeaderAt):
        return [place.name]
    if isinstance(place, StackAt):
        return [name for i in range(place.type.size) for name in _headers(place.element(i))]
    if isinstance(place, UnionAt | StructAt):
        return [name for i in range(len(place.type.fields)) for name in _headers(place.member(i))]
    return []


def _elements(place: Place) -> list[Json]:
    if isinstance(place, FieldAt):
        return [{"type": "field", "value": place.reference}]
    if isinstance(place, StructAt):
        return [entry for member in place.members for entry in _elements(member)]
    return []


def _used_lists(program: ir.Program) -> Iterator[int]:
    for name in COPYING:
        for stmt in statements(program.package.control(name)):
            if isinstance(stmt, ir.CallExtern) and stmt.name.endswith("_preserving_field_list"):
                at = 2 if stmt.name.startswith("clone") else 0
                listed = stmt.args[at]
                if isinstance(listed, ir.Const):
                    yield int(listed.value)
