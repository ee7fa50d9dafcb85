"""The control plane: P4Runtime to every switch, BFRuntime to a Tofino's driver, nothing else.

`plan` computes what a job needs and refuses what cannot work; `Controller` installs it; `configure`
and `read_counters` do so in one call. targets/ has a file for each kind of switch. May import:
codecs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane._lazy_names import lazy_names
from gradplane.controller.compression import Bound, Compression, Format
from gradplane.controller.controller_errors import ControllerError, PlanError, RequestError
from gradplane.controller.plan import (
    Capacity,
    EqualWays,
    JobPlan,
    Member,
    Route,
    Setup,
    allocate,
    check,
)
from gradplane.controller.targets import QueueSettings, Target

if TYPE_CHECKING:
    from gradplane.controller.blocking import configure, read_counters, set_bound
    from gradplane.controller.connection import Pipeline
    from gradplane.controller.controller import Controller, Credentials
    from gradplane.controller.targets.embedded import Embedded
    from gradplane.controller.thc import capacity_of, events

__all__ = [
    "Bound", "Capacity", "Compression", "Controller", "ControllerError", "Credentials", "Embedded",
    "EqualWays", "Format", "JobPlan", "Member", "Pipeline", "PlanError", "QueueSettings", "Route",
    "Setup", "RequestError", "Target", "allocate", "capacity_of", "check", "configure", "events",
    "read_counters", "set_bound",
]  # fmt: skip

_HOMES = {
    "blocking": ("configure", "read_counters", "set_bound"),
    "connection": ("Pipeline",),
    "controller": ("Controller", "Credentials"),
    "targets.embedded": ("Embedded",),
    "thc": ("capacity_of", "events"),
}  # which take finsy and gRPC; a plan takes neither

__getattr__ = lazy_names(__name__, {name: home for home, names in _HOMES.items() for name in names})
