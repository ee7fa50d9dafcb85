"""TableEntry: entries of tables and their default entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gradplane._p4runtime import p4r
from gradplane.switch.p4runtime.catalog import TableAction, TableInfo, find
from gradplane.switch.p4runtime.entities.direct_parts import (
    Direct,
    check_direct,
    give_direct,
    show_direct,
    write_direct,
)
from gradplane.switch.p4runtime.entities.field_matches import read_matches, show_matches
from gradplane.switch.p4runtime.entities.profile_entries import check_one_shot
from gradplane.switch.p4runtime.entities.table_actions import read_action, read_target, show_target
from gradplane.switch.p4runtime.pipeline import Pipeline, PlainEntries
from gradplane.switch.p4runtime.roles import RoleConfig
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData, Entry, OneShot
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.match_table import PI_NO_ENTRY, MatchTable


def write_table_entry(p: Pipeline, kind: int, message: p4r.TableEntry) -> None:
    info = find(p.catalog.tables, message.table_id, "table")
    table = p.state.tables[info.name]
    if message.is_const:
        raise _error(info, "is_const cannot be set by a controller; leave it false")
    if message.is_default_action:
        _write_default(p, info, table, kind, message)
        return
    matches = read_matches(info.fields, message.match, f"table {info.name}")
    if kind == p4r.Update.DELETE:
        if table.find(matches, message.priority) is not None:
            p.rules.check_unused(info, matches)
        p.store.entries(table).delete((matches, message.priority))
        return
    _check_idle(info, message)
    write = _insert if kind == p4r.Update.INSERT else _modify
    write(p, info, table, matches, message)


def insert_plain(p: Pipeline, updates: Sequence[p4r.Update], rights: RoleConfig) -> bool:
    """Insert plain entries of one table at once. Return False, and insert none, where an update is
    another one or cannot be made: those are for `write_table_entry`."""
    number = updates[0].entity.table_entry.table_id
    if not rights.may_access(number):
        return False
    entries = []
    for update in updates:
        entry = _plain_entry(p, number, update)
        if entry is None:
            return False
        entries.append(entry)
    table = p.state.tables[p.catalog.tables[number].name]
    return p.store.entries(table).add_checked(entries)


def read_table_entries(p: Pipeline, query: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
    """Yield the entries that match the query; an unset field matches all."""
    if query.table_id == 0:
        for info in p.catalog.tables.values():
            yield from _all_entries(p, info, query)
        return
    info = find(p.catalog.tables, query.table_id, "table")
    if query.HasField("time_since_last_hit"):
        _need_timeout(info, "time_since_last_hit")
    for shown in _all_entries(p, info, query):
        if _selected(shown, query):
            yield shown


def show_key(info: TableInfo, entry: Entry) -> p4r.TableEntry:
    """Return the fields that identify an entry."""
    shown = p4r.TableEntry(table_id=info.id, priority=entry.priority)
    matches: list[p4r.FieldMatch] = []
    show_matches(info.fields, entry.matches, matches)
    shown.match.extend(matches)
    return shown


def show_entry(p: Pipeline, info: TableInfo, entry: Entry) -> p4r.TableEntry:
    """Return an entry without its direct resources."""
    shown = show_key(info, entry)
    shown.action.CopyFrom(show_target(p, info, entry.action))
    shown.metadata = entry.metadata
    shown.idle_timeout_ns = entry.idle_timeout_ns
    shown.is_const = entry.is_const or info.table.const_entries
    shown.controller_metadata = entry.controller_metadata
    return shown


# -- entries -------------------------------------------------------------------------------------


def _insert(
    p: Pipeline,
    info: TableInfo,
    table: MatchTable,
    matches: tuple[Match, ...],
    message: p4r.TableEntry,
) -> None:
    target = read_target(p, info, message.action)
    check_direct(p, info, message, target)
    if isinstance(target, OneShot) and table.find(matches, message.priority) is None:
        check_one_shot(p, info, target)  # of an entry that exists, add says that
    p.rules.check_entry(info, matches, message.priority, target)
    entry = Entry(matches, target, message.priority, message.metadata, message.idle_timeout_ns)
    entry.controller_metadata = message.controller_metadata
    give_direct(p, info, entry, message)
    p.store.entries(table).add(entry)


def _modify(
    p: Pipeline,
    info: TableInfo,
    table: MatchTable,
    matches: tuple[Match, ...],
    message: p4r.TableEntry,
) -> None:
    found = table.find(matches, message.priority)
    if found is None:
        key = table.describe(Entry(matches, ActionData(0), message.priority))
        raise RpcError("NOT_FOUND", f"table {info.name}: it has no entry for {key}", PI_NO_ENTRY)
    direct = Direct(found.counter, found.meter)
    if found.is_const or info.table.const_entries:
        check_direct(p, info, message, found.action)
        _check_direct_only(info, table, found, message)
    else:
        p.store.entries(table).modify(found.key, **_modified(p, info, found, message))
    write_direct(p, info, direct, message)


def _modified(
    p: Pipeline, info: TableInfo, found: Entry, message: p4r.TableEntry
) -> dict[str, Any]:
    """Return all parts of an entry anew; without an action it keeps the old one."""
    target = read_target(p, info, message.action) if message.HasField("action") else found.action
    check_direct(p, info, message, target)
    if isinstance(target, OneShot):
        check_one_shot(p, info, target, found)
    p.rules.check_entry(info, found.matches, found.priority, target)
    return {
        "action": target, "metadata": message.metadata,
        "idle_timeout_ns": message.idle_timeout_ns,
        "controller_metadata": message.controller_metadata,
    }  # fmt: skip


def _check_direct_only(
    info: TableInfo, table: MatchTable, found: Entry, message: p4r.TableEntry
) -> None:
    """Refuse changes of a const entry other than of its direct resources."""
    given = {part.name for part, _ in message.ListFields()}
    for part in ("action", "metadata", "controller_metadata", "idle_timeout_ns"):
        if part in given:
            what = "the action" if part == "action" else part
            raise RpcError(
                "PERMISSION_DENIED",
                f"table {info.name}: its entry for {table.describe(found)} is const in the source;"
                f" only its counter and meter may be changed, so leave {what} out",
            )


# -- plain entries, which come by the thousand ---------------------------------------------------

_ACTION = p4r.TableEntry.ACTION_FIELD_NUMBER


def _plain_entry(p: Pipeline, number: int, update: p4r.Update) -> Entry | None:
    """Return the entry of an update that inserts a plain one into the table with this id."""
    message = update.entity.table_entry
    given = message.ListFields()  # in the order of their numbers
    if update.type != p4r.Update.INSERT or len(given) != 3 or given[2][0].number != _ACTION:
        return None  # there is more than the table's id, matches and an action
    (_, table), (_, matches), (_, target) = given
    action = target.action  # an empty one where it is a member or a group
    key = table, action.action_id
    plain = p.plain[key] if key in p.plain else _plain(p, *key)
    if plain is None or table != number:
        return None
    values = _numbers(plain.keys, [(m.field_id, m.exact.value) for m in matches])
    args = _numbers(plain.params, [(a.param_id, a.value) for a in action.params])
    if values is None or args is None:
        return None
    return Entry(tuple([(value,) for value in values]), ActionData(plain.action, tuple(args)))


def _numbers(
    parts: Sequence[tuple[int, int]], given: Sequence[tuple[int, bytes]]
) -> list[int] | None:
    """Return the values of keys or parameters, given in their order; None if one is wrong."""
    if len(parts) != len(given):
        return None
    found = []
    for (number, width), (given_number, data) in zip(parts, given, strict=True):
        value = int.from_bytes(data, "big")
        if number != given_number or not data or value >> width:
            return None
        found.append(value)
    return found


def _plain(p: Pipeline, table: int, action: int) -> PlainEntries | None:
    """Return how plain entries with an action are read; None if those are not plain."""
    info = p.catalog.tables.get(table)
    choice = None if info is None else info.actions.by_id.get(action)
    if info is None or choice is None:
        return None  # not kept: clients may ask for any number of them
    p.plain[table, action] = found = _made_plain(p, info, choice)
    return found


def _made_plain(p: Pipeline, info: TableInfo, choice: TableAction) -> PlainEntries | None:
    if p.rules.apply_to(info.id, choice.info.id):
        return None
    keys, params = [f.value for f in info.fields.values()], choice.info.params
    by_name = any(value.names is not None for value in (*keys, *params))
    if by_name or any(f.kind != "exact" for f in info.fields.values()):
        return None
    matches = tuple(((1 << key.width) - 1,) for key in keys)
    args = tuple((1 << param.width) - 1 for param in params)
    try:  # a table that takes the greatest values takes all that are as wide
        p.state.tables[info.name].check(Entry(matches, ActionData(choice.index, args)))
    except TableError:
        return None
    places = (tuple((v.id, min(v.width, v.wire)) for v in part) for part in (keys, params))
    return PlainEntries(choice.index, *places)


# -- the default entry ---------------------------------------------------------------------------


def _write_default(
    p: Pipeline, info: TableInfo, table: MatchTable, kind: int, message: p4r.TableEntry
) -> None:
    if kind != p4r.Update.MODIFY:
        raise _error(info, "the default entry always exists: it can only be changed (MODIFY)")
    if message.match or message.priority:
        raise _error(info, "the default entry has no match and no priority")
    if message.idle_timeout_ns or message.HasField("time_since_last_hit"):
        raise _error(info, "the default entry has no idle timeout")
    action = _default_action(info, message)
    check_direct(p, info, message, table.source_default if action is None else action)
    if action is not None:
        p.rules.check_action(info.actions, action)
    p.store.entries(table).set_default(action)
    direct = Direct(table.default_counter, table.default_meter)
    write_direct(p, info, direct, message, insert=action is None)
    metadata = (message.controller_metadata, message.metadata) if action is not None else (0, b"")
    p.store.journal.set(table, "default_metadata", metadata)


def _default_action(info: TableInfo, message: p4r.TableEntry) -> ActionData | None:
    """Decode the default action; None restores the source's."""
    if not message.HasField("action"):
        return None
    if message.action.WhichOneof("type") != "action":
        raise _error(info, "the default entry takes an action")
    return read_action(info.actions, message.action.action, default=True)


