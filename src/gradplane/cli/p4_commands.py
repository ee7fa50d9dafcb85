"""Commands on P4 programs: check, compile, trace, test, and compare switches."""

import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradplane import _shipped_programs
from gradplane._suggestions import quoted
from gradplane._whole_files import write_output, write_whole
from gradplane.cli.options import (
    OUT,
    AnyProgram,
    AsJson,
    Cacert,
    Cert,
    Defines,
    Externs,
    Includes,
    Key,
    Program,
    fail,
    folded,
    make_console,
    option,
    tls_files,
)

if TYPE_CHECKING:
    from gradplane.fit.analysis import FitReport
    from gradplane.switch.daemon.clients import ClientTls

commands = typer.Typer()
p4_commands = typer.Typer(
    help="P4_16 programs: check them, or show what they contain.", no_args_is_help=True
)
commands.add_typer(p4_commands, name="p4")


@p4_commands.command()
def check(
    program: Program,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors")] = False,
) -> None:
    """Compile a program, for any architecture, and report its errors and warnings.

    Whether a TNA program fits the chip, and what the chip's compiler refuses, is `p4 fit`'s to say.
    """
    from gradplane.experiment import p4_programs as programs
    from gradplane.switch.arch.registry import why_not
    from gradplane.switch.interp.user_externs import needed

    compiled = programs.compiled(program, include, define, library=True)
    for warning in compiled.warnings:
        print(warning.render(compiled.reporter.lines), file=sys.stderr)
    no_run = why_not(compiled.program)
    if no_run:
        place = compiled.program.package.span
        print(f"{place}: warning: {no_run}: only checked, it cannot run here", file=sys.stderr)
    else:
        programs.check(compiled)
        note = needed(compiled.program)
        if note is not None:
            print(note.render({}), file=sys.stderr)
    if strict and compiled.warnings:
        raise typer.Exit(1)
    print(f"{program}: ok")


@p4_commands.command()
def info(
    program: Program,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    summary: Annotated[bool, typer.Option("--summary", help="As tables")] = False,
    form: Annotated[str, option("p4info|bfrt", "P4Info, or bf-rt.json", "--format")] = "p4info",
) -> None:
    """Print a program's P4Info or bf-rt.json, or a summary of what a controller finds in it."""
    from gradplane.cli import output_tables
    from gradplane.experiment import p4_programs as programs

    if form not in ("p4info", "bfrt"):
        raise typer.BadParameter(f'"{form}": use p4info or bfrt', param_hint="--format")
    compiled = programs.compiled(program, include, define)
    programs.check(compiled)
    if form == "bfrt":
        print(programs.bfrt_info(compiled.program), end="")
    elif summary:
        make_console().print(output_tables.program(compiled.program))
    else:
        print(programs.p4info(compiled.program), end="")


@p4_commands.command("compile")
def compile_for(
    program: Program,
    out: Annotated[Path, option("FILE", "The file to write", *OUT)],
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    target: Annotated[str, option("bmv2", "The switch to compile for")] = "bmv2",
    p4info: Annotated[Path | None, option("FILE", "Write the P4Info (text) there")] = None,
    arch: Annotated[
        str | None, option("v1model", "Refuse a program of another architecture")
    ] = None,
) -> None:
    """Compile a program for another switch: for BMv2, the JSON that simple_switch loads."""
    from gradplane.experiment import p4_programs as programs
    from gradplane.switch import backends

    if target not in backends.names():
        allowed = " or ".join(backends.names())
        raise typer.BadParameter(f'"{target}": use {allowed}', param_hint="--target")
    macros = [f"{name}={value}" for name, value in backends.macros(target).items()]
    compiled = programs.compiled(program, include, [*macros, *define])
    for warning in compiled.warnings:
        print(warning.render(compiled.reporter.lines), file=sys.stderr)
    text = programs.compiled_for(target, compiled, arch)
    if p4info is not None:
        write_output(p4info, programs.p4info(compiled.program, target))
    write_output(out, text)


