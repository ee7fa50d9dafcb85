"""The contents of one run's page."""

from collections.abc import Iterator, Sequence
from typing import Any

from gradplane.pages import figures
from gradplane.pages.report import (
    causes,
    charts,
    planned_timeline,
    precision,
    round_charts,
    round_records,
)
from gradplane.pages.report import rows as report_rows
from gradplane.runs.records.recorder import lost
from gradplane.runs.records.run_data import STREAM_TYPES, RunData
from gradplane.runs.records.summary import queue_drops, rate, time_to_accuracy, undelivered

Values = dict[str, Any]
Rows = list[list[str]]

_FEW = 8  # rows that are shown without a click


def contents(run: RunData) -> Values:
    """Return everything that run.html shows."""
    summary = run.summary
    where = {"mininet": " on Mininet", "sim": " on the simulated network"}.get(run.network, "")
    switch = f", switch {summary['target']}" if "target" in summary else ""
    jobs = round_records.read(run)
    slow = causes.slowest(run, jobs)
    return {
        "title": summary["name"],
        "lead": f"{summary['rounds']} rounds{where}{switch}, seed {summary['seed']}",
        "warning": run.unfinished,
        "unchecked": run.unchecked,
        "cards": list(_cards(summary)),
        "accuracy": charts.curves(_trainings(run)),
        "traffic": charts.traffic(_labelled_jobs(summary), _plain(summary)),
        "links": links(summary),
        "times": {"head": report_rows.PARTS, "rows": list(report_rows.parts(summary))},
        "compute": {"head": report_rows.COMPUTE, "rows": list(_compute_rows(run))},
        "device": {"head": report_rows.DEVICE, "rows": list(report_rows.device(summary))},
        "precision": precision.contents(run),
        "background": {
            "head": report_rows.BACKGROUND,
            "rows": list(report_rows.background(summary)),
        },
        "planned": planned_timeline.contents(run),
        "slow": list(round_charts.slow_rows(slow, len(jobs) > 1)),
        "details": round_charts.details(jobs, slow),
        "rounds": list(round_charts.panels(run, jobs)),
        "distribution": _distribution(jobs),
        "losses": _losses(run),
        "absences": {"head": report_rows.ABSENCES, "rows": list(_absence_rows(run))},
        "switches": switches(summary),
        "weights": _weights(run),
        "experiment": run.experiment_text,
        "machine": _machine(run.machine),
    }


def _cards(summary: Values) -> Iterator[Values]:
    base, jobs = summary.get("baseline"), summary["jobs"]
    against = f"baseline {percent(base['test_accuracy'])}" if base else "no baseline"
    yield card("Test accuracy", percent(summary["test_accuracy"]), against)
    if target := summary.get("time_to_accuracy"):
        against = f"baseline {time_to_accuracy(base)}" if base else "no baseline"
        title = f"Time to {percent(target['test_accuracy'])}"
        reached = target["seconds"] is not None
        took = f"{target['seconds']:.4g} s" if reached else "not reached"
        rounds = f"{target['rounds']:,} rounds; " if reached else ""
        yield card(title, took, rounds + against, bad=not reached)
    yield card("Payload up", *_saving(jobs, "up", "sent"))
    yield card("Payload down", *_saving(jobs, "down", "arrived"))
    yield from _between_switches(summary, base)
    yield card("Speed", f"{rate(summary['rounds_per_second'])}/s", _speed(summary, base))
    yield card("Losses injected", f"{losses(summary):,}", injected(summary))
    missed = sum(job["missed"] for job in jobs)
    against = f"baseline {sum(job['missed'] for job in base['jobs']):,}" if base else ""
    yield card("Results missed", f"{missed:,}", against, bad=missed > 0)
    dropped = queue_drops(summary)
    if dropped:
        yield card("Queue drops", f"{dropped:,}", "packets", bad=True)


def card(title: str, value: str, note: str, bad: bool = False) -> Values:
    """Return one of the numbers at the page's top."""
    return {"title": title, "value": value, "note": note, "bad": bad}


def _saving(jobs: list[Values], way: str, carried: str) -> tuple[str, str]:
    """Compare a worker's payload of a round with the same values as float32, job by job.

    Undelivered bytes were needed too, so they do not count as saved."""
    payload = sum(job["traffic"][f"payload_{way}"] for job in jobs)
    needed = payload + sum(undelivered(job, way) for job in jobs)
    plain = 4 * sum(job["values"] for job in jobs)
    size = f"{payload:,.0f} B"
    if needed > payload:
        size = f"{needed:,.0f} B needed, {payload:,.0f} B {carried}"
    return _ratio(plain, needed), f"{size}; as float32 {plain:,} B"


def _between_switches(summary: Values, base: Values | None) -> Iterator[Values]:
    """Yield a card if there are links between switches."""
    size = summary["link_bytes"]["fabric"]
    if not size:
        return
    if base is None:
        yield card("Between switches", f"{size:,} B", "in all")
    else:
        plain = base["link_bytes"]["fabric"]
        yield card("Between switches", _ratio(plain, size), f"{size:,} B; baseline {plain:,} B")


def _ratio(plain: float, size: float) -> str:
    if not size or not plain:
        return "none" if not size else "-"
    return f"{plain / size:.2f}× less" if size <= plain else f"{size / plain:.2f}× more"


