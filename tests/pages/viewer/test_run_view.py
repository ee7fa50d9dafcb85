"""`gradplane view`: a recorded run, packet by packet."""

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
from gradplane.pages.report import rows
from gradplane.pages.viewer.local_server import LocalServer
from gradplane.pages.viewer.run_server import run_server
from gradplane.pages.viewer.run_view import NotThere, Query, RunView, SearchError, parse
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer import round_packets
from gradplane.runs.run_experiment import run


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunView]:
    """Yield the view of the shipped run whose round 46 took 5 s."""
    folder = tmp_path_factory.mktemp("slow") / "slow-round"
    run("slow-round", folder, net="sim", settings=["output.report=false"])
    with RunView(RunData.read(folder)) as view:
        yield view


@pytest.fixture(scope="module")
def lossy(lossy_run: Summary) -> Iterator[RunView]:
    with RunView(RunData.read(lossy_run.folder)) as view:
        yield view


def test_packets_that_a_switch_dropped_unread_are_told() -> None:
    ports = {"1": {"damaged": 0, "other_version": 0}, "2": {"damaged": 1200, "other_version": 1}}
    assert rows.refused({"switches": {"s1": {"ports": ports}}}) == (
        "Packets dropped by a switch: s1 port 2: 1,200 damaged headers,"
        " s1 port 2: 1 of another version."
    )


def test_the_slow_round_leads_to_the_packet_that_was_lost(slow: RunView) -> None:
    overview = slow.overview()
    assert overview["refused"] == ""
    assert overview["slow"][0]["round"] == 46
    assert "slot 3) was lost 13 times on h3's link" in overview["slow"][0]["cause"]
    assert overview["jobs"][0]["rounds"][46]["lost"] == 13

    one = slow.round(0, 46)
    lost = [event for event in one["events"] if event["what"] == "lost"]
    assert len(lost) == 13
    (index,) = {event["packet"] for event in lost}
    row = one["packets"][index]
    assert (row["worker"], row["type"], row["slot"], row["lost"]) == (2, "indices", 3, 13)

    packet = slow.packet(0, 46, index)
    assert packet["recorded"]["attempts"] == 14
    (there,) = packet["passes"]
    assert ["ThcIngress.slot_bitmap", 24, 0b0011, 0b0111] in there["changes"]
    assert there["left"] == []  # the fourth worker's packet completes the sum
    fields = dict(there["layers"][-1]["fields"])
    assert (fields["type"], fields["worker"], fields["slot"]) == ("indices", "2", "3")
    last = slow.packet(0, 46, packet["slot_packets"][-1])
    assert [frame["to"] for frame in last["passes"][0]["left"]] == ["h1", "h2", "h3", "h4"]


def test_executed_lines_are_of_the_program(slow: RunView) -> None:
    lines = {file["file"]: file["lines"] for file in slow.source()}
    (there,) = slow.packet(0, 0, 5)["passes"]
    written = [e for e in there["events"] if e["text"].startswith("ThcIngress.slot_bitmap.write")]
    assert len(written) == 8  # one a pass through the pipeline
    file, line = written[0]["place"]
    assert "slot_bitmap.write" in lines[file][line - 1]


def test_rounds_in_any_order_have_the_same_packets(slow: RunView) -> None:
    later, first = slow.round(0, 20), slow.round(0, 2)
    for number in range(30, 40):  # more than are remembered
        slow.round(0, number)
    assert slow.round(0, 2) == first
    assert slow.round(0, 20) == later


