"""The layout of tables in the memories of a stage, and the blocks that they take.

The formats follow section 4 of the RMT paper: an exact table is a cuckoo hash of four ways over
SRAM rows that hold several entries; a ternary table is blocks of TCAM beside SRAM for what to do.

`Demand` is what one logical table, or all tables of a stage, take of the stage's resources:
memories, ALUs, hashes, crossbars.

`shared_memory` is what registers, counters, meters and selectors take, which tables share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, log2
from typing import NamedTuple

from gradplane.fit.chip_resources import (
    GATEWAY_BYTES,
    GATEWAY_ROWS,
    GROUPS_PER_RAM,
    HASH_DIST_BITS,
    HASH_INDEX_BITS,
    HASH_SELECT_BITS,
    IMMEDIATE_BITS,
    OVERHEAD_BITS,
    PARTITION_COLUMNS,
    RAM_BITS,
    RAM_ROWS,
    STAGE,
    TCAM_ROWS,
    WAYS,
)
from gradplane.fit.logical_tables import ACTION, GATEWAY, LogicalTable, Partitions, entry_key_bits
from gradplane.fit.places import HeaderByte, Place, byte_count, bytes_of, reads
from gradplane.fit.values import Use
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import bit_width

UNITS_OF_GROUP = 3
"""The hash distribution units that one hash group feeds."""


@dataclass(slots=True)
class Demand:
    """The amounts of each resource taken of a stage, the places on both crossbars, and hashes.

    hashes: the bits of each, by what it is of. Tables that need the same bytes or the same hash
    share them."""

    amounts: Counter[str] = field(default_factory=Counter)
    exact: set[Place] = field(default_factory=set)
    ternary: set[Place] = field(default_factory=set)
    hashes: dict[object, int] = field(default_factory=dict)

    def add(self, other: Demand) -> None:
        self.amounts.update(other.amounts)
        self.exact |= other.exact
        self.ternary |= other.ternary
        self.hashes.update(other.hashes)

    def with_(self, other: Demand) -> Demand:
        """Return the sum of two demands."""
        both = Demand(Counter(self.amounts), set(self.exact), set(self.ternary), dict(self.hashes))
        both.add(other)
        return both

    def overflows(self, other: Demand) -> bool:
        """Return whether the sum of two demands is more than a stage has."""
        mine, others = self.amounts, other.amounts
        if any(mine[name] + others[name] > STAGE[name].amount for name in others):
            return True  # without the sets, which only add to it
        return bool(self.with_(other).lacking())

    def totals(self) -> dict[str, int]:
        """Return the amount of each resource."""
        found = {name: self.amounts[name] for name in STAGE}
        found["exact_bytes"] += byte_count(self.exact)
        found["ternary_bytes"] += byte_count(self.ternary)
        found["hash_units"] += sum(ceil(bits / HASH_DIST_BITS) for bits in self.hashes.values())
        found["hash_bits"] += sum(self.hashes.values())
        found["hash_groups"] += ceil(found["hash_units"] / UNITS_OF_GROUP)
        return found

    def lacking(self) -> list[str]:
        """Return the resources of which it is more than a stage has."""
        return [name for name, n in self.totals().items() if n > STAGE[name].amount]


TERNARY = ("ternary", "lpm", "range", "optional")
_VERSION_BITS = 4
_USUALLY_WIDE = 4
"""The most blocks beside each other, unless one entry needs more."""
_TIMEOUTS_OF_ROW = {1: 8, 2: 4, 3: 2, 6: 1}
"""The idle timeouts in a row of map RAM, by their precision (pragma idletime_precision)."""
_USUAL_PRECISION = 3
_TCAM_BYTES = 5
_TCAM_HALVES = 11
"""The bytes, and the half bytes, of a key in one block of TCAM."""
_USUAL_SHARE = 1 / 4
"""The share of entries with ranges."""


@dataclass(frozen=True, slots=True)
class ExactFormat:
    """The layout of an exact table in SRAM.

    per_row: entries in a row of `wide` blocks. ways: the blocks of each way. immediate: the most
    bits of action data beside the key.
    """

    per_row: int
    wide: int
    ways: tuple[int, ...]
    immediate: int

    @property
    def blocks(self) -> int:
        return sum(self.ways) * self.wide

    @property
    def entries(self) -> int:
        return sum(self.ways) * self.per_row * RAM_ROWS


def size_of(table: ir.Table) -> int:
    """Return the entries that a table is for: those of the source if no other can be added."""
    return len(table.entries) if table.const_entries and table.entries else table.size


def is_ternary(table: ir.Table | None) -> bool:
    """Return whether some part of a table's key needs TCAM."""
    if table is None or any(_algorithmic(a) for a in table.annotations):
        return False
    return any(key.match_kind in TERNARY for key in table.keys)


