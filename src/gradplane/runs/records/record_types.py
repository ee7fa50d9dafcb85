"""The types of a run folder's records: the lines of its .jsonl files, and summary.json.

Only the keys that are read are declared; others are allowed, as older versions have fewer and newer
ones more. docs/architecture.md explains the lines.
"""

from collections.abc import Iterable
from typing import Any, Literal, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

Direction = Literal["up", "down"]
Digest = str | None


class WorkerRound(TypedDict):
    """The record of one worker about a round; times in ns."""

    worker: int
    missed: int
    gradient: Digest
    codes: Digest
    sums: Digest
    weights: Digest
    started: int
    computed: int
    finished: int
    compute: NotRequired[int]
    codec: NotRequired[int]
    reduce: NotRequired[int]
    precision: NotRequired[list[int]]
    device: NotRequired[dict[str, int]]


class Round(TypedDict):
    """A line of metrics.jsonl: a round of a job, its workers' records added up."""

    job: int
    training_round: int
    epoch: int
    loss: float
    started: int
    finished: int
    missed: int
    packets_up: int
    packets_down: int
    payload_up: int
    payload_down: int
    wire_up: int
    wire_down: int
    workers: list[WorkerRound]
    test_accuracy: NotRequired[float]


class Result(TypedDict):
    """A line of kind "arrival" or "norm" in arrivals.jsonl."""

    job: int
    worker: int
    ticket: int
    slot: int | None
    use: int | None
    result: str
    bitmap: str
    digest: NotRequired[Digest]
    lost: NotRequired[dict[str, list[int]]]


Column = int | dict[str, str]


class Arrivals(TypedDict):
    """A line of kind "arrivals" in arrivals.jsonl: columns, see hosts/packed_columns.py.

    lost: of bounded transport, by stage, packets that did not come in time, and of how many.
    rack: where several switches sum, the workers that the bits of `bitmap` stand for; workers: how
    many the job has, all of whom are in a result with this count.
    """

    job: int
    worker: int
    ticket: int
    first: int
    slots: int
    chunks: int
    count: Column
    bitmap: Column
    attempts: Column
    notices: Column
    digest: Column
    at: Column
    sent: NotRequired[Column]
    rack: NotRequired[list[int]]
    workers: NotRequired[int]
    lost: NotRequired[dict[str, list[int]]]


class Timeout(TypedDict):
    """A line of kind "timeout" in arrivals.jsonl; `slots` are pairs of slot and its use."""

    job: int
    worker: int
    ticket: int
    stage: str
    slots: list[list[int]]
    since: int | None
    at: int


class Resend(TypedDict):
    """A line of kind "resend" in arrivals.jsonl: segments that a host's stream sent again."""

    job: int
    link: str
    peer: str
    segments: int
    message: int
    cause: str
    since: int
    at: int


class Epoch(TypedDict):
    """A line of kind "epoch" in arrivals.jsonl."""

    job: int
    worker: int
    epoch: int
    test_accuracy: float
    source: int | None


class Redo(TypedDict):
    """A line of kind "redo" in arrivals.jsonl: a worker goes on in another epoch of its job."""

    job: int
    worker: int
    epoch: int
    at: int


class Window(TypedDict):
    """A line of kind "window" in arrivals.jsonl: a worker's congestion window at the end of a
    reduce, and its least size in it, in chunks, and how many results were marked."""

    job: int
    worker: int
    ticket: int
    size: float
    least: float
    marks: int
    at: int


class Stall(TypedDict):
    """A line of kind "stall" in arrivals.jsonl."""

    job: int
    worker: int


class Membership(TypedDict):
    """A line of kind "crash" or "join" in arrivals.jsonl."""

    job: int
    worker: int
    training_round: int
    at: int


class Timeline(TypedDict):
    """A line of kind "timeline" in arrivals.jsonl: a planned iteration of a worker.

    forward: ns before the backward propagation. events: resource, tensor, step, and since that
    began the ns at which the step was ready, began and ended.
    """

    job: int
    worker: int
    ticket: int
    forward: int
    events: list[list[int]]


class Verdict(TypedDict):
    """A line of impairments.jsonl."""

    link: str
    direction: Direction
    job: int
    type: str
    training_round: NotRequired[int]
    use: int | None
    slot: int | None
    attempt: int | None
    peer: str
    verdict: str
    delay_ns: int
    impairment: NotRequired[int | None]
    entry: NotRequired[int]
    at: NotRequired[int]


