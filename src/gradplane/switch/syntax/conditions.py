"""Evaluation of #if and #elif: C's integer expressions in 64 bits, macros already expanded.

As in C, a number with the suffix u, or of 2^63 and more, is unsigned; so is the result of an
operator with an unsigned operand, and what it computes: -1 > 0u.

pcpp could evaluate them too, but it would compute `1 << 99999999999` until memory is exhausted.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple

MAX_DEPTH = 30  # of nested brackets and signs

_TOKEN = re.compile(
    r"\s*(?:((?:0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlL]*)\b|([A-Za-z_]\w*)"
    r"|(\|\||&&|==|!=|<=|>=|<<|>>|[-+*/%<>&|^!~?:()]))"
)


class ConditionError(Exception):
    """The expression cannot be evaluated; the text says why."""


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise ConditionError("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _shift_left(a: int, b: int) -> int:
    return a << b if 0 <= b < 64 else _no_shift(b)


def _shift_right(a: int, b: int) -> int:
    return a >> b if 0 <= b < 64 else _no_shift(b)


def _no_shift(amount: int) -> int:
    raise ConditionError(f"a shift by {amount}; the amount must be 0 to 63")


# Binary operators: their precedence in C, and the function that computes them.
_BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda a, b: int(bool(a or b))),
    "&&": (2, lambda a, b: int(bool(a and b))),
    "|": (3, operator.or_),
    "^": (4, operator.xor),
    "&": (5, operator.and_),
    "==": (6, operator.eq),
    "!=": (6, operator.ne),
    "<": (7, operator.lt),
    ">": (7, operator.gt),
    "<=": (7, operator.le),
    ">=": (7, operator.ge),
    "<<": (8, _shift_left),
    ">>": (8, _shift_right),
    "+": (9, operator.add),
    "-": (9, operator.sub),
    "*": (10, operator.mul),
    "/": (10, _divide),
    "%": (10, lambda a, b: a - b * _divide(a, b)),
}
_TRUTHS = frozenset({"||", "&&", "==", "!=", "<", ">", "<=", ">=", "!"})  # their results are ints
_SHIFTS = frozenset({"<<", ">>"})  # of the left operand's type
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.inv,
    "!": operator.not_,
}


class _Number(NamedTuple):
    """A value of 64 bits, within the range of its type."""

    value: int
    unsigned: bool = False

    def converted(self, unsigned: bool) -> _Number:
        return _wrapped(self.value, unsigned)


def evaluate(text: str) -> int:
    """Return the value of an expression without macros; any name left in it counts as 0."""
    return _Evaluation(text).run()


class _Evaluation:
    """A recursive evaluator.

    With `live` False an operand is parsed and not computed: `0 && 1 / 0` is 0. Its type counts:
    `1 ? -1 : 0u` is unsigned.
    """

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._depth = 0

    def run(self) -> int:
        result = self._ternary(True)
        if self._tokens:
            raise ConditionError(f"unexpected {self._tokens[-1]}")
        return result.value

    def _accept(self, token: str) -> bool:
        if self._tokens and self._tokens[-1] == token:
            self._tokens.pop()
            return True
        return False

    def _ternary(self, live: bool) -> _Number:
        cond = self._binary(1, live)
        if not self._accept("?"):
            return cond
        then = self._ternary(live and cond.value != 0)
        self._expect(":")
        other = self._ternary(live and cond.value == 0)
        chosen = then if cond.value else other
        return chosen.converted(then.unsigned or other.unsigned)

    def _binary(self, level: int, live: bool) -> _Number:
        """Evaluate operators that bind at least as tightly as `level`."""
        left = self._unary(live)
        while (binding := self._binding()) >= level:
            token = self._tokens.pop()
            decided = (token == "&&" and not left.value) or (token == "||" and left.value != 0)
            right = self._binary(binding + 1, live and not decided)
            left = _applied(token, left, right, live)
        return left

    def _binding(self) -> int:
        return _BINARY.get(self._tokens[-1], (0,))[0] if self._tokens else 0

    def _unary(self, live: bool) -> _Number:
        if not self._tokens:
            raise ConditionError("unexpected end of the condition")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ConditionError(f"it is nested deeper than {MAX_DEPTH} levels")
        token = self._tokens.pop()
        if token in _UNARY:
            operand = self._unary(live)
            unsigned = operand.unsigned and token not in _TRUTHS
            number = _wrapped(_UNARY[token](operand.value), unsigned)
        elif token == "(":
            number = self._ternary(live)
            self._expect(")")
        else:
            number = _number(token)
        self._depth -= 1
        return number

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise ConditionError(f'"{token}" is missing')


def _tokens(text: str) -> list[str]:
    """Return the tokens in reverse order, so that the next one is popped from the end."""
    found: list[str] = []
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ConditionError(f"unexpected {text[position:].split()[0]}")
        found.append(match[1] or match[2] or match[3])
        position = match.end()
    return found[::-1]


def _number(token: str) -> _Number:
    if token[0].isalpha() or token[0] == "_":
        return _Number(0)
    digits = token.rstrip("uUlL")
    try:
        octal = digits[0] == "0" and digits.isdigit()
        value = int(digits, 8 if octal else 0)
    except ValueError:
        raise ConditionError(f"unexpected {digits}") from None
    return _wrapped(value, "u" in token.lower() or value >= 1 << 63)


def _applied(token: str, left: _Number, right: _Number, live: bool) -> _Number:
    """Return what a binary operator computes, after C's usual conversions; 0 if it is not live."""
    unsigned = left.unsigned or right.unsigned
    if token in _SHIFTS:
        unsigned = left.unsigned
    elif token not in ("&&", "||"):
        left, right = left.converted(unsigned), right.converted(unsigned)
    value = _BINARY[token][1](left.value, right.value) if live else 0
    return _wrapped(value, unsigned and token not in _TRUTHS)


def _wrapped(value: int, unsigned: bool) -> _Number:
    """Wrap a value to the 64 bits of its type."""
    low = 0 if unsigned else -(1 << 63)
    return _Number((int(value) - low) % (1 << 64) + low, unsigned)
