"""The contents of one run's page."""

from collections.abc import Iterator, Sequence
from typing import Any

from gradplane.experiment.planned_jobs import COMPUTATION, RESOURCES, RunPlan, parsed
from gradplane.experiment.tensor_codecs import tensors_of
from gradplane.pages import figures
from gradplane.pages.report import causes, charts, round_charts, round_records
from gradplane.pages.report import rows as report_rows
from gradplane.runs.records.recorder import lost
from gradplane.runs.records.run_data import STREAM_TYPES, RunData
from gradplane.runs.records.summary import (
    again,
    queue_drops,
    rate,
    time_to_accuracy,
    undelivered,
    unmet,
)

Values = dict[str, Any]
Rows = list[list[str]]

_FEW = 8  # rows that are shown without a click


def contents(run: RunData) -> Values:
    """Return everything that run.html shows."""
    summary = run.summary
    where = {
        "mininet": " on Mininet",
        "sim": " on the simulated network",
        "cluster": " on real machines",
    }.get(run.network, "")
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
        "precision": weight_precision(run),
        "background": {
            "head": report_rows.BACKGROUND,
            "rows": list(report_rows.background(summary)),
        },
        "planned": _planned_iterations(run),
        "slow": list(round_charts.slow_rows(slow, len(jobs) > 1)),
        "details": round_charts.details(jobs, slow),
        "rounds": list(round_charts.panels(run, jobs)),
        "distribution": _distribution(jobs),
        "losses": _losses(run),
        "absences": {"head": report_rows.ABSENCES, "rows": list(_absence_rows(run))},
        "racks": {"head": report_rows.RACKS, "rows": list(_rack_rows(run))},
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
    elif twice := sum(again(job, way) for job in jobs):
        size += f", {twice:,.0f} B of them a second time"
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
    if abs(size - plain) < 0.005 * plain:
        return "as much"
    return f"{plain / size:.2f}× less" if size < plain else f"{size / plain:.2f}× more"


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


def _rack_rows(run: RunData) -> Iterator[list[str]]:
    jobs = [
        (job.job.name, job.racks, [host.name for host in job.members])
        for job in run.deployment.jobs
    ]
    yield from report_rows.racks(jobs, run.metrics, run.arrivals)


def _absence_rows(run: RunData) -> Iterator[list[str]]:
    jobs = []
    for number, job in enumerate(run.experiment.job):
        absences = run.experiment.absences(number)
        jobs.append((job.name or "", [(away.worker, away.first, away.back) for away in absences]))
    yield from report_rows.absences(jobs, run.arrivals)


def _distribution(jobs: Sequence[round_records.RecordedRounds]) -> Values:
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
        "unmet": unmet(run.summary),
    }


def switches(summary: Values) -> Values | None:
    """Return the switches' counters; None where there are none, as in a run that stopped before
    they were read."""
    if not summary["switches"]:
        return None
    names = [job["name"] for job in summary["jobs"]]
    ports = list(report_rows.ports(summary))
    ratio = report_rows.ratio(summary)
    found: dict[str, Values] = {
        "events": {"head": ("event", *names), "rows": list(report_rows.events(summary))},
        "compression": {
            "head": report_rows.COMPRESSION,
            "rows": list(report_rows.compression(summary)),
            "ratio": f"{ratio:.2f}" if ratio else "-",
        },
        "counters": {"head": report_rows.COUNTERS, "rows": list(report_rows.counters(summary))},
        "ports": {
            "title": f"{len(ports)} ports",
            "head": report_rows.PORTS,
            "rows": ports,
            "open": len(ports) <= _FEW,
        },
    }
    return found if any(each["rows"] for each in found.values()) else None


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
    title += f" ({run.digests})"
    apart = [len(set(job["weights"].values())) > 1 for job in run.summary["jobs"]]
    synchronised = any(
        differ and section.sync for differ, section in zip(apart, run.experiment.job, strict=True)
    )
    return {"title": title, "rows": rows, "differ": any(apart), "synchronised": synchronised}


def _machine(machine: Values) -> Rows:
    if not machine:
        return [["machine", "not recorded"]]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    rest = [[key, str(machine[key])] for key in ("cpu", "blas", "platform")]
    return [*rest, ["versions", versions]]


# Precision of weights, where a policy chooses it

_FULL = 4  # bytes


def weight_precision(run: RunData) -> list[dict[str, Any]]:
    """Return a figure and its key for each job whose weights have a precision."""
    found = []
    for number, job in enumerate(run.experiment.job):
        lines = [line for line in run.metrics if line["job"] == number]
        kept = [line["workers"][0].get("precision") for line in lines]
        if lines and kept[0]:
            rounds = [line["training_round"] for line in lines]
            names = [tensor.name for tensor in tensors_of(job)]
            found.append({"name": job.name, **_precision(rounds, kept, names)})
    return found


