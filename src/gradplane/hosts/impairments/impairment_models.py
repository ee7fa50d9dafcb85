"""The impairment models that verdicts.py documents: each takes its keys and rules on packets.

A ruling is None, or a verdict (packet_types.py) and a delay in nanoseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

from gradplane import codecs
from gradplane.hosts.impairments.packet_types import types

Spec = Mapping[str, Any]
"""A complete table of an experiment file, checked there; keys without a value may be absent."""

Ruling = tuple[str, int] | None


class PacketIdentity(NamedTuple):
    """A packet's identity, which verdicts depend on; `training_round` is the worker's."""

    link: str
    direction: str
    job: int
    type: str
    use: int  # of the slot, from 1
    slot: int
    attempt: int
    peer: str  # "ip:port" of the other end for streams, else empty
    training_round: int
    at: int = 0  # ns since the experiment's start

    def random_value(self, seed: int, purpose: str) -> float:
        """Return the packet's random value in [0, 1)."""
        place = (self.link, self.direction, self.peer, self.job, self.type)
        return uniform(seed, purpose, *place, self.use, self.slot, self.attempt)


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

    A subclass takes its keys in take() and rules on the selected packets in rule(). number: its
    place among the experiment's impairments, None for an intervention's.
    """

    def __init__(self, spec: Spec, place: ModelPlace) -> None:
        self._place = place
        self.number: int | None = spec.get("number")
        self.entry: int | None = None  # of a list: the one that made the last ruling, from 0
        self._seed: int = spec["seed"]
        both = spec["direction"] == "both"
        self._directions = ("up", "down") if both else (spec["direction"],)
        self._types = types(spec["flow"])
        self.take(spec)

    def take(self, spec: Spec) -> None:
        """Take the model's keys."""

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Rule on a selected packet."""
        raise AssertionError(type(self))

    def judge(self, packet: PacketIdentity) -> Ruling:
        """Rule on any packet."""
        if packet.direction not in self._directions or packet.type not in self._types:
            return None
        return self.rule(packet)


class _Drawn(ImpairmentModel):
    """Applies a verdict to each packet with probability `rate`, by its random value."""

    verdict, purpose = "", ""

    def take(self, spec: Spec) -> None:
        """Take rate and, where the verdict has one, delay_ms."""
        self._rate: float = spec["rate"]
        self._ruling = self.verdict, round(spec.get("delay_ms", 0) * 1e6)

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Rule by the packet's random value."""
        drawn = packet.random_value(self._seed, self.purpose)
        return self._ruling if drawn < self._rate else None


class Bernoulli(_Drawn):
    """Each packet is lost with probability `rate`."""

    verdict, purpose = "drop", "bernoulli"


class Nth(ImpairmentModel):
    """Packets n, 2 n, 3 n, ... are lost; each direction counts by itself."""

    def take(self, spec: Spec) -> None:
        """Take n."""
        self._n: int = spec["n"]
        self._counts = {"up": 0, "down": 0}

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Drop by the number of packets before it."""
        self._counts[packet.direction] += 1
        return ("drop", 0) if self._counts[packet.direction] % self._n == 0 else None


class BurstLoss(ImpairmentModel):
    """Gilbert and Elliott's model; each direction is a channel by itself and starts good."""

    def take(self, spec: Spec) -> None:
        """Take p, r and loss."""
        self._p: float = spec["p"]
        self._r: float = spec["r"]
        self._loss: float = spec["loss"]
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


class _Entry(NamedTuple):
    number: int
    ruling: tuple[str, int]


