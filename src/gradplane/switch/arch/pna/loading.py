"""Loading a PNA program: its preparation for both engines, and the rules that refuse it."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.arch import portable_rules
from gradplane.switch.arch.load_checks import direct_calls
from gradplane.switch.ir import nodes as ir
from gradplane.switch.source import Diagnostic

PLACES = {
    "main_parser": "the main parser",
    "pre_control": "the pre control",
    "main_control": "the main control",
    "main_deparser": "the main deparser",
}
_DIRECT = {"direct_counter": "pna_direct_counter", "direct_meter": "pna_direct_meter"}

PREPARE = (portable_rules.checksum_states,)


def pre_control(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse a pre control of other headers or metadata than the main parser's."""
    package = program.package
    pre, main = package.control("pre_control"), package.parser("main_parser")
    for own, given in zip(pre.params[:2], main.params[:2], strict=True):
        if own.var.type != given.var.type:
            what = f"the pre control's {own.name} must be a {given.var.type}, as the main parser's"
            yield Diagnostic(pre.span, f"{what}, not {own.var.type}")


def direct_resources(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse calls of a direct counter or meter outside the actions of its table."""
    return direct_calls(program, _DIRECT)


RULES = (*portable_rules.RULES, pre_control, direct_resources)
