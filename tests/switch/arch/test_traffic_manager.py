"""The ways of packets after ingress and egress, and the metadata of their copies."""

from __future__ import annotations

import pytest
from v1programs import packet, source, switch

from gradplane.switch import Switch, SwitchError
from gradplane.switch.runtime.control_messages import Fault

REPORT = "h.a.x = (bit<8>) s.instance_type; h.a.y = m.kept; h.a.z = m.lost;"
METADATA = "@field_list(1, 3) bit<8> kept; bit<8> lost;"


def test_unicast_and_the_metadata_egress_finds() -> None:
    now = 5_000_000
    sw = switch(
        clock=lambda: now,
        ingress="s.egress_spec = 9; h.a.x = (bit<8>) s.ingress_port;"
        "m.unused = (bit<8>) s.ingress_global_timestamp;",
        egress="h.a.y = (bit<8>) s.egress_port; h.a.z = (bit<8>) s.packet_length;"
        "h.a.kind = m.unused + (bit<8>) s.egress_global_timestamp + (bit<8>) s.egress_spec;",
    )
    now += 3_000
    assert sw.process(4, packet(payload=b"abc")) == [(9, bytes([6, 4, 9, 7]) + b"abc")]


def test_port_511_drops_after_either_control() -> None:
    for part in ("ingress", "egress"):
        drop = {part: "s.egress_spec = 511;"}
        sw = switch(**drop)
        assert sw.process(0, packet()) == []
        assert sw.state.drops == {f"{part}: egress_spec is 511": 1}


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_another_port_may_be_the_one_that_drops(engine: str) -> None:
    text = source(ingress="s.egress_spec = (bit<9>) h.a.kind + 500; h.a.x = 1;",
                  egress="if (h.a.y == 1) { mark_to_drop(s); h.a.z = 1; }")  # fmt: skip
    sw = Switch("test.p4", text=text, engine=engine, drop_port=510)
    assert sw.process(0, packet(10)) == sw.process(0, packet(0, 0, 1)) == []
    assert sw.process(0, packet(11)) == [(511, packet(11, 1))]
    assert sw.state.drops == {f"{part}: egress_spec is 510": 1 for part in ("ingress", "egress")}
    with pytest.raises(SwitchError, match="drop port 512: expected 0 to 511 and not the CPU port"):
        Switch("test.p4", text=text, drop_port=512)


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize(("drop_port", "found"), [(511, 0), (0, 1), (100, 101), (510, 511)])
def test_egress_starts_with_the_port_behind_the_drop_port(
    engine: str, drop_port: int, found: int
) -> None:
    """As simple_switch does (behavioral-model 1.15.5): drop port + 1, modulo 512."""
    text = source(
        ingress="s.egress_spec = 3;",
        egress="h.a.y = (bit<8>) (s.egress_spec >> 8); h.a.z = (bit<8>) s.egress_spec;",
    )
    sw = Switch("test.p4", text=text, engine=engine, drop_port=drop_port)
    assert sw.process(1, packet()) == [(3, packet(0, 0, found >> 8, found & 0xFF))]
    assert not sw.state.drops


def test_mark_to_drop_also_ends_a_multicast_but_may_be_overruled() -> None:
    sw = switch(
        ingress="s.mcast_grp = 1; mark_to_drop(s); if (h.a.kind == 1) { s.egress_spec = 3; }"
    )
    sw.multicast(1, [1, 2])
    assert sw.process(0, packet()) == []
    assert sw.process(0, packet(1)) == [(3, packet(1))]


@pytest.mark.p4runtime("9.5.1-7")
@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_while_a_port_is_down_its_replicas_backup_takes_over(engine: str) -> None:
    text = source(
        ingress="s.mcast_grp = 7; clone(CloneType.I2E, 7);",
        egress="h.a.y = (bit<8>) s.egress_rid; h.a.z = (bit<8>) s.instance_type;",
    )
    sw = Switch("test.p4", text=text, engine=engine)
    ports = [(1, 11, [(2, 12), (3, 13)]), (4, 14)]
    sw.multicast(7, ports)
    sw.clone_session(7, ports)

    def copies() -> list[tuple[int, int, int]]:
        return sorted((data[3], port, data[2]) for port, data in sw.process(0, packet()))

    def both(*copies: tuple[int, int]) -> list[tuple[int, int, int]]:
        return [(kind, *copy) for kind in (1, 5) for copy in copies]

    assert copies() == both((1, 11), (4, 14))
    sw.set_link(1, up=False)
    assert copies() == both((2, 12), (4, 14))
    sw.set_link(2, up=False)
    sw.set_link(4, up=False)  # it has no backup: its copy is lost at the port
    assert copies() == both((3, 13), (4, 14))
    sw.set_link(3, up=False)
    assert copies() == both((1, 11), (4, 14))
    sw.set_link(2, up=True)
    assert copies() == both((2, 12), (4, 14))


