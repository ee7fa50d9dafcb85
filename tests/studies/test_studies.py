"""Studies: what a file with [study] computes, prints and writes, and what it refuses."""

import html
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from rich.console import Console

from gradplane.cli import output_tables
from gradplane.experiment import shipped
from gradplane.experiment.document import ExperimentError
from gradplane.runs.records.run_folder import FolderError
from gradplane.studies import launch, parallel

ROOT = Path(__file__).parents[2]
SMALL = {
    "thc-fig2a": ["study.values=[1024, 2048]"],
    "thc-fig5": [
        "study.hidden=[8]",
        "study.epochs=1",
        "study.batch=128",
        "study.target=0.01",
    ],
    "thc-fig6": ["study.values=[1024, 2048]", 'study.models=["GPT-2"]'],
    "thc-fig7": ["study.values=[1024, 2048]", 'study.rates=["100Gbit"]'],
    "thc-fig8": ["study.values=[1024, 2048]"],
    "thc-fig12": ["study.values=[1024, 2048]", 'study.models=["ResNet50"]'],
    "thc-fig14": [
        "study.hidden=[8]",
        "study.epochs=1",
        "study.batch=128",
        "study.repetitions=1",
    ],
    "codec-references": [
        'study.codecs=["bfloat16", "thc", "powersgd"]',
        'study.models=["cnn", "transformer"]',
        *("study.workers=2", "study.epochs=1", "study.batch=200", "study.repetitions=1"),
        "study.most=1",
    ],
    "thc-fig2b": ["study.values=4096", "study.repetitions=1"],
    "thc-fig10": [
        "study.workers=[2]",
        "study.hidden=[8]",
        "study.epochs=1",
        "study.batch=128",
        "study.repetitions=1",
    ],
    "thc-fig11": [
        "study.losses=[0.01]",
        "study.stragglers=[1]",
        "study.workers=3",
        "study.hidden=[8]",
        "study.epochs=1",
        "study.batch=128",
        "study.repetitions=1",
    ],
    "thc-fig15": ["study.granularities=[7, 20]", "study.values=1024", "study.repetitions=2"],
    "3lc-table2": ["study.steps=4", "study.hidden=[16]", "study.s=[1.0, 1.9]"],
    "espresso-fig16": [
        *('study.models=["bert-base"]', 'study.systems=["nvlink-100g"]'),
        *("study.hidden=[8]", "study.epochs=1", "study.batch=200", "study.repetitions=1"),
    ],
    "inceptionn-fig4": ["study.steps=20", "study.hidden=[16]", "study.repetitions=2"],
    "inceptionn-fig5": ["study.steps=30", "study.hidden=[16]"],
    "inceptionn-fig7": ["study.values=4096", "study.workers=2", "study.repetitions=1"],
    "inceptionn-table3": ["study.steps=3", "study.hidden=[16]"],
    "inceptionn-fig14": ["study.epochs=1", "study.workers=2", "study.repetitions=1"],
    "3lc-fig3": [
        'study.designs=["3LC s=1"]',
        "study.workers=2",
        "study.hidden=[8]",
        "study.epochs=4",
        "study.batch=700",
    ],
    "3lc-fig4": [
        'study.designs=["3LC s=1"]',
        "study.workers=2",
        "study.hidden=[8]",
        "study.epochs=4",
        "study.batch=700",
    ],
    "3lc-table1": [
        'study.designs=["3LC no ZRE", "2 local steps"]',
        'study.rates=["10Mbit"]',
        "study.workers=2",
        "study.hidden=[16]",
        "study.epochs=2",
        "study.target=0.1",
    ],
    "awp-table2": ["study.hidden=[8]", "study.epochs=1", "study.batch=128"],
    "awp-fig4": [
        'study.systems=["POWER"]',
        'study.models=["Resnet"]',
        "study.hidden=[8]",
        "study.epochs=1",
        "study.target=0.05",
    ],
    "awp-precision": ["study.steps=60", "study.hidden=[16]", "study.repetitions=1"],
    "formats": [
        'study.formats=["SDP4Bit 4 bits", "THC 4 bits"]',
        *("study.workers=2", "study.hidden=[8]", "study.epochs=1", "study.batch=200"),
        *("study.repetitions=1", "study.target=0.01"),
    ],
    "sparse-formats": [
        'study.formats=["OptiReduce bfloat16", "OmniReduce int32"]',
        *("study.workers=2", "study.epochs=1", "study.batch=400", "study.loss=0.01"),
        *("study.repetitions=1", "study.target=0.01"),
    ],
    "memory-sharing": [
        *("study.jobs=[1, 2]", "study.slots=[2, 8]", "study.workers=2", "study.window=2"),
        *("study.values=4096", "study.rounds=2"),
    ],
    "incast": [
        *("study.workers=[4]", "study.values=16384", "study.rounds=2"),
        *("study.queue=12", "study.threshold=4"),
    ],
    "sum-levels": ["study.workers=[2]", "study.values=8192", "study.rounds=2", "study.slots=16"],
    "inceptionn-fig12": ["study.values=4096", "study.workers=2"],
    "inceptionn-fig13": [
        "study.hidden=[8]",
        "study.batch=256",
        "study.epochs=2",
        "study.workers=2",
    ],
    "inceptionn-groups": [
        *("study.values=[2048]", "study.racks=2", "study.workers=4"),
        'study.placements=["spread"]',
    ],
    "inceptionn-fig15": ["study.values=8192", "study.workers=[2, 4]"],
    "espresso-table1": ['study.cases=[["lstm", "dgc", "pcie-25g"]]'],
    "espresso-fig10": ["study.megabytes=[1.0, 64.0]"],
    "espresso-fig11": ['study.models=["lstm", "vgg16"]'],
    "espresso-table5": ['study.models=["lstm", "vgg16"]', "study.repetitions=1"],
    "espresso-table6": ['study.models=["lstm", "vgg16"]', "study.combinations=100"],
    "espresso-fig12": ['study.panels=[["gpt2", "efsignsgd"]]', "study.machines=[1, 8]"],
    "espresso-fig13": ['study.panels=[["lstm", "dgc"]]', "study.machines=[2, 8]"],
    "espresso-fig14": ['study.models=["gpt2"]', 'study.codecs=["efsignsgd"]'],
    "espresso-fig15": ['study.models=["lstm"]', 'study.codecs=["dgc"]'],
    "espresso-run": [
        'study.models=["lstm"]',
        'study.systems=["pcie-25g"]',
        "study.values=8000",
        "study.loss=0.01",
    ],
}


