"""The software parameter server and its workers: a host sums the vectors.

If the codec has a statistic, workers send it first and get the maximum back; then they send their
encoded vectors, the server decodes each and merges them in worker order (Codec.merge: mostly their
mean, added as float32), and answers all workers with it, encoded by the pull codec; or it holds the
weights, makes the step itself and answers with them, at a precision that a policy chooses, or with
their change. Where the codes may be summed and the answers are "sums", it looks the codes up and
adds them in integers instead, 8 or 16 bits wide, and the workers decode the sum: the same sums as a
switch's (THC, the software parameter server). Statistics and vectors are complete at the quorum;
later workers are ignored and get the same answers. Messages travel by a Stream: SendMessage out,
receive() in. In a marked job the network may compress the vectors on their way to the server; the
answers are never marked.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gradplane import codecs
from gradplane.hosts.config import JobConfig
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import Action, Deliver, Peer, Record, SendMessage
from gradplane.hosts.protocols.compute_time import ComputeQueue
from gradplane.hosts.protocols.device_vector import coder_of, decoder_of, digest_of, zeros_of
from gradplane.hosts.protocols.job_codec import (
    answers_sums,
    codec_ns,
    pull_codec,
    push_codec,
    reduce_seed,
    sums_type,
)
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.phases import Watch, unwatched
from gradplane.hosts.protocols.results import (
    SCATTERED,
    TRANSIENT,
    Floats,
    Reduced,
    check_free,
    checked_vector,
    own_part,
)

_NO_VALUES: Floats = np.empty(0, np.float32)


def scatters(job: JobConfig, message: Message) -> bool:
    """Return whether each worker is answered with its own part of a mean (SCATTERED): where the
    part's bytes depend on nothing else."""
    return (
        message.tensor >= SCATTERED
        and message.n % job.workers == 0
        and not (job.groups or answers_sums(job) or push_codec(job).carriers)
        and pull_codec(job).start(1) is None
    )


class Weights(Protocol):
    """The weights of a server that holds them, and the optimizer's step."""

    parameters: Floats

    def step(self, mean: Floats) -> Floats:
        """Apply a mean gradient, float32[n]; return what to answer: the parameters after it, or
        their change."""


@dataclass
class Pending:
    """A reduce in flight at a worker; push, pull: the codecs, or what takes their places on the
    vector's device."""

    vector: Floats
    tensor: int
    push: Any
    pull: Any
    digests: tuple[str, str] | None = None  # of the vector and of its codes, once pushed
    shared: Floats | None = None

    def pushed(self, codes: bytes) -> None:
        """Note that these codes are pushed."""
        self.digests = digest_of(self.vector), digest(codes)


