"""The macro table: pcpp defines and expands as C does, its errors become MacroError.

pcpp is used as a library of rules on short texts. It never opens a file, prints or ends the
process here; which text is expanded, and where it came from, is decided in preprocess.py.
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
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*([A-Za-z_]\w*)\s*\)|([A-Za-z_]\w*))")
_PARAMETER = r"\s*(?:[A-Za-z_]\w*(?:\.\.\.)?|\.\.\.)\s*"
_HEAD = re.compile(rf"\s*[A-Za-z_]\w*(?:\((?:{_PARAMETER}(?:,{_PARAMETER})*|\s*)\)|\s|$)")
BUILT_IN = frozenset({"__LINE__", "__COUNTER__"})


class MacroError(Exception):
    """A definition, use or condition that cannot be worked out; the text says why."""


class MacroExplosion(MacroError):
    """An expansion without end, for all that matters: no use to try the next one."""


class _Engine(pcpp.Preprocessor):  # type: ignore[misc]  # pcpp has no types
    def on_error(self, file: object, line: object, msg: str) -> NoReturn:
        raise MacroError(msg)

    def expand_macros(self, tokens: list[Any], expanding_from: Any = ()) -> list[Any]:
        if len(expanding_from) > MAX_NESTING:
            raise MacroError(f"macros are nested deeper than {MAX_NESTING} levels")
        self.budget -= len(tokens)
        if self.budget < 0:
            raise MacroExplosion(f"a macro expands to more than {MAX_TOKENS} tokens")
        return list(super().expand_macros(tokens, list(expanding_from)))


class Macros:
    """Names and their replacements, changed by #define and #undef as a file is read."""

    def __init__(self, defines: Defines = ()) -> None:
        self._engine = _Engine()
        self._engine.macros.clear()  # no date and no time: the same text gives the same program
        for name, value in split_defines(defines):
            self.define(f"{name} {value}")

    def __contains__(self, name: str) -> bool:
        return name in self._engine.macros or name in BUILT_IN

    def is_plain(self, name: str) -> bool:
        """Whether `name` alone is replaced, without an argument list of its own."""
        macro = self._engine.macros.get(name)
        return macro is None or macro.arglist is None

    def takes_arguments(self, name: str) -> bool:
        """Whether `name` followed by a parenthesis takes what is in it."""
        seen = set()
        while name in self._engine.macros and name not in seen:
            seen.add(name)
            macro = self._engine.macros[name]
            if macro.arglist is not None:
                return True
            name = macro.value[-1].value if macro.value else ""
        return False

    def define(self, text: str) -> None:
        """`NAME value` or `NAME(a, b) value`, as written after #define."""
        head = _HEAD.match(text)
        if head is None:
            raise MacroError("#define needs a name, then a blank or parameters in parentheses")
        self._engine.define(self._tokens(text.strip(), 0))

    def enter(self, file: str) -> None:
        """Give __FILE__ the name of the file that is read now."""
        quoted = file.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        self.define(f'__FILE__ "{quoted}"')

    def undefine(self, name: str) -> None:
        self._engine.macros.pop(name, None)

    def expand(self, text: str, line: int) -> str:
        """The replacement of one macro use; `line` is what __LINE__ gives in it."""
        tokens = self._engine.expand_macros(self._tokens(text, line))
        gaps = ["" if _touch(a, b) else " " for a, b in pairwise(tokens)]
        return "".join(t.value + gap for t, gap in zip(tokens, [*gaps, ""], strict=False))

    def holds(self, condition: str, line: int) -> bool:
        """Whether a condition as written after #if is true."""
        if not condition:
            raise MacroError("a condition is missing")
        asked = _DEFINED.sub(lambda m: str(int((m[1] or m[2]) in self)), condition)
        try:
            return evaluate(self.expand(asked, line)) != 0
        except ConditionError as error:
            raise MacroError(f"this condition has no value: {error}") from error

    def _tokens(self, text: str, line: int) -> list[Any]:
        engine = self._engine
        engine.budget = MAX_TOKENS
        engine.linemacrodepth = 0
        tokens: list[Any] = engine.tokenize(text)
        for token in tokens:
            token.lineno = line
        return tokens


def _touch(left: Any, right: Any) -> bool:
    """Whether two tokens were written side by side, or come from one token made by ##.

    Others stay apart: a sign from a macro and one before it are not `++`.
    """
    if right.lexpos == left.lexpos:
        return bool((left.value + right.value).replace("_", "x").isalnum())
    return bool(right.lexpos == left.lexpos + len(left.value))


def split_defines(defines: Defines) -> list[tuple[str, str]]:
    """{"N": 4} or ["N=4", "DEBUG"] as (name, value) pairs; a name without a value is 1."""
    if isinstance(defines, Mapping):
        return [(name, str(value)) for name, value in defines.items()]
    pairs = (text.partition("=") for text in defines)
    return [(name, value if equals else "1") for name, equals, value in pairs]