@p4_commands.command()
def ir(
    program: Program,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    prepared: Annotated[
        bool, typer.Option("--prepared", help="As prepared by its architecture")
    ] = False,
) -> None:
    """Print a program's intermediate representation, one statement per line."""
    from gradplane.experiment import p4_programs as programs
    from gradplane.switch.ir.printer import program_text

    compiled = programs.compiled(program, include, define, library=not prepared)
    if prepared:
        programs.check(compiled)
    print(program_text(compiled.program, spaced=True), end="")


@p4_commands.command()
def tests(
    program: Program,
    out: Annotated[Path | None, option("DIR", "The folder; default PROGRAM-tests", *OUT)] = None,
    formats: Annotated[
        str, option("stf,ptf,json", "The files to write", "--format")
    ] = "stf,ptf,json",
    max_tests: Annotated[int, option("N", "End with so many tests", "--max-tests", min=1)] = 1000,
    max_packets: Annotated[
        int, option("N", "The most packets of a test", "--max-packets", min=1)
    ] = 3,
    seconds: Annotated[float, option("N", "End after so much processor time", min=0)] = 180.0,
    seed: Annotated[int, option("N", "Seed of bytes that decide nothing; 0: zeros", min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="The report as JSON")] = False,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
) -> None:
    """Make packets and table entries that cover every statement and branch, with what must leave.

    Writes each as a packet test (.stf), and all as a Python file for PTF and as JSON.
    Prints what they cover, and what no packet reaches."""
    from gradplane.experiment import p4_programs as programs

    wanted = formats.split(",")
    if set(wanted) - {"stf", "ptf", "json"}:
        raise typer.BadParameter(f'"{formats}": use stf, ptf, json', param_hint="--format")
    folder = Path(f"{program.stem}-tests") if out is None else out
    limits = {"seconds": seconds, "tests": max_tests, "packets": max_packets, "seed": seed}
    shown = _search_progress if sys.stderr.isatty() else None
    report = programs.made_tests(
        program, include, define, limits, folder, wanted, shown, as_json=json
    )
    if shown is not None:
        print("\r\x1b[K", end="", file=sys.stderr)
    print(report, end="")


def _search_progress(covered: int, goals: int, seconds: float) -> None:
    text = f"{covered} of {goals} statements and outcomes in {seconds:.0f} s"
    print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)


@p4_commands.command()
def bench(
    program: Program,
    pcap: Annotated[Path | None, option("FILE", "A capture with the packets to measure")] = None,
    packet: Annotated[
        list[str], option("HEX", "Or a packet, from Ethernet on; may be given repeatedly")
    ] = [],  # noqa: B006
    port: Annotated[int, option("N", "The ingress port", min=0)] = 1,
    commands: Annotated[list[Path], option("FILE", "Commands, or runtime JSON, to run first")] = [],  # noqa: B006
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    externs: Externs = None,
    as_json: AsJson = False,
) -> None:
    """Measure how many packets a second a program takes, and what each of their ways costs.

    In memory, on one core, in processor time; docs/performance.md has what ports add."""
    from json import dumps

    from gradplane._captures import ethernet_packets
    from gradplane.cli import output_tables
    from gradplane.experiment import p4_programs as programs

    if (pcap is None) == (not packet):
        raise typer.BadParameter("give --pcap FILE or --packet HEX")
    data = list(map(_bytes, packet)) if pcap is None else [p.data for p in ethernet_packets(pcap)]
    if not data:
        raise typer.BadParameter(f"{pcap}: no packets", param_hint="--pcap")
    found = programs.rates(program, include, define, [(port, p) for p in data], commands, externs)
    if as_json:
        ways = [way._asdict() for way in found.ways]
        print(dumps(found._asdict() | {"ways": ways}, indent=1))
    else:
        make_console().print(output_tables.packet_rates(program.name, found))


def _bytes(packet: str) -> bytes:
    try:
        return bytes.fromhex(packet)
    except ValueError:
        what = f"not an even number of hexadecimal digits: {quoted(packet)}"
        raise typer.BadParameter(what, param_hint="--packet") from None


