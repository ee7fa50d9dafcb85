"""A web server for this machine's user alone: on the loopback interface, a token in the URL."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

HOST = "127.0.0.1"
CONNECTIONS = 256  # at a time; a browser opens 6
SILENCE = 10.0  # seconds that a connection may be open without a whole request
_NAMES = [HOST, "localhost"]  # that a browser may call it: no other site's name leads here


class ServerError(Exception):
    """The server cannot run; the message says why and what to do."""


class LocalServer:
    """Serves routes at `url`. run() returns after stop() or Ctrl-C; one use.

    port: 0 for a free one. lifespan: Starlette's, entered while it serves. Raises ServerError where
    the port is taken, or the extra is missing.
    """

    def __init__(
        self,
        routes: Sequence[BaseRoute],
        port: int = 0,
        lifespan: Callable[[Any], AbstractAsyncContextManager[None]] | None = None,
    ) -> None:
        try:
            import uvicorn
            from starlette.applications import Starlette
            from starlette.middleware import Middleware
            from starlette.middleware.trustedhost import TrustedHostMiddleware
            from starlette.responses import PlainTextResponse
            from starlette.routing import Mount
        except ImportError as error:
            raise ServerError(f"{error}: pip install gradplane[view]") from None
        token = secrets.token_urlsafe(16)
        refusal = PlainTextResponse("The token in the address is missing or wrong.\n", 403)

        app = Starlette(
            routes=[Mount(f"/{token}", routes=list(routes)), Mount("/", refusal)],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=_NAMES)],
            lifespan=lifespan,
        )
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
            self._socket.listen()  # whoever is told the address may connect at once
        except OSError as error:
            self._socket.close()
            raise ServerError(f"port {port}: {error.strerror}: choose another one") from None
        self.url = f"http://{HOST}:{self._socket.getsockname()[1]}/{token}/"
        config = uvicorn.Config(app, http=_bounded(), log_level="warning", access_log=False)
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Serve."""
        with self._socket:
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Let run() return; callable from any thread."""
        self._server.should_exit = True


def _bounded() -> type[Any]:
    """Return uvicorn's protocol of a connection, with limits.

    Of too many connections the oldest on which no request is answered is closed, and so is one that
    sends no whole request in time: half-open ones keep nobody out.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class Bounded(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        opened: dict[Any, None] = {}  # the oldest first; of this class, so of one server

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.opened[self] = None
            self.loop.call_later(SILENCE, self.end_if_silent)
            if len(self.opened) > CONNECTIONS:
                oldest = next((one for one in self.opened if not one.answers), self)
                del self.opened[oldest]  # its end comes later, perhaps after other beginnings
                oldest.transport.close()

        def connection_lost(self, error: Exception | None) -> None:
            self.opened.pop(self, None)
            super().connection_lost(error)

        @property
        def answers(self) -> bool:
            """Whether a request has come that is not answered yet."""
            return self.cycle is not None and not self.cycle.response_complete

        def end_if_silent(self) -> None:
            if self.cycle is None and self in self.opened:
                self.transport.close()

    return Bounded
