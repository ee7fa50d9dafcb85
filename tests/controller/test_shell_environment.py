"""The environment of p4runtime-shell: made once, repaired when damaged, clear when it cannot be."""

import sys
import threading
import venv
from pathlib import Path

import pytest

from gradplane.cli import p4runtime_shell


@pytest.fixture
def made(monkeypatch):
    """Make environments without pip; return the folders in which that happened."""
    folders = []

    def make(folder):
        assert not folder.exists()
        folders.append(folder)
        site = folder / "lib" / "python" / "site"
        site.mkdir(parents=True)
        (folder / "bin").mkdir()
        python = folder / "bin" / "python"
        python.write_text(f"#!/bin/sh\nexec {sys.executable} -c pass\n")
        python.chmod(0o755)
        (folder / "complete").write_text("\n".join(p4runtime_shell._PINS))

    monkeypatch.setattr(p4runtime_shell, "_make", make)
    return folders


def test_it_is_made_once(tmp_path, made):
    folder = tmp_path / "cache" / "environment"
    assert p4runtime_shell.ensure_environment(folder) == folder
    assert p4runtime_shell.ensure_environment(folder) == folder
    assert made == [folder]


@pytest.mark.parametrize("damage", ["complete", "bin/python"])
def test_a_damaged_one_is_made_anew(tmp_path, made, damage):
    folder = tmp_path / "environment"
    p4runtime_shell.ensure_environment(folder)
    (folder / damage).unlink()
    p4runtime_shell.ensure_environment(folder)
    assert made == [folder, folder]


def test_one_for_other_versions_is_made_anew(tmp_path, made):
    folder = tmp_path / "environment"
    p4runtime_shell.ensure_environment(folder)
    (folder / "complete").write_text("p4runtime-shell==0.0.5")
    p4runtime_shell.ensure_environment(folder)
    assert made == [folder, folder]


def test_many_at_once_make_one(tmp_path, made):
    folder = tmp_path / "environment"
    threads = [
        threading.Thread(target=p4runtime_shell.ensure_environment, args=(folder,))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [folder]


def test_without_venv(tmp_path, monkeypatch, capfd):
    def create(folder, with_pip):
        raise OSError("no ensurepip")

    monkeypatch.setattr(venv, "create", create)
    folder = tmp_path / "environment"
    with pytest.raises(p4runtime_shell.ShellError) as error:
        p4runtime_shell.ensure_environment(folder)
    assert str(error.value) == (
        f"no virtual environment in {folder}: no ensurepip; on Debian: apt-get install python3-venv"
    )
    assert capfd.readouterr().err == f"installing p4runtime-shell==0.0.6 into {folder}, once\n"


def test_pip_without_an_index(tmp_path, monkeypatch):
    def create(folder, with_pip):
        (Path(folder) / "bin").mkdir(parents=True)
        python = Path(folder) / "bin" / "python"
        python.write_text("#!/bin/sh\necho 'ERROR: no matching distribution' >&2\nexit 1\n")
        python.chmod(0o755)

    monkeypatch.setattr(venv, "create", create)
    folder = tmp_path / "environment"
    with pytest.raises(p4runtime_shell.ShellError) as error:
        p4runtime_shell.ensure_environment(folder)
    assert str(error.value) == (
        f"p4runtime-shell==0.0.6 could not be installed into {folder}; pip says:\n"
        "ERROR: no matching distribution\n"
        "Check that pip reaches a package index, and try again."
    )
    assert not (folder / "complete").exists()


def test_a_script_that_does_not_exist(tmp_path, made):
    script = tmp_path / "script.py"
    with pytest.raises(p4runtime_shell.ShellError) as error:
        p4runtime_shell.open_shell("127.0.0.1:9559", script=script)
    assert str(error.value) == f"there is no script {script}"
    assert made == []
