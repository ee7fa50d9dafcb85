"""The plan that the workers of a ring share: their order, the blocks of a vector, the codec."""

from dataclasses import dataclass

import numpy as np

from gradplane.codecs import Codec, PerTensor
from gradplane.hosts.config import JobConfig, UnsuitableCodecError
from gradplane.hosts.protocols.actions import Peer
from gradplane.hosts.protocols.job_codec import codec_ns, push_codec


@dataclass(frozen=True)
class RingPlan:
    """The plan of a ring. UnsuitableCodecError for a codec whose workers share a statistic."""

    peers: tuple[Peer, ...]  # the addresses of the workers' streams, in the ring's order
    codec: Codec  # of every transfer
    bound: int | None = None  # the network may compress transfers, to 2^-bound; None: it must not
    number: int = 0  # of the job
    seed: int = 0
    codec_ns: float = 0.0  # a value's encoding or decoding
    reduce_ns: float = 0.0  # a value's addition

    def __post_init__(self) -> None:
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
    def of(cls, job: JobConfig, codec: Codec | None = None) -> "RingPlan":
        """Return a job's plan; ConfigError for an unknown or unsuitable codec.

        codec: of one of several rounds, None: the job's."""
        peers = tuple(job.addresses.stream(w) for w in range(job.workers))
        times = codec_ns(job, job.coding.codec), job.coding.reduce_ns
        return cls(peers, codec or push_codec(job), job.coding.bound, job.number, job.seed, *times)

    def owner(self, block: int) -> int:
        """Return the worker that has the block's whole sum first."""
        return (block - 1) % len(self.peers)

    def bitmap(self, block: int, worker: int) -> int:
        """Return the bitmap of a block's partial sum after `worker` added: from `block` to it."""
        n = len(self.peers)
        return sum(1 << (block + k) % n for k in range((worker - block) % n + 1))

    def span(self, block: int, size: int) -> slice:
        """Return the block's part of a vector: the first size mod n blocks have a value more."""
        least, longer = divmod(size, len(self.peers))
        start = block * least + min(block, longer)
        return slice(start, start + least + (block < longer))
