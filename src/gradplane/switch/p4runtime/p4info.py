"""P4Info: the objects of a program that a controller can access, with p4c's ids and names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from google.protobuf import text_format

from gradplane._p4runtime import ACTION_SCOPES, p4i, p4t
from gradplane.switch.arch.registry import device_facts, of_package
from gradplane.switch.control.names import P4InfoError, P4InfoKind, Symbols, field_ids
from gradplane.switch.internal_errors import internal_errors_reported
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import (
    Annotation,
    Annotations,
    Enum,
    Error,
    NewType,
    SerEnum,
    Type,
    bit_width,
)
from gradplane.switch.ir.walk import blocks, statements
from gradplane.switch.p4runtime.annotations import annotate, annotated_number, number_of, pairs_of
from gradplane.switch.p4runtime.bit_strings import to_bytes
from gradplane.switch.p4runtime.digest_calls import digest_calls
from gradplane.switch.p4runtime.typespec import add_new_type, flat_fields, type_spec
from gradplane.switch.source import CompileError, Diagnostic

EXTERN_KINDS = {
    "counter": P4InfoKind.COUNTER,
    "direct_counter": P4InfoKind.DIRECT_COUNTER,
    "meter": P4InfoKind.METER,
    "direct_meter": P4InfoKind.DIRECT_METER,
    "register": P4InfoKind.REGISTER,
    "action_profile": P4InfoKind.ACTION_PROFILE,
    "action_selector": P4InfoKind.ACTION_PROFILE,
    "digest": P4InfoKind.DIGEST,
}
"""The kind in P4Info, by the kind of an extern instance in its architecture."""

COUNTER_UNITS = {
    "packets": p4i.CounterSpec.PACKETS,
    "bytes": p4i.CounterSpec.BYTES,
    "packets_and_bytes": p4i.CounterSpec.BOTH,
}
METER_UNITS = {"packets": p4i.MeterSpec.PACKETS, "bytes": p4i.MeterSpec.BYTES}
METER_TYPES = {
    "single_rate_three_color": p4i.MeterSpec.SINGLE_RATE_THREE_COLOR,
    "single_rate_two_color": p4i.MeterSpec.SINGLE_RATE_TWO_COLOR,
}
MATCH_TYPES = {
    "exact": p4i.MatchField.EXACT,
    "lpm": p4i.MatchField.LPM,
    "ternary": p4i.MatchField.TERNARY,
    "range": p4i.MatchField.RANGE,
    "optional": p4i.MatchField.OPTIONAL,
}
PRIORITY_KINDS = ("ternary", "range", "optional")
SELECTOR_ANNOTATIONS = (
    "max_group_size", "selector_size_semantics", "max_member_weight", "weights_disallowed",
)  # fmt: skip
SELECTOR_KIND = "selector"  # a key that only feeds the action selector's hash

_HEADER = "# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n"


def build_p4info(program: ir.Program) -> p4i.P4Info:
    """Describe `program` to controllers.

    Raises CompileError where its annotations do not allow it: when @id annotations collide, for
    example.
    """
    builder = _Builder(program)
    with internal_errors_reported(program.package.span):
        try:
            return builder.build()
        except P4InfoError as error:
            raise CompileError([Diagnostic(builder.place, str(error))], {}) from error


def p4info_text(p4info: p4i.P4Info) -> str:
    """Return the text form, as p4c writes it into a .p4info.txtpb file."""
    text: str = text_format.MessageToString(p4info)
    return _HEADER + text


def is_hidden(annotations: Annotations) -> bool:
    return any(a.name == "hidden" for a in annotations)


def wire_width(t: Type, type_name: str, types: dict[str, ir.TypeInfo]) -> int:
    """Return the bits of a value on the control plane, 0 for text, such as an error's name."""
    if type_name == ir.ERROR_TYPE:
        return 0
    info = types.get(type_name)
    if info is not None and info.uri is not None:
        return info.sdn_width or 0
    return bit_width(t) or 0