def test_a_page_that_waits_says_how_far_the_re_enactment_is(
    lossy_run: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, begin = [], round_packets._RecordingNetwork.begin
    with RunView(RunData.read(lossy_run.folder)) as view:
        assert view.waiting() == {"text": ""}

        def watched(network: object, record: bool) -> None:
            said.append(view.waiting()["text"])
            begin(network, record)

        monkeypatch.setattr(round_packets._RecordingNetwork, "begin", watched)
        view.round(0, 2)
        assert view.waiting() == {"text": ""}
    assert said[0] == "re-enacting the run: round 0 of 2"
    assert re.fullmatch(r"re-enacting the run: round 1 of 2, \d+ s left", said[1])
    assert len(said) == 3


def never_came(view: RunView) -> tuple[int, int]:
    """Return the round and the number of a packet that was lost on its way."""
    for one in view.overview()["jobs"][0]["rounds"]:
        for packet in view.round(0, one["round"])["packets"]:
            if packet["fate"].startswith("never came to the switch"):
                return one["round"], packet["index"]
    raise AssertionError("every packet came")


def test_a_packet_that_never_came_to_the_switch(lossy: RunView) -> None:
    packet = lossy.packet(0, *never_came(lossy))
    assert packet["passes"] == []
    assert packet["payload"]["type"] in ("norm", "indices")


LOSSY = """
[topology]
workers = 3

[[job]]
data = "digits"
push = { name = "thc", granularity = 20 }
quorum = 2
epochs = 2

[[impairment]]
model = "bernoulli"
rate = 0.05

[output]
baseline = false
report = false
"""


def test_a_packet_that_came_is_told_from_one_that_never_came(tmp_path: Path) -> None:
    """The results of two workers leave before a lost packet of the third could have come late; two
    that are lost leave one that came, and on which no record depends."""
    (tmp_path / "lossy.toml").write_text(LOSSY)
    folder = run(tmp_path / "lossy.toml", tmp_path / "run", net="sim").folder
    fates: set[str] = set()
    passed_by = 0
    with RunView(RunData.read(folder)) as view:
        for one in view.overview()["jobs"][0]["rounds"]:
            found = view._of(0).of(one["round"])
            for row in view.round(0, one["round"])["packets"]:
                fate = re.sub(r"h\d(, h\d)*|\d+", "N", row["fate"])
                fates.add(fate)
                absent = row["lost"] == row["attempts"]
                assert absent == fate.startswith(("never came", "was not sent")), row
                if absent and found.packets[row["index"]].passes:
                    passed_by += 1
                    assert view.packet(0, one["round"], row["index"])["passes"] == []
    assert passed_by > 0
    came = "came to the switch, and is not re-enacted, as no worker got a result of its slot"
    never = {"never came to the switch", "was not sent: its slot's result came first"}
    assert never | {came, "came late; answered to N"} < fates


def test_workers_of_several_racks_are_told_apart(experiment_file: Path, tmp_path: Path) -> None:
    """A packet's header has its child's number at its leaf: 0 and 1 in each of the two racks."""
    settings = [
        'topology={kind="leaf-spine", leaves=2, hosts_per_leaf=2, spines=1, workers=4}',
        'job.reliability="retransmit"',
        'impairment=[{model="bernoulli", rate=0.2, direction="up"}]',
    ]
    summary = run(experiment_file, tmp_path / "racks", net="sim", settings=settings)
    with RunView(RunData.read(summary.folder)) as view:
        rounds = [view.round(0, number) for number in range(3)]
    about = [
        (event["worker"], one["packets"][event["packet"]])
        for one in rounds
        for event in one["events"]
        if event["packet"] is not None
    ]
    assert {worker for worker, _ in about} >= {2, 3}
    for worker, packet in about:
        assert (packet["worker"], packet["host"]) == (worker, f"h{worker + 1}")
    lost = [event for one in rounds for event in one["events"] if event["what"] == "lost"]
    assert len(lost) > 3  # a re-enactment asks for no status
    assert not [e for e in lost if e["packet"] is None and "status" not in e["text"]]


def test_what_is_not_there_is_named(slow: RunView) -> None:
    with pytest.raises(NotThere, match="the run has 1 jobs, not job 1"):
        slow.round(1, 0)
    with pytest.raises(NotThere, match="job 0 has 66 recorded rounds, not round 66"):
        slow.round(0, 66)
    with pytest.raises(NotThere, match="round 3 has 20 packets, not 100"):
        slow.packet(0, 3, 99)


def test_searches(slow: RunView) -> None:
    assert len(slow.search("round 46 worker 2 lost")["hits"]) == 13
    assert slow.search("round 46 worker 1 lost") == {"hits": [], "more": 0}
    assert [hit["round"] for hit in slow.search("round 12")["hits"]] == [12]
    assert parse("job thc round 4", ["sparse", "thc"]) == Query(job=1, round=4)
    assert parse("Round 4, LOST slot 3") == Query(round=4, slot=3, words=("lost",))
    for text in ("round five", "  "):
        with pytest.raises(SearchError, match="as in: round 46 worker 2 lost"):
            parse(text)


@pytest.fixture(scope="module")
def server(slow: RunView, lossy: RunView) -> Iterator[LocalServer]:
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    served = run_server([slow, lossy])
    thread = threading.Thread(target=served.run)
    thread.start()
    yield served
    served.stop()
    thread.join()


def status(url: str, **headers: str) -> int:
    try:
        request = urllib.request.Request(url, headers=headers)
        return int(urllib.request.urlopen(request, timeout=60).status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_server_answers_its_own_pages_only(server: LocalServer) -> None:
    url = server.url
    assert url.startswith("http://127.0.0.1:")
    base = url[: url.index("/", 8)]
    assert status(url) == 200
    assert status(f"{base}/") == status(f"{base}/wrong-token/runs") == 403
    assert status(f"{url}runs", Host="example.org") == 400
    assert status(f"{url}run/2/overview") == 404
    assert status(f"{url}run/0/job/0/round/66") == 404
    assert status(f"{url}run/0/search?q=round%20x") == 400
    assert status(f"{url}run/0/report") == 404
    answer = urllib.request.urlopen(f"{url}run/0/job/0/round/46", timeout=60)
    assert json.load(answer)["round"] == 46


def test_the_page_shows_what_a_lost_packet_says(
    browser: Any, server: LocalServer, lossy: RunView
) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    number, index = never_came(lossy)
    browser.get(f"{server.url}#1/0/{number}/{index}")
    text = "return document.getElementById('packet').innerText"
    WebDriverWait(browser, 60).until(lambda d: "Aggregation" in d.execute_script(text))
    shown = browser.execute_script(text)
    assert "never came to the switch" in shown and "No trace of it in the switch." in shown
    assert {"type", "job", "worker", "slot", "round"} <= set(shown.split())
    assert "[object" not in shown


def test_the_page_shows_what_is_clicked(browser: Any, server: LocalServer) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    def element(selector: str) -> Any:
        return browser.find_element("css selector", selector)

    def shows(selector: str, text: str) -> None:
        found = "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText).join()"
        WebDriverWait(browser, 60).until(lambda d: text in d.execute_script(found, selector))

    browser.get(server.url)
    shows("#slow", "was lost 13 times on h3's link")
    element("#query").send_keys("round 46 worker 2 lost\n")
    shows("#hits", "13 found")
    element("#hits button").click()
    shows("#round h2", "Round 46: 5.049 s")
    shows("#packet h2", "indices of worker 2, slot 3, use 24")
    assert element("#packets tr.chosen .bad").text == "13"
    shows(".source .here", "state start")
    element("body").send_keys("n")
    shows("#packet h2", "indices of worker 3, slot 3")
    shows("#packet summary", "a packet to h4, port 4: Aggregation sums")
    element("body").send_keys("]")
    shows("#round h2", "Round 47")
    metrics = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["view", str(tmp_path)])
    assert done.exit_code != 0
    assert "not a run folder" in str(done.exception) + done.output
