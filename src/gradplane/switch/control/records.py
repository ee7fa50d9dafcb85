"""All objects of a store as plain records: saved to a file, and carried over to another program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from heapq import merge
from typing import Any, TypeVar

from gradplane.switch.control.cells import Cells
from gradplane.switch.control.kind import Record, Refusal
from gradplane.switch.control.store import Store
from gradplane.switch.naming import resolve
from gradplane.switch.runtime.action_lists import ActionList
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.crcs import CrcParameters
from gradplane.switch.runtime.entries import (
    ActionData,
    Count,
    Entry,
    EntryAction,
    GroupRef,
    MemberRef,
    OneShot,
)
from gradplane.switch.runtime.filters import Filter, FilterConfig
from gradplane.switch.runtime.fixed_crcs import Crc
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.meters import MeterCell, MeterConfig
from gradplane.switch.runtime.profiles import ActionProfile, Weighted

T = TypeVar("T")
Pause = Callable[[], None]

_PART = 256
"""Objects that are shown between pauses."""

Plain = dict[str, Any]
"""Numbers, texts, lists and mappings, by name."""

_WORDS = {"tables": "table", "profiles": "action profile", "counters": "counter",
          "meters": "meter", "filters": "filter", "value_sets": "value set"}  # fmt: skip
"""Kinds of objects that pipes can have of their own, in messages."""


def _no_pause() -> None:
    pass


def dump(store: Store, pause: Pause = _no_pause) -> Plain:
    """Return everything that a control plane has set, as plain records.

    pause: called after some objects each, where others may have their turn; each object is
    consistent in itself then.

    By kind, a list of the objects, each with its name and the pipes that share it; cells by index,
    those that are not as at the start; entries in the order of their keys. Times and the tokens in
    meters' buckets are not in it, nor are queues and links, which are the ports'.
    """
    scopes = store.state.scopes
    found: Plain = {
        kind: [
            {"name": name, "pipes": list(pipes),
             **_shown(store, kind, scopes.pipes[pipes[0]].of(kind)[name], pause)}
            for name in scopes.pipes[0].of(kind) for pipes in scopes.groups(name)
        ]
        for kind in _WORDS
    }  # fmt: skip
    found["registers"] = [
        {"name": name, "pipes": [pipe], "cells": _cells(store.registers(register), pause)}
        for name in store.state.registers
        for pipe, register in enumerate(store.state.pipe_registers(name))
    ]
    found["scopes"] = {name: [list(one) for one in of] for name, of in scopes.own.items()}
    found["hashes"] = {n: _hash(r) for n, r in store.hashes.records() if r["crc"] or r["spans"]}
    crcs = {crc.name: crc for crc in store.state.crcs.values()}
    found["crcs"] = {n: asdict(c.parameters) for n, c in crcs.items() if c.parameters != c.standard}
    found["byte_adjustments"] = [[*key, r["bytes"]] for key, r in store.adjustments.records()]
    found["digests"] = dict(store.digests.records())
    found["port_metadata"] = {n: r["data"].hex() for n, r in store.port_metadata.records()}
    times = store.expire_times
    found["expire_times"] = {n: times.read(n)["time_ns"] for n in times.changed()}
    found["replication"] = store.replication.dump()
    found["translations"] = {n: dict(t.items()) for n, t in store.state.translations.items()}
    found["kept"] = {
        name: [[_plain(key), _plain(value)] for key, value in list(items.items())]
        for name, items in list(store.state.kept.items()) if items
    }  # fmt: skip
    return found


def load(store: Store, records: Plain) -> None:
    """Write what `dump` returned, also by way of JSON, into a store that is as at the start.

    Raises TableError or SwitchError if the program has no place for something; others (KeyError,
    TypeError, ValueError) if that is no dump.
    """
    for name, numbers in records.get("translations", {}).items():
        _load_names(store, name, numbers)
    for name, groups in records["scopes"].items():
        if not store.state.scopes.has(name):
            raise _missing("table or extern", name)
        store.scopes.set(name, groups)
    for kind, write in _WRITERS.items():
        for one in records[kind]:
            if (found := _object(store, kind, one)) is not None:
                write(store, found, one)
    for one in records["registers"]:
        _load_register(store, one)
    for name, crc in records["hashes"].items():
        _load_hash(store, name, dict(crc))
    for name, parameters in records["crcs"].items():
        store.crcs.modify(name, parameters=CrcParameters(**parameters))
    adjusted = records["byte_adjustments"]
    if isinstance(adjusted, dict):  # of all pipes, in states of before
        adjusted = [[name, 0, nbytes] for name, nbytes in adjusted.items()]
    for name, pipe, nbytes in adjusted:
        store.adjustments.put((name, pipe), {"bytes": nbytes})
    for name, config in records["digests"].items():
        store.digests.write(name, **config)
    for port, data in records["port_metadata"].items():
        store.port_metadata.write(int(port), data=bytes.fromhex(data))
    for profile, time in records.get("expire_times", {}).items():
        store.expire_times.modify(int(profile), time_ns=time)
    store.replication.load(records["replication"])
    for name, items in records["kept"].items():
        store.kept(name).update((_key(key), _value(value)) for key, value in items)


def _load_names(store: Store, name: str, numbers: Mapping[str, int]) -> None:
    known = store.state.translations.get(name)
    if known is None:
        if numbers:
            raise _missing("translated type", name)
        return
    for text, number in numbers.items():
        known.fix(text, number)


# -- objects that pipes can have of their own -----------------------------------------------------


def _paused(objects: Iterable[T], pause: Pause) -> Iterator[T]:
    """Yield objects, with a pause after some of them each."""
    for i, one in enumerate(objects, 1):
        yield one
        if i % _PART == 0:
            pause()


def _shown(store: Store, kind: str, found: Any, pause: Pause) -> Plain:
    pause()
    match kind:
        case "tables":
            return _table(found, pause)
        case "profiles":
            return _profile(found)
        case "counters":
            cells = store.counters(found)
            touched = _paused(cells.touched(), pause)
            return {"cells": {i: list(cells.get(i).values()) for i in touched}}
        case "meters":
            touched = _paused(_touched_meters(found), pause)
            return {"cells": {i: _meter(found.cell(i)) for i in touched}}
        case "filters":
            return {"cells": _cells(store.filters(found), pause)}
    own = {parser: list(map(_matches, members)) for parser, members in found.own.items()}
    parsers = {"parsers": own} if found.by_parser or own else {}
    return {"members": [_matches(member) for member in found.members], **parsers}


def _object(store: Store, kind: str, one: Plain) -> Any:
    """Return the object that a record is of, None if there is none and the record is empty. Raises
    Refusal."""
    name, pipe, pipes = one["name"], one["pipes"][0], store.state.scopes.pipes
    known = pipes[0].of(kind)
    if name not in known:
        whole = one if kind != "tables" else {**one, "entries": _added(one)}
        empty = not any(value for key, value in whole.items() if key not in _ABOUT)
        if empty:
            return None
        raise _missing(_WORDS[kind], name, known)
    if not 0 <= pipe < len(pipes):
        raise Refusal("NOT_FOUND", f"there is no pipe {pipe}", "missing", "pipe", pipe)
    return pipes[pipe].of(kind)[name]


_ABOUT = ("name", "pipes", "fields")
"""The keys that a record has for each object, also for one in which nothing is set."""


def _missing(word: str, name: str, known: Iterable[str] = ()) -> Refusal:
    there = list(known)[:12]
    shown = f"; there are: {', '.join(there)}" if there else ""
    return Refusal("NOT_FOUND", f"there is no {word} {name}{shown}", "missing", word)


# -- tables ---------------------------------------------------------------------------------------


def _table(table: MatchTable, pause: Pause) -> Plain:
    entries: list[Plain] = [
        {
            "matches": _matches(entry.matches), "priority": entry.priority,
            "action": _action(table.actions, entry.action), "handle": entry.handle,
            "metadata": entry.metadata.hex(), "controller_metadata": entry.controller_metadata,
            "idle_timeout_ns": entry.idle_timeout_ns, "serial": entry.serial,
            "const": entry.is_const or table.table.const_entries, **_parts(entry),
        }
        for entry in _paused(table.entries(), pause)
    ]  # fmt: skip
    entries = _ordered(entries, lambda entry: (str(entry["matches"]), entry["priority"]))
    default: Plain = _parts(table)
    if table.default != table.source_default:
        default["action"] = _action(table.actions, table.default)
    if table.default_metadata != (0, b""):
        default["controller_metadata"] = table.default_metadata[0]
        default["metadata"] = table.default_metadata[1].hex()
    return {"fields": [f.name for f in table.fields], "entries": entries, "default": default}


def _ordered(entries: list[Plain], key: Callable[[Plain], Any]) -> list[Plain]:
    """Sort entries; sorting a long list at once keeps other Python threads waiting."""
    parts = range(0, len(entries), _LONG)
    return list(merge(*(sorted(entries[i : i + _LONG], key=key) for i in parts), key=key))


_LONG = 8192


def _added(one: Plain) -> list[Plain]:
    """Return the entries of a table's record that are not const in the source."""
    return [entry for entry in one["entries"] if not entry["const"]]


