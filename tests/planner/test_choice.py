"""The choice: never slower than the search, and what it adds to the search's candidates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane.planner import search
from gradplane.planner.balance import lower_bound, prices
from gradplane.planner.compiled import evaluate
from gradplane.planner.cost_kernels import few_cheapest
from gradplane.planner.inputs import Compression, Model, System, load
from gradplane.planner.job import Builder
from gradplane.planner.search import choose
from gradplane.planner.timeline import backward_time


@settings(max_examples=15, deadline=None)
@given(
    tensors=st.lists(st.tuples(st.integers(1, 10**7), st.floats(0, 3e-3)), min_size=1, max_size=8),
    system=st.sampled_from(["pcie-25g", "nvlink-100g", "switch-10g"]),
    codec=st.sampled_from(["dgc", "thc"]),
)
def test_a_choice_is_never_slower_than_the_search(
    tensors: list[tuple[int, float]], system: str, codec: str
) -> None:
    builder = Builder(load(Compression, codec), load(System, system))
    size, compute = [n for n, _ in tensors], [seconds for _, seconds in tensors]
    job = builder.job(compute, size)
    timeline = choose(builder, compute, size)
    assert timeline.time <= evaluate(job, search.search(job))
    assert timeline.time == pytest.approx(backward_time(timeline.job, timeline.strategy.tolist()))
    every = builder.job(compute, size, every=True)
    assert lower_bound(every) <= timeline.time * (1 + 1e-9)


@pytest.mark.parametrize("system", ["pcie-25g", "switch-25g"])
@pytest.mark.parametrize("model", ["lstm", "bert-base"])
def test_more_candidates_keep_the_slots_of_the_first_ones(model: str, system: str) -> None:
    builder = Builder(load(Compression, "thc"), load(System, system))
    tensors = load(Model, model).tensors
    compute, size = [t.compute for t in tensors], [t.values for t in tensors]
    job = builder.job(compute, size)
    price = prices(job)
    assert price.sum() == pytest.approx(1)
    wider = builder.job(compute, size, prices=np.array([price]))
    assert wider.count.sum() > job.count.sum()
    for group, count in enumerate(job.count):
        assert job.option[group, :count].tolist() == wider.option[group, :count].tolist()


@given(
    times=st.lists(st.lists(st.floats(0, 1e3), min_size=5, max_size=5), min_size=3, max_size=30),
    prices=st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=3),
)
def test_the_few_cheapest_are_those_of_a_sort(
    times: list[list[float]], prices: list[list[float]]
) -> None:
    table, priced = np.array(times), np.array(prices)
    found = few_cheapest(table, priced, 3)
    costs = sum(table[:, r, None] * priced[None, :, r] for r in range(4))
    for at, row in enumerate(found):
        assert len(set(row.tolist())) == 3
        expected = np.sort(costs[:, at])[:3]
        assert costs[row, at] == pytest.approx(expected, rel=1e-12)


def test_tasks_that_options_share_cost_the_same_in_a_table_of_all() -> None:
    """`loads` goes on from the tasks that an option shares with the one before it."""
    builder = Builder(load(Compression, "thc"), load(System, "switch-10g"))
    size = 1_000_003
    loads = builder.job([0.0], [size], every=True).loads[0]
    for slot in range(0, len(builder.tables.options), 37):
        tasks = builder.costs.task_times(builder.tables.options[slot], size)
        for resource in range(4):
            expected = sum(seconds for _, used, seconds in tasks if used == resource)
            assert loads[slot, resource] == pytest.approx(expected)
    assert builder._loads == {}
    builder.job([0.0], [size])
    (table,) = builder._loads.values()
    assert table[0, :, :4] == pytest.approx(loads)
