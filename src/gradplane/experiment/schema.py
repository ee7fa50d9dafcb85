"""The experiment file's sections, keys, kinds of value, ranges and defaults.

docs/experiments.md explains every key. The models are frozen and picklable. A default of None is
taken from another key when the experiment is resolved (deploying.py).
"""

import logging
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from gradplane import aggregations
from gradplane._captures import frame_sizes
from gradplane._plugins import is_reference, own
from gradplane._toml_documents import Key, OpenSection, Section
from gradplane.aggregations.groups import RACKS
from gradplane.codecs import CodeWidth, ErrorBound, SumWidth
from gradplane.controller.plan import ControlServer, TlsFiles
from gradplane.controller.targets import QueueSettings
from gradplane.experiment.compute_times import ComputeTime
from gradplane.experiment.impairment_sections import CrashSection, Impairment, LateJoinSection
from gradplane.hosts.absences import Absence
from gradplane.hosts.config import LEAST_PACKET, UDP_OVERHEAD, Flow
from gradplane.hosts.group_tree import in_tuples
from gradplane.hosts.wire.aggregation import MAX_WORKERS
from gradplane.switch.runtime_json import Entries
from gradplane.topologies import description
from gradplane.topologies.cluster.plan import Cluster, HostMachine
from gradplane.topologies.description import MAX_HOSTS, Topology, impairment_hint
from gradplane.topologies.link_options import parse_rate
from gradplane.topologies.topology_errors import TopologyError

log = logging.getLogger(__name__)

# [[traffic]]: a flow of background traffic between two hosts

_MOST_PACKET = 1472  # bytes after UDP that fit an MTU of 1500


CapturedPacket = Annotated[
    tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=1)]], Field(strict=False)
]
"""The ns since the first packet, and the bytes of the frame."""


def _rate(value: Any) -> Any:
    if value is None:
        return None
    try:
        parse_rate(value, "rate")
    except TopologyError as error:
        raise PydanticCustomError("contradiction", "{text}", {"text": str(error)}) from None
    return value


