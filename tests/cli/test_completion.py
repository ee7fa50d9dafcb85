"""Completion in shells: what is installed, and what TAB then offers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SHELLS = {
    "bash": {"COMP_WORDS": "gradplane repl", "COMP_CWORD": "1"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "gradplane repl"},
    "fish": {"_TYPER_COMPLETE_ARGS": "gradplane repl", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}
"""By shell, what its script asks with."""


def asked(home: Path, *arguments: str, **variables: str) -> str:
    home.mkdir(exist_ok=True)
    (home / ".zshrc").touch()
    env = os.environ | {"HOME": str(home)} | variables
    command = [sys.executable, "-m", "gradplane", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_the_rest_of_a_command_is_offered(tmp_path: Path, shell: str) -> None:
    answer = asked(tmp_path, _GRADPLANE_COMPLETE=f"complete_{shell}", **SHELLS[shell])
    assert "replay" in answer and "report" not in answer


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("run own --net s", "sim"),
        ("codecs bench threel", "threelc"),
        ("codecs check me", "mean.py"),
        ("codecs advise --gradients dig", "digits-cnn"),
        ("plan vgg16 --system nv", "nvlink-100g"),
        ("plan resnet10", "resnet101"),
    ],
)
def test_names_are_offered_beside_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, offered: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mean.py").touch()
    line = {"COMP_WORDS": f"gradplane {words}", "COMP_CWORD": str(len(words.split()))}
    assert asked(tmp_path, _GRADPLANE_COMPLETE="complete_bash", **line) == f"{offered}\n"


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed (Debian: zsh)")
def test_the_first_tab_in_a_new_zsh(tmp_path: Path) -> None:
    """zsh loads the installed file at the first TAB, which must complete already."""
    home, tools = tmp_path / "home", tmp_path / "tools"
    off = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    asked(home, "--install-completion", "zsh", **off)
    tools.mkdir()
    (tools / "gradplane").write_text(f'#!/bin/sh\nexec {sys.executable} -m gradplane "$@"\n')
    (tools / "gradplane").chmod(0o755)
    script = """
zmodload zsh/zpty
zpty z zsh -i
zpty -w z 'print R""EADY'; zpty -r z line '*READY*'
zpty -w -n z $'gradplane repl\\t'; zpty -r z line '*replay *'
"""
    env = os.environ | {"HOME": str(home), "TERM": "dumb"}
    env["PATH"] = f"{tools}:{env['PATH']}"
    subprocess.run(["zsh", "-f", "-c", script], env=env, check=True, timeout=100)