class PsWorker:
    """One worker's reduces, several in flight at once.

    Actions: SendMessage, Deliver(ticket, Reduced), Record (arrival). Gets messages of WORKER_KINDS.
    push: the codec of what it pushes, None: the job's.
    """

    def __init__(self, job: JobConfig, worker: int, push: codecs.Codec | None = None) -> None:
        server = job.above(worker)
        assert server is not None
        self._job, self._worker = job, worker
        self.watch: Watch = unwatched
        self._server = server
        self._push, self._pull = push or push_codec(job), pull_codec(job)
        self._sums = sums_type(self._push, job.most) if answers_sums(job) else None
        self._reduces: dict[int, Pending] = {}
        self._states: dict[int, Any] = {}
        self._newest = -1  # ticket started
        self._early: defaultdict[int, list[Message]] = defaultdict(list)

    def save(self) -> Any:
        """Return what later reduces need of the earlier ones; none is in flight."""
        return self._states

    def restore(self, saved: Any) -> None:
        """Go on where save() was called, before the first reduce."""
        self._states = saved

    def reduce(self, ticket: int, vector: Floats, now: int, tensor: int = 0) -> list[Action]:
        """Start a reduce as SwitchWorker.reduce() does; later tickets have higher numbers."""
        vector = checked_vector(vector, self._worker, ticket)
        check_free(self._worker, ticket, tensor, self._reduces)
        self._states.setdefault(tensor, self._push.start(vector.size))
        pull = decoder_of(self._pull, vector)
        self._reduces[ticket] = reduce = Pending(vector, tensor, self._push, pull)
        self._newest = max(self._newest, ticket)
        actions = self._first(ticket, reduce, now)
        for message in self._early.pop(ticket, []):  # the others' quorum did not wait for us
            actions += self._answered(message, reduce, now)
        return actions

    def _first(self, ticket: int, reduce: Pending, now: int) -> list[Action]:
        """Send the statistic or, if the codec has none, the codes."""
        n, tensor = reduce.vector.size, reduce.tensor
        state = self._states[tensor]
        reduce.push = coder_of(self._push, reduce.vector, [state])
        stat = reduce.push.local(reduce.vector, state)
        if stat is None:
            return self._send_codes(ticket, reduce, None)
        body = stat.astype("<f4").tobytes()
        return [self._send(Message(Kind.STAT, ticket, n, tensor, body=body))]

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message from the server. MessageError if it is malformed or from another peer."""
        message = parse(data)
        if peer != self._server:
            raise MessageError(f"{message.kind.name} from {peer}, the server is {self._server}")
        reduce = self._reduces.get(message.ticket)
        if reduce is not None:
            return self._answered(message, reduce, now)
        if message.ticket > self._newest:
            self._early[message.ticket].append(message)
        return []

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Refuse: it sets no timers."""
        raise AssertionError(f"timer {key} of a server's worker")

    def missing(self, ticket: int) -> list[str]:
        """Name the message of the server that a reduce in flight waits for, for people."""
        reduce = self._reduces.get(ticket)
        kind = Kind.PULL if reduce is None or reduce.digests is not None else Kind.STAT_RESULT
        return [] if reduce is None else [kind.name]

    def _answered(self, message: Message, reduce: Pending, now: int) -> list[Action]:
        if message.kind is Kind.STAT_RESULT and reduce.digests is None:
            codes = self._send_codes(message.ticket, reduce, _floats(message))
            return [self._record("norm", message, now, partition=0, norm=None), *codes]
        if message.kind is Kind.PULL and reduce.digests is not None:
            return self._mean(message, reduce, reduce.digests, now)
        raise MessageError(f"ticket {message.ticket}: {message.kind.name} out of turn")

    def _send_codes(self, ticket: int, reduce: Pending, shared: Floats | None) -> list[Action]:
        seed, state = reduce_seed(self._job, ticket), self._states[reduce.tensor]
        reduce.shared = shared
        self.watch(ticket, "encode")
        codes, self._states[reduce.tensor] = reduce.push.encode(
            reduce.vector, shared, seed, state, self._worker
        )
        self.watch(ticket, "network")
        n = reduce.vector.size
        reduce.pushed(codes)
        return [self._send(Message(Kind.PUSH, ticket, n, reduce.tensor, body=codes))]

    def _mean(
        self, message: Message, reduce: Pending, digests: tuple[str, str], now: int
    ) -> list[Action]:
        del self._reduces[message.ticket]
        if reduce.tensor >= TRANSIENT:
            del self._states[reduce.tensor]
        self.watch(message.ticket, "decode")
        gradient, codes = digests
        result = Reduced(
            mean=self._decoded(message, reduce),
            counts=np.array([message.count], np.int64),
            missed=0,
            gradient=gradient,
            codes=codes,
            sums=digest(message.body),
            precision=self._precision(message.body),
        )
        more = {"count": message.count, "digest": result.sums, "attempts": 1, "notices": 0}
        return [self._record("arrival", message, now, **more), Deliver(message.ticket, result)]

    def _decoded(self, message: Message, reduce: Pending) -> Floats:
        """Return the mean that an answer stands for."""
        n = reduce.vector.size
        mean: Floats
        if scatters(self._job, message):
            mean, own = zeros_of(reduce.vector, n), own_part(n, self._worker, self._job.workers)
            mean[own] = reduce.pull.decode(message.body, own.stop - own.start)
            return mean
        if self._sums is None:
            mean = reduce.pull.decode(message.body, n)
            return mean
        lanes = self._push.lanes(n) * self._sums.itemsize
        if len(message.body) != lanes:
            raise MessageError(f"PULL: {len(message.body)} bytes of sums, expected {lanes}")
        sums, seed = np.frombuffer(message.body, self._sums), reduce_seed(self._job, message.ticket)
        try:
            mean = reduce.push.decode_sum(sums, n, message.count, reduce.shared, seed)
        except codecs.CodecError as error:
            raise MessageError(f"ticket {message.ticket}: {error}") from error
        return mean

    def _precision(self, body: bytes) -> tuple[int, ...]:
        if isinstance(self._pull, codecs.AdaptiveADT):
            return self._pull.precision(body)
        return ()

    def _record(self, kind: str, message: Message, now: int, **more: Any) -> Record:
        """Return the log line of an answer, with the workers that it includes."""
        who = {"job": self._job.number, "ticket": message.ticket, "worker": self._worker}
        place = {"slot": None, "use": None, "result": "in time"}
        bitmap = {"bitmap": f"{message.bitmap:016x}", "at": now}
        return Record(kind, who | place | more | bitmap)

    def _send(self, message: Message) -> Action:
        if self._job.coding.marked and message.kind is Kind.PUSH:
            return SendMessage(self._server, replace(message, body=b"").pack(), message.body)
        return SendMessage(self._server, message.pack())


