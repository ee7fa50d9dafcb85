"""Packets match the entries and registers that clients have written, in both engines."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from bfrt_client import Client
from bfrt_served import Served
from tnaprograms import packet, source

from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions

DST, SRC = 0x0200000000AA, 0x0200000000BB


def frame(dst: int = DST, src: int = SRC, kind: int = 0x1234) -> bytes:
    return dst.to_bytes(6, "big") + src.to_bytes(6, "big") + kind.to_bytes(2, "big") + b"data"


def test_entries_and_their_counters(served: Served) -> None:
    device, client = served
    client.add("macs", {"h.ethernet.dst": DST}, "Ingress.send", port=7)
    assert device.process(1, frame()) == [(7, frame())]
    (entry,) = client.read("macs", {"h.ethernet.dst": DST})
    assert (entry["action"], entry["port"], entry["$COUNTER_SPEC_PKTS"]) == ("Ingress.send", 7, 1)
    (counted,) = client.read("per_port", {"$COUNTER_INDEX": 1})
    assert counted["$COUNTER_SPEC_PKTS"] == 1
    client.set_default("macs", "Ingress.send", port=9)
    assert device.process(1, frame(dst=5)) == [(9, frame(dst=5))]


def test_a_smaller_priority_number_wins(served: Served) -> None:
    device, client = served
    client.set_default("macs", "Ingress.send", port=1)
    key = {"src": (0, 0), "vlan": (0, 0xFFFF), "dst": (0, 0)}
    client.add("filters", {**key, "$MATCH_PRIORITY": 20}, "Ingress.mark", type=0x20)
    client.add("filters", {**key, "$MATCH_PRIORITY": 10}, "Ingress.mark", type=0x10)
    assert device.process(1, frame()) == [(1, frame(kind=0x10))]


def test_each_pipe_has_its_registers(served: Served) -> None:
    device, client = served
    for port in (1, 1, 129, 300):
        device.process(port, frame())
    (cell,) = client.read("totals", {"$REGISTER_INDEX": 5})
    assert cell["Ingress.totals.f1"] == [2, 1, 1, 0]
    (second,) = client.read("totals", {"$REGISTER_INDEX": 5}, pipe=1)
    assert second["Ingress.totals.f1"] == [1]
    client.add("totals", {"$REGISTER_INDEX": 5}, f1=40)
    device.process(130, frame())
    (cell,) = client.read("totals", {"$REGISTER_INDEX": 5})
    assert cell["Ingress.totals.f1"] == [40, 41, 40, 40]
    client.add("pairs", {"$REGISTER_INDEX": 3}, first=8, second=10)
    device.process(1, frame())
    (cell,) = client.read("pairs", {"$REGISTER_INDEX": 3})
    assert cell["Ingress.pairs.first"] == [8] * 4
    assert cell["Ingress.pairs.second"] == [11, 10, 10, 10]


def test_port_metadata_reach_the_parser(served: Served) -> None:
    device, client = served
    client.set_default("macs", "Ingress.send", port=1)
    client.add("$PORT_METADATA", {"ig_intr_md.ingress_port": 5}, group=3, label=100, vlan=77)
    key = {"src": (0, 0), "vlan": (77, 77), "dst": (0, 0), "$MATCH_PRIORITY": 1}
    client.add("filters", key, "Ingress.mark", type=0x99)
    assert device.process(5, frame()) == [(1, frame(kind=0x99))]
    assert device.process(6, frame()) == [(1, frame())]
    (entry,) = client.read("$PORT_METADATA")
    assert (entry["group"], entry["label"], entry["vlan"]) == (3, 100, 77)
    client.write(("DELETE", client.entry("$PORT_METADATA", {"ig_intr_md.ingress_port": 5})))
    assert device.process(5, frame()) == [(1, frame())]


def test_packets_come_back_by_a_port_in_loopback_mode(served: Served) -> None:
    """The port's next table entry is the one that sends them there, so they come back for ever."""
    device, client = served
    client.set_default("macs", "Ingress.send", port=130)
    port = {"$DEV_PORT": 130}
    fixed = {"SPEED": "BF_SPEED_100G", "FEC": "BF_FEC_TYP_NONE"}
    client.add("$PORT", port, LOOPBACK_MODE="BF_LPBK_MAC_NEAR", **fixed)
    assert device.process(1, frame()) == [(130, frame())]  # not enabled yet
    client.write(("MODIFY", client.entry("$PORT", port, PORT_ENABLE=True)))
    assert device.process(1, frame()) == []
    (cell,) = client.read("totals", {"$REGISTER_INDEX": 5})
    assert cell["Ingress.totals.f1"][0] == 2 and cell["Ingress.totals.f1"][1] > 900
    client.write(("DELETE", client.entry("$PORT", port)))
    assert device.process(1, frame()) == [(130, frame())]


