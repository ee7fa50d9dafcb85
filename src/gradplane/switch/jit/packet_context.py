"""The memory of one packet: the input and the parser's position, notes for the traffic manager, and
the values that pass from block to block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.value_layout import Layouts
from gradplane.switch.runtime.shared_memory import LINE

NONE = -1  # in a note: not called


@dataclass(frozen=True, slots=True)
class Slot:
    kind: str
    offset: int


# In the order of the memory. `bits`: of the input; `position`: of the parser, in bits; `grown`:
# bits by which setValid and setInvalid made the packet longer.
_SLOTS = {"data": "ptr", "bits": "i64", "position": "i64", "grown": "i64"}


@dataclass(slots=True)
class Context:
    """The offsets in a packet's memory.

    slots: by name, the architecture's `notes` among them. direct: 8 bytes for each direct counter
    or meter, with the result of the last lookup. values: by name, from `start` on. unread: spans of
    them (first byte, end) that are never read before they are written. shared: variables that stand
    for values in every block."""

    slots: dict[str, Slot]
    direct: dict[str, int]
    values: dict[str, int]
    types: dict[str, Type]
    start: int
    size: int
    sizes: dict[str, int]
    unread: Sequence[tuple[int, int]] = ()
    shared: dict[ir.Var, str] = field(default_factory=dict)

    def address(self, f: Function, context: Operand, name: str) -> Operand:
        return f.add(context, self.slots[name].offset)

    def get(self, f: Function, context: Operand, name: str) -> Operand:
        return f.load(self.slots[name].kind, self.address(f, context, name), 8)

    def set(self, f: Function, context: Operand, name: str, value: Operand | int) -> None:
        f.store(self.slots[name].kind, value, self.address(f, context, name), 8)

    def value(self, f: Function, context: Operand, name: str) -> Operand:
        """Return the address of a value."""
        return f.add(context, self.values[name])

    def begin(self, f: Function, context: Operand, data: Operand, size: Operand) -> None:
        """Begin with a packet of `size` bytes, which is not parsed: all values are zero."""
        start = self.start
        for first, end in (*self.unread, (self.size, self.size)):
            f.clear(f.add(context, start), first - start)
            start = end
        self.set(f, context, "data", data)
        self.set(f, context, "bits", f.binary("shl", "i64", size, 3))
        self.set(f, context, "position", 0)
        self.set(f, context, "grown", 0)


def make_context(
    layouts: Layouts, types: Mapping[str, Type], notes: Sequence[str], direct: Sequence[str],
    first: str = "",
) -> Context:  # fmt: skip
    """Lay out a packet's memory. first: a small value that shares a line of the cache with the
    slots."""
    slots, end = {}, 0
    for name, kind in {**_SLOTS, **dict.fromkeys(notes, "i64")}.items():
        slots[name] = Slot(kind, end)
        end += 8
    start = end
    found = {name: end + 8 * i for i, name in enumerate(direct)}
    end += 8 * len(found)
    if first not in types:
        start = end = -(-end // LINE) * LINE
    values, sizes = {}, {}
    for name, t in sorted(types.items(), key=lambda item: item[0] != first):
        if name != first:
            end = -(-end // LINE) * LINE
        values[name] = end
        sizes[name] = layouts.of(t).size
        end += sizes[name]
    return Context(slots, found, values, dict(types), start, -(-end // LINE) * LINE, sizes)
