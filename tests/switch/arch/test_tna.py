"""TNA: a packet's path through ingress, traffic manager and egress. Both engines do the same."""

from __future__ import annotations

import pytest
from tnaprograms import packet, source, switch

from gradplane.switch import CompileError, Switch
from gradplane.switch.runtime.control_messages import Digest, PacketIn
from gradplane.switch.runtime.replicas import CloneSession, Replica

engines = pytest.mark.parametrize("engine", ["interpreter", "jit"])
chips = pytest.mark.parametrize("include", ["tna.p4", "t2na.p4"])

DROPPED, NOWHERE = "ingress: drop_ctl is set", "ingress: no destination"


def refused(**parts: str) -> str:
    with pytest.raises(CompileError) as caught:
        switch(**parts)
    return str(caught.value)


# -- the traffic manager ------------------------------------------------------------------------


@engines
@chips
def test_a_packet_leaves_by_the_port_that_is_set(engine: str, include: str) -> None:
    sw = switch(engine, include=include, ingress="tm.ucast_egress_port = (bit<9>) h.a.x;")
    assert sw.architecture.name == "tna"
    assert sw.process(3, packet(x=9, payload=b"more")) == [(9, packet(x=9, payload=b"more"))]
    assert sw.process(300, packet(x=200)) == [(200, packet(x=200))]


@engines
def test_a_port_that_is_never_set_or_invalidated_makes_no_copy(engine: str) -> None:
    sw = switch(engine, ingress="""
        if (h.a.x != 0) { tm.ucast_egress_port = 0; }
        if (h.a.x == 2) { invalidate(tm.ucast_egress_port); }
        h.a.y = is_validated(tm.ucast_egress_port) ? 8w1 : 0;""")  # fmt: skip
    assert sw.process(1, packet(x=0)) == []
    assert sw.process(1, packet(x=1)) == [(0, packet(x=1, y=1))]
    assert sw.process(1, packet(x=2)) == []
    assert sw.state.drops == {NOWHERE: 2}


@engines
def test_the_port_may_be_set_in_an_action_and_in_a_part(engine: str) -> None:
    sw = switch(
        engine,
        ingress_locals="""
            action send(PortId_t port) { tm.ucast_egress_port = port; }
            table t { key = { h.a.x : exact; } actions = { send; }
                      const default_action = send(9); const entries = { 1 : send(12); } }""",
        ingress="if (h.a.kind == 1) { tm.ucast_egress_port[8:7] = 1; } else { t.apply(); }",
    )
    assert sw.process(0, packet(x=1)) == [(12, packet(x=1))]
    assert sw.process(0, packet(x=2)) == [(9, packet(x=2))]
    assert sw.process(0, packet(kind=1)) == [(128, packet(kind=1))]


@engines
def test_unicast_multicast_and_the_copy_to_the_cpu_go_together(engine: str) -> None:
    sw = switch(
        engine,
        ingress="tm.ucast_egress_port = 1; tm.mcast_grp_a = 5; tm.mcast_grp_b = (bit<16>) h.a.x;"
                "tm.copy_to_cpu = 1; tm.rid = 77; dprsr.drop_ctl = (bit<3>) h.a.y;",
        egress="h.a.z = eg.egress_rid[7:0]; h.a.kind = (bit<8>) eg.egress_rid_first;",
    )  # fmt: skip
    sw.state.multicast[5] = [Replica(2, 20), Replica(3, 30)]
    sw.state.multicast[6] = [Replica(2, 40)]
    to_groups = [(2, packet(1, 6, 0, 20)), (3, packet(0, 6, 0, 30)), (2, packet(1, 6, 0, 40))]
    assert sw.process(0, packet(x=6)) == [(1, packet(0, 6, 0, 77)), *to_groups, (64, packet(x=6))]
    assert sw.process(0, packet(x=6, y=1)) == [(64, packet(x=6, y=1))]
    assert sw.process(0, packet(x=6, y=2))[-1] == (2, packet(1, 6, 2, 40))
    assert sw.process(0, packet(x=6, y=3)) == []
    assert len(sw.process(0, packet(x=9))) == 4  # a group without members
    assert sw.state.drops == {DROPPED: 2, "multicast group 9 has no members": 1}


@engines
def test_the_cpu_port_is_the_users(engine: str) -> None:
    sw = switch(engine, cpu_port=9, ingress="tm.copy_to_cpu = 1; tm.ucast_egress_port = 1;")
    assert sw.process(0, packet()) == [(1, packet())]
    assert list(sw.messages()) == [PacketIn(packet())]


