"""The configuration of a job and of a host, complete, as frozen dataclasses that go through JSON.

The experiment room checks every value once and makes them; the runner writes one file a host, and
`python -m gradplane.hosts CONFIG.json` reads it. Hosts trust what they read: to validate it with
pydantic again would cost each process a seventh of a second.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from gradplane.hosts.absences import Absence
from gradplane.hosts.group_tree import Group, in_tuples, levels

STREAM_PORT_OFFSET = 1000
UDP_OVERHEAD = 14 + 20 + 8  # Ethernet (without frame check sequence), IPv4, UDP
LEAST_PACKET = 8  # bytes: the header of a packet of background traffic


class ConfigError(ValueError):
    """A configuration that does not fit a host's role; the message names the way out.

    `key` is the field of JobConfig or HostConfig that it is about, empty where it is none alone.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class UnsuitableCodecError(ConfigError):
    """A codec that a protocol cannot work with; under another aggregation scheme it may."""


@dataclass(frozen=True)
class Training:
    """The training of a job's workers."""

    model: str
    model_args: dict[str, Any]
    data: str
    data_args: dict[str, Any]
    epochs: int
    batch: int
    lr: float
    momentum: float
    compute_ns: Any  # of a gradient; see training/compute_times.py
    sync: bool
    sync_threshold: int  # synchronise when a worker missed more results than this in an epoch
    weight_decay: float = 0.0  # times the parameters, added to the mean gradient
    device: dict[str, Any] | None = None  # of a worker: see training/device.py
    schedule: str = "constant"  # of the learning rate, or "cosine"


@dataclass(frozen=True)
class Coding:
    """How gradients, and weights, are encoded on their way, and how long that takes."""

    codec: tuple[str, dict[str, Any]]  # of what workers push: name, parameters
    pull_codec: tuple[str, dict[str, Any]]  # of a parameter server's answers: means, or weights
    error_feedback: bool
    marked: bool = False  # gradients are sent with ToS 0x28: the network may compress them
    bound: int | None = None  # 6 | 8 | 10 where marked: its error bound is 2^-bound a hop
    codec_ns: float = 0.0  # time of encoding or decoding a value
    reduce_ns: float = 0.0  # time of adding a value
    local_steps: int = 1  # rounds whose gradients are pushed as one sum
    plan: dict[str, Any] | None = None  # of a planned job: see protocols/run_plan.py
    pull_feedback: bool = False  # the server keeps the error of its answers for the next ones
    pull_deltas: bool = False  # the server answers with the change of its weights
    between: tuple[str, dict[str, Any]] | None = None  # of groups' sums; None: as workers push

    @property
    def pulls_weights(self) -> bool:
        """Whether the server answers with weights, whose precision a policy chooses."""
        return "policy" in self.pull_codec[1]

    @property
    def served_steps(self) -> bool:
        """Whether the server holds the weights and makes the optimizer's steps."""
        return self.pulls_weights or self.pull_deltas


@dataclass(frozen=True)
class Transport:
    """How codes travel: slots of the switch, and what is done about losses."""

    reliability: str  # "lossy" | "retransmit"
    slots: int  # of this job, even; a worker keeps slots // 2 chunks in flight
    sum_bits: int  # 8 | 16 | 32
    timeout_ns: int
    retries: int  # lossy: how often the norm is asked for again
    epoch: int = 1  # 1 to 255: of the job, as the switch has it
    code_bits: int = 4  # 1 | 2 | 4 | 8; as all jobs of before had
    round_trip_ns: int = 0  # with all windows under way, by the links; 0: not known
    stream_trip_ns: int = 0  # likewise of a stream's segment, with all messages under way
    ecn: bool = False  # switches mark packets at their queues, and windows adapt
    observed: int = 20  # bounded transport: reduces of a size whose times set its limits
    nonzero_blocks: bool = False  # chunks whose codes repeat travel as headers

    @property
    def window(self) -> int:
        """The number of chunks that a worker keeps in flight, at most where windows adapt."""
        return self.slots // 2


@dataclass(frozen=True)
class Addresses:
    """Where a job's packets go; an address is (dotted IP, port)."""

    aggregator: tuple[str, int]  # the switch's address and UDP port 18256
    worker_addresses: tuple[tuple[str, int], ...]  # aggregation ports; streams: port + 1000
    server_address: tuple[str, int] | None  # the parameter server's stream port
    servers: tuple[tuple[str, int], ...] = ()  # the stream ports of a plan's, or of each group's

    def stream(self, worker: int) -> tuple[str, int]:
        """Return the address of a worker's stream."""
        return self.streams[worker]

    @cached_property
    def streams(self) -> tuple[tuple[str, int], ...]:
        """The addresses of all workers' streams."""
        return tuple((ip, port + STREAM_PORT_OFFSET) for ip, port in self.worker_addresses)

    def notice(self, worker: int) -> tuple[str, int]:
        """Return the address of a worker's stream of short notices, where it has one."""
        ip, port = self.worker_addresses[worker]
        return ip, port + 2 * STREAM_PORT_OFFSET


