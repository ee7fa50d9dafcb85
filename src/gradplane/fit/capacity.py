"""The overruns of what a chip has: stages and what is in them, containers, rows of the parsers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate

from gradplane.fit.chip_resources import STAGE, ChipResources
from gradplane.fit.containers import PhvDemand
from gradplane.fit.dependencies import Dependency, tables_of
from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.overruns import Overrun
from gradplane.fit.parser_demand import ParserDemand
from gradplane.fit.placement import Placement, used
from gradplane.switch.source import Span


def placement_overruns(
    placement: Placement, chains: Collection[Sequence[Dependency]], chip: ChipResources
) -> Iterator[Overrun]:
    """Yield what no stage, or not all stages together, have room for."""
    for edge in placement.cycles:
        what = (
            f"{edge.after.name} and {edge.before.name} ({edge.before.span}) use one register, which"
            " is in one stage, but one must be after the other"
        )
        if edge.place is not None:
            what += f" ({edge.kind} dependency by {edge.place.name})"
        way_out = "use the register in one action, with the number to add in a field set before"
        yield Overrun("stages", what, edge.after.span, way_out)
    for table, lacking, span in placement.oversized:
        for name, needed in lacking.items():
            resource = STAGE[name]
            what = f"{table.name} needs {needed} {resource.name}, a stage has {resource.amount}"
            yield Overrun(name, what, span, resource.way_out)
    if len(placement.stages) > chip.stages:
        yield _too_many_stages(placement, chains, chip)


def _too_many_stages(
    placement: Placement, chains: Collection[Sequence[Dependency]], chip: ChipResources
) -> Overrun:
    """Return why there are too many stages: a chain of dependencies, or what fills the stages."""
    took = f"{len(placement.stages)} stages are needed, {chip.title} has {chip.stages}"
    longest = max(chains, key=len, default=())
    if len(longest) + 1 > chip.stages:
        way = tables_of(longest)
        names = " -> ".join(f"{t.name}" for t in (*way[:3], *way[-2:]))
        what = f"{took}: {len(way)} tables depend on each other ({names})"
        way_out = "compute things that do not depend on each other in one statement or table, or"
        way_out += " continue in a second pass (recirculation)"
        return Overrun("stages", what, way[chip.stages].span, way_out)
    within = placement.stages[: chip.stages]
    sums = used(within)
    name = max(STAGE, key=lambda n: sums[n] / (STAGE[n].amount * chip.stages))
    taking = _takes_most(placement, name)
    percent = round(100 * sums[name] / (STAGE[name].amount * chip.stages))
    more = f" and {len(taking) - 1} more of this line" if len(taking) > 1 else ""
    what = f"{took}; {STAGE[name].name} are scarcest ({percent} % of all), the most for"
    what += f" {taking[0].name}{more}"
    way_out = STAGE[name].way_out
    if longest:
        what += f"; the longest chain of dependencies takes {len(longest) + 1}"
        way_out += "; or make the chain of dependencies shorter"
    return Overrun("stages", what, taking[0].span, way_out)


def _takes_most(placement: Placement, resource: str) -> list[LogicalTable]:
    """Return the tables of the line that takes most of a resource: a control that is instantiated
    often has many tables in one line."""
    taken: Counter[Span] = Counter()
    tables: dict[Span, dict[LogicalTable, None]] = {}
    for stage in placement.stages:
        for part in stage.parts:
            span = part.table.span
            taken[span] += part.taken.totals()[resource]
            tables.setdefault(span, {})[part.table] = None
    return list(tables[max(taken, key=taken.__getitem__)])


def phv_overruns(
    phv: PhvDemand, tables: Sequence[LogicalTable], otherwise: Span
) -> Iterator[Overrun]:
    """Yield an overrun if fields find no containers; otherwise: its place if no table uses one of
    them."""
    if not phv.homeless:
        return
    total = sum(piece.size for piece in phv.homeless)
    first = phv.homeless[0]
    names = {f.name for piece in phv.homeless for f in piece.fields}
    span = _first_use(names, tables) or otherwise
    what = f"{total} bits of fields find no container, the first of them {first.name}"
    if first.fixed:
        what += f" (of {first.size} bits, since it is added up)"
    way_out = "carry fewer fields through all stages: compute late, use early, shrink metadata"
    yield Overrun("phv", what, span, way_out)


def _first_use(names: set[str], tables: Sequence[LogicalTable]) -> Span | None:
    for table in tables:
        if any(p.name in names for p in (*table.writes, *table.key, *table.reads)):
            return table.span
    return None


def parser_overruns(parsers: Sequence[ParserDemand], chip: ChipResources) -> Iterator[Overrun]:
    """Yield the parsers that take too many rows, or go too far into a packet."""
    for parser in parsers:
        if parser.rows > chip.parser_rows:
            worst = max(parser.parts, key=lambda p: p.rows)
            what = f"the {parser.gress} parser takes {parser.rows} TCAM rows,"
            what += f" {chip.title} has {chip.parser_rows}; state {worst.name} takes {worst.rows}"
            way_out = "merge states that differ by constants, or distinguish packets by a table"
            yield Overrun("parser", what, worst.span, way_out)
        if parser.gress == "egress" and 0 < chip.egress_bytes < parser.depth:
            ends = accumulate(part.passed for part in parser.longest)
            state = next(
                part
                for part, end in zip(parser.longest, ends, strict=True)
                if end > chip.egress_bytes
            )
            what = f"the egress parser goes through up to {parser.depth} bytes, {chip.title}'s"
            what += f" through {chip.egress_bytes}; state {state.name} is beyond them"
            way_out = "parse less in egress: accept before headers that it does not need, and take"
            way_out += " from ingress, in a header of its own, what that has parsed"
            yield Overrun("parser", what, state.span, way_out)
