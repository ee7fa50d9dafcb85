"""Workers that crash and come back, or join late, in whole runs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import load as loaded
from gradplane.runs import run_experiment
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer.replay_run import ReplayResult, replay

Runs = Callable[..., Summary]

MININET, WHY_NOT = run_experiment.mininet_possible()
CRASH = '{model="crash", worker=0, round=2, back=5}'
LATE = '{model="late join", worker=1, round=1}'
LOSS = '{model="bernoulli", rate=0.05}'
SMALL = ("job.quorum=1", "job.epochs=4", "output.baseline=false", "output.report=false")


def workers(summary: Summary) -> list[list[int]]:
    """Return the workers of each round."""
    metrics = RunData.read(summary.folder).metrics
    return [[worker["worker"] for worker in line["workers"]] for line in metrics]


def events(summary: Summary) -> list[tuple[str, int, int]]:
    """Return kind, worker and round of each crash and join."""
    kinds = ("crash", "join")
    lines = [line for line in RunData.read(summary.folder).arrivals if line["kind"] in kinds]
    return sorted((line["kind"], line["worker"], line["training_round"]) for line in lines)


def replays_equal(summary: Summary) -> None:
    """Check that the run replays equal."""
    result = replay(summary.folder)
    assert isinstance(result, ReplayResult)
    assert result.equal, result.text()


def check(summary: Summary, size: int) -> None:
    """Check who took part in each round of a run with CRASH and LATE, and how it ended."""
    for round, here in enumerate(workers(summary)):
        away = {0} if 2 <= round < 5 else {1} if round < 1 else set()
        assert here == sorted(set(range(size)) - away)
    joins = [("join", w, 1) for w in range(size)] + [("join", w, 5) for w in range(size)]
    assert events(summary) == sorted([("crash", 0, 2), *joins])
    assert len(summary.values["jobs"][0]["weights"]) == size
    replays_equal(summary)


@pytest.mark.parametrize("reliability", ["lossy", "retransmit"])
def test_who_was_away_goes_on_with_the_weights_of_the_others(
    small_run: Runs, reliability: str
) -> None:
    settings = (f"job.reliability={reliability}", f"impairment=[{CRASH}, {LATE}]")
    summary = small_run(*SMALL, *settings)
    size = len(summary.values["jobs"][0]["weights"])
    check(summary, size)
    for line in RunData.read(summary.folder).metrics:
        assert len({worker["weights"] for worker in line["workers"]}) == 1


def test_with_losses_and_synchronisation_without_its_coordinator(small_run: Runs) -> None:
    summary = small_run(*SMALL, "job.sync=true", f"impairment=[{CRASH}, {LATE}, {LOSS}]")
    check(summary, len(summary.values["jobs"][0]["weights"]))


def test_a_worker_may_be_drawn_by_the_seed(experiment_file: Path) -> None:
    drawn = CRASH.replace("worker=0, ", "")
    settings = (*SMALL, f"impairment=[{drawn}, {LATE}, {drawn}]")
    found = {seed: loaded(experiment_file, settings, seed).absences(0) for seed in range(12)}
    for one, late, other in found.values():
        assert sorted([one.worker, late.worker, other.worker]) == [0, 1, 2] and late.worker == 1
    assert len({one.worker for one, _, _ in found.values()}) == 2
    assert found[5] == loaded(experiment_file, settings, 5).absences(0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["job.aggregation=ps", "job.push=float32"], 'aggregation = "ps": only "switch" goes on'),
        ([LATE.replace("worker=1", "worker=60")], "worker 60: the job's are 0 to"),
        ([CRASH.replace("back=5", "back=5000")], "back = 5000: the job has"),
        ([CRASH.replace("back=5", "back=2")], "back = 2 is not after round = 2"),
        ([CRASH, CRASH.replace("round=2, back=5", "round=5, back=6")], "away again before it is"),
        ([CRASH.replace("}", ", job=7}")], "job 7: the jobs are 0 to 0"),
        (["job.reliability=retransmit"], 'quorum is 3: use quorum ≤ 2, or reliability = "lossy"'),
    ],
)
def test_what_a_job_cannot_go_on_with_is_refused(
    experiment_file: Path, tmp_path: Path, settings: list[str], message: str
) -> None:
    listed = [text for text in settings if text.startswith("{")] or [CRASH]
    keys = [text for text in settings if not text.startswith("{")]
    changed = ["job.epochs=4", "job.quorum=3", f"impairment=[{', '.join(listed)}]", *keys]
    with pytest.raises(ExperimentError) as error:
        run_experiment.run(experiment_file, tmp_path / "run", net="sim", settings=changed)
    assert message in str(error.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not MININET, reason=WHY_NOT)
def test_on_mininet_the_process_dies_and_another_takes_its_place(
    experiment_file: Path, tmp_path: Path
) -> None:
    settings = [*SMALL, f"impairment=[{CRASH}, {LATE}]"]
    summary = run_experiment.run(
        experiment_file, tmp_path / "run", net="mininet", settings=settings
    )
    check(summary, len(summary.values["jobs"][0]["weights"]))
