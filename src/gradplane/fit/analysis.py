"""The analysis of a whole program: placement, containers, parsers, and what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradplane.fit.action_rules import broken_rules
from gradplane.fit.capacity import parser_overruns, phv_overruns, placement_overruns
from gradplane.fit.checksum_conditions import checksum_tables
from gradplane.fit.chip_resources import CHIPS, ChipResources
from gradplane.fit.container_sizes import without_common_size
from gradplane.fit.containers import PhvDemand, phv_demand
from gradplane.fit.control_tables import logical_tables
from gradplane.fit.dependencies import Dependency, dependencies, longest_chain
from gradplane.fit.live_fields import Carried, LiveFields, coexisting
from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.overruns import Overrun
from gradplane.fit.parser_demand import ParserDemand, parser_demand
from gradplane.fit.placement import Placement, place
from gradplane.fit.recirculation import PassAgain, passes_again
from gradplane.fit.repeated_tables import merged
from gradplane.fit.stage_pragmas import asked_stages, wrong_stages
from gradplane.fit.unread import without_unread
from gradplane.fit.zeros import needless_zeros
from gradplane.switch.arch.device_facts import device_facts
from gradplane.switch.ir import nodes as ir
from gradplane.switch.source import Diagnostic, refuse

GRESSES = ("ingress", "egress", "ghost")
"""The directions of a pipeline that have tables; only some of Tofino 2's have a ghost."""


@dataclass(frozen=True, slots=True)
class PipelineFit:
    """The resources of a chip that one pipeline of a program takes.

    file: the program's own. chains: of dependencies, the longest of each control that has tables,
    by its direction. fields: with their live ranges. warnings: wishes of the program that the
    placement does not follow.
    """

    name: str
    file: str
    chip: ChipResources
    tables: tuple[LogicalTable, ...]
    edges: tuple[Dependency, ...]
    chains: Mapping[str, tuple[Dependency, ...]]
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

    name: the program's own file; by default the one that has its main. Raises CompileError if the
    program is not for the chip: for another architecture, or for the other generation."""
    facts = device_facts(program)
    if facts is None:
        what = f"the program's main is a {program.package.type}, which is not {chip.title}'s"
        raise refuse(program.package.span, what, hint="fit takes programs for TNA or T2NA (Switch)")
    if facts.family != chip.family:
        other = next(c for c in CHIPS.values() if c.family == facts.family)
        what = f"the program is written for {other.title}"
        hint = f"use --chip {other.name}, or include {_include(chip)} for {chip.title}"
        raise refuse(program.package.span, what, hint=hint)
    file = name or program.package.span.file
    packages = {id(a): a for a in program.package.args.values() if isinstance(a, ir.Package)}
    return FitReport(
        file, chip, tuple(_pipeline(p, program, file, chip) for p in packages.values())
    )


def chip_for(program: ir.Program) -> ChipResources:
    """Return the chip that a program is written for; Tofino 1 if it says nothing."""
    facts = device_facts(program)
    family = "tf1" if facts is None else facts.family
    return next((c for c in CHIPS.values() if c.family == family), CHIPS["tofino"])


def _include(chip: ChipResources) -> str:
    return "<tna.p4>" if chip.family == "tf1" else "<t2na.p4>"


@dataclass(frozen=True, slots=True)
class _Direction:
    """A direction of a pipeline: its blocks and tables. A ghost has neither parser nor deparser."""

    gress: str
    control: ir.Control
    parser: ir.Parser | None
    deparser: ir.Control | None
    tables: list[LogicalTable]
    edges: list[Dependency]


def _directions(package: ir.Package, program: ir.Program, file: str) -> Iterator[_Direction]:
    for gress in GRESSES:
        control = package.args.get(gress)
        if not isinstance(control, ir.Control):
            continue
        parser, deparser = (package.args.get(f"{gress}_{part}") for part in ("parser", "deparser"))
        parser = parser if isinstance(parser, ir.Parser) else None
        deparser = deparser if isinstance(deparser, ir.Control) else None
        tables = logical_tables(control, gress, program, file, needless_zeros(control, parser))
        tables = without_unread(tables, control, deparser)
        if deparser is not None:
            tables += checksum_tables(control, deparser, gress, len(tables), file)
        tables, edges = merged(tables, dependencies(tables))
        yield _Direction(gress, control, parser, deparser, tables, edges)


def _pipeline(
    package: ir.Package, program: ir.Program, file: str, chip: ChipResources
) -> PipelineFit:
    facts = device_facts(program)
    assert facts is not None
    directions = list(_directions(package, program, file))
    tables = [table for d in directions for table in d.tables]
    edges = [edge for d in directions for edge in d.edges]
    chains = {d.gress: tuple(longest_chain(d.tables, d.edges)) for d in directions if d.tables}
    placement = place(tables, edges, chip)
    parsers = tuple(
        parser_demand(d.parser, d.gress, chip) for d in directions if d.parser is not None
    )
    live = {d.gress: _fields(d, placement) for d in directions}
    together = [{} if d.parser is None else coexisting(d.parser) for d in directions]
    phv = phv_demand(list(zip(live.values(), together, strict=True)), chip)
    overruns = [
        *wrong_stages(tables, chip),
        *broken_rules(tables),
        *(o for d in directions for o in without_common_size(d.tables)),
        *placement_overruns(placement, chains.values(), chip),
        *phv_overruns(phv, tables, package.control("ingress").span),
        *parser_overruns(parsers, chip),
    ]
    fields = tuple((gress, field) for gress, own in live.items() for field in own)
    return PipelineFit(
        package.name, file, chip, tuple(tables), tuple(edges), chains, placement, parsers, phv,
        fields, tuple(passes_again(package, facts)), tuple(overruns),
        tuple(_later_than_asked(placement, tables, chip)),
    )  # fmt: skip


def _fields(direction: _Direction, placement: Placement) -> list[Carried]:
    live = LiveFields(len(placement.stages))
    if direction.parser is not None:
        live.parser(direction.parser)
    live.control(direction.tables, placement)
    live.made_valid(direction.control)
    if direction.deparser is not None:
        live.deparser(direction.deparser)
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
