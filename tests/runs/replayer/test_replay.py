"""Replays: bit for bit, first differences named, recorded losses under a changed experiment."""

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradplane
from gradplane.codecs._grid import GridCodec
from gradplane.experiment.loading import ExperimentError, load
from gradplane.hosts.digest import FUNCTION, OLDER, digests_by
from gradplane.pages.report import page
from gradplane.runs.records.manifest import Manifest
from gradplane.runs.records.run_data import expanded
from gradplane.runs.records.run_folder import FolderError, read_lines
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer.replay_run import ReplayResult, replay, under_recorded_losses

Runs = Callable[..., Summary]

STRAGGLER = '{model="straggler", count=1, delay_ms=5}'
SCHEMES = {
    "lossless": (),
    "retransmit": ("job.reliability=retransmit", 'impairment=[{model="bernoulli", rate=0.1}]'),
    "retransmit, quorum": (
        "job.reliability=retransmit",
        "job.quorum=2",
        "job.slots=4",
        f'impairment=[{{model="bernoulli", rate=0.05}}, {STRAGGLER}]',
    ),
    "lossy, two slots": (
        "job.quorum=2",
        "job.slots=2",
        "job.retries=1",
        f'impairment=[{{model="bernoulli", rate=0.2}}, {STRAGGLER}]',
    ),
    "16-bit sums": (
        "job.sum_bits=16",
        "job.push=uniform_thc",
        "job.error_feedback=false",
        "job.epochs=1",
    ),
    "server, THC": ("job.aggregation=ps", 'impairment=[{model="bernoulli", rate=0.05}]'),
    "server, quorum": (
        "job.aggregation=ps",
        "job.quorum=2",
        'impairment=[{model="bernoulli", rate=0.05}]',
    ),
}


@functools.cache
def replayed(folder: Path) -> ReplayResult:
    """Replay a run once; folders are not changed afterwards."""
    result = replay(folder)
    assert isinstance(result, ReplayResult)
    return result


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=list(SCHEMES))
def test_a_replay_is_equal_bit_for_bit(small_run: Runs, scheme: tuple[str, ...]) -> None:
    run = small_run(*scheme)
    result = replayed(run.folder)
    assert result.text().splitlines()[0] == (
        f"equal: {run.values['rounds']} rounds, every gradient, code, sum and weight"
    )
    assert result.equal and result.weights == run.weights


def test_defaults_follow_from_a_changed_scheme(tmp_path: Path) -> None:
    """The run folder has keys that the user did not write; they do not block another scheme."""
    path = tmp_path / "ps.toml"
    path.write_text('[topology]\nworkers = 3\n[[job]]\naggregation = "ps"\n')
    recorded = load(path)
    assert recorded.job[0].pull is not None
    changed = under_recorded_losses(recorded, [], ["job.aggregation=switch", "topology.workers=2"])
    (job,) = changed.job
    assert (job.pull, job.workers, job.quorum, job.name) == (None, 2, 2, "ps")
    assert under_recorded_losses(recorded, [], ["job.lr=0.2"]).job[0].pull == recorded.job[0].pull
    path.write_text(path.read_text() + 'pull = "float16"\nquorum = 2\n')
    with pytest.raises(ExperimentError, match="pull is for aggregation"):
        under_recorded_losses(load(path), [], ["job.aggregation=switch"])
    kept = under_recorded_losses(load(path), [], ["job.lr=0.2"]).job[0]
    assert (kept.pull and kept.pull.name, kept.quorum) == ("float16", 2)


def test_losses_stragglers_and_synchronisations_replay(lossy_run: Summary) -> None:
    assert replayed(lossy_run.folder).weights == lossy_run.weights
    assert gradplane.replay(lossy_run.folder) == replayed(lossy_run.folder)


@pytest.mark.parametrize(
    "settings",
    [
        (
            *("job.slots=16", "job.compute_ms=[0.1, 0.3]"),
            'impairment=[{model="reordering", rate=0.1, delay_ms=3.0}]',
        ),
        (
            *("job.slots=4", "job.retries=0"),
            'job.compute_ms={distribution="pareto", mean=2.0, alpha=1.5}',
            'impairment=[{model="jitter", jitter_ms=2.0, direction="down"}]',
        ),
    ],
    ids=["its slot is still in that round", "its slot is in a later round"],
)
def test_a_norm_that_is_asked_for_after_its_result_replays(
    small_run: Runs, monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...]
) -> None:
    """With a quorum of one, a worker's results of a partition pass before it comes to it."""
    monkeypatch.setattr(GridCodec, "_max_partition", 2**11)
    run = small_run(
        *("topology.workers=2", "job.quorum=1", "job.sum_bits=16", "job.epochs=1", "job.batch=1"),
        *('job.model={name="synthetic", values=8351}', 'job.data={name="blank", rows=8}'),
        *settings,
    )
    assert replayed(run.folder).equal


