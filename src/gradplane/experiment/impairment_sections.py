"""[[impairment]]: the keys of each model, which gradplane.hosts.impairments.verdicts explains.

Hosts get the values as they are dumped here, complete, and trust them.
"""

import logging
from collections.abc import Collection
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from gradplane._toml_documents import Section
from gradplane.codecs import key
from gradplane.hosts.absences import Absence
from gradplane.hosts.impairments.packet_types import FLOWS
from gradplane.hosts.philox import permutation
from gradplane.topologies.description import MAX_HOSTS

log = logging.getLogger(__name__)

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=0)]


def _one_type(kind: str) -> str:
    if kind not in FLOWS["all"]:
        expected = ", ".join(f"'{known}'" for known in FLOWS["all"])
        raise PydanticCustomError("literal_error", "unknown type", {"expected": expected})
    return kind


def _flow(flow: Any) -> Any:
    """Return the packet types of a flow: its name, or a list of types."""
    listed = [flow] if isinstance(flow, str) else flow
    known = (*FLOWS, *FLOWS["all"])
    if not isinstance(listed, list | tuple) or any(kind not in known for kind in listed):
        names, types = (", ".join(f"'{name}'" for name in group) for group in (FLOWS, FLOWS["all"]))
        expected = {"expected": f"{names} or a list of {types}"}
        raise PydanticCustomError("literal_error", "unknown flow", expected)
    return flow


PacketType = Annotated[str, AfterValidator(_one_type)]


class ImpairmentSection(Section):
    """The keys of every model."""

    link: str = "*"
    direction: Literal["up", "down", "both"] = "both"
    flow: Annotated[Any, AfterValidator(_flow)] = "all"
    seed: int | None = None


class BernoulliSection(ImpairmentSection):
    """Each packet is lost with probability `rate`."""

    model: Literal["bernoulli"]
    rate: Share


class NthSection(ImpairmentSection):
    """Every n-th packet is lost."""

    model: Literal["nth"]
    n: Count


class BurstSection(ImpairmentSection):
    """Gilbert and Elliott's model."""

    model: Literal["burst"]
    p: Share
    r: Share
    loss: Share = 1.0


class CorruptionSection(ImpairmentSection):
    """Each packet is damaged with probability `rate`."""

    model: Literal["corruption"]
    rate: Share


class DuplicationSection(ImpairmentSection):
    """Each packet arrives twice with probability `rate`."""

    model: Literal["duplication"]
    rate: Share
    delay_ms: float = Field(default=0.0, ge=0)


class ReorderingSection(ImpairmentSection):
    """Each packet is held back with probability `rate`."""

    model: Literal["reordering"]
    rate: Share
    delay_ms: float = Field(ge=1e-6)


class JitterSection(ImpairmentSection):
    """Each packet is delayed by a time of its own."""

    model: Literal["jitter"]
    delay_ms: float = Field(default=0.0, ge=0)
    jitter_ms: float = Field(ge=1e-6)
    distribution: Literal["uniform", "normal"] = "uniform"


@cache
def _note_old_name() -> None:
    """Say once what `round` means in lists of older versions."""
    log.warning(
        "round in a drop list is read as use: the number of the slot's use, from 1, which older"
        " versions called round; a round of training is training_round, from 0"
    )


_ONE_WAY: dict[str | None, Literal["up", "down"]] = {"up": "up", "down": "down"}
"""The directions of which a listed packet has one; "both" is as good as none."""


