"""The impairment models that verdicts.py documents: each reads its keys and rules on packets.

A ruling is None, or a verdict ("drop", "delay", "leave out") and a delay in nanoseconds.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from gradplane import codecs
from gradplane.hosts.config import ConfigError
from gradplane.hosts.impairments.impairment_spec import (
    Spec,
    directions,
    fraction,
    get,
    known_keys,
    refusal,
    types,
    whole,
)

PACKET_KEYS = (
    "link",
    "direction",
    "job",
    "type",
    "round",
    "slot",
    "attempt",
    "peer",
    "verdict",
    "delay_ns",
)
VERDICTS = ("drop", "delay", "leave out")

Ruling = tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class PacketIdentity:
    """A packet's identity, which verdicts depend on; `training_round` is the worker's."""

    link: str
    direction: str
    job: int
    type: str
    round: int
    slot: int
    attempt: int
    peer: str  # "ip:port" of the other end for streams, else empty
    training_round: int

    def random_value(self, seed: int, purpose: str) -> float:
        """Return the packet's random value in [0, 1)."""
        place = (self.link, self.direction, self.peer, self.job, self.type)
        return uniform(seed, purpose, *place, self.round, self.slot, self.attempt)


@dataclass(frozen=True)
class ModelPlace:
    """The place of a model: this host's link and worker number (None: a server), the number of the
    job's workers, and whether the job is lossy.
    """

    link: str
    worker: int | None
    workers: int
    lossy: bool = False


class ImpairmentModel:
    """Base of the models, which selects packets by direction and type.

    A subclass reads its keys in read() and rules on the selected packets in rule().
    """

    keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self, spec: Spec, place: ModelPlace) -> None:
        self._place = place
        self._seed = int(get(spec, "seed", int, 0))
        self._directions, self._types = directions(spec), types(spec)
        self.read(spec)

    def read(self, spec: Spec) -> None:
        """Read and check the model's keys."""

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Rule on a selected packet."""
        raise AssertionError(type(self))

    def judge(self, packet: PacketIdentity) -> Ruling:
        """Rule on any packet."""
        if packet.direction not in self._directions or packet.type not in self._types:
            return None
        return self.rule(packet)


class Bernoulli(ImpairmentModel):
    """Each packet is lost with probability `rate`."""

    keys = ("rate",)

    def read(self, spec: Spec) -> None:
        """Read rate."""
        self._rate = fraction(spec, "rate")

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Drop by the packet's random value."""
        return ("drop", 0) if packet.random_value(self._seed, "bernoulli") < self._rate else None


class Nth(ImpairmentModel):
    """Packets n, 2 n, 3 n, ... are lost; each direction counts by itself."""

    keys = ("n",)

    def read(self, spec: Spec) -> None:
        """Read n."""
        self._n = whole(spec, "n")
        self._counts = {"up": 0, "down": 0}

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Drop by the number of packets before it."""
        self._counts[packet.direction] += 1
        return ("drop", 0) if self._counts[packet.direction] % self._n == 0 else None


class BurstLoss(ImpairmentModel):
    """Gilbert and Elliott's model; each direction is a channel by itself and starts good."""

    keys = ("p", "r", "loss")

    def read(self, spec: Spec) -> None:
        """Read p, r and loss."""
        self._p, self._r = fraction(spec, "p"), fraction(spec, "r")
        self._loss = fraction(spec, "loss", 1.0)
        self._bad = {"up": False, "down": False}
        self._counts = {"up": 0, "down": 0}

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Drop by the channel's state after this packet's step."""
        way = packet.direction
        self._counts[way] += 1
        where = (self._place.link, way, self._counts[way])
        step = uniform(self._seed, "burst step", *where)
        self._bad[way] = step >= self._r if self._bad[way] else step < self._p
        lost = self._bad[way] and uniform(self._seed, "burst loss", *where) < self._loss
        return ("drop", 0) if lost else None


class DropList(ImpairmentModel):
    """The packets of a list, such as recorded verdicts."""

    keys = ("packets",)

    def read(self, spec: Spec) -> None:
        """Read packets: the fields that must be equal, and the ruling; by round for speed."""
        self._listed: dict[int | None, list[tuple[dict[str, Any], tuple[str, int]]]] = {}
        for packet in get(spec, "packets", (list, tuple)):
            known_keys(packet, PACKET_KEYS, "impairment drop list: packet")
            ruling = (packet.get("verdict", "drop"), packet.get("delay_ns", 0))
            if ruling[0] not in VERDICTS:
                raise ConfigError(
                    f"impairment drop list: verdict = {ruling[0]!r}: it must be one of "
                    f"{', '.join(VERDICTS)}"
                )
            wanted = {k: v for k, v in packet.items() if k not in ("verdict", "delay_ns")}
            self._listed.setdefault(wanted.get("round"), []).append((wanted, ruling))

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Return the ruling of the first entry that matches."""
        for round in (packet.round, None):
            for wanted, ruling in self._listed.get(round, ()):
                if all(getattr(packet, key) == value for key, value in wanted.items()):
                    return ruling
        return None


