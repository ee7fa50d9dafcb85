"""Aggregation schemes: how the gradients of a job's workers become their mean.

A file here is a scheme, by its name: `switch`, `ps`, `ring`, `plan`. It defines one class that
derives from `Aggregation` and says everything about the scheme: which keys of a [[job]] it takes
and their defaults, what cannot work, the addresses, what runs on the job's hosts, what a switch
installs for it, and how it is replayed. No code outside this folder branches on a scheme's name.

This room may import codecs, hosts, controller and topologies; what it needs from the rooms above it
asks for as Protocols (`needs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradplane import _plugins
from gradplane._lazy_names import lazy_names
from gradplane.aggregations.aggregation import Aggregation
from gradplane.codecs import CODE_WIDTHS
from gradplane.topologies.description import HostNode

if TYPE_CHECKING:
    from gradplane.aggregations.ps import ServerScheme

__all__ = ["Aggregation", "ServerScheme", "get", "names"]

__getattr__ = lazy_names(__name__, {"ServerScheme": "ps"})


def _messages(found: Any) -> bool:
    return isinstance(found, Sequence) and all(
        isinstance(one, tuple)
        and len(one) == 3
        and isinstance(one[0], str)
        and isinstance(one[1], str)
        and isinstance(one[2], int | float)
        for one in found
    )


_DOORS: _plugins.Doors = {
    "needed_program": (lambda found: isinstance(found, str | None), "a program's name, or None"),
    "takes_tensors": (lambda found: isinstance(found, bool), "True or False"),
    "has_rings": (lambda found: isinstance(found, bool), "True or False"),
    "servers": (lambda found: isinstance(found, int), "a number of hosts"),
    "defaults": (lambda found: isinstance(found, dict), "a table of keys"),
    "check": (lambda found: isinstance(found, Iterable), "pairs of a key and a text"),
    "advise": (lambda found: isinstance(found, Iterable), "pairs of a key and a text"),
    "round_trip_ns": (lambda found: isinstance(found, int | float), "a number of ns"),
    "streams": (_messages, "messages: (host, host, bytes), such as [('h1', 'h4', 16240)]"),
    "stream_trip_ns": (lambda found: isinstance(found, int | float), "a number of ns"),
    "marked_receivers": (
        lambda found: isinstance(found, tuple) and all(isinstance(one, HostNode) for one in found),
        "a tuple of hosts, such as placed.members",
    ),
    "aggregators": (
        lambda found: (
            isinstance(found, list | tuple) and all(isinstance(one, str) for one in found)
        ),
        "a list of names of switches",
    ),
    "code_bits": (lambda found: found in (None, *CODE_WIDTHS), "1, 2, 4, 8 or None"),
    "defines": (lambda found: isinstance(found, dict), "a table of macros"),
    "replay": (callable, "a function"),
}
"""Checks of the results of a user's scheme, by method."""


def names() -> list[str]:
    """Return the names of all schemes."""
    return _plugins.names(__path__, "aggregation", "groups", "needs")


def get(name: str) -> Aggregation:
    """Return the scheme of that name, one of `names()` or a user's ("module:object", "file.py").

    LoadError for a user's that is none."""
    if _plugins.is_reference(name):
        what, kind = f"aggregation {name}", _plugins.load("aggregation", name, Aggregation)
        _plugins.watch(what, kind, _DOORS)
        own: Aggregation = kind(name)
        role = getattr(own, "worker_role", None)
        _plugins.returned(
            what, "worker_role", role, isinstance(role, str), "a role, such as reference(MyRole)"
        )
        return own
    scheme: Aggregation = _plugins.find(__name__, name, Aggregation)(name)
    return scheme