def test_multicast_copies_are_independent() -> None:
    sw = switch(
        ingress="s.mcast_grp = 7; h.a.x = 1;",
        egress="h.a.x = h.a.x + 1; h.a.y = (bit<8>) s.egress_rid; "
        "h.a.z = (bit<8>) s.instance_type;",
    )
    sw.multicast(7, [(3, 10), (3, 11), (4, 12)])
    assert sw.process(0, packet()) == [
        (3, packet(0, 2, 10, 5)),
        (3, packet(0, 2, 11, 5)),
        (4, packet(0, 2, 12, 5)),
    ]
    sw.multicast(7, [])
    assert sw.process(0, packet()) == []
    assert sw.state.drops == {"multicast group 7 has no members": 1}


# -- recirculate and resubmit --------------------------------------------------------------------


def test_recirculated_packets_are_the_deparsed_ones() -> None:
    sw = switch(
        metadata=METADATA,
        types="header b_t { bit<16> length; bit<8> port; bit<8> kind; }",
        headers="b_t b;",
        ingress="if (s.instance_type == 4) {"
        "  h.b.setValid(); h.b.length = (bit<16>) s.packet_length;"
        "  h.b.port = (bit<8>) s.ingress_port; h.b.kind = h.a.kind;" + REPORT + "}"
        "else { m.kept = 5; m.lost = 6; h.a.kind = 99; }",
        egress="if (!h.b.isValid()) { recirculate_preserving_field_list(1); m.kept = 7; }",
        deparser="pkt.emit(h.b); pkt.emit(h.a);",
    )
    # As simple_switch has it: final egress values are kept, the ingress port is not.
    assert sw.process(2, packet(payload=b"!")) == [(0, bytes([0, 5, 0, 99, 99, 4, 7, 0]) + b"!")]


def test_resubmitted_packets_are_the_original_ones() -> None:
    sw = switch(
        metadata=METADATA,
        ingress="if (s.instance_type == 6) {" + REPORT + "s.egress_spec = 1; }"
        "else { resubmit_preserving_field_list(2); resubmit_preserving_field_list(3);"
        "  h.a.kind = 77; m.kept = 8; m.lost = 9; mark_to_drop(s); s.mcast_grp = 3; }",
    )
    sw.multicast(3, [5, 6])
    assert sw.process(2, packet(4, payload=b"!")) == [(1, packet(4, 6, 8, 0, b"!"))]


def test_run_once_hands_recirculation_to_the_caller() -> None:
    sw = switch(
        ingress="s.egress_spec = 1; h.a.x = h.a.x + 1;",
        egress="if (h.a.x < 3) { recirculate_preserving_field_list(0); }",
    )
    outputs, again = sw.run_once(5, packet())
    rounds = 1
    while again:
        assert outputs == [] and len(again) == 1
        outputs, again = sw.run_once(5, again[0])
        rounds += 1
    assert (rounds, outputs) == (3, [(1, packet(0, 3))])


def test_endless_recirculation_ends() -> None:
    sw = switch(egress="recirculate_preserving_field_list(0);")
    assert sw.process(1, packet()) == []
    assert sw.messages() == [
        Fault("packet dropped: a packet was resubmitted or recirculated 1000 times")
    ]
    assert sw.state.drops == {"a packet was resubmitted or recirculated 1000 times": 1}


def test_a_storm_of_recirculated_copies_ends() -> None:
    sw = switch(ingress="s.mcast_grp = 1;", egress="recirculate_preserving_field_list(0);")
    sw.multicast(1, [1, 2])
    assert sw.process(1, packet()) == []
    assert sw.messages() == [Fault("10001 packets dropped: one packet took 10000 passes")]


# -- clones -------------------------------------------------------------------------------------

CLONE = "clone_preserving_field_list(CloneType.I2E, 5, 1);"


