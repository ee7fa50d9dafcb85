"""The contents of the page of several runs side by side."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradplane import codecs
from gradplane.experiment.document import inline
from gradplane.pages import figures
from gradplane.pages.report import causes, charts, round_records
from gradplane.pages.report.round_records import RecordedRounds
from gradplane.pages.report.run_page import losses, percent
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import again, queue_drops, rate, time_to_accuracy, undelivered

Values = dict[str, Any]
Read = Callable[[Values], Any]

_SHORT = 60  # characters of an experiment's value in the table of differences


def contents(runs: Sequence[RunData]) -> Values:
    """Return everything that comparison.html shows."""
    head = ("", *(run.name for run in runs))
    rounds = [(run, round_records.read(run)) for run in runs]
    slow = [_slowest(run, jobs) for run, jobs in rounds]
    return {
        "title": "Comparison",
        "lead": f"{len(runs)} runs",
        "warnings": list(_warnings(runs)),
        "differences": {"head": head, "rows": list(_differences(runs))},
        "results": {"head": head, "rows": list(_results(runs))},
        "accuracy": charts.curves(_trainings(runs)),
        "times": _times(rounds),
        "slow": {"head": ("run", "slowest round", "took", "cause"), "rows": slow},
        "traffic": charts.traffic(_labelled_jobs(runs), _plain(runs)),
    }


def _warnings(runs: Sequence[RunData]) -> Iterator[str]:
    for run in runs:
        if run.unfinished:
            yield f"{run.name}: {run.unfinished}"
    facts = ("versions", "cpu", "blas", "platform")
    different = [
        key
        for key in facts
        if any(run.machine.get(key) != runs[0].machine.get(key) for run in runs)
    ]
    if different:
        yield (
            f"These runs differ in {', '.join(different)}: their accuracies can be compared, their"
            " speeds and digests cannot."
        )
    functions = dict.fromkeys(run.digests for run in runs)
    if len(functions) > 1:
        makers = [
            f"{function} in {', '.join(run.name for run in runs if run.digests == function)}"
            for function in functions
        ]
        yield (
            f"Different functions made the digests of these runs, {'; '.join(makers)}: those of"
            " equal weights differ."
        )


# Differences between the experiments


def _differences(runs: Sequence[RunData]) -> Iterator[list[str]]:
    """Yield a row for each key whose values differ between the experiments, and for the network."""
    single = all(len(run.experiment.job) == 1 for run in runs)
    found = [{"network": run.network or "-"} | _flat(_values(run, single)) for run in runs]
    for key in dict.fromkeys(key for values in found for key in values):
        row = [values.get(key, "-") for values in found]
        if len(set(row)) > 1:
            yield [key, *row]


def _values(run: RunData, single: bool) -> Values:
    """Return the experiment's values. single: no run has several jobs, so that each run's job is
    found under `job`, as --set takes it, and its name does not matter."""
    values = run.experiment.values()
    for job in values["job"]:
        job |= {key: _complete(job[key]) for key in ("push", "pull") if key in job}
    if single:
        (job,) = values["job"]
        values["job"] = {key: value for key, value in job.items() if key != "name"}
    return values


def _complete(codec: Any) -> Any:
    """Return a codec's name and parameters with those that an experiment left to their defaults."""
    try:
        return codecs.get(**codec).config
    except (codecs.CodecError, TypeError):  # a list by tensor, or one with a policy
        return codec


def _flat(values: Any, key: str = "") -> dict[str, str]:
    """Return every value below, as text, by its key as --set takes it."""
    if isinstance(values, dict):
        items = [(str(name), value) for name, value in values.items()]
    elif isinstance(values, list) and key in ("job", "impairment", "traffic"):
        items = [(str(number), value) for number, value in enumerate(values)]
    else:
        return {key: _short(values)}
    found: dict[str, str] = {}
    for name, value in items:
        found |= _flat(value, f"{key}.{name}" if key else name)
    return found


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else inline(value)
    if len(text) <= _SHORT:
        return text
    return f"{len(value):,} items" if isinstance(value, list) else f"{text[:_SHORT]}…"


# Results


def _results(runs: Sequence[RunData]) -> Iterator[list[Any]]:
    """Yield rows of whole runs, then of each job, each followed by the baselines' if not empty."""
    summaries = [run.summary for run in runs]
    for label, read in _OF_RUNS:
        yield from _rows(label, read, summaries)
    if any("time_to_accuracy" in summary for summary in summaries):
        yield from _rows("time to the target accuracy", time_to_accuracy, summaries)
    for kind, way in sorted({verdict for summary in summaries for verdict in _injected(summary)}):
        counts = (_injected(summary).get((kind, way), 0) for summary in summaries)
        yield [{"text": f"{kind}, {way}", "bad": False}, *(f"{count:,}" for count in counts)]
    jobs = max(len(summary["jobs"]) for summary in summaries)
    for number in range(jobs):
        for label, read in _OF_JOBS:
            named = f"{label}, job {number}" if jobs > 1 else label
            yield from _rows(named, _of_job(number, read), summaries)


def _injected(summary: Values) -> dict[tuple[str, str], int]:
    """Return the verdicts of the impairments by kind and direction."""
    found = summary["losses_injected"].items()
    return {(kind, way): count for kind, ways in found for way, count in ways.items()}


