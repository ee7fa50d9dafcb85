"""The report as a page: stages across, how full each resource is, and the tables in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from gradplane.fit.analysis import FitReport, PipelineFit
from gradplane.fit.chip_resources import STAGE
from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.placement import Part, Stage, used
from gradplane.fit.report_text import ESTIMATE, chain_text, parser_text, passes_text, phv_text
from gradplane.pages.kit import render


def page(report: FitReport) -> str:
    """Return the page of a report as HTML that needs nothing else."""
    verdict = "fits" if report.fits else "does not fit"
    return render(
        "fit.html",
        {
            "title": f"{report.program} on {report.chip.title}: {verdict}",
            "lead": ESTIMATE,
            "report": report,
            "pipelines": [_pipeline(pipeline) for pipeline in report.pipelines],
        },
    )


def _pipeline(found: PipelineFit) -> dict[str, Any]:
    labels = _labels(found.tables)
    return {
        "fit": found,
        "stages": [_stage(stage, found, labels) for stage in found.placement.stages],
        "unused": range(found.stages, found.chip.stages),
        "rows": _rows(found),
        "phv": _sentence(phv_text(found)),
        "parsers": [_sentence(parser_text(parser, found.chip)) for parser in found.parsers],
        "passes": _sentence(passes_text(found)),
        "chains": {gress: chain_text(chain) for gress, chain in found.chains.items() if chain},
        "fields": sorted(
            ((g, f) for g, f in found.fields if f.computed), key=lambda x: (x[0], x[1].first)
        ),
    }


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _rows(found: PipelineFit) -> list[tuple[str, str, int, list[dict[str, Any]], int]]:
    """Return each resource: its names, how much a stage has, the amounts taken, the share."""
    totals = [stage.taken.totals() for stage in found.placement.stages]
    sums = used(found.placement.stages)
    return [
        (
            r.name,
            r.short,
            r.amount,
            [_cell(t[name], r.amount) for t in totals],
            round(100 * sums[name] / (r.amount * found.chip.stages)),
        )
        for name, r in STAGE.items()
    ]


def _cell(amount: int, most: int) -> dict[str, Any]:
    return {"amount": amount, "share": min(1.0, amount / most), "over": amount > most}


# -- what is in the stages ------------------------------------------------------------------------


def _stage(stage: Stage, found: PipelineFit, labels: Mapping[LogicalTable, str]) -> dict[str, Any]:
    """Return a stage; parts that have one label, as the conditions of a line, share a box."""
    groups: dict[tuple[str, str, str], list[Part]] = {}
    for part in stage.parts:
        table = part.table
        groups.setdefault((labels[table], table.kind, table.gress), []).append(part)
    return {
        "number": stage.number,
        "beyond": stage.number >= found.chip.stages,
        "boxes": [_box(label, parts) for (label, _, _), parts in groups.items()],
    }


def _box(label: str, parts: list[Part]) -> dict[str, Any]:
    table = parts[0].table
    return {
        "name": label if len(parts) == 1 else f"{label} ({len(parts)}×)",
        "kind": table.kind,
        "gress": table.gress,
        "title": "\n".join(_title(part) for part in parts),
    }


def _title(part: Part) -> str:
    taken = {STAGE[name].name: n for name, n in part.taken.totals().items() if n}
    amounts = ", ".join(f"{name} {n}" for name, n in taken.items())
    table = part.table
    entries = f", {part.entries} entries" if table.key and table.table is not None else ""
    return f"{table.name}, {table.gress}, {table.span}{entries}: {amounts}"


def _labels(tables: Iterable[LogicalTable]) -> dict[LogicalTable, str]:
    """Return a short label for each table: the shortest end of its name that no other table has.

    The colour says that it is a condition."""
    names = {table: table.name.partition(" (") for table in tables}
    known = {name for name, _, _ in names.values()}
    ends = Counter(end for name in known for end in _ends(name))
    labels = {}
    for table, (name, bracket, line) in names.items():
        short = next((end for end in _ends(name) if ends[end] == 1), name)
        labels[table] = (short + bracket + line).removeprefix("condition in ")
    return labels


def _ends(name: str) -> list[str]:
    """Return the ends of a dotted name, the shortest first; a condition's has none."""
    parts = [name] if " " in name else name.split(".")
    return [".".join(parts[-n:]) for n in range(1, len(parts) + 1)]
