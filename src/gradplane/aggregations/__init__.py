"""Aggregation schemes: how the gradients of a job's workers become their mean.

A file here is a scheme, by its name: `switch`, `ps`, `ring`, `plan`. It defines one class that
derives from `Aggregation` and says everything about the scheme: which keys of a [[job]] it takes
and their defaults, what cannot work, the addresses, what runs on the job's hosts, what a switch
installs for it, and how it is replayed. No code outside this folder branches on a scheme's name.

This room may import codecs, hosts, controller and topologies; what it needs from the rooms above it
asks for as Protocols (`needs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane import _plugins
from gradplane._lazy_names import lazy_names
from gradplane.aggregations.aggregation import Aggregation

if TYPE_CHECKING:
    from gradplane.aggregations.ps import ServerScheme

__all__ = ["Aggregation", "ServerScheme", "get", "names"]

__getattr__ = lazy_names(__name__, {"ServerScheme": "ps"})


def names() -> list[str]:
    """Return the names of all schemes."""
    return _plugins.names(__path__, "aggregation", "needs")


def get(name: str) -> Aggregation:
    """Return the scheme of that name, one of `names()` or a user's ("module:object", "file.py").

    LoadError for a user's that is none."""
    if _plugins.is_reference(name):
        own: Aggregation = _plugins.load("aggregation", name, Aggregation)(name)
        role = getattr(own, "worker_role", None)
        what = f"aggregation {name}"
        _plugins.returned(
            what, "worker_role", role, isinstance(role, str), "a role, such as reference(MyRole)"
        )
        _plugins.returned(
            what, "defaults", own.defaults(), isinstance(own.defaults(), dict), "a table of keys"
        )
        return own
    scheme: Aggregation = _plugins.find(__name__, name, Aggregation)(name)
    return scheme
