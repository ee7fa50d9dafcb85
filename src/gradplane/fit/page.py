"""The report as a page: stages across, the tables in each, and how full each resource is."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape

from gradplane.fit.analysis import FitReport, PipelineFit
from gradplane.fit.chip_resources import STAGE
from gradplane.fit.placement import Part, Stage
from gradplane.fit.report_text import ESTIMATE, chain_text, passes_text, phv_text


def page(report: FitReport) -> str:
    """Return the page of a report as HTML that needs nothing else."""
    environment = Environment(
        loader=PackageLoader("gradplane.fit", "data"), autoescape=select_autoescape()
    )
    return environment.get_template("fit.html").render(
        report=report, estimate=ESTIMATE, pipelines=[_pipeline(p) for p in report.pipelines]
    )


def _pipeline(found: PipelineFit) -> dict[str, Any]:
    totals = [stage.taken.totals() for stage in found.placement.stages]
    rows = [
        (r.name, r.amount, [_cell(t[name], r.amount) for t in totals]) for name, r in STAGE.items()
    ]
    return {
        "fit": found,
        "stages": [_stage(stage, found) for stage in found.placement.stages],
        "rows": rows,
        "phv": phv_text(found),
        "passes": passes_text(found),
        "chains": [chain_text(chain) for chain in found.chains if chain],
        "fields": sorted(
            ((g, f) for g, f in found.fields if f.computed), key=lambda x: (x[0], x[1].first)
        ),
    }


def _stage(stage: Stage, found: PipelineFit) -> dict[str, Any]:
    return {
        "number": stage.number,
        "beyond": stage.number >= found.chip.stages,
        "boxes": [_box(part) for part in stage.parts],
    }


def _box(part: Part) -> dict[str, Any]:
    taken = {STAGE[name].name: n for name, n in part.taken.totals().items() if n}
    amounts = ", ".join(f"{name} {n}" for name, n in taken.items())
    table = part.table
    entries = f", {part.entries} entries" if table.key and table.table is not None else ""
    return {
        # The colour says that it is a condition; in a narrow box the line must be seen.
        "name": table.name.rpartition(".")[2].removeprefix("condition in "),
        "kind": table.kind,
        "gress": table.gress,
        "title": f"{table.name}, {table.gress}, {table.span}{entries}: {amounts}",
    }


def _cell(amount: int, most: int) -> dict[str, Any]:
    return {"amount": amount, "share": min(1.0, amount / most), "over": amount > most}
