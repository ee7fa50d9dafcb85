"""The report as text of up to 80 columns, and as JSON."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradplane.fit.analysis import FitReport, PipelineFit
from gradplane.fit.chip_resources import STAGE, ChipResources
from gradplane.fit.dependencies import Dependency, tables_of
from gradplane.fit.logical_tables import line_name
from gradplane.fit.parser_demand import ParserDemand
from gradplane.fit.placement import Stage, used
from gradplane.switch.source import Diagnostic, Span

WIDTH = 80
CELL = 5  # columns of a number: those of all resources and the stage make 80
ESTIMATE = "An estimate: the chip's own compiler decides."


def report_text(report: FitReport, lines: Mapping[str, list[str]]) -> str:
    """Return the report. lines: of the source files, for the places of overruns."""
    parts = [part for p in report.pipelines for part in _pipeline(report, p, lines)]
    parts += [part for refusal in report.refusals for part in ("", refusal.render(dict(lines)))]
    if not report.fits:
        parts += _macros(lines)
    if report.fits_with:
        parts += ["", f"With -D {report.fits_with} the program fits."]
    verdict = "fits" if report.fits else "does not fit"
    head = f"{report.program} on {report.chip.title}: {verdict}. {ESTIMATE}"
    return "\n".join([*_wrap(head), *parts]) + "\n"


_MACRO = re.compile(
    r"(?P<about>(?:^//.*\n)*)^#\s*ifndef (?P<name>[A-Za-z]\w*)\n"
    r"#\s*define (?P=name) +(?P<value>.+)",
    re.MULTILINE,
)
"""A macro that has a value unless -D gives another, and the comment above it."""


def alternatives(lines: Mapping[str, list[str]], given: Sequence[str]) -> Iterator[str]:
    """Yield NAME=VALUE of the macros with a default and another value that the program asks for by
    `#if NAME == VALUE`, those of the innermost files first; none that is given."""
    texts = ["\n".join(text) for text in lines.values()]
    defaults = {m["name"]: m["value"].strip() for text in texts for m in _MACRO.finditer(text)}
    asked = re.compile(r"^#\s*(?:el)?if (\w+) == (\w+)\s*$", re.MULTILINE)
    values = dict.fromkeys(m.groups() for text in reversed(texts) for m in asked.finditer(text))
    names = [one.partition("=")[0] for one in given]
    for name, value in values:
        if name not in names and defaults.get(name, value) != value:
            yield f"{name}={value}"


def _macros(lines: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield what -D changes in a program, some of which may make it fit."""
    found = [
        f"-D {macro['name']}={macro['value']} in {Path(file).name}"
        + "".join(f": {about}" for about in [macro["about"].replace("//", "")] if about)
        for file, text in lines.items()
        for macro in _MACRO.finditer("\n".join(text))
    ]
    if found:
        yield ""
        yield "The program has settings with these defaults, which other values of -D replace:"
    for one in found:
        yield from _wrap(" ".join(one.split()), "  ")


def _pipeline(
    report: FitReport, found: PipelineFit, lines: Mapping[str, list[str]]
) -> Iterator[str]:
    chip = report.chip
    yield ""
    title = f"Pipeline {found.name}: {found.stages} of {chip.stages} stages"
    chains = [f"{gress} {len(chain) + 1}" for gress, chain in found.chains.items()]
    yield from _wrap(f"{title}; longest chains of dependencies: {', '.join(chains) or 'none'}")
    yield ""
    yield from _resources(found)
    yield ""
    for stage in found.placement.stages:
        names = ", ".join(dict.fromkeys(_part_text(stage, n) for n in range(len(stage.parts))))
        yield from _wrap(f"stage {stage.number}: {names or 'empty'}", "  ")
    yield ""
    yield from _wrap(phv_text(found))
    for parser in found.parsers:
        yield parser_text(parser, chip)
    yield from _wrap(passes_text(found))
    for gress, chain in found.chains.items():
        if chain:
            yield from _wrap(f"longest chain, {gress}: {chain_text(chain)}", "  ")
    for warning in found.warnings:
        yield ""
        yield warning.render(dict(lines))
    for overrun in found.overruns:
        yield ""
        hint = "\n    ".join(textwrap.wrap("way out: " + overrun.way_out, WIDTH - 4))
        yield Diagnostic(overrun.span, overrun.what, hint=hint).render(dict(lines))


def _part_text(stage: Stage, n: int) -> str:
    part = stage.parts[n]
    name = part.table.name
    whole = part.table.table.size if part.table.table is not None else 0
    if part.table.key and part.table.table is not None and part.entries != whole:
        return f"{name} ({part.entries} entries)"
    return name


