"""Evaluation of #if and #elif: C's integer expressions in 64 bits, macros already expanded.

pcpp could evaluate them too, but it would compute `1 << 99999999999` until memory is exhausted.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

MAX_DEPTH = 30  # of nested brackets and signs

_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlL]*\b|([A-Za-z_]\w*)"
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
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.inv,
    "!": operator.not_,
}


def evaluate(text: str) -> int:
    """Return the value of an expression without macros; any name left in it counts as 0."""
    return _Evaluation(text).run()


class _Evaluation:
    """A recursive evaluator.

    With `live` False an operand is parsed and not computed: `0 && 1 / 0` is 0.
    """

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._depth = 0

    def run(self) -> int:
        value = self._ternary(True)
        if self._tokens:
            raise ConditionError(f"unexpected {self._tokens[-1]}")
        return value

    def _accept(self, token: str) -> bool:
        if self._tokens and self._tokens[-1] == token:
            self._tokens.pop()
            return True
        return False

    def _ternary(self, live: bool) -> int:
        cond = self._binary(1, live)
        if not self._accept("?"):
            return cond
        then = self._ternary(live and cond != 0)
        self._expect(":")
        other = self._ternary(live and cond == 0)
        return then if cond else other

    def _binary(self, level: int, live: bool) -> int:
        """Evaluate operators that bind at least as tightly as `level`."""
        value = self._unary(live)
        while (binding := self._binding()) >= level:
            token = self._tokens.pop()
            decided = (token == "&&" and not value) or (token == "||" and value != 0)
            right = self._binary(binding + 1, live and not decided)
            if live:
                value = _wrapped(_BINARY[token][1](value, right))
        return value

    def _binding(self) -> int:
        return _BINARY.get(self._tokens[-1], (0,))[0] if self._tokens else 0

    def _unary(self, live: bool) -> int:
        if not self._tokens:
            raise ConditionError("unexpected end of the condition")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ConditionError(f"it is nested deeper than {MAX_DEPTH} levels")
        token = self._tokens.pop()
        if token in _UNARY:
            value = _wrapped(_UNARY[token](self._unary(live)))
        elif token == "(":
            value = self._ternary(live)
            self._expect(")")
        else:
            value = _number(token)
        self._depth -= 1
        return value

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


def _number(token: str) -> int:
    if token[0].isalpha() or token[0] == "_":
        return 0
    try:
        octal = token[0] == "0" and token.isdigit()
        return _wrapped(int(token, 8 if octal else 0))
    except ValueError:
        raise ConditionError(f"unexpected {token}") from None


def _wrapped(value: int) -> int:
    """Wrap a value to 64 bits, signed."""
    return (int(value) + (1 << 63)) % (1 << 64) - (1 << 63)
