"""Damaged, doubled, overtaken and unsteady packets in whole runs: never a wrong sum."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradplane.experiment.impairment_sections import BernoulliSection, DropListSection
from gradplane.experiment.loading import ExperimentError
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer.reenactment import ReplayError
from gradplane.runs.replayer.replay_run import ReplayResult, replay, under_recorded_losses
from gradplane.runs.run_experiment import run

Runs = Callable[..., Summary]

FAULTS = (
    'impairment=[{model="corruption", rate=0.1}, {model="duplication", rate=0.2, delay_ms=0.5},'
    ' {model="duplication", rate=0.1}, {model="reordering", rate=0.1, delay_ms=1.0},'
    ' {model="jitter", delay_ms=0.1, jitter_ms=0.1}]'
)


@pytest.mark.parametrize("scheme", ["switch", "ps", "ring"])
def test_with_retransmission_the_result_is_that_without_faults(
    small_run: Runs, scheme: str
) -> None:
    codec = [] if scheme == "switch" else ["job.push=float32"]
    settings = [f"job.aggregation={scheme}", "job.reliability=retransmit", *codec]
    clean, faulty = small_run(*settings), small_run(*settings, FAULTS)
    assert faulty.weights == clean.weights
    injected = faulty.values["losses_injected"]
    assert {"corrupt", "duplicate", "delay"} <= injected.keys()
    assert sum(job["missed"] for job in faulty.values["jobs"]) == 0


def test_a_lossy_run_replays_equal(small_run: Runs) -> None:
    summary = small_run("job.quorum=2", "job.sync=true", FAULTS)
    result = replay(summary.folder)
    assert isinstance(result, ReplayResult)
    assert result.equal, result.text()


def test_recorded_faults_apply_again_packet_by_packet(small_run: Runs, tmp_path: Path) -> None:
    summary = small_run("job.reliability=retransmit", FAULTS)
    recorded = RunData.read(summary.folder)
    listed = under_recorded_losses(
        recorded.experiment, recorded.verdicts, ["output.baseline=false", "output.report=false"]
    )
    assert len(listed.impairment) > 1, "packets with several verdicts need several lists"
    again = run(listed, tmp_path / "again", net="sim")
    assert again.values["losses_injected"] == summary.values["losses_injected"]
    assert list(again.weights.values()) == list(summary.weights.values())
    assert again.values["seconds"] == summary.values["seconds"]


def test_a_replay_may_change_one_impairment_and_keep_the_losses_of_the_others(
    small_run: Runs,
) -> None:
    """The keys are those of the experiment file; what is changed rules anew."""
    two = 'impairment=[{model="bernoulli", rate=0.3, link="h1"}, {model="nth", n=9, link="h2"}]'
    recorded = RunData.read(small_run("job.reliability=retransmit", two).folder)
    changed = under_recorded_losses(
        recorded.experiment, recorded.verdicts, ["impairment.0.rate=0.01", "job.lr=0.2"]
    )
    kept, anew = changed.impairment
    assert isinstance(kept, DropListSection)
    assert {packet.link for packet in kept.packets} == {"h2"}
    assert isinstance(anew, BernoulliSection)
    assert (anew.rate, anew.link, changed.job[0].lr) == (0.01, "h1", 0.2)
    unknown = r"--set impairment\.0\.n=3: unknown key impairment\.0\.n: "
    with pytest.raises(ExperimentError, match=unknown):
        under_recorded_losses(recorded.experiment, recorded.verdicts, ["impairment.0.n=3"])
    none = under_recorded_losses(recorded.experiment, recorded.verdicts, ["impairment=[]"])
    assert none.impairment == ()
    older = [{k: v for k, v in line.items() if k != "impairment"} for line in recorded.verdicts]
    with pytest.raises(ReplayError, match="does not say which impairment lost a packet"):
        under_recorded_losses(recorded.experiment, older, ["impairment.0.rate=0.01"])


def test_the_verdicts_of_a_run_are_the_losses_of_another(small_run: Runs) -> None:
    first = small_run("job.reliability=retransmit", FAULTS)
    losses = f'impairment=[{{model="recorded", file="{first.folder}"}}]'
    again = small_run("job.reliability=retransmit", losses)
    assert again.values["losses_injected"] == first.values["losses_injected"]
    assert again.weights == first.weights
    listed, anew = RunData.read(again.folder), ("model=bernoulli", "rate=0")
    changes = [f"impairment.0.{one}" for one in anew]
    *_, section = under_recorded_losses(listed.experiment, listed.verdicts, changes).impairment
    assert isinstance(section, BernoulliSection) and section.rate == 0
