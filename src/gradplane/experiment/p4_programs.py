"""P4 programs by name or path; compiling them, and making what is pushed to a switch.

To find a program and to check an experiment takes no compiler: functions that compile import it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradplane._captures import ethernet_packets
from gradplane._shipped_programs import INCLUDE_DIRS, SHIPPED, shipped
from gradplane.experiment.document import ExperimentError

if TYPE_CHECKING:
    from gradplane._p4runtime import p4i
    from gradplane.switch.compiler import Compiled
    from gradplane.switch.ir import nodes as ir
    from gradplane.switch.packet_rates import Rates


@dataclass(frozen=True)
class P4Program:
    """A program with the macros that it is compiled with; a `LoadableProgram` of a target."""

    path: Path
    defines: Mapping[str, str]

    @property
    def include_dirs(self) -> tuple[Path, ...]:
        """The folders that its includes are looked for in."""
        return INCLUDE_DIRS

    def p4info(self, switch: str = "") -> p4i.P4Info:
        """Return its P4Info. switch: as `switch.backends` names it; "": ours.

        Raises CompileError, with every error found."""
        from gradplane.switch.program_cache import load_program

        program = load_program(self.path, self.include_dirs, self._macros(switch))
        return p4info_message(program, switch)

    def packed_source(self) -> bytes:
        """Return its source with all includes, as it is at the first call.

        Raises CompileError where one is missing.
        """
        return self._packed

    @cached_property
    def _packed(self) -> bytes:
        from gradplane.switch.p4runtime.device_config import device_config

        return device_config(self.path, self.include_dirs, self.defines)

    def compiled_for(self, switch: str) -> bytes:
        """Return it as a back end of `switch.backends` writes it; BMv2's JSON as it is.

        Raises CompileError."""
        if self.path.suffix == ".json":
            return self.path.read_bytes()
        return compiled_for(switch, self._compiled(switch)).encode()

    def _compiled(self, switch: str) -> Compiled:
        return compiled(self.path, (), self._macros(switch))

    def _macros(self, switch: str) -> dict[str, str]:
        from gradplane.switch import backends

        return {**(backends.macros(switch) if switch else {}), **self.defines}


def find_program(program: str, folder: Path = Path()) -> Path:
    """Return the file of a program: a shipped one by name, else a path, relative to `folder`.

    Raises ExperimentError if there is no such file."""
    if program in shipped():
        return SHIPPED / program
    path = folder / program
    if not path.is_file():
        raise ExperimentError(f"program {path}: no such file; shipped: {', '.join(shipped())}")
    return path.resolve()


def version(program: str, suffix: str) -> str:
    """Return the shipped program that stands for another one on a target with its own programs.

    suffix: the end of such programs' names, "" for none. A program of the user's is returned as it
    is. Raises ExperimentError for a shipped one that has no such version, or is one for others."""
    if program not in shipped():
        return program
    own = program.removesuffix(".p4") + suffix + ".p4"
    if suffix and program.endswith(f"{suffix}.p4"):
        return program
    if own not in shipped():
        having = [name for name in shipped() if suffix and name.endswith(f"{suffix}.p4")]
        raise ExperimentError(
            f"program {program} has no version {own}; shipped: {', '.join(having)}"
        )
    if not suffix and original(program) != program:
        raise ExperimentError(
            f'program {program} is for Tofino: use target = "tna", or program ='
            f' "{original(program)}"'
        )
    return own


def original(program: str) -> str:
    """Return the name of the shipped program that a version for a target stands for."""
    return program.replace("_tna.p4", ".p4")


def compiled(
    program: Path,
    folders: Sequence[Path] = (),
    macros: Mapping[str, str] | Sequence[str] = (),
    library: bool = False,
) -> Compiled:
    """Compile a program; the result has its warnings. `macros`: a mapping, or NAME[=VALUE] texts.

    library: it needs no `main`. Raises CompileError."""
    from gradplane.switch.compiler import compile_source

    folders = (*folders, *INCLUDE_DIRS)
    return compile_source(program, folders, macros or None, library=library)


def check(compiled: Compiled, arch: str | None = None) -> None:
    """Raise CompileError for what the program's architecture or P4Info does not allow.

    arch: the architecture that the program must be for; None for any that is implemented.
    """
    from gradplane.switch.arch.load_checks import prepare
    from gradplane.switch.arch.registry import architecture
    from gradplane.switch.p4runtime.p4info import build_p4info
    from gradplane.switch.source import CompileError, refuse

    found = architecture(None, compiled.program)
    try:
        prepare(compiled.program, found)
        if arch not in (None, found.name):
            text = f"the program is for {found.name}, not for {arch}"
            raise refuse(compiled.program.package.span, text)
        build_p4info(compiled.program)
    except CompileError as error:
        raise type(error)(error.diagnostics, compiled.reporter.lines) from error


def compiled_for(target: str, compiled: Compiled, arch: str | None = None) -> str:
    """Return a program in the form that a switch of another make loads.

    target: a name of `switch.backends`. arch: the architecture that the program must be for. Raises
    CompileError, with everything that the switch or the architecture does not allow.
    """
    from gradplane.switch import backends
    from gradplane.switch.arch.registry import architecture
    from gradplane.switch.p4runtime.digest_calls import digest_calls
    from gradplane.switch.source import CompileError

    check(compiled, arch)
    found = architecture(None, compiled.program)
    try:
        digests = digest_calls(compiled.program)
        names = {data: name for name, (data, _) in digests.items()}
        return backends.get(target)(found.name, compiled.program, names)
    except CompileError as error:
        raise type(error)(error.diagnostics, compiled.reporter.lines) from error


def p4info_message(program: ir.Program, switch: str = "") -> p4i.P4Info:
    """Return the P4Info of a program.

    switch: for which it is, a name of `switch.backends`; "": the embedded one, as p4c writes it.
    """
    from gradplane.switch import backends
    from gradplane.switch.p4runtime.p4info import build_p4info

    info = build_p4info(program)
    return backends.p4info_for(switch, info, program) if switch else info


def p4info(program: ir.Program, switch: str = "") -> str:
    """Return it as protobuf text."""
    from gradplane.switch.p4runtime.p4info import p4info_text

    return p4info_text(p4info_message(program, switch))


def bfrt_info(program: ir.Program) -> str:
    """Return bf-rt.json of a program that `check` has accepted."""
    from gradplane.switch.bfruntime.program_schema import bfrt_json

    return bfrt_json(program)


def config(
    programs: Sequence[Path],
    folders: Sequence[Path],
    macros: Sequence[str],
    pipe_scopes: Sequence[str] = (),
) -> str:
    """Return a program, or several of a chip, as one JSON text to push. pipe_scopes: NAME=PIPES.

    Raises CompileError, with every error found, SwitchError and OptionError."""
    from gradplane.switch.arch.registry import architecture, combined
    from gradplane.switch.daemon.options import parse_pipe_scopes
    from gradplane.switch.p4runtime.device_config import device_config, device_config_of_several

    found = [compiled(program, folders, macros) for program in programs]
    for one in found:
        check(one)
    folders = (*folders, *INCLUDE_DIRS)
    scopes = parse_pipe_scopes(pipe_scopes)
    if len(found) == 1 and not scopes:
        return device_config(programs[0], folders, macros).decode()
    whole = combined([one.program for one in found])
    architecture(None, whole).placed(whole, scopes)
    return device_config_of_several(programs, folders, macros, scopes).decode()


def made_tests(
    program: Path,
    folders: Sequence[Path],
    macros: Sequence[str],
    limits: Mapping[str, float],
    folder: Path,
    formats: Sequence[str],
    progress: Callable[[int, int, float], None] | None = None,
    as_json: bool = False,
) -> str:
    """Write tests made from a program into a folder; return the report of what they cover.

    limits, progress: as in `testgen.explorer`. as_json: the report as JSON. Raises CompileError,
    and SwitchError for a program that no tests can be made of, or without z3."""
    _need_z3()
    from gradplane.switch.testgen import generate
    from gradplane.switch.testgen.explorer import Limits

    found = compiled(program, folders, macros)
    check(found)
    made = generate.generate(found.program, Limits(**limits), progress)  # type: ignore[arg-type]
    files = generate.write(made, program, folder, formats)
    if as_json:
        return json.dumps(generate.report_json(made), indent=1) + "\n"
    return generate.report(made) + f"{len(files)} files in {folder}/\n"


def outcome_tree(
    program: Path, folders: Sequence[Path], macros: Sequence[str], port: int, packet: bytes
) -> str:
    """Return the tree of what a packet can meet in a program under any table content.

    Raises CompileError, and SwitchError without z3."""
    from gradplane.switch.switch import Switch

    _need_z3()
    from gradplane.switch.testgen.outcomes import outcome_tree as tree

    switch = Switch(compiled(program, folders, macros).program, engine="interpreter")
    switch.architecture.check_port(port)
    return tree(switch, port, packet)


def _need_z3() -> None:
    from gradplane.switch.runtime.control_errors import SwitchError

    try:
        import z3  # noqa: F401
    except ModuleNotFoundError as error:
        raise SwitchError(f"{error}: pip install 'gradplane[p4tests]'") from None


def trace(
    program: Path,
    folders: Sequence[Path],
    macros: Sequence[str],
    port: int,
    packet: bytes | Path,
    as_json: bool,
    externs: Path | None = None,
    commands: Sequence[Path] = (),
    where: str | None = None,
    dropped: bool = False,
    count: int | None = None,
) -> str:
    """Return everything that happens to a packet in a new switch, a line an event, or as JSON.

    packet: or a capture, whose packets come one after the other, with its times as the clock, and
    last how many left, and why the others did not. commands: files of commands to run first. where,
    dropped, count: of a capture, only packets that a filter wants (Switch.tracing), of which none
    left, and the first of these. Raises CaptureError, CommandError and CompileError."""
    from gradplane.switch.switch import Switch

    found = compiled(program, folders, macros).program
    captured = ethernet_packets(packet) if isinstance(packet, Path) else []
    now = captured[0].time if captured else time.monotonic_ns()
    switch = Switch(found, engine="interpreter", externs=externs, clock=lambda: now)
    for file in commands:
        switch.run_commands(file.read_text("utf-8-sig"), str(file))
    if isinstance(packet, bytes):
        traced = switch.trace(port, packet)
        return json.dumps(traced.json(), indent=1) + "\n" if as_json else traced.text()
    chooses = None if where is None else switch.packet_filter(where)
    start, parts, lost = now, list[Any](), Counter[str]()
    for number, one in enumerate(captured, 1):
        now = one.time
        wanted = chooses is None or chooses(port, one.data)
        traced = switch.trace(port, one.data)
        if not traced.outputs:
            lost[traced.why_nothing_left()] += 1
        if not wanted or (dropped and traced.outputs) or len(parts) == count:
            continue
        heading = f"packet {number}, {(now - start) / 1e6:.6f} ms, port {port}, {one.size} bytes\n"
        parts.append({"time_ns": now} | traced.json() if as_json else heading + traced.text())
    if as_json:
        return json.dumps(parts, indent=1) + "\n"
    left = f"of {len(captured):,} packets {len(captured) - lost.total():,} left"
    reasons = (f"{times:,}: {why}" for why, times in lost.most_common())
    return "\n".join([*parts, "\n  ".join([left, *reasons]) + "\n"])


def rates(
    program: Path,
    folders: Sequence[Path],
    macros: Sequence[str],
    packets: Sequence[tuple[int, bytes]],
    commands: Sequence[Path] = (),
    externs: Path | None = None,
) -> Rates:
    """Return how fast a program is with these packets, and files of commands that are run first.

    Raises CommandError and CompileError."""
    from gradplane.switch.packet_rates import measure
    from gradplane.switch.switch import Switch

    found = compiled(program, folders, macros).program
    texts = [(file.read_text("utf-8-sig"), str(file)) for file in commands]

    def made() -> Switch:
        switch = Switch(found, externs=externs)
        for text in texts:
            switch.run_commands(*text)
        return switch

    return measure(made, packets)
