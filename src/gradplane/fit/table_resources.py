"""The resources of a stage that a logical table takes: memories, ALUs, hashes, crossbars."""

from __future__ import annotations

from collections import Counter
from math import ceil, log2

from gradplane.fit.chip_resources import (
    GATEWAY_BYTES,
    GATEWAY_ROWS,
    HASH_INDEX_BITS,
    HASH_SELECT_BITS,
    IMMEDIATE_BITS,
    PARTITION_COLUMNS,
    RAM_ROWS,
    TCAM_ROWS,
    WAYS,
)
from gradplane.fit.logical_tables import ACTION, GATEWAY, LogicalTable
from gradplane.fit.partitions import Partitions
from gradplane.fit.places import byte_count
from gradplane.fit.stage_demand import Demand
from gradplane.fit.table_formats import (
    action_blocks,
    beside,
    data_bits,
    exact_format,
    idle_blocks,
    is_ternary,
    partition_format,
    range_rows,
    ternary_width,
)


def splittable(table: LogicalTable) -> bool:
    """Return whether a table can be in several stages: not if it has a register or a counter
    that is not its own entries'."""
    if table.table is None or not table.key:
        return False
    return all(use.index == "direct" or use.instance.kind == "hash" for use in table.uses)


def demand(table: LogicalTable, entries: int) -> Demand:
    """Return what a logical table with so many entries takes of a stage, without the memory of
    registers, counters and meters that tables share."""
    if table.kind == GATEWAY:
        return _gateway(table)
    found = Demand(Counter(tables=1))
    if table.kind == ACTION:
        found.amounts["gateways"] += not table.decided
    elif table.partitions is not None:
        _partitioned(table, table.partitions, entries, found)
    elif is_ternary(table.table):
        _ternary(table, entries, found)
    else:
        _exact(table, entries, found)
    data = data_bits(table)
    found.amounts["instructions"] += sum(bool(a.operations) for a in table.actions)
    found.amounts["action_bytes"] += ceil(data / 8) + _constant_bytes(table)
    _hashes(table, found)
    return found


def _gateway(table: LogicalTable) -> Demand:
    found = Demand(
        Counter(
            gateways=max(1, ceil(table.rows / GATEWAY_ROWS)),
            tables=int(not table.shares),
        )
    )
    found.exact |= set(table.key)
    bits = sum(p.bits for p in table.ranges)
    bits = max(bits, 8 * (byte_count(table.key) - GATEWAY_BYTES))
    found.amounts["hash_bits"] += min(bits, HASH_SELECT_BITS)
    return found


def _exact(table: LogicalTable, entries: int, found: Demand) -> None:
    form = exact_format(table, entries)
    found.exact |= set(table.key)
    found.amounts["sram"] += form.blocks + action_blocks(table, form.entries, form.immediate)
    found.amounts["map_ram"] += idle_blocks(table, form.entries)
    ways = min(len(form.ways), WAYS)
    bits = HASH_INDEX_BITS * ways + sum(ceil(log2(way)) for way in form.ways[:WAYS])
    found.amounts["hash_bits"] += bits
    found.amounts["hash_groups"] += 1


def _partitioned(table: LogicalTable, partitions: Partitions, entries: int, found: Demand) -> None:
    """Add what a ternary table in SRAM takes: the blocks of a partition are in few rows, and
    those of a row are a logical table of their own."""
    wide, per_row = partition_format(table)
    columns = ceil(ceil(entries / partitions.count) / per_row)
    depth = ceil(partitions.count / RAM_ROWS)
    found.exact |= set(table.key)
    found.amounts["tables"] += ceil(columns / PARTITION_COLUMNS) - 1
    found.amounts["sram"] += columns * wide * depth
    found.amounts["sram"] += action_blocks(table, entries, IMMEDIATE_BITS)
    found.amounts["map_ram"] += idle_blocks(table, entries)
    found.amounts["hash_bits"] += HASH_INDEX_BITS + ceil(log2(depth))
    found.amounts["hash_groups"] += 1


def _ternary(table: LogicalTable, entries: int, found: Demand) -> None:
    assert table.table is not None
    wide = ternary_width(table)
    depth = ceil(entries * range_rows(table.table) / TCAM_ROWS)
    found.amounts["tcam"] += depth * wide
    found.amounts["ternary_tables"] += 1
    found.ternary |= set(table.key)
    rows = depth * TCAM_ROWS
    found.amounts["sram"] += min(beside(table, rows, bits) for bits in (IMMEDIATE_BITS, 0))
    found.amounts["map_ram"] += idle_blocks(table, rows)


def _constant_bytes(table: LogicalTable) -> int:
    """Return the bytes of constants that come to ALUs as action data, for the largest action."""
    return max(
        (
            sum(_container_bytes(op.writes[0].bits) for op in a.operations if op.value.constant)
            for a in table.actions
        ),
        default=0,
    )


def _container_bytes(bits: int) -> int:
    return 1 if bits <= 8 else 2 if bits <= 16 else 4 * ceil(bits / 32)


def _hashes(table: LogicalTable, found: Demand) -> None:
    """Add the hashes that actions compute, and the indices and numbers that come by a hash."""
    for use in table.uses:
        if use.instance.kind == "hash":
            found.exact |= set(use.inputs)
            if not any(other.hashed and other is not use for other in table.uses):
                found.hashes[(use.instance, use.inputs)] = use.result_bits
                found.amounts["action_bytes"] += ceil(use.result_bits / 8)
        elif use.instance.kind == "random":
            found.amounts["action_bytes"] += ceil(use.result_bits / 8)
        else:
            found.exact |= set(use.inputs)
            if use.index == "field":
                found.hashes[use.index_inputs, use.hashes] = max(1, use.index_bits)
