"""The analysis of a whole program: placement, containers, parsers, and what does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from gradplane.fit.action_rules import broken_rules
from gradplane.fit.checksum_conditions import checksum_tables
from gradplane.fit.chip_resources import CHIPS, STAGE, ChipResources
from gradplane.fit.container_sizes import without_common_size
from gradplane.fit.containers import PhvDemand, phv_demand
from gradplane.fit.dependencies import Dependency, dependencies, longest_chain
from gradplane.fit.live_fields import Carried, LiveFields, coexisting
from gradplane.fit.logical_tables import LogicalTable, logical_tables
from gradplane.fit.overruns import Overrun
from gradplane.fit.parser_demand import ParserDemand, parser_demand
from gradplane.fit.placement import Placement, place, used
from gradplane.fit.recirculation import PassAgain, passes_again
from gradplane.fit.stage_pragmas import asked_stages, wrong_stages
from gradplane.fit.unread import without_unread
from gradplane.fit.zeros import needless_zeros
from gradplane.switch.arch.device_facts import device_facts
from gradplane.switch.ir import nodes as ir
from gradplane.switch.source import Diagnostic, Span, refuse

GRESSES = ("ingress", "egress")


@dataclass(frozen=True, slots=True)
class PipelineFit:
    """The resources of a chip that one pipeline of a program takes.

    file: the program's.
    chains: of dependencies, the longest of each control. fields: with their live ranges. warnings:
    wishes of the program that the placement does not follow.
    """

    name: str
    file: str
    chip: ChipResources
    tables: tuple[LogicalTable, ...]
    edges: tuple[Dependency, ...]
    chains: tuple[tuple[Dependency, ...], ...]
    placement: Placement
    parsers: tuple[ParserDemand, ...]
    phv: PhvDemand
    fields: tuple[tuple[str, Carried], ...]
    again: tuple[PassAgain, ...]
    overruns: tuple[Overrun, ...]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def stages(self) -> int:
        return len(self.placement.stages)

    @property
    def fits(self) -> bool:
        return not self.overruns


@dataclass(frozen=True, slots=True)
class FitReport:
    """An estimate for a program and a chip. It fits if each of its pipelines does."""

    program: str
    chip: ChipResources
    pipelines: tuple[PipelineFit, ...]

    @property
    def fits(self) -> bool:
        return all(p.fits for p in self.pipelines)

    def stages_of_tables(self) -> dict[str, int]:
        """Return the stage that each table of the program is in first, by its name."""
        return {
            table.table.name: pipeline.placement.first_stage_of(table)
            for pipeline in self.pipelines
            for table in pipeline.tables
            if table.table is not None
        }


def fit(program: ir.Program, chip: ChipResources, name: str = "") -> FitReport:
    """Estimate what a TNA program, as `lower` leaves it, takes of a chip.

    Raises CompileError if the program is not for the chip: for another architecture, or for the
    other generation."""
    facts = device_facts(program)
    if facts is None:
        what = f"the program's main is a {program.package.type}, which is not {chip.title}'s"
        raise refuse(program.package.span, what, hint="fit takes programs for TNA or T2NA (Switch)")
    if facts.family != chip.family:
        other = next(c for c in CHIPS.values() if c.family == facts.family)
        what = f"the program is written for {other.title}"
        hint = f"use --chip {other.name}, or include {_include(chip)} for {chip.title}"
        raise refuse(program.package.span, what, hint=hint)
    packages = [a for a in program.package.args.values() if isinstance(a, ir.Package)]
    return FitReport(name, chip, tuple(_pipeline(p, program, chip) for p in packages))


def chip_for(program: ir.Program) -> ChipResources:
    """Return the chip that a program is written for; Tofino 1 if it says nothing."""
    facts = device_facts(program)
    family = "tf1" if facts is None else facts.family
    return next((c for c in CHIPS.values() if c.family == family), CHIPS["tofino"])


def _include(chip: ChipResources) -> str:
    return "<tna.p4>" if chip.family == "tf1" else "<t2na.p4>"


def _pipeline(package: ir.Package, program: ir.Program, chip: ChipResources) -> PipelineFit:
    tables: list[LogicalTable] = []
    edges: list[Dependency] = []
    chains: list[tuple[Dependency, ...]] = []
    by_gress: dict[str, list[LogicalTable]] = {}
    for gress in GRESSES:
        if not isinstance(package.args.get(gress), ir.Control):
            continue
        control = package.control(gress)
        without = needless_zeros(control, package.parser(f"{gress}_parser"))
        own = logical_tables(control, gress, program, without)
        deparser = package.control(f"{gress}_deparser")
        own = without_unread(own, control, deparser)
        own += checksum_tables(control, deparser, gress, len(own), program.package.span.file)
        found = dependencies(own)
        by_gress[gress] = own
        tables += own
        edges += found
        chains.append(tuple(longest_chain(own, found)))
    placement = place(tables, edges, chip)
    parsers = tuple(_parsers(package, chip))
    live = {gress: _fields(package, gress, own, placement) for gress, own in by_gress.items()}
    directions = [(live[g], coexisting(package.parser(f"{g}_parser"))) for g in live]
    phv = phv_demand(directions, chip)
    facts = device_facts(program)
    assert facts is not None
    overruns = [
        *wrong_stages(tables, chip),
        *broken_rules(tables),
        *(o for own in by_gress.values() for o in without_common_size(own)),
        *_placement_overruns(placement, chains, chip),
        *_phv_overruns(phv, tables, package, chip),
        *_parser_overruns(parsers, chip),
    ]
    fields = tuple((gress, field) for gress, own in live.items() for field in own)
    return PipelineFit(
        package.name, program.package.span.file, chip, tuple(tables), tuple(edges), tuple(chains),
        placement, parsers, phv, fields, tuple(passes_again(package, facts)), tuple(overruns),
        tuple(_later_than_asked(placement, tables, chip)),
    )  # fmt: skip


def _parsers(package: ir.Package, chip: ChipResources) -> Iterator[ParserDemand]:
    for gress in GRESSES:
        if isinstance(package.args.get(f"{gress}_parser"), ir.Parser):
            yield parser_demand(package.parser(f"{gress}_parser"), gress, chip)


def _fields(
    package: ir.Package, gress: str, tables: Sequence[LogicalTable], placement: Placement
) -> list[Carried]:
    live = LiveFields(len(placement.stages))
    live.parser(package.parser(f"{gress}_parser"))
    live.control(tables, placement)
    live.deparser(package.control(f"{gress}_deparser"))
    live.outputs()
    return list(live.fields.values())


def _later_than_asked(
    placement: Placement, tables: Sequence[LogicalTable], chip: ChipResources
) -> Iterator[Diagnostic]:
    for table in tables:
        first = placement.first_stage_of(table)
        asked = asked_stages(table.table, chip)
        if asked and first >= 0 and all(one.stage != first for one in asked):
            what = f"@stage asks for stage {asked[0].stage}, {table.name} can be in stage {first}"
            yield Diagnostic(asked[0].span, what + " at the earliest", "warning")


# -- overruns ------------------------------------------------------------------------------------


def _placement_overruns(
    placement: Placement, chains: Sequence[Sequence[Dependency]], chip: ChipResources
) -> Iterator[Overrun]:
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
    placement: Placement, chains: Sequence[Sequence[Dependency]], chip: ChipResources
) -> Overrun:
    """Return why there are too many stages: a chain of dependencies, or what fills the stages."""
    took = f"{len(placement.stages)} stages are needed, {chip.title} has {chip.stages}"
    longest = max(chains, key=len, default=())
    if len(longest) + 1 > chip.stages:
        way = [longest[0].before, *(edge.after for edge in longest)]
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


def _phv_overruns(
    phv: PhvDemand, tables: Sequence[LogicalTable], package: ir.Package, chip: ChipResources
) -> Iterator[Overrun]:
    if not phv.homeless:
        return
    total = sum(piece.size for piece in phv.homeless)
    first = phv.homeless[0]
    names = {f.name for piece in phv.homeless for f in piece.fields}
    span = _first_use(names, tables) or package.control("ingress").span
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


def _parser_overruns(parsers: Sequence[ParserDemand], chip: ChipResources) -> Iterator[Overrun]:
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