@engines
def test_bypass_skips_egress(engine: str) -> None:
    sw = switch(engine, ingress="tm.ucast_egress_port = 4; tm.bypass_egress = h.a.x[0:0];",
                egress="h.a.y = 1;")  # fmt: skip
    assert sw.process(0, packet(x=0)) == [(4, packet(x=0, y=1))]
    assert sw.process(0, packet(x=1)) == [(4, packet(x=1, y=0))]


@engines
def test_egress_drops_by_drop_ctl(engine: str) -> None:
    sw = switch(engine, egress="dprsr.drop_ctl = h.a.x[2:0];")
    assert [len(sw.process(0, packet(x=x))) for x in range(4)] == [1, 0, 1, 0]
    assert sw.state.drops == {"egress: drop_ctl is set": 2}


# -- metadata -----------------------------------------------------------------------------------


@engines
@chips
def test_the_intrinsic_metadata_of_ingress(engine: str, include: str) -> None:
    sw = switch(
        engine, lambda: 0x0102_0304_0506, include=include,
        metadata="bit<48> time;",
        ingress="h.a.x = ig.ingress_port[8:1]; h.a.y = (bit<8>) ig.resubmit_flag;"
                "h.a.z = ig.ingress_mac_tstamp == prsr.global_tstamp ? 8w1 : 0;"
                "tm.ucast_egress_port = 1;",
    )  # fmt: skip
    assert sw.process(0x17E, packet()) == [(1, packet(0, 0xBF, 0, 1))]


@engines
@chips
def test_the_intrinsic_metadata_of_egress(engine: str, include: str) -> None:
    sw = switch(
        engine, include=include,
        ingress="tm.ucast_egress_port = 0x133; tm.qid = 3; tm.ingress_cos = 5;",
        egress="h.a.kind = eg.egress_port[8:1]; h.a.x = (bit<8>) eg.egress_qid;"
               "h.a.y = (bit<8>) eg.egress_cos; h.a.z = eg.pkt_length[7:0];",
    )  # fmt: skip
    assert sw.process(0, packet(payload=bytes(20))) == [
        (0x133, packet(0x99, 3, 5, 28, bytes(20)))
    ]  # with the frame check sequence


@engines
@chips
def test_port_metadata_are_unpacked_or_skipped(engine: str, include: str) -> None:
    sw = switch(engine, include=include, types="struct port_t { bit<16> first; bit<16> second; }",
                metadata="port_t port;",
                metadata_state="m.port = port_metadata_unpack<port_t>(pkt); transition parse_a;",
                ingress="tm.ucast_egress_port = 1 + m.port.first[8:0];")  # fmt: skip
    assert sw.process(0, packet(1, 2, 3, 4)) == [(1, packet(1, 2, 3, 4))]


@engines
def test_blocks_may_leave_out_metadata(engine: str) -> None:
    text = source().replace(
        """, in egress_intrinsic_metadata_t eg,
        in egress_intrinsic_metadata_from_parser_t prsr,
        inout egress_intrinsic_metadata_for_deparser_t dprsr,
        inout egress_intrinsic_metadata_for_output_port_t oport) {""",
        ") {",
    )
    text = text.replace(
        """in metadata_t m,
        in ingress_intrinsic_metadata_for_deparser_t dprsr) {""",
        "in metadata_t m) {",
    )
    sw = Switch("test.p4", text=text, engine=engine)
    assert sw.process(0, packet()) == [(1, packet())]


# -- parser errors ------------------------------------------------------------------------------


@engines
def test_a_packet_that_does_not_parse_is_dropped_unless_the_program_looks(engine: str) -> None:
    sw = switch(engine)
    assert sw.process(0, b"abc") == []
    assert sw.state.drops == {"ingress parser: the packet does not parse": 1}
    looks = switch(engine, headers="a_t e;",
                   ingress="tm.ucast_egress_port = 1; h.e.setValid();"
                           "h.e.kind = prsr.parser_err[7:0];")  # fmt: skip
    assert looks.process(0, b"abc") == [(1, bytes([2, 0, 0, 0]) + b"abc")]
    assert looks.process(0, packet(1)) == [(1, packet(1) + bytes(4))]


# -- resubmit, recirculation, mirroring ---------------------------------------------------------