@dataclass(frozen=True)
class JobConfig:
    """The configuration that all hosts of a training job share, by concern.

    Times are in nanoseconds.
    """

    number: int  # 0 to 255, as in the packets
    name: str
    workers: int  # 1 to 64, where several switches sum more
    quorum: int  # results leave when so many workers are in
    aggregation: str  # the scheme's name, for people; hosts run the role that they are given
    seed: int
    training: Training
    coding: Coding
    transport: Transport
    addresses: Addresses
    absences: tuple[Absence, ...] = ()  # of workers, in training rounds
    leaves: tuple[tuple[int, ...], ...] = ()  # the workers of each switch; none: of the only one
    groups: Group = ()  # of workers whose hosts sum in levels; none: one
    quorums: tuple[int, ...] = ()  # with groups and servers: of each level's children
    rings: bool = False  # with groups and servers: rings in the place of the lowest servers
    sum_order: str = "rotated"  # of rings: "rotated" or "workers"; see ring_plan.py

    @cached_property
    def everybody(self) -> tuple[int, ...]:
        """The numbers of all workers."""
        return tuple(range(self.workers))

    def rack(self, worker: int) -> tuple[int, ...]:
        """Return the workers of a worker's switch, by their numbers there: it is one of them."""
        found = (leaf for leaf in self.leaves if worker in leaf)
        return next(found, self.everybody)

    @property
    def most(self) -> int:
        """The most workers whose vectors are in a result of hosts."""
        if not self.groups:
            return self.quorum
        return math.prod(self.quorums) if self.quorums else self.workers

    @cached_property
    def servers(self) -> dict[Group, tuple[str, int] | None]:
        """The stream port of each group's server, by level, and last of the job's; None where it
        has none. Of a group that is a ring it is its leader's."""
        groups = chain.from_iterable(levels(self.groups))
        found = dict[Group, tuple[str, int] | None](
            zip(groups, self.addresses.servers, strict=True)
        )
        return found | {self.groups or self.everybody: self.addresses.server_address}

    def address(self, member: int | Group) -> tuple[str, int]:
        """Return the stream port of a worker, or of a group's server."""
        if not isinstance(member, tuple):
            return self.addresses.stream(member)
        found = self.servers[member]
        assert found is not None, "a group has a server, or is a ring of its job's server"
        return found

    def above(self, member: int | Group) -> tuple[str, int] | None:
        """Return the stream port of the server that a worker or a group's server pushes to; None
        where there is none."""
        return next((there for group, there in self.servers.items() if member in group), None)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "JobConfig":
        """Return the configuration with these values, fields of any of its records."""
        left = dict(values)
        parts = {}
        for name, kind in _CONCERNS.items():
            keys = [field.name for field in dataclasses.fields(kind) if field.name in left]
            parts[name] = kind(**{key: left.pop(key) for key in keys})
        return cls(**left, **parts)

    def flat(self) -> dict[str, Any]:
        """Return the values of all records, which `of` takes."""
        parts = [getattr(self, name) for name in _CONCERNS]
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values = {name: value for name, value in own.items() if name not in _CONCERNS}
        for part in parts:
            values |= {f.name: getattr(part, f.name) for f in dataclasses.fields(part)}
        return values

    def changed(self, **values: Any) -> "JobConfig":
        """Return the configuration with other values, of whichever record has their fields."""
        return JobConfig.of(self.flat() | values)


_CONCERNS: dict[str, type[Any]] = {
    "training": Training,
    "coding": Coding,
    "transport": Transport,
    "addresses": Addresses,
}


@dataclass(frozen=True)
class Flow:
    """A flow of background traffic. Times in ns since the start; rate in bit/s, headers included.

    packet: bytes of a datagram after UDP. stop_ns, packets: where it ends, None: not before the
    run. poisson: datagrams at random times of that mean rate, not at equal distances. captured: in
    place of a rate, of each datagram the ns since the flow's start and the bytes with its headers.
    adapts: no more datagrams are under way than a window that heeds marks and losses has; what is
    due meanwhile is not sent.
    """

    number: int
    source_ip: str
    destination_ip: str
    rate: int | None
    packet: int
    start_ns: int
    stop_ns: int | None
    packets: int | None
    poisson: bool
    seed: int
    captured: tuple[tuple[int, int], ...] = ()
    adapts: bool = False


@dataclass(frozen=True)
class HostConfig:
    """One host of a job, or of background traffic, which uses nothing of the job."""

    name: str
    ip: str
    role: str  # what runs there, as "module:object"; see hosts/drivers/host.py
    worker: int | None  # None: a server
    job: JobConfig
    impairments: tuple[dict[str, Any], ...]  # see hosts/impairments/verdicts.py
    log: str  # JSON-lines file (sockets only)
    start_at: int | None  # ns; None: at once
    flows: tuple[Flow, ...] = ()  # of background traffic that leave from here or arrive here
    live: bool = False  # it takes interventions: every packet passes its impairments
    joins: int = 0  # the training round in which its worker begins, after an absence if it is not 0
    kept_bytes: int = 0  # of the vectors of a user program, beside the log; see vector_file.py

    def to_json(self) -> str:
        """Return the configuration as JSON text that from_json() reads."""
        absences = [dataclasses.asdict(absence) for absence in self.job.absences]
        values = dataclasses.asdict(self) | {"job": self.job.flat() | {"absences": absences}}
        return json.dumps(values, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "HostConfig":
        """Return the configuration in a text of to_json()."""
        raw = json.loads(text)
        job = raw["job"]
        addresses = ("aggregator", "server_address", "codec", "pull_codec", "between")
        job |= {key: None if job[key] is None else tuple(job[key]) for key in addresses}
        job["worker_addresses"] = tuple(tuple(address) for address in job["worker_addresses"])
        job["servers"] = tuple(tuple(address) for address in job["servers"])
        for key in ("leaves", "groups"):
            job[key] = in_tuples(job[key])
        job["quorums"] = tuple(job["quorums"])
        job["absences"] = tuple(Absence(**absence) for absence in job["absences"])
        parts = {"job": JobConfig.of(job), "impairments": tuple(raw["impairments"])}
        return cls(**raw | parts | {"flows": tuple(Flow(**flow) for flow in raw["flows"])})