@p4_commands.command()
def view(
    program: Program,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    out: Annotated[Path | None, option("FILE", "The page [default: PROGRAM.html]", *OUT)] = None,
    dot: Annotated[bool, typer.Option("--dot", help="Print the graphs for Graphviz")] = False,
    at: Annotated[
        str | None, option("HOST:PORT", "Serve the page, with the tables of this switch")
    ] = None,
    step: Annotated[
        bool, typer.Option("--step", help="Serve the page, to send packets and step through them")
    ] = False,
    commands: Annotated[list[Path], option("FILE", "With --step: for the tables, as BMv2's")] = [],  # noqa: B006
    device_id: Annotated[int, option("N", "The switch's, with --at")] = 0,
    port: Annotated[int, option("N", "The served page's port")] = 0,
) -> None:
    """Draw a program: its parsers' states, its tables and conditions, a packet's path; beside its
    source."""
    from gradplane.experiment import p4_programs as programs
    from gradplane.pages.viewer.local_server import ServerError
    from gradplane.pages.viewer.program_graphs import (
        DrawingError,
        dot_text,
        graphs,
        page,
        page_files,
        path_graphs,
    )

    compiled = programs.compiled(program, include, define, library=True)
    if dot:
        drawn = [*graphs(compiled.program), *path_graphs(compiled.program)]
        print("".join(dot_text(graph) for graph in drawn), end="")
        return
    if at is not None:
        try:
            text = page(compiled.program, compiled.reporter.lines, program.name, live=at)
        except DrawingError as error:
            fail(f"{program}: {error}")
        _serve(text, at, device_id, port)
        return
    if step:
        from gradplane.pages.viewer.program_server import stepping_server
        from gradplane.switch.switch import Switch

        switch, lines = Switch(compiled.program, engine="interpreter"), compiled.reporter.lines
        for file in commands:
            switch.run_commands(file.read_text("utf-8-sig"), str(file))
        try:
            text = page(compiled.program, lines, program.name, stepping=True)
            served = stepping_server(text, switch, page_files(compiled.program, lines), port)
        except (DrawingError, ServerError) as error:
            fail(f"{program}: {error}")
        print(f"{served.url}\nfor browsers on this machine; Ctrl-C ends it", flush=True)
        served.run()
        return
    try:
        text = page(compiled.program, compiled.reporter.lines, program.name)
    except DrawingError as error:
        print(f"{program}: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    if out is None:
        out = Path(program.with_suffix(".html").name)
        write_whole(out, text)
    else:
        write_output(out, text)
    print(out)


def _serve(page: str, address: str, device_id: int, port: int) -> None:
    """Serve a program's page with the tables of a running switch."""
    import asyncio

    from gradplane.controller import targets
    from gradplane.controller.connection import Connection
    from gradplane.controller.controller_errors import ControllerError
    from gradplane.pages.viewer.local_server import ServerError
    from gradplane.pages.viewer.program_server import program_server

    def connection() -> Connection:
        return Connection(address, device_id, targets.get("embedded"))

    async def check() -> None:
        async with connection() as tried:
            assert tried.schema

    try:
        asyncio.run(check())
        server = program_server(page, connection(), port)
    except (ControllerError, ServerError) as error:
        fail(str(error))
    print(f"{server.url}\nfor browsers on this machine; Ctrl-C ends it", flush=True)
    server.run()


@p4_commands.command("fit")
def fit_chip(
    program: Program,
    chip: Annotated[
        str | None, option("tofino|tofino2", "The chip; default: the program's")
    ] = None,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    json: Annotated[bool, typer.Option("--json", help="As JSON")] = False,
    html: Annotated[Path | None, option("FILE", "Write the report as a page there")] = None,
) -> None:
    """Estimate whether a TNA program fits on a chip, stage by stage; exit code 1 if it does not."""
    from rich.console import Console

    from gradplane.experiment import p4_programs as programs
    from gradplane.fit import analysis
    from gradplane.fit.chip_resources import CHIPS
    from gradplane.fit.report_text import alternatives
    from gradplane.runs.progress import left
    from gradplane.switch.source import CompileError

    if chip is not None and chip not in CHIPS:
        raise typer.BadParameter(f'"{chip}": use {" or ".join(CHIPS)}', param_hint="--chip")
    macros = [] if chip is None else [f"__TARGET_TOFINO__={list(CHIPS).index(chip) + 1}"]
    began = time.monotonic()
    with Console(stderr=True).status("compiling") as status:  # nothing where it is no terminal
        compiled = programs.compiled(program, include, [*macros, *define])
        wanted = analysis.chip_for(compiled.program) if chip is None else CHIPS[chip]
        report = analysis.fit(compiled.program, wanted, str(program), status.update)
        settings = [] if report.fits else list(alternatives(compiled.reporter.lines, define))
        for done, setting in enumerate(settings, 1):
            most = left(time.monotonic() - began, done, len(settings) + 1)
            title = f"-D {setting}{most}: "
            with suppress(CompileError):
                tried = programs.compiled(program, include, [*macros, *define, setting]).program
                if analysis.fit(tried, wanted, on_step=lambda s: status.update(title + s)).fits:  # noqa: B023
                    report = replace(report, fits_with=setting)
                    break
    _print_fit(report, compiled.reporter.lines, json, html)
    if not report.fits:
        raise typer.Exit(1)


def _print_fit(
    report: "FitReport", lines: dict[str, list[str]], as_json: bool, html: Path | None
) -> None:
    from gradplane.fit.report_text import report_json, report_text
    from gradplane.pages.fit_page import page

    if html is not None:
        write_output(html, page(report))
    if as_json:
        from json import dumps

        print(dumps(report_json(report), indent=1))
    else:
        print(report_text(report, lines), end="")


@p4_commands.command()
def config(
    program: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE.p4",
            show_default=False,
            callback=lambda files: [*map(_shipped_programs.find, files)],
        ),
    ],
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    pipe_scope: Annotated[
        list[str], option("NAME=PIPE,PIPE", "The pipes of one of a chip's programs")
    ] = [],  # noqa: B006
) -> None:
    """Print a program with its includes as JSON, to push in place of BMv2's compiled JSON.

    Several are programs of a chip (TNA), for its pipes."""
    from gradplane.experiment import p4_programs as programs

    print(programs.config(program, include, define, pipe_scope))


