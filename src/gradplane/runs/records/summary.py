"""The summary of a run: the values of summary.json."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradplane import aggregations
from gradplane.controller.compression import compresses, statistics
from gradplane.controller.connection import Pipeline
from gradplane.controller.controller import Counters
from gradplane.controller.thc import events
from gradplane.experiment.impairment_sections import DropListSection
from gradplane.experiment.schema import Experiment, Job
from gradplane.runs.records.recorder import PARTS, TRAFFIC, Met, Tally
from gradplane.runs.records.run_folder import METRICS, read_lines
from gradplane.topologies.description import Topology
from gradplane.topologies.network import LinkCounters

if TYPE_CHECKING:
    from pandas import DataFrame

_PORT_COUNTERS = {
    "port_in": "in_packets",
    "port_out": "out_packets",
    "damaged": "damaged",
    "other_version": "other_version",
}
"""The programs' counters by port, and their names in summary.json."""
_TOLD = {
    *_PORT_COUNTERS, "events", "completions", "shared_events", "unknown_member", "compressed",
    "decompressed", "compressed_sizes", "decompressed_sizes", "passed", "malformed", "overtaken",
    "tags",
}  # fmt: skip
"""The shipped programs' counters, which have keys of their own there."""


@dataclass(frozen=True)
class Summary:
    """A finished run. `values` is the contents of summary.json in `folder`."""

    folder: Path
    values: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        """The name, the accuracy and the folder, in a line."""
        return f"{self.values['name']}: test accuracy {self.test_accuracy:.2%}, in {self.folder}"

    @property
    def test_accuracy(self) -> float:
        """The final test accuracy, from 0 to 1: the mean over workers, then over jobs."""
        accuracy: float = self.values["test_accuracy"]
        return accuracy

    @property
    def baseline(self) -> dict[str, Any] | None:
        """The same keys for the baseline, a run without compression; None if there is none."""
        return self.values.get("baseline")

    @property
    def weights(self) -> dict[str, dict[str, str]]:
        """The digest of the final parameters, by job and worker."""
        return {job["name"]: job["weights"] for job in self.values["jobs"]}

    @property
    def report(self) -> Path:
        """The report's path; nothing is there where the experiment has `output.report = false`."""
        return self.folder / "report.html"

    def rounds(self) -> "DataFrame":
        """Return a row for each round: metrics.jsonl without its workers, times in ns (pandas)."""
        from pandas import DataFrame

        lines = read_lines(self.folder / METRICS)
        return DataFrame([{k: v for k, v in line.items() if k != "workers"} for line in lines])

    def workers(self) -> "DataFrame":
        """Return a row for each worker of each round, with its record in metrics.jsonl (pandas)."""
        from pandas import DataFrame

        lines = read_lines(self.folder / METRICS)
        place = ("job", "training_round", "epoch")
        return DataFrame(
            [{key: line[key] for key in place} | own for line in lines for own in line["workers"]]
        )

    def _repr_html_(self) -> str:
        """Return a table of the run for notebooks, with the baseline beside it if there is one."""
        runs = [values for values in (self.values, self.baseline) if values]
        head = ["this run", "baseline"][: len(runs)]
        rows = [
            ("test accuracy", [f"{run['test_accuracy']:.2%}" for run in runs]),
            ("rounds", [f"{run['rounds']:,}" for run in runs]),
            ("rounds a second", [rate(run["rounds_per_second"]) for run in runs]),
            ("results missed", [f"{sum(j['missed'] for j in run['jobs']):,}" for run in runs]),
            ("bytes on the hosts' links", [f"{run['link_bytes']['hosts']:,}" for run in runs]),
        ]
        cells = "".join(
            f"<tr><th>{name}</th>{''.join(f'<td>{cell}</td>' for cell in found)}</tr>"
            for name, found in rows
        )
        title = "".join(f"<th>{name}</th>" for name in head)
        return (
            f"<table><caption>{escape(self.values['name'])}: {escape(str(self.folder))}</caption>"
            f"<tr><th></th>{title}</tr>{cells}</table>"
        )


def outcome(
    experiment: Experiment,
    tallies: Sequence[Tally],
    verdicts: Mapping[tuple[str, str], int],
    met: Collection[Met],
    network: dict[str, Any],
) -> dict[str, Any]:
    """Return summary.json's part about one training.

    tallies: the sums of each job's records. verdicts: how many by (verdict, direction). met: the
    entries of loss lists that met a packet. network: its counters. The accuracy is None where no
    epoch ended."""
    target = experiment.output.target_accuracy
    jobs = [_job(job, tally) for job, tally in zip(experiment.job, tallies, strict=True)]
    if target is not None:
        for values, tally in zip(jobs, tallies, strict=True):
            values["time_to_accuracy"] = _time_to_accuracy(target, [tally])
    accuracies = [job["test_accuracy"] for job in jobs]
    return {
        "test_accuracy": None if None in accuracies else sum(accuracies) / len(jobs),
        "rounds": sum(job["rounds"] for job in jobs),
        "seconds": max(tally.seconds for tally in tallies),
        "rounds_per_second": sum(job["rounds_per_second"] for job in jobs),
        "losses_injected": injected(verdicts),
        **_lists(experiment, met),
        **({} if target is None else {"time_to_accuracy": _time_to_accuracy(target, tallies)}),
        "jobs": jobs,
    } | network


