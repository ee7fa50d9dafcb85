"""The command line. Exit status: 0 ok, 1 failed or rejected, 2 wrong usage.

Each command imports what it needs when it runs, so that --help is fast.
"""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradplane import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from gradplane.switch.daemon.clients import ClientTls

app = typer.Typer(
    help="P4 switch and network emulator for in-network aggregation of compressed gradients.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
codecs_app = typer.Typer(help="Compression codecs: list them, or measure them.")
p4_app = typer.Typer(
    help="P4_16 programs: check them, or show what they contain.", no_args_is_help=True
)
app.add_typer(codecs_app, name="codecs")
app.add_typer(p4_app, name="p4")

Settings = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key: job.quorum=3")
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="The run folder; it must not exist")]
Seed = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Replaces the experiment's seeds")
]
Accuracy = Annotated[
    float | None,
    typer.Option(min=0, max=1, metavar="X", help="Note when the test accuracy reaches X, as 0.95"),
]
Includes = Annotated[list[Path], typer.Option("-I", metavar="DIR", help="Folder of includes")]
Defines = Annotated[list[str], typer.Option("-D", metavar="NAME[=VALUE]", help="Define a macro")]
Externs = Annotated[
    Path | None, typer.Option(metavar="FILE.py", help="Implements user-defined externs")
]
Program = Annotated[Path, typer.Argument(metavar="FILE.p4", show_default=False)]
Cacert = Annotated[
    Path | None, typer.Option(metavar="PEM", help="TLS: the authority of the switch's certificate")
]
Cert = Annotated[Path | None, typer.Option(metavar="PEM", help="TLS: your certificate")]
Key = Annotated[Path | None, typer.Option(metavar="PEM", help="TLS: its private key")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command `gradplane` with the process's arguments, or with those given."""
    # User-defined models and data are module:object, imported from the current folder.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        app(arguments, prog_name="gradplane")
    except Exception as error:
        if not (_ours(error) or isinstance(error, OSError)):
            raise
        from gradplane.switch.runtime.control_errors import os_error_text

        text = os_error_text(error) if isinstance(error, OSError) else str(error)
        _fail("\n".join([text, *_notes(error)]))


def _ours(error: BaseException) -> bool:
    """Return whether an error is meant for the user; any other is a bug of gradplane."""
    return any(kind.__module__.startswith("gradplane.") for kind in type(error).__mro__)


def _fail(message: str) -> None:
    print(message if "\n" in message else f"gradplane: {message}", file=sys.stderr)
    sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"gradplane {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version"),
    ] = False,
) -> None:
    """P4 switch and network emulator for in-network aggregation of compressed gradients."""


@app.command()
def run(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            metavar="EXPERIMENT.toml", show_default=False, help="A file, or a shipped one's name"
        ),
    ] = None,
    net: Annotated[
        str | None, typer.Option(metavar="mininet|sim", help="Default: mininet where possible")
    ] = None,
    out: Out = None,
    seed: Seed = None,
    settings: Settings = [],  # noqa: B006  (typer copies it)
    target_accuracy: Accuracy = None,
    cli: Annotated[bool, typer.Option("--cli", help="Open Mininet's prompt first")] = False,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN_DIR", help="Finish a run that was stopped")
    ] = None,
) -> None:
    """Run an experiment, or a study, and write its run folder; or finish a stopped run."""
    from gradplane.cli import output_tables
    from gradplane.runner import run_experiment
    from gradplane.studies import launch

    _check_network(net)
    if resume is not None:
        if experiment or out or settings or cli or (seed, target_accuracy) != (None, None):
            raise typer.BadParameter("the folder has the whole experiment", param_hint="--resume")
        with _stoppable():
            summary = run_experiment.resume(resume, net=net, console=True)
    elif experiment is None:
        raise typer.BadParameter("give EXPERIMENT.toml, or --resume RUN_DIR")
    elif launch.is_study(experiment):
        if target_accuracy is not None:
            hint = "--target-accuracy"
            raise typer.BadParameter("a study has its own result: omit it", param_hint=hint)
        _run_study(experiment, out, net, seed, settings, cli)
        return
    else:
        if target_accuracy is not None:
            settings = [*settings, f"output.target_accuracy={target_accuracy}"]
        with _stoppable():
            summary = run_experiment.run(
                experiment, out, net=net, settings=settings, seed=seed, cli=cli, console=True
            )
    console = _console()
    console.print(output_tables.results(summary))
    _say(console, f"report: {summary.report}")