def _resources(found: PipelineFit) -> Iterator[str]:
    yield "stage" + "".join(resource.short.rjust(CELL) for resource in STAGE.values())
    for stage in found.placement.stages:
        yield str(stage.number).rjust(CELL) + _row(stage.taken.totals())
    yield "sum".rjust(CELL) + _row(used(found.placement.stages))
    yield "most".rjust(CELL) + _row({name: r.amount for name, r in STAGE.items()})
    legend = ", ".join(f"{r.short} {r.name}" for r in STAGE.values())
    yield from _wrap(f"({legend}; most: of one stage)", " ")


def _row(totals: Mapping[str, int]) -> str:
    return "".join(str(totals[name] or ".").rjust(CELL) for name in STAGE)


def parser_text(parser: ParserDemand, chip: ChipResources) -> str:
    """Return the states and rows that a parser takes."""
    states = f"{parser.states} state{'' if parser.states == 1 else 's'}"
    return f"{parser.gress} parser: {states}, {parser.rows} of {chip.parser_rows} TCAM rows"


def phv_text(found: PipelineFit) -> str:
    """Return the containers used of each size."""
    chip = found.chip
    parts = [
        f"{found.phv.count(size)} of {count} with {size} bits"
        for size, count in sorted(chip.containers.items())
    ]
    return f"containers: {', '.join(parts)}; {found.phv.passive_bits} bits only pass by"


def passes_text(found: PipelineFit) -> str:
    """Return how packets come to pass the pipeline again, and where."""
    if not found.again:
        return "passes: one, as far as constant ports say"
    kinds: dict[str, dict[str, None]] = {}
    for again in found.again:
        kinds.setdefault(again.kind, {})[line_name(again.span, found.file)] = None
    texts = [f"{kind} in {', '.join(lines)}" for kind, lines in kinds.items()]
    return f"passes: more than one, by {'; by '.join(texts)}"


def chain_text(chain: Sequence[Dependency]) -> str:
    """Return a chain of dependencies: tables with the fields between them."""
    text = chain[0].before.name
    for edge in chain:
        text += f" -{edge.place.name if edge.place else edge.kind}-> {edge.after.name}"
    return text


def _wrap(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


# -- JSON ----------------------------------------------------------------------------------------


def report_json(report: FitReport) -> dict[str, Any]:
    """Return the report as plain values, for programs."""
    return {
        "program": report.program,
        "chip": report.chip.name,
        "fits": report.fits,
        "fits_with": report.fits_with or None,
        "note": ESTIMATE,
        "refusals": [
            {"what": r.message, "hint": r.hint, **_place(r.span)} for r in report.refusals
        ],
        "pipelines": [_pipeline_json(p) for p in report.pipelines],
    }


def _pipeline_json(found: PipelineFit) -> dict[str, Any]:
    chip = found.chip
    return {
        "name": found.name,
        "fits": found.fits,
        "stages": {"needed": found.stages, "of": chip.stages},
        "used": used(found.placement.stages),
        "most_in_a_stage": {name: r.amount for name, r in STAGE.items()},
        "placement": [_stage_json(stage) for stage in found.placement.stages],
        "dependencies": [
            {
                "kind": edge.kind,
                "before": edge.before.name,
                "after": edge.after.name,
                "field": edge.place.name if edge.place else None,
            }
            for edge in found.edges
        ],
        "longest_chains": {
            gress: [table.name for table in tables_of(chain)]
            for gress, chain in found.chains.items()
        },
        "containers": {
            str(size): {"used": found.phv.count(size), "of": count}
            for size, count in chip.containers.items()
        },
        "passing_bits": found.phv.passive_bits,
        "fields": [
            {"gress": gress, "name": f.name, "bits": f.width, "from": f.first, "to": f.last}
            for gress, f in found.fields
        ],
        "parsers": [
            {"gress": p.gress, "states": p.states, "rows": p.rows, "of": chip.parser_rows}
            for p in found.parsers
        ],
        "passes_again": [{"kind": a.kind, **_place(a.span)} for a in found.again],
        "overruns": [
            {"resource": o.resource, "what": o.what, "way_out": o.way_out, **_place(o.span)}
            for o in found.overruns
        ],
        "warnings": [{"what": w.message, **_place(w.span)} for w in found.warnings],
    }


def _stage_json(stage: Stage) -> dict[str, Any]:
    return {
        "stage": stage.number,
        "used": stage.taken.totals(),
        "tables": [
            {
                "name": part.table.name,
                "kind": part.table.kind,
                "gress": part.table.gress,
                "entries": part.entries,
                **_place(part.table.span),
            }
            for part in stage.parts
        ],
    }


def _place(span: Span) -> dict[str, Any]:
    return {"file": span.file, "line": span.line}
