"""Independent parts of a study: results in order, progress, the first exception."""

import math
import os
import time

import pytest

from gradplane.runs import isolation
from gradplane.studies import parallel


@pytest.mark.parametrize("processors", [{0}, {0, 1}])
def test_each_returns_results_in_order_and_says_how_far_it_is(
    processors: set[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: processors)
    assert parallel.each(math.factorial, [(3,), (4,), (5,)], "number") == [6, 24, 120]
    assert capsys.readouterr().err.splitlines() == [f"number {n} of 3 done" for n in (1, 2, 3)]


def test_cases_that_need_the_machine_alone_run_in_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert set(parallel.each(os.getpid, [(), ()], "number", alone=True)) == {os.getpid()}
    assert os.getpid() not in parallel.each(os.getpid, [(), ()], "number")


def test_each_raises_what_a_part_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    with pytest.raises(ValueError, match="not defined for negative values"):
        parallel.each(math.factorial, [(3,), (-1,)], "number")


def test_a_single_part_needs_no_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert parallel.each(lambda n: n + 1, [(1,)], "number") == [2]
    assert capsys.readouterr().err == ""


def test_the_processor_time_of_the_parts_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    own, all_of_it = time.process_time(), isolation.processor_seconds()
    parallel.each(sum, [(range(10_000_000),), (range(10_000_000),)], "number")
    own, all_of_it = time.process_time() - own, isolation.processor_seconds() - all_of_it
    assert all_of_it > own + 0.05
