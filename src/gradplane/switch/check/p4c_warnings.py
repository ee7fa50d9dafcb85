"""Warnings about what this compiler takes and p4c refuses, or reads otherwise.

The limits of its back ends for BMv2 are looked for in programs of v1model and PSA only. The
warnings' kind is "p4c".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.check import p4c_bmv2
from gradplane.switch.check.checker_types import BlockType, ExternType
from gradplane.switch.check.context import Context
from gradplane.switch.check.p4c_bmv2 import MISREAD
from gradplane.switch.check.p4c_rules import REFUSED, Found
from gradplane.switch.check.records import CallInfo
from gradplane.switch.syntax import ast

KIND = "p4c"
# Positions among the arguments of V1Switch.
_CHECKSUMS, _DEPARSER = (1, 4), 5
_PIPELINES = {2: "ingress", 3: "egress"}


def warn_p4c(c: Context, program: ast.Program) -> None:
    """Warn of what p4c refuses, each at its place in a declaration of the program."""
    main = _main(program)
    package = "" if main is None else main.name
    blocks = [] if main is None else _blocks(main)
    for decl in program.declarations:
        nodes = c.nodes[decl]
        with c.quiet(decl.annotations):
            _report(c, REFUSED.find(nodes))
            if package in ("V1Switch", "PSA_Switch"):
                _report(c, p4c_bmv2.BOTH.find(nodes))
            if package == "V1Switch":
                _report(c, _in_v1model(decl, nodes, blocks))
            elif package == "PSA_Switch":
                _report(c, _in_psa(decl, nodes))


def _report(c: Context, found: Iterator[Found]) -> None:
    for node, message, hint in found:
        c.warn(node, KIND, message, hint)


def _main(program: ast.Program) -> CallInfo | None:
    mains = [
        d for d in program.declarations if isinstance(d, ast.Instantiation) and d.name == "main"
    ]
    return mains[-1].info if mains else None


def _blocks(main: CallInfo) -> list[ast.Decl | None]:
    """Return the declarations of the package's blocks."""
    types = (None if arg is None else arg.type for arg in main.args)
    return [t.decl if isinstance(t, BlockType) else None for t in types]


def _in_v1model(
    decl: ast.Decl, nodes: Sequence[ast.Node], blocks: Sequence[ast.Decl | None]
) -> Iterator[Found]:
    yield from p4c_bmv2.V1MODEL.find(nodes)
    yield from p4c_bmv2.loops_outside_actions(nodes)
    yield from p4c_bmv2.different_externs(nodes)
    yield from MISREAD.find(nodes)
    if isinstance(decl, ast.ParserDecl):
        yield from p4c_bmv2.V1MODEL_PARSERS.find(nodes)
    elif isinstance(decl, ast.ControlDecl) and decl in blocks:
        at = blocks.index(decl)
        if at in _PIPELINES:
            yield from p4c_bmv2.of_the_other_control(nodes, _PIPELINES[at])
        elif at == _DEPARSER:
            yield from p4c_bmv2.other_than_calls(decl.body, "a deparser", "emit")
        elif at in _CHECKSUMS:
            what = "verify and update checksums"
            yield from p4c_bmv2.other_than_calls(decl.body, "a checksum block", what)


def _in_psa(decl: ast.Decl, nodes: Sequence[ast.Node]) -> Iterator[Found]:
    yield from p4c_bmv2.PSA.find(nodes)
    if isinstance(decl, ast.ParserDecl):
        yield from p4c_bmv2.PSA_PARSERS.find(nodes)
    elif isinstance(decl, ast.ControlDecl) and any(map(_is_packet_out, decl.params)):
        yield from p4c_bmv2.conditions(nodes)


def _is_packet_out(param: ast.Param) -> bool:
    return isinstance(param.type, ExternType) and param.type.name == "packet_out"
