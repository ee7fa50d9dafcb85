"""A program with its packet test, from the files to the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gradplane._suggestions import near_file
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.source import CompileError
from gradplane.switch.stf.stf_grammar import StfError, parse
from gradplane.switch.stf.tester import Clock, Tester
from gradplane.switch.switch import Switch

if TYPE_CHECKING:
    from gradplane.switch.interp.user_externs import Implementations

ENGINE = "jit"


@dataclass(frozen=True, slots=True)
class StfResult:
    """The result of a test.

    `message`: the failures; for a passed test, the commands that the switch refused, if any.
    """

    name: str
    passed: bool
    message: str = ""

    def __str__(self) -> str:
        verdict = f"{'PASS' if self.passed else 'FAIL'} {self.name}"
        return f"{verdict}: {self.message}" if self.message else verdict


def run(
    program: str | Path,
    stf_path: str | Path | None = None,
    engine: str = ENGINE,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | Sequence[str] | None = None,
    externs: Implementations | str | Path | None = None,
) -> StfResult:
    """Run a program's test: `stf_path`, or the file beside the program that ends in .stf.

    `program` may also be the .stf file itself. Never raises for the contents of program and test: a
    program that does not compile, a test that cannot be read and unexpected packets are failures.
    externs: as in Switch. Raises SwitchError for `engine` and `externs`.
    """
    source = Path(program)
    if source.suffix == ".stf":
        source = source.with_suffix(".p4")
    test = Path(stf_path) if stf_path is not None else source.with_suffix(".stf")
    try:
        statements = parse(_text(test), str(test))
        clock = Clock()
        switch = Switch(
            source,
            engine=engine,
            clock=clock,
            include_dirs=include_dirs,
            defines=defines,
            externs=externs,
            quick=True,
        )
        tester = Tester(switch, clock, str(test))
        wrong = []
        for statement in statements:
            try:
                tester.run(statement)
            except StfError as error:
                wrong.append(str(error))
        if wrong:
            raise StfError("\n".join(wrong))
        tester.finish()
    except (StfError, CompileError, OSError) as error:
        return StfResult(str(program), False, str(error))
    failures = [*tester.expectations.failures(), *tester.problems]
    if failures and switch.state.drops:
        reasons = (f"{count} {reason}" for reason, count in switch.state.drops.items())
        failures.append(f"    dropped in the switch: {', '.join(reasons)}")
    refused = [f"{message} (skipped)" for message in tester.refused]
    return StfResult(str(program), not failures, "\n".join([*failures, *refused]))


def _text(test: Path) -> str:
    if not test.is_file():
        near = near_file(test)  # the program beside it, perhaps
        raise StfError(f"there is no packet test {test}{near if near.endswith('.stf?') else ''}")
    return test.read_text(encoding="utf-8-sig", errors="replace")


def main(
    files: Iterable[str | Path],
    engine: str = ENGINE,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | Sequence[str] | None = None,
    externs: str | Path | None = None,
    program: Path | None = None,
) -> int:
    """Run the tests of several programs; print a line for each and the number that passed.

    externs: a Python file that implements the user-defined externs; each test loads it anew.
    program: that of all files, which are its tests.
    Returns the exit status: 0 if all passed, else 1.
    """
    failed = total = 0
    for file in files:
        result = _guarded(file, engine, include_dirs, defines, externs, program)
        print(result, flush=True)
        total += 1
        failed += not result.passed
    print(f"{total - failed} passed, {failed} failed")
    return int(failed > 0)


def _guarded(
    file: str | Path,
    engine: str,
    include_dirs: Sequence[str | Path],
    defines: Mapping[str, str] | Sequence[str] | None,
    externs: str | Path | None,
    program: Path | None,
) -> StfResult:
    """Run a test so that a fault of the switch itself fails this test only, not all that follow."""
    try:
        if program is None:
            return run(file, None, engine, include_dirs, defines, externs)
        result = run(program, file, engine, include_dirs, defines, externs)
        return replace(result, name=str(file))
    except SwitchError as error:
        return StfResult(str(file), False, str(error))
    except Exception as error:
        what = f"fault in the switch: {type(error).__name__}: {error}"
        return StfResult(str(file), False, what)
