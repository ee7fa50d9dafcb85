"""Rows of the report's tables about switches, links and a round's time, from summary.json."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradplane.runs.records.summary import datagrams_sent

Summary = dict[str, Any]
Row = list[str]

PORTS = ("switch", "port", "packets in", "packets out", "damaged headers", "of another version")
COUNTERS = ("switch", "counter", "cell", "packets", "bytes")
COMPRESSION = (
    *("switch", "compressed", "bytes before", "bytes after", "decompressed", "passed as it was"),
    *("0 bits", "8", "16", "32", "values' ratio"),
)
PARTS = ("", "computing", "codecs", "adding", "communication", "a round")


def events(summary: Summary) -> Iterator[Row]:
    """Yield each kind of event and its counts, one per job, summed over all switches."""
    found = [switch["events"] for switch in summary["switches"].values()]
    kinds = dict.fromkeys(kind for jobs in found for job in jobs.values() for kind in job)
    numbers = [str(number) for number in range(len(summary["jobs"]))]
    for kind in kinds:
        counts = [sum(jobs.get(n, {}).get(kind, 0) for jobs in found) for n in numbers]
        yield [kind, *(f"{count:,}" for count in counts)]


def ports(summary: Summary) -> Iterator[Row]:
    """Yield a row for each port, with the columns of PORTS."""
    for name, switch in summary["switches"].items():
        for port, data in switch["ports"].items():
            refused = data.get("damaged", 0), data.get("other_version", 0)
            counts = (data["in_packets"], data["out_packets"], *refused)
            yield [name, port, *(f"{count:,}" for count in counts)]


def counters(summary: Summary) -> Iterator[Row]:
    """Yield a row for each cell of the programs' other counters, with the columns of COUNTERS."""
    for name, switch in summary["switches"].items():
        for counter, cells in switch.get("counters", {}).items():
            for cell, data in cells.items():
                yield [name, counter, cell, f"{data['packets']:,}", f"{data['bytes']:,}"]


def refused(summary: Summary) -> str:
    """Return a sentence about aggregation packets that switches dropped unread, where there are."""
    found = [
        f"{name} port {port}: {data[key]:,} {what}"
        for name, switch in summary.get("switches", {}).items()
        for port, data in switch["ports"].items()
        for key, what in (("damaged", "damaged headers"), ("other_version", "of another version"))
        if data.get(key)
    ]
    return f"Packets dropped by a switch: {', '.join(found)}." if found else ""


def compression(summary: Summary) -> Iterator[Row]:
    """Yield a row for each switch that compressed or decompressed, with COMPRESSION's columns."""
    for name, switch in summary["switches"].items():
        found = switch.get("compression")
        if not found or not (found["compressed"]["packets"] or found["decompressed"]["packets"]):
            continue
        before, tags = found["compressed"], list(found["tags"].values())
        all_tags = max(1, sum(tags))
        passed = [f"{reason} {count:,}" for reason, count in found["passed"].items()]
        yield [
            name,
            *(f"{before[key]:,}" for key in ("packets", "bytes", "bytes_after")),
            f"{found['decompressed']['packets']:,}",
            ", ".join(passed) or "none",
            *(f"{count / all_tags:.1%}" for count in tags),
            f"{found['ratio']:.2f}" if found["ratio"] else "-",
        ]


def ratio(summary: Summary) -> float | None:
    """Return how many times fewer bytes the compressed values took, over all switches."""
    plain = packed = 0.0
    for switch in summary["switches"].values():
        found = switch.get("compression")
        if found and found["ratio"]:
            size = 4 * sum(found["tags"].values())
            plain, packed = plain + size, packed + size / found["ratio"]
    return plain / packed if packed else None


ABSENCES = ("", "worker", "away from round", "back in round", "crashed at, s", "back at, s")


def absences(
    of_jobs: Sequence[tuple[str, Sequence[tuple[int, int, int]]]], lines: Sequence[dict[str, Any]]
) -> Iterator[Row]:
    """Yield a row for each absence of a worker, with ABSENCES' columns.

    of_jobs: each job's name, and worker, first round and round of return of its absences; lines:
    those of arrivals.jsonl."""
    kinds = ("crash", "join")
    at = {
        (
            line["job"],
            line["worker"],
            line["kind"],
            line["training_round"],
        ): f"{line['at'] / 1e9:.3f}"
        for line in lines
        if line["kind"] in kinds
    }
    for number, (name, absences) in enumerate(of_jobs):
        for worker, first, back in sorted(absences, key=lambda absence: absence[1]):
            died = at.get((number, worker, "crash", first), "-")
            joined = at.get((number, worker, "join", back), "-")
            yield [name, str(worker), str(first), str(back), died, joined]


