"""Where what is made once is kept, also for a user without a home."""

import os
from pathlib import Path

import pytest

from gradplane import _kernel_cache, _user_folders
from gradplane._user_folders import cache_folder, private_obstacle, temporary_folder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(_user_folders, "TEMPORARY", tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return temporary_folder()


def test_a_home_that_can_be_written_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "absent" / "home"))
    assert cache_folder("p4") == tmp_path / "absent/home/.cache/gradplane/p4"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_folder("p4") == tmp_path / "cache/gradplane/p4"
    assert not temporary_folder().exists()


def test_a_user_without_a_home_has_it_among_the_temporary_files(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/dev/null/none")
    assert cache_folder("p4") == temporary / "cache" / "p4"
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # nobody knows this user
    assert cache_folder("p4") == temporary / "cache" / "p4"
    assert temporary.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_write_is_not_taken(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary.mkdir()
    temporary.chmod(0o777)
    assert private_obstacle(temporary) == f"{temporary} is not this user's alone"
    monkeypatch.setenv("HOME", "/dev/null")
    assert cache_folder("p4") == Path("/dev/null/.cache/gradplane/p4")


def test_kernels_are_compiled_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("no locator available")

    monkeypatch.setattr(_kernel_cache.caching, "FunctionCache", refused)
    monkeypatch.setattr("numba.core.dispatcher.FunctionCache", refused)
    assert _kernel_cache.njit(lambda n: n + 1, cache=True)(2) == 3
