"""Dispatch on the class of a node, by tables that are checked for completeness when they are made.

    _STATEMENTS = by_class(ir.Stmt, {ir.Assign: assign, (ir.Push, ir.Pop): shift, ...})
    _STATEMENTS[type(stmt)](stmt)

A class of nodes that a table lacks is an error as soon as the module with the table is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from gradplane.switch.ir.roles import node_classes

B = TypeVar("B")
H = TypeVar("H")


def leaf_classes(base: type[B]) -> tuple[type[B], ...]:
    """Return the kinds of a node: the classes of its module below `base` that have none below."""
    known = node_classes(sys.modules[base.__module__]).values()
    below = [found for found in known if issubclass(found, base)]
    return tuple(c for c in below if not any(d is not c and issubclass(d, c) for d in below))


def by_class(
    base: type[B], handlers: Mapping[Any, H], without: Collection[type] = ()
) -> dict[type[B], H]:
    """Return the handler for each kind of node below `base`.

    handlers: by class, or by several; that of a class is for all below it that have none of their
    own. without: the kinds that never come here. Raises TypeError unless each kind is in one of
    both, and nothing else is.
    """
    given: dict[type, H] = {}
    for key, handler in handlers.items():
        for one in key if isinstance(key, tuple) else (key,):
            _refuse(one in given, f"{one.__name__} has two handlers")
            given[one] = handler
    found: dict[type[B], H] = {}
    used: set[type] = set()
    for kind in leaf_classes(base):
        source = next((c for c in kind.__mro__ if c in given), None)
        what = f"{kind.__name__}, a {base.__name__}, has"
        _refuse(source is None and kind not in without, f"{what} no handler")
        _refuse(source is kind and kind in without, f"{what} a handler, and never comes here")
        if source is not None and kind not in without:
            found[kind] = given[source]
            used.add(source)
    for one in given.keys() - used:
        _refuse(True, f"{one.__name__} stands for no kind of {base.__name__}")
    return found


def _refuse(wrong: bool, problem: str) -> None:
    if wrong:
        raise TypeError(problem)
