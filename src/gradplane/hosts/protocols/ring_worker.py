"""INCEPTIONN's gradient-centric ring (MICRO 2018, section IV, Algorithm 1): sums without a server.

The vector is cut into as many blocks as there are workers. Block b starts at worker b; each worker
adds its own values to what its left neighbour sends and passes the partial sum to its right
neighbour. After n - 1 steps worker b - 1, the block's owner, has the whole sum, which travels to
all others in n - 1 more steps. Every worker sends and receives 2 (n - 1) / n of the vector. Where
each worker needs only its own part (SCATTERED), the ring ends with the first n - 1 steps. A block
is forwarded as soon as it is added: workers do not wait for each other's steps, and several reduces
overlap.

The order of additions then differs by block: ((x_b + x_(b+1)) + ...) in float32. In the workers'
order (`sum_order`) all blocks start at worker 0 and are whole at the last, ((x_0 + x_1) + ...). The
blocks are finer, and follow each other over the same 2 n - 2 hops. As many bytes travel in all, but
up to two vectors over a link, in place of 2 (n - 1) / n, and where each worker needs only its own
part up to 2 - 2 / n, in place of 1 - 1 / n.

A transfer is one message of a Stream, so each arrives whole, once. The owner encodes the whole sum
once, all workers forward those bytes, and the owner too uses their decoded values; where the
network may compress, the owner first truncates the sum to the bound, which the network then cannot
change. So all have the same sums, bit for bit.

The error of lossy hops: a block is encoded at n - 1 partial sums and once whole, so if the error of
an encoding is below e, a sum is off by less than n e (and float32's rounding) and the mean by
less than e: the bound that a server has, which adds n vectors encoded once. The network's
truncation is towards zero, so the mean is a little too small. Measured with values normal(0, 0.01),
bound e = 2^-10 and every packet compressed, the mean's absolute error in units of e, average and
largest of 20,000 values:

    workers                   2             4             8             16
    ring                      0.124  0.91   0.100  0.56   0.078  0.35   0.060  0.24
    server, WA with marks     0.110  0.91   0.080  0.68   0.058  0.36   0.042  0.23
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gradplane.codecs import CodecError
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import Action, Deliver, Peer, Record, SendMessage
from gradplane.hosts.protocols.compute_time import ComputeQueue
from gradplane.hosts.protocols.device_vector import (
    coder_of,
    decoder_of,
    digest_of,
    divided,
    zeros_of,
)
from gradplane.hosts.protocols.job_codec import reduce_seed
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.phases import Watch, unwatched
from gradplane.hosts.protocols.results import (
    SCATTERED,
    TRANSIENT,
    Floats,
    ReduceError,
    Summed,
    checked_vector,
)
from gradplane.hosts.protocols.ring_plan import Blocks, RingPlan
from gradplane.hosts.wire.marked_values import truncated


@dataclass
class RingReduce:
    """A reduce in flight at a member of a ring: `sums` has what is whole, `sent` what was added."""

    ticket: int
    tensor: int
    vector: Floats
    sums: Floats
    blocks: Blocks
    missing: set[tuple[Kind, int]]  # messages to come: kind and block
    left: int  # blocks whose last step at this worker is still to come
    sent: dict[int, bytes] = field(default_factory=dict)  # by block: as this worker encoded it
    codec_ns: int = 0
    reduce_ns: int = 0


class RingWorker:
    """One worker's reduces, several in flight at once.

    Actions: SendMessage, SetTimer, Deliver(ticket, Summed), Record (arrival). Gets messages of
    messages.RING_KINDS; later tickets have higher numbers.

    A ring that is a part of a larger one (ring_groups.py) shares its worker's `work`, and says what
    follows in the place of Deliver (`then`) and of each whole block that comes past (`also`).
    """

    def __init__(
        self,
        plan: RingPlan,
        place: int,
        work: ComputeQueue | None = None,
        then: "Callable[[RingReduce, int], list[Action]] | None" = None,
        also: Callable[[Message], list[Action]] = lambda message: [],
    ) -> None:
        self._plan, self._place, self._worker = plan, place, plan.members[place]
        self.watch: Watch = unwatched
        n = len(plan.peers)
        self._left, self._right = (place - 1) % n, (place + 1) % n
        self._reduces: dict[int, RingReduce] = {}
        self._states: dict[tuple[int, int, int], Any] = {}  # the codec's, by tensor, n and block
        self._newest = -1  # ticket started
        self._early: defaultdict[int, list[Message]] = defaultdict(list)
        self._work = work or ComputeQueue()
        self._then, self._also = then or self._deliver, also
        self._scatters = then is None and plan.codec.unit == 1  # else parts are not blocks

    def save(self) -> Any:
        """Return what later reduces need of the earlier ones; none is in flight."""
        return self._states

    def restore(self, saved: Any) -> None:
        """Go on where save() was called, before the first reduce."""
        self._states = saved

    def reduce(self, ticket: int, vector: Floats, now: int, tensor: int = 0) -> list[Action]:
        """Start reducing finite float32[n]. All workers use the same tickets, in the same order,
        equal n and tensor.

        `tensor` says which error feedback is used; a tensor has one reduce in flight at a time.
        Raises ReduceError where these rules break, also by the left neighbour.
        """
        vector = checked_vector(vector, self._worker, ticket)
        self._check(ticket, tensor)
        reduce = self._begin(ticket, tensor, vector)
        actions = self._own_blocks(reduce, now)
        for message in self._early.pop(ticket, []):  # the left neighbour did not wait for us
            try:
                actions += self._take(message, reduce, now)
            except MessageError as error:
                raise ReduceError(f"worker {self._worker}: {error}") from error
        return actions

    def receive(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message from the left neighbour. MessageError if it is malformed, not expected or
        from another peer.
        """
        message = parse(data)
        left = self._plan.peers[self._left]
        if peer != left or self._left == self._place:
            raise MessageError(f"{_text(message)}: from {peer}, the left neighbour is {left}")
        reduce = self._reduces.get(message.ticket)
        if reduce is not None:
            return self._take(message, reduce, now)
        if message.ticket <= self._newest:
            raise MessageError(f"{_text(message)}: that ticket is done")
        if message.kind is not Kind.PARTIAL_BLOCK:
            raise MessageError(f"{_text(message)}: not without this worker, which has not begun")
        self._early[message.ticket].append(message)
        return []

    def timer(self, key: Hashable, now: int) -> list[Action]:
        """Handle a timer that ran out: the computation it stands for is done."""
        return self._work.timer(now)

    def missing(self, ticket: int) -> list[str]:
        """Name the messages of the left neighbour that a reduce in flight waits for, for people."""
        reduce = self._reduces.get(ticket)
        return sorted(f"{kind.name} {block}" for kind, block in reduce.missing) if reduce else []

    # The steps of Algorithm 1

    def _check(self, ticket: int, tensor: int) -> None:
        if ticket <= self._newest or any(r.tensor == tensor for r in self._reduces.values()):
            raise ReduceError(
                f"worker {self._worker}, ticket {ticket}, tensor {tensor}: tickets must rise "
                f"(the last is {self._newest}) and a tensor's last reduce be done: "
                "wait for its result"
            )
        self._newest = ticket

    def _begin(self, ticket: int, tensor: int, vector: Floats) -> RingReduce:
        here = self._place
        blocks = self._plan.cut(vector.size, self._scatters and tensor >= SCATTERED)
        numbers = range(blocks.number)
        partial = {(Kind.PARTIAL_BLOCK, b) for b in numbers if blocks.start(b) != here}
        whole = {(Kind.WHOLE_BLOCK, b) for b in numbers if blocks.gets(b, here)}
        sums = zeros_of(vector, vector.size)
        reduce = RingReduce(ticket, tensor, vector, sums, blocks, partial | whole, blocks.number)
        self._reduces[ticket] = reduce
        return reduce

    def _own_blocks(self, reduce: RingReduce, now: int) -> list[Action]:
        blocks = reduce.blocks
        own = [b for b in range(blocks.number) if blocks.start(b) == self._place]
        return [action for block in own for action in self._own_block(block, reduce, now)]

    def _own_block(self, block: int, reduce: RingReduce, now: int) -> list[Action]:
        x = reduce.vector[reduce.blocks.span(block)]
        reduce.codec_ns += (ns := self._codec_ns(x))
        return self._work.do(ns, lambda at: self._added(block, x, reduce, at), now)

    def _take(self, message: Message, reduce: RingReduce, now: int) -> list[Action]:
        """Take a message for a reduce in flight; it is checked before it takes emulated time."""
        self.watch(reduce.ticket, "decode")
        x = self._checked(message, reduce)
        block = message.count
        reduce.missing.remove((message.kind, block))
        decode = self._codec_ns(x)
        if message.kind is Kind.WHOLE_BLOCK:
            reduce.codec_ns += decode
            then = self._work.do(decode, lambda at: self._whole(block, x, reduce, at), now)
            return [*self._pass_on(message, reduce), *then]
        add, encode = round(self._plan.reduce_ns * x.size), self._codec_ns(x)
        reduce.codec_ns += decode + encode
        reduce.reduce_ns += add
        with np.errstate(over="ignore"):  # refused when it is encoded
            total = x + reduce.vector[reduce.blocks.span(block)]
        done = decode + add + encode
        return self._work.do(done, lambda at: self._added(block, total, reduce, at), now)

    def _added(self, block: int, total: Floats, reduce: RingReduce, now: int) -> list[Action]:
        """Forward a block's sum, to which this worker's values were added, to the next worker."""
        blocks, here = reduce.blocks, self._place
        whole = blocks.owner(block) == here
        if whole and blocks.scattered and blocks.part(block) == here:
            return self._whole(block, total, reduce, now)
        self.watch(reduce.ticket, "encode")
        body = self._encode(block, total, whole, reduce)
        kind = Kind.WHOLE_BLOCK if whole else Kind.PARTIAL_BLOCK
        bitmap = blocks.bitmap(block, here)
        n, tensor = reduce.vector.size, reduce.tensor
        message = Message(kind, reduce.ticket, n, tensor, block, bitmap, body)
        if not whole:
            if not blocks.gets(block, here):
                return [self._send(message), *self._finished(reduce, now)]
            self.watch(reduce.ticket, "network")
            return [self._send(message)]
        self.watch(reduce.ticket, "decode")
        sums = decoder_of(self._plan.codec, total).decode(body, total.size)
        return [*self._pass_on(message, reduce), *self._whole(block, sums, reduce, now)]

    def _pass_on(self, message: Message, reduce: RingReduce) -> list[Action]:
        """Forward a whole block to the right, where that neighbour gets it."""
        on = [self._send(message)] if reduce.blocks.gets(message.count, self._right) else []
        return [*on, *self._also(message)]

    def _whole(self, block: int, sums: Floats, reduce: RingReduce, now: int) -> list[Action]:
        reduce.sums[reduce.blocks.span(block)] = sums
        return self._finished(reduce, now)

    def _finished(self, reduce: RingReduce, now: int) -> list[Action]:
        """Count a block's last step at this worker; go on after that of the last block."""
        reduce.left -= 1
        if not reduce.left:
            del self._reduces[reduce.ticket]
            return self._then(reduce, now)
        self.watch(reduce.ticket, "network")
        return []

    def _deliver(self, reduce: RingReduce, now: int) -> list[Action]:
        return delivered(self._plan, self._worker, len(self._plan.peers), [reduce], now)

    # Messages

    def _checked(self, message: Message, reduce: RingReduce) -> Floats:
        """Return the block's values; MessageError if the message does not fit the reduce."""
        block, n = message.count, reduce.vector.size
        if message.n != n or message.tensor != reduce.tensor:
            raise MessageError(
                f"{_text(message)}: {message.n} values of tensor {message.tensor}, here it is "
                f"{n} of tensor {reduce.tensor}: all workers reduce the same"
            )
        if (message.kind, block) not in reduce.missing:
            raise MessageError(f"{_text(message)}: not expected, or not again")
        whole = (1 << len(self._plan.peers)) - 1
        partial = message.kind is Kind.PARTIAL_BLOCK
        expected = reduce.blocks.bitmap(block, self._left) if partial else whole
        if message.bitmap != expected:
            raise MessageError(
                f"{_text(message)}: sum over workers {message.bitmap:b} (bitmap), not {expected:b}"
            )
        span = reduce.blocks.span(block)
        try:
            codec = decoder_of(self._plan.codec, reduce.vector)
            values: Floats = codec.decode(message.body, span.stop - span.start)
            return values
        except CodecError as error:
            raise MessageError(f"{_text(message)}: {error}") from error

    def _encode(self, block: int, x: Floats, whole: bool, reduce: RingReduce) -> bytes:
        key = reduce.tensor, reduce.vector.size, block
        state = self._states[key] if key in self._states else self._plan.codec.start(x.size)
        seed = reduce_seed(self._plan, reduce.ticket, self._plan.first_part + block)
        try:
            if whole and self._plan.bound is not None:
                x = truncated(x, self._plan.bound)
            codec = coder_of(self._plan.codec, x, [state])
            body: bytes
            body, state = codec.encode(x, None, seed, state, self._worker)
        except CodecError as error:
            raise ReduceError(
                f"worker {self._worker}, ticket {reduce.ticket}, block {block}: the sum: {error}"
            ) from error
        reduce.sent[block] = body
        if reduce.tensor < TRANSIENT and state is not None:
            self._states[key] = state
        return body

    def _send(self, message: Message) -> Action:
        return block_message(self._plan.peers[self._right], message, self._plan.bound, message.kind)

    def _codec_ns(self, x: Floats) -> int:
        return round(self._plan.codec_ns * x.size)


