"""The state that the parts of the checker share, and what they ask each other for.

Each part is a class with a method or two for one kind of thing; `checker.py` makes them. They know
each other by the protocols here only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

from gradplane.switch.check import checker_types as types
from gradplane.switch.check.checker_types import ANY
from gradplane.switch.check.expression_text import muted
from gradplane.switch.check.scope import Scope, Scopes
from gradplane.switch.ir.types import Annotations, Type
from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax import ast

N = TypeVar("N", contravariant=True)
Callee = ast.FunctionDecl | ast.ActionDecl
Block = ast.ParserDecl | ast.ControlDecl


class Check(Protocol[N]):
    """The checks of one kind of node."""

    def check(self, node: N, /) -> None: ...


class Notes(Protocol):
    """Values of annotations."""

    def values(self, annotations: Sequence[ast.Annotation]) -> Annotations: ...


class Types(Protocol):
    """Types as written, and those that declarations make."""

    def resolve(self, ref: ast.TypeRef) -> Type: ...
    def value_type(self, ref: ast.TypeRef) -> Type: ...
    def declared(self, decl: ast.Decl) -> Type | None: ...
    def param(self, p: ast.Param) -> types.ParamType: ...
    def params(self, decl: ast.Decl) -> tuple[types.ParamType, ...]: ...
    def variables(self, decl: ast.Decl) -> tuple[types.TypeVar, ...]: ...
    def declare_variables(self, decl: ast.Decl) -> None: ...


class Expressions(Protocol):
    """Types and compile-time values of expressions."""

    def check(self, e: ast.Expr) -> Type: ...
    def check_as(self, e: ast.Expr, target: Type, what: str) -> bool: ...
    def value(self, e: ast.Expr) -> Type: ...
    def require_value(self, e: ast.Expr) -> None: ...
    def coerce(self, e: ast.Expr, target: Type, what: str) -> bool: ...
    def common(self, a: ast.Expr, b: ast.Expr) -> Type | None: ...


class Calls(Protocol):
    """Calls, constructors and signatures."""

    def check(self, e: ast.Call) -> Type: ...
    def construct(self, e: ast.Call, t: Type) -> Type: ...
    def signature(self, decl: Callee) -> types.Signature: ...


class Statements(Protocol):
    """Statements."""

    def body(self, statements: Sequence[ast.Stmt]) -> None: ...
    def returning(self, result: Type) -> AbstractContextManager[None]: ...


class Keysets(Protocol):
    """Keysets."""

    def select(self, keyset: ast.Expr, types: Sequence[Type]) -> None: ...
    def entry(self, keyset: ast.Expr, types: Sequence[Type], kinds: Sequence[str]) -> None: ...


class Declarations(Protocol):
    """Declarations."""

    def top(self, decl: ast.Decl) -> None: ...
    def local(self, decl: ast.Decl) -> None: ...
    def locals(self, members: list[ast.Decl], params: Scope) -> None: ...
    def function(self, decl: ast.FunctionDecl) -> None: ...
    def block_params(self, decl: Block) -> None: ...


class Context:
    """The state of the checker, and its parts.

    `context` is the kind of place being checked: "package" (the top level), "parser", "control",
    "action", "function", "table" or "key".
    """

    notes: Notes
    types: Types
    exprs: Expressions
    calls: Calls
    stmts: Statements
    keysets: Keysets
    decls: Declarations
    tables: Check[ast.TableDecl]
    parsers: Check[ast.ParserDecl]
    instances: Check[ast.Instantiation]

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.scopes = Scopes(reporter)
        self.context = "package"
        self.errors: list[str] = []
        self.match_kinds: list[str] = []
        self.silent: frozenset[str] = frozenset()  # kinds of warnings silenced by @noWarn
        # Of a checked program, by declaration; without those of checker._LEAVES.
        self.nodes: dict[ast.Decl, list[ast.Node]] = {}
        self.known_params: set[ast.Param] = set()  # without direction: known at load time

    def error(self, node: ast.Node, message: str, hint: str = "") -> None:
        self.reporter.error(node.span, message, hint)

    def warn(self, node: ast.Node, kind: str, message: str, hint: str = "") -> None:
        """Report a warning, unless @noWarn(kind) on an enclosing declaration silences its kind."""
        self.warn_at(node.span, kind, message, hint)

    def warn_at(self, span: Span, kind: str, message: str, hint: str = "") -> None:
        if kind not in self.silent:
            self.reporter.warning(span, message, hint, kind)

    @contextmanager
    def quiet(self, annotations: Sequence[ast.Annotation]) -> Iterator[None]:
        """Silence the kinds of warnings that a declaration's @noWarn names, in this context."""
        saved = self.silent
        self.silent = saved | muted(annotations)
        try:
            yield
        finally:
            self.silent = saved

    @contextmanager
    def inside(self, context: str) -> Iterator[None]:
        saved, self.context = self.context, context
        try:
            yield
        finally:
            self.context = saved

    # -- compile-time values -------------------------------------------------------------------

    def constant_int(self, e: ast.Expr, what: str, checked: bool = False) -> int | None:
        """Return the compile-time number of an expression; report an error if there is none."""
        if not checked and e.type is None:
            self.exprs.check(e)
        if isinstance(e.const, int) and not isinstance(e.const, bool):
            return e.const
        if e.type != ANY:
            self.error(e, f"{what} must be a number known at compile time")
        return None

    def compile_time(self, e: ast.Expr) -> bool:
        """Return whether a value is known when the program is loaded.

        Such are constants, constructor parameters, instances, and expressions of those.
        """
        if e.const is not None or e.type == ANY:
            return True
        match e:
            case ast.Name(decl=ast.Param() as p):
                return p in self.known_params
            case ast.Name(decl=decl):
                return isinstance(decl, ast.ConstDecl | ast.Instantiation | ast.EnumDecl)
            case ast.ListExpr(elements=elements):
                return all(map(self.compile_time, elements))
            case ast.StructExpr(fields=fields):
                return all(self.compile_time(v) for _, v in fields)
            case ast.Call(info=info):
                return info is not None and (
                    info.kind == "constructor" or info.name == "static_assert"
                )
            case ast.Cast(operand=operand) | ast.Unary(operand=operand):
                return self.compile_time(operand)
            case ast.Member(base=operand) | ast.Slice(base=operand):
                return self.compile_time(operand)
            case ast.Binary(left=left, right=right):
                return self.compile_time(left) and self.compile_time(right)
            case ast.Ternary(cond=cond, then=then, other=other):
                return all(map(self.compile_time, (cond, then, other)))
            case ast.Index(base=base, index=index):
                return self.compile_time(base) and self.compile_time(index)
        return isinstance(e, ast.Dots | ast.InvalidHeader)

    def annotations(self, annotations: Sequence[ast.Annotation]) -> Annotations:
        return self.notes.values(annotations)
