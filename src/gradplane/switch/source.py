"""Source locations, and the diagnostics that refer to them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """Part of one source line: line and column are 1-based, `end` is the column after the last."""

    file: str
    line: int
    column: int
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def __reduce__(self) -> tuple[object, ...]:  # faster than a dataclass's own, in both ways
        return Span, (self.file, self.line, self.column, self.end)


MAX_ERRORS = 100
MAX_SHOWN = 200  # characters of a source line

NOWHERE = Span("<builtin>", 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error or warning at a place in the source; `hint` is what would be accepted instead."""

    span: Span
    message: str
    level: str = "error"  # "error" | "warning"
    hint: str = ""
    kind: str = ""  # of a warning: the name by which @noWarn("...") silences it

    def render(self, lines: dict[str, list[str]]) -> str:
        """Return "file:line:column: level: message", the source line and a caret under it."""
        kind = f" [{self.kind}]" if self.kind else ""
        out = [f"{self.span}: {self.level}: {self.message}{kind}"]
        text = lines.get(self.span.file, [])
        if 1 <= self.span.line <= len(text):
            shown = "".join(map(_printable, text[self.span.line - 1].rstrip("\n")))
            line, column = _excerpt(shown, self.span.column)
            pad = "".join("\t" if c == "\t" else " " for c in line[: column - 1])
            room = max(1, len(line) + 1 - column)
            width = max(1, min(self.span.end - self.span.column, room))
            out += [f"    {line}", f"    {pad}{'^' * width}"]
        if self.hint:
            out.append(f"    {self.hint}")
        return "\n".join(out)


def _printable(c: str) -> str:
    """Replace unprintable characters, so that a binary file does not disturb the terminal."""
    return c if c.isprintable() or c == "\t" else "\ufffd"


def _excerpt(line: str, column: int) -> tuple[str, int]:
    """Cut a line that is too long to show to the part around the column."""
    if len(line) <= MAX_SHOWN:
        return line, column
    start = max(0, min(column - 1 - MAX_SHOWN // 2, len(line) - MAX_SHOWN))
    return line[start : start + MAX_SHOWN], column - start


def _start(span: Span) -> tuple[str, int, int]:
    return span.file, span.line, span.column


class CompileError(Exception):
    """The program was rejected. `diagnostics` holds every error found, in source order."""

    def __init__(self, diagnostics: list[Diagnostic], lines: dict[str, list[str]]) -> None:
        self.diagnostics = diagnostics
        self.lines = lines
        super().__init__("\n".join(d.render(lines) for d in diagnostics))


class InternalCompilerError(CompileError):
    """The compiler itself failed on a program, correct or not: a bug to be reported."""


@dataclass(slots=True)
class Reporter:
    """Collects the diagnostics of a stage, so that all its errors are reported together."""

    lines: dict[str, list[str]] = field(default_factory=dict)  # file name -> its source lines
    diagnostics: list[Diagnostic] = field(default_factory=list)
    read: dict[str, str | None] = field(default_factory=dict)
    """The files the program depends on: path -> text; None for a file that does not exist."""

    def error(self, span: Span, message: str, hint: str = "") -> None:
        self._add(Diagnostic(span, message, "error", hint))

    def warning(self, span: Span, message: str, hint: str = "", kind: str = "") -> None:
        self._add(Diagnostic(span, message, "warning", hint, kind))

    def _add(self, diagnostic: Diagnostic) -> None:
        """Add a diagnostic; of several errors at one place only the first.

        Later errors at a place usually follow from the first. The stage ends when MAX_ERRORS is
        reached.
        """
        known = diagnostic in self.diagnostics
        if diagnostic.level == "error":
            start = _start(diagnostic.span)
            known = any(start == _start(d.span) for d in self.errors)
        if not known:
            self.diagnostics.append(diagnostic)
            if len(self.errors) >= MAX_ERRORS:
                self.stop_on_errors()

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.level == "error"]

    def stop_on_errors(self) -> None:
        """End a stage: raise CompileError if any error was reported."""
        if self.errors:
            ordered = sorted(self.errors, key=lambda d: (d.span.file, d.span.line, d.span.column))
            raise CompileError(ordered, self.lines)


def refuse(span: Span, message: str, hint: str = "") -> CompileError:
    """Return the error for one place, with its source line if the file can be read."""
    return CompileError([Diagnostic(span, message, hint=hint)], source_lines([span]))


def source_lines(spans: list[Span]) -> dict[str, list[str]]:
    """Return the lines of the files that spans point into, as far as they can be read."""
    lines: dict[str, list[str]] = {}
    for span in spans:
        try:
            with open(span.file, encoding="utf-8", errors="replace") as file:
                lines[span.file] = file.read().splitlines()
        except OSError:
            continue
    return lines
