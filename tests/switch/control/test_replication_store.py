"""Multicast groups, nodes and clone sessions: what one interface writes, all read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from finsy.proto import p4r
from interfaces import (
    DELETE,
    INSERT,
    MODIFY,
    Interfaces,
    group_entry,
    replica,
    session_entry,
)
from tnaprograms import packet, switch

from gradplane.switch.p4runtime.status_errors import BatchError, RpcError

SID = "$sid"
GROUP, NODE = "$MGID", "$MULTICAST_NODE_ID"


@pytest.fixture
def all_of_tna() -> Interfaces:
    return Interfaces(switch(
        "interpreter", ingress="tm.mcast_grp_a = 7; dprsr.mirror_type = 1;",
        deparser_locals="Mirror() mirror;",
        deparser="if (dprsr.mirror_type == 1) { mirror.emit(10w5); }",
    ))  # fmt: skip


def session(ports: list[int], **values: Any) -> p4r.PacketReplicationEngineEntry:
    return session_entry(
        p4r.CloneSessionEntry(session_id=5, replicas=[replica(p) for p in ports], **values)
    )


def group(*replicas: p4r.Replica) -> p4r.PacketReplicationEngineEntry:
    return group_entry(p4r.MulticastGroupEntry(multicast_group_id=7, replicas=list(replicas)))


def test_a_session_of_python_is_a_mirror_session(all_of_tna: Interfaces) -> None:
    all_of_tna.sw.clone_session(5, [3], truncate=64, class_of_service=2)
    found = all_of_tna.bfrt_read("$mirror.cfg", {SID: 5})
    names = ("$session_enable", "$ucast_egress_port_valid", "$ucast_egress_port", "$max_pkt_len",
             "$ingress_cos", "$direction")  # fmt: skip
    assert [found[name] for name in names] == [True, True, 3, 64, 2, "BOTH"]
    assert all_of_tna.bfrt_keys("$mirror.cfg") == [5]
    with pytest.raises(RpcError, match="session 5 exists") as caught:
        all_of_tna.bfrt("add", "$mirror.cfg", {SID: 5}, "$normal", session_enable=True)
    assert caught.value.code == "ALREADY_EXISTS"
    assert all_of_tna.p4rt_session(5) == ([3], 64, 2)
    with pytest.raises(BatchError, match="clone session 5 exists"):
        all_of_tna.p4rt(INSERT, packet_replication_engine_entry=session([4]))


def test_a_session_of_bfruntime_is_everybodys(all_of_tna: Interfaces) -> None:
    all_of_tna.bfrt("add", "$mirror.cfg", {SID: 5}, "$normal", session_enable=True,
                    ucast_egress_port=9, ucast_egress_port_valid=True, max_pkt_len=100,
                    direction="EGRESS", ingress_cos=0x103)  # fmt: skip
    assert all_of_tna.p4rt_session(5) == ([9], 100, 3)
    assert all_of_tna.cli("mirroring_get 5") == "MirroringSessionConfig(mgid=None, port=9)"
    all_of_tna.cli("mirroring_add 5 7")
    found = all_of_tna.bfrt_read("$mirror.cfg", {SID: 5})
    assert found["$ucast_egress_port"] == 7
    assert (found["$max_pkt_len"], found["$ingress_cos"]) == (0xFFFF, 0)  # the command says so
    assert found["$direction"] == "EGRESS"  # of which it knows nothing
    assert [out for out, _ in all_of_tna.sw.process(0, packet())] == [7]
    all_of_tna.bfrt("modify", "$mirror.cfg", {SID: 5}, session_enable=False)
    assert [out for out, _ in all_of_tna.sw.process(0, packet())] == []
    assert all_of_tna.p4rt_session(5)[0] == [7]
    all_of_tna.p4rt(MODIFY, packet_replication_engine_entry=session([1, 2]))
    assert [out for out, _ in all_of_tna.sw.process(0, packet())] == [1, 2]
    all_of_tna.bfrt("modify", "$mirror.cfg", {SID: 5}, packet_color="RED")  # keeps both replicas
    assert all_of_tna.p4rt_session(5)[0] == [1, 2]
    all_of_tna.bfrt("delete", "$mirror.cfg", {SID: 5})
    assert all_of_tna.sw.state.clone_sessions == {}
    with pytest.raises(BatchError, match="clone session 5 does not exist"):
        all_of_tna.p4rt(DELETE, packet_replication_engine_entry=session([]))


def test_a_session_that_mirrors_to_a_group(all_of_tna: Interfaces) -> None:
    all_of_tna.sw.multicast(7, [1, 2])
    all_of_tna.cli("mirroring_add_mc 5 7")
    found = all_of_tna.bfrt_read("$mirror.cfg", {SID: 5})
    assert (found["$mcast_grp_a_valid"], found["$mcast_grp_a"]) == (True, 7)
    assert all_of_tna.p4rt_session(5)[0] == [1, 2]
    all_of_tna.p4rt(MODIFY, packet_replication_engine_entry=group(replica(4)))
    assert all_of_tna.p4rt_session(5)[0] == [4]


def test_a_group_of_p4runtime_has_nodes_for_bfruntime(all_of_tna: Interfaces) -> None:
    all_of_tna.p4rt(
        INSERT, packet_replication_engine_entry=group(replica(1), replica(2), replica(3, 9))
    )
    first, second = 7 << 16, 7 << 16 | 9
    found = all_of_tna.bfrt_read("$pre.mgid", {GROUP: 7})
    assert found["$MULTICAST_NODE_ID"] == [first, second]
    assert all_of_tna.bfrt_read("$pre.node", {NODE: first})["$DEV_PORT"] == [1, 2]
    assert all_of_tna.bfrt_keys("$pre.node") == [first, second]
    all_of_tna.bfrt("modify", "$pre.node", {NODE: second}, DEV_PORT=[4, 5])
    assert all_of_tna.p4rt_group(7) == [(1, 0), (2, 0), (4, 9), (5, 9)]
    all_of_tna.bfrt("modify", "$pre.mgid", {GROUP: 7}, MULTICAST_NODE_ID=[first])
    assert all_of_tna.p4rt_group(7) == [(1, 0), (2, 0)]
    assert [out for out, _ in all_of_tna.sw.process(0, packet())] == [1, 2]
    all_of_tna.bfrt("delete", "$pre.node", {NODE: first})
    assert (all_of_tna.p4rt_group(7), all_of_tna.bfrt_keys("$pre.node")) == ([], [second])


def test_a_node_that_stands_for_replicas_is_deleted_with_them(all_of_tna: Interfaces) -> None:
    all_of_tna.p4rt(INSERT, packet_replication_engine_entry=group(replica(1), replica(3, 9)))
    all_of_tna.bfrt("delete", "$pre.node", {NODE: 7 << 16 | 9})
    assert all_of_tna.p4rt_group(7) == [(1, 0)]
    assert all_of_tna.bfrt_keys("$pre.node") == [7 << 16]


def test_nodes_of_commands_and_of_bfruntime(all_of_tna: Interfaces) -> None:
    all_of_tna.cli("mc_mgrp_create 7\nmc_node_create 3 1 2\nmc_node_associate 7 0")
    assert all_of_tna.bfrt_read("$pre.mgid", {GROUP: 7})["$MULTICAST_NODE_ID"] == [0]
    assert all_of_tna.bfrt_read("$pre.node", {NODE: 0}) == {
        "$MULTICAST_RID": 3, "$MULTICAST_LAG_ID": [], "$DEV_PORT": [1, 2],
    }  # fmt: skip
    all_of_tna.bfrt("add", "$pre.node", {NODE: 1}, MULTICAST_RID=4, DEV_PORT=[6])
    assert all_of_tna.cli("mc_node_create 5 9") == "node was created with handle 2"
    all_of_tna.cli("mc_node_associate 7 1")
    assert all_of_tna.p4rt_group(7) == [(1, 3), (2, 3), (6, 4)]
    assert "(L1h=1, rid=4) -> (ports=[6], lags=[])" in all_of_tna.cli("mc_dump")


def test_a_refused_update_leaves_no_node(all_of_tna: Interfaces) -> None:
    all_of_tna.p4rt(INSERT, packet_replication_engine_entry=group(replica(1)))
    with pytest.raises(RpcError, match="port 512 is not within 0 to 511"):
        all_of_tna.bfrt("modify", "$pre.node", {NODE: 7 << 16}, DEV_PORT=[512])
    with all_of_tna.sw.lock, pytest.raises(KeyError), all_of_tna.sw.store.batch():
        all_of_tna.bfrt("modify", "$pre.node", {NODE: 7 << 16}, DEV_PORT=[5])
        assert all_of_tna.p4rt_group(7) == [(5, 0)]
        raise KeyError
    assert all_of_tna.p4rt_group(7) == [(1, 0)]
    assert all_of_tna.sw.state.replication.nodes == {}


def test_plain_records_make_it_anew(all_of_tna: Interfaces) -> None:
    """Also by way of JSON, as saved state has them."""
    sw, replication = all_of_tna.sw, all_of_tna.sw.store.replication
    sw.multicast(8, [(4, 1, [(5, 2), 6])])
    sw.clone_session(6, [3], truncate=70)
    all_of_tna.cli("mc_mgrp_create 7\nmc_node_create 3 1 2\nmc_node_associate 7 0")
    all_of_tna.bfrt("add", "$pre.lag", {"$MULTICAST_LAG_ID": 9}, DEV_PORT=[11, 12])
    all_of_tna.bfrt("modify", "$pre.node", {NODE: 0}, MULTICAST_LAG_ID=[9])
    all_of_tna.bfrt("add", "$pre.ecmp", {"$MULTICAST_ECMP_ID": 4}, MULTICAST_NODE_ID=[0])
    all_of_tna.bfrt("add", "$pre.prune", {"$MULTICAST_L2_XID": 2}, DEV_PORT=[2, 1])
    all_of_tna.bfrt("add", "$mirror.cfg", {SID: 5}, "$normal", session_enable=False,
                    ucast_egress_port=9, ucast_egress_port_valid=True, direction="EGRESS",
                    mcast_grp_a=7, mcast_grp_a_valid=True)  # fmt: skip
    dump, ports = json.loads(json.dumps(replication.dump())), dict(sw.state.multicast)
    sw.reset()
    assert not sw.state.replication.nodes
    replication.load(dump)
    assert json.loads(json.dumps(replication.dump())) == dump
    assert sw.state.multicast == ports
    assert [r.port for r in ports[7]] == [1, 2, 11]
    assert sw.state.pruned[2].nonzero()[0].tolist() == [1, 2]
    assert all_of_tna.bfrt_read("$mirror.cfg", {SID: 5})["$direction"] == "EGRESS"
    assert sorted(sw.state.clone_sessions) == [6]
