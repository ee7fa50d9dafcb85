"""Whole runs on the simulated network, and one on Mininet where the machine allows it."""

import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import gradplane
from gradplane.experiment.loading import ExperimentError, load
from gradplane.runs import run_experiment
from gradplane.runs.records.recorder import StallError
from gradplane.runs.records.run_data import expanded
from gradplane.runs.records.run_folder import read_lines
from gradplane.runs.records.summary import Summary

Runs = Callable[..., Summary]
MININET, WHY_NOT = run_experiment.mininet_possible()


@pytest.fixture(scope="module")
def whole(experiment_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """Return a run with a baseline and packet captures."""
    out = tmp_path_factory.mktemp("whole") / "run"
    settings = (
        "output.baseline=true", "output.report=true", "output.pcap=true", "job.epochs=1"
    )  # fmt: skip
    return gradplane.run(experiment_file, out, net="sim", settings=settings)


def test_summary_says_the_accuracies_first(whole: Summary) -> None:
    summary = json.loads((whole.folder / "summary.json").read_text())
    assert list(summary)[:2] == ["test_accuracy", "baseline"]
    assert next(iter(summary["baseline"])) == "test_accuracy"
    assert summary == whole.values
    assert whole.test_accuracy == summary["test_accuracy"]


def test_summary_has_seed_network_and_machine(whole: Summary) -> None:
    values = whole.values
    assert (values["name"], values["network"], values["seed"]) == ("small", "sim", 1)
    assert values["versions"]["gradplane"] == gradplane.__version__
    assert all(values[key] for key in ("cpu", "blas", "platform"))


def test_payload_and_headers_are_counted_apart(whole: Summary) -> None:
    """2 packets of 512 bytes up, 1,024 down, and a norm; 42 + 30 bytes of headers each."""
    assert whole.baseline is not None
    (job,), (plain,) = whole.values["jobs"], whole.baseline["jobs"]
    headers = 3.0 * (42 + 30)
    assert job["traffic"] == {
        "packets_up": 3.0,
        "packets_down": 3.0,
        "payload_up": 1024.0,
        "payload_down": 2048.0,
        "headers_up": headers,
        "headers_down": headers,
    }
    assert plain["traffic"]["payload_up"] >= 4 * job["values"] == 4 * 1510


def test_what_the_hosts_count_is_what_the_links_carry(whole: Summary) -> None:
    (job,) = whole.values["jobs"]
    traffic, rounds = job["traffic"], job["rounds"]
    for link in whole.values["links"][:3]:
        for way in ("up", "down"):
            each = traffic[f"payload_{way}"] + traffic[f"headers_{way}"]
            assert link[f"{way}_bytes"] == rounds * each
            assert link[f"{way}_packets"] == rounds * traffic[f"packets_{way}"]


def test_switch_counters_agree_with_the_rounds(whole: Summary) -> None:
    events = whole.values["switches"]["s1"]["events"]["0"]
    rounds = whole.values["rounds"]
    assert events == {
        "accepted": 3 * 3 * rounds,
        "completed sums": 2 * rounds,
        "completed norms": rounds,
    }
    assert whole.values["switches"]["s1"]["not_admitted"] == 0
    assert list(whole.values["switches"]["s1"]["ports"]) == ["1", "2", "3"]


def test_every_worker_ends_with_the_same_weights(whole: Summary) -> None:
    assert whole.baseline is not None
    for values in (whole.values, whole.baseline):
        assert len(set(values["jobs"][0]["weights"].values())) == 1


def test_run_folder_has_all_its_files(whole: Summary) -> None:
    names = {path.name for path in whole.folder.iterdir()}
    assert names == {
        "arrivals.jsonl",
        "baseline",
        "experiment.toml",
        "impairments.jsonl",
        "links.jsonl",
        "manifest.json",
        "metrics.jsonl",
        "pcap",
        "report.html",
        "summary.json",
    }
    assert len(list((whole.folder / "pcap").iterdir())) == 8  # 4 ports, in and out
    assert len(list(read_lines(whole.folder / "metrics.jsonl"))) == whole.values["rounds"]


def test_the_resolved_experiment_repeats_the_run(whole: Summary, tmp_path: Path) -> None:
    again = run_experiment.run(whole.folder / "experiment.toml", tmp_path / "again", net="sim")
    for name in ("metrics.jsonl", "arrivals.jsonl", "baseline/metrics.jsonl"):
        assert (again.folder / name).read_text() == (whole.folder / name).read_text()
    assert again.weights == whole.weights


def test_another_seed_is_another_run(
    small_run: Runs, experiment_file: Path, tmp_path: Path
) -> None:
    other = run_experiment.run(experiment_file, tmp_path / "run", net="sim", seed=2)
    assert other.weights != small_run().weights
    assert other.values["seed"] == 2


def test_many_at_once(experiment_file: Path, tmp_path: Path, small_run: Runs) -> None:
    def run(n: int) -> Summary:
        return run_experiment.run(experiment_file, tmp_path / str(n), net="sim")

    with ThreadPoolExecutor(2) as pool:
        summaries = list(pool.map(run, range(2)))
    assert {str(s.weights) for s in summaries} == {str(small_run().weights)}


def test_a_summary_can_be_pickled(whole: Summary) -> None:
    assert pickle.loads(pickle.dumps(whole)) == whole


def test_losses_are_recorded_and_survived(lossy_run: Summary) -> None:
    values = lossy_run.values
    verdicts = list(read_lines(lossy_run.folder / "impairments.jsonl"))
    counted = {
        (kind, way): count
        for kind, ways in values["losses_injected"].items()
        for way, count in ways.items()
    }
    assert sum(counted.values()) == len(verdicts) > 0
    assert counted["drop", "up"] and counted["drop", "down"] and counted["delay", "up"]
    assert values["jobs"][0]["missed"] > 0
    path = lossy_run.folder / "arrivals.jsonl"
    arrivals = expanded(read_lines(path), path)
    results = {line["result"] for line in arrivals if line["kind"] == "arrival"}
    assert {"in time", "lost"} <= results


def test_several_jobs_share_the_switch(experiment_file: Path, tmp_path: Path) -> None:
    text = experiment_file.read_text().replace("workers = 3", "workers = 4")
    jobs = text.replace("[[job]]", "[[job]]\nworkers = 2")
    second = jobs[jobs.index("[[job]]") : jobs.index("[output]")].replace("20", "30")
    path = tmp_path / "two.toml"
    path.write_text(jobs + second.replace("[[job]]", "[[job]]\nfirst_host = 3"))
    summary = run_experiment.run(path, tmp_path / "run", net="sim", settings=["job.epochs=1"])
    first, second_job = summary.values["jobs"]
    assert first["weights"] != second_job["weights"]
    assert set(summary.values["switches"]["s1"]["events"]) == {"0", "1"}


def test_a_stalled_run_fails_and_says_who_is_missing(experiment_file: Path, tmp_path: Path) -> None:
    silent = '{model="bernoulli", rate=1.0, link="h2", direction="up", flow=["indices"]}'
    settings = ["job.reliability=retransmit", f"impairment=[{silent}]", "patience_s=1"]
    with pytest.raises(StallError) as caught:
        run_experiment.run(experiment_file, tmp_path / "run", net="sim", settings=settings)
    lines = str(caught.value).splitlines()
    assert lines[0] == "stalled: no round ended for 1 s"
    assert lines[1] == "  job 0, worker 0 waits for slot 0, use 1; missing workers: 1"
    failure = (tmp_path / "run" / "failure.txt").read_text()
    assert failure == f"StallError: {caught.value}\n"
    assert not (tmp_path / "run" / "summary.json").exists()


def test_nothing_is_written_for_what_cannot_run(experiment_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError):
        run_experiment.run(experiment_file, tmp_path / "run", net="sim", settings=["job.quorum=9"])
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_program_is_refused_before_anything_starts(
    experiment_file: Path, tmp_path: Path
) -> None:
    from gradplane.switch.source import CompileError

    program = tmp_path / "wrong.p4"
    program.write_text("control c() { apply { x = 1; } }\n")
    with pytest.raises(CompileError) as caught:
        settings = [f"switch.program={program}"]
        run_experiment.run(experiment_file, tmp_path / "run", net="sim", settings=settings)
    assert str(caught.value).startswith(f"{program}:1:23: error: ")
    assert not (tmp_path / "run").exists()


def test_choice_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    monkeypatch.setattr(run_experiment, "mininet_possible", lambda: (False, "no mnexec here"))
    console = Console(width=80, record=True, quiet=False)
    assert run_experiment.choose_network("sim", console) == "sim"
    assert run_experiment.choose_network(None, console) == "sim"
    assert console.export_text() == "On the simulated network: no mnexec here\n"
    with pytest.raises(ExperimentError) as refused:
        run_experiment.choose_network("mininet", console)
    assert str(refused.value) == "Mininet cannot be used here: no mnexec here; or use --net sim"
    with pytest.raises(ExperimentError) as unknown:
        run_experiment.choose_network("ns3", console)
    assert str(unknown.value) == 'no network "ns3": use mininet or sim or cluster'


def test_the_prompt_needs_mininet(experiment_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError) as caught:
        run_experiment.run(experiment_file, tmp_path / "run", net="sim", cli=True)
    assert str(caught.value) == (
        "--cli is Mininet's prompt, and this run is on the simulated network"
    )


@pytest.mark.skipif(not MININET, reason=WHY_NOT)
def test_mininet_gives_the_weights_of_the_simulation(
    experiment_file: Path, tmp_path: Path, small_run: Runs
) -> None:
    """Without losses both networks deliver the same sums, and so the same weights."""
    settings = ["job.epochs=1", "job.timeout_ms=60000"]  # no timer fires
    real = run_experiment.run(experiment_file, tmp_path / "real", net="mininet", settings=settings)
    simulated = small_run(*settings)
    assert real.values["network"] == "mininet"
    assert real.weights == simulated.weights
    assert _digests(real) == _digests(simulated)


def _digests(summary: Summary) -> list[Any]:
    lines = read_lines(summary.folder / "metrics.jsonl")
    kinds = ("gradient", "codes", "sums", "weights")
    return [[[w[kind] for kind in kinds] for w in line["workers"]] for line in lines]


def test_the_demo_saves_what_it_promises(tmp_path: Path) -> None:
    """4 workers, THC with b = 4, g = 30: payload against float32, as the links carry it."""
    demo = Path(__file__).parents[2] / "experiments" / "thc-star.toml"
    settings = ["job.epochs=1", "job.batch=150", "output.baseline=false"]
    values = run_experiment.run(demo, tmp_path / "run", net="sim", settings=settings).values
    (job,) = values["jobs"]
    plain, rounds = 4 * job["values"], job["rounds"]
    assert job["traffic"]["packets_up"] == 1 + 4
    for way, least in (("up", 7.8), ("down", 3.9)):
        packets = rounds * job["traffic"][f"packets_{way}"]
        for link in values["links"][:4]:
            assert link[f"{way}_packets"] == packets
            payload = link[f"{way}_bytes"] - packets * (14 + 20 + 8 + 30)
            assert plain * rounds / payload >= least


def test_an_experiment_object_runs_too(experiment_file: Path, tmp_path: Path) -> None:
    experiment = load(experiment_file, ["job.epochs=1", "job.model=softmax"])
    summary = run_experiment.run(experiment, tmp_path / "run", net="sim")
    assert summary.values["jobs"][0]["values"] == 650
