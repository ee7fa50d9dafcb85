"""The messages that a switch sends to its control plane."""

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
    """Data that the program sent: v1model's digest(receiver, data), PSA's Digest.pack(data).

    `name`: of the data's struct type, or of the instance. `data`: numbers, lists for structs;
    `type` says which.
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
    """A packet was dropped because of a fault of the program: a failed assert, a loop."""

    text: str


Message = PacketIn | Digest | IdleNotice | Fault
