"""The local web server: connections that say nothing keep nobody out."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Iterator

import pytest

pytest.importorskip("uvicorn")

from starlette.responses import PlainTextResponse
from starlette.routing import Route

from gradplane.pages.viewer import local_server
from gradplane.pages.viewer.local_server import LocalServer

HALF = b"GET / HTTP/1.1\r\nHost: local"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    monkeypatch.setattr(local_server, "CONNECTIONS", 8)
    found = LocalServer([Route("/", lambda request: PlainTextResponse("page"))])
    thread = threading.Thread(target=found.run)
    thread.start()
    yield found
    found.stop()
    thread.join()


def connect(server: LocalServer, count: int) -> list[socket.socket]:
    host, port = server.url.split("/")[2].split(":")
    made = [socket.create_connection((host, int(port)), timeout=60) for _ in range(count)]
    for one in made:
        one.sendall(HALF)
    return made


def ended(connection: socket.socket) -> bool:
    """Wait for the end of a connection."""
    with connection:
        try:
            return connection.recv(1000) == b""
        except ConnectionResetError:
            return True


def page(server: LocalServer) -> bytes:
    with urllib.request.urlopen(server.url, timeout=60) as answer:
        return bytes(answer.read())


def test_the_oldest_silent_connections_are_closed(server: LocalServer) -> None:
    silent = connect(server, 20)
    assert page(server) == b"page"
    assert all(map(ended, silent[:12]))
    for one in silent[12:]:
        one.close()


def test_a_connection_without_a_request_is_closed(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "SILENCE", 0.05)
    assert all(map(ended, connect(server, 3)))
    assert page(server) == b"page"
