"""Plotly's script for a page, compressed: the page is one file that works offline.

It is the script in Python's package `plotly`, which is not imported. zlib's fastest levels make
pages a tenth larger; this level costs an eighth of a second.
"""

import base64
import zlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_LEVEL = 6


@cache
def plotly_script() -> str:
    """Return plotly.min.js as `packed` returns it."""
    found = find_spec("plotly")
    assert found is not None and found.submodule_search_locations, "plotly is a dependency"
    folder = Path(next(iter(found.submodule_search_locations)))
    return packed((folder / "package_data" / "plotly.min.js").read_bytes())


def packed(data: bytes) -> str:
    """Return data in zlib's format, as base64 text; templates/page.js unpacks it."""
    return base64.b64encode(zlib.compress(data, _LEVEL)).decode()
