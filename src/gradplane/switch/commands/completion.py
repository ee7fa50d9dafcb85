"""Completion of an unfinished command's last word, by the placeholder in the command's usage."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.commands.command_registry import COMMANDS, CommandTarget
from gradplane.switch.naming import resolve
from gradplane.switch.runtime.control_errors import SwitchError


def complete(target: CommandTarget, line: str) -> list[str]:
    """Return the choices, sorted; a name may be completed from any of its dotted parts."""
    words = line.split()
    if not words or line[-1].isspace():
        words.append("")
    fitting = (_fitting(name, words[-1]) for name in _choices(target, words))
    return sorted({name for name in fitting if name is not None})


def _fitting(name: str, start: str) -> str | None:
    """Return a name that starts so, without leading parts if needed; None if there is none."""
    while not name.startswith(start):
        _, dot, name = name.partition(".")
        if not dot:
            return None
    return name


def _choices(target: CommandTarget, words: list[str]) -> Iterable[str]:
    if len(words) == 1:
        return COMMANDS
    found = COMMANDS.get(words[0])
    usage = found.usage.split() if found else []
    kind = usage[len(words) - 2] if len(words) - 2 < len(usage) else ""
    state = target.switch.state
    match kind.strip("[]"):
        case "TABLE":
            return state.tables
        case "ACTION":
            return _actions(target, words[1])
        case "PROFILE":
            return state.profiles
        case "REGISTER":
            return state.registers
        case "COUNTER":
            direct = [t.table.counter.name for t in state.tables.values() if t.table.counter]
            return [*state.counters, *direct]
        case "METER":
            direct = [t.table.meter.name for t in state.tables.values() if t.table.meter]
            return [*state.meters, *direct]
        case "VALUE_SET":
            return state.value_sets
        case "COMMAND":
            return COMMANDS
    return ()


def _actions(target: CommandTarget, owner: str) -> Iterable[str]:
    """Return the actions of a table, or of the tables with a profile."""
    state = target.switch.state
    try:
        name = resolve("table", owner, [*state.tables, *state.profiles])
    except SwitchError:
        return ()
    tables = [
        t for t in state.tables.values() if name in (t.table.name, t.profile and t.profile.name)
    ]
    return [choice.action.name for table in tables for choice in table.table.actions]
