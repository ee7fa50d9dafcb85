"""The preparation and the rules that the portable architectures, PSA and PNA, share: their externs
have the same names."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.arch.load_checks import extern_calls, full_name, numbers_wanted
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, bit_width
from gradplane.switch.machine.externs import checksums
from gradplane.switch.source import Diagnostic

_RESULTS = ("Hash", "Checksum", "Random")
_STATES = {"Checksum": Bits(64), "InternetChecksum": Bits(16)}


def checksum_states(program: ir.Program) -> Iterable[Diagnostic]:
    """Give checksums their state (`checksums.keep_state`)."""
    return checksums.keep_state(program, _STATES)


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


RULES = (arguments, results, entries)