@engines
def test_a_resubmit_header_of_one_bit_is_filled_up_behind(engine: str) -> None:
    sw = switch(
        engine,
        types="header mark_t { bit<1> set; } header back_t { bit<8> mark; bit<56> rest; }",
        metadata="mark_t mark; back_t back;",
        metadata_state="transition select(ig.resubmit_flag) { 1 : second; default : first; }",
        states="""state first { pkt.advance(PORT_METADATA_SIZE); transition parse_a; }
                  state second { pkt.extract(m.back); transition parse_a; }""",
        ingress="""m.mark.setValid(); m.mark.set = 1;
                   if (ig.resubmit_flag == 0) { dprsr.resubmit_type = 1; }
                   h.a.x = m.back.mark; tm.ucast_egress_port = 1;""",
        deparser_locals="Resubmit() again;",
        deparser="if (dprsr.resubmit_type == 1) { again.emit(m.mark); }",
    )
    assert sw.process(1, packet()) == [(1, packet(x=0x80))]


@engines
@pytest.mark.parametrize(("made", "emitted"), [
    ("Resubmit()", "if (dprsr.resubmit_type == 0) { again.emit(); }"),
    ("Resubmit(0)", "again.emit();"),
    ("Resubmit()", "if (h.a.x == 0 && dprsr.resubmit_type == 0) { again.emit(); }"),
])  # fmt: skip
def test_type_0_counts_once_it_is_set(engine: str, made: str, emitted: str) -> None:
    """p4c's Tofino back end, arch/collect_hardware_constrained_fields.cpp: the types of resubmitted
    packets, of digests, and of mirror copies at egress have no value until the program sets one."""
    sw = switch(
        engine,
        ingress_locals="""
            action again() { dprsr.resubmit_type = 0; dprsr.digest_type = 0; }
            action leave() { }
            table t { key = { h.a.kind : exact; } actions = { again; leave; } size = 8; }""",
        ingress="""tm.ucast_egress_port = ig.ingress_port; h.a.y = (bit<8>) ig.resubmit_flag;
                   if (ig.resubmit_flag == 0) { t.apply(); }""",
        deparser_locals=f"{made} again; Digest<bit<8>>() seen;",
        deparser=f"{emitted} if (dprsr.digest_type == 0) {{ seen.pack(h.a.kind); }}",
        egress="if (h.a.z == 1) { dprsr.mirror_type = 0; }",
        egress_deparser_locals="Mirror() copy;",
        egress_deparser="if (dprsr.mirror_type == 0) { copy.emit(10w5); }",
    )
    sw.clone_session(5, [9])
    sw.table("ingress.t").add({"h.a.kind": 1}, "ingress.again")
    sw.table("ingress.t").add({"h.a.kind": 2}, "ingress.leave")
    assert sw.process(5, packet(kind=1)) == [(5, packet(kind=1, y=1))]
    assert [m.data for m in sw.messages()] == [1]  # of the first pass
    for kind in (2, 3):
        assert sw.process(5, packet(kind=kind)) == [(5, packet(kind=kind))]
    assert sw.messages() == []
    assert sorted(port for port, _ in sw.process(5, packet(kind=2, z=1)))[:2] == [5, 9]


@engines
@chips
def test_a_resubmitted_packet_comes_with_its_header(engine: str, include: str) -> None:
    sw = switch(
        engine, include=include, types="header again_t { bit<8> count; bit<56> rest; }",
        headers="", metadata="again_t again;",
        metadata_state="transition select(ig.resubmit_flag) { 1 : second; default : first; }",
        states="state first { pkt.advance(PORT_METADATA_SIZE); transition parse_a; }"
               "state second { pkt.extract(m.again); "
               "pkt.advance(PORT_METADATA_SIZE - 64); transition parse_a; }",
        ingress="""tm.ucast_egress_port = 1; m.kept = m.again.isValid() ? m.again.count : 0;
            if (m.kept < h.a.x) { dprsr.resubmit_type = 2; } h.a.y = m.kept;""",
        deparser_locals="Resubmit(2) resubmit;",
        deparser="resubmit.emit<again_t>({m.kept + 1, 0});",
    )  # fmt: skip
    assert sw.process(3, packet(x=0)) == [(1, packet(x=0))]
    assert sw.process(3, packet(x=3)) == [(1, packet(x=3, y=3))]


@engines
@pytest.mark.parametrize("bypass", [0, 1])
def test_packets_come_back_by_ports_in_loopback_mode(engine: str, bypass: int) -> None:
    sw = switch(engine, ingress=f"""
        tm.bypass_egress = {bypass}; h.a.x = h.a.x + 1;
        if (ig.ingress_port == 200) {{ tm.ucast_egress_port = 1; h.a.y = 9; }}
        else {{ tm.ucast_egress_port = 200; }}""")  # fmt: skip
    assert sw.process(3, packet()) == [(200, packet(x=1))]
    sw.state.links.loopback[200] = 1
    assert sw.process(3, packet()) == [(1, packet(x=2, y=9))]


