"""The Protocols that schemes need from the rooms above: a job's keys, and recorded outcomes.

`experiment.schema.Job` is an `AskedJob`; `runs.replayer` has the outcomes and the network.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from gradplane.hosts.protocols.actions import Peer

Place = tuple[int, int]
"""A slot and its use."""

Answer = tuple[str, int, bytes]
"""The receiving host, its UDP port, the payload."""


class NamedCodec(Protocol):
    """A codec as the user names it."""

    @property
    def name(self) -> str:
        """The codec's name."""

    @property
    def args(self) -> dict[str, Any]:
        """Its parameters."""


class AskedJob(Protocol):
    """A [[job]] of a resolved experiment: the keys that schemes look at (docs/experiments.md).

    A scheme that looks at another key adds it here."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def aggregation(self) -> str: ...
    @property
    def plan(self) -> str | None: ...
    @property
    def push(self) -> NamedCodec: ...
    @property
    def pull(self) -> NamedCodec | None: ...
    @property
    def by_tensor(self) -> bool | str | None: ...
    @property
    def pull_feedback(self) -> bool: ...
    @property
    def pull_deltas(self) -> bool: ...
    @property
    def marked(self) -> bool: ...
    @property
    def local_steps(self) -> int: ...
    @property
    def quorum(self) -> int | None: ...
    @property
    def quorums(self) -> tuple[int, ...] | None: ...
    @property
    def roots(self) -> int | None: ...
    @property
    def groups(self) -> Any: ...
    @property
    def rings(self) -> bool: ...
    @property
    def sum_order(self) -> str | None: ...
    @property
    def between(self) -> NamedCodec | None: ...
    @property
    def reliability(self) -> str: ...
    @property
    def slots(self) -> int: ...
    @property
    def sum_bits(self) -> int: ...
    @property
    def code_bits(self) -> int | None: ...
    @property
    def nonzero_blocks(self) -> bool: ...
    @property
    def timeout_ms(self) -> float: ...


class Outcome(Protocol):
    """The recorded outcome of a norm or a chunk."""

    @property
    def digest(self) -> Any:
        """The digest of the sums; None where it was not recorded."""

    @property
    def count(self) -> int | None:
        """How many workers are in the sums; None where it was not recorded, as of norms."""

    @property
    def norm(self) -> int | None:
        """The norm, as float32 bits; None of sums."""

    @property
    def in_time(self) -> Collection[int]:
        """The workers that had the result in time."""

    def contains(self, worker: int) -> bool:
        """Return whether the worker's packet is in the result."""

    def add_members(self, workers: Iterable[int]) -> None:
        """Note that the packets of these workers, too, are in the result."""


class Outcomes(Protocol):
    """The recorded outcomes of one job; each place has one, without effect where none was."""

    @property
    def norms(self) -> Mapping[Place, Outcome]: ...
    @property
    def chunks(self) -> Mapping[Place, Outcome]: ...

    @property
    def stats(self) -> Mapping[int, int]:
        """The bitmap of the workers in a server's maximum, by ticket."""

    @property
    def pushes(self) -> Mapping[int, int]:
        """The bitmap of the workers in a server's mean, by ticket."""


class Network(Protocol):
    """The network of a replay: its switches, without losses and without time."""

    def send(self, source: Peer, to: Peer, payload: bytes) -> list[Answer]:
        """Send a datagram to a host, or to the address of the switches; return what arrives."""

    def carry(self, source: Peer, to: Peer, values: bytes) -> bytes:
        """Return a message's marked values as they arrive."""

    def held(self, source: Peer, payload: bytes) -> None:
        """Take note of a datagram that a host sends and that does not arrive, or not yet."""
