"""The tables and groups that an experiment needs of a program, checked before a switch starts.

The check encodes what would be installed against the program's P4Info, so it knows no names of its
own, and shows what each kind of entry needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import finsy
from finsy import p4entity

from gradplane import _suggestions
from gradplane.controller import compression, forwarding, thc
from gradplane.controller.blocking import Setup
from gradplane.controller.connection import Entity
from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.plan import check


def missing(schema: finsy.P4Schema, setup: Setup) -> list[str]:
    """Describe what the program lacks or declares differently; empty if the setup fits it."""
    found: dict[str, None] = {}
    try:
        routes = forwarding.table(schema)
    except ControllerError as error:
        return [str(error)]
    for entity in _entities(schema, setup, routes):
        try:
            p4entity.encode_entities([entity], schema)
        except ValueError as error:  # finsy's, for names and values that the program lacks
            found[f"{_plain(str(error))} (needed: {_shape(entity)})"] = None
    if not found and setup.jobs:
        try:
            check(setup.jobs, thc.capacity(schema))
        except ControllerError as error:
            found[_plain(str(error))] = None
    return list(found)


def _entities(schema: finsy.P4Schema, setup: Setup, routes: str) -> Iterator[Entity]:
    """Yield what the controller would install; `routes` is the table of routes."""
    yield from (forwarding.entry(route, routes) for route in setup.routes)
    if setup.jobs:
        yield thc.local(setup.ip)
    for plan in setup.jobs:
        yield from thc.job_entries(plan, schema, setup.ip, setup.mac)
    if setup.compression is not None:
        yield from compression.entries(setup.compression)


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
    shape = f"table {entity.table_id}, key {', '.join(entity.match or {})}"
    if isinstance(action := entity.action, finsy.Action):
        shape += f", action {action.name}({', '.join(action.args)})"
    return shape