def _load_table(store: Store, table: MatchTable, one: Plain) -> None:
    entries, there = store.entries(table), [f.name for f in table.fields]
    places = [one["fields"].index(name) if name in one["fields"] else None for name in there]
    if len(one["fields"]) != len(there) or None in places:
        if _added(one):
            was, now = ", ".join(one["fields"]), ", ".join(there)
            what = f"table {table.table.name}: its key has changed from ({was}) to ({now})"
            raise Refusal("INVALID_ARGUMENT", what, "range", "table")
        places = []
    if not table.table.const_entries:
        entries.clear()
    handles = []
    for given in sorted(one["entries"], key=lambda entry: entry["serial"]):
        key = tuple(_match(given["matches"][at]) for at in places if at is not None)
        entry = table.find(key, given["priority"]) if given["const"] and places else None
        if not given["const"]:
            entry = Entry(
                key, _target(table.actions, given["action"]), given["priority"],
                bytes.fromhex(given["metadata"]), given["idle_timeout_ns"],
                controller_metadata=given["controller_metadata"],
            )  # fmt: skip
            entries.add(entry)
        if entry is not None:
            _load_parts(store, entry, given)
            handles.append(given["handle"])
    if len(handles) == len(table):
        table.renumber(handles)
    default = one["default"]
    if "action" in default:
        entries.set_default(_target(table.actions, default["action"]))
    _load_parts(store, table, default)
    table.default_metadata = (
        default.get("controller_metadata", 0), bytes.fromhex(default.get("metadata", ""))
    )  # fmt: skip


