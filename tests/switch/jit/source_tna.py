"""Random TNA programs as P4 text, for both chips: register actions, mirroring, resubmission,
recirculation, and a header that takes metadata along from ingress to egress."""

from __future__ import annotations

import random

from source_blocks import SUB_PARSER, Instances, Program, emits, few, states
from source_stateful import Stateful
from source_statements import Maker, Statements
from source_types import ITEM
from source_values import MACROS, Place, Scope, Source, Values, random_bits

from gradplane.switch.ir.types import BOOL, Bits

ALGORITHMS = ("IDENTITY", "RANDOM", "XOR8", "XOR16", "XOR32", "CRC8", "CRC16", "CRC32", "CRC64")
ROUNDS = 3  # further passes of a packet


def tna_program(rng: random.Random) -> str:
    return _Program(rng).text()


class _Program(Program):
    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.second = bool(rng.randrange(2))
        self.recirculation = 6 if self.second else 68

    def text(self) -> str:
        pipes, package = "Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;", "Switch(pipe)"
        if not self.rng.randrange(4):  # pipes whose tables and externs have names of their own
            pipes += " Pipeline(IP(), I(), ID(), EP(), E(), ED()) other;"
            package = "Switch(pipe, other)"
        return f"""
#include <core.p4>
#include <{"t2na.p4" if self.second else "tna.p4"}>
match_kind {{ optional }}
{MACROS}
{self.types.declarations}
header bridge_t {{ bit<8> rounds; bit<16> more; }}
{self.declared}
{SUB_PARSER}
parser IP(packet_in p, out headers_t h, out meta_t m, out ingress_intrinsic_metadata_t ig) {{
    bridge_t again; ParserCounter() left; {self._parser(INGRESS_START, "ig.ingress_port")}
}}
control I(inout headers_t h, inout meta_t m, in ingress_intrinsic_metadata_t ig,
        in ingress_intrinsic_metadata_from_parser_t prsr,
        inout ingress_intrinsic_metadata_for_deparser_t d,
        inout ingress_intrinsic_metadata_for_tm_t tm) {{
    {self._control(_INGRESS, ingress=True)}
}}
control ID(packet_out p, inout headers_t h, in meta_t m,
        in ingress_intrinsic_metadata_for_deparser_t d) {{
    Resubmit(2) again; Digest<item_t>() learnt; bridge_t bridge; {self._deparser(ingress=True)}
}}
parser EP(packet_in p, out headers_t h, out meta_t m, out egress_intrinsic_metadata_t eg) {{
    bridge_t bridge; ParserCounter() left; {self._parser(EGRESS_START, "eg.egress_port")}
}}
control E(inout headers_t h, inout meta_t m, in egress_intrinsic_metadata_t eg,
        in egress_intrinsic_metadata_from_parser_t prsr,
        inout egress_intrinsic_metadata_for_deparser_t d,
        inout egress_intrinsic_metadata_for_output_port_t oport) {{
    {self._control(_EGRESS, ingress=False)}
}}
control ED(packet_out p, inout headers_t h, in meta_t m,
        in egress_intrinsic_metadata_for_deparser_t d) {{
    {self._deparser(ingress=False)}
}}
{pipes}
{package} main;
"""

    # -- parsers --------------------------------------------------------------------------------

    def _parser(self, start: str, port: str) -> str:
        scope, rng = self.scope(), self.rng
        scope.places.append(Place(port, Bits(9), False))
        words = [p.text for p in scope.places if isinstance(p.type, Bits) and not p.type.width % 16]
        first = start
        if words:
            some = f"{{ {', '.join(words[:4])} }}"
            first += f" ck.add({some}); m.yes = ck.verify(); ck.subtract({{ {words[0]} }});"
            first += " m.small = ck.get()[4:2];"
        value = Values(rng, scope, self.types.literals).value(Bits(8), 2)
        first += f" left.set({value}); left.{rng.choice(['increment', 'decrement'])}(3);"
        first += " if (left.is_zero() || left.is_negative()) { m.small = m.small + 1; }"
        return "Checksum() ck; " + states(rng, self.types, scope, first)

    # -- controls -------------------------------------------------------------------------------

    def _control(self, ways: list[Maker], ingress: bool) -> str:
        scope = self.scope()
        scope.places.append(Place("d.drop_ctl", Bits(3), False))
        if ingress:
            scope.places.append(Place("ig.ingress_port", Bits(9), False))
            scope.places.append(Place("tm.qid", Bits(7 if self.second else 5)))
            start = "d.drop_ctl = 0; tm.ucast_egress_port = 1;"
            if self.rng.randrange(2):  # packets with errors stay if ingress reads them, even once
                scope.places.append(Place("prsr.parser_err", Bits(16), False))
                start += " if (prsr.parser_err == 2) { m.small = 1; }"
            back = "tm.ucast_egress_port = 2; tm.mcast_grp_a = 0; tm.mcast_grp_b = 0;"
            end = f"if (ig.ingress_port[6:0] - {self.recirculation} < 4) {{ {back} m.rounds = 9; }}"
            end += f" if (m.rounds >= {ROUNDS}) {{ d.resubmit_type = 0; d.mirror_type = 0; }}"
        else:
            scope.places.append(Place("eg.egress_rid", Bits(16), False))
            scope.places.append(Place("eg.pkt_length", Bits(16), False))
            scope.places.append(Place("eg.deflection_flag", Bits(1), False))
            scope.places.append(Place("eg.enq_qdepth", Bits(19), False))
            scope.places.append(Place("prsr.parser_err", Bits(16), False))
            start = "d.drop_ctl = 0;"
            end = f"if (m.rounds >= {ROUNDS}) {{ d.mirror_type = 0; }}"
        registers, calls = self._registers(scope)
        more, further = Stateful(self.rng, self.types, scope, self.second).some(2)
        text = self.controlled(scope, self._instances(), ways, f" {registers} {more}")
        text = text.replace("$", f"{start} {calls} {further}")
        text = text.replace("exit;", f"{{ {end} exit; }}").replace("return; }", f"{end} return; }}")
        return text[:-1] + f" {end} }}"

    def _registers(self, scope: Scope) -> tuple[str, str]:
        """Return registers with an action each, and a call of each; an action is one that a
        stateful ALU can do."""
        text, calls, rng = "", "", self.rng
        values = Values(rng, scope, self.types.literals)
        for _ in range(3):
            register, action = self.types.name("r"), self.types.name("ra")
            index, cell = random_bits(rng), Bits(rng.choice([8, 16, 32]), bool(rng.randrange(2)))
            if self.second and not rng.randrange(3):
                cell = Bits(64)
            p, q = self.types.name("n"), self.types.name("n")
            text += f" {cell} {p}; {cell} {q}; Register<{cell}, {index}>"
            text += f"({rng.randrange(1, 9)}, {values.literal(cell)}) {register};"
            text += f" RegisterAction<{cell}, {index}, {cell}>({register}) {action} = {{"
            text += f" void apply(inout {cell} value, out {cell} rv) {{"
            text += f" {self._body(cell, p, q)} }} }};"
            calls += f" {p} = {values.value(cell, 2)}; {q} = {values.value(cell, 2)};"
            calls += f" m.small = {action}.execute({values.value(index, 1)})[3:1];"
        return text, calls

    def _body(self, cell: Bits, p: str, q: str) -> str:
        """Return two comparisons, and what the cell and the result become by them."""
        rng = self.rng
        compare = [rng.choice(["==", "!=", "<", "<=", ">", ">="]) for _ in range(2)]
        sums = [rng.choice(["value", f"value + {p}", f"value - {q}"]) for _ in range(2)]
        conditions = [f"{s} {c} {rng.choice([p, q, '7'])}"
                      for s, c in zip(sums, compare, strict=True)]  # fmt: skip
        operations = ["+", "-", "|+|", "|-|", "&", "|", "^"]
        new = [
            rng.choice([p, "5", f"value {rng.choice(operations)} {rng.choice([p, q, '3'])}"])
            for _ in range(2)
        ]
        given = "" if cell.width == 8 else ", ".join(conditions)
        predicate = f"({cell}) ({Bits(cell.width)}) (bit<8>) "
        predicate += f"({Bits(cell.width)}) this.predicate({given})"
        if cell.signed:
            predicate = "value"
        results = [rng.choice([p, "value", predicate, "1"]) for _ in range(2)]
        chosen = conditions[0] if rng.randrange(2) else f" {rng.choice(['&&', '||'])} ".join(
            f"({c})" for c in conditions)  # fmt: skip
        return (f"rv = {results[0]}; if ({chosen}) {{ value = {new[0]}; }} "
                f"else {{ value = {new[1]}; rv = {results[1]}; }}")  # fmt: skip

    def _instances(self) -> Instances:
        name, rng = self.types.name, self.rng
        hashed = Bits(rng.randrange(1, 65))
        counter, meter, hash_, chance, own, average, early = (name(n) for n in "cxgnyve")
        true = ", true" if self.second and rng.randrange(2) else ""  # egress accounting
        text = f" Counter<bit<32>, bit<3>>(5, CounterType_t.PACKETS_AND_BYTES{true}) {counter};"
        colours = rng.choice(["", ", 7, 2, 9"])
        unit = f"MeterType_t.{rng.choice(['PACKETS', 'BYTES'])}"
        text += f" Meter<bit<3>>(5, {unit}{colours}) {meter};"
        text += f" Random<bit<8>>() {chance};"
        text += f" Lpf<bit<8>, bit<3>>(5) {average}; Wred<bit<16>, bit<3>>(5, 6, 1) {early};"
        algorithm = f"HashAlgorithm_t.{rng.choice(ALGORITHMS)}"
        if rng.randrange(2):
            width = rng.choice([8, 16, 24, 32, 64])
            numbers = [rng.randrange(1 << width) for _ in range(3)]
            flag = rng.choice(["true", "false"])
            text += f" CRCPolynomial<bit<{width}>>({numbers[0]}, {flag}, false, false,"
            text += f" {numbers[1]}, {numbers[2]}) {own};"
            algorithm = f"HashAlgorithm_t.CUSTOM, {own}"
        text += f" Hash<{hashed}>({algorithm}) {hash_};"

        def get_hash(v: Values, depth: int) -> str:
            data = ", ".join(v.value(random_bits(rng), 1) for _ in range(rng.randrange(1, 4)))
            return f"{hash_}.get({{ {data} }})"

        def extreme(v: Values, depth: int) -> str:
            a, b = v.value(hashed, depth - 1), v.value(hashed, depth - 1)
            return f"{rng.choice(['min', 'max'])}<{hashed}>({a}, {b})"

        def metered(v: Values, depth: int) -> str:
            before = v.rng.choice([", MeterColor_t.YELLOW", ""])
            return f"{meter}.execute({v.value(Bits(3), 1)}{before})"

        def index(v: Values) -> str:
            return v.value(Bits(3), 1)

        sources: list[Source] = [
            (hashed, get_hash),
            (hashed, extreme),
            (Bits(8), lambda v, d: f"{chance}.get()"),
            (Bits(8), metered),
            (Bits(8), lambda v, d: f"{average}.execute({v.value(Bits(8), 1)}, {index(v)})"),
            (Bits(8), lambda v, d: f"{early}.execute({v.value(Bits(16), 1)}, {index(v)})"),
        ]
        more: list[Maker] = [
            lambda w: f"{counter}.count({w.values.value(Bits(3), 2)});",
            lambda w: f"{counter}.count({w.values.value(Bits(3), 2)}, 32w3);",
        ]
        return Instances(text, more, sources, self._table)

    def _table(self) -> tuple[str, str, str]:
        """Return a table's direct counter or meter with an action of its own, or its profile."""
        made, own, kind = self.types.name("x"), self.types.name("a"), self.rng.randrange(8)
        if kind == 0:
            true = ", true" if self.second and self.rng.randrange(2) else ""
            before = f"DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES{true}) {made};"
            before += f" action {own}() {{ {made}.count(32w2); m.small = 1; }}"
            return before, f"counters = {made};", f"{own};"
        if kind == 1:
            before = f"DirectMeter(MeterType_t.BYTES) {made};"
            before += f" action {own}(bit<3> d) {{ m.small = d ^ {made}.execute()[2:0]; }}"
            return before, f"meters = {made};", f"{own};"
        if kind == 2:
            return f"ActionProfile(9) {made};", f"implementation = {made};", ""
        if kind == 3:
            members, hash_ = self.types.name("x"), self.types.name("g")
            before = f"ActionProfile(9) {members}; Hash<bit<14>>(HashAlgorithm_t.CRC16) {hash_};"
            before += f" ActionSelector({members}, {hash_}, SelectorMode_t.FAIR, 4, 3) {made};"
            before += f" action {own}() {{ m.small = 5; }}"
            return before, f"implementation = {made}; /* selector */", f"{own};"
        if kind == 4:
            action = self.types.name("x")
            before = f"DirectRegister<bit<16>>(7) {made};"
            before += f" DirectRegisterAction<bit<16>, bit<16>>({made}) {action} = {{"
            before += " void apply(inout bit<16> value, out bit<16> rv)"
            before += f" {{ {self._body(Bits(16), 'm.inner.item.b', '3')} }} }};".replace(
                "m.inner.item.b", "(bit<16>) m.inner.item.b")  # fmt: skip
            before += f" action {own}() {{ m.small = {action}.execute()[2:0]; }}"
            return before, f"registers = {made};", f"{own};"
        if kind in (5, 6):
            of, by = ("DirectLpf<bit<8>>", "") if kind == 5 else ("DirectWred<bit<8>>", "5, 2")
            before = f"{of}({by}) {made};"
            before += f" action {own}() {{ m.small = {made}.execute((bit<8>) m.i)[2:0]; }}"
            return before, f"filters = {made};", f"{own};"
        return "", "", ""

    # -- deparsers ------------------------------------------------------------------------------

    def _deparser(self, ingress: bool) -> str:
        scope = self.scope(writable=False)
        writer = Statements(self.rng, self.types, scope, [], ("h.items",), ("exit;", "return;"))
        value = writer.values.value
        text = f"Mirror({self.rng.choice(['', '1'])}) mirror; Checksum() ck; apply {{ "
        if ingress:
            text += "bridge.setValid(); bridge.rounds = m.rounds; p.emit(bridge); "
            text += f"if ({value(BOOL)}) {{ learnt.pack({value(ITEM)}); }} "
            text += f"again.emit<bridge_t>({{ m.rounds + 1, {value(Bits(16), 1)} }}); "
        session = f"(MirrorId_t) {value(Bits(3), 1)}"
        header = f"{{ m.rounds + 1, {value(Bits(16), 1)} }}"
        text += f"if (d.mirror_type == 1) {{ mirror.emit<bridge_t>({session}, {header}); }} "
        some = ", ".join(value(Bits(16), 1) for _ in range(3))
        ones = self.rng.choice(["", ", true"])
        text += f"h.items[0].b = (int<16>) ck.update({{ {some} }}{ones}); "
        return f"{text} {writer.block(3)} {emits(self.rng)} }}"


