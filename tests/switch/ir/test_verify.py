"""Illegal programs, each with the sentence that names block and node; and programs as text."""

from __future__ import annotations

from typing import Any

import pytest

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.dispatch import leaf_classes
from gradplane.switch.ir.printer import expression_text, program_text, statement_text
from gradplane.switch.ir.types import BOOL, Bits, Field, Header, Stack, Struct, Union, Varbit
from gradplane.switch.ir.verify import CORE_ERRORS, IRError, verify
from gradplane.switch.ir.walk import bodies

B8, B16, B32 = Bits(8), Bits(16), Bits(32)
H = Header("h_t", (Field("v", B8), Field("w", B16)))
K = Header("k_t", (Field("n", B8), Field("o", Varbit(32))))
HEADERS = Struct("headers_t", (Field("h", H), Field("s", Stack(H, 2)), Field("k", K)))

hdr = ir.Var(HEADERS, "hdr", 1)
x, y, flag = ir.Var(B8, "x", 2), ir.Var(B16, "y", 3), ir.Var(BOOL, "flag", 4)
h = ir.FieldOf(H, hdr, 0, "h")
v = ir.FieldOf(B8, h, 0, "v")
stack = ir.FieldOf(Stack(H, 2), hdr, 1, "s")
k = ir.FieldOf(K, hdr, 2, "k")
one = ir.Const(B8, 1)


def action(*body: ir.Stmt, params: tuple[ir.Var, ...] = ()) -> ir.Action:
    return ir.Action("I.act", list(params), list(body))


def table(**parts: Any) -> ir.Table:
    defaults: dict[str, Any] = {
        "name": "I.t", "keys": [ir.Key("x", x, "exact")], "key_setup": [],
        "actions": [ir.TableAction(action())], "default": ir.ActionCall(0, []),
        "const_default": False, "entries": [], "const_entries": False, "size": 4,
    }  # fmt: skip
    return ir.Table(**{**defaults, **parts})


def program(*body: ir.Stmt, tables: tuple[ir.Table, ...] = (), **states: ir.State) -> ir.Program:
    """Return a control with these statements, or a parser with these states."""
    block: ir.Parser | ir.Control
    params, local = [ir.Param("hdr", "inout", hdr)], [x, y, flag]
    if states:
        block = ir.Parser("P", params, local, list(body), states)
    else:
        block = ir.Control("I", params, local, list(body))
    package = ir.Package("V1Switch", {"ig": block})
    return ir.Program(package, list(CORE_ERRORS), list(tables), [], [], [])


def state(*body: ir.Stmt, next: str = "accept", **parts: Any) -> ir.State:
    cases = parts.get("cases", [ir.SelectCase([ir.MatchAny()], next)])
    return ir.State("start", list(body), parts.get("select", []), cases)


def problem(p: ir.Program) -> str:
    with pytest.raises(IRError) as caught:
        verify(p)
    return str(caught.value)


def binary(op: str, left: ir.Expr, right: ir.Expr, t: Any) -> ir.Binary:
    return ir.Binary(t, op, left, right)


