"""gradplane.planner.simple: the model of Espresso's figures 2 and 9, and the searches on it."""

import doctest
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane.planner import simple
from gradplane.planner.simple import (
    Tensor,
    algorithm1,
    algorithm2,
    best,
    communications,
    iteration_time,
    optimum,
)

times = st.integers(0, 12)
tensor = st.builds(Tensor, st.sampled_from([1, 2, 4, 8]), times, times, times, times, times)


def jobs(most: int, least: int = 0) -> st.SearchStrategy[list[Tensor]]:
    return st.lists(tensor, min_size=least, max_size=most)


def exhaustive(tensors: Sequence[Tensor]) -> float:
    strategies = itertools.product("NGC", repeat=len(tensors))
    return min(iteration_time(tensors, "".join(strategy)) for strategy in strategies)


# Figure 2's shape: three tensors whose communication is longer than their computation.
THREE = [Tensor(2, 3, 3, 1, 1, 2), Tensor(4, 3, 5, 2, 1, 3), Tensor(4, 3, 5, 2, 1, 3)]


@pytest.mark.parametrize(
    ("strategy", "link"),
    [
        ("NNN", [(0, 3, 6), (1, 6, 11), (2, 11, 16)]),
        ("NNG", [(0, 3, 6), (1, 6, 11), (2, 11, 13)]),
        ("GGG", [(0, 4, 5), (1, 8, 10), (2, 12, 14)]),
        ("CCC", [(0, 5, 6), (1, 9, 11), (2, 12, 14)]),
        ("NCG", [(0, 3, 6), (1, 9, 11), (2, 11, 13)]),
    ],
)
def test_the_timeline(strategy: str, link: list[tuple[int, int, int]]) -> None:
    assert communications(THREE, strategy) == link
    assert iteration_time(THREE, strategy) == link[-1][2]


def test_the_cpu_compresses_one_tensor_after_another() -> None:
    job = [Tensor(1, 1, 9, 1, 1, 10), Tensor(1, 1, 9, 1, 1, 10)]
    assert communications(job, "CC") == [(0, 11, 12), (1, 21, 22)]


def test_a_tensor_that_is_ready_first_is_communicated_first() -> None:
    job = [Tensor(1, 1, 9, 2, 1, 10), Tensor(1, 1, 3, 1, 1, 10)]
    assert communications(job, "CN") == [(1, 2, 5), (0, 11, 13)]


def test_ties_on_the_link_go_in_backward_order() -> None:
    job = [Tensor(1, 1, 9, 2, 1, 3), Tensor(1, 3, 5, 1, 1, 9)]
    assert communications(job, "CN") == [(0, 4, 6), (1, 6, 11)]


def test_the_example_of_the_module() -> None:
    assert doctest.testmod(simple).failed == 0
    assert doctest.testmod(simple).attempted == 3


def test_a_job_without_tensors_takes_no_time() -> None:
    assert iteration_time([], "") == 0
    assert best([]) == optimum([]) == algorithm1([]) == algorithm2([], "") == ""


def test_algorithm1_leaves_what_is_communicated_before_a_bubble() -> None:
    """Compressing the first tensor shortens nothing: the second is not ready when it ends."""
    job = [Tensor(9, 1, 4, 1, 0, 1), Tensor(1, 9, 4, 1, 1, 1)]
    assert algorithm1(job) == "NG"


def test_algorithm1_keeps_a_tensor_uncompressed_on_a_tie() -> None:
    assert algorithm1([Tensor(1, 1, 4, 3, 1, 1)]) == "N"


def test_algorithm1_prefers_the_tensor_nearer_to_the_output_layer() -> None:
    """Compressing either of two equal tensors is enough; the last one is visited first."""
    job = [Tensor(4, 2, 2, 1, 1, 1), Tensor(4, 0, 2, 1, 1, 1)]
    assert iteration_time(job, "NG") <= iteration_time(job, "GN")
    assert algorithm1(job)[0] == "N"


def test_algorithm2_offloads_the_farthest_of_a_group() -> None:
    job = [Tensor(4, 4, 8, 2, 4, 4), Tensor(4, 4, 8, 2, 4, 4)]
    offloaded = algorithm2(job, "GG")
    assert offloaded == "CG"
    assert iteration_time(job, offloaded) < iteration_time(job, "GG")


def test_algorithm2_changes_only_what_the_gpu_compresses() -> None:
    assert algorithm2(THREE, "NNN") == "NNN"
    assert algorithm2(THREE, "CNC") == "CNC"


@given(jobs(5))
def test_the_optimum_is_the_least_of_all_strategies(job: list[Tensor]) -> None:
    assert iteration_time(job, optimum(job)) == exhaustive(job)


@given(jobs(6))
def test_algorithm2_is_the_least_of_its_combinations(job: list[Tensor]) -> None:
    start = "G" * len(job)
    groups: dict[int, list[int]] = {}
    for index, entry in enumerate(job):
        groups.setdefault(entry.size, []).append(index)
    keys = []
    for counts in itertools.product(*(range(len(g) + 1) for g in groups.values())):
        chosen = {i for g, u in zip(groups.values(), counts, strict=True) for i in g[:u]}
        strategy = "".join("C" if i in chosen else "G" for i in range(len(job)))
        keys.append((iteration_time(job, strategy), sum(counts)))
    found = algorithm2(job, start)
    assert (iteration_time(job, found), found.count("C")) == min(keys)


@settings(max_examples=50)
@given(jobs(12))
def test_our_search_is_never_slower_than_the_papers(job: list[Tensor]) -> None:
    theirs = algorithm2(job, algorithm1(job))
    assert iteration_time(job, best(job)) <= iteration_time(job, theirs)
    assert iteration_time(job, theirs) <= iteration_time(job, "N" * len(job))


@settings(max_examples=30)
@given(jobs(6, least=2))
def test_the_local_search_alone_is_close_to_the_optimum(job: list[Tensor]) -> None:
    """Without the exhaustive search of small jobs: a large job is searched that way."""
    exact, simple.EXACT = simple.EXACT, 0
    try:
        found = iteration_time(job, best(job))
    finally:
        simple.EXACT = exact
    assert found <= 1.1 * exhaustive(job)


@given(jobs(6), st.data())
def test_each_tensor_is_communicated_once_and_none_overlap(
    job: list[Tensor], data: st.DataObject
) -> None:
    strategy = data.draw(st.text("NGC", min_size=len(job), max_size=len(job)))
    link = communications(job, strategy)
    assert sorted(entry.tensor for entry in link) == list(range(len(job)))
    assert all(one.end <= other.start for one, other in itertools.pairwise(link))


@pytest.mark.parametrize("strategy", ["NN", "NNNN", "NXG", "nng"])
def test_a_wrong_strategy_is_refused(strategy: str) -> None:
    with pytest.raises(ValueError) as error:
        iteration_time(THREE, strategy)
    assert str(error.value) == (
        f'strategy "{strategy}": it must be 3 letters of N, G and C, one for each tensor in'
        " backward order"
    )


def test_a_negative_time_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^compress_gpu = -1: it must be a number that is at least 0$"
    ):
        Tensor(1, 1, 1, 1, -1, 1)
