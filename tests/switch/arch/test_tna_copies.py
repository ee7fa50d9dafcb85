"""The copies of a packet that the traffic manager makes: exclusion, drop_ctl, groups."""

from __future__ import annotations

import pytest
from tnaprograms import packet, switch

from gradplane.switch.runtime.replicas import Replica

engines = pytest.mark.parametrize("engine", ["interpreter", "jit"])


@engines
def test_replicas_are_left_out_by_both_exclusion_ids(engine: str) -> None:
    sw = switch(
        engine,
        ingress="""tm.mcast_grp_a = 3; tm.mcast_grp_b = (bit<16>) h.a.z; tm.rid = 7;
                   tm.level1_exclusion_id = (bit<16>) h.a.x;
                   tm.level2_exclusion_id = (bit<9>) h.a.y;""",
        egress="h.a.z = (bit<8>) eg.egress_rid; h.a.kind = 7w0 ++ eg.egress_rid_first;",
    )
    for group, replicas in (
        (3, [Replica(1, 7, (), 5), Replica(2, 7, (), None), Replica(3, 8, (), 6)]),
        (4, [Replica(4, 9, (), None)]),
    ):
        sw.state.multicast[group] = replicas
        sw.state.replication.group_changed(group)
    sw.state.pruned[2, [2, 3]] = 1

    def sent(level1: int, level2: int, second: int) -> list[tuple[int, int, int]]:
        found = sw.process(0, packet(x=level1, y=level2, z=second))
        return [(port, data[3], data[0]) for port, data in found]

    assert sent(0, 0, 0) == [(1, 7, 1), (2, 7, 0), (3, 8, 0)]  # port, rid, the group's first
    assert sent(5, 0, 4) == [(2, 7, 0), (3, 8, 0), (4, 9, 1)]  # level 1 of one node
    assert sent(6, 2, 0) == [(1, 7, 1)]  # port 2 has the packet's rid
    assert sent(0, 2, 4) == [(1, 7, 1), (3, 8, 0), (4, 9, 1)]  # port 3 has another


@engines
def test_each_bit_of_drop_ctl_in_ingress_stops_its_copies(engine: str) -> None:
    sw = switch(
        engine,
        ingress="""tm.ucast_egress_port = 5; tm.mcast_grp_a = 2; tm.copy_to_cpu = 1;
                   dprsr.drop_ctl = h.a.x[2:0]; dprsr.mirror_type = 1;""",
        deparser_locals="Mirror() mirror;",
        deparser="if (dprsr.mirror_type == 1) { mirror.emit(10w9); }",
    )
    sw.clone_session(9, [44])
    sw.multicast(2, [10])
    for control in range(8):
        wanted = [] if control & 4 else [44]
        wanted += [] if control & 1 else [5, 10]
        wanted += [] if control & 2 else [64]
        assert [port for port, _ in sw.process(0, packet(x=control))] == wanted, control


@engines
def test_ports_and_groups_are_taken_back(engine: str) -> None:
    sw = switch(
        engine,
        ingress="""tm.ucast_egress_port = 1; tm.mcast_grp_a = 2; tm.mcast_grp_b = 3;
                   if (h.a.x == 1) { invalidate(tm.ucast_egress_port); }
                   if (h.a.x == 2) { invalidate(tm.mcast_grp_a); }
                   if (h.a.x == 3) { invalidate(tm.mcast_grp_b); }""",
    )
    sw.multicast(2, [10, 11])
    sw.multicast(3, [12])
    for x, ports in enumerate(([1, 10, 11, 12], [10, 11, 12], [1, 12], [1, 10, 11])):
        assert [port for port, _ in sw.process(0, packet(x=x))] == ports


@engines
def test_a_parser_counter_goes_up_and_down(engine: str) -> None:
    sw = switch(
        engine, types="header item_t { bit<8> value; }", headers="item_t[4] items;",
        parser_locals="ParserCounter() counter;",
        parser="pkt.extract(h.a); counter.set(h.a.x); counter.increment(8w1); transition loop;",
        states="""state loop {
                      counter.decrement(8w2);
                      transition select(counter.is_zero(), counter.is_negative()) {
                          (true, false): accept; (_, true): odd; default: item;
                      }
                  }
                  state item { pkt.extract(h.items.next); transition loop; }
                  state odd { h.a.z = 0xEE; transition accept; }""",
        ingress="""tm.ucast_egress_port = 1;
                   if (h.items[1].isValid()) { h.a.y = 2; }
                   else if (h.items[0].isValid()) { h.a.y = 1; }""",
    )  # fmt: skip
    for x, items, odd in ((0, 0, 0xEE), (1, 0, 0), (2, 1, 0xEE), (3, 1, 0), (5, 2, 0)):
        data = packet(x=x, payload=b"\1\2\3\4")
        assert sw.process(0, data) == [(1, packet(0, x, items, odd, b"\1\2\3\4"))]
