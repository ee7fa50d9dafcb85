"""The messages that a switch sends to its control plane."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradplane.switch.ir.types import Type
from gradplane.switch.runtime.entries import Entry

if TYPE_CHECKING:
    from gradplane.switch.runtime.match_table import MatchTable


@dataclass(unsafe_hash=True, slots=True)  # frozen ones take longer to make
class PacketIn:
    """A packet that left through the CPU port."""

    packet: bytes


@dataclass(unsafe_hash=True, slots=True)
class Digest:
    """Data that the program sent: v1model's digest(receiver, data), PSA's Digest.pack(data).

    `name`: of the data's struct type, or of the instance. `data`: numbers, lists for structs;
    `type` says which. `pipe`: that of the packet, None where the architecture has none.
    """

    name: str
    type: Type
    data: Any
    pipe: int | None = None


@dataclass(frozen=True, slots=True)
class IdleNotice:
    """An entry that no packet hit for its idle timeout; `holder` is the table that has it."""

    table: str
    entry: Entry
    holder: MatchTable | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ReturnedPacket:
    """A packet came back by a port; `head`: its first bytes, followed by zeros where it is shorter.

    It is sent only where it was asked for (Links.recirculation)."""

    port: int
    head: bytes


@dataclass(frozen=True, slots=True)
class Fault:
    """A packet was dropped because of a fault of the program: a failed assert, a loop."""

    text: str


HEAD_BYTES = 16  # of a ReturnedPacket

Message = PacketIn | Digest | IdleNotice | ReturnedPacket | Fault

_KINDS = {PacketIn: "packet-ins", Digest: "digests", IdleNotice: "idle notices",
          ReturnedPacket: "returned packets", Fault: "faults"}  # fmt: skip


def kind_of_message(message: Message) -> str:
    """Return the word for messages of this kind, for people."""
    return _KINDS[type(message)]
