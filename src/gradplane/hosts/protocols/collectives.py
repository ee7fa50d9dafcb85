"""Collective routines between workers, as generators: they send parts and wait for others' parts.

A routine yields (worker, part) to wait for that part of the same task from that worker, and is sent
its bytes. Rings and steps are those of the planner's cost models (`planner/costs.py`): a ring
passes blocks in p - 1 steps, an alltoall exchanges with one worker at a time, a reduce or broadcast
passes pieces along a chain, and a gather sends to the root at once. The root is the first member.
Sums are added in an order that depends on the members alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from gradplane.hosts.protocols.results import Floats
from gradplane.hosts.wire.marked_values import truncated

PIECE = 8192  # bytes that a chain passes on at once, at least
PIECES = 200  # of a chain or for servers, at most
SERVED = 1380  # bytes of a piece for a server, at least: one packet
SWITCH = -1  # in a worker's place, where a routine waits for the switch

Wait = tuple[int, int]
T = TypeVar("T")
Routine = Generator[Wait, bytes, T]
Span = tuple[int, int]


@dataclass(frozen=True)
class Group:
    """The members of a routine, this worker's place among them, and how a part is sent."""

    members: Sequence[int]
    me: int
    send: Callable[[int, int, bytes], None]  # worker, part, bytes
    bound: int | None = None  # of the values' error, where the network compresses them
    servers: Sequence[int] = ()  # their numbers, which follow the workers'
    sum: Callable[[Floats], None] | None = None  # has the switch sum values

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.members)

    def packed(self, values: Floats) -> bytes:
        """Return values as they are sent."""
        return values.astype(self._format, copy=False).tobytes()

    def values(self, data: bytes) -> Floats:
        """Return the values that another member has packed."""
        return np.frombuffer(data, self._format).astype(np.float32, copy=False)

    @property
    def _format(self) -> str:
        return "<f4" if self.bound is None else ">f4"

    def at(self, place: int) -> int:
        """Return the worker at a place of the ring."""
        return self.members[place % self.size]


def spans(low: int, high: int, parts: int) -> list[Span]:
    """Cut a range: the first (high - low) mod parts spans have a value more."""
    least, longer = divmod(high - low, parts)
    ends = [low]
    for part in range(parts):
        ends.append(ends[-1] + least + (part < longer))
    return list(zip(ends, ends[1:], strict=False))


def reduce_scatter(group: Group, values: Floats) -> Routine[Floats]:
    """Return this member's block of the sum; blocks as `spans` cuts."""
    blocks = [values[a:b] for a, b in spans(0, values.size, group.size)]
    total = blocks[group.me]
    for step in range(group.size - 1):
        sent = blocks[(group.me - step - 1) % group.size] if step == 0 else total
        group.send(group.at(group.me + 1), step, group.packed(sent))
        received = group.values((yield group.at(group.me - 1), step))
        total = received + blocks[(group.me - step - 2) % group.size]
    return total


def allgather(group: Group, own: bytes, first: int = 0) -> Routine[list[bytes]]:
    """Return all members' bytes, in their order. first: the number of the first part."""
    found = [own] * group.size
    for step in range(group.size - 1):
        group.send(group.at(group.me + 1), first + step, found[(group.me - step) % group.size])
        found[(group.me - step - 1) % group.size] = yield group.at(group.me - 1), first + step
    return found


def allreduce(group: Group, values: Floats) -> Routine[Floats]:
    """Return the sum: a reduce-scatter, then an allgather.

    Where the network compresses, a member truncates its block to the bound first, so that no hop
    changes it any more and all have the same sum.
    """
    block = yield from reduce_scatter(group, values)
    if group.bound is not None:
        block = truncated(block, group.bound)
    blocks = yield from allgather(group, group.packed(block), group.size)
    return np.concatenate([group.values(each) for each in blocks])


def alltoall(group: Group, parts: Sequence[bytes]) -> Routine[list[bytes]]:
    """Give each member its part; return the parts for this one, in the members' order."""
    found = list(parts)
    for step in range(1, group.size):
        to, source = (group.me + step) % group.size, (group.me - step) % group.size
        group.send(group.at(to), step, parts[to])
        found[source] = yield group.at(source), step
    return found


def gather(group: Group, own: bytes) -> Routine[list[bytes]]:
    """Return all members' bytes at the root, an empty list elsewhere."""
    if group.me:
        group.send(group.at(0), 0, own)
        return []
    found = [own]
    for member in range(1, group.size):
        found.append((yield group.at(member), 0))
    return found


def reduce(group: Group, values: Floats) -> Routine[Floats]:
    """Return the sum at the root; elsewhere the values of the members behind are in it, too."""
    cuts = spans(0, values.size, _pieces(4 * values.size))
    found = []
    for part, (low, high) in enumerate(cuts):
        piece = values[low:high]
        if group.me + 1 < group.size:
            piece = _floats((yield group.at(group.me + 1), part)) + piece
        if group.me:
            group.send(group.at(group.me - 1), part, _bytes(piece))
        found.append(piece)
    return np.concatenate(found)


def broadcast(group: Group, own: bytes) -> Routine[bytes]:
    """Return the root's bytes. The first two of a part are the number of parts."""
    if group.me == 0:
        cuts = spans(0, len(own), _pieces(len(own)))
        for part, (low, high) in enumerate(cuts):
            if group.size > 1:
                body = len(cuts).to_bytes(2, "big") + own[low:high]
                group.send(group.at(1), part, body)
        return own
    found, part, count = b"", 0, 1
    while part < count:
        body = yield group.at(group.me - 1), part
        if group.me + 1 < group.size:
            group.send(group.at(group.me + 1), part, body)
        count = int.from_bytes(body[:2], "big")
        found += body[2:]
        part += 1
    return found


def served(group: Group, values: Floats) -> Routine[Floats]:
    """Return the sum that the servers make; they take the pieces in turn."""
    servers = group.servers
    pieces = min(max(-(-4 * values.size // SERVED), 1), PIECES)
    pieces = -(-pieces // len(servers)) * len(servers)
    cuts = spans(0, values.size, pieces)
    for part, (low, high) in enumerate(cuts):
        group.send(servers[part % len(servers)], part, _bytes(values[low:high]))
    found = []
    for part in range(pieces):
        found.append(_floats((yield servers[part % len(servers)], part)))
    return np.concatenate(found)


def switched(group: Group, values: Floats) -> Routine[bytes]:
    """Return what the switch's sum of the members' values arrives as; of none, nothing."""
    if not values.size:
        return b""
    assert group.sum is not None, "a routine of the switch without one"
    group.sum(values)
    return (yield SWITCH, 0)


def _pieces(size: int) -> int:
    return min(max(-(-size // PIECE), 1), PIECES)


def _bytes(values: Floats) -> bytes:
    return values.astype("<f4", copy=False).tobytes()


def _floats(data: bytes) -> Floats:
    return np.frombuffer(data, "<f4").astype(np.float32, copy=False)
