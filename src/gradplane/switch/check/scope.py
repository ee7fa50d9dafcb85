"""The names in scope at a place in the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gradplane._suggestions import did_you_mean
from gradplane.switch.check.checker_types import TypeVar
from gradplane.switch.syntax import ast

if TYPE_CHECKING:
    from gradplane.switch.source import Reporter


@dataclass(slots=True, eq=False)
class TypeParam(ast.Decl):
    """A type parameter as a declaration in scope."""

    var: TypeVar


@dataclass(slots=True)
class Scope:
    """One level of names; several declarations of one name are overloads."""

    parent: Scope | None = None
    names: dict[str, list[ast.Decl]] = field(default_factory=dict)
    beside: Scope | None = None  # parameters, which may not be redeclared here

    def find(self, name: str) -> list[ast.Decl]:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return []

    def visible(self) -> Iterator[str]:
        scope: Scope | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.parent


class Scopes:
    """The stack of scopes during checking; `top` is the program's."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.top = Scope()
        self.current = self.top

    @contextmanager
    def nested(self, beside: Scope | None = None, within: Scope | None = None) -> Iterator[None]:
        """Open a scope within the current one, or within `within`."""
        saved = self.current
        self.current = Scope(within or saved, beside=beside)
        try:
            yield
        finally:
            self.current = saved

    def declare(self, decl: ast.Decl) -> None:
        """Add a name. Functions and methods may share one if their parameters' names differ."""
        known = self.current.names.setdefault(decl.name, [])
        clash = next((d for d in known if not _may_overload(d, decl)), None)
        if clash is not None:
            self.reporter.error(
                decl.name_span or decl.span,
                f"{decl.name} is declared twice in this scope",
                f"the other declaration is at {clash.name_span or clash.span}",
            )
            return
        if self.current.beside is not None and decl.name in self.current.beside.names:
            parameter = self.current.beside.names[decl.name][0]
            self.reporter.error(
                decl.name_span or decl.span,
                f"{decl.name} is already declared: it is a parameter",
                f"the parameter is at {parameter.name_span or parameter.span}",
            )
        known.append(decl)

    def find(self, name: str, dot: bool = False) -> list[ast.Decl]:
        return (self.top if dot else self.current).find(name)

    def nearest(self, name: str) -> str:
        """Return a hint that names a declared name close to `name`; empty if there is none."""
        return did_you_mean(name, set(self.current.visible()))


def _may_overload(a: ast.Decl, b: ast.Decl) -> bool:
    if not (isinstance(a, ast.FunctionDecl) and isinstance(b, ast.FunctionDecl)):
        return False
    return [p.name for p in a.params] != [p.name for p in b.params]
