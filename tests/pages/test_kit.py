"""All pages are made by one kit: one look, and colours that are named in one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import gradplane.pages
from gradplane.pages.figures import PHASES
from gradplane.pages.kit import render
from gradplane.pages.report import round_records

TEMPLATES = Path(gradplane.pages.__path__[0]) / "templates"
INCLUDED = {"base.html", "parts.html", "rounds.html", "live_tables.html"}
PAGES = sorted({path.name for path in TEMPLATES.glob("*.html")} - INCLUDED)
USED = re.compile(r"var\(--([\w-]+)\)")
DEFINED = re.compile(r"--([\w-]+):")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_extends_the_kits(name: str) -> None:
    text = (TEMPLATES / name).read_text("utf-8")
    assert text.startswith('{% extends "base.html" %}')
    assert "<style" not in text and "@font" not in text


@pytest.mark.parametrize("path", sorted(TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_a_colour_that_is_used_has_a_value(path: Path) -> None:
    text, kit = path.read_text("utf-8"), (TEMPLATES / "kit.css").read_text("utf-8")
    known = {*DEFINED.findall(kit), *DEFINED.findall(text), *PHASES, "c", "columns"}
    assert set(USED.findall(text)) <= known


def test_a_colour_has_a_value_in_the_dark_too() -> None:
    light, dark = re.findall(r":root \{(.*?)\}", (TEMPLATES / "kit.css").read_text("utf-8"), re.S)
    assert set(DEFINED.findall(light)) == set(DEFINED.findall(dark))


def test_each_phase_of_a_round_has_a_colour() -> None:
    page = render("live_run.html", {"title": "t", "palette": ()})
    assert tuple(PHASES) == round_records.PHASES
    for name, colour in PHASES.items():
        assert f"--{name}: {colour};" in page


def test_text_is_escaped_and_a_page_without_figures_has_no_plotly() -> None:
    shown = {"title": "<b>&", "notes": ["<i>"], "head": ["h"], "rows": [["<u>"]], "figure": ""}
    page = render("study.html", shown | {"experiment": "</pre>"})
    assert "&lt;b&gt;&amp;" in page and "&lt;i&gt;" in page and "&lt;u&gt;" in page
    assert "&lt;/pre&gt;" in page
    assert 'id="plotly"' not in page


def test_a_value_that_a_page_lacks_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'cards' is undefined"):
        render("run.html", {"title": "t", "warning": ""})