class LinkUse(TypedDict):
    """A line of links.jsonl; `recorder.LinkLog` has its columns."""

    job: int
    training_round: int
    at: int
    links: list[list[int]]


class Payload(TypedDict):
    """Bytes of one worker in one round."""

    payload_up: float
    payload_down: float


class Traffic(Payload):
    """Packets and bytes of one worker in one round."""

    packets_up: float
    packets_down: float
    headers_up: float
    headers_down: float


class TimeToAccuracy(TypedDict):
    """The time at which a training first reached the target accuracy; None where it did not."""

    test_accuracy: float
    seconds: float | None
    rounds: int | None


class JobSummary(TypedDict):
    """A job in summary.json."""

    name: str
    test_accuracy: float
    rounds: int
    traffic: Traffic
    needed: NotRequired[Payload]
    time_to_accuracy: NotRequired[TimeToAccuracy]
    parts: dict[str, float]
    device: NotRequired[dict[str, float]]
    missed: int
    sent_again: NotRequired[int]
    weights: dict[str, str]
    values: int


class LinkSummary(TypedDict):
    """A link's counters in summary.json."""

    link: str
    up_packets: int
    up_bytes: int
    up_dropped: int
    down_packets: int
    down_bytes: int
    down_dropped: int


class LinkBytes(TypedDict):
    """The bytes on all links, in summary.json."""

    hosts: int
    fabric: int


class PortSummary(TypedDict):
    """A switch port's counters in summary.json."""

    in_packets: int
    out_packets: int
    damaged: NotRequired[int]  # aggregation packets whose header's checksum was wrong
    other_version: NotRequired[int]


class Decompressed(TypedDict):
    """The packets that a switch decompressed."""

    packets: int


class Compressed(Decompressed):
    """The packets that a switch compressed, and their bytes before and after."""

    bytes: int
    bytes_after: int


class Compression(TypedDict):
    """A switch's counters of compression in summary.json."""

    compressed: Compressed
    decompressed: Decompressed
    tags: dict[str, int]
    passed: dict[str, int]
    ratio: float | None


class SwitchSummary(TypedDict):
    """A switch's counters in summary.json."""

    events: dict[str, dict[str, int]]
    ports: dict[str, PortSummary]
    compression: NotRequired[Compression]


class FlowSummary(TypedDict):
    """A flow of background traffic in summary.json; datagrams. `captured`: those of its capture, of
    which the end of the run leaves out the rest."""

    source: str
    destination: str
    packet: int
    captured: NotRequired[int]
    sent: int
    received: int


class LossLists(TypedDict):
    """The entries of loss lists, and those that met no packet, in summary.json."""

    entries: int
    unmet: int
    first_unmet: list[str]


class TrainingSummary(TypedDict):
    """The values of summary.json about one training: the run's, or its baseline's."""

    test_accuracy: float
    rounds: int
    seconds: float
    rounds_per_second: float
    losses_injected: dict[str, dict[Direction, int]]
    loss_lists: NotRequired[LossLists]
    time_to_accuracy: NotRequired[TimeToAccuracy]
    jobs: list[JobSummary]
    switches: dict[str, SwitchSummary]
    links: list[LinkSummary]
    link_bytes: LinkBytes
    background: NotRequired[list[FlowSummary]]


class RunSummary(TrainingSummary):
    """The contents of summary.json."""

    baseline: NotRequired[TrainingSummary]
    name: str
    network: str
    target: NotRequired[str]
    digests: NotRequired[str]
    seed: int
    versions: dict[str, str]
    cpu: str
    blas: str
    platform: str


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}  # made where first used


def fault(found: object, kind: type[Any]) -> str:
    """Return what is wrong with a record of that kind, in words; empty if nothing is."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    try:
        _ADAPTERS[kind].validate_python(found, strict=True)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        missing = [_place(p["loc"]) for p in problems if p["type"] == "missing"]
        if missing:
            return f"no {', '.join(missing)}"
        return f"{_place(problems[0]['loc'])}: {problems[0]['msg']}"
    return ""


def _place(location: Iterable[int | str]) -> str:
    """Return the key, as in workers.2.missed."""
    return ".".join(map(str, location))
