"""The walker: what follows from the roles that nodes declare, and what has no role."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir import walk
from gradplane.switch.ir.printer import expression_text, statement_text
from gradplane.switch.ir.roles import node_classes, roles_of
from gradplane.switch.ir.types import BOOL, Bits, Header, Stack

B8, B32 = Bits(8), Bits(32)
x, y, z = (ir.Var(B8, name, at) for at, name in enumerate("xyz"))
flag, number = ir.Var(BOOL, "flag", 5), ir.Var(B32, "number", 6)
stack = ir.Var(Stack(Header("h_t", ()), 2), "s", 7)
one = ir.Const(B8, 1)
total = ir.Binary(B8, "+", x, ir.Cast(B8, y))


def texts(exprs: object) -> list[str]:
    return [expression_text(e) for e in exprs]  # type: ignore[attr-defined]


def assign(target: ir.LValue, value: ir.Expr) -> ir.Assign:
    return ir.Assign(target, value)


def a_table(*setup: ir.Stmt, action: ir.Action | None = None) -> ir.Table:
    actions = [ir.TableAction(action or ir.Action("a", [], []))]
    keys = [ir.Key("x", x, "exact"), ir.Key("sum", total, "exact")]
    return ir.Table("t", keys, list(setup), actions, ir.ActionCall(0, []), False, [], False, 1)


CALL = ir.CallExtern(None, "f", [x, y, z], ["in", "out", "inout"], number)
USER = ir.CallUserExtern(
    None, "g",
    [ir.UserExternArgument("a", "in", B8, x), ir.UserExternArgument("b", "out", B8, y),
     ir.UserExternArgument("c", "", B8, None)],
    z, B8,
)  # fmt: skip


@pytest.mark.parametrize(
    ("stmt", "reads", "writes"),
    [
        (assign(x, total), ["(x + (bit<8>)y)"], ["x"]),
        (assign(ir.ElementOf(stack.type, stack, y), z), ["z", "y"], ["s[y]"]),
        (ir.If(flag, [assign(x, y)], []), ["flag"], []),
        (ir.SwitchStmt(x, [([1], [])], []), ["x"], []),
        (ir.SetValid(ir.NextOf(B8, stack), True), [], ["s.next"]),
        (ir.Push(stack, 1), [], ["s"]),
        (ir.ApplyTable(a_table(), flag, number), ["x", "(x + (bit<8>)y)"], ["flag", "number"]),
        (CALL, ["x", "z"], ["y", "z", "number"]),
        (USER, ["x"], ["y", "z"]),
        (ir.Extract(ir.NextOf(B8, stack), number), ["number"], ["s.next"]),
        (ir.Verify(flag, number), ["flag", "number"], []),
        (ir.Exit(), [], []),
    ],
    ids=lambda v: statement_text(v).split("\n")[0] if isinstance(v, ir.Stmt) else None,
)
def test_what_a_statement_reads_and_writes(
    stmt: ir.Stmt, reads: list[str], writes: list[str]
) -> None:
    assert texts(walk.reads(stmt)) == reads
    assert texts(walk.writes(stmt)) == writes


def test_the_expressions_of_a_call_are_each_there_once() -> None:
    assert texts(walk.expressions(CALL)) == ["x", "y", "z", "number"]


def test_bodies() -> None:
    inner, default, setup = [assign(x, y)], [ir.Exit()], assign(y, z)
    assert walk.bodies(ir.SwitchStmt(x, [([1], inner), ([2], [])], default)) == [inner, [], default]
    assert walk.bodies(ir.ApplyTable(a_table(setup))) == [[setup]]
    state = ir.State("start", inner, [], [ir.SelectCase([ir.MatchAny()], "accept")])
    parser = ir.Parser("P", [], [], default, {"start": state})
    assert walk.bodies(parser) == [default, inner, []]


def test_what_a_block_declares() -> None:
    assert walk.declares(ir.Control("C", [ir.Param("x", "in", x)], [y], [])) == [x, y]


def test_a_state_reads_what_its_cases_compare_with() -> None:
    case = ir.SelectCase([ir.MatchMask(one, z), ir.MatchAny()], "accept")
    assert texts(walk.reads(ir.State("s", [], [x, y], [case]))) == ["x", "y", "1:bit<8>", "z"]


def test_expressions_inside_an_expression() -> None:
    assert texts(walk.within(total)) == ["(x + (bit<8>)y)", "x", "(bit<8>)y", "y"]
    assert walk.variables(total) == {x, y}


def test_other_operands_keep_what_does_not_change() -> None:
    choice = ir.Mux(B8, flag, z, one)
    whole = ir.Make(B8, [total, choice])
    changed = walk.with_operands(whole, [total, walk.with_operands(choice, [flag, one, one])])
    assert expression_text(changed) == "bit<8>{(x + (bit<8>)y), (flag ? 1:bit<8> : 1:bit<8>)}"
    assert changed.fields[0] is total
    assert walk.with_operands(whole, whole.fields) is whole


def test_rewriting_statements_is_in_place_and_from_the_inside_out() -> None:
    loop = ir.Loop([assign(x, y), ir.Exit()])
    body: list[ir.Stmt] = [ir.If(flag, [loop], []), assign(z, one)]
    seen: list[ir.Stmt] = []

    def doubled(stmt: ir.Stmt) -> list[ir.Stmt]:
        seen.append(stmt)
        if isinstance(stmt, ir.Exit):
            return []
        return [stmt, stmt] if isinstance(stmt, ir.Assign) else [stmt]

    walk.rewrite(body, doubled)
    assert statement_text(body[0]).split("\n") == ["if flag", "  loop", "    x = y", "    x = y"]
    assert len(body) == 3 and seen.index(loop) > 1


def test_walks_go_into_actions_only_where_that_is_said() -> None:
    action = ir.Action("a", [], [assign(x, y)])
    stmts = [ir.ApplyTable(a_table(action=action)), ir.ApplyTable(a_table(action=action))]
    assert list(walk.nested(stmts)) == stmts
    assert list(walk.with_actions(stmts)) == [stmts[0], action.body[0], stmts[1]]
    assert walk.actions(ir.Control("C", [], [], stmts)) == [action]


def test_a_walk_can_leave_out_what_is_inside_helpers() -> None:
    helper = ir.Block([ir.Exit()], ir.HELPER)
    block = ir.Block([assign(x, y)])
    assert list(walk.nested([helper, block], walk.outside_helpers)) == [block, block.body[0]]


def test_every_field_that_can_hold_a_node_has_a_role() -> None:
    assert {"Assign", "Var", "Table", "ExternInstance"} < node_classes(ir).keys()
    for kind in node_classes(ir).values():
        assert roles_of(kind, node_classes(ir)) is not None


@dataclass(eq=False)
class Repeat:
    times: ir.Expr


def test_a_node_field_without_a_role_is_refused() -> None:
    with pytest.raises(TypeError) as caught:
        roles_of(Repeat, {"Expr", "Stmt"})
    assert str(caught.value) == (
        "Repeat.times is ir.Expr, a node, and has no role: give it one of Reads, Writes, Passed,"
        " Body, Declares, Parts, Refers (switch/ir/roles.py)"
    )