def test_packets_come_back_by_a_port_of_the_packet_generator(served: Served) -> None:
    device, client = served
    client.set_default("macs", "Ingress.send", port=448)
    place = {"dev_port": 448}
    (entry,) = client.read("tf1.pktgen.port_cfg", place)
    assert not entry["recirculation_enable"]  # nothing was set, and yet it can be read
    client.add("tf1.pktgen.port_cfg", place, recirculation_enable=True)
    assert device.process(1, frame()) == []
    client.write(("DELETE", client.entry("tf1.pktgen.port_cfg", place)))
    assert device.process(1, frame()) == [(448, frame())]


def test_groups_of_nodes(served: Served) -> None:
    device, client = served
    for node, rid, ports in ((1, 10, [1, 2]), (2, 20, [3]), (3, 30, [4])):
        client.add("$pre.node", {"$MULTICAST_NODE_ID": node}, MULTICAST_RID=rid,
                   MULTICAST_LAG_ID=[], DEV_PORT=ports)  # fmt: skip
    client.add("$pre.mgid", {"$MGID": 7}, MULTICAST_NODE_ID=[1, 2],
               MULTICAST_NODE_L1_XID_VALID=[False, True], MULTICAST_NODE_L1_XID=[0, 0])  # fmt: skip
    client.set_default("macs", "Ingress.flood", group=7)
    assert [port for port, _ in device.process(9, frame())] == [1, 2]  # node 2 excludes id 0
    change = client.entry(
        "$pre.mgid", {"$MGID": 7}, MULTICAST_NODE_ID=[3], MULTICAST_NODE_L1_XID_VALID=[False],
        MULTICAST_NODE_L1_XID=[0],
    )  # fmt: skip
    client.write(("MODIFY_INC", change))
    assert [port for port, _ in device.process(9, frame())] == [1, 2, 4]
    client.add("$pre.prune", {"$MULTICAST_L2_XID": 0}, DEV_PORT=[1])
    assert [port for port, _ in device.process(9, frame())] == [1, 2, 4]  # another rid than 0
    with pytest.raises(grpc.RpcError, match="_L2_XID 300 is not within 0 to 287"):
        client.add("$pre.prune", {"$MULTICAST_L2_XID": 300}, DEV_PORT=[1])
    client.write(("MODIFY", client.entry("$pre.node", {"$MULTICAST_NODE_ID": 1}, MULTICAST_RID=0)))
    assert [port for port, _ in device.process(9, frame())] == [2, 4]
    client.write(("DELETE", client.entry("$pre.prune", {"$MULTICAST_L2_XID": 0})))
    assert [port for port, _ in device.process(9, frame())] == [1, 2, 4]
    client.write(("DELETE", client.entry("$pre.mgid", {"$MGID": 7})))
    assert device.process(9, frame()) == []


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_the_global_replication_id_stands_for_all(engine: str, tmp_path: Path) -> None:
    """Of a packet with it, the ports of its level 2 id are left out in nodes of any other id."""
    program = tmp_path / "rids.p4"
    text = """tm.mcast_grp_a = 7; tm.rid = (bit<16>) h.a.x; tm.level2_exclusion_id = 3;"""
    program.write_text(source(ingress=text))
    device = make_device(SwitchOptions(program=program, engine=engine))
    with BfRuntimeServer(device, "127.0.0.1:0") as server, Client(server.address) as client:
        for node, rid, ports in ((1, 10, [1, 2]), (2, 20, [2, 4])):
            client.add("$pre.node", {"$MULTICAST_NODE_ID": node}, MULTICAST_RID=rid,
                       MULTICAST_LAG_ID=[], DEV_PORT=ports)  # fmt: skip
        none = {"MULTICAST_NODE_L1_XID_VALID": [False] * 2, "MULTICAST_NODE_L1_XID": [0] * 2}
        client.add("$pre.mgid", {"$MGID": 7}, MULTICAST_NODE_ID=[1, 2], **none)
        client.add("$pre.prune", {"$MULTICAST_L2_XID": 3}, DEV_PORT=[2])
        setting = client.attribute("$pre.mgid", "pre_device_config")
        config = setting.table_attribute.pre_device_config

        def reached(rid: int) -> list[int]:
            return [port for port, _ in device.process(0, packet(x=rid))]

        assert [reached(rid) for rid in (0, 10, 20, 30)] == [
            [1, 2, 2, 4], [1, 2, 4], [1, 2, 4], [1, 2, 2, 4],
        ]  # fmt: skip
        config.pre_global_rid.global_rid = 30
        client.write(("MODIFY", setting))
        assert [reached(rid) for rid in (10, 30, 31)] == [[1, 2, 4], [1, 4], [1, 2, 2, 4]]
        (found,) = client.read_entities(client.attribute("$pre.mgid", "pre_device_config"))
        assert found.table_attribute.pre_device_config.pre_global_rid.global_rid == 30
        config.pre_global_rid.global_rid = 31
        client.write(("MODIFY", setting))
        assert [reached(rid) for rid in (30, 31)] == [[1, 2, 2, 4], [1, 4]]


