"""The groups of a job whose hosts sum in levels: which workers, where their servers are.

A ring over groups has a leader in each, its first worker; a tree of parameter servers a server in
each, beside its first worker's host, and one above them. Groups may be in groups again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from gradplane.aggregations.needs import AskedJob
from gradplane.hosts.group_tree import Group, levels, workers_of
from gradplane.topologies.description import HostNode, Topology
from gradplane.topologies.topology_errors import TopologyError

RACKS = "racks"
"""The value of a job's `groups`, or of its first level, that makes each rack's workers a group."""


def groups_of(job: AskedJob, members: Sequence[HostNode], network: Topology) -> Group:
    """Return a job's groups of workers, in order; none where it has no such key.

    Raises TopologyError for groups that its workers, or the network, do not have."""
    asked = job.groups
    if asked is None:
        return ()
    divisions = asked if isinstance(asked, tuple) else (asked,)
    groups: Group = divisions
    if not isinstance(divisions[0], tuple):
        groups = tuple(range(job.size))
        for part in divisions:
            groups = _racks(members, network) if part == RACKS else _divided(groups, part)
    if problem := _problem(job, groups, RACKS in divisions):
        raise TopologyError(problem, "groups")
    return groups


def _racks(members: Sequence[HostNode], network: Topology) -> Group:
    racks: dict[str, list[int]] = {}
    for worker, host in enumerate(members):
        racks.setdefault(network.rack(host.name), []).append(worker)
    return tuple(map(tuple, racks.values()))


def _divided(row: Group, count: int) -> Group:
    """Return so many parts of equal sizes, in order; the first ones have one more."""
    few, more = divmod(len(row), count)
    ends = [few * n + min(n, more) for n in range(count + 1)]
    return tuple(row[a:b] for a, b in zip(ends, ends[1:], strict=False))


def _problem(job: AskedJob, groups: Group, of_racks: bool) -> str:
    """Return what is wrong with groups, or ""."""
    said, rows = f"groups = {json.dumps(job.groups)}", levels(groups)
    if of_racks and len(rows[0]) in (1, job.size):
        alone = len(rows[0]) == 1
        found = "all workers are in one rack" if alone else "each is in a rack of its own"
        return (
            f"{said}: {found}: write a number of groups, or use a topology of several racks, such"
            ' as kind = "leaf-spine" with leaves = 2'
        )
    if len(groups) < 2:
        return f"{said}: two groups or more: leave it out for one"
    if not all(chain.from_iterable(rows)):
        return f"{said} of {job.size} workers: a group has at least one"
    if sorted(workers_of(groups)) != list(range(job.size)):
        return f"{said}: each worker, 0 to {job.size - 1}, is in one group"
    return ""


def seats(network: Topology, jobs: Sequence[tuple[Sequence[HostNode], Group]]) -> list[str]:
    """Return the hosts beside which servers of groups are added, for all jobs.

    jobs: of each, its workers' hosts and the groups that have servers. Jobs share a host, as they
    share that of their other servers; a job's groups of one rack have one each."""
    needed: dict[str, Counter[str]] = {}
    for members, groups in jobs:
        own: dict[str, Counter[str]] = {}
        for group in groups:
            first = members[workers_of(group)[0]].name
            own.setdefault(network.rack(first), Counter())[first] += 1
        for rack, beside in own.items():
            if beside.total() > needed.get(rack, Counter()).total():
                needed[rack] = beside
    return [host for beside in needed.values() for host in beside.elements()]


def seated(
    network: Topology, members: Sequence[HostNode], groups: Group, added: Sequence[HostNode]
) -> Iterator[HostNode]:
    """Yield the servers of a job's groups, of the hosts that were added at `seats`."""
    free: dict[str, list[HostNode]] = {}
    for host in added:
        free.setdefault(network.rack(host.name), []).append(host)
    for group in groups:
        yield free[network.rack(members[workers_of(group)[0]].name)].pop(0)
