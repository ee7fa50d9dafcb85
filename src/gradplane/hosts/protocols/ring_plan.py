"""The plan that the workers of a ring share: their order, the blocks of a vector, the codec."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradplane.codecs import Codec, PerTensor
from gradplane.hosts.config import JobConfig, UnsuitableCodecError
from gradplane.hosts.protocols.actions import Peer
from gradplane.hosts.protocols.job_codec import codec_ns, push_codec

_PIECES = 16  # that a vector is cut into in the workers' order, at most
_PIECE = 350  # values of one, at least: float32 in a segment of a stream


@dataclass(frozen=True)
class Blocks:
    """The blocks of one reduce: which values each has, and its way round the ring.

    A block's sum begins at the place `start`, is whole at its left neighbour, the `owner`, and then
    passes on to the right, to all places or as far as it is needed.
    """

    places: int
    number: int
    size: int  # of the vector
    unit: int  # of values, in which the vector is cut
    rotated: bool
    sink: int | None  # the place that alone gets all sums; None: all get them
    scattered: bool  # each place gets its own of as many equal parts as there are places

    def start(self, block: int) -> int:
        """Return the place whose values begin the block's sum."""
        return block % self.places if self.rotated else 0

    def owner(self, block: int) -> int:
        """Return the place that has the block's whole sum first."""
        return (self.start(block) - 1) % self.places

    def part(self, block: int) -> int:
        """Return the place in whose part of the vector a block is, where they are scattered."""
        return self.owner(block) if self.rotated else block * self.places // self.number

    def gets(self, block: int, place: int) -> bool:
        """Return whether the block's whole sum passes to a place: up to the sink, or to all."""
        owner, sink = self.owner(block), self.part(block) if self.scattered else self.sink
        farthest = self.places - 1 if sink is None else (sink - owner) % self.places
        return 0 < (place - owner) % self.places <= farthest

    def bitmap(self, block: int, place: int) -> int:
        """Return the bitmap of the places in a block's partial sum after `place` added."""
        n, start = self.places, self.start(block)
        return sum(1 << (start + k) % n for k in range((place - start) % n + 1))

    def span(self, block: int) -> slice:
        """Return the block's part of the vector, in whole units: of u units the first u mod
        `number` blocks have one more; where they are scattered, likewise within its place's part.
        """
        if not self.scattered:
            return _cut(0, self.size, self.unit, self.number, block)
        own, pieces = self.size // self.places, self.number // self.places
        return _cut(self.part(block) * own, own, self.unit, pieces, block % pieces)


def _cut(first: int, size: int, unit: int, pieces: int, piece: int) -> slice:
    """Return a piece of `size` values from `first` on."""
    least, longer = divmod(-(-size // unit), pieces)
    start = piece * least + min(piece, longer)
    stop = start + least + (piece < longer)
    return slice(first + min(start * unit, size), first + min(stop * unit, size))


@dataclass(frozen=True)
class RingPlan:
    """The plan of a ring. UnsuitableCodecError for a codec whose workers share a statistic.

    A member's place in the ring counts from 0.
    """

    peers: tuple[Peer, ...]  # the addresses of the members' streams, in the ring's order
    codec: Codec  # of every transfer
    bound: int | None = None  # the network may compress transfers, to 2^-bound; None: it must not
    number: int = 0  # of the job
    seed: int = 0
    codec_ns: float = 0.0  # a value's encoding or decoding
    reduce_ns: float = 0.0  # a value's addition
    members: tuple[int, ...] = ()  # the workers at the places; none: 0, 1, 2, ...
    sink: int | None = None  # the place that alone gets all sums; None: all get them
    blocks: int = 0  # that a vector is cut into where they are rotated; 0: one for each member
    first_part: int = 0  # the number of the first block among a reduce's seeds
    rotated: bool = True  # blocks start at one place after the other; else all at the first

    def __post_init__(self) -> None:
        if not self.members:
            object.__setattr__(self, "members", tuple(range(len(self.peers))))
        if not self.blocks:
            object.__setattr__(self, "blocks", len(self.peers))
        if isinstance(self.codec, PerTensor):
            raise UnsuitableCodecError(
                "codec by tensor: a ring's workers sum whole vectors under one codec: use one"
                " codec, or powersgd and float32 alone",
                "codec",
            )
        if self.codec.local(np.ones(1, np.float32), self.codec.start(1)) is not None:
            raise UnsuitableCodecError(
                f"codec {self.codec.name}: its workers agree on a statistic before they encode, "
                "partial sums have none: use another codec, such as float16 or inceptionn",
                "codec",
            )

    @classmethod
    def of(
        cls,
        job: JobConfig,
        codec: Codec | None = None,
        members: Sequence[int] = (),
        sink: int | None = None,
        blocks: int = 0,
        first_part: int = 0,
    ) -> "RingPlan":
        """Return the plan of a ring of a job; ConfigError for an unknown or unsuitable codec.

        codec: of one of several rounds, None: the job's. members: the ring's workers, none: all."""
        members = tuple(members) or tuple(range(job.workers))
        return cls(
            peers=tuple(job.addresses.stream(w) for w in members),
            codec=codec or push_codec(job),
            bound=job.coding.bound,
            number=job.number,
            seed=job.seed,
            codec_ns=codec_ns(job, job.coding.codec),
            reduce_ns=job.coding.reduce_ns,
            members=members,
            sink=sink,
            blocks=blocks,
            first_part=first_part,
            rotated=job.sum_order == "rotated",
        )

    def cut(self, size: int, scattered: bool = False) -> Blocks:
        """Return the blocks of a vector. Those that start at one place follow each other round the
        ring: finer ones keep more links busy.

        scattered: each place needs its own part alone, of as many as there are places."""
        n, number = len(self.peers), self.blocks
        if not self.rotated:
            number = min(max(-(-size // max(_PIECE, self.codec.unit)), 1), _PIECES)
            number = n * -(-number // n) if scattered else number
        return Blocks(n, number, size, self.codec.unit, self.rotated, self.sink, scattered)
