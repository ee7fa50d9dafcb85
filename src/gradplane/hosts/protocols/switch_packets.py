"""The packets between one worker and the switch: made on the way out, checked on the way in."""

from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Peer, Send
from gradplane.hosts.protocols.partition import Chunk
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type

_RESULTS = (Type.NORM_RESULT, Type.SUMS, Type.STRAGGLER, Type.STATUS)


class SwitchPackets:
    """The maker and checker of one worker's packets."""

    def __init__(self, job: JobConfig, worker: int) -> None:
        self._job, self._worker = job, worker
        self._source_port = job.worker_addresses[worker][1]

    def make(
        self, kind: Type, chunk: Chunk, norm: int = 0, body: bytes = b"", flags: int = 0
    ) -> Send:
        """Return a packet about a chunk."""
        job = self._job
        place = (job.number, self._worker, chunk.slot, chunk.round, job.sum_bits)
        header = Header(kind, *place, norm, flags=flags)
        return Send(self._source_port, *job.aggregator, header.pack() + body)

    def number(self, header: Header) -> int:
        """Return the number of the chunk that a packet is about."""
        return (header.round - 1) * self._job.slots + header.slot

    def parse(self, source: Peer, payload: bytes) -> tuple[Header, bytes] | str:
        """Return header and body of a packet for this worker, or the reason why it is refused."""
        try:
            header, body = aggregation.parse(payload)
        except aggregation.WireError:
            return "malformed"
        return self._refusal(source, header) or (header, body)

    def _refusal(self, source: Peer, header: Header) -> str | None:
        if source != self._job.aggregator:
            return "stranger"
        if header.job != self._job.number or header.sum_bits != self._job.sum_bits:
            return "another job"
        if header.type not in _RESULTS or header.passed:
            return "no result"
        if header.type is Type.STATUS:
            return None if header.flags & aggregation.STATUS_ANSWER else "no result"
        if header.slot >= self._job.slots or header.round == 0:
            return "no such slot"
        if header.type is Type.SUMS and not self._countable(header):
            return "count"
        return None

    def _countable(self, header: Header) -> bool:
        workers = header.bitmap.bit_count()
        return 0 < workers == header.worker and header.bitmap >> self._job.workers == 0
