"""The command line. Exit status: 0 ok, 1 failed or rejected, 2 wrong usage.

Each command imports what it needs when it runs, so that --help is fast.
"""

import os
from collections.abc import Sequence
from typing import Annotated

import typer
from typer import _completion_shared as completion_shared

from gradplane import __version__
from gradplane._plugins import error_of_own
from gradplane.cli import (
    codec_commands,
    experiment_commands,
    p4_commands,
    switch_commands,
    torch_command,
)
from gradplane.cli.options import fail, notes

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
for _title, _commands in _PANELS.items():
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command `gradplane` with the process's arguments, or with those given."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # errors come as ours, with the way out
    completion_shared._completion_scripts["zsh"] = _ZSH_COMPLETION
    try:
        app(arguments, prog_name="gradplane")
    except Exception as error:
        if not (_ours(error) or isinstance(error, OSError)):
            if (text := error_of_own(error)) is None:
                raise
            fail(text)
        from gradplane.switch.runtime.control_errors import os_error_text

        text = os_error_text(error) if isinstance(error, OSError) else str(error)
        fail("\n".join([text, *notes(error)]))


def _ours(error: BaseException) -> bool:
    """Return whether an error is meant for the user; any other is a bug of gradplane."""
    return any(kind.__module__.startswith("gradplane.") for kind in type(error).__mro__)


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
