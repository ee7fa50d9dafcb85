"""Files of commands, line by line, and runtime JSON files, entry by entry.

In the former `#` or `//` starts a comment, at the start of a line or after a blank. As with
simple_switch_CLI, a command that fails changes nothing and the next ones run all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from gradplane.switch.commands import (  # noqa: F401 - each registers its commands
    extern_commands,
    profile_commands,
    replication_commands,
    switch_commands,
    table_commands,
)
from gradplane.switch.commands.command_registry import CommandError, CommandTarget, run_words
from gradplane.switch.commands.runtime_json import is_runtime_json, steps
from gradplane.switch.control_handles import ControlledSwitch
from gradplane.switch.runtime.control_errors import SwitchError

_COMMENT = re.compile(r"(?:^|\s)(?:#|//).*")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one command, or one entry of a runtime JSON file.

    `where`: FILE:LINE, or FILE and the entry. `error`: why it failed, else "".
    """

    where: str
    output: str = ""
    error: str = ""


def answers(target: CommandTarget, text: str, file: str) -> Iterator[Answer]:
    """Run a file's commands, each when its answer is taken from the iterator."""
    if is_runtime_json(text):
        yield from (_answer(where, do) for where, do in steps(target.switch, text, file))
        return
    for number, line in enumerate(text.splitlines(), 1):
        words = _COMMENT.sub("", line).split()
        if words:
            yield _answer(f"{file}:{number}", partial(run_words, target, words))


def run(switch: ControlledSwitch, text: str, file: str) -> str:
    """Run all commands of a file and return their output.

    Raises CommandError with all that failed.
    """
    given = list(answers(CommandTarget(switch), text, file))
    failed = failures(given)
    if failed:
        raise CommandError("\n".join(failed))
    return "\n".join(answer.output for answer in given if answer.output)


def failures(given: list[Answer]) -> list[str]:
    """Return a line for each command that failed."""
    return [f"{answer.where}: {answer.error}" for answer in given if answer.error]


def _answer(where: str, do: Callable[[], str]) -> Answer:
    try:
        return Answer(where, do())
    except SwitchError as error:
        return Answer(where, error=str(error))
