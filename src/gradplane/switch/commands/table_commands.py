"""Commands on tables and their entries."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.commands import command_values, dumps
from gradplane.switch.commands.command_registry import CommandError, CommandTarget, command
from gradplane.switch.control.names import entry_with_handle
from gradplane.switch.control_handles import action_data
from gradplane.switch.naming import resolve
from gradplane.switch.runtime.action_lists import ActionList
from gradplane.switch.runtime.entries import Entry
from gradplane.switch.runtime.match_table import MatchTable

ARROW = "=>"


@command("TABLE ACTION MATCH... => [PARAMETER...] [PRIORITY]")
def table_add(target: CommandTarget, table: str, action: str, *words: str) -> str:
    """Add an entry; of two that match, the one with the smaller priority wins."""
    where = target.switch.table(table)
    left, right, priority = entry_words(where.state, words)
    name = action_named(where.state.actions, action)
    entry = where.add(
        command_values.matches(where.state, left),
        name,
        command_values.parameters(where.state.actions, name, right, where.state.with_priority),
        priority,
    )
    return added(entry)


@command("TABLE ACTION HANDLE [PARAMETER...]")
def table_modify(target: CommandTarget, table: str, action: str, handle: str, *words: str) -> None:
    """Give an entry another action."""
    where = target.switch.table(table)
    found = entry_of(where.state, handle)
    name = action_named(where.state.actions, action)
    given = words[1:] if words[:1] == (ARROW,) else words
    parameters = command_values.parameters(where.state.actions, name, given)
    data = action_data(where.state.actions, name, parameters)
    target.switch.store.entries(where.state).modify(found.key, action=data)


@command("TABLE HANDLE")
def table_delete(target: CommandTarget, table: str, handle: str) -> None:
    """Remove an entry."""
    where = target.switch.table(table)
    target.switch.store.entries(where.state).delete(entry_of(where.state, handle).key)


@command("TABLE")
def table_clear(target: CommandTarget, table: str) -> None:
    """Remove all entries except those that are constant in the source."""
    target.switch.table(table).clear()


@command("TABLE ACTION [PARAMETER...]")
def table_set_default(target: CommandTarget, table: str, action: str, *words: str) -> None:
    """Set the action for lookup misses."""
    where = target.switch.table(table)
    name = action_named(where.state.actions, action)
    given = words[1:] if words[:1] == (ARROW,) else words
    where.set_default(name, command_values.parameters(where.state.actions, name, given))


@command("TABLE")
def table_reset_default(target: CommandTarget, table: str) -> None:
    """Restore the default action of the source."""
    target.switch.table(table).set_default()


@command("TABLE HANDLE MILLISECONDS")
def table_set_timeout(target: CommandTarget, table: str, handle: str, timeout: str) -> None:
    """Set the idle timeout of an entry; 0: it is never reported idle."""
    where = target.switch.table(table)
    if not where.state.table.support_timeout:
        name = where.state.table.name
        raise CommandError(f"table {name}: the source does not set support_timeout = true")
    found = entry_of(where.state, handle)
    milliseconds = command_values.natural(timeout, "timeout")
    nanoseconds = milliseconds * 1_000_000
    target.switch.store.entries(where.state).modify(found.key, idle_timeout_ns=nanoseconds)


@command("TABLE")
def table_num_entries(target: CommandTarget, table: str) -> str:
    """Print the number of entries of a table."""
    return str(len(target.switch.table(table)))


@command("TABLE")
def table_dump(target: CommandTarget, table: str) -> str:
    """Print a table's entries and its default action."""
    found = target.switch.table(table).state
    now = target.switch.state.clock()
    lines = [dumps.LINE, "TABLE ENTRIES"]
    for entry in found.entries():
        lines += [dumps.STARS, *dumps.entry_lines(found, entry, now)]
    if found.profile is not None:
        lines += dumps.profile_lines(found.profile)
    default = dumps.target_line(found, found.default)
    return "\n".join([*lines, dumps.LINE, "Dumping default entry", default, dumps.LINE])


@command("TABLE HANDLE")
def table_dump_entry(target: CommandTarget, table: str, handle: str) -> str:
    """Print one entry."""
    found = target.switch.table(table).state
    return _dumped(target, found, entry_of(found, handle))


@command("TABLE MATCH... [PRIORITY]")
def table_dump_entry_from_key(target: CommandTarget, table: str, *words: str) -> str:
    """Print the entry with these match values."""
    found = target.switch.table(table).state
    left, priority = with_priority(found, words)
    matches = command_values.canonical(found, left)
    entry = found.find(matches, priority or 0)
    if entry is None:
        raise CommandError(f"table {found.table.name}: it has no entry for {' '.join(words)}")
    return _dumped(target, found, entry)


@command("TABLE")
def table_show_actions(target: CommandTarget, table: str) -> str:
    """Print a table's actions and their parameters' widths."""
    return "\n".join(_actions(target.switch.table(table).state))


@command("TABLE")
def table_info(target: CommandTarget, table: str) -> str:
    """Print a table's key and actions."""
    found = target.switch.table(table).state
    return "\n".join([dumps.table_line(found), "*" * 80, *_actions(found)])


@command()
def show_tables(target: CommandTarget) -> str:
    """Print the program's tables and their keys."""
    tables = target.switch.state.tables
    return "\n".join(dumps.table_line(tables[name]) for name in sorted(tables))


@command()
def show_actions(target: CommandTarget) -> str:
    """Print the program's actions and their parameters' widths."""
    actions = {
        choice.action.name: choice.action
        for table in target.switch.program.tables
        for choice in table.actions
    }
    return "\n".join(dumps.action_usage(actions[name]) for name in sorted(actions))


# -- shared by all ------------------------------------------------------------------------------


def entry_words(
    table: MatchTable, words: Sequence[str]
) -> tuple[Sequence[str], Sequence[str], int | None]:
    """Split words at the arrow: those before it, those after it, the priority.

    Without one all are before.
    """
    rest, priority = with_priority(table, words)
    if ARROW not in rest:
        return rest, (), priority
    arrow = rest.index(ARROW)
    return rest[:arrow], rest[arrow + 1 :], priority


def with_priority(table: MatchTable, words: Sequence[str]) -> tuple[Sequence[str], int | None]:
    """Split off the priority, the last word where the table's entries have one."""
    if not table.with_priority:
        return words, None
    if not words or words[-1] == ARROW or not words[-1].isdecimal():
        kinds = ", ".join(f"{f.name} ({f.kind})" for f in table.fields)
        raise CommandError(
            f"table {table.table.name}: the last word must be the entry's priority, a number, since"
            f" not all of its fields are exact or lpm: {kinds}"
        )
    return words[:-1], command_values.priority(table, words[-1])


def entry_of(table: MatchTable, handle: str) -> Entry:
    """Return the entry of a handle; table_dump prints handles in hexadecimal."""
    number = command_values.natural(handle, f"table {table.table.name}: handle")
    return entry_with_handle(table, number)


def action_named(actions: ActionList, action: str) -> str:
    """Return the full name of one of the actions."""
    return resolve("action", action, actions.names, actions.owner)


def added(entry: Entry) -> str:
    """Return the line that scripts read an entry's handle from."""
    return f"Entry has been added with handle {entry.handle}"


def _dumped(target: CommandTarget, table: MatchTable, entry: Entry) -> str:
    return "\n".join(dumps.entry_lines(table, entry, target.switch.state.clock()))


def _actions(table: MatchTable) -> list[str]:
    actions = {choice.action.name: choice.action for choice in table.table.actions}
    return [dumps.action_usage(actions[name]) for name in sorted(actions)]
