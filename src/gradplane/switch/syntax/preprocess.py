"""The preprocessor: removes comments and expands conditions, includes and macros.

A piece is text that the lexer reads unchanged. Text without macros becomes one large piece, at
almost no cost; each macro use becomes a piece of its own, whose tokens all have the location of
the use. So the location of every token is one in the file as the user wrote it.

    #define PORT 5            pieces:  "bit<9> p = "    prog.p4:2:1
    bit<9> p = PORT;                   "5"              prog.p4:2:12, width 4
                                       ";"              prog.p4:2:16
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gradplane._suggestions import did_you_mean, near_file
from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax.macros import FILE_NAME, Defines, MacroError, MacroExplosion, Macros

_SWITCH = Path(__file__).resolve().parent.parent
# The includes that are shipped: each architecture's in its folder, and those for all of them.
STOCK_INCLUDES = (*sorted(_SWITCH.glob("arch/*/include")), _SWITCH / "include")
MAX_INCLUDES = 64

_STRING = r'"(?:\\.|[^"\\\n])*"'
_LINE_MARKER = r'\n[ \t]*#[ \t]*(?:line[ \t]*)?\d+[ \t]+"[^"\n]*"'  # its quotes end no string
_LONG_STRING = rf'"(?:\\.|{_LINE_MARKER}|[^"\\])*+"'  # over several lines, as in annotations
_COMMENTS = r"//(?:\\\n|[^\n])*|/\*.*?\*/|/\*"
_COMMENT = re.compile(_LONG_STRING + r'|"|' + _COMMENTS, re.S)
_COMMENT_BY_LINE = re.compile(_STRING + r"|" + _COMMENTS, re.S)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\[ \t]*\n|[^\n])*", re.M)
_CONTINUED = re.compile(r"\\(?=[ \t]*\n)")
# comments are gone: what still looks like one is text of a string over several lines
_WORD = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/|\d\w*|[A-Za-z_]\w*", re.S)
_BRACKET = re.compile(_STRING + r"|[()]")
_OPEN = re.compile(r"\s*\(")


@dataclass(frozen=True, slots=True)
class Piece:
    """Text from one location. With a `width`, all of it has that location (a macro use)."""

    text: str
    file: str
    line: int
    column: int
    width: int | None = None
    origin: Path | None = None  # the file that was read, which #line does not change


@dataclass(slots=True)
class _File:
    """A file being read. #line changes `name` and `shift`, which determine reported locations."""

    path: Path
    name: str
    shift: int = 0


@dataclass(slots=True)
class _Condition:
    """An open #if. `live`: this branch is read; `done`: no later branch can be."""

    opened: Span
    live: bool
    done: bool
    last: bool = False  # after #else


def preprocess(
    path: str | Path,
    include_dirs: Iterable[str | Path] = (),
    defines: Defines = (),
    text: str | None = None,
    reporter: Reporter | None = None,
    shipped_only: bool = False,
) -> tuple[list[Piece], Reporter]:
    """Read `path` (or `text` under its name) and all it includes. Raises CompileError.

    shipped_only: only include files that are part of this package are found.
    """
    run = Preprocessor(include_dirs, defines, reporter or Reporter(), shipped_only)
    pieces = run.run(Path(path), str(path), text)
    run.reporter.stop_on_errors()
    return pieces, run.reporter


