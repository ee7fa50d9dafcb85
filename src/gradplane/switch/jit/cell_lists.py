"""Where the cells of a table's direct register are, for compiled code that sets all of them."""

from __future__ import annotations

from gradplane.switch.jit.native_memory import Memory, SetWord
from gradplane.switch.jit.table_layout import CELLS, Shape
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.shared_memory import address_of

_WORD = 8  # bytes


class CellList:
    """A number of cells, then the address of each, in no order, as 64-bit words."""

    def __init__(self, shape: Shape, set_word: SetWord) -> None:
        self._memory = Memory(shape.word(CELLS), set_word)
        self._cells: list[Register] = []
        self._places: dict[Register, int] = {}

    def add(self, cell: Register) -> None:
        self._places[cell] = len(self._cells)
        self._cells.append(cell)
        self._memory.grow((1 + len(self._cells)) * _WORD)
        self._put(cell)

    def remove(self, cell: Register) -> None:
        """Remove a cell; the last one takes its place."""
        last, place = self._cells.pop(), self._places.pop(cell)
        if last is not cell:
            self._cells[place] = last
            self._places[last] = place
        self._put(last)

    def _put(self, cell: Register) -> None:
        """Write the address of a cell, if it is still there, and the number of cells."""
        if cell in self._places:
            at = (1 + self._places[cell]) * _WORD
            self._memory.write(at, address_of(cell_memory(cell)).to_bytes(_WORD, "little"))
        self._memory.write(0, len(self._cells).to_bytes(_WORD, "little"))


def cell_memory(cell: Register) -> memoryview[int]:
    """Return the bytes of a direct register's cell."""
    return memoryview(cell.memory).cast("B")  # type: ignore[arg-type]
