"""The results of checking: what is said on the tree's nodes, beside types and constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from gradplane.switch.ir.types import Type

if TYPE_CHECKING:
    from gradplane.switch.check.checker_types import Signature
    from gradplane.switch.syntax import ast

MAX_BITS = 1 << 16  # limit on an int's bits, to bound the work at compile time
MAX_PRIORITY = (1 << 31) - 1  # an int32 in P4Runtime
MAX_SIZE = (1 << 31) - 1  # of a table or value set: what P4Info and BMv2's JSON can hold


@dataclass(frozen=True, slots=True)
class Checked:
    """A program that passed all checks; its tree is annotated in place.

    errors, match_kinds: the members of `error` and `match_kind`, in order of declaration. nodes: of
    each declaration, parents first, without literals and table entries themselves.
    """

    program: ast.Program
    errors: list[str]
    match_kinds: list[str]
    nodes: Mapping[ast.Decl, Sequence[ast.Node]]

    def all_nodes(self) -> Iterator[ast.Node]:
        """Iterate over the nodes of the program."""
        return chain.from_iterable(self.nodes.values())


@dataclass(frozen=True, slots=True)
class EnumValue:
    """The compile-time value of a member of an enum or of `error`."""

    type: Type
    name: str


@dataclass(slots=True, eq=False)
class CallInfo:
    """The meaning of a call.

    kind: "function" (a P4 function with a body), "extern" (an extern function), "method" (of an
    extern instance), "action", "table" (apply), "block" (apply of a parser or control), "builtin"
    (isValid, push_front, ...) or "constructor". `args` has an expression for each parameter of
    `signature`, None if the argument was left out or is `_`; `order` lists the positions of the
    parameters in the order in which their arguments are evaluated.
    """

    kind: str
    name: str
    signature: Signature
    args: list[ast.Expr | None]
    decl: ast.Decl | None = None
    base: ast.Expr | None = None  # the object whose method is called
    type_args: list[Type] = field(default_factory=list)
    constructed: Type | None = None  # the type that is applied directly
    order: list[int] = field(default_factory=list)


@dataclass(slots=True)
class ActionUse:
    """An action named in a table.

    `bound` are the arguments of its parameters with a direction (in the action list), `data` those
    of its directionless ones (default_action, entries).
    """

    decl: ast.ActionDecl
    bound: list[ast.Expr]
    data: list[ast.Expr]
