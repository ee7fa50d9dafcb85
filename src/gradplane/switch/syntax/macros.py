"""The macro table: pcpp defines and expands macros as C does; its errors become MacroError.

pcpp is used as a library on short texts. It never opens a file, prints or ends the process here;
preprocess.py decides which text is expanded and where it came from.

The conditions of #if and #elif, C's integer expressions in 64 bits, are evaluated here as well,
when macros are expanded. As in C, a number with the suffix u, or of 2^63 and more, is unsigned; so
is the result of an operator with an unsigned operand, and what it computes: -1 > 0u. pcpp could
evaluate them too, but it would compute `1 << 99999999999` until memory is exhausted.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any, NamedTuple, NoReturn

import pcpp

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
    # as in GCC, what is beyond 64 bits is cut, and signed
    return _wrapped(value, "u" in token.lower() or 1 << 63 <= value < 1 << 64)


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


Defines = Mapping[str, object] | Iterable[str]

MAX_TOKENS = 200_000  # an expansion larger than this is a mistake (or an attack), not a program
MAX_NESTING = 100  # macros expanded inside macros
BUILT_IN = frozenset({"__LINE__", "__COUNTER__"})
_SEPARATE = frozenset(" (),;")  # no token of P4 goes on before or after these
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*([A-Za-z_]\w*)\s*\)|([A-Za-z_]\w*))")
FILE_NAME = r'"[^"]+"|<[^>]+>'
_HAS_INCLUDE = re.compile(rf"\b__has_include\s*\(\s*({FILE_NAME})\s*\)")
_PARAMETER = r"\s*(?:[A-Za-z_]\w*(?:\.\.\.)?|\.\.\.)\s*"
_HEAD = re.compile(rf"\s*[A-Za-z_]\w*(?:\((?:{_PARAMETER}(?:,{_PARAMETER})*|\s*)\)|\s|$)")


class MacroError(Exception):
    """A definition, use or condition that cannot be evaluated; the text says why."""


class MacroExplosion(MacroError):
    """An expansion beyond MAX_TOKENS; the following ones are not tried."""


class _Token:
    """A pcpp token that is copied fast. `made_by`: the macros that it comes from, which do not
    expand it again."""

    made_by: tuple[str, ...] = ()

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)

    def __copy__(self) -> _Token:
        return _Token(self.__dict__)


class _Engine(pcpp.Preprocessor):  # type: ignore[misc]  # pcpp has no types
    """pcpp, with an expansion of its own: pcpp scans and copies each token of an expansion once
    more for each macro around it. Tokens other than names are shared between expansions, never
    changed.
    """

    budget = 0
    unclosed = False  # a list of arguments did not end within the last expansion
    around: tuple[str, ...] = ()  # the macros around the use whose arguments are expanded

    def on_error(self, file: object, line: object, msg: str) -> NoReturn:
        raise MacroError(msg)

    def expand_macros(
        self, tokens: list[Any], expanding_from: tuple[str, ...] | None = None
    ) -> list[Any]:
        """Return the expansion of tokens; the list may be changed.

        expanding_from: the macros around them, which do not expand again; None: those around the
        use of which they are an argument.
        """
        if expanding_from is None:
            expanding_from = self.around
        if len(expanding_from) > MAX_NESTING:
            raise MacroError(f"macros are nested deeper than {MAX_NESTING} levels")
        self.budget -= len(tokens)
        if self.budget < 0:
            raise MacroExplosion(f"a macro expands to more than {MAX_TOKENS} tokens")
        names = {token.value for token in tokens if token.type == self.t_ID}
        if names.isdisjoint(self.macros) and names.isdisjoint(BUILT_IN):
            return tokens
        i = 0
        while i < len(tokens):
            token = tokens[i]
            if token.type != self.t_ID:
                i += 1
            elif token.value in self.macros and token.value not in (
                *token.made_by,
                *expanding_from,
            ):
                i = self._replaced(tokens, i, (*expanding_from, token.value))
            else:
                if token.value in BUILT_IN:
                    self._number(token)
                i += 1
        return tokens

    def _replaced(self, tokens: list[Any], at: int, expanding_from: tuple[str, ...]) -> int:
        """Expand the use of a macro in place; return the position from which to scan on."""
        token = tokens[at]
        macro, end = self.macros[token.value], at + 1
        if macro.arglist is None:
            body = self._joined(macro)
        else:
            opening = self._after_blanks(tokens, end)
            if opening == len(tokens) or tokens[opening].value != "(":
                return opening
            args, end = self._arguments(tokens, opening, macro)
            if not end:
                self.unclosed = True
                return len(tokens)
            outer, self.around = self.around, expanding_from[:-1]
            body = self.macro_expand_args(macro, args)
            self.around = outer
        self.unclosed = False
        made, name_type = self.expand_macros(body, expanding_from), self.t_ID
        for other in made:
            # A name in an argument occurs as often as its parameter.
            if other.type == name_type and token.value not in other.made_by:
                other.made_by = (*other.made_by, token.value)
        # It is expanded already, but for a name at its end whose arguments follow the use, or one
        # whose arguments end behind the use.
        last = 0 if self.unclosed else len(made)
        while last and made[last - 1].type in self.t_WS:
            last -= 1
        if last and made[last - 1].type == self.t_ID:
            last -= 1
        if macro.arglist is not None and end < len(tokens) and tokens[end].type == self.t_ID:
            made.append(_Token(vars(tokens[end]) | {"type": self.t_SPACE, "value": " "}))
        tokens[at:end] = made
        return at + last

    def _after_blanks(self, tokens: list[Any], at: int) -> int:
        while at < len(tokens) and tokens[at].type in self.t_WS:
            at += 1
        return at

    def _arguments(
        self, tokens: list[Any], opening: int, macro: Any
    ) -> tuple[list[list[Any]], int]:
        """Return a use's arguments, and where it ends; 0 if it does not."""
        given, end, starts = self._listed(tokens, opening)
        if not end:
            return [], 0
        wanted = len(macro.arglist)
        if macro.variadic:
            if len(given) < wanted - 1:
                plural = "s" if wanted > 2 else ""
                self.on_error(
                    "", 0, f"Macro {macro.name} must have at least {wanted - 1} argument{plural}"
                )
            if len(given) >= wanted:
                given[wanted - 1 :] = [tokens[starts[wanted - 1] : end - 1]]
        elif (given != [[]] or wanted > 1) and len(given) != wanted:
            self.on_error(
                "", 0, f"Macro {macro.name} requires {wanted} arguments but was passed {len(given)}"
            )
        return given + [[] for _ in range(wanted - len(given))], end

    def _listed(self, tokens: list[Any], opening: int) -> tuple[list[list[Any]], int, list[int]]:
        """Return the parts between commas, without blanks around them, the end of the list behind
        `opening` (0 if there is none), and where the parts start."""
        parts: list[list[Any]] = [[]]
        starts, depth = [opening + 1], 1
        for at in range(opening + 1, len(tokens)):
            token = tokens[at]
            if token.value == ")":
                depth -= 1
                if not depth:
                    return [self.tokenstrip(part) for part in parts], at + 1, starts
            elif token.value == "(":
                depth += 1
            elif token.value == "," and depth == 1:
                parts.append([])
                starts.append(at + 1)
                continue
            parts[-1].append(token)
        return [], 0, []

    def macro_expand_args(self, macro: Any, args: list[list[Any]]) -> list[Any]:
        """Return a macro's body with its arguments, which are expanded, in their places."""
        if not hasattr(macro, "parts"):
            macro.parts = self._parts(macro)
        if macro.parts is None:
            return list(super().macro_expand_args(macro, args))
        wanted = {part for part in macro.parts if isinstance(part, int)}
        expanded = {n: self.expand_macros([*args[n]]) for n in wanted}
        body: list[Any] = []
        for part in macro.parts:
            if isinstance(part, int):
                body += expanded[part]
            elif isinstance(part, tuple):
                body += part
            else:
                body.append(copy(part))
        return body

    def _parts(self, macro: Any) -> list[Any] | None:
        """Cut a macro's body into parameters (their numbers), names (tokens) and tuples of other
        tokens. None if there is more to do: # or ##, or a variable number of arguments."""
        if macro.str_patch or macro.variadic or any(t.type == self.t_DPOUND for t in macro.value):
            return None
        places = {at: argument for _, argument, at in macro.patch}
        parts: list[Any] = []
        others: list[Any] = []
        for at, token in enumerate(macro.value):
            name = token.type == self.t_ID
            if at in places or name:
                parts += [tuple(others), places.get(at, token)]
                others = []
            else:
                others.append(token)
        return [*parts, tuple(others)]

    def _joined(self, macro: Any) -> list[Any]:
        """Return the body of a macro without parameters; pcpp leaves ## in it as it is."""
        joins = [i for i, token in enumerate(macro.value) if token.type == self.t_DPOUND]
        if joins:
            macro.patch = macro.str_patch = ()
            for i in reversed(joins):
                around = [self.tokenstrip(part) for part in (macro.value[:i], macro.value[i + 1 :])]
                macro.value = [*around[0], macro.value[i], *around[1]]
            return list(super().macro_expand_args(macro, []))
        return [self._used(t) for t in macro.value]

    def _used(self, token: Any) -> Any:
        """Return a token of a macro's body for one use; a name gets a history of its own."""
        return copy(token) if token.type == self.t_ID else token

    def _number(self, token: Any) -> None:
        """Make the number of __LINE__ or __COUNTER__."""
        token.type = self.t_INTEGER
        if token.value == "__LINE__":
            token.value = self.t_INTEGER_TYPE(self.linemacro)
        else:
            token.value = self.t_INTEGER_TYPE(self.countermacro)
            self.countermacro += 1


