"""Limits of p4c's back end for psa_switch, beyond those of both back ends for BMv2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.check.arguments import CallInfo
from gradplane.switch.check.checker_types import ExternType
from gradplane.switch.check.p4c_rules import Found, Rules, instantiates
from gradplane.switch.syntax import ast

PSA = Rules()
PSA_PARSERS = Rules()
_IN_PARSERS = ("packet_in", "InternetChecksum")


@PSA.at(ast.Instantiation)
def _instance(decl: ast.Instantiation) -> Iterator[Found]:
    if instantiates(decl, "DirectMeter"):
        yield decl, "p4c for psa_switch has no DirectMeter", "use a Meter"
    elif instantiates(decl, "Register") and len(decl.args) > 1:
        yield decl, "p4c for psa_switch has no initial values of registers", ""


@PSA_PARSERS.at_calls
def _method(call: ast.Call, info: CallInfo) -> Iterator[Found]:
    if info.kind == "method" and info.base is not None:
        t = info.base.type
        if isinstance(t, ExternType) and t.name not in _IN_PARSERS:
            yield call, f"p4c for psa_switch has no {t.name} in parsers", ""


def conditions(nodes: Sequence[ast.Node]) -> Iterator[Found]:
    """Find them among the nodes of a deparser."""
    for node in nodes:
        if isinstance(node, ast.If | ast.SwitchStmt):
            yield node, "p4c for psa_switch has no conditions in deparsers", ""
