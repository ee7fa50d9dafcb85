"""Commands on codecs, and the planner that chooses among them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradplane._whole_files import write_output, write_whole
from gradplane.cli.options import OUT, AsJson, argument, completed, make_console, option, say

if TYPE_CHECKING:
    from gradplane.codecs import Codec, RecordedGradients

commands = typer.Typer()
codec_commands = typer.Typer(help="Compression codecs: list, measure or choose them.")
commands.add_typer(codec_commands, name="codecs")


def _codecs() -> list[str]:
    from gradplane import codecs

    return codecs.names()


def _recorded() -> list[str]:
    from gradplane.studies import recorded

    return recorded.names()


def _planned(kind: str) -> Callable[[str], list[str]]:
    """Return what completes the planner's files of a kind, a class of planner/inputs.py."""

    def names() -> list[str]:
        from gradplane.planner import inputs

        return inputs.shipped(getattr(inputs, kind))

    return completed(names, "*.toml")


_CODEC, _GRADIENTS = completed(_codecs, "*.py"), completed(_recorded, "*.npz")


@codec_commands.callback(invoke_without_command=True)
def codecs(context: typer.Context) -> None:
    """List the codecs with their parameters, measure them, or choose one."""
    if context.invoked_subcommand is None:
        list_codecs()


@codec_commands.command("list")
def list_codecs() -> None:
    """List the codecs with their parameters."""
    from gradplane.cli import output_tables

    make_console().print(output_tables.codecs())


