"""Write docs/papers.md: every figure and table of the five papers, with their numbers and ours.

    python scripts/papers_page.py                          print the page
    python scripts/papers_page.py --record runs/thc-fig2b-1 ...    keep what studies found
    python scripts/papers_page.py --write                  write the page

The rows are figures.toml in src/gradplane/studies/inventory. Beside it are the tables that studies
made, NAME.json, kept by --record from the folders of `gradplane run NAME`. A row's `here` names
their cells: {at[TernGrad][lognormal]} is the cell of that row and column; rows go by their first
cell, or by the first two or three with commas between.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from gradplane.studies import launch

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers.md"
KEPT = ("title", "study", "seed", "head", "cells", "cpu_seconds")
VERDICTS = ("reproduced", "near", "different", "not offered")
NOT_RUN = "not run"
HEADING = """# The papers, figure by figure

Every figure and table of the five papers: what the paper says, what is found here, and by which
study. `python scripts/papers_page.py --write` makes this page from the tables of the studies, so it
says no other number than they do. `gradplane run NAME` repeats a study; the reasons for differences
are below its table.

**reproduced**: the same, as far as the paper has numbers. **near**: the same order, and about the
same size. **different**: not so, and why. **not offered**: no study, and why. **not run**: the
study's table is not kept here. Drawings and pseudocode are left out.

bf16, 16 bits a value without compression, stands beside the codecs in every study: in its table, or
in its notes where the table has no place for it. A²DTWP's "16 bits" are bf16 without rounding. It
is left out where no values are sent in a format: how gradients are distributed (INCEPTIONN, figure
5), how large models are (Espresso, table 4 and figure 11), how long a search takes (tables 5 and
6), and what compression saves for its time (figure 10), as a cast takes none here.

A paper's numbers are those of the text that we have. INCEPTIONN's were lost in it, and of the
public copies (on fdocuments.net, docslib.org and experts.illinois.edu) we could read the beginnings
only: there orders are compared.
"""


def rows() -> list[dict[str, str]]:
    """Return the figures and tables, in the order of the page."""
    found: list[dict[str, str]] = tomllib.loads((launch.INVENTORY / "figures.toml").read_text())[
        "figure"
    ]
    return found


def record(folder: Path) -> None:
    """Keep a study's table; it must be that of the shipped experiment."""
    found = json.loads((folder / launch.STUDY).read_text("utf-8"))
    name = found["study"]["name"]
    if found["study"] != shipped(name):
        raise SystemExit(f"{folder}: not the parameters of experiments/{name}.toml")
    kept = {key: found[key] for key in KEPT}
    text = json.dumps(kept, ensure_ascii=False).replace("], [", "],\n  [")
    (launch.INVENTORY / f"{name}.json").write_text(f"{text}\n", "utf-8")


def shipped(study: str) -> dict[str, Any]:
    """Return the parameters of the experiment file of a study."""
    return launch.load(study).study.model_dump(mode="json")


def page() -> str:
    """Return the page's text."""
    papers = dict.fromkeys(row["paper"] for row in rows())
    return HEADING + _count() + "".join(_section(paper) for paper in papers)


def _count() -> str:
    kinds = (*VERDICTS, NOT_RUN)
    head = "| paper | " + " | ".join(kinds) + " |\n|" + " --- |" * (1 + len(kinds)) + "\n"
    lines = []
    for paper in dict.fromkeys(row["paper"] for row in rows()):
        own = [_verdict(row) for row in rows() if row["paper"] == paper]
        lines.append(f"| {paper} | " + " | ".join(str(own.count(kind)) for kind in kinds) + " |\n")
    return "\n" + head + "".join(lines)


def _verdict(row: dict[str, str]) -> str:
    """Return a row's verdict; nothing is said of a study whose table is not kept."""
    study = row.get("study")
    return NOT_RUN if study and launch.recorded(study) is None else row["verdict"]


def _section(paper: str) -> str:
    head = "| | shows | the paper | here | | study |\n|" + " --- |" * 6 + "\n"
    lines = "".join(_line(row) for row in rows() if row["paper"] == paper)
    return f"\n## {paper}\n\n{head}{lines}"


def _line(row: dict[str, str]) -> str:
    study, why, verdict = row.get("study", ""), row.get("why", ""), _verdict(row)
    here = _filled(row, launch.recorded(study)) if study and verdict != NOT_RUN else ""
    said = f"**{verdict}**" + (f": {why}" if why and verdict != NOT_RUN else "")
    cells = (row["name"], row["shows"], row.get("says", ""), here, said, study and f"`{study}`")
    return "| " + " | ".join(cells) + " |\n"


def _filled(row: dict[str, str], found: Any) -> str:
    at: dict[str | int, dict[str, str]] = {}
    for cells in found["cells"]:
        named = dict(zip(found["head"], cells, strict=True))
        for count in (1, 2, 3):
            key = ", ".join(cells[:count])
            at.setdefault(int(key) if key.isdigit() else key, named)  # as format reads it
    return row["here"].format(at=at)


def main() -> None:
    """Keep tables, write the page, or print it."""
    match sys.argv[1:]:
        case ["--record", *folders]:
            for folder in folders:
                record(Path(folder))
        case ["--write"]:
            PAGE.write_text(page(), "utf-8")
        case _:
            print(page(), end="")


if __name__ == "__main__":
    main()