def block_message(peer: Peer, message: Message, bound: int | None, kind: Kind) -> Action:
    """Return the sending of a block; with a bound, the network may compress its values."""
    message = replace(message, kind=kind)
    if bound is None:
        return SendMessage(peer, message.pack())
    return SendMessage(peer, replace(message, body=b"").pack(), message.body)


def delivered(
    plan: RingPlan, worker: int, workers: int, parts: Sequence[RingReduce], now: int
) -> list[Action]:
    """Return the result of a worker's reduce, of which it took the parts, and its record.

    parts: in the rings of the job that it is a member of, the last one with the whole sums."""
    first, sums = parts[0], parts[-1].sums
    result = Summed(
        mean=divided(sums, np.array([workers], np.float32)),
        counts=np.array([workers], np.int64),
        missed=0,
        gradient=digest_of(first.vector),
        codes=digest(*(part.sent[block] for part in parts for block in sorted(part.sent))),
        sums=digest_of(sums),
        codec_ns=sum(part.codec_ns for part in parts),
        reduce_ns=sum(part.reduce_ns for part in parts),
        total=sums,
    )
    who = {"job": plan.number, "ticket": first.ticket, "worker": worker}
    place = {"slot": None, "use": None, "result": "in time", "count": workers}
    bitmap = {"bitmap": f"{(1 << workers) - 1:016x}", "digest": result.sums}
    more = {"attempts": 1, "notices": 0, "at": now}
    return [Record("arrival", who | place | bitmap | more), Deliver(first.ticket, result)]


def _text(message: Message) -> str:
    return f"ticket {message.ticket}, {message.kind.name} {message.count}"