class Macros:
    """The defined macros, changed by #define and #undef as a file is read."""

    def __init__(self, defines: Defines = ()) -> None:
        self._engine = _Engine()
        self._engine.macros.clear()  # neither date nor time: the same text gives the same program
        for name, value in split_defines(defines):
            self.define(f"{name} {value}")

    def __contains__(self, name: str) -> bool:
        return name in self._engine.macros or name in BUILT_IN

    def is_plain(self, name: str) -> bool:
        """Return whether `name` is replaced without an argument list of its own."""
        macro = self._engine.macros.get(name)
        return macro is None or macro.arglist is None

    def takes_arguments(self, name: str) -> bool:
        """Return whether `name` takes the parenthesised list that follows it."""
        seen = set()
        while name in self._engine.macros and name not in seen:
            seen.add(name)
            macro = self._engine.macros[name]
            if macro.arglist is not None:
                return True
            name = macro.value[-1].value if macro.value else ""
        return False

    def define(self, text: str) -> None:
        """Define a macro from the text after #define: `NAME value` or `NAME(a, b) value`."""
        head = _HEAD.match(text)
        if head is None:
            raise MacroError("#define needs a name, then a blank or parameters in parentheses")
        self._engine.define(self._tokens(text.strip(), 0))

    def enter(self, file: str) -> None:
        """Give __FILE__ the name of the file that is being read."""
        quoted = file.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        self.define(f'__FILE__ "{quoted}"')

    def undefine(self, name: str) -> None:
        self._engine.macros.pop(name, None)

    def expand(self, text: str, line: int) -> str:
        """Return the expansion of one macro use; `line` is the value of __LINE__ in it."""
        parts: list[str] = []
        before = None
        for token in self._engine.expand_macros(self._tokens(text, line)):
            value = token.value
            if value in _SEPARATE:
                before = None
            else:
                if before is not None and not _touch(before, token):
                    parts.append(" ")
                before = token
            parts.append(value)
        return "".join(parts)

    def defined(self, name: str) -> bool:
        """Return whether `name` counts as defined in a condition."""
        return name in self or name == "__has_include"

    def holds(self, condition: str, line: int, has_file: Callable[[str], bool]) -> bool:
        """Return whether a condition, as written after #if, is true.

        has_file: whether there is a file of a name as "name" or <name>.
        """
        if not condition:
            raise MacroError("a condition is missing")

        def looked_for(text: str) -> str:
            return _HAS_INCLUDE.sub(lambda m: str(int(has_file(m[1]))), text)

        asked = _DEFINED.sub(lambda m: str(int(self.defined(m[1] or m[2]))), looked_for(condition))
        expanded = looked_for(self.expand(asked, line))  # the name may be a macro's
        if "__has_include" in expanded:
            raise MacroError('__has_include needs a file name, as ("name") or (<name>)')
        try:
            return evaluate(expanded) != 0
        except ConditionError as error:
            raise MacroError(f"this condition cannot be evaluated: {error}") from error

    def _tokens(self, text: str, line: int) -> list[Any]:
        engine = self._engine
        engine.budget = MAX_TOKENS
        engine.linemacro = line
        engine.around = ()
        return [_Token(vars(token) | {"lineno": line}) for token in engine.tokenize(text)]


def _touch(left: Any, right: Any) -> bool:
    """Return whether two tokens were written without a space, or come from one token made by ##.

    Others are separated by a space: a sign from a macro and one before it do not form `++`.
    """
    if right.lexpos == left.lexpos:
        return bool((left.value + right.value).replace("_", "x").isalnum())
    return bool(right.lexpos == left.lexpos + len(left.value))


def split_defines(defines: Defines) -> list[tuple[str, str]]:
    """Return {"N": 4} or ["N=4", "DEBUG"] as (name, value) pairs; a name without a value is 1."""
    if isinstance(defines, Mapping):
        return [(name, str(value)) for name, value in defines.items()]
    pairs = (text.partition("=") for text in defines)
    return [(name, value if equals else "1") for name, equals, value in pairs]
