"""Externs from a Python file: on the command line, and in a live switch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4r
from typer.testing import CliRunner
from user_extern_switches import ENGINES, ONE, source
from v1programs import packet
from worlds import REFUSED, inside

from gradplane.cli.app import app
from gradplane.switch import SwitchError
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.user_externs_file import load_externs


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "own.p4"
    file.write_text(source(ONE, "h.a.y = f(h.a.x);"))
    (tmp_path / "own.py").write_text("from beside import f\n")
    (tmp_path / "beside.py").write_text("def f(a):\n    return a * 2\n")
    (tmp_path / "own.stf").write_text("packet 0 00030000\nexpect 1 00030600 $\n")
    yield file
    sys.modules.pop("beside", None)
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]


def command(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_stf_and_trace_take_the_file(program: Path) -> None:
    externs = program.with_suffix(".py")
    for engine in ENGINES:
        done = command("stf", program, "--externs", externs, "--engine", engine)
        assert (done.exit_code, done.output) == (0, f"PASS {program}\n1 passed, 0 failed\n")
    done = command("stf", program)
    assert done.exit_code == 1 and "extern f has no implementation" in done.output
    done = command("stf", program, "--externs", "nowhere.py")
    assert done.exit_code == 1
    assert f"FAIL {program}: externs nowhere.py: there is no such file" in done.output
    done = command("trace", program, "--externs", externs, "--packet", "00030000")
    assert "f(3) -> 6" in done.output


def test_p4_check_says_that_an_implementation_is_needed(program: Path) -> None:
    done = command("p4", "check", program)
    assert done.exit_code == 0 and f"{program}: ok\n" in done.output
    note = "warning: extern f: user-defined: the program needs them in Python to run\n"
    assert note in done.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(a:\n", r"externs .*bad\.py:1: SyntaxError: '\(' was never closed"),
        ("\nimport nowhere_to_be_found\n", r"externs .*bad\.py:2: ModuleNotFoundError: "),
    ],
)
def test_a_file_that_cannot_be_loaded_is_reported(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(SwitchError, match=message):
        load_externs(file)
    with pytest.raises(SwitchError, match=r"externs no\.py: there is no such file"):
        load_externs("no.py")


def test_a_live_switch_with_programs_that_are_pushed(tmp_path: Path) -> None:
    """The switch runs in a namespace of its own, as in tests/switch/ports."""
    if REFUSED:
        pytest.skip(REFUSED)
    seen = inside(Path(__file__).with_name("live_externs_world.py"), str(tmp_path))
    assert seen["counted"] == [1, None, 2]
    assert "extern Count.next of I.c failed" in seen["log"] and "RuntimeError: nine" in seen["log"]
    assert seen["after a push"] == 1
    assert seen["exit status"] == 0


def test_a_pushed_program_whose_extern_is_missing_is_refused(program: Path) -> None:
    device = make_device(SwitchOptions(externs=program.with_suffix(".py")))
    text = program.read_text()
    config = p4r.ForwardingPipelineConfig(p4_device_config=text.encode())
    device.commit(device.prepare(config))
    assert device.process(0, packet(x=3)) == [(1, packet(x=3, y=6))]
    config.p4_device_config = text.replace("f(", "g(").encode()
    with pytest.raises(RpcError) as said:
        device.prepare(config)
    assert said.value.code == "INVALID_ARGUMENT"
    message = said.value.message
    assert message.startswith("pushed.p4:") and "error: extern g has no implementation" in message
    assert "h.a.y = g(h.a.x);" in message and "\n    " in message
    assert device.process(0, packet(x=3)) == [(1, packet(x=3, y=6))]


def test_an_own_type_is_not_taken_for_psas_of_that_name(tmp_path: Path) -> None:
    declared = "extern Counter { Counter(bool b); void count(in bit<8> a); }"
    text = source(declared, "c.count(h.a.x);", "Counter(true) c; register<bit<8>>(3) r;")
    (tmp_path / "count.py").write_text(
        "class Counter:\n    def __init__(self, b): self.b = b\n    def count(self, a): pass\n"
    )
    device = make_device(SwitchOptions(externs=tmp_path / "count.py"))
    made = device.prepare(p4r.ForwardingPipelineConfig(p4_device_config=text.encode()))
    info = made.config.p4info
    assert not info.counters and not info.externs
    assert [r.preamble.name for r in info.registers] == ["I.r"]
