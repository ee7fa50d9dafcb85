"""All commands, in the groups of --help.

Each command imports what it needs when it runs, so that --help is fast.
"""

import inspect
from typing import Annotated

import typer
from typer import _completion_shared as completion_shared

from gradplane import __version__
from gradplane.cli import (
    codec_commands,
    experiment_commands,
    p4_commands,
    switch_commands,
    torch_command,
)

app = typer.Typer(
    help="P4 switch and network emulator for in-network aggregation of compressed gradients.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_PANELS = {
    "Experiments": experiment_commands.commands,
    "PyTorch": torch_command.commands,
    "Compression": codec_commands.commands,
    "P4 programs": p4_commands.commands,
    "Switches and networks": switch_commands.commands,
}
"""The groups of commands in --help, in their order."""


def _fold(commands: typer.Typer) -> None:
    """Make each paragraph of the commands' help one line, which the terminal then folds: Typer
    keeps the docstring's own ends of lines."""
    for command in commands.registered_commands:
        text = inspect.getdoc(command.callback) or ""
        command.help = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _fold(group.typer_instance)


for _title, _commands in _PANELS.items():
    _fold(_commands)
    for _command in _commands.registered_commands:
        _command.rich_help_panel = _title
    for _group in _commands.registered_groups:
        _group.rich_help_panel = _title
    app.add_typer(_commands)


_ZSH_COMPLETION = (
    completion_shared.COMPLETION_SCRIPT_ZSH.strip()
    + "\n\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
    '  %(complete_func)s "$@"\nfi\n'
)
"""Typer's script, and a call: the first TAB only loads the file, and would offer nothing."""
completion_shared._completion_scripts["zsh"] = _ZSH_COMPLETION


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
