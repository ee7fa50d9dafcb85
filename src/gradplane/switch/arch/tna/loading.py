"""Loading a TNA program: its preparation for both engines, and the rules that refuse it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradplane.switch.arch.load_checks import direct_calls, extern_calls, full_name
from gradplane.switch.arch.tna.chips import chip_of
from gradplane.switch.arch.tna.desugaring import desugar
from gradplane.switch.arch.tna.learn_actions import learn_actions
from gradplane.switch.arch.tna.parser_choices import MOST, name_parsers, parser_name
from gradplane.switch.arch.tna.register_access import one_access
from gradplane.switch.arch.tna.stateful_alu import bodies, cells
from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import Bits, bit_width
from gradplane.switch.ir.walk import blocks, nested, statements
from gradplane.switch.runtime.dynamic_hashes import is_symmetric, selector_hash
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


# -- direct registers that no table owns --------------------------------------------------------


_INDEX = Bits(32)
_ROLES = ("size", "initial")


def lone_registers(program: ir.Program) -> Iterable[Diagnostic]:
    """Give the direct registers that are used without a table a cell of their own, in place: the
    chip's compiler makes a table without keys of the statement that accesses one.

    DirectRegister<bit<32>>() seen;   ->   Register<bit<32>, bit<32>>(1) seen;
    x = count.execute();              ->   ... seen.read(0) ... seen.write(0, x)
    """
    alone = _without_table(program)
    for instance in alone:
        instance.type, instance.kind = "Register", "register"
        instance.type_args = [*instance.type_args, _INDEX]
        instance.declared_type_args = [*instance.declared_type_args, _INDEX]
        instance.args, instance.roles = [1, *instance.args], _ROLES
    for call in _calls(stmt for _, block in blocks(program.package) for stmt in statements(block)):
        if call.instance in alone and call.name != "clear":
            call.args.insert(0, build.number(_INDEX, 0))
            call.directions.insert(0, "in")
    return []


def _without_table(program: ir.Program) -> set[ir.ExternInstance]:
    """Return the direct registers that no table has, and no action of a table accesses."""
    owned = {table.register for table in program.tables}
    for table in program.tables:
        for choice in table.actions:
            owned |= {call.instance for call in _calls(nested(choice.action.body))}
    return {e for e in program.externs if e.kind == "direct_register" and e not in owned}


def _calls(stmts: Iterable[ir.Stmt]) -> Iterable[ir.CallExtern]:
    return (stmt for stmt in stmts if isinstance(stmt, ir.CallExtern))


# -- hashes that give the same for two fields the other way round -------------------------------


_SYMMETRIC = "symmetric"
_LINEAR = ("crc", "custom")


def symmetric_hashes(program: ir.Program) -> Iterable[Diagnostic]:
    """Put symmetric fields together in calls of hashes and in keys of selectors, in place.

    @symmetric("h.ip.src", "h.ip.dst") Hash<bit<32>>(HashAlgorithm_t.CRC32) flow;

    flow.get({h.ip.src, h.ip.dst, h.p})   ->   flow.get({0, h.ip.src ^ h.ip.dst, h.p})

    The chip feeds both fields to the place of the second one in the CRC, which is linear.
    """
    found: list[Diagnostic] = []
    for _, call in extern_calls(program):
        instance = call.instance
        if instance is not None and instance.kind == "hash" and is_symmetric(instance):
            data = call.args[0]
            fields = list(data.fields) if isinstance(data, ir.Make) else [data]
            found += _fold(instance, instance, fields)
            call.args[0] = ir.Make(data.type, fields) if isinstance(data, ir.Make) else data
    for table in program.tables:
        selector = table.implementation
        made = selector_hash(selector) if selector is not None else None
        keys = [key for key in table.keys if key.match_kind == "selector"]
        for owner in (selector, made):
            if owner is not None and made is not None and is_symmetric(owner):
                exprs = [key.expr for key in keys]
                found += _fold(owner, made, exprs)
                for key, e in zip(keys, exprs, strict=True):
                    key.expr = e
    return found


def _fold(
    owner: ir.ExternInstance, made: ir.ExternInstance, fields: list[ir.Expr]
) -> Iterator[Diagnostic]:
    """Put the pairs of an instance's annotations together; yield what is wrong with them."""
    names = [_relative(expression_text(e)) for e in fields]
    for annotation in owner.annotations:
        if annotation.name != _SYMMETRIC:
            continue
        pair = [str(value) for value in annotation.values]
        places = {names.index(_relative(n)) for n in pair if _relative(n) in names}
        problem = _problem(made, pair, sorted(places), fields)
        if problem:
            what = f"@symmetric of {owner.name}: {problem}"
            yield Diagnostic(owner.span, what, hint=f"its fields: {', '.join(names) or 'none'}")
            continue
        first, second = sorted(places)
        together = build.binary("^", fields[first], fields[second])
        fields[first], fields[second] = build.number(fields[first].type, 0), together


def _problem(
    made: ir.ExternInstance, pair: list[str], places: list[int], fields: list[ir.Expr]
) -> str:
    if not made.word("algorithm").startswith(_LINEAR):
        return "only CRCs have symmetric fields"
    if len(pair) != 2:
        return f"it names two fields, not {len(pair)}"
    if len(places) != 2:
        return f"{' and '.join(pair)} are not two of the fields that the hash takes"
    widths = [bit_width(fields[place].type) for place in places]
    if widths[0] != widths[1]:
        return f"{' and '.join(pair)} have different widths"
    return ""


def _relative(name: str) -> str:
    """Return a field's name without the block's parameter, which may be another in each block."""
    return name.partition(".")[2] or name


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
