"""The compiler from end to end: P4 source in, IR out."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradplane.switch.arch.registry import natives_of
from gradplane.switch.check.checker import check
from gradplane.switch.check.p4c_tables import warn_tables
from gradplane.switch.garbage_pause import collections_paused
from gradplane.switch.ir import nodes as ir
from gradplane.switch.lower.program import lower, package_types
from gradplane.switch.source import (
    CompileError,
    Diagnostic,
    InternalCompilerError,
    Reporter,
    Span,
    refuse,
)
from gradplane.switch.syntax import ast, parse_file


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled program and the compiler's diagnostics (its warnings)."""

    program: ir.Program
    reporter: Reporter

    @property
    def warnings(self) -> list[Diagnostic]:
        return [d for d in self.reporter.diagnostics if d.level == "warning"]


@collections_paused()
def compile_source(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | Sequence[str] | None = None,
    text: str | None = None,
    library: bool = False,
    p4info: bytes | None = None,
) -> Compiled:
    """Compile a P4_16 file, or `text`; then `path` is the file name that messages show.

    A file whose name ends in .json is BMv2's JSON, as p4c writes it. p4info: the P4Info (a
    serialized message) that belongs to it; None: of the file beside it, if there is one. library:
    also accept a program without a `main`. The program may be written for an architecture that this
    package does not implement; gradplane.switch.arch.registry reports that. Raises CompileError
    with every error of the stage that failed.
    """
    if str(path).endswith(".json"):
        return _read_json(Path(path), text, p4info)
    tree, reporter = parse_file(path, include_dirs, defines, text)
    try:
        checked = check(tree, reporter)
        natives = natives_of(package_types(tree))
        program = lower(checked, reporter, natives, library)
        warn_tables(program, reporter, checked)
        return Compiled(program, reporter)
    except CompileError:
        raise
    except RecursionError:
        place = Span(str(path), 1, 1, 2)
        deep = Diagnostic(place, "the program is nested too deeply to be compiled")
        raise CompileError([deep], reporter.lines) from None
    except Exception as error:
        raise _internal_error(error, tree, reporter) from error


def _read_json(path: Path, text: str | None, p4info: bytes | None) -> Compiled:
    """Read a program that p4c has compiled."""
    from gradplane.switch.frontends import bmv2

    reporter = Reporter()
    if text is None:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise refuse(Span(str(path), 1, 1, 2), f"it cannot be read: {error}") from error
        reporter.read[str(path)] = text
        if p4info is None:
            program = bmv2.read_program(text, str(path), bmv2.p4info_beside(path, reporter.read))
            return Compiled(program, reporter)
    return Compiled(bmv2.read_program(text, str(path), bmv2.parsed_p4info(p4info)), reporter)


def _internal_error(
    error: Exception, tree: ast.Program, reporter: Reporter
) -> InternalCompilerError:
    """Return the report of a bug: the errors found before, and the construct it occurred at."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    nodes = [v for frame in frames for v in frame.f_locals.values() if isinstance(v, ast.Node)]
    place = next((n for n in reversed(nodes) if n.span.line), tree)
    what = f"internal error of the compiler at this {_construct(place)}: {error!r}"
    hint = "this is a bug of the compiler; please report it, with the program"
    found = Diagnostic(place.span, what, hint=hint)
    return InternalCompilerError([*reporter.errors, found], reporter.lines)


def _construct(node: ast.Node) -> str:
    """Return the kind of a node in words: "table decl"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).lower()


def compile_program(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | Sequence[str] | None = None,
    text: str | None = None,
) -> ir.Program:
    """Compile as `compile_source` does, and return the IR only."""
    return compile_source(path, include_dirs, defines, text).program
