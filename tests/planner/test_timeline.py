"""The compiled timeline equals the plain one, on random jobs and after any change."""

import random

import pytest
from random_jobs import random_job

from gradplane.planner.compiled import Timeline, evaluate
from gradplane.planner.job import PLAIN, job
from gradplane.planner.timeline import backward_time, bubbles, events


@pytest.mark.parametrize("tensors", [1, 2, 3, 8, 40])
def test_both_timelines_are_equal(tensors: int) -> None:
    rng = random.Random(tensors)
    for _ in range(20):
        case = random_job(rng, tensors)
        strategy = [rng.randrange(4) for _ in range(tensors)]
        timeline = Timeline(case, strategy)
        assert timeline.time == backward_time(case, strategy)
        for _ in range(4):
            tensor, slot = rng.randrange(tensors), rng.randrange(4)
            strategy[tensor] = slot
            assert timeline.change(tensor, slot) == backward_time(case, strategy)


@pytest.mark.parametrize("tensors", [1, 4, 20])
def test_the_best_slot_is_that_of_all_timelines(tensors: int) -> None:
    rng = random.Random(tensors)
    for _ in range(20):
        case = random_job(rng, tensors)
        strategy = [rng.randrange(4) for _ in range(tensors)]
        tensor = rng.randrange(tensors)
        slot, time = Timeline(case, strategy).best_slot(tensor, (0, 1, 2))
        trials = [[*strategy[:tensor], s, *strategy[tensor + 1 :]] for s in range(4)]
        times = [backward_time(case, trial) for trial in trials]
        assert time == min(times) == times[slot]


@pytest.mark.parametrize("tensors", [2, 5, 12])
def test_no_single_change_helps_after_all_have_been_tried(tensors: int) -> None:
    rng = random.Random(tensors)
    for _ in range(20):
        case = random_job(rng, tensors)
        timeline = Timeline(case, [rng.randrange(4) for _ in range(tensors)])
        timeline.improve()
        strategy = timeline.strategy.tolist()
        assert timeline.time == backward_time(case, strategy)
        for tensor in range(tensors):
            others = [s for s in range(4) if s != strategy[tensor]]
            trials = [[*strategy[:tensor], s, *strategy[tensor + 1 :]] for s in others]
            times = [backward_time(case, trial) for trial in trials]
            assert timeline.time <= min(times)
            assert timeline.next_best(tensor)[1] == min(times)


def test_tensors_before_a_bubble_are_those_of_the_plain_timeline() -> None:
    rng = random.Random(5)
    for _ in range(100):
        case = random_job(rng, 6)
        strategy = [rng.randrange(4) for _ in range(6)]
        timeline = events(case, strategy)
        last = max((start for start, _ in bubbles(timeline)), default=-1.0)
        expected = {
            tensor
            for tensor in range(6)
            if case.kind[tensor, strategy[tensor]] == PLAIN
            and max(e.end for e in timeline if e.tensor == tensor and e.resource >= 2) <= last
        }
        assert Timeline(case, strategy).before_bubble() == expected


def test_a_small_timeline_by_hand() -> None:
    """GPU compression delays the next computation; the links work beside it."""
    case = job([2, 3], [4, 4], [[[(3, 6)], [(0, 1), (3, 2), (0, 1)]]] * 2)
    assert [evaluate(case, s) for s in ([0, 0], [1, 0], [0, 1], [1, 1])] == [14, 12, 11, 10]
    found = [(e.resource, e.tensor, e.start, e.end) for e in events(case, [1, 1])]
    assert found == [
        (0, 0, 0, 2), (0, 0, 2, 3), (3, 0, 3, 5), (0, 1, 3, 6), (0, 1, 6, 7), (0, 0, 7, 8),
        (3, 1, 7, 9), (0, 1, 9, 10),
    ]  # fmt: skip
    assert bubbles(events(case, [1, 1])) == [(5, 7)]


def test_a_strategy_must_fit_the_job() -> None:
    case = job([1], [1], [[[(3, 1)]]])
    with pytest.raises(ValueError, match="slot 1 of tensor 0: it must be from 0 to 0"):
        Timeline(case, [1])
    with pytest.raises(ValueError, match="2 slots for 1 tensors"):
        backward_time(case, [0, 0])
