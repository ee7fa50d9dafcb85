"""Loading a TNA program: its preparation for both engines, and the rules that refuse it."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.arch.load_checks import direct_calls, extern_calls, full_name
from gradplane.switch.arch.tna.chips import chip_of
from gradplane.switch.arch.tna.desugaring import desugar
from gradplane.switch.arch.tna.learn_actions import learn_actions
from gradplane.switch.arch.tna.lone_registers import lone_registers
from gradplane.switch.arch.tna.parser_choices import MOST, name_parsers, parser_name
from gradplane.switch.arch.tna.register_access import one_access
from gradplane.switch.arch.tna.stateful_alu import bodies, cells
from gradplane.switch.arch.tna.symmetric_hashes import symmetric_hashes
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, bit_width
from gradplane.switch.source import Diagnostic

_BLOCKS = {
    "ingress_parser": "the ingress parser",
    "ingress": "the ingress control",
    "ingress_deparser": "the ingress deparser",
    "egress_parser": "the egress parser",
    "egress": "the egress control",
    "egress_deparser": "the egress deparser",
    "ghost": "the ghost control",
}
_MORE_PARSERS = {
    parser_name(side, n): _BLOCKS[side]
    for side in ("ingress_parser", "egress_parser")
    for n in range(1, MOST)
}
PLACES = {
    f"pipe{i}.{name}": text for i in range(4) for name, text in (_BLOCKS | _MORE_PARSERS).items()
}
_DIRECT = {
    "direct_counter": "counters",
    "direct_meter": "meters",
    "direct_register": "registers",
    "direct_lpf": "filters",
    "direct_wred": "filters",
}

# -- preparation --------------------------------------------------------------------------------


def masked_value_sets(program: ir.Program) -> Iterable[Diagnostic]:
    """Let the members of value sets have masks, whatever the program says, in place: the chip's
    parser compares all of them under masks."""
    for value_set in program.value_sets:
        value_set.masked = True
    return ()


PREPARE = (name_parsers, lone_registers, symmetric_hashes, masked_value_sets, desugar)

# -- rules --------------------------------------------------------------------------------------


def headers(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse mirror and resubmit headers that are larger than the chip keeps."""
    chip = chip_of(program)
    most = {"Mirror": chip.most_mirrored, "Resubmit": chip.most_resubmitted}
    for _, call in extern_calls(program):
        owner = call.instance.type if call.instance is not None else ""
        if owner not in most or len(call.args) < (2 if owner == "Mirror" else 1):
            continue
        bits = bit_width(call.args[-1].type)
        if bits is None or bits > 8 * most[owner]:
            what = f"{full_name(call)}: the header has {bits or 'no fixed number of'} bits"
            hint = f"{chip.name} keeps up to {most[owner]} bytes"
            yield Diagnostic(call.span, what, hint=hint)


def results(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse hashes, their polynomials and random numbers that are no numbers of up to 64 bits."""
    for instance in program.externs:
        if instance.type in ("Hash", "Random"):
            t = instance.type_args[0]
            if not isinstance(t, Bits):
                yield Diagnostic(instance.span, f"{instance.type} of {t}: it must be bit<W>")
        if (
            instance.type == "CRCPolynomial"
            and not 0 < (bit_width(instance.type_args[0]) or 0) <= 64
        ):
            what = f"CRCPolynomial of {instance.type_args[0]}: it must have up to 64 bits"
            yield Diagnostic(instance.span, what)
        custom = instance.type == "Hash" and instance.word("algorithm") == "custom"
        if custom and not any(isinstance(a, ir.ExternInstance) for a in instance.args):
            what = f"hash {instance.name} is CUSTOM and has no CRCPolynomial"
            yield Diagnostic(instance.span, what, hint="give it one as its second argument")


def direct_resources(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse calls of a direct counter, meter, register or filter outside its table's actions."""
    return direct_calls(program, _DIRECT)


RULES = (direct_resources, headers, results, cells, bodies, one_access, learn_actions)
