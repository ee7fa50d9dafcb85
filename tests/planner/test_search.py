"""The searches: Algorithms 1 and 2, ours, the optimum and the bound."""

import random

import pytest
from random_jobs import random_job

from gradplane.planner import search
from gradplane.planner.balance import lower_bound
from gradplane.planner.compiled import evaluate
from gradplane.planner.inputs import Compression, Model, System, load
from gradplane.planner.job import ON_GPU, build


def test_our_search_is_near_the_optimum_and_never_worse_than_the_algorithms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "EXHAUSTIVE", 0)
    rng, excess = random.Random(14), []
    for _ in range(200):
        case = random_job(rng, rng.randint(2, 6))
        ours = evaluate(case, search.search(case))
        theirs = evaluate(case, search.algorithm2(case, search.algorithm1(case)))
        least = evaluate(case, search.optimum(case))
        assert lower_bound(case) <= least * (1 + 1e-9)
        assert least <= ours <= theirs
        excess.append(ours / least - 1)
    assert sum(excess) / len(excess) <= 0.003


def test_algorithm1_uses_the_gpu_alone_and_algorithm2_offloads() -> None:
    rng = random.Random(3)
    for _ in range(50):
        case = random_job(rng, 8)
        first = search.algorithm1(case)
        assert all(case.kind[t, slot] <= ON_GPU for t, slot in enumerate(first))
        second = search.algorithm2(case, first)
        assert evaluate(case, second) <= evaluate(case, first)
        pairs = enumerate(zip(first, second, strict=True))
        assert all(b in (a, case.mirror[t, a]) for t, (a, b) in pairs)


def test_offloading_group_by_group_is_no_better_than_every_combination() -> None:
    rng = random.Random(4)
    for _ in range(20):
        case = random_job(rng, 10)
        first = search.algorithm1(case)
        every = evaluate(case, search.algorithm2(case, first))
        by_group = evaluate(case, search.algorithm2(case, first, combinations=0))
        assert every <= by_group <= evaluate(case, first)


@pytest.mark.parametrize("system", ["nvlink-100g", "pcie-25g"])
@pytest.mark.parametrize("model", ["lstm", "gpt2", "resnet101"])
def test_a_shipped_job_is_planned_between_the_bound_and_the_algorithms(
    model: str, system: str
) -> None:
    case = build(load(Model, model), load(Compression, "dgc"), load(System, system))
    ours = evaluate(case, search.search(case))
    theirs = evaluate(case, search.algorithm2(case, search.algorithm1(case), 1000))
    assert lower_bound(case) <= ours <= theirs <= evaluate(case, search.uncompressed(case))


def test_a_search_gives_the_same_strategy_each_time() -> None:
    case = build(load(Model, "gpt2"), load(Compression, "efsignsgd"), load(System, "pcie-25g"))

    assert search.search(case) == search.search(case)
