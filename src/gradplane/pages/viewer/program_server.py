"""The page of a program that runs on a switch: its graphs with live counters, its entries to edit;
or a switch of the page's own, which says of each packet from the page what it did, step by step.

`gradplane p4 view PROGRAM.p4 --at HOST:PORT`, `gradplane p4 view PROGRAM.p4 --step`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import finsy

from gradplane.controller.connection import Connection
from gradplane.controller.controller_errors import ControllerError, RequestError
from gradplane.pages.viewer.local_server import LocalServer, ServerError
from gradplane.switch.interp.trace_events import Assigned, Extracted, TraceEvent, value_text
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.source import NOWHERE
from gradplane.switch.switch import Switch

Values = dict[str, Any]

_SHOWN = 500  # entries of a table


@dataclass(frozen=True)
class Entry:
    """An entry as a page sends it: the match by key (absent: any value), action and parameters."""

    table: str
    match: Mapping[str, str]
    action: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0

    @classmethod
    def of(cls, values: Any) -> Entry:
        """Return the entry of a JSON object. Raises RequestError if it is none."""
        try:
            match = {str(key): str(value) for key, value in values["match"].items() if value != ""}
            params = {str(key): str(value) for key, value in values.get("params", {}).items()}
            priority = int(values.get("priority") or 0)
            return cls(str(values["table"]), match, str(values.get("action", "")), params, priority)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RequestError(f"this is no entry: {error!r}") from error

    def entity(self) -> finsy.P4TableEntry:
        """Return it as finsy's. Raises RequestError for parameters that no action can have."""
        try:
            action = finsy.P4TableAction(self.action, **self.params) if self.action else None
        except (TypeError, ValueError) as error:
            raise RequestError(f"{self.table}: {error}") from error
        match = finsy.P4TableMatch(dict(self.match))
        return finsy.P4TableEntry(self.table, match=match, action=action, priority=self.priority)


class LiveTables:
    """The tables of a connection's switch. Every method raises RequestError where it refuses."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def overview(self) -> Values:
        """Return each table's number of entries and its packets, and each counter's sums.

        packets: None for a table without direct counters."""
        entries: dict[str, int] = defaultdict(int)
        packets: dict[str, int] = defaultdict(int)
        async for entry in self._connection.read(_every("")):
            entries[entry.table_id] += not entry.is_default_action
            if entry.counter_data is not None:
                packets[entry.table_id] += entry.counter_data.packet_count
        counters: dict[str, list[int]] = {}
        async for cell in self._connection.read(finsy.P4CounterEntry()):
            sums = counters.setdefault(cell.counter_id, [0, 0])
            sums[0] += cell.packet_count
            sums[1] += cell.byte_count
        return {
            "tables": {
                table.name: {
                    "entries": entries[table.name],
                    "size": table.size,
                    "packets": packets[table.name] if table.direct_counter else None,
                }
                for table in self._connection.schema.tables
            },
            "counters": counters,
        }

    async def table(self, name: str) -> Values:
        """Return a table's keys, actions and entries, the default action last."""
        schema = self._connection.schema
        try:
            table = schema.tables[name]
        except ValueError as error:
            raise RequestError(str(error)) from error
        found: list[Values] = []
        async for entry in self._connection.read(_every(name)):
            if len(found) <= _SHOWN and not entry.is_default_action:
                found.append(_shown(entry, schema))
        more = len(found) > _SHOWN
        del found[_SHOWN:]
        default = finsy.P4TableEntry(name, is_default_action=True)
        async for entry in self._connection.read(default):
            found.append(_shown(entry, schema))
        return {
            "name": name,
            "const": table.is_const,
            "keys": [
                {"name": key.alias, "kind": _kind(key.match_type), "bits": key.bitwidth}
                for key in table.match_fields
            ],
            "actions": [
                {
                    "name": action.alias,
                    "params": [{"name": p.name, "bits": p.bitwidth} for p in action.params],
                }
                for action in table.actions
            ],
            "entries": found,
            "more": more,
        }

    async def put(self, entry: Entry) -> None:
        """Insert an entry, or modify the one with its match and priority."""
        await self._connection.put([entry.entity()])

    async def remove(self, entry: Entry) -> None:
        """Delete the entry with that match and priority, whatever its action."""
        await self._connection.remove([replace(entry, action="").entity()])


def _every(table: str) -> finsy.P4TableEntry:
    return finsy.P4TableEntry(table, counter_data=finsy.P4CounterData())


