"""Files of commands, line by line, and runtime JSON files, entry by entry.

In the former `#` or `//` starts a comment, at the start of a line or after a blank. As with
simple_switch_CLI, a command that fails changes nothing and the next ones run all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from gradplane._suggestions import hint
from gradplane.switch.commands import (  # noqa: F401 - each registers its commands
    extern_commands,
    profile_commands,
    replication_commands,
    switch_commands,
    table_commands,
)
from gradplane.switch.commands.command_registry import (
    CommandError,
    CommandTarget,
    changes,
    run_words,
)
from gradplane.switch.control_handles import ControlledSwitch
from gradplane.switch.runtime.control_errors import SwitchError

if TYPE_CHECKING:
    from gradplane.switch.runtime_json import CloneSession, MulticastGroup, TableEntry

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
    if is_runtime_json(text) or file.endswith(".json"):
        yield from (_answer(where, do) for where, do in steps(target.switch, text, file))
        return
    for number, line in enumerate(text.splitlines(), 1):
        words = _COMMENT.sub("", line).split()
        if words:
            yield _answer(f"{file}:{number}", partial(run_words, target, words))


def changing(text: str) -> str | None:
    """Return the first command of a file that may change the switch; None if none does."""
    if is_runtime_json(text):
        return "runtime JSON"
    lines = (_COMMENT.sub("", line).split() for line in text.splitlines())
    return next((words[0] for words in lines if words and changes(words[0])), None)


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


# -- runtime JSON ---------------------------------------------------------------------------------


def is_runtime_json(text: str) -> bool:
    """Return True for a JSON file, also one of another form: no command starts with a bracket."""
    return text.lstrip().startswith(("{", "["))


def steps(
    switch: ControlledSwitch, text: str, file: str
) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield a file's entries in order: each one's name in messages, and its writer."""
    from gradplane.switch import runtime_json  # pydantic, which commands do without

    try:
        whole = runtime_json.values_of(text)
    except SwitchError as error:
        yield file, partial(_refuse, str(error))
        return
    for key, value in whole.items():
        where = f"{file}: {key}"
        if key in runtime_json.PROGRAM:
            yield where, partial(_program, key, value)
        elif key not in _WRITERS:
            known = hint(key, [*runtime_json.PROGRAM, *_WRITERS])
            yield where, partial(_refuse, f"there is no key {key!r}; {known}")
        elif not isinstance(value, list):
            yield where, partial(_refuse, f"expected a list, not {value!r}")
        else:
            for i, entry in enumerate(value):
                yield f"{where}[{i}]", partial(_write, switch, key, entry)


def _program(key: str, value: object) -> str:
    if key == "target" and value != "bmv2":
        _refuse(f"{value!r} is not a target; expected bmv2")
    if key == "bmv2_json":
        return f"note: {value} is not used: the switch runs its P4 source"
    return ""  # the switch makes P4Info from its program


def _write(switch: ControlledSwitch, key: str, given: object) -> str:
    from gradplane.switch import runtime_json

    entry = runtime_json.entry_of(key, given)
    with switch.lock:
        _WRITERS[key](switch, entry)
    return ""


def _table_entry(switch: ControlledSwitch, entry: TableEntry) -> None:
    table = switch.table(entry.table)
    if entry.default_action:
        if entry.match or entry.priority:
            raise CommandError("a default action has no match and no priority")
        table.set_default(entry.action_name, entry.action_params)
        return
    if table.state.with_priority and not entry.priority:
        raise CommandError(
            f"table {table.state.table.name} has ternary, range or optional keys: an entry"
            ' needs a priority of 1 or more, of which the larger wins: "priority": 10'
        )
    table.add(entry.match, entry.action_name, entry.action_params, entry.priority)


def _multicast_group(switch: ControlledSwitch, entry: MulticastGroup) -> None:
    group = entry.multicast_group_id
    if switch.store.replication.groups.has(group):
        raise CommandError(f"there is already a multicast group {group}")
    switch.multicast(group, entry.pairs)


def _clone_session(switch: ControlledSwitch, entry: CloneSession) -> None:
    session = entry.clone_session_id
    if switch.store.replication.sessions.has(session):
        raise CommandError(f"there is already a clone session {session}")
    truncate, service = entry.packet_length_bytes, entry.class_of_service
    switch.clone_session(session, entry.pairs, truncate, service)


_WRITERS: dict[str, Callable[[ControlledSwitch, Any], None]] = {
    "table_entries": _table_entry,
    "multicast_group_entries": _multicast_group,
    "clone_session_entries": _clone_session,
}


def _refuse(text: str) -> NoReturn:
    raise CommandError(text)
