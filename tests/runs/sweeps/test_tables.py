"""Means and intervals, metrics, and how they are written."""

from math import isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane.pages.report.sweep_page import estimate_text, interval
from gradplane.runs.sweeps.tables import METRICS, Estimate, quantile


def test_the_quantiles_are_students() -> None:
    """Two-sided 95 %, from any table of the distribution."""
    table = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 29: 2.045}
    for freedom, value in table.items():
        assert quantile(freedom) == pytest.approx(value, abs=5e-4)


def test_a_sample_worked_by_hand() -> None:
    found = Estimate.of([1.0, 2.0, 3.0, None, nan])
    assert (found.mean, found.count) == (2.0, 3)
    assert found.half == pytest.approx(4.303 * 1 / sqrt(3), abs=1e-3)
    assert (found.low, found.high) == (2.0 - found.half, 2.0 + found.half)


def test_one_run_has_no_interval_and_none_has_no_mean() -> None:
    assert Estimate.of([5.0]).mean == 5.0 and isnan(Estimate.of([5.0]).half)
    seconds = next(metric for metric in METRICS if metric.name == "seconds_to_accuracy")
    assert estimate_text(Estimate.of([0.97, None, None]), seconds) == "0.97 (1 of 3)"
    assert estimate_text(Estimate.of([2.0, 2.0]), seconds) == "2"
    assert estimate_text(Estimate.of([None, None]), seconds) == "-"
    assert isnan(Estimate.of([]).mean) and Estimate.of([None, nan]).count == 0


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.floats(-1e3, 1e3))
def test_intervals_shift_with_the_sample(sample: list[float], shift: float) -> None:
    one, other = Estimate.of(list(sample)), Estimate.of([value + shift for value in sample])
    assert other.mean == pytest.approx(one.mean + shift, rel=1e-6, abs=1e-6)
    assert other.half == pytest.approx(one.half, rel=1e-6, abs=1e-6)


def test_the_interval_covers_the_mean_19_times_in_20() -> None:
    samples = np.random.default_rng(1).normal(3.0, 2.0, (4000, 5))
    inside = [
        abs(Estimate.of(list(sample)).mean - 3.0) <= Estimate.of(list(sample)).half
        for sample in samples
    ]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(
    ("mean", "half", "percent", "text"),
    [
        (0.9123, 0.0042, True, "91.23 ± 0.42 %"),
        (0.9123, nan, True, "91.23%"),
        (12.3456, 0.123, False, "12.35 ± 0.12"),
        (12345.6, 321.0, False, "12,346 ± 321"),
        (0.0123456, 0.00034, False, "0.01235 ± 0.00034"),
        (0.00263212, 3.3e-19, False, "0.002632"),  # of ten equal values
        (0.05, nan, False, "0.05"),
        (2048.0, 0.0, False, "2,048"),
    ],
)
def test_how_an_interval_is_written(mean: float, half: float, percent: bool, text: str) -> None:
    assert interval(mean, half, percent) == text