def _kind(match_type: Any) -> str:
    return match_type if isinstance(match_type, str) else str(match_type.name).lower()


def _shown(entry: finsy.P4TableEntry, schema: finsy.P4Schema) -> Values:
    counted = entry.counter_data
    return {
        "match": entry.match_dict(schema, wildcard="") if entry.match is not None else {},
        "text": entry.match_str(schema),
        "action": entry.action_str(schema),
        "priority": entry.priority,
        "default": entry.is_default_action,
        "const": entry.is_const,
        "packets": None if counted is None else counted.packet_count,
        "bytes": None if counted is None else counted.byte_count,
    }


def program_server(page: str, connection: Connection, port: int = 0) -> LocalServer:
    """Return a server of a program's page (program_page.page, live) and of what the switch holds.

    connection: not open yet. Raises ServerError.
    """
    try:
        from starlette.responses import HTMLResponse, JSONResponse
        from starlette.routing import Route
    except ImportError as error:
        raise ServerError(f"{error}: pip install gradplane[view]") from None
    tables = LiveTables(connection)

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        async with connection:
            yield

    def answered(call: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def endpoint(request: Any) -> Any:
            try:
                return JSONResponse(await call(request))
            except ControllerError as error:
                return JSONResponse({"error": str(error)}, 409)
            except ValueError:
                return JSONResponse({"error": "the request is no JSON"}, 400)

        return endpoint

    async def shown(request: Any) -> Any:
        return HTMLResponse(page)

    async def put(request: Any) -> None:
        await tables.put(Entry.of(await request.json()))

    async def remove(request: Any) -> None:
        await tables.remove(Entry.of(await request.json()))

    routes = [
        Route("/", shown),
        Route("/live", answered(lambda request: tables.overview())),
        Route("/table", answered(lambda request: tables.table(request.query_params["name"]))),
        Route("/put", answered(put), methods=["POST"]),
        Route("/remove", answered(remove), methods=["POST"]),
    ]
    return LocalServer(routes, port, lifespan)


# -- packets from the page --------------------------------------------------------------------


def stepping_server(page: str, switch: Switch, files: Sequence[str], port: int = 0) -> LocalServer:
    """Return a server of a program's page (program_graphs.page, stepping) and of a switch for it.

    files: the source files in the page's order. Raises ServerError."""
    try:
        from starlette.responses import HTMLResponse, JSONResponse
        from starlette.routing import Route
    except ImportError as error:
        raise ServerError(f"{error}: pip install gradplane[view]") from None

    async def shown(request: Any) -> Any:
        return HTMLResponse(page)

    async def send(request: Any) -> Any:
        try:
            return JSONResponse(steps(switch, await request.json(), files))
        except (RequestError, SwitchError) as error:
            return JSONResponse({"error": str(error)}, 409)
        except ValueError:
            return JSONResponse({"error": "the request is no JSON"}, 400)

    return LocalServer([Route("/", shown), Route("/send", send, methods=["POST"])], port)


def steps(switch: Switch, asked: Any, files: Sequence[str]) -> Values:
    """Send a packet, `port` and `packet` in hexadecimal digits; return what the switch did.

    A step has its text, the line of the page that it is about, and the fields that it sets.
    Raises RequestError for what is no packet, SwitchError for a port that does not exist."""
    try:
        number, packet = int(asked["port"]), bytes.fromhex(asked["packet"])
    except (KeyError, TypeError, ValueError) as error:
        raise RequestError(
            f"a packet is a port and bytes as hexadecimal digits: {error}"
        ) from error
    traced = switch.trace(number, packet)
    return {
        "steps": [
            {
                "text": event.text(),
                "block": event.kind == "enter",
                "place": _place(event, files),
                "sets": [[name, value_text(value)] for name, value in _sets(event)],
            }
            for event in traced.events
        ],
        "outputs": [[out, data.hex()] for out, data in traced.outputs],
    }


def _place(event: TraceEvent, files: Sequence[str]) -> str | None:
    if event.span == NOWHERE or event.span.file not in files:
        return None
    return f"f{files.index(event.span.file)}-{event.span.line}"


def _sets(event: TraceEvent) -> list[tuple[str, Any]]:
    """Return the fields that an event sets, with their values after it."""
    match event:
        case Extracted(header=header, fields=dict(fields)):
            return [(f"{header}.{name}", value) for name, value in fields.items()]
        case Assigned(target=target, value=value):
            return [(target, value)]
    return []
