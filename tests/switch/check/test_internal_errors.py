"""A bug of the compiler is reported as an error at the construct that revealed it."""

from pathlib import Path

import pytest

from gradplane.switch.check.expressions import ExpressionChecker
from gradplane.switch.compiler import compile_source
from gradplane.switch.lower.statements import Body
from gradplane.switch.source import CompileError, InternalCompilerError

TEXT = (Path(__file__).parent / "accepted" / "router.p4").read_text()


def failing(*_: object) -> None:
    raise KeyError("48")


@pytest.mark.parametrize(
    ("owner", "method", "construct"),
    [(ExpressionChecker, "_binary", "binary"), (Body, "_if_stmt", "if")],
)
def test_it_names_the_construct(
    owner: type, method: str, construct: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, method, failing)
    with pytest.raises(InternalCompilerError) as said:
        compile_source("router.p4", text=TEXT)
    [found] = said.value.diagnostics
    assert found.message == f"internal error of the compiler at this {construct}: KeyError('48')"
    assert found.hint == "this is a bug of the compiler; please report it, with the program"
    assert found.span.file == "router.p4" and found.span.line > 1
    assert isinstance(said.value, CompileError) and isinstance(said.value.__cause__, KeyError)
