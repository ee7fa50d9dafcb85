"""The question who is missing in a slot, asked when a wait takes long; only the log uses it."""

from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Action
from gradplane.hosts.protocols.switch_log import SwitchLog
from gradplane.hosts.protocols.switch_packets import SwitchPackets
from gradplane.hosts.wire.aggregation import Type


class SlotStatus:
    """One worker's status requests: one at a time, and at most one in a `timeout_ns`."""

    def __init__(self, job: JobConfig, packets: SwitchPackets, log: SwitchLog) -> None:
        self._job, self._packets, self._log = job, packets, log
        self._transport = job.transport
        self._asked: int | None = None  # the chunk that it is about
        self._next = 0  # when the next one may be sent
        self.deadline: int | None = None
        """When a request counts as unanswered."""

    def ask(self, number: int, now: int, flags: int = 0) -> list[Action]:
        """Ask for the state of a chunk's slot, unless a request was made a short while ago."""
        if self._asked is not None or now < self._next:
            return []
        self._asked, self._next = number, now + self._transport.timeout_ns
        self.deadline = self._next
        return [self._packets.make(Type.STATUS, number, flags=flags)]

    def answer(self, number: int, bitmap: int, now: int) -> list[Action]:
        """Record the absent workers; `number` is that of the slot's present chunk."""
        asked = self._asked
        if asked is None or (number - asked) % self._transport.slots:
            return []
        self._asked = self.deadline = None
        missing = None
        if number <= asked:
            here = bitmap if number == asked else 0
            missing = [w for w in range(self._job.workers) if not here >> w & 1]
        return [self._log.stall(asked, missing, now)]

    def timer(self, now: int) -> list[Action]:
        """Record a request that was not answered in time."""
        if self._asked is None or self.deadline is None or self.deadline > now:
            return []
        asked, self._asked, self.deadline = self._asked, None, None
        return [self._log.stall(asked, None, now)]
