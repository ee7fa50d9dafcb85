"""Records become lines and sums, in whatever order the workers' logs come."""

import json
from pathlib import Path
from typing import Any

import pytest

from gradplane.runs.records.recorder import TRAFFIC, Recorder, StallError
from gradplane.runs.records.run_folder import read_lines

Record = dict[str, Any]


def round_record(worker: int, number: int, epoch: int = 0, missed: int = 0) -> Record:
    return {
        "kind": "round",
        "job": 0,
        "worker": worker,
        "round": number,
        "epoch": epoch,
        "loss": 1.0 + worker,
        "started": 100 * number,
        "computed": 100 * number + 10,
        "finished": 100 * number + 50 + worker,
        "missed": missed,
        "weights": f"w{number}",
        **{key: 2 for key in TRAFFIC},
    }


def epoch_record(worker: int, epoch: int) -> Record:
    accuracy = 0.5 + 0.1 * worker
    facts = {"train_accuracy": accuracy, "test_accuracy": accuracy, "missed": 0}
    who = {"kind": "epoch", "job": 0, "worker": worker, "epoch": epoch}
    return who | facts | {"source": None, "bytes": 0}


def stall_record(worker: int, at: int, missing: list[int] | None) -> Record:
    where = {"job": 0, "worker": worker, "slot": 3, "use": 7}
    return {"kind": "stall", **where, "missing": missing, "at": at}


def record(folder: Path, records: list[Record], workers: int = 2) -> Recorder:
    with Recorder(folder, [workers], lambda recorder, job: None, patience=10**9) as recorder:
        for one in records:
            recorder(one)
    return recorder


def test_a_line_merges_all_workers_of_a_round(tmp_path: Path) -> None:
    record(tmp_path, [round_record(1, 0, missed=3), round_record(0, 0)])
    (line,) = read_lines(tmp_path / "metrics.jsonl")
    assert (line["job"], line["training_round"], line["loss"]) == (0, 0, 1.5)
    assert (line["started"], line["finished"], line["missed"]) == (0, 51, 3)
    assert line["payload_up"] == 4
    assert [worker["worker"] for worker in line["workers"]] == [0, 1]
    assert line["workers"][1]["missed"] == 3


def test_an_epochs_accuracy_is_with_its_last_round_only(tmp_path: Path) -> None:
    """Worker 0's whole log comes before worker 1's."""
    own = [[round_record(w, 0), round_record(w, 1), epoch_record(w, 0)] for w in (0, 1)]
    recorder = record(tmp_path, [*own[0], *own[1], round_record(0, 2, 1), round_record(1, 2, 1)])
    lines = list(read_lines(tmp_path / "metrics.jsonl"))
    assert [line.get("test_accuracy") for line in lines] == [None, 0.55, None]
    assert recorder.jobs[0].test_accuracy == 0.55


def test_tallies(tmp_path: Path) -> None:
    verdicts = [
        {"kind": "verdict", "link": "h1", "direction": way, "verdict": verdict}
        for way, verdict in (("up", "drop"), ("down", "drop"), ("up", "delay"))
    ]
    done = {"kind": "done", "job": 0, "worker": 1, "test_accuracy": 0.9, "weights": "abc", "at": 9}
    resent = [
        {"kind": "resend", "job": 0, "segments": 3},
        {"kind": "timeout", "job": 0, "stage": "sums", "slots": [[0, 1], [1, 1]]},
        {"kind": "timeout", "job": 0, "stage": "given up", "slots": [[2, 1]]},
    ]
    rounds = [round_record(0, 0), round_record(1, 0)]
    recorder = record(tmp_path, [*rounds, *verdicts, *resent, done])
    job = recorder.jobs[0]
    assert job.sent_again == 5
    assert (job.rounds, job.loss, job.weights) == (1, 1.5, {1: "abc"})
    assert recorder.drops == 2
    assert len(list(read_lines(tmp_path / "impairments.jsonl"))) == 3


def test_a_round_that_not_all_ended_is_no_line(tmp_path: Path) -> None:
    record(tmp_path, [round_record(0, 0)])
    assert list(read_lines(tmp_path / "metrics.jsonl")) == []


def test_a_stall_names_who_waits_for_whom(tmp_path: Path) -> None:
    lost = {"kind": "verdict", "link": "h2", "direction": "up", "verdict": "drop"}
    early = stall_record(0, 5 * 10**8, [1])
    with pytest.raises(StallError) as caught:
        record(tmp_path, [early, lost, stall_record(1, 2 * 10**9, None)])
    assert str(caught.value) == (
        "stalled: no round ended for 1 s\n"
        "  job 0, worker 0 waits for slot 3, use 7; missing workers: 1\n"
        "  job 0, worker 1 waits for slot 3, use 7; missing workers: not known\n"
        "  packets lost by impairments meanwhile: h2 up 1"
    )


def test_lines_are_whole_even_where_a_run_fails(tmp_path: Path) -> None:
    with pytest.raises(StallError):
        record(tmp_path, [round_record(0, 0), round_record(1, 0), stall_record(0, 10**10, [1])])
    for name in ("metrics.jsonl", "arrivals.jsonl"):
        for line in (tmp_path / name).read_text().splitlines():
            json.loads(line)


def test_a_line_is_there_at_once_and_gets_its_accuracy_later(tmp_path: Path) -> None:
    """A run that is killed between the two has the round; another job's lines stay as they are."""

    def of(job: int, record: Record) -> Record:
        return record | {"job": job}

    def lines() -> list[tuple[int, int, float | None]]:
        read = read_lines(tmp_path / "metrics.jsonl")
        return [(line["job"], line["training_round"], line.get("test_accuracy")) for line in read]

    with Recorder(tmp_path, [1, 1], lambda recorder, job: None, patience=10**9) as recorder:
        for job in (0, 1):
            recorder(of(job, round_record(0, 0)))
        assert lines() == [(0, 0, None), (1, 0, None)]
        recorder(of(0, epoch_record(0, 0)))
        assert lines() == [(0, 0, 0.5), (1, 0, None)]
        recorder(of(1, epoch_record(0, 0)))
        recorder(of(0, round_record(0, 1, 1)))
    assert lines() == [(0, 0, 0.5), (1, 0, 0.5), (0, 1, None)]


def test_a_full_disk_names_the_file_and_leaves_whole_rounds(tmp_path: Path) -> None:
    """A round is in metrics.jsonl only once its arrivals are in their file."""
    (tmp_path / "arrivals.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        record(tmp_path, [stall_record(0, 5, None), round_record(0, 0), round_record(1, 0)])
    assert caught.value.filename == str(tmp_path / "arrivals.jsonl")
    assert (tmp_path / "metrics.jsonl").read_text() == ""
