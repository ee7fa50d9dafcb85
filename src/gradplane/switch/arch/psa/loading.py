"""Loading a PSA program: its preparation for both engines, and the rules that refuse it."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.arch.externs import checksums
from gradplane.switch.arch.load_checks import extern_calls, full_name, numbers_wanted
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.statement_walk import nested
from gradplane.switch.ir.types import Bits, Bool, bit_width
from gradplane.switch.source import Diagnostic

PLACES = {
    "ingress.ip": "the ingress parser",
    "ingress.ig": "the ingress control",
    "ingress.id": "the ingress deparser",
    "egress.ep": "the egress parser",
    "egress.eg": "the egress control",
    "egress.ed": "the egress deparser",
}
_RESULTS = ("Hash", "Checksum", "Random")
_DIRECT = {"direct_counter": "psa_direct_counter", "direct_meter": "psa_direct_meter"}
_STATES = {"Checksum": Bits(64), "InternetChecksum": Bits(16)}


def checksum_states(program: ir.Program) -> Iterable[Diagnostic]:
    """Give checksums their state (`checksums.keep_state`)."""
    return checksums.keep_state(program, _STATES)


PREPARE = (checksum_states,)

# -- rules --------------------------------------------------------------------------------------


def arguments(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse bounds of a hash that are no numbers, and internet checksums of data that are not in
    16-bit words."""
    for _, call in extern_calls(program):
        name = full_name(call)
        if name == "Hash.get_hash" and len(call.args) > 1:
            yield from numbers_wanted(call, name, (0, 2))
        if name in ("InternetChecksum.add", "InternetChecksum.subtract"):
            width = bit_width(call.args[-1].type)
            if width is not None and width % 16:
                what = f"{name}: the data has {width} bits, which is no multiple of 16"
                yield Diagnostic(call.span, what)


def entries(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse entries of a table with an action profile: they have members, which the source cannot
    make."""
    for table in program.tables:
        if table.entries and table.implementation is not None:
            what = f"table {table.name} has entries and the action profile"
            hint = "the control plane adds its entries, which refer to members"
            span = table.entries[0].span
            yield Diagnostic(span, f"{what} {table.implementation.name}", hint=hint)


def results(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse hashes, checksums and random numbers that are no numbers."""
    for instance in program.externs:
        if instance.type in _RESULTS and not isinstance(instance.type_args[0], Bits | Bool):
            what = f"{instance.type} of {instance.type_args[0]}: it must be bit<W> or int<W>"
            yield Diagnostic(instance.span, what)


def direct_calls(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse calls of a direct counter or meter outside the actions of its table."""
    callers: dict[ir.CallExtern, list[ir.Table]] = {}
    for table in program.tables:
        for choice in table.actions:
            for stmt in nested(choice.action.body):
                if isinstance(stmt, ir.CallExtern):
                    callers.setdefault(stmt, []).append(table)
    for _, call in extern_calls(program):
        instance = call.instance
        if instance is None or instance.kind not in _DIRECT:
            continue
        tables = callers.get(call, [])
        if not tables or any(instance not in (t.counter, t.meter) for t in tables):
            what = f"{full_name(call)} may be called in an action of the table that"
            hint = f"the table has the property {_DIRECT[instance.kind]} = {instance.name}"
            yield Diagnostic(call.span, f"{what} owns {instance.name} only", hint=hint)


RULES = (arguments, results, entries, direct_calls)
