"""p4-constraints: what @entry_restriction and @action_restriction allow of a table's entries.

Source: p4lang/p4-constraints, docs/language-specification.md. An expression is typed and made a
function while it is parsed. Its types are bool, int (of any size), bit<W>, and the kinds of match
of a table's keys; a number stands for itself as a bit<W>, and a bit<W> for an exact match of a key.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NoReturn

from gradplane._p4runtime import p4i
from gradplane._suggestions import hint


class ConstraintError(Exception):
    """A constraint's text is wrong; the message names its table or action and the place."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type of the language; `width` is 0 for bool and int, and for keys that are text."""

    kind: str
    width: int = 0

    def __str__(self) -> str:
        if not self.width:
            return f"{self.kind} of text" if self.kind in _EXACTLY else self.kind
        return f"bit<{self.width}>" if self.kind == "bit" else f"{self.kind} of {self.width} bits"


BOOL, INT = Type("bool"), Type("int")

Given = Mapping[str, Any]
"""The values of an entry's keys, or of an action's parameters, by their names; "::priority"."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A part of an expression; start, end: where it stands in the text."""

    type: Type
    value: Callable[[Given], Any]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Constraint:
    """The conditions that all hold for what is allowed, each with its text."""

    owner: str
    conditions: tuple[tuple[str, Callable[[Given], bool]], ...]

    def violated(self, given: Given) -> str | None:
        """Return the text of the first condition that does not hold; None if all do."""
        return next((text for text, holds in self.conditions if not holds(given)), None)


Constraints = Mapping[int, Constraint]
"""The constraints of a program's tables and actions, by their ids."""


def restrictions(info: p4i.P4Info) -> Constraints:
    """Return the constraints of a program's tables and actions, by their ids.

    Raises ConstraintError.
    """
    found = {}
    for table in info.tables:
        text = _annotation(table.preamble, "entry_restriction")
        if text is not None:
            keys = {f.name: _key_type(f) for f in table.match_fields}
            owner = f"table {table.preamble.name}"
            found[table.preamble.id] = parse(text, owner, keys, priority=True)
    for action in info.actions:
        text = _annotation(action.preamble, "action_restriction")
        if text is not None:
            params = {p.name: Type("bit", p.bitwidth) for p in action.params}
            owner = f"action {action.preamble.name}"
            found[action.preamble.id] = parse(text, owner, params)
    return found


def _annotation(preamble: p4i.Preamble, name: str) -> str | None:
    """Return the text of an annotation: its string, or its strings, one behind the other."""
    for annotation in preamble.annotations:
        found = re.fullmatch(rf'@{name}\(\s*"(.*)"\s*\)', annotation, re.DOTALL)
        if found:
            return re.sub(r'"\s*"', "\n", found[1])
    for structured in preamble.structured_annotations:
        if structured.name == name:
            return "\n".join(e.string_value for e in structured.expression_list.expressions)
    return None


def _key_type(field: p4i.MatchField) -> Type:
    kind = p4i.MatchField.MatchType.Name(field.match_type).lower()
    return Type(field.other_match_type or kind, field.bitwidth)


# -- the language ---------------------------------------------------------------------------------


def _bits(width: int) -> Type:
    """Return the type of a part of a key: of text it is a number of any size."""
    return Type("bit", width) if width else INT


def ones(width: int) -> int:
    """Return the mask of all bits; of text it is -1."""
    return (1 << width) - 1 if width else -1


_FIELDS: dict[str, dict[str, tuple[int, Callable[[int], Type]]]] = {
    "ternary": {"value": (0, _bits), "mask": (1, _bits)},
    "lpm": {"value": (0, _bits), "prefix_length": (1, lambda w: INT)},
    "range": {"low": (0, _bits), "high": (1, _bits)},
}
_FIELDS["optional"] = _FIELDS["ternary"]

_EXACTLY: dict[str, Callable[[int, int], Any]] = {
    "exact": lambda value, width: value,
    "ternary": lambda value, width: (value, ones(width)),
    "optional": lambda value, width: (value, ones(width)),
    "lpm": lambda value, width: (value, width),
    "range": lambda value, width: (value, value),
}
"""How each kind of match matches one value only."""

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
_LEVELS: tuple[tuple[str, ...], ...] = ((";",), ("->",), ("||",), ("&&",), tuple(_COMPARISONS))
"""The binary operators, those that bind weakest first."""
_CHAINS = (";", "&&", "||")  # a -> b -> c and a == b == c are errors

