"""P4 types as P4Info describes them (p4types.proto): registers, digests, new types and enums."""

from __future__ import annotations

from gradplane._p4runtime import p4t
from gradplane.switch.ir.nodes import Program, TypeInfo
from gradplane.switch.ir.types import (
    Bits,
    Bool,
    Enum,
    Error,
    Header,
    NewType,
    SerEnum,
    Stack,
    Struct,
    Type,
    Union,
    Varbit,
)
from gradplane.switch.p4runtime.annotations import annotate
from gradplane.switch.p4runtime.bit_strings import to_bytes


def type_spec(t: Type, info: p4t.P4TypeInfo, program: Program) -> p4t.P4DataTypeSpec:
    """Describe `t`; the types that it names are added to `info`."""
    spec = p4t.P4DataTypeSpec()
    match t:
        case NewType():
            spec.new_type.name = t.name
            add_new_type(program.types[t.name], info)
        case Enum():
            spec.enum.name = t.name
            if t.name not in info.enums:
                for name in t.members:
                    info.enums[t.name].members.add(name=name)
        case SerEnum():
            spec.serializable_enum.name = t.name
            _add_serializable_enum(t, info)
        case Error():
            spec.error.SetInParent()
            if not info.error.members:
                info.error.members.extend(program.errors)
        case Bits() | Varbit():
            spec.bitstring.CopyFrom(_bitstring(t))
        case Bool():
            spec.bool.SetInParent()
        case Struct() if is_tuple(t):
            spec.tuple.members.extend(type_spec(f.type, info, program) for f in t.fields)
        case Struct():
            spec.struct.name = t.name
            _add_struct(t, info, program)
        case Header():
            spec.header.name = t.name
            _add_header(t, info)
        case Union():
            spec.header_union.name = t.name
            _add_union(t, info)
        case Stack(element=Header() as element, size=size):
            spec.header_stack.header.name = element.name
            spec.header_stack.size = size
            _add_header(element, info)
        case Stack(element=Union() as element, size=size):
            spec.header_union_stack.header_union.name = element.name
            spec.header_union_stack.size = size
            _add_union(element, info)
        case _:
            raise AssertionError(f"no control-plane form of type {t}")
    return spec


def is_tuple(t: Type) -> bool:
    """Return True for a tuple, which lowering makes a struct of this name."""
    return isinstance(t, Struct) and t.name.startswith("tuple<")


def add_new_type(t: TypeInfo, info: p4t.P4TypeInfo) -> None:
    """Describe a `type` declaration: its translation, or else the type under it."""
    if t.name in info.new_types:
        return
    spec = info.new_types[t.name]
    annotate(spec, t.annotations, ("p4runtime_translation",))
    if t.uri is None:
        spec.original_type.bitstring.bit.bitwidth = t.width
        return
    spec.translated_type.uri = t.uri
    if t.sdn_width is None:
        spec.translated_type.sdn_string.SetInParent()
    else:
        spec.translated_type.sdn_bitwidth = t.sdn_width


def flat_fields(header: Header | Struct, prefix: str = "") -> list[tuple[str, Type]]:
    """List a header's fields with nested structs flattened: `a.b` for field b of struct a."""
    out: list[tuple[str, Type]] = []
    for f in header.fields:
        if isinstance(f.type, Struct):
            out += flat_fields(f.type, f"{prefix}{f.name}.")
        else:
            out.append((prefix + f.name, f.type))
    return out


def _bitstring(t: Type) -> p4t.P4BitstringLikeTypeSpec:
    spec = p4t.P4BitstringLikeTypeSpec()
    match t:
        case Bits(width=width, signed=True):
            spec.int.bitwidth = width
        case Bits(width=width):
            spec.bit.bitwidth = width
        case Bool():
            spec.bit.bitwidth = 1
        case Varbit(width=width):
            spec.varbit.max_bitwidth = width
        case SerEnum(underlying=underlying) | NewType(underlying=underlying):
            return _bitstring(underlying)
        case _:
            raise AssertionError(f"{t} is not a bit string")
    return spec


def _add_serializable_enum(t: SerEnum, info: p4t.P4TypeInfo) -> None:
    if t.name in info.serializable_enums:
        return
    spec, width = info.serializable_enums[t.name], t.underlying.width
    spec.underlying_type.bitwidth = width
    for name, value in t.values.items():
        bits = value & ((1 << width) - 1)  # of int<W>, which may be negative
        spec.members.add(name=name, value=to_bytes(bits, width))


def _add_struct(t: Struct, info: p4t.P4TypeInfo, program: Program) -> None:
    if t.name in info.structs:
        return
    members = info.structs[t.name].members
    for f in t.fields:
        members.add(name=f.name, type_spec=type_spec(f.type, info, program))


def _add_header(t: Header, info: p4t.P4TypeInfo) -> None:
    if t.name in info.headers:
        return
    members = info.headers[t.name].members
    for name, field_type in flat_fields(t):
        members.add(name=name, type_spec=_bitstring(field_type))


def _add_union(t: Union, info: p4t.P4TypeInfo) -> None:
    if t.name in info.header_unions:
        return
    members = info.header_unions[t.name].members
    for f in t.fields:
        assert isinstance(f.type, Header), f.type
        members.add(name=f.name).header.name = f.type.name
        _add_header(f.type, info)
