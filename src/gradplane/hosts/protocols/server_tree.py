"""A tree of parameter servers: one for each group of workers, one for each group of these groups,
and so on, and one above them, the root.

A server above workers decodes what they push and adds the vectors in the group's order (float32),
and one above servers adds their sums in theirs. Below the root it sends the sum to the next one,
encoded: by the workers' codec again unless the job names another (`job_codec.between_codec`), which
then has an error feedback of its own here. The root divides by the number of workers in the sum,
and encodes the answer once; the others pass its bytes down as they are. So in float32 a mean is
((x + x) + (x + x)) / N, and all workers have the same. Codes that are added as integers
(`pull = "sums"`) go up as their sums: no level decodes, and the result is that of one server.

A statistic goes up as the group's maximum, and the root's comes down.

Each server waits for a quorum of its children and then leaves the others out. A group's server
sends one partial a ticket. Where the root has answered before a group's quorum was in, that group's
is empty; where it came too late, the codec's state is that of before, so that what the records say
of a result, which workers are in it, is all that a replay needs.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from gradplane import codecs
from gradplane.hosts.config import JobConfig
from gradplane.hosts.group_tree import levels, workers_of
from gradplane.hosts.protocols.actions import Action, Peer, Record, SendMessage
from gradplane.hosts.protocols.job_codec import between_codec, parts, push_codec, reduce_seed
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.parameter_server import Children, PsServer, Ticket, Weights
from gradplane.hosts.protocols.results import TRANSIENT, Floats


def server(job: JobConfig, address: Peer, weights: Weights | None = None) -> PsServer:
    """Return the server of a job at an address: the only one, the root, or a group's.

    weights: of the job, where its server makes the steps: the only one or the root."""
    number, (group, _) = next(
        (number, place) for number, place in enumerate(job.servers.items()) if place[1] == address
    )
    below = len(levels(group))
    quorum = job.quorums[below] if job.quorums else len(group) if job.groups else job.quorum
    if below:
        peers = tuple(map(job.address, group))
        workers = tuple(sum(1 << w for w in workers_of(member)) for member in group)
        children = Children(peers, quorum, workers)
    else:
        children = Children.of_workers(job, group, quorum)
    if (above := job.above(group)) is None:
        return (SumsServer if below else PsServer)(job, weights, children)
    return (MiddleServer if below else GroupServer)(job, children, number, above)


def _between(job: JobConfig) -> tuple[codecs.Codec, ...]:
    """Return the codec of groups' sums in each round."""
    push = push_codec(job)
    return tuple(between_codec(job, carrier) for carrier in push.carriers or (push,))


def between_ns(job: JobConfig, codec: codecs.Codec) -> float:
    """Return the emulated time to encode or decode a value of a group's sum."""
    plain = job.coding.marked or all(part.name == "float32" for part in parts(codec))
    return 0.0 if plain else job.coding.codec_ns


class SumsServer(PsServer):
    """A server above those of groups, or above leaders of rings."""

    def __init__(self, job: JobConfig, weights: Weights | None, children: Children) -> None:
        super().__init__(job, weights, children)
        self._between = _between(job)
        self._push_ns = between_ns(job, self._between[0])

    def _who(self, child: int) -> str:
        peer = self._children.peers[child]
        return f"group {list(self._job.servers.values()).index(peer)}"

    def _members(self, message: Message, child: int) -> int:
        if not message.bitmap or message.bitmap & ~self._children.workers[child]:
            raise MessageError(
                f"{self._who(child)}, ticket {message.ticket}: a sum over workers"
                f" {message.bitmap:b} (bitmap), its group has {self._children.workers[child]:b}"
            )
        return message.bitmap

    def _taken(self, message: Message, ticket: Ticket) -> Floats:
        if self._sums is None:
            codec = self._between[message.ticket % len(self._between)]
            return codec.decode(message.body, message.n)
        lanes = self._carrier(message).lanes(message.n)
        if len(message.body) != lanes * self._sums.itemsize:
            raise codecs.CodecError(f"{len(message.body)} bytes of sums of {lanes} codes")
        if ticket.sums is None:
            ticket.sums = np.zeros(lanes, self._sums)
        ticket.sums += np.frombuffer(message.body, self._sums)
        return np.empty(0, np.float32)

    def _merged(self, message: Message, ticket: Ticket) -> Floats:
        return _total(ticket) / np.float32(ticket.members.bit_count())


