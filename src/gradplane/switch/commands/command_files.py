"""Files of commands, line by line, and runtime JSON files, entry by entry.

In the former `#` or `//` starts a comment, at the start of a line or after a blank. As with
simple_switch_CLI, a command that fails changes nothing and the next ones run all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

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

# The files of the P4 tutorials (p4lang/tutorials, utils/p4runtime_lib):
#
#     {"target": "bmv2", "p4info": "...", "bmv2_json": "...",
#      "table_entries": [{"table": "MyIngress.routes", "match": {"hdr.ipv4.dst": ["10.0.1.1", 32]},
#                         "action_name": "MyIngress.forward", "action_params": {"port": 1}}],
#      "multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 1}]}],
#      "clone_session_entries": [{"clone_session_id": 100, "replicas": [{"egress_port": 255}]}]}
#
# Priorities are P4Runtime's: of two entries the one with the larger priority wins.

Entry = Mapping[str, Any]
Write = Callable[[ControlledSwitch, Entry], None]


def is_runtime_json(text: str) -> bool:
    """Return True for a JSON file, also one of another form: no command starts with a bracket."""
    return text.lstrip().startswith(("{", "["))


def steps(
    switch: ControlledSwitch, text: str, file: str
) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield a file's entries in order: each one's name in messages, and its writer."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield file, partial(_refuse, f"not JSON: {error}")
        return
    if not isinstance(whole, dict):
        keys = ", ".join(_ENTRIES)
        yield file, partial(_refuse, f"not runtime JSON: expected an object with keys {keys}")
        return
    for key, value in whole.items():
        if key in _PROGRAM:
            yield f"{file}: {key}", partial(_PROGRAM[key], value)
        elif key not in _ENTRIES:
            yield f"{file}: {key}", partial(_refuse, _unknown("key", key, [*_PROGRAM, *_ENTRIES]))
        elif not isinstance(value, list):
            yield f"{file}: {key}", partial(_refuse, f"expected a list, not {value!r}")
        else:
            for i, entry in enumerate(value):
                yield f"{file}: {key}[{i}]", partial(_write, switch, key, entry)


# -- the program ---------------------------------------------------------------------------------


def _target(value: object) -> str:
    return "" if value == "bmv2" else _refuse(f"{value!r} is not a target; expected bmv2")


def _p4info(value: object) -> str:
    return ""  # the switch makes P4Info from its program


def _bmv2_json(value: object) -> str:
    return f"note: {value} is not used: the switch runs its P4 source"


_PROGRAM: dict[str, Callable[[object], str]] = {
    "target": _target,
    "p4info": _p4info,
    "bmv2_json": _bmv2_json,
}

# -- entries -------------------------------------------------------------------------------------


def _table_entry(switch: ControlledSwitch, entry: Entry) -> None:
    table = switch.table(_need(entry, "table", str))
    action = _need(entry, "action_name", str)
    params = _values(_take(entry, "action_params", dict, {}))
    match = _values(_take(entry, "match", dict, {}))
    priority = _take(entry, "priority", int, None)
    if not _take(entry, "default_action", bool, False):
        if table.state.with_priority and not priority:
            raise CommandError(
                f"table {table.state.table.name} has ternary, range or optional keys: an entry"
                ' needs a priority of 1 or more, of which the larger wins: "priority": 10'
            )
        table.add(match, action, params, priority)
    elif match or priority:
        raise CommandError("a default action has no match and no priority")
    else:
        table.set_default(action, params)


def _multicast_group(switch: ControlledSwitch, entry: Entry) -> None:
    group = _need(entry, "multicast_group_id", int)
    if switch.store.replication.groups.has(group):
        raise CommandError(f"there is already a multicast group {group}")
    switch.multicast(group, _replicas(entry))


def _clone_session(switch: ControlledSwitch, entry: Entry) -> None:
    session = _need(entry, "clone_session_id", int)
    if switch.store.replication.sessions.has(session):
        raise CommandError(f"there is already a clone session {session}")
    truncate = _take(entry, "packet_length_bytes", int, 0)
    service = _take(entry, "class_of_service", int, 0)
    switch.clone_session(session, _replicas(entry), truncate, service)


# key -> the keys of its entries, and the function that writes one
_ENTRIES: dict[str, tuple[tuple[str, ...], Write]] = {
    "table_entries": (
        ("table", "match", "action_name", "action_params", "default_action", "priority"),
        _table_entry,
    ),
    "multicast_group_entries": (("multicast_group_id", "replicas"), _multicast_group),
    "clone_session_entries": (
        ("clone_session_id", "replicas", "packet_length_bytes", "class_of_service"),
        _clone_session,
    ),
}


def _write(switch: ControlledSwitch, key: str, entry: object) -> str:
    names, write = _ENTRIES[key]
    if not isinstance(entry, dict):
        raise CommandError(f"expected an object with keys {', '.join(names)}, not {entry!r}")
    for name in entry:
        if name not in names and not name.startswith("_"):  # _comment
            raise CommandError(_unknown("key", name, names))
    with switch.lock:
        write(switch, entry)
    return ""


# -- parts ---------------------------------------------------------------------------------------


def _replicas(entry: Entry) -> list[tuple[int, int]]:
    replicas = _need(entry, "replicas", list)
    if not replicas or not all(isinstance(replica, dict) for replica in replicas):
        raise CommandError('replicas: expected [{"egress_port": 1, "instance": 1}, ...]')
    return [(_need(r, "egress_port", int), _take(r, "instance", int, 0)) for r in replicas]


def _value(value: object) -> object:
    """Convert a value for Table.add: a pair, or a single value, may be a list in JSON."""
    if not isinstance(value, list):
        return value
    return value[0] if len(value) == 1 else tuple(value)


def _values(given: Mapping[str, object]) -> dict[str, object]:
    return {name: _value(value) for name, value in given.items()}


def _need(entry: Entry, key: str, kind: type) -> Any:
    if entry.get(key) is None:
        raise CommandError(f"there is no {key}")
    return _take(entry, key, kind, None)


def _take(entry: Entry, key: str, kind: type, default: object) -> Any:
    value = entry.get(key)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise CommandError(f"{key}: expected {_TYPES[kind]}, not {value!r}")
    return value


_TYPES = {
    str: "a string",
    int: "a number",
    dict: "an object",
    list: "a list",
    bool: "true or false",
}


def _unknown(what: str, name: str, known: list[str] | tuple[str, ...]) -> str:
    return f"there is no {what} {name!r}; {hint(name, known)}"


def _refuse(text: str) -> str:
    raise CommandError(text)
