"""The lexer: from pieces of text to tokens, in one pass of one regular expression.

`>` is always a token of its own, with `joined` set when another `>` follows directly: the parser
decides whether the two form a shift or close two lists of type arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax.preprocess import Piece, is_shipped

# fmt: off
KEYWORDS = frozenset({
    "_", "abstract", "action", "bit", "bool", "break", "const", "continue", "control", "default",
    "else", "enum", "error", "exit", "extern", "false", "for", "header", "header_union", "if", "in",
    "inout", "int", "match_kind", "out", "package", "parser", "return", "select", "string",
    "struct", "switch", "table", "this", "transition", "true", "tuple", "typedef", "value_set",
    "varbit", "void",
})

# Longer ones first: the regular expression takes the first alternative that matches.
OPERATORS = [
    "&&&", "|+|=", "|-|=", "<<=", ">>=", "|+|", "|-|", "...", "{#}", "..", "+:", "++", "<<", "<=",
    ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "+", "-", "*",
    "/", "%", "&", "|", "^", "~", "!", "=", "<", ">", "(", ")", "[", "]", "{", "}", ",", ";", ":",
    "?", ".", "@",
]
# fmt: on


def _tokens_with(string: str) -> re.Pattern[str]:
    return re.compile(
        r"[ \t\f\v]*+(?:"
        r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
        r"|(?P<operator>" + "|".join(re.escape(op) for op in OPERATORS) + ")"
        r"|(?P<newline>(?:\\[ \t]*)?\n)"  # also that of a continued line
        r"|(?P<number>[0-9][A-Za-z0-9_]*)"
        r"|(?P<string>" + string + r")"
        r"|(?P<bad>[^ \t\f\v])"
        r"|\Z)",
        re.S,
    )


# A string may span several lines, except in a piece with an odd number of quotes: there the error
# is reported on the line whose string is not closed.
_TOKEN = _tokens_with(r'"(?:\\.|[^"\\])*"')
_TOKEN_BY_LINE = _tokens_with(r'"(?:\\.|[^"\\\n])*"?')
_QUOTE = re.compile(r'\\.|(")', re.S)
_INTEGER = re.compile(
    r"(?:([0-9]+)([ws]))?"
    r"(?:0[xX]([0-9a-fA-F_]+)|0[oO]([0-7_]+)|0[bB]([01_]+)|0[dD]([0-9_]+)|([0-9][0-9_]*))"
)
_BASES = {3: 16, 4: 8, 5: 2, 6: 10, 7: 10}  # group of _INTEGER: base
_ESCAPE = re.compile(r'\\([\\"n])')
_CONTINUED = re.compile(r"\\[ \t]*\n")
MAX_DIGITS = 4000


@dataclass(slots=True)
class Token:
    """A token; `kind` is "name", "integer", "text", "end", or the keyword or operator itself.

    Other kinds are "bad", a character that P4 does not use, and "broken", text that has been
    reported already. `value` is an integer's (value, width or None, signed), or a string's text
    with escapes replaced.
    """

    kind: str
    text: str
    span: Span
    value: tuple[int, int | None, bool, int] | str = ""
    joined: bool = False  # a `>` that another `>` follows directly


def tokenize(pieces: Iterable[Piece], reporter: Reporter) -> list[Token]:
    """Return all tokens of a program, an "end" token last. Errors go to `reporter`."""
    tokens: list[Token] = []
    for piece in whole_strings(pieces):
        if piece.width is None and piece.origin is not None and is_shipped(piece.origin):
            tokens += _shipped(piece)
        else:
            _Lexer(piece, reporter, tokens).run()
    last = tokens[-1].span if tokens else Span("", 1, 1, 1)
    after = Span(last.file, last.line, last.end, last.end + 1)
    tokens.append(Token("end", "", after))
    return tokens


@lru_cache(maxsize=1024)
def _shipped(piece: Piece) -> list[Token]:
    """Return the tokens of text of a shipped file, which most programs begin with. Tokens are
    never changed, so programs share them."""
    tokens: list[Token] = []
    reporter = Reporter()
    _Lexer(piece, reporter, tokens).run()
    assert not reporter.diagnostics, piece
    return tokens


def whole_strings(parts: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces, joining those that are parts of one string over several lines."""
    pieces = list(parts)
    torn = [i for i, piece in enumerate(pieces) if len(_quotes(piece.text)) % 2]
    done = 0
    for first, last in zip(torn[::2], torn[1::2], strict=False):
        opening, closing = pieces[first], pieces[last]
        if opening.origin != closing.origin or opening.width or closing.width:
            continue
        start, end = _quotes(opening.text)[-1], _quotes(closing.text)[0] + 1
        between = "".join(piece.text for piece in pieces[first + 1 : last])
        yield from pieces[done:first]
        yield _cut(opening, 0, start)
        whole = _cut(opening, start, None)
        width = len(whole.text.split("\n", 1)[0])
        yield replace(whole, text=whole.text + between + closing.text[:end], width=width)
        pieces[last], done = _cut(closing, end, None), last
    yield from pieces[done:]


