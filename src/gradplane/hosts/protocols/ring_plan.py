"""What the workers of a ring agree on: who is where, how a vector is cut, how a block travels."""

from dataclasses import dataclass

import numpy as np

from gradplane.codecs import Codec
from gradplane.hosts.config import ConfigError, JobConfig
from gradplane.hosts.protocols.actions import Peer
from gradplane.hosts.protocols.job_codec import codec_ns, push_codec


@dataclass(frozen=True)
class RingPlan:
    """What the workers of a ring share. ConfigError for a codec that needs them all at once."""

    peers: tuple[Peer, ...]  # the workers' streams, in the ring's order
    codec: Codec  # of every transfer
    bound: int | None = None  # the network may compress transfers, to 2^-bound; None: it must not
    number: int = 0  # of the job
    seed: int = 0
    codec_ns: float = 0.0  # a value's encoding or decoding
    reduce_ns: float = 0.0  # a value's addition

    def __post_init__(self) -> None:
        if self.codec.local(np.ones(1, np.float32), self.codec.start(1)) is not None:
            raise ConfigError(
                f"codec {self.codec.name}: its workers agree on a statistic before they encode, "
                "partial sums have none: use another codec, such as float16 or inceptionn, or "
                'aggregation = "ps"',
                "codec",
            )

    @classmethod
    def of(cls, job: JobConfig) -> "RingPlan":
        """A job's; ConfigError for a codec that there is not or that does not fit."""
        peers = tuple(job.stream_address(w) for w in range(job.workers))
        times = codec_ns(job, job.codec), job.reduce_ns
        return cls(peers, push_codec(job), job.bound, job.number, job.seed, *times)

    def owner(self, block: int) -> int:
        """The worker that has the block's whole sum first."""
        return (block - 1) % len(self.peers)

    def bitmap(self, block: int, worker: int) -> int:
        """The workers in a block's partial sum once `worker` has added: from `block` to it."""
        n = len(self.peers)
        return sum(1 << (block + k) % n for k in range((worker - block) % n + 1))

    def span(self, block: int, size: int) -> slice:
        """The block's part of a vector: the first size mod n blocks have a value more."""
        least, longer = divmod(size, len(self.peers))
        start = block * least + min(block, longer)
        return slice(start, start + least + (block < longer))
