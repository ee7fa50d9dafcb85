"""The layout of a table in native memory, which compiled code and the mirror share.

An entry's record is [key part][action part]. The action part: addresses of the entry's counter,
meter, times, direct register and filter (8 bytes each, where the table has them), a tag, the
action's data.
Tag: the action's number, the top bit set if an entry hit. Tables with an action profile have, in
place of the tag and data, two 32-bit numbers: the first of the entry's choices and their number;
choices are action parts in an array of their own: choice 0 is the default action, choice 1 what an
entry with an empty group runs.

direct   at most 16 bits of exact keys: records indexed by the key; all exist, and those of no
         entry hold the default action. The records of all such tables are in one block, so that
         the code has one address to keep.
plain    the same for actions that only assign (`Plain`): the tags are apart. Tables alike whose
         records for all values of the last field fit into a cache line take turns: all of them have
         those for the same values of the other fields next to each other, as one packet needs them.
hash     exact keys: an index of record numbers, open addressing with linear probing.
lpm      exact fields and an lpm one: the same index; the key is masked and looked up by prefix
         length, the longest first, the length being a last word of the key, or above a short key
         in its only word. For longer ones `order` has a row for each length: the masks and the
         length. For the field's first bits, `guard` has bits for the lengths that there are.
tuples   ternary, range, optional: the same by groups of entries with equal masks, the group's
         number being the last word of the key. `order` has a row for each: the masks, the number,
         and the best rank in the group (0: no such group). If there are more than a few,
         `guard` says which to try (`hash_tables.Guard`), in rows of `row` bytes. The key
         part goes on with the rank, the number of the next record with this key (plus 1; 0:
         none), and the bounds of ranges.
none     no key: the default action.

Plain tables: small exact keys, and actions that only assign parameters and constants.

    action set(bit<8> v) { value = v; }        table t { key = { code : exact; }
                                                         actions = { set; NoAction; } }

A plain table's record holds no action data but the values that the entry's action assigns, in
the places of all actions' targets; the numbers of the actions are apart. Where all actions assign
a target, or where the target is known to be 0 before (a record holds 0 where its action does not
assign), applying the table is to load the record: no branch, and no more memory than an array in C.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, Header, Struct
from gradplane.switch.jit.value_layout import Layouts
from gradplane.switch.runtime.match_fields import KeyField, key_fields
from gradplane.switch.runtime.shared_memory import LINE

DIRECT_BITS = 16
DIRECT_BYTES = 1 << 22
TOMBSTONE = 0xFFFF_FFFF
PLAIN_RECORD = 16  # where the record begins in a plain table's action part, behind the tag
DIRECT = "direct tables"  # the state word
EMPTY_GROUP = 1  # the choice of an entry with an empty group
MULTIPLIER = 0x9E37_79B9_7F4A_7C15
MASK64 = (1 << 64) - 1

WORDS = ("default", "records", "index", "mask", "order", "count", "guard", "row", "choices")
CELLS = "cells"
"""The word, of a table with a direct register, that has the addresses of the register's cells."""
GUARD_BITS = 16  # of an lpm field
LENGTH_BITS = 8  # of a prefix's length, which is in a word of the key if there is room
GUARD_BYTES = 40  # of a ternary key: IPv6 addresses, ports and protocol
FEW = 4  # groups that are all tried


class ActionPart(NamedTuple):
    """Offsets within an action part. `args`: for each action (offset, bytes) a parameter, no
    bytes if it is not needed; `constants`: (offset, bytes, value) each."""

    counter: int | None
    meter: int | None
    times: int | None
    register: int | None
    filter: int | None
    tag: int
    tag_bits: int
    args: tuple[tuple[tuple[int, int], ...], ...]
    size: int
    constants: tuple[tuple[tuple[int, int, int], ...], ...] = ()