EXPRESSIONS = [
    (ir.Const(B8, 256), "256:bit<8>: is no bit<8>"),
    (ir.Const(Bits(8, True), -129), "-129:int<8>: is no int<8>"),
    (ir.Const(BOOL, 1), "1:bool: is no bool"),
    (ir.FieldOf(B8, h, 5, "z"), "hdr.h.z: h_t has no field 5"),
    (ir.FieldOf(B8, h, 1, "v"), "hdr.h.v: field 1 of h_t is w"),
    (ir.FieldOf(B8, h, 1, "w"), "hdr.h.w: is bit<16>, not bit<8>"),
    (ir.FieldOf(B8, x, 0, "v"), "x.v: its base is bit<8>"),
    (ir.ElementOf(H, hdr, one), "hdr[1:bit<8>]: its base is headers_t, not a stack"),
    (ir.ElementOf(H, stack, flag), "hdr.s[flag]: its index is bool"),
    (ir.ElementOf(K, stack, one), "hdr.s[1:bit<8>]: is h_t, not k_t"),
    (ir.SliceOf(B8, x, 8, 1), "x[8:1]: no such bits in bit<8>"),
    (ir.SliceOf(B8, y, 8, 2), "y[8:2]: is bit<7>, not bit<8>"),
    (ir.LastIndex(B8, stack), "hdr.s.lastIndex: of h_t[2]"),
    (ir.IsValid(BOOL, x), "x.isValid(): of bit<8>"),
    (ir.Unary(BOOL, "-", flag), "-flag: - of bool is bool"),
    (binary("**", x, x, B8), "(x ** x): there is no operator **"),
    (binary("+", x, y, B8), "(x + y): bit<8> + bit<16>"),
    (binary("==", x, y, BOOL), "(x == y): bit<8> == bit<16>"),
    (binary("&&", x, flag, BOOL), "(x && flag): bit<8> && bool"),
    (binary("++", x, y, B16), "(x ++ y): is bit<24>, not bit<16>"),
    (binary("<", x, x, B8), "(x < x): is bool, not bit<8>"),
    (ir.Mux(B8, x, x, x), "(x ? x : x): bit<8> ? bit<8> : bit<8> is bit<8>"),
    (ir.Cast(BOOL, x), "(bool)x: cast of bit<8> to bool"),
    (ir.Make(H, [x, x]), "h_t{x, x}: h_t made of (bit<8>, bit<8>)"),
    (ir.Make(Stack(H, 2), []), "h_t[2]{}: makes a h_t[2]"),
    (ir.Var(B8, "other", 9), "variable other is not declared in this block"),
    (ir.NextOf(H, stack), "hdr.s.next outside a parser"),
]


@pytest.mark.parametrize("expr, wanted", EXPRESSIONS, ids=lambda p: str(p)[:40])
def test_illegal_expressions(expr: ir.Expr, wanted: str) -> None:
    call = ir.CallExtern(None, "use", [expr], ["in"])
    assert problem(program(call)) == f"ig I: {wanted}"


OUTER = ir.Block([], "outer")
STATEMENTS = [
    (ir.Assign(x, y), "assignment to x: y is bit<16>, not bit<8>"),
    (ir.Assign(binary("+", x, x, B8), x), "(x + x) is not a place"),  # type: ignore[arg-type]
    (ir.If(x, [], []), "if: x is bit<8>, not bool"),
    (ir.SwitchStmt(x, [([1, 2], []), ([2], [])], []), "switch: a value has two cases"),
    (ir.SwitchStmt(flag, [], []), "switch on a bool"),
    (ir.SetValid(x, True), "x is bit<8>, not a header"),
    (ir.Push(h, 1), "hdr.h is h_t, not a stack"),
    (ir.Leave(OUTER), "leave outer: no block of it encloses this"),
    (ir.Extract(h, ir.Const(B32, 8)), "extract hdr.h: 0 varbit fields"),
    (ir.Extract(k), "extract hdr.k: 1 varbit fields"),
    (ir.Lookahead(k), "lookahead of a k_t"),
    (ir.Advance(x), "advance: x is bit<8>, not bit<32>"),
    (ir.PacketLength(x), "packet length: x is bit<8>, not bit<32>"),
    (ir.Verify(flag, x), "verify: x is bit<8>, not bit<32>"),
    (ir.Emit(x), "emit of a bit<8>"),
    (ir.CallExtern(None, "f", [x], ["in", "in"]), "call of f: 1 arguments, 2 directions"),
    (ir.CallExtern(None, "f", [one], ["out"]), "1:bit<8> is not a place"),
    (ir.CallExtern(None, "f", [x], ["both"]), "call of f: both"),
]


@pytest.mark.parametrize("stmt, wanted", STATEMENTS, ids=lambda p: str(p)[:40])
def test_illegal_statements(stmt: ir.Stmt, wanted: str) -> None:
    nested = ir.Block([ir.If(flag, [], [ir.Loop([stmt])])])
    assert problem(program(nested)) == f"ig I: {wanted}"