def _parts(owner: Entry | MatchTable) -> Plain:
    """Return the direct resources of an entry, or of a table's misses, that are not at 0."""
    counter, meter, register, filter = _resources(owner)
    found: Plain = {}
    if counter.packets or counter.bytes:
        found["counter"] = [counter.packets, counter.bytes]
    if any(meter.cells[:1]) or any(meter.cells[10:]):
        found["meter"] = _meter(meter)
    if register is not None and any(cell != register.initial for cell in register.cells):
        found["register"] = list(register.cells)
    config = None if filter is None else filter.read(0)
    if config is not None:
        found["filter"] = asdict(config)
    return found


def _resources(
    owner: Entry | MatchTable,
) -> tuple[Count, MeterCell, Register | None, Filter | None]:
    if isinstance(owner, Entry):
        return owner.counter, owner.meter, owner.register, owner.filter
    return (owner.default_counter, owner.default_meter, owner.default_register,
            owner.default_filter)  # fmt: skip


def _load_parts(store: Store, owner: Entry | MatchTable, one: Plain) -> None:
    counter, meter, register, filter = _resources(owner)
    if "counter" in one:
        packets, nbytes = one["counter"]
        store.counters(counter).write(0, packets=packets, bytes=nbytes)
    if "meter" in one:
        _load_meter(store, meter, one["meter"])
    for pipe, value in enumerate(one.get("register", ()) if register is not None else ()):
        assert register is not None
        store.registers(register).write(pipe, value=value)
    if "filter" in one and filter is not None:
        store.filters(filter).write(0, config=FilterConfig(**one["filter"]))


def _action(actions: ActionList, target: EntryAction) -> Plain:
    match target:
        case ActionData():
            return {"name": actions.action(target).name, "args": list(target.args)}
        case MemberRef(id=number):
            return {"member": number}
        case GroupRef(id=number):
            return {"group": number}
    return {"set": [
        {**_action(actions, action), "weight": weight, "watch": watch.hex()}
        for action, weight, watch in target.actions
    ], "mode": target.mode, "semantics": target.semantics}  # fmt: skip


def _target(actions: ActionList, one: Plain) -> EntryAction:
    if "member" in one:
        return MemberRef(one["member"])
    if "group" in one:
        return GroupRef(one["group"])
    if "set" in one:
        return OneShot(tuple(
            (_data(actions, of), of["weight"], bytes.fromhex(of["watch"])) for of in one["set"]
        ), one.get("mode", 0), one.get("semantics", 0))  # fmt: skip
    return _data(actions, one)


def _data(actions: ActionList, one: Plain) -> ActionData:
    name = resolve("action", one["name"], actions.names, actions.owner)
    return ActionData(actions.names.index(name), tuple(one["args"]))


def _matches(matches: Iterable[Any]) -> list[list[int] | None]:
    return [None if match is None else list(match) for match in matches]


def _match(one: list[int] | None) -> tuple[int, ...] | None:
    return None if one is None else tuple(one)


# -- action profiles ------------------------------------------------------------------------------


def _profile(profile: ActionProfile) -> Plain:
    members = {n: _action(profile.actions, action) for n, action in profile.members.items()}
    groups = {
        number: {
            "max_size": group.max_size,
            "members": [[m.member, m.weight, m.watch_port.hex(), m.active] for m in group.members],
        }
        for number, group in profile.groups.items()
    }
    return {"members": members, "groups": groups}