def test_what_is_said_of_an_equal_replay(small_run: Runs) -> None:
    run = small_run()
    (digest,) = set(run.weights["small"].values())
    assert replayed(run.folder).text() == (
        "equal: 6 rounds, every gradient, code, sum and weight\n"
        f"final weights of small, all workers: {digest}"
    )


def test_a_replay_says_how_many_of_all_rounds_are_done(small_run: Runs) -> None:
    told: list[tuple[int, int]] = []
    replay(small_run().folder, on_round=lambda done, total: told.append((done, total)))
    assert told == [(done, 6) for done in range(1, 7)]


def test_workers_that_drifted_apart_are_listed_one_by_one(small_run: Runs) -> None:
    run = small_run(*SCHEMES["lossy, two slots"])
    weights = run.weights["small"]
    last = replayed(run.folder).text().splitlines()[-1]
    each = ", ".join(f"{worker} {digest}" for worker, digest in weights.items())
    assert last == f"final weights of small, by worker: {each}"


def editable(folder: Path, to: Path) -> Path:
    """Return a copy without digests, so that its records may be changed."""
    shutil.copytree(folder, to)
    (to / "manifest.json").unlink()
    return to


@pytest.fixture
def copy(small_run: Runs, tmp_path: Path) -> Path:
    return editable(small_run().folder, tmp_path / "copy")


def change(path: Path, which: Callable[[dict[str, Any]], bool], how: dict[str, Any]) -> None:
    lines = list(read_lines(path))
    for line in lines:
        for found in [line, *line.get("workers", ())]:
            if which(found):
                found |= how
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


UNCHECKED = "No manifest.json, as in folders of older versions: no digest was checked."
REASONS = {
    "gradient": "A gradient is computed before anything is sent: the cause is the machine (or the"
    " model or data), not the network.",
    "codes": "The gradients are equal and their codes are not: the cause is the codec, or (partial"
    " sums of a ring) the P4 program.",
    "sums": "The codes are equal and their sums are not: the cause is the P4 program, its tables,"
    " or the recorded outcome.",
    "weights": "The sums are equal and the weights are not: the cause is the decoding or the"
    " update.",
}


@pytest.mark.parametrize("what", REASONS)
def test_the_first_difference_is_named(copy: Path, what: str) -> None:
    lines = list(read_lines(copy / "metrics.jsonl"))
    digest = lines[3]["workers"][1][what]
    change(
        copy / "metrics.jsonl", lambda d: d.get(what) == digest and d["worker"] == 1, {what: "x"}
    )
    result = replayed(copy)
    assert result.text() == (
        "different, after 3 rounds that were equal\n"
        f"first difference: job 0, round 3, worker 1: {what} {digest}, recorded x\n"
        f"{REASONS[what]}\n{UNCHECKED}"
    )


def test_a_wrong_sum_is_found_with_its_slot(small_run: Runs, tmp_path: Path) -> None:
    """Slot 5 (chunk 5, training round 2) gets other workers' packets than were summed."""
    copy = editable(small_run("job.quorum=2").folder, tmp_path / "copy")

    def which(line: dict[str, Any]) -> bool:
        return line.get("kind") == "arrival" and (line["slot"], line["use"]) == (5, 1)

    path = copy / "arrivals.jsonl"
    chunks = list(expanded(read_lines(path), path))
    path.write_text("".join(json.dumps(chunk) + "\n" for chunk in chunks))
    lines = list(filter(which, chunks))
    others = {"0000000000000003": "0000000000000006"}.get(lines[0]["bitmap"], "0000000000000003")
    change(path, which, {"bitmap": others})
    difference = replayed(copy).difference
    assert difference is not None
    first, reason = difference.text().splitlines()
    assert first.startswith("first difference: job 0, round 2, slot 5 (use 1), worker 0: sums ")
    assert reason == REASONS["sums"]


def test_another_machine_is_named_with_the_difference(copy: Path) -> None:
    summary = json.loads((copy / "summary.json").read_text())
    (copy / "summary.json").write_text(json.dumps(summary | {"cpu": "Z80"}))
    change(copy / "metrics.jsonl", lambda d: "gradient" in d, {"gradient": "x"})
    result = replayed(copy)
    assert result.text().splitlines()[-2] == (
        f"This machine differs from the recorded one: cpu {summary['cpu']}, recorded Z80"
    )


def test_a_record_that_is_not_this_experiments_is_refused(copy: Path) -> None:
    from gradplane.runs.replayer.reenactment import ReplayError

    def norms(line: dict[str, Any]) -> bool:
        return line.get("kind") == "norm" and line["ticket"] == 1

    change(copy / "arrivals.jsonl", norms, {"bitmap": "0000000000000001"})
    with pytest.raises(ReplayError) as caught:
        replay(copy)
    assert str(caught.value) == (
        "round 1, worker 0 had the norm of slot 2, use 1 in time, but the switch does not give"
        " it: arrivals.jsonl is not this experiment's, or not complete"
    )


