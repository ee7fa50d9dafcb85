"""A bug of the compiler is reported as an error at the construct that revealed it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gradplane.experiment import p4_programs
from gradplane.switch.backends.bmv2.actions import PrimitiveWriter
from gradplane.switch.check import expressions as checked_expressions
from gradplane.switch.compiler import compile_source
from gradplane.switch.lower import statements as lowered_statements
from gradplane.switch.machine.native_traffic import Traffic
from gradplane.switch.p4runtime.p4info import _Builder as P4InfoBuilder
from gradplane.switch.source import CompileError, InternalCompilerError
from gradplane.switch.switch import Switch
from gradplane.switch.syntax import ast

TEXT = (Path(__file__).parent / "accepted" / "router.p4").read_text()


def failing(*_: object, **__: object) -> None:
    raise KeyError("48")


@pytest.mark.parametrize(
    ("table", "kind", "construct"),
    [
        (checked_expressions._EXPRESSIONS, ast.Binary, "binary"),
        (lowered_statements._STATEMENTS, ast.If, "if"),
    ],
)
def test_it_names_the_construct(
    table: dict[type, object], kind: type, construct: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(table, kind, failing)
    with pytest.raises(InternalCompilerError) as said:
        compile_source("router.p4", text=TEXT)
    [found] = said.value.diagnostics
    assert found.message == f"internal error of the compiler at this {construct}: KeyError('48')"
    assert found.hint == "this is a bug of the compiler; please report it, with the program"
    assert found.span.file == "router.p4" and found.span.line > 1
    assert isinstance(said.value, CompileError) and isinstance(said.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("owner", "method", "construct", "stage"),
    [
        (P4InfoBuilder, "_table", " at this table", p4_programs.check),
        (Traffic, "__init__", "", Switch),
        (PrimitiveWriter, "assign", " at this assign", partial(p4_programs.compiled_for, "bmv2")),
    ],
)
def test_later_stages_name_it_too(
    owner: type,
    method: str,
    construct: str,
    stage: Callable[[Any], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = compile_source("router.p4", text=TEXT)
    monkeypatch.setattr(owner, method, failing)
    with pytest.raises(InternalCompilerError) as said:
        stage(compiled.program if stage is Switch else compiled)
    [found] = said.value.diagnostics
    assert found.message == f"internal error of the compiler{construct}: KeyError('48')"
    assert found.span.file == "router.p4" and found.span.line > 1
