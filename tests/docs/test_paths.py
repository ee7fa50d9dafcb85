"""The files and folders that the documents name in backticks exist, and their links lead there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gradplane"
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
BASES = (ROOT, SOURCE, SOURCE / "switch", ROOT / "docs")
# At least one slash, and an ending that a file of the tree has, or a slash at the end.
NAMED = re.compile(r"`((?:[\w.-]+/)+(?:[\w.-]+\.(?:py|p4|toml|md|svg|json|lua))?)`")
LINK = re.compile(r"\]\(([^):#]+)(?:#[^)]*)?\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# Folders that a command writes, and files of worked examples.
MADE = {
    "baseline/",
    "aggregations/half.py",
    "build/router.json",
    "codecs/int16.py",
    "hosts/h1.json",
    "parts/",
    "pcap/",
    "router-tests/",
    "runs/",
    "runs/point-2-seed-1/",
    "site/",
    "topologies/dumbbell.py",
}


def prose(document: str) -> str:
    """Return a document without its code blocks."""
    return FENCED.sub("", (ROOT / document).read_text())


def documents() -> list[str]:
    return sorted(str(document.relative_to(ROOT)) for document in DOCUMENTS)


@pytest.mark.parametrize("document", documents())
def test_named_files_exist(document: str) -> None:
    named = set(NAMED.findall(prose(document))) - MADE
    missing = [path for path in sorted(named) if not any((base / path).exists() for base in BASES)]
    assert [path for path in missing if not re.search("NAME|ROOM", path)] == []


@pytest.mark.parametrize("document", documents())
def test_links_lead_somewhere(document: str) -> None:
    folder = (ROOT / document).parent
    targets = set(LINK.findall(re.sub(r"`[^`\n]*`", "code", prose(document))))
    assert [target for target in sorted(targets) if not (folder / target).exists()] == []
