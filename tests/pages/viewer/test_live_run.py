"""`gradplane run EXPERIMENT --web`: the page of a run that goes on, and its interventions."""

import contextlib
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gradplane.cli.app import app
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.loading import load_deployment
from gradplane.hosts.impairments.interventions import Intervention
from gradplane.hosts.impairments.verdicts import Impairments
from gradplane.pages.viewer.live_run_server import AskError, LiveRun, RunWatch, WebPage
from gradplane.runs.records import run_folder
from gradplane.runs.replayer.replay_run import replay
from gradplane.runs.run_experiment import mininet_possible, run

CUT_OFF = {"model": "bernoulli", "rate": 1.0, "direction": "both", "flow": "all", "seed": 7}
RELIABLE = ("job.reliability=retransmit", "job.quorum=3", "job.epochs=3")


@contextlib.contextmanager
def _asking(deployment: Deployment, folder: Path) -> Iterator[None]:
    """Cut h2 off for 0.2 s of the run's time, asked for before its first event."""
    run_folder.ask_intervention(folder, Intervention(CUT_OFF | {"link": "h2"}, 200_000_000))
    yield


@contextlib.contextmanager
def _only_looking(deployment: Deployment, folder: Path) -> Iterator[None]:
    yield


def _verdicts(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "impairments.jsonl").read_text().splitlines()]


def test_a_live_run_that_nobody_touches_is_the_same_run(
    experiment_file: Path, tmp_path: Path
) -> None:
    for name, watch in (("plain", None), ("live", _only_looking)):
        run(experiment_file, tmp_path / name, net="sim", settings=RELIABLE, watch=watch)
    for file in ("metrics.jsonl", "arrivals.jsonl", "impairments.jsonl"):
        assert (tmp_path / "live" / file).read_text() == (tmp_path / "plain" / file).read_text()


