"""What switches and links counted in a run, by name, as summary.json has it."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from gradplane.controller.compression import compresses, statistics
from gradplane.controller.connection import Pipeline
from gradplane.controller.controller import Counters
from gradplane.controller.thc import events
from gradplane.topologies.description import Topology
from gradplane.topologies.network import LinkCounters

_WAYS = ("in", "out")


def of_switch(counters: Counters, pipeline: Pipeline) -> dict[str, Any]:
    """Events by job, what went through each port, and what was compressed if the program does."""
    found = {
        "events": {str(job): counts for job, counts in sorted(events(counters).items())},
        "not_admitted": counters.get("ThcIngress.unknown_member", {}).get(0, {}).get("packets", 0),
        "ports": _ports(counters),
    }
    return found | ({"compression": statistics(counters)} if compresses(pipeline.schema) else {})


def _ports(counters: Counters) -> dict[str, dict[str, int]]:
    """By port: packets in and out, from the program's counters `port_in` and `port_out`."""
    ports: dict[int, dict[str, int]] = {}
    for name, cells in counters.items():
        _, _, way = name.rpartition(".port_")
        for port, data in cells.items() if way in _WAYS else ():
            row = ports.setdefault(port, {f"{w}_packets": 0 for w in _WAYS})
            row[f"{way}_packets"] = data["packets"]
    return {str(port): ports[port] for port in sorted(ports)}


def of_links(links: Sequence[LinkCounters], topology: Topology) -> dict[str, Any]:
    """Each link's counters; and all bytes on the hosts' links and on those between switches."""
    fabric = {link.name for link in topology.fabric_links()}
    sums = dict.fromkeys(("hosts", "fabric"), 0)
    for link in links:
        sums["fabric" if link.link in fabric else "hosts"] += link.up_bytes + link.down_bytes
    return {"links": [dataclasses.asdict(link) for link in links], "link_bytes": sums}
