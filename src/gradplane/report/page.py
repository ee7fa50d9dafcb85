"""report.html: one file with everything inside, for one run or several side by side."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from gradplane.report import figures
from gradplane.report import rows as report_rows
from gradplane.report.html import Rows, details, grid, page, section, table, text_table
from gradplane.runner.run_data import STREAM_TYPES, RunData
from gradplane.runner.run_folder import REPORT
from gradplane.runner.summary import rate

Named = tuple[str, str, str, list[dict[str, Any]]]
"""Label, colour, line style, lines of metrics.jsonl."""


def write(folders: Sequence[str | Path], out: str | Path | None = None) -> Path:
    """Write the report of one run folder, or the comparison of several, and return its path.

    `out` defaults to report.html in the folder, or comparison.html in the first one. Raises
    FolderError if a folder is no finished run."""
    runs = [RunData.read(folder) for folder in folders]
    default = REPORT if len(runs) == 1 else "comparison.html"
    path = Path(out) if out else runs[0].folder / default
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(single(runs[0]) if len(runs) == 1 else comparison(runs), "utf-8")
    return path


def single(run: RunData) -> str:
    """The page of one run."""
    summary = run.summary
    parts = [
        *(f'<p class="warning">{escape(note)}</p>' for note in run.notes),
        _cards(run),
        section("Accuracy", _accuracy(run)),
        section("Traffic", _traffic(run)),
        section("A round's time", _parts(summary)),
        section("Losses and stragglers", _timeline(run)),
        section("Switch counters", _counters(summary)),
        section("Final weights", _weights(summary)),
        section("Experiment", details("experiment.toml", run.experiment_text)),
        section("Machine", text_table(_machine_rows(run.machine))),
    ]
    where = "Mininet" if summary["network"] == "mininet" else "the simulated network"
    lead = f"{summary['rounds']} rounds on {where}, seed {summary['seed']}"
    return page(summary["name"], lead, parts)


def comparison(runs: Sequence[RunData]) -> str:
    """The page of several runs."""
    names = [run.name for run in runs]
    rows = [[label, *(read(run) for run in runs)] for label, read in _FACTS]
    parts = [
        _differing(runs),
        section("Results", table(("", *names), rows)),
        section("Accuracy", grid(*_overlays(runs))),
        section("Traffic", figures.traffic(*_run_bars(runs))),
    ]
    return page("Comparison", f"{len(runs)} runs", parts)


# One run


def _cards(run: RunData) -> str:
    summary, base = run.summary, run.summary.get("baseline")
    against = f"baseline {base['test_accuracy']:.1%}" if base else "no baseline"
    cards = [
        ("Test accuracy", _percent(summary["test_accuracy"]), against),
        ("Payload up", *_saving(summary["jobs"], "payload_up")),
        ("Payload down", *_saving(summary["jobs"], "payload_down")),
        *_between_switches(summary, base),
        ("Speed", f"{rate(summary['rounds_per_second'])}/s", _speed(summary, base)),
        ("Losses injected", f"{_drops(summary):,}", _of_packets(summary)),
    ]
    items = "".join(
        f'<div class="card"><h3>{escape(title)}</h3><p class="big">{escape(value)}</p>'
        f"<p>{escape(note)}</p></div>"
        for title, value, note in cards
    )
    return f'<div class="cards">{items}</div>'


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _saving(jobs: list[dict[str, Any]], key: str) -> tuple[str, str]:
    """How much less, or more, than the values as float32, of a worker of each job in a round."""
    payload = sum(job["traffic"][key] for job in jobs)
    plain = 4 * sum(job["values"] for job in jobs)
    return _ratio(plain, payload), f"{payload:,.0f} B; as float32 {plain:,} B"


def _between_switches(
    summary: dict[str, Any], base: dict[str, Any] | None
) -> Iterator[tuple[str, str, str]]:
    """A card, where there are links between switches."""
    size = summary["link_bytes"]["fabric"]
    if not size:
        return
    if base is None:
        yield "Between switches", f"{size / 1e6:,.1f} MB", "in all"
    else:
        plain = base["link_bytes"]["fabric"]
        note = f"{size / 1e6:,.1f} MB; baseline {plain / 1e6:,.1f} MB"
        yield "Between switches", _ratio(plain, size), note


def _ratio(plain: float, size: float) -> str:
    if not size or not plain:
        return "none" if not size else "-"
    return f"{plain / size:.2f}× less" if size <= plain else f"{size / plain:.2f}×"


def _speed(summary: dict[str, Any], base: dict[str, Any] | None) -> str:
    rounds = "rounds, in virtual time" if summary["network"] == "sim" else "rounds"
    return rounds + (f"; baseline {rate(base['rounds_per_second'])}/s" if base else "")


def _drops(summary: dict[str, Any]) -> int:
    kinds = summary["losses_injected"]
    return sum(sum(kinds[kind].values()) for kind in kinds if kind != "delay")


def _of_packets(summary: dict[str, Any]) -> str:
    parts = []
    for kind, ways in summary["losses_injected"].items():
        counts = ", ".join(f"{count:,} {way}" for way, count in sorted(ways.items(), reverse=True))
        parts.append(f"{kind}: {counts}")
    missed = sum(job["missed"] for job in summary["jobs"])
    return "; ".join([*parts, f"{missed:,} results missed"])


def _accuracy(run: RunData) -> str:
    return grid(*_curves(_named_lines(run)))


def _named_lines(run: RunData) -> Iterator[Named]:
    """The run's jobs and their baselines, which are grey beside one job, dashed beside several."""
    jobs = run.summary["jobs"]
    for number, job in enumerate(jobs):
        one = len(jobs) == 1
        colour = figures.PALETTE[number % len(figures.PALETTE)]
        own, plain = (
            [line for line in lines if line["job"] == number]
            for lines in (run.metrics, run.baseline_metrics)
        )
        yield "this run" if one else job["name"], colour, "-", own
        if plain:
            label = "baseline" if one else f"{job['name']}, baseline"
            yield label, figures.BASELINE if one else colour, "-" if one else "--", plain


