"""Calls of PSA's externs as psa_switch's primitives, and the extern instances they refer to."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.backends.bmv2.actions import Primitives, source_info
from gradplane.switch.backends.bmv2.expressions import number
from gradplane.switch.backends.bmv2.externs import V1Externs
from gradplane.switch.backends.bmv2.sections import hash_name
from gradplane.switch.backends.bmv2.storage import Json, Storage
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits, Bool
from gradplane.switch.source import refuse

_COUNTED = {"bytes": 0, "packets": 1, "packets_and_bytes": 2}  # PSA_CounterType_t
DECIDED = {"psa_normal": True, "psa_resubmit": False}
"""Conditions that ingress deparsers may use; psa_switch runs them for packets to egress only."""


class PsaExterns(V1Externs):
    """Translates calls; arrays, inputs of hashes and direct meters are as in v1model."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage, {})
        self._named: dict[str, Callable[[Primitives, ir.CallExtern], None]] = {
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

    def call(self, code: Primitives, stmt: ir.CallExtern) -> None:
        """Append a call's primitives. Raises CompileError for what psa_switch does not have."""
        name = f"{stmt.instance.type}.{stmt.name}" if stmt.instance else stmt.name
        if name in DECIDED and stmt.result is not None:
            code.assign(stmt.result, ir.Const(BOOL, DECIDED[name]))
        elif name in self._named:
            self._named[name](code, stmt)
        else:
            raise refuse(stmt.span, f"psa_switch has no {name}")

    # -- arrays ---------------------------------------------------------------------------------

    def _read(self, code: Primitives, s: ir.CallExtern) -> None:
        array = _reference("register_array", s)
        index = code.code.parameter(s.args[0])
        self._given(code, s, lambda to: code.add("register_read", to, array, index))

    def _count_cell(self, code: Primitives, s: ir.CallExtern) -> None:
        code.add("_Counter_count", _reference("extern", s), code.code.parameter(s.args[0]))

    def _execute(self, code: Primitives, s: ir.CallExtern) -> None:
        if len(s.args) > 1:
            raise refuse(s.span, "psa_switch's meters do not take a colour")
        meter, index = _reference("extern", s), code.code.parameter(s.args[0])
        self._given(code, s, lambda to: code.add("_Meter_execute", meter, index, to))

    def _direct(self, code: Primitives, s: ir.CallExtern) -> None:
        assert s.instance is not None
        if s.args:
            raise refuse(s.span, "psa_switch's meters do not take a colour")
        colour = {"type": "field", "value": self.meter_result(s.instance).reference}
        self._given(code, s, lambda to: code.add("assign", to, colour))

    # -- numbers --------------------------------------------------------------------------------

    def _draw(self, code: Primitives, s: ir.CallExtern) -> None:
        assert s.instance is not None
        low, high = (a for a in s.instance.args[:2] if isinstance(a, int))
        if low < 0:
            raise refuse(s.span, f"BMv2's random numbers are not negative, as {low} is")
        self._given(
            code, s, lambda to: code.add("modify_field_rng_uniform", to, number(low), number(high))
        )

    def _get_hash(self, code: Primitives, s: ir.CallExtern) -> None:
        data = s.args[1] if len(s.args) > 1 else s.args[0]
        instance, fields = _reference("extern", s), self._fields(code, data, s)
        if len(s.args) == 1:
            self._given(code, s, lambda to: code.add("_Hash_get_hash", instance, to, fields))
            return
        base, most = code.code.parameter(s.args[0]), code.code.parameter(s.args[2])
        name = "_Hash_get_hash_mod"
        self._given(code, s, lambda to: code.add(name, instance, to, base, fields, most))

    def _fields(self, code: Primitives, data: ir.Expr, s: ir.CallExtern) -> Json:
        """Return a list of fields, constants and headers put into fields first."""
        return {"type": "field_list", "value": [*self._listed(code, data, s)]}

    def _listed(self, code: Primitives, data: ir.Expr, s: ir.CallExtern) -> list[Json]:
        if isinstance(data, ir.Make):
            return [entry for part in data.fields for entry in self._listed(code, part, s)]
        if isinstance(data, ir.Const) and isinstance(data.type, Bits | Bool):
            return [{"type": "field", "value": code.temporary(data, "constant").reference}]
        found = self.inputs(data, s.span, code)
        if any(entry["type"] != "field" for entry in found):
            raise refuse(s.span, "psa_switch takes fields in this list, no headers")
        return found

    # -- checksums ------------------------------------------------------------------------------

    def _checksum(self, name: str) -> Callable[[Primitives, ir.CallExtern], None]:
        def call(code: Primitives, s: ir.CallExtern) -> None:
            args = [code.code.parameter(a) for a in _arguments(s)]
            code.add(f"_InternetChecksum_{name}", _reference("extern", s), *args)

        return call

    def _checksum_of(self, name: str) -> Callable[[Primitives, ir.CallExtern], None]:
        def call(code: Primitives, s: ir.CallExtern) -> None:
            fields = self._fields(code, s.args[-1], s)
            code.add(f"_InternetChecksum_{name}", _reference("extern", s), fields)

        return call

    def _checksum_value(self, name: str) -> Callable[[Primitives, ir.CallExtern], None]:
        def call(code: Primitives, s: ir.CallExtern) -> None:
            instance = _reference("extern", s)
            full = f"_InternetChecksum_{name}"
            self._given(code, s, lambda to: code.add(full, instance, to))

        return call

    # -- results and instances ------------------------------------------------------------------

    def _given(self, code: Primitives, s: ir.CallExtern, act: Callable[[Json], object]) -> None:
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
