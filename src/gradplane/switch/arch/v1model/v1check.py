"""What is refused when a v1model program is loaded."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.arch.load_checks import Rules, problems
from gradplane.switch.arch.v1externs import EXTERNS, INSTANCES
from gradplane.switch.ir import nodes as ir
from gradplane.switch.source import Diagnostic

BLOCKS = ("p", "vr", "ig", "eg", "ck", "dep")


def check(program: ir.Program) -> list[Diagnostic]:
    """What the program uses that v1model, or this implementation of it, does not have."""
    return problems(program, _RULES)


def _clones(place: str, call: ir.CallExtern, name: str) -> Iterable[Diagnostic]:
    if call.name.startswith("clone") and place in _CLONES:
        kind = call.args[0]
        if isinstance(kind, ir.Const) and kind.value != _CLONES[place]:
            what = f"{name}: in {_PLACES[place]} the clone type must be {_CLONES[place]}"
            yield Diagnostic(call.span, f"{what}, not {kind.value}")


_NUMBERS = {
    "hash": (0, 2, 4),
    "random": (0, 1, 2),
    "execute_meter": (1,),
    "verify_checksum": (2,),
    "verify_checksum_with_payload": (2,),
    "update_checksum": (2,),
    "update_checksum_with_payload": (2,),
}
_CLONES = {"ig": "I2E", "eg": "E2E"}
_PLACES = {
    "p": "the parser",
    "vr": "the checksum verification",
    "ig": "the ingress control",
    "eg": "the egress control",
    "ck": "the checksum computation",
    "dep": "the deparser",
}
_RULES = Rules("v1model", _PLACES, EXTERNS, INSTANCES, _NUMBERS, _clones)
