"""PTF, the P4 community's packet tests, on a live switch: P4Runtime and packets together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradplane.cli import p4runtime_shell

WORLD = Path(__file__).parent / "ptf_world.py"
PINS = ("ptf==0.12.0", "scapy==2.6.1", "six==1.17.0")


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install PTF and its dependencies beside the environment of the old clients."""
    folder = tmp_path_factory.mktemp("ptf")
    python = p4runtime_shell.ensure_environment() / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"]
    options = ["--disable-pip-version-check", "--no-deps", "--target", folder]
    subprocess.run([*pip, *options, *PINS], check=True)
    return folder


def test_every_test_passes(installed: Path, tmp_path: Path) -> None:
    python = p4runtime_shell.ensure_environment() / "bin" / "python"
    command = ["unshare", "--net", "--map-root-user", sys.executable, WORLD, python, installed]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    done = subprocess.run(
        [*command, tmp_path], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    passed = re.findall(r"^l3_tests\.(\w+) \.\.\. ok$", done.stderr, re.MULTILINE)
    assert len(passed) == 9, done.stderr
