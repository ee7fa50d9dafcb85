"""Expressions and annotations (grammar: expression, keysetExpression, annotations)."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.source import Span
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.parser_stream import SyntaxFailure
from gradplane.switch.syntax.parser_types import TypeParser

# Binary operators by precedence (specification, "Operator precedence"); all are left-associative.
PRECEDENCE = {
    op: level
    for level, row in enumerate(
        ["||", "&&", "== !=", "< > <= >=", "|", "^", "&", "<< >>", "++ + - |+| |-|", "* / %"], 1
    )
    for op in row.split()
}
_UNARY = frozenset({"!", "~", "-", "+"})

_AFTER = frozenset(",:;)]}")  # tokens that end an expression


class ExpressionParser(TypeParser):
    def expression(self) -> ast.Expr:
        """Parse an expression. A literal alone, as in the entries of tables, is taken at once."""
        if self.tok.kind == "integer" and self.peek().kind in _AFTER:
            self.deeper()
            literal = self.integer()
            self.depth -= 1
            self.tried.append("an operator")
            return literal
        return self._conditional()[0]

    def expression_without_greater(self) -> ast.Expr:
        return self._binary(greater=False)

    def _conditional(self) -> tuple[ast.Expr, bool]:
        """Parse an expression; return it and whether it is a `?:` without parentheses around."""
        self.deeper()
        result, bare = self._binary(), self.tok.kind == "?"
        if bare:
            self.advance()
            then = self.expression()
            self.expect(":")
            other, chained = self._conditional()
            result = ast.Ternary(result, then, other, chained, span=self.span_from(result.span))
        self.depth -= 1
        return result, bare

    def _binary(self, greater: bool = True) -> ast.Expr:
        """Parse operands and operators by precedence, with a stack instead of recursion. greater:
        whether > is an operator."""
        operands = [self._unary()]
        waiting: list[tuple[int, str]] = []  # operators whose right operand may still grow
        links = 0
        while level := self._operator_level(greater):
            self._reduce(operands, waiting, level)
            waiting.append((level, self._operator()))
            operands.append(self._unary())
            self.chained(links := links + 1)
        self._reduce(operands, waiting, 0)
        self.tried.append("an operator")
        return operands[0]

    def _reduce(self, operands: list[ast.Expr], waiting: list[tuple[int, str]], level: int) -> None:
        """Build the operators that bind at least as tightly as the next one."""
        while waiting and waiting[-1][0] >= level:
            right = operands.pop()
            left = operands.pop()
            op = waiting.pop()[1]
            operands.append(ast.Binary(op, left, right, span=self.span_from(left.span)))

    def _operator_level(self, greater: bool) -> int:
        if self.tok.kind == ">" and not greater:
            return 0
        if self.tok.kind == ">" and self.tok.joined:
            return PRECEDENCE[">>"]
        return PRECEDENCE.get(self.tok.kind, 0)

    def _operator(self) -> str:
        token = self.advance()
        if token.kind == ">" and token.joined:
            self.advance()
            return ">>"
        return token.kind

    def _unary(self) -> ast.Expr:
        if self.tok.kind not in _UNARY:
            return self.postfix()
        self.deeper()
        op = self.advance()
        operand = self._unary()
        self.depth -= 1
        return ast.Unary(op.kind, operand, span=self.span_from(op.span))

    # -- postfix ---------------------------------------------------------------------------------

    def postfix(self) -> ast.Expr:
        """Parse a primary expression with its members, indices, slices and calls."""
        read = self._PRIMARY.get(self.tok.kind)
        if read is None:
            self.fail("an expression")
        expr = read(self)
        links = 0
        while (step := self._POSTFIX.get(self.tok.kind)) is not None:
            longer = step(self, expr)
            if longer is None:
                break
            expr = longer
            self.chained(links := links + 1)
        return expr

    def _member(self, base: ast.Expr) -> ast.Expr:
        self.advance()
        name = self.name().text
        return ast.Member(base, name, span=self.span_from(base.span))

    def _subscript(self, base: ast.Expr) -> ast.Expr:
        self.advance()
        first = self.expression()
        node: ast.Expr
        if self.accept(":"):
            node = ast.Slice(base, first, self.expression(), span=base.span)
        elif self.accept("+:"):
            node = ast.Slice(base, None, first, self.expression(), span=base.span)
        else:
            node = ast.Index(base, first, span=base.span)
        self.expect("]")
        node.span = self.span_from(base.span)
        return node

    def _call(self, callee: ast.Expr) -> ast.Expr:
        args = self.arguments()
        return ast.Call(callee, [], args, span=self.span_from(callee.span))

    def _generic_call(self, callee: ast.Expr) -> ast.Expr | None:
        """Parse `callee<types>(args)`; None if "<" is a comparison."""
        if not isinstance(callee, ast.Name | ast.Member) or not self._type_follows():
            return None
        types = self.attempt(self._call_types)
        if types is None:
            return None
        args = self.arguments()
        return ast.Call(callee, types, args, span=self.span_from(callee.span))

    def _type_follows(self) -> bool:
        after = self.peek(1)
        return after.kind in ("_", ">") or self.starts_type(after, self.peek(2))

    def _call_types(self) -> list[ast.TypeRef]:
        types = self.type_arguments()
        if not self.at("("):
            self.fail()
        return types

    _POSTFIX: dict[str, Callable[[ExpressionParser, ast.Expr], ast.Expr | None]] = {
        ".": _member,
        "[": _subscript,
        "(": _call,
        "<": _generic_call,
    }

    # -- primary ---------------------------------------------------------------------------------

    def _string(self) -> ast.Expr:
        token = self.advance()
        return ast.StringLit(str(token.value), span=token.span)

    def _bool(self) -> ast.Expr:
        token = self.advance()
        return ast.BoolLit(token.kind == "true", span=token.span)

    def _this(self) -> ast.Expr:
        return ast.Name("this", span=self.advance().span)

    def _dots(self) -> ast.Expr:
        return ast.Dots(span=self.advance().span)

    def _invalid_header(self) -> ast.Expr:
        return ast.InvalidHeader(span=self.advance().span)

    def _name_or_type(self) -> ast.Expr:
        """Parse a name, or `Name<types>` where the type is called or followed by a member."""
        if self.is_type(self.tok) and self.peek().kind == "<":
            ref = self.attempt(self._called_type)
            if ref is not None:
                return ast.TypeExpr(ref, span=ref.span)
        token = self.advance()
        return ast.Name(token.text, span=token.span)

    def _called_type(self) -> ast.TypeRef:
        ref = self.named_type()
        if not (self.at("(") or self.at(".")):
            self.fail()
        return ref

    def _dot_name(self) -> ast.Expr:
        if self.is_type(self.peek(), top=True) and self.peek(2).kind == "<":
            ref = self.attempt(self._called_type)
            if ref is not None:
                return ast.TypeExpr(ref, span=ref.span)
        start = self.advance().span
        name = self.name().text
        return ast.Name(name, dot=True, span=self.span_from(start))

    def _error_type(self) -> ast.Expr:
        """Parse `error` before `.member`."""
        token = self.advance()
        ref = ast.BaseTypeRef("error", span=token.span)
        if not self.at("."):
            self.fail()
        return ast.TypeExpr(ref, span=token.span)

    def _parenthesised(self) -> ast.Expr:
        if self.starts_type(self.peek(), self.peek(2)):
            start = self.tok.span
            ref = self.attempt(self._cast_type)
            if ref is not None:
                self.deeper()
                operand = self._unary()
                self.depth -= 1
                return ast.Cast(ref, operand, span=self.span_from(start))
        self.advance()
        inner = self.expression()
        self.expect(")")
        if isinstance(inner, ast.Name) and self.tok.kind in ("name", "integer", "{"):
            hint = "a cast needs a type that is declared above"
            self.fail_at(inner.span, f'"{inner.name}" is not a type', hint)
        return inner

    def _cast_type(self) -> ast.TypeRef:
        self.advance()
        ref = self.type_ref()
        self.expect(")")
        return ref

    def _braced(self) -> ast.Expr:
        """Parse `{a, b}` or `{x = a, y = b, ...}`."""
        start = self.advance().span
        if self.tok.kind == "name" and self.peek().kind == "=":
            return self._struct_expression(start)
        elements = self.comma_list(self.expression, "}", trailing=True)
        return ast.ListExpr(elements, span=self.span_from(start))

    def _struct_expression(self, start: Span) -> ast.Expr:
        fields: list[tuple[str, ast.Expr]] = []
        dots = False
        while not self.at("}"):
            if self.accept("..."):
                dots = True
                self.accept(",")
                break
            fields.append(self.key_value())
            if not self.accept(","):
                break
        self.expect("}")
        return ast.StructExpr(fields, dots, span=self.span_from(start))

    def key_value(self) -> tuple[str, ast.Expr]:
        name = self.name().text
        self.expect("=")
        return name, self.expression()

    _PRIMARY: dict[str, Callable[[ExpressionParser], ast.Expr]] = {
        "integer": TypeParser.integer,
        "text": _string,
        "true": _bool,
        "false": _bool,
        "this": _this,
        "...": _dots,
        "{#}": _invalid_header,
        "name": _name_or_type,
        ".": _dot_name,
        "error": _error_type,
        "(": _parenthesised,
        "{": _braced,
    }

    # -- keysets ---------------------------------------------------------------------------------

    def keyset(self) -> ast.Expr:
        """Parse the keyset of a select case or table entry: one key, or `(k1, k2)`."""
        if self.tok.kind == "(" and self._closes_before_colon():
            start = self.advance().span
            elements = self.comma_list(self.simple_keyset, ")", trailing=True)
            if len(elements) == 1:
                return elements[0]
            return ast.TupleKey(elements, span=self.span_from(start))
        return self.simple_keyset()

    def _closes_before_colon(self) -> bool:
        """Return whether the parentheses here are the whole keyset: ":" follows the closing one."""
        close = self.closing(self.index, "(", ")")
        return close is not None and self.tokens[close + 1].kind == ":"

    def simple_keyset(self) -> ast.Expr:
        if self.at("default") or self.at("_"):
            return ast.DefaultKey(span=self.advance().span)
        value = self.expression()
        if self.accept("&&&"):
            mask = self.expression()
            return ast.Mask(value, mask, span=self.span_from(value.span))
        if self.accept(".."):
            high = self.expression()
            return ast.Range(value, high, span=self.span_from(value.span))
        return value

    # -- annotations -----------------------------------------------------------------------------

    def annotations(self) -> list[ast.Annotation]:
        found: list[ast.Annotation] = []
        while self.tok.kind == "@":
            found.append(self._annotation())
            self._only_one(found)
        return found

    def _only_one(self, found: list[ast.Annotation]) -> None:
        """Report a structured annotation whose name is used twice on an element."""
        last = found[-1]
        for before in found[:-1]:
            if before.name == last.name and (before.structured or last.structured):
                what = f"@{last.name}[...] and another @{last.name} on one element"
                self.reporter.error(last.span, what, f"the other one is at {before.span}")

    def _annotation(self) -> ast.Annotation:
        start = self.expect("@").span
        name = self.name()
        if name.text == "pragma" and self.tok.span.line == name.span.line:
            return self._pragma(start)
        node = ast.Annotation(name.text, span=self.span_from(start))
        if self.accept("("):
            self._free_body(node)
        elif self.accept("["):
            node.structured = True
            self._structured_body(node)
        return node

    def _pragma(self, start: Span) -> ast.Annotation:
        """Parse `@pragma name words`, up to the end of the line."""
        name = self.name()
        span = self.span_from(start)
        words = []
        while self._on_line_of(name.span) and self.tok.kind != "end":
            words.append(self.advance().text)
        return ast.Annotation(name.text, " ".join(words), pragma=True, span=span)

    def _on_line_of(self, span: Span) -> bool:
        return self.tok.span.line == span.line and self.tok.span.file == span.file

    def _free_body(self, node: ast.Annotation) -> None:
        """Take any tokens up to the closing parenthesis.

        `exprs` or `pairs` are set if the tokens parse as such.
        """
        close = self.closing(self.index - 1, "(", ")")
        if close is None and any(t.kind == "broken" for t in self.tokens[self.index :]):
            raise SyntaxFailure  # the string that is not closed has been reported
        if close is None:
            self.fail_at(node.span, f'annotation "@{node.name}" has no closing ")"')
        node.body = self._text_up_to(close)
        node.exprs = self.attempt(self._expression_body)
        if node.exprs is None:
            node.pairs = self.attempt(self._pairs_body)
        self.index = close
        self.tok = self.tokens[close]
        self.expect(")")

    def _text_up_to(self, close: int) -> str:
        return " ".join(t.text for t in self.tokens[self.index : close])

    def _expression_body(self) -> list[ast.Expr]:
        return self.comma_list(self.expression, ")")

    def _pairs_body(self) -> dict[str, ast.Expr]:
        return dict(self.comma_list(self.key_value, ")"))

    def _structured_body(self, node: ast.Annotation) -> None:
        begin = self.index
        if self.tok.kind == "name" and self.peek().kind == "=":
            pairs = self.comma_list(self.key_value, "]", trailing=True)
            node.pairs = dict(pairs)
            if len(node.pairs) < len(pairs):
                self.reporter.error(node.span, f"a key is given twice in @{node.name}")
        else:
            node.exprs = self.comma_list(self.expression, "]", trailing=True)
        node.body = " ".join(t.text for t in self.tokens[begin : self.index - 1])
