"""The architectures that can be compiled, by the type of their package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.entry_points import Pipeline
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import Builders, Externs
from gradplane.switch.jit.native_direct_resources import count_and_meter, keep_found
from gradplane.switch.jit.table_apply import Observe


@dataclass(frozen=True, slots=True)
class Architecture:
    externs: Builders
    observe: Observe
    build: Callable[[Unit, ir.Program, Externs, int], Pipeline]


def _v1model() -> Architecture:
    from gradplane.switch.jit import v1externs, v1pipeline

    return Architecture(v1externs.EXTERNS, count_and_meter, v1pipeline.build)


def _psa() -> Architecture:
    from gradplane.switch.jit import psaexterns, psapipeline

    return Architecture(psaexterns.EXTERNS, keep_found, psapipeline.build)


_ARCHITECTURES = {"V1Switch": _v1model, "PSA_Switch": _psa}


def architecture(program: ir.Program) -> Architecture:
    """A program's; gradplane.switch.arch.registry has refused others before."""
    return _ARCHITECTURES[program.package.type]()
