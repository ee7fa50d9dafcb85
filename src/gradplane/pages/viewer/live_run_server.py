"""The page of a run that goes on: `gradplane run EXPERIMENT --web`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from gradplane.experiment.deployment import Deployment
from gradplane.hosts.impairments.interventions import Intervention
from gradplane.pages.figures import PALETTE
from gradplane.pages.kit import render
from gradplane.pages.viewer.local_server import LocalServer, ServerError
from gradplane.pages.viewer.run_watch import RunWatch
from gradplane.runs.records import interventions

_PAUSE = 0.3  # seconds between two events of a page
_LAST_EVENTS = 5.0  # seconds for pages to take the last event
_LONGEST = 60.0  # seconds of an intervention


class AskError(ValueError):
    """An intervention that the run cannot do; the message says why."""


class LiveRun:
    """A run that goes on: what its page shows, and the interventions that it asks for."""

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self.watch = RunWatch(deployment, folder)
        self._folder, self._seed = folder, deployment.experiment.seed
        workers = [host for host in deployment.hosts if not host.flows]
        self.hosts = list(dict.fromkeys(host.name for host in workers))
        self.asked: list[str] = []

    def ask(self, kind: str, host: str, amount: float, seconds: float) -> str:
        """Ask for an intervention, and return it in words.

        kind: "lose" `amount` percent, "delay" by `amount` ms, or "cut off". Raises AskError."""
        if host not in self.hosts:
            raise AskError(f"no host {host!r}: there are {', '.join(self.hosts)}")
        if not 0 < seconds <= _LONGEST:
            raise AskError(f"{seconds:g} s: it must be more than 0 and at most {_LONGEST:g} s")
        model, words = _model(kind, amount)
        # A seed of its own: its losses must not be among those of the experiment file's models.
        seed = self._seed + 1 + len(self.asked)
        place = {"link": host, "direction": "both", "flow": "all", "seed": seed}
        interventions.ask(self._folder, Intervention(place | model, round(seconds * 1e9)))
        text = f"{host}: {words} for {seconds:g} s, asked for after round {len(self.watch.rounds)}"
        self.asked.append(text)
        return text


def _model(kind: str, amount: float) -> tuple[dict[str, Any], str]:
    """Return the keys of the impairment, and its words. Raises AskError."""
    if kind == "cut off":
        return {"model": "bernoulli", "rate": 1.0}, "cut off"
    if kind == "lose":
        if not 0 < amount <= 100:
            raise AskError(f"{amount:g} %: it must be more than 0 and at most 100")
        return {"model": "bernoulli", "rate": amount / 100}, f"loses {amount:g} %"
    if kind == "delay":
        if not 1e-3 <= amount <= 10_000:
            raise AskError(f"{amount:g} ms: it must be 0.001 to 10000")
        return {"model": "reordering", "rate": 1.0, "delay_ms": amount}, f"delays {amount:g} ms"
    raise AskError(f"{kind!r}: it must be lose, delay or cut off")


def live_run_server(run: LiveRun, port: int = 0) -> LocalServer:
    """Return a server of the run's page. Raises ServerError where the port is taken."""
    from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse
    from starlette.routing import Route

    async def page(request: Any) -> Any:
        return HTMLResponse(
            render("live_run.html", {"title": "A running experiment", "palette": PALETTE})
        )

    async def hosts(request: Any) -> Any:
        return JSONResponse(run.hosts)

    async def ask(request: Any) -> Any:
        try:
            body = await request.json()
            numbers = [float(body[name]) for name in ("amount", "seconds")]
            return JSONResponse(run.ask(str(body["kind"]), str(body["host"]), *numbers))
        except AskError as error:
            return JSONResponse({"error": str(error)}, 400)
        except (ValueError, KeyError, TypeError):
            text = "give kind, host, amount and seconds as JSON"
            return JSONResponse({"error": text}, 400)

    async def events(request: Any) -> Any:
        headers = {"Cache-Control": "no-store"}
        return StreamingResponse(_events(run), media_type="text/event-stream", headers=headers)

    routes = [
        Route("/", page),
        Route("/hosts", hosts),
        Route("/events", events),
        Route("/ask", ask, methods=["POST"]),
    ]
    return LocalServer(routes, port)


async def _events(run: LiveRun) -> AsyncIterator[str]:
    """Yield the state whenever it has changed, with the rounds that are new to this page."""
    known, before = 0, ""
    while True:
        run.watch.refresh()
        state = run.watch.state | {"asked": run.asked, "points": run.watch.points(known)}
        known += len(state["points"])
        text = json.dumps(state)
        if text != before:
            yield f"data: {text}\n\n"
            before = text
        if state["ended"]:
            return
        await asyncio.sleep(_PAUSE)


class WebPage:
    """The page of one run, a context manager: `around` is the `watch` of run_experiment.run.

    The page is there from the run's start to the end of the block, so that one can still look at a
    run that is over. say: is given the address once there is one. Raises ServerError where the
    extra is missing."""

    def __init__(self, say: Callable[[str], None], port: int = 0) -> None:
        try:
            import starlette  # noqa: F401
            import uvicorn  # noqa: F401
        except ImportError as error:  # now, and not when a run folder has been made
            raise ServerError(f"{error}: pip install gradplane[view]") from None
        self._say, self._port = say, port
        self._exit = ExitStack()

    def __enter__(self) -> WebPage:
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    @contextmanager
    def around(self, deployment: Deployment, folder: Path) -> Iterator[None]:
        """Show the run in the block. Raises ServerError where the port is taken."""
        run = LiveRun(deployment, folder)
        server = live_run_server(run, self._port)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        self._exit.callback(thread.join, _LAST_EVENTS)
        self._exit.callback(server.stop)
        self._say(server.url)
        try:
            yield
        except BaseException as error:
            run.watch.end(f"failed: {error}" if str(error) else "stopped")
            raise
        run.watch.end("finished")
