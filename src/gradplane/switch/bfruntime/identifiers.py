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
    SNAPSHOT_START_STAGE = auto()
    SNAPSHOT_END_STAGE = auto()
    SNAPSHOT_ENABLE = auto()
    SNAPSHOT_TRIGGER_STATE = auto()
    SNAPSHOT_TIMER_ENABLE = auto()
    SNAPSHOT_TIMER_TRIGGER = auto()
    SNAPSHOT_TIMER_VALUE_USECS = auto()
    SNAPSHOT_TABLE_INFO = START + 60
    SNAPSHOT_METER_ALU_INFO = auto()
    SNAPSHOT_PREV_STAGE_TRIGGER = START + 63
    SNAPSHOT_INGRESS_TRIGGER_MODE = auto()
    SNAPSHOT_LOCAL_STAGE_TRIGGER = auto()
    SNAPSHOT_NEXT_TABLE_NAME = START + 67
    SNAPSHOT_ENABLED_NEXT_TABLES = auto()
    SNAPSHOT_GLOBAL_EXECUTE_TABLES = auto()
    SNAPSHOT_ENABLED_GLOBAL_EXECUTE_TABLES = auto()
    SNAPSHOT_LONG_BRANCH_TABLES = auto()
    SNAPSHOT_ENABLED_LONG_BRANCH_TABLES = auto()
    SNAPSHOT_DEPARSER_ERROR = auto()
    SNAPSHOT_TABLE_NAME = START + 75
    SNAPSHOT_METER_TABLE_NAME = auto()
    SNAPSHOT_METER_ALU_OPERATION_TYPE = auto()
    SNAPSHOT_MATCH_HIT_HANDLE = auto()
    SNAPSHOT_TABLE_HIT = auto()
    SNAPSHOT_TABLE_INHIBITED = auto()
    SNAPSHOT_TABLE_EXECUTED = auto()
    SNAPSHOT_LIVENESS_FIELD_NAME = auto()
    SNAPSHOT_LIVENESS_VALID_STAGES = auto()
    SNAPSHOT_THREAD = auto()
    SNAPSHOT_INGRESS_CAPTURE = auto()
    SNAPSHOT_EGRESS_CAPTURE = auto()
    SNAPSHOT_GHOST_CAPTURE = auto()
    DEBUG_COUNTER_TABLE = START + 90
    DEBUG_COUNTER_TYPE = auto()
    DEBUG_COUNTER_VALUE = auto()


class TableId(IntEnum):
    """The upper byte of the id of a table or digest, as the chip's compiler has it."""

    ACTION_PROFILE = 0x81
    ACTION_SELECTOR = 0x82
    COUNTER = 0x83
    METER = 0x85
    WRED = 0x87
    LPF = 0x89
    REGISTER = 0x8B
    REGISTER_PARAM = 0x8D
    DIGEST = 0x8E
    PORT_METADATA = 0x90
    SNAPSHOT_CONFIG = 0x91
    SNAPSHOT_TRIGGER = 0x92
    SNAPSHOT_DATA = 0x93
    SNAPSHOT_LIVENESS = 0x94
    HASH_CONFIGURE = 0x95
    HASH_COMPUTE = 0x96
    HASH_ALGORITHM = 0x97
    DEBUG_COUNTER = 0x99
    SELECTOR_GET_MEMBER = 0x9A


def table_id(kind: TableId, number: int) -> int:
    """Return the id of a table or digest of a kind, from the id of the object in P4Info."""
    return kind << 24 | number & 0xFFFFFF
