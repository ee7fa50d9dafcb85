"""Run folders: made once, and honest about runs that did not finish."""

from pathlib import Path

import pytest

from gradplane.runner import run_folder


def test_a_folder_is_never_used_twice(tmp_path: Path) -> None:
    run_folder.create(tmp_path / "a" / "run", "x")
    with pytest.raises(run_folder.FolderError) as caught:
        run_folder.create(tmp_path / "a" / "run", "x")
    assert str(caught.value) == (
        f"{tmp_path}/a/run exists, and runs are never overwritten: use another --out"
    )


def test_default_folders_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [str(run_folder.create(None, "x")) for _ in range(2)] == ["runs/x-1", "runs/x-2"]


def test_an_unwritable_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(run_folder.FolderError) as caught:
        run_folder.create(tmp_path / "file" / "run", "x")
    assert str(caught.value) == f"{tmp_path}/file/run: Not a directory"


def test_why_there_is_no_summary(tmp_path: Path) -> None:
    with pytest.raises(run_folder.FolderError) as missing:
        run_folder.read_summary(tmp_path / "none")
    with pytest.raises(run_folder.FolderError) as killed:
        run_folder.read_summary(tmp_path)
    run_folder.write_failure(tmp_path, "StallError: stalled")
    with pytest.raises(run_folder.FolderError) as failed:
        run_folder.read_summary(tmp_path)
    assert str(missing.value) == f"{tmp_path}/none: no such run folder"
    assert str(killed.value) == (
        f"{tmp_path}: no summary.json: the run is not finished, or was killed"
    )
    assert str(failed.value) == f"{tmp_path}: the run failed: StallError: stalled"


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"a": 1}\n{"a":\n')
    with pytest.raises(run_folder.FolderError) as caught:
        list(run_folder.read_lines(path))
    assert str(caught.value).startswith(f"{path}:2: damaged: ")