def _curves(named: Iterable[Named]) -> list[str]:
    """Accuracy over rounds, over time, and loss over rounds."""
    by_round, by_time, loss = [], [], []
    for label, colour, style, lines in named:
        look = (label, colour, style)
        ends = [line for line in lines if "test_accuracy" in line]
        accuracy = [line["test_accuracy"] for line in ends]
        by_round.append((*look, [line["round"] + 1 for line in ends], accuracy))
        start = min(line["started"] for line in lines)
        by_time.append((*look, [(line["finished"] - start) / 1e9 for line in ends], accuracy))
        rounds = [line["round"] + 1 for line in lines]
        loss.append((*look, rounds, [line["loss"] for line in lines]))
    return [
        figures.curves(by_round, "round", "test accuracy", percent=True),
        figures.curves(by_time, "seconds", "test accuracy", percent=True),
        figures.curves(loss, "round", "training loss"),
    ]


def _traffic(run: RunData) -> str:
    summary = run.summary
    ups, downs = zip(*_all_bars(summary), strict=True)
    note = (
        "What crosses a worker's link in a round, counted at the hosts. Headers are Ethernet, IPv4,"
        " UDP and the protocol's own; packets without payload, such as norms, are headers only."
    )
    links = table(
        ("link", "up, packets", "up, bytes", "down, packets", "down, bytes", "dropped by queues"),
        [_link_row(link) for link in summary["links"]],
    )
    sums = {where: f"{size:,}" for where, size in summary["link_bytes"].items()}
    all_links = (
        f"<p>Bytes on the hosts' links: {sums['hosts']}; between switches: {sums['fabric']}.</p>"
    )
    heading = "<h3>On the links, the whole run</h3>"
    return f"<p>{note}</p>{figures.traffic(ups, downs)}{heading}{all_links}{links}"


def _all_bars(summary: dict[str, Any]) -> Iterator[tuple[figures.Bar, figures.Bar]]:
    for number, job in enumerate(summary["jobs"]):
        name = f"{job['name']}: " if len(summary["jobs"]) > 1 else ""
        yield _bars(f"{name}this run", job)
        if "baseline" in summary:
            yield _bars(f"{name}baseline", summary["baseline"]["jobs"][number])
        plain = (f"{name}values as float32", 4.0 * job["values"], 0.0)
        yield plain, plain


def _bars(label: str, job: dict[str, Any]) -> tuple[figures.Bar, figures.Bar]:
    traffic = job["traffic"]
    return (
        (label, traffic["payload_up"], traffic["headers_up"]),
        (label, traffic["payload_down"], traffic["headers_down"]),
    )


def _link_row(link: dict[str, Any]) -> list[str]:
    numbers = ("up_packets", "up_bytes", "down_packets", "down_bytes")
    dropped = link["up_dropped"] + link["down_dropped"]
    return [link["link"], *(f"{link[key]:,}" for key in numbers), f"{dropped:,}"]


def _timeline(run: RunData) -> str:
    found = run.verdicts_by_round()
    missed = _missed(run)
    if not run.verdicts and not missed.any():
        return "<p>None were injected, and every worker had every result in time.</p>"
    named = {f"{kind}, {way}": counts for (kind, way), counts in found.items()}
    streams = sum(verdict["type"] in STREAM_TYPES for verdict in run.verdicts)
    if not named and not missed.any():
        return (
            f"<p>{streams:,} packets of streams, which send again what is lost: every worker had"
            " every result in time.</p>"
        )
    note = (
        "Above: what the impairments did in each round. Below: results that did not come in time."
    )
    outside = f" Besides, {streams:,} packets of streams." if streams else ""
    return f"<p>{note}{outside}</p>{figures.timeline(named, missed, missed.shape[1])}"


