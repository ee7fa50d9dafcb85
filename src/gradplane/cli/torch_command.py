"""The commands torchrun and torch-compare: PyTorch scripts on an experiment's network."""

from pathlib import Path
from typing import Annotated

import typer

from gradplane.cli.options import (
    Out,
    Seed,
    Settings,
    argument,
    make_console,
    option,
    say,
    stoppable,
)

commands = typer.Typer()


_FOR_THE_SCRIPT = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "allow_interspersed_args": False,
}


@commands.command(context_settings=_FOR_THE_SCRIPT)
def torchrun(
    context: typer.Context,
    experiment: Annotated[Path, argument("EXPERIMENT.toml", "A file, or a shipped one's name")],
    script: Annotated[Path | None, typer.Argument(metavar="SCRIPT.py", show_default=False)] = None,
    out: Out = None,
    seed: Seed = None,
    settings: Settings = [],  # noqa: B006  (typer copies it)
    cli: Annotated[
        bool, typer.Option("--cli", help="No script: open Mininet's prompt on the network")
    ] = False,
    max_restarts: Annotated[
        int, typer.Option(min=0, help="When a rank fails, start all of them again, so many times")
    ] = 0,
    tensorboard: Annotated[
        Path | None, option("DIR", "Loss, bytes, misses and each bucket's time as scalars")
    ] = None,
) -> None:
    """Run a torchrun script on the network, a rank a host; it gets the arguments after it."""
    if cli == (script is not None):
        text = "--cli takes no script" if cli else "name a script, or use --cli for the prompt"
        raise typer.BadParameter(text, param_hint="SCRIPT.py")
    from gradplane.cli import output_tables
    from gradplane.pages import exports
    from gradplane.pages.report import page
    from gradplane.runs import torchrun as running

    with stoppable():
        done = running.torchrun(
            *(experiment, script, context.args),
            out=out,
            settings=settings,
            seed=seed,
            max_restarts=max_restarts,
        )
        page.write_wanted(done.folder)
    if tensorboard is not None:
        exports.write_script_scalars(done.folder, tensorboard)
    console = make_console()
    console.print(output_tables.torchrun(done.values))
    say(console, f"records: {done.folder}")


@commands.command(context_settings=_FOR_THE_SCRIPT)
def torch_compare(
    context: typer.Context,
    experiment: Annotated[Path, argument("EXPERIMENT.toml", "A file, or a shipped one's name")],
    script: Annotated[Path, typer.Argument(metavar="SCRIPT.py", show_default=False)],
    target: Annotated[float, typer.Option(help="Test accuracy whose time is measured")] = 0.9,
    only: Annotated[
        str, option("WAY,WAY", "Not all ways: these, such as thc,mxfp4, and bf16")
    ] = "",
    out: Out = None,
    seed: Seed = None,
    settings: Settings = [],  # noqa: B006  (typer copies it)
) -> None:
    """Run a torchrun script with PyTorch's own hooks and with ours, and compare them."""
    from gradplane.cli import output_tables
    from gradplane.pages.report import page
    from gradplane.runs import torch_comparison

    console = make_console()
    with stoppable():
        folder, rows = torch_comparison.compare(
            *(experiment, script, context.args),
            out=out,
            settings=settings,
            seed=seed,
            target=target,
            ways=[way for way in only.split(",") if way],
            on_way=lambda name: say(console, f"{name}:"),
            on_end=page.write_wanted,
        )
    console.print(output_tables.torch_comparison(rows, target))
    say(console, f"records: {folder}")