def _rows(label: str, read: Read, summaries: Sequence[Values]) -> Iterator[list[Any]]:
    yield [label, *map(read, summaries)]
    baselines = [summary.get("baseline") for summary in summaries]
    cells = [read(base) if base else "-" for base in baselines]
    if any(_text(cell) not in ("-", "0", "none") for cell in cells):
        yield [{"text": "baseline", "bad": False}, *cells]


def _text(cell: Any) -> str:
    return str(cell["text"]) if isinstance(cell, dict) else str(cell)


def _of_job(number: int, read: Read) -> Read:
    return lambda run: read(run["jobs"][number]) if number < len(run["jobs"]) else "-"


def _bad(count: int) -> Values:
    return {"text": f"{count:,}", "bad": count > 0}


def _size(part: str, way: str) -> Read:
    return lambda job: f"{job['traffic'][f'{part}_{way}']:,.0f}"


def _needed(way: str) -> Read:
    def read(job: Values) -> str:
        carried = job["traffic"][f"payload_{way}"]
        return f"{carried + undelivered(job, way) - again(job, way):,.0f}"

    return read


_OF_RUNS: tuple[tuple[str, Read], ...] = (
    ("test accuracy", lambda run: percent(run["test_accuracy"], 2)),
    ("rounds", lambda run: f"{run['rounds']:,}"),
    ("rounds a second", lambda run: rate(run["rounds_per_second"])),
    ("results missed", lambda run: _bad(sum(job["missed"] for job in run["jobs"]))),
    ("packets dropped by queues", lambda run: _bad(queue_drops(run))),
    ("between switches in all, B", lambda run: f"{run['link_bytes']['fabric']:,}"),
    ("losses injected", lambda run: f"{losses(run):,}"),
)
_OF_JOBS: tuple[tuple[str, Read], ...] = (
    ("payload up, B", _size("payload", "up")),
    ("payload up needed, B", _needed("up")),
    ("headers up, B", _size("headers", "up")),
    ("payload down, B", _size("payload", "down")),
    ("payload down needed, B", _needed("down")),
    ("headers down, B", _size("headers", "down")),
)


# Figures


def _times(rounds: Sequence[tuple[RunData, Sequence[RecordedRounds]]]) -> Values:
    """Return the figures of the rounds' times, over the rounds and as a distribution.

    Each job has the colour that it has in the figures of accuracy."""
    lines: list[figures.Curve] = []
    spread, key = [], []
    for run, jobs in rounds:
        for job in jobs:
            colour = figures.PALETTE[len(lines) % len(figures.PALETTE)]
            took = [found.took for found in job.rounds]
            name = f"{run.name}: {job.name}" if len(jobs) > 1 else run.name
            numbers = [found.number for found in job.rounds]
            lines.append(figures.Curve(name, colour, False, numbers, [ns / 1e6 for ns in took]))
            spread.append((name, colour, took))
            key.append(charts.key(name, colour))
    times = figures.curves(lines, "round, from 0", "ms")
    times["layout"]["yaxis"]["type"] = "log"
    return {"key": key, "figures": [times, charts.distribution(spread)]}


def _slowest(run: RunData, jobs: Sequence[RecordedRounds]) -> list[str]:
    found = causes.slowest(run, jobs)[0]
    name = f"{found.job.name}, round" if len(jobs) > 1 else "round"
    took = round_records.seconds(found.round.took)
    return [run.name, f"{name} {found.round.number}", took, found.cause]


def _jobs(runs: Sequence[RunData]) -> Iterator[tuple[str, RunData, int]]:
    """Yield label, run and number of each job."""
    for run in runs:
        several = len(run.summary["jobs"]) > 1
        for number, job in enumerate(run.summary["jobs"]):
            yield f"{run.name}: {job['name']}" if several else run.name, run, number


def _trainings(runs: Sequence[RunData]) -> Iterator[charts.Training]:
    """Yield jobs, and baselines, dashed, in their run's colour; equal baselines once, in grey."""
    baselines: dict[str, list[charts.Training]] = {}
    for place, (label, run, number) in enumerate(_jobs(runs)):
        colour = figures.PALETTE[place % len(figures.PALETTE)]
        own, plain = (
            [line for line in lines if line["job"] == number]
            for lines in (run.metrics, run.baseline_metrics)
        )
        yield charts.Training(label, colour, False, own)
        if plain:
            drawn = str([(line["finished"], line["loss"]) for line in plain])
            training = charts.Training(f"{label}, baseline", colour, True, plain)
            baselines.setdefault(drawn, []).append(training)
    for same in baselines.values():
        if len(same) == 1:
            yield same[0]
        else:
            label = "baseline" if len(baselines) == 1 else f"{same[0].label} and equal ones"
            yield charts.Training(label, figures.BASELINE, True, same[0].lines)


def _labelled_jobs(runs: Sequence[RunData]) -> Iterator[tuple[str, Values]]:
    for label, run, number in _jobs(runs):
        yield label, run.summary["jobs"][number]
    for label, run, number in _jobs(runs):
        if "baseline" in run.summary:
            yield f"{label}, baseline", run.summary["baseline"]["jobs"][number]


def _plain(runs: Sequence[RunData]) -> Iterator[tuple[str, int]]:
    """Yield label and number of values of a float32 gradient, one for each size."""
    sizes = {run.summary["jobs"][number]["values"] for _, run, number in _jobs(runs)}
    for size in sorted(sizes):
        yield f"{size:,} values as float32", size