def _quotes(text: str) -> list[int]:
    """Return the positions of quotes that are not escaped by a backslash."""
    return [m.start() for m in _QUOTE.finditer(text) if m[1]] if '"' in text else []


def _cut(piece: Piece, start: int, end: int | None) -> Piece:
    """Return a part of a piece that has no width."""
    line = piece.line + piece.text.count("\n", 0, start)
    newline = piece.text.rfind("\n", 0, start)
    column = start - newline if newline >= 0 else piece.column + start
    return replace(piece, text=piece.text[start:end], line=line, column=column)


class _Lexer:
    def __init__(self, piece: Piece, reporter: Reporter, tokens: list[Token]) -> None:
        self._piece = piece
        self._reporter = reporter
        self._tokens = tokens

    def run(self) -> None:
        piece, emit = self._piece, self._tokens.append
        text, file, line = piece.text, piece.file, piece.line
        shift = piece.column  # column of offset 0 of this line
        use = None  # the place of all tokens of a macro use
        if piece.width is not None:
            use = Span(file, line, piece.column, piece.column + piece.width)
        pattern = _TOKEN_BY_LINE if len(_quotes(text)) % 2 else _TOKEN
        for match in pattern.finditer(text):
            group = match.lastgroup
            if group is None:
                continue
            end = match.end()
            if group == "newline":
                line += 1
                shift = 1 - end
                continue
            found = match[group]
            span = use or Span(file, line, shift + end - len(found), shift + end)
            if group == "operator":
                emit(Token(found, found, span, joined=found == ">" and text[end : end + 1] == ">"))
            elif group == "name":
                emit(Token(found if found in KEYWORDS else "name", found, span))
            elif group == "number":
                emit(Token("integer", found, span, self._integer(found, span)))
            elif group == "string":
                emit(self._string(found, span))
                if "\n" in found:
                    line += found.count("\n")
                    shift = -text.rfind("\n", 0, end)
            else:
                emit(Token("bad", found, span))

    def _integer(self, text: str, span: Span) -> tuple[int, int | None, bool, int]:
        value = _integer(text)
        if value is None:
            shown = text if len(text) <= 40 else text[:37] + "..."
            hint = "like 255, 0xFF, 0b1010, 1_000, 8w255 (8 bits) or 8s0x7F (8 bits, signed)"
            self._reporter.error(span, f'"{shown}" is not an integer', hint)
            return 0, None, False, 10
        return value

    def _string(self, text: str, span: Span) -> Token:
        if len(text) < 2 or not text.endswith('"') or _ends_in_escape(text):
            self._reporter.error(span, 'this string has no closing " on its line')
            return Token("broken", text, span)
        text = _CONTINUED.sub("", text)
        value = _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], text[1:-1])
        return Token("text", text, span, value)


@lru_cache(maxsize=4096)
def _integer(text: str) -> tuple[int, int | None, bool, int] | None:
    """Return an integer's value, width, sign and base; None if it is none."""
    match = _INTEGER.fullmatch(text)
    group = match.lastindex if match else None
    digits = match[group].replace("_", "") if match and group else ""
    if not match or not group or not digits or len(text) > MAX_DIGITS:
        return None
    width = int(match[1]) if match[1] else None
    return int(digits, _BASES[group]), width, match[2] == "s", _BASES[group]


def _ends_in_escape(text: str) -> bool:
    """Return whether the last quote is escaped: an odd number of backslashes precedes it."""
    body = text[:-1]
    return (len(body) - len(body.rstrip("\\"))) % 2 == 1
