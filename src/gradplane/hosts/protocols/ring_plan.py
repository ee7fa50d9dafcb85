"""The plan that the workers of a ring share: their order, the blocks of a vector, the codec."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradplane.codecs import Codec, PerTensor
from gradplane.hosts.config import JobConfig, UnsuitableCodecError
from gradplane.hosts.protocols.actions import Peer
from gradplane.hosts.protocols.job_codec import codec_ns, push_codec


@dataclass(frozen=True)
class RingPlan:
    """The plan of a ring. UnsuitableCodecError for a codec whose workers share a statistic.

    A member's place in the ring counts from 0; block b starts at place b modulo their number.
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
    blocks: int = 0  # that a vector is cut into; 0: one for each member
    first_part: int = 0  # the number of the first block among a reduce's seeds

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
        )

    def start(self, block: int) -> int:
        """Return the place whose values begin the block's sum."""
        return block % len(self.peers)

    def owner(self, block: int) -> int:
        """Return the place that has the block's whole sum first."""
        return (block - 1) % len(self.peers)

    def gets(self, block: int, place: int) -> bool:
        """Return whether the block's whole sum passes to a place: up to the sink, or to all."""
        n, owner = len(self.peers), self.owner(block)
        farthest = n - 1 if self.sink is None else (self.sink - owner) % n
        return 0 < (place - owner) % n <= farthest

    def bitmap(self, block: int, place: int) -> int:
        """Return the bitmap of the places in a block's partial sum after `place` added."""
        n, start = len(self.peers), self.start(block)
        return sum(1 << (start + k) % n for k in range((place - start) % n + 1))

    def span(self, block: int, size: int) -> slice:
        """Return the block's part of a vector, in whole units of the codec's: of u units the first
        u mod `blocks` blocks have one more."""
        unit = self.codec.unit
        least, longer = divmod(-(-size // unit), self.blocks)
        start = block * least + min(block, longer)
        stop = start + least + (block < longer)
        return slice(min(start * unit, size), min(stop * unit, size))