OF_NO_PAPER = {"incast", "inceptionn-groups", "memory-sharing", "sum-levels"}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, launch.Done]:
    """Run each shipped study, made small, in this process: one that is repeated below has
    processes for its parts, where there are several processors."""
    out = tmp_path_factory.mktemp("studies")
    one_processor = SimpleNamespace(sched_getaffinity=lambda pid: {0})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parallel, "os", one_processor)
        return {
            name: launch.run(ROOT / "experiments" / f"{name}.toml", out / name, settings=settings)
            for name, settings in SMALL.items()
        }


def written(text: str, folder: Path) -> Path:
    path = folder / "x.toml"
    path.write_text(text)
    return path


def test_every_study_has_an_experiment_file() -> None:
    assert sorted(launch.kinds()) == sorted(SMALL)
    for name in SMALL:
        file = launch.load(ROOT / "experiments" / f"{name}.toml")
        kind = launch.kinds()[name]
        assert file.study == kind(name=name), f"{name}.toml states the defaults"


@pytest.mark.parametrize("name", SMALL)
def test_the_table_fits_80_columns_and_speaks(name: str, done: dict[str, launch.Done]) -> None:
    console = Console(width=80)
    with console.capture() as printed:
        console.print(output_tables.study(done[name].outcome))
    lines = printed.get().splitlines()
    assert max(map(len, lines)) <= 80 and "…" not in printed.get()
    if name not in OF_NO_PAPER:
        assert " differ" in printed.get()
        assert " paper" in printed.get()


@pytest.mark.parametrize("name", SMALL)
def test_the_run_folder(name: str, done: dict[str, launch.Done]) -> None:
    folder = done[name].folder
    files = ["experiment.toml", "figure.png", "figure.svg", "report.html", "study.json"]
    assert sorted(path.name for path in folder.iterdir()) == files
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / "figure.svg").read_bytes()
    page = html.unescape((folder / "report.html").read_text())
    assert done[name].outcome.title in page and "<svg" in page and "</table>" in page
    values = json.loads((folder / "study.json").read_text())
    assert values["study"]["name"] == name and values["seed"] == 1 and values["rows"]


@pytest.mark.parametrize("name", ["thc-fig2b", "3lc-fig4", "3lc-table2"])
def test_the_folders_file_alone_repeats_the_study(
    name: str, done: dict[str, launch.Done], tmp_path: Path
) -> None:
    again = launch.run(done[name].folder / "experiment.toml", tmp_path / "again")
    assert again.outcome.rows == done[name].outcome.rows
    svg = [(run.folder / "figure.svg").read_bytes() for run in (again, done[name])]
    assert svg[0] == svg[1]


