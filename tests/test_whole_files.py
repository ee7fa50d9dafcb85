"""Files that commands write: whole or not there, and links that nobody named are not followed."""

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gradplane._whole_files import write_output, write_whole
from gradplane.cli.app import app

ROOT = Path(__file__).parents[1]


def test_a_link_of_that_name_is_replaced_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "report.html"
    target.write_text("mine")
    link.symlink_to(target)
    write_whole(link, "page")
    assert (target.read_text(), link.read_text(), link.is_symlink()) == ("mine", "page", False)


def test_a_file_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    write_output(path, "before")

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"No space left on device: .*page\.html"):
        write_output(path, "after")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "before"


def test_what_is_no_plain_file_is_written_as_it_is(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    write_output(link, b"bytes")
    assert target.read_bytes() == b"bytes" and link.is_symlink()
    write_output(Path("/dev/null"), "text")
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_the_page_of_a_program_replaces_a_link_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "target").write_text("mine")
    (tmp_path / "tos_compress.html").symlink_to(tmp_path / "target")
    done = CliRunner().invoke(app, ["p4", "view", str(ROOT / "p4" / "tos_compress.p4")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "target").read_text() == "mine"


def test_pages_and_tables_are_written_by_these_functions_alone() -> None:
    """Logs, whose lines are written as they come, and files for other processes are no such."""
    others = {
        "codecs/_table.py", "topologies/host_runner.py", "runs/torchrun.py",
        "topologies/mininet/mininet_network.py", "_whole_files.py",
        "cli/bmv2_commands.py", "cli/p4runtime_shell.py",
    }  # fmt: skip
    package = ROOT / "src" / "gradplane"
    writers = re.compile(r"\.write_(text|bytes)\(|\.to_(csv|parquet)\(self|savefig\((path|file)")
    rooms = ("cli", "pages", "runs", "studies", "differ", "planner", "experiment", "fit")
    files = [file for room in rooms for file in (package / room).rglob("*.py")]
    found = {str(f.relative_to(package)) for f in files if writers.search(f.read_text())}
    assert found - others == set()
