"""Random v1model programs as P4 text."""

from __future__ import annotations

import random

from source_blocks import SUB_PARSER, Instances, Program, emits, few, states
from source_statements import Maker, Statements
from source_types import ITEM
from source_values import MACROS, Place, Scope, random_bits

from gradplane.switch.ir.types import Bits

ALGORITHMS = ("crc32", "crc16", "identity", "csum16", "xor16", "random", "crc32_custom")
READ_ONLY = {
    "ingress_port": 9, "egress_port": 9, "packet_length": 32, "instance_type": 32,
    "egress_rid": 16, "checksum_error": 1, "mcast_grp": 16, "egress_spec": 9,
}  # fmt: skip


def v1model_program(rng: random.Random) -> str:
    program = _Program(rng)
    return f"""
#include <core.p4>
#include <v1model.p4>
{MACROS}
{program.types.declarations}
{program.declared}
{SUB_PARSER}
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {{
    {states(rng, program.types, program.scope())}
}}
control V(inout headers_t h, inout meta_t m) {{ apply {{
    {program.checksum("verify_checksum")}
}} }}
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {{
    {program.control(_INGRESS)}
}}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {{
    {program.control(_EGRESS)}
}}
control C(inout headers_t h, inout meta_t m) {{ apply {{
    {program.checksum("update_checksum")}
}} }}
control D(packet_out p, in headers_t h) {{ apply {{ {emits(rng)} }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


class _Program(Program):
    def scope(self, writable: bool = True) -> Scope:
        scope = super().scope(writable)
        scope.places += [Place(f"s.{n}", Bits(w), False) for n, w in READ_ONLY.items()]
        return scope

    def control(self, ways: list[Maker]) -> str:
        start = "s.egress_spec = 1;" if ways is _INGRESS else ""
        text = self.controlled(self.scope(), self._instances(), ways)
        return text.replace("$", f"m.rounds = m.rounds + 1; {start}")

    def _instances(self) -> Instances:
        """Return registers, counters and meters, and the calls on them."""
        cell = random_bits(self.rng)
        register, counter, meter = (self.types.name(what) for what in "rcm")
        text = f"register<{cell}>({self.rng.randrange(1, 9)}) {register};"
        text += f" counter(5, CounterType.packets_and_bytes) {counter};"
        text += f" meter(5, MeterType.packets) {meter};"

        def read(w: Statements) -> str | None:
            target = w.values.target(cell)
            return target and f"{register}.read({target}, {_index(w)});"

        def metered(w: Statements) -> str | None:
            return f"{meter}.execute_meter({_index(w)}, {w.values.target(Bits(3))});"

        more: list[Maker] = [
            read,
            metered,
            lambda w: f"{register}.write({_index(w)}, {w.values.value(cell, 2)});",
            lambda w: f"{counter}.count({_index(w)});",
            _hash,
            _random,
        ]
        return Instances(text, more, [], self._table)

    def _table(self) -> tuple[str, str, str]:
        """Return a table's direct counter or meter, or its profile."""
        made, kind = self.types.name("x"), self.rng.randrange(6)
        if kind == 0:
            return f"direct_counter(CounterType.packets) {made};", f"counters = {made};", ""
        if kind == 1:
            own = self.types.name("a")
            before = f"direct_meter<bit<3>>(MeterType.bytes) {made};"
            before += f" action {own}() {{ {made}.read(m.small); }}"
            return before, f"meters = {made};", f"{own};"
        if kind == 2:
            return "", "implementation = action_profile(9);", ""
        if kind == 3:
            selector = "action_selector(HashAlgorithm.crc16, 32w9, 32w14)"
            return "", f"implementation = {selector};", ""
        return "", "", ""

    def checksum(self, call: str) -> str:
        """Return a checksum of some fields, in place of another."""
        writer = Statements(self.rng, self.types, self.scope())
        writer.scope.places = [p for p in writer.scope.places if not p.text.startswith("s.")]
        fields = ", ".join(writer.values.value(random_bits(self.rng), 0) for _ in range(3))
        target = self.rng.choice(["h.plain.a", "h.items[0].b", "m.i"])
        condition = "h.plain.isValid()"
        return f"{call}({condition}, {{ {fields} }}, {target}, HashAlgorithm.csum16);"


def _index(w: Statements) -> str:
    return f"(bit<32>) {w.values.value(Bits(3), 2)}"


def _hash(w: Statements) -> str | None:
    target = w.values.target(Bits(w.rng.choice([8, 16, 24])))
    algorithm = w.rng.choice(ALGORITHMS)
    data = ", ".join(w.values.value(random_bits(w.rng), 1) for _ in range(w.rng.randrange(1, 4)))
    bounds = w.values.value(Bits(16), 1), w.values.value(Bits(32), 1)
    if target is None:
        return None
    given = f"{target}, HashAlgorithm.{algorithm}, {bounds[0]}, {{ {data} }}, {bounds[1]} | 1"
    return f"hash({given});"


def _random(w: Statements) -> str:
    return f"random({w.values.target(Bits(8))}, {w.values.value(Bits(8), 1)}, 8w255);"


def _clone(kind: str, w: Statements) -> str:
    return f"clone_preserving_field_list(CloneType.{kind}, (bit<32>) {few(w)}, 1);"


_ANY: list[Maker] = [
    lambda w: "if (h.f.rest[3:1] == 7) { mark_to_drop(s); }",
    lambda w: f"truncate((bit<32>) {w.values.value(Bits(6), 1)});",
    lambda w: f"assert({w.values.value(Bits(8), 2)} != 77);",
]
_INGRESS: list[Maker] = [
    *_ANY,
    lambda w: f"s.egress_spec = {w.values.value(Bits(9), 2)};",
    lambda w: f"s.mcast_grp = (bit<16>) {few(w)};",
    lambda w: f"digest<item_t>(1, {w.values.value(ITEM, 2)});",
    lambda w: _clone("I2E", w),
    lambda w: "if (m.rounds < 3) { resubmit_preserving_field_list(1); }",
]
_EGRESS: list[Maker] = [
    *_ANY,
    lambda w: f"if (m.rounds < 4) {{ {_clone('E2E', w)} }}",
    lambda w: "if (m.rounds < 3) { recirculate_preserving_field_list(1); }",
]
