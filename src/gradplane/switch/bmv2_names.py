"""Names in BMv2's JSON that the writer (backends/bmv2) and the reader (frontends/bmv2) share."""

PARAMETER_COUNTS = {
    "assign": 2, "assign_VL": 2, "assign_header": 2, "assign_union": 2,
    "assign_header_stack": 2, "assign_union_stack": 2, "add_header": 1, "remove_header": 1,
    "add_header_fast": 1, "push": 2, "pop": 2, "exit": 0, "mark_to_drop": 1, "truncate": 1,
    "register_read": 3, "register_write": 3, "count": 2, "execute_meter": 3,
    "modify_field_rng_uniform": 3, "modify_field_with_hash_based_offset": 4,
    "generate_digest": 2, "resubmit": 1, "recirculate": 1, "assert": 1, "assume": 1, "log_msg": 2,
    # of JSON that p4c made of P4_14
    "modify_field": 2, "copy_header": 2, "drop": 0, "no_op": 0,
}  # fmt: skip
"""The primitives of v1model that are called alike wherever they stand, and how many parameters each
takes."""

CLONES = {"I2E": "clone_ingress_pkt_to_egress", "E2E": "clone_egress_pkt_to_egress"}
JUMPS = ("_jump", "_jump_if_zero")
MARKED = ("egress_spec", "mcast_grp")
"""The fields of standard_metadata that mark_to_drop sets."""

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
HIT, MISS = "__HIT__", "__MISS__"
"""The keys of a table's next nodes where it is told apart whether an entry matched."""

ARRAYS = {"register": "register_arrays", "counter": "counter_arrays", "meter": "meter_arrays"}
"""The sections of extern arrays."""

LARGEST_PRIORITY = (1 << 31) - 1
"""Priorities: of ours the largest wins, of BMv2's the smallest."""
