"""report.html: one file with everything inside, for one run or for several side by side.

The modules run_page.py, comparison_page.py and script_page.py make what their templates show of a
run folder's records.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from gradplane._whole_files import write_whole
from gradplane.pages.kit import render
from gradplane.pages.report import comparison_page, run_page, script_page
from gradplane.runs.records import script_run
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.run_folder import EXPERIMENT, REPORT

COMPARISON = "comparison.html"


def write(folders: Sequence[str | Path], out: str | Path | None = None) -> Path:
    """Write the report of one run folder, a script's too, or the comparison of several runs, and
    return its path.

    `out` defaults to report.html in the folder, or comparison.html in the first one. The report of
    a stopped run shows what was recorded. Raises FolderError if a folder is not a run's,
    or damaged, or has no round, and if a script's is one of several."""
    path = Path(out) if out else Path(folders[0]) / (REPORT if len(folders) == 1 else COMPARISON)
    if len(folders) == 1 and script_run.is_folder(folders[0]):
        text = render("script.html", script_page.contents(Path(folders[0])))
    else:
        runs = [RunData.read(folder) for folder in folders]
        if len(runs) == 1:
            text = render("run.html", run_page.contents(runs[0]))
        else:
            text = render("comparison.html", comparison_page.contents(runs))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    return path


def write_wanted(folder: Path) -> None:
    """Write the report of a finished run, unless its experiment has `output.report = false`.

    An OSError, as on a full disk, has a note that the run is finished, and how its report is made.
    """
    values = tomllib.loads((folder / EXPERIMENT).read_text("utf-8"))
    if not values.get("output", {}).get("report", True):
        return
    try:
        write([folder])
    except OSError as error:
        error.add_note(
            f"{folder}: the run is finished, with all its records; its report alone is missing\n"
            f"  gradplane report {folder}    writes it, as soon as there is room\n"
            f"  gradplane report {folder} --out FILE    writes it elsewhere"
        )
        raise
