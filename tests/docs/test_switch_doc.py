"""docs/switch.md works as it stands: programs, packet tests, commands, Python, Mininet."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typed_commands import run_commands

from gradplane.runs import isolation

TEXT = (Path(__file__).parents[2] / "docs" / "switch.md").read_text()
BLOCKS = re.findall(r"^```(.+?)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("switch")
    for kind, block in BLOCKS:
        language, _, name = kind.partition(" ")
        if language in ("p4", "stf") or name.endswith(".py"):
            file = path / (name or f"router.{language}")
            assert not file.exists(), file.name
            file.write_text(block)
    return path


def blocks(kind: str) -> list[str]:
    found = [text for k, text in BLOCKS if k == kind]
    assert found, kind
    return found


def test_commands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(blocks("console")).splitlines()
    run_commands([line.removeprefix("$ ") for line in lines], folder, monkeypatch)


def test_python(folder: Path) -> None:
    for text in blocks("python"):
        subprocess.run([sys.executable, "-c", text], cwd=folder, check=True)


@pytest.mark.skipif(
    not (isolation.can_isolate()[0] and shutil.which("mnexec")), reason="Mininet needs namespaces"
)
def test_mininet(folder: Path) -> None:
    for text in blocks("python mininet"):
        (folder / "lab.py").write_text(text)
        command = [sys.executable, "-m", "gradplane", "lab", "lab.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("127.0.0.1:")
