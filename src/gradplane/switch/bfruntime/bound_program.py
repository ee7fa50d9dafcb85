"""The program that runs on the switch, with its tables as clients reach them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from gradplane.switch.bfruntime.fixed_tables import FixedTables
from gradplane.switch.bfruntime.program_schema import ProgramSchema
from gradplane.switch.bfruntime.requests import Requests
from gradplane.switch.bfruntime.snapshots import Placement, Snapshots
from gradplane.switch.bfruntime.tables.device import Restart
from gradplane.switch.bfruntime.tables.match_table import MatchActionTable
from gradplane.switch.bfruntime.tables.profiles import SelectorTable
from gradplane.switch.bfruntime.tables.program_tables import program_tables
from gradplane.switch.bfruntime.tables.scoped import ScopedTable
from gradplane.switch.p4runtime.pipeline import Pipeline


@dataclass(slots=True)
class BoundProgram:
    """A pipeline of the device under BFRuntime; `tables` are the program's, by the names that it
    has in P4Info."""

    pipeline: Pipeline
    schema: ProgramSchema
    requests: Requests
    match_tables: dict[str, MatchActionTable]
    selectors: list[SelectorTable]
    fixed: FixedTables

    @property
    def name(self) -> str:
        return program_name(self.pipeline)

    @property
    def packet_requests(self) -> set[str]:
        """The names of the messages in which deparsers ask for generated packets."""
        externs = self.pipeline.catalog.program.externs
        return {e.name for e in externs if e.kind == "packet_generator"}

    def json(self) -> bytes:
        """Return the program's bf-rt.json."""
        return json.dumps(self.schema.schema.json()).encode()

    def fixed_json(self) -> bytes:
        """Return the bf-rt.json of the device's tables."""
        return json.dumps(self.fixed.schema.json()).encode()


def program_name(pipeline: Pipeline) -> str:
    """Return the name that clients bind to: that of the program's file."""
    return Path(pipeline.catalog.program.package.span.file).stem


def bind(
    pipeline: Pipeline,
    device: object = None,
    place: Placement | None = None,
    restart: Restart | None = None,
) -> BoundProgram:
    """Make the tables of a pipeline. `device`: the ports of the switch, None if unknown. place: of
    its tables in stages. restart: starts the program anew."""
    schema = ProgramSchema(pipeline.catalog)
    snapshots = _snapshots(schema, pipeline, place)
    own = program_tables(schema, pipeline.store, snapshots)
    fixed = FixedTables(schema.facts, pipeline, device, restart, snapshots)
    pipes = schema.facts.pipes if schema.facts is not None else 1
    tables = {**own, **fixed.tables}
    requests = Requests(tables, schema.schema.learn_filters, pipes, pipeline.store)
    first = [table.first for table in own.values() if isinstance(table, ScopedTable)]
    match_tables = {t.table.table.name: t for t in first if isinstance(t, MatchActionTable)}
    selectors = [table for table in first if isinstance(table, SelectorTable)]
    return BoundProgram(pipeline, schema, requests, match_tables, selectors, fixed)


def _snapshots(
    schema: ProgramSchema, pipeline: Pipeline, place: Placement | None
) -> Snapshots | None:
    """Return the snapshots of a chip, which follow packets when a client asks for it."""
    if schema.facts is None:
        return None

    def watch(wanted: bool) -> None:
        pipeline.state.probe = made if wanted else None
        if wanted:
            pipeline.switch.watch(made)
        else:
            pipeline.switch.unwatch(made)

    made = Snapshots(schema.facts, pipeline.catalog.program, pipeline.state.clock, watch, place)
    return made