def test_rows_of_arrays_exist_without_being_added(served: Served) -> None:
    device, client = served
    client.write(("MODIFY", client.entry("$pre.prune", {"$MULTICAST_L2_XID": 287}, DEV_PORT=[2])))
    client.add("$pre.prune", {"$MULTICAST_L2_XID": 287}, DEV_PORT=[2, 3])  # once more
    for number, ports in ((287, [2, 3]), (286, [])):
        (row,) = client.read("$pre.prune", {"$MULTICAST_L2_XID": number})
        assert row["$DEV_PORT"] == ports
    assert len(list(client.read("$pre.prune"))) == 288
    client.write(("MODIFY", client.entry("$pre.lag", {"$MULTICAST_LAG_ID": 4}, DEV_PORT=[6])))
    client.add("$pre.node", {"$MULTICAST_NODE_ID": 1}, MULTICAST_RID=1, MULTICAST_LAG_ID=[4],
               DEV_PORT=[5])  # fmt: skip
    client.add("$pre.mgid", {"$MGID": 7}, MULTICAST_NODE_ID=[1],
               MULTICAST_NODE_L1_XID_VALID=[False], MULTICAST_NODE_L1_XID=[0])  # fmt: skip
    client.set_default("macs", "Ingress.flood", group=7)
    assert [port for port, _ in device.process(9, frame())] == [5, 6]
    client.write(("DELETE", client.entry("$pre.lag", {"$MULTICAST_LAG_ID": 4})))
    client.write(("DELETE", client.entry("$pre.lag", {"$MULTICAST_LAG_ID": 4})))
    assert [port for port, _ in device.process(9, frame())] == [5]
    backup = client.entry("$pre.port", {"$DEV_PORT": 128}, MULTICAST_BACKUP_PORT=1)
    client.write(("MODIFY", backup))
    numbers = [row["$DEV_PORT"] for row in client.read("$pre.port")]
    assert (len(numbers), numbers[71:73], numbers[-1]) == (288, [71, 128], 455)
    with pytest.raises(grpc.RpcError, match="DEV_PORT 72 is not within 0 to 455"):
        client.add("$pre.port", {"$DEV_PORT": 72}, MULTICAST_BACKUP_PORT=1)


def test_group_0_has_members_as_any(served: Served) -> None:
    device, client = served
    client.set_default("macs", "Ingress.flood", group=0)
    assert device.process(9, frame()) == []
    client.add("$pre.node", {"$MULTICAST_NODE_ID": 1}, MULTICAST_RID=1, MULTICAST_LAG_ID=[],
               DEV_PORT=[1, 2])  # fmt: skip
    client.add("$pre.mgid", {"$MGID": 0}, MULTICAST_NODE_ID=[1],
               MULTICAST_NODE_L1_XID_VALID=[False], MULTICAST_NODE_L1_XID=[0])  # fmt: skip
    assert [port for port, _ in device.process(9, frame())] == [1, 2]
    client.set_default("macs", "Ingress.send", port=5)  # the program sets no group
    assert [port for port, _ in device.process(9, frame())] == [5]