class Preprocessor:
    """One run over a program. Errors are collected in `reporter`."""

    def __init__(
        self,
        include_dirs: Iterable[str | Path],
        defines: Defines,
        reporter: Reporter,
        shipped_only: bool = False,
    ) -> None:
        self.reporter = reporter
        self._shipped_only = shipped_only
        self._dirs = [*map(Path, include_dirs), *STOCK_INCLUDES]
        self._beside: tuple[Path, ...] = ()  # the program's folder
        self._macros: Macros
        self._defines = defines
        self._pieces: list[Piece] = []
        self._open: list[_File] = []
        self._once: set[Path] = set()
        self._too_deep = False
        self._conditions: list[_Condition] = []

    def run(self, path: Path, name: str, text: str | None) -> list[Piece]:
        """Return the pieces of the program in `path`, or in `text` when given."""
        place = Span(name, 1, 1, 1)
        self._beside = (path.parent,)
        try:
            self._macros = Macros(self._defines)
        except MacroError as error:
            self._macros = Macros()
            self.reporter.error(place, f"in the given defines: {error}")
        content = self._read(path, place) if text is None else text
        if content is not None:
            self._file(_File(path, name), content)
        return self._pieces

    def _read(self, path: Path, place: Span) -> str | None:
        try:
            text = read_source(path)
            self.reporter.read[os.path.abspath(path)] = text
            return text
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self.reporter.error(place, f'cannot read "{path}": {reason}{near_file(path)}')
            return None

    def _file(self, file: _File, text: str) -> None:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.reporter.lines[file.name] = text.split("\n")
        self._open.append(file)
        self._macros.enter(file.name)
        outer, self._conditions = self._conditions, []
        shipped = is_shipped(file.path)
        text, unclosed, in_strings = _prepared_once(text) if shipped else _prepared(text)
        for offset in unclosed:
            self.reporter.error(self._at(text, offset, 1, 2), "this comment is not closed")
        position, line = 0, 1
        for match in _DIRECTIVE.finditer(text):
            if match.start() in in_strings and not _is_directive(match.group()):
                continue
            self._text(text[position : match.start()], line)
            line += text.count("\n", position, match.start())
            self._directive(match.group(), line)
            line += match.group().count("\n")
            position = match.end()
        self._text(text[position:], line)
        for condition in self._conditions:
            self.reporter.error(condition.opened, "this condition has no #endif")
        self._conditions = outer
        self._open.pop()
        if self._open:
            self._macros.enter(self._open[-1].name)

    # -- ordinary text and macro uses ------------------------------------------------------------

    @property
    def _live(self) -> bool:
        return all(c.live for c in self._conditions)

    def _text(self, text: str, line: int) -> None:
        """Cut text that starts at the head of `line` into pieces, one for each macro use."""
        if not self._live:
            return
        done = 0
        if is_shipped(self._open[-1].path) and not any(w in self._macros for w in _words(text)):
            self._verbatim(text, 0, len(text), line)
            return
        for word in _WORD.finditer(text):
            name = word.group()
            if word.start() < done or name not in self._macros:
                continue
            end = self._use_end(text, word, line)
            if end is None:
                continue
            self._verbatim(text, done, word.start(), line)
            self._use(text[word.start() : end], self._at(text, word.start(), line, len(name)))
            done = end
        self._verbatim(text, done, len(text), line)

    def _use_end(self, text: str, word: re.Match[str], line: int) -> int | None:
        """Return where the macro use ends, its arguments included; None if it lacks them."""
        if not self._macros.takes_arguments(word.group()):
            return word.end()
        opening = _OPEN.match(text, word.end())
        if opening is None:
            return word.end() if self._macros.is_plain(word.group()) else None
        depth = 0
        for bracket in _BRACKET.finditer(text, opening.end() - 1):
            depth += {"(": 1, ")": -1}.get(bracket.group(), 0)
            if depth == 0:
                return bracket.end()
        place = self._at(text, word.start(), line, len(word.group()))
        self.reporter.error(place, f'the arguments of macro "{word.group()}" lack a ")"')
        return len(text)

    def _use(self, use: str, place: Span) -> None:
        try:
            text = self._macros.expand(_CONTINUED.sub(" ", use), place.line)
        except MacroError as error:
            self._failed(error, place)
            return
        width = place.end - place.column
        origin = self._open[-1].path
        self._pieces.append(Piece(text, place.file, place.line, place.column, width, origin))

    def _verbatim(self, text: str, start: int, end: int, line: int) -> None:
        if start < end:
            place = self._at(text, start, line, 0)
            origin = self._open[-1].path
            piece = Piece(text[start:end], place.file, place.line, place.column, origin=origin)
            self._pieces.append(piece)

    def _at(self, text: str, offset: int, line: int, width: int) -> Span:
        line += text.count("\n", 0, offset)
        return self._span(line, offset - text.rfind("\n", 0, offset), width)

    def _span(self, line: int, column: int, width: int) -> Span:
        file = self._open[-1]
        return Span(file.name, line + file.shift, column, column + width)

    # -- directives ------------------------------------------------------------------------------

    def _directive(self, text: str, line: int) -> None:
        indent = len(text) - len(text.lstrip())
        place = self._span(line, indent + 1, len(text.split("\n")[0].rstrip()) - indent)
        joined = re.sub(r"\\[ \t]*\n", "", text).strip()
        keyword, body = re.fullmatch(r"#\s*(\w*)(.*)", joined, re.S).groups()  # type: ignore[union-attr]
        try:
            if keyword in _CONDITIONAL:
                _CONDITIONAL[keyword](self, body.strip(), place)
            elif self._live:
                self._plain_directive(keyword, body.strip(), place)
        except MacroError as error:
            self._failed(error, place)

    def _failed(self, error: MacroError, place: Span) -> None:
        self.reporter.error(place, str(error))
        if isinstance(error, MacroExplosion):
            self.reporter.stop_on_errors()

    def _plain_directive(self, keyword: str, body: str, place: Span) -> None:
        if keyword in _PLAIN:
            _PLAIN[keyword](self, body, place)
        elif keyword.isdigit():
            self._line(f"{keyword} {body}", place)
        elif keyword:
            known = ", ".join(f"#{name}" for name in sorted(_CONDITIONAL | _PLAIN))
            what = f'the unknown directive "#{keyword}" is ignored'
            self.reporter.warning(place, what, f"known: {known}")

    def _define(self, body: str, place: Span) -> None:
        self._macros.define(body)

    def _undef(self, body: str, place: Span) -> None:
        self._macros.undefine(_name(body, "#undef"))

    def _error(self, body: str, place: Span) -> None:
        self.reporter.error(place, f"#error {body}".strip())

    def _warning(self, body: str, place: Span) -> None:
        self.reporter.warning(place, f"#warning {body}".strip())

    def _pragma(self, body: str, place: Span) -> None:
        if body == "once":
            self._once.add(self._open[-1].path.resolve())

    def _line(self, body: str, place: Span) -> None:
        """Handle `#line 12 "file.p4"`, or other preprocessors' form, `# 12 "file.p4" 2`."""
        match = re.match(r'(\d{1,9})(?:\s+"([^"]*)")?', body)
        if match is None:
            raise MacroError("#line needs a line number, then possibly a file name in quotes")
        file = self._open[-1]
        here = place.line - file.shift
        file.shift = int(match[1]) - here - 1
        file.name = match[2] or file.name
        self._macros.enter(file.name)

    def _include(self, body: str, place: Span) -> None:
        if body[:1] not in ('"', "<"):
            body = self._macros.expand(body, place.line).strip()
        if re.fullmatch(FILE_NAME, body) is None:
            raise MacroError('#include needs a file name, as "name" or <name>')
        if self._too_deep:
            return  # files that include each other twice would be read 2^64 times
        if len(self._open) > MAX_INCLUDES:
            self._too_deep = True
            what = f"includes are nested deeper than {MAX_INCLUDES} files"
            self.reporter.error(place, what, self._circle())
            return
        found = self._found(body)
        if found is None:
            self._missing(body, place)
        elif found.resolve() not in self._once:
            content = self._read(found, place)
            if content is not None:
                self._file(_File(found, str(found)), content)

    def _circle(self) -> str:
        """Return by what way the file being read includes itself; nothing if it does not."""
        *others, here = (file.path.resolve() for file in self._open)
        if here not in others:
            return ""
        way = others[len(others) - others[::-1].index(here) :]
        by = f" by way of {', '.join(file.name for file in way)}" if way else ""
        return f"{here.name} includes itself{by}: begin it with #pragma once"

    def _found(self, name: str) -> Path | None:
        """Return the file of a name as it stands after #include; None if there is none."""
        files = (folder / name[1:-1] for folder in self._folders(name))
        return next((file for file in files if self._is_there(file)), None)

    def _folders(self, name: str) -> list[Path]:
        """Return where a file is looked for: only "name" is looked for beside files that were read,
        so that a program psa.p4 can include <psa.p4>."""
        if name[0] == "<":
            return self._dirs
        return list(dict.fromkeys((self._open[-1].path.parent, *self._dirs, *self._beside)))

    def _missing(self, name: str, place: Span) -> None:
        plain, where = name[1:-1], ", ".join(map(str, self._folders(name)))
        hint = f"looked in: {where}"
        if self._shipped_only:  # a client's program: this machine's folders are not its business
            hint = "a pushed program has the switch's own include files only: push it with all its"
            hint += " includes in one file (gradplane p4 config)"
            self.reporter.error(place, f'cannot find "{plain}"', hint)
            return
        if name[0] == "<" and self._found(f'"{plain}"'):
            hint = f'write #include "{plain}" for the one beside this file; {hint}'
        elif near := did_you_mean(plain.removesuffix(".p4"), self._known(name), "{}.p4".format):
            hint = f"{near} {hint}"
        self.reporter.error(place, f'cannot find "{plain}"', hint)

    def _known(self, name: str) -> list[str]:
        """Return the names, without .p4, that an include of this form finds in its folder."""
        below = Path(name[1:-1]).parent
        files = (file for folder in self._folders(name) for file in (folder / below).glob("*.p4"))
        return sorted({str(below / file.stem) for file in files})

    def _is_there(self, path: Path) -> bool:
        there = _is_file(path)
        if there and self._shipped_only:
            return any(path.resolve().is_relative_to(folder) for folder in STOCK_INCLUDES)
        if not there:
            self.reporter.read[os.path.abspath(path)] = None
        return there

    # -- conditions ------------------------------------------------------------------------------

    def _holds(self, body: str, place: Span) -> bool:
        return self._macros.holds(body, place.line, lambda name: self._found(name) is not None)

    def _if(self, body: str, place: Span) -> None:
        self._open_condition(place, lambda: self._holds(body, place))

    def _ifdef(self, body: str, place: Span) -> None:
        self._open_condition(place, lambda: self._macros.defined(_name(body, "#ifdef")))

    def _ifndef(self, body: str, place: Span) -> None:
        self._open_condition(place, lambda: not self._macros.defined(_name(body, "#ifndef")))

    def _open_condition(self, place: Span, holds: Callable[[], bool]) -> None:
        """Open an #if. Within skipped text all branches are skipped, and `holds` is not called."""
        skipped = not self._live
        condition = _Condition(place, live=False, done=True)
        self._conditions.append(condition)
        if not skipped:
            condition.live = condition.done = holds()

    def _elif(self, body: str, place: Span) -> None:
        condition = self._innermost("#elif")
        condition.live = False
        if not condition.done:
            condition.live = condition.done = self._holds(body, place)

    def _else(self, body: str, place: Span) -> None:
        condition = self._innermost("#else")
        condition.live, condition.done, condition.last = not condition.done, True, True

    def _endif(self, body: str, place: Span) -> None:
        self._innermost("#endif")
        self._conditions.pop()

    def _innermost(self, keyword: str) -> _Condition:
        if not self._conditions:
            raise MacroError(f"{keyword} without an #if before it")
        condition = self._conditions[-1]
        if condition.last and keyword != "#endif":
            raise MacroError(f"{keyword} after #else")
        return condition


