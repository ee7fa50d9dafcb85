"""docs/sweeps.md: its example is a sweep, and its metrics are those of the tables."""

import ast
import re
from pathlib import Path

from gradplane.runs.sweeps.axes import Axis, axes
from gradplane.runs.sweeps.plan import make_plan
from gradplane.runs.sweeps.tables import METRICS

DOCUMENT = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()


def block(kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def example() -> tuple[Axis, ...]:
    """The axes of the first command."""
    command = next(line for line in DOCUMENT.splitlines() if line.startswith("$ gradplane sweep"))
    return axes(re.findall(r"--over (\S+)", command))


def test_the_example_is_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "loss.toml").write_text(block("toml"))
    plan = make_plan(tmp_path / "loss.toml", example(), 10)
    assert len(plan.runs) == 60 and "60 runs" in DOCUMENT


def test_the_python_example_is_the_same_sweep() -> None:
    calls = [node for node in ast.walk(ast.parse(block("python"))) if isinstance(node, ast.Call)]
    (sweep,) = (call for call in calls if ast.unparse(call.func) == "gradplane.sweep")
    assert ast.literal_eval(sweep.args[0]) == "loss.toml"
    assert axes(ast.literal_eval(sweep.args[1])) == example()
    options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in sweep.keywords}
    assert options == {"seeds": 10, "target_accuracy": 0.9}


def test_the_metrics_are_explained() -> None:
    for metric in METRICS:
        name = "baseline_..." if metric.name.startswith("baseline_") else metric.name
        assert f"`{name}`" in DOCUMENT, name


def test_no_part_is_missing() -> None:
    assert not re.search("OUTPUT|READING", DOCUMENT)