@engines
@pytest.mark.parametrize(
    ("note", "value"),
    [("header", "{ 9w300, true }"), ("field", "{ port = 300, again = true }"), ("field", "fields")],
)
def test_a_flexible_header_fills_whole_bytes(engine: str, note: str, value: str) -> None:
    """What follows begins at a byte, and the program does not see the padding."""
    first, inner = ("@flexible", "") if note == "header" else ("", "@flexible")
    value = f"h.f = {value};" if value != "fields" else "h.f.port = 300; h.f.again = true;"
    sw = switch(
        engine,
        types=f"{first} header f_t {{ {inner} bit<9> port; bool again; }}",
        first_headers="f_t f;",
        ingress=f"h.f.setValid(); {value} tm.ucast_egress_port = 1;",
        egress_parser="pkt.extract(h.f); pkt.extract(h.a); transition accept;",
        egress="h.a.y = h.f.port[7:0]; h.a.z = h.f.again ? 8w1 : 0; h.f.setInvalid();",
    )
    sent = packet(kind=7, x=1, payload=b"more")
    assert sw.process(1, sent) == [(1, packet(kind=7, x=1, y=44, z=1, payload=b"more"))]


def test_a_flexible_header_takes_values_for_its_own_fields_only() -> None:
    found = refused(
        types="@flexible header f_t { bit<9> port; }",
        first_headers="f_t f;",
        ingress="h.f = { 9w1, 7w0 };",
    )
    assert "f_t takes 1 values, 2 given" in found


@engines
def test_a_packet_to_a_recirculation_port_comes_back_as_it_left(engine: str) -> None:
    sw = switch(engine, ingress="""
        if (ig.ingress_port[6:0] == 68) { tm.ucast_egress_port = 1; }
        else { tm.ucast_egress_port = 196; }""", egress="h.a.x = h.a.x + 1;")  # fmt: skip
    assert sw.process(0, packet()) == [(1, packet(x=2))]
    assert sw.process(68, packet()) == [(1, packet(x=1))]


MIRRORS = {
    "types": "header mirror_t { bit<8> what; bit<8> more; }",
    "first_headers": "mirror_t mirror;",
    "metadata": "mirror_t mirror;",
    "egress_parser": "transition select(eg.egress_port) { 2 : copied; default : parse_a; }",
    "egress_states": "state copied { pkt.extract(h.mirror); transition parse_a; }"
                     "state parse_a { pkt.extract(h.a); transition accept; }",
}  # fmt: skip


@engines
def test_ingress_mirrors_the_packet_as_it_came(engine: str) -> None:
    sw = switch(
        engine, **MIRRORS,
        ingress="tm.ucast_egress_port = 1; dprsr.mirror_type = h.a.x[2:0]; h.a.y = 9;"
                "dprsr.drop_ctl = h.a.z[2:0];",
        deparser_locals="Mirror(3) mirror;",
        deparser="mirror.emit<mirror_t>(10w7, {h.a.y, 8w0xEE});",
    )  # fmt: skip
    sw.state.clone_sessions[7] = CloneSession([Replica(2)])
    assert sw.process(0, packet(x=1)) == [(1, packet(x=1, y=9))]
    copy = (2, b"\x09\xee" + packet(x=3))
    assert sw.process(0, packet(x=3)) == [copy, (1, packet(x=3, y=9))]
    assert sw.process(0, packet(x=3, z=1)) == [(2, b"\x09\xee" + packet(x=3, z=1))]
    assert sw.process(0, packet(x=3, z=4)) == [(1, packet(x=3, y=9, z=4))]
    sw.state.clone_sessions[7] = CloneSession([Replica(2)], truncate=6)
    assert sw.process(0, packet(x=3, payload=b"longer"))[0] == copy


@engines
def test_tofino_2_mirrors_the_packet_as_it_leaves_if_asked_for(engine: str) -> None:
    sw = switch(
        engine, **MIRRORS, include="t2na.p4",
        ingress="tm.ucast_egress_port = 1; dprsr.mirror_type = 3; dprsr.mirror_io_select = 1;"
                "h.a.y = 9;",
        deparser_locals="Mirror(3) mirror;", deparser="mirror.emit(8w7, m.mirror);",
        egress="if (h.mirror.isValid()) { h.mirror.setInvalid(); }",
    )  # fmt: skip
    sw.state.clone_sessions[7] = CloneSession([Replica(2)])
    # The mirror header is not valid: it has no bytes, and the packet's first two stand in for it.
    out = sw.process(0, packet(payload=b"longer"))
    assert out[1] == (1, packet(y=9, payload=b"longer"))
    assert out[0] == (2, packet(y=9, payload=b"longer")[2:])