def _show_default(p: Pipeline, info: TableInfo, query: p4r.TableEntry) -> p4r.TableEntry:
    table = p.state.tables[info.name]
    shown = p4r.TableEntry(table_id=info.id, is_default_action=True)
    shown.action.CopyFrom(show_target(p, info, table.default))
    shown.controller_metadata, shown.metadata = table.default_metadata
    shown.is_const = info.table.const_default
    show_direct(info, Direct(table.default_counter, table.default_meter), query, shown)
    return shown


# -- reading -------------------------------------------------------------------------------------


def _all_entries(p: Pipeline, info: TableInfo, query: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
    if query.is_default_action:
        yield _show_default(p, info, query)
        return
    for entry in find_entries(p, info, query):
        shown = show_entry(p, info, entry)
        show_direct(info, Direct(entry.counter, entry.meter), query, shown)
        if query.HasField("time_since_last_hit") and info.table.support_timeout:
            elapsed = p.state.clock() - entry.last_hit_ns
            shown.time_since_last_hit.elapsed_ns = elapsed
        yield shown


def find_entries(p: Pipeline, info: TableInfo, query: p4r.TableEntry) -> list[Entry]:
    """Return the entries with the query's match and priority, all entries if it has no match."""
    table = p.state.tables[info.name]
    if not query.match or query.table_id == 0:
        return list(table.entries())
    matches = read_matches(info.fields, query.match, f"table {info.name}")
    if info.has_priority and not query.priority:
        return [e for e in table.entries() if e.matches == matches]
    found = table.find(matches, query.priority)
    return [] if found is None else [found]


def _selected(shown: p4r.TableEntry, query: p4r.TableEntry) -> bool:
    if query.priority and shown.priority != query.priority:
        return False
    if query.action.action.action_id not in (0, shown.action.action.action_id):
        return False
    if query.controller_metadata not in (0, shown.controller_metadata):
        return False
    return not query.metadata or query.metadata == shown.metadata


# -- shared by all ------------------------------------------------------------------------------


def _check_idle(info: TableInfo, message: p4r.TableEntry) -> None:
    if message.HasField("time_since_last_hit"):
        raise _error(info, "time_since_last_hit cannot be written")
    if message.idle_timeout_ns < 0:
        raise _error(info, f"idle timeout {message.idle_timeout_ns} is below 0")
    if message.idle_timeout_ns:
        _need_timeout(info, "idle_timeout_ns")


def _need_timeout(info: TableInfo, what: str) -> None:
    if not info.table.support_timeout:
        raise _error(info, f"{what} is set, but the source does not set support_timeout = true")


def _error(info: TableInfo, what: str) -> RpcError:
    return invalid(f"table {info.name}: {what}")
