"""The memory and ALUs of what tables share: registers, counters, meters, selectors."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from gradplane.fit.chip_resources import RAM_ROWS
from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.table_formats import Demand, memory_blocks
from gradplane.fit.values import Use
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import bit_width

_FILTERS = ("lpf", "direct_lpf", "wred", "direct_wred")
ALU_KINDS = ("register", "direct_register", "meter", "direct_meter", *_FILTERS)
COUNTERS = ("counter", "direct_counter")
_POOL_MEMBERS = 120
_COLOURS = 4096
"""The colours of a meter in a block of map RAM."""


def shared_memory(instance: ir.ExternInstance, entries: int) -> Demand:
    """Return what a register, counter, meter or selector takes of a stage.

    entries: of its table, if it is direct. Memory that is read and written in one clock takes one
    block more.
    """
    found = Demand()
    kind = instance.kind
    cells = entries if kind.startswith("direct") else instance.number("size", 1)
    if kind in ("register", "direct_register"):
        if instance.type == "RegisterParam":
            return found
        width = bit_width(instance.type_args[0]) or 8
        blocks = memory_blocks(cells, max(width, 1)) + 1
        found.amounts.update(meter_alus=1, sram=blocks, map_ram=blocks)
    elif kind in ALU_KINDS:
        blocks = ceil(cells / RAM_ROWS) + 1
        colours = 0 if kind in _FILTERS else ceil(cells / _COLOURS)
        found.amounts.update(meter_alus=1, sram=blocks, map_ram=blocks + colours)
    elif kind in COUNTERS:
        blocks = memory_blocks(cells, _counter_bits(instance)) + 1
        found.amounts.update(stats_alus=1, sram=blocks, map_ram=blocks)
    elif kind == "action_selector":
        most = instance.number("most", _POOL_MEMBERS)
        rows = ceil(most / _POOL_MEMBERS)
        blocks = ceil(max(1, _groups(instance)) * rows / RAM_ROWS) + 1
        found.amounts.update(meter_alus=1, sram=blocks, map_ram=blocks, hash_groups=1)
    return found


def _groups(selector: ir.ExternInstance) -> int:
    numbers = [a for a in selector.args if isinstance(a, int) and not isinstance(a, bool)]
    return numbers[-1] if numbers else 1


def _counter_bits(instance: ir.ExternInstance) -> int:
    """Return the bits of a counter's cell: of packets and bytes together, at least 64."""
    width = (bit_width(instance.type_args[0]) if instance.type_args else None) or 32
    if "and" in instance.word("unit"):
        return 64 if width <= 36 else 128
    return 32 if width <= 32 else 64


def shared(tables: Sequence[LogicalTable]) -> dict[ir.ExternInstance, list[Use]]:
    """Return the instances with state that tables use, and each use."""
    found: dict[ir.ExternInstance, list[Use]] = {}
    for table in tables:
        for use in table.uses:
            if use.instance.kind in (*ALU_KINDS, *COUNTERS):
                found.setdefault(use.instance, []).append(use)
        profile = table.table.implementation if table.table is not None else None
        if profile is not None and profile.kind == "action_selector":
            found.setdefault(profile, [])
    return found
