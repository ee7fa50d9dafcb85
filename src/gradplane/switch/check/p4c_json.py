"""Constructs that p4c compiles to JSON which BMv2 refuses, crashes on, or runs otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from gradplane.switch.check.arguments import CallInfo
from gradplane.switch.check.ast_walk import walk
from gradplane.switch.check.p4c_rules import Found, Rules
from gradplane.switch.ir.types import Header, Stack, Struct, Union
from gradplane.switch.syntax import ast

MISREAD = Rules()


@MISREAD.at(ast.Member)
def _struct_chosen(field: ast.Member) -> Iterator[Found]:
    if isinstance(field.base, ast.Ternary) and isinstance(field.base.type, Struct):
        text = "p4c's JSON for a field of a struct chosen by ?: crashes BMv2"
        yield field, text, "choose between the fields"


@MISREAD.at_calls
def _validity(call: ast.Call, info: CallInfo) -> Iterator[Found]:
    """isValid() of an element of a stack."""
    element = info.base
    if (info.kind, info.name) != ("builtin", "isValid") or not _is_element(element):
        return
    if isinstance(element.type, Union):
        text = "p4c's JSON for isValid() of a union in a stack crashes BMv2"
        yield call, text, "call isValid() of its headers"
    elif element.index.const is None:
        text = "BMv2 refuses p4c's JSON for isValid() of an element with a run-time index"
        yield call, text, "test each index in turn"


def _is_element(e: object) -> TypeGuard[ast.Index]:
    return isinstance(e, ast.Index) and isinstance(e.base.type, Stack)


@MISREAD.at(ast.Select)
def _last_index(select: ast.Select) -> Iterator[Found]:
    for e in select.exprs:
        if isinstance(e, ast.Member) and e.name == "lastIndex" and isinstance(e.base.type, Stack):
            text = "p4c's JSON for a select on lastIndex crashes BMv2"
            yield e, text, "cast it: (bit<8>) ..."


@MISREAD.at(ast.ActionDecl)
def _index_in_action_data(action: ast.ActionDecl) -> Iterator[Found]:
    data = [param for param in action.params if not param.direction]
    for node in walk(action.body):
        if _is_element(node) and isinstance(node.index, ast.Name) and node.index.decl in data:
            text = "p4c's JSON for action data as the index of a stack crashes BMv2"
            yield node, text, "copy it to a field of the metadata first"


@MISREAD.at(ast.Assign)
def _list_that_reads(assign: ast.Assign) -> Iterator[Found]:
    """A list with fields of the header that it is assigned to."""
    if assign.op != "=" or not isinstance(assign.target.type, Header):
        return
    value = assign.value.operand if isinstance(assign.value, ast.Cast) else assign.value
    literal = isinstance(value, ast.ListExpr | ast.StructExpr)
    if literal and any(_same(node, assign.target) for node in walk(value)):
        text = "p4c's JSON for a list that reads the header it is assigned to makes it invalid"
        yield assign, text, "assign its fields"


def _same(a: ast.Node, b: ast.Node) -> bool:
    """Return whether two expressions certainly are the same place."""
    match a, b:
        case ast.Name(), ast.Name():
            return a.decl is b.decl
        case ast.Member(), ast.Member():
            return a.name == b.name and _same(a.base, b.base)
        case ast.Index(), ast.Index():
            known = a.index.const is not None and a.index.const == b.index.const
            return known and _same(a.base, b.base)
    return False
