"""Compute times: fixed, each worker's, drawn, from a trace."""

from statistics import fmean, stdev

import pytest

from gradplane.hosts.training.compute_times import DISTRIBUTIONS, compute_ns


def test_fixed_times_and_each_workers() -> None:
    assert compute_ns(5, 1, 0, 0) == 5
    assert [compute_ns([5, 7], 1, worker, 3) for worker in (0, 1)] == [5, 7]


def test_a_trace_begins_again_after_its_last_row() -> None:
    one, each = {"trace": [[10], [20]]}, {"trace": [[10, 11], [20, 21]]}
    assert [compute_ns(one, 1, 1, number) for number in range(3)] == [10, 20, 10]
    assert [compute_ns(each, 1, 1, number) for number in range(3)] == [11, 21, 11]


SPECS = [
    ({"distribution": "normal", "mean": 1e6, "sd": 1e5}, 1e6, 1e5),
    ({"distribution": "lognormal", "mean": 1e6, "sd": 5e5}, 1e6, 5e5),
    ({"distribution": "exponential", "mean": 1e6}, 1e6, 1e6),
    ({"distribution": "uniform", "low": 1e6, "high": 3e6}, 2e6, 2e6 / 12**0.5),
    ({"distribution": "pareto", "mean": 1e6, "alpha": 4.0}, 1e6, 1e6 / 8**0.5),
]


@pytest.mark.parametrize(("spec", "mean", "deviation"), SPECS)
def test_drawn_times_have_the_mean_and_deviation(
    spec: dict[str, float], mean: float, deviation: float
) -> None:
    sample = [compute_ns(spec, 1, worker, number) for worker in range(8) for number in range(1000)]
    assert fmean(sample) == pytest.approx(mean, rel=0.03)
    assert stdev(sample) == pytest.approx(deviation, rel=0.1)
    assert min(sample) >= 0


def test_every_distribution_is_tried() -> None:
    assert sorted(str(spec["distribution"]) for spec, _, _ in SPECS) == sorted(DISTRIBUTIONS)


def test_a_time_depends_on_seed_worker_and_round_alone() -> None:
    spec = {"distribution": "exponential", "mean": 1e6}
    drawn = {
        (seed, worker, number): compute_ns(spec, seed, worker, number)
        for seed in (1, 2)
        for worker in (0, 1)
        for number in (0, 1)
    }
    assert len(set(drawn.values())) == len(drawn)
    assert drawn == {key: compute_ns(spec, *key) for key in reversed(drawn)}


def test_a_normal_time_is_never_below_zero() -> None:
    spec = {"distribution": "normal", "mean": 1.0, "sd": 1e6}
    assert min(compute_ns(spec, 1, 0, number) for number in range(50)) == 0
