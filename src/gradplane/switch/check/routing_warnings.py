"""Warnings of programs that choose a packet's port in vain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gradplane.switch.check.context import Context
from gradplane.switch.check.p4c_warnings import blocks_of, main_package
from gradplane.switch.check.variable_warnings import written
from gradplane.switch.ir.types import Struct
from gradplane.switch.syntax import ast

KIND = "routing"
_EGRESS = 3  # among V1Switch's arguments


def warn_routing(c: Context, program: ast.Program) -> None:
    """Warn where a port is set that does not decide where the packet goes."""
    main = main_package(program)
    if main is None or main.name not in ("V1Switch", "PSA_Switch"):
        return
    if main.name == "V1Switch":
        egress = blocks_of(main)[_EGRESS]
        where = [decl for decl in program.declarations if decl is not egress]
        struct, port, decisive = "standard_metadata_t", "egress_port", "egress_spec"
        what = "a packet leaves by egress_spec, which is never set; egress_port follows"
        hint = "set egress_spec"
    else:
        where = [decl for decl in program.declarations if Path(decl.span.file).name != "psa.p4"]
        struct, port, decisive = "psa_ingress_output_metadata_t", "egress_port", "drop"
        what = "the packet is dropped: drop is true at first, and never set"
        hint = "send_to_port(...), or drop = false"
    found = [(decl, *item) for decl in where for item in _fields(c, decl, struct)]
    if not any(name in (decisive, "") for _, name, _ in found):
        for decl, name, place in found:
            if name == port:
                with c.quiet(decl.annotations):
                    c.warn(place, KIND, what, hint)


def _fields(c: Context, decl: ast.Decl, struct: str) -> Iterator[tuple[str, ast.Expr]]:
    """Yield the fields of a struct that a declaration writes, "" for all of them at once.

    Externs that take it whole, as mark_to_drop does, choose no port, and controls are read, too."""
    calls = (node.info for node in c.nodes[decl] if isinstance(node, ast.Call) and node.info)
    passed = {id(arg) for info in calls if info.kind in ("extern", "block") for arg in info.args}
    for place in written(c.nodes[decl]):
        while isinstance(place, ast.Slice):
            place = place.base
        if _is_struct(place, struct) and id(place) not in passed:
            yield "", place
        elif isinstance(place, ast.Member) and _is_struct(place.base, struct):
            yield place.name, place


def _is_struct(e: ast.Expr, name: str) -> bool:
    return isinstance(e.type, Struct) and e.type.name == name
