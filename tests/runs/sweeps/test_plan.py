"""The plan of a sweep: checked as a whole before anything starts, kept as JSON, continued."""

import json
from pathlib import Path

import pytest

from gradplane.experiment.document import ExperimentError
from gradplane.runs.sweeps.axes import axes
from gradplane.runs.sweeps.plan import Plan, continued, make_plan, with_seeds
from gradplane.runs.sweeps.plan_file import SweepError

ROOT = Path(__file__).parents[3]


def planned(source: Path, *over: str, seeds: int = 1, set_keys: tuple[str, ...] = ()) -> Plan:
    return make_plan(source, axes(over), seeds, set_keys=set_keys)


def test_runs_are_every_point_under_every_seed(swept_file: Path) -> None:
    plan = planned(swept_file, "job.slots=4,8", seeds=3, set_keys=("seed=7",))
    assert plan.network == "sim" and plan.seeds == (7, 8, 9)
    assert [run.name for run in plan.runs][:3] == [
        "point-1-seed-7",
        "point-2-seed-7",
        "point-1-seed-8",
    ]
    assert [values["job"][0]["slots"] for values in plan.experiments] == [4, 8]


def test_it_is_kept_as_json(swept_file: Path) -> None:
    plan = planned(swept_file, 'job.push={name="thc", bits=4},thc', "job.lr=0.1,0.2")
    assert Plan.from_json(json.loads(json.dumps(plan.as_json()))) == plan


def test_all_that_is_wrong_is_said_before_anything_starts(swept_file: Path) -> None:
    with pytest.raises(ExperimentError) as refused:
        planned(swept_file, "job.quorum=1,2,3", "job.slotz=4,8")
    assert str(refused.value).splitlines() == [
        '--over job.slotz=4: unknown key job.0.slotz: did you mean "slots"?',
        '--over job.slotz=8: unknown key job.0.slotz: did you mean "slots"?',
        "--over job.quorum=3: quorum = 3 of 2 workers: use 1 to 2",
    ]
    with pytest.raises(ExperimentError) as refused:
        planned(swept_file, "job.quorum=1,2,3")
    assert str(refused.value).startswith("--over job.quorum=3: quorum = 3 of 2 workers")


def test_defaults_follow_from_each_point(swept_file: Path) -> None:
    plan = planned(swept_file, "topology.workers=2,3")
    assert [values["job"][0]["workers"] for values in plan.experiments] == [2, 3]


def test_studies_are_not_swept() -> None:
    with pytest.raises(SweepError, match="a study has its own repetitions"):
        planned(ROOT / "experiments" / "thc-fig15.toml")


def test_a_stored_plan_goes_on_with_the_same_points_and_more_seeds(swept_file: Path) -> None:
    stored = planned(swept_file, "job.slots=4,8", seeds=2)
    more = continued(stored, planned(swept_file, "job.slots=4,8", seeds=3))
    assert (more.identity, more.seeds) == (stored.identity, (1, 2, 3))
    with pytest.raises(SweepError, match="--seeds 1: the folder's sweep has 2 seeds already"):
        with_seeds(stored, 1)


@pytest.mark.parametrize(
    ("over", "set_keys", "message"),
    [
        ("job.slots=4,16", (), r"is over job.slots=4,8, and this one over job.slots=4,16"),
        ("job.slots=4,8", ("job.lr=0.5",), "another experiment: it differs in job.lr"),
    ],
)
def test_another_plan_is_not_a_continuation(
    swept_file: Path, over: str, set_keys: tuple[str, ...], message: str
) -> None:
    stored = planned(swept_file, "job.slots=4,8")
    with pytest.raises(SweepError, match=message):
        continued(stored, planned(swept_file, over, set_keys=set_keys))