@contextmanager
def _stoppable() -> Iterator[None]:
    """Print where the records are if the run inside is stopped by Ctrl-C or SIGTERM."""

    def stop(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as error:
        status = error.code if isinstance(error, SystemExit) else 128 + signal.SIGINT
        print("\n".join(["gradplane: stopped", *_notes(error)]), file=sys.stderr)
        raise typer.Exit(int(status or 0)) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _notes(error: BaseException) -> list[str]:
    """Return the notes that were added to an error."""
    return list(getattr(error, "__notes__", ()))


@app.command()
def experiments(
    copy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Write a copy of one, to edit it")
    ] = None,
    destination: Annotated[
        Path | None, typer.Argument(metavar="DEST", help="With --copy: a file or a folder")
    ] = None,
) -> None:
    """List the shipped experiments; `gradplane run NAME` runs one."""
    from gradplane.cli import output_tables
    from gradplane.experiment import shipped

    if copy is not None:
        _say(_console(), str(shipped.copy(copy, destination)))
        return
    if destination is not None:
        raise typer.BadParameter("only with --copy NAME", param_hint="DEST")
    _console().print(output_tables.experiments())


def _run_study(
    path: Path, out: Path | None, net: str | None, seed: int | None, settings: list[str], cli: bool
) -> None:
    from gradplane.cli import output_tables
    from gradplane.studies import launch

    if net or cli:
        hint = "--net" if net else "--cli"
        raise typer.BadParameter("a study has no network: omit it", param_hint=hint)
    console = _console()
    with console.status("computing"):
        done = launch.run(path, out, settings=settings, seed=seed)
    console.print(output_tables.study(done.outcome))
    _say(console, f"report: {done.report}")


def _check_network(net: str | None) -> None:
    from gradplane.runner.run_experiment import NETWORKS

    if net not in (None, *NETWORKS):
        raise typer.BadParameter(f"use {' or '.join(NETWORKS)}", param_hint="--net")


@app.command()
def replay(
    folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", show_default=False)],
    settings: Settings = [],  # noqa: B006
    out: Out = None,
    net: Annotated[
        str | None, typer.Option(metavar="mininet|sim", help="With --set: the network; default sim")
    ] = None,
) -> None:
    """Re-enact a run bit for bit; with --set, its losses under a changed experiment."""
    from gradplane.cli import output_tables
    from gradplane.records.summary import Summary
    from gradplane.replayer import replay_run

    if net is not None and not settings:
        raise typer.BadParameter("only with --set", param_hint="--net")
    _check_network(net)
    console = _console()
    if settings:
        result = replay_run.replay(folder, settings, out=out, net=net, console=True)
    else:
        with console.status("replaying") as status:
            result = replay_run.replay(
                folder, on_round=lambda n: status.update(f"replaying: round {n}")
            )
    if isinstance(result, Summary):
        console.print(output_tables.results(result))
        _say(console, f"report: {result.report}")
        return
    _say(console, result.text())
    if not result.equal:
        raise typer.Exit(1)


@app.command()
def sweep(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            metavar="EXPERIMENT.toml", show_default=False, help="A file, or a shipped one's name"
        ),
    ] = None,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=V1,V2,...", help="A key and the values it takes; may be repeated"
        ),
    ] = [],  # noqa: B006
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Runs of each point, under successive seeds"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="The sweep's folder; it must not exist"),
    ] = None,
    net: Annotated[str | None, typer.Option(metavar="mininet|sim", help="Default: sim")] = None,
    settings: Settings = [],  # noqa: B006
    target_accuracy: Accuracy = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="tcp://HOST:PORT", help="A Dask scheduler; default: this machine"),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Local processes; default: one for each core"),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the sweep in the folder -o")
    ] = False,
) -> None:
    """Run an experiment at every point of a grid and under several seeds; write one table."""
    from gradplane.cli import output_tables
    from gradplane.sweeps import sweep as sweeping

    _check_network(net)
    console = _console()
    with _stoppable():
        done = sweeping.carry_out(
            experiment,
            over,
            out,
            seeds=seeds,
            net=net,
            settings=settings,
            target_accuracy=target_accuracy,
            cluster_address=cluster,
            workers=workers,
            resume=resume,
            console=console,
        )
    console.print(output_tables.sweep(done.results))
    _say(console, f"report: {done.folder.path / 'report.html'}")
    if done.failures:
        runs = len(done.folder.plan.runs)
        lines = [f"{len(done.failures)} of {runs} runs failed:"]
        lines += [f"  {name}: {text}" for name, text in done.failures.items()]
        lines.append(f"gradplane sweep --resume -o {done.folder.path} runs them again")
        _fail("\n".join(lines))