def test_parameters_that_are_not_given_are_0(served: Served) -> None:
    device, client = served
    client.add("macs", {"h.ethernet.dst": DST}, "Ingress.send")
    assert device.process(1, frame()) == [(0, frame())]


def test_members_and_groups_of_a_selector(served: Served) -> None:
    device, client = served
    for member in (1, 2):
        client.add("members", {"$ACTION_MEMBER_ID": member}, "Ingress.to", port=10 + member)
    client.add("Ingress.groups", {"$SELECTOR_GROUP_ID": 1}, ACTION_MEMBER_ID=[1, 2],
               ACTION_MEMBER_STATUS=[False, True], MAX_GROUP_SIZE=4)  # fmt: skip
    client.add("balanced", {"type": 0x1234}, SELECTOR_GROUP_ID=1)
    notified = client.attribute("Ingress.groups", "selector_update_notify", enable=True)
    client.write(("INSERT", notified))
    assert {device.process(1, frame(src=s))[0][0] for s in range(20)} == {12}
    client.write(("MODIFY", client.entry("Ingress.groups", {"$SELECTOR_GROUP_ID": 1},
                  ACTION_MEMBER_ID=[1, 2], ACTION_MEMBER_STATUS=[True, True])))  # fmt: skip
    assert {device.process(1, frame(src=s))[0][0] for s in range(20)} == {11, 12}
    (probe,) = client.read("groups_get_member", {"$SELECTOR_GROUP_ID": 1, "hash_value": 3})
    assert probe["$ACTION_MEMBER_ID"] == 2
    change = client.next_message("selector_update_change_notification")
    assert (change.sel_group_id, change.act_member_id, change.is_add) == (1, 1, True)
    for most in (0, 9):
        with pytest.raises(grpc.RpcError, match=f"MAX_GROUP_SIZE {most} is not within 1 to 8"):
            client.add("Ingress.groups", {"$SELECTOR_GROUP_ID": 2}, MAX_GROUP_SIZE=most)
    empty = client.entry("Ingress.groups", {"$SELECTOR_GROUP_ID": 2}, ACTION_MEMBER_ID=[],
                         ACTION_MEMBER_STATUS=[])  # fmt: skip
    for field in empty.data.fields:
        field.int_arr_val.SetInParent()  # also in place of the list of states
    client.write(("INSERT", empty))
    (group,) = client.read("Ingress.groups", {"$SELECTOR_GROUP_ID": 2})
    assert (group["$ACTION_MEMBER_STATUS"], group["$MAX_GROUP_SIZE"]) == ([], 8)


def test_misses_run_a_member_or_a_group(served: Served) -> None:
    device, client = served
    with pytest.raises(grpc.RpcError, match="it has no default entry"):
        client.default("balanced")
    for member in (1, 2):
        client.add("members", {"$ACTION_MEMBER_ID": member}, "Ingress.to", port=10 + member)
    client.add("Ingress.groups", {"$SELECTOR_GROUP_ID": 1}, ACTION_MEMBER_ID=[1, 2],
               ACTION_MEMBER_STATUS=[True, True], MAX_GROUP_SIZE=4)  # fmt: skip
    client.set_default("balanced", ACTION_MEMBER_ID=2)
    assert client.default("balanced")["$ACTION_MEMBER_ID"] == 2
    assert [port for port, _ in device.process(1, frame())] == [12]
    client.write(("MODIFY", client.entry("members", {"$ACTION_MEMBER_ID": 2}, "to", port=20)))
    assert [port for port, _ in device.process(1, frame())] == [20]
    client.set_default("balanced", SELECTOR_GROUP_ID=1)
    assert {device.process(1, frame(src=s))[0][0] for s in range(20)} == {11, 20}
    group = client.entry("Ingress.groups", {"$SELECTOR_GROUP_ID": 1})
    with pytest.raises(grpc.RpcError, match="1 is used by the default entry of table Ingress.bal"):
        client.write(("DELETE", group))
    with pytest.raises(grpc.RpcError, match="no member 9; members: 1, 2"):
        client.set_default("balanced", ACTION_MEMBER_ID=9)
    default = client.entry("balanced", None)
    default.is_default_entry = True
    client.write(("DELETE", default), ("DELETE", group))
    assert [port for port, _ in device.process(1, frame())] == []


