"""A PSA program as the JSON that psa_switch loads.

psa_switch has the metadata of psa.p4 as instances of these names. It keeps a packet's metadata from
ingress to egress, so that what the ingress deparser puts into `normal_meta` is there; it keeps none
of a clone, a resubmitted or a recirculated packet.

Calls of PSA's externs as psa_switch's primitives, and the extern instances they refer to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gradplane.switch.backends.bmv2.actions import PrimitiveWriter, source_info
from gradplane.switch.backends.bmv2.control_flow import Actions, Numbers, Pipeline
from gradplane.switch.backends.bmv2.expressions import number
from gradplane.switch.backends.bmv2.externs import V1Externs
from gradplane.switch.backends.bmv2.parsers import ParserStates
from gradplane.switch.backends.bmv2.sections import Sections, hash_name
from gradplane.switch.backends.bmv2.storage import Json, Place, Storage
from gradplane.switch.bmv2_names import ARRAYS
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits, Bool, Fields, Struct, Type
from gradplane.switch.ir.walk import statements
from gradplane.switch.source import refuse

Layout = dict[str, tuple[str, ...]]
"""The values that each block of a pipeline takes, in the order of its parameters. The metadata that
a deparser sets ("to ...") are other values than those that a parser gets."""

INGRESS: Layout = {
    "ip": ("hdr", "meta", "parser istd", "resubmit", "recirculate"),
    "ig": ("hdr", "meta", "istd", "ostd"),
    "id": ("to clone_i2e", "to resubmit", "to normal", "hdr", "meta", "ostd"),
}
EGRESS: Layout = {
    "ep": ("hdr", "meta", "parser istd", "normal", "clone_i2e", "clone_e2e"),
    "eg": ("hdr", "meta", "istd", "ostd"),
    "ed": ("to clone_e2e", "to recirculate", "hdr", "meta", "ostd", "deparser istd"),
}
_NORMAL = "normal_metadata"
_STANDARD = {
    ("ingress", "parser istd"): "psa_ingress_parser_input_metadata",
    ("ingress", "istd"): "psa_ingress_input_metadata",
    ("ingress", "ostd"): "psa_ingress_output_metadata",
    ("egress", "parser istd"): "psa_egress_parser_input_metadata",
    ("egress", "istd"): "psa_egress_input_metadata",
    ("egress", "ostd"): "psa_egress_output_metadata",
    ("egress", "deparser istd"): "psa_egress_deparser_input_metadata",
}
_USER = {"ingress": "userMetadata", "egress": "egressMetadata"}
_SHARED = ("normal", "to normal")


def to_json(program: ir.Program) -> Json:
    """Return BMv2's JSON for a PSA program that its architecture has checked.

    Raises CompileError for what psa_switch cannot do, with the place in the source.
    """
    return _PsaProgram(program).json()


def _pipelines(program: ir.Program) -> tuple[ir.Package, ir.Package]:
    """Return the ingress and the egress pipeline."""
    ingress, egress = (program.package.args[name] for name in ("ingress", "egress"))
    assert isinstance(ingress, ir.Package) and isinstance(egress, ir.Package)
    return ingress, egress


class _PsaProgram(Sections):
    def __init__(self, program: ir.Program) -> None:
        storage = Storage(program.package.span)
        self._externs = PsaExterns(storage)
        super().__init__(program, storage, self._externs)
        self._actions = Actions(storage, self._externs)
        self._ingress, self._egress = _pipelines(program)
        self._places: dict[tuple[str, str], tuple[Type, Place]] = {}
        for side, package, layout in self._sides:
            for name, values in layout.items():
                block = package.args[name]
                assert isinstance(block, ir.Parser | ir.Control), block
                for param, value in zip(block.params, values, strict=True):
                    storage.share([param.var], self._place(side, value, param, block))

    @property
    def _sides(self) -> tuple[tuple[str, ir.Package, Layout], ...]:
        return (("ingress", self._ingress, INGRESS), ("egress", self._egress, EGRESS))

    def _place(
        self, side: str, value: str, param: ir.Param, block: ir.Parser | ir.Control
    ) -> Place:
        """Return the place of a block's parameter, which blocks share by the value's name."""
        t = param.var.type
        key = ("both", "normal") if value in _SHARED else (side, value)
        if value == "hdr" and self._places.get(("ingress", "hdr"), (None,))[0] == t:
            key = ("ingress", "hdr")
        if key not in self._places:
            self._places[key] = t, self._declare(side, value, t, block)
        known, place = self._places[key]
        if known != t:
            raise refuse(block.span, f"psa_switch needs one type for {value}: {known} or {t}")
        return place

    def _declare(self, side: str, value: str, t: Type, block: ir.Parser | ir.Control) -> Place:
        if value == "hdr":
            return self._storage.declare("", t)
        if value == "meta":
            return self._storage.declare("", t, _USER[side])
        if (side, value) in _STANDARD:
            return self._storage.declare("", t, _STANDARD[side, value])
        if value not in _SHARED and _has_fields(t):
            kept = value.removeprefix("to ")
            what = f"psa_switch keeps no metadata of the kind {kept}; its type must be empty"
            raise refuse(block.span, what)
        return self._storage.declare("", t, _NORMAL)

    def json(self) -> Json:
        """Return the whole file."""
        program, numbers = self._program, Numbers()
        parsers = [
            self._parser("ingress_parser", 0, self._ingress.parser("ip")),
            self._parser("egress_parser", 1, self._egress.parser("ep")),
        ]
        sides = [
            Pipeline("ingress", self._ingress.control("ig"), self._actions, numbers),
            Pipeline("egress", self._egress.control("eg"), self._actions, numbers),
        ]
        graphs = [side.json(at) for at, side in enumerate(sides)]
        self.add_profiles(sides, graphs)
        deparsers = [
            self.deparser("ingress_deparser", _folded(self._ingress.control("id")), 0),
            self.deparser("egress_deparser", _folded(self._egress.control("ed")), 1),
        ]
        found: Json = {
            "__meta__": {"version": [2, 23], "compiler": "gradplane"},
            "errors": self.errors,
            "enums": [],
            "parsers": parsers,
            "parse_vsets": self.value_sets,
            "deparsers": deparsers,
            ARRAYS["meter"]: [m for m in self.meters() if m["is_direct"]],
            ARRAYS["counter"]: self.counters(),
            ARRAYS["register"]: self.registers(),
            "calculations": self._externs.calculations,
            "learn_lists": [],
            "actions": self._actions.json,
            "pipelines": graphs,
            "checksums": [],
            "force_arith": [],
            "extern_instances": self._externs.instances(program),
            "field_lists": [],
            "field_aliases": [],
            "program": str(parsers[0].get("source_info", {}).get("filename", "")),
        }
        return self._storage.sections() | found

    def _parser(self, name: str, number: int, parser: ir.Parser) -> Json:
        errors = self._program.errors
        parser = replace(parser, setup=[*_cleared(parser), *parser.setup])
        states = ParserStates(parser, self._storage, self._externs, errors).json()
        return states | {"name": name, "id": number}


def _folded(deparser: ir.Control) -> ir.Control:
    """Return a deparser without the conditions that psa_switch decides before it runs one.

    Before: normal = psa_normal(in o); if normal ...; after: the body of the if.
    """
    known: dict[ir.Expr, bool] = {}

    def folded(stmts: list[ir.Stmt]) -> list[ir.Stmt]:
        body: list[ir.Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, ir.CallExtern) and stmt.name in DECIDED and stmt.result:
                known[stmt.result] = DECIDED[stmt.name]
            elif isinstance(stmt, ir.If) and stmt.cond in known:
                body += folded(stmt.then if known[stmt.cond] else stmt.other)
            else:
                body.append(stmt)
        return body

    return replace(deparser, body=[*_cleared(deparser), *folded(deparser.body)])


def _cleared(block: ir.Parser | ir.Control) -> list[ir.Stmt]:
    """Return the calls that clear a block's checksums: psa_switch's outlive the packet."""
    calls = (s for s in statements(block) if isinstance(s, ir.CallExtern) and s.instance)
    used = dict.fromkeys(s.instance for s in calls if s.instance)
    return [
        ir.CallExtern(e, "clear", [], [], span=e.span) for e in used if e.type == "InternetChecksum"
    ]


def _has_fields(t: Type) -> bool:
    if isinstance(t, Struct):
        return any(_has_fields(f.type) for f in t.fields)
    return not isinstance(t, Fields) or bool(t.fields)


# -- externs ----------------------------------------------------------------------------------


_COUNTED = {"bytes": 0, "packets": 1, "packets_and_bytes": 2}  # PSA_CounterType_t
DECIDED = {"psa_normal": True, "psa_resubmit": False}
"""Conditions that ingress deparsers may use; psa_switch runs them for packets to egress only."""


class PsaExterns(V1Externs):
    """Translates calls; arrays, inputs of hashes and direct meters are as in v1model."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage, {})
        self._named: dict[str, Callable[[PrimitiveWriter, ir.CallExtern], None]] = {
            "Register.read": self._read,
            "Register.write": self._register_write,
            "Counter.count": self._count_cell,
            "DirectCounter.count": lambda code, s: None,  # the table counts
            "Meter.execute": self._execute,
            "DirectMeter.execute": self._direct,
            "Random.read": self._draw,
            "Hash.get_hash": self._get_hash,
            "InternetChecksum.clear": self._checksum("clear"),
            "InternetChecksum.add": self._checksum_of("add"),
            "InternetChecksum.subtract": self._checksum_of("subtract"),
            "InternetChecksum.get": self._checksum_value("get"),
            "InternetChecksum.get_state": self._checksum_value("get_state"),
            "InternetChecksum.set_state": self._checksum("set_state"),
            "assert": self._assert("assert"),
            "assume": self._assert("assume"),
        }

    def call(self, code: PrimitiveWriter, stmt: ir.CallExtern) -> None:
        """Append a call's primitives. Raises CompileError for what psa_switch does not have."""
        name = f"{stmt.instance.type}.{stmt.name}" if stmt.instance else stmt.name
        if name in DECIDED and stmt.result is not None:
            code.assign(stmt.result, ir.Const(BOOL, DECIDED[name]))
        elif name in self._named:
            self._named[name](code, stmt)
        else:
            raise refuse(stmt.span, f"psa_switch has no {name}")

    # -- arrays ---------------------------------------------------------------------------------

    def _read(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        array = _reference("register_array", s)
        index = code.code.parameter(s.args[0])
        self._given(code, s, lambda to: code.add("register_read", to, array, index))

    def _count_cell(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        code.add("_Counter_count", _reference("extern", s), code.code.parameter(s.args[0]))

    def _execute(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        if len(s.args) > 1:
            raise refuse(s.span, "psa_switch's meters do not take a colour")
        meter, index = _reference("extern", s), code.code.parameter(s.args[0])
        self._given(code, s, lambda to: code.add("_Meter_execute", meter, index, to))

    def _direct(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        assert s.instance is not None
        if s.args:
            raise refuse(s.span, "psa_switch's meters do not take a colour")
        colour = {"type": "field", "value": self.meter_result(s.instance).reference}
        self._given(code, s, lambda to: code.add("assign", to, colour))

    # -- numbers --------------------------------------------------------------------------------

    def _draw(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        assert s.instance is not None
        low, high = (a for a in s.instance.args[:2] if isinstance(a, int))
        if low < 0:
            raise refuse(s.span, f"BMv2's random numbers are not negative, as {low} is")
        self._given(
            code, s, lambda to: code.add("modify_field_rng_uniform", to, number(low), number(high))
        )

    def _get_hash(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        data = s.args[1] if len(s.args) > 1 else s.args[0]
        instance, fields = _reference("extern", s), self._fields(code, data, s)
        if len(s.args) == 1:
            self._given(code, s, lambda to: code.add("_Hash_get_hash", instance, to, fields))
            return
        base, most = code.code.parameter(s.args[0]), code.code.parameter(s.args[2])
        name = "_Hash_get_hash_mod"
        self._given(code, s, lambda to: code.add(name, instance, to, base, fields, most))

    def _fields(self, code: PrimitiveWriter, data: ir.Expr, s: ir.CallExtern) -> Json:
        """Return a list of fields, constants and headers put into fields first."""
        return {"type": "field_list", "value": [*self._listed(code, data, s)]}

    def _listed(self, code: PrimitiveWriter, data: ir.Expr, s: ir.CallExtern) -> list[Json]:
        if isinstance(data, ir.Make):
            return [entry for part in data.fields for entry in self._listed(code, part, s)]
        if isinstance(data, ir.Const) and isinstance(data.type, Bits | Bool):
            return [{"type": "field", "value": code.temporary(data, "constant").reference}]
        found = self.inputs(data, s.span, code)
        if any(entry["type"] != "field" for entry in found):
            raise refuse(s.span, "psa_switch takes fields in this list, no headers")
        return found

    # -- checksums ------------------------------------------------------------------------------

    def _checksum(self, name: str) -> Callable[[PrimitiveWriter, ir.CallExtern], None]:
        def call(code: PrimitiveWriter, s: ir.CallExtern) -> None:
            args = [code.code.parameter(a) for a in _arguments(s)]
            code.add(f"_InternetChecksum_{name}", _reference("extern", s), *args)

        return call

    def _checksum_of(self, name: str) -> Callable[[PrimitiveWriter, ir.CallExtern], None]:
        def call(code: PrimitiveWriter, s: ir.CallExtern) -> None:
            fields = self._fields(code, s.args[-1], s)
            code.add(f"_InternetChecksum_{name}", _reference("extern", s), fields)

        return call

    def _checksum_value(self, name: str) -> Callable[[PrimitiveWriter, ir.CallExtern], None]:
        def call(code: PrimitiveWriter, s: ir.CallExtern) -> None:
            instance = _reference("extern", s)
            full = f"_InternetChecksum_{name}"
            self._given(code, s, lambda to: code.add(full, instance, to))

        return call

    # -- results and instances ------------------------------------------------------------------

    def _given(
        self, code: PrimitiveWriter, s: ir.CallExtern, act: Callable[[Json], object]
    ) -> None:
        """Do something whose result the call returns."""
        if s.result is not None:
            self._result(code, s.result, act)

    def instances(self, program: ir.Program) -> list[Json]:
        """Return the extern instances, which psa_switch makes of their attributes."""
        found: list[Json] = []
        for e in program.externs:
            if e.type in _ATTRIBUTES:
                attributes = [
                    {"name": n, "type": kind, "value": value}
                    for n, kind, value in _ATTRIBUTES[e.type](e)
                ]
                entry: Json = {"name": e.name, "id": len(found), "type": e.type}
                found.append(entry | {"attribute_values": attributes} | source_info(e.span))
        return found


Attributes = list[tuple[str, str, str]]


def _counter(e: ir.ExternInstance) -> Attributes:
    assert isinstance(e.args[0], int)
    counted = _COUNTED[str(e.args[1]).lower()]
    return [("n_counters", "hexstr", hex(e.args[0])), ("type", "hexstr", hex(counted))]


def _meter(e: ir.ExternInstance) -> Attributes:
    assert isinstance(e.args[0], int)
    return [
        ("is_direct", "hexstr", "0x0"),
        ("n_meters", "hexstr", hex(e.args[0])),
        ("rate_count", "hexstr", "0x2"),
        ("type", "string", str(e.args[1]).lower()),
    ]


_ATTRIBUTES: dict[str, Callable[[ir.ExternInstance], Attributes]] = {
    "Counter": _counter,
    "Meter": _meter,
    "Hash": lambda e: [("algo", "string", hash_name(e.args[0]))],
    "InternetChecksum": lambda e: [],
}


def _reference(kind: str, s: ir.CallExtern) -> Json:
    assert s.instance is not None, s
    return {"type": kind, "value": s.instance.name}


def _arguments(s: ir.CallExtern) -> list[ir.Expr]:
    """Return the arguments of a checksum's call without its state, which psa_switch keeps."""
    return [a for a, d in zip(s.args, s.directions, strict=True) if d in ("", "in")]
