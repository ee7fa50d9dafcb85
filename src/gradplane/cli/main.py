"""The command line. Exit status: 0 ok, 1 failed or rejected, 2 wrong usage."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gradplane.switch.garbage_pause import collections_paused

if TYPE_CHECKING:
    from gradplane.switch.ir import nodes as ir


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command `gradplane` with the process's arguments, or with those given."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # errors come as ours, with the way out
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # to look for some takes 50 ms
    words = sys.argv[1:] if arguments is None else arguments
    try:
        if words[:1] == ["switch"]:  # alone: the other commands take as long to import as it does
            _switch(words[1:])
        with collections_paused():
            from gradplane.cli.app import app

        app(arguments, prog_name="gradplane")
    except Exception as error:
        from gradplane._plugins import error_of_own
        from gradplane.cli.options import fail, notes

        if not (_ours(error) or isinstance(error, OSError)):
            if (text := error_of_own(error)) is None:
                raise
            fail(text)
        from gradplane.switch.runtime.control_errors import os_error_text

        text = os_error_text(error) if isinstance(error, OSError) else str(error)
        fail("\n".join([text, *notes(error)]))


def _switch(arguments: Sequence[str]) -> None:
    try:
        sys.exit(run_switch(arguments))
    except KeyboardInterrupt:  # before the switch is ready
        sys.exit(130)


def run_switch(arguments: Sequence[str]) -> int:
    """Run a switch with a command line's options; return the exit status."""
    with collections_paused():
        from gradplane.switch.daemon import live_switch
    return live_switch.main(arguments, _stages_of_tables)


def _stages_of_tables(program: ir.Program) -> Mapping[str, int]:
    """Place a program's tables in the stages of its chip."""
    from gradplane.fit.analysis import chip_for, fit

    return fit(program, chip_for(program)).stages_of_tables()


def _ours(error: BaseException) -> bool:
    """Return whether an error is meant for the user; any other is a bug of gradplane."""
    return any(kind.__module__.startswith("gradplane.") for kind in type(error).__mro__)
