"""The checker: names, types, constants and rules of a whole program, all errors at once.

Annotations are checked here: their values, and the arguments of the predefined ones (chapter 20).
"""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.check.calls import CallChecker
from gradplane.switch.check.checker_types import ANY
from gradplane.switch.check.context import Context
from gradplane.switch.check.declarations import DeclarationChecker, InstanceChecker
from gradplane.switch.check.expression_text import Value, literal
from gradplane.switch.check.expressions import ExpressionChecker
from gradplane.switch.check.keysets import KeysetChecker, ParserChecker
from gradplane.switch.check.p4c_warnings import warn_p4c
from gradplane.switch.check.records import Checked
from gradplane.switch.check.routing_warnings import warn_routing
from gradplane.switch.check.statements import StatementChecker
from gradplane.switch.check.table_declarations import TableChecker
from gradplane.switch.check.type_resolution import TypeResolver
from gradplane.switch.check.variable_warnings import warn_never_valid, warn_unset, warn_unused
from gradplane.switch.ir.types import Annotation, Annotations
from gradplane.switch.source import Reporter
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk

_TEXT = frozenset({"name", "deprecated", "noWarn"})
_EMPTY = frozenset(
    {
        "hidden",
        "atomic",
        "tableonly",
        "defaultonly",
        "groupaction",
        "optional",
        "pure",
        "noSideEffects",
    }
)
_NUMBER = {"id": 1, "priority": 0}  # the smallest value allowed


class AnnotationChecker:
    def __init__(self, checker: Context) -> None:
        self.c = checker

    def values(
        self, annotations: Sequence[ast.Annotation], within_table: bool = False
    ) -> Annotations:
        """Return the annotations of one element with their values.

        `@a[...]` has the values of all its expressions, `@a(...)` those of its literals, since its
        body is free text; only @field_list may name constants. within_table: the element is a
        property of a table, where p4c takes several @name.
        """
        first: dict[str, ast.Annotation] = {}
        for a in annotations:
            if a.name in ("name", "id") and a.name in first:
                what = f"a second @{a.name} on one element"
                where = f"the other is at {first[a.name].span}"
                if within_table:
                    self.c.warn(a, "mismatch", f"{what}: the first one counts", where)
                else:
                    self.c.error(a, what, where)
            first.setdefault(a.name, a)
            self._rule(a)
        return tuple(map(self._value, annotations))

    def _value(self, a: ast.Annotation) -> Annotation:
        known = a.structured or a.name == "field_list"
        value = self._structured_value if known else literal
        values = tuple(v for v in map(value, a.exprs or []) if v is not None)
        pairs = tuple((k, v) for k, e in (a.pairs or {}).items() if (v := value(e)) is not None)
        return Annotation(a.name, values, pairs, a.body, a.structured, a.span)

    def _structured_value(self, e: ast.Expr) -> Value | None:
        t = self.c.exprs.check(e) if e.type is None else e.type
        if isinstance(e.const, int | bool | str):
            return e.const
        if t != ANY:
            self.c.error(
                e, "an annotation's value must be a number, bool or string known at compile time"
            )
            e.type = ANY
        return None

    def _rule(self, a: ast.Annotation) -> None:
        if a.pragma:
            return
        found = [literal(e) for e in a.exprs or []]
        if a.name in _TEXT:
            named = [e for e in a.exprs or [] if isinstance(e, ast.Name)]
            if len(found) != 1 or named or not isinstance(found[0], str):
                self.c.error(a, f"@{a.name} takes one string")
            elif a.name == "name" and not found[0]:
                self.c.error(a, "@name cannot be empty")
        elif a.name == "field_list":
            self._field_list(a)
        elif a.name in _EMPTY and (a.body or a.structured):
            self.c.error(a, f"@{a.name} takes no value")
        elif a.name in _NUMBER:
            least, is_number = _NUMBER[a.name], len(found) == 1 and type(found[0]) is int
            if not is_number or int(found[0] or 0) < least:
                self.c.error(a, f"@{a.name} takes one number, {least} or more")

    def _field_list(self, a: ast.Annotation) -> None:
        """Check v1model's @field_list: numbers that clone_preserving_field_list refers to."""
        for e in a.exprs or []:
            value = self._structured_value(e)
            if value is not None and not (type(value) is int and 0 <= value < 256):
                self.c.error(e, "the number of a field list must be 0 to 255")
        if not a.exprs:
            self.c.error(a, "@field_list takes one number or more")


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
    for warn in (warn_unset, warn_never_valid, warn_unused, warn_routing, warn_p4c):
        warn(checker, program)
    return Checked(program, checker.errors, checker.match_kinds, checker.nodes)