def test_ingress_clones_are_the_packet_as_it_came() -> None:
    sw = switch(
        metadata=METADATA,
        ingress=CLONE + "h.a.kind = 50; m.kept = 8; m.lost = 9; s.egress_spec = 1;",
        egress="if (s.instance_type == 1) {" + REPORT + "}",
    )
    sw.clone_session(5, [3, (4, 20)])
    assert sw.process(2, packet(4, payload=b"!")) == [
        (3, packet(4, 1, 8, 0, b"!")),
        (4, packet(4, 1, 8, 0, b"!")),
        (1, packet(50, payload=b"!")),
    ]


@pytest.mark.p4runtime("9.5.2-2")
def test_a_dropped_packet_is_still_cloned_and_a_missing_session_is_not() -> None:
    sw = switch(ingress="clone(CloneType.I2E, (bit<32>) h.a.kind); mark_to_drop(s);")
    sw.clone_session(0, [9])
    assert sw.process(1, packet(0)) == [(9, packet(0))]
    assert sw.process(1, packet(1)) == []


def test_egress_clones_are_the_packet_as_it_is() -> None:
    sw = switch(
        metadata=METADATA,
        ingress="m.kept = 1; m.lost = 2; s.egress_spec = 1;",
        egress="if (s.instance_type == 0) { h.a.kind = 60; m.kept = 3;"
        "clone_preserving_field_list(CloneType.E2E, 5, 1); } else {" + REPORT + "}",
    )
    sw.clone_session(5, [8], truncate=5)
    assert sw.process(2, packet(4, payload=b"abc")) == [
        (1, packet(60, payload=b"abc")),
        (8, packet(60, 2, 3, 0, b"a")),
    ]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_truncation_is_each_copys_own(engine: str) -> None:
    """As in simple_switch, copies to a group are whole, whatever ingress said; those to a session
    have the session's length, in place of ingress's; egress cuts the copy that it works on."""
    text = source(
        ingress="""s.egress_spec = 1; s.mcast_grp = (bit<16>) h.a.x; truncate(6);
                   if (h.a.y == 1) { clone(CloneType.I2E, 5); }""",
        egress="""if (h.a.y == 2 && s.egress_rid == 7) { truncate(5); }
                  if (h.a.y == 3 && s.instance_type == 0) { clone(CloneType.E2E, 5); }""",
    )
    sw = Switch("test.p4", text=text, engine=engine)
    sw.multicast(4, [(2, 0), (3, 7), (4, 0)])
    sw.clone_session(5, [8, 9], truncate=7)

    def sent(group: int, what: int) -> list[tuple[int, int]]:
        found = sw.process(0, packet(0, group, what, payload=b"abcdef"))
        return [(port, len(data)) for port, data in found]

    assert sent(0, 0) == [(1, 6)]
    assert sent(4, 0) == [(2, 10), (3, 10), (4, 10)]
    assert sent(4, 2) == [(2, 10), (3, 5), (4, 10)]
    assert sorted(sent(0, 1)) == [(1, 6), (8, 7), (9, 7)]
    assert sorted(sent(4, 1)) == [(2, 10), (3, 10), (4, 10), (8, 7), (9, 7)]
    assert sorted(sent(0, 3)) == [(1, 6), (8, 7), (9, 7)]
    sw.clone_session(5, [8, 9])
    assert sorted(sent(0, 1)) == [(1, 6), (8, 10), (9, 10)]


def test_clones_that_clone_themselves_end() -> None:
    sw = switch(egress="clone(CloneType.E2E, 1);")
    sw.clone_session(1, [2])
    assert len(sw.process(1, packet())) == 1000
    assert sw.messages() == [Fault("packet dropped: a packet was cloned 1000 times in a row")]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_clones_that_multiply_end(engine: str) -> None:
    text = source(egress="clone(CloneType.E2E, 1);")
    sw = Switch("test.p4", text=text, engine=engine)
    sw.clone_session(1, [2, 3])
    assert len(sw.process(1, packet())) == 1 + 10_000
    assert sw.messages()[-1] == Fault("packet dropped: a packet was cloned more than 10000 times")


def test_field_lists_reach_into_nested_structs() -> None:
    sw = switch(
        types="struct inner_t { bit<8> p; @field_list(1) bit<8> q; }"
        "header k_t { bit<8> v; }"
        "struct whole_t { bit<8> r; k_t k; }",
        metadata="inner_t inner; @field_list(1) whole_t whole;",
        ingress="if (s.instance_type == 6) {"
        "h.a.x = m.inner.p; h.a.y = m.inner.q; if (m.whole.k.isValid()) { h.a.z = m.whole.k.v; } }"
        "else { resubmit_preserving_field_list(1); m.inner.p = 1; m.inner.q = 2;"
        "m.whole.k.setValid(); m.whole.k.v = 3; } s.egress_spec = 1;",
    )
    assert sw.process(0, packet()) == [(1, packet(0, 0, 2, 3))]


