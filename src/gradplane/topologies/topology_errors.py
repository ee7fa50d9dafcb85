"""Errors of the topologies; each message suggests a remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TopologyError(Exception):
    """A topology that cannot be built, or an option that does not exist."""


class NetworkError(Exception):
    """A network that could not be started, or a host or switch that failed while it ran."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the hint for a wrong name: `did you mean 'rate'? ` if one is near, then the known
    names.
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}there is: {', '.join(names)}"
