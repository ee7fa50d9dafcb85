"""The configuration of a job and of a host, complete and checked, as frozen dataclasses that go
through JSON.

The runner writes one file a host; `python -m gradplane.hosts CONFIG.json` reads it.
"""

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradplane._suggestions import hint
from gradplane.hosts.wire.aggregation import MAX_WORKERS

STREAM_PORT_OFFSET = 1000
MAX_SLOTS = 65536
BOUNDS = (6, 8, 10)  # k of the error bounds 2^-k that the network knows


class ConfigError(ValueError):
    """A configuration that cannot work; the message names the key, the numbers and the way out.

    `key` is the field of JobConfig or HostConfig that it is about, empty where it is none alone.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class JobConfig:
    """The configuration that all hosts of a training job share.

    Times are in nanoseconds, addresses (dotted IP, port).

    Raises ConfigError for a value out of range or values that contradict each other.
    """

    number: int  # 0 to 255, as in the packets
    name: str
    workers: int  # 1 to 64
    quorum: int  # results leave when so many workers are in
    aggregation: str  # the scheme's name, for people; hosts run the role that they are given
    reliability: str  # "lossy" | "retransmit"
    codec: tuple[str, dict[str, Any]]  # of what workers push: name, parameters
    pull_codec: tuple[str, dict[str, Any]]  # of a parameter server's answers
    error_feedback: bool
    slots: int  # of this job, even; a worker keeps slots // 2 chunks in flight
    sum_bits: int  # 8 | 16
    timeout_ns: int
    retries: int  # lossy: how often the norm is asked for again
    aggregator: tuple[str, int]  # the switch's address and UDP port 18256
    worker_addresses: tuple[tuple[str, int], ...]  # aggregation ports; streams: port + 1000
    server_address: tuple[str, int] | None  # the parameter server's stream port
    model: str
    model_args: dict[str, Any]
    data: str
    data_args: dict[str, Any]
    epochs: int
    batch: int
    lr: float
    momentum: float
    compute_ns: Any  # of a gradient; see training/compute_times.py
    seed: int
    sync: bool
    sync_threshold: int  # synchronise when a worker missed more results than this in an epoch
    marked: bool = False  # gradients are sent with ToS 0x28: the network may compress them
    bound: int | None = None  # 6 | 8 | 10 where marked: its error bound is 2^-bound a hop
    codec_ns: float = 0.0  # time of encoding or decoding a value
    reduce_ns: float = 0.0  # time of adding a value
    local_steps: int = 1  # rounds whose gradients are pushed as one sum

    def __post_init__(self) -> None:
        _check_range("number", self.number, 0, 255)
        _check_range("workers", self.workers, 1, MAX_WORKERS, "the packets' bitmap has 64 bits")
        _check_range("quorum", self.quorum, 1, self.workers, "there are no more workers")
        _check_choice("reliability", self.reliability, ("lossy", "retransmit"))
        _check_choice("sum_bits", self.sum_bits, (8, 16))
        _check_range("slots", self.slots, 2, MAX_SLOTS)
        if self.slots % 2:
            raise ConfigError(
                f"slots = {self.slots}: two halves alternate, so it must be even: "
                f"use {self.slots - 1} or {self.slots + 1}",
                "slots",
            )
        for key, least in (("timeout_ns", 1), ("retries", 0), ("epochs", 0), ("batch", 1)):
            _check_range(key, getattr(self, key), least)
        if isinstance(self.compute_ns, int):
            _check_range("compute_ns", self.compute_ns, 0)
        _check_range("sync_threshold", self.sync_threshold, 0)
        if len(self.worker_addresses) != self.workers:
            raise ConfigError(
                f"worker_addresses has {len(self.worker_addresses)} entries, "
                f"workers = {self.workers}: give each worker one",
                "worker_addresses",
            )
        self._check_marked()
        _check_time("codec_ns", self.codec_ns)
        _check_time("reduce_ns", self.reduce_ns)
        _check_range("local_steps", self.local_steps, 1)

    def _check_marked(self) -> None:
        if not self.marked:
            if self.bound is not None:
                raise ConfigError(
                    f"bound = {self.bound}: only marked transfers are compressed by the network: "
                    "use marked = true, or leave bound out",
                    "bound",
                )
            return
        if self.codec[0] != "float32":
            raise ConfigError(
                f"marked = true with codec {self.codec[0]}: the network compresses float32 values "
                "only: use codec float32, or marked = false",
                "codec",
            )
        _check_choice("bound", self.bound, BOUNDS)

    @property
    def window(self) -> int:
        """The number of chunks that a worker keeps in flight."""
        return self.slots // 2

    def stream_address(self, worker: int) -> tuple[str, int]:
        """Return the address of a worker's stream."""
        ip, port = self.worker_addresses[worker]
        return ip, port + STREAM_PORT_OFFSET


@dataclass(frozen=True)
class HostConfig:
    """One host of a job."""

    name: str
    ip: str
    role: str  # what runs there, as "module:object"; see hosts/drivers/host.py
    worker: int | None  # None: a server
    job: JobConfig
    impairments: tuple[dict[str, Any], ...]  # see impairments.py
    log: str  # JSON-lines file (sockets only)
    start_at: int | None  # ns; None: at once

    def __post_init__(self) -> None:
        if ":" not in self.role:
            raise ConfigError(
                f"role = {self.role!r}: write module:object, such as"
                " gradplane.hosts.drivers.roles:SwitchWorker",
                "role",
            )
        if self.worker is not None:
            _check_range("worker", self.worker, 0, self.job.workers - 1)

    def to_json(self) -> str:
        """Return the configuration as JSON text that from_json() reads."""
        return json.dumps(dataclasses.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "HostConfig":
        """Return the configuration in a text of to_json().

        Raises ConfigError that names an unknown or missing key."""
        raw = _checked_keys(json.loads(text), cls, "host")
        job = _checked_keys(raw["job"], JobConfig, "job")
        addresses = ("aggregator", "server_address", "codec", "pull_codec")
        job |= {key: None if job[key] is None else tuple(job[key]) for key in addresses}
        job["worker_addresses"] = tuple(tuple(address) for address in job["worker_addresses"])
        return cls(**raw | {"job": JobConfig(**job), "impairments": tuple(raw["impairments"])})


def _check_range(key: str, value: int, low: int, high: int | None = None, why: str = "") -> None:
    allowed = f"at least {low}" if high is None else f"from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{key} = {value!r}: it must be an integer {allowed}", key)
    if value < low or (high is not None and value > high):
        text = f"{key} = {value}: it must be {allowed}" + (f", {why}" if why else "")
        raise ConfigError(text, key)


def _check_time(key: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ConfigError(f"{key} = {value!r}: it must be a number of nanoseconds, at least 0", key)


def _check_choice(key: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed:
        choices = " or ".join(repr(choice) for choice in allowed)
        raise ConfigError(f"{key} = {value!r}: it must be {choices}", key)


def _checked_keys(raw: Any, kind: type, what: str) -> dict[str, Any]:
    """Return `raw` if its keys are the fields of the dataclass `kind`."""
    if not isinstance(raw, dict):
        raise ConfigError(f"{what}: expected an object, got {type(raw).__name__}")
    fields = dataclasses.fields(kind)
    known = [field.name for field in fields]
    for key in raw:
        if key not in known:
            raise ConfigError(f"{what}: unknown key {key!r}, {hint(key, known, repr)}")
    needed = [field.name for field in fields if field.default is dataclasses.MISSING]
    missing = [key for key in needed if key not in raw]
    if missing:
        raise ConfigError(f"{what}: missing {', '.join(missing)}")
    return dict(raw)