def _speed(summary: Values, base: Values | None) -> str:
    rounds = "rounds, in virtual time" if summary["network"] == "sim" else "rounds"
    return rounds + (f"; baseline {rate(base['rounds_per_second'])}/s" if base else "")


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share as text; "-" where it is not known."""
    return "-" if share is None else f"{share:.{digits}%}"


def losses(values: Values) -> int:
    """Return the number of packets that the impairments lost."""
    kinds = values["losses_injected"]
    return sum(sum(kinds[kind].values()) for kind in kinds if lost(kind))


def injected(values: Values) -> str:
    """Return the verdicts of the impairments by kind and direction, as text."""
    parts = []
    for kind, ways in values["losses_injected"].items():
        counts = ", ".join(f"{count:,} {way}" for way, count in sorted(ways.items(), reverse=True))
        parts.append(f"{kind}: {counts}")
    return "; ".join(parts) or "none"


def _trainings(run: RunData) -> Iterator[charts.Training]:
    """Yield the jobs and their baselines, which are grey beside one job, dashed beside several."""
    jobs = run.summary["jobs"]
    one = len(jobs) == 1
    for number, job in enumerate(jobs):
        colour = figures.PALETTE[number % len(figures.PALETTE)]
        own, plain = (
            [line for line in lines if line["job"] == number]
            for lines in (run.metrics, run.baseline_metrics)
        )
        yield charts.Training("this run" if one else job["name"], colour, False, own)
        if one:
            yield charts.Training("baseline", figures.BASELINE, False, plain)
        else:
            yield charts.Training(f"{job['name']}, baseline", colour, True, plain)


def _labelled_jobs(summary: Values) -> Iterator[tuple[str, Values]]:
    for number, job in enumerate(summary["jobs"]):
        name = f"{job['name']}: " if len(summary["jobs"]) > 1 else ""
        yield f"{name}this run", job
        if "baseline" in summary:
            yield f"{name}baseline", summary["baseline"]["jobs"][number]


def _plain(summary: Values) -> Iterator[tuple[str, int]]:
    for job in summary["jobs"]:
        name = f"{job['name']}: " if len(summary["jobs"]) > 1 else ""
        yield f"{name}values as float32", job["values"]


def links(summary: Values) -> Values:
    """Return the links' counters."""
    rows = [_link_row(link) for link in summary["links"]]
    sums = {where: f"{size:,}" for where, size in summary["link_bytes"].items()}
    dropped = queue_drops(summary)
    return sums | {
        "title": f"{len(rows)} links",
        "head": (
            *("link", "up, packets", "up, bytes", "down, packets", "down, bytes"),
            "dropped by queues",
        ),
        "rows": rows,
        "open": len(rows) <= _FEW,
        "dropped": f"{dropped:,}" if dropped else "",
    }


def _link_row(link: Values) -> list[Any]:
    numbers = ("up_packets", "up_bytes", "down_packets", "down_bytes")
    dropped = link["up_dropped"] + link["down_dropped"]
    bad = {"text": f"{dropped:,}", "bad": dropped > 0}
    return [link["link"], *(f"{link[key]:,}" for key in numbers), bad]


def _compute_rows(run: RunData) -> Iterator[list[str]]:
    """Yield the compute times of the jobs whose workers or rounds differ in them."""
    jobs = enumerate(run.experiment.job)
    several = {n: job.name for n, job in jobs if not isinstance(job.compute_ms, int | float)}
    yield from report_rows.compute(run.metrics, several)


def _absence_rows(run: RunData) -> Iterator[list[str]]:
    jobs = []
    for number, job in enumerate(run.experiment.job):
        absences = run.experiment.absences(number)
        jobs.append((job.name or "", [(away.worker, away.first, away.back) for away in absences]))
    yield from report_rows.absences(jobs, run.arrivals)


def _distribution(jobs: Sequence[round_records.JobRounds]) -> Values:
    """Return the figure of the rounds' times, with a key where there are several jobs."""
    lines = [
        (job.name, figures.PALETTE[job.number % len(figures.PALETTE)], [r.took for r in job.rounds])
        for job in jobs
        if job.rounds
    ]
    key = [charts.key(name, colour) for name, colour, _ in lines] if len(lines) > 1 else []
    return {"figure": charts.distribution(lines), "key": key}


def _losses(run: RunData) -> Values:
    """Return what the page says of losses in words."""
    streams = sum(verdict["type"] in STREAM_TYPES for verdict in run.verdicts)
    missed = any(line["missed"] for line in run.metrics)
    return {
        "none": not (run.verdicts or missed),
        "streams": f"{streams:,} packet{'s' * (streams > 1)}" if streams else "",
        "missed": missed,
    }


def switches(summary: Values) -> Values | None:
    """Return the switches' counters; None where the run stopped before they were read."""
    if not summary["switches"]:
        return None
    names = [job["name"] for job in summary["jobs"]]
    ports = list(report_rows.ports(summary))
    ratio = report_rows.ratio(summary)
    return {
        "events": {"head": ("event", *names), "rows": list(report_rows.events(summary))},
        "compression": {
            "head": report_rows.COMPRESSION,
            "rows": list(report_rows.compression(summary)),
            "ratio": f"{ratio:.2f}" if ratio else "-",
        },
        "ports": {
            "title": f"{len(ports)} ports",
            "head": report_rows.PORTS,
            "rows": ports,
            "open": len(ports) <= _FEW,
        },
    }


def _weights(run: RunData) -> Values:
    """Return the digests of the parameters; one line a job where all workers agree."""
    rows: Rows = []
    for job in run.summary["jobs"]:
        digests = job["weights"]
        if len(set(digests.values())) == 1:
            rows.append([f"{job['name']}, all workers", next(iter(digests.values()))])
        else:
            rows += [[f"{job['name']}, worker {w}", digest] for w, digest in digests.items()]
    title = "Final weights" if run.finished else "Weights after the last recorded round"
    return {"title": title, "rows": rows}


def _machine(machine: Values) -> Rows:
    if not machine:
        return [["machine", "not recorded"]]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    rest = [[key, str(machine[key])] for key in ("cpu", "blas", "platform")]
    return [*rest, ["versions", versions]]
