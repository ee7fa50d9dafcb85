"""Espresso, figures 12 and 13: throughput over the number of GPUs, under each scheme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from gradplane.studies import espresso, plot
from gradplane.studies.espresso import BF16, ESPRESSO, FP32, OURS, SCHEMES, Case
from gradplane.studies.papers.espresso_table5 import Codec, ModelName
from gradplane.studies.study import Study, StudyOutcome, several

Machines = Annotated[int, Field(strict=True, ge=1, le=64)]
Panel = Annotated[tuple[ModelName, Codec], Field(strict=False)]
Gains = Mapping[tuple[str, str], int]
"""The paper's per cent by which Espresso outperforms a scheme with 64 GPUs, by model and scheme."""
BATCHES = {"vgg16": 32, "resnet101": 32, "ugatit": 2, "bert-base": 1024, "gpt2": 80, "lstm": 80}
"""Images or tokens of a GPU's batch (Espresso, Table 4)."""


class Throughput(Study):
    """Predicted by the planner; equal parameters give equal outcomes."""

    panels: tuple[Panel, ...]
    machines: tuple[Machines, ...] = several((1, 2, 4, 8))

    def outcome(self, figure: str, system: str, paper: Gains) -> StudyOutcome:
        """Return a row for each model and scheme on the largest number of machines."""
        return outcome(figure, system, self.panels, self.machines, paper)


def outcome(
    figure: str, system: str, panels: Sequence[Panel], machines: Sequence[int], paper: Gains
) -> StudyOutcome:
    """Return the outcome of one of the two figures; its rows are those of the most machines."""
    rows = [row for panel in panels for count in machines for row in _rows(panel, system, count)]
    last = [row for row in rows if row["machines"] == max(machines)]
    for row in last:
        whole = row["gpus"] == 64
        row["paper_gain"] = paper.get((row["model"], row["scheme"])) if whole else None
    return StudyOutcome(
        title=f"Espresso, figure {figure}: {last[0]['gpus']} GPUs, {system}",
        head=("model", "codec", "scheme", "ms", "gain", "our search's", "the paper's"),
        rows=tuple(
            (
                row["model"], row["codec"], row["scheme"], f"{1e3 * row['seconds']:.1f}",
                f"{row['gain']:+.0%}", f"{row['search_gain']:+.0%}",
                "" if row["scheme"] in (ESPRESSO, OURS) else _percent(row["paper_gain"]),
            )
            for row in last
        ),
        notes=_notes(rows, paper),
        values=rows,
        figure=plot.linear(_lines(rows), "GPUs", "our plan's throughput over FP32's"),
    )  # fmt: skip


def _rows(panel: Panel, system: str, machines: int) -> list[dict[str, Any]]:
    model, codec = panel
    case = Case.of(model, codec, system, machines)
    times = espresso.times(case)
    return [
        {
            "model": model,
            "codec": codec,
            "machines": machines,
            "gpus": case.gpus,
            "scheme": scheme,
            "seconds": times[scheme],
            "throughput": case.gpus * BATCHES[model] / times[scheme],
            "gain": times[scheme] / times[ESPRESSO] - 1,
            "search_gain": times[scheme] / times[OURS] - 1,
            "over_fp32": times[FP32] / times[scheme],
            "paper_gain": None,
        }
        for scheme in SCHEMES
    ]


def _percent(value: int | None) -> str:
    return "-" if value is None else f"{value:+d}%"


def _lines(rows: Sequence[dict[str, Any]]) -> plot.Lines:
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        if row["scheme"] == OURS:
            xs, ys = lines.setdefault(row["model"], ([], []))
            xs.append(row["gpus"])
            ys.append(row["over_fp32"])
    return lines


def _notes(rows: Sequence[dict[str, Any]], paper: Gains) -> tuple[str, ...]:
    compared = [row for row in rows if row["paper_gain"] is not None]
    same = sum((row["gain"] > 0.005) == (row["paper_gain"] > 0) for row in compared)
    others = [row for row in rows if row["scheme"] not in (ESPRESSO, OURS, BF16)]
    behind = [row for row in others if row["gain"] < -0.005]
    halves = [row for row in rows if row["scheme"] == BF16]
    ahead = sum(row["search_gain"] < -0.005 for row in halves)
    return (
        "The gains are the throughput of Algorithms 1 and 2 (the paper's Espresso), and of our"
        " search, over the row's scheme; the paper's, where our copy has them, with 64 GPUs."
        + (
            f" Of {len(compared)} gains that the paper states, {same} have the same sign here."
            if compared
            else ""
        )
        + (
            f" In {len(behind)} of all rows a baseline is ahead of Algorithms 1 and 2, which never"
            " revise a decision; our search is behind none."
            if behind
            else ""
        )
        + f" BF16 sends 16 bits a value without compression, which is none of the search's options:"
        f" it is ahead of the search in {ahead} of {len(halves)} rows.",
        "Why the numbers differ: ours are predictions with computation and codec times of ours,"
        " the paper's are measured trainings. The baselines are restricted searches after the"
        " paper's description of these systems. The curves of the figure are not in our copy, and"
        " neither are the codecs of its panels: ours are those that section 5.2 allows, and can be"
        " set.",
    )
