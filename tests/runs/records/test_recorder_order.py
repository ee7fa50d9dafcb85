"""Rounds that end in another order than they began are in metrics.jsonl in their own."""

import json
from itertools import permutations
from pathlib import Path

import pytest

from gradplane.hosts.absences import Absence
from gradplane.runs.records.recorder import TRAFFIC, Recorder

ABSENCES = [(Absence(2, 1, 3),)]  # worker 2 may still be in round 0 when the others end round 1


def round_record(worker: int, number: int) -> dict[str, object]:
    times = {"started": 10 * number, "computed": 10 * number + 1, "finished": 10 * number + 5}
    fields = {"job": 0, "worker": worker, "round": number, "epoch": number // 2, "loss": 1.0}
    return {"kind": "round", "missed": 0} | fields | times | dict.fromkeys(TRAFFIC, 1)


def epoch_record(worker: int, epoch: int) -> dict[str, object]:
    accuracies = {"train_accuracy": 0.5, "test_accuracy": 0.25}
    return {
        "kind": "epoch",
        "job": 0,
        "worker": worker,
        "epoch": epoch,
        "source": None,
    } | accuracies


def life(worker: int) -> list[dict[str, object]]:
    """Return what a worker of two epochs of two rounds records, in its order."""
    records = []
    for number in range(4):
        if not any(a.worker == worker and a.holds(number) for a in ABSENCES[0]):
            records.append(round_record(worker, number))
            if number % 2:
                records.append(epoch_record(worker, number // 2))
    return records


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("ahead", [1, 2, 4, 6])
def test_lines_are_in_order_and_have_their_accuracies(
    order: tuple[int, ...], ahead: int, tmp_path: Path
) -> None:
    """Workers record `ahead` lines at a time, in turn."""
    lives, seen = [life(worker) for worker in order], []
    with Recorder(tmp_path, [3], lambda r, job: seen.append(r.jobs[job].rounds), 10**12,
                  ABSENCES) as recorder:  # fmt: skip
        while any(lives):
            for records in lives:
                for record in records[:ahead]:
                    recorder(record)
                del records[:ahead]
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["training_round"] for line in lines] == [0, 1, 2, 3]
    assert [line.get("test_accuracy") for line in lines] == [None, 0.25, None, 0.25]
    assert [len(line["workers"]) for line in lines] == [3, 2, 2, 3]
    assert seen == [1, 2, 3, 4]
    assert [end.rounds for end in recorder.jobs[0].curve] == [2, 4]