class TrafficSection(Section):
    """A flow: from where to where, how fast, from when to when or how many bytes; or a capture's
    sizes and times, which take the place of its file's name once they are loaded.
    """

    source: str
    destination: str
    rate: Annotated[Any, AfterValidator(_rate)] = None
    file: str | None = None
    packets: tuple[CapturedPacket, ...] | None = Field(default=None, strict=False)
    packet: int = Field(default=1400, ge=LEAST_PACKET, le=_MOST_PACKET)
    start_ms: float = Field(default=0.0, ge=0)
    stop_ms: float | None = Field(default=None, gt=0)
    size: int | None = Field(default=None, ge=1)
    arrivals: Literal["constant", "poisson"] = "constant"
    adapts: bool = False
    seed: int | None = Field(default=None, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _check_alternatives(self) -> "TrafficSection":
        if self.stop_ms is not None and self.stop_ms <= self.start_ms:
            text = f"traffic: stop_ms = {self.stop_ms} is not after start_ms = {self.start_ms}"
            raise PydanticCustomError("contradiction", "{text}", {"text": text})
        if self.source == self.destination:
            text = f"traffic: source and destination are both {self.source}"
            raise PydanticCustomError("contradiction", "{text}", {"text": text})
        if self.adapts and self.rate is None:
            text = "traffic: adapts with a file, whose datagrams leave at its times: leave it out"
            raise PydanticCustomError("contradiction", "{text}", {"text": text})
        given = [key for key in ("rate", "file", "packets") if getattr(self, key) is not None]
        if len(given) != 1:
            text = f"traffic: {' and '.join(given) or 'rate is missing'}: give either rate or file"
            raise PydanticCustomError("contradiction", "{text}", {"text": text})
        return self

    def flow(self, number: int, network: Topology) -> Flow:
        """Return the flow for its two hosts; the section is resolved."""
        assert self.seed is not None, "not resolved"
        return Flow(
            number=number,
            source_ip=network.host[self.source].ip,
            destination_ip=network.host[self.destination].ip,
            rate=None if self.rate is None else parse_rate(self.rate, "rate"),
            packet=self.packet,
            start_ns=round(self.start_ms * 1e6),
            stop_ns=None if self.stop_ms is None else round(self.stop_ms * 1e6),
            packets=None if self.size is None else -(-self.size // self.packet),
            poisson=self.arrivals == "poisson",
            seed=self.seed,
            captured=() if self.packets is None else self.packets,
            adapts=self.adapts,
        )


def with_capture(section: TrafficSection, folder: Path) -> TrafficSection:
    """Return a flow with the packets of its capture, which is looked for from a folder.

    A packet longer than a link takes, captured before its segmentation, becomes several. Raises
    CaptureError; a warning says what of the capture is not taken as it is."""
    if section.file is None:
        return section
    found = []
    packets, notes = frame_sizes(folder / section.file)
    for note in notes:
        log.warning("%s: %s", section.file, note)
    for moment, left in packets:
        time = moment - packets[0][0]
        while left > 0:
            found.append((time, min(left, _MOST_PACKET + UDP_OVERHEAD)))
            left -= found[-1][1]
    largest = max(LEAST_PACKET, *(size - UDP_OVERHEAD for _, size in found))
    update = {"file": None, "packets": tuple(found), "packet": largest}
    return section.model_copy(update=update)


class NamedModel(OpenSection):
    """An object that is found by its name, with its parameters as further keys."""

    name: str


def _by_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


Named = Annotated[NamedModel, BeforeValidator(_by_name)]
"""`{ name = "thc", bits = 4 }`, or `"thc"` where there are no parameters."""

PER_TENSOR = "per_tensor"  # as a codec's name: its `tensors` are patterns and codecs


def _by_tensor(value: Any) -> Any:
    return {"name": PER_TENSOR, "tensors": value} if isinstance(value, list) else _by_name(value)


NamedCodec = Annotated[NamedModel, BeforeValidator(_by_tensor)]
"""Like Named, or `[["*.weights", "threelc"], ["*", "float32"]]`: the first match counts."""


class TopologySection(OpenSection):
    """The table [topology]: `kind` names a file in topologies/; other keys are its arguments."""

    kind: str = "star"
    workers: int = Field(default=4, ge=1, le=MAX_HOSTS)

    @staticmethod
    def further_keys() -> set[str]:
        """Return the arguments of all kinds."""
        return description.options()


Cores = Annotated[int, Field(ge=1, le=64)]


class SwitchPart(Section):
    """A table [switch.only.NAME]: the keys that one switch has of its own."""

    program: str | None = None
    defines: dict[str, int | str] | None = None
    engine: Literal["jit", "interpreter"] | None = None
    latency_us: float | None = Field(default=None, ge=0)
    recirculation_mbit: float | None = Field(default=None, gt=0)
    queue_rate: int | None = Field(default=None, ge=1, le=1_000_000_000)
    queue_depth: int | None = Field(default=None, ge=1, le=1_000_000)
    cores: Cores | None = None
    entries: str | Entries | None = None


class SwitchSection(Section):
    """The table [switch]; `binary` to `ports` are keys of some targets."""

    program: str = "thc.p4"
    defines: dict[str, int | str] | None = None
    target: str = "embedded"
    binary: str | None = None
    compiler: Literal["gradplane", "p4c"] | None = None
    address: str | None = None
    device_id: int | None = Field(default=None, ge=0, lt=1 << 32)
    ports: dict[str, str] | None = None
    engine: Literal["jit", "interpreter"] = "jit"
    latency_us: float = Field(default=1.0, ge=0)
    recirculation_mbit: float = Field(default=100_000.0, gt=0)
    queue_rate: int | None = Field(default=None, ge=1, le=1_000_000_000)
    queue_depth: int | None = Field(default=None, ge=1, le=1_000_000)
    ecn_threshold: int | None = Field(default=None, ge=1, lt=1 << 19)
    cores: Cores = 1
    entries: str | Entries | None = None
    only: dict[str, SwitchPart] | None = None

    def of(self, switch: str) -> "SwitchSection":
        """Return the section as it is for one switch; macros of its own come beside the others."""
        part = (self.only or {}).get(switch, SwitchPart())
        given = {key: value for key, value in part if value is not None}
        if part.defines:
            given["defines"] = {**(self.defines or {}), **part.defines}
        return self.model_copy(update=given | {"only": None})

    def place(self, switch: str, key: str) -> Key:
        """Return where a key of a switch stands, its own or that of all switches."""
        part = (self.only or {}).get(switch)
        own = part is not None and getattr(part, key) is not None
        return ("switch", "only", switch, key) if own else ("switch", key)

    @property
    def queues(self) -> QueueSettings | None:
        """The switches' own queues, None if these have no rate."""
        if self.queue_rate is None:
            return None
        return QueueSettings(self.queue_rate, self.queue_depth)

    @property
    def target_keys(self) -> dict[str, Any]:
        """The keys of the target that are set."""
        keys = ("binary", "compiler", "address", "device_id", "ports")
        values = {key: getattr(self, key) for key in keys}
        return {key: value for key, value in values.items() if value is not None}


def _scheme(name: str) -> str:
    """Return the name of an aggregation scheme; any other name is refused."""
    *names, last = [f"'{name}'" for name in aggregations.names()]
    if name not in aggregations.names() and not is_reference(name):
        expected = {"expected": f"{', '.join(names)} or {last}, {own(name)}"}
        raise PydanticCustomError("literal_error", "unknown aggregation", expected)
    return name


_NO_GROUPS = -99  # as a depth


def _groups(value: Any) -> Any:
    """Return groups, or divisions into groups, in tuples; anything else is refused."""
    if value is None or value == RACKS or (type(value) is int and value > 0):
        return value
    listed = isinstance(value, list | tuple) and len(value) > 0
    if listed and all(type(part) is int and part > 0 for part in value[value[0] == RACKS :]):
        return tuple(value)
    if listed and _depth(value) > 1:
        return in_tuples(value)
    text = (
        f'groups: expected "{RACKS}", a number of groups, or the workers of each: [[0, 1], [2]]; of'
        f' several levels ["{RACKS}", 2], [4, 2], or [[[0, 1], [2]], [[3], [4]]]'
    )
    raise PydanticCustomError("contradiction", "{text}", {"text": text})


def _depth(groups: Any) -> int:
    """Return how deep lists of workers are, all equally; below 0 of anything else."""
    if isinstance(groups, list | tuple):
        depths = {_depth(one) for one in groups} or {0}
        return depths.pop() + 1 if len(depths) == 1 else _NO_GROUPS
    return 0 if type(groups) is int and groups >= 0 else _NO_GROUPS


Groups = Annotated[Any, BeforeValidator(_groups)]
"""`"racks"` or a number of groups, several of these for several levels, or the workers of each."""


class DeviceSection(Section):
    """A job's `device`: the bus between a worker's host and its device, and a policy for it."""

    rate: int | str
    back_rate: int | str | None = None
    policy: Named | None = None
    pack_ns_per_value: float = Field(default=0.0, ge=0)
    unpack_ns_per_value: float = Field(default=0.0, ge=0)
    norm_ns_per_value: float = Field(default=0.0, ge=0)


class Job(Section):
    """A table [[job]]."""

    name: str = ""
    first_host: int = Field(default=1, ge=1, le=MAX_HOSTS)
    workers: int | None = Field(default=None, ge=1, le=MAX_HOSTS)
    push: NamedCodec = NamedModel(name="thc")
    pull: Annotated[NamedModel | None, BeforeValidator(_by_tensor)] = None
    by_tensor: bool | Literal["paper"] | None = None
    pull_feedback: bool = False
    pull_deltas: bool = False
    local_steps: int = Field(default=1, ge=1)
    aggregation: Annotated[str, AfterValidator(_scheme)] = "switch"
    plan: str | None = None
    marked: bool = False
    bound: ErrorBound | None = None
    quorum: int | None = Field(default=None, ge=1, le=MAX_HOSTS)
    quorums: tuple[Annotated[int, Field(ge=1, le=MAX_WORKERS)], ...] | None = Field(
        default=None, strict=False, min_length=1
    )
    roots: int | None = Field(default=None, ge=1)
    groups: Groups = None
    rings: bool = False
    sum_order: Literal["rotated", "workers"] | None = None
    between: Annotated[NamedModel | None, BeforeValidator(_by_name)] = None
    reliability: Literal["lossy", "retransmit"] = "lossy"
    error_feedback: bool = True
    slots: int = Field(default=8, ge=2, le=65534, multiple_of=2)
    sum_bits: SumWidth = 8
    code_bits: CodeWidth | None = None
    nonzero_blocks: bool = False
    timeout_ms: float = Field(default=2000.0, ge=1e-6, le=1e12)
    retries: int = Field(default=10, ge=0)
    observed: int = Field(default=20, ge=1)
    model: Named = NamedModel(name="mlp")
    data: Named = NamedModel(name="digits")
    epochs: int = Field(default=5, ge=1)
    batch: int = Field(default=32, ge=1)
    lr: float = Field(default=0.1, gt=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    weight_decay: float = Field(default=0.0, ge=0)
    schedule: Literal["constant", "cosine"] = "constant"
    compute_ms: ComputeTime = 1.0
    device: DeviceSection | None = None
    codec_ns_per_value: float = Field(default=0.0, ge=0)
    reduce_ns_per_value: float = Field(default=0.0, ge=0)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    sync: bool = False
    sync_threshold: int = Field(default=0, ge=0)

    def changed(self, values: dict[str, Any]) -> "Job":
        """Return the job with other values, plain ones as in a file."""
        return Job.model_validate(dict(self) | values)

    @property
    def size(self) -> int:
        """The number of workers of a resolved job."""
        assert self.workers is not None, "not resolved"
        return self.workers


class MachineSection(Section):
    """A table [cluster.hosts.NAME]."""

    machine: str
    interface: str


class SwitchPlaceSection(Section):
    """A table [cluster.switches.NAME]."""

    address: Annotated[str, Field(pattern=r"^(\[[^\]]+\]|[^:\s]+):\d{1,5}$")]
    device_id: int | None = Field(default=None, ge=0, lt=1 << 32)
    ports: dict[str, int] | None = None


class TlsSection(Section):
    """The table [cluster.tls]: files of the runner's side of all connections."""

    cacert: str
    cert: str | None = None
    key: str | None = None

    @property
    def files(self) -> TlsFiles:
        """The files."""
        cert, key = (Path(name) if name else None for name in (self.cert, self.key))
        return TlsFiles(Path(self.cacert), cert, key)


class ClusterSection(Section):
    """The table [cluster]: the machines, and the running switches, of --net cluster."""

    scheduler: str
    tls: TlsSection | None = None
    hosts: dict[str, MachineSection]
    switches: dict[str, SwitchPlaceSection]

    def port(self, switch: str, node: str) -> int | None:
        """Return the port of a switch that leads to a node; None where it is not given."""
        place = self.switches.get(switch)
        return ((place.ports if place else None) or {}).get(node)

    def cluster(self) -> Cluster:
        """Return where everything is, for the network."""
        tls = None if self.tls is None else self.tls.files
        return Cluster(
            self.scheduler,
            {name: HostMachine(one.machine, one.interface) for name, one in self.hosts.items()},
            {
                name: ControlServer(one.address, one.device_id, tls)
                for name, one in self.switches.items()
            },
            tls,
        )


class Output(Section):
    """The table [output]."""

    baseline: bool = True
    report: bool = True
    pcap: bool = False
    target_accuracy: float | None = Field(default=None, gt=0, le=1)
    gradients_mb: float = Field(default=512.0, ge=0)


_OTHER_NAMES = {
    "learning_rate": "lr", "dataset": "data", "scheme": "aggregation", "algorithm": "aggregation",
    "bits": "push", "timeout": "timeout_ms",
}  # fmt: skip
"""Keys of a job, by what else they are called elsewhere."""


class Experiment(Section):
    """A whole experiment file."""

    name: str = Field(default="experiment", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    seed: int = Field(default=1, ge=0, lt=2**63)
    patience_s: float = Field(default=60.0, gt=0)
    topology: TopologySection = TopologySection()
    switch: SwitchSection = SwitchSection()
    job: tuple[Job, ...] = Field(default=(Job(),), strict=False)
    impairment: tuple[Impairment, ...] = Field(default=(), strict=False)
    traffic: tuple[TrafficSection, ...] = Field(default=(), strict=False)
    output: Output = Output()
    cluster: ClusterSection | None = None

    @staticmethod
    def elsewhere(key: Key) -> str:
        """Return the hint for a key that other sections know by another name, or ""."""
        section, name = key[0], str(key[-1])
        if section == "impairment" and name.startswith(("duration", "until")):
            return 'losses of a while are rows of a CSV: model = "recorded", time_ms,until_ms'
        if section == "job" and name in ("codec", "compression", "compressor"):
            return "the codec of gradients is push, and that of a server's answers pull"
        if section == "job" and name in _OTHER_NAMES:
            return f'did you mean "{_OTHER_NAMES[name]}"?'
        if section == "switch" and name in ("commands", "tables", "runtime_json"):
            return "entries of a program's own tables are in a file of runtime JSON: entries"
        return "" if section == "impairment" else impairment_hint(name)

    def absences(self, job: int) -> tuple[Absence, ...]:
        """Return the absences of a resolved job's workers, in the order of their sections."""
        absent = (s for s in self.impairment if isinstance(s, CrashSection | LateJoinSection))
        sections = [section for section in absent if section.job == job]
        taken = {section.worker for section in sections if section.worker is not None}
        found = []
        for section in sections:
            worker = section.worker
            if worker is None:
                worker = section.drawn(self.job[job].size, taken)
                taken.add(worker)
            found.append(section.absence(worker))
        return tuple(found)

    def values(self) -> dict[str, Any]:
        """Return plain values, as a TOML file has them, without keys that are not set."""
        return self.model_dump(mode="json", exclude_none=True)
