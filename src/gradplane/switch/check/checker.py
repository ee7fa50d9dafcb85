"""The checker: names, types, constants and rules of a whole program, all errors at once."""

from __future__ import annotations

from gradplane.switch.check.annotations import AnnotationChecker
from gradplane.switch.check.calls import CallChecker
from gradplane.switch.check.context import Context
from gradplane.switch.check.declarations import DeclarationChecker, InstanceChecker
from gradplane.switch.check.expressions import ExpressionChecker
from gradplane.switch.check.keysets import KeysetChecker, ParserChecker
from gradplane.switch.check.p4c_warnings import warn_p4c
from gradplane.switch.check.records import Checked
from gradplane.switch.check.statements import StatementChecker
from gradplane.switch.check.table_declarations import TableChecker
from gradplane.switch.check.type_resolution import TypeResolver
from gradplane.switch.check.variable_warnings import warn_never_valid, warn_unset, warn_unused
from gradplane.switch.source import Reporter
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk


class Checker(Context):
    """The checker with all its parts."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(reporter)
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
    return Checked(program, checker.errors, checker.match_kinds, checker.nodes)
