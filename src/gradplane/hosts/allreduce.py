"""Sums over the processes of a ring, as MPI's allreduce, for user programs on the hosts.

    with Ring(rank, ["10.0.0.1", "10.0.0.2", "10.0.0.3"]) as ring:
        total = ring.allreduce(gradient)
        total = ring.allreduce_compressed(gradient, bound=10)

Every process passes the same list of addresses and its index in it, and makes the same calls, in
the same order, with arrays of the same size. Processes may start in any order. Datagrams go to UDP
port 18257, where the P4 program tos_compress.p4 knows that 16 bytes of message header precede the
values; an address may name another port, for which the switches then need a `formats` entry.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.codecs import ERROR_BOUNDS
from gradplane.hosts.drivers.action_driver import ActionDriver
from gradplane.hosts.drivers.socket_environment import SocketThread
from gradplane.hosts.protocols.actions import Action, Deliver, Failed, Peer
from gradplane.hosts.protocols.messages import RING_KINDS, Message, MessageError, parse
from gradplane.hosts.protocols.results import Floats, ReduceError, Summed
from gradplane.hosts.protocols.ring_plan import RingPlan
from gradplane.hosts.protocols.ring_worker import RingWorker
from gradplane.hosts.wire.aggregation import MAX_WORKERS
from gradplane.hosts.wire.marked_values import Marked
from gradplane.hosts.wire.payloads import Payloads

PORT = 18257
_EXACT = 0  # in place of a bound
_LINGER = 2.0  # seconds that close() waits for the last acknowledgements


class RingError(RuntimeError):
    """An invalid call, calls that differ between processes, or a peer that cannot be reached."""


class RingTimeout(RingError, TimeoutError):
    """A call that took longer than the timeout; the message names the silent peers."""


class Ring:
    """One process of the ring; a context manager.

    rank: its index in `addresses`, which are IPs or (IP, UDP port). timeout: seconds that a call
    may take. sum_order: "rotated", each block is added up from another rank on, or "workers", every
    place of an array of any size from rank 0 on; the same in all processes. Raises RingError for an
    invalid rank, address or order, OSError if this process's address cannot be bound. After a
    failed call the ring cannot be used again. A thread answers the peers. Another ring on the same
    addresses must wait until all have closed the first.
    """

    def __init__(
        self,
        rank: int,
        addresses: Sequence[str | tuple[str, int]],
        timeout: float = 60.0,
        sum_order: str = "rotated",
    ) -> None:
        if sum_order not in ("rotated", "workers"):
            raise RingError(f'sum_order = {sum_order!r}: it must be "rotated" or "workers"')
        self._peers = _checked(rank, addresses)
        self._rank, self._left, self._timeout = rank, (rank - 1) % len(self._peers), timeout
        self._calls = 0
        self._bound, self._size, self._due = _EXACT, 0, 0  # of the call under way; its messages
        self._early: list[tuple[Peer, bytes]] = []  # messages of calls to come
        self._heard: dict[Peer, float] = {}
        self._broken: Exception | None = None
        self._result: Future[Floats] = Future()
        self._result.set_result(np.zeros(0, np.float32))
        plans = {
            bound: RingPlan(self._peers, Marked(), bound or None, rotated=sum_order == "rotated")
            for bound in (_EXACT, *ERROR_BOUNDS)
        }
        self._workers = {bound: RingWorker(plan, rank) for bound, plan in plans.items()}
        ip, port = self._peers[rank]
        self._loop = SocketThread(ip, self._fail)
        self._loop.listen(port, self._datagrams)
        self._machines = ActionDriver(
            self._loop.env, port, self._loop.env.send, self._deliver, self._gone, time.time_ns()
        )
        self._machines.route(RING_KINDS, self._message)
        self._loop.start()

    def allreduce(self, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the sum of all processes' x: finite float32 of any shape, equal bits in all."""
        return self._call("allreduce", x, _EXACT)

    def allreduce_compressed(
        self, x: npt.NDArray[np.float32], bound: int = 10
    ) -> npt.NDArray[np.float32]:
        """Return the same sum while the network may compress the transfers.

        Besides float32's rounding the error is below n * 2^-bound for n processes, if the switches
        use this bound too: 6, 8 or 10. Transfers carry ToS 0x28. All processes get equal bits,
        whatever the network does.
        """
        if bound not in ERROR_BOUNDS:
            raise RingError(f"bound = {bound!r}: it must be 6, 8 or 10")
        return self._call(f"allreduce_compressed(bound={bound})", x, bound)

    def barrier(self) -> None:
        """Return once all processes have called it."""
        self._call("barrier", np.zeros(1, np.float32), _EXACT)

    def close(self) -> None:
        """Wait at most 2 seconds until the right neighbour has everything, and close."""
        linger = 0.0 if isinstance(self._broken, RingTimeout) else _LINGER
        until = time.monotonic() + linger
        while (
            time.monotonic() < until and not self._loop.call(lambda: self._machines.idle).result()
        ):
            time.sleep(0.005)
        self._loop.close()

    def __enter__(self) -> "Ring":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _call(self, name: str, x: Any, bound: int) -> Floats:
        if not isinstance(x, np.ndarray) or x.dtype != np.float32:
            found = x.dtype if isinstance(x, np.ndarray) else type(x).__name__
            raise RingError(
                f"{name}: expected a float32 array, got {found}: use x.astype('float32')"
            )
        if self._broken is not None:
            raise RingError(f"{name}: an earlier call failed ({self._broken}): open a new ring")
        self._loop.call(lambda: self._start(x.ravel(), bound)).result()
        try:
            return self._result.result(self._timeout).reshape(x.shape)
        except TimeoutError:
            self._broken = RingTimeout(self._loop.call(lambda: self._silence(name)).result())
            raise self._broken from None
        except (RingError, ReduceError) as error:
            raise RingError(f"{name}, call {self._calls - 1}: {error}") from error

    # In the loop's thread

    def _start(self, x: Floats, bound: int) -> None:
        self._result, self._bound, self._size = Future(), bound, x.size
        call, self._calls = self._calls, self._calls + 1
        try:
            now = self._loop.env.now()
            begun = self._workers[bound].reduce(call, x, now, bound)
            self._due = len(self._workers[bound].missing(call))
            self._machines.perform(begun)
            early, self._early = self._early, []
            for peer, data in early:
                self._machines.perform(self._message(peer, data, now))
        except Exception as error:
            self._fail(error)

    def _message(self, peer: Peer, data: bytes, now: int) -> list[Action]:
        """Take a message; a wrong one of the left neighbour ends the call with RingError."""
        if peer != self._peers[self._left]:
            raise MessageError(f"from {_text(peer)}, which is not the left neighbour")
        try:
            message = parse(data)
            if message.ticket >= self._calls:
                self._early.append((peer, data))
                return []
            self._check_same(message)
            return self._workers[self._bound].receive(peer, data, now)
        except MessageError as error:
            raise RingError(f"rank {self._left}: {error}") from error

    def _check_same(self, message: Message) -> None:
        n = self._size
        if (message.tensor, message.n) != (self._bound, n):
            raise RingError(
                f"rank {self._left} sums {_kind(message.tensor, message.n)}, rank {self._rank} "
                f"{_kind(self._bound, n)}: all must make the same calls in the same order"
            )

    def _datagrams(self, port: int, ip: str, source_port: int, payloads: Payloads) -> None:
        if (ip, source_port) in self._peers:
            self._heard[ip, source_port] = time.monotonic()
        self._machines.receive(ip, source_port, payloads)

    def _deliver(self, delivered: Deliver) -> None:
        assert isinstance(delivered.result, Summed)
        if not self._result.done():
            self._result.set_result(delivered.result.total)

    def _gone(self, failure: Failed) -> None:
        rank = self._peers.index(failure.peer)
        self._fail(RingError(f"rank {rank} ({_text(failure.peer)}): {failure.reason}"))

    def _fail(self, error: Exception) -> None:
        self._broken = self._broken or error
        if not self._result.done():
            self._result.set_exception(error)

    def _silence(self, name: str) -> str:
        """Name the neighbours that keep the call waiting, as far as this process can see."""
        n, call = len(self._peers), self._calls - 1
        left, right = self._left, (self._rank + 1) % n
        missing = len(self._workers[self._bound].missing(call))
        said = f"{name}, call {call}, rank {self._rank}: not done after {self._timeout:g} s"
        if missing:
            owes = f"owes {missing} of {self._due} blocks"
            said += f"; rank {left} ({_text(self._peers[left])}) {self._last(left)} and {owes}"
        if not self._machines.idle:
            said += f"; rank {right} ({_text(self._peers[right])}) does not acknowledge"
        return said

    def _last(self, rank: int) -> str:
        heard = self._heard.get(self._peers[rank])
        if heard is None:
            return "was never heard"
        return f"was last heard {time.monotonic() - heard:.1f} s ago"


def _checked(rank: int, addresses: Sequence[str | tuple[str, int]]) -> tuple[Peer, ...]:
    peers = tuple((a, PORT) if isinstance(a, str) else (a[0], a[1]) for a in addresses)
    if not 1 <= len(peers) <= MAX_WORKERS:
        raise RingError(f"{len(peers)} addresses: it must be from 1 to {MAX_WORKERS}")
    if not 0 <= rank < len(peers):
        raise RingError(
            f"rank = {rank}: it must be from 0 to {len(peers) - 1}, a place in addresses"
        )
    twice = [peer for peer in peers if peers.count(peer) > 1]
    if twice:
        raise RingError(f"address {_text(twice[0])} is given twice: each process has its own")
    return peers


def _kind(bound: int, n: int) -> str:
    return f"{n} values" + (f" with bound {bound}" if bound else "")


def _text(peer: Peer) -> str:
    return f"{peer[0]}:{peer[1]}"
