"""The parts of the chip that control protocols configure: pipes, ports, and their metadata."""

from __future__ import annotations

from collections.abc import Iterator

from gradplane.switch.arch.device_facts import DeviceFacts, PipelineFacts
from gradplane.switch.arch.tna.chips import LOCAL_PORTS, PIPE_BITS, Chip, chip_of
from gradplane.switch.arch.tna.parser_choices import parser_names
from gradplane.switch.arch.tna.pipe_scopes import pipeline_numbers, pipelines
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields


def device(program: ir.Program) -> DeviceFacts:
    """Return the facts of the chip that a TNA program is for."""
    chip, numbers = chip_of(program), pipeline_numbers(program)
    return DeviceFacts(
        chip.family, chip.sku, chip.pipes, chip.stages, chip.pipes * LOCAL_PORTS, PIPE_BITS,
        chip.cpu_port, chip.recirculation, chip.port_metadata,
        tuple(
            _pipeline(package, chip, tuple(pipe for pipe, at in enumerate(numbers) if at == number))
            for number, package in enumerate(pipelines(program))
        ),
        program.label,
    )  # fmt: skip


def _pipeline(package: ir.Package, chip: Chip, pipes: tuple[int, ...]) -> PipelineFacts:
    parser = package.parser("ingress_parser")
    own = [p.var.name for p in parser.params
           if isinstance(p.var.type, Fields)
           and p.var.type.name == "ingress_intrinsic_metadata_t"]  # fmt: skip
    key = own[0] if own else "ig_intr_md"
    parser_name = parser.name.removeprefix(f"{package.name}.")
    parsers = (package.parser(name) for name in parser_names(package, "ingress_parser"))
    types = (port_metadata_type(parser, chip) for parser in parsers)
    controls = {gress: package.control(gress) for gress in ("ingress", "egress")}
    metadata = next(filter(None, types), None)
    return PipelineFacts(package.name, parser_name, key, metadata, controls, pipes)


def port_metadata_type(parser: ir.Parser, chip: Chip) -> Fields | None:
    """Return the type that a parser reads its port's metadata as; None if it skips them.

    Preparation makes a look-ahead and an advance of `port_metadata_unpack`.
    """
    for before, after in _neighbours(parser):
        if isinstance(before, ir.CallExtern) and before.name == "port_metadata_unpack":
            return _type_of(before.result)
        skipped = isinstance(after, ir.Advance) and isinstance(after.bits, ir.Const)
        if isinstance(before, ir.Lookahead) and skipped:
            assert isinstance(after, ir.Advance) and isinstance(after.bits, ir.Const)
            if after.bits.value == 8 * chip.port_metadata:
                return _type_of(before.target)
    return None


def _neighbours(parser: ir.Parser) -> Iterator[tuple[ir.Stmt, ir.Stmt | None]]:
    for state in parser.states.values():
        yield from zip(state.body, [*state.body, None][1:], strict=True)


def _type_of(place: ir.Expr | None) -> Fields | None:
    return place.type if place is not None and isinstance(place.type, Fields) else None
