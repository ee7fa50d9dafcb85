"""Check statements (specification, chapter 12)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gradplane.switch.check.checker_types import (
    ANY,
    ActionRun,
    AnyType,
    ExternType,
    ListLiteral,
    compile_time_only,
)
from gradplane.switch.check.context import Context, require_lvalue
from gradplane.switch.check.expression_text import describe
from gradplane.switch.check.keysets import matched
from gradplane.switch.check.records import EnumValue
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.types import (
    BOOL,
    INTEGER,
    MATCH_KIND,
    STRING,
    VOID,
    Array,
    Bits,
    Enum,
    Error,
    List,
    SerEnum,
    Type,
)
from gradplane.switch.syntax import ast


class StatementChecker:
    def __init__(self, checker: Context) -> None:
        self.c = checker
        self._result: Type = VOID  # the result type of the function being checked
        self._loops = 0

    def check(self, s: ast.Stmt) -> None:
        _STATEMENTS[type(s)](self, s)

    def body(self, statements: Sequence[ast.Stmt]) -> None:
        for s in statements:
            self.check(s)
        for before, s in itertools.pairwise(statements):
            if _leaves(before):
                self.c.warn(s, "unreachable", "this is never executed")
                break

    @contextmanager
    def returning(self, result: Type) -> Iterator[None]:
        """Let `return` take a value of this type, with no loop open, in this context."""
        saved = self._result, self._loops
        self._result, self._loops = result, 0
        try:
            yield
        finally:
            self._result, self._loops = saved

    # -- plain ---------------------------------------------------------------------------------

    def _empty(self, s: ast.Empty) -> None:
        pass

    def _block(self, s: ast.Block) -> None:
        self.c.annotations(s)
        with self.c.scopes.nested():
            self.body(s.body)

    def _declstmt(self, s: ast.DeclStmt) -> None:
        self.c.decls.local(s.decl)
        if isinstance(s.decl, ast.Instantiation):
            what = f"{s.decl.name} cannot be instantiated among statements"
            self.c.error(s.decl, what, f"declare it before them, in the {self.c.context}")

    def _assign(self, s: ast.Assign) -> None:
        if isinstance(self.c.exprs.check(s.target), ExternType):
            self.c.error(s.target, f"{describe(s.target)} is an extern object: it is not assigned")
            return
        self.c.exprs.require_value(s.target)
        target = s.target.type or ANY
        require_lvalue(self.c, s.target, "the left side")
        if s.op == "=":
            self.c.exprs.value(s.value)
            self.c.exprs.coerce(s.value, target, "the value assigned")
            return
        combined = ast.Binary(s.op[:-1], s.target, s.value, span=s.span)
        self.c.exprs.check(combined)
        self.c.exprs.coerce(combined, target, f"the result of {s.op[:-1]}")

    def _callstmt(self, s: ast.CallStmt) -> None:
        self.c.exprs.check(s.call)

    # -- branches ------------------------------------------------------------------------------

    def _if(self, s: ast.If) -> None:
        self._condition(s.cond, "if")
        for branch in (s.then, s.other):
            if branch is not None:
                with self.c.scopes.nested():
                    self.check(branch)

    def _condition(self, e: ast.Expr, what: str) -> None:
        t = self.c.exprs.value(e)
        if t not in (BOOL, ANY):
            hint = "compare it: ... != 0" if isinstance(t, Bits) else ""
            self.c.error(e, f"the condition of {what} must be bool, not {t}", hint)

    def _switchstmt(self, s: ast.SwitchStmt) -> None:
        subject = self.c.exprs.check(s.subject)
        if not isinstance(subject, ActionRun):
            self.c.exprs.require_value(s.subject)
            subject = s.subject.type or ANY
        if isinstance(subject, ActionRun):
            self._action_labels(s, subject.decl)
        elif isinstance(subject, Bits | SerEnum | Enum | Error) or subject == BOOL:
            self._value_labels(s, subject)
        elif subject != ANY:
            self.c.error(
                s.subject,
                f"switch cannot be on {subject}",
                "it takes t.apply().action_run, or a bit, int, bool or enum value",
            )
        self._defaults(s)
        for case in s.cases:
            if case.body is not None:
                self._block(case.body)

    def _defaults(self, s: ast.SwitchStmt) -> None:
        defaults = [c for c in s.cases if isinstance(c.label, ast.DefaultKey)]
        for extra in defaults[1:]:
            self.c.error(extra, "switch has a second default")
        if defaults and defaults[0] is not s.cases[-1]:
            self.c.error(defaults[0], "default must be the last label of a switch")

    def _action_labels(self, s: ast.SwitchStmt, table: ast.TableDecl) -> None:
        actions = {a.name for a in table.actions}
        if table.default_action is None:
            actions.add("NoAction")  # the implicit default action
        seen: set[str] = set()
        for case in s.cases:
            if isinstance(case.label, ast.DefaultKey):
                continue
            if not isinstance(case.label, ast.Name) or case.label.name not in actions:
                known = ", ".join(sorted(actions))
                self.c.error(
                    case.label,
                    f"{describe(case.label)} is not an action of table {table.name}",
                    f"it has {known}",
                )
            elif case.label.name in seen:
                self.c.error(case.label, f"label {case.label.name} occurs twice")
            else:
                seen.add(case.label.name)

    def _value_labels(self, s: ast.SwitchStmt, subject: Type) -> None:
        seen: list[object] = []
        for case in s.cases:
            if isinstance(case.label, ast.DefaultKey):
                continue
            self.c.exprs.value(case.label)
            self.c.exprs.coerce(case.label, matched(case.label, subject), "a label")
            value = case.label.const
            if value is None and case.label.type != ANY:
                self.c.error(case.label, "a label must be known at compile time")
            elif value is not None and value in seen:
                text = value.name if isinstance(value, EnumValue) else value
                self.c.error(case.label, f"label {text} occurs twice")
            seen.append(value)

    # -- loops ---------------------------------------------------------------------------------

    @contextmanager
    def _loop(self) -> Iterator[None]:
        self._loops += 1
        with self.c.scopes.nested():
            yield
        self._loops -= 1

    def _for(self, s: ast.For) -> None:
        with self._loop():
            self.body(s.init)
            self._condition(s.cond, "for")
            self.body(s.update)
            self.check(s.body)

    def _forin(self, s: ast.ForIn) -> None:
        with self._loop():
            element = self._elements(s.collection)
            self.c.decls.local(s.var)
            self._element_fits(s, s.var.type or ANY, element)
            self.check(s.body)

    def _elements(self, e: ast.Expr) -> Type:
        if isinstance(e, ast.Range):
            self.c.exprs.value(e.low)
            self.c.exprs.value(e.high)
            return INTEGER
        t = self.c.exprs.value(e)
        match t:
            case ListLiteral():
                return ANY  # the elements are converted to the variable's type
            case Array(element=element) | List(element=element):
                return element
        if t != ANY:
            self.c.error(
                e, f"for cannot iterate over {t}", "it takes a range a..b, an array or a list"
            )
        return ANY

    def _element_fits(self, s: ast.ForIn, wanted: Type, element: Type) -> None:
        if isinstance(s.collection, ast.Range):
            if not isinstance(wanted, Bits | SerEnum | AnyType):
                self.c.error(s.collection, f"a range has numbers, not {wanted}")
                return
            for bound in (s.collection.low, s.collection.high):
                self.c.exprs.coerce(bound, wanted, "a bound of the range")
        elif isinstance(s.collection, ast.ListExpr):
            self.c.exprs.coerce(s.collection, List(wanted), "the list")
        elif element not in (wanted, ANY) and wanted != ANY:
            self.c.error(s, f"the elements are {element}, the loop's variable is {wanted}")

    def _break(self, s: ast.Break) -> None:
        if not self._loops:
            self.c.error(s, "break outside a loop")

    def _continue(self, s: ast.Continue) -> None:
        if not self._loops:
            self.c.error(s, "continue outside a loop")

    # -- leaving -------------------------------------------------------------------------------

    def _return(self, s: ast.Return) -> None:
        if self.c.context == "parser":
            self.c.error(s, "a parser has no return", "use `transition accept;`")
        elif s.value is None:
            if self._result not in (VOID, ANY):
                self.c.error(s, f"return needs a value of type {self._result}")
        elif self._result == VOID:
            self.c.exprs.check(s.value)
            self.c.error(s, f"a value cannot be returned from a {self.c.context} here")
        else:
            self.c.exprs.value(s.value)
            self.c.exprs.coerce(s.value, self._result, "the value returned")

    def _exit(self, s: ast.Exit) -> None:
        if self.c.context in ("parser", "function"):
            self.c.error(s, f"exit cannot be used in a {self.c.context}")


_STATEMENTS: dict[type[ast.Stmt], Callable[..., None]] = by_class(
    ast.Stmt,
    {
        ast.Empty: StatementChecker._empty,
        ast.Block: StatementChecker._block,
        ast.DeclStmt: StatementChecker._declstmt,
        ast.Assign: StatementChecker._assign,
        ast.CallStmt: StatementChecker._callstmt,
        ast.If: StatementChecker._if,
        ast.SwitchStmt: StatementChecker._switchstmt,
        ast.For: StatementChecker._for,
        ast.ForIn: StatementChecker._forin,
        ast.Break: StatementChecker._break,
        ast.Continue: StatementChecker._continue,
        ast.Return: StatementChecker._return,
        ast.Exit: StatementChecker._exit,
    },
)


def always_returns(s: ast.Stmt | None) -> bool:
    """Return whether every path through the statement ends in a return (or exit)."""
    match s:
        case ast.Return() | ast.Exit():
            return True
        case ast.Block(body=body):
            return any(map(always_returns, body))
        case ast.If(then=then, other=other):
            return always_returns(then) and always_returns(other)
        case ast.SwitchStmt(cases=cases):
            has_default = any(isinstance(c.label, ast.DefaultKey) for c in cases)
            return has_default and all(always_returns(c.body) for c in cases if c.body)
    return False


def _leaves(s: ast.Stmt | None) -> bool:
    """Return whether nothing after the statement is executed."""
    match s:
        case ast.Break() | ast.Continue():
            return True
        case ast.Block(body=body):
            return any(map(_leaves, body))
        case ast.If(then=then, other=other):
            return _leaves(then) and _leaves(other)
    return always_returns(s)


def storable(t: Type) -> str:
    """Return why a variable cannot have this type; empty if it can."""
    if t == INTEGER:
        return "int without a width exists at compile time only: give one, as in bit<32>"
    if t == STRING:
        return "a string exists at compile time only"
    if compile_time_only(t) and t != MATCH_KIND:
        return "its values exist at compile time only: make it a const"
    return ""
