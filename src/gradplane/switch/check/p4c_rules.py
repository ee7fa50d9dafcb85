"""Rules that look for constructs which p4c refuses, or reads otherwise: a function for each.

A module of rules has one `Rules` or more, with which its functions are registered for the kind of
node that they look at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from gradplane.switch.check.arguments import CallInfo
from gradplane.switch.check.checker_types import ExternType
from gradplane.switch.syntax import ast

Found = tuple[ast.Node, str, str]  # place, message, hint
CallRule = Callable[[ast.Call, CallInfo], Iterator[Found]]
_Node = TypeVar("_Node", bound=ast.Node)
_Rule = Callable[[_Node], Iterator[Found]]


class Rules:
    """Functions from a node to what is wrong with it, by the type of the node."""

    def __init__(self) -> None:
        self._rules: dict[type[ast.Node], list[_Rule[Any]]] = defaultdict(list)

    def at(self, kind: type[_Node]) -> Callable[[_Rule[_Node]], _Rule[_Node]]:
        """Return a decorator for a function of the nodes of a type."""

        def register(rule: _Rule[_Node]) -> _Rule[_Node]:
            self._rules[kind].append(rule)
            return rule

        return register

    def at_calls(self, rule: CallRule) -> CallRule:
        """Decorate a function of calls, which is given their meaning as well."""

        def checked(call: ast.Call) -> Iterator[Found]:
            if isinstance(call.info, CallInfo):
                yield from rule(call, call.info)

        self._rules[ast.Call].append(checked)
        return rule

    def find(self, nodes: Sequence[ast.Node]) -> Iterator[Found]:
        """Yield what is wrong with the nodes of a declaration, in their order."""
        for node in nodes:
            for rule in self._rules.get(type(node), ()):
                yield from rule(node)


def instantiates(node: ast.Node, extern: str) -> bool:
    """Return whether a node declares an instance of an extern."""
    t = node.type if isinstance(node, ast.Instantiation) else None
    return isinstance(t, ExternType) and t.name == extern


def called_function(node: ast.Node) -> ast.FunctionDecl | None:
    """Return the P4 function that a node calls; None if it calls none."""
    info = node.info if isinstance(node, ast.Call) else None
    decl = info.decl if isinstance(info, CallInfo) and info.kind == "function" else None
    return decl if isinstance(decl, ast.FunctionDecl) else None