RACKS = ("", "rack", "workers", "round, mean ms", "longest ms", "missed", "sent again")


def racks(
    of_jobs: Sequence[tuple[str, Mapping[str, Sequence[int]], Sequence[str]]],
    rounds: Sequence[dict[str, Any]],
    lines: Sequence[dict[str, Any]],
) -> Iterator[Row]:
    """Yield a row for each rack or group of jobs that are summed in parts, with RACKS' columns.

    of_jobs: each job's name, the workers by part, and the workers' hosts; rounds: the lines of
    metrics.jsonl; lines: those of arrivals.jsonl. A round lasts until a part's last worker has
    finished it."""
    for number, (name, leaves, hosts) in enumerate(of_jobs):
        own = [line["workers"] for line in rounds if line["job"] == number]
        for leaf, members in leaves.items():
            here = [[w for w in workers if w["worker"] in members] for workers in own]
            times = [
                max(w["finished"] for w in some) - min(w["started"] for w in some)
                for some in here
                if some
            ]
            again = sum(
                len(line["slots"])
                for line in lines
                if line["kind"] == "timeout" and line["stage"] != "given up"
                if line["job"] == number and line["worker"] in members
            )
            here_hosts = {hosts[worker] for worker in members}
            again += sum(
                line["segments"]
                for line in lines
                if line["kind"] == "resend"
                if line["job"] == number and line["link"] in here_hosts
            )
            missed = sum(w["missed"] for some in here for w in some)
            mean, longest = (
                (f"{1e-6 * sum(times) / len(times):.3f}", f"{1e-6 * max(times):.3f}")
                if times
                else ("-", "-")
            )
            yield [name, leaf, str(len(members)), mean, longest, f"{missed:,}", f"{again:,}"]


COMPUTE = ("", "worker", "mean", "least", "most")


def compute(lines: Sequence[dict[str, Any]], jobs: Mapping[int, str]) -> Iterator[Row]:
    """Yield for each worker of these jobs the ms of its computations, with COMPUTE's columns.

    lines: those of metrics.jsonl; jobs: names by number."""
    times: dict[tuple[int, int], list[float]] = {}
    for line in lines:
        for worker in line["workers"] if line["job"] in jobs else ():
            took = (worker["computed"] - worker["started"] + worker.get("compute", 0)) / 1e6
            times.setdefault((line["job"], worker["worker"]), []).append(took)
    for (job, worker), own in sorted(times.items()):
        cells = (sum(own) / len(own), min(own), max(own))
        yield [jobs[job], str(worker), *(f"{cell:.3f}" for cell in cells)]


DEVICE = ("", "norms", "pack", "to the device", "unpack", "gradient back", "together")


def device(summary: Summary) -> Iterator[Row]:
    """Yield a row for each job with devices, and for its baseline: ms a round, DEVICE's columns."""
    for label, run in (("", summary), (", baseline", summary.get("baseline"))):
        for job in run["jobs"] if run else ():
            if found := job.get("device"):
                times = [1e3 * found[part] for part in ("norm", "pack", "down", "unpack", "up")]
                yield [job["name"] + label, *(f"{t:.4f}" for t in (*times, sum(times)))]


BACKGROUND = ("flow", "from", "to", "bytes a datagram", "sent", "received")


def background(summary: Summary) -> Iterator[Row]:
    """Yield a row for each flow of background traffic, with BACKGROUND's columns."""
    for number, flow in enumerate(summary.get("background", ())):
        counts = f"{flow['packet']:,}", datagrams_sent([flow]), f"{flow['received']:,}"
        yield [str(number), flow["source"], flow["destination"], *counts]


def parts(summary: Summary) -> Iterator[Row]:
    """Yield a row for each job, then each of the baseline's, in ms per round; PARTS' columns."""
    runs = [("", summary), ("baseline", summary.get("baseline"))]
    for label, run in runs:
        for job in run["jobs"] if run else ():
            named = f"{job['name']}, {label}" if label else job["name"]
            times = [1e3 * seconds for seconds in job["parts"].values()]
            yield [named, *(f"{time:.3f}" for time in (*times, sum(times)))]
