"""The records of a script's run: hosts whose clocks begin at different times, one rank stopped."""

import json

import pytest
from event_files import scalars

from gradplane.pages import exports
from gradplane.pages.report import script_page
from gradplane.runs.records import script_run
from gradplane.runs.records.recorder import TRAFFIC


def reduce(worker, ticket, iteration, started, finished):
    line = {"kind": "reduce", "job": 0, "worker": worker, "ticket": ticket, "tensor": ticket % 2}
    line |= {"iteration": iteration, "values": 100, "started": started, "finished": finished}
    return line | {"missed": worker} | dict.fromkeys(TRAFFIC, 10)


@pytest.fixture
def folder(tmp_path):
    drop = {"kind": "verdict", "verdict": "drop", "direction": "up", "at": 1200}
    stall = {"kind": "stall", "missing": [1], "at": 1900}
    logs = {
        "h1": [reduce(0, 0, 0, 500, 900), reduce(0, 1, 0, 600, 1000), reduce(0, 2, 1, 1100, 2000)]
        + [drop, stall],
        "h2": [reduce(1, 0, 0, 100, 400), reduce(1, 1, 0, 150, 500)],
    }
    hosts = tmp_path / script_run.HOSTS
    hosts.mkdir()
    for (name, lines), origin in zip(logs.items(), (7000, 7500), strict=True):
        text = "".join(
            json.dumps(line) + "\n" for line in ({"kind": "joined", "origin": origin}, *lines)
        )
        (hosts / f"{name}.json").write_text("{}")
        (hosts / f"{name}.jsonl").write_text(text + '{"kind": "reduce", "wor')
        records = [{"at": 8000}, {"at": 10000, "loss": origin / 1000}, {"at": 11000, "loss": None}]
        values = "".join(json.dumps(record) + "\n" for record in records)
        (hosts / f"{name}.values.jsonl").write_text(values)
    (tmp_path / "experiment.toml").write_text('[topology]\nkind = "star"\nworkers = 2\n[[job]]\n')
    return tmp_path


def test_rounds_add_up_the_reduces_of_all_ranks_on_one_clock(folder):
    script_run.write_metrics(folder)
    first, second = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    assert (first["started"], first["finished"], first["missed"]) == (500, 1000, 2)
    assert (first["wire_up"], first["values"], first["verdicts"]) == (40, 400, {})
    assert [(own["worker"], own["reduces"]) for own in first["workers"]] == [(0, 2), (1, 2)]
    assert (second["training_round"], second["verdicts"]) == (1, {"drop, up": 1})
    assert [own["finished"] for own in second["workers"]] == [2000]


def test_the_page_says_what_held_a_reduce_up(folder):
    shown = script_page.contents(folder)
    rank, number, ticket, _, _, took, why = shown["slow"][0]
    assert (rank, number, ticket, took) == ("0", "1", "2", "900 ns")
    assert why == "1 × packet lost, up, 1 × waited for ranks 1"
    (loss,) = shown["recorded"]
    assert (loss["data"][0]["x"], loss["data"][0]["y"]) == ([2e-6], [7.25])


def test_scalars_are_what_ranks_recorded_and_the_time_of_each_bucket(folder):
    file = exports.write_script_scalars(folder, folder / "board")
    (at, step, values), later, recorded = scalars(file)
    assert (at, step) == (1e-6, 0)
    assert values == pytest.approx({
        "results missed": 2, "bytes up": 40, "bytes down": 40, "round, ms": 5e-4,
        "bucket 0, ms": 3.5e-4, "bucket 1, ms": 3.75e-4,
    })  # fmt: skip
    assert (later[1], later[2]["bucket 0, ms"]) == (1, pytest.approx(9e-4))
    assert recorded == (3e-6, 1, {"loss": 7.25})
