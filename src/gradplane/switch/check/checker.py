"""The checker: names, types, constants and rules of a whole program, all errors at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

from gradplane.switch.check.annotations import AnnotationChecker, muted
from gradplane.switch.check.ast_walk import walk
from gradplane.switch.check.calls import CallChecker
from gradplane.switch.check.checker_types import ANY
from gradplane.switch.check.declarations import DeclarationChecker
from gradplane.switch.check.expressions import ExpressionChecker
from gradplane.switch.check.instances import InstanceChecker
from gradplane.switch.check.invalid_header_warnings import warn_never_valid
from gradplane.switch.check.keysets import KeysetChecker
from gradplane.switch.check.p4c_warnings import warn_p4c
from gradplane.switch.check.parsers import ParserChecker
from gradplane.switch.check.scope import Scopes
from gradplane.switch.check.statements import StatementChecker
from gradplane.switch.check.table_declarations import TableChecker
from gradplane.switch.check.type_resolution import TypeResolver
from gradplane.switch.check.uninitialized_warnings import warn_unset
from gradplane.switch.check.unused_warnings import warn_unused
from gradplane.switch.ir.types import Annotations
from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax import ast


@dataclass(frozen=True, slots=True)
class Checked:
    """A program that passed all checks; its tree is annotated in place."""

    program: ast.Program
    errors: list[str]  # members of `error`, in order of declaration
    checker: Checker


class Checker:
    """The state that the parts of the checker share.

    `context` is the kind of place being checked: "package" (the top level), "parser", "control",
    "action", "function", "table" or "key".
    """

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.scopes = Scopes(reporter)
        self.context = "package"
        self.errors: list[str] = []
        self.match_kinds: list[str] = []
        self.silent: frozenset[str] = frozenset()  # kinds of warnings silenced by @noWarn
        # Of a checked program, by declaration; without those of _LEAVES.
        self.nodes: dict[ast.Decl, list[ast.Node]] = {}
        self.known_params: set[ast.Param] = set()  # without direction: known at load time
        self.notes = AnnotationChecker(self)
        self.types = TypeResolver(self)
        self.exprs = ExpressionChecker(self)
        self.calls = CallChecker(self)
        self.stmts = StatementChecker(self)
        self.keysets = KeysetChecker(self)
        self.tables = TableChecker(self)
        self.parsers = ParserChecker(self)
        self.instances = InstanceChecker(self)
        self.decls = DeclarationChecker(self)

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

    def all_nodes(self) -> Iterator[ast.Node]:
        """Iterate over the nodes of a checked program, parents first, without literals and table
        entries themselves."""
        return chain.from_iterable(self.nodes.values())

    def annotations(self, annotations: Sequence[ast.Annotation]) -> Annotations:
        return self.notes.values(annotations)


# No pass looks for these, and they are most of the nodes of large constant tables.
_LEAVES = frozenset({ast.IntLit, ast.BoolLit, ast.StringLit, ast.TableEntry, ast.Argument})


def check(program: ast.Program, reporter: Reporter) -> Checked:
    """Check a program; raises CompileError with all its errors."""
    checker = Checker(reporter)
    for decl in program.declarations:
        checker.decls.top(decl)
    reporter.stop_on_errors()
    checker.nodes = {
        decl: [node for node in walk(decl) if type(node) not in _LEAVES]
        for decl in program.declarations
    }
    for warn in (warn_unset, warn_never_valid, warn_unused, warn_p4c):
        warn(checker, program)
    return Checked(program, checker.errors, checker)
