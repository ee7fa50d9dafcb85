"""The command lines of `p4c` and `p4c-bm2-ss`, for programs that run on this package's switch.

In place of BMv2's JSON they write a device config: the program with all its includes, also JSON,
which `gradplane switch` loads and controllers push. The P4Info is as p4c writes it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from google.protobuf import json_format

from gradplane import __version__
from gradplane._option_tables import Option, OptionError, help_text, parse
from gradplane._shipped_programs import INCLUDE_DIRS
from gradplane.experiment import p4_programs as programs
from gradplane.switch.compiler import Compiled
from gradplane.switch.p4runtime.device_config import device_config
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text
from gradplane.switch.runtime.control_errors import os_error_text
from gradplane.switch.source import CompileError

USAGE = 2  # exit status of a wrong command line
_TARGETS = ("bmv2", "bmv2-ss-p4org")
_ARCHITECTURES = ("v1model", "psa")
_LANGUAGES = ("16", "p4-16", "p4_16")
_FORMATS = {".txt": "text", ".txtpb": "text", ".json": "json", ".bin": "binary"}


@dataclass(frozen=True, slots=True)
class P4cOptions:
    """The options of one compilation.

    output: the file to write, None for none. p4info: (file, "text" | "json" | "binary"). arch: None
    for any. disabled: kinds of warnings that are not reported, None for all. fatal: those that are
    errors, None for all. preprocess: only print the program with its includes and macros expanded.
    """

    program: Path
    output: Path | None
    preprocess: bool = False
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    p4info: tuple[tuple[Path, str], ...] = ()
    arch: str | None = None
    disabled: frozenset[str] | None = frozenset()
    fatal: frozenset[str] | None = frozenset()


def main(name: str, arguments: Sequence[str]) -> int:
    """Compile as `name`, "p4c" or "p4c-bm2-ss", would; return the exit status."""
    try:
        options = parse_options(name, arguments)
        return int(not compile_as(options))
    except OptionError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return USAGE
    except CompileError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{name}: {os_error_text(error)}", file=sys.stderr)
    return 1


def parse_options(name: str, arguments: Sequence[str]) -> P4cOptions:
    """Parse the command line of `name`. Raises OptionError.

    The two differ in -o: a folder (default: the current one) for p4c, a file for p4c-bm2-ss.
    """
    rest, disabled, fatal = _warning_options(arguments)
    table = _table(name)
    try:
        parsed = _parsed(name, table, rest)
    except OptionError as error:
        accepted = " ".join(sorted(one for option in table for one in option.names.split()))
        warnings = "--Wdisable[=KIND] --Werror[=KIND]"
        raise OptionError(f"{error}\naccepted: {accepted} {warnings}") from None
    program: Path = parsed.program
    output: Path | None = parsed.o
    if name == "p4c":
        output = (output or Path()) / f"{program.stem}.json"
    return P4cOptions(
        program=program,
        output=output,
        preprocess=parsed.E,
        include_dirs=tuple(parsed.I),
        defines=tuple(parsed.D),
        p4info=tuple(_p4info_files(parsed)),
        arch=parsed.arch,
        disabled=disabled,
        fatal=fatal,
    )


def compile_as(options: P4cOptions) -> bool:
    """Compile and write the files; return False, with no file written, if a warning is fatal.

    Raises CompileError and OSError.
    """
    if options.preprocess:
        print(_preprocessed(options))
        return True
    compiled = programs.compiled(options.program, options.include_dirs, options.defines)
    programs.check(compiled, options.arch)
    if not _report_warnings(compiled, options):
        return False
    if options.output is not None:
        config = programs.config(options.program, options.include_dirs, options.defines)
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(config, "utf-8")
    for file, form in options.p4info:
        file.write_bytes(_p4info(compiled, form))
    return True


def _table(name: str) -> tuple[Option, ...]:
    where = "folder" if name == "p4c" else "file"
    formats = tuple(sorted(set(_FORMATS.values())))
    files = "P4Info, in the format of the suffix: .txt .txtpb .json .bin"
    return (
        Option("-h --help", "", "print this text"),
        Option("-o", where.upper(), f"the {where} to write", Path),
        Option("-I", "DIR", "folder of includes", Path, many=True),
        Option("-D", "NAME[=VALUE]", "define a macro", many=True),
        Option("-E", "", "print the program with its includes; do not compile it"),
        Option("--p4runtime-files", "FILE,...", files, many=True),
        Option("--p4runtime-file", "FILE", "P4Info, as --p4runtime-format says", Path),
        Option("--p4runtime-format", "FORMAT", default="binary", choices=formats),
        Option("-b --target", "TARGET", choices=_TARGETS),
        Option("-a --arch", "ARCH", "refuse a program of another architecture",
               choices=_ARCHITECTURES),
        Option("-x --std --p4v", "LANGUAGE", "P4_14 is not compiled", choices=_LANGUAGES),
        Option("--emit-externs", "", "always so: see gradplane switch --externs"),
        Option("--version", "", "print the version"),
    )  # fmt: skip


def _parsed(name: str, table: Sequence[Option], arguments: Sequence[str]) -> SimpleNamespace:
    """Return the values of the options, and the `program`. Prints the help or the version where
    that is asked."""
    found, others = parse(table, arguments)
    about = "Compile a P4_16 program for gradplane's switch (a stand-in for p4c)."
    if found.help:
        print(help_text(f"{name} [OPTIONS] FILE.p4", about, table), end="")
        raise SystemExit
    if found.version:
        print(f"{name} (gradplane {__version__})")
        raise SystemExit
    options = [other for other in others if other.startswith("-")]
    programs = [other for other in others if not other.startswith("-")]
    if not programs:
        raise OptionError("the following arguments are required: FILE.p4")
    if options or programs[1:]:
        raise OptionError(f"cannot use {' '.join(options or programs[1:])}")
    found.program = Path(programs[0])
    return found


def _warning_options(
    arguments: Sequence[str],
) -> tuple[list[str], frozenset[str] | None, frozenset[str] | None]:
    """Return the arguments without --Wdisable and --Werror, and the kinds that each names."""
    kinds: dict[str, set[str]] = {"--Wdisable": set(), "--Werror": set()}
    rest = []
    for argument in arguments:
        option, _, kind = argument.partition("=")
        if option in kinds:
            kinds[option].add(kind)
        else:
            rest.append(argument)
    disabled, fatal = (None if "" in named else frozenset(named) for named in kinds.values())
    return rest, disabled, fatal


def _p4info_files(parsed: SimpleNamespace) -> list[tuple[Path, str]]:
    files = [Path(name) for names in parsed.p4runtime_files for name in names.split(",")]
    found = []
    for file in files:
        if file.suffix not in _FORMATS:
            suffixes = ", ".join(_FORMATS)
            raise OptionError(f"--p4runtime-files {file}: the suffix must be one of {suffixes}")
        found.append((file, _FORMATS[file.suffix]))
    if parsed.p4runtime_file is not None:
        found.append((parsed.p4runtime_file, parsed.p4runtime_format))
    return found


def _report_warnings(compiled: Compiled, options: P4cOptions) -> bool:
    """Print the warnings that are not disabled; return whether none of them is fatal."""
    disabled, fatal = options.disabled, options.fatal
    kept = [w for w in compiled.warnings if disabled is not None and w.kind not in disabled]
    for warning in kept:
        print(warning.render(compiled.reporter.lines), file=sys.stderr)
    found = sum(fatal is None or warning.kind in fatal for warning in kept)
    if found:
        print(f"{options.program}: {found} warnings are errors (--Werror)", file=sys.stderr)
    return not found


def _preprocessed(options: P4cOptions) -> str:
    folders = (*options.include_dirs, *INCLUDE_DIRS)
    config = json.loads(device_config(options.program, folders, options.defines))
    return str(config["source"])


def _p4info(compiled: Compiled, form: str) -> bytes:
    p4info = build_p4info(compiled.program)
    if form == "binary":
        return bytes(p4info.SerializeToString(deterministic=True))
    if form == "json":
        return f"{json_format.MessageToJson(p4info)}\n".encode()
    return p4info_text(p4info).encode()
