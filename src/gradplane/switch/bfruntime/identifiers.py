"""The ids of BFRuntime's objects: those of P4Info's objects, and of the fields that it adds.

Ids of fields that are not the program's begin at 2^16, in the order in which the Tofino back end of
p4c numbers them; names have a $ in front.
"""

from __future__ import annotations

from enum import IntEnum, auto


class FieldId(IntEnum):
    """The fields that BFRuntime adds to a program's."""

    START = 1 << 16
    MATCH_PRIORITY = auto()
    ACTION = auto()
    ACTION_MEMBER_ID = auto()
    SELECTOR_GROUP_ID = auto()
    ACTION_MEMBER_STATUS = auto()
    MAX_GROUP_SIZE = auto()
    ENTRY_TTL = auto()
    ENTRY_HIT_STATE = auto()
    METER_SPEC_CIR_KBPS = auto()
    METER_SPEC_PIR_KBPS = auto()
    METER_SPEC_CBS_KBITS = auto()
    METER_SPEC_PBS_KBITS = auto()
    METER_SPEC_CIR_PPS = auto()
    METER_SPEC_PIR_PPS = auto()
    METER_SPEC_CBS_PKTS = auto()
    METER_SPEC_PBS_PKTS = auto()
    COUNTER_SPEC_BYTES = auto()
    COUNTER_SPEC_PKTS = auto()
    METER_INDEX = auto()
    COUNTER_INDEX = auto()
    REGISTER_INDEX = auto()
    # Tofino's own begin here; numbers that have no field of ours are left out.
    LPF_INDEX = START + 24
    WRED_INDEX = auto()
    SELECTOR_MEMBER_ID = auto()
    SELECTOR_GROUP = auto()
    SELECTOR_MEMBER_STATUS = auto()
    SELECTOR_MAX_GROUP_SIZE = auto()
    ADT_OFFSET = auto()
    LPF_SPEC_TYPE = auto()
    LPF_SPEC_GAIN_TIME_CONSTANT_NS = auto()
    LPF_SPEC_DECAY_TIME_CONSTANT_NS = auto()
    LPF_SPEC_OUT_SCALE_DOWN_FACTOR = auto()
    WRED_SPEC_TIME_CONSTANT_NS = auto()
    WRED_SPEC_MIN_THRESH_CELLS = auto()
    WRED_SPEC_MAX_THRESH_CELLS = auto()
    WRED_SPEC_MAX_PROBABILITY = auto()
    PORT_METADATA_PORT = auto()
    PORT_METADATA_DEFAULT_FIELD = auto()
    HASH_ALGORITHM_ROTATE = auto()
    HASH_ALGORITHM_SEED = auto()
    HASH_ALGORITHM_MSB = auto()
    HASH_ALGORITHM_EXTEND = auto()
    HASH_ALGORITHM_PRE_DEFINED = auto()
    HASH_ALGORITHM_USER_DEFINED = auto()
    HASH_VALUE = START + 47
    HASH_CONFIGURE_START_BIT = auto()
    HASH_CONFIGURE_LENGTH = auto()
    HASH_CONFIGURE_ORDER = auto()


class TableId(IntEnum):
    """The upper byte of a table's id, where P4Info has no object or one for several tables."""

    ACTION_PROFILE = 0x81
    ACTION_SELECTOR = 0x82
    SELECTOR_GET_MEMBER = 0x83
    REGISTER_PARAM = 0x84
    PORT_METADATA = 0x85
    LPF = 0x86
    WRED = 0x87
    HASH_ALGORITHM = 0x88
    HASH_COMPUTE = 0x89
    HASH_CONFIGURE = 0x8A


def table_id(kind: TableId, number: int) -> int:
    """Return the id of a table of a kind, from the id of the object in P4Info."""
    return kind << 24 | number & 0xFFFFFF
