"""Table entries and what they run."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradplane.switch.runtime.keys import Match
from gradplane.switch.runtime.meters import MeterCell


@dataclass(frozen=True, slots=True)
class ActionData:
    """An action of a table, by position in table.actions, with a number a parameter."""

    index: int
    args: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberRef:
    """A member of the table's action profile."""

    id: int


@dataclass(frozen=True, slots=True)
class GroupRef:
    """A group of the table's action selector."""

    id: int


@dataclass(frozen=True, slots=True)
class OneShot:
    """A group given with the entry: (action, weight, watch port) each."""

    actions: tuple[tuple[ActionData, int, bytes], ...]


Target = ActionData | MemberRef | GroupRef | OneShot


@dataclass(slots=True)
class Count:
    """Packets and bytes, modulo 2^64."""

    packets: int = 0
    bytes: int = 0

    def add(self, nbytes: int) -> None:
        self.packets = (self.packets + 1) & 0xFFFF_FFFF_FFFF_FFFF
        self.bytes = (self.bytes + nbytes) & 0xFFFF_FFFF_FFFF_FFFF


@dataclass(slots=True, eq=False)
class Entry:
    """A table entry. `matches` has one match a match field (selector keys have none).

    `priority`: the larger wins; 0 in tables of exact and lpm fields only. `serial` is the order
    of insertion: among equal priorities the older entry wins.
    """

    matches: tuple[Match, ...]
    action: Target
    priority: int = 0
    metadata: bytes = b""
    idle_timeout_ns: int = 0
    is_const: bool = False
    counter: Count = field(default_factory=Count)
    meter: MeterCell = field(default_factory=MeterCell)
    last_hit_ns: int = 0
    idle_told: bool = False  # the idle notice went out and no packet came since
    serial: int = 0