_Handler = Callable[[Preprocessor, str, Span], None]

_CONDITIONAL: dict[str, _Handler] = {
    "if": Preprocessor._if,
    "ifdef": Preprocessor._ifdef,
    "ifndef": Preprocessor._ifndef,
    "elif": Preprocessor._elif,
    "else": Preprocessor._else,
    "endif": Preprocessor._endif,
}
_PLAIN: dict[str, _Handler] = {
    "define": Preprocessor._define,
    "undef": Preprocessor._undef,
    "include": Preprocessor._include,
    "error": Preprocessor._error,
    "warning": Preprocessor._warning,
    "pragma": Preprocessor._pragma,
    "line": Preprocessor._line,
}


def _name(body: str, directive: str) -> str:
    match = re.match(r"[A-Za-z_]\w*", body)
    if match is None:
        raise MacroError(f"{directive} needs a name")
    return match.group()


def read_source(path: Path) -> str:
    """Return a file's text; raises OSError or ValueError."""
    return path.read_text(encoding="utf-8-sig", errors="replace")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # an impossible name: too long, or with a NUL in it
        return False


@lru_cache(maxsize=256)
def is_shipped(file: Path) -> bool:
    """Return whether a file is one of this package, which most programs begin with."""
    return any(file.is_relative_to(folder) for folder in STOCK_INCLUDES)


