"""Random PSA programs as P4 text: each block has its own headers and metadata to take along."""

from __future__ import annotations

import random

from source_blocks import SUB_PARSER, Instances, Program, emits, few, states
from source_statements import Maker, Statements
from source_types import ERROR, HEADERS, ITEM, META
from source_values import MACROS, Place, Scope, Source, Values, random_bits

from gradplane.switch.ir.types import BOOL, Bits, Type

ALGORITHMS = ("IDENTITY", "CRC32", "CRC32_CUSTOM", "CRC16", "CRC16_CUSTOM", "ONES_COMPLEMENT16",
              "TARGET_DEFAULT")  # fmt: skip
ONWARDS = ("normal", "clone_i2e")  # metadata for egress
ROUND = ("resubmit", "recirculate", "clone_e2e")  # metadata that may come round again and again

_AFTER_INGRESS = {"clone_i2e": "psa_clone_i2e(o)", "resubmit": "psa_resubmit(o)",
                  "normal": "psa_normal(o)"}  # fmt: skip
_AFTER_EGRESS = {"clone_e2e": "psa_clone_e2e(o)", "recirculate": "psa_recirculate(o, s)"}


def psa_program(rng: random.Random) -> str:
    return _Program(rng).text()


class _Program(Program):
    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.brought = {name: self.types.carried() for name in (*ONWARDS, *ROUND)}

    def text(self) -> str:
        brought = {n: f"{n}_t" if n in ROUND else str(t) for n, t in self.brought.items()}
        rounds = "\n".join(f"struct {n}_t {{ bit<8> rounds; {self.brought[n]} more; }}"
                           for n in ROUND)  # fmt: skip
        return f"""
#include <core.p4>
#include <{self.rng.choice(["psa.p4", "bmv2/psa.p4"])}>
{MACROS}
{self.types.declarations}
{rounds}
{self.declared}
{SUB_PARSER}
parser IP(packet_in p, out headers_t h, inout meta_t m, in psa_ingress_parser_input_metadata_t s,
        in {brought["resubmit"]} resubmitted, in {brought["recirculate"]} recirculated) {{
    {self._parser("PortIdUint_t) s.ingress_port", ("resubmit", "recirculate"))}
}}
control I(inout headers_t h, inout meta_t m, in psa_ingress_input_metadata_t s,
        inout psa_ingress_output_metadata_t o) {{
    {self._control(_INGRESS, "ingress")}
}}
control ID(packet_out p, out {brought["clone_i2e"]} clone_i2e, out {brought["resubmit"]} resubmit,
        out {brought["normal"]} normal, inout headers_t h, in meta_t m,
        in psa_ingress_output_metadata_t o) {{
    {self._deparser(_AFTER_INGRESS, True)}
}}
parser EP(packet_in p, out headers_t h, inout meta_t m, in psa_egress_parser_input_metadata_t s,
        in {brought["normal"]} normal, in {brought["clone_i2e"]} cloned_i2e,
        in {brought["clone_e2e"]} cloned_e2e) {{
    {self._parser("PortIdUint_t) s.egress_port", ("normal", "clone_i2e", "clone_e2e"))}
}}
control E(inout headers_t h, inout meta_t m, in psa_egress_input_metadata_t s,
        inout psa_egress_output_metadata_t o) {{
    {self._control(_EGRESS, "egress")}
}}
control ED(packet_out p, out {brought["clone_e2e"]} clone_e2e,
        out {brought["recirculate"]} recirculate, inout headers_t h, in meta_t m,
        in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t s) {{
    {self._deparser(_AFTER_EGRESS, False)}
}}
IngressPipeline(IP(), I(), ID()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
"""

    # -- parsers --------------------------------------------------------------------------------

    def _parser(self, port: str, brought: tuple[str, ...]) -> str:
        scope = self.scope()
        scope.places.append(Place(f"(({port})", Bits(32), False))
        names = {"resubmit": "resubmitted", "recirculate": "recirculated", "normal": "normal",
                 "clone_i2e": "cloned_i2e", "clone_e2e": "cloned_e2e"}  # fmt: skip
        first = "InternetChecksum() ck; "
        starts = ""
        for name in brought:
            given, t = names[name], self.brought[name]
            if name in ROUND:
                path = name.upper()
                starts += f"if (s.packet_path == PSA_PacketPath_t.{path}) {{ "
                starts += f"m.rounds = {given}.rounds; }} "
                given += ".more"
            scope.places += self.types.places(given, t, False)
        if t := self._word_aligned(scope):
            starts += f"ck.add({t}); m.small = ck.get()[4:2]; "
        return first + states(self.rng, self.types, scope, starts)

    @staticmethod
    def _word_aligned(scope: Scope) -> str:
        words = [p.text for p in scope.places if isinstance(p.type, Bits) and not p.type.width % 16]
        return f"{{ {', '.join(words[:5])} }}" if words else ""

    # -- controls -------------------------------------------------------------------------------

    def _control(self, ways: list[Maker], which: str) -> str:
        scope = self.scope()
        scope.places.append(Place("o.clone", BOOL))
        scope.places.append(Place(f"((PortIdUint_t) s.{which}_port)", Bits(32), False))
        scope.places.append(Place("s.parser_error", ERROR, False))
        start = "m.rounds = m.rounds + 1;"
        end = "if (m.rounds > 3) { o.clone = false; }"
        if which == "ingress":
            end = "if (m.rounds > 3) { o.resubmit = false; } if (s.ingress_port == o.egress_port"
            end += " && s.ingress_port == PSA_PORT_RECIRCULATE) { ingress_drop(o); }"
            start += " send_to_port(o, (PortId_t) 1);"
        else:
            klass = "((ClassOfServiceUint_t) s.class_of_service)"
            scope.places.append(Place(klass, Bits(8), False))
            scope.places.append(Place("((EgressInstanceUint_t) s.instance)", Bits(16), False))
        text = (
            self.controlled(scope, self._instances(), ways)
            .replace("$", start)
            .replace("exit;", f"{{ {end} exit; }}")
        )
        return text.replace("return; }", f"{end} return; }}")[:-1] + f" {end} }}"

    def _instances(self) -> Instances:
        name, rng = self.types.name, self.rng
        cell, index, hashed = random_bits(rng), random_bits(rng), random_bits(rng)
        register, counter, meter, hash_, chance = (name(n) for n in "rcxgn")
        first = Values(rng, Scope(), {}).literal(cell)
        algorithm = f"PSA_HashAlgorithm_t.{rng.choice(ALGORITHMS)}"
        text = f"Register<{cell}, {index}>({rng.randrange(1, 9)}, {first}) {register};"
        text += f" Counter<bit<32>, bit<3>>(5, PSA_CounterType_t.PACKETS_AND_BYTES) {counter};"
        text += f" Meter<bit<3>>(5, PSA_MeterType_t.{rng.choice(['PACKETS', 'BYTES'])}) {meter};"
        text += f" Hash<{hashed}>({algorithm}) {hash_};"
        text += f" Random<bit<8>>(3, {rng.randrange(3, 200)}) {chance};"

        def get_hash(v: Values, depth: int) -> str:
            data = ", ".join(v.value(random_bits(rng), 1) for _ in range(rng.randrange(1, 4)))
            if rng.randrange(2):
                return f"{hash_}.get_hash({{ {data} }})"
            high = v.value(Bits(16), 1)
            return f"{hash_}.get_hash({v.value(Bits(16), 1)}, {{ {data} }}, ({high} | 1))"

        def metered(w: Statements) -> str:
            before = w.rng.choice([", PSA_MeterColor_t.YELLOW", ""])
            colour = f"{meter}.execute({w.values.value(Bits(3), 1)}{before})"
            return f"if ({colour} == PSA_MeterColor_t.RED) {w.block(1, 0)}"

        sources: list[Source] = [
            (cell, lambda v, d: f"{register}.read({v.value(index, 1)})"),
            (hashed, get_hash),
            (Bits(8), lambda v, d: f"{chance}.read()"),
        ]
        more: list[Maker] = [
            lambda w: f"{register}.write({w.values.value(index, 1)}, {w.values.value(cell, 2)});",
            lambda w: f"{counter}.count({w.values.value(Bits(3), 2)});",
            metered,
        ]
        return Instances(text, more, sources, self._table)

    def _table(self) -> tuple[str, str, str]:
        """Return a table's direct counter or meter with an action of its own, or its profile."""
        made, own, kind = self.types.name("x"), self.types.name("a"), self.rng.randrange(6)
        if kind == 0:
            before = f"DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) {made};"
            before += f" action {own}() {{ {made}.count(); m.small = 1; {made}.count(); }}"
            return before, f"psa_direct_counter = {made};", f"{own};"
        if kind == 1:
            before = f"DirectMeter(PSA_MeterType_t.BYTES) {made};"
            red = f"{made}.execute() == PSA_MeterColor_t.RED"
            before += f" action {own}(bit<3> d) {{ if ({red}) {{ m.small = d; }} }}"
            return before, f"psa_direct_meter = {made};", f"{own};"
        if kind == 2:
            return f"ActionProfile(9) {made};", f"psa_implementation = {made};", ""
        if kind == 3:
            before = f"ActionSelector(PSA_HashAlgorithm_t.CRC16, 9, 14) {made};"
            before += f" action {own}() {{ m.small = 5; }}"
            empty = self.rng.choice(["", f" psa_empty_group_action = {own}();"])
            return before, f"psa_implementation = {made};{empty}", f"{own};"
        return "", "", ""

    # -- deparsers ------------------------------------------------------------------------------

    def _deparser(self, conditions: dict[str, str], ingress: bool) -> str:
        scope = self.scope(writable=False)
        writer = Statements(self.rng, self.types, scope, [], ("h.items",), ("exit;", "return;"))
        text = "InternetChecksum() ck; Checksum<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc;"
        text += " Digest<item_t>() learnt;" if ingress else ""
        text += " apply { "
        for name, condition in conditions.items():
            more = f"{name}.more" if name in ROUND else name
            set_it = f"{more} = {self._whole(writer, self.brought[name])};"
            if name in ROUND:
                set_it += f" {name}.rounds = m.rounds;"
            text += f"if ({condition}) {{ {set_it} }} "
        text += f"crc.update({{ {writer.values.value(Bits(24), 1)}, h.plain }}); h.items[0].a ="
        text += f" crc.get()[{self.rng.choice(['7:0', '31:24'])}]; "
        if words := self._word_aligned(scope):
            text += f"ck.subtract({words}); h.items[1].a = ck.get()[7:0]; ck.clear(); "
        if ingress:
            text += f"if ({writer.values.value(BOOL)}) {{ "
            text += f"learnt.pack({writer.values.value(ITEM)}); }} "
        text += writer.block(3)
        return f"{text} {emits(self.rng)} }}"

    def _whole(self, writer: Statements, t: Type) -> str:
        return {META: "m", HEADERS: "h"}.get(t) or writer.values.value(t)


_ANY: list[Maker] = [
    lambda w: f"o.clone = true; o.clone_session_id = (CloneSessionId_t) (bit<16>) {few(w)};",
    lambda w: f"assert({w.values.value(Bits(8), 2)} != 77);",
]
_EGRESS: list[Maker] = [*_ANY, lambda w: "if (h.f.rest[3:1] == 7) { egress_drop(o); }"]
_INGRESS: list[Maker] = [
    *_ANY,
    lambda w: f"send_to_port(o, (PortId_t) {w.values.value(Bits(32), 1)});",
    lambda w: "send_to_port(o, PSA_PORT_RECIRCULATE);",
    lambda w: "o.resubmit = true;",
    lambda w: "send_to_port(o, PSA_PORT_CPU);",
    lambda w: f"multicast(o, (MulticastGroup_t) (bit<32>) {few(w)});",
    lambda w: "if (h.f.rest[3:1] == 7) { ingress_drop(o); }",
    lambda w: f"o.class_of_service = (ClassOfService_t) {w.values.value(Bits(8), 1)};",
]
