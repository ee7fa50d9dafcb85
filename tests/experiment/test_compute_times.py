"""`compute_ms` in an experiment file: its forms, its trace file, what is refused."""

import re
from pathlib import Path

import pytest

from gradplane.experiment.document import ExperimentError, dumps
from gradplane.experiment.loading import load, load_deployment

M = 10**6


def written(folder: Path, compute_ms: str) -> Path:
    path = folder / "e.toml"
    path.write_text(
        f"[topology]\nworkers = 2\n[[job]]\nmodel = 'softmax'\ncompute_ms = {compute_ms}\n"
    )
    return path


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("2.5", 2_500_000),
        ("0", 0),
        ("[1.0, 3.5]", [1_000_000, 3_500_000]),
        (
            '{ distribution = "pareto", mean = 2.0, alpha = 3.0 }',
            {"distribution": "pareto", "mean": 2e6, "alpha": 3.0},
        ),
        (
            '[1, { distribution = "exponential", mean = 4.0 }]',
            [1_000_000, {"distribution": "exponential", "mean": 4e6}],
        ),
        (
            "{ trace = [[1.0, 2.0], [3.0, 4.0]] }",
            {"trace": [[10**6, 2 * 10**6], [3 * 10**6, 4 * 10**6]]},
        ),
    ],
)
def test_hosts_get_nanoseconds(tmp_path: Path, text: str, spec: object) -> None:
    assert load_deployment(written(tmp_path, text)).jobs[0].config.training.compute_ns == spec


def test_a_trace_file_is_read_once_and_then_a_part_of_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("first, second\n1.0, 2.5\n\n3, 4\n")
    experiment = load(written(tmp_path, '{ trace = "times.csv" }'))
    assert experiment.job[0].compute_ms == {"trace": [[1.0, 2.5], [3.0, 4.0]]}
    (tmp_path / "times.csv").unlink()
    again = tmp_path / "again.toml"
    again.write_text(dumps(experiment.values()))
    assert load(again) == experiment


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-1", r"e\.toml:5: job\.0\.compute_ms: -1: expected a number of ms, 0 to 1e12, a list"),
        ("1e13", "10000000000000.0: expected a number of ms, 0 to 1e12"),
        ('"fast"', r'"fast": expected a number'),
        ("[]", r"\[\]: expected a number"),
        ("[1.0, true]", "true: expected a number"),
        ("[1, 2, 3]", r"e\.toml:5: compute_ms has 3 items, and the job 2 workers: give each one"),
        ('{ distribution = "gamma", mean = 1 }', 'no distribution "gamma"'),
        ('{ distribution = "lognormal", mean = 1 }', "lognormal needs mean and sd: sd is missing"),
        (
            '{ distribution = "normal", mean = 1, std = 1 }',
            "unknown key std of normal",
        ),
        (
            '{ distribution = "exponential", mean = -1 }',
            "mean = -1: expected a number",
        ),
        ('{ distribution = "uniform", low = 2, high = 1 }', "low = 2 is above high = 1"),
        (
            '{ distribution = "pareto", mean = 2, alpha = 1 }',
            "alpha = 1: the mean exists",
        ),
        ("{ trace = [[1, 2], [3]] }", "trace, row 1: 1 numbers, and 2 in row 0"),
        ("{ trace = [[1, 2, 3]] }", "the trace has 3 columns, and the job 2 workers"),
        ('{ trace = "none.csv" }', r"e\.toml:5: trace .*none\.csv: No such file"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        load(written(tmp_path, text))
    assert re.search(message, str(refused.value)), str(refused.value)


def test_a_trace_with_words_is_refused_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("1.0\nslow\n")
    with pytest.raises(ExperimentError, match="times.csv: row 1: could not convert .* 'slow'"):
        load(written(tmp_path, '{ trace = "times.csv" }'))