def _prepared(text: str) -> tuple[str, list[int], set[int]]:
    """Replace comments by blanks, so that no column changes; also return where some begin that are
    not closed, and where lines begin that are within a string.

    Within a string they are text, also in one over several lines, unless the file has an
    unclosed string.
    """
    unclosed: list[int] = []

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        if found[0] == '"':
            return found
        if found == "/*":
            unclosed.append(match.start())
        return re.sub(r"[^\n]", " ", found)

    open_string = any(m.group() == '"' for m in _COMMENT.finditer(text))
    blanked = (_COMMENT_BY_LINE if open_string else _COMMENT).sub(blank, text)
    return blanked, unclosed, _lines_in_strings(blanked)


_prepared_once = lru_cache(maxsize=32)(_prepared)


@lru_cache(maxsize=512)
def _words(text: str) -> frozenset[str]:
    """Return the words of a shipped file in which macros are looked for."""
    return frozenset(_WORD.findall(text))


def _lines_in_strings(text: str) -> set[int]:
    """Return where lines begin that are within a string."""
    if '"' not in text:
        return set()
    return {
        string.start() + newline.end()
        for string in _COMMENT.finditer(text)
        if string.group()[0] == '"'
        for newline in re.finditer("\n", string.group())
    }


def _is_directive(line: str) -> bool:
    (keyword,) = re.findall(r"#\s*(\w*)", line)[:1]
    return keyword in _CONDITIONAL or keyword in _PLAIN or keyword.isdigit()
