"""Runs beside background traffic, on both networks."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import load, load_deployment
from gradplane.hosts.drivers.background import Sender
from gradplane.pages.report import page
from gradplane.runs import run_experiment
from gradplane.runs.records.summary import Summary, datagrams_sent
from gradplane.runs.replayer.replay_run import ReplayResult, replay
from gradplane.runs.run_experiment import run
from gradplane.switch.ports.pcap import PcapWriter

Runs = Callable[..., Summary]

SLOW = ('topology.rate="20Mbit"', "job.reliability=retransmit", "job.timeout_ms=20")
FLOW = 'traffic=[{source="h2", destination="h1", rate="15Mbit"}]'
POSSIBLE, REASON = run_experiment.mininet_possible()


def test_a_flow_slows_a_run_down_and_changes_no_sum(small_run: Runs) -> None:
    alone, beside = small_run(*SLOW), small_run(*SLOW, FLOW)
    assert beside.values["seconds"] > 1.1 * alone.values["seconds"]
    assert beside.weights == alone.weights
    (flow,) = beside.values["background"]
    assert 0 < flow["received"] <= flow["sent"]
    expected = 15e6 * beside.values["seconds"] / (8 * 1442)
    assert flow["sent"] == pytest.approx(expected, rel=0.1)
    assert "background" not in alone.values
    assert "Background traffic" in page.write([beside.folder]).read_text()


def test_a_queue_that_overflows_drops_both_and_the_run_replays_equal(small_run: Runs) -> None:
    """A flow beyond the link's rate, one that starts later, and one of so many bytes."""
    flows = (
        'traffic=[{source="h2", destination="h1", rate="30Mbit", arrivals="poisson"},'
        ' {source="h3", destination="h2", rate="5Mbit", start_ms=2.0, stop_ms=4.0},'
        ' {source="h1", destination="h3", rate="20Mbit", packet=500, size=5000}]'
    )
    summary = small_run(*SLOW, "topology.queue=4", flows)
    assert summary.values["background"][0]["received"] < summary.values["background"][0]["sent"]
    assert summary.values["background"][2]["sent"] == 10
    result = replay(summary.folder)
    assert isinstance(result, ReplayResult)
    assert result.equal, result.text()


def test_a_capture_gives_sizes_and_times(small_run: Runs, tmp_path: Path) -> None:
    """A frame that was captured before its segmentation is sent as several."""
    times = iter([5, 5 + 1_000_000, 5 + 2_000_000])
    with PcapWriter(tmp_path / "x.pcap", lambda: next(times)) as writer:
        for size in (60, 1000, 2000):
            writer.write(bytes(size))
    capture = f'file="{tmp_path}/x.pcap"'
    flow = f'traffic=[{{source="h2", destination="h1", {capture}, start_ms=0.5}}]'
    summary = small_run(*SLOW, flow)
    (counts,) = summary.values["background"]
    assert (counts["sent"], counts["received"], counts["packet"]) == (4, 4, 1472)
    assert counts["captured"] == 4 and datagrams_sent([counts]) == "4"
    assert datagrams_sent([counts | {"sent": 3}, counts]) == "7 of 8"
    (section,) = load(summary.folder / "experiment.toml").traffic
    sizes = ((0, 60), (1_000_000, 1000), (2_000_000, 1514), (2_000_000, 486))
    assert (section.file, section.packets) == (None, sizes)
    clock, calls, sent = [0], list[Any](), list[Any]()
    env: Any = SimpleNamespace(now=lambda: clock[0], call_at=lambda *call: calls.append(call))
    env.send = lambda send: sent.append((clock[0], len(send.payloads)))
    flow_config = section.flow(0, load_deployment(summary.folder / "experiment.toml").topology)
    Sender(flow_config, env).start()
    while calls:
        clock[0], send = calls.pop()
        send()
    assert sent == [(500_000, 1), (1_500_000, 1), (2_500_000, 2)]


@pytest.mark.skipif(not POSSIBLE, reason=REASON)
def test_on_mininet(experiment_file: Path, tmp_path: Path) -> None:
    flow = 'traffic=[{source="h2", destination="h1", rate="1Mbit", size=20000}]'
    settings = ["job.reliability=retransmit", "job.timeout_ms=2000", flow]
    summary = run(experiment_file, tmp_path / "run", net="mininet", settings=settings)
    (counts,) = summary.values["background"]
    assert 0 < counts["sent"] <= 15 and counts["received"] <= counts["sent"]
    result = replay(summary.folder)
    assert isinstance(result, ReplayResult)
    assert result.equal, result.text()


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        ('{source="h9", destination="h1", rate="1Mbit"}', 'no host "h9"'),
        ('{source="h1", destination="h1", rate="1Mbit"}', "source and destination are both h1"),
        ('{source="h1", destination="h2", rate="fast"}', 'rate = "fast"'),
        ('{source="h1", destination="h2"}', "rate is missing"),
        (
            '{source="h1", destination="h2", rate="1Mbit", packet=1473}',
            "packet = 1473: expected from 8",
        ),
        (
            '{source="h1", destination="h2", rate="1Mbit", start_ms=2, stop_ms=1}',
            "stop_ms = 1.* is not after start_ms = 2",
        ),
        ('{source="h1", destination="h2", rate="1Mbit", speed=2}', "unknown key traffic.0.speed"),
    ],
)
def test_what_is_refused(experiment_file: Path, flow: str, message: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        load(experiment_file, [f"traffic=[{flow}]"])
    assert re.search(message, str(refused.value)), str(refused.value)
