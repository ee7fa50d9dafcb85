"""Annotations and pragmas by which programs for the chip guide its compiler: they are accepted
and change nothing."""

from __future__ import annotations

import pytest
from tnaprograms import packet, switch

ENGINES = pytest.mark.parametrize("engine", ["interpreter", "jit"])
OF_TABLES = """
@proxy_hash_width(16)
@use_hash_action(1)
@ways(4) @pack(2)
@stage(3) @placement_priority(3)
@stage(3, 512, "noimmediate")
@idletime_precision(6)
@force_immediate(1) @immediate(0)
@ternary(1)
@alpm(1) @alpm_partitions(1024) @alpm_subtrees_per_partition(2)
@atcam_number_partitions(64)
@entries_with_ranges(16)
@use_identity_hash(1)
@selector_enable_scramble(0)
@no_versioning(1)
@force_table_dependency("t0") @ignore_table_dependency("ingress.t0")
@disable_atomic_modify(1)
@pragma stage 4
@pragma an_unknown one "x" 3
@an_unknown[a = 1, b = "x"]
""".strip().splitlines()
OF_TYPES = """
@pa_container_size("ingress", "h.a.x", 8) @pa_alias("ingress", "h.a.x", "h.a.y")
@pa_solitary("ingress", "h.a.x") @pa_no_init("ingress", "m.kept") @pa_auto_init_metadata
@pa_mutually_exclusive("ingress", "h.a.x", "h.a.y") @egress_intrinsic_metadata_opt
@command_line("--no-dead-code-elimination")
@pragma pa_container_size ingress h.a.x 8
struct annotated_t { bit<8> x; }
"""
OF_STATES = """
@dont_unroll @critical @force_shift("ingress", 8) @packet_entry
state more { transition accept; }
"""
OF_STATEMENTS = """
@in_hash { h.a.x = h.a.y ^ h.a.x; }
@in_vliw { h.a.y = h.a.x; }
@stage(2) { h.a.kind = h.a.kind + 1; }
"""


@ENGINES
@pytest.mark.parametrize("annotation", ["", *OF_TABLES])
def test_a_table_works_as_without_its_annotations(engine: str, annotation: str) -> None:
    made = switch(
        engine,
        ingress_locals=f"""action set(bit<8> v) {{ h.a.z = v; }}
            {annotation}
            table t {{
                key = {{ h.a.x : exact; }}
                actions = {{ set; @defaultonly NoAction; }}
                const default_action = NoAction;
                size = 512;
            }}""",
        ingress="t.apply(); tm.ucast_egress_port = 1;",
    )
    made.table("t").add({"h.a.x": 2}, "set", {"v": 9})
    assert made.process(1, packet(0, 2)) == [(1, packet(0, 2, z=9))]


@ENGINES
def test_types_states_and_statements_have_annotations(engine: str) -> None:
    made = switch(
        engine, types=OF_TYPES, parser="pkt.extract(h.a); transition more;", states=OF_STATES,
        ingress=OF_STATEMENTS + "tm.ucast_egress_port = 1;",
    )  # fmt: skip
    assert made.process(1, packet(1, 6, 3)) == [(1, packet(2, 5, 5))]
