"""The memory of one packet on its way: what the parser left, notes for the traffic manager, and
the three values that pass from block to block."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradplane.switch.ir.types import Type
from gradplane.switch.jit.layout import Layouts
from gradplane.switch.jit.text import Function, Operand

NONE = -1  # in a note: not called


@dataclass(frozen=True, slots=True)
class Slot:
    kind: str
    offset: int


# In the order of the memory. `bits`: of the input; `position`: of the parser, in bits; `grown`:
# bits by which setValid and setInvalid made the packet longer.
_SLOTS = {
    "data": "ptr",
    "bits": "i64",
    "position": "i64",
    "grown": "i64",
    "truncate": "i64",
    "clone": "i64",
    "clone_list": "i64",
    "resubmit": "i64",
    "recirculate": "i64",
    "checksum_error": "i64",
}
NOTES = ("truncate", "clone", "resubmit", "recirculate")


@dataclass(slots=True)
class Context:
    """Offsets: `slots` by name, `colours` of the direct meters (4 bytes each), and `values`: the
    headers, user metadata and standard metadata. `start`, `size`: of all three values."""

    slots: dict[str, Slot]
    colours: dict[str, int]
    values: list[int]
    types: list[Type]
    size: int
    sizes: list[int] = field(default_factory=list)

    def address(self, f: Function, context: Operand, name: str) -> Operand:
        return f.add(context, self.slots[name].offset)

    def get(self, f: Function, context: Operand, name: str) -> Operand:
        return f.load(self.slots[name].kind, self.address(f, context, name), 8)

    def set(self, f: Function, context: Operand, name: str, value: Operand | int) -> None:
        f.store(self.slots[name].kind, value, self.address(f, context, name), 8)

    def value(self, f: Function, context: Operand, which: int) -> Operand:
        """Address of the headers (0), the user (1) or the standard metadata (2)."""
        return f.add(context, self.values[which])

    def clear_notes(self, f: Function, context: Operand, keep: tuple[str, ...] = ()) -> None:
        """As a packet is before any extern was called."""
        for name in NOTES:
            if name not in keep:
                self.set(f, context, name, NONE)
        self.set(f, context, "checksum_error", 0)
        for offset in self.colours.values():
            f.store("i32", 0, f.add(context, offset), 4)


def make_context(layouts: Layouts, types: list[Type], direct_meters: list[str]) -> Context:
    """Lays out a program's packet memory."""
    slots, end = {}, 0
    for name, kind in _SLOTS.items():
        slots[name] = Slot(kind, end)
        end += 8
    colours = {}
    for name in direct_meters:
        colours[name] = end
        end += 4
    values, sizes = [], []
    for t in types:
        end = -(-end // 16) * 16
        values.append(end)
        sizes.append(layouts.of(t).size)
        end += sizes[-1]
    return Context(slots, colours, values, types, -(-end // 64) * 64, sizes)