INGRESS_START = """p.extract(ig); again = p.lookahead<bridge_t>();
    if (ig.resubmit_flag == 1) { m.rounds = again.rounds; m.i = (bit<32>) again.more; }
    p.advance(PORT_METADATA_SIZE);"""
EGRESS_START = """p.extract(eg); p.extract(bridge); m.rounds = bridge.rounds;
    m.i = (bit<32>) bridge.more;"""


_ANY: list[Maker] = [
    lambda w: "d.mirror_type = 1;",
    lambda w: "d.drop_ctl = (bit<3>) h.f.rest[0:0];",
]
_EGRESS: list[Maker] = [*_ANY, lambda w: "oport.capture_tstamp_on_tx = 1;"]
_INGRESS: list[Maker] = [
    *_ANY,
    lambda w: f"tm.ucast_egress_port = {w.values.value(Bits(9), 1)};",
    lambda w: "tm.ucast_egress_port[6:0] = 68;",
    lambda w: "invalidate(tm.ucast_egress_port);",
    lambda w: "d.resubmit_type = 2;",
    lambda w: "tm.copy_to_cpu = 1;",
    lambda w: f"tm.mcast_grp_a = (bit<16>) {few(w)};",
    lambda w: f"tm.mcast_grp_b = (bit<16>) {few(w)}; tm.rid = 5;",
    lambda w: f"tm.level1_exclusion_id = (bit<16>) {few(w)};",
    lambda w: f"tm.level2_exclusion_id = (bit<9>) {few(w)}; tm.rid = (bit<16>) {few(w)};",
    lambda w: "tm.deflect_on_drop = 1;",
    lambda w: "tm.bypass_egress = 1;",
    lambda w: f"tm.ingress_cos = {few(w)};",
]
