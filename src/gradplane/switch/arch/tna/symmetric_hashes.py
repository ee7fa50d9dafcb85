"""Hashes that give the same for two fields the other way round.

    @symmetric("h.ip.src", "h.ip.dst") Hash<bit<32>>(HashAlgorithm_t.CRC32) flow;

    flow.get({h.ip.src, h.ip.dst, h.p})   ->   flow.get({0, h.ip.src ^ h.ip.dst, h.p})

The chip feeds both fields to the place of the second one in the CRC, which is linear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradplane.switch.arch.load_checks import extern_calls
from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import expression_text
from gradplane.switch.ir.types import bit_width
from gradplane.switch.runtime.dynamic_hashes import is_symmetric, selector_hash
from gradplane.switch.source import Diagnostic

_SYMMETRIC = "symmetric"
_LINEAR = ("crc", "custom")


def symmetric_hashes(program: ir.Program) -> Iterable[Diagnostic]:
    """Put symmetric fields together in calls of hashes and in keys of selectors, in place."""
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
