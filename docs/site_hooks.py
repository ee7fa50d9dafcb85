"""Hooks of the site: its pages from the top of the tree, its links and its code blocks' titles."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""The files at the top of the tree that are pages of the site."""

LINK = re.compile(r"\[([^]\n]+)\]\(([\w./-]+)(#[\w-]+)?\)")
TITLED = re.compile(r"^```(\w+) ([\w.-]+)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that live at the top of the tree."""
    root = Path(config.config_file_path).parent
    for source, page in PAGES.items():
        text = (root / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to the site's pages, and show a code block's second word as its title."""
    uri = page.file.src_uri
    source = next((top for top, made in PAGES.items() if made == uri), f"docs/{uri}")
    linked = LINK.sub(lambda link: _relink(link, source, uri), markdown)
    return TITLED.sub(r'```\1 title="\2"', linked)


def _relink(link: re.Match[str], source: str, uri: str) -> str:
    """Return the link as one of the site; its text alone where it leads to a file outside of it."""
    text, target, anchor = link.groups(default="")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if path not in PAGES and not path.startswith("docs/"):
        return text
    there = PAGES.get(path, path.removeprefix("docs/"))
    return f"[{text}]({posixpath.relpath(there, posixpath.dirname(uri) or '.')}{anchor})"
