"""Bounds by CP-SAT, where OR-Tools is installed."""

import importlib.util
import random
import sys

import pytest
from random_jobs import random_job

from gradplane.planner import search
from gradplane.planner.balance import lower_bound
from gradplane.planner.compiled import evaluate
from gradplane.planner.cp_bound import bound
from gradplane.planner.inputs import PlannerError

ORTOOLS = importlib.util.find_spec("ortools") is not None
needed = pytest.mark.skipif(not ORTOOLS, reason="OR-Tools is not installed: gradplane[bounds]")


@needed
def test_a_small_jobs_bound_is_not_above_its_optimum() -> None:
    rng, reached = random.Random(5), 0
    for _ in range(20):
        case = random_job(rng, rng.randint(2, 5))
        least = evaluate(case, search.optimum(case))
        found = bound(case)
        assert found.proven
        assert lower_bound(case) <= found.seconds <= least * (1 + 1e-9)
        reached += found.seconds >= 0.999 * least
    assert reached >= 10


@needed
def test_our_search_is_near_the_bound_of_a_larger_job() -> None:
    rng = random.Random(6)
    for _ in range(3):
        case = random_job(rng, 20)
        strategy = search.search(case)
        ours, found = evaluate(case, strategy), bound(case, 1, strategy)
        assert lower_bound(case) <= found.seconds <= ours * (1 + 1e-9)


def test_without_ortools_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ortools", "ortools.sat", "ortools.sat.python"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(PlannerError, match=r"pip install gradplane\[bounds\]"):
        bound(random_job(random.Random(1), 2))