@engines
def test_egress_mirrors_the_packet_as_it_leaves(engine: str) -> None:
    sw = switch(
        engine, **MIRRORS,
        egress="if (!h.mirror.isValid()) { dprsr.mirror_type = 1; h.a.y = 5; }",
        egress_deparser_locals="Mirror() mirror;",
        egress_deparser="if (dprsr.mirror_type == 1) "
                        "{ mirror.emit<mirror_t>(10w3, {8w1, h.a.y}); }",
    )  # fmt: skip
    sw.state.clone_sessions[3] = CloneSession([Replica(2), Replica(3)])
    sent = sw.process(0, packet())
    assert sent[0] == (1, packet(y=5))
    assert sent[1] == (2, b"\x01\x05" + packet(y=5))
    assert sent[2][0] == 3


def test_mirror_and_resubmit_headers_have_limits() -> None:
    big = "header big_t { bit<264> x; }"
    message = refused(types=big, metadata="big_t big;", deparser_locals="Mirror(1) mirror;",
                      deparser="mirror.emit<big_t>(10w1, m.big);")  # fmt: skip
    assert "Mirror.emit: the header has 264 bits" in message
    assert "TNA keeps up to 32 bytes" in message
    message = refused(types=big, metadata="big_t big;", deparser_locals="Resubmit(1) again;",
                      deparser="again.emit<big_t>(m.big);")  # fmt: skip
    assert "Resubmit.emit: the header has 264 bits" in message


@engines
def test_a_digest_is_sent_if_its_type_is_set(engine: str) -> None:
    sw = switch(
        engine, types="struct learned_t { bit<8> x; bit<9> port; }",
        ingress="tm.ucast_egress_port = 1; dprsr.digest_type = h.a.x[2:0];",
        deparser_locals="Digest<learned_t>(2) digest;",
        deparser="digest.pack({h.a.y, 9w5});",
    )  # fmt: skip
    for x in range(4):
        sw.process(0, packet(x=x, y=3))
    (digest,) = sw.messages()
    assert isinstance(digest, Digest)
    assert digest.data == [3, 5]


# -- pipes --------------------------------------------------------------------------------------

TWO_PIPES = """
control other(inout headers_t h, inout metadata_t m, in ingress_intrinsic_metadata_t ig,
        in ingress_intrinsic_metadata_from_parser_t prsr,
        inout ingress_intrinsic_metadata_for_deparser_t dprsr,
        inout ingress_intrinsic_metadata_for_tm_t tm) {
    apply { tm.ucast_egress_port = 2; h.a.kind = 0xAA; }
}
Pipeline(IngressParser(), ingress(), IngressDeparser(), EgressParser(), egress(),
         EgressDeparser()) first;
Pipeline(IngressParser(), other(), IngressDeparser(), EgressParser(), egress(),
         EgressDeparser()) second;
Switch(first, second) main;
"""


@engines
def test_each_pipe_has_its_pipeline(engine: str) -> None:
    sw = switch(
        engine,
        egress_locals="Counter<bit<32>, bit<1>>(2, CounterType_t.PACKETS) seen;",
        egress="seen.count(h.a.kind[0:0]); h.a.y = eg.egress_port[7:0];",
        ingress="tm.ucast_egress_port = 130;",
        main=TWO_PIPES,
    )
    assert sw.process(3, packet()) == [(130, packet(y=130))]
    assert sw.process(131, packet()) == [(2, packet(kind=0xAA, y=2))]
    assert sw.process(259, packet()) == [(130, packet(y=130))]  # as the first pipe
    assert sw.state.counters["first.egress.seen"].read(0) == (1, 8)
    assert sw.state.counters["second.egress.seen"].read(0) == (2, 16)


def test_sizes_of_tables() -> None:
    """Where a program gives no size, a table has the 512 entries that the chip's compiler gives
    it; 0 stands for P4Runtime's 1024."""
    table = "table {} {{ key = {{ h.a.x: exact; }} actions = {{ NoAction; }} {} }}"
    sizes = {"none": "", "zero": "size = 0;", "some": "size = 77;"}
    sw = switch(
        ingress_locals=" ".join(table.format(name, size) for name, size in sizes.items()),
        ingress=" ".join(f"{name}.apply();" for name in sizes),
    )
    found = {t.name.rpartition(".")[2]: t.size for t in sw.program.tables}
    assert found == {"none": 512, "zero": 1024, "some": 77}
