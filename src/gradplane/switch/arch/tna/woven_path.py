"""TNA's packet path, path.p4, woven around each pipeline of a program, with what differs between
chips and programs.

A pipe beyond the last of several pipelines runs the pipeline of its number modulo theirs. Each pipe
has registers of its own, and the tables and externs that its scopes give it
(runtime/pipe_scopes.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path as Folder

from gradplane.switch.arch.tna import true_accounting
from gradplane.switch.arch.tna.chips import INGRESS_HEADER, LOCAL_PORTS, PIPE_BITS, Chip, chip_of
from gradplane.switch.arch.tna.parser_choices import parser_names, parsers_of_ports
from gradplane.switch.arch.tna.pipe_scopes import pipeline_numbers, pipelines
from gradplane.switch.ir import expression_builder as build
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL, Bits, Field, Fields, Header
from gradplane.switch.ir.walk import expressions, operands, statements
from gradplane.switch.machine.path_texts import path_text
from gradplane.switch.machine.primitives import PRIMITIVES
from gradplane.switch.machine.weaving import Expansions, Path, Surroundings, weave

_ROWS = {**PRIMITIVES, "recount": true_accounting.RECOUNT}

# Errors of parsers as the chip gives them: flags in parser_err.
_NO_MATCH, _PARTIAL_HEADER, _COUNTER_RANGE, _TIMEOUT, _NO_CONTAINER = 1, 2, 4, 8, 0x40
_FLAGS = {
    "NoError": 0,
    "PacketTooShort": _PARTIAL_HEADER,
    "HeaderTooShort": _PARTIAL_HEADER,
    "CounterRange": _COUNTER_RANGE,
    "ParserTimeout": _TIMEOUT,
    "StackOutOfBounds": _NO_CONTAINER,
}
_FIELD = "parser_err"


def path(program: ir.Program) -> Path:
    """Return the path around a program, whose pipelines each pipe runs one of."""
    text, chip = path_text(Folder(__file__).parent), chip_of(program)
    metadata = Header("port_metadata_t", (Field("bytes", Bits(8 * chip.port_metadata)),))
    types = {
        "ingress_front_t": INGRESS_HEADER,
        "egress_front_t": chip.egress_header,
        metadata.name: metadata,
    }
    slots = {"egress_packet_t": true_accounting.notes(program)}
    woven = [
        weave(text, Surroundings(p, _expansions(program, chip, p), types, slots, f"pipe{i}."))
        for i, p in enumerate(pipelines(program))
    ]
    pipes = pipeline_numbers(program)
    return Path(woven, text.controls, text.notes, _ROWS, pipes, PIPE_BITS, chip.port_metadata)


def _expansions(program: ir.Program, chip: Chip, pipeline: ir.Package) -> Expansions:
    """Return the functions that return what TNA's own primitives stand for in a pipeline."""
    return {
        "chip": partial(_chip, chip),
        "parser_of": partial(_parser_of, chip, pipeline),
        "error_flags": partial(_error_flags, program.errors),
        "keeps_errors": lambda call: _given(call, _reads_errors(pipeline)),
    }


def _chip(chip: Chip, call: ir.CallExtern) -> list[ir.Stmt]:
    facts = {
        "cpu_port": chip.cpu_port,
        "first_recirculating": chip.recirculation.start,
        "recirculating": len(chip.recirculation),
    }
    result = call.result
    if result is None:
        return []
    assert isinstance(result.type, Fields), result
    return [
        _set(build.field(result, i), facts[field.name])
        for i, field in enumerate(result.type.fields)
    ]


def _parser_of(chip: Chip, pipeline: ir.Package, call: ir.CallExtern) -> list[ir.Stmt]:
    """Return the statements of parser_of(side, port): the number of the parser for a port."""
    side, port = call.args
    assert isinstance(side, ir.Const) and isinstance(side.value, str), side
    names = parser_names(pipeline, side.value)
    first = _given(call, 0)
    if len(names) == 1 or call.result is None:
        return first
    of_ports = parsers_of_ports(pipeline, side.value, chip)[:LOCAL_PORTS]
    numbers = [names.index(name) for name in of_ports]
    local = build.binary("&", port, build.number(port.type, LOCAL_PORTS - 1))
    return first + _chosen(call.result, local, numbers)


def _error_flags(errors: Sequence[str], call: ir.CallExtern) -> list[ir.Stmt]:
    """Return the statements of error_flags(code): the flags of a parser's error."""
    if call.result is None:
        return []
    return _given(call, 0) + _chosen(call.result, call.args[0], _flags_of(errors))


def _chosen(target: ir.LValue, subject: ir.Expr, values: Sequence[int]) -> list[ir.Stmt]:
    """Return the switch that assigns the value at a place of a list; for 0 there is no case."""
    cases = [
        ([at for at, value in enumerate(values) if value == chosen], [_set(target, chosen)])
        for chosen in dict.fromkeys(values)
        if chosen
    ]
    return [ir.SwitchStmt(subject, cases, [])]


def _given(call: ir.CallExtern, value: int) -> list[ir.Stmt]:
    """Return the statements that give a call's result this value."""
    return [] if call.result is None else [_set(call.result, value)]


def _set(target: ir.Expr, value: int) -> ir.Stmt:
    assert isinstance(target, ir.LValue), target
    if target.type == BOOL:
        return ir.Assign(target, ir.Const(BOOL, bool(value)))
    return ir.Assign(target, build.number(target.type, value))


# -- errors of parsers --------------------------------------------------------------------------


def _flags_of(errors: Sequence[str]) -> list[int]:
    """Return the flags of each error code; an error that the chip does not have is no match."""
    return [_FLAGS.get(name, _NO_MATCH) for name in errors]


def _reads_errors(pipeline: ir.Package) -> bool:
    """Return whether ingress uses the parser's errors: then packets with errors are not dropped."""
    return any(
        _reads(e) for stmt in statements(pipeline.control("ingress")) for e in expressions(stmt)
    )


def _reads(e: ir.Expr) -> bool:
    if isinstance(e, ir.FieldOf):
        return e.name == _FIELD or (not isinstance(e.base, ir.Var) and _reads(e.base))
    if isinstance(e.type, Fields) and e.type.index(_FIELD) is not None:
        return True
    return any(map(_reads, operands(e)))
