"""The tables and groups that an experiment needs of a program, checked before a switch starts.

docs/experiments.md lists the tables, fields and groups. The check encodes what would be installed
against the program's P4Info, so it knows no names of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import finsy
from finsy import p4entity

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
            found[str(error)] = None
    if not found and setup.jobs:
        try:
            check(setup.jobs, thc.capacity(schema))
        except ControllerError as error:
            found[str(error)] = None
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
