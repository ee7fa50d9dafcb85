"""Programs that are nested as deeply as the parser allows run on both engines."""

import pytest
from v1programs import source

from gradplane.switch import Switch
from gradplane.switch.compiler import compile_source
from gradplane.switch.source import CompileError


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("h.a.y = " + "(" * 250 + "h.a.x" + " + 1)" * 250 + ";", (2 + 250) % 256),
        ("h.a.y = h.a.x" + " + h.a.x" * 990 + ";", 2 * 991 % 256),
        ("if (h.a.x == 2) " + "{ if (h.a.x != 3) " * 120 + "{ h.a.y = 7; }" + "}" * 120, 7),
    ],
    ids=["brackets", "operators", "conditions"],
)
def test_deep(engine: str, code: str, expected: int) -> None:
    sw = Switch("deep.p4", text=source(ingress=f"s.egress_spec = 1; {code}"), engine=engine)
    assert sw.process(1, bytes([1, 2, 3, 4])) == [(1, bytes([1, 2, expected, 4]))]


def test_what_python_cannot_walk_is_an_error() -> None:
    code = "h.a.x"
    for _ in range(20):
        code = f"({code}{' + h.a.x' * 900})"
    with pytest.raises(CompileError, match="the program is nested too deeply to be compiled"):
        compile_source("deep.p4", text=source(ingress=f"h.a.y = {code};"))