def test_packet_length_follows_headers_that_are_added_and_removed() -> None:
    sw = switch(
        types="header w_t { bit<32> v; }",
        headers="w_t w;",
        ingress="s.egress_spec = 1; if (h.a.kind == 1) { h.w.setValid(); } "
        "if (h.a.kind == 2) { h.w.setValid(); h.w.setInvalid(); }",
        egress="h.a.x = (bit<8>) s.packet_length;",
    )
    lengths = [sw.process(0, packet(kind))[0][1][1] for kind in (0, 1, 2)]
    assert lengths == [4, 8, 4]


def test_truncate_cuts_what_leaves() -> None:
    sw = switch(ingress="s.egress_spec = 1; truncate(6);", egress="")
    assert sw.process(0, packet(1, payload=b"abcdef")) == [(1, packet(1, payload=b"ab"))]


# -- several packets ----------------------------------------------------------------------------


def test_batches_and_buffers_give_the_cause_of_each_output() -> None:
    import numpy as np

    sw = switch(ingress="s.mcast_grp = (bit<16>) h.a.kind;")
    sw.multicast(1, [1])
    sw.multicast(2, [1, 2])
    packets = [packet(k, payload=bytes(k)) for k in (1, 0, 2)]
    wanted = [(0, 1), (1, 0), (2, 1), (2, 2)]
    out = sw.process_batch([0, 0, 0], packets)
    assert [(i, port) for i, port, _ in out] == wanted
    offsets = np.cumsum([0, *map(len, packets)])
    data = np.frombuffer(b"".join(packets), dtype=np.uint8)
    ports, sent, at, causes = sw.process_buffer(np.zeros(3, dtype=np.int64), data, offsets)
    assert list(zip(causes, ports, strict=True)) == wanted
    assert [sent[a:b].tobytes() for a, b in zip(at, at[1:], strict=False)] == [p for *_, p in out]


def test_the_cpu_port_makes_packet_ins() -> None:
    from v1programs import source

    from gradplane.switch import Switch
    from gradplane.switch.runtime.control_messages import PacketIn

    sw = Switch("test.p4", text=source(ingress="s.mcast_grp = 1;"), cpu_port=64)
    sw.multicast(1, [3, 64])
    assert sw.process(0, packet(1)) == [(3, packet(1))]
    assert sw.messages() == [PacketIn(packet(1))]
    assert sw.messages() == []


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_egress_finds_the_length_of_its_ports_queue(engine: str) -> None:
    """Without a port that reports one it is 0."""
    text = source(
        ingress="s.egress_spec = (bit<9>) h.a.x;",
        egress="h.a.y = (bit<8>) s.enq_qdepth; h.a.z = (bit<8>) s.deq_qdepth;",
    )
    sw = Switch("test.p4", text=text, engine=engine)
    assert sw.process(1, packet(0, 3, 9, 9)) == [(3, packet(0, 3, 0, 0))]
    sw.state.links.queued[3] = 17
    assert sw.process(1, packet(0, 3)) == [(3, packet(0, 3, 17, 17))]
    assert sw.process(1, packet(0, 4)) == [(4, packet(0, 4, 0, 0))]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_action_data_chooses_the_field_list(engine: str) -> None:
    text = source(
        metadata="@field_list(1) bit<8> one; @field_list(2) bit<8> two;",
        ingress_locals="action copy(bit<8> list) {"
        " clone_preserving_field_list(CloneType.I2E, 5, list); }"
        "table t { key = { h.a.kind : exact; } actions = { copy; @defaultonly NoAction; } }",
        ingress="m.one = 7; m.two = 8; t.apply(); s.egress_spec = 1;",
        egress="if (s.instance_type == 1) { h.a.x = m.one; h.a.y = m.two; }",
    )
    sw = Switch("test.p4", text=text, engine=engine)
    sw.clone_session(5, [9])
    for kind in (1, 2):
        sw.table("t").add({"kind": kind}, "copy", {"list": kind})
    assert sw.process(0, packet(1)) == [(9, packet(1, 7)), (1, packet(1))]
    assert sw.process(0, packet(2)) == [(9, packet(2, 0, 8)), (1, packet(2))]
