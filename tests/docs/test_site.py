"""The site builds without a warning, has every document, and loads nothing from elsewhere."""

import html
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTERNAL = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src=["']?https?:[^"'> ]*"""
    r"""|<link[^>]+rel=["']?(?:stylesheet|preconnect|icon)[^>]+https?:[^"'> ]*"""
    r"""|(?:@import|url\()\s*["']?https?:[^"') ]*"""
)
"""Resources that a browser fetches by itself; a link that the reader may follow is none."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("package", ["switch", "codecs", "topologies", "controller"])
def test_public_names_are_in_the_reference(site: Path, package: str) -> None:
    page = html.unescape((site / "reference" / f"{package}.html").read_text())
    names = importlib.import_module(f"gradplane.{package}").__all__
    assert [name for name in names if f".{name}" not in page] == []


def test_every_document_has_a_page(site: Path) -> None:
    for document in (ROOT / "docs").rglob("*.md"):
        page = document.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / page).exists(), page
    for page in ("index", "contributing", "changelog"):
        assert (site / f"{page}.html").exists(), page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for file in [*site.rglob("*.html"), *site.rglob("*.css")]:
        assert EXTERNAL.findall(file.read_text()) == [], file.name


def test_state_diagrams_are_drawn(site: Path) -> None:
    page = (site / "architecture.html").read_text()
    assert "stateDiagram" not in page
    assert page.count('<svg class="states"') == 2
    assert all(page.count(f">{state}</text>") == 1 for state in ("SENDING", "SILENT", "MISSED"))