_Placed = TypeVar("_Placed", ir.Table, ir.Action, ir.ExternInstance, ir.ValueSet)


def listed_actions(program: ir.Program) -> list[ir.Action]:
    """Return the actions of P4Info: those of applied tables, and others that controls call."""
    used = {ref.action.name for table in _applied(program) for ref in table.actions}
    called = [action for action in program.direct_actions if action.name not in used]
    return [action for action in program.actions if action.name in used] + called


class _Builder:
    """Builds one P4Info: first collects all names, for ids and aliases, then describes each object.

    `place`: the source place of the object being described, for errors.
    """

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.place = program.package.span
        self.info = p4i.P4Info()
        self.symbols = Symbols()
        self.facts = device_facts(program)
        self.digests = digest_calls(program)
        masks = {key.mask for table in program.tables for key in table.keys}
        self.externs = [
            e
            for e in program.externs
            if e.user_extern is None and e not in masks and e.type != ir.HIDDEN_REGISTER
        ]  # P4Info has no kind for user-defined ones
        self.tables = _applied(program)
        self.actions = listed_actions(program)

    def build(self) -> p4i.P4Info:
        self._collect()
        self.symbols.assign()
        self._package()
        for table in self._placed(self.tables):
            if not is_hidden(table.annotations):
                self._table(table)
        for action in self._placed(_in_p4c_order(self.actions)):
            if not is_hidden(action.annotations):
                self._action(action)
        for extern in self._placed(self.externs):
            self._extern(extern)
        self.place = self.program.package.span
        for header in self.program.controller_headers:
            self._controller_header(header)
        for value_set in self._placed(self.program.value_sets):
            self._value_set(value_set)
        for name, (_, data) in self.digests.items():
            self._digest(name, data, ())
        return self.info

    def _placed(self, objects: Iterable[_Placed]) -> Iterator[_Placed]:
        for one in objects:
            self.place = one.span
            yield one

    def _collect(self) -> None:
        program = self.program
        for table in self._placed(self.tables):
            self._add(P4InfoKind.TABLE, table.name, table.annotations)
        for action in self._placed(self.actions):
            self._add(P4InfoKind.ACTION, action.name, action.annotations)
        for extern in self._placed(self.externs):
            if extern.kind in EXTERN_KINDS:
                self._add(EXTERN_KINDS[extern.kind], extern.name, extern.annotations)
        for header in program.controller_headers:
            self._add(P4InfoKind.CONTROLLER_HEADER, header.name, header.annotations)
        for value_set in self._placed(program.value_sets):
            self._add(P4InfoKind.VALUE_SET, value_set.name, value_set.annotations)
        for name in self.digests:
            self._add(P4InfoKind.DIGEST, name)

    def _add(self, kind: P4InfoKind, name: str, annotations: Annotations = ()) -> None:
        """Register an object. Its id follows, on a chip, from the name that the chip's compiler
        gives it, so that its bf-rt.json has the same ids; one of several programs has those that it
        has alone."""
        hashed, facts = name, self.facts
        if facts is not None and not self.program.parts:
            actions = kind == P4InfoKind.ACTION
            hashed = facts.own_name(name) if actions else facts.full_name(name)
        self.symbols.add(kind, name, annotations, hashed)

    # -- the package -----------------------------------------------------------------------------

    def _package(self) -> None:
        package, annotations = self.info.pkg_info, self.program.package.annotations
        found = of_package(self.program.package.package_type)
        package.arch = self.program.package.type if found is None else found.name
        for key, value in pairs_of(annotations, "pkginfo").items():
            if key in ("name", "version", "organization", "contact", "url"):
                setattr(package, key, str(value))
        for key, value in pairs_of(annotations, "platform_property").items():
            if key in p4i.PlatformProperties.DESCRIPTOR.fields_by_name:
                number = number_of(value, f"@platform_property({key} = {value})")
                setattr(package.platform_properties, key, number)
        annotate(package, annotations, ("pkginfo", "platform_property"))

    # -- tables and actions ----------------------------------------------------------------------

    def _table(self, table: ir.Table) -> None:
        out = self.info.tables.add()
        self._preamble(out.preamble, P4InfoKind.TABLE, table.name, table.annotations)
        self._match_fields(out.match_fields, table.keys, table.name)
        for reference in table.actions:
            self._action_ref(out.action_refs.add(), reference, table.name)
        self._default(out, table)
        if table.implementation is not None:
            out.implementation_id = self.symbols.id(
                P4InfoKind.ACTION_PROFILE, table.implementation.name
            )
        self._direct_resources(out, table)
        out.size = table.size
        if table.support_timeout and not table.auto_delete:
            out.idle_timeout_behavior = p4i.Table.NOTIFY_CONTROL
        out.is_const_table = table.const_entries
        out.has_initial_entries = bool(table.entries)

    def _default(self, out: p4i.Table, table: ir.Table) -> None:
        action = table.actions[table.default.index].action
        number = self.symbols.id(P4InfoKind.ACTION, action.name)
        if table.const_default:
            out.const_default_action_id = number
        out.initial_default_action.action_id = number
        self.place = action.span
        ids = field_ids([p.annotations for p in action.params], action.name)
        for param_id, param, value in zip(ids, action.params, table.default.args, strict=True):
            bits = int(value) & ((1 << (bit_width(param.type) or 0)) - 1)  # int<W> may be negative
            wire = wire_width(param.type, param.type_name, self.program.types)
            word = self.program.errors[bits] if param.type_name == ir.ERROR_TYPE else str(bits)
            data = to_bytes(bits, wire) if wire else word.encode()
            out.initial_default_action.arguments.add(param_id=param_id, value=data)
        self.place = table.span

    def _match_fields(self, out: Any, keys: list[ir.Key], owner: str) -> None:
        ids = field_ids([key.annotations for key in keys], owner)
        for number, key in zip(ids, keys, strict=True):
            if key.match_kind == SELECTOR_KIND:
                continue
            field = out.add(id=number, name=key.name)
            field.bitwidth = self._width(key.expr.type, key.type_name, field)
            if key.match_kind in MATCH_TYPES:
                field.match_type = MATCH_TYPES[key.match_kind]
            else:
                field.other_match_type = key.match_kind
            annotate(field, key.annotations, ("match",))

    def _action_ref(self, out: p4i.ActionRef, reference: ir.TableAction, table: str) -> None:
        out.id = self.symbols.id(P4InfoKind.ACTION, reference.action.name)
        scopes = list(
            dict.fromkeys(a.name for a in reference.annotations if a.name in ACTION_SCOPES)
        )
        if len(scopes) > 1:
            given = " and ".join(f"@{name}" for name in scopes)
            raise P4InfoError(f"{table}: action {reference.action.name} is both {given}")
        for name in scopes:
            out.scope = ACTION_SCOPES[name]
        annotate(out, reference.annotations)

    def _direct_resources(self, out: p4i.Table, table: ir.Table) -> None:
        """Describe the table's direct counter and meter."""
        if table.counter is not None:
            counter = self.info.direct_counters.add(direct_table_id=out.preamble.id)
            self._extern_preamble(counter.preamble, table.counter)
            counter.spec.unit = COUNTER_UNITS[table.counter.word("unit")]
            out.direct_resource_ids.append(counter.preamble.id)
        if table.meter is not None:
            meter = self.info.direct_meters.add(direct_table_id=out.preamble.id)
            self._extern_preamble(meter.preamble, table.meter)
            _meter_spec(meter.spec, table.meter)
            out.direct_resource_ids.append(meter.preamble.id)

    def _action(self, action: ir.Action) -> None:
        out = self.info.actions.add()
        self._preamble(out.preamble, P4InfoKind.ACTION, action.name, action.annotations)
        ids = field_ids([p.annotations for p in action.params], action.name)
        for number, param in zip(ids, action.params, strict=True):
            field = out.params.add(id=number, name=param.name)
            field.bitwidth = self._width(param.type, param.type_name, field)
            annotate(field, param.annotations)

    # -- externs ---------------------------------------------------------------------------------

    def _extern(self, extern: ir.ExternInstance) -> None:
        match EXTERN_KINDS.get(extern.kind):
            case P4InfoKind.COUNTER:
                counter = self.info.counters.add(size=extern.number("size"))
                self._extern_preamble(counter.preamble, extern)
                counter.spec.unit = COUNTER_UNITS[extern.word("unit")]
                self._index_type(counter, control_plane_types(extern)[-1:])
            case P4InfoKind.METER:
                meter = self.info.meters.add(size=extern.number("size"))
                self._extern_preamble(meter.preamble, extern)
                _meter_spec(meter.spec, extern)
                self._index_type(meter, control_plane_types(extern))
            case P4InfoKind.REGISTER:
                register = self.info.registers.add(size=extern.number("size", 1))
                self._extern_preamble(register.preamble, extern)
                self._index_type(register, control_plane_types(extern)[1:])
                spec = self._type_spec(control_plane_types(extern)[0])
                register.type_spec.CopyFrom(spec)
            case P4InfoKind.ACTION_PROFILE:
                self._action_profile(extern)
            case P4InfoKind.DIGEST:
                data = control_plane_types(extern)[0]
                self._digest(extern.name, data, extern.annotations)

    def _action_profile(self, extern: ir.ExternInstance) -> None:
        if any(extern in other.args for other in self.program.externs):
            return  # a selector's: its members are the selector's
        selector = extern.kind == "action_selector"
        profile = self.info.action_profiles.add(with_selector=selector)
        self._extern_preamble(profile.preamble, extern, SELECTOR_ANNOTATIONS)
        profile.size = extern.number("size")
        profile.max_group_size = extern.number("most", 0)
        users = sorted(t.name for t in self.tables if t.implementation is extern)
        profile.table_ids.extend(self.symbols.id(P4InfoKind.TABLE, name) for name in users)
        if not selector:
            return
        found = {a.name: a for a in extern.annotations}
        profile.weights_disallowed = "weights_disallowed" in found
        if "max_group_size" in found:
            profile.max_group_size = annotated_number(found["max_group_size"])
        if "selector_size_semantics" in found:
            _size_semantics(profile, found["selector_size_semantics"])
        if "max_member_weight" in found and profile.HasField("sum_of_members"):
            weight = annotated_number(found["max_member_weight"])
            profile.sum_of_members.max_member_weight = weight

    def _digest(self, name: str, data: Type, annotations: Annotations) -> None:
        digest = self.info.digests.add()
        self._preamble(digest.preamble, P4InfoKind.DIGEST, name, annotations)
        digest.type_spec.CopyFrom(self._type_spec(data))

    # -- headers for the controller, value sets --------------------------------------------------

    def _controller_header(self, header: Any) -> None:
        """Describe a controller header: its id is the type's, its name the annotation's."""
        if is_hidden(header.annotations):
            return
        annotation = next(a for a in header.annotations if a.name == "controller_header")
        name = str(annotation.values[0]) if annotation.values else ""
        if not name or any(name == h.preamble.name for h in self.info.controller_packet_metadata):
            what = f"{name} is another header" if name else 'expected a name, such as "packet_in"'
            raise P4InfoError(f"header {header.name}: @controller_header: {what}")
        out = self.info.controller_packet_metadata.add()
        self._preamble(out.preamble, P4InfoKind.CONTROLLER_HEADER, header.name, header.annotations)
        out.preamble.name = out.preamble.alias = name
        annotations = {f.name: f.annotations for f in header.fields}
        fields = flat_fields(header)
        ids = field_ids([annotations.get(name, ()) for name, _ in fields], header.name)
        for number, (field_name, field_type) in zip(ids, fields, strict=True):
            if is_hidden(annotations.get(field_name, ())):
                continue
            field = out.metadata.add(id=number, name=field_name)
            type_name = field_type.name if isinstance(field_type, NewType | SerEnum) else ""
            field.bitwidth = self._width(field_type, type_name, field)
            annotate(field, annotations.get(field_name, ()))

    def _value_set(self, value_set: ir.ValueSet) -> None:
        out = self.info.value_sets.add(size=value_set.size)
        self._preamble(out.preamble, P4InfoKind.VALUE_SET, value_set.name, value_set.annotations)
        self._match_fields(out.match, value_set.fields, value_set.name)

    # -- shared by all -------------------------------------------------------------------------

    def _preamble(
        self,
        out: p4i.Preamble,
        kind: P4InfoKind,
        name: str,
        annotations: Annotations,
        handled: tuple[str, ...] = (),
    ) -> None:
        out.id = self.symbols.id(kind, name)
        out.name = name
        out.alias = self.symbols.alias(name)
        annotate(out, annotations, handled)

    def _extern_preamble(
        self, out: p4i.Preamble, extern: ir.ExternInstance, handled: tuple[str, ...] = ()
    ) -> None:
        kind = EXTERN_KINDS[extern.kind]
        self._preamble(out, kind, extern.name, extern.annotations, handled)

    def _type_spec(self, t: Type) -> p4t.P4DataTypeSpec:
        return type_spec(t, self.info.type_info, self.program)

    def _index_type(self, out: Any, types: Sequence[Type]) -> None:
        """Describe the type of an array's index, if it is a `type` declaration."""
        for t in types:
            if isinstance(t, NewType):
                out.index_type_name.name = t.name
                add_new_type(self.program.types[t.name], self.info.type_info)

    def _width(self, t: Type, type_name: str, field: Any) -> int:
        """Return the bits on the control plane, and describe a `type` declaration or enum.

        p4c names the former in the field, and the latter only where it has no underlying type.
        """
        if type_name in self.program.types:
            field.type_name.name = type_name
            add_new_type(self.program.types[type_name], self.info.type_info)
        elif type_name in self.program.enums:
            enum = self.program.enums[type_name]
            self._type_spec(enum)
            if isinstance(enum, Enum):
                field.type_name.name = type_name
        elif type_name == ir.ERROR_TYPE:
            self._type_spec(Error())
        return wire_width(t, type_name, self.program.types)


