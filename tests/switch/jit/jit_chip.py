"""Random settings of a chip's traffic manager and pipes, the same in several switches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from gradplane.switch import Switch, TableError
from gradplane.switch.runtime.pipe_scopes import KINDS

PORTS = 9
"""Ports that random groups and queues have: 0 to 8."""


def random_scopes(rng: random.Random, switches: Sequence[Switch]) -> None:
    """Let groups of pipes have some tables and externs of their own; those that have entries stay
    as they are."""
    known = [[set(s.state.scopes.pipes[0].of(kind)) for kind in KINDS] for s in switches]
    for names in (set.intersection(*of_kind) for of_kind in zip(*known, strict=True)):
        for name in sorted(names):
            home = switches[0].state.scopes.homes(name)
            if len(home) < 2 or rng.randrange(4):
                continue
            groups: dict[int, list[int]] = {}
            for pipe in home:
                groups.setdefault(rng.randrange(3), []).append(pipe)
            refused = []
            for switch in switches:
                try:
                    switch.set_scope(name, groups.values())
                    refused.append("")
                except TableError as error:
                    refused.append(str(error))
            assert len(set(refused)) == 1, refused


def random_exclusions(rng: random.Random, switches: Sequence[Switch]) -> None:
    """Let packets' exclusion ids leave out members of multicast groups."""
    first = switches[0].state
    if not first.pruned.size:
        return
    ports = [[port for port in range(PORTS) if rng.randrange(2)] for _ in range(8)]
    rid = rng.choice([None, rng.randrange(5)])
    ids = {
        group: [rng.choice([None, 0, 1, 2]) for _ in replicas]
        for group, replicas in first.multicast.items()
    }
    for switch in switches:
        state = switch.state
        state.global_rid = rid
        for exclusion, left_out in enumerate(ports):
            state.pruned[exclusion] = 0
            state.pruned[exclusion, left_out] = 1
        for group, exclusions in ids.items():
            state.multicast[group] = [
                replace(replica, exclusion=exclusion)
                for replica, exclusion in zip(state.multicast[group], exclusions, strict=True)
            ]


def random_queues(rng: random.Random, switches: Sequence[Switch]) -> None:
    """Let packets to some ports wait in queues, which may be full, and be deflected from them."""
    for port in range(PORTS):
        rate, depth = rng.choice([0, 0, 0, 1, 1000]), rng.randrange(4)
        to = rng.choice([None, (rng.randrange(PORTS), 0)])
        for switch in switches:
            switch.queues.set_rate(rate, port)
            switch.queues.set_depth(depth if rate else 64, port)
            switch.queues.deflections.pop(port, None)
            if to is not None:
                switch.queues.deflections[port] = to
