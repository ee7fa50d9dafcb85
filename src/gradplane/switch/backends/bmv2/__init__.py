"""BMv2's JSON (p4lang/behavioral-model, docs/JSON_format.md) from the intermediate representation.

`compile_text` makes the file that simple_switch loads or, for a PSA program, psa_switch. `storage`
lays the program's variables out as headers and fields, `expressions` and `actions` translate code,
`control_flow` cuts controls into tables, conditions and actions; `parsers`, `externs`, `sections`,
`v1model` and `psa` do what their names say.

`p4info_for` gives P4Info as PI takes it, the P4Runtime library of simple_switch_grpc. PI refuses a
program with a digest of anything but bit strings: a header, a boolean, an enum, a
struct in a struct. BMv2 sends the fields of all of them one after another, as bits, so the digest's
type becomes a struct of these fields. Nor can PI write a key without a width, as an error's, which
gets one.

    header data_t { bit<8> x; bool y; }     ->     struct data_t { bit<8> x; bit<1> y; }
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from gradplane._p4runtime import p4i, p4t
from gradplane.switch.backends.bmv2 import psa
from gradplane.switch.backends.bmv2.v1model import to_json
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type
from gradplane.switch.source import refuse

__all__ = ["MACROS", "compile_text", "p4info_for", "to_json"]

MACROS = {"__TARGET_BMV2__": "1"}
"""The macro that p4c defines, too, when it compiles for BMv2."""


def compile_text(arch: str, program: ir.Program, digests: Mapping[Type, str]) -> str:
    """Return a program that its architecture has checked as BMv2's JSON: for simple_switch, or, of
    a PSA program, for psa_switch.

    digests: the names in P4Info of digests, by the type of their data. Raises CompileError for what
    BMv2 cannot do, with the place in the source.
    """
    if arch not in ("v1model", "psa"):
        text = f"BMv2's JSON is made of v1model and PSA programs, not of {arch}"
        raise refuse(program.package.span, text)
    found = psa.to_json(program) if arch == "psa" else to_json(program, digests)
    return json.dumps(found, indent=1) + "\n"


# -- P4Info -----------------------------------------------------------------------------------


_CODE = 32  # bits of an error or an enum without a type


def p4info_for(info: p4i.P4Info, program: ir.Program) -> p4i.P4Info:
    """Return a program's P4Info with digests and errors as keys that PI takes; all others stay as
    they are."""
    found = p4i.P4Info()
    found.CopyFrom(info)
    tables = {table.name: table for table in program.tables}
    for listed in found.tables:
        keys = [k for k in tables[listed.preamble.name].keys if k.match_kind != "selector"]
        for field, key in zip(listed.match_fields, keys, strict=True):
            if key.type_name == ir.ERROR_TYPE:
                field.bitwidth = _CODE
    for digest in found.digests:
        if not _is_simple(digest.type_spec, info.type_info):
            fields = list(_fields("", digest.type_spec, info.type_info, program))
            name = digest.preamble.name
            found.type_info.structs[name].CopyFrom(p4t.P4StructTypeSpec())
            for field, width in fields:
                member = found.type_info.structs[name].members.add(name=field)
                member.type_spec.bitstring.bit.bitwidth = width
            digest.type_spec.CopyFrom(p4t.P4DataTypeSpec())
            digest.type_spec.struct.name = name
    return found


def _is_simple(spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo) -> bool:
    """Return whether PI takes a digest of this type."""
    if spec.HasField("struct"):
        members = [m.type_spec for m in types.structs[spec.struct.name].members]
    elif spec.HasField("tuple"):
        members = list(spec.tuple.members)
    else:
        members = [spec]
    return all(m.HasField("bitstring") and m.bitstring.HasField("bit") for m in members)


def _fields(
    name: str, spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo, program: ir.Program
) -> Iterator[tuple[str, int]]:
    """Yield the names and widths of the fields that a value has on the wire."""
    prefix = f"{name}." if name else ""
    match spec.WhichOneof("type_spec"):
        case "struct":
            for member in types.structs[spec.struct.name].members:
                yield from _fields(prefix + member.name, member.type_spec, types, program)
        case "tuple":
            for at, inner in enumerate(spec.tuple.members):
                yield from _fields(f"{prefix}f{at}", inner, types, program)
        case "header":
            for field in types.headers[spec.header.name].members:
                yield prefix + field.name, _width(field.type_spec)
        case "bitstring":
            yield name or "value", _width(spec.bitstring)
        case "bool":
            yield name or "value", 1
        case "serializable_enum":
            enum = types.serializable_enums[spec.serializable_enum.name]
            yield name or "value", enum.underlying_type.bitwidth
        case "new_type":
            known = program.types.get(spec.new_type.name)
            yield name or "value", known.width if known is not None else _CODE
        case _:
            yield name or "value", _CODE


def _width(spec: p4t.P4BitstringLikeTypeSpec) -> int:
    if spec.HasField("int"):
        return int(spec.int.bitwidth)
    return int(spec.varbit.max_bitwidth if spec.HasField("varbit") else spec.bit.bitwidth)