def _applied(program: ir.Program) -> list[ir.Table]:
    """Return the tables that the package's blocks apply; p4c removes the others."""
    found = {
        stmt.table.name
        for _, block in blocks(program.package)
        for stmt in statements(block)
        if isinstance(stmt, ir.ApplyTable)
    }
    return [table for table in program.tables if table.name in found]


def _in_p4c_order(actions: Sequence[ir.Action]) -> list[ir.Action]:
    """Sort actions by control, each in the order of its source; top-level ones (NoAction) first."""
    controls = [action.name.rpartition(".")[0] for action in actions]

    def place(action: ir.Action) -> tuple[bool, int, int, int]:
        control = action.name.rpartition(".")[0]
        return bool(control), controls.index(control), action.span.line, action.span.column

    return sorted(actions, key=place)


def control_plane_types(extern: ir.ExternInstance) -> list[Type]:
    """Return the type arguments as the controller sees them."""
    return extern.declared_type_args or extern.type_args


def _meter_spec(out: p4i.MeterSpec, extern: ir.ExternInstance) -> None:
    out.unit = METER_UNITS[extern.word("unit")]
    for annotation in extern.annotations:
        out.type = METER_TYPES.get(annotation.name, out.type)


def _size_semantics(profile: p4i.ActionProfile, annotation: Annotation) -> None:
    """Set the meaning of a selector's sizes, which without the annotation is the sum of weights."""
    value = str(annotation.values[0] if annotation.values else annotation.body).lower()
    if value not in ("sum_of_weights", "sum_of_members"):
        raise P4InfoError(
            f'@{annotation.name}({annotation.body}): expected "sum_of_weights" or "sum_of_members"'
        )
    getattr(profile, value).SetInParent()
