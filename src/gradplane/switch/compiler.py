"""The compiler from end to end: P4 source in, IR out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradplane.switch.arch.registry import of_packages
from gradplane.switch.check.checker import check
from gradplane.switch.check.p4c_warnings import warn_tables
from gradplane.switch.garbage_pause import collections_paused
from gradplane.switch.internal_errors import internal_errors_reported
from gradplane.switch.ir import nodes as ir
from gradplane.switch.lower.program import lower, package_types
from gradplane.switch.source import Diagnostic, Reporter, Span, refuse
from gradplane.switch.syntax import parse_file


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
    place = Span(str(path), 1, 1, 2)
    with internal_errors_reported(place):
        tree, reporter = parse_file(path, include_dirs, defines, text)
    with internal_errors_reported(place, reporter):
        checked = check(tree, reporter)
        architecture = of_packages(package_types(tree))
        if architecture is None:
            program = lower(checked, reporter, None, library)
        else:
            natives, size = architecture.natives, architecture.table_size
            program = lower(checked, reporter, natives, library, size)
        program.file = str(path)
        warn_tables(program, reporter, checked)
    return Compiled(program, reporter)


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


def compile_program(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | Sequence[str] | None = None,
    text: str | None = None,
) -> ir.Program:
    """Compile as `compile_source` does, and return the IR only."""
    return compile_source(path, include_dirs, defines, text).program
