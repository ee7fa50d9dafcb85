"""The start of a round in which workers join that were away (absences.py).

All workers of the round wait for each other, as in a rendezvous of elastic training. A newcomer
asks the donor for its state, again and again, until it comes: the donor's parameters and momentum
at the start of the round. Then it announces to all others that it is ready, and they go on
together. A newcomer's error feedback is empty.

A slow worker may crash after others have come back, and have heard of them only in its earlier
life. So whoever announces itself is answered by those that have announced themselves before.

Messages travel by a Stream: SendMessage out, receive() in. Stream connections to a newcomer are
those of its earlier life, so they are given up first.
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
        self._peers = [job.stream_address(w) for w in range(job.workers)]
        self._round: int | None = None  # whose start this worker waits for
        self._state = Joined(np.empty(0, np.float32), np.empty(0, np.float32))
        self._has_state = False
        self._asked: defaultdict[int, set[int]] = defaultdict(set)  # by round: newcomers
        self._ready: defaultdict[int, set[int]] = defaultdict(set)  # by round: newcomers
        self._announced: int | None = None  # the last round in which this worker was ready
        self._answered: set[tuple[int, int]] = set()  # rounds and newcomers

    def join(self, round: int, state: Joined, now: int) -> list[Action]:
        """Begin a round. `state` is this worker's; a newcomer's has only the right sizes."""
        newcomers = absences.joining(self._job.absences, round)
        self._round, self._state = round, state
        self._has_state = self._worker not in newcomers
        if not self._has_state:
            return self._ask(now)
        fresh: list[Action] = [Forget(self._peers[w]) for w in newcomers]
        return [*fresh, *self._give(round), *self._finish()]

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message from another worker. MessageError if it is not a valid one."""
        message = parse(data)
        if peer not in self._peers:
            raise MessageError(f"joining message from {peer}, which is not a worker of this job")
        sender, round = self._peers.index(peer), message.ticket
        if message.kind is Kind.STATE:
            return self._take(message, sender)
        if sender not in absences.joining(self._job.absences, round):
            raise MessageError(f"worker {sender} does not join in round {round}")
        if message.kind is Kind.JOIN:
            self._asked[round].add(sender)
            return self._give(round)
        self._ready[round].add(sender)
        return [*self._answer(round, sender), *self._finish()]

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Ask again."""
        return self._ask(now) if self._round is not None and not self._has_state else []

    def _donor(self, round: int) -> int | None:
        return absences.donor(self._job.absences, self._job.workers, round)

    def _ask(self, now: int) -> list[Action]:
        assert self._round is not None
        donor = self._donor(self._round)
        assert donor is not None, "an experiment is refused where nobody has the state"
        request = Message(Kind.JOIN, self._round).pack()
        return [SendMessage(self._peers[donor], request), SetTimer(_TIMER, now + _ASK_AGAIN)]

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
        others = [self._ready_message(w) for w in here if w != self._worker]
        return [CancelTimer(_TIMER), *others, *self._finish()]

    def _answer(self, round: int, newcomer: int) -> list[Action]:
        """Announce this worker again to one that has come back since, once."""
        if self._announced is None or self._announced < round:
            return []
        if (round, newcomer) in self._answered:
            return []
        self._answered.add((round, newcomer))
        return [Forget(self._peers[newcomer]), self._ready_message(newcomer)]

    def _ready_message(self, worker: int) -> SendMessage:
        assert self._announced is not None
        return SendMessage(self._peers[worker], Message(Kind.READY, self._announced).pack())

    def _finish(self) -> list[Action]:
        """Deliver the state once this worker has it and all newcomers are ready."""
        if self._round is None or not self._has_state:
            return []
        round = self._round
        newcomers = set(absences.joining(self._job.absences, round)) - {self._worker}
        if not newcomers <= self._ready[round]:
            return []
        del self._ready[round]
        self._round = None
        return [Deliver(round, self._state)]
