"""A run and its folder: made, read back, replayed, and swept over a grid.

The modules here run an experiment: network, controller, hosts, then the baseline; isolation in
namespaces, progress, the machine. `records` is the folder: what is written, and reading it back,
checked. `replayer` re-enacts it. `sweeps` makes many runs. Pages are written by those who call:
this room imports the parts (switch, codecs, ..., aggregations) and experiment only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane._lazy_names import lazy_names

if TYPE_CHECKING:
    from gradplane.runs.lab import isolate

__all__ = ["isolate"]

__getattr__ = lazy_names(__name__, {"isolate": "lab"})