def test_an_intervention_is_recorded_packet_by_packet_and_replays_equal(
    experiment_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    run(experiment_file, folder, net="sim", settings=RELIABLE, watch=_asking)
    lost = _verdicts(folder)
    assert lost and {line["link"] for line in lost} == {"h2"}
    assert max(line["at"] for line in lost) <= 200_000_000
    result = replay(folder)
    assert result.equal, result.text()


def test_an_intervention_reaches_the_processes_of_mininet_and_replays_equal(
    experiment_file: Path, tmp_path: Path
) -> None:
    possible, reason = mininet_possible()
    if not possible:
        pytest.skip(reason)
    folder = tmp_path / "run"
    settings = ("job.reliability=retransmit", "job.quorum=3", "job.epochs=30")
    run(experiment_file, folder, net="mininet", settings=settings, watch=_asking)
    lost = _verdicts(folder)
    assert lost and {line["link"] for line in lost} == {"h2"}
    result = replay(folder)
    assert result.equal, result.text()


def test_a_stall_says_who_is_missing_and_what_was_lost(live: LiveRun, tmp_path: Path) -> None:
    stall = {"kind": "stall", "job": 0, "worker": 0, "slot": 3, "use": 24, "missing": [2]}
    (tmp_path / "arrivals.jsonl").write_text(json.dumps(stall | {"at": 90}) + "\n")
    verdict = {"link": "h3", "direction": "up", "verdict": "drop", "at": 80}
    (tmp_path / "impairments.jsonl").write_text(2 * (json.dumps(verdict) + "\n"))
    live.watch.refresh()
    assert live.watch.state["stalls"] == [
        "job 0: worker 0 waits for the sum in slot 3 (use 24 of the slot);"
        " workers missing in it: 2",
        "packets that the impairments have lost since the last round: h3 up 2",
    ]


def test_the_recorded_losses_of_an_intervention_befall_a_changed_run(
    experiment_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    run(experiment_file, folder, net="sim", settings=RELIABLE, watch=_asking)
    again = replay(folder, ["job.lr=0.05"], out=tmp_path / "again", net="sim")
    keys = ("link", "direction", "type", "use", "slot", "attempt", "verdict")
    first, second = (
        [tuple(line[key] for key in keys) for line in _verdicts(place)]
        for place in (folder, again.folder)
    )
    assert first and sorted(first) == sorted(second)


def test_a_model_that_was_added_can_be_removed() -> None:
    impairments = Impairments([], "h2", 1, 4, 0, live=True)
    assert impairments.active
    remove = impairments.add(CUT_OFF | {"link": "h2"})
    other = impairments.add(CUT_OFF | {"link": "h3"})
    assert impairments.up("10.0.0.9", 5000, [b"?"])[0].drop
    other()
    remove()
    assert not impairments.up("10.0.0.9", 5000, [b"?"])[0].drop
    assert not Impairments([], "h2", 1, 4, 0).active


@pytest.fixture
def live(experiment_file: Path, tmp_path: Path) -> LiveRun:
    return LiveRun(load_deployment(experiment_file, (), None), tmp_path)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("lose", "h9", 5, 3), "no host 'h9': there are h1, h2, h3"),
        (("lose", "h1", 0, 3), "0 %: it must be more than 0 and at most 100"),
        (("lose", "h1", float("nan"), 3), "nan %: it must be more than 0 and at most 100"),
        (("delay", "h1", 0, 3), "0 ms: it must be 0.001 to 10000"),
        (("lose", "h1", 5, 61), "61 s: it must be more than 0 and at most 60 s"),
        (("burn", "h1", 5, 3), "'burn': it must be lose, delay or cut off"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    live: LiveRun, asked: tuple[str, str, float, float], message: str
) -> None:
    with pytest.raises(AskError) as error:
        live.ask(*asked)
    assert str(error.value) == message
    assert not live.asked


def test_what_was_asked_for_is_read_once_and_whole(live: LiveRun, tmp_path: Path) -> None:
    asked = run_folder.AskedInterventions(tmp_path, pause=0)
    assert asked() == []
    assert live.ask("delay", "h2", 5, 3) == "h2: delays 5 ms for 3 s, asked for after round 0"
    (one,) = asked()
    assert (one.link, one.duration_ns, one.spec["delay_ms"]) == ("h2", 3_000_000_000, 5)
    with (tmp_path / "interventions.jsonl").open("a") as file:
        file.write('{"spec":')
    assert asked() == []


def test_the_watch_of_a_finished_run_has_every_round(lossy_run: Any) -> None:
    from gradplane.runs.records.run_data import RunData

    recorded = RunData.read(lossy_run.folder)
    watch = RunWatch(recorded.deployment, lossy_run.folder)
    watch.refresh()
    watch.refresh()
    (job,) = watch.state["jobs"]
    assert job["rounds"] == job["total"] == len(recorded.metrics) == len(watch.points(0))
    assert sum(watch.state["lost"].values()) == sum(
        line["verdict"] not in ("delay", "duplicate") for line in _verdicts(lossy_run.folder)
    )
    assert watch.points(job["rounds"]) == []


def test_a_line_that_grows_is_read_again(live: LiveRun, tmp_path: Path) -> None:
    def line(job: int, number: int, **more: float) -> str:
        traffic = {"wire_up": 1, "wire_down": 1, "loss": 1.0, "missed": 0}
        times = {"started": number, "finished": number + 1}
        return json.dumps({"job": job, "training_round": number} | times | traffic | more) + "\n"

    path = tmp_path / "metrics.jsonl"
    path.write_text(line(0, 0) + line(0, 1))
    live.watch.refresh()
    path.write_text(line(0, 0) + line(0, 1, test_accuracy=0.5) + line(0, 2))
    live.watch.refresh()
    (job,) = live.watch.state["jobs"]
    assert (job["rounds"], job["accuracy"]) == (3, 0.5)


class Served:
    """A page that is served while nothing runs, so that a test sets what the run's folder has."""

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        pytest.importorskip("starlette")
        pytest.importorskip("uvicorn")
        self.url, self._over = "", threading.Event()
        ready = threading.Event()

        def say(url: str) -> None:
            self.url = url
            ready.set()

        def serve() -> None:
            with WebPage(say) as page, page.around(deployment, folder):
                self._over.wait(60)

        self.thread = threading.Thread(target=serve)
        self.thread.start()
        assert ready.wait(20)

    def finish(self) -> None:
        """Let the run be over."""
        self._over.set()
        self.thread.join(20)


@pytest.fixture
def served(experiment_file: Path, tmp_path: Path) -> Iterator[Served]:
    made = Served(load_deployment(experiment_file, (), None), tmp_path)
    yield made
    made.finish()


def test_the_server_refuses_a_wrong_token_and_a_wrong_request(served: Served) -> None:
    origin = re.match(r"http://127\.0\.0\.1:\d+/", served.url)
    assert origin
    requests = [(origin[0] + "wrong/ask", b"{}", 403), (served.url + "ask", b"no", 400)]
    requests.append((served.url + "ask", b'{"kind":"lose"}', 400))
    for url, body, status in requests:
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(urllib.request.Request(url, body), timeout=10)
        assert error.value.code == status


def test_the_page_shows_the_run_and_its_buttons_reach_the_run(
    served: Served, browser: Any, lossy_run: Any, tmp_path: Path
) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    def text(name: str) -> str:
        found: str = browser.find_element("id", name).text
        return found

    wait = WebDriverWait(browser, 60)
    browser.get(served.url)
    wait.until(lambda _: text("state") == "starting")
    for file in ("metrics.jsonl", "impairments.jsonl", "arrivals.jsonl"):
        (tmp_path / file).write_bytes((lossy_run.folder / file).read_bytes())
    wait.until(lambda _: text("state") in ("running", "stalled"))
    assert "6 / 6" in text("jobs")
    assert browser.find_elements("css selector", "#loss polyline")
    button = browser.find_element("css selector", "[data-kind='cut off']")
    button.click()
    wait.until(lambda _: "h1: cut off for 3 s" in text("asked"))
    (asked,) = run_folder.AskedInterventions(tmp_path)()
    assert (asked.link, asked.spec["rate"]) == ("h1", 1.0)
    seconds = browser.find_element("id", "seconds")
    seconds.clear()
    seconds.send_keys("90")
    browser.find_element("css selector", "[data-kind='lose']").click()
    wait.until(lambda _: "at most 60 s" in text("answer"))
    browser.set_window_size(500, 900)  # Chromium's narrowest window
    assert browser.execute_script("return document.body.scrollWidth <= window.innerWidth")
    severe = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert all("ask - Failed" in line["message"] for line in severe), severe  # the refused one
    served.finish()
    wait.until(lambda _: text("state") == "finished")
    assert not button.is_enabled()


def test_a_study_has_no_page() -> None:
    result = CliRunner().invoke(app, ["run", "thc-fig2b", "--web"])
    assert result.exit_code == 2
    assert "a study has no network" in result.output
