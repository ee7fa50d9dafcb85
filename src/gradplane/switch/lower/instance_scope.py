"""The meaning of names in one instance of a block.

A declaration that is instantiated twice has two different variables, tables and externs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gradplane.switch.check.checker_types import TypeVar, substitute
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Annotation, Type, given_name
from gradplane.switch.syntax import ast


class Packet:
    """The binding of packet_in and packet_out parameters: a block has only one of them."""


PACKET = Packet()


@dataclass(slots=True, eq=False)
class BlockInstance:
    """A parser or control instance; `env` binds its constructor parameters."""

    decl: ast.ParserDecl | ast.ControlDecl
    name: str
    env: Env
    sites: int = 1  # number of places that apply it
    elaborated: Env | None = None  # bindings of locals and parameters, from the first apply on


@dataclass(slots=True, eq=False)
class ActionInstance:
    """An action in one control instance; its IR is made where a table uses it."""

    decl: ast.ActionDecl
    name: str
    env: Env
    made: ir.Action | None = None


@dataclass(slots=True, eq=False)
class AbstractMethod:
    """An abstract method that an instance's initializer implements, in the instance's scope."""

    decl: ast.FunctionDecl
    env: Env


@dataclass(slots=True, eq=False)
class PackageInstance:
    """A package that is an argument of another package."""

    package: ir.Package


Binding = (
    ir.Expr
    | ir.ExternInstance
    | ir.Table
    | ir.ValueSet
    | BlockInstance
    | ActionInstance
    | PackageInstance
    | Packet
)


@dataclass(slots=True, eq=False)
class Env:
    """Bindings of declarations; `path` is the control-plane name of the enclosing block."""

    parent: Env | None
    path: str = ""
    types: Mapping[TypeVar, Type] = field(default_factory=dict)
    bindings: dict[ast.Decl, Binding] = field(default_factory=dict)

    def find(self, decl: ast.Decl) -> Binding | None:
        env: Env | None = self
        while env is not None:
            if decl in env.bindings:
                return env.bindings[decl]
            env = env.parent
        return None

    def block(self) -> Env:
        """Return the environment of the whole enclosing block."""
        env = self
        while env.parent is not None and env.parent.path == env.path:
            env = env.parent
        return env

    def bind(self, decl: ast.Decl, value: Binding) -> None:
        self.bindings[decl] = value

    def resolved(self, t: Type) -> Type:
        """Return a type of the checked tree with the type arguments of this place."""
        return substitute(t, self.types) if self.types else t

    def inner(self, types: Mapping[TypeVar, Type] | None = None) -> Env:
        return Env(self, self.path, types if types is not None else self.types)


def control_plane_name(path: str, name: str, annotations: tuple[Annotation, ...]) -> str:
    """Return the dotted name of an object.

    @name replaces the last part, or everything if it starts with a dot.
    """
    name = given_name(annotations) or name
    if name.startswith("."):
        return name[1:]
    return f"{path}.{name}" if path else name