def test_value_sets_and_digests(served: Served) -> None:
    device, client = served
    client.add("known", {"f1": (0x1230, 0xFFF0)})
    client.set_default("macs", "Ingress.send", port=1)
    key = {"src": (0, 0), "vlan": (0xFFF, 0xFFF), "dst": (0, 0), "$MATCH_PRIORITY": 1}
    client.add("filters", key, "Ingress.mark", type=0x99)
    assert device.process(1, frame()) == [(1, frame(kind=0x99))]
    assert device.process(1, frame(kind=5)) == [(1, frame(kind=5))]
    assert device.process(2 << 7 | 3, frame(kind=5)) == [(1, frame(kind=5))]
    learned: list[tuple[int, list[bytes]]] = []  # a pipe's lists hold one packet or several
    while len(learned) < 3:
        digest = client.next_message("digest")
        for data in digest.data:
            learned.append((digest.target.pipe_id, [f.stream for f in data.fields]))
    address = SRC.to_bytes(6, "big")
    expected = [(0, [address, b"\0\1"])] * 2 + [(2, [address, b"\1\3"])]
    assert sorted(learned) == expected
    client.write(("DELETE", client.entry("known", None)))
    assert device.process(1, frame()) == [(1, frame())]


def test_filters_and_early_drop(served: Served) -> None:
    device, client = served
    client.set_default("macs", "Ingress.send", port=1)

    def given(kind: int, value: int) -> int:
        ((_, packet),) = device.process(1, frame(dst=value, kind=kind))
        return int.from_bytes(packet[12:14], "big")

    assert given(0xAAAA, 1000) == 1000  # not configured
    client.add("average", {"$LPF_INDEX": 1}, LPF_SPEC_TYPE="SAMPLE",
               LPF_SPEC_GAIN_TIME_CONSTANT_NS=1.0, LPF_SPEC_DECAY_TIME_CONSTANT_NS=1e15,
               LPF_SPEC_OUT_SCALE_DOWN_FACTOR=2)  # fmt: skip
    assert given(0xAAAA, 1000) == 250  # it rises at once, and hardly falls
    assert given(0xAAAA, 0) in (249, 250)
    (entry,) = client.read("average", {"$LPF_INDEX": 1})
    assert (entry["$LPF_SPEC_TYPE"], entry["$LPF_SPEC_GAIN_TIME_CONSTANT_NS"]) == ("SAMPLE", 1.0)
    assert given(0xBBBB, 1000) == 0
    client.add("early", {"$WRED_INDEX": 1}, WRED_SPEC_TIME_CONSTANT_NS=1.0,
               WRED_SPEC_MIN_THRESH_CELLS=100, WRED_SPEC_MAX_THRESH_CELLS=300,
               WRED_SPEC_MAX_PROBABILITY=1.0)  # fmt: skip
    assert [given(0xBBBB, value) for value in (50, 400, 99, 300)] == [0, 1, 0, 1]
    assert {given(0xBBBB, 200) for _ in range(64)} == {0, 1}


def test_the_filter_of_an_entry(served: Served) -> None:
    device, client = served
    client.set_default("macs", "Ingress.send", port=1)

    def given(value: int) -> int:
        ((_, packet),) = device.process(1, frame(dst=value, kind=0xCCCC))
        return int.from_bytes(packet[12:14], "big")

    client.add("smoothed", {"src": SRC}, "Ingress.smoothen")
    assert given(1000) == 1000  # not configured
    settings = {"LPF_SPEC_TYPE": "SAMPLE", "LPF_SPEC_OUT_SCALE_DOWN_FACTOR": 1,
                "LPF_SPEC_GAIN_TIME_CONSTANT_NS": 1.0,
                "LPF_SPEC_DECAY_TIME_CONSTANT_NS": 1e15}  # fmt: skip
    entry = client.entry("smoothed", {"src": SRC}, "Ingress.smoothen", **settings)
    client.write(("MODIFY", entry))
    assert [given(1000), given(1000)] == [500, 500]
    (entry,) = client.read("smoothed", {"src": SRC})
    assert (entry["$LPF_SPEC_TYPE"], entry["$LPF_SPEC_OUT_SCALE_DOWN_FACTOR"]) == ("SAMPLE", 1)
    wrong = {**settings, "LPF_SPEC_DECAY_TIME_CONSTANT_NS": 0.0}
    with pytest.raises(grpc.RpcError, match="both must be above 0"):
        client.add("smoothed", {"src": 9}, "Ingress.smoothen", **wrong)
    assert len(client.read("smoothed")) == 1


