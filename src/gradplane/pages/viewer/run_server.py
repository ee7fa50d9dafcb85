"""The pages of recorded runs: `gradplane view RUN_DIR...`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradplane.aggregations.aggregation import ReplayError
from gradplane.pages.kit import render
from gradplane.pages.viewer.local_server import LocalServer
from gradplane.pages.viewer.run_view import NotThere, RunView, SearchError
from gradplane.runs.records.run_folder import REPORT


def run_server(views: Sequence[RunView], port: int = 0) -> LocalServer:
    """Return a server of these runs' pages, at its `url`. Raises ServerError."""
    return LocalServer(_routes(views), port)


def _routes(views: Sequence[RunView]) -> list[Any]:
    try:
        from starlette.responses import FileResponse, HTMLResponse, JSONResponse
        from starlette.routing import Route
    except ImportError:
        return []  # LocalServer says so

    def answered(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def endpoint(request: Any) -> Any:
            number = request.path_params.get("run", 0)
            if number >= len(views):
                return JSONResponse({"error": f"there are {len(views)} runs"}, 404)
            try:
                return JSONResponse(call(request))
            except NotThere as error:
                return JSONResponse({"error": str(error)}, 404)
            except SearchError as error:
                return JSONResponse({"error": str(error)}, 400)
            except ReplayError as error:
                return JSONResponse({"error": str(error)}, 409)

        return endpoint

    def view(request: Any) -> RunView:
        number: int = request.path_params["run"]
        return views[number]

    def place(request: Any) -> list[int]:
        return [request.path_params[name] for name in ("job", "round", "index") if name in
                request.path_params]  # fmt: skip

    def page(request: Any) -> HTMLResponse:
        return HTMLResponse(render("recorded_run.html", {"title": "A recorded run"}))

    def report(request: Any) -> FileResponse | JSONResponse:
        number = request.path_params["run"]
        if number >= len(views):
            return JSONResponse({"error": f"there are {len(views)} runs"}, 404)
        path = views[number].folder / REPORT
        if not path.exists():
            text = f"no report: gradplane report {views[number].folder} writes it"
            return JSONResponse({"error": text}, 404)
        return FileResponse(path)

    one = "/run/{run:int}"
    return [
        Route("/", page),
        Route("/runs", answered(lambda request: [view.name for view in views])),
        Route(f"{one}/report", report),
        Route(f"{one}/overview", answered(lambda request: view(request).overview())),
        Route(f"{one}/waiting", answered(lambda request: view(request).waiting())),
        Route(f"{one}/source", answered(lambda request: view(request).source())),
        Route(
            f"{one}/search",
            answered(lambda request: view(request).search(request.query_params.get("q", ""))),
        ),
        Route(
            f"{one}/job/{{job:int}}/round/{{round:int}}",
            answered(lambda request: view(request).round(*place(request))),
        ),
        Route(
            f"{one}/job/{{job:int}}/round/{{round:int}}/packet/{{index:int}}",
            answered(lambda request: view(request).packet(*place(request))),
        ),
    ]
