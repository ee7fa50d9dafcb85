"""The report's pages: figures, links, and several runs."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gradplane.pages import figures
from gradplane.pages.report import page
from gradplane.runs.run_experiment import run

EXPERIMENT = """
[topology]
workers = 9
[[job]]
model = { name = "mlp", hidden = [20] }
batch = 150
epochs = 1
timeout_ms = 20
push = { name = "thc", granularity = 28 }
"""
LOSS = 'impairment=[{model="bernoulli", rate=0.3}]'
Folder = Callable[..., Path]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Return folders of runs of nine workers and one round, by name and settings."""
    place = tmp_path_factory.mktemp("runs")
    (place / "e.toml").write_text(EXPERIMENT)

    def get(name: str, *settings: str) -> Path:
        if not (place / name).exists():
            run(place / "e.toml", place / name, net="sim", settings=settings)
        return place / name

    return get


def cells(text: str, label: str) -> list[str]:
    """Return the cells of the table row with that label."""
    row = re.search(rf"<td>{re.escape(label)}</td>(.*?)</tr>", text, re.DOTALL)
    assert row, label
    return re.findall(r"<td[^>]*>([^<]*)</td>", row[1])


@pytest.mark.parametrize("span", [0.0, 0.0005, 0.003, 0.02, 0.4])
def test_a_percent_axis_is_not_filled_by_noise(span: float) -> None:
    line = figures.Curve("run", "#000000", False, [1, 2], [0.22, 0.22 + span])
    axis = figures.curves([line], "rounds", "accuracy", percent=True)["layout"]["yaxis"]
    low, high = axis.get("range", (0.22, 0.22 + span))
    assert high - low >= 0.02 * (1 - 1e-9)
    assert low <= 0.22 and high >= 0.22 + span


def test_a_fast_run_beside_a_slow_one_gets_a_logarithmic_axis() -> None:
    def axis(*ends: float) -> str:
        lines = [figures.Curve("", "#000000", False, [end / 2, end], [0.1, 0.2]) for end in ends]
        drawn = figures.curves(lines, "seconds", "accuracy", far_apart=True)
        return str(drawn["layout"]["xaxis"]["title"]["text"])

    assert axis(0.01, 2.0) == "seconds, logarithmic"
    assert axis(1.0, 2.0) == "seconds"


def test_many_links_are_folded(folder: Folder) -> None:
    text = page.write([folder("plain")]).read_text()
    assert "<details><summary>10 links</summary>" in text


def test_bytes_have_one_unit(folder: Folder) -> None:
    text = re.sub(r"<script.*?</script>", "", page.write([folder("plain")]).read_text(), flags=re.S)
    assert "kB" not in text and "MB" not in text


def test_a_comparison_shows_what_differs(folder: Folder, tmp_path: Path) -> None:
    runs = [folder("plain"), folder("lossy", LOSS)]
    text = page.write(runs, tmp_path / "c.html").read_text()
    assert cells(text, "impairment.0.rate") == ["-", "0.3"]
    assert "<td>job.quorum</td>" not in text
    again = page.write([runs[0], runs[0]], tmp_path / "d.html").read_text()
    assert "The experiments are equal." in again


def test_a_job_is_compared_whatever_its_name(folder: Folder, tmp_path: Path) -> None:
    runs = [folder("plain"), folder("named", 'name="other"', 'job.name="e"', "job.lr=0.2",
                                     "job.push.bits=4")]  # fmt: skip
    text = page.write(runs, tmp_path / "c.html").read_text()
    assert cells(text, "job.lr") == ["0.1", "0.2"]
    assert cells(text, "name") == ["e", "other"]
    differences = text[: text.index("<td>test accuracy</td>")]
    assert "job.epochs" not in differences
    assert "push.bits" not in differences, "it is the default of the other"


def test_a_comparison_has_baseline_misses_and_losses(folder: Folder, tmp_path: Path) -> None:
    runs = [folder("plain"), folder("lossy", LOSS)]
    text = page.write(runs, tmp_path / "c.html").read_text()
    missed, dropped = cells(text, "results missed"), cells(text, "losses injected")
    assert missed[0] == dropped[0] == "0" and int(missed[1]) > 0 and int(dropped[1]) > 0
    up, down = cells(text, "drop, up"), cells(text, "drop, down")
    assert int(up[1]) + int(down[1]) == int(dropped[1])
    assert f'<td class="bad">{missed[1]}</td>' in text
    accuracy = text[text.index("<td>test accuracy</td>") :]
    assert accuracy.index("<td>baseline</td>") < accuracy.index("<td>rounds</td>")
    assert 'data-series="baseline"' in text
