"""What a switch tells its control plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradplane.switch.ir.types import Type
from gradplane.switch.runtime.entries import Entry


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A packet that left through the CPU port."""

    packet: bytes


@dataclass(frozen=True, slots=True)
class Digest:
    """digest(receiver, data): `name` is the data's struct type.

    `data`: numbers, nested lists for structs; `type` says which.
    """

    name: str
    type: Type
    data: Any


@dataclass(frozen=True, slots=True)
class IdleNotice:
    """An entry that no packet hit for its idle timeout."""

    table: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Fault:
    """A packet was dropped for something the program should not do: a failed assert, a loop."""

    text: str


Message = PacketIn | Digest | IdleNotice | Fault
