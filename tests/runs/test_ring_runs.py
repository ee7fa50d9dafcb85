"""Rings and marked transfers: both networks, counters, replay, what cannot work."""

import dataclasses
import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradplane.controller import Bound
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.loading import ExperimentError, load, load_deployment
from gradplane.pages.report import rows as report_rows
from gradplane.pages.report.page import write as write_report
from gradplane.runs import run_experiment
from gradplane.runs.records import own_parts
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer.replay_run import ReplayResult, replay

MININET, WHY_NOT = run_experiment.mininet_possible()
RING = """
[topology]
kind = "ring"
workers = 3
rate = "1Gbit"
fabric_rate = "1Gbit"

[switch]
program = "tos_compress.p4"

[[job]]
aggregation = "ring"
reliability = "retransmit"
marked = true
bound = 10
push = "float32"
model = { name = "mlp", hidden = [20] }
epochs = 2
batch = 150

[[impairment]]
model = "bernoulli"
rate = 0.05

[output]
report = false
"""
SERVER = ("job.aggregation=ps", "topology.kind=leaf-spine", "topology.hosts_per_leaf=1")

Runs = Callable[..., Summary]


@pytest.fixture(scope="module")
def ring_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("experiments") / "ring.toml"
    path.write_text(RING)
    return path


