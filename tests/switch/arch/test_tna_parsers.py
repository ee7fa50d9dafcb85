"""TNA's parsers: several in a pipe, and counters with a stack, in both engines."""

from __future__ import annotations

import pytest
from tnaprograms import packet, switch

ENGINES = pytest.mark.parametrize("engine", ["interpreter", "jit"])

MULTIPLE = """
parser Other(packet_in pkt, out headers_t h, out metadata_t m,
        out ingress_intrinsic_metadata_t ig, out ingress_intrinsic_metadata_for_tm_t tm) {{
    Checksum() sum;
    state start {{
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(h.a);
        sum.add(h.a);
        m.kept = 7;
        transition accept;
    }}
}}
parser EgressOther(packet_in pkt, out headers_t h, out metadata_t m,
        out egress_intrinsic_metadata_t eg) {{
    state start {{ pkt.extract(eg); pkt.extract(h.a); m.kept = 9; transition accept; }}
}}
{notes} IngressParsers(IngressParser(), Other()) ingress_parsers;
{notes} EgressParsers(EgressParser(), EgressOther()) egress_parsers;
MultiParserPipeline(ingress_parsers, ingress(), IngressDeparser(), egress_parsers, egress(),
                    EgressDeparser()) pipe;
MultiParserSwitch(pipe) main;
"""


@ENGINES
@pytest.mark.parametrize(
    "notes, of_second", [("", (4, 5, 6, 7)), ("@default_portmap(1, {0, 2})", (0, 2))]
)
def test_ports_choose_among_parsers(engine: str, notes: str, of_second: tuple[int, ...]) -> None:
    made = switch(
        engine=engine,
        main=MULTIPLE.format(notes=notes),
        ingress="h.a.x = m.kept; tm.ucast_egress_port = ig.ingress_port;",
        egress="h.a.y = m.kept;",
    )
    for port in (0, 1, 2, 4, 7, 8, 130, 132):
        seen = (7, 9) if port % 128 in of_second else (0, 0)
        assert made.process(port, packet(1)) == [(port, packet(1, *seen))], port


COUNTERS = """
    state inner {{ {step} transition select(counter.is_zero()) {{ true : outer; false : inner; }} }}
    state outer {{ counter.pop(); transition select(counter.is_zero()) {{
        true : accept; false : rest; }} }}
    state rest {{ m.kept = m.kept + 1; counter.decrement(1);
        transition select(counter.is_zero()) {{ true : accept; false : rest; }} }}
"""


@ENGINES
@pytest.mark.parametrize("follows, rest", [("true", 3), ("false", 5)])
def test_a_counter_that_was_pushed_may_follow_the_one_above(
    engine: str, follows: str, rest: int
) -> None:
    made = switch(
        engine=engine,
        include="t2na.p4",
        parser_locals="ParserCounter() counter;",
        parser=f"pkt.extract(h.a); counter.set(8w1); counter.push(h.a.x, {follows});"
        " counter.push(h.a.y); transition inner;",
        states=COUNTERS.format(step="counter.decrement(1);"),
        ingress="h.a.z = m.kept; tm.ucast_egress_port = 1;",
    )
    assert made.process(0, packet(0, 5, 2)) == [(1, packet(0, 5, 2, rest))]


@ENGINES
@pytest.mark.parametrize("include, value", [("tna.p4", 0b111), ("t2na.p4", 0b10)])
def test_a_field_is_masked_by_a_mask_or_its_highest_bit(
    engine: str, include: str, value: int
) -> None:
    made = switch(
        engine=engine,
        include=include,
        parser_locals="ParserCounter() counter;",
        parser="pkt.extract(h.a); counter.set(h.a.x, 8w255, 8w0, 2, 8w0); transition loop;",
        states="""state loop { transition select(counter.is_zero()) { true : accept; false : on; } }
            state on { m.kept = m.kept + 1; counter.decrement(1); transition loop; }""",
        ingress="h.a.z = m.kept; tm.ucast_egress_port = 1;",
    )
    assert made.process(0, packet(0, 0xFF)) == [(1, packet(0, 0xFF, 0, value))]
