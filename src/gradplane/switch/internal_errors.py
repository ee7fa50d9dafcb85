"""The report of a bug of ours: an error at the construct of the program that revealed it."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.source import (
    CompileError,
    Diagnostic,
    InternalCompilerError,
    Reporter,
    Span,
    source_lines,
)

_HINT = "this is a bug of the compiler; please report it, with the program"


@contextmanager
def internal_errors_reported(place: Span, reporter: Reporter | None = None) -> Iterator[None]:
    """Raise CompileError for an exception that only a bug, or a program too deep, can cause.

    place: of the program, for a bug that no construct of it is known for. reporter: the source, and
    the errors found so far. Errors that are meant for the user pass.
    """
    try:
        yield
    except (CompileError, SwitchError, OSError, MemoryError):
        raise
    except RecursionError:
        deep = Diagnostic(place, "the program is nested too deeply to be compiled")
        raise CompileError([deep], _lines([deep], reporter)) from None
    except Exception as error:
        found = [*(reporter.errors if reporter else []), _diagnostic(error, place)]
        raise InternalCompilerError(found, _lines(found, reporter)) from error


def _lines(found: Sequence[Diagnostic], reporter: Reporter | None) -> dict[str, list[str]]:
    return reporter.lines if reporter else source_lines([d.span for d in found])


def _diagnostic(error: Exception, place: Span) -> Diagnostic:
    """Return the report of a bug, at the construct that was being compiled."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    values = [value for frame in reversed(frames) for value in reversed(frame.f_locals.values())]
    construct = next((value for value in values if _span(value) is not None), None)
    where = "" if construct is None else f" at this {_kind(construct)}"
    text = f"internal error of the compiler{where}: {error!r}"
    return Diagnostic(_span(construct) or place, text, hint=_HINT)


def _span(value: Any) -> Span | None:
    """Return where a node of the syntax tree or the IR stands in the source; None for others."""
    with suppress(Exception):
        span = value.span
        return span if isinstance(span, Span) and span.line else None
    return None


def _kind(node: object) -> str:
    """Return the kind of a node in words: "table decl"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).lower()
