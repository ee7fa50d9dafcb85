"""Hooks of the site: its pages from the top of the tree, its links and its code blocks' titles."""

from __future__ import annotations

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

OUTSIDE = re.compile(r"\[([^]]+)\]\((?:\.\./[^)]+|LICENSE)\)")
"""Links to files of the tree that are not part of the documentation."""

TITLED = re.compile(r"^```(\w+) ([\w.-]+)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that live at the top of the tree."""
    root = Path(config.config_file_path).parent
    for source, page in PAGES.items():
        text = (root / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_relink(text)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links out of the site into text, and a code block's second word into its title."""
    return TITLED.sub(r'```\1 title="\2"', OUTSIDE.sub(r"\1", markdown))


def _relink(text: str) -> str:
    """Point the links of a file at the top of the tree to the site's pages."""
    text = text.replace("](docs/", "](")
    for source, page in PAGES.items():
        text = text.replace(f"]({source})", f"]({page})")
    return text