@pytest.fixture(scope="module")
def ring_run(ring_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Return a run of RING with these settings, made once."""
    made: dict[tuple[str, ...], Summary] = {}

    def get(*settings: str) -> Summary:
        if settings not in made:
            out = tmp_path_factory.mktemp("runs") / "run"
            made[settings] = run_experiment.run(ring_file, out, net="sim", settings=settings)
        return made[settings]

    return get


def test_a_marked_ring_trains_beside_the_same_ring_unmarked(ring_run: Runs) -> None:
    run = ring_run()
    assert run.baseline is not None
    assert len(set(run.weights["ring"].values())) == 1
    assert run.weights["ring"] != run.baseline["jobs"][0]["weights"]
    assert run.test_accuracy == pytest.approx(run.baseline["test_accuracy"], abs=0.02)
    assert run.values["losses_injected"] and not run.baseline["losses_injected"]
    assert run.baseline["link_bytes"]["fabric"] > 1.5 * run.values["link_bytes"]["fabric"]
    plain = run.baseline["switches"]["s1"]["compression"]
    assert plain["compressed"]["packets"] == plain["decompressed"]["packets"] == 0


def test_the_shipped_ring_learns_as_well_as_without_compression(tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "experiments" / "inceptionn-ring.toml"
    run = run_experiment.run(file, tmp_path / "run", net="sim", settings=["job.epochs=3"])
    assert run.baseline is not None
    assert abs(run.test_accuracy - run.baseline["test_accuracy"]) < 0.01
    assert run.test_accuracy > 0.9
    result = replay(run.folder)
    assert isinstance(result, ReplayResult) and result.equal


def test_every_switch_compresses_what_its_host_marks(ring_run: Runs) -> None:
    run = ring_run()
    switches = run.values["switches"]
    assert list(switches) == ["s1", "s2", "s3"]
    for name, after in (("s1", "s2"), ("s2", "s3"), ("s3", "s1")):
        found, neighbour = switches[name]["compression"], switches[after]["compression"]
        # Losses are at the hosts' edges, so between switches nothing is lost.
        assert found["compressed"]["packets"] == neighbour["decompressed"]["packets"] > 0
        assert found["compressed"]["bytes_after"] == neighbour["decompressed"]["bytes"]
        assert found["malformed"] == 0 and found["passed"] == {}
        assert found["ratio"] > 2


def test_the_report_shows_switches_links_and_parts(ring_run: Runs) -> None:
    run = ring_run()
    page = html.unescape(write_report([run.folder]).read_text())
    assert "Compression" in page and "A round's time" in page
    rows = list(report_rows.compression(run.values))
    assert [row[0] for row in rows] == ["s1", "s2", "s3"]
    assert all(len(row) == len(report_rows.COMPRESSION) for row in rows)
    ratio = report_rows.ratio(run.values)
    assert ratio is not None and 2 < ratio < 16
    assert re.search(r'Between switches</h3><p class="big">\d\.\d\d× less', page)
    more = re.search(r'Payload up</h3><p class="big">(\d\.\d\d)× more<', page)
    assert more and 4 / 3 <= float(more[1]) < 1.6  # 2 (n - 1) / n, headers and what was lost
    assert "packets of streams, which send again" in page
    (own, base) = report_rows.parts(run.values)
    assert (own[0], base[0]) == ("ring", "ring, baseline") and own[1] == "1.000"


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("job.bound=6", "topology.workers=2", "job.workers=2"),
        SERVER,
        ("job.marked=false", "job.push=inceptionn"),
        ("job.codec_ns_per_value=3", "job.reduce_ns_per_value=2"),
        ("job.sum_order=workers",),
    ],
    ids=[
        *("ring", "two workers", "server", "codec of the hosts", "work takes time"),
        "workers' order",
    ],
)
def test_a_replay_is_equal_bit_for_bit(ring_run: Runs, settings: tuple[str, ...]) -> None:
    run = ring_run(*settings)
    result = replay(run.folder)
    assert isinstance(result, ReplayResult)
    assert result.equal, result.text()
    assert result.weights == run.weights


def test_a_replay_goes_through_the_program(ring_run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """At another bound the first block that is passed on twice differs, and is named."""
    run = ring_run()
    bounds = tuple(Bound(f"10.0.0.{n}", 32, 6) for n in (1, 2, 3))

    def looser(path: Path, **options: Any) -> Deployment:
        deployment = load_deployment(path, **options)
        setups = {
            name: dataclasses.replace(
                setup, compression=dataclasses.replace(setup.compression, bounds=bounds)
            )
            for name, setup in deployment.setups.items()
        }
        return dataclasses.replace(deployment, setups=setups)

    monkeypatch.setattr(own_parts, "load_deployment", looser)
    result = replay(run.folder)
    assert isinstance(result, ReplayResult) and result.difference is not None
    assert (result.difference.round, result.difference.what) == (0, "codes")
    assert "the P4 program" in result.text()


def test_recorded_losses_under_another_bound(ring_run: Runs, tmp_path: Path) -> None:
    run = ring_run()
    other = replay(run.folder, ["job.0.bound=6"], out=tmp_path / "other")
    assert isinstance(other, Summary)
    switches = other.values["switches"].values()
    ratios = [switch["compression"]["ratio"] for switch in switches]
    before = run.values["switches"]["s1"]["compression"]["ratio"]
    assert all(ratio > before for ratio in ratios)
    assert other.weights["ring"] != run.weights["ring"]
    lost = RunData.read(run.folder).verdicts
    again = RunData.read(other.folder).verdicts
    key = ("link", "direction", "type", "peer", "use", "slot", "attempt")
    assert {tuple(v[k] for k in key) for v in again} <= {tuple(v[k] for k in key) for v in lost}


def test_the_parts_of_a_round_add_up(ring_run: Runs) -> None:
    times = ("job.codec_ns_per_value=3", "job.reduce_ns_per_value=2")
    run = ring_run(*times, "impairment=[]", "output.baseline=false")
    (job,) = run.values["jobs"]
    # Each worker adds two thirds of the values; float32 as it is takes no codec.
    assert job["parts"]["reduce"] == pytest.approx(2e-9 * 2 / 3 * job["values"], rel=0.01)
    assert job["parts"]["codec"] == 0 and job["parts"]["compute"] == 1e-3
    assert sum(job["parts"].values()) == pytest.approx(job["seconds"] / job["rounds"], rel=0.02)


def test_a_servers_work_is_a_part_of_its_own(ring_run: Runs) -> None:
    run = ring_run(*SERVER, "job.reduce_ns_per_value=2", "job.codec_ns_per_value=3")
    (job,) = run.values["jobs"]
    assert job["parts"]["reduce"] == pytest.approx(2e-9 * 2 * job["values"], rel=0.01)
    assert job["parts"]["communication"] > 0


@pytest.mark.skipif(not MININET, reason=WHY_NOT)
def test_on_mininet_a_ring_ends_with_the_same_weights(
    ring_run: Runs, ring_file: Path, tmp_path: Path
) -> None:
    settings = ("output.baseline=false",)
    real = run_experiment.run(ring_file, tmp_path / "run", net="mininet", settings=settings)
    assert real.values["network"] == "mininet"
    assert real.weights == ring_run().weights
    assert all(s["compression"]["ratio"] > 2 for s in real.values["switches"].values())
    result = replay(real.folder)
    assert isinstance(result, ReplayResult) and result.equal


def test_a_job_is_summed_where_all_its_workers_are_attached(
    ring_file: Path, tmp_path: Path
) -> None:
    settings = ("topology.workers=4", "topology.hosts_per_switch=2", "switch.program=thc.p4")
    job = 'job=[{aggregation="switch", workers=2, first_host=3, model={name="mlp", hidden=[4]}}]'
    deployment = load_deployment(ring_file, (*settings, job, "impairment=[]"))
    assert {name: len(setup.jobs) for name, setup in deployment.setups.items()} == {
        "s1": 0,
        "s2": 1,
        "s3": 0,
    }
    run = run_experiment.run(
        deployment.experiment, tmp_path / "run", net="sim", settings=["output.baseline=false"]
    )
    switches = run.values["switches"]
    assert not switches["s1"]["events"] and switches["s2"]["events"]["0"]["completed sums"] > 0


REFUSED = {
    "the program": (
        'program = "tos_compress.p4"',
        'program = "thc.p4"',
        'marked = true with program = "thc.p4", which compresses nothing: use'
        ' program = "tos_compress.p4"',
    ),
    "no bound": (
        "bound = 10\n",
        "",
        "bound is missing: marked transfers need 6, 8 or 10, for 2^-bound",
    ),
    "a bound that there is not": (
        "bound = 10",
        "bound = 9",
        "job.0.bound = 9: expected 6, 8 or 10",
    ),
    "one switch": (
        'kind = "ring"',
        'hosts_per_switch = 3\nkind = "ring"',
        "marked = true on one switch (ring): packets are compressed between switches: use"
        ' kind = "ring" or "leaf-spine" with fewer hosts per switch',
    ),
    "lossy": (
        "retransmit",
        "lossy",
        'aggregation = "ring" with reliability = "lossy": a lost partial sum would stop the ring,'
        ' so hosts send it again: use reliability = "retransmit", or'
        ' aggregation = "switch" or "ps"',
    ),
    "a quorum": (
        "marked = true",
        "marked = true\nquorum = 2",
        'aggregation = "ring" with quorum = 2 of 3 workers: every partial sum passes through all'
        ' workers, so no worker can be left out: use quorum = 3, or aggregation = "switch" or "ps"',
    ),
    "a codec beside the mark": (
        'push = "float32"',
        'push = "inceptionn"',
        'marked = true with push = "inceptionn": the network compresses float32 values only: use'
        ' push = "float32", or marked = false',
    ),
    "a pull codec": (
        'push = "float32"',
        'push = "float32"\npull = "float16"',
        'a ring has no server that answers: pull is for aggregation = "ps"',
    ),
    "an order without a ring": (
        'aggregation = "ring"',
        'aggregation = "ps"\nsum_order = "workers"',
        'sum_order applies to aggregation = "ring" and to rings only: leave it out',
    ),
    "a sum in several switches": (
        'aggregation = "ring"',
        'aggregation = "switch"',
        'aggregation = "switch" with program = "tos_compress.p4", which sums nothing: use'
        ' program = "thc.p4", or aggregation = "ps" or "ring"',
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_work_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "e.toml"
    path.write_text(RING.replace(old, new))
    with pytest.raises(ExperimentError) as error:
        load(path)
    lines = [line.partition(": ")[2] for line in str(error.value).splitlines()]
    assert message in lines


def test_two_bounds_for_one_host_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    second = RING[RING.index("[[job]]") : RING.index("[[impairment]]")].replace("10", "8")
    path.write_text(RING + second)
    with pytest.raises(ExperimentError) as error:
        load(path)
    assert str(error.value).endswith(
        ": bound = 8 beside 10 of job job0 for 10.0.0.1: a switch has one error bound per"
        " destination"
    )


def test_codes_of_workers_on_several_switches_are_refused(ring_file: Path) -> None:
    settings = ("switch.program=thc.p4", 'job=[{aggregation="switch"}]')
    with pytest.raises(ExperimentError) as error:
        load(ring_file, settings)
    assert (
        "job ring: its workers are attached to switches s1, s2, s3, and switch s2 has workers and"
        " passes on what switch s1 sums" in str(error.value)
    )
