"""Links in a run's folder are not followed: neither its files nor its baseline are elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.run_folder import FolderError


@pytest.mark.parametrize("name", ["metrics.jsonl", "baseline", "baseline/metrics.jsonl"])
def test_a_link_is_refused(tmp_path: Path, name: str) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    (run / name).parent.mkdir(parents=True)
    elsewhere.mkdir()
    (run / name).symlink_to(elsewhere)
    with pytest.raises(FolderError) as caught:
        RunData.opened(run)
    assert str(caught.value) == (
        f"{run / name}: a link: no links in a run's folder are followed; put a copy of the file in"
        " its place"
    )
