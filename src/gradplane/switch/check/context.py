"""The state that the parts of the checker share, and what they ask each other for.

Each part is a class with a method or two for one kind of thing; `checker.py` makes them. They know
each other by the protocols here only.

Beside it, what all parts use: the names in scope at a place in the program (`Scopes`), and the rule
of l-values, which are the expressions that can be assigned to (specification, section 6.7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from gradplane._suggestions import did_you_mean
from gradplane.switch.check import checker_types as types
from gradplane.switch.check.checker_types import ANY
from gradplane.switch.check.expression_text import muted
from gradplane.switch.ir.types import Annotations, Array, Fields, Stack, Tuple, Type
from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax import ast


@dataclass(slots=True, eq=False)
class TypeParam(ast.Decl):
    """A type parameter as a declaration in scope."""

    var: types.TypeVar


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


N = TypeVar("N", contravariant=True)
Callee = ast.FunctionDecl | ast.ActionDecl
Block = ast.ParserDecl | ast.ControlDecl


class Check(Protocol[N]):
    """The checks of one kind of node."""

    def check(self, node: N, /) -> None: ...


class Notes(Protocol):
    """Values of annotations."""

    def values(
        self, annotations: Sequence[ast.Annotation], within_table: bool = False
    ) -> Annotations: ...


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

    def annotations(self, node: ast.Annotated) -> Annotations:
        """Check the annotations of a node, and give it their values."""
        node.notes = self.notes.values(node.annotations, isinstance(node, ast.TableProperty))
        return node.notes


def is_lvalue(e: ast.Expr) -> bool:
    """Return whether a checked expression names storage that may be written here."""
    match e:
        case ast.Name(decl=ast.VarDecl()):
            return True
        case ast.Name(decl=ast.Param(direction=direction)):
            return direction in ("out", "inout")
        case ast.Member(base=base, name=name):
            if isinstance(base.type, Stack):
                return name == "next" and is_lvalue(base)
            return isinstance(base.type, Fields) and is_lvalue(base)
        case ast.Index(base=base):
            return isinstance(base.type, Array) and is_lvalue(base)
        case ast.Slice(base=base):
            return is_lvalue(base)
    return False


def require_lvalue(c: Context, e: ast.Expr, what: str) -> bool:
    """Report an error if `e` cannot be written."""
    if e.type == ANY or is_lvalue(e):
        return True
    c.error(e, f"{what} must be something that can be assigned to", _reason(e))
    return False


def _reason(e: ast.Expr) -> str:
    if _through_last(e):
        return "stack.last can only be read"
    match root(e):
        case ast.Name(decl=ast.ConstDecl(name=name)):
            return f"{name} is a constant"
        case ast.Name(decl=ast.Param(name=name, direction="in" | "" as direction)):
            how = f"of direction {direction}" if direction else "without direction"
            return f"{name} is a parameter {how}"
    if isinstance(e, ast.Index) and isinstance(e.base.type, Tuple):
        return "the elements of a tuple cannot be changed one by one"
    return ""


def _through_last(e: ast.Expr) -> bool:
    while isinstance(e, ast.Member | ast.Index | ast.Slice):
        if isinstance(e, ast.Member) and e.name == "last" and isinstance(e.base.type, Stack):
            return True
        e = e.base
    return False


def root(e: ast.Expr) -> ast.Expr:
    """Return the expression that members, indexes and slices start from."""
    while isinstance(e, ast.Member | ast.Index | ast.Slice):
        e = e.base
    return e
