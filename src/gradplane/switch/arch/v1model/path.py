"""v1model's path (path.p4), woven around a program."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from gradplane.switch.arch.v1model.field_lists import COPYING, FieldLists, Place
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.machine import weaving
from gradplane.switch.machine.path_texts import path_text
from gradplane.switch.machine.primitives import PRIMITIVES


def woven(program: ir.Program) -> weaving.Path:
    """Return the path around a program."""
    meta = program.package.parser("p").params[1].var.type
    lists = FieldLists(meta, [program.package.control(name) for name in COPYING])
    text = path_text(Path(__file__).parent)
    return weaving.weave(text, program, PRIMITIVES, {"preserve": partial(_preserve, lists)})


def _preserve(lists: FieldLists, call: ir.CallExtern) -> list[ir.Stmt]:
    """Return the statements of preserve(list, meta, standard, kept, kept_standard): a switch on the
    list's number, with an assignment for each field that it preserves."""
    number, *sources = call.args[:3]
    targets = call.args[3:]
    cases = [
        ([value], [_copied(place, sources, targets) for place in places])
        for value, places in lists.paths.items()
    ]
    return [ir.SwitchStmt(number, cases, [], span=call.span)]


def _copied(place: Place, sources: list[ir.Expr], targets: list[ir.Expr]) -> ir.Stmt:
    (which, *steps), _ = place
    source, target = sources[which], targets[which]
    for index in steps:
        source = expression_builder.field(source, index)
        target = expression_builder.field(target, index)
    assert isinstance(target, ir.LValue), target
    return ir.Assign(target, source)