@commands.command()
def trace(
    program: AnyProgram = None,
    packet: Annotated[str | None, option("HEX", "The packet, from Ethernet on")] = None,
    pcap: Annotated[
        Path | None, option("FILE", "Or a capture: its packets, its times as the clock")
    ] = None,
    commands: Annotated[list[Path], option("FILE", "Commands, or runtime JSON, to run first")] = [],  # noqa: B006
    at: Annotated[str | None, option("HOST:PORT", "Trace packets of a running switch")] = None,
    port: Annotated[
        int | None, option("N", "The ingress port; default 1, with --at any", min=0)
    ] = None,
    where: Annotated[
        str | None, option("P4", "With --at or --pcap: hdr.ipv4.dst == 10.0.0.5")
    ] = None,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="With --pcap: packets of which nothing left")
    ] = False,
    count: Annotated[
        int | None, option("N", "With --at or --pcap: the first N", "--next", min=1)
    ] = None,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    json: Annotated[bool, typer.Option("--json", help="As JSON")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="The tree of outcomes under any table content")
    ] = False,
    externs: Externs = None,
    cacert: Cacert = None,
    cert: Cert = None,
    key: Key = None,
) -> None:
    """Trace a packet step by step, or the packets of a running switch."""
    if at is not None:
        if program or packet or pcap or commands or externs or everything or dropped:
            raise typer.BadParameter(
                "only without a program, packet, capture, commands, externs, --dropped and --all",
                param_hint="--at",
            )
        _trace_live(at, port, where, count, json, tls_files(cacert, cert, key))
        return
    if cacert is not None:
        raise typer.BadParameter("only with --at", param_hint="--cacert")
    if program is None or (packet is None) == (pcap is None):
        raise typer.BadParameter(
            "give FILE.p4 and --packet HEX or --pcap FILE, or --at HOST:PORT alone"
        )
    if pcap is None and (where is not None or count is not None or dropped):
        raise typer.BadParameter(
            "only with --pcap or --at", param_hint="--where, --dropped, --next"
        )
    from gradplane.experiment import p4_programs as programs

    data: bytes | Path = pcap or _bytes(packet or "")
    number = 1 if port is None else port
    if everything:
        if json or externs is not None or commands or isinstance(data, Path):
            raise typer.BadParameter(
                "not with --json, --externs, --commands or --pcap", param_hint="--all"
            )
        print(programs.outcome_tree(program, include, define, number, data), end="")
        return
    traced = programs.trace(
        *(program, include, define, number, data, json, externs, commands, where, dropped, count)
    )
    print(folded(traced), end="")