class GroupServer(PsServer):
    """The server of a group, by its number. Gets messages of WORKER_KINDS, too: of the server
    above."""

    def __init__(self, job: JobConfig, children: Children, number: int, above: Peer) -> None:
        super().__init__(job, None, children)
        self._number, self._above, self._between = number, above, _between(job)
        self._pull_ns = between_ns(job, self._between[0])
        self._own = sum(self._children.workers)
        self._sent: dict[int, Any] = {}  # by ticket: the codec's state after the sum that was sent
        self._answered: set[int] = set()

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message from a child, or from the server above."""
        if peer != self._above:
            return super().receive(peer, data, now)
        message = parse(data)
        ticket = self._ticket(message)
        if message.kind is Kind.STAT_RESULT:
            ticket.stat_sent, ticket.shared = True, np.frombuffer(message.body, "<f4")
            return self._answer(message)
        return self._result(message, ticket)

    def _result(self, message: Message, ticket: Ticket) -> list[Action]:
        """Pass the root's answer down."""
        if message.ticket in self._answered:
            raise MessageError(f"ticket {message.ticket}: PULL again")
        self._answered.add(message.ticket)
        state = self._sent.pop(message.ticket, None)
        if message.bitmap & self._own and state is not None:
            self._states[self._place(message.ticket, ticket)] = state
        actions = self._answer(message)
        if not ticket.closed:
            ticket.closed = True
            actions.append(self._partial(message.ticket, ticket, 0, b""))
        ticket.vectors, ticket.sums = {}, None
        self._forget(message.ticket, ticket)
        return actions

    def _ended(self, ticket: Ticket) -> bool:
        return False  # the root's answer may be under way

    def _vector(self, message: Message, child: int, ticket: Ticket, now: int) -> list[Action]:
        actions = super()._vector(message, child, ticket, now)
        self._forget(message.ticket, ticket)
        return actions

    def _forget(self, number: int, ticket: Ticket) -> None:
        """Forget a ticket that has its answer and of which all workers were heard."""
        if number in self._answered and super()._ended(ticket):
            self._answered.remove(number)
            del self._tickets[number]

    def _agreed(self, message: Message, ticket: Ticket, body: bytes) -> list[Action]:
        ticket.stat_sent, ticket.shared = True, None  # the root's comes down
        who = {"count": ticket.stat_members.bit_count(), "bitmap": ticket.stat_members}
        stat = Message(Kind.STAT, message.ticket, message.n, message.tensor, **who, body=body)
        return [SendMessage(self._above, stat.pack())]

    def _close(self, message: Message, ticket: Ticket, now: int) -> list[Action]:
        """Send the group's sum up: its quorum is in, and the time to add has passed."""
        parts = self._parts(message, ticket, now)
        if message.ticket in self._answered:
            return [*parts, self._partial(message.ticket, ticket, 0, b"")]
        if ticket.sums is not None:
            body = ticket.sums.tobytes()
        else:
            body = self._encoded(message.ticket, ticket)
        ticket.vectors, ticket.sums = {}, None
        return [*parts, self._partial(message.ticket, ticket, ticket.members, body)]

    def _parts(self, message: Message, ticket: Ticket, now: int) -> list[Record]:
        group = {"workers": self._own.bit_count()}  # those that wait for it
        return [
            Record(record.kind, record.fields | group)
            for record in super()._parts(message, ticket, now)
        ]

    def _encoded(self, number: int, ticket: Ticket) -> bytes:
        place = self._place(number, ticket)
        codec = self._between[place[1]]
        state = self._states.get(place)
        state = codec.start(ticket.n) if state is None else state
        seed = codecs.key(reduce_seed(self._job, number), "group", self._number)
        data, state = codec.encode(_total(ticket), None, seed, state, self._job.workers)
        if ticket.tensor < TRANSIENT:
            self._sent[number] = state
        return data

    def _place(self, number: int, ticket: Ticket) -> tuple[int, int]:
        return ticket.tensor, number % len(self._between)

    def _partial(self, number: int, ticket: Ticket, members: int, body: bytes) -> Action:
        """Return the sending of the group's sum, over the workers in the bitmap; 0: none."""
        push = Message(
            *(Kind.PUSH, number, ticket.n, ticket.tensor, members.bit_count(), members, body)
        )
        if self._job.coding.marked:
            return SendMessage(self._above, replace(push, body=b"").pack(), body)
        return SendMessage(self._above, push.pack())


class MiddleServer(SumsServer, GroupServer):
    """The server of a group of groups: sums come from below, and their sum goes up."""

    def __init__(self, job: JobConfig, children: Children, number: int, above: Peer) -> None:
        GroupServer.__init__(self, job, children, number, above)
        self._push_ns = self._pull_ns


def _total(ticket: Ticket) -> Floats:
    """Return the sum of a ticket's vectors, added in the children's order."""
    total = np.zeros(ticket.n, np.float32)
    for child in sorted(ticket.vectors):
        total += ticket.vectors[child]
    return total