@app.command("compare-targets")
def compare_targets(
    experiment: Annotated[
        Path, typer.Argument(metavar="EXPERIMENT.toml", show_default=False, help="Or its name")
    ],
    targets: Annotated[
        str, typer.Option(metavar="A,B", help="Files in controller/targets/")
    ] = "embedded,bmv2",
    net: Annotated[str | None, typer.Option(metavar="mininet|sim")] = None,
    out: Out = None,
    seed: Seed = None,
    settings: Settings = [],  # noqa: B006
) -> None:
    """Run an experiment on several switches; print the first difference, or that there is none."""
    from gradplane.replayer import compare_targets as comparing

    _check_network(net)
    with _stoppable():
        result = comparing.compare(
            experiment,
            targets.split(","),
            out,
            net=net,
            settings=settings,
            seed=seed,
            console=True,
        )
    _say(_console(), result.text())
    if not result.equal:
        raise typer.Exit(1)


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN_DIR", show_default=False)],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The HTML file to write")] = None,
) -> None:
    """Write the report of a run, a study or a sweep, or the comparison of several runs."""
    from gradplane.report import page as reports
    from gradplane.studies import launch
    from gradplane.sweeps.plan_file import is_sweep

    studies = [folder for folder in folders if launch.is_folder(folder)]
    sweeps = [folder for folder in folders if is_sweep(folder)]
    if (studies or sweeps) and len(folders) > 1:
        kind = "study" if studies else "sweep"
        raise typer.BadParameter(
            f"{[*studies, *sweeps][0]} is a {kind}'s folder, and only runs are compared: give it"
            " alone",
            param_hint="RUN_DIR",
        )
    if sweeps:
        from gradplane.sweeps.sweep import write_report

        _say(_console(), f"report: {write_report(sweeps[0], out)}")
        return
    if studies:
        _say(_console(), f"report: {launch.write_report(studies[0], out)}")
        return
    _say(_console(), f"report: {reports.write(folders, out)}")


@app.command()
def records(
    folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", show_default=False)],
    kind: Annotated[
        str, typer.Option(metavar="arrival|norm|stall|epoch|verdict", help="Which records")
    ] = "arrival",
) -> None:
    """Print a run's records as CSV, a line a packet."""
    from gradplane.cli import record_lines

    if kind not in record_lines.KINDS:
        known = ", ".join(record_lines.KINDS)
        raise typer.BadParameter(f"{kind!r}: it must be one of {known}", param_hint="--kind")
    record_lines.write(folder, kind, sys.stdout)


@codecs_app.callback(invoke_without_command=True)
def codecs(context: typer.Context) -> None:
    """List the codecs with their parameters, or measure them."""
    if context.invoked_subcommand is None:
        list_codecs()


@codecs_app.command("list")
def list_codecs() -> None:
    """List the codecs with their parameters."""
    from gradplane.cli import output_tables

    _console().print(output_tables.codecs())


@codecs_app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="All codecs by default")
    ] = None,
    values: Annotated[int, typer.Option(metavar="N", min=1, help="Length of the vector")] = 1 << 20,
    seed: Annotated[int, typer.Option(metavar="N", min=0)] = 1,
    profile: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Of one codec: for `gradplane plan`")
    ] = None,
) -> None:
    """Measure speed, ratio and error on normal, lognormal and recorded real gradients."""
    from gradplane.cli import output_tables

    if profile is not None:
        from gradplane.planner.profile import profile as measured

        if names is None or len(names) != 1:
            raise typer.BadParameter("give one codec", param_hint="--profile")
        profile.write_text(measured(names[0]), "utf-8")
        _say(_console(), f"profile: {profile}")
        return
    _console().print(output_tables.bench(names, values, seed))


@p4_app.command()
def check(
    program: Program,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors")] = False,
) -> None:
    """Compile a program, for any architecture, and report its errors and warnings."""
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


@p4_app.command()
def info(
    program: Program,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    summary: Annotated[bool, typer.Option("--summary", help="As tables")] = False,
) -> None:
    """Print a program's P4Info, or a summary of what a controller finds in it."""
    from gradplane.cli import output_tables
    from gradplane.experiment import p4_programs as programs

    compiled = programs.compiled(program, include, define)
    programs.check(compiled)
    if summary:
        _console().print(output_tables.program(compiled.program))
    else:
        print(programs.p4info(compiled.program), end="")


