"""The base of the parser: tokens, expectations, error recovery, names of types.

Expectations are collected as parsing goes: each test of the current token that fails adds its kind
to `tried`, and each step forward clears it. On a syntax error `tried` holds all that was accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn, TypeVar

from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax.lexer import KEYWORDS, Token

T = TypeVar("T")

# These limits are far beyond ordinary programs. All stages, and the interpreter for each packet,
# recurse to this depth and stay within Python's recursion limit, which a library must not change.
MAX_DEPTH = 100  # nested brackets, blocks, signs and casts
MAX_CHAIN = 200  # operators, members or else-ifs in a row

# Keywords that are only allowed at the top level: below it, a "}" is missing.
TOP_LEVEL = frozenset(
    {"control", "parser", "header", "header_union", "struct", "extern", "package", "enum"}
)
STOP = TOP_LEVEL | {"}", "end"}
_BRACES = {"{": 1, "}": -1}
_GOES_ON = frozenset({"else", ":", ")", ",", ";"})  # after a "}", these continue the same construct
_LABELS = {"name": "a name", "integer": "an integer", "text": "a string", "end": "end of file"}


class SyntaxFailure(Exception):
    """The current construct is broken and reported; caught where parsing can continue."""


class TokenStream:
    """A position in the tokens, and the scopes of declared names."""

    def __init__(self, tokens: list[Token], reporter: Reporter) -> None:
        self.reporter = reporter
        self.tokens = tokens
        self.index = 0
        self.tok = tokens[0]
        self.tried: list[str] = []
        self.depth = 0
        self._attempting = 0
        self._attempts: dict[tuple[str, int], tuple[object, int] | None] = {}
        self._last_failure = -1
        self._scopes: list[dict[str, bool]] = [{}]  # name -> is it a type?

    # -- tokens ----------------------------------------------------------------------------------

    def advance(self) -> Token:
        """Take the current token. The last one, "end", is never passed."""
        token = self.tok
        if self.index < len(self.tokens) - 1:
            self.index += 1
            self.tok = self.tokens[self.index]
        self.tried.clear()
        return token

    def move_to(self, index: int) -> None:
        """Take the tokens before a position."""
        self.index = index
        self.tok = self.tokens[index]
        self.tried.clear()

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def at(self, kind: str) -> bool:
        if self.tok.kind == kind:
            return True
        self.tried.append(kind)
        return False

    def at_word(self, word: str) -> bool:
        """Return whether the token is `word`, which is a keyword here and a name elsewhere."""
        if self.tok.kind == "name" and self.tok.text == word:
            return True
        self.tried.append(word)
        return False

    def accept(self, kind: str) -> Token | None:
        return self.advance() if self.at(kind) else None

    def accept_word(self, word: str) -> Token | None:
        return self.advance() if self.at_word(word) else None

    def expect(self, kind: str) -> Token:
        if self.tok.kind != kind:
            self.fail(kind)
        return self.advance()

    def previous(self) -> Token:
        return self.tokens[max(self.index - 1, 0)]

    def span_from(self, start: Span) -> Span:
        """Return the span from `start` to the last token taken, cut at the end of its line."""
        end = self.previous().span
        if end.line == start.line and end.file == start.file and end.end > start.end:
            return Span(start.file, start.line, start.column, end.end)
        return start

    # -- lists -----------------------------------------------------------------------------------

    def comma_list(
        self, parse: Callable[[], T], close: str, trailing: bool = False, empty: bool = True
    ) -> list[T]:
        """Parse `parse` "," `parse` ... up to and including `close`."""
        items: list[T] = []
        if empty and self.accept(close):
            return items
        while True:
            items.append(parse())
            if not self.accept(",") or (trailing and self.at(close)):
                break
        self.expect(close)
        return items

    def items(self, parse: Callable[[], T], stop: frozenset[str] = STOP) -> list[T]:
        """Apply `parse` repeatedly up to a "}", which is not taken. Continues after an error."""
        found: list[T] = []
        while self.tok.kind not in stop:
            if "}" in stop:
                self.tried.append("}")
            mark, depth, scopes = self.index, self.depth, len(self._scopes)
            try:
                found.append(parse())
            except SyntaxFailure:
                self.depth = depth
                del self._scopes[scopes:]
                self._recover(mark)
                if self.index == mark and self.tok.kind not in stop:
                    self.advance()
        return found

    def _recover(self, mark: int) -> None:
        """Skip the rest of the construct at `mark`: past its ";" or "{ }", or to the outer "}"."""
        depth = sum(_BRACES.get(t.kind, 0) for t in self.tokens[mark : self.index])
        head = self._end_of_for(mark)  # a ";" in the brackets of a `for` ends nothing
        while self.tok.kind not in TOP_LEVEL and self.tok.kind != "end":
            if depth <= 0 and self.tok.kind == "}":
                return
            kind = self.advance().kind
            depth += _BRACES.get(kind, 0)
            ends = kind == ";" or (kind == "}" and self.tok.kind not in _GOES_ON)
            if depth <= 0 and ends and self.index > head:
                return

    def _end_of_for(self, mark: int) -> int:
        if self.tokens[mark].kind != "for":
            return -1
        return self.closing(mark + 1, "(", ")") or -1

    def closing(self, index: int, opening: str, closing: str) -> int | None:
        """Return the index of the token that closes the bracket at `index`."""
        depth = 0
        for at in range(index, len(self.tokens) - 1):
            kind = self.tokens[at].kind
            depth += (kind == opening) - (kind == closing)
            if depth == 0:
                return at
        return None

    # -- errors ----------------------------------------------------------------------------------

    def fail(self, *labels: str) -> NoReturn:
        """Report the current token as unexpected; `labels` are added to `tried`."""
        if not self._attempting and self.index != self._last_failure:
            self._last_failure = self.index
            self._report_unexpected([*self.tried, *labels])
        raise SyntaxFailure

    def fail_at(self, span: Span, message: str, hint: str = "") -> NoReturn:
        """Report an error other than an unexpected token."""
        if not self._attempting:
            self._last_failure = self.index
            self.reporter.error(span, message, hint)
        raise SyntaxFailure

    def _report_unexpected(self, kinds: list[str]) -> None:
        if self.tok.kind == "broken":
            return
        if self.tok.kind == "bad":
            self.reporter.error(self.tok.span, f"unexpected character {_shown(self.tok.text)}")
            return
        wanted = sorted(dict.fromkeys(_label(kind) for kind in kinds), key=_is_a_kind_of_thing)
        lead = "expected" if len(wanted) == 1 else "expected one of:"
        message = f"found {self._found()}, {lead} {', '.join(wanted)}"
        self.reporter.error(self.tok.span, message, self._hint(wanted))

    def _found(self) -> str:
        if self.tok.kind == "end":
            return "end of file"
        return self.tok.text if self.tok.kind == "text" else f'"{self.tok.text}"'

    def _hint(self, wanted: list[str]) -> str:
        opened = self._open_brace() if '"}"' in wanted else None
        if opened is not None and self.tok.kind in TOP_LEVEL | {"end"}:
            return f'the "{{" at {opened} is not closed'
        if "a name" in wanted and self.tok.kind in KEYWORDS:
            return f'"{self.tok.text}" is a keyword and cannot be a name'
        return ""

    def _open_brace(self) -> Span | None:
        """Return the innermost open "{"; None if too many were closed before."""
        depth = 0
        for token in reversed(self.tokens[: self.index]):
            depth -= _BRACES.get(token.kind, 0)
            if depth < 0:
                return token.span
        return None

    # -- nesting ---------------------------------------------------------------------------------

    def deeper(self) -> None:
        """Enter a nesting level; on success the caller leaves it with `self.depth -= 1`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail_at(self.tok.span, f"nested deeper than {MAX_DEPTH} levels")

    def chained(self, count: int) -> None:
        if count > MAX_CHAIN:
            what = f"more than {MAX_CHAIN} operators, members or else-ifs in a row"
            self.fail_at(self.tok.span, what, "split it: name a part, or use switch")

    # -- trying ----------------------------------------------------------------------------------

    def attempt(self, parse: Callable[[], T]) -> T | None:
        """Return the result of `parse`, or None, with nothing taken or reported, if it fails.

        Results are kept, so that text is not parsed again for each level of nested attempts.
        """
        key = (parse.__name__, self.index)
        if key in self._attempts:
            return self._replay(self._attempts[key])  # type: ignore[return-value]
        mark, depth, scopes, tried = self.index, self.depth, len(self._scopes), [*self.tried]
        self._attempting += 1
        try:
            result = parse()
        except SyntaxFailure:
            self._attempts[key] = None
            self.index, self.depth, self.tried = mark, depth, tried
            self.tok = self.tokens[mark]
            del self._scopes[scopes:]
            return None
        finally:
            self._attempting -= 1
        self._attempts[key] = (result, self.index)
        return result

    def _replay(self, outcome: tuple[object, int] | None) -> object:
        if outcome is None:
            return None
        self.index = outcome[1]
        self.tok = self.tokens[self.index]
        self.tried.clear()
        return outcome[0]

    # -- names of types --------------------------------------------------------------------------

    def open_scope(self) -> None:
        self._scopes.append({})

    def close_scope(self) -> None:
        self._scopes.pop()

    def declare_type(self, name: str) -> None:
        self._scopes[-1][name] = True

    def declare_value(self, name: str) -> None:
        self._scopes[-1][name] = False

    def declare_types(self, names: Iterable[str]) -> None:
        for name in names:
            self.declare_type(name)

    def is_type(self, token: Token, top: bool = False) -> bool:
        """Return whether the token is the name of a type, by its innermost declaration.

        With `top` (for `.Name`) only the top level is searched.
        """
        if token.kind != "name":
            return False
        scopes = self._scopes[:1] if top else reversed(self._scopes)
        return next((scope[token.text] for scope in scopes if token.text in scope), False)


def _label(kind: str) -> str:
    """Return a kind or word as messages show it; a label of several words is not quoted."""
    if kind in _LABELS:
        return _LABELS[kind]
    return kind if " " in kind else f'"{kind}"'


def _is_a_kind_of_thing(label: str) -> bool:
    """Return whether a label is a description: `";"` is listed before `an operator`."""
    return not label.startswith('"')


def _shown(character: str) -> str:
    return f'"{character}"' if character.isprintable() else f"U+{ord(character):04X}"
