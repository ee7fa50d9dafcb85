"""Types as written, parameters and arguments (grammar: typeRef, parameterList, argumentList)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypedDict

from gradplane.switch.source import Span
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.lexer import Token
from gradplane.switch.syntax.parser_stream import TokenStream

_CONTINUE = frozenset({"+", "-", "*", "/", "%", "<<", "&", "|", "^"})  # a number in a width
SIZED = frozenset({"bit", "int", "varbit"})
BASE_TYPES = SIZED | {"bool", "error", "match_kind", "string", "void"}


class Head(TypedDict):
    """The fields that every declaration has."""

    name: str
    annotations: list[ast.Annotation]
    name_span: Span
    span: Span


def literal(token: Token) -> ast.IntLit:
    """Return the expression of an integer's token."""
    assert isinstance(token.value, tuple), token
    value, width, signed, base = token.value
    return ast.IntLit(value, width, signed, base, span=token.span)


class TypeParser(TokenStream, ABC):
    @abstractmethod
    def expression(self) -> ast.Expr:
        """Parse any expression."""

    @abstractmethod
    def expression_without_greater(self) -> ast.Expr:
        """Parse an expression that a > ends, outside parentheses."""

    @abstractmethod
    def annotations(self) -> list[ast.Annotation]:
        """Parse zero or more annotations."""

    def name(self) -> Token:
        return self.expect("name")

    def head(self, start: Span, annotations: list[ast.Annotation], is_type: bool = False) -> Head:
        """Parse and declare the name of a declaration that began at `start`."""
        name = self.name()
        (self.declare_type if is_type else self.declare_value)(name.text)
        span = self._joined(start, name.span)
        return Head(name=name.text, annotations=annotations, name_span=name.span, span=span)

    # -- types -----------------------------------------------------------------------------------

    def starts_type(self, token: Token, after: Token) -> bool:
        """Return whether a type starts here: a keyword, or a name declared as a type."""
        if token.kind == ".":
            return self.is_type(after, top=True)
        if token.kind == "name" and token.text == "list" and after.kind == "<":
            return True
        return token.kind in BASE_TYPES or token.kind == "tuple" or self.is_type(token)

    def at_type(self) -> bool:
        return self.starts_type(self.tok, self.peek())

    def type_ref(self) -> ast.TypeRef:
        """Parse any type. An undeclared name is accepted: the checker reports it."""
        self.deeper()
        span = self.tok.span
        ref: ast.TypeRef
        if self.tok.kind in BASE_TYPES:
            ref = self._base_type()
        elif self.tok.kind == "tuple":
            self.advance()
            ref = ast.TupleTypeRef(args=self.type_arguments(), span=self.span_from(span))
        elif self.tok.text == "list" and self.peek().kind == "<":
            ref = self._list_type()
        elif self.tok.kind in ("name", "."):
            ref = self.named_type()
        else:
            self.fail("a type")
        named = isinstance(ref, ast.NamedTypeRef)
        while self.at("[") if named else self.tok.kind == "[":  # proposed behind names only
            self.advance()
            ref = self._array_type(ref)
        self.depth -= 1
        return ref

    def _base_type(self) -> ast.TypeRef:
        token = self.advance()
        width: ast.Expr | None = None
        if token.kind in SIZED and self.accept("<"):
            width = self._width()
            self.expect(">")
        elif token.kind == "varbit":
            self.fail()
        return ast.BaseTypeRef(token.kind, width, span=self.span_from(token.span))

    def _width(self) -> ast.Expr:
        """Parse `8`, `(N > 3 ? N : 3)` or, as p4c, `N + 8` without > outside parentheses."""
        if self.tok.kind == "integer" and self.peek().kind not in _CONTINUE:
            return self.integer()
        return self.expression_without_greater()

    def integer(self) -> ast.IntLit:
        return literal(self.expect("integer"))

    def _list_type(self) -> ast.TypeRef:
        span = self.advance().span
        self.expect("<")
        element = self.type_argument()
        self.expect(">")
        return ast.ListTypeRef(element, span=self.span_from(span))

    def _array_type(self, element: ast.TypeRef) -> ast.ArrayTypeRef:
        """Parse the rest of `[size]`."""
        size = self.expression()
        self.expect("]")
        return ast.ArrayTypeRef(element, size, span=self.span_from(element.span))

    def declarator(self, ref: ast.TypeRef) -> ast.TypeRef:
        """Parse the size in `T name[size]`, p4c's other form of `T[size] name`."""
        if self.tok.kind != "[":  # not at(): errors do not propose this form
            return ref
        self.advance()
        return self._array_type(ref)

    def named_type(self) -> ast.NamedTypeRef:
        """Parse `Name`, `.Name`, `Name<...>`."""
        span = self.tok.span
        dot = self.accept(".") is not None
        name = self.name().text
        args = self.type_arguments() if self.at("<") else []
        return ast.NamedTypeRef(name, dot, args, span=self.span_from(span))

    def type_arguments(self) -> list[ast.TypeRef]:
        """Parse `<A, B>`, brackets included."""
        self.expect("<")
        return self.comma_list(self.type_argument, ">")

    def type_argument(self) -> ast.TypeRef:
        if self.at("_"):
            return ast.DontCareTypeRef(span=self.advance().span)
        return self.type_ref()

    def type_parameters(self) -> list[str]:
        """Parse `<T, U>` or nothing; the names become types in the current scope."""
        if not self.accept("<"):
            return []
        names = [t.text for t in self.comma_list(self.name, ">", empty=False)]
        self.declare_types(names)
        return names

    # -- parameters ------------------------------------------------------------------------------

    def parameters(self) -> list[ast.Param]:
        """Parse `(in T x, ...)`, brackets included."""
        self.expect("(")
        return self.comma_list(self._parameter, ")")

    def _parameter(self) -> ast.Param:
        annotations = self.annotations()
        start = self.tok.span
        direction = ""
        if self.tok.kind in ("in", "out", "inout"):
            direction = self.advance().kind
        ref = self.type_ref()
        head = self.head(start, annotations)
        ref = self.declarator(ref)
        default = self.expression() if self.accept("=") else None
        return ast.Param(ref=ref, direction=direction, default=default, **head)

    # -- arguments -------------------------------------------------------------------------------

    def arguments(self) -> list[ast.Argument]:
        """Parse `(a, name = b, _)`, brackets included."""
        self.expect("(")
        return self.comma_list(self._argument, ")")

    def _argument(self) -> ast.Argument:
        start = self.tok.span
        name = None
        if self.tok.kind == "name" and self.peek().kind == "=":
            name = self.advance().text
            self.advance()
        value = None if self.accept("_") else self.expression()
        return ast.Argument(value, name, span=self.span_from(start))

    @staticmethod
    def _joined(start: Span, end: Span) -> Span:
        """Return the span from `start` to `end` if both are on one line, else `end`."""
        if start.line == end.line and start.file == end.file and start.column <= end.column:
            return Span(start.file, start.line, start.column, end.end)
        return end
