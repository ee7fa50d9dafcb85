"""The Portable NIC Architecture, as far as packets do not write tables: `add_entry` and expire
times are missing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gradplane.switch.arch import portable
from gradplane.switch.arch.architecture import Implementation
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL
from gradplane.switch.source import Diagnostic

_PLACES = {
    "main_parser": "the main parser",
    "pre_control": "the pre control",
    "main_control": "the main control",
    "main_deparser": "the main deparser",
}
_NET_TO_HOST = 0
_SENDING = ("drop_packet", "send_to_port", "mirror_packet")
"""The externs that say where a packet goes: their bodies are in path.p4."""


def _load() -> Implementation:
    from gradplane.switch.machine.text_externs import TextBody, made_of

    folder = Path(__file__).parent
    sending = {("", n): TextBody(folder, n).extern().within("main_control") for n in _SENDING}
    more = {**sending, ("", "SelectByDirection"): made_of(_by_direction)}
    packs = ("main_control", "main_deparser")
    return portable.implementation(folder, _PLACES, more, packs, rules=[_pre_control])


ARCHITECTURE = portable.record(
    "pna", "PNA_NIC", ("main_parser", "pre_control", "main_control", "main_deparser"), _load
)


def _by_direction(call: ir.CallExtern) -> list[ir.Stmt]:
    """Return the statement of SelectByDirection(direction, to host, to net)."""
    direction, to_host, to_net = call.args
    if call.result is None:
        return []
    if isinstance(direction, ir.Const) and isinstance(direction.value, str):
        return [ir.Assign(call.result, to_host if direction.value == "NET_TO_HOST" else to_net)]
    first = ir.Binary(BOOL, "==", direction, ir.Const(direction.type, _NET_TO_HOST))
    return [ir.Assign(call.result, ir.Mux(to_host.type, first, to_host, to_net))]


def _pre_control(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse a pre control of other headers or metadata than the main parser's."""
    package = program.package
    pre, main = package.control("pre_control"), package.parser("main_parser")
    for own, given in zip(pre.params[:2], main.params[:2], strict=True):
        if own.var.type != given.var.type:
            what = f"the pre control's {own.name} must be a {given.var.type}, as the main parser's"
            yield Diagnostic(pre.span, f"{what}, not {own.var.type}")