def test_the_same_losses_under_another_scheme(lossy_run: Summary, tmp_path: Path) -> None:
    settings = ["job.quorum=3", "job.reliability=retransmit"]
    changed = replay(lossy_run.folder, settings, out=tmp_path / "changed")
    assert isinstance(changed, Summary)
    assert changed.values["jobs"][0]["missed"] == 0
    recorded = {_packet(line) for line in read_lines(lossy_run.folder / "impairments.jsonl")}
    applied = {_packet(line) for line in read_lines(changed.folder / "impairments.jsonl")}
    assert applied and applied <= recorded
    assert replayed(changed.folder).weights == changed.weights


def _packet(line: dict[str, Any]) -> tuple[Any, ...]:
    keys = ("link", "direction", "job", "type", "use", "slot", "attempt", "peer", "verdict")
    return tuple(line[key] for key in keys)


def test_unchanged_settings_give_the_same_run(lossy_run: Summary, tmp_path: Path) -> None:
    """The drop list stands for the models: the same packets are lost, the same weights come out."""
    again = replay(lossy_run.folder, ["job.quorum=2"], out=tmp_path / "again")
    assert isinstance(again, Summary)
    assert again.weights == lossy_run.weights


def test_a_folder_of_an_older_version_is_read_with_a_note(
    lossy_run: Summary, tmp_path: Path
) -> None:
    """It says round for a training round and for the use of a slot."""
    old = tmp_path / "old"
    shutil.copytree(lossy_run.folder, old)
    (old / "manifest.json").unlink()
    for path in old.rglob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if line.get("kind") == "verdict":
                del line["training_round"], line["impairment"]
            for name in ("training_round", "use"):
                if name in line:
                    line["round"] = line.pop(name)
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    result = replayed(old)
    assert result.equal and result.weights == replayed(lossy_run.folder).weights
    assert result.notes[-1].startswith("Records of an older version: their round is read as")
    again = replay(old, ["job.quorum=2"], out=tmp_path / "again")
    assert isinstance(again, Summary)
    assert again.weights == lossy_run.weights


def test_a_folder_with_digests_by_sha256_replays_equal(
    experiment_file: Path, small_run: Runs, tmp_path: Path
) -> None:
    """Records of older versions, by SHA-256, do not name the function."""
    old = tmp_path / "old"
    with digests_by(OLDER):
        summary = gradplane.run(experiment_file, old, net="sim")
    assert summary.weights != small_run().weights
    without_function(old)
    result = replayed(old)
    assert result.equal and result.weights == summary.weights
    change(old / "metrics.jsonl", lambda line: "codes" in line, {"codes": "x"})
    (old / "manifest.json").unlink()
    differs = replay(old)
    assert isinstance(differs, ReplayResult) and not differs.equal
    text = page.write([old, small_run().folder], tmp_path / "both.html").read_text()
    assert (
        f"Different functions made the digests of these runs, SHA-256 in old; XXH3-64 in"
        f" {small_run().folder.name}: those of equal weights differ."
    ) in text


def without_function(folder: Path) -> None:
    """Remove the name of the digest function from the records."""
    summary = json.loads((folder / "summary.json").read_text())
    assert summary.pop("digests") == FUNCTION
    (folder / "summary.json").write_text(json.dumps(summary))
    manifest = Manifest.read(folder)
    assert manifest is not None
    values = manifest.including(folder, ["summary.json"]).model_dump()
    assert values.pop("digests") == FUNCTION
    (folder / "manifest.json").write_text(json.dumps(values))


def test_digests_by_a_function_of_later_versions_are_refused(
    small_run: Runs, tmp_path: Path
) -> None:
    later = editable(small_run().folder, tmp_path / "later")
    summary = json.loads((later / "summary.json").read_text())
    (later / "summary.json").write_text(json.dumps(summary | {"digests": "XXH9"}))
    with pytest.raises(FolderError) as caught:
        replay(later)
    assert str(caught.value) == (
        f"{later}: its digests are made by XXH9, which this version of gradplane does not know (it"
        " knows XXH3-64, SHA-256): use the version that recorded it"
    )


def test_wrong_settings_and_folders_are_refused(small_run: Runs, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError) as caught:
        replay(small_run().folder, ["job.qorum=3"], out=tmp_path / "x")
    assert str(caught.value) == (
        '--set job.qorum=3: unknown key job.0.qorum: did you mean "quorum"?'
    )
    with pytest.raises(FolderError):
        replay(tmp_path)
