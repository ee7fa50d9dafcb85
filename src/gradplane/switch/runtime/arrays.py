"""Registers and counters: flat arrays, so that compiled code can share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast, overload

import numpy as np
import numpy.typing as npt

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.ops import wrap
from gradplane.switch.ir.types import Bits, Bool, Type
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.shared_memory import LINE, block

MASK64 = (1 << 64) - 1


class Register:
    """A register of `size` cells of bit<W>, int<W> or bool, with the value `initial` at the start.

    `values` is a NumPy array of the next larger 8, 16, 32 or 64-bit integer; where W > 64 a
    sequence of ints, kept in `memory` as little-endian 64-bit words. Packets that read beyond the
    end get 0; those that write there change nothing (simple_switch leaves the target of such a read
    unchanged, which v1model calls unspecified). `block`: the zeroed memory of the first cell and
    what follows it; `step`: bytes from cell to cell, if other registers' cells lie between them.
    `copies`: the register in each pipe, where a chip's pipes have cells of their own: a write sets
    them all, and a read gives the first one's. `seen`: cells as `control/cells.py` keeps them for a
    notation that reads what it saw last, `unseen`: what all others were seen as.
    """

    def __init__(
        self,
        name: str,
        size: int,
        type: Type,
        initial: int = 0,
        block: npt.NDArray[np.uint8] | None = None,
        step: int | None = None,
        copies: Sequence[Register] = (),
    ) -> None:
        self.name = name
        self.copies = copies
        self.size = size
        self.initial = initial
        self.type = type if isinstance(type, Bits) else Bits(1)
        self.width = self.type.width
        self.is_bool = isinstance(type, Bool)
        self.wrap = wrap(self.type)
        self.memory = _cells(type, size, block, step)
        self.values: npt.NDArray[np.integer] | WideCells = self.memory
        # A memoryview of the array reads and writes Python ints several times faster.
        self.cells = cast(MutableSequence[int], memoryview(self.memory))  # type: ignore[arg-type]
        if self.width > 64:
            self.values = WideCells(self.memory, self.type)
            self.cells = cast(MutableSequence[int], self.values)
        self.seen: dict[int, int] = {}
        self.unseen = initial
        self.clear()

    def read(self, index: int) -> int:
        """Return a cell's value; raises TableError OUT_OF_RANGE."""
        self._check(index)
        return self.cells[index]

    def write(self, index: int, value: int) -> None:
        """Set a cell; raises TableError OUT_OF_RANGE or, for a value that does not fit,
        INVALID_ARGUMENT."""
        self._check(index)
        if self.wrap(value) != value:
            what = f"value {value} does not fit {self.type}"
            raise TableError("INVALID_ARGUMENT", f"register {self.name}: {what}")
        self.cells[index] = value
        for copy in self.copies:
            copy.cells[index] = value

    def clear(self) -> None:
        """Set all cells to their initial value, in place."""
        self.seen, self.unseen = {}, self.initial
        self.memory.fill(0)
        for i in range(self.size if self.initial else 0):
            self.cells[i] = self.initial
        for copy in self.copies:
            copy.clear()

    def _check(self, index: int) -> None:
        _check_index("register", self.name, index, self.size)


