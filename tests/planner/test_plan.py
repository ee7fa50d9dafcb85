"""Plans: rows, references, JSON, the page, the command and a codec's profile."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gradplane.cli.main import app
from gradplane.planner.inputs import Compression, PlanError, load
from gradplane.planner.page import page
from gradplane.planner.plan import FP32, make

RUNNER = CliRunner()


def test_a_plan_is_between_the_bound_and_every_reference() -> None:
    plan = make("lstm", "dgc", "pcie-25g")
    assert len(plan.rows) == 10 and plan.options == 4341
    assert plan.bound <= plan.time
    for name, time in plan.references.items():
        assert time is not None and plan.time <= time * (1 + 1e-9), name
    assert all(row.loss >= 0 for row in plan.rows)
    assert plan.time == plan.model.forward + max(event.end for event in plan.events)


def test_constraints_hold_for_every_tensor() -> None:
    plan = make("gpt2", "dgc", "pcie-25g", ["compressions<=1", "device=cpu"])
    assert all(row.option.compressions <= 1 for row in plan.rows)
    assert all(row.option.devices <= {"cpu"} for row in plan.rows)


def test_one_gpu_a_machine_has_flat_options_only(tmp_path: Path) -> None:
    system = tmp_path / "flat.toml"
    network = "{ gbit = 10.0, latency_us = 1.0 }"
    system.write_text(
        f'name = "flat"\nmachines = 4\ngpus = 1\nintra = {network}\ninter = {network}\n'
    )
    plan = make("lstm", "dgc", system)
    assert plan.options == 63
    assert plan.references["like HiPress"] is None
    assert "no such option" in page(plan)


def test_json_has_every_tensors_tasks() -> None:
    plan = make("lstm", "dgc", "pcie-25g")
    content = json.loads(plan.to_json())
    assert content["iteration_seconds"] == plan.time
    assert content["references"][FP32] == plan.references[FP32]
    assert [t["name"] for t in content["tensors"]] == [row.name for row in plan.rows]
    assert content["tensors"][0]["tasks"][0] == plan.rows[0].option[0]._asdict()


def test_the_page_draws_every_event_and_bubble() -> None:
    plan = make("vgg16", "dgc", "nvlink-100g")
    text = page(plan)
    assert plan.bubbles()
    assert text.count("<rect") == len(plan.events) + len(plan.bubbles())
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
    with pytest.raises(PlanError, match='no shipped model: did you mean "lstm"'):
        make("lsmt", "dgc", "pcie-25g")


def test_a_profile_is_a_compression_file(tmp_path: Path) -> None:
    file = tmp_path / "thc.toml"
    result = RUNNER.invoke(app, ["codecs", "bench", "thc", "--profile", str(file)])
    assert result.exit_code == 0, result.output
    measured = load(Compression, file)
    assert measured.sums and measured.ratio == pytest.approx(1 / 8, rel=0.01)
    assert all(seconds > 0 for seconds in measured.cpu.compress)
