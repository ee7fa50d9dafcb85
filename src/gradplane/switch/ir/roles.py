"""The roles of the fields of IR nodes, from which `walk.py` derives every walk over them.

A field whose type names a node says in its annotation what its node does with it:

    target: Writes[LValue]     value: Reads[Expr]     body: Body[list[Stmt]]

A field without a node in its type is data and has no role. `roles_of` refuses any other field.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Annotated, NamedTuple, TypeVar

T = TypeVar("T")


class Role(Enum):
    """The use that a node makes of a field."""

    READS = "Reads"
    WRITES = "Writes"
    PASSED = "Passed"
    BODY = "Body"
    DECLARES = "Declares"
    PARTS = "Parts"
    REFERS = "Refers"


Reads = Annotated[T, Role.READS]
"""Expressions that it evaluates; an expression's operands."""

Writes = Annotated[T, Role.WRITES]
"""Places that it assigns."""

Passed = Annotated[T, Role.PASSED]
"""Arguments, read or written as the field `directions` says (of a single one, `direction`)."""

Body = Annotated[T, Role.BODY]
"""Statements inside it: a list of them, or of pairs with one each."""

Declares = Annotated[T, Role.DECLARES]
"""Variables that exist because of it."""

Parts = Annotated[T, Role.PARTS]
"""Nodes that it consists of: what they read, write, declare and contain, it does."""

Refers = Annotated[T, Role.REFERS]
"""Objects that exist without it."""


class FieldRole(NamedTuple):
    """A field of a node class. types: the names in its type. paired: a body made of pairs."""

    name: str
    role: Role
    types: frozenset[str]
    paired: bool


@cache
def node_classes(module: ModuleType) -> dict[str, type]:
    """Return the node classes of a module, by name: its dataclasses whose objects are equal to
    themselves only. Others are plain values."""
    own = {name: c for name, c in vars(module).items() if isinstance(c, type) and is_dataclass(c)}
    return {
        name: c
        for name, c in own.items()
        if c.__module__ == module.__name__ and not c.__dataclass_params__.eq  # type: ignore
    }


_ROLE = re.compile(r"(\w+)\[")
_WORD = re.compile(r"\w+")
_BY_NAME = {role.value: role for role in Role}


def roles_of(node: type, names: Collection[str]) -> list[FieldRole]:
    """Return the roles of a class's fields; names: those of all that a role must be given for.

    Raises TypeError for a field of such a type without a role.
    """
    found = []
    for field in fields(node):
        text = str(field.type)
        start = _ROLE.match(text)
        role = None if start is None else _BY_NAME.get(start[1])
        types = frozenset(_WORD.findall(text))
        if role is not None:
            found.append(FieldRole(field.name, role, types, "list[tuple" in text))
        elif not types.isdisjoint(names):
            known = ", ".join(r.value for r in Role)
            what = f"{node.__name__}.{field.name} is {text}, a node, and has no role"
            raise TypeError(f"{what}: give it one of {known} (switch/ir/roles.py)")
    return found
