"""The command torchrun: a PyTorch script on an experiment's network."""

from pathlib import Path
from typing import Annotated

import typer

from gradplane.cli.options import Out, Seed, Settings, make_console, say, stoppable

commands = typer.Typer()


@commands.command(
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "allow_interspersed_args": False,
    }
)
def torchrun(
    context: typer.Context,
    experiment: Annotated[
        Path,
        typer.Argument(
            metavar="EXPERIMENT.toml", show_default=False, help="A file, or a shipped one's name"
        ),
    ],
    script: Annotated[Path, typer.Argument(metavar="SCRIPT.py", show_default=False)],
    out: Out = None,
    seed: Seed = None,
    settings: Settings = [],  # noqa: B006  (typer copies it)
) -> None:
    """Run a torchrun script on the network, a rank a host; it gets the arguments after it."""
    from gradplane.cli import output_tables
    from gradplane.runner import torchrun as running

    with stoppable():
        done = running.torchrun(
            experiment, script, context.args, out=out, settings=settings, seed=seed
        )
    console = make_console()
    console.print(output_tables.torchrun(done.values))
    say(console, f"records: {done.folder}")