def test_illegal_tables() -> None:
    t = table(
        keys=[ir.Key("x", x, "fuzzy"), ir.Key("k", k, "exact")],
        default=ir.ActionCall(0, [1]),
        entries=[
            ir.Entry([ir.MatchValue(one)], ir.ActionCall(3, [])),
            ir.Entry([ir.MatchValue(x), ir.MatchAny()], ir.ActionCall(0, [])),
        ],
    )
    assert problem(program(tables=(t, t))).splitlines()[:6] == [
        "program: two tables are named I.t",
        "table I.t: key x: kind fuzzy",
        "table I.t: key k is a k_t",
        "table I.t: default action: 1 arguments for the 0 of I.act",
        "table I.t: entry 0: there is no action 3",
        "table I.t: entry 0: 1 matches for 2 keys",
    ]
    assert problem(program(ir.ApplyTable(table()))) == ("ig I: table I.t is not the program's")
    bad = table(actions=[ir.TableAction(action(ir.Assign(x, y)))])
    assert problem(program(ir.ApplyTable(bad, hit=x), tables=(bad,))) == (
        "ig I: apply I.t: x is bit<8>, not bool\n"
        "ig I, action I.act: assignment to x: y is bit<16>, not bit<8>"
    )


def test_illegal_parsers() -> None:
    assert problem(program(start=state(next="nowhere"))) == (
        "ig P, state start: there is no state nowhere"
    )
    assert problem(program(other=state())) == (
        "ig P: there is no state start\nig P, state other: the state is named start"
    )
    cases = [ir.SelectCase([ir.MatchValue(one), ir.MatchAny()], "accept"),
             ir.SelectCase([ir.MatchRange(one, ir.Const(B16, 2))], "accept")]  # fmt: skip
    assert problem(program(start=state(select=[x], cases=cases))) == (
        "ig P, state start: 2 matches for 1 expressions\n"
        "ig P, state start: match 1:bit<8> .. 2:bit<16>: 2:bit<16> is bit<16>, not bit<8>"
    )
    assert problem(program(start=state(cases=[]))) == "ig P, state start: 0 cases without a select"


def test_core_errors_are_there() -> None:
    p = program()
    p.errors[1] = "Oops"
    assert problem(p) == "program: there must be one error PacketTooShort"


def test_every_node_has_a_text_a_rule_and_a_meaning_in_both_engines() -> None:
    from gradplane.switch.interp import expressions as interpreted
    from gradplane.switch.interp import statements as interpreted_statements
    from gradplane.switch.ir import printer, verify
    from gradplane.switch.jit import expressions as compiled
    from gradplane.switch.jit import statements as compiled_statements

    for module in (printer, verify):
        assert module._EXPRESSIONS.keys() == set(leaf_classes(ir.Expr))
    assert interpreted._LOADS.keys() == compiled._VALUES.keys() == set(leaf_classes(ir.Expr))
    for module in (printer, verify, interpreted_statements, compiled_statements):
        assert module._STATEMENTS.keys() == set(leaf_classes(ir.Stmt))


def test_a_program_as_text() -> None:
    t = table(entries=[ir.Entry([ir.MatchValue(one)], ir.ActionCall(0, []))])
    block = ir.Block([ir.Leave(OUTER)], "outer")
    body = [
        ir.If(ir.IsValid(BOOL, h), [ir.Assign(v, binary("+", v, one, B8))], [block]),
        ir.ApplyTable(t, hit=flag),
        ir.SwitchStmt(x, [([1, 2], [ir.Exit()])], [ir.Emit(stack)]),
    ]
    assert program_text(program(*body, tables=(t,))) == (
        "errors " + ", ".join(CORE_ERRORS) + "\n"
        "table I.t, size 4\n"
        "  key x x exact\n"
        "  actions I.act\n"
        "  entry (1:bit<8>) -> I.act()\n"
        "  default I.act()\n"
        "control I(inout headers_t hdr)\n"
        "  var bit<8> x\n"
        "  var bit<16> y\n"
        "  var bool flag\n"
        "  if hdr.h.isValid()\n"
        "    hdr.h.v = (hdr.h.v + 1:bit<8>)\n"
        "  else\n"
        "    block outer\n"
        "      leave outer\n"
        "  apply I.t, hit -> flag\n"
        "  switch x\n"
        "    case 1, 2\n"
        "      exit\n"
        "    default\n"
        "      emit hdr.s\n"
        "package V1Switch(ig)\n"
    )
    assert statement_text(ir.Push(stack, 2)) == "hdr.s.push_front(2)"
    assert expression_text(ir.Zero(Union("u_t", ()))) == "zero:u_t"
    assert bodies(block) == [block.body]
