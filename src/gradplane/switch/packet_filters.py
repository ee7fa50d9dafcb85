"""Filters on packets: P4 expressions on the headers that a program's parser extracts.

The compiler's own stages read them, so names, widths and errors are those of the language. Textual
addresses, which P4 does not have, are replaced by names of constants first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from gradplane.switch.check.checker import Checker
from gradplane.switch.check.records import Checked
from gradplane.switch.interp.expressions import Expressions
from gradplane.switch.interp.interpreter_values import Frame
from gradplane.switch.interp.packet import Abort, Reject
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, INTEGER, Type
from gradplane.switch.lower.program import Lowering
from gradplane.switch.lower.statements import Body
from gradplane.switch.machine.model import Model
from gradplane.switch.match_values import number
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.packet_passes import Arrival
from gradplane.switch.source import CompileError, Reporter, Span
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.lexer import tokenize
from gradplane.switch.syntax.parser_declarations import DeclarationParser
from gradplane.switch.syntax.parser_stream import SyntaxFailure
from gradplane.switch.syntax.preprocess import Piece

NAME = "filter"  # the file's name in messages
PLACE = Span(NAME, 1, 1, 2)
LONGEST = 10_000  # characters

# A MAC address, or a text that ipaddress may accept; not a part of a name, number or field.
_ADDRESS = re.compile(
    r"(?<![\w.:])(?:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}|\d+(?:\.\d+){3}"
    r"|[0-9a-fA-F]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*)(?![\w.:])"
)


class PacketFilter:
    """A predicate on packets: an expression on the parser's results, without the controls.

    Raises CompileError for text that is not a P4 expression of type bool on the parser's
    parameters; of several pipelines' parsers, one must have them, and packets of the others do not
    satisfy it. Log messages of the program's parser are written once more for each check.
    """

    def __init__(self, model: Model, text: str) -> None:
        self._model = model
        self._conditions: dict[int, _Condition] = {}
        refused: list[CompileError] = []
        for at, parser in enumerate(model.parsers):
            try:
                self._conditions[at] = _Condition(parser, text, model.program.errors)
            except CompileError as error:
                refused.append(error)
        if not self._conditions:
            raise refused[0]

    def __call__(self, port: int, packet: bytes) -> bool:
        condition = self._conditions.get(self._model.pipeline_of(port))
        if condition is None:
            return False
        try:
            return condition.holds(self._model.parsed(Arrival(port, packet)))
        except (Abort, Reject):  # a failed assertion in the parser, or last/next of an empty stack
            return False


class _Condition:
    """A filter on the parameters of one parser."""

    def __init__(self, parser: ir.Parser, text: str, errors: Sequence[str]) -> None:
        condition = compile_filter(text, parser.params, errors)
        frame = Frame()
        self._slots = [frame.slot(p.var) for p in parser.params]
        self._holds = Expressions(frame, {}).load(condition)
        self._env = frame.new()

    def holds(self, values: Sequence[Any]) -> bool:
        """Return whether the parser's results satisfy the filter."""
        for slot, value in zip(self._slots, values, strict=True):
            self._env[slot] = value
        return bool(self._holds(self._env))


def compile_filter(text: str, params: Sequence[ir.Param], errors: Sequence[str]) -> ir.Expr:
    """Compile a filter's text to an expression on the parameters' variables.

    Raises CompileError.
    """
    reporter = Reporter({NAME: [text]})
    if not (text.strip() and text.isprintable() and len(text) <= LONGEST):
        reporter.error(PLACE, f"a filter is a line of 1 to {LONGEST} printable characters")
        reporter.stop_on_errors()
    named, addresses = _without_addresses(text)
    expression = _parsed(named, reporter)
    checker = Checker(reporter)
    checker.errors += errors
    decls = [_declared(p.name, p.var.type) for p in params]
    for decl in decls:
        checker.scopes.declare(decl)
    for name, value in addresses.items():
        checker.scopes.declare(_constant(name, value))
    checker.exprs.check_as(expression, BOOL, "a filter")
    known = f"known: {', '.join(param.name for param in params)}"
    reporter.diagnostics = [  # errors, also where a program is only warned of a value's width
        d.__class__(d.span, d.message, "error", d.hint or known * d.message.endswith("declared"))
        for d in reporter.diagnostics
    ]
    reporter.stop_on_errors()
    checked = Checked(ast.Program([], span=PLACE), list(errors), checker.match_kinds, {})
    lowering = Lowering(checked, reporter)
    for decl, param in zip(decls, params, strict=True):
        lowering.top.bind(decl, param.var)
    body = Body(lowering)
    condition = body.expr(expression)
    if body.out:
        reporter.error(expression.span, "a filter must not change anything")
    reporter.stop_on_errors()
    return condition


def _without_addresses(text: str) -> tuple[str, dict[str, int]]:
    """Replace each address with a name of the same length.

    Return the text and the names' values.
    """
    addresses: dict[str, int] = {}

    def name(found: re.Match[str]) -> str:
        try:
            value = number(found[0], NAME)
        except SwitchError:
            return found[0]
        made = f"_{len(addresses)}".ljust(len(found[0]), "_")
        addresses[made] = value
        return made

    return _ADDRESS.sub(name, text), addresses


def _parsed(text: str, reporter: Reporter) -> ast.Expr:
    parser = DeclarationParser(tokenize([Piece(text, NAME, 1, 1)], reporter), reporter)
    with suppress(SyntaxFailure):
        expression = parser.expression()
        parser.expect("end")
    reporter.stop_on_errors()
    return expression


def _declared(name: str, t: Type) -> ast.VarDecl:
    decl = ast.VarDecl(name, ast.NamedTypeRef(str(t), span=PLACE), span=PLACE)
    decl.type = t
    return decl


def _constant(name: str, value: int) -> ast.ConstDecl:
    literal = ast.IntLit(value, span=PLACE)
    literal.type, literal.const = INTEGER, value
    decl = ast.ConstDecl(name, ast.NamedTypeRef("int", span=PLACE), literal, span=PLACE)
    decl.type = INTEGER
    return decl
