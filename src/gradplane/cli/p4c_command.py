"""The command lines of `p4c` and `p4c-bm2-ss`, for programs that run on this package's switch.

In place of BMv2's JSON they write a device config: the program with all its includes, also JSON,
which `gradplane switch` loads and controllers push. The P4Info is as p4c writes it. Options are
those of p4c 1.2.5: each is obeyed, has no effect there either, or is refused with the reason.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

from google.protobuf import json_format

from gradplane import __version__
from gradplane._option_tables import Option, OptionError, help_text, parse
from gradplane._shipped_programs import INCLUDE_DIRS
from gradplane._whole_files import write_output
from gradplane.experiment import p4_programs as programs
from gradplane.switch.compiler import Compiled
from gradplane.switch.p4runtime.device_config import device_config
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text
from gradplane.switch.runtime.control_errors import os_error_text
from gradplane.switch.source import CompileError

USAGE = 2  # exit status of a wrong command line
_ARCHITECTURES = ("v1model", "psa", "pna")
_BACK_ENDS = {f"bmv2-{arch}": arch for arch in _ARCHITECTURES}  # a target may name its architecture
_TARGETS = ("bmv2", "bmv2-ss-p4org", *_BACK_ENDS)
_LANGUAGES = ("16", "p4-16", "p4_16", "P4\u2081\u2086")
_PASSES = "p4c's own passes are not run here; see gradplane p4 ir"
_RULES = "rules for make are not written"
_REFUSED = {  # options of p4c, with the reason
    **dict.fromkeys(("-M", "-MD", "-MF", "-MG", "-MP", "-MT", "-MQ"), _RULES),
    **dict.fromkeys(
        ("-T", "--top4", "--dump", "--toJson", "--toJSON", "--fromJson", "--fromJSON", "--testJson",
         "--pp", "--doNotEmitIncludes", "--listFrontendPasses", "--listMidendPasses",
         "--excludeFrontendPasses", "--excludeMidendPasses"),
        _PASSES,
    ),
    **dict.fromkeys(("--gdb", "--cgdb", "--lldb"), "no other process runs that one could debug"),
    **dict.fromkeys(
        ("--disable-annotations", "--disable-annotation", "--disable-pragmas", "--disable-pragma"),
        "annotations count; remove them from the program",
    ),
    "-g": "p4c-bm2-ss does not know it",
    "--ndebug": "assert and assume count; remove them from the program",
    "--metrics": "metrics of code are not computed",
    "--Winfo": "give the warnings to --Wdisable",
    "--p4runtime-entries-file": "the program has the entries, a Read shows them",
    "--p4runtime-entries-files": "the program has the entries, a Read shows them",
}  # fmt: skip
_UNWRAPPED = re.compile("^-X(p4c|preprocessor)=?|^-(X(assembler|linker)=.*|O[0-3])$")
_FORMATS = {".txt": "text", ".txtpb": "text", ".json": "json", ".bin": "binary"}


@dataclass(frozen=True, slots=True)
class P4cOptions:
    """The options of one compilation.

    output: the file to write, None for none. p4info: (file, "text" | "json" | "binary"). arch: None
    for any. disabled: kinds of warnings that are not reported, None for all. fatal: those that are
    errors, None for all. preprocessed: the file for the program with its includes and macros
    expanded. preprocess: only write this, or print it where there is no such file. expanded: that
    file, or the program, has no includes and macros left. shown: print the steps; dry: and do none
    of them.
    """

    program: Path
    output: Path | None
    preprocessed: Path | None = None
    preprocess: bool = False
    expanded: bool = False
    shown: bool = False
    dry: bool = False
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
    unwrapped = [_UNWRAPPED.sub("", argument) for argument in arguments]
    rest, disabled, fatal = _warning_options([argument for argument in unwrapped if argument])
    _refuse(rest)
    table = _table(name)
    try:
        parsed = _parsed(name, table, rest)
    except OptionError as error:
        accepted = " ".join(sorted(one for option in table for one in option.names.split()))
        warnings = "--Wdisable[=KIND] --Wwarn[=KIND] --Werror[=KIND]"
        raise OptionError(f"{error}\naccepted: {accepted} {warnings}") from None
    program: Path = parsed.program
    output: Path | None = parsed.output
    preprocessed = None
    if name == "p4c":
        preprocessed = (output or Path()) / f"{program.stem}.p4i"
        output = preprocessed.with_suffix(".json")
    undefined = set(parsed.U)
    return P4cOptions(
        program=program,
        output=output,
        preprocessed=preprocessed,
        preprocess=parsed.E,
        expanded=parsed.e or parsed.nocpp,
        shown=parsed.debug or parsed.test_only,
        dry=parsed.test_only,
        include_dirs=tuple(parsed.I),
        defines=tuple(one for one in parsed.D if one.partition("=")[0] not in undefined),
        p4info=tuple(_p4info_files(parsed)),
        arch=_BACK_ENDS.get(parsed.target, parsed.arch),
        disabled=disabled,
        fatal=fatal,
    )


def compile_as(options: P4cOptions) -> bool:
    """Compile and write the files; return False, with no result written, if a warning is fatal.

    Raises CompileError and OSError.
    """
    if options.expanded:
        program = options.preprocessed or options.program
        options = replace(options, program=program, include_dirs=(), defines=())
    elif options.preprocess or options.preprocessed:
        _preprocess(options)
    if options.preprocess:
        return True
    if options.shown:
        print(f"compiler:\n{options.program} -> {options.output or 'no file'}")
    return options.dry or _compile(options)


def _preprocess(options: P4cOptions) -> None:
    """Expand the program's includes and macros into a file, as p4c does before it compiles."""
    to = options.preprocessed
    if options.shown:
        print(f"preprocessor:\n{options.program} -> {to or 'standard output'}")
    if options.dry or to == options.program:
        return
    config = json.loads(
        device_config(options.program, (*options.include_dirs, *INCLUDE_DIRS), options.defines)
    )
    if to is None:
        print(config["source"])
    else:
        _write(to, f"{config['source']}\n")