class DropList(ImpairmentModel):
    """The packets of a list, such as recorded verdicts: by their identity, by their number among
    the selected packets of a direction, the first one at a time or after it, within a limit, or
    all from a time until another.
    """

    def take(self, spec: Spec) -> None:
        """Take packets: the fields that must be equal, and the ruling; by use for speed."""
        self._listed: dict[int | None, list[tuple[dict[str, Any], _Entry]]] = {}
        self._numbered: dict[tuple[str, int], _Entry] = {}
        self._timed: dict[str, list[tuple[int, _Entry]]] = {"up": [], "down": []}
        self._lasting: dict[str, list[tuple[int, int, _Entry]]] = {"up": [], "down": []}
        self._counts = {"up": 0, "down": 0}
        limit = spec.get("within_ms")
        self._within = math.inf if limit is None else limit * 1e6
        for index, packet in enumerate(spec["packets"]):
            wanted = dict(packet)
            wanted.pop("origin", None)
            ruling = _Entry(index, (wanted.pop("verdict"), wanted.pop("delay_ns")))
            if not ("packet" in wanted or "time_ns" in wanted):
                self._listed.setdefault(wanted.get("use"), []).append((wanted, ruling))
            elif wanted.get("link", self._place.link) == self._place.link:
                self._count_or_time(wanted, ruling)
        for timed in self._timed.values():
            timed.sort(key=lambda entry: -entry[0])  # the next one is the last

    def _count_or_time(self, wanted: dict[str, Any], ruling: _Entry) -> None:
        way = wanted.get("direction")
        for direction in ("up", "down") if way is None else (way,):
            if "packet" in wanted:
                self._numbered.setdefault((direction, wanted["packet"]), ruling)
            elif "until_ns" in wanted:
                span = wanted["time_ns"], wanted["until_ns"], ruling
                self._lasting[direction].append(span)
            else:
                self._timed[direction].append((wanted["time_ns"], ruling))

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Return the ruling of the first entry that matches, which `entry` then is."""
        if (found := self._matching(packet)) is None:
            return None
        self.entry = found.number
        return found.ruling

    def _matching(self, packet: PacketIdentity) -> _Entry | None:
        way = packet.direction
        self._counts[way] += 1
        if numbered := self._numbered.get((way, self._counts[way])):
            return numbered
        timed = self._timed[way]
        while timed and timed[-1][0] + self._within < packet.at:
            timed.pop()
        if timed and timed[-1][0] <= packet.at:
            return timed.pop()[1]
        for start, end, ruling in self._lasting[way]:
            if start <= packet.at < end:
                return ruling
        for use in (packet.use, None):
            for wanted, ruling in self._listed.get(use, ()):
                if all(getattr(packet, key) == value for key, value in wanted.items()):
                    return ruling
        return None


class Straggler(ImpairmentModel):
    """Some workers are slow, or left out, in some training rounds."""

    def take(self, spec: Spec) -> None:
        """Take which workers are slow, how, and when."""
        self._workers: list[int] | None = spec.get("workers")
        self._count: int = spec.get("count", 0)
        self._delay_ns = int(spec.get("delay_ms", 0) * 1_000_000)
        self._probability: float = spec.get("probability", 1.0)
        self._every: int = spec.get("every", 1)
        self._rounds: list[int] | None = spec.get("rounds")
        self._known: tuple[int, list[int]] = (-1, [])  # a round, and the workers drawn in it

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
        if self._known[0] != round:
            workers: list[int] = []
            if uniform(self._seed, "straggles", round) < self._probability:
                place = range(self._place.workers)
                workers = sorted(place, key=lambda w: codecs.key(self._seed, "draw", round, w))
            self._known = round, workers[: self._count]
        return self._known[1]


def uniform(seed: int, *parts: int | str) -> float:
    """Return a random value in [0, 1) that is a function of the arguments."""
    return codecs.key(seed, *parts) / 2.0**64


MOST_BITS = 15
"""The length of the burst of flipped bits that the Internet checksum always finds (RFC 1071): a
shorter one changes the sum of the 16-bit words by something that is no multiple of 2^16 - 1."""


class Corruption(_Drawn):
    """Each packet is damaged with probability `rate`, in a burst of up to MOST_BITS bits.

    The receiving stack drops a datagram whose UDP checksum is wrong, and so does the end of a link
    with a frame check sequence: the verdict "corrupt" drops the packet and counts it."""

    verdict, purpose = "corrupt", "corruption"


class Duplication(_Drawn):
    """Each packet arrives twice with probability `rate`, the copy `delay_ms` after the packet."""

    verdict, purpose = "duplicate", "duplication"


class Reordering(_Drawn):
    """Each packet is held back for `delay_ms` with probability `rate`; the others are not."""

    verdict, purpose = "delay", "reordering"


_NORMAL = NormalDist()
_LEAST = 2.0**-64  # the normal distribution has no quantile of 0


class Jitter(ImpairmentModel):
    """Each packet is delayed by `delay_ms`, more or less by up to `jitter_ms`, never below 0.

    distribution: "uniform" between both ends, or "normal" with the deviation `jitter_ms`. Packets
    whose delays differ by more than the time between them change places."""

    def take(self, spec: Spec) -> None:
        """Take delay_ms, jitter_ms and distribution."""
        self._delay_ns = spec["delay_ms"] * 1e6
        self._jitter_ns = spec["jitter_ms"] * 1e6
        self._normal: bool = spec["distribution"] == "normal"

    def rule(self, packet: PacketIdentity) -> Ruling:
        """Delay by the packet's random value."""
        share = packet.random_value(self._seed, "jitter")
        shift = _NORMAL.inv_cdf(max(share, _LEAST)) if self._normal else 2 * share - 1
        delay = round(max(0.0, self._delay_ns + self._jitter_ns * shift))
        return ("delay", delay) if delay else None


MODELS: dict[str, type[ImpairmentModel]] = {
    "bernoulli": Bernoulli,
    "nth": Nth,
    "burst": BurstLoss,
    "corruption": Corruption,
    "duplication": Duplication,
    "reordering": Reordering,
    "jitter": Jitter,
    "drop list": DropList,
    "straggler": Straggler,
}


def make_model(spec: Spec, place: ModelPlace) -> ImpairmentModel | None:
    """Return the spec's model, None if it is for another link."""
    if spec["link"] not in ("*", place.link):
        return None
    return MODELS[spec["model"]](spec, place)
