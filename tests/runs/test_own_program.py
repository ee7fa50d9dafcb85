"""A P4 program of the user's: a copy of a shipped one runs, and what a program lacks is named."""

import re
from pathlib import Path

import pytest

from gradplane.experiment.loading import ExperimentError
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.run_folder import FolderError
from gradplane.runs.run_experiment import run

ROOT = Path(__file__).parents[2]
THC = (ROOT / "p4" / "thc.p4").read_text()
EXPERIMENT = """
[topology]
workers = 2
[switch]
program = "mine.p4"
engine = "interpreter"
[[job]]
epochs = 1
batch = 300
[output]
baseline = false
report = false
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    path = tmp_path / "e.toml"
    path.write_text(EXPERIMENT)
    return path


def refusal(experiment: Path, program: str) -> list[str]:
    (experiment.parent / "mine.p4").write_text(program)
    with pytest.raises(ExperimentError) as refused:
        run(experiment, experiment.parent / "run", net="sim")
    assert not (experiment.parent / "run").exists()
    first, *lines = str(refused.value).splitlines()
    assert first == f"{experiment.parent}/mine.p4: the experiment cannot use this program:"
    return [line.strip() for line in lines]


def test_a_copy_beside_the_experiment_runs(experiment: Path) -> None:
    (experiment.parent / "mine.p4").write_text(THC)
    summary = run(experiment, experiment.parent / "run", net="sim")
    assert summary.values["switches"]["s1"]["events"]["0"]["completed sums"] > 0


def test_a_program_that_was_changed_after_the_run_is_named(experiment: Path) -> None:
    program, folder = experiment.parent / "mine.p4", experiment.parent / "run"
    program.write_text(THC)
    run(experiment, folder, net="sim")
    assert RunData.read(folder).finished
    program.write_text(THC.replace("hdr.agg.norm", "hdr.agg .norm", 1))
    with pytest.raises(FolderError) as error:
        RunData.read(folder)
    assert str(error.value) == (
        f"{program}: not the program of the run in {folder}: it, or a file that it includes, was"
        " changed since: restore it"
    )


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        (
            "receivers",
            "receiver_table",
            'no table named "ThcEgress.receivers", did you mean "ThcEgress.receiver_table"?'
            " (needed: table ThcEgress.receivers, key job, worker, action"
            " ThcEgress.deliver(src_mac, mac, src_ip, ip, port))",
        ),
        (
            "routes",
            "ways",
            'the program on the switch has no table "routes" (key hdr.ipv4.dst_addr: lpm, action'
            " forward(mac, port)) to install routes in",
        ),
        (
            "deliver",
            "hand_over",
            '"ThcEgress.receivers": no table action named "ThcEgress.deliver" (needed: table'
            " ThcEgress.receivers, key job, worker, action ThcEgress.deliver(src_mac, mac, src_ip,"
            " ip, port))",
        ),
        (
            '@name("worker")',
            '@name("who")',
            '"ThcIngress.members": Match field "worker": no match field named "worker" (needed:'
            " table ThcIngress.members, key job, worker, port, action ThcIngress.admit(workers,"
            " quorum, slot_base, slots, group, worker_bit, epoch, next_only))",
        ),
        (
            "norm_max",
            "norm_of_round",
            "the program on the switch is not p4/thc.p4, which this controller needs: no register"
            ' named "ThcIngress.norm_max"',
        ),
    ],
)
def test_what_is_missing_is_named(experiment: Path, old: str, new: str, missing: str) -> None:
    found = refusal(experiment, re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, THC))
    assert any(line.startswith(missing) for line in found), found