def _missed(run: RunData) -> np.ndarray[Any, Any]:
    """Results that each worker missed in each round, int[workers, rounds]; job after job."""
    rounds = 1 + max(line["round"] for line in run.metrics)
    rows = []
    for job in sorted({line["job"] for line in run.metrics}):
        lines = [line for line in run.metrics if line["job"] == job]
        table = np.zeros((len(lines[0]["workers"]), rounds), np.int64)
        for line in lines:
            table[:, line["round"]] = [worker["missed"] for worker in line["workers"]]
        rows.append(table)
    return np.concatenate(rows)


def _counters(summary: dict[str, Any]) -> str:
    names = [job["name"] for job in summary["jobs"]]
    ports = table(report_rows.PORTS, list(report_rows.ports(summary)))
    events = list(report_rows.events(summary))
    compressed = list(report_rows.compression(summary))
    text = grid(table(("event", *names), events), ports) if events else ports
    if compressed:
        note = (
            "Values of marked packets that switches compressed, by the bits each took besides its"
            f" tag's 2; all values took {report_rows.ratio(summary):.2f} times fewer bytes."
        )
        text += f"<h3>Compression</h3><p>{note}</p>{table(report_rows.COMPRESSION, compressed)}"
    return text


def _parts(summary: dict[str, Any]) -> str:
    note = (
        "Milliseconds, as a mean over rounds and workers. Codecs and adding are what hosts are told"
        " that values take them, a server's too; communication is the rest."
    )
    rows = list(report_rows.parts(summary))
    return f"<p>{note}</p>{table(report_rows.PARTS, rows)}"


def _weights(summary: dict[str, Any]) -> str:
    """The digests of the final parameters; one line a job where all workers agree."""
    rows = []
    for job in summary["jobs"]:
        digests = job["weights"]
        if len(set(digests.values())) == 1:
            rows.append([f"{job['name']}, all workers", next(iter(digests.values()))])
        else:
            rows += [[f"{job['name']}, worker {w}", digest] for w, digest in digests.items()]
    return text_table(rows)


def _machine_rows(machine: dict[str, Any]) -> Rows:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    rest = [[key, str(machine[key])] for key in ("cpu", "blas", "platform")]
    return [*rest, ["versions", versions]]


# Several runs


def _fact(run: RunData, key: str) -> float:
    return float(run.summary["jobs"][0]["traffic"][key])


_FACTS = (
    ("network", lambda run: run.summary["network"]),
    ("seed", lambda run: str(run.summary["seed"])),
    ("test accuracy", lambda run: _percent(run.summary["test_accuracy"])),
    ("rounds", lambda run: f"{run.summary['rounds']:,}"),
    ("rounds a second", lambda run: rate(run.summary["rounds_per_second"])),
    ("payload up, B", lambda run: f"{_fact(run, 'payload_up'):,.0f}"),
    ("headers up, B", lambda run: f"{_fact(run, 'headers_up'):,.0f}"),
    ("payload down, B", lambda run: f"{_fact(run, 'payload_down'):,.0f}"),
    ("headers down, B", lambda run: f"{_fact(run, 'headers_down'):,.0f}"),
    ("between switches in all, B", lambda run: f"{run.summary['link_bytes']['fabric']:,}"),
    ("losses injected", lambda run: f"{_drops(run.summary):,}"),
)


def _differing(runs: Sequence[RunData]) -> str:
    """A warning where the runs are not from equal machines; else nothing."""
    different = []
    for key in ("versions", "cpu", "blas", "platform"):
        if any(run.machine[key] != runs[0].machine[key] for run in runs):
            different.append(key)
    if not different:
        return ""
    return (
        f'<p class="warning">These runs differ in {escape(", ".join(different))}: their accuracies'
        " can be compared, their speeds and digests cannot.</p>"
    )


def _overlays(runs: Sequence[RunData]) -> list[str]:
    colours = figures.PALETTE
    return _curves(
        (run.name, colours[n % len(colours)], "-", [m for m in run.metrics if m["job"] == 0])
        for n, run in enumerate(runs)
    )


def _run_bars(runs: Sequence[RunData]) -> tuple[list[figures.Bar], list[figures.Bar]]:
    pairs = [_bars(run.name, run.summary["jobs"][0]) for run in runs]
    plain = ("values as float32", 4.0 * runs[0].summary["jobs"][0]["values"], 0.0)
    return [*(up for up, _ in pairs), plain], [*(down for _, down in pairs), plain]
