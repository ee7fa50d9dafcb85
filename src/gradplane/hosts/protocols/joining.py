"""The start of a round in which workers join that were away (absences.py).

All workers of the round wait for each other, as in a rendezvous of elastic training. A newcomer
asks the donor for its state: the donor's parameters and momentum at the start of the round. Then it
announces to all others that it is ready, and they go on together. A newcomer's error feedback is
empty.

Every message may be lost with a life of its sender or receiver, as a slow worker crashes after
others have come back. So whoever waits asks again and again, whoever it waits for, and is answered
from what that one knows.

Messages travel by a Stream: SendMessage out, receive() in. Stream connections to a newcomer are
those of its earlier life until it is heard of, and given up then.
"""

from collections import defaultdict
from collections.abc import Hashable

import numpy as np

from gradplane.hosts import absences
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import (
    Action,
    CancelTimer,
    Deliver,
    Forget,
    Peer,
    SendMessage,
    SetTimer,
)
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.results import Joined

_ASK_AGAIN = 1_000_000_000  # ns
_TIMER = "join"


class Joining:
    """One worker's side. Actions: Forget, SendMessage, SetTimer, CancelTimer, Deliver(round,
    Joined). Gets messages of messages.JOIN_KINDS, of this and of later rounds.
    """

    def __init__(self, job: JobConfig, worker: int) -> None:
        self._job, self._worker = job, worker
        self._peers = [job.addresses.stream(w) for w in range(job.workers)]
        self._round: int | None = None  # whose start this worker waits for
        self._state = Joined(np.empty(0, np.float32), np.empty(0, np.float32))
        self._has_state = False
        self._asked: defaultdict[int, set[int]] = defaultdict(set)  # by round: newcomers
        self._ready: defaultdict[int, set[int]] = defaultdict(set)  # by round: newcomers
        self._announced = -1  # the last round in which this worker was a newcomer and ready
        self._heard: dict[int, int] = {}  # by worker: the last round it joined in

    def join(self, round: int, state: Joined, now: int) -> list[Action]:
        """Begin a round. `state` is this worker's; a newcomer's has only the right sizes."""
        self._round, self._state = round, state
        self._has_state = self._worker not in absences.joining(self._job.absences, round)
        asked = [] if self._has_state else [self._request()]
        return [*asked, SetTimer(_TIMER, now + _ASK_AGAIN), *self._give(round), *self._finish()]

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message from another worker. MessageError if it is not a valid one."""
        message = parse(data)
        if peer not in self._peers:
            raise MessageError(f"joining message from {peer}, which is not a worker of this job")
        sender, round = self._peers.index(peer), message.ticket
        if message.kind is Kind.STATE:
            return self._take(message, sender)
        newcomer = self._worker if message.kind is Kind.AWAIT else sender
        if newcomer not in absences.joining(self._job.absences, round):
            raise MessageError(f"worker {newcomer} does not join in round {round}")
        if message.kind is Kind.AWAIT:
            return [self._ready_message(round, sender)] if self._was_ready(round) else []
        fresh = self._fresh(sender, round)
        if message.kind is Kind.JOIN:
            self._asked[round].add(sender)
            return [*fresh, *self._give(round)]
        self._ready[round].add(sender)
        return [*fresh, *self._finish()]

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Ask again."""
        if self._round is None:
            return []
        if not self._has_state:
            asked = [self._request()]
        else:
            data = Message(Kind.AWAIT, self._round).pack()
            asked = [SendMessage(self._peers[w], data) for w in sorted(self._missing())]
        return [*asked, SetTimer(_TIMER, now + _ASK_AGAIN)]

    def _donor(self, round: int) -> int | None:
        return absences.donor(self._job.absences, self._job.workers, round)

    def _request(self) -> SendMessage:
        assert self._round is not None
        donor = self._donor(self._round)
        assert donor is not None, "an experiment is refused where nobody has the state"
        return SendMessage(self._peers[donor], Message(Kind.JOIN, self._round).pack())

    def _fresh(self, newcomer: int, round: int) -> list[Action]:
        """Give up the connections to an earlier life, at the first message of the next."""
        if self._heard.get(newcomer, -1) >= round:
            return []
        self._heard[newcomer] = round
        return [Forget(self._peers[newcomer])]

    def _give(self, round: int) -> list[Action]:
        """Send the state to the newcomers that have asked for it, where it is this worker's to."""
        if self._round != round or self._donor(round) != self._worker:
            return []
        own = self._state
        body = b"".join(part.astype("<f4").tobytes() for part in (own.parameters, own.momentum))
        data = Message(Kind.STATE, round, n=own.parameters.size, body=body).pack()
        return [SendMessage(self._peers[w], data) for w in sorted(self._asked.pop(round, ()))]

    def _take(self, message: Message, sender: int) -> list[Action]:
        round, n = message.ticket, self._state.parameters.size
        if self._round != round or self._has_state:
            return []  # asked for twice
        if sender != self._donor(round) or message.n != n or len(message.body) != 8 * n:
            raise MessageError(f"state of {message.n} values from worker {sender}, ours are {n}")
        values = np.frombuffer(message.body, "<f4").astype(np.float32)
        self._state, self._has_state = Joined(values[:n], values[n:]), True
        here = absences.present(self._job.absences, self._job.workers, round)
        self._announced = round
        others = [self._ready_message(round, w) for w in here if w != self._worker]
        return [*others, *self._finish()]

    def _was_ready(self, round: int) -> bool:
        """Whether this worker was ready in a round it joined in, be it in an earlier life."""
        return round <= self._announced or (self._round is not None and round < self._round)

    def _ready_message(self, round: int, worker: int) -> SendMessage:
        return SendMessage(self._peers[worker], Message(Kind.READY, round).pack())

    def _missing(self) -> set[int]:
        """Return the newcomers that are not known to be ready."""
        assert self._round is not None
        newcomers = set(absences.joining(self._job.absences, self._round))
        return newcomers - {self._worker} - self._ready[self._round]

    def _finish(self) -> list[Action]:
        """Deliver the state once this worker has it and all newcomers are ready."""
        if self._round is None or not self._has_state or self._missing():
            return []
        round = self._round
        del self._ready[round]
        self._round = None
        return [CancelTimer(_TIMER), Deliver(round, self._state)]
