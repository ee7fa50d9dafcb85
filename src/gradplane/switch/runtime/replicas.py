"""Copies of packets: where a multicast group's and a clone session's go."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replica:
    """A copy of a multicast or cloned packet; `instance` becomes its egress_rid.

    `backups`: what takes its place while its port is down, best first; they have none themselves.
    """

    port: int
    instance: int = 0
    backups: tuple[Replica, ...] = ()


@dataclass(frozen=True, slots=True)
class CloneSession:
    """`truncate`: clones leave (PSA: enter egress) with at most so many bytes; 0: whole.

    `class_of_service` is what PSA's clones have of it.
    """

    replicas: list[Replica]
    truncate: int = 0
    class_of_service: int = 0
