"""An architecture is one folder: a copy of the package with that of a toy runs its programs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gradplane
from gradplane.switch.arch.registry import architectures

SOURCE = Path(gradplane.__file__).parent
TOY = Path(__file__).parent / "toy"
PROGRAM = TOY / "sums.p4"

RUN = f"""
from gradplane.switch import CompileError, Switch, SwitchError
from gradplane.switch.p4runtime.p4info import build_p4info

def answers(engine):
    sw = Switch({str(PROGRAM)!r}, engine=engine)
    sw.table("ports").add({{"a": 7}}, "forward", {{"port": 3}})
    sw.table("ports").add({{"a": 8}}, "lose")
    given = [sw.process(5, bytes([a, b, 0]) + b"payload") for a, b in ((7, 1), (1, 255), (8, 0))]
    given.append(sw.process(5, b"x"))
    outputs = sw.process_batch([5, 6], [bytes([7, 0, 0]), bytes([0, 3, 0])])
    seen = sw.counter("seen").read(5), sw.counter("seen").read(6)
    return given, outputs, seen, sw.register("total").read(5), dict(sw.state.drops)

found = answers("interpreter")
assert found == answers("jit"), (found, answers("jit"))
given, outputs, seen, total, drops = found
assert given[0] == [(3, bytes([7, 1, 4]) + b"payload")], given
assert given[1] == [(9, bytes([1, 255, 13]) + b"payload")], given
assert given[2] == [], given
assert outputs[1] == (1, 9, bytes([0, 3, 2])), outputs
assert seen == ((5, 34), (1, 3)), seen
assert drops == {{"it is lost": 1}}, drops

sw = Switch({str(PROGRAM)!r})
assert sw.architecture.name == "toy"
info = build_p4info(sw.program)
assert info.pkg_info.arch == "toy"
assert [c.preamble.name for c in info.counters] == ["C.seen"]
assert [r.preamble.name for r in info.registers] == ["C.total"]
sw.multicast(1, [255])
try:
    sw.multicast(1, [256])
except SwitchError as error:
    assert str(error) == "port 256 is not within 0 to 255"

text = open({str(PROGRAM)!r}).read()
text = text.replace("state start {{", "Cells<bit<8>>(1) c; state start {{ c.set(0, 1);")
try:
    Switch("wrong.p4", text=text)
except CompileError as error:
    assert "Cells.set may be called in the control only, not in the parser" in str(error), error
else:
    raise AssertionError("the call was accepted")
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of gradplane in it, to which the toy's folder is added."""
    folder: Path = tmp_path_factory.mktemp("package")
    copy = folder / "gradplane"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, copy, ignore=ignored)
    shutil.copytree(TOY, copy / "switch" / "arch" / "toy", ignore=ignored)
    return folder


def _python(package: Path, *arguments: str) -> str:
    env = os.environ | {"PYTHONPATH": str(package), "XDG_CACHE_HOME": str(package / "cache")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=package, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_both_engines_run_programs_of_the_added_architecture(package: Path) -> None:
    _python(package, "-c", RUN)
    assert "toy" not in architectures()  # the tree itself is as it was


def test_the_command_line_knows_it(package: Path) -> None:
    assert _python(package, "-m", "gradplane", "p4", "check", str(PROGRAM)).endswith(": ok\n")


def test_only_the_folder_was_added(package: Path) -> None:
    def files(root: Path) -> dict[Path, bytes]:
        found = (p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        return {p.relative_to(root): p.read_bytes() for p in found}

    before, after = files(SOURCE), files(package / "gradplane")
    assert all(after[path] == content for path, content in before.items())
    added = {path.parts[:3] for path in after.keys() - before.keys()}
    assert added == {("switch", "arch", "toy")}
