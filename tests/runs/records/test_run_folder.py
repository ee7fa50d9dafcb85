"""Run folders: made once, and honest about runs that did not finish."""

from pathlib import Path

import pytest

from gradplane.runs.records import run_folder


def test_a_folder_is_never_used_twice(tmp_path: Path) -> None:
    run_folder.create(tmp_path / "a" / "run", "x")
    with pytest.raises(run_folder.FolderError) as caught:
        run_folder.create(tmp_path / "a" / "run", "x")
    assert str(caught.value) == (
        f"{tmp_path}/a/run exists, and runs are never overwritten: use another --out"
    )
    (tmp_path / "a" / "run" / "experiment.toml").touch()
    with pytest.raises(run_folder.FolderError):
        run_folder.create(tmp_path / "a" / "run", "x")
    again = run_folder.create(tmp_path / "a" / "run", "x", replaced=True)
    assert not list(again.iterdir()), "its run had no round"


def test_default_folders_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [str(run_folder.create(None, "x")) for _ in range(2)] == ["runs/x-1", "runs/x-2"]


def test_an_unwritable_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(run_folder.FolderError) as caught:
        run_folder.create(tmp_path / "file" / "run", "x")
    assert str(caught.value) == f"{tmp_path}/file/run: Not a directory"


def test_a_folder_in_use_is_in_use_once(tmp_path: Path) -> None:
    with run_folder.in_use(tmp_path):
        assert run_folder.is_in_use(tmp_path)
        with pytest.raises(run_folder.FolderError) as caught, run_folder.in_use(tmp_path):
            pass
    assert str(caught.value) == f"{tmp_path}: the run is still running"
    assert not run_folder.is_in_use(tmp_path)


def test_a_stopped_run_may_have_cut_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"a": 1}\n{"a":')
    assert list(run_folder.read_lines(path, unfinished=True)) == [{"a": 1}]
    with pytest.raises(run_folder.FolderError) as caught:
        list(run_folder.read_lines(path))
    assert str(caught.value) == f"{path}:2: damaged: the line is cut"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x1f\x8b\x08\x00", "byte 0x8b in column 2 is no text"),
        (b"\x00" * 8, "column 1: Expecting value"),
        (b'{"a": 1\x00\x00', "column 8: Expecting ',' delimiter"),
        (b"garbage", "column 1: Expecting value"),
        (b'{"a": 1', "the line is cut"),
    ],
)
def test_only_the_begin_of_an_object_is_a_cut_line(
    tmp_path: Path, content: bytes, what: str
) -> None:
    path = tmp_path / "impairments.jsonl"
    path.write_bytes(content)
    with pytest.raises(run_folder.FolderError) as caught:
        list(run_folder.read_lines(path))
    assert str(caught.value) == f"{path}:1: damaged: {what}"


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"a": 1}\n{"a":\n')
    with pytest.raises(run_folder.FolderError) as caught:
        list(run_folder.read_lines(path))
    assert str(caught.value).startswith(f"{path}:2: damaged: ")
