"""Calls of v1model's externs as simple_switch's primitives, and the objects they refer to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gradplane.switch.arch.v1model.field_lists import NO_LIST
from gradplane.switch.backends.bmv2.actions import PrimitiveWriter, source_info
from gradplane.switch.backends.bmv2.expressions import number
from gradplane.switch.backends.bmv2.storage import (
    FieldAt,
    HeaderAt,
    Json,
    StackAt,
    Storage,
    StructAt,
    UnionAt,
    scalar_width,
)
from gradplane.switch.bmv2_names import CLONES, MARKED
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Array, Bits, Bool, Fields, Stack, Type, Union
from gradplane.switch.source import Span, refuse

_STANDARD = "standard_metadata"
LIST_OFFSET = 1  # simple_switch takes field list 0 of a resubmission for "no resubmission"


class V1Externs:
    """Translates calls, and collects calculations, learn lists and the meters' result fields."""

    def __init__(self, storage: Storage, digests: Mapping[Type, str]) -> None:
        self.storage = storage
        self.calculations: list[Json] = []
        self.learn_lists: list[Json] = []
        self.meter_results: dict[ir.ExternInstance, FieldAt] = {}
        self._digests = digests
        self._calls: dict[str, Callable[[PrimitiveWriter, ir.CallExtern], None]] = {
            "register.read": self._register_read,
            "register.write": self._register_write,
            "counter.count": self._count,
            "direct_counter.count": lambda code, s: None,  # the table counts
            "meter.execute_meter": self._execute_meter,
            "direct_meter.read": self._direct_meter,
            "random": self._random,
            "hash": self._hash,
            "mark_to_drop": self._mark_to_drop,
            "clone": self._clone,
            "clone_preserving_field_list": self._clone,
            "resubmit_preserving_field_list": self._again("resubmit"),
            "recirculate_preserving_field_list": self._again("recirculate"),
            "truncate": self._truncate,
            "digest": self._digest,
            "assert": self._assert("assert"),
            "assume": self._assert("assume"),
            "log_msg": self._log,
        }

    def call(self, code: PrimitiveWriter, stmt: ir.CallExtern) -> None:
        """Append a call's primitives. Raises CompileError for what simple_switch does not have."""
        name = f"{stmt.instance.type}.{stmt.name}" if stmt.instance else stmt.name
        if name not in self._calls:
            raise refuse(stmt.span, f"BMv2 has no {name} here")
        self._calls[name](code, stmt)

    # -- arrays ---------------------------------------------------------------------------------

    def _register_read(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        array = _reference("register_array", s)
        self._result(
            code, s.args[0], lambda to: code.add("register_read", to, array, _in(code, s.args[1]))
        )

    def _register_write(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        index, value = (_in(code, arg) for arg in s.args)
        code.add("register_write", _reference("register_array", s), index, value)

    def _count(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        if len(s.args) > 1:
            raise refuse(s.span, "BMv2 counts the packet's own length: leave the other out")
        code.add("count", _reference("counter_array", s), _in(code, s.args[0]))

    def _execute_meter(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        meter = _reference("meter_array", s)
        self._result(
            code, s.args[1], lambda to: code.add("execute_meter", meter, _in(code, s.args[0]), to)
        )

    def meter_result(self, meter: ir.ExternInstance) -> FieldAt:
        """Return the field that has a direct meter's colour after its table's lookup."""
        if meter not in self.meter_results:
            self.meter_results[meter] = self.storage.temporary(Bits(32), f"{meter.name}.colour")
        return self.meter_results[meter]

    def _direct_meter(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        assert s.instance is not None
        colour = {"type": "field", "value": self.meter_result(s.instance).reference}
        self._result(code, s.args[0], lambda to: code.add("assign", to, colour))

    # -- numbers --------------------------------------------------------------------------------

    def _random(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        low, high = _in(code, s.args[1]), _in(code, s.args[2])
        self._result(
            code, s.args[0], lambda to: code.add("modify_field_rng_uniform", to, low, high)
        )

    def _hash(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        calculation = self.calculation(_text(s.args[1]), self.inputs(s.args[3], s.span, code))
        base, size = _in(code, s.args[2]), _in(code, s.args[4])
        name = {"type": "calculation", "value": calculation}
        operation = "modify_field_with_hash_based_offset"
        self._result(code, s.args[0], lambda to: code.add(operation, to, base, name, size))

    def calculation(self, algorithm: str, inputs: list[Json]) -> str:
        """Return the name of a new calculation."""
        name = f"calc_{len(self.calculations)}" if self.calculations else "calc"
        entry = {"name": name, "id": len(self.calculations), "algo": algorithm, "input": inputs}
        self.calculations.append(entry)
        return name

    def inputs(self, data: ir.Expr, span: Span, code: PrimitiveWriter | None) -> list[Json]:
        """Return the fields of a list, through temporaries where `code` can compute them."""
        if isinstance(data, ir.Make):
            return [entry for part in data.fields for entry in self.inputs(part, span, code)]
        if isinstance(data, ir.Const) and isinstance(data.type, Bits | Bool):
            width = scalar_width(data.type)
            value = int(data.value) & ((1 << width) - 1)
            text = f"0x{value:0{2 * ((width + 7) // 8)}x}"
            return [{"type": "hexstr", "value": text, "bitwidth": width}]
        place = (code or PrimitiveWriter(self.storage, self)).code.place(data)
        if place is not None:
            return list(_inputs(place))
        if code is not None and isinstance(data.type, Bits | Bool):
            return [{"type": "field", "value": code.temporary(data, "hash_input").reference}]
        raise refuse(span, "BMv2 takes fields and constants in this list, no computed values")

    # -- the packet's path ----------------------------------------------------------------------

    def _mark_to_drop(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        """Mark the standard metadata; a copy of it by way of it, whose fields are kept."""
        place, t = code.code.place(s.args[0]), s.args[0].type
        if not isinstance(place, StructAt) or not isinstance(t, Fields):
            raise refuse(s.span, "BMv2 cannot refer to this value")
        pairs = [
            (FieldAt(_STANDARD, f.name, m.type), m)
            for f, m in zip(t.fields, place.members, strict=True)
            if f.name in MARKED and isinstance(m, FieldAt)
        ]
        copied = [(real, m) for real, m in pairs if real.reference != m.reference]
        kept = [(real, self.storage.temporary(m.type, "kept")) for real, m in copied]
        for real, to in kept:
            code.set_field(to, _field(real))
        code.add("mark_to_drop", {"type": "header", "value": _STANDARD})
        for real, to in copied:
            code.set_field(to, _field(real))
        for real, value in kept:
            code.set_field(real, _field(value))

    def _clone(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        field_list = s.args[2] if len(s.args) > 2 else None
        code.add(CLONES[_text(s.args[0])], _in(code, s.args[1]), _field_list(s, field_list))

    def _again(self, name: str) -> Callable[[PrimitiveWriter, ir.CallExtern], None]:
        def call(code: PrimitiveWriter, s: ir.CallExtern) -> None:
            code.add(name, _field_list(s, s.args[0]))

        return call

    def _truncate(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        code.add("truncate", _in(code, s.args[0]))

    # -- messages -------------------------------------------------------------------------------

    def _digest(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        """Copy the values first, as simple_switch reads the fields at the end of the pipeline."""
        elements: list[Json] = []
        self._copy(code, s.args[1], elements)
        at = len(self.learn_lists) + 1
        (data_type,) = s.type_args
        self.learn_lists.append(
            {"id": at, "name": self._digests[data_type], "elements": elements} | source_info(s.span)
        )
        code.add("generate_digest", _in(code, s.args[0]), number(at))

    def _copy(self, code: PrimitiveWriter, data: ir.Expr, elements: list[Json]) -> None:
        t = data.type
        if isinstance(data, ir.Make):
            for part in data.fields:
                self._copy(code, part, elements)
        elif isinstance(t, Fields | Array) and not isinstance(t, Union | Stack):
            for part in expression_builder.parts(data):
                self._copy(code, part, elements)
        elif isinstance(t, Bits | Bool):
            copy = self.storage.temporary(t, "digest")
            code.set_field(copy, code.code.parameter(data))
            elements.append({"type": "field", "value": copy.reference})
        else:
            raise refuse(self._span(data), f"BMv2 cannot send a {t} in a digest")

    def _span(self, data: ir.Expr) -> Span:
        return Span("<program>", 0, 0, 0)

    def _assert(self, name: str) -> Callable[[PrimitiveWriter, ir.CallExtern], None]:
        def call(code: PrimitiveWriter, s: ir.CallExtern) -> None:
            code.add(name, code.code.condition(s.args[0]))

        return call

    def _log(self, code: PrimitiveWriter, s: ir.CallExtern) -> None:
        """A struct or header among the values is logged as p4c has it: (name:value,...).

        BMv2 ends at a {} without a value and at a value without a {}, and does not see one at the
        beginning of the text.
        """
        head, *rest = map(_escaped, _text(s.args[0]).split("{}"))
        filled, values = list[str](), list[Json]()
        if len(s.args) > 1:
            data = s.args[1]
            parts = [e for _, e in self._parts(code, data)] if _is_whole(data) else [data]
            filled = [self._logged(code, part, values) for part in parts]
        left = filled[len(rest) :]
        filled += [_escaped("{}")] * (len(rest) - len(filled))
        text = head + "".join(value + then for value, then in zip(filled, rest, strict=False))
        text = " ".join([text, *left])
        form = {"type": "string", "value": f" {text}" if text.startswith("{") else text}
        code.add("log_msg", form, {"type": "parameters_vector", "value": values})

    def _logged(self, code: PrimitiveWriter, e: ir.Expr, values: list[Json]) -> str:
        """Append the numbers of a value, and return its text: a {} for each of them."""
        if _is_whole(e):
            inner = (f"{n}:{self._logged(code, p, values)}" for n, p in self._parts(code, e))
            return f"({','.join(inner)})"
        if isinstance(e.type, Stack):
            raise refuse(code.code.span, f"BMv2 cannot log a header stack ({e.type})")
        if isinstance(e.type, Array):
            items = e.fields if isinstance(e, ir.Make) else expression_builder.parts(e)
            return f"[{','.join(self._logged(code, item, values) for item in items)}]"
        if code.code.guard(e) is not None:
            e = self._copied(code, e)
        values.append(_in(code, e))
        return "{}"

    def _parts(self, code: PrimitiveWriter, e: ir.Expr) -> list[tuple[str, ir.Expr]]:
        """Return the names and values of the members of a struct, header or union."""
        assert isinstance(e.type, Fields), e
        names = [f.name for f in e.type.fields]
        if isinstance(e, ir.Make):
            return list(zip(names, e.fields, strict=True))
        if isinstance(e, ir.LValue) and code.code.place(e) is not None:
            base = e
        else:
            base = self._copied(code, e)
        members = enumerate(e.type.fields)
        return [(f.name, ir.FieldOf(f.type, base, at, f.name)) for at, f in members]

    def _copied(self, code: PrimitiveWriter, e: ir.Expr) -> ir.Var:
        """Copy a value that depends on the packet, such as an element with a run-time index."""
        copy = ir.Var(e.type, "logged", -1)
        code.assign(copy, e)
        return copy

    # -- results --------------------------------------------------------------------------------

    def _result(
        self, code: PrimitiveWriter, target: ir.Expr, act: Callable[[Json], object]
    ) -> None:
        """Do something whose result goes to a place, through a temporary where it must."""
        assert isinstance(target, ir.LValue), target
        place = code.code.place(target)
        if isinstance(place, FieldAt) and not isinstance(place.type, Bool):
            act({"type": "field", "value": place.reference})
            return
        copy = ir.Var(target.type, "result", -1)
        made = self.storage.place(copy)
        assert isinstance(made, FieldAt), target
        act({"type": "field", "value": made.reference})
        code.assign(target, copy)


def _in(code: PrimitiveWriter, e: ir.Expr) -> Json:
    return code.code.parameter(e)


def _is_whole(e: ir.Expr) -> bool:
    """Return whether a value is a struct, header or header union."""
    return isinstance(e.type, Fields)


def _reference(kind: str, s: ir.CallExtern) -> Json:
    assert s.instance is not None, s
    return {"type": kind, "value": s.instance.name}


def _escaped(text: str) -> str:
    """Return a text of log_msg in which BMv2 takes no brace for that of a value."""
    return text.replace("{", "\\{").replace("}", "\\}")


def _text(e: ir.Expr) -> str:
    assert isinstance(e, ir.Const) and isinstance(e.value, str), e
    return e.value


def _field_list(s: ir.CallExtern, e: ir.Expr | None) -> Json:
    if e is None:
        return number(NO_LIST + LIST_OFFSET)
    if not isinstance(e, ir.Const):
        raise refuse(s.span, "BMv2 needs a constant as the number of a field list")
    return number(int(e.value) + LIST_OFFSET)


def _inputs(place: object) -> Sequence[Json]:
    if isinstance(place, FieldAt):
        return [{"type": "field", "value": place.reference}]
    if isinstance(place, HeaderAt):
        return [{"type": "header", "value": place.name}]
    if isinstance(place, StructAt):
        return [entry for member in place.members for entry in _inputs(member)]
    if isinstance(place, StackAt):
        return [entry for i in range(place.type.size) for entry in _inputs(place.element(i))]
    if isinstance(place, UnionAt):
        return [e for i in range(len(place.type.fields)) for e in _inputs(place.member(i))]
    raise AssertionError(place)


def _field(place: FieldAt) -> Json:
    return {"type": "field", "value": place.reference}
