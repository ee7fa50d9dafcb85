"""The macro table: pcpp defines and expands macros as C does; its errors become MacroError.

pcpp is used as a library on short texts. It never opens a file, prints or ends the process here;
preprocess.py decides which text is expanded and where it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NoReturn

import pcpp

from gradplane.switch.syntax.conditions import ConditionError, evaluate

Defines = Mapping[str, object] | Iterable[str]

MAX_TOKENS = 200_000  # an expansion larger than this is a mistake (or an attack), not a program
MAX_NESTING = 100  # macros expanded inside macros
BUILT_IN = frozenset({"__LINE__", "__COUNTER__"})
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*([A-Za-z_]\w*)\s*\)|([A-Za-z_]\w*))")
_PARAMETER = r"\s*(?:[A-Za-z_]\w*(?:\.\.\.)?|\.\.\.)\s*"
_HEAD = re.compile(rf"\s*[A-Za-z_]\w*(?:\((?:{_PARAMETER}(?:,{_PARAMETER})*|\s*)\)|\s|$)")


class MacroError(Exception):
    """A definition, use or condition that cannot be evaluated; the text says why."""


class MacroExplosion(MacroError):
    """An expansion beyond MAX_TOKENS; the following ones are not tried."""


class _Token:
    """A pcpp token that is copied fast: pcpp copies each token of a macro at each use."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)

    def __copy__(self) -> _Token:
        return _Token(self.__dict__)


class _Engine(pcpp.Preprocessor):  # type: ignore[misc]  # pcpp has no types
    def on_error(self, file: object, line: object, msg: str) -> NoReturn:
        raise MacroError(msg)

    def expand_macros(self, tokens: list[Any], expanding_from: Any = ()) -> list[Any]:
        if len(expanding_from) > MAX_NESTING:
            raise MacroError(f"macros are nested deeper than {MAX_NESTING} levels")
        self.budget -= len(tokens)
        if self.budget < 0:
            raise MacroExplosion(f"a macro expands to more than {MAX_TOKENS} tokens")
        names = {token.value for token in tokens if token.type == self.t_ID}
        if names.isdisjoint(self.macros) and names.isdisjoint(BUILT_IN):
            return tokens
        return list(super().expand_macros(tokens, list(expanding_from)))


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
        tokens = self._engine.expand_macros(self._tokens(text, line))
        gaps = ["" if _touch(a, b) else " " for a, b in pairwise(tokens)]
        return "".join(t.value + gap for t, gap in zip(tokens, [*gaps, ""], strict=False))

    def holds(self, condition: str, line: int) -> bool:
        """Return whether a condition, as written after #if, is true."""
        if not condition:
            raise MacroError("a condition is missing")
        asked = _DEFINED.sub(lambda m: str(int((m[1] or m[2]) in self)), condition)
        try:
            return evaluate(self.expand(asked, line)) != 0
        except ConditionError as error:
            raise MacroError(f"this condition cannot be evaluated: {error}") from error

    def _tokens(self, text: str, line: int) -> list[Any]:
        engine = self._engine
        engine.budget = MAX_TOKENS
        engine.linemacrodepth = 0
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
