"""Whether a program takes what is to be installed, before a switch starts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import finsy
from finsy import p4entity
from finsy.p4schema import P4MatchType
from finsy.proto import p4r

from gradplane import _suggestions
from gradplane.controller import compression, forwarding, thc
from gradplane.controller.connection import Entity
from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.plan import Setup, check, place_problem


def lacks(schema: finsy.P4Schema, setup: Setup) -> list[str]:
    """Describe what the program lacks or declares differently; empty if the setup fits it.

    To be checked before a switch starts. What would be installed is encoded against the program's
    P4Info, so the check knows no names of its own, and shows what each kind of entry needs: of the
    entries that differ in their numbers alone, those with the largest.
    """
    found: dict[str, None] = {}
    try:
        forwarding.table(schema)
    except ControllerError as error:
        return [str(error)]
    if problems := list(_misplaced(schema, setup)):
        return problems
    for entity in _widest(_entities(schema, setup)):
        try:
            p4entity.encode_entities([entity], schema)
        except ValueError as error:  # finsy's, for names and values that the program lacks
            found[f"{_plain(str(error))} (needed: {_shape(entity)})"] = None
    if not found and setup.jobs:
        try:
            check(setup.jobs, thc.capacity(schema))
        except ControllerError as error:
            found[_plain(str(error))] = None
    if found and setup.jobs and not thc.aggregates(schema):
        found['a program that sums nothing is for jobs with aggregation = "ps" or "ring"'] = None
    wrong = [f"entries: {text}" for text in _wrong_own(schema, setup.entries)]
    return [*found, *dict.fromkeys(wrong or ([] if found else _twice(schema, setup)))]


def _misplaced(schema: finsy.P4Schema, setup: Setup) -> Iterator[str]:
    """Describe the jobs whose place in a tree of switches the program cannot have."""
    if setup.jobs and thc.aggregates(schema):
        with suppress(ControllerError):  # of a program that differs, which is described later
            capacity = thc.capacity(schema)
            yield from filter(None, (place_problem(plan, capacity) for plan in setup.jobs))


def _wrong_own(schema: finsy.P4Schema, entries: Iterable[Entity]) -> Iterator[str]:
    """Describe the own entries that the program cannot have."""
    for entity in entries:
        try:
            p4entity.encode_entities([entity], schema)
        except ValueError as error:
            yield f"{_named(entity)}: {_plain(str(error))}"
            continue
        if isinstance(entity, finsy.P4TableEntry) and (problem := _priority(schema, entity)):
            yield f"{_named(entity)}: {problem}"


def _priority(schema: finsy.P4Schema, entry: finsy.P4TableEntry) -> str:
    """Return what is wrong with an entry's priority, "" if nothing is (P4Runtime, 9.1)."""
    kinds = {field.match_type for field in schema.tables[entry.table_id].match_fields}
    needed = not entry.is_default_action and not kinds <= {P4MatchType.EXACT, P4MatchType.LPM}
    if needed and not entry.priority:
        return "its keys are ternary, ranges or optional: it needs a priority, the larger wins"
    return "" if needed or not entry.priority else "it has no priority: its keys say which wins"


def _twice(schema: finsy.P4Schema, setup: Setup) -> Iterator[str]:
    """Describe the own entries that the experiment installs, too, or that are there twice."""
    if not setup.entries:
        return
    messages = p4entity.encode_entities(_entities(schema, setup), schema)
    taken = set(map(_identity, messages))
    messages = p4entity.encode_entities(setup.entries, schema)
    for entity, message in zip(setup.entries, messages, strict=True):
        identity = _identity(message)
        if identity in taken:
            yield f"entries: {_named(entity)}: an earlier one, or the experiment, installs it"
        taken.add(identity)


def _identity(message: p4r.Entity) -> bytes:
    """Return what no two entities of a switch share."""
    kept = p4r.Entity()
    kept.CopyFrom(message)
    if kept.HasField("table_entry"):
        kept.table_entry.ClearField("action")
    else:
        replication = kept.packet_replication_engine_entry
        getattr(replication, replication.WhichOneof("type") or "").ClearField("replicas")
    identity: bytes = kept.SerializeToString(deterministic=True)
    return identity


def _named(entity: Entity) -> str:
    if isinstance(entity, finsy.P4MulticastGroupEntry):
        return f"multicast group {entity.multicast_group_id}"
    if isinstance(entity, finsy.P4CloneSessionEntry):
        return f"clone session {entity.session_id}"
    keys = (f"{name} = {_written(value)}" for name, value in (entity.match or {}).items())
    return f"table {entity.table_id}, {', '.join(keys) or 'default action'}"


def _written(value: Any) -> str:
    return json.dumps(value, default=str)


def _entities(schema: finsy.P4Schema, setup: Setup) -> Iterator[Entity]:
    """Yield what the controller would install beside the own entries."""
    yield from forwarding.entries(setup.routes, schema)
    if setup.jobs:
        yield from thc.local(setup.ip, schema)
    for plan in setup.jobs:
        yield from thc.job_entries(plan, schema, setup.ip, setup.mac)
    if setup.compression is not None:
        yield from compression.entries(setup.compression)


def _widest(entities: Iterable[Entity]) -> Iterator[Entity]:
    """Yield of the entries of one shape one for each number of theirs: in which it is largest."""
    largest: dict[tuple[str, str], tuple[int, Entity]] = {}
    for entity in entities:
        shape, numbers = _shape(entity), _numbers(entity)
        if not numbers:
            yield entity
        for name, number in numbers.items():
            if number > largest.get((shape, name), (-1, entity))[0]:
                largest[shape, name] = number, entity
    yield from {id(entity): entity for _, entity in largest.values()}.values()


def _numbers(entity: Entity) -> dict[str, int]:
    """Return the keys and arguments of an entry that are numbers."""
    if not isinstance(entity, finsy.P4TableEntry):
        return {}
    args = entity.action.args if isinstance(entity.action, finsy.Action) else {}
    values = {**(entity.match or {}), **args}
    return {name: value for name, value in values.items() if isinstance(value, int)}


_HINT = re.compile(r"named '([^']+)'\. Did you mean '([^']+)'\?")


def _plain(text: str) -> str:
    """Return finsy's message without its own type names and without hints at unlike names."""
    plain = re.sub(r"\bP4(?=[A-Z])(\w+)", lambda kind: kind[1].lower(), _HINT.sub(_hint, text))
    return plain.replace("'", '"')


def _hint(found: re.Match[str]) -> str:
    missing, known = (name.rpartition(".")[2] for name in found.groups())
    alike = _suggestions.nearest(missing, [known])
    return f"named '{found[1]}'" + (f", did you mean '{found[2]}'?" if alike else "")


def _shape(entity: Entity) -> str:
    """Return the table, key and action that an entry needs of a program."""
    if not isinstance(entity, finsy.P4TableEntry):
        return "multicast groups"
    keys = (
        f"{name} (lpm)" if isinstance(value, str) and "/" in value else name
        for name, value in (entity.match or {}).items()
    )
    shape = f"table {entity.table_id}, key {', '.join(keys)}"
    if isinstance(action := entity.action, finsy.Action):
        shape += f", action {action.name}({', '.join(action.args)})"
    return shape
