"""What is refused when a v1model program is loaded."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.arch.v1externs import EXTERNS, INSTANCES
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool
from gradplane.switch.ir.walk import blocks, statements
from gradplane.switch.source import Diagnostic

BLOCKS = ("p", "vr", "ig", "eg", "ck", "dep")


def check(program: ir.Program) -> list[Diagnostic]:
    """What the program uses that v1model, or this implementation of it, does not have."""
    return [*_instances(program), *_calls(program)]


def _instances(program: ir.Program) -> Iterable[Diagnostic]:
    for instance in program.externs:
        if instance.type not in INSTANCES:
            hint = f"implemented: {', '.join(sorted(INSTANCES))}"
            what = f"extern {instance.type} is not implemented by v1model"
            yield Diagnostic(instance.span, what, hint=hint)
        elif instance.type == "register":
            cell = instance.type_args[0]
            if not isinstance(cell, Bits | Bool):
                what = f"register of {cell}: a cell must be bit<W>, int<W> or bool"
                yield Diagnostic(instance.span, what)


def _calls(program: ir.Program) -> Iterable[Diagnostic]:
    for place, block in blocks(program.package):
        for stmt in statements(block):
            if isinstance(stmt, ir.CallExtern):
                yield from _call(place, stmt)


def _call(place: str, call: ir.CallExtern) -> Iterable[Diagnostic]:
    owner = call.instance.type if call.instance else ""
    name = f"{owner}.{call.name}" if owner else call.name
    extern = EXTERNS.get((owner, call.name))
    if extern is None:
        if owner in INSTANCES or not owner:
            yield Diagnostic(call.span, f"extern {name} is not implemented by v1model")
        return
    if place not in extern.places:
        allowed = " and ".join(_PLACES[p] for p in BLOCKS if p in extern.places)
        what = f"{name} may be called in {allowed} only, not in {_PLACES[place]}"
        yield Diagnostic(call.span, what)
    for position in _NUMBERS.get(call.name, ()):
        t = call.args[position].type
        if not isinstance(t, Bits | Bool):
            what = f"argument {position + 1} of {name} must be bit<W>, int<W> or bool, not {t}"
            yield Diagnostic(call.span, what)
    if call.name.startswith("clone") and place in _CLONES:
        kind = call.args[0]
        if isinstance(kind, ir.Const) and kind.value != _CLONES[place]:
            what = f"{name}: in {_PLACES[place]} the clone type must be {_CLONES[place]}"
            yield Diagnostic(call.span, f"{what}, not {kind.value}")


# Arguments of any type for the checker that hold a number.
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