class Straggler(ImpairmentModel):
    """Some workers are slow, or left out, in some training rounds."""

    keys = ("workers", "count", "delay_ms", "leave_out", "probability", "every", "rounds")

    def read(self, spec: Spec) -> None:
        """Read which workers are slow, how, and when."""
        if ("workers" in spec) == ("count" in spec):
            raise ConfigError("impairment straggler: give either workers (a list) or count")
        if ("delay_ms" in spec) == bool(spec.get("leave_out")):
            raise ConfigError("impairment straggler: give either delay_ms or leave_out = true")
        if sum(key in spec for key in ("probability", "every", "rounds")) > 1:
            raise ConfigError("impairment straggler: give one of probability, every and rounds")
        self._workers = self._read_workers(spec)
        self._count = self._read_count(spec)
        self._delay_ns = self._read_delay(spec)
        self._probability = fraction(spec, "probability", 1.0)
        self._every = whole(spec, "every", 1)
        self._rounds = get(spec, "rounds", (list, tuple)) if "rounds" in spec else None

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Delay the packet, or leave it out: in a lossy job every attempt, else the first."""
        if packet.direction == "down" or not self._slow(packet.training_round):
            return None
        if self._delay_ns:
            return "delay", self._delay_ns
        always = self._place.lossy and packet.type in ("norm", "indices")
        first = packet.type in ("norm", "indices", "stream", "values") and packet.attempt == 0
        return ("leave out", 0) if always or first else None

    def _slow(self, round: int) -> bool:
        """Return whether this worker is a straggler in that training round."""
        if self._place.worker is None or round % self._every:
            return False
        if self._rounds is not None and round not in self._rounds:
            return False
        if self._workers is None:
            return self._place.worker in self._drawn(round)
        drawn = uniform(self._seed, "straggles", round, self._place.worker)
        return self._place.worker in self._workers and drawn < self._probability

    def _drawn(self, round: int) -> list[int]:
        """Draw `count` workers, the same on every host."""
        if uniform(self._seed, "straggles", round) >= self._probability:
            return []
        workers = range(self._place.workers)
        order = sorted(workers, key=lambda w: codecs.key(self._seed, "draw", round, w))
        return order[: self._count]

    def _read_workers(self, spec: Spec) -> list[int] | None:
        for worker in spec.get("workers", ()):
            if worker not in range(self._place.workers):
                last = self._place.workers - 1
                text = f"worker {worker}: the job's are 0 to {last}"
                raise refusal(spec, "workers", text)
        return spec.get("workers")

    def _read_count(self, spec: Spec) -> int:
        count = whole(spec, "count", 0)
        if count > self._place.workers:
            text = f"count = {count}: the job has {self._place.workers} workers"
            raise refusal(spec, "count", text)
        return count

    def _read_delay(self, spec: Spec) -> int:
        delay_ms = get(spec, "delay_ms", (int, float), 0)
        if "delay_ms" in spec and delay_ms <= 0:
            raise refusal(spec, "delay_ms", f"delay_ms = {delay_ms}: it must be above 0")
        return int(delay_ms * 1_000_000)


MODELS: dict[str, type[ImpairmentModel]] = {
    "bernoulli": Bernoulli,
    "nth": Nth,
    "burst": BurstLoss,
    "drop list": DropList,
    "straggler": Straggler,
}
_COMMON = ("model", "link", "direction", "flow", "seed")


def make_model(spec: Spec, place: ModelPlace) -> ImpairmentModel | None:
    """Return the spec's model, None if it is for another link. ConfigError for a wrong spec."""
    name = spec.get("model")
    if name not in MODELS:
        text = f"impairment: model = {name!r}: it must be one of {', '.join(MODELS)}"
        raise ConfigError(text, "model")
    kind = MODELS[name]
    known_keys(spec, (*_COMMON, *kind.keys), f"impairment {name}")
    model = kind(spec, place)
    return model if spec.get("link", "*") in ("*", place.link) else None


def uniform(seed: int, *parts: int | str) -> float:
    """Return a random value in [0, 1) that is a function of the arguments."""
    return codecs.key(seed, *parts) / 2.0**64