@p4_app.command("compile")
def compile_for(
    program: Program,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The file to write")
    ],
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    target: Annotated[str, typer.Option(metavar="bmv2", help="The switch to compile for")] = "bmv2",
    p4info: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the P4Info (text) there")
    ] = None,
    arch: Annotated[
        str | None, typer.Option(metavar="v1model", help="Refuse a program of another architecture")
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
        p4info.write_text(programs.p4info(compiled.program, target), "utf-8")
    output.write_text(text, "utf-8")


@p4_app.command()
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


@p4_app.command()
def config(
    program: Program,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
) -> None:
    """Print a program with its includes as JSON, to push in place of BMv2's compiled JSON."""
    from gradplane.experiment import p4_programs as programs

    print(programs.config(program, include, define))


@app.command()
def plan(
    model: Annotated[
        str, typer.Argument(metavar="MODEL.toml", show_default=False, help="Or a shipped one")
    ],
    system: Annotated[str, typer.Option(metavar="SYSTEM.toml", help="A file, or a shipped one")],
    codec: Annotated[str, typer.Option(metavar="NAME", help="A file, or a shipped one")],
    constraints: Annotated[
        list[str], typer.Option("--constraint", metavar="RULE", help="compressions<=1, device=gpu")
    ] = [],  # noqa: B006
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For plan.json and plan.html; it must not exist"),
    ] = None,
    tree: Annotated[bool, typer.Option("--tree", help="Draw the tree of options instead")] = False,
) -> None:
    """Choose for each tensor of a model whether, where and how to compress it."""
    from gradplane.cli import plan_tables
    from gradplane.planner.page import page
    from gradplane.planner.plan import make, options

    console = _console()
    if tree:
        _say(console, options(codec, system, constraints))
        return
    if out is not None and out.exists():
        raise typer.BadParameter(f"{out} exists: choose another folder", param_hint="--out")
    made = make(model, codec, system, constraints)
    console.print(plan_tables.plan(made))
    if out is not None:
        out.mkdir(parents=True)
        (out / "plan.json").write_text(made.to_json(), "utf-8")
        (out / "plan.html").write_text(page(made), "utf-8")
        _say(console, f"plan: {out / 'plan.json'}\npage: {out / 'plan.html'}")


@app.command()
def trace(
    program: Annotated[Path | None, typer.Argument(metavar="FILE.p4", show_default=False)] = None,
    packet: Annotated[
        str | None, typer.Option(metavar="HEX", help="The packet, from Ethernet on")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Trace packets of a running switch")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="The ingress port; default 1, with --at any"),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="P4", help="With --at: hdr.ipv4.dst == 10.0.0.5")
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--next", metavar="N", min=1, help="With --at: end after this many"),
    ] = None,
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    json: Annotated[bool, typer.Option("--json", help="As JSON")] = False,
    externs: Externs = None,
    cacert: Cacert = None,
    cert: Cert = None,
    key: Key = None,
) -> None:
    """Trace a packet step by step, or the packets of a running switch."""
    if at is not None:
        if program is not None or packet is not None or externs is not None:
            raise typer.BadParameter(
                "only without a program, packet and externs", param_hint="--at"
            )
        _trace_live(at, port, where, count, json, _tls(cacert, cert, key))
        return
    if cacert is not None:
        raise typer.BadParameter("only with --at", param_hint="--cacert")
    if program is None or packet is None:
        raise typer.BadParameter("give FILE.p4 and --packet HEX, or --at HOST:PORT")
    if where is not None or count is not None:
        raise typer.BadParameter("only with --at", param_hint="--where, --next")
    from gradplane.experiment import p4_programs as programs

    try:
        data = bytes.fromhex(packet)
    except ValueError as error:
        raise typer.BadParameter(f"not hexadecimal: {error}", param_hint="--packet") from None
    number = 1 if port is None else port
    print(programs.trace(program, include, define, number, data, json, externs), end="")


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
            text = dumps(found) if as_json else f"{heading}\n{answer['text']}"
            print(text, flush=True)