_ADDRESSES: dict[str, Callable[[str], int]] = {
    "ipv4": lambda text: int(ipaddress.IPv4Address(text)),
    "ipv6": lambda text: int(ipaddress.IPv6Address(text)),
    "mac": lambda text: _mac(text),
}

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\r\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|(?:0[dD])?[0-9]+)"
    r"|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
    r"|(?P<text>'[^']*')"
    r"|(?P<op>::|&&|\|\||->|==|!=|<=|>=|[<>!();-])",
    re.DOTALL | re.ASCII,
)


def _mac(text: str) -> int:
    if not re.fullmatch(r"[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}", text):
        raise ValueError(f"'{text}' is no MAC address")
    return int.from_bytes(bytes(int(part, 16) for part in text.split(":")), "big")


def parse(text: str, owner: str, names: Mapping[str, Type], priority: bool = False) -> Constraint:
    """Parse a constraint of `owner`, which has keys or parameters of these names and types.

    priority: the constraint may use ::priority. Raises ConstraintError.
    """
    if priority:
        names = {**names, "::priority": INT}
    return Constraint(owner, tuple(_Parser(text, owner, names).conditions()))


class _Parser:
    """Parses one constraint by the precedence of its operators."""

    def __init__(self, text: str, owner: str, names: Mapping[str, Type]) -> None:
        self._text = text
        self._owner = owner
        self._names = names
        self._tokens = list(self._scan())
        self._at = 0

    def conditions(self) -> Iterator[tuple[str, Callable[[Given], bool]]]:
        """Yield the parts between semicolons, which all must hold."""
        while self._peek():
            term = self._binary(1)
            self._need(term, BOOL)
            yield " ".join(self._text[term.start : term.end].split()), term.value
            if self._peek() and not self._take(";"):
                self._fail(f"expected an operator, found {self._peek()!r}", self._start())

    # -- tokens ----------------------------------------------------------------------------------

    def _scan(self) -> Iterator[tuple[str, str, int]]:
        position = 0
        while position < len(self._text):
            found = _TOKEN.match(self._text, position)
            if found is None:
                self._fail(f"{self._text[position]!r} is not part of the language", position)
            if found.lastgroup != "space":
                yield str(found.lastgroup), found[0], position
            position = found.end()

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _start(self) -> int:
        return self._tokens[self._at][2] if self._at < len(self._tokens) else len(self._text)

    def _next(self) -> tuple[str, str, int]:
        if self._at == len(self._tokens):
            self._fail("the constraint ends in the middle of an expression", len(self._text))
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, *wanted: str) -> str:
        if self._peek() not in wanted:
            return ""
        return self._next()[1]

    def _end(self) -> int:
        _, text, start = self._tokens[self._at - 1]
        return start + len(text)

    def _fail(self, reason: str, position: int) -> NoReturn:
        before = self._text[:position]
        line, column = before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1
        raise ConstraintError(
            f"{self._owner}: its restriction, line {line}, column {column}: {reason}"
        )

    # -- expressions -----------------------------------------------------------------------------

    def _binary(self, level: int) -> _Term:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while op := self._take(*_LEVELS[level]):
            right = self._binary(level + 1)
            left = self._apply(op, left, right)
            if op not in _CHAINS and self._peek() in _LEVELS[level]:
                self._fail(
                    f"{op} and {self._peek()} on one level: put one of them in parentheses",
                    self._start(),
                )
        return left

    def _apply(self, op: str, left: _Term, right: _Term) -> _Term:
        if op in _COMPARISONS:
            return self._comparison(op, left, right)
        self._need(left, BOOL)
        self._need(right, BOOL)
        a, b = left.value, right.value
        functions: dict[str, Callable[[Given], bool]] = {
            "&&": lambda given: a(given) and b(given),
            ";": lambda given: a(given) and b(given),
            "||": lambda given: a(given) or b(given),
            "->": lambda given: not a(given) or b(given),
        }
        return _Term(BOOL, functions[op], left.start, right.end)

    def _comparison(self, op: str, left: _Term, right: _Term) -> _Term:
        common = self._common(left, right)
        if op not in ("==", "!=") and common.kind == "exact":
            common = Type("bit", common.width)
        if op not in ("==", "!=") and common not in (INT, Type("bit", common.width)):
            fields = " or ".join(f"::{name}" for name in _FIELDS.get(common.kind, ()))
            hint = f"; compare its {fields}" if fields else ""
            self._fail(f"{op} has no meaning for {common}{hint}", left.start)
        a, b, compare = _cast(left, common), _cast(right, common), _COMPARISONS[op]
        return _Term(BOOL, lambda given: compare(a(given), b(given)), left.start, right.end)

    def _common(self, left: _Term, right: _Term) -> Type:
        """Return the type to which both sides of a comparison convert."""
        for one, other in ((left, right), (right, left)):
            a, b = one.type, other.type
            if a == b or (a == INT and b.kind in ("bit", *_EXACTLY)):
                return b
            if a == BOOL and b.width == 1:  # a key of type bool is a bit<1>
                return b
            if a.kind == "bit" and b.kind in _EXACTLY and a.width == b.width:
                return b
            if a.kind == "exact" and b.kind in _EXACTLY and a.width == b.width:
                return b
        self._fail(f"{left.type} and {right.type} cannot be compared", left.start)

    def _unary(self) -> _Term:
        start = self._start()
        if self._take("!"):
            term = self._unary()
            self._need(term, BOOL)
            return _Term(BOOL, lambda given: not term.value(given), start, term.end)
        if self._take("-"):
            term = self._unary()
            self._need(term, INT)
            return _Term(INT, lambda given: -term.value(given), start, term.end)
        if self._take("("):
            term = self._grouped()
            return _Term(term.type, term.value, start, self._end())
        return self._projection(self._primary())

    def _grouped(self) -> _Term:
        term = self._binary(0)
        if not self._take(")"):
            self._fail("a parenthesis is not closed", self._start())
        return term

    def _projection(self, term: _Term) -> _Term:
        if not self._take("::"):
            return term
        _, name, position = self._next()
        fields = _FIELDS.get(term.type.kind, {})
        if term.type.kind == "exact" and name == "value":
            return _Term(_bits(term.type.width), term.value, term.start, self._end())
        if name not in fields:
            has = ", ".join(fields) or ("value" if term.type.kind == "exact" else "none")
            self._fail(f"a match of kind {term.type.kind} has no field {name}: {has}", position)
        index, type_of = fields[name]
        value = term.value
        return _Term(
            type_of(term.type.width), lambda given: value(given)[index], term.start, self._end()
        )

    def _primary(self) -> _Term:
        group, text, start = self._next()
        if text == "::":
            _, name, _ = self._next()
            return self._named(f"::{name}", start)
        if group == "number":
            number = int(re.sub("0[dD]", "", text), 0) if not text.isdigit() else int(text)
            return _Term(INT, lambda given: number, start, self._end())
        if text in ("true", "false"):
            return _Term(BOOL, lambda given: text == "true", start, self._end())
        if text in _ADDRESSES and self._peek() == "(":
            return self._address(text, start)
        if group == "name":
            return self._named(text, start)
        self._fail(f"expected a value, found {text!r}", start)

    def _address(self, kind: str, start: int) -> _Term:
        self._take("(")
        group, text, position = self._next()
        try:
            if group != "text":
                raise ValueError(f"{kind}() takes an address in single quotes")
            number = _ADDRESSES[kind](text[1:-1])
        except ValueError as error:
            self._fail(str(error), position)
        if not self._take(")"):
            self._fail("a parenthesis is not closed", self._start())
        return _Term(INT, lambda given: number, start, self._end())

    def _named(self, name: str, start: int) -> _Term:
        known = self._names.get(name)
        if known is None:
            self._fail(f"{name} is not known here; {hint(name, self._names)}", start)
        if known.kind not in ("int", "bit", *_EXACTLY) or known == Type("bit"):
            self._fail(f"{name} has a type that constraints cannot use", start)
        return _Term(known, lambda given: given[name], start, self._end())

    def _need(self, term: _Term, wanted: Type) -> None:
        if term.type != wanted:
            self._fail(f"expected {wanted}, found {term.type}", term.start)


def _cast(term: _Term, wanted: Type) -> Callable[[Given], Any]:
    """Return a term's value in the type to which a comparison converts it."""
    value, width = term.value, wanted.width
    if term.type == wanted:
        return value
    mask = ones(width)
    if wanted.kind == "bit":
        return lambda given: int(value(given)) & mask
    exactly = _EXACTLY[wanted.kind]
    return lambda given: exactly(int(value(given)) & mask, width)