def _compile(options: P4cOptions) -> bool:
    compiled = programs.compiled(options.program, options.include_dirs, options.defines)
    programs.check(compiled, options.arch)
    if not _report_warnings(compiled, options):
        return False
    if options.output is not None:
        config = programs.config([options.program], options.include_dirs, options.defines)
        _write(options.output, config)
    for file, form in options.p4info:
        write_output(file, _p4info(compiled, form))
    return True


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_output(file, text)


def _table(name: str) -> tuple[Option, ...]:
    where = "folder" if name == "p4c" else "file"
    formats = tuple(sorted(set(_FORMATS.values())))
    files = "P4Info, in the format of the suffix: .txt .txtpb .json .bin"
    return (
        Option("-h --help", "", "print this text"),
        Option("-o --output", where.upper(), f"the {where} to write", Path),
        Option("-I", "DIR", "folder of includes", Path, many=True),
        Option("-D", "NAME[=VALUE]", "define a macro", many=True),
        Option("-U", "NAME", "do not define a macro", many=True),
        Option("-E", "", "write the program with its includes (p4c: to NAME.p4i; p4c-bm2-ss: print "
               "it); do not compile it"),
        Option("-e", "", "compile the NAME.p4i that -E wrote"),
        Option("--nocpp", "", "the program has no includes and macros left"),
        Option("--p4runtime-files", "FILE,...", files, many=True),
        Option("--p4runtime-file", "FILE", "P4Info, as --p4runtime-format says", Path),
        Option("--p4runtime-format", "FORMAT", default="binary", choices=formats),
        Option("-b --target", "TARGET", choices=_TARGETS),
        Option("-a --arch", "ARCH", "refuse a program of another architecture",
               choices=_ARCHITECTURES),
        Option("-x --std --p4v", "LANGUAGE", "P4_14 is not compiled", choices=_LANGUAGES),
        Option("-v --debug", "", "print the steps"),
        Option("-### --test-only", "", "print the steps; do none of them"),
        Option("-Xp4c -Xpreprocessor", "OPTION", "an option of p4c-bm2-ss, or -D, -U or -I"),
        Option("--help-targets --target-help --targets-help", "", "print the targets"),
        Option("--help-pragmas --pragma-help --pragmas-help --help-annotations --annotation-help "
               "--annotations-help", "", "say where the annotations are listed"),
        Option("-V --version", "", "print the version"),
        Option("--emit-externs", "", "always so: see gradplane switch --externs"),
        Option("-c", "", "without effect, as the following"),
        Option("-S", ""),
        Option("-O", "", "also -O0 to -O3"),
        Option("-W", "FLAG", "a warning of the preprocessor", many=True),
        Option("--parser-inline-opt", ""),
        Option("--loopsUnroll", ""),
        Option("--maxErrorCount", "N", "all are reported"),
        Option("-Xassembler", "OPTION", "for targets with an assembler", many=True),
        Option("-Xlinker", "OPTION", "for targets with a linker", many=True),
    )  # fmt: skip


def _parsed(name: str, table: Sequence[Option], arguments: Sequence[str]) -> SimpleNamespace:
    """Return the values of the options, and the `program`. Prints the help or the version where
    that is asked."""
    found, others = parse(table, arguments)
    about = "Compile a P4_16 program for gradplane's switch (a stand-in for p4c)."
    if found.help:
        print(help_text(f"{name} [OPTIONS] FILE.p4", about, table), end="")
        raise SystemExit
    for asked, answer in (
        (found.version, f"{name} (gradplane {__version__})"),
        (found.help_targets, "\n".join(_BACK_ENDS)),
        (found.help_pragmas, "annotations are those of P4_16, v1model and P4Runtime"),
    ):
        if asked:
            print(answer)
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
    """Return the arguments without --Wdisable, --Wwarn (warnings are ones already) and --Werror,
    which take a kind behind = only, and the kinds that the first and the last name."""
    kinds: dict[str, set[str]] = {"--Wdisable": set(), "--Wwarn": set(), "--Werror": set()}
    rest = []
    for argument in arguments:
        option, _, kind = argument.partition("=")
        if option in kinds:
            kinds[option].update(kind.split(","))
        else:
            rest.append(argument)
    disabled, _, fatal = (None if "" in named else frozenset(named) for named in kinds.values())
    return rest, disabled, fatal


def _refuse(arguments: Sequence[str]) -> None:
    """Raise OptionError for an option of p4c that has no meaning here."""
    for argument in arguments:
        name = argument.partition("=")[0]
        reason = _REFUSED.get(name) or (_PASSES if argument.startswith("-T") else "")
        if reason:
            raise OptionError(f"cannot use {name}: {reason}")


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


def _p4info(compiled: Compiled, form: str) -> bytes:
    p4info = build_p4info(compiled.program)
    if form == "binary":
        return bytes(p4info.SerializeToString(deterministic=True))
    if form == "json":
        return f"{json_format.MessageToJson(p4info)}\n".encode()
    return p4info_text(p4info).encode()