@app.command()
def diff(
    program: Program,
    targets: Annotated[str, typer.Option(metavar="A,B", help="embedded,bmv2")] = "embedded,bmv2",
    entries: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Commands, or runtime JSON; default random")
    ] = None,
    packets: Annotated[int, typer.Option(metavar="N", min=1)] = 200,
    seed: Annotated[int, typer.Option(metavar="N", min=0)] = 0,
    compiler: Annotated[
        str, typer.Option(metavar="NAME", help="Of bmv2's JSON: gradplane or p4c")
    ] = "gradplane",
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
) -> None:
    """Give random packets to two switches; print the first difference, with a trace, or none."""
    from gradplane.differ import difference

    if tuple(targets.split(",")) != difference.TARGETS:
        allowed = ",".join(difference.TARGETS)
        raise typer.BadParameter(f"use {allowed}", param_hint="--targets")
    result = difference.diff(program, entries, packets, seed, include, define, compiler)
    print(result.text())
    if result.difference:
        raise typer.Exit(1)


@app.command()
def stf(
    programs: Annotated[list[Path], typer.Argument(metavar="FILE.p4", show_default=False)],
    engine: Annotated[str, typer.Option(metavar="ENGINE", help="jit or interpreter")] = "jit",
    include: Includes = [],  # noqa: B006
    define: Defines = [],  # noqa: B006
    externs: Externs = None,
) -> None:
    """Run the packet tests of programs, each in the .stf file beside it."""
    from gradplane.switch.stf import main as run_tests
    from gradplane.switch.switch import ENGINES

    if engine not in ENGINES:
        raise typer.BadParameter(f"use {' or '.join(ENGINES)}", param_hint="--engine")
    raise typer.Exit(run_tests(programs, engine, include, define, externs))


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
)
def switch(context: typer.Context) -> None:
    """Run a P4 switch on network interfaces, with simple_switch_grpc's options."""
    from gradplane.switch.daemon import live_switch

    raise typer.Exit(live_switch.main(context.args))


@app.command(
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "allow_interspersed_args": False,
    }
)
def lab(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(metavar="SCRIPT.py", show_default=False)],
) -> None:
    """Run a Mininet script in isolated namespaces; it gets the arguments that follow it."""
    from gradplane.runner.lab import run as run_script

    raise typer.Exit(run_script(script, context.args))


@app.command()
def cli(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Commands, or runtime JSON")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The switch's P4Runtime server")
    ] = None,
    thrift_port: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="The switch's --thrift-port, instead of --at"),
    ] = None,
    thrift_ip: Annotated[str, typer.Option(metavar="IP", help="Of --thrift-port")] = "127.0.0.1",
    cacert: Cacert = None,
    cert: Cert = None,
    key: Key = None,
    json: Annotated[str | None, typer.Option(hidden=True)] = None,
    pre: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run simple_switch_CLI's commands on a running switch, from a file, a pipe or a prompt."""
    from gradplane.cli.switch_prompt import run_commands

    if at is not None and thrift_port is not None:
        raise typer.BadParameter("give one of --at and --thrift-port", param_hint="--at")
    address = at or (f"{thrift_ip}:{thrift_port}" if thrift_port else "127.0.0.1:9559")
    raise typer.Exit(run_commands(address, file, _tls(cacert, cert, key)))


@app.command()
def shims(
    folder: Annotated[Path, typer.Argument(metavar="DIR", show_default=False)],
) -> None:
    """Write stand-ins for p4c and BMv2's programs to DIR; print the line that puts it on PATH."""
    from gradplane.cli.shims import write_shims

    print(write_shims(folder))


@app.command()
def shell(
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The switch's P4Runtime server")
    ] = "127.0.0.1:9559",
    device_id: Annotated[int, typer.Option(metavar="N", min=0)] = 0,
    election_id: Annotated[
        int, typer.Option(metavar="N", min=1, help="The highest one may write")
    ] = 100,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="Run this instead of a prompt")
    ] = None,
) -> None:
    """Open p4runtime-shell on a running switch; installs it separately on first use."""
    from gradplane.cli.p4runtime_shell import open_shell

    raise typer.Exit(open_shell(address, device_id, election_id, script=script))


def _tls(cacert: Path | None, cert: Path | None, key: Path | None) -> "ClientTls | None":
    from gradplane.switch.daemon.clients import ClientTls

    if cacert is None:
        if cert is not None or key is not None:
            raise typer.BadParameter("TLS needs it", param_hint="--cacert")
        return None
    if (cert is None) != (key is None):
        raise typer.BadParameter("give both or none", param_hint="--cert, --key")
    return ClientTls(cacert, cert, key)


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False)


def _say(console: "Console", text: str) -> None:
    """Print text without wrapping its lines."""
    console.print(text, soft_wrap=True, markup=False)
