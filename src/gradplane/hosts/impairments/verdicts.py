"""Losses and stragglers at a host's end of its link.

A spec is a table of the experiment file, whose keys and values the experiment room checks and
completes (experiment/impairment_sections.py). Keys of all models:

    model      "bernoulli" | "nth" | "burst" | "corruption" | "duplication" | "reordering" |
               "jitter" | "drop list" | "straggler"
    link       a host's name, or "*" (default)
    direction  "up" (from the host) | "down" | "both" (default)
    flow       "agg" | "stream" | "all" (default), or a list of packet types: "norm", "norm result",
               "indices", "sums", "straggler", "partial", "status", "part", "mean", "stream",
               "values", "ack", "other"
    seed       default: the experiment's

and of each model:

    bernoulli  rate: each packet is lost with this probability
    nth        n: every n-th packet is lost
    burst      p, r, loss (default 1): Gilbert and Elliott's two states; a packet turns good to bad
               with p, bad to good with r, and is lost in the bad state with probability loss
    corruption  rate: each packet is damaged with this probability; the other end finds that and
               drops it
    duplication  rate, delay_ms (default 0): with this probability a copy follows after so long
    reordering  rate, delay_ms: with this probability a packet is held back so long
    jitter     delay_ms (default 0), jitter_ms, distribution: each packet is delayed by
               delay_ms ± jitter_ms, "uniform" (default) or "normal"
    drop list  packets: tables of link, direction, job, type, training_round (from 0), use (of the
               slot, from 1), slot, attempt, peer as they are recorded; a missing key matches
               everything; verdict and delay_ns. In place of the identity, `packet`, the number
               among the packets of a direction that the keys above select, from 1, or `time_ns`:
               the first packet from then on, with `until_ns` all that come before that time;
               within_ms: an entry by time ends so long after it
    straggler  workers: their numbers, or count: how many, drawn in each round;
               delay_ms, or leave_out = true; when: probability, every or rounds (default: always)

A packet's key is (job, type, use, slot, attempt): attempt counts, from 0, the transmissions of
the same packet that this host's link has seen in this direction. For streams use and slot are
message and segment, for their values the connection's sequence number and 0, for their
acknowledgements the next segment expected and 0; the peer belongs to the key. Verdicts are
functions of seed, link, direction and key alone, except that "nth" and "burst" count packets. Of
several models the first loss decides, delays add up, and each duplication adds a copy, which is
not judged again.

A left-out straggler of a lossy job is too late with all its norms and indices of the round: they
leave its host once the result that they are too late for has arrived there (`late_packets`), and
results reach it by multicast like all others. Where packets are retransmitted until they are
answered, it loses the first attempt (also of stream segments), so that it is late but can still
fetch the result.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gradplane.hosts.impairments.impairment_models import (
    ImpairmentModel,
    ModelPlace,
    PacketIdentity,
    make_model,
)
from gradplane.hosts.impairments.packet_types import AGG_TYPES, ARRIVING, BLOCK_TYPES, OTHER
from gradplane.hosts.protocols.actions import Record
from gradplane.hosts.stream import segments
from gradplane.hosts.wire import aggregation, bounded
from gradplane.hosts.wire.payloads import Payloads

_LATE_TYPES = ("norm", "indices")
_BOUNDED = bytes([bounded.MAGIC])
_REMEMBERED = 1 << 14  # packets whose attempts are counted

_Key = tuple[str, str, int, str, int, int]  # direction, peer, job, type, use, slot


@dataclass(frozen=True)
class Verdict:
    """The fate of a packet: dropped, late, or passed on after delay_ns.

    late: it must not leave before its sum is done. left_out: it was not sent at all, and so does
    not count as traffic. copies: by how much later than the packet each further copy of it is
    passed on, in ns. `records` are for the log.
    """

    drop: bool = False
    delay_ns: int = 0
    late: bool = False
    left_out: bool = False
    copies: tuple[int, ...] = ()
    records: tuple[Record, ...] = ()

    @property
    def fate(self) -> tuple[bool, int, bool, bool]:
        """The verdict on a packet without copies, without its records."""
        return self.drop, self.delay_ns, self.late, self.left_out

    @property
    def single(self) -> bool:
        """True for a packet that is passed on by itself."""
        return self.late or bool(self.copies)


_PASS = Verdict()


class Impairments:
    """Verdicts at one host's end of its link."""

    def __init__(
        self,
        specs: Sequence[Mapping[str, Any]],
        link: str,
        worker: int | None,
        workers: int,
        job: int,
        lossy: bool = False,
        live: bool = False,
    ) -> None:
        """Make the models of `specs`, which are HostConfig.impairments.

        `link` is the host's name, `worker` is None for a server, `lossy` is the job's reliability.
        live: models may be added later, so that all packets have to be seen from the start.
        """
        self._link, self._job, self._lossy = link, job, lossy
        self._live = live
        self._place = place = ModelPlace(link, worker, workers, lossy)
        made = [make_model(spec, place) for spec in specs]
        self._models = [model for model in made if model]
        self._round = 0
        self._seen: dict[_Key, int] = {}

    def start_round(self, round: int) -> None:
        """Begin training round `round`, by which stragglers are chosen."""
        self._round = round

    def add(self, spec: Mapping[str, Any]) -> Callable[[], None]:
        """Add the model of `spec`, and return a function that removes it.

        Only where `live`: the attempts of packets that were not seen would not be counted."""
        assert self._live
        model = make_model(spec, self._place)
        if model is None:
            return lambda: None
        self._models.append(model)
        return partial(self._models.remove, model)

    @property
    def active(self) -> bool:
        """False where every packet passes, now and later."""
        return self._live or bool(self._models)

    def up(self, ip: str, port: int, payloads: Payloads, now: int = 0) -> list[Verdict]:
        """Return the verdicts on datagrams that the host sends to (ip, port)."""
        return [self._judge("up", ip, port, payload, now) for payload in payloads]

    def down(self, ip: str, source_port: int, payloads: Payloads, now: int = 0) -> list[Verdict]:
        """Return the verdicts on datagrams that arrive from (ip, source_port)."""
        return [self._judge("down", ip, source_port, payload, now) for payload in payloads]

    def _judge(self, direction: str, ip: str, port: int, payload: bytes, now: int) -> Verdict:
        packet = self._packet((direction, *self._identify(ip, port, payload)), now)
        records, delay, copies = [], 0, []
        for model in self._models:
            ruling = model.judge(packet)
            if ruling is None:
                continue
            verdict, delay_ns = ruling
            records.append(_record(packet, verdict, delay_ns, model))
            if verdict not in ARRIVING:
                left_out = verdict == "leave out"
                late = left_out and self._lossy and packet.type in _LATE_TYPES
                unsent = left_out and not late
                return Verdict(not late, late=late, left_out=unsent, records=(records[-1],))
            if verdict == "duplicate":
                copies.append(delay_ns)
            else:
                delay += delay_ns
        if not records:
            return _PASS
        return Verdict(delay_ns=delay, copies=tuple(copies), records=tuple(records))

    def _packet(self, key: _Key, now: int) -> PacketIdentity:
        attempt = self._seen.pop(key, 0)
        self._seen[key] = attempt + 1  # now the youngest
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        direction, peer, job, kind, use, slot = key
        return PacketIdentity(
            self._link, direction, job, kind, use, slot, attempt, peer, self._round, now
        )

    def _identify(self, ip: str, port: int, payload: bytes) -> tuple[str, int, str, int, int]:
        """Return a datagram's peer, job, type, slot's use and slot."""
        peer = f"{ip}:{port}"
        try:
            if port == aggregation.UDP_PORT:
                packet, job, round, slot = aggregation.identity(payload)
                return "", job, AGG_TYPES[packet - 1], round, slot
            if payload[:1] == _BOUNDED and len(block := bounded.parse(Payloads.of([payload]))):
                kind, job, round, slot = block.header[0][["type", "job", "round", "slot"]].item()
                return peer, job, BLOCK_TYPES[kind - 1], round, slot
            segment = segments.parse(payload)
        except (aggregation.WireError, segments.SegmentError):
            return peer, self._job, OTHER, 0, 0
        if isinstance(segment, segments.Ack):
            return peer, self._job, "ack", segment.next, 0
        if isinstance(segment, segments.ValuesSegment):
            return peer, self._job, "values", segment.sequence, 0
        return peer, self._job, "stream", segment.message, segment.index


def _record(packet: PacketIdentity, verdict: str, delay_ns: int, model: ImpairmentModel) -> Record:
    keys = (
        "link", "direction", "job", "type", "training_round", "use", "slot", "attempt", "peer",
    )  # fmt: skip
    fields = {key: getattr(packet, key) for key in keys}
    ruling = {"verdict": verdict, "delay_ns": delay_ns, "impairment": model.number}
    if model.entry is not None:
        ruling["entry"] = model.entry
    return Record("verdict", fields | ruling)
