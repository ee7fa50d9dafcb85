"""The page of a run that goes on: `gradplane run EXPERIMENT --web`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from gradplane.experiment.deployment import Deployment
from gradplane.hosts.impairments.interventions import Intervention
from gradplane.pages.figures import PALETTE
from gradplane.pages.kit import render
from gradplane.pages.viewer.local_server import LocalServer, ServerError
from gradplane.runs.records import run_folder
from gradplane.runs.records.recorder import lost

Line = dict[str, Any]

_RECENT = 10  # rounds over which rates are means


class RunWatch:
    """A run for its page, read from its folder as it grows.

    Call refresh() now and then; `state` is what JSON can hold. folder: of a run that starts.
    """

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self._folder = folder
        self._name = deployment.experiment.name
        self._totals = [job.rounds for job in deployment.jobs]
        self.rounds: dict[tuple[int, int], Line] = {}  # by (job, round), in order of their ends
        self._metrics = _Metrics(folder / run_folder.METRICS)
        self._verdicts = _Growing(folder / run_folder.IMPAIRMENTS)
        self._arrivals = _Growing(folder / run_folder.ARRIVALS)
        self._lost: Counter[str] = Counter()  # by link and direction
        self._lately: list[tuple[int, str]] = []  # the same packet by packet, since a round ended
        self._progress = 0  # when the last round ended, ns
        self._delayed = 0
        self._stalls: dict[tuple[int, int], Line] = {}
        self._ended = ""

    def end(self, how: str) -> None:
        """Say that the run is over, and how."""
        self._ended = how

    def refresh(self) -> None:
        """Read what is new."""
        for line in self._metrics.read():
            self.rounds[line["job"], line["training_round"]] = line
            self._progress = max(self._progress, line["finished"])
        for line in self._verdicts.read():
            if lost(line["verdict"]):
                way = f"{line['link']} {line['direction']}"
                self._lost[way] += 1
                self._lately.append((line["at"], way))
            else:
                self._delayed += 1
        for line in self._arrivals.read():
            if line["kind"] == "stall":
                self._stalls[line["job"], line["worker"]] = line
        self._lately = [(at, way) for at, way in self._lately if at > self._progress]

    @property
    def state(self) -> dict[str, Any]:
        """Progress, rates, losses and stalls, with times in seconds and rates in bit/s."""
        return {
            "name": self._name,
            "ended": self._ended,
            "jobs": [self._job(number, total) for number, total in enumerate(self._totals)],
            "lost": dict(self._lost.most_common()),
            "delayed": self._delayed,
            "stalls": self._stalled(),
        }

    def points(self, beyond: int) -> list[list[float]]:
        """Return [job, round, loss, seconds] of each round after the first `beyond`."""
        lines = list(self.rounds.values())[beyond:]
        return [
            [
                line["job"],
                line["training_round"],
                line["loss"],
                (line["finished"] - line["started"]) / 1e9,
            ]
            for line in lines
        ]

    def _job(self, number: int, total: int) -> dict[str, Any]:
        lines = [line for (job, _), line in self.rounds.items() if job == number]
        known = [line["test_accuracy"] for line in lines if "test_accuracy" in line]
        recent = lines[-_RECENT:]
        ns = recent[-1]["finished"] - recent[0]["started"] if recent else 0
        rates = {way: sum(line[f"wire_{way}"] for line in recent) for way in ("up", "down")}
        return {
            "rounds": len(lines),
            "total": total,
            "seconds": (lines[-1]["finished"] - lines[0]["started"]) / 1e9 if lines else 0,
            "loss": lines[-1]["loss"] if lines else None,
            "accuracy": known[-1] if known else None,
            "up": 8e9 * rates["up"] / ns if ns else 0,
            "down": 8e9 * rates["down"] / ns if ns else 0,
            "missed": sum(line["missed"] for line in lines),
        }

    def _stalled(self) -> list[str]:
        """Explain the stalls that no later round's end has resolved."""
        ends: dict[int, int] = {}
        for (job, _), line in self.rounds.items():
            ends[job] = max(ends.get(job, 0), line["finished"])
        texts = [
            _waiting(stall)
            for stall in self._stalls.values()
            if stall["at"] > ends.get(stall["job"], 0) and not self._ended
        ]
        if texts and self._lately:
            ways = Counter(way for _, way in self._lately).most_common()
            lost = ", ".join(f"{way} {count}" for way, count in ways)
            texts.append(f"packets that the impairments have lost since the last round: {lost}")
        return texts


def _waiting(stall: Line) -> str:
    """Return who waits for what, and for whom."""
    missing = stall["missing"]
    names = "not known" if missing is None else ", ".join(map(str, missing)) or "none any more"
    return (
        f"job {stall['job']}: worker {stall['worker']} waits for the sum in slot {stall['slot']}"
        f" (use {stall['use']} of the slot); workers missing in it: {names}"
    )


class _Growing:
    """A file of JSON lines that another process appends to; it may come later."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, 0

    def read(self) -> list[Line]:
        """Return the whole lines since the last call."""
        data = _after(self._path, self._place)
        self._place += len(data)
        return [json.loads(line) for line in data.splitlines()]


class _Metrics:
    """metrics.jsonl, where the last line of each job may still be replaced by a longer one."""

    def __init__(self, path: Path) -> None:
        self._path, self._last = path, dict[int, int]()  # by job: where its last line begins

    def read(self) -> list[Line]:
        """Return the lines that are new, or may have changed since the last call."""
        place, lines = min(self._last.values(), default=0), []
        with suppress(ValueError):  # a line that is being replaced: it is read the next time
            for text in _after(self._path, place).splitlines(keepends=True):
                lines.append(json.loads(text))
                self._last[lines[-1]["job"]] = place
                place += len(text)
        return lines


def _after(path: Path, place: int) -> bytes:
    """Return the whole lines of a file from a place on; none if it is not there."""
    try:
        with path.open("rb") as file:
            file.seek(place)
            data = file.read()
    except FileNotFoundError:
        return b""
    return data[: data.rfind(b"\n") + 1]


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
        run_folder.ask_intervention(self._folder, Intervention(place | model, round(seconds * 1e9)))
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
