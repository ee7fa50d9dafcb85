"""Switches of small programs with externs of their own, one on each engine."""

from __future__ import annotations

from typing import Any

import pytest
import v1programs

from gradplane.switch import Switch
from gradplane.switch.source import CompileError

ENGINES = ("interpreter", "jit")
ONE = "extern bit<8> f(in bit<8> a);"


def source(declared: str, ingress: str, ingress_locals: str = "", **parts: str) -> str:
    return v1programs.source(
        types=declared,
        ingress="s.egress_spec = 1; " + ingress,
        ingress_locals=ingress_locals,
        **parts,
    )


def switches(externs: Any, declared: str, ingress: str, ingress_locals: str = "") -> list[Switch]:
    """Return a switch for each engine."""
    text = source(declared, ingress, ingress_locals)
    return [Switch("x.p4", text=text, engine=engine, externs=externs) for engine in ENGINES]


def refused(externs: Any, declared: str, ingress: str, ingress_locals: str = "") -> str:
    with pytest.raises(CompileError) as said:
        switches(externs, declared, ingress, ingress_locals)
    (diagnostic,) = said.value.diagnostics
    assert diagnostic.span.file == "x.p4" and diagnostic.span.line > 1
    return f"{diagnostic.message} | {diagnostic.hint}".rstrip(" |")