def _algorithmic(annotation: object) -> bool:
    return getattr(annotation, "name", "") in ("atcam_partition_index", "alpm")


def step_of(table: LogicalTable, entries: int) -> int:
    """Return how many entries a part of a table in a stage is a multiple of."""
    if table.partitions is not None:
        return table.partitions.count * partition_format(table)[1]
    if is_ternary(table.table):
        return TCAM_ROWS
    return exact_format(table, entries).per_row * RAM_ROWS


def key_bits(table: LogicalTable) -> int:
    """Return the bits of a table's key, without a selector's."""
    assert table.table is not None
    return sum(bit_width(k.expr.type) or 0 for k in table.table.keys if k.match_kind != "selector")


def exact_format(table: LogicalTable, entries: int) -> ExactFormat:
    """Return the format with the fewest blocks for so many entries, action data included."""
    overheads = tuple((bits, overhead_bits(table, bits)) for bits in (IMMEDIATE_BITS, 0))
    return _best_format(key_bits(table), overheads, _action_data(table), entries)


@lru_cache(1 << 16)  # placement asks for the same ones again and again
def _best_format(
    bits: int, overheads: tuple[tuple[int, int], ...], data: ActionBits, entries: int
) -> ExactFormat:
    """Return the format with the fewest blocks. overheads: by the bits of data beside the key."""
    made = [f for one in overheads for f in _formats(bits, *one, entries)]
    assert made, "an entry has a format"
    return min(made, key=lambda f: f.blocks + data.blocks(f.entries, f.immediate))


def _formats(bits: int, immediate: int, overhead: int, entries: int) -> Iterator[ExactFormat]:
    """Yield the formats with up to so many bits of action data beside the key."""
    entry = max(0, bits - HASH_INDEX_BITS) + _VERSION_BITS + overhead
    usual = max(_USUALLY_WIDE, ceil(entry / RAM_BITS))
    for wide in range(1, usual + 1):
        for per_row in range(1, GROUPS_PER_RAM * wide + 1):
            too_wide = per_row * entry > RAM_BITS * wide
            if too_wide or per_row * overhead > OVERHEAD_BITS * wide:
                break
            yield ExactFormat(per_row, wide, _ways(bits, entries, per_row), immediate)


