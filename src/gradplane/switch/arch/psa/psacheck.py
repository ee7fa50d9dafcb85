"""What is refused when a PSA program is loaded."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.arch.load_checks import Rules, problems
from gradplane.switch.arch.psaexterns import EXTERNS, INSTANCES
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.statement_walk import blocks, nested, statements
from gradplane.switch.ir.types import Bits, Bool, bit_width
from gradplane.switch.source import Diagnostic

RESULTS = ("Hash", "Checksum", "Random")
DIRECT = {"direct_counter": "psa_direct_counter", "direct_meter": "psa_direct_meter"}


def check(program: ir.Program) -> list[Diagnostic]:
    """What the program uses that PSA, or this implementation of it, does not have."""
    found = [*problems(program, _RULES), *_results(program), *_entries(program)]
    return [*found, *_direct_calls(program)]


def _entries(program: ir.Program) -> Iterable[Diagnostic]:
    """Entries of a table with an action profile have members, which the source cannot make."""
    for table in program.tables:
        if table.entries and table.implementation is not None:
            what = f"table {table.name} has entries and the action profile"
            hint = "the control plane adds its entries, which refer to members"
            span = table.entries[0].span
            yield Diagnostic(span, f"{what} {table.implementation.name}", hint=hint)


def _results(program: ir.Program) -> Iterable[Diagnostic]:
    """Hashes, checksums and random numbers are numbers."""
    for instance in program.externs:
        if instance.type in RESULTS and not isinstance(instance.type_args[0], Bits | Bool):
            what = f"{instance.type} of {instance.type_args[0]}: it must be bit<W> or int<W>"
            yield Diagnostic(instance.span, what)


def _arguments(place: str, call: ir.CallExtern, name: str) -> Iterable[Diagnostic]:
    """Indices and bounds are numbers, and an internet checksum is one of 16-bit words."""
    bounds = (0, 2) if name == "Hash.get_hash" and len(call.args) > 1 else ()
    for position in _NUMBERS.get(name, bounds):
        t = call.args[position].type
        if not isinstance(t, Bits | Bool):
            what = f"argument {position + 1} of {name} must be bit<W>, int<W> or bool, not {t}"
            yield Diagnostic(call.span, what)
    if name in ("InternetChecksum.add", "InternetChecksum.subtract"):
        width = bit_width(call.args[-1].type)
        if width is not None and width % 16:
            what = f"{name}: the data have {width} bits, which is no multiple of 16"
            yield Diagnostic(call.span, what)


def _direct_calls(program: ir.Program) -> Iterable[Diagnostic]:
    """A direct counter or meter is called by actions of its table only."""
    callers: dict[ir.CallExtern, list[ir.Table]] = {}
    for table in program.tables:
        for choice in table.actions:
            for stmt in nested(choice.action.body):
                if isinstance(stmt, ir.CallExtern):
                    callers.setdefault(stmt, []).append(table)
    for _, block in blocks(program.package):
        for stmt in statements(block):
            instance = stmt.instance if isinstance(stmt, ir.CallExtern) else None
            if instance is None or instance.kind not in DIRECT:
                continue
            assert isinstance(stmt, ir.CallExtern)
            tables = callers.get(stmt, [])
            if not tables or any(instance not in (t.counter, t.meter) for t in tables):
                what = f"{instance.type}.{stmt.name} may be called in an action of the table that"
                hint = f"the table has the property {DIRECT[instance.kind]} = {instance.name}"
                yield Diagnostic(stmt.span, f"{what} owns {instance.name} only", hint=hint)


_PLACES = {
    "ingress.ip": "the ingress parser",
    "ingress.ig": "the ingress control",
    "ingress.id": "the ingress deparser",
    "egress.ep": "the egress parser",
    "egress.eg": "the egress control",
    "egress.ed": "the egress deparser",
}
_NUMBERS = {"Counter.count": (0,), "Meter.execute": (0,), "Register.read": (0,),
            "Register.write": (0,)}  # fmt: skip
_RULES = Rules("psa", _PLACES, EXTERNS, INSTANCES, {}, _arguments)
