"""Pipelines with several parsers, which the ports of a packet choose among.

    MultiParserPipeline(IngressParsers(A(), B()), ...)   ->   Pipeline(A(), ...), B() beside A()

@default_portmap on the parsers lists each one's ports; others have the first parser. Without it,
parser N has ports 4 * N to 4 * N + 3 of the pipe, as those of the chip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from gradplane.switch.arch.tna.chips import LOCAL_PORTS, PIPE_BITS, Chip
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.valuesets import PARSERS, parser_of
from gradplane.switch.source import Diagnostic

MOST = PARSERS
_PORT_MAP = "default_portmap"
_MULTIPLE = "MultiParserPipeline"
_Argument: TypeAlias = "ir.Parser | ir.Control | ir.Package | ir.Argument"
_SIDES = {"ig_prsr": "ingress_parser", "eg_prsr": "egress_parser"}


def parser_name(side: str, number: int) -> str:
    """Return the argument of a pipeline that is one of the side's parsers."""
    return f"{side}{number or ''}"


def parser_names(pipeline: ir.Package, side: str) -> list[str]:
    """Return the arguments of a pipeline that are parsers of a side, in order."""
    names = (parser_name(side, number) for number in range(MOST))
    return [name for name in names if name in pipeline.args]


def name_parsers(program: ir.Program) -> Iterable[Diagnostic]:
    """Make the parsers of a pipeline with several its own arguments, in place."""
    for package in program.package.args.values():
        if isinstance(package, ir.Package) and package.type == _MULTIPLE:
            package.type = "Pipeline"
            package.args = dict(_arguments(package))
    return ()


def _arguments(package: ir.Package) -> Iterable[tuple[str, _Argument]]:
    for name, value in package.args.items():
        if name not in _SIDES or not isinstance(value, ir.Package):
            yield name, value
            continue
        package.annotations += tuple(a for a in value.annotations if a.name == _PORT_MAP)
        for number in range(MOST):
            found = value.args.get(f"prsr{number}")
            if found is not None:
                yield parser_name(_SIDES[name], number), found


def parsers_of_ports(pipeline: ir.Package, side: str, chip: Chip) -> list[str]:
    """Return the parser of each of the chip's ports, by its name in the pipeline."""
    names = parser_names(pipeline, side)
    listed = _port_map(pipeline)
    return [
        _parser_of(port % LOCAL_PORTS, names, listed) for port in range(chip.pipes << PIPE_BITS)
    ]


def _parser_of(port: int, names: list[str], listed: list[set[int]]) -> str:
    if listed:
        numbers = (n for n, ports in enumerate(listed[: len(names)]) if port in ports)
        return names[next(numbers, 0)]
    number = parser_of(port)
    return names[number] if number < len(names) else names[0]


def _port_map(pipeline: ir.Package) -> list[set[int]]:
    """Return the ports of each parser; nothing where the program has no map."""
    found = next((a.body for a in pipeline.annotations if a.name == _PORT_MAP), "")
    groups = re.findall(r"\{([^}]*)\}|(\d+)", found)
    return [{int(n) for n in re.findall(r"\d+", listed or single)} for listed, single in groups]
