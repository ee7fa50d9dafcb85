"""Compiled kernels are kept for all copies of the package, until what they depend on changes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gradplane
from gradplane import _kernel_cache

PACKAGE = Path(gradplane.__file__).parent
CALL = """
import numpy as np
from gradplane import _vector_kernels
out = np.zeros(3)
_vector_kernels.add(np.ones(3), np.ones(3), out)
stats = _vector_kernels.add.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), out[0])
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a second copy of the package, elsewhere, with times of its own."""
    ignored = shutil.ignore_patterns("__pycache__", "switch", "pages", "studies")
    shutil.copytree(PACKAGE, tmp_path / "copy" / "gradplane", ignore=ignored)
    for path in (tmp_path / "copy").rglob("*.py"):
        os.utime(path, (1, 1))
    return tmp_path / "copy"


def added(source: Path, cache: Path, **variables: str) -> str:
    """Add two vectors in a process; return how often the kernel was found, and compiled."""
    own = {"PYTHONPATH": str(source), "XDG_CACHE_HOME": str(cache)} | variables
    command = [sys.executable, "-c", CALL]
    done = subprocess.run(
        command, env=os.environ | own, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.rpartition(" ")[0]


def test_copies_share_kernels_that_one_of_them_compiled(copy: Path, tmp_path: Path) -> None:
    assert added(copy, tmp_path) == "0 1"
    assert added(PACKAGE.parent, tmp_path) == "1 0"
    assert not list(copy.rglob("*.nbc"))
    with (copy / "gradplane" / "_vector_kernels.py").open("a") as file:
        file.write("\n# a change\n")
    assert added(copy, tmp_path) == "0 1"
    assert added(PACKAGE.parent, tmp_path) == "1 0"  # which had its own
    assert added(copy, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "numba")) == "0 1"
    assert list((tmp_path / "numba").rglob("*.nbc"))


def test_of_processes_that_start_together_one_compiles(tmp_path: Path) -> None:
    own = {"PYTHONPATH": str(PACKAGE.parent), "XDG_CACHE_HOME": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CALL], env=os.environ | own, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = sorted(each.communicate(timeout=300)[0].rpartition(" ")[0] for each in started)
    assert said == ["0 1", "1 0", "1 0"]


def test_a_kernel_depends_on_the_functions_and_constants_that_it_calls() -> None:
    found = _kernel_cache._called(PACKAGE / "codecs" / "natural.py")
    names = {path.relative_to(PACKAGE).as_posix() for path in found}
    assert {"codecs/natural.py", "codecs/_random.py", "_splitmix64.py"} <= names
    assert "codecs/thc.py" not in names


def test_folders_of_old_versions_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_kernel_cache, "MODULES_KEPT", 2)
    for age in range(4):
        folder = tmp_path / "gradplane" / "kernels" / f"old-{age}"
        folder.mkdir(parents=True)
        os.utime(folder, (100 - age, 100 - age))
    module = PACKAGE / "_vector_kernels.py"
    found = _kernel_cache.SharedLocator.from_function(added, str(module))
    assert found is not None
    left = {path.name for path in (tmp_path / "gradplane" / "kernels").iterdir()}
    assert left == {Path(found.get_cache_path()).name, "old-0"}


def test_functions_of_others_are_where_numba_keeps_them() -> None:
    assert _kernel_cache.SharedLocator.from_function(added, __file__) is None
