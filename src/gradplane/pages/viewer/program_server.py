"""The page of a program that runs on a switch: its graphs with live counters, its entries to edit.

`gradplane p4 view PROGRAM.p4 --at HOST:PORT`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from gradplane.controller.connection import Connection
from gradplane.controller.controller_errors import ControllerError
from gradplane.pages.viewer.live_tables import Entry, LiveTables
from gradplane.pages.viewer.local_server import LocalServer, ServerError


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
