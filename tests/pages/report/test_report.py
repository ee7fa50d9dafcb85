"""Reports: everything inside, right numbers, several runs side by side."""

import base64
import errno
import itertools
import json
import re
import shutil
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradplane.pages.report import causes, comparison_page, round_charts, round_records
from gradplane.pages.report import page as report
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.run_folder import FolderError
from gradplane.runs.records.summary import Summary, again

Runs = Callable[..., Summary]


def page(folder: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib's, where a figure does not fit
        return report.write([folder]).read_text()


def figures_in(text: str) -> int:
    """Count the figures of a page that are drawn from its data."""
    return len(data_of(text)["figures"])


def data_of(text: str) -> dict[str, Any]:
    """Return the data of a page's figures."""
    found = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', text)
    assert found
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[1])))
    return data


def test_a_report_needs_nothing_from_elsewhere(lossy_run: Summary) -> None:
    text = page(lossy_run.folder)
    shown = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    links = re.findall(r'(?:href|src)="([^"#][^"]*)"|(url\([^#])', shown)
    assert all(link.startswith("data:") for link, _ in links)
    assert 'id="plotly"' in text and "src=" not in text
    assert text.count('data-figure="') == figures_in(text) == 13
    assert len(text) < 3e6


def test_a_report_that_finds_no_room_can_be_made_later(
    lossy_run: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(lossy_run.folder, folder)
    experiment = folder / "experiment.toml"
    experiment.write_text(experiment.read_text().replace("report = false", "report = true"))
    (folder / "manifest.json").unlink()

    def full(path: Path, content: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(report, "write_whole", full)
        with pytest.raises(OSError, match="No space left on device") as caught:
            report.write_wanted(folder)
    assert caught.value.filename == str(folder / "report.html")
    assert caught.value.__notes__ == [
        f"{folder}: the run is finished, with all its records; its report alone is missing\n"
        f"  gradplane report {folder}    writes it, as soon as there is room\n"
        f"  gradplane report {folder} --out FILE    writes it elsewhere"
    ]
    report.write_wanted(folder)
    assert (folder / "report.html").is_file()


def test_a_link_in_the_reports_place_is_replaced_and_not_followed(
    lossy_run: Summary, tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("kept")
    out = tmp_path / "report.html"
    out.symlink_to(other)
    report.write([lossy_run.folder], out)
    assert other.read_text() == "kept" and not out.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.txt", "report.html"]


def test_the_page_has_each_round_as_recorded(lossy_run: Summary) -> None:
    (job,) = data_of(page(lossy_run.folder))["details"]["jobs"]
    run = RunData.read(lossy_run.folder)
    for shown, line in zip(job["rounds"], run.metrics, strict=True):
        assert shown["took"] == line["finished"] - line["started"]
        for lane, worker in zip(shown["lanes"], line["workers"], strict=True):
            assert lane[:3] == [worker["worker"], worker["started"] - line["started"],
                                worker["missed"]]  # fmt: skip
            assert lane[3:] == sorted(lane[3:])
            assert lane[3] == worker["computed"] - line["started"]
            assert lane[-1] == worker["finished"] - line["started"]
        members = {use[0]: use[6] for use in shown["slots"]}
        for arrival in run.arrivals:
            if (arrival["kind"], arrival.get("ticket")) != ("arrival", line["training_round"]):
                continue
            if arrival["result"] == "in time":
                absent = [w for w in range(3) if not int(arrival["bitmap"], 16) >> w & 1]
                assert members[arrival["slot"]] == absent
    events = [event for r in job["rounds"] for event in r["events"]]
    lost = [e for e in events if e[2] == "lost" and " slot " in e[3]]
    slots = [line for line in run.verdicts if line["type"] not in ("stream", "ack")]
    assert len(lost) == sum(line["verdict"] in ("drop", "leave out") for line in slots) > 0
    assert all(event[1] is not None for event in lost)


def test_a_slow_round_is_explained(small_run: Runs) -> None:
    """The packet of worker 1 for slot 1 is lost three times in the third round."""
    packets = ", ".join(
        f'{{link="h2", direction="up", type="indices", slot=1, use=3, attempt={attempt}}}'
        for attempt in range(3)
    )
    lost = f'impairment=[{{model="drop list", packets=[{packets}]}}]'
    run = small_run("job.reliability=retransmit", "job.slots=2", lost)
    data = data_of(page(run.folder))
    (round_two,) = (r for r in data["details"]["jobs"][0]["rounds"] if r["number"] == 2)
    assert "Worker 1's packet (indices, slot 1) was lost 3 times on h2's link" in round_two["cause"]
    assert "timer ran out 3 times, waiting from 1 ms to 4 ms: 7 ms in all" in round_two["cause"]
    assert "named worker 1 as missing" in round_two["cause"]


def test_an_end_of_the_epoch_that_lost_packets_is_the_cause(small_run: Runs) -> None:
    """Worker 1 misses results in the first of two epochs, and gets the others' parameters late."""
    lost = [f'{{link="h2", direction="down", type="sums", use={use}}}' for use in (1, 2)]
    lost += [f'{{link="h2", direction="down", type="stream", attempt={n}}}' for n in range(3)]
    run = small_run(
        *("job.sync=true", "job.reliability=lossy", "job.momentum=0.9"),
        f'impairment=[{{model="drop list", packets=[{", ".join(lost)}]}}]',
    )
    (job,) = data_of(page(run.folder))["details"]["jobs"]
    (cause,) = [r["cause"] for r in job["rounds"] if "end of the epoch" in (r["cause"] or "")]
    assert "Worker 1 began it" in cause
    assert "The packets to worker 1 (stream) were lost" in cause and "Streams sent" in cause


def test_a_straggling_computation_is_the_cause(small_run: Runs) -> None:
    run = small_run("job.compute_ms=[1.0, 1.0, 9.0]")
    folder = run.folder
    found = causes.slowest(RunData.read(folder), round_records.read(RunData.read(folder)))
    assert len(found) == 1  # no round stands out
    assert found[0].cause == "No phase is much longer than usual."


def test_events_are_of_the_round_in_their_records(small_run: Runs) -> None:
    """Answers to one worker are late, so that the others are a round ahead of it."""
    late = '{model="jitter", link="h3", direction="down", delay_ms=30, jitter_ms=1}'
    folder = small_run("job.aggregation=ps", f"impairment=[{late}]").folder
    (job,) = round_records.read(RunData.read(folder))
    assert any(after.started < max(lane.finished for lane in before.lanes)
               for before, after in itertools.pairwise(job.rounds))  # fmt: skip
    placed = [
        (training_round.number, event.line["training_round"])
        for training_round in job.rounds
        for event in training_round.events
        if event.line["kind"] == "verdict"
    ]
    assert placed and all(number == recorded for number, recorded in placed)
    worker, *_ = job.rounds[2].lanes
    resent = round_records.Event(worker.worker, worker.started - 1, "sent again", "", {})
    assert round_records._round_at(job.rounds, resent) == 1
    assert round_records._round_at(job.rounds, replace(resent, at=-1)) is None


def test_what_queues_dropped_in_the_round_before_is_named(small_run: Runs) -> None:
    """A worker began late, as its packets of the round before had been dropped."""
    run = RunData.read(small_run().folder)
    (job,) = round_records.read(run)
    run.link_use[1]["links"][1][2:4] = [2, 5]
    run.link_use[2]["links"][2][2:4] = [1, 0]
    first, second = (link.name for link in run.deployment.topology.links[1:3])
    assert list(causes._dropped_before(run, job, job.rounds[2])) == [
        f"In the round before queues dropped 7 packets at {first}.",
        f"In this round queues dropped 1 packet at {second}.",
    ]


def test_link_use_adds_up_to_the_counters(lossy_run: Summary) -> None:
    run = RunData.read(lossy_run.folder)
    assert len(run.link_use) == len(run.metrics)
    for number, link in enumerate(lossy_run.values["links"]):
        counted = sum(line["links"][number][0] for line in run.link_use)
        assert 0 <= counted <= link["up_bytes"]  # the rest is the synchronisation's at the end
    assert all(max(line["links"][0][4:]) > 0 for line in run.link_use)


def test_link_use_of_several_jobs_is_drawn_over_the_rounds_of_one() -> None:
    """Bytes and drops of other jobs since its last round are added; of peaks the larger counts."""
    first = {"job": 1, "training_round": 0, "at": 5, "links": [[10, 1, 0, 2, 7, 1]]}
    second = {"job": 0, "training_round": 0, "at": 9, "links": [[5, 2, 1, 0, 3, 4]]}
    third = {"job": 1, "training_round": 1, "at": 12, "links": [[1, 1, 1, 1, 1, 1]]}
    merged = second | {"links": [[15, 3, 1, 2, 7, 4]]}
    assert round_charts.link_lines([first, second, third], 0) == [merged]
    assert round_charts.link_lines([first, second], 1) == [first]


def test_a_timer_of_a_lossy_job_gives_up(small_run: Runs) -> None:
    packets = '{link="h2", direction="up", type="indices", slot=1, use=3}'
    lost = f'impairment=[{{model="drop list", packets=[{packets}]}}]'
    run = RunData.read(small_run("job.reliability=lossy", "job.slots=2", lost).folder)
    cause = causes.slowest(run, round_records.read(run))[0].cause
    assert "Worker 1's packet (indices, slot 1) was lost on h2's link" in cause
    assert "and it gave the result up." in cause and "retransmission" not in cause


def test_it_says_what_the_summary_says(lossy_run: Summary) -> None:
    text, values = page(lossy_run.folder), lossy_run.values
    job = values["jobs"][0]
    assert f"{values['test_accuracy']:.1%}" in text
    carried, twice = job["traffic"]["payload_down"], again(job, "down")
    assert f"{carried:,.0f} B, {twice:,.0f} B of them a second time; as float32 6,040 B" in text
    assert f'<h3>Results missed</h3><p class="big bad">{job["missed"]:,}</p>' in text
    for weights in job["weights"].values():
        assert weights in text
    assert "6 rounds on the simulated network, switch embedded, seed 1" in text
    assert "model = &#34;bernoulli&#34;" in text


def test_a_run_without_losses_says_so(small_run: Runs) -> None:
    text = page(small_run().folder)
    assert "None were injected, and every worker had every result in time." in text
    assert figures_in(text) == 11


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


def test_the_comparison_has_what_was_needed(small_run: Runs) -> None:
    packets = '{link="h2", direction="up", type="indices", slot=1, use=3, attempt=0}'
    lost = f'impairment=[{{model="drop list", packets=[{packets}]}}]'
    job = small_run("job.reliability=retransmit", "job.slots=2", lost).values["jobs"][0]
    assert again(job, "up") > 0
    rows = dict(comparison_page._OF_JOBS)
    for way in ("up", "down"):
        found = rows[f"payload {way} needed, B"](job)
        assert found == f"{job['needed'][f'payload_{way}']:,.0f}"


def test_comparison(small_run: Runs, lossy_run: Summary, tmp_path: Path) -> None:
    folders = [small_run().folder, lossy_run.folder]
    text = report.write(folders, tmp_path / "both.html").read_text()
    for folder in folders:
        assert text.count(f"<th>{folder.name}</th>") >= 1
    assert "These runs differ" not in text
    assert figures_in(text) == 8


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
