"""Replicas of packets: where a multicast group's and a clone session's go."""

from __future__ import annotations

from dataclasses import dataclass

GROUPS = 1 << 16  # multicast groups that can exist; their numbers are below it


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica of a multicast or cloned packet; `instance` becomes its egress_rid.

    `backups`: the replicas that take its place while its port is down, best first; they have none
    themselves. `exclusion`: the id of packets that leave it out (TNA's level 1 exclusion id), None
    for none.
    """

    port: int
    instance: int = 0
    backups: tuple[Replica, ...] = ()
    exclusion: int | None = None


@dataclass(frozen=True, slots=True)
class CloneSession:
    """The replicas of clones. `truncate`: the most bytes that leave (PSA: enter egress); 0: all.

    `class_of_service` is that of PSA's clones.
    """

    replicas: list[Replica]
    truncate: int = 0
    class_of_service: int = 0