def _load_profile(store: Store, profile: ActionProfile, one: Plain) -> None:
    members, groups = store.members(profile), store.groups(profile)
    for number, action in one["members"].items():
        members.insert(int(number), action=_data(profile.actions, action))
    for number, group in one["groups"].items():
        there = [Weighted(member, weight, bytes.fromhex(watch), active)
                 for member, weight, watch, active in group["members"]]  # fmt: skip
        groups.insert(int(number), members=there, max_size=group["max_size"])


# -- cells ----------------------------------------------------------------------------------------


def _cells(cells: Cells, pause: Pause) -> Plain:
    """Return the cells that are not as at the start, each its only value."""
    found: Plain = {}
    for i in _paused(cells.touched(), pause):
        (value,) = cells.get(i).values()
        found[i] = asdict(value) if isinstance(value, FilterConfig) else value  # type: ignore[index]
    return found


def _touched_meters(meter: Any) -> Iterator[int]:
    rows = meter.memory.reshape(-1, _METER_WORDS)
    return (i for i in range(meter.size) if rows[i, 0] or rows[i, 10:].any())


_METER_WORDS = 16


def _meter(cell: MeterCell) -> list[int]:
    """Return the words of a meter but its tokens and the time of the last packet."""
    words = cell.cells.tolist()
    return words[:6] + words[9:] if words[0] else [0] * 7 + words[10:]


def _load_meter(store: Store, cell: MeterCell, words: list[int]) -> None:
    configured, cir, cburst, pir, pburst, eburst, period, *counts = words
    config = MeterConfig(cir, cburst, pir, pburst, eburst, period) if configured else None
    store.meters(cell).write(0, config=config)
    for i, count in enumerate(counts, 10):
        cell.cells[i] = count


def _load_counter(store: Store, counter: Any, one: Plain) -> None:
    for i, (packets, nbytes) in one["cells"].items():
        store.counters(counter).write(int(i), packets=packets, bytes=nbytes)


def _load_meters(store: Store, meter: Any, one: Plain) -> None:
    for i, words in one["cells"].items():
        _load_meter(store, meter.cell(int(i)), words)


def _load_filter(store: Store, filter: Filter, one: Plain) -> None:
    for i, config in one["cells"].items():
        store.filters(filter).write(int(i), config=FilterConfig(**config))


def _load_values(store: Store, value_set: Any, one: Plain) -> None:
    value_set.by_parser = "parsers" in one
    for parser, members in ((None, one["members"]), *one.get("parsers", {}).items()):
        of = store.values(value_set, None if parser is None else int(parser))
        of.replace([[_match(m) for m in member] for member in members])


def _load_register(store: Store, one: Plain) -> None:
    name, pipe, known = one["name"], one["pipes"][0], store.state.registers
    if name not in known:
        if one["cells"]:
            raise _missing("register", name, known)
        return
    pipes = store.state.pipe_registers(name)
    if pipe >= len(pipes):
        raise Refusal("NOT_FOUND", f"there is no pipe {pipe}", "missing", "pipe", pipe)
    cells = store.registers(pipes[pipe])
    for i, value in one["cells"].items():
        cells.write(int(i), value=value)


_WRITERS: Mapping[str, Callable[[Store, Any, Plain], None]] = {
    "profiles": _load_profile, "tables": _load_table, "counters": _load_counter,
    "meters": _load_meters, "filters": _load_filter, "value_sets": _load_values,
}  # fmt: skip
"""The loaders, in the order in which objects refer to each other."""


# -- settings -------------------------------------------------------------------------------------


def _hash(record: Record) -> Plain:
    """Return a hash's record: the CRC's parameters, and what else was set."""
    found: Plain = asdict(record["crc"]) if record["crc"] is not None else {}
    if record["spans"] is not None:
        found["spans"], found["total"] = [list(span) for span in record["spans"]], record["total"]
    return {**found, "shown": record["shown"]} if record["shown"] else found


def _load_hash(store: Store, name: str, one: Plain) -> None:
    if not store.hashes.has(name):
        raise _missing("hash", name, store.hashes.existing())
    shown, spans, total = one.pop("shown", {}), one.pop("spans", None), one.pop("total", 0)
    crc = Crc(**one) if one else None
    taken = None if spans is None else [(start, length) for start, length in spans]
    store.hashes.modify(name, crc=crc, spans=taken, total=total, shown=shown)


def _plain(value: Any) -> Any:
    """Return a value that a notation keeps, for JSON."""
    if isinstance(value, bytes | bytearray):
        return {"hex": bytes(value).hex()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return value


def _key(one: Any) -> Any:
    return tuple(map(_key, one)) if isinstance(one, list) else one


def _value(one: Any) -> Any:
    if isinstance(one, list):
        return [_value(item) for item in one]
    if isinstance(one, dict):
        return bytes.fromhex(one["hex"]) if one.keys() == {"hex"} else {
            name: _value(item) for name, item in one.items()
        }  # fmt: skip
    return one