def background(
    experiment: Experiment, counts: Mapping[int, Mapping[str, int]]
) -> dict[str, list[dict[str, Any]]]:
    """Return summary.json's part about background traffic; empty if there is none."""
    flows = [
        {"source": flow.source, "destination": flow.destination, "packet": flow.packet}
        | ({} if flow.packets is None else {"captured": len(flow.packets)})
        | {way: counts.get(number, {}).get(way, 0) for way in ("sent", "received")}
        for number, flow in enumerate(experiment.traffic)
    ]
    return {"background": flows} if flows else {}


def datagrams_sent(flows: Sequence[Mapping[str, Any]]) -> str:
    """Return how many datagrams a summary's flows sent, and of how many where captures had more."""
    sent = sum(flow["sent"] for flow in flows)
    captured = sum(flow.get("captured", flow["sent"]) for flow in flows)
    return f"{sent:,} of {captured:,}" if captured > sent else f"{sent:,}"


def _time_to_accuracy(target: float, tallies: Sequence[Tally]) -> dict[str, float | None]:
    """Return when the last of the jobs reached the target at the end of an epoch.

    Seconds are in the experiment's time since each job's start; None where a job did not reach it.
    """
    ends = [tally.reached(target) for tally in tallies]
    known = [end for end in ends if end is not None]
    reached = len(known) == len(ends)
    return {
        "test_accuracy": target,
        "seconds": max(end.seconds for end in known) if reached else None,
        "rounds": max(end.rounds for end in known) if reached else None,
    }


def _job(job: Job, tally: Tally) -> dict[str, Any]:
    traffic = per_round(tally)
    return {
        "name": job.name,
        "test_accuracy": tally.test_accuracy,
        "rounds": tally.rounds,
        "loss": tally.loss,
        "seconds": tally.seconds,
        "rounds_per_second": tally.rounds / tally.seconds if tally.seconds else 0.0,
        "traffic": traffic,
        "needed": needed(job, tally, traffic),
        "parts": parts(tally),
        **device(tally),
        "missed": tally.missed,
        **lost(tally),
        "sent_again": tally.sent_again,
        "synchronised": tally.synchronised,
        "weights": {str(worker): digest for worker, digest in sorted(tally.weights.items())},
    }


def parts(tally: Tally) -> dict[str, float]:
    """Return the seconds of each part of a round, as a mean over rounds and workers."""
    times = max(1, tally.worker_rounds)
    return {part: tally.parts[part] / times / 1e9 for part in PARTS}


def device(tally: Tally) -> dict[str, dict[str, float]]:
    """Return the key "device": seconds a round of each part of the way to the device and back.

    Empty for a job without devices. The same seconds are in the part "compute"."""
    times = max(1, tally.worker_rounds)
    found = {part: ns / times / 1e9 for part, ns in tally.device.items()}
    return {"device": found} if found else {}


def lost(tally: Tally) -> dict[str, dict[str, dict[str, int]]]:
    """Return the key "lost": packets of each stage of bounded transport that did not come in time,
    and how many were sent. Empty for a job without."""
    stages = dict.fromkeys(stage for stage, _ in tally.lost)
    counts = {stage: {n: tally.lost[stage, n] for n in ("lost", "sent")} for stage in stages}
    return {"lost": counts} if counts else {}


def per_round(tally: Tally) -> dict[str, float]:
    """Return packets, payload and header bytes of one worker in one round, as a mean."""
    times = max(1, tally.worker_rounds)
    traffic = {key: tally.traffic[key] / times for key in TRAFFIC}
    for direction in ("up", "down"):
        wire, payload = traffic.pop(f"wire_{direction}"), traffic[f"payload_{direction}"]
        traffic[f"headers_{direction}"] = wire - payload
    return traffic


def needed(job: Job, tally: Tally, traffic: Mapping[str, float]) -> dict[str, float]:
    """Return the payload of one worker and round if every packet had been sent and had arrived.

    Streams send again what is lost, so that they need the messages, which are all in `traffic`.
    Packets of a result that are sent once may be left out, lost, or never sent; each is needed
    once."""
    times = max(1, tally.worker_rounds)
    found = {}
    sizes = aggregations.get(job.aggregation).result_bytes(job)
    for way, size in zip(("up", "down"), sizes, strict=True):
        carried = traffic[f"payload_{way}"]
        messages = tally.traffic.get(f"needed_{way}", carried * times) / times
        found[f"payload_{way}"] = size * tally.results / times if size else min(carried, messages)
    return found


