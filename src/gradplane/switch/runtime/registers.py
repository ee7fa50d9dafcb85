"""A program's registers, all in one block of memory.

Compiled code keeps one address and reaches each register at a fixed distance from it. After a
register's last cell is a spare one, which takes writes beyond the end.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.arrays import Register, cell_shape
from gradplane.switch.runtime.shared_memory import LINE, block


def register_places(instances: Iterable[ir.ExternInstance]) -> tuple[dict[str, int], int]:
    """Return the offset of each register's cells, in bytes, and the size of the block."""
    places, end = {}, 0
    for instance in instances:
        if instance.kind == "register":
            places[instance.name] = end
            dtype, words = cell_shape(instance.type_args[0])
            size = (_size(instance) + 1) * words * dtype.itemsize
            # An odd number of lines: equal cells of many registers do not compete for the same
            # places in the processor's cache.
            end += (-(-size // LINE) | 1) * LINE
    return places, end


def make_registers(
    instances: Iterable[ir.ExternInstance],
) -> tuple[npt.NDArray[np.uint8], dict[str, Register]]:
    """Make the block, and the registers by name."""
    known = {i.name: i for i in instances if i.kind == "register"}
    places, size = register_places(known.values())
    memory = block(size + LINE)
    return memory, {name: _register(i, memory[places[name] :]) for name, i in known.items()}


def _register(instance: ir.ExternInstance, memory: npt.NDArray[np.uint8]) -> Register:
    initial = instance.args[1] if len(instance.args) > 1 else 0
    assert isinstance(initial, int), instance
    return Register(instance.name, _size(instance), instance.type_args[0], int(initial), memory)


def _size(instance: ir.ExternInstance) -> int:
    size = instance.args[0]
    assert isinstance(size, int), instance
    return int(size)