class ListedPacket(Section):
    """The fields that must be equal in a packet, and its verdict."""

    link: str | None = None
    direction: Annotated[
        Literal["up", "down", "both"] | None, AfterValidator(lambda way: _ONE_WAY.get(way))
    ] = None
    job: Number | None = None
    type: PacketType | None = None
    training_round: Number | None = None
    use: Number | None = None
    slot: Number | None = None
    attempt: Number | None = None
    peer: str | None = None
    packet: Count | None = None
    time_ns: Number | None = None
    until_ns: Number | None = None
    verdict: Literal["drop", "delay", "leave out", "corrupt", "duplicate"] = "drop"
    delay_ns: Number = 0
    origin: str | None = None  # where it is from, "file:line", for people
    impairment: int | None = Field(default=None, exclude=True)  # of a record, without a meaning

    @property
    def text(self) -> str:
        """The entry for people: where it is from, and which packet it asks for."""
        own = self.model_dump(exclude={"origin", "verdict", "delay_ns"}, exclude_none=True)
        asked = ", ".join(f"{key} {value}" for key, value in own.items() if value != "")
        if self.origin is None or self.origin.endswith(f": {asked}"):
            return self.origin or asked or "any packet"
        return f"{self.origin} ({asked or 'any packet'})"

    @model_validator(mode="before")
    @classmethod
    def _read_old_name(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "round" not in values or "use" in values:
            return values
        _note_old_name()
        return {"use" if key == "round" else key: value for key, value in values.items()}

    @model_validator(mode="after")
    def _check_alternatives(self) -> "ListedPacket":
        counted = [key for key in ("packet", "time_ns") if getattr(self, key) is not None]
        identity = ("job", "type", "training_round", "use", "slot", "attempt", "peer")
        others = [key for key in identity if getattr(self, key) is not None]
        if len(counted) + bool(counted and others) > 1:
            text = f"give one of packet (its number), time and {', '.join(identity)}"
            raise PydanticCustomError("contradiction", "{text}", {"text": text})
        if self.until_ns is not None and (self.time_ns is None or self.time_ns >= self.until_ns):
            text = "until ends what a time begins: give time, too"
            if self.time_ns is not None:
                text = f"until {self.until_ns} ns ends what begins at {self.time_ns} ns: not later"
            raise PydanticCustomError("contradiction", "{text}", {"text": text})
        return self


class DropListSection(ImpairmentSection):
    """The packets of a list."""

    model: Literal["drop list"]
    packets: tuple[ListedPacket, ...] = Field(strict=False)
    within_ms: float | None = Field(default=None, gt=0)


def _one_or_a_pair(file: Any) -> Any:
    if isinstance(file, list | tuple) and (len(file) != 2 or not all(map(_is_text, file))):
        raise ValueError("two captures are a pair of names: file = [ENTERED, LEFT]")
    return file


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


class RecordedSection(ImpairmentSection):
    """Losses from a file, or from two captures; once it is loaded, a drop list."""

    model: Literal["recorded"]
    file: Annotated[
        str | Annotated[tuple[str, str], Field(strict=False)], BeforeValidator(_one_or_a_pair)
    ]
    by: Literal["packet", "time"] | None = None
    within_ms: float | None = Field(default=None, gt=0)


class StragglerSection(ImpairmentSection):
    """Some workers are slow, or left out, in some rounds of training."""

    model: Literal["straggler"]
    workers: tuple[Annotated[int, Field(ge=0, lt=MAX_HOSTS)], ...] | None = Field(
        default=None, strict=False
    )
    count: int | None = Field(default=None, ge=1)
    delay_ms: float | None = Field(default=None, ge=1e-6)
    leave_out: bool = False
    probability: float | None = Field(default=None, ge=0, le=1)
    every: int | None = Field(default=None, ge=1)
    rounds: tuple[Number, ...] | None = Field(default=None, strict=False)

    @model_validator(mode="after")
    def _check_alternatives(self) -> "StragglerSection":
        if (self.workers is None) == (self.count is None):
            raise _contradiction("either workers (a list) or count")
        if (self.delay_ms is not None) == self.leave_out:
            raise _contradiction("either delay_ms or leave_out = true")
        if sum(key is not None for key in (self.probability, self.every, self.rounds)) > 1:
            raise _contradiction("one of probability, every and rounds")
        return self


class AbsenceSection(Section):
    """The keys of both models of absences. Without `worker` one is drawn by the seed."""

    job: Number = 0
    worker: Annotated[int, Field(ge=0, lt=MAX_HOSTS)] | None = None
    seed: int | None = None

    def drawn(self, workers: int, taken: Collection[int]) -> int:
        """Draw one of the job's workers, not one of `taken` unless all are."""
        assert self.seed is not None, "not resolved"
        order = permutation(key(self.seed, "absence"), workers).tolist()
        free = (worker for worker in order if worker not in taken)
        return int(next(free, order[0]))


class CrashSection(AbsenceSection):
    """A worker dies at the start of a round, and takes part again from a later one on."""

    model: Literal["crash"]
    round: Count
    back: Count

    @model_validator(mode="after")
    def _check_order(self) -> "CrashSection":
        if self.back <= self.round:
            text = f"impairment crash: back = {self.back} is not after round = {self.round}"
            raise PydanticCustomError("contradiction", "{text}", {"text": text})
        return self

    def absence(self, worker: int) -> Absence:
        """Return the absence that it stands for."""
        return Absence(worker, self.round, self.back)


class LateJoinSection(AbsenceSection):
    """A worker takes part from a round on."""

    model: Literal["late join"]
    round: Count

    def absence(self, worker: int) -> Absence:
        """Return the absence that it stands for."""
        return Absence(worker, 0, self.round)


class RestartSection(Section):
    """A switch loses its state at a time, and gets its entries again `down_ms` later."""

    model: Literal["restart"]
    switch: str
    time_ms: float = Field(ge=0)
    down_ms: float = Field(default=1.0, ge=1e-6)


def _contradiction(way_out: str) -> PydanticCustomError:
    return PydanticCustomError(
        "contradiction", "impairment straggler: give {out}", {"out": way_out}
    )


Impairment = Annotated[
    BernoulliSection
    | NthSection
    | BurstSection
    | CorruptionSection
    | DuplicationSection
    | ReorderingSection
    | JitterSection
    | DropListSection
    | RecordedSection
    | StragglerSection
    | CrashSection
    | LateJoinSection
    | RestartSection,
    Field(discriminator="model"),
]