def undelivered(job: Mapping[str, Any], way: str) -> float:
    """Return the payload bytes per worker and round, "up" or "down", that were not delivered.

    job: one of summary.json's."""
    return max(0.0, -_surplus(job, way))


def again(job: Mapping[str, Any], way: str) -> float:
    """Return the payload bytes per worker and round, "up" or "down", that crossed a second time."""
    return max(0.0, _surplus(job, way))


def _surplus(job: Mapping[str, Any], way: str) -> float:
    """Return by how much more was carried than needed. Of older versions a baseline has no
    `needed`, and misses nothing."""
    carried: float = job["traffic"][f"payload_{way}"]
    needed: float = job["needed"][f"payload_{way}"] if "needed" in job else carried
    return carried - needed


def queue_drops(values: Mapping[str, Any]) -> int:
    """Return how many packets the links' queues dropped in a training."""
    return sum(link["up_dropped"] + link["down_dropped"] for link in values["links"])


def time_to_accuracy(values: Mapping[str, Any]) -> str:
    """Return when a training, or a job of one, reached its target accuracy, as text.

    "-" where it had no target."""
    found = values.get("time_to_accuracy")
    if found is None:
        return "-"
    if found["seconds"] is None:
        return "not reached"
    return f"{found['seconds']:.4g} s, {found['rounds']:,} rounds"


def rate(per_second: float) -> str:
    """Return rounds a second as text."""
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def injected(verdicts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Return verdicts by kind and direction: {"drop": {"up": 3, "down": 4}, ...}."""
    found: dict[str, dict[str, int]] = {}
    for (verdict, direction), count in sorted(verdicts.items()):
        found.setdefault(verdict, {})[direction] = count
    return found


_FEW = 5


def _lists(experiment: Experiment, met: Collection[Met]) -> dict[str, dict[str, Any]]:
    """Return the key "loss_lists": the entries of all lists, how many met no packet, and the first
    of those. Empty without lists."""
    entries = {
        (number, index): packet
        for number, section in enumerate(experiment.impairment)
        if isinstance(section, DropListSection)
        for index, packet in enumerate(section.packets)
    }
    idle = [packet.text for place, packet in entries.items() if place not in met]
    found = {"entries": len(entries), "unmet": len(idle), "first_unmet": idle[:_FEW]}
    return {"loss_lists": found} if entries else {}


def unmet(values: Mapping[str, Any]) -> str:
    """Return a sentence about entries of loss lists that met no packet; empty if all did."""
    found = values.get("loss_lists") or {"unmet": 0}
    if not found["unmet"]:
        return ""
    more = "; ..." if found["unmet"] > len(found["first_unmet"]) else ""
    return (
        f"{found['unmet']:,} of {found['entries']:,} entries of loss lists met no packet (or one"
        f" that was lost already): {'; '.join(found['first_unmet'])}{more}"
    )


# Counters of switches and links


def switch_counters(counters: Counters, pipeline: Pipeline) -> dict[str, Any]:
    """Return a switch's events by job, its ports' packets, the cells that are not 0 of other
    counters, and what it compressed, if it does."""
    found = {
        "events": {str(job): counts for job, counts in sorted(events(counters).items())},
        "not_admitted": counters.get("ThcIngress.unknown_member", {}).get(0, {}).get("packets", 0),
        "ports": _ports(counters),
        "counters": {
            name: {str(index): cells[index] for index in sorted(cells)}
            for name, cells in sorted(counters.items())
            if name.rpartition(".")[2] not in _TOLD
        },
    }
    return found | ({"compression": statistics(counters)} if compresses(pipeline.schema) else {})


def _ports(counters: Counters) -> dict[str, dict[str, int]]:
    """Return packets in and out by port, from the program's counters `port_in` and `port_out`,
    and those whose aggregation header was damaged or of another version."""
    ports: dict[int, dict[str, int]] = {}
    for name, cells in counters.items():
        key = _PORT_COUNTERS.get(name.rpartition(".")[2])
        for port, data in cells.items() if key is not None else ():
            assert key is not None
            row = ports.setdefault(port, dict.fromkeys(_PORT_COUNTERS.values(), 0))
            row[key] = data["packets"]
    return {str(port): ports[port] for port in sorted(ports)}


def link_counters(links: Sequence[LinkCounters], topology: Topology) -> dict[str, Any]:
    """Return each link's counters, and all bytes on hosts' links and on links between switches."""
    fabric = {link.name for link in topology.fabric_links()}
    sums = dict.fromkeys(("hosts", "fabric"), 0)
    for link in links:
        sums["fabric" if link.link in fabric else "hosts"] += link.up_bytes + link.down_bytes
    return {"links": [dataclasses.asdict(link) for link in links], "link_bytes": sums}
