"""The README's blocks work as they stand: run in order, in an empty folder."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typed_commands import run_commands

from gradplane.hosts.wire import aggregation

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall((ROOT / "README.md").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder with the repository's programs in it."""
    path: Path = tmp_path_factory.mktemp("readme")
    for name in ("p4", "tests"):
        (path / name).symlink_to(ROOT / name)
    toml = [text for kind, text in BLOCKS if kind == "toml"]
    (path / "mine.toml").write_text(toml[0])
    return path


def commands() -> list[str]:
    """Return the lines after `$ `, except those that install or run everything."""
    lines = [line for kind, text in BLOCKS if kind == "console" for line in text.splitlines()]
    typed = [line[2:] for line in lines if line.startswith("$ ")]
    return [line for line in typed if not line.startswith("make ")]


def test_python_blocks(folder: Path) -> None:
    for kind, text in BLOCKS:
        if kind == "python":
            subprocess.run([sys.executable, "-c", text], cwd=folder, check=True)


def test_commands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_commands(commands(), folder, monkeypatch)


def test_the_traced_packet_is_one_that_the_switch_reads() -> None:
    (packet,) = [bytes.fromhex(line.split()[-1]) for line in commands() if " --packet " in line]
    payload = packet[14 + 20 + 8 :]  # after Ethernet, IPv4 and UDP
    header, _ = aggregation.parse(payload)
    assert header.type is aggregation.Type.NORM and header.pack() == payload
