"""Count the package's source: lines, modules, circles of imports, docstrings; beside the aims.

    python scripts/count_source.py [--list] [--circles]

Counted are the files under src/ that are written by hand: .py, .p4, .json, .toml, .html and .js.
An import counts wherever it stands: at the top, within a function, or for type checking only.
--list: also name the modules that one other module imports, the longest first. --circles: also
name the modules of each circle of imports.
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import connected_components

SOURCE = Path(__file__).parents[1] / "src"
KINDS = (".py", ".p4", ".json", ".toml", ".html", ".js")
AIM_LINES, AIM_MODULES, AIM_CIRCLE = 104_000, 620, 3

Imports = Mapping[str, set[str]]
"""Module -> the modules of ours that it imports."""


@dataclass(frozen=True)
class Module:
    """A Python module: its name, its tree and its number of lines."""

    name: str
    package: bool
    tree: ast.Module
    lines: int


def files(source: Path = SOURCE) -> list[Path]:
    """Return the files that count, sorted."""
    found = (path for path in source.rglob("*") if path.suffix in KINDS and path.is_file())
    return sorted(path for path in found if ".egg-info" not in str(path))


def modules(source: Path = SOURCE) -> dict[str, Module]:
    """Return the Python modules, by name."""
    found = {}
    for path in files(source):
        if path.suffix == ".py":
            name = ".".join(path.relative_to(source).with_suffix("").parts)
            text = path.read_text("utf-8")
            name, package = name.removesuffix(".__init__"), path.name == "__init__.py"
            found[name] = Module(name, package, ast.parse(text), text.count("\n"))
    return found


def imports(found: Mapping[str, Module]) -> Imports:
    """Return what each module imports: by name, not the packages that lie on the way."""
    return {
        name: {other for other in _imported(module, found) if other != name}
        for name, module in found.items()
    }


def _imported(module: Module, found: Mapping[str, Module]) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in found)
        elif isinstance(node, ast.ImportFrom) and node.module in found:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in found else node.module


def importers(arrows: Imports) -> dict[str, set[str]]:
    """Return the modules that import each module."""
    found = defaultdict(set)
    for name, others in arrows.items():
        for other in others:
            found[other].add(name)
    return dict(found)


def with_one_importer(found: Mapping[str, Module], arrows: Imports) -> dict[str, str]:
    """Return the modules that exactly one other module imports, each with that module; packages
    and entry points left out."""
    by = importers(arrows)
    plain = (name for name in found if not found[name].package and not name.endswith("__main__"))
    return {name: next(iter(by[name])) for name in plain if len(by.get(name, ())) == 1}


def circles(arrows: Imports) -> list[list[str]]:
    """Return the circles of imports: the sets of modules that reach one another, the largest
    first."""
    names = sorted(arrows)
    graph = np.array([[other in arrows[name] for other in names] for name in names])
    count, circle_of = connected_components(graph, connection="strong")
    found = [[names[place] for place in np.flatnonzero(circle_of == n)] for n in range(count)]
    return sorted((c for c in found if len(c) > 1), key=lambda c: (-len(c), c))


def docstring_lines(found: Mapping[str, Module]) -> int:
    """Return the number of lines of docstrings, the texts below attributes included."""
    return sum(
        node.end_lineno - node.lineno + 1
        for module in found.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and node.end_lineno is not None
    )


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="name the modules with one importer")
    parser.add_argument("--circles", action="store_true", help="name the modules of the circles")
    given = parser.parse_args()
    counted = files()
    lines = {path: path.read_text("utf-8").count("\n") for path in counted}
    found = modules()
    arrows = imports(found)
    single, rings = with_one_importer(found, arrows), circles(arrows)
    python = sum(module.lines for module in found.values())
    sizes = [len(ring) for ring in rings]
    print(f"lines              {sum(lines.values()):>8,}   in {len(counted)} files")
    print(f"  of Python        {python:>8,}   aim {AIM_LINES:,}")
    for kind in KINDS[1:]:
        of_kind = [path for path in counted if path.suffix == kind]
        print(f"  of {kind:<14}{sum(lines[p] for p in of_kind):>8,}   in {len(of_kind)} files")
    print(f"modules            {len(found):>8,}   aim {AIM_MODULES}")
    print(f"one importer only  {len(single):>8,}")
    print(f"circles of imports {len(rings):>8,}   of {sizes or 'none'} modules; aim {AIM_CIRCLE}")
    print(f"docstring lines    {docstring_lines(found) / python:>8.1%}   of {python:,}")
    if given.list:
        for name in sorted(single, key=lambda name: -found[name].lines):
            print(f"{found[name].lines:>5}  {name}  <- {single[name]}")
    if given.circles:
        for ring in rings:
            print(f"{len(ring)}: {', '.join(ring)}")


if __name__ == "__main__":
    main()
