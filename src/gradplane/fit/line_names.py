"""The names of source lines in the report."""

from __future__ import annotations

from pathlib import PurePath

from gradplane.switch.source import Span


def line_name(span: Span, file: str) -> str:
    """Return the line of a place; with its file's name, unless that is the program's own file's."""
    name = PurePath(span.file).name
    return f"line {span.line}" + ("" if name == PurePath(file).name else f" of {name}")
