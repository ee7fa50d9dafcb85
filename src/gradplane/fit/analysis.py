"""The analysis of a whole program: placement, containers, parsers, and what does not fit.

What does not fit are overruns of what a chip has: stages and what is in them, containers, rows of
the parsers. The passes of a packet are told, too: resubmission, and ports that lead back to the
ingress parser.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from gradplane.fit.access_rules import broken_accesses
from gradplane.fit.action_rules import broken_rules
from gradplane.fit.block_rules import broken_by_blocks
from gradplane.fit.chip_resources import CHIPS, STAGE, ChipResources, Overrun
from gradplane.fit.containers import PhvDemand, phv_demand, without_common_size
from gradplane.fit.control_tables import checksum_tables, logical_tables
from gradplane.fit.dependencies import Dependency, dependencies, longest_chain, tables_of
from gradplane.fit.live_fields import Carried, LiveFields, coexisting
from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.parser_demand import ParserDemand, parser_demand
from gradplane.fit.placement import Placement, asked_stages, place, used, wrong_stages
from gradplane.fit.simplifications import merged, needless_zeros, without_unread
from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.arch.load_checks import prepare
from gradplane.switch.arch.registry import architecture, device_facts
from gradplane.switch.arch.tna.chips import chip_of
from gradplane.switch.garbage_pause import collections_paused
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.ir.walk import statements
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.source import CompileError, Diagnostic, Span, refuse

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
    """An estimate for a program and a chip. It fits if each of its pipelines does, and no rule of
    `p4 check` refuses the program.

    refusals: the errors of these rules. fits_with: NAME=VALUE of a macro with which a program that
    does not fit does."""

    program: str
    chip: ChipResources
    pipelines: tuple[PipelineFit, ...]
    refusals: tuple[Diagnostic, ...] = ()
    fits_with: str = ""

    @property
    def fits(self) -> bool:
        return not self.refusals and all(p.fits for p in self.pipelines)

    def stages_of_tables(self) -> dict[str, int]:
        """Return the stage that each table of the program is in first, by its name."""
        return {
            table.table.name: pipeline.placement.first_stage_of(table)
            for pipeline in self.pipelines
            for table in pipeline.tables
            if table.table is not None
        }


@collections_paused()
def fit(
    program: ir.Program,
    chip: ChipResources,
    name: str = "",
    on_step: Callable[[str], None] = lambda step: None,
) -> FitReport:
    """Estimate what a TNA program, as `lower` leaves it, takes of a chip.

    name: the program's own file; by default the one that has its main. on_step: called
    with the name of each step as it begins. Raises CompileError if the program is not for the chip:
    for another architecture, or for the other generation."""
    facts = device_facts(program)
    if facts is None:
        what = f"the program's main is of type {program.package.type}, which is not {chip.title}'s"
        raise refuse(program.package.span, what, hint="fit takes programs for TNA or T2NA (Switch)")
    if facts.family != chip.family:
        other = next(c for c in CHIPS.values() if c.family == facts.family)
        what = f"the program is written for {other.title}"
        hint = f"use --chip {other.name}, or include {_include(chip)} for {chip.title}"
        raise refuse(program.package.span, what, hint=hint)
    file = name or program.package.span.file
    packages = {id(a): a for a in program.package.args.values() if isinstance(a, ir.Package)}
    pipelines = tuple(_pipeline(p, program, file, chip, on_step) for p in packages.values())
    on_step("rules of p4 check")
    return FitReport(file, chip, pipelines, refusals(program))


def refusals(program: ir.Program) -> tuple[Diagnostic, ...]:
    """Return the errors for which `p4 check` refuses a program, as `lower` leaves it; and its
    arrays of instances, on which the chip's compiler fails."""
    # Copied, since both the architecture's steps and P4Info change it.
    prepared: ir.Program = pickle.loads(pickle.dumps(program, 5))
    try:
        prepare(prepared, architecture(None, prepared))
        build_p4info(prepared)
    except CompileError as error:
        return tuple(error.diagnostics)
    arrays = {i.span: i.name.partition("[")[0] for i in program.externs if i.name.endswith("]")}
    what = "is an array of instances: the chip's compiler fails on it"
    return tuple(
        Diagnostic(span, f"{name} {what}", hint="name each instance")
        for span, name in arrays.items()
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
    package: ir.Package,
    program: ir.Program,
    file: str,
    chip: ChipResources,
    on_step: Callable[[str], None],
) -> PipelineFit:
    facts = device_facts(program)
    assert facts is not None
    on_step(f"pipeline {package.name}: tables and their dependencies")
    directions = list(_directions(package, program, file))
    tables = [table for d in directions for table in d.tables]
    edges = [edge for d in directions for edge in d.edges]
    chains = {d.gress: tuple(longest_chain(d.tables, d.edges)) for d in directions if d.tables}

    def on_placed(placed: int) -> None:
        on_step(f"pipeline {package.name}: {placed} of {len(tables)} tables in stages")

    placement = place(tables, edges, chip, on_placed)
    on_step(f"pipeline {package.name}: parsers and containers")
    parsers = tuple(
        parser_demand(d.parser, d.gress, chip) for d in directions if d.parser is not None
    )
    live = {d.gress: _fields(d, placement) for d in directions}
    together = [{} if d.parser is None else coexisting(d.parser) for d in directions]
    phv = phv_demand(list(zip(live.values(), together, strict=True)), chip)
    on_step(f"pipeline {package.name}: rules of actions and registers")
    overruns = [
        *wrong_stages(tables, chip),
        *broken_rules(tables),
        *broken_accesses(package, chip_of(program).alu_bits),
        *(o for d in directions for o in broken_by_blocks(d.parser, d.control, d.deparser)),
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


# -- what does not fit ------------------------------------------------------------------------


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


# -- passes -----------------------------------------------------------------------------------


RESUBMIT, RECIRCULATE = "resubmission", "recirculation"


@dataclass(frozen=True, slots=True)
class PassAgain:
    """A statement by which a packet passes the ingress pipeline again."""

    kind: str
    span: Span


def passes_again(package: ir.Package, facts: DeviceFacts) -> list[PassAgain]:
    """Return the statements of a pipeline that let a packet pass again, as far as constants say
    so. A chip resubmits a packet once; a packet may recirculate as often as the program wants."""
    found: dict[PassAgain, None] = {}
    for block in package.args.values():
        if isinstance(block, ir.Control):
            found.update(dict.fromkeys(_again(block, facts)))
    return list(found)


def _again(control: ir.Control, facts: DeviceFacts) -> Iterator[PassAgain]:
    for stmt in statements(control):
        match stmt:
            case ir.CallExtern(instance=ir.ExternInstance(type="Resubmit")):
                yield PassAgain(RESUBMIT, stmt.span)
            case ir.Assign(
                target=ir.FieldOf(name="ucast_egress_port"), value=ir.Const(value=int() as port)
            ):
                if _recirculates(port, facts):
                    yield PassAgain(RECIRCULATE, stmt.span)
            case ir.Assign(target=ir.FieldOf(name="ucast_egress_port"), value=value):
                low = _low_bits(value, facts.pipe_bits)
                if low is not None and _recirculates(low, facts):
                    yield PassAgain(RECIRCULATE, stmt.span)


def _recirculates(port: int, facts: DeviceFacts) -> bool:
    local = port % (1 << facts.pipe_bits)
    return local in facts.recirculation and port != facts.cpu_port


def _low_bits(e: ir.Expr, bits: int) -> int | None:
    """Return the number that a concatenation ends with: a port of any pipe."""
    match e:
        case ir.Cast(operand=x):
            return _low_bits(x, bits)
        case ir.Binary(op="++", right=ir.Const(value=int() as port, type=Bits(width=width))) if (
            width >= bits
        ):
            return port
    return None
