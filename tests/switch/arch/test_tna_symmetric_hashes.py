"""@symmetric: a hash gives the same for both directions of a flow."""

from __future__ import annotations

import pytest
from tnaprograms import packet, source, switch

from gradplane.switch import CompileError, Switch
from gradplane.switch.bfruntime.tables.hashes import called_hashes

ENGINES = pytest.mark.parametrize("engine", ["interpreter", "jit"])
ANNOTATION = '@symmetric("hdr.a.x", "hdr.a.y") '
HASH = "Hash<bit<16>>(HashAlgorithm_t.CRC16) flow;"


@ENGINES
def test_both_directions_have_one_hash(engine: str) -> None:
    """The chip adds both fields up, without carry, where the second one is."""
    made = switch(
        engine,
        ingress_locals=ANNOTATION + HASH + "Hash<bit<16>>(HashAlgorithm_t.CRC16) plain;",
        ingress="""bit<16> r = flow.get({ h.a.kind, h.a.x, 8w9, h.a.y });
            bit<16> sum = plain.get({ h.a.kind, 8w0, 8w9, h.a.x ^ h.a.y });
            h.a.z = (bit<8>)(bit<1>)(r == sum);
            h.a.x = r[15:8]; h.a.y = r[7:0]; tm.ucast_egress_port = 1;""",
    )
    there, back, other = (
        made.process(1, packet(7, x, y)) for x, y in ((2, 3), (3, 2), (3, 3))
    )  # fmt: skip
    assert there == back != other
    assert there[0][1][3] == 1
    assert called_hashes(made.program)[0].name == "ingress.plain"  # the other is fixed


@ENGINES
@pytest.mark.parametrize("annotated", ["hash", "selector"])
def test_both_directions_go_to_one_member(engine: str, annotated: str) -> None:
    on_hash, on_selector = (
        ANNOTATION if annotated == what else "" for what in ("hash", "selector")
    )
    wide = HASH.replace("CRC16", "CRC32")
    made = switch(
        engine,
        ingress_locals=f"""{on_hash} {wide} ActionProfile(64) members;
            {on_selector} ActionSelector(members, flow, SelectorMode_t.FAIR, 32w64, 32w4) groups;
            action send(PortId_t port) {{ tm.ucast_egress_port = port; }}
            table balanced {{
                key = {{ h.a.kind : exact; h.a.x : selector; h.a.y : selector; }}
                actions = {{ send; NoAction; }}
                implementation = groups;
            }}""",
        ingress="balanced.apply();",
    )
    groups = made.profile("groups")
    for port in range(32):
        groups.add_member(port, "send", {"port": port})
    groups.add_group(1, list(range(32)))
    made.table("balanced").add({"h.a.kind": 0}, group=1)

    def member(x: int, y: int) -> int:
        return made.process(1, packet(0, x, y))[0][0]

    flows = [(x, y) for x in range(1, 9) for y in range(20, 24)]
    assert [member(x, y) for x, y in flows] == [member(y, x) for x, y in flows]
    assert len({member(x, y) for x, y in flows}) > 4


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ('@symmetric("h.a.x", "h.a.q") ' + HASH,
         "h.a.x and h.a.q are not two of the fields that the hash takes"),
        ('@symmetric("h.a.x") ' + HASH, "it names two fields, not 1"),
        (ANNOTATION + HASH.replace("CRC16", "XOR16"), "only CRCs have symmetric fields"),
    ],
)  # fmt: skip
def test_a_pair_that_the_chip_cannot_hash_is_refused(declaration: str, message: str) -> None:
    text = source(ingress_locals=declaration, ingress="h.a.z = flow.get({ h.a.x, h.a.y })[7:0];")
    with pytest.raises(CompileError) as refusal:
        Switch("test.p4", text=text)
    assert f"error: @symmetric of ingress.flow: {message}\n    its fields: a.x, a.y" in str(
        refusal.value
    )
