#!/usr/bin/env python3
"""Write docs/p4runtime-conformance.md: what the P4Runtime specification asks, and the tests of it.

The requirements are in tests/switch/p4runtime/requirements.txt; a test names those that it covers,
@pytest.mark.p4runtime("5.3-1 5.3-2"). With --check: say whether the page is up to date.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "tests" / "switch" / "p4runtime" / "requirements.txt"
PAGE = ROOT / "docs" / "p4runtime-conformance.md"
HEAD = """# P4Runtime, requirement by requirement

Written by `make conformance`, from `tests/switch/p4runtime/requirements.txt` and the tests' marks.
The specification is P4Runtime 1.6.0-dev of 13 June 2026 (p4lang/p4runtime,
`docs/v1/P4Runtime-Spec.adoc`); the requirements are in words of our own. Y: a test covers it. N:
none does, or the switch does otherwise. Tests are in `tests/switch/`. Sections that are not named
ask nothing of a server.

{covered} of {count} requirements have a test.
"""


class Requirement(NamedTuple):
    """One requirement. note: what is to be said of it."""

    id: str
    text: str
    note: str


def sections() -> dict[str, list[Requirement]]:
    """Return the requirements by their section's heading."""
    found: dict[str, list[Requirement]] = {}
    for line in REQUIREMENTS.read_text().splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
            found[heading] = []
        elif line and not line.startswith("#"):
            number, _, text = line.partition(" ")
            words, _, note = text.partition(" || ")
            found[heading].append(Requirement(f"{heading.split()[0]}-{number}", words, note))
    return found


def tests() -> dict[str, list[str]]:
    """Return the tests of each requirement, as FILE: NAME."""
    found = defaultdict(list)
    for file in sorted((ROOT / "tests" / "switch").rglob("test_*.py")):
        text = file.read_text()
        if "mark.p4runtime" in text:
            for name, ids in _marked(ast.parse(text)):
                for one in ids.split():
                    found[one].append(f"{file.relative_to(ROOT / 'tests' / 'switch')}: {name}")
    return found


def _marked(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.p4runtime":
                yield node.name, ast.literal_eval(mark.args[0])


def page() -> str:
    """Return the page. Raises ValueError for a mark that names no requirement."""
    required, covering = sections(), tests()
    known = [one for rows in required.values() for one in rows]
    if unknown := sorted(covering.keys() - {one.id for one in known}):
        raise ValueError(f"{REQUIREMENTS.name} has no {unknown[0]} ({covering[unknown[0]][0]})")
    lines = [HEAD.format(covered=len(covering), count=len(known))]
    for heading, rows in required.items():
        lines += [f"## {heading}", "", "| | requirement | | test |", "| --- | --- | --- | --- |"]
        lines += [_row(one, covering[one.id]) for one in rows]
        lines.append("")
    return "\n".join(lines)


def _row(one: Requirement, names: list[str]) -> str:
    shown = [f"`{name}`" for name in names]
    last = "; ".join([*shown, one.note] if one.note else shown)
    return f"| {one.id} | {one.text} | {'Y' if names else 'N'} | {last} |"


def main(arguments: list[str]) -> int:
    text = page()
    if "--check" in arguments:
        same = PAGE.exists() and PAGE.read_text() == text
        print("up to date" if same else "out of date: run make conformance")
        return 0 if same else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
