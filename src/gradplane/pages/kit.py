"""The kit of all pages: one look, light and dark, in a file that needs nothing else.

A page is a Jinja2 template in templates/ that extends base.html: it has the look of kit.css and the
pieces of parts.html. Text is escaped. A page with figures (`figures`) has Plotly's script inside;
pages that talk to a local server make their elements with elements.js.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gradplane.pages.figures import PHASES, PLANNED, Figure

_LEVEL = 6  # of zlib: its fastest levels make pages a tenth larger; this one takes 1/8 s


def render(template: str, contents: Mapping[str, Any]) -> str:
    """Return the page that a template makes of its contents, which have the page's `title`.

    Templates call plot(figure, label) where a figure is to be; `contents` may have `details`, more
    data for the page's script. A page without figures has no such script."""
    drawn: list[Figure] = []

    def plot(figure: Figure, label: str = "") -> Markup:
        drawn.append(figure)
        text = label or figure["layout"]["yaxis"]["title"]["text"]
        height = figure["layout"]["height"]
        return Markup(
            '<div class="figure" data-figure="{}" tabindex="0" role="img" aria-label="{}"'
            ' style="min-height: {}px"></div>'
        ).format(len(drawn) - 1, text, height)

    def data() -> str:
        values = {"figures": drawn, "details": contents.get("details")}
        return _packed(json.dumps(values, separators=(",", ":"), allow_nan=False).encode())

    kit = {
        "plot": plot, "drawn": drawn, "data": data, "plotly": _plotly_script,
        "phases": PHASES, "planned_colours": PLANNED,
    }  # fmt: skip
    return _environment().get_template(template).render({"lead": "", **contents, **kit})


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("gradplane.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _plotly_script() -> str:
    """Return plotly.min.js, compressed, of Python's package `plotly`, which is not imported."""
    found = find_spec("plotly")
    assert found is not None and found.submodule_search_locations, "plotly is a dependency"
    folder = Path(next(iter(found.submodule_search_locations)))
    return _packed((folder / "package_data" / "plotly.min.js").read_bytes())


def _packed(data: bytes) -> str:
    """Return data in zlib's format, as base64 text; templates/page.js unpacks it."""
    return base64.b64encode(zlib.compress(data, _LEVEL)).decode()