def test_the_papers_numbers_stand_beside_ours(done: dict[str, launch.Done]) -> None:
    rows = {row[0]: row for row in done["thc-fig2b"].outcome.rows}
    assert rows["TernGrad"][-1] == "6.95" and rows["THC"][-1] == "not in our copy"
    rows = {row[0]: row for row in done["3lc-table2"].outcome.rows}
    assert rows["s = 1"][3] == "0.812"
    bits = [row["bits"] for row in done["3lc-table2"].outcome.values]
    assert bits == sorted(bits, reverse=True)
    assert done["thc-fig15"].outcome.rows[0][4] == "-"  # b = 4, g = 7
    ratios = [row["ratio"] for row in done["inceptionn-table3"].outcome.values]
    assert ratios == sorted(ratios[:3]) + sorted(ratios[3:])


NO_FORMAT = {  # what these count or time is no exchange of values, or has them in one format
    "inceptionn-fig5", "espresso-fig10", "espresso-fig11", "espresso-table5", "espresso-table6",
    "espresso-run", *OF_NO_PAPER,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(SMALL) - NO_FORMAT))
def test_a_16_bit_baseline_stands_in_it(name: str, done: dict[str, launch.Done]) -> None:
    """In what it prints made small, or in the whole table, which has all its designs."""
    printed = done[name].outcome
    table = launch.recorded(name) or {"cells": ()}
    texts = str((printed.head, printed.rows, printed.notes, table["cells"]))
    assert re.search("bf16|bfloat16|16 bits", texts, re.IGNORECASE)


def test_inceptionns_order(done: dict[str, launch.Done]) -> None:
    """Compression and the ring each shorten communication; the ring's hardly grows."""
    rows = done["inceptionn-fig12"].outcome.values
    assert [row["scheme"] for row in rows[:4]] == ["WA", "WA+C", "INC", "INC+C"]
    wa, wac, inc, incc = (row["communication"] for row in rows[:4])
    assert incc < inc < wac < wa
    assert all(row["scaled"] and row["paper"] is None for row in rows)
    assert all(
        row["whole"] == row["computing"] + row["adding"] + row["communication"] for row in rows
    )
    growth = {
        (r["scheme"], r["workers"]): r["growth"] for r in done["inceptionn-fig15"].outcome.values
    }
    assert 1.7 < growth["WA", 4] < 2.3 and growth["INC", 4] < growth["WA", 4]
    runs = done["inceptionn-fig13"].outcome.values
    assert runs[0]["speed_up"] == 1 and runs[3]["speed_up"] > 1


def test_two_levels_of_hosts_beside_one(done: dict[str, launch.Done]) -> None:
    """Two racks of four, each ring's next worker in the other rack."""
    times = {
        row["scheme"]: row["communication"] for row in done["inceptionn-groups"].outcome.values
    }
    assert times["WA tree"] < times["WA"] and times["INC groups"] < times["INC"]
    for organisation in ("WA", "WA tree", "INC", "INC groups"):
        assert times[f"{organisation}+C"] < times[organisation]
        assert times[f"{organisation} bf16"] < times[organisation]


def test_what_sharing_levels_and_marks_bring(done: dict[str, launch.Done]) -> None:
    rows = {(r["jobs"], r["slots"]): r for r in done["memory-sharing"].outcome.values}
    assert rows[2, 2]["own"] is None and rows[2, 8]["own"] is not None
    assert rows[1, 2]["own"]["rounds"] < rows[1, 8]["own"]["rounds"]
    assert len(rows[2, 2]["shared"]["rounds"]) == 2
    static, marked = done["incast"].outcome.values
    assert marked["dropped"] < static["dropped"] and marked["window"] < 16
    one, two = done["sum-levels"].outcome.values
    assert two["between"] < one["between"]
    assert two["rounds"] > one["rounds"]


