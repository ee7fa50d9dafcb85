"""Damaged run folders are refused, and the message names file, line and what is wrong."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gradplane.experiment.loading import ExperimentError
from gradplane.pages.report import page
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.run_folder import FolderError
from gradplane.runs.replayer.replay_run import replay
from gradplane.runs.run_experiment import run

EXPERIMENT = """
[topology]
workers = 3
[[job]]
model = { name = "mlp", hidden = [20] }
batch = 300
epochs = 2
quorum = 2
timeout_ms = 20
[[impairment]]
model = "bernoulli"
rate = 0.1
[output]
baseline = true
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two epochs of one round, with losses and a baseline."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "e.toml").write_text(EXPERIMENT)
    return run(folder / "e.toml", folder / "run", net="sim").folder


def delete(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    """Half of the file is left."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def garbage(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "@#!\n", *lines[2:]]))


def shorten(path: Path) -> None:
    """Return the second line is gone."""
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], *lines[2:]]))


def no_object(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "7\n", *lines[2:]]))


def other_keys(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(['{"kind": "arrival", "job": 0}\n', *lines[1:]]))


def other_type(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["workers"][2]["missed"] = "x"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def other_counter(path: Path) -> None:
    summary = json.loads(path.read_text())
    del summary["links"][1]["up_dropped"]
    path.write_text(json.dumps(summary))


def edit(path: Path) -> None:
    text = path.read_text()
    path.write_text(text.replace("quorum = 2", "quorum = 3"))


Damage = Callable[[Path], None]

WITHOUT_DIGESTS: dict[tuple[str, Damage], str] = {
    ("metrics.jsonl", delete): "DIR/metrics.jsonl: missing",
    ("metrics.jsonl", cut): "DIR/metrics.jsonl:LAST: damaged: the line is cut",
    ("metrics.jsonl", garbage): "DIR/metrics.jsonl:2: damaged: column 1: Expecting value",
    ("metrics.jsonl", other_type): (
        "DIR/metrics.jsonl:2: damaged: workers.2.missed: Input should be a valid integer"
    ),
    ("summary.json", other_counter): "DIR/summary.json: damaged: no links.1.up_dropped",
    ("metrics.jsonl", shorten): (
        "DIR/metrics.jsonl: job 0: it ends after 1 rounds, and summary.json has 2: lines are"
        " missing at its end"
    ),
    ("arrivals.jsonl", delete): "DIR/arrivals.jsonl: missing",
    ("arrivals.jsonl", cut): "DIR/arrivals.jsonl:LAST: damaged: the line is cut",
    ("arrivals.jsonl", garbage): "DIR/arrivals.jsonl:2: damaged: column 1: Expecting value",
    ("arrivals.jsonl", no_object): ("DIR/arrivals.jsonl:2: damaged: a JSON object is expected"),
    ("arrivals.jsonl", other_keys): (
        "DIR/arrivals.jsonl:1: damaged: no worker, ticket, slot, use, result, bitmap"
    ),
    ("impairments.jsonl", delete): "DIR/impairments.jsonl: missing",
    ("impairments.jsonl", garbage): "DIR/impairments.jsonl:2: damaged: column 1: Expecting value",
    ("summary.json", cut): "DIR/summary.json:LAST: damaged: ",
    ("baseline/metrics.jsonl", delete): "DIR/baseline/metrics.jsonl: missing",
    ("baseline/metrics.jsonl", garbage): (
        "DIR/baseline/metrics.jsonl:2: damaged: column 1: Expecting value"
    ),
}
CHANGED = "DIR/experiment.toml: changed: its SHA-256 digest is not the recorded one"
WITH_DIGESTS = WITHOUT_DIGESTS | {
    ("summary.json", delete): "DIR/summary.json: missing (",
    ("experiment.toml", edit): CHANGED,
    ("baseline/arrivals.jsonl", shorten): "DIR/baseline/arrivals.jsonl: damaged: ",
}


def expected(template: str, folder: Path, name: str) -> str:
    last = (folder / name).read_bytes().count(b"\n") + 1 if "LAST" in template else 0
    return template.replace("DIR", str(folder)).replace("LAST", str(last))


def ids(case: object) -> str:
    return case if isinstance(case, str) else getattr(case, "__name__", "")


@pytest.mark.parametrize("digests", [True, False], ids=["digests", "no digests"])
@pytest.mark.parametrize(("name", "damage"), WITH_DIGESTS, ids=ids)
def test_damage_is_named(
    whole: Path, tmp_path: Path, name: str, damage: Damage, digests: bool
) -> None:
    if not digests and (name, damage) not in WITHOUT_DIGESTS:
        pytest.skip("only digests show it")
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    if not digests:
        (folder / "manifest.json").unlink()
    damage(folder / name)
    for read in (replay, lambda folder: page.write([folder])):
        with pytest.raises(FolderError) as caught:
            read(folder)
        text = expected((WITH_DIGESTS)[name, damage], folder, name)
        assert str(caught.value).startswith(text)
        if digests:
            assert str(caught.value).splitlines()[-1] == (
                f"This is not what the run wrote: restore it, or delete {folder}/manifest.json"
                " to use what is left unchecked."
            )


@pytest.mark.parametrize("name", ["impairments.jsonl", "arrivals.jsonl"])
@pytest.mark.parametrize("digests", [True, False], ids=["digests", "no digests"])
def test_a_line_that_is_gone_is_missed(
    whole: Path, tmp_path: Path, name: str, digests: bool
) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    if not digests:
        (folder / "manifest.json").unlink()
    shorten(folder / name)
    with pytest.raises(FolderError) as caught:
        replay(folder)
    first = str(caught.value).splitlines()[0]
    assert first.startswith(f"{folder}/{name}: ") and "lines are missing" in first


def test_lines_out_of_order_are_named(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(reversed(lines)))
    with pytest.raises(FolderError) as caught:
        RunData.read(folder)
    assert str(caught.value).splitlines()[0] == (
        f"{folder}/metrics.jsonl:1: job 0: round 1 where round 0 is expected: lines before it are"
        " missing, or out of order"
    )


def test_an_experiment_of_other_workers_is_found_without_digests(
    whole: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    (folder / "manifest.json").unlink()
    path = folder / "experiment.toml"
    path.write_text(path.read_text().replace("workers = 3", "workers = 4"))
    with pytest.raises(FolderError) as caught:
        RunData.read(folder)
    assert str(caught.value) == (
        f"{folder}/summary.json: job e: weights of workers 0, 1, 2, and the job has 4: the file or"
        " experiment.toml was changed"
    )


def test_an_experiment_of_more_rounds_is_found_without_digests(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    (folder / "manifest.json").unlink()
    path = folder / "experiment.toml"
    path.write_text(path.read_text().replace("epochs = 2", "epochs = 3"))
    with pytest.raises(FolderError) as caught:
        RunData.read(folder)
    assert str(caught.value) == (
        f"{folder}/summary.json: job e: 2 rounds, and by experiment.toml the job has 3: one of the"
        " two, or the job's data, was changed"
    )


def test_an_experiment_that_is_missing_is_named(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    (folder / "experiment.toml").unlink()
    with pytest.raises(FolderError) as caught:
        RunData.read(folder)
    assert str(caught.value) == (
        f"{folder}/experiment.toml: missing: nothing can be read without it"
    )


def test_an_experiment_that_is_no_toml_is_named(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    (folder / "manifest.json").unlink()
    (folder / "experiment.toml").write_text("[[job]\n")
    with pytest.raises(ExperimentError) as caught:
        RunData.read(folder)
    assert str(caught.value).startswith(f"{folder}/experiment.toml:1: not valid TOML")


@pytest.mark.parametrize("text", ["{", '{"network": "sim"}', "[]"])
def test_a_damaged_manifest_is_named(whole: Path, tmp_path: Path, text: str) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    (folder / "manifest.json").write_text(text)
    with pytest.raises(FolderError) as caught:
        RunData.read(folder)
    assert str(caught.value).startswith(f"{folder}/manifest.json: damaged: ")


def test_the_manifest_lists_every_record(whole: Path) -> None:
    manifest = json.loads((whole / "manifest.json").read_text())
    names = {"metrics.jsonl", "arrivals.jsonl", "impairments.jsonl", "links.jsonl"}
    baseline = {f"baseline/{name}" for name in names}
    assert set(manifest["files"]) == {"experiment.toml", "summary.json", *names, *baseline}
    assert manifest["jobs"] == [{"rounds": 2, "values": 1510}]
    assert manifest["network"] == "sim"
