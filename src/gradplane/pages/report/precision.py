"""The precision of weights over the rounds of a run, where a policy chooses it."""

from typing import Any

from gradplane.experiment.tensor_codecs import tensors_of
from gradplane.pages import figures
from gradplane.pages.report import charts
from gradplane.runs.records.run_data import RunData

_FULL = 4  # bytes


def contents(run: RunData) -> list[dict[str, Any]]:
    """Return a figure and its key for each job whose weights have a precision."""
    found = []
    for number, job in enumerate(run.experiment.job):
        lines = [line for line in run.metrics if line["job"] == number]
        kept = [line["workers"][0].get("precision") for line in lines]
        if lines and kept[0]:
            rounds = [line["round"] for line in lines]
            names = [tensor.name for tensor in tensors_of(job)]
            found.append({"name": job.name, **_figure(rounds, kept, names)})
    return found


def _figure(rounds: list[int], kept: list[list[int]], names: list[str]) -> dict[str, Any]:
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