def test_espressos_order(done: dict[str, launch.Done]) -> None:
    """Our search is behind no other scheme; searches of fewer options find hardly more."""
    for name in ("espresso-fig12", "espresso-fig13"):
        others = [row for row in done[name].outcome.values if row["scheme"] != "BF16"]
        assert all(row["search_gain"] >= 0 for row in others), name
    rows = {row["scheme"]: row for row in done["espresso-fig13"].outcome.values}
    assert rows["HiPress"]["paper_gain"] == 77 and rows["FP32"]["paper_gain"] is None
    found = done["espresso-fig14"].outcome.values
    ours = [row["difference"] for row in found if row["scheme"] == "our search"]
    assert all(row["difference"] >= 0 for row in found) and max(ours) < 0.2
    rows = [row for row in done["espresso-fig15"].outcome.values if row["scheme"] != "BF16"]
    crippled = {(row["search"], row["scheme"]): row for row in rows}
    assert len(crippled) == 15
    whole = crippled["ours", "whole tree"]["scaling_factors"]
    for (search, scheme), row in crippled.items():
        for column, factor in row["scaling_factors"].items():
            assert 0 < factor <= 1.03 * whole[column], scheme
            better = crippled["ours", scheme] if search else row
            assert factor <= better["scaling_factors"][column] * (1 + 1e-9), scheme
    assert [row["tensors"] for row in done["espresso-table5"].outcome.values] == [10, 32]
    assert done["espresso-table6"].outcome.values[0]["combinations"] == 16
    for row in done["espresso-run"].outcome.values:
        assert abs(row["error"]) < 0.1, row["model"]
        assert row["lossy"]["seconds"] >= row["seconds"] > 0


def test_a_seed_changes_the_numbers(tmp_path: Path, done: dict[str, launch.Done]) -> None:
    path = ROOT / "experiments" / "thc-fig2b.toml"
    other = launch.run(path, tmp_path / "x", settings=SMALL["thc-fig2b"], seed=2)
    assert other.outcome.values[0]["nmse"] != done["thc-fig2b"].outcome.values[0]["nmse"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[study]\nname = "thc-fig2"', ':2: no study "thc-fig2": did you mean "thc-fig2b"?'),
        (
            "[study]\nworkers = 2",
            f":1: study.name is missing: known: {', '.join(sorted(SMALL))}",
        ),
        (
            '[study]\nname = "thc-fig2b"\nworker = 2',
            ':3: unknown key study.worker: did you mean "workers"?',
        ),
        (
            '[study]\nname = "thc-fig2b"\nworkers = 0',
            ":3: study.workers = 0: expected at least 1",
        ),
        (
            '[study]\nname = "thc-fig2b"\n[topology]\nworkers = 2',
            ":3: unknown key topology: known: name, seed, study",
        ),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_written(
    text: str, message: str, tmp_path: Path
) -> None:
    path = written(text, tmp_path)
    with pytest.raises(ExperimentError) as error:
        launch.run(path, tmp_path / "out")
    assert str(error.value) == f"{path}{message}"
    assert not (tmp_path / "out").exists()


def test_a_folder_is_never_overwritten(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="exists, and runs are never overwritten"):
        launch.run(ROOT / "experiments" / "thc-fig2b.toml", tmp_path)


def test_a_study_is_distinguished_from_a_run(tmp_path: Path) -> None:
    assert shipped.is_study(ROOT / "experiments" / "thc-fig2b.toml")
    assert not shipped.is_study(ROOT / "experiments" / "thc-star.toml")


def test_a_studys_report_can_be_written_again(
    tmp_path: Path, done: dict[str, launch.Done], capsys: pytest.CaptureFixture[str]
) -> None:
    from gradplane.cli.app import app

    folder = done["thc-fig15"].folder
    written, page = tmp_path / "again.html", (folder / "report.html").read_text()
    app(["report", str(folder), "--out", str(written)], standalone_mode=False)
    assert capsys.readouterr().out == f"report: {written}\n" and written.read_text() == page
    with pytest.raises(typer.BadParameter, match="only runs are compared: give it alone"):
        app(["report", str(folder), str(folder)], standalone_mode=False)
    with pytest.raises(FolderError, match="no finished study"):
        launch.write_report(tmp_path)


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gradplane.cli import main

    path = written('[study]\nname = "thc-fig2b"\nvalues = 1024\nrepetitions = 1', tmp_path)

    def command(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr("sys.argv", ["gradplane", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main.main()
        return (ended.value.code or 0, *capsys.readouterr())

    monkeypatch.setenv("COLUMNS", "80")
    status, output, errors = command("run", path, "--out", tmp_path / "out")
    assert (status, errors) == (0, "")
    assert output.startswith(" THC, figure 2b: NMSE of the mean, 4 workers\n")
    assert output.endswith(f"report: {tmp_path / 'out' / 'report.html'}\n")
    status, output, errors = command("run", path, "--net", "sim")
    assert (status, output) == (2, "")
    assert "a study has no network" in errors


@pytest.mark.parametrize("kept", [None, {"cells": []}], ids=["nothing", "no time"])
def test_a_study_that_was_not_timed_may_take_long(
    kept: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(launch, "recorded", lambda study: kept)
    settings = SMALL["inceptionn-fig5"]
    launch.run("inceptionn-fig5", tmp_path / "run", settings=settings, announce=told.append)
    assert told == ["inceptionn-fig5: how long it takes is not known; it may be over ten minutes"]