class Shape(NamedTuple):
    """The layout of one table.

    words: 64-bit words of the key. ranges: positions of the range fields. records, tags: where
    those of direct and plain tables begin in the memory that they share. turns: the bits by which
    the tables that take turns are counted, 0 where the records are by themselves. grows: packets
    add entries, so that the table's memory changes while native code runs.
    """

    name: str
    kind: str
    fields: tuple[KeyField, ...]
    ranges: tuple[int, ...]
    bits: int
    words: int
    entry: ActionPart
    choice: ActionPart | None  # of tables with a profile
    key_size: int
    stride: int
    plain: Plain | None = None
    records: int = 0
    tags: int = 0
    turns: int = 0
    grows: bool = False

    @property
    def low(self) -> int:
        """The bits of a key whose records a plain table has next to each other."""
        return self.fields[-1].width if self.turns else 0

    @property
    def hit(self) -> int:
        """The tag's top bit, set in entries."""
        return 1 << (self.action.tag_bits - 1)

    @property
    def numbers(self) -> int:
        """The mask of the action's number in the tag."""
        return (1 << max(len(self.action.args) - 1, 0).bit_length()) - 1

    @property
    def action(self) -> ActionPart:
        """The part that has tag and data."""
        return self.choice or self.entry

    def word(self, part: str) -> str:
        """Name of a state word."""
        return f"table {self.name}: {part}"

    @property
    def rank_at(self) -> int:
        """Offset of the rank in a record of tuples."""
        return 8 * (self.words + 1)

    @property
    def next_at(self) -> int:
        """Offset of the next record's number there."""
        return self.rank_at + 8

    def range_at(self, position: int) -> int:
        """Return the offset there of a range field's bounds: low, then high."""
        at = self.next_at + 8
        for i in self.ranges:
            if i == position:
                return at
            at += 16 * _words(self.fields[i].width)
        raise AssertionError(position)

    @property
    def lpm(self) -> int:
        """Position of the lpm field, of which a table has one at most."""
        return next(i for i, f in enumerate(self.fields) if f.kind == "lpm")

    @property
    def guard(self) -> tuple[int, int] | None:
        """An lpm table's guard: how many of the field's bits index it, and the 64-bit words of a
        row."""
        if self.kind != "lpm":
            return None
        width = self.fields[self.lpm].width
        return min(width, GUARD_BITS), _words(width + 1)

    @property
    def short(self) -> bool:
        """True where an lpm table's key has room for the length above it in a word."""
        return self.bits + LENGTH_BITS <= 64

    @property
    def guarded(self) -> int:
        """The number of bytes of the key, from the lowest, that a tuple table's guard reads."""
        return min(-(-self.bits // 8), GUARD_BYTES)

    def same_lookup(self) -> tuple[object, ...]:
        """Return a key; tables with equal ones share their lookup function."""
        fields = tuple((f.width, f.kind, f.signed) for f in self.fields)
        return self.kind, fields, self.key_size, self.stride, self.grows


def shape_of(table: ir.Table, layouts: Layouts) -> Shape:
    """Plan a table's memory."""
    fields = tuple(key_fields(f"table {table.name}", table.keys))
    ranges = tuple(i for i, f in enumerate(fields) if f.kind == "range")
    bits = sum(f.width for f in fields)
    words = _words(bits)
    if table.implementation is None:
        choice, entry = None, _action_part(table, layouts, _heads(table))
    else:
        choice, entry = _action_part(table, layouts, ()), _profile_part(_heads(table))
    kind = _kind(fields, bits, table, entry)
    if kind == "direct" and not any(_heads(table)):
        plain = plain_actions(table, layouts)
        if plain is not None:
            return _plain_shape(table, fields, bits, plain)
    key_size = _key_size(kind, bits, [fields[i].width for i in ranges])
    stride = key_size + entry.size
    if kind != "direct":
        stride = -(-stride // 8) * 8
    return Shape(
        table.name, kind, fields, ranges, bits, words, entry, choice, key_size, stride,
        grows=table.add_on_miss,
    )  # fmt: skip


def _plain_shape(table: ir.Table, fields: tuple[KeyField, ...], bits: int, plain: Plain) -> Shape:
    args = tuple(tuple((at + PLAIN_RECORD, n) for at, n in row) for row in plain.args)
    constants = tuple(tuple((at + PLAIN_RECORD, n, v) for at, n, v in r) for r in plain.constants)
    size = PLAIN_RECORD + plain.size
    entry = ActionPart(None, None, None, None, None, 0, 8, args, size, constants)
    words = _words(bits)
    return Shape(table.name, "plain", fields, (), bits, words, entry, None, 0, plain.size, plain)


def with_places(shapes: Iterable[Shape]) -> tuple[dict[str, Shape], int]:
    """Return shapes by name, direct and plain ones with their places in one block, and its size.

    The tags of plain tables, which are rarely read, come behind all records.
    """
    placed, end = {}, 0
    alike: dict[tuple[int, ...], list[Shape]] = {}
    for shape in shapes:
        placed[shape.name] = shape
        if shape.kind in ("direct", "plain"):
            alike.setdefault(_likeness(shape) or (-len(placed),), []).append(shape)
    for group in alike.values():
        turns = (len(group) - 1).bit_length()
        for number, shape in enumerate(group):
            first = end + number * (shape.stride << shape.fields[-1].width if turns else 0)
            placed[shape.name] = shape._replace(records=first, turns=turns)
        end += _lines(group[0].stride << group[0].bits + turns)
    for shape in placed.values():
        if shape.kind == "plain":
            placed[shape.name] = shape._replace(tags=end)
            end += _lines(1 << shape.bits)
    return placed, end


def _likeness(shape: Shape) -> tuple[int, ...] | None:
    """Return what is equal in plain tables that take turns; None for one that does not."""
    width = shape.fields[-1].width
    alone = shape.kind != "plain" or width == shape.bits or shape.stride << width > LINE
    return None if alone else (shape.stride, shape.bits, width)


def _kind(fields: Sequence[KeyField], bits: int, table: ir.Table, entry: ActionPart) -> str:
    kinds = {f.kind for f in fields}
    if not fields:
        return "none"
    if kinds & {"ternary", "range", "optional"}:
        return "tuples"
    if "lpm" in kinds:
        return "lpm"
    small = bits <= DIRECT_BITS and entry.size << bits <= DIRECT_BYTES
    own = table.implementation is None and not table.add_on_miss
    return "direct" if small and own else "hash"


def _key_size(kind: str, bits: int, ranges: Sequence[int]) -> int:
    words = _words(bits)
    if kind in ("direct", "none"):
        return 0
    if kind == "lpm":
        return 8 * (words + (bits + LENGTH_BITS > 64))
    if kind == "tuples":
        return 8 * (words + 3) + sum(16 * _words(width) for width in ranges)
    return 8 * words


def _heads(table: ir.Table) -> tuple[bool, ...]:
    parts = (table.counter is not None, table.meter is not None, table.support_timeout)
    return (*parts, table.register is not None, table.filter is not None)


def _action_part(table: ir.Table, layouts: Layouts, heads: Sequence[bool]) -> ActionPart:
    offsets, at = _head_offsets(heads)
    tag_bits = 8 if len(table.actions) <= 127 else 16
    start, most, align, args = at + tag_bits // 8, at + tag_bits // 8, tag_bits // 8, []
    for choice in table.actions:
        end, places = start, []
        for param in choice.action.params:
            place = layouts.of(param.type)
            end = -(-end // place.align) * place.align
            places.append((end, place.size))
            end += place.size
            align = max(align, place.align)
        args.append(tuple(places))
        most = max(most, end)
    align = 8 if any(heads) else align
    counter, meter, times, register, filter = offsets
    size = -(-most // align) * align
    constants = tuple(() for _ in args)
    return ActionPart(
        counter, meter, times, register, filter, at, tag_bits, tuple(args), size, constants
    )


def _profile_part(heads: Sequence[bool]) -> ActionPart:
    offsets, at = _head_offsets(heads)
    counter, meter, times, register, filter = offsets
    return ActionPart(counter, meter, times, register, filter, at, 0, (), at + 8)


def _head_offsets(heads: Sequence[bool]) -> tuple[list[int | None], int]:
    offsets: list[int | None] = [None] * 5
    at = 0
    for i, present in enumerate(heads):
        if present:
            offsets[i] = at
            at += 8
    return offsets, at


def _lines(size: int) -> int:
    """Round up to whole cache lines; much memory to an odd number of them, so that equal places of
    many tables do not compete for the same cache sets."""
    lines = -(-size // LINE)
    return (lines | 1 if size >= 1024 else lines) * LINE


def _words(bits: int) -> int:
    return -(-bits // 64)


def hashed(words: Sequence[int]) -> int:
    """Return the hash of a key's words, as the native code computes it."""
    h = 0
    for word in words:
        h = ((h ^ word) * MULTIPLIER) & MASK64
        h ^= h >> 32
    return h


MOST_BYTES = 16  # of a record

Path = tuple[object, ...]


class LookupOutcome(NamedTuple):
    """A target: its place in the record (bytes) and the numbers of the actions that assign it."""

    target: ir.LValue
    offset: int
    size: int
    actions: frozenset[int]


class Plain(NamedTuple):
    """The plan of a plain table's records.

    args: for each action, (offset, size) in the record of each parameter, size 0 if it is unused.
    constants: for each action, (offset, size, value) of its constants. align: a record's."""

    outcomes: tuple[LookupOutcome, ...]
    args: tuple[tuple[tuple[int, int], ...], ...]
    constants: tuple[tuple[tuple[int, int, int], ...], ...]
    size: int
    align: int


def plain_actions(table: ir.Table, layouts: Layouts) -> Plain | None:
    """Return the plan of a plain table's records; None if some action does more than assign."""
    assigned: list[dict[Path, ir.Assign]] = []
    for choice in table.actions:
        found = _assignments(choice.action)
        if found is None:
            return None
        assigned.append(found)
    targets = {path: s.target for found in assigned for path, s in found.items()}
    if not targets:
        return None
    outcomes, places, end, most = [], {}, 0, 1
    for path, target in sorted(targets.items(), key=lambda t: -layouts.of(t[1].type).size):
        place = layouts.of(target.type)
        end = -(-end // place.align) * place.align
        by = frozenset(i for i, found in enumerate(assigned) if path in found)
        places[path] = end, place.size
        outcomes.append(LookupOutcome(target, *places[path], by))
        end, most = end + place.size, max(most, place.align)
    if end > MOST_BYTES:
        return None
    args, constants = [], []
    for choice, found in zip(table.actions, assigned, strict=True):
        where = {s.value: places[path] for path, s in found.items()}
        args.append(tuple(where.get(p, (0, 0)) for p in choice.action.params))
        pairs = ((places[path], s.value) for path, s in found.items())
        constants.append(tuple((*at, _bits(e)) for at, e in pairs if isinstance(e, ir.Const)))
    return Plain(tuple(outcomes), tuple(args), tuple(constants), -(-end // most) * most, most)


def _assignments(action: ir.Action) -> dict[Path, ir.Assign] | None:
    """Return each target's assignment; None unless each parameter goes to at most one target and
    the action does nothing else."""
    out: dict[Path, ir.Assign] = {}
    used: set[ir.Expr] = set()
    for stmt in action.body:
        if not isinstance(stmt, ir.Assign) or stmt.value.type != stmt.target.type:
            return None
        path, value = _path(stmt.target, action.params), stmt.value
        if path is None or path in out or value in used:
            return None
        if not isinstance(value, ir.Const) and value not in action.params:
            return None
        out[path] = stmt
        used.add(value)
    return out


def _path(target: ir.LValue, params: Sequence[ir.Var]) -> Path | None:
    """Return the name of a scalar variable, or of a scalar field of structs and headers."""
    if not isinstance(target.type, Bits | Bool):
        return None
    names: list[object] = []
    at: ir.Expr = target
    while isinstance(at, ir.FieldOf):
        if not isinstance(at.base.type, Struct | Header):
            return None
        names.append(at.index)
        at = at.base
    if not isinstance(at, ir.Var) or at in params:
        return None
    return (at, *reversed(names))


def _bits(e: ir.Const) -> int:
    width = e.type.width if isinstance(e.type, Bits) else 1
    return int(e.value) & ((1 << width) - 1)