def _precision(rounds: list[int], kept: list[list[int]], names: list[str]) -> dict[str, Any]:
    columns = list(zip(names, zip(*kept, strict=True), strict=True))
    shown = [(name, keeps) for name, keeps in columns if min(keeps) < _FULL]
    lines, key = [], []
    for number, (name, keeps) in enumerate(shown):
        colour = figures.PALETTE[number % len(figures.PALETTE)]
        lines.append(figures.Curve(name, colour, False, rounds, [8 * keep for keep in keeps]))
        key.append(charts.key(name, colour))
    figure = figures.curves(lines, "round, from 0", "bits per weight")
    for trace in figure["data"]:
        trace["line"]["shape"] = "hv"  # a precision holds until the next one
    figure["layout"]["yaxis"] |= {"tickvals": [8, 16, 24, 32]}
    return {"key": key, "figures": [figure]}


# The last iteration of a job with a plan: its timeline as planned beside the run's

_WAIT = "longest wait behind an earlier step, ms"
_PLANNED_HEAD = ("job", "planned, ms", "run, ms", "differs by", _WAIT)
_LANES = {"gpu": "GPU", "cpu": "CPU", "intra": "in machine", "inter": "between"}
_PLANNED_KEY = [charts.key(label, colour, 10) for label, colour in figures.PLANNED.items()]

Bar = tuple[str, str, float, float]
"""Resource, kind of task (figures.PLANNED), beginning and length in ms."""


def _planned_iterations(run: RunData) -> dict[str, Any]:
    """Return a row for each job with a plan, and the figure of the first one's worker 0."""
    rows: list[list[str]] = []
    figure: figures.Figure | None = None
    for number, job in enumerate(run.experiment.job):
        if job.plan is None:
            continue
        plan = parsed(job)
        lines = [
            line for line in run.arrivals if (line["kind"], line["job"]) == ("timeline", number)
        ]
        if not lines:
            continue
        last = max(line["ticket"] for line in lines)
        workers = [line for line in lines if line["ticket"] == last]
        ends = [line["forward"] + max(event[5] for event in line["events"]) for line in workers]
        waits = max(event[4] - event[3] for line in workers for event in line["events"])
        rows.append(
            [
                job.name, f"{plan.iteration_ns / 1e6:.3f}", f"{max(ends) / 1e6:.3f}",
                f"{max(ends) / max(plan.iteration_ns, 1) - 1:+.1%}", f"{waits / 1e6:.3f}",
            ]
        )  # fmt: skip
        first = min(workers, key=lambda line: line["worker"])
        figure = figure or _timelines(plan, first["events"])
    return {"head": _PLANNED_HEAD, "rows": rows, "figure": figure, "key": _PLANNED_KEY}


def _timelines(plan: RunPlan, events: Sequence[Sequence[int]]) -> figures.Figure:
    data: list[dict[str, Any]] = []
    drawn = (("", list(_planned(plan))), ("2", list(_timed(plan, events))))
    for axis, bars in drawn:
        for label, colour in figures.PLANNED.items():
            own = [bar for bar in bars if bar[1] == label]
            data.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "meta": label,
                    "name": label,
                    "yaxis": f"y{axis}",
                    "y": [_LANES[resource] for resource, _, _, _ in own],
                    "base": [start for _, _, start, _ in own],
                    "x": [length for _, _, _, length in own],
                    "width": 0.8,
                    "marker": {"color": colour},
                    "hovertemplate": f"{label}<br>%{{y}}, from %{{base:,.6~g}} ms, for"
                    " %{x:,.6~g} ms<extra></extra>",
                }
            )
    lanes: dict[str, Any] = {
        "type": "category",
        "categoryarray": [_LANES[name] for name in RESOURCES],
    }
    lanes |= {"autorange": "reversed", "automargin": True}
    layout = figures.axes("ms since the backward propagation began", "", 380)
    layout |= {"barmode": "overlay"}
    layout["xaxis"] |= {"anchor": "y2"}
    layout["yaxis"] = lanes | {"domain": [0.54, 1], "title": {"text": "planned"}}
    layout["yaxis2"] = lanes | {"domain": [0, 0.46], "title": {"text": "this run"}}
    return {"data": data, "layout": layout}


def _planned(plan: RunPlan) -> Iterator[Bar]:
    for resource, steps in plan.order.items():
        for step in steps:
            kind = _kind(plan, resource, step.tensor, step.step)
            yield resource, kind, step.start / 1e6, (step.end - step.start) / 1e6


def _timed(plan: RunPlan, events: Sequence[Sequence[int]]) -> Iterator[Bar]:
    for number, tensor, step, _, start, end in events:
        resource = RESOURCES[number]
        yield resource, _kind(plan, resource, tensor, step), start / 1e6, (end - start) / 1e6


def _kind(plan: RunPlan, resource: str, tensor: int, step: int) -> str:
    if step == COMPUTATION:
        return "computation"
    if resource in ("gpu", "cpu"):
        return "codec"
    compressed = any(task.kind.endswith("_comp") for task in plan.tensors[tensor].steps[step])
    return "communication, compressed" if compressed else "communication"
