"""Reports: everything inside, right numbers, several runs side by side."""

import json
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from gradplane.records.run_data import RunData
from gradplane.records.run_folder import FolderError
from gradplane.records.summary import Summary
from gradplane.report import page as report

Runs = Callable[..., Summary]


def page(folder: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib's, where a figure does not fit
        return report.write([folder]).read_text()


def figures_in(text: str) -> int:
    """Count the figures of a page, without the lines of their keys."""
    return text.count("<svg") - text.count('<svg viewBox="0 0 22 10">')


def test_a_report_needs_nothing_from_elsewhere(lossy_run: Summary) -> None:
    text = page(lossy_run.folder)
    links = re.findall(r'(?:href|src)="([^"#][^"]*)"|(url\([^#])', text)
    assert all(link.startswith("data:") for link, _ in links)
    assert "<script" not in text
    assert figures_in(text) == 6


def test_it_says_what_the_summary_says(lossy_run: Summary) -> None:
    text, values = page(lossy_run.folder), lossy_run.values
    job = values["jobs"][0]
    assert f"{values['test_accuracy']:.1%}" in text
    assert f"{job['traffic']['payload_down']:,.0f} B; as float32 6,040 B" in text
    assert f'<h3>Results missed</h3><p class="big bad">{job["missed"]:,}</p>' in text
    for weights in job["weights"].values():
        assert weights in text
    assert "6 rounds on the simulated network, switch embedded, seed 1" in text
    assert "model = &#34;bernoulli&#34;" in text


def test_a_run_without_losses_says_so(small_run: Runs) -> None:
    text = page(small_run().folder)
    assert "None were injected, and every worker had every result in time." in text
    assert figures_in(text) == 5


def test_figures_do_not_change_from_writing_to_writing(small_run: Runs) -> None:
    assert page(small_run().folder) == page(small_run().folder)


def test_names_are_escaped(small_run: Runs, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small_run().folder, tmp_path / "run"))
    (folder / "manifest.json").unlink()
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"name": "<b>&"}))
    assert "<h1>&lt;b&gt;&amp;</h1>" in page(folder)


def test_verdicts_are_placed_in_training_rounds(lossy_run: Summary) -> None:
    run = RunData.read(lossy_run.folder)
    by_round = run.verdicts_by_round()
    placed = sum(sum(counts.values()) for counts in by_round.values())
    streams = sum(line["type"] in ("stream", "ack") for line in run.verdicts)
    assert placed == len(run.verdicts) - streams > 0
    assert {number for counts in by_round.values() for number in counts} <= set(range(6))


def test_comparison(small_run: Runs, lossy_run: Summary, tmp_path: Path) -> None:
    folders = [small_run().folder, lossy_run.folder]
    text = report.write(folders, tmp_path / "both.html").read_text()
    for folder in folders:
        assert text.count(f"<th>{folder.name}</th>") >= 1
    assert "These runs differ" not in text
    assert figures_in(text) == 5


def test_runs_of_different_machines_are_distinguished(small_run: Runs, tmp_path: Path) -> None:
    other = Path(shutil.copytree(small_run().folder, tmp_path / "other"))
    (other / "manifest.json").unlink()
    summary = json.loads((other / "summary.json").read_text())
    (other / "summary.json").write_text(json.dumps(summary | {"cpu": "Z80"}))
    text = report.write([small_run().folder, other], tmp_path / "both.html").read_text()
    assert (
        "These runs differ in cpu: their accuracies can be compared, their speeds and digests"
        " cannot."
    ) in text


def test_a_folder_without_an_experiment_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(FolderError) as caught:
        report.write([tmp_path])
    assert str(caught.value) == f"{tmp_path}: not a run folder: it has no experiment.toml"
