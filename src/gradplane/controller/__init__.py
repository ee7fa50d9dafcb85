"""The control plane: P4Runtime to every switch, BFRuntime to a Tofino's driver, nothing else.

`plan` computes what a job needs and refuses what cannot work; `Controller` installs it; `configure`
and `read_counters` do so in one call. targets/ has a file for each kind of switch. May import:
codecs.
"""

from gradplane.controller.blocking import Setup, configure, read_counters, set_bound
from gradplane.controller.compression import Bound, Compression, Format
from gradplane.controller.connection import Pipeline
from gradplane.controller.controller import Controller, Credentials
from gradplane.controller.controller_errors import ControllerError, PlanError, RequestError
from gradplane.controller.plan import Capacity, JobPlan, Member, Route, allocate, check
from gradplane.controller.targets import QueueSettings, Target
from gradplane.controller.targets.embedded import Embedded
from gradplane.controller.thc import capacity_of, events

__all__ = [
    "Bound",
    "Capacity",
    "Compression",
    "Controller",
    "ControllerError",
    "Credentials",
    "Embedded",
    "Format",
    "JobPlan",
    "Member",
    "Pipeline",
    "PlanError",
    "QueueSettings",
    "Route",
    "Setup",
    "RequestError",
    "Target",
    "allocate",
    "capacity_of",
    "check",
    "configure",
    "events",
    "read_counters",
    "set_bound",
]
