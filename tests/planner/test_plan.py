"""Plans: rows, references, JSON, the page, the command and a codec's profile."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gradplane.cli.app import app
from gradplane.pages.plan_page import page
from gradplane.planner.compiled import evaluate
from gradplane.planner.inputs import Compression, Gradient, Model, PlannerError, System, load
from gradplane.planner.job import Builder
from gradplane.planner.planning import FP32, make, plan

RUNNER = CliRunner()


def test_a_plan_is_between_the_bound_and_every_reference() -> None:
    made = make("lstm", "dgc", "pcie-25g")
    assert len(made.rows) == 10 and made.options == 4341
    assert made.bound <= made.time
    for name, time in made.references.items():
        assert time is not None and made.time <= time * (1 + 1e-9), name
    assert all(row.loss >= 0 for row in made.rows)
    assert made.time == made.model.forward + max(event.end for event in made.events)


def test_constraints_hold_for_every_tensor() -> None:
    made = make("gpt2", "dgc", "pcie-25g", ["compressions<=1", "device=cpu"])
    assert all(row.option.compressions <= 1 for row in made.rows)
    assert all(row.option.devices <= {"cpu"} for row in made.rows)


def test_the_next_best_option_is_the_second_of_the_whole_tree() -> None:
    made = make("lstm", "dgc", "pcie-25g")
    builder = Builder(load(Compression, "dgc"), load(System, "pcie-25g"))
    options = builder.tables.options
    tensors = load(Model, "lstm").tensors
    job = builder.job([t.compute for t in tensors], [t.values for t in tensors], every=True)
    strategy = [options.index(row.option) for row in made.rows]
    for tensor in (0, 3, 9):
        times = []
        for slot in range(len(options)):
            other = [*strategy[:tensor], slot, *strategy[tensor + 1 :]]
            times.append(np.inf if slot == strategy[tensor] else evaluate(job, other))
        second = min(times) - evaluate(job, strategy)
        assert made.rows[tensor].loss == pytest.approx(second, abs=1e-12)
        assert second > -1e-12


def test_one_gpu_a_machine_has_flat_options_only(tmp_path: Path) -> None:
    system = tmp_path / "flat.toml"
    network = "{ gbit = 10.0, latency_us = 1.0 }"
    system.write_text(
        f'name = "flat"\nmachines = 4\ngpus = 1\nintra = {network}\ninter = {network}\n'
    )
    made = make("lstm", "dgc", system)
    assert made.options == 63
    assert made.references["like HiPress"] is None
    assert "no such option" in page(made)


def test_a_job_that_takes_no_time_has_a_page() -> None:
    system = load(System, "pcie-25g").model_copy(update={"machines": 1, "gpus": 1})
    model = Model(name="m", tensors=(Gradient(name="t", values=1, compute=0.0),))
    nothing = plan(model, load(Compression, "dgc"), system)
    assert nothing.time == 0
    assert "1.00" in page(nothing)


def test_json_has_every_tensors_tasks() -> None:
    made = make("lstm", "dgc", "pcie-25g")
    content = json.loads(made.to_json())
    assert content["iteration_seconds"] == made.time
    assert content["references"][FP32] == made.references[FP32]
    assert [t["name"] for t in content["tensors"]] == [row.name for row in made.rows]
    tensor, row = content["tensors"][0], made.rows[0]
    tasks = [task for step in tensor["steps"] for task in step["tasks"]]
    assert [task["choice"] for task in tasks] == [task.choice for task in row.option]
    ends = [end for served in content["order"].values() for _, _, _, end in served]
    assert content["forward_seconds"] + max(ends) == pytest.approx(made.time)
    for number, tensor in enumerate(content["tensors"]):
        for at, step in enumerate(tensor["steps"]):
            (planned,) = [
                end - start
                for t, s, start, end in content["order"][step["resource"]]
                if (t, s) == (number, at)
            ]
            assert planned == pytest.approx(sum(task["seconds"] for task in step["tasks"]))


def test_the_page_draws_every_event_and_bubble() -> None:
    made = make("vgg16", "dgc", "nvlink-100g")
    text = page(made)
    assert made.bubbles()
    assert text.count("<rect") == len(made.events) + len(made.bubbles())
    assert "http" not in text


def test_the_command_writes_json_and_page_and_shows_30_rows(tmp_path: Path) -> None:
    out = tmp_path / "plan"
    arguments = ["plan", "vgg16", "--system", "pcie-25g", "--codec", "dgc", "--out", str(out)]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "the 30 largest of 32 tensors" in result.output
    assert {file.name for file in out.iterdir()} == {"plan.json", "plan.html"}


def test_the_command_draws_the_tree() -> None:
    result = RUNNER.invoke(app, ["plan", "x", "--system", "pcie-25g", "--codec", "dgc", "--tree"])
    assert "4,341 options" in result.output


def test_an_unknown_file_is_refused() -> None:
    with pytest.raises(PlannerError, match='no shipped model: did you mean "lstm"'):
        make("lsmt", "dgc", "pcie-25g")


def test_a_profile_is_a_compression_file(tmp_path: Path) -> None:
    file = tmp_path / "thc.toml"
    result = RUNNER.invoke(app, ["codecs", "bench", "thc", "--profile", str(file)])
    assert result.exit_code == 0, result.output
    measured = load(Compression, file)
    assert measured.sums and measured.ratio == pytest.approx(1 / 8, rel=0.01)
    assert all(seconds > 0 for seconds in measured.cpu.compress)