@dataclass(frozen=True)
class Children:
    """The senders to a server: addresses, how many of them it waits for, the workers of each."""

    peers: tuple[Peer, ...]
    quorum: int
    workers: tuple[int, ...]  # bitmaps

    @classmethod
    def of_workers(cls, job: JobConfig, workers: Sequence[int], quorum: int) -> "Children":
        """Return these workers as children."""
        peers = tuple(job.addresses.stream(w) for w in workers)
        return cls(peers, quorum, tuple(1 << w for w in workers))


@dataclass
class Ticket:
    """A reduce at a server: the messages so far by child, and whether they were answered."""

    n: int
    tensor: int = 0
    stats: dict[int, Floats] = field(default_factory=dict)
    stat_members: int = 0  # bitmap of the workers in the statistic
    stat_sent: bool = False
    shared: Floats | None = None  # the statistic that workers got
    sums: npt.NDArray[Any] | None = None  # of codes, where they are not decoded
    vectors: dict[int, Floats] = field(default_factory=dict)
    members: int = 0  # bitmap of the workers in the vectors
    closed: bool = False
    heard: set[int] = field(default_factory=set)
    codec_ns: int = 0
    reduce_ns: int = 0


class PsServer:
    """The server of one job, to which all workers push.

    Actions: SendMessage; SetTimer and Record (parts) where the job's codec_ns or reduce_ns is not
    0. Gets messages of SERVER_KINDS. Holds at most a quorum of vectors a ticket, besides those
    being decoded; where it answers with sums, one array of them. `weights` holds a job's weights if
    the server makes its steps. Under a codec of several rounds each is a ticket of its own: see
    several_rounds.py. The servers of a tree (server_tree.py) derive from it.
    """

    def __init__(
        self, job: JobConfig, weights: Weights | None = None, children: Children | None = None
    ) -> None:
        self._job, self._weights = job, weights
        push = push_codec(job)
        self._carriers, self._pull = push.carriers or (push,), pull_codec(job)
        self._sums = sums_type(push, job.most) if answers_sums(job) else None
        self._children = children or Children.of_workers(job, range(job.workers), job.quorum)
        self._tickets: dict[int, Ticket] = {}
        self._states: dict[tuple[int, int], Any] = {}  # the pull codec's, by tensor and round
        self._push_ns, self._pull_ns = (
            codec_ns(job, job.coding.codec),
            codec_ns(job, job.coding.pull_codec),
        )
        self._work = ComputeQueue()

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Handle a timer that ran out: the computation it stands for is done."""
        return self._work.timer(now)

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message from a child. MessageError if it is malformed or from another peer."""
        message = parse(data)
        if peer not in self._children.peers:
            raise MessageError(
                f"{message.kind.name} from {peer}, which is not a worker of this job"
            )
        child = self._children.peers.index(peer)
        ticket = self._ticket(message)
        if ticket.n != message.n:
            raise MessageError(
                f"{self._who(child)}, ticket {message.ticket}: {message.n} values, "
                f"others sent {ticket.n}"
            )
        if message.kind is Kind.STAT:
            return self._stat(message, child, ticket)
        return self._vector(message, child, ticket, now)

    def _ticket(self, message: Message) -> Ticket:
        return self._tickets.setdefault(message.ticket, Ticket(message.n, message.tensor))

    def _who(self, child: int) -> str:
        workers = self._children.workers[child]
        return f"worker {workers.bit_length() - 1}"

    def _members(self, message: Message, child: int) -> int:
        """Return the bitmap of the workers in a child's message."""
        return self._children.workers[child]

    def _stat(self, message: Message, child: int, ticket: Ticket) -> list[Action]:
        if ticket.stat_sent:
            return []
        ticket.stats[child] = _floats(message)
        ticket.stat_members |= self._members(message, child)
        if len(ticket.stats) < self._children.quorum:
            return []
        ticket.stat_sent = True
        ticket.shared = self._carrier(message).combine(list(ticket.stats.values()))
        return self._agreed(message, ticket, ticket.shared.astype("<f4").tobytes())

    def _agreed(self, message: Message, ticket: Ticket, body: bytes) -> list[Action]:
        """Answer: the statistics of a quorum are in."""
        members = ticket.stat_members
        who = {"count": members.bit_count(), "bitmap": members}
        found = Message(
            Kind.STAT_RESULT, message.ticket, message.n, message.tensor, **who, body=body
        )
        return self._answer(found)

    def _vector(self, message: Message, child: int, ticket: Ticket, now: int) -> list[Action]:
        actions = [] if ticket.closed else self._add(message, child, ticket, now)
        ticket.heard.add(child)
        if self._ended(ticket):
            del self._tickets[message.ticket]
        return actions

    def _ended(self, ticket: Ticket) -> bool:
        """Return whether nothing more comes for a ticket."""
        return len(ticket.heard) == len(self._children.peers)

    def _add(self, message: Message, child: int, ticket: Ticket, now: int) -> list[Action]:
        if self._sums is not None and child in ticket.vectors:
            return []  # its codes are in the sum
        try:
            vector = self._taken(message, ticket)
        except codecs.CodecError as error:
            where = f"{self._who(child)}, ticket {message.ticket}"
            raise MessageError(f"{where}: {error}") from error
        decode, add = round(self._push_ns * message.n) if self._sums is None else 0, 0
        if ticket.vectors:
            add = round(self._job.coding.reduce_ns * message.n)
        ticket.vectors[child] = vector
        ticket.members |= self._members(message, child)
        ticket.codec_ns += decode
        ticket.reduce_ns += add
        if len(ticket.vectors) < self._children.quorum:
            return self._work.do(decode + add, lambda at: [], now)
        ticket.closed = True
        encode = round(self._pull_ns * message.n) if self._sums is None else 0
        ticket.codec_ns += encode
        ns = decode + add + encode
        return self._work.do(ns, lambda at: self._close(message, ticket, at), now)

    def _taken(self, message: Message, ticket: Ticket) -> Floats:
        """Return a pushed vector; or add its codes to the ticket's sums, and return nothing."""
        carrier = self._carrier(message)
        if self._sums is None:
            return carrier.decode(message.body, message.n)
        if ticket.sums is None:
            ticket.sums = np.zeros(carrier.lanes(message.n), self._sums)
        carrier.add_codes(message.body, message.n, ticket.shared, ticket.sums)
        return _NO_VALUES

    def _close(self, message: Message, ticket: Ticket, now: int) -> list[Action]:
        """Answer: the vectors of a quorum are in, and the time to add them has passed."""
        sums, ticket.sums = ticket.sums, None
        count, bitmap = ticket.members.bit_count(), ticket.members
        mean = Message(Kind.PULL, message.ticket, message.n, message.tensor, count, bitmap)
        if scatters(self._job, message):
            answers = self._scattered(mean, self._merged(message, ticket))
        else:
            body = sums.tobytes() if sums is not None else self._encode_mean(message, ticket)
            answers = self._answer(replace(mean, body=body))
        ticket.vectors = {}
        return [*self._parts(message, ticket, now), *answers]

    def _scattered(self, message: Message, mean: Floats) -> list[Action]:
        """Answer each worker with its own part of a mean."""
        seed = codecs.key(reduce_seed(self._job, message.ticket), "pull")
        answers: list[Action] = []
        for worker, peer in enumerate(self._children.peers):
            part = mean[own_part(message.n, worker, self._job.workers)]
            body, _ = self._pull.encode(part, seed=seed)
            answers.append(SendMessage(peer, replace(message, body=body).pack()))
        return answers

    def _parts(self, message: Message, ticket: Ticket, now: int) -> list[Record]:
        if not self._job.coding.codec_ns and not self._job.coding.reduce_ns:
            return []
        spent = {"codec": ticket.codec_ns, "reduce": ticket.reduce_ns, "at": now}
        number = message.ticket // len(self._carriers)
        return [Record("parts", {"job": self._job.number, "ticket": number} | spent)]

    def _carrier(self, message: Message) -> codecs.Codec:
        """Return the codec of what workers push in the message's round."""
        return self._carriers[message.ticket % len(self._carriers)]

    def _merged(self, message: Message, ticket: Ticket) -> Floats:
        """Return what the vectors together stand for, in the children's order."""
        vectors = [ticket.vectors[child] for child in sorted(ticket.vectors)]
        return self._carrier(message).merge(vectors)

    def _encode_mean(self, message: Message, ticket: Ticket) -> bytes:
        answer = self._merged(message, ticket)
        place = message.tensor, message.ticket % len(self._carriers)
        state = self._states.get(place)
        if state is None:
            state = self._first_state(message.n)
        if self._weights is not None:
            answer = self._weights.step(answer)
        seed = codecs.key(reduce_seed(self._job, message.ticket), "pull")
        data, state = self._pull.encode(answer, seed=seed, state=state)
        if message.tensor < TRANSIENT:
            self._states[place] = state
        return data

    def _first_state(self, n: int) -> Any:
        """Return the pull codec's state; a policy has seen the weights that workers begin with."""
        state = self._pull.start(n)
        if self._weights is not None and self._job.coding.pulls_weights:
            _, state = self._pull.encode(self._weights.parameters, state=state)
        return state

    def _answer(self, message: Message) -> list[Action]:
        data = message.pack()
        return [SendMessage(peer, data) for peer in self._children.peers]


def _floats(message: Message) -> Floats:
    if len(message.body) % 4:
        raise MessageError(f"{message.kind.name}: {len(message.body)} bytes are not float32 values")
    return np.frombuffer(message.body, "<f4").astype(np.float32)
