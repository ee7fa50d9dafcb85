"""A v1model program as the JSON that simple_switch loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gradplane.switch.arch.v1model.field_lists import COPYING, NO_LIST, FieldLists
from gradplane.switch.backends.bmv2.actions import PrimitiveWriter, source_info
from gradplane.switch.backends.bmv2.control_flow import Actions, Numbers, Pipeline, root_variable
from gradplane.switch.backends.bmv2.expressions import Expressions, both, op
from gradplane.switch.backends.bmv2.externs import LIST_OFFSET, V1Externs
from gradplane.switch.backends.bmv2.parsers import ParserStates
from gradplane.switch.backends.bmv2.sections import Sections
from gradplane.switch.backends.bmv2.storage import FieldAt, Json, Place, Storage, StructAt
from gradplane.switch.bmv2_names import ARRAYS
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields, Type
from gradplane.switch.ir.walk import statements, variables
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


class _V1Program(Sections):
    def __init__(self, program: ir.Program, digests: Mapping[Type, str]) -> None:
        package = program.package
        storage = Storage(package.span, (STANDARD, USER))
        self._externs = V1Externs(storage, digests)
        super().__init__(program, storage, self._externs)
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
        self.add_profiles((ingress, egress), pipelines)
        found: Json = {
            "__meta__": {"version": [2, 23], "compiler": "gradplane"},
            "errors": self.errors,
            "enums": [],
            "parsers": [parser],
            "parse_vsets": self.value_sets,
            "deparsers": [self.deparser("deparser", self._controls["dep"])],
            ARRAYS["meter"]: self.meters(),
            ARRAYS["counter"]: self.counters(),
            ARRAYS["register"]: self.registers(),
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

    # -- checksums ------------------------------------------------------------------------------

    def _checksums_of(self, block: str, verify: bool, code: PrimitiveWriter | None) -> None:
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
    before: PrimitiveWriter | None,
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
