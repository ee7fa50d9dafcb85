"""The resources of Tofino 1 and Tofino 2: numbers that p4lang/p4c publishes in its Tofino back end.

The layout of a stage follows "Forwarding Metamorphosis" (Bosshart et al., SIGCOMM 2013), section 4.

A program that takes more of one than the chip has gets an `Overrun`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gradplane.switch.source import Span

RAM_ROWS = 1024
RAM_BITS = 128
"""The rows of an SRAM block and their width."""
TCAM_ROWS = 512
"""The rows of a TCAM block."""
OVERHEAD_BITS = 64
"""The part of an SRAM's row that may hold other things than the key: which action, its data,
pointers."""
GROUPS_PER_RAM = 5
"""The entries that a row of one SRAM can hold."""
PARTITION_COLUMNS = 5
"""The blocks side by side that a logical table has for a ternary table in SRAM."""
IMMEDIATE_BITS = 32
"""The action data that can stand beside the key."""
HASH_INDEX_BITS = 10
"""The bits of a hash that choose a row; they need not be stored with the key."""
WAYS = 4
"""The hash functions of an exact table, unless it is direct."""
HASH_SELECT_BITS = 12
"""The bits of a hash group that choose a block."""
HASH_DIST_BITS = 16
"""The bits that a hash distribution unit carries to an action, a register or a counter."""
RANGE_NIBBLES = 5
"""The groups of four bits that a range in a ternary key can have."""
GATEWAY_RANGE_BITS = 12
"""The bits of a field that a condition can compare with `<`."""
GATEWAY_BYTES = 4
"""The bytes of the crossbar that a condition compares, beside the bits for ranges."""
GATEWAY_ROWS = 4
"""The rows of the small TCAM in a gateway."""
PARSER_KEY_BITS = 32
"""The bits that a parser compares at once."""


@dataclass(frozen=True)
class Resource:
    """A resource of every stage: its unit, for people, and how many there are in a stage.

    way_out: the change to a program that lacks it."""

    name: str
    short: str
    amount: int
    way_out: str


STAGE: Mapping[str, Resource] = {
    "tables": Resource(
        "logical tables", "tbl", 16, "merge tables with the same key, or statements into actions"
    ),
    "sram": Resource(
        "SRAM blocks", "sram", 80, "make tables and registers smaller, or shorten keys and data"
    ),
    "map_ram": Resource("map RAM blocks", "map", 48, "make registers, counters and meters smaller"),
    "tcam": Resource(
        "TCAM blocks", "tcam", 24, "match exactly where possible, use Alpm, or shorten the key"
    ),
    "meter_alus": Resource(
        "stateful and meter ALUs", "alu", 4,
        "spread registers over independent stages, or put two numbers into one cell",
    ),
    "stats_alus": Resource("counter ALUs", "cnt", 4, "count fewer things, or put them together"),
    "hash_groups": Resource(
        "hash groups of 52 bits", "hash", 8, "use fewer exact tables and hashes in one stage"
    ),
    "hash_bits": Resource("hash bits", "bits", 416, "use fewer exact tables, or narrower hashes"),
    "hash_units": Resource(
        "hash distribution units", "unit", 6, "compute hashes and indices in an earlier stage"
    ),
    "exact_bytes": Resource(
        "exact crossbar bytes", "xbar", 128, "shorten exact keys, conditions and hashed fields"
    ),
    "ternary_bytes": Resource(
        "ternary crossbar bytes", "txbr", 66, "shorten ternary, lpm and range keys"
    ),
    "ternary_tables": Resource(
        "ternary tables", "tern", 8, "merge ternary tables, or match exactly"
    ),
    "gateways": Resource(
        "gateways", "gate", 16, "merge conditions, or make them fields of a table's key"
    ),
    "action_bytes": Resource(
        "action data bytes", "data", 128, "pass fewer or narrower parameters to actions"
    ),
    "instructions": Resource(
        "action instructions (VLIW)", "vliw", 64, "share actions between tables"
    ),
}  # fmt: skip


@dataclass(frozen=True)
class ChipResources:
    """A chip: its stages, containers and parser.

    name: as users write it. family: as `DeviceFacts` has it. containers: of the packet header
    vector, bits of one to how many (the kinds that can be matched and computed). passive: those
    that only carry values from the parser to the deparser (tagalong; on Tofino 2 mocha and dark
    ones). parser_rows: of TCAM, in each direction. extractors: bits to how many a state can fill.
    shift: bytes that a parser state can pass by. egress_bytes: of a packet that the egress parser
    can pass by, 0 if there is no bound. most_in_one: of the containers, those that ingress
    or egress alone can have.
    """

    name: str
    title: str
    family: str
    stages: int
    containers: Mapping[int, int]
    passive: Mapping[int, int]
    parser_rows: int
    extractors: Mapping[int, int]
    shift: int
    egress_bytes: int
    most_in_one: Mapping[int, int]


CHIPS: Mapping[str, ChipResources] = {
    "tofino": ChipResources(
        "tofino", "Tofino 1", "tf1", 12, {8: 64, 16: 96, 32: 64}, {8: 32, 16: 48, 32: 32},
        256, {8: 4, 16: 4, 32: 4}, 32, 160, {8: 48, 16: 80, 32: 48},
    ),
    "tofino2": ChipResources(
        "tofino2", "Tofino 2", "tf2", 20, {8: 48, 16: 72, 32: 48}, {8: 32, 16: 48, 32: 32},
        256, {16: 20}, 32, 0, {8: 48, 16: 72, 32: 48},
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Impossible:
    """Something that no ALU does, and what would do it."""

    what: str
    way_out: str


@dataclass(frozen=True, slots=True)
class Overrun:
    """A reason for which a program does not fit: the resource, the line that causes it, and what
    would change that."""

    resource: str
    what: str
    span: Span
    way_out: str
