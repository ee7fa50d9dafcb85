"""The sdist and the wheel hold the whole package once, and what is installed from them runs."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from email import message_from_bytes
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")
MADE = {"build", "dist", "runs", "site"}  # at the top of the tree only: the package has a room runs
BESIDE_SOURCES = {
    "CHANGELOG.md",
    "LICENSE",
    "MANIFEST.in",
    "PKG-INFO",
    "README.md",
    "pyproject.toml",
    "setup.cfg",
}


class Built(NamedTuple):
    tree: Path
    sdist: Path
    wheel: Path


def _run(command: Sequence[str | Path], cwd: Path, **variables: str) -> str:
    """Run a command that sees nothing of this checkout but what is installed."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        command, cwd=cwd, env=env | variables, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _not_copied(folder: str, names: list[str]) -> set[str]:
    return NOT_COPIED(folder, names) | (MADE if Path(folder) == ROOT else set())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return a copy of the tree, and the sdist and the wheel (made from the sdist) of it."""
    folder: Path = tmp_path_factory.mktemp("packaging")
    tree = folder / "tree"
    shutil.copytree(ROOT, tree, symlinks=True, ignore=_not_copied)
    build = [sys.executable, "-m", "build", "--no-isolation", "-o", folder, tree]
    _run(build, folder)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Built(tree, sdist, wheel)


@pytest.fixture(scope="module")
def sources(built: Built) -> set[str]:
    """Return the package's files, as paths from src/."""
    source = built.tree / "src"
    files = (file for file in (source / "gradplane").rglob("*") if file.is_file())
    found = {file.relative_to(source).as_posix() for file in files if file.suffix != ".pyc"}
    kinds = {PurePosixPath(name).suffix for name in found}
    assert {".lua", ".p4", ".py", ".toml", ".typed"} <= kinds
    return found


def test_the_wheel_holds_the_package(built: Built, sources: set[str]) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        fields = message_from_bytes(archive.read(metadata))
    assert names == sources
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["Author"] == "gradplane developers"


def test_the_sdist_holds_the_package_once(built: Built, sources: set[str]) -> None:
    with tarfile.open(built.sdist) as archive:
        members = [m for m in archive.getmembers() if not m.isdir()]
    assert [m.name for m in members if not m.isfile()] == []
    names = {PurePosixPath(*PurePosixPath(m.name).parts[1:]).as_posix() for m in members}
    names = {name for name in names if ".egg-info/" not in name}
    assert names == {f"src/{name}" for name in sources} | BESIDE_SOURCES


@pytest.fixture(params=["wheel", "editable"])
def installed(request: pytest.FixtureRequest, built: Built, tmp_path: Path) -> Path:
    """Return the bin/ of a new environment with gradplane in it; the dependencies are this
    one's."""
    environment = tmp_path / "venv"
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    (packages,) = (environment / "lib").glob("python3.*/site-packages")
    (packages / "dependencies.pth").write_text(_dependencies())
    what = [built.wheel] if request.param == "wheel" else ["-e", built.tree]
    options = ["-q", "--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed"]
    _run([sys.executable, "-m", "pip", "--python", python, "install", *options, *what], tmp_path)
    return environment / "bin"


def _dependencies() -> str:
    """Return the folders that this environment imports packages from, as lines of a .pth file."""
    own = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    others = {path for path in sys.path if path.endswith("site-packages")}
    return "\n".join(sorted(own | others)) + "\n"


def test_commands_run_where_it_is_installed(installed: Path, tmp_path: Path) -> None:
    home = _run(
        [installed / "python", "-c", "import gradplane; print(gradplane.__path__[0])"], tmp_path
    ).strip()
    assert not Path(home).is_relative_to(ROOT)
    checked = _run([installed / "gradplane", "p4", "check", "thc.p4"], tmp_path)
    assert checked.startswith(home) and checked.endswith(": ok\n")
    if home.startswith(str(installed.parent)):  # a wheel; this checkout is an editable one
        options = ["--net", "sim", "--set", "job.epochs=1", "--set", "job.batch=300"]
        options += ["--set", "output.baseline=false"]
        run = [installed / "gradplane", "run", "thc-star", *options]
        assert "test accuracy" in _run(run, tmp_path, COLUMNS="80")
        assert (tmp_path / "runs" / "thc-star-1" / "report.html").exists()