def test_mirror_sessions_are_kept(interpreted: Served) -> None:
    device, client = interpreted
    client.add("$mirror.cfg", {"$sid": 5}, "$normal", direction="INGRESS", session_enable=True,
               ucast_egress_port=9, ucast_egress_port_valid=True, max_pkt_len=100)  # fmt: skip
    pipeline = device.pipeline
    assert pipeline is not None
    session = pipeline.state.clone_sessions[5]
    assert ([r.port for r in session.replicas], session.truncate) == ([9], 100)
    change = client.entry("$mirror.cfg", {"$sid": 5}, "$normal", session_enable=False)
    client.write(("MODIFY", change))
    assert 5 not in pipeline.state.clone_sessions
    (entry,) = client.read("$mirror.cfg")
    assert (entry["$ucast_egress_port"], entry["$session_enable"]) == (9, False)


def test_a_mirror_session_follows_its_multicast_groups(interpreted: Served) -> None:
    device, client = interpreted
    client.add("$mirror.cfg", {"$sid": 5}, "$normal", session_enable=True, mcast_grp_a=7,
               mcast_grp_a_valid=True, mcast_grp_b=8, mcast_grp_b_valid=True)  # fmt: skip

    def mirrored() -> list[int]:
        return [replica.port for replica in device.target.state.clone_sessions[5].replicas]

    assert mirrored() == []
    for number, ports in ((7, [1, 2]), (8, [3])):
        client.add("$pre.node", {"$MULTICAST_NODE_ID": number}, MULTICAST_RID=1,
                   MULTICAST_LAG_ID=[], DEV_PORT=ports)  # fmt: skip
        client.add("$pre.mgid", {"$MGID": number}, MULTICAST_NODE_ID=[number],
                   MULTICAST_NODE_L1_XID_VALID=[False], MULTICAST_NODE_L1_XID=[0])  # fmt: skip
    assert mirrored() == [1, 2, 3]
    change = client.entry("$pre.node", {"$MULTICAST_NODE_ID": 7}, DEV_PORT=[4])
    client.write(("MODIFY", change))
    assert mirrored() == [4, 3]
    client.write(("DELETE", client.entry("$pre.mgid", {"$MGID": 8})))
    assert mirrored() == [4]


def test_keys_are_compared_under_their_masks(served: Served) -> None:
    device, client = served
    client.set_default("macs", "Ingress.send", port=1)
    source, label = (client.key_id("masked", name) for name in ("src", "label"))
    assert client.key_masks("masked") == {source: b"\xff" * 6, label: b"\x7f"}
    client.mask_keys("masked", {source: (0xFF).to_bytes(6, "big"), label: b"\x00"})
    client.add("masked", {"src": 0x1234567890BB, "label": 9}, "Ingress.mark", type=0x4444)
    (entry,) = client.read("masked")
    assert (entry["src"], entry["label"]) == (0xBB, 0)
    for src, kind in ((SRC, 0x4444), (0xBB, 0x4444), (0xBC, 0xDDDD)):
        ((_, packet),) = device.process(200, frame(src=src, kind=0xDDDD))
        assert packet[12:14] == kind.to_bytes(2, "big"), src
    with pytest.raises(grpc.RpcError, match="its key masks can change while it has no entries"):
        client.mask_keys("masked", {})
    client.write(("DELETE", client.entry("masked", {"src": SRC, "label": 77}, None)))
    client.mask_keys("masked", {})
    assert client.key_masks("masked")[source] == b"\xff" * 6
    with pytest.raises(grpc.RpcError, match="the mask of key field label has more than 7 bits"):
        client.mask_keys("masked", {label: b"\x80"})
    with pytest.raises(grpc.RpcError, match="key field 99 has no mask"):
        client.mask_keys("masked", {99: b"\x80"})
