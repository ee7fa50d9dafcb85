"""The groups of a job whose hosts sum in two levels: which workers, where their servers are.

A ring over groups has a leader in each, its first worker; a tree of parameter servers a server in
each, beside its first worker's host, and one above them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from gradplane.aggregations.needs import AskedJob
from gradplane.topologies.description import HostNode, Topology
from gradplane.topologies.topology_errors import TopologyError

RACKS = "racks"
"""As a job's `groups`: the workers of each rack."""

Groups = tuple[tuple[int, ...], ...]


def groups_of(job: AskedJob, members: Sequence[HostNode], network: Topology) -> Groups:
    """Return a job's groups of workers, in order; none where it has no such key.

    Raises TopologyError for groups that its workers, or the network, do not have."""
    match job.groups:
        case None:
            return ()
        case str():
            groups = _racks(members, network)
        case int(count):
            few, more = divmod(job.size, count)
            ends = [few * n + min(n, more) for n in range(count + 1)]
            groups = tuple(tuple(range(a, b)) for a, b in zip(ends, ends[1:], strict=False))
        case listed:
            groups = tuple(map(tuple, listed))
    if problem := _problem(job, groups):
        raise TopologyError(problem, "groups")
    return groups


def _racks(members: Sequence[HostNode], network: Topology) -> Groups:
    racks: dict[str, list[int]] = {}
    for worker, host in enumerate(members):
        racks.setdefault(network.rack(host.name), []).append(worker)
    return tuple(map(tuple, racks.values()))


def _problem(job: AskedJob, groups: Groups) -> str:
    """Return what is wrong with groups, or ""."""
    said, workers = f"groups = {_said(job.groups)}", sorted(w for group in groups for w in group)
    if job.groups == RACKS and len(groups) in (1, job.size):
        found = (
            "all workers are in one rack" if len(groups) == 1 else "each is in a rack of its own"
        )
        return (
            f"{said}: {found}: write a number of groups, or use a topology of several racks, such"
            ' as kind = "leaf-spine" with leaves = 2'
        )
    if len(groups) < 2:
        return f"{said}: two groups or more: leave it out for one"
    if not all(groups):
        return f"{said} of {job.size} workers: a group has at least one"
    if workers != list(range(job.size)):
        return f"{said}: each worker, 0 to {job.size - 1}, is in one group"
    return ""


def _said(groups: Any) -> str:
    return f'"{groups}"' if isinstance(groups, str) else str(_plain(groups))


def _plain(groups: Any) -> Any:
    return groups if isinstance(groups, int) else [list(group) for group in groups]


def seats(network: Topology, jobs: Sequence[tuple[Sequence[HostNode], Groups]]) -> list[str]:
    """Return the hosts beside which servers of groups are added, for all jobs.

    jobs: of each with such servers, its workers' hosts and its groups. Jobs share a host, as they
    share that of their other servers; a job's groups of one rack have one each."""
    needed: dict[str, Counter[str]] = {}
    for members, groups in jobs:
        own: dict[str, Counter[str]] = {}
        for group in groups:
            first = members[group[0]].name
            own.setdefault(network.rack(first), Counter())[first] += 1
        for rack, beside in own.items():
            if beside.total() > needed.get(rack, Counter()).total():
                needed[rack] = beside
    return [host for beside in needed.values() for host in beside.elements()]


def seated(
    network: Topology, members: Sequence[HostNode], groups: Groups, added: Sequence[HostNode]
) -> Iterator[HostNode]:
    """Yield the server of each group of a job, of the hosts that were added at `seats`."""
    free: dict[str, list[HostNode]] = {}
    for host in added:
        free.setdefault(network.rack(host.name), []).append(host)
    for group in groups:
        yield free[network.rack(members[group[0]].name)].pop(0)