@codec_commands.command()
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CODEC",
            help="A name, a file, or a table such as \"{name='topk', fraction=0.1}\";"
            " all codecs by default",
            autocompletion=_CODEC,
        ),
    ] = None,
    values: Annotated[
        int | None, option("N", "Length of the vector [default: 1048576]", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0)] = 1,
    gradients: Annotated[
        str | None,
        option(
            "FILE.npz", "Recorded gradients, or a shipped set, by layer", autocompletion=_GRADIENTS
        ),
    ] = None,
    profile: Annotated[
        Path | None, option("FILE.toml", "Write one codec's file for `gradplane plan`")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure speed, ratio and error on normal, lognormal and recorded real gradients.

    With --gradients also bias, for each layer. --gradients digits-cnn and letters-transformer ship;
    gradplane.torch.record_gradients records yours.
    """
    from gradplane.cli import output_tables

    if gradients is not None:
        if values is not None or profile is not None:
            other = "--values" if profile is None else "--profile"
            raise typer.BadParameter(f"not with {other}", param_hint="--gradients")
        _bench_recorded(names, gradients, seed, as_json)
        return
    values = values or 1 << 20

    if profile is not None:
        from gradplane.planner.profile import profile as measured

        if names is None or len(names) != 1:
            raise typer.BadParameter("give one codec", param_hint="--profile")
        if as_json:
            raise typer.BadParameter("not with --profile", param_hint="--json")
        (codec,) = _made(names).values()
        write_output(profile, measured(codec))
        say(make_console(), f"profile: {profile}")
        return
    found = output_tables.measure(_made(names), values, seed)
    if as_json:
        print(json.dumps({"values": values, "seed": seed, "codecs": found}, indent=1))
    else:
        make_console().print(output_tables.bench(found, values))


@codec_commands.command()
def check(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="CODEC",
            help="A name, a file, or a table, as of `codecs bench`",
            autocompletion=_CODEC,
        ),
    ],
) -> None:
    """Check that codecs keep their contract: sizes, round trips, damaged bytes, NaN, ...

    The exit status is 1 if one breaks a rule.
    """
    from gradplane.cli import output_tables
    from gradplane.codecs import _contract

    console, broken = make_console(), False
    for name, codec in _made(names).items():
        found = list(_contract.check(codec))
        broken |= any(problem for *_, problem in found)
        say(console, f"codec {name}")
        console.print(output_tables.contract(found))
    raise typer.Exit(broken)


_TRIED = 10_007  # values, for codecs of several partitions


def _made(given: list[str] | None) -> "dict[str, Codec]":
    """Return codecs by what was given for each, a name or a table as in an experiment.

    A user's are tried as a switch's, too, if their codes can be summed: LoadError, CodecError."""
    from gradplane import codecs as compression
    from gradplane._plugins import is_reference
    from gradplane.codecs._own_sums import try_sums
    from gradplane.experiment.document import parse_value
    from gradplane.studies.gradients import drawn

    found = {}
    for text in given or compression.names():
        value = parse_value(text) if text.lstrip().startswith("{") else {"name": text}
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            example = "\"{name='topk', fraction=0.1}\""
            raise typer.BadParameter(f"{text}: write a TOML table, such as {example}")
        found[text] = codec = compression.get(**value)
        if codec.summable and is_reference(codec.name):
            try_sums(codec, drawn("normal", _TRIED, 1))
    return found


def _bench_recorded(names: list[str] | None, gradients: str, seed: int, as_json: bool) -> None:
    from gradplane.cli import output_tables
    from gradplane.studies import recorded

    measured = _made(names)
    found = recorded.load(gradients)
    effects = {name: recorded.effects(codec, found, seed) for name, codec in measured.items()}
    if as_json:
        by_codec = {name: list(map(vars, rows)) for name, rows in effects.items()}
        print(json.dumps(_described(gradients, found) | {"codecs": by_codec}, indent=1))
    else:
        make_console().print(output_tables.recorded_bench(effects, found))


def _described(gradients: str, found: "RecordedGradients") -> dict[str, Any]:
    listed = {"steps": found.steps, "workers": found.workers, "layers": found.layers}
    return {"gradients": gradients, "origin": found.origin} | listed


@codec_commands.command()
def advise(
    gradients: Annotated[
        str,
        option(
            "FILE.npz",
            "Recorded gradients, or a shipped set",
            show_default=False,
            autocompletion=_GRADIENTS,
        ),
    ],
    error: Annotated[
        float, option("X", "Most of the energy that ten rounds may miss", min=0, max=1)
    ] = 0.1,
    momentum: Annotated[float, option("M", "The training's momentum", min=0, max=0.999)] = 0.9,
    seed: Annotated[int, typer.Option(metavar="N", min=0)] = 1,
    as_json: AsJson = False,
) -> None:
    """Recommend a codec with parameters for recorded gradients, for each way through the network.

    Each candidate sends every recorded step ten times, with its memory. The smallest one whose sum
    is near enough, and of which a run would not warn, is recommended.
    """
    from gradplane.cli import output_tables
    from gradplane.studies import recorded
    from gradplane.studies.recorded.advice import advise as advised

    found = recorded.load(gradients)
    candidates = advised(found, error, momentum, seed)
    if as_json:
        described = _described(gradients, found) | {"error": error, "momentum": momentum}
        print(json.dumps(described | {"candidates": list(map(vars, candidates))}, indent=1))
    else:
        make_console().print(output_tables.advice(candidates, found, error))


@commands.command(context_settings={"allow_extra_args": True})
def plan(
    context: typer.Context,
    model: Annotated[
        str | None, argument("MODEL.toml", "Or a shipped one", autocompletion=_planned("Model"))
    ] = None,
    system: Annotated[
        str | None,
        option(
            "SYSTEM.toml", "A file, or a shipped one; required", autocompletion=_planned("System")
        ),
    ] = None,
    codec: Annotated[
        str | None,
        option(
            "NAME", "A file, or a shipped one; required", autocompletion=_planned("Compression")
        ),
    ] = None,
    constraints: Annotated[
        list[str], option("RULE", "compressions<=1, device=gpu", "--constraint")
    ] = [],  # noqa: B006
    out: Annotated[
        Path | None,
        option(
            "DIR", "For plan.json and plan.html; of --profile the file; it must not exist", *OUT
        ),
    ] = None,
    profile: Annotated[
        Path | None,
        option(
            "SCRIPT.py",
            "Write the model file of a PyTorch script, which gets the arguments after `--`",
        ),
    ] = None,
    scale: Annotated[
        int | None,
        option(
            "VALUES",
            "Scale the job to so many values; --out then writes an experiment that runs it",
            min=1,
        ),
    ] = None,
    tree: Annotated[bool, typer.Option("--tree", help="Draw the tree of options instead")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose for each tensor of a model whether, where and how to compress it.

    --profile measures a script's backward pass and writes the model file that a plan begins with.
    """
    if profile is not None:
        others: dict[str, object] = {
            "--system": system,
            "--codec": codec,
            "--constraint": constraints,
        }
        others |= {"--scale": scale, "--tree": tree, "--json": as_json}
        for name, value in others.items():
            if value:
                raise typer.BadParameter("not with --profile, which makes no plan", param_hint=name)
        _profile(profile, [word for word in (model, *context.args) if word is not None], out)
        return
    if context.args:
        raise typer.BadParameter(f"one model, not {context.args[0]}, too", param_hint="MODEL.toml")
    from gradplane.cli import output_tables
    from gradplane.pages.plan_page import page
    from gradplane.planner.experiment_file import experiment
    from gradplane.planner.inputs import Compression, Model, System, shipped
    from gradplane.planner.planning import make, options

    needed = {"MODEL.toml": model, "--system": system, "--codec": codec}
    if model is None or system is None or codec is None:
        found = {
            "models": shipped(Model), "systems": shipped(System), "codecs": shipped(Compression),
        }  # fmt: skip
        listed = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in found.items())
        raise typer.BadParameter(
            f"it is missing; each is a file, or a shipped one. Shipped {listed}"
            + "; name a model, or --profile a script" * (model is None),
            param_hint=" and ".join(name for name, value in needed.items() if value is None),
        )
    console = make_console()
    if tree:
        say(console, options(codec, system, constraints))
        return
    if out is not None and out.exists():
        raise typer.BadParameter(f"{out} exists: choose another folder", param_hint="--out")
    made = make(model, codec, system, constraints, scale)
    if as_json:
        print(made.to_json())
    else:
        console.print(output_tables.plan_tables(made))
    if out is not None:
        out.mkdir(parents=True)
        write_whole(out / "plan.json", made.to_json())
        write_whole(out / "plan.html", page(made))
        made_files = [f"plan: {out / 'plan.json'}", f"page: {out / 'plan.html'}"]
        if scale is not None:
            write_whole(out / "experiment.toml", experiment(made, "plan.json"))
            made_files.append(f"experiment: {out / 'experiment.toml'}")
        if not as_json:
            say(console, "\n".join(made_files))


def _profile(script: Path, arguments: list[str], out: Path | None) -> None:
    from shlex import join

    from gradplane.planner.measured import measure

    file = out or Path(f"{script.stem}.toml")
    if file.exists():
        raise typer.BadParameter(f"{file} exists: choose another file", param_hint="--out")
    if not file.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {file.parent}", param_hint="--out")
    found = measure(script, arguments)
    write_whole(file, found.text(script))
    model, values = found.model, sum(tensor.values for tensor in found.model.tensors)
    command = ["gradplane", "plan", str(file), "--system", "pcie-25g", "--codec", "thc"]
    say(
        make_console(),
        f"model: {file}, {len(model.tensors)} tensors of {values:,} values; medians of"
        f" {found.passes} passes: forward {1e3 * model.forward:.3g} ms, backward"
        f" {1e3 * found.backward:.3g} ms\nnext: {join(command)}",
    )
