"""Measure this tree beside another commit: python benchmarks/against.py REF [ROW ...].

Both run the rows of this tree's cpu_seconds.py in turn, so that the machine's other load is the
same for both; the first run of each, which fills caches, does not count. The other commit is
checked out in .cache/against/. Where its pyproject.toml asks for the same packages, both use this
environment, each with its own source; else the other has an environment of its own there.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROWS = Path(__file__).with_name("cpu_seconds.py")
KEPT = ROOT / ".cache" / "against"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure this tree beside another commit.")
    parser.add_argument("ref", help="the other commit, branch or tag")
    parser.add_argument("rows", nargs="*", help="rows of cpu_seconds.py; default: all")
    parser.add_argument("--times", type=int, default=3, help="the runs of each that count")
    given = parser.parse_args()
    commit = _git("rev-parse", "--short=8", f"{given.ref}^{{commit}}")
    tree = _checked_out(commit)
    python = _environment(tree)
    builds = {commit: (python, tree / "src"), "this tree": (Path(sys.executable), ROOT / "src")}
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    units: dict[str, str] = {}
    for number in range(given.times + 1):
        for build, (interpreter, source) in builds.items():
            for name, value, unit in _run(interpreter, source, given.rows):
                units[name] = unit
                if number:
                    found[name][build].append(value)
    _print(commit, found, units)


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _checked_out(commit: str) -> Path:
    """Return a folder with a commit's files."""
    tree = KEPT / commit
    if not tree.exists():
        _git("clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(tree))
        subprocess.run(["git", "-C", str(tree), "checkout", "--quiet", commit], check=True)
    return tree


def _environment(tree: Path) -> Path:
    """Return the Python that runs a tree's package."""
    if _needs(tree) == _needs(ROOT):
        print("same packages: both in this environment, each with its own source")
        return Path(sys.executable)
    python = tree / ".venv" / "bin" / "python"
    if not python.exists():
        print(f"other packages: an environment in {tree / '.venv'}")
        subprocess.run([sys.executable, "-m", "venv", str(tree / ".venv")], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", "-e", str(tree)], check=True)
    return python


def _needs(tree: Path) -> object:
    return tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]


def _run(python: Path, source: Path, rows: list[str]) -> list[tuple[str, float, str]]:
    """Run rows once; return names, values and units."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [python, str(ROWS), *rows]
    done = subprocess.run(
        command, env={**kept, "PYTHONPATH": str(source)}, check=True, stdout=subprocess.PIPE,
        text=True, cwd=KEPT,
    )  # fmt: skip
    lines = (line.rpartition(": ") for line in done.stdout.splitlines())
    return [(name, float(text.split()[0]), text.split()[1]) for name, _, text in lines]


def _print(commit: str, found: dict[str, dict[str, list[float]]], units: dict[str, str]) -> None:
    print(f"{'':40}{commit:>12}{'this tree':>12}{'ratio':>8}")
    for name, values in found.items():
        old, new = (statistics.median(values[build]) for build in (commit, "this tree"))
        label = f"{name}, {units[name]}"
        print(f"{label:40}{old:12.2f}{new:12.2f}{new / old if old else 0:8.2f}")


if __name__ == "__main__":
    main()