def cell_shape(type: Type) -> tuple[np.dtype[np.integer], int]:
    """Return NumPy's type for a register's cell, and how many items of it make one."""
    bits = type if isinstance(type, Bits) else Bits(1)
    if bits.width > 64:
        return np.dtype(np.uint64), -(-bits.width // 64)
    size = next(b for b in (8, 16, 32, 64) if b >= bits.width) // 8
    return np.dtype(f"{'i' if bits.signed else 'u'}{size}"), 1


def _cells(
    type: Type, size: int, block: npt.NDArray[np.uint8] | None, step: int | None
) -> npt.NDArray[np.integer]:
    dtype, words = cell_shape(type)
    if block is None:
        block = np.zeros(size * words * dtype.itemsize, dtype=np.uint8)
    if words > 1:
        return block[: size * words * 8].view(dtype).reshape(size, words)
    return np.ndarray((size,), dtype, block.data, strides=(step or dtype.itemsize,))


class WideCells(Sequence[int]):
    """Cells of more than 64 bits, in rows of words; bits beyond the width are zero."""

    def __init__(self, memory: npt.NDArray[np.integer], type: Bits) -> None:
        self._bytes = memoryview(memory).cast("B") if memory.size else memoryview(b"")  # type: ignore[arg-type]
        self._count: int = len(memory)
        self._size: int = 8 * memory.shape[1]
        self.wrap, self._unsigned = wrap(type), wrap(Bits(type.width))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> list[int]: ...

    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        at = self._at(index)
        value: int = self.wrap(int.from_bytes(self._bytes[at : at + self._size], "little"))
        return value

    def __setitem__(self, index: int, value: int) -> None:
        at = self._at(index)
        data = self._unsigned(value).to_bytes(self._size, "little")
        self._bytes[at : at + self._size] = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def _at(self, index: int) -> int:
        return range(self._count)[index] * self._size


class Counter:
    """A counter of `size` pairs of packets and bytes, each modulo 2^64, in two uint64 arrays.

    unit: "packets", "bytes" or "packets_and_bytes"; both are counted whatever the unit. seen,
    unseen: as a register's.
    """

    def __init__(self, name: str, size: int, unit: str) -> None:
        self.name = name
        self.size = size
        self.unit = unit
        self.packets = np.zeros(size, dtype=np.uint64)
        self.bytes = np.zeros(size, dtype=np.uint64)
        self._packets = memoryview(self.packets)  # type: ignore[arg-type]
        self._bytes = memoryview(self.bytes)  # type: ignore[arg-type]
        self.seen: dict[int, tuple[int, int]] = {}
        self.unseen = (0, 0)

    def read(self, index: int) -> tuple[int, int]:
        """Return a cell's packets and bytes; raises TableError OUT_OF_RANGE."""
        self._check(index)
        return self._packets[index], self._bytes[index]

    def counts(self, cells: range) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Return the packets and the bytes of successive cells, where the counter has them."""
        return self.packets[cells.start : cells.stop], self.bytes[cells.start : cells.stop]

    def write(self, index: int, packets: int, bytes: int) -> None:
        """Set a cell; raises TableError OUT_OF_RANGE."""
        self._check(index)
        self._packets[index] = packets & MASK64
        self._bytes[index] = bytes & MASK64

    def clear(self) -> None:
        """Set all cells to 0, in place."""
        self.seen, self.unseen = {}, (0, 0)
        self.packets.fill(0)
        self.bytes.fill(0)

    def add(self, index: int, nbytes: int) -> None:
        """Count a packet of `nbytes`; beyond the end, do nothing."""
        if index < self.size:
            self._packets[index] = (self._packets[index] + 1) & MASK64
            self._bytes[index] = (self._bytes[index] + nbytes) & MASK64

    def add_bytes(self, index: int, nbytes: int) -> None:
        """Correct what was counted by so many bytes; beyond the end, do nothing."""
        if index < self.size:
            self._bytes[index] = (self._bytes[index] + nbytes) & MASK64

    def _check(self, index: int) -> None:
        _check_index("counter", self.name, index, self.size)


def _check_index(kind: str, name: str, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise TableError(
            "OUT_OF_RANGE", f"{kind} {name}: index {index} is not within 0 to {size - 1}"
        )


# -- all registers of a program, in one block of memory -----------------------------------------

# Compiled code keeps one address and reaches each register at a fixed distance from it. After a
# register's last cell is a spare one, which takes writes beyond the end.


class CellPlace(NamedTuple):
    """The place of a register's cells in the block: the first one's offset, and the step from cell
    to cell, in bytes; `row`: the offset of the row that begins there or that it shares."""

    offset: int
    step: int
    row: int


def register_places(instances: Iterable[ir.ExternInstance]) -> tuple[dict[str, CellPlace], int]:
    """Return the place of each register's cells, and the size of the block in bytes.

    Programs that handle many values a packet have the same register in many instances of a control
    and go to the same cell of each. Such cells lie side by side, so that they share cache lines and
    a vector instruction reads several.
    """
    rows: dict[tuple[str, int, int], list[ir.ExternInstance]] = {}
    for instance in instances:
        if instance.kind == "register":
            rows.setdefault(_row(instance), []).append(instance)
    places, end = {}, 0
    for (_, cells, size), row in rows.items():
        step = len(row) * size
        if step > LINE:
            step = -(-step // LINE) * LINE
        for i, instance in enumerate(row):
            places[instance.name] = CellPlace(end + i * size, step, end)
        # An odd number of lines: equal cells of many registers do not compete for the same
        # places in the processor's cache.
        end += (-(-cells * step // LINE) | 1) * LINE
    return places, end


def _row(instance: ir.ExternInstance) -> tuple[str, int, int]:
    """Return a key, equal for registers whose cells lie side by side; the cells, the spare one
    among them, and a cell's bytes."""
    dtype, words = cell_shape(instance.type_args[0])
    name = instance.name.rpartition(".")[2] if words == 1 else instance.name
    return name, instance.number("size", 1) + 1, words * dtype.itemsize


@dataclass(slots=True)
class CurrentPipe:
    """The pipe that runs a packet, by which the interpreter finds a register's cells. parser: that
    of the packet's port, by its number in the pipe."""

    number: int = 0
    parser: int = 0


class PipeCells(MutableSequence[int]):
    """The cells of a register in the pipe that runs a packet."""

    def __init__(self, pipes: Sequence[Register], current: CurrentPipe) -> None:
        self._pipes = [register.cells for register in pipes]
        self._current = current

    def __len__(self) -> int:
        return len(self._pipes[0])

    def __getitem__(self, index: Any) -> Any:
        return self._pipes[self._current.number][index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._pipes[self._current.number][index] = value

    def __delitem__(self, index: Any) -> None:
        raise TypeError("a register's cells stay")

    def insert(self, index: int, value: int) -> None:
        raise TypeError("a register's cells stay")


Homes = Callable[[str], tuple[int, ...]]
"""Returns the pipes in which packets reach a table or extern of a name."""


def one_pipe(name: str) -> tuple[int, ...]:
    """Return the only pipe of a switch without several."""
    return (0,)


@dataclass(slots=True)
class Registers:
    """All registers of a program: `by_name` for the control plane, `pipes` those of each pipe.

    memory: a block for each pipe, one after the other. cells: the cells that the interpreter reads
    and writes.
    """

    memory: npt.NDArray[np.uint8]
    by_name: dict[str, Register]
    pipes: list[dict[str, Register]]
    cells: dict[str, MutableSequence[int]]
    current: CurrentPipe


def make_registers(
    instances: Iterable[ir.ExternInstance], pipes: int = 1, homes: Homes = one_pipe
) -> Registers:
    """Make the registers of a program; with several pipes, each has cells of its own. The control
    plane reads those of the first of a register's `homes`."""
    known = {i.name: i for i in instances if i.kind == "register"}
    places, size = register_places(known.values())
    memory, current = block(size * pipes + LINE), CurrentPipe()

    def of_pipe(pipe: int) -> dict[str, Register]:
        block = memory[size * pipe :]
        return {name: _register(i, block, places[name]) for name, i in known.items()}

    own = [of_pipe(pipe) for pipe in range(pipes)]
    if pipes == 1:
        cells = {name: register.cells for name, register in own[0].items()}
        return Registers(memory, own[0], own, cells, current)
    whole, found = {}, {}
    for name, instance in known.items():
        copies = [registers[name] for registers in own]
        first = memory[size * homes(name)[0] :]
        whole[name] = _register(instance, first, places[name], copies)
        found[name] = PipeCells(copies, current)
    return Registers(memory, whole, own, {**found}, current)


def direct_cells(instance: ir.ExternInstance, pipes: int) -> Register:
    """Return the cells that an entry has of its table's direct register: one for each pipe."""
    return Register(instance.name, pipes, instance.type_args[0], instance.number("initial", 0))


def _register(
    instance: ir.ExternInstance,
    memory: npt.NDArray[np.uint8],
    place: CellPlace,
    copies: Sequence[Register] = (),
) -> Register:
    size, initial = instance.number("size", 1), instance.number("initial", 0)
    first, kind = memory[place.offset :], instance.type_args[0]
    return Register(instance.name, size, kind, initial, first, place.step, copies)
