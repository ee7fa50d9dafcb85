"""Runs whose switches mark packets at their queues: both networks, both programs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import load_deployment
from gradplane.pages.report import page
from gradplane.runs import run_experiment
from gradplane.runs.records.run_data import Line, RunData
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer.replay_run import ReplayResult, replay
from gradplane.runs.run_experiment import run

Runs = Callable[..., Summary]

ECN = "switch.ecn_threshold=2"
LARGE = ("job.reliability=retransmit", "job.slots=32", "job.epochs=1", "job.model.hidden=[200]")
POSSIBLE, REASON = run_experiment.mininet_possible()


def windows(summary: Summary) -> list[Line]:
    return [line for line in RunData.read(summary.folder).arrivals if line["kind"] == "window"]


def replays_equal(summary: Summary) -> bool:
    result = replay(summary.folder)
    assert isinstance(result, ReplayResult)
    return result.equal


def test_marks_make_windows_small_and_change_no_sum(small_run: Runs) -> None:
    """Three workers on one switch share no link: the queues are those of the results."""
    rates = *LARGE, 'topology.rate="5Mbit"'
    static, adapted = small_run(*rates), small_run(*rates, ECN)
    assert adapted.weights == static.weights
    assert not windows(static)
    lines = windows(adapted)
    rounds = RunData.read(adapted.folder).metrics
    assert len(lines) == 3 * len(rounds)
    assert sum(line["marks"] for line in lines) > 0
    assert all(1 <= line["least"] <= line["size"] <= 16 for line in lines)
    assert replays_equal(adapted)
    assert "Results that were marked at a queue" in page.write([adapted.folder]).read_text()


def test_jobs_that_share_slots_and_their_servers_link_adapt(small_run: Runs) -> None:
    shared = (
        *LARGE, 'topology.rate="5Mbit"', "switch.program=shared.p4", "switch.defines={SLOTS=1}",
        "job.aggregation=shared",
    )  # fmt: skip
    static, adapted = small_run(*shared), small_run(*shared, ECN)
    assert adapted.weights == static.weights
    assert sum(line["marks"] for line in windows(adapted)) > 0
    assert replays_equal(adapted)


def test_marks_of_a_link_between_switches_come_back_to_all_racks(small_run: Runs) -> None:
    racks = (
        *LARGE, "topology.kind=leaf-spine", "topology.leaves=2", 'topology.rate="50Mbit"',
        'topology.fabric_rate="5Mbit"', 'topology.placement="packed"',
    )  # fmt: skip
    static, adapted = small_run(*racks), small_run(*racks, ECN)
    assert adapted.weights == static.weights
    marks = {line["worker"]: 0 for line in windows(adapted)}
    for line in windows(adapted):
        marks[line["worker"]] += line["marks"]
    assert len(marks) == 3 and min(marks.values()) > 0
    assert replays_equal(adapted)


def test_a_spine_alone_sums_what_its_leaves_pass_on(small_run: Runs) -> None:
    racks = *LARGE, "topology.kind=leaf-spine", "topology.leaves=2", 'topology.rate="50Mbit"'
    two, one = small_run(*racks), small_run(*racks, "topology.forwarding_leaves=true")
    assert one.weights == two.weights == small_run(*LARGE).weights
    assert one.values["link_bytes"]["fabric"] > two.values["link_bytes"]["fabric"]
    events = one.values["switches"]
    assert [name for name, switch in events.items() if switch["events"]] == ["s3"]
    assert replays_equal(one)


def test_a_flow_that_adapts_leaves_a_job_its_part_of_a_link(small_run: Runs) -> None:
    """A flow of more than the link of worker 0 carries, beside that worker's results."""
    rates = *LARGE, 'topology.rate="5Mbit"', "topology.queue=30", "switch.ecn_threshold=4"
    flow = 'traffic=[{source="h2", destination="h1", rate="8Mbit", adapts=true}]'
    alone, beside = small_run(*rates), small_run(*rates, flow)
    assert beside.weights == alone.weights
    assert beside.values["seconds"] < 3 * alone.values["seconds"]
    (counts,) = beside.values["background"]
    carried = counts["received"] * 8 * 1442 / beside.values["seconds"]
    assert 5e6 / 4 < carried < 5e6 * 3 / 4
    assert replays_equal(beside)


@pytest.mark.parametrize("target", ["bmv2", "tna"])
def test_other_targets_are_refused(experiment_file: Path, target: str) -> None:
    with pytest.raises(ExperimentError, match=f'ecn_threshold with target "{target}": thc.p4'):
        load_deployment(experiment_file, [ECN, f"switch.target={target}"])


@pytest.mark.skipif(not POSSIBLE, reason=REASON)
def test_windows_adapt_on_mininet(experiment_file: Path, tmp_path: Path) -> None:
    """What waits at a link of 1 Mbit/s is marked, however slow the machine is."""
    slow = *LARGE, 'topology.rate="1Mbit"', "output.baseline=false", ECN
    summary = run(experiment_file, tmp_path / "run", net="mininet", settings=slow)
    assert sum(line["marks"] for line in windows(summary)) > 0
    assert replays_equal(summary)