def _ways(bits: int, entries: int, per_row: int) -> tuple[int, ...]:
    """Return the blocks of each way: one way of few bits if the key is a row's number, else
    four."""
    depth = max(1, ceil(entries / (per_row * RAM_ROWS)))
    more = bits - HASH_INDEX_BITS
    if more <= 0 and depth == 1:
        return (1,)
    depth = max(depth, WAYS)
    if 0 <= more <= 8:
        direct = 1 << ceil(log2(ceil((1 << more) / per_row)))
        if direct <= depth:
            return (direct,)
    if depth < 2 * WAYS:
        return tuple(1 + (n < depth - WAYS) for n in range(WAYS))
    largest = max(1, (1 << int(log2(min(depth, 64)))) // 4)
    ways: list[int] = []
    while depth > 0:
        while largest > depth:
            largest //= 2
        ways.append(largest)
        depth -= largest
    return tuple(ways)


def partition_format(table: LogicalTable) -> tuple[int, int]:
    """Return the blocks beside each other for a row of a partition, and the entries of a row."""
    assert table.table is not None
    entry = entry_key_bits(table.table) + _VERSION_BITS + overhead_bits(table, IMMEDIATE_BITS)
    wide = max(1, ceil(entry / RAM_BITS))
    return wide, max(1, min(GROUPS_PER_RAM, RAM_BITS * wide // entry))


def range_rows(table: ir.Table) -> float:
    """Return the rows that an entry takes on average: as many as the chip's compiler reserves.

    A range of n groups of four bits takes 2n - 1 rows, 8 at most, and the largest of an entry's
    counts. One in four entries has ranges, unless the pragma entries_with_ranges says how many."""
    widths = [bit_width(k.expr.type) or 0 for k in table.keys if k.match_kind == "range"]
    if not widths:
        return 1
    rows = min(8, 2 * ceil(max(widths) / 4) - 1)
    given = [a.values[0] for a in table.annotations
             if a.name == "entries_with_ranges" and a.values]  # fmt: skip
    share = _USUAL_SHARE
    if given and isinstance(given[0], int) and given[0] > 0:
        share = min(1, given[0] / max(1, size_of(table)))
    return 1 + share * (rows - 1)


def beside(table: LogicalTable, rows: int, immediate: int) -> int:
    """Return the blocks of SRAM for what TCAM's rows mean."""
    overhead = overhead_bits(table, immediate)
    data = action_blocks(table, rows, immediate)
    if not overhead:
        return data
    per_row = RAM_BITS >> max(3, ceil(log2(overhead)))
    return data + ceil(rows / (RAM_ROWS * per_row))


def _ternary_key_bytes(table: LogicalTable) -> int:
    """Return the bytes that a key takes in TCAM: four bits of a range take one."""
    assert table.table is not None
    total = 0
    for key in table.table.keys:
        width = bit_width(key.expr.type) or 0
        if key.match_kind != "selector":
            total += ceil(width / (4 if key.match_kind == "range" else 8))
    return total


def ternary_width(table: LogicalTable) -> int:
    """Return the blocks beside each other for a key: each has five and a half bytes, the half of a
    byte that two share, and one half is the entry's version. A block has five bytes if the key has
    ranges. Ranges in one word of a header take twice as many: they are on the crossbar twice, and
    bytes of one container have few places there."""
    assert table.table is not None
    key_bytes = _ternary_key_bytes(table)
    ranges = [key.expr for key in table.table.keys if key.match_kind == "range"]
    if ranges:
        words = [{_word(byte) for p in reads(e) for byte in bytes_of(p)} for e in ranges]
        shared = any(a & b for n, a in enumerate(words) for b in words[:n])
        return ceil(key_bytes / _TCAM_BYTES) * (2 if shared else 1)
    half = any(1 <= (bit_width(key.expr.type) or 0) % 8 <= 4 for key in table.table.keys)
    return ceil((2 * key_bytes - half + 1) / _TCAM_HALVES)


def _word(byte: HeaderByte) -> HeaderByte:
    """Return the four bytes of a header that one is in."""
    return byte[0], byte[1], byte[2] // 4


def data_bits(table: LogicalTable) -> int:
    """Return the bits of the largest action's data, each parameter in whole bytes."""
    return max((sum(8 * ceil(width / 8) for width in a.data) for a in table.actions), default=0)


def _pointer_bits(table: LogicalTable) -> int:
    """Return the bits of the indices that an entry has for what it uses."""
    wide = [use.index_bits for use in table.uses if use.index == "data"]
    return sum(wide)


def overhead_bits(table: LogicalTable, immediate: int) -> int:
    """Return the bits of an entry beside its key: which action, up to so many bits of its data,
    and where the rest is."""
    assert table.table is not None
    actions = len(table.actions)
    choice = ceil(log2(actions)) if actions > 1 else 0
    if table.table.implementation is not None:  # where the member or the group is
        return choice + _member_bits(table.table.implementation)
    bits = max((sum(a.data) for a in table.actions), default=0)
    return choice + min(bits, immediate) + _pointer_bits(table)


def _member_bits(profile: ir.ExternInstance) -> int:
    return max(1, ceil(log2(max(2, profile.number("size", 1024))))) + 6


class ActionBits(NamedTuple):
    """The size of a table's action data: of the largest action's, in bits and in whole bytes, and
    the members of its action profile, if it has one."""

    exact: int
    padded: int
    members: int | None

    def blocks(self, entries: int, immediate: int) -> int:
        """Return the blocks of SRAM for what does not fit beside the key."""
        if self.members is not None:
            return memory_blocks(self.members, max(8, self.padded))
        if self.exact <= immediate:
            return 0
        return memory_blocks(entries, self.padded - immediate)


def _action_data(table: LogicalTable) -> ActionBits:
    assert table.table is not None
    profile = table.table.implementation
    exact = max((sum(a.data) for a in table.actions), default=0)
    members = None if profile is None else profile.number("size", 1024)
    return ActionBits(exact, data_bits(table), members)


def action_blocks(table: LogicalTable, entries: int, immediate: int) -> int:
    """Return the blocks of SRAM for action data that does not fit beside the key."""
    return _action_data(table).blocks(entries, immediate)


def memory_blocks(cells: int, bits: int) -> int:
    """Return the blocks of SRAM for cells, each of a power of two of bits."""
    width = 1 << ceil(log2(max(bits, 1)))
    if width > RAM_BITS:
        return ceil(cells / RAM_ROWS) * ceil(bits / RAM_BITS)
    return ceil(cells / (RAM_ROWS * (RAM_BITS // width)))


def idle_blocks(table: LogicalTable, entries: int) -> int:
    """Return the blocks of map RAM for the idle timeouts of a table's entries, if it has them."""
    assert table.table is not None
    if not table.table.support_timeout:
        return 0
    given = [a.values[0] for a in table.table.annotations
             if a.name == "idletime_precision" and a.values]  # fmt: skip
    precision = given[0] if given and given[0] in _TIMEOUTS_OF_ROW else _USUAL_PRECISION
    assert isinstance(precision, int)
    return ceil(entries / (RAM_ROWS * _TIMEOUTS_OF_ROW[precision]))


# -- resources of a table ---------------------------------------------------------------------


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
        Counter(gateways=max(1, ceil(table.rows / GATEWAY_ROWS)), tables=int(not table.shares))
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