def _trace_live(
    address: str,
    port: int | None,
    where: str | None,
    count: int | None,
    as_json: bool,
    tls: "ClientTls | None",
) -> None:
    from json import dumps

    from gradplane.switch.daemon.clients import traces

    with suppress(KeyboardInterrupt):
        answers = traces(address, port, where, count, tls)
        print(f"waiting for packets at {address}; Ctrl-C ends it", file=sys.stderr)
        for answer in answers:
            found = answer["trace"]
            heading = f"port {found['port']}, {len(found['packet']) // 2} bytes"
            text = dumps(found) if as_json else folded(f"{heading}\n{answer['text']}")
            print(text, flush=True)


@commands.command()
def diff(
    program: Program,
    targets: Annotated[str, option("A,B", "embedded,bmv2")] = "embedded,bmv2",
    entries: Annotated[
        Path | None, option("FILE", "Commands, or runtime JSON; default random")
    ] = None,
    packets: Annotated[int, typer.Option(metavar="N", min=1)] = 200,
    seed: Annotated[int, typer.Option(metavar="N", min=0)] = 0,
    compiler: Annotated[
        str, option("NAME", "Compiles bmv2's JSON: gradplane or p4c")
    ] = "gradplane",
    operations: Annotated[int, option("N", "A controller's, random, among packets", min=0)] = 0,
    script: Annotated[
        Path | None, option("FILE", "Operations of a controller, and packets")
    ] = None,
    save: Annotated[Path | None, option("FILE", "Write the random operations as a script")] = None,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
) -> None:
    """Give random packets to two switches, or one script of a controller's operations and packets;
    print the first difference, or none."""
    from gradplane.differ import difference
    from gradplane.differ.operations import Comparison

    if tuple(targets.split(",")) != difference.TARGETS:
        allowed = ",".join(difference.TARGETS)
        raise typer.BadParameter(f"use {allowed}", param_hint="--targets")
    result: difference.DiffResult | Comparison
    if script is not None or operations:
        result = difference.diff_operations(
            program, script, operations, seed, include, define, compiler, save
        )
    else:
        result = difference.diff(program, entries, packets, seed, include, define, compiler)
    print(result.text())
    if result.difference:
        raise typer.Exit(1)


@commands.command()
def stf(
    programs: Annotated[
        list[Path], typer.Argument(metavar="FILE.p4 [FILE.stf]", show_default=False)
    ],
    tests: Annotated[Path | None, option("DIR", "Run a program's .stf files there")] = None,
    engine: Annotated[str, option("ENGINE", "jit or interpreter")] = "jit",
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    externs: Externs = None,
) -> None:
    """Run the packet tests of programs, each in the .stf file beside it, or in those given."""
    from gradplane.switch.stf import main as run_tests
    from gradplane.switch.switch import ENGINES

    if engine not in ENGINES:
        raise typer.BadParameter(f"use {' or '.join(ENGINES)}", param_hint="--engine")
    sources = [file for file in programs if file.suffix != ".stf"]
    given = [file for file in programs if file.suffix == ".stf"]
    if tests is None and len(sources) == 1 and given:
        raise typer.Exit(run_tests(given, engine, include, define, externs, sources[0]))
    if tests is None:
        raise typer.Exit(run_tests(programs, engine, include, define, externs))
    if len(programs) != 1 or not (files := sorted(tests.glob("*.stf"))):
        what = "give one program" if len(programs) != 1 else f"there are no .stf files in {tests}"
        raise typer.BadParameter(what, param_hint="--tests")
    raise typer.Exit(run_tests(files, engine, include, define, externs, programs[0]))
