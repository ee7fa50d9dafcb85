"""A P4 program of the user's: a copy of a shipped one runs, and what a program lacks is named."""

import re
import tomllib
from pathlib import Path

import pytest

from gradplane.experiment.loading import ExperimentError, load_deployment
from gradplane.pages.report.page import write
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.run_folder import FolderError
from gradplane.runs.replayer.replay_run import replay
from gradplane.runs.run_experiment import mininet_possible, run

MININET, WHY_NOT = mininet_possible()
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
    parts = ROOT / "p4"
    whole = re.sub(
        r'#include "(include/v1model_\w+\.p4)"', lambda m: (parts / m[1]).read_text(), THC
    )
    found = refusal(experiment, re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, whole))
    assert any(line.startswith(missing) for line in found), found


# Programs of single switches


@pytest.fixture
def differing(tmp_path: Path) -> Path:
    """Return the document's experiment of switches that differ, with its program beside it."""
    text = (ROOT / "docs" / "experiments.md").read_text()
    chapter = text.split("### Switches that differ\n")[1].split("\n### ")[0]
    for name, kind in (("e.toml", "toml"), ("router.p4", "p4")):
        (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", chapter, re.MULTILINE | re.DOTALL)
        (tmp_path / name).write_text(found)
    return tmp_path / "e.toml"


def test_a_program_that_only_forwards_is_for_jobs_that_need_no_sums(differing: Path) -> None:
    text = EXPERIMENT.replace("mine.p4", "router.p4")
    differing.write_text(text)
    with pytest.raises(ExperimentError) as refused:
        run(differing, differing.parent / "run", net="sim")
    assert 'no table named "ThcIngress.block0.lookup0"' in str(refused.value)
    assert str(refused.value).endswith('for jobs with aggregation = "ps" or "ring"')
    differing.write_text(text.replace("[[job]]", '[[job]]\naggregation = "ps"'))
    counts = "counter(4, CounterType.packets) routed;\n    apply {\n        routed.count(2);"
    program = differing.parent / "router.p4"
    program.write_text(program.read_text().replace("apply {\n        routes", f"{counts}\n routes"))
    summary = run(differing, differing.parent / "run", net="sim")
    (counted,) = summary.values["switches"]["s1"]["counters"]["Route.routed"].values()
    assert counted["packets"] > 0
    write([differing.parent / "run"])
    page = (differing.parent / "run" / "report.html").read_text()
    assert "<td>Route.routed</td>" in page


FAST = ("job.batch=300", "output.baseline=false", "output.report=false")


@pytest.mark.parametrize(
    "net", ["sim", pytest.param("mininet", marks=pytest.mark.skipif(not MININET, reason=WHY_NOT))]
)
def test_switches_of_one_network_run_different_programs(differing: Path, net: str) -> None:
    folder = differing.parent / "run"
    summary = run(differing, folder, settings=FAST, net=net)
    switches = summary.values["switches"]
    assert switches["s1"]["events"]["0"]["completed sums"] > 0
    assert [name for name in switches if not switches[name]["ports"]] == ["s3", "s4"]
    assert replay(folder).equal
    only = tomllib.loads((folder / "experiment.toml").read_text())["switch"]["only"]
    router = str(differing.parent / "router.p4")
    assert only == {"s3": {"program": router, "latency_us": 5.0}, "s4": {"program": router}}
    Path(router).write_text(Path(router).read_text().replace("action drop", "action drop "))
    with pytest.raises(FolderError, match="router.p4: not the program of the run"):
        RunData.read(folder)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("only.s4", "only.s9", 'e.toml:9: no switch "s9": known: s1, s2, s3, s4, s5'),
        (
            "switch.only.s4",
            "switch.oly.s4",
            'e.toml:9: unknown key switch.oly: did you mean "only"?',
        ),
        (
            '[switch.only.s4]\nprogram = "router.p4"',
            '[switch.only.s4]\nprogram = "ruter.p4"',
            "e.toml:10: program ruter.p4: no such file; shipped: shared.p4, shared_tna.p4, thc.p4,"
            " thc_tna.p4, tos_compress.p4, tos_compress_tna.p4",
        ),
        (
            '[switch.only.s4]\nprogram = "router.p4"',
            "[switch.only.s4]\nqueue_depth = 4",
            "e.toml:10: queue_depth without queue_rate: packets wait in a switch's own queues only"
            " where these have a rate, in packets a second",
        ),
        (
            "latency_us = 5.0",
            "defines = { SLOTS = 5 }",
            "e.toml:7: defines: SLOTS follows from the jobs, which need 256",
        ),
        (
            "latency_us = 5.0",
            'defines = { "a b" = 5 }',
            'e.toml:7: defines: "a b" is no name of a macro: letters, digits and _',
        ),
        (
            'switch.only.s4]\nprogram = "router.p4"',
            'switch.only.s1]\nprogram = "tos_compress.p4"',
            'e.toml:12: aggregation = "switch" with program = "tos_compress.p4", which sums'
            ' nothing: use program = "thc.p4", or aggregation = "ps" or "ring"',
        ),
    ],
)
def test_what_is_wrong_with_one_switch(differing: Path, old: str, new: str, said: str) -> None:
    text = differing.read_text()
    assert old in text
    differing.write_text(text.replace(old, new))
    with pytest.raises(ExperimentError) as refused:
        run(differing, differing.parent / "run", net="sim")
    assert str(refused.value).replace(f"{differing.parent}/", "") == said


def test_macros_of_all_switches_and_of_one(differing: Path) -> None:
    settings = ("switch.defines={A=1,B=2}", "switch.only.s3.defines.B=x")
    deployment = load_deployment(differing, settings)
    defines = {name: dict(deployment.program(name).defines) for name in ("s1", "s3")}
    assert [defines["s1"][name] for name in "AB"] == ["1", "2"]
    assert [defines["s3"][name] for name in "AB"] == ["1", "x"]
