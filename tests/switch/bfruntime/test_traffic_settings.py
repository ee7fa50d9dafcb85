"""The traffic manager's tables that keep what is written: first values, limits, what follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from bfrt_client import Client
from bfrt_served import PROGRAM, Served

from gradplane import _bfruntime as bf
from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions

FRAME = bytes.fromhex("0200000000aa 0200000000bb 1234") + b"data"
PORT = {"dev_port": 9}


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Client]:
    """A client of a Tofino 2."""
    program = tmp_path / "second.p4"
    program.write_text(PROGRAM.read_text().replace("<tna.p4>", "<t2na.p4>"))
    device = make_device(SwitchOptions(program=program, engine="interpreter"))
    with BfRuntimeServer(device, "127.0.0.1:0") as server, Client(server.address) as client:
        yield client


@pytest.fixture
def client(interpreted: Served) -> Client:
    return interpreted[1]


def modify(
    client: Client, name: str, key: dict[str, Any] | None, action: str | None = None,
    kind: str = "MODIFY", pipe: int = 0xFFFF, **data: Any,
) -> None:  # fmt: skip
    entry = client.entry(name, key, action, **data)
    entry.is_default_entry = key is None
    client.write((kind, entry), target={"pipe_id": pipe})


def refused(client: Client, *args: Any, **data: Any) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        modify(client, *args, **data)
    message = str(caught.value.details()).removeprefix("1 of 1 updates failed: table ")
    return message.partition(": ")[2]


FIRST_VALUES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("tm.pool.cfg", {"pool": "IG_APP_POOL_0"}, {"size_cells": 89260}),
    ("tm.pool.cfg", {"pool": "IG_APP_POOL_1"}, {"size_cells": 0}),
    ("tm.pool.color", {"color": "RED"}, {"color_drop_resume_limit_cells": 0}),
    ("tm.pool.app", {"pool": "EG_APP_POOL_0"},
     {"action": "color_drop_enable", "green_limit_cells": 30284}),
    ("tm.pool.app", {"pool": "EG_APP_POOL_1"}, {"action": "color_drop_disable"}),
    ("tm.pool.app_pfc", {"pool": "IG_APP_POOL_0", "cos": 7}, {"pfc_limit_cells": 89260}),
    ("tm.port.dpg", PORT,
     {"guaranteed_cells": 40, "pool_max_cells": 305, "dynamic_baf": "80%", "icos_3": True}),
    ("tm.port.buffer", PORT, {"ct_enable": False, "ig_limit_cells": 286720}),
    ("tm.port.flowcontrol", PORT, {"mode_tx": "NONE", "cos_to_icos": [0] * 8}),
    ("tm.queue.color", {"pg_id": 2, "pg_queue": 8}, {"drop_limit_red": "75%"}),
    ("tm.queue.sched_cfg", {"pg_id": 2, "pg_queue": 8},
     {"dwrr_weight": 1023, "scheduling_enable": True}),
    ("tm.counter.ig_port", PORT, {"drop_count_packets": 0, "watermark_cells": 0}),
    ("tm.counter.dpg", PORT, {"shared_pool_usage_cells": 0}),
]  # fmt: skip


def test_entries_have_the_driver_s_first_values(client: Client) -> None:
    for name, key, expected in FIRST_VALUES:
        (shown,) = client.read(name, key)
        assert {field: shown[field] for field in expected} == expected, name


def test_settings_of_the_chip_and_of_pipes(client: Client) -> None:
    about = client.default("tm.cfg")
    assert (about["cell_size_bytes"], about["total_cells"]) == (80, 286720)
    assert client.default("tm.port.group_cfg")["pg_queues"] == 32
    modify(client, "tm.pipe.sched_cfg", None, pipe=1, packet_ifg_compensation=8)
    found = [
        client.read_entities(default_of(client, "tm.pipe.sched_cfg"), pipe=pipe) for pipe in (0, 1)
    ]
    shown = [client.shown("tm.pipe.sched_cfg", next(f).table_entry) for f in found]
    assert [s["packet_ifg_compensation"] for s in shown] == [20, 8]
    modify(client, "tm.pool.skid", None, resume_limit_cells=5)
    assert client.default("tm.pool.skid") == {"resume_limit_cells": 5}
    modify(client, "tm.pool.skid", None, kind="DELETE")
    assert client.default("tm.pool.skid") == {"resume_limit_cells": 128}


def default_of(client: Client, name: str) -> Any:
    entry = client.entry(name, None)
    entry.is_default_entry = True
    return bf.Entity(table_entry=entry)


def test_what_is_written_is_given_back_and_can_be_reset(client: Client) -> None:
    modify(client, "tm.port.buffer", PORT, uc_ct_limit_cells=7, skid_limit_cells=9)
    modify(client, "tm.port.flowcontrol", PORT, mode_tx="PFC", cos_to_icos=list(range(8)))
    modify(client, "tm.queue.color", {"pg_id": 2, "pg_queue": 8}, drop_limit_yellow="50%")
    modify(client, "tm.pool.app", {"pool": "IG_APP_POOL_2"}, "color_drop_enable",
           red_limit_cells=3)  # fmt: skip
    (buffer,), (flow,) = (client.read(f"tm.port.{n}", PORT) for n in ("buffer", "flowcontrol"))
    assert (buffer["uc_ct_limit_cells"], buffer["skid_limit_cells"]) == (7, 9)
    assert (flow["mode_tx"], flow["cos_to_icos"]) == ("PFC", list(range(8)))
    (pool,) = client.read("tm.pool.app", {"pool": "IG_APP_POOL_2"})
    assert (pool["action"], pool["red_limit_cells"]) == ("color_drop_enable", 3)
    client.write(("DELETE", client.entry("tm.port.buffer", None)))
    (buffer,) = client.read("tm.port.buffer", PORT)
    assert buffer["uc_ct_limit_cells"] == 15
    assert len(client.read("tm.pool.app_pfc")) == 32


def test_a_failed_batch_leaves_settings_as_they_were(client: Client) -> None:
    good = client.entry("tm.port.buffer", PORT, uc_ct_limit_cells=7)
    bad = client.entry("tm.port.buffer", {"dev_port": 100}, uc_ct_limit_cells=7)
    with pytest.raises(grpc.RpcError):
        client.write(("MODIFY", good), ("MODIFY", bad), atomicity=1)
    (buffer,) = client.read("tm.port.buffer", PORT)
    assert buffer["uc_ct_limit_cells"] == 15


def test_priority_groups_take_classes_from_their_port(client: Client) -> None:
    key = {"ppg_id": 5}
    modify(client, "tm.ppg.cfg", key, "dev_port", "INSERT", 0, dev_port=9, icos_3=True)
    (group,) = client.read("tm.ppg.cfg", key, pipe=0)
    assert (group["action"], group["dev_port"], group["ppg_counter_id"]) == ("dev_port", 9, 0)
    (port,) = client.read("tm.port.dpg", PORT)
    assert (port["icos_ppg_map"], port["icos_3"]) == ([0, 0, 0, 5, 0, 0, 0, 0], False)
    (counts,) = client.read("tm.counter.ppg", {"ppg_counter_id": 0}, pipe=0)
    assert (counts["ppg_id"], counts["drop_count_packets"]) == (5, 0)
    modify(client, "tm.ppg.cfg", key, "dev_port", pipe=0, icos_3=False, pfc_enable=True)
    (group,) = client.read("tm.ppg.cfg", key, pipe=0)
    assert (group["icos_3"], group["pfc_enable"]) == (False, True)
    modify(client, "tm.ppg.cfg", key, kind="DELETE", pipe=0)
    assert client.read("tm.ppg.cfg", pipe=0) == []
    (port,) = client.read("tm.port.dpg", PORT)
    assert port["icos_3"] is True


def test_priority_groups_of_the_mirror_port(client: Client) -> None:
    modify(client, "tm.ppg.cfg", {"ppg_id": 1}, "mirror_port", "INSERT", icos_0=True)
    assert client.default("tm.mirror.dpg")["icos_ppg_map"] == [1] + [0] * 7
    assert [len(client.read("tm.ppg.cfg", pipe=p)) for p in range(4)] == [1] * 4


def test_wrong_priority_groups_are_refused(client: Client) -> None:
    def add(number: int, action: str | None = "dev_port", **data: Any) -> tuple[Any, ...]:
        return "tm.ppg.cfg", {"ppg_id": number}, action, "INSERT", 0

    modify(client, *add(1), dev_port=9, icos_0=True)
    assert refused(client, *add(0), dev_port=9) == "ppg_id 0 is not allowed"
    assert refused(client, *add(1), dev_port=9) == "pipe 0 has a group 1"
    assert refused(client, *add(2), dev_port=9, icos_0=True) == (
        "icos_0 is group 1's: take it from there first"
    )
    assert refused(client, *add(2)) == "dev_port is missing"
    assert refused(client, *add(2), dev_port=137) == (
        "dev_port 137 is not a port of pipe 0; name the pipe"
    )
    assert refused(client, *add(2, None)) == "an action is missing: dev_port or mirror_port"
    assert refused(client, "tm.ppg.cfg", {"ppg_id": 1}, "mirror_port", icos_1=True) == (
        "group 1 is of the other kind of port"
    )
    assert refused(client, "tm.ppg.cfg", {"ppg_id": 3}, icos_1=True) == "there is no group 3"
    for number in range(2, 9):
        modify(client, *add(number), dev_port=9)
    assert refused(client, *add(9), dev_port=9) == "port 9 has 8 groups already"


def test_where_drops_are_mirrored_is_shown_by_ports_and_queues(client: Client) -> None:
    modify(client, "tm.pipe.cfg", None, pipe=0, mirror_drop_pg_id=2, mirror_drop_pg_queue=8)
    (port,) = client.read("tm.port.cfg", PORT)
    assert (port["mirror_drop_destination"], port["mirror_drop_pg_queue"]) == (True, 8)
    (queue,) = client.read("tm.queue.cfg", {"pg_id": 2, "pg_queue": 8}, pipe=0)
    assert queue["mirror_drop_destination"] is True
    (shown,) = client.read_entities(default_of(client, "tm.pipe.cfg"), pipe=0)
    found = client.shown("tm.pipe.cfg", shown.table_entry)
    assert (found["mirror_drop_dev_port"], found["mirror_drop_queue_nr"]) == (9, 0)
    assert refused(client, "tm.pipe.cfg", None, mirror_drop_pg_id=2) == (
        "mirror_drop_pg_id and mirror_drop_pg_queue are set together"
    )


def test_packets_are_deflected_to_where_drops_are_mirrored(interpreted: Served) -> None:
    device, client = interpreted
    chosen = dict(mirror_drop_pg_id=2, mirror_drop_pg_queue=8)
    modify(client, "tm.pipe.cfg", None, pipe=1, **chosen)
    assert device.pipeline is not None
    places = device.pipeline.state.links.queues.deflections
    assert {port >> 7 for port in places} == {1}
    assert set(places.values()) == {(137, 0)}
    client.write(("DELETE", default_of(client, "tm.pipe.cfg")))
    assert not places


def test_pools_and_pipes_count_what_queues_do(served: Served) -> None:
    device, client = served
    queue = {"pg_id": 2, "pg_queue": 8}
    client.set_default("macs", "Ingress.send", port=9)
    modify(client, "tm.queue.sched_shaping", queue, unit="PPS", max_rate=1)
    modify(client, "tm.queue.sched_cfg", queue, max_rate_enable=True)
    modify(client, "tm.queue.buffer", queue, "shared_pool", guaranteed_cells=1, pool_max_cells=1,
           pool_id="EG_APP_POOL_2")  # fmt: skip
    device.process(1, FRAME)
    assert [device.process(1, FRAME) for _ in range(4)] == [[]] * 4
    (pool,) = client.read("tm.counter.pool", {"pool": "EG_APP_POOL_2"})
    assert (pool["usage_cells"], pool["watermark_cells"]) == (2, 2)
    counts = client.default("tm.counter.pipe")
    assert counts["eg_total_drop_packets"] == 3
    modify(client, "tm.counter.pipe", None, eg_total_drop_packets=0)
    assert client.default("tm.counter.pipe")["eg_total_drop_packets"] == 0
    device.process(1, FRAME)
    assert client.default("tm.counter.pipe")["eg_total_drop_packets"] == 1


def test_what_a_table_cannot_take_is_refused(client: Client) -> None:
    assert refused(client, "tm.port.buffer", {"dev_port": 100}, skid_limit_cells=1) == (
        "there is no dev_port 100"
    )
    assert refused(client, "tm.port.flowcontrol", PORT, cos_to_icos=[1]) == (
        "cos_to_icos takes 8 items of 0 to 7"
    )
    assert refused(client, "tm.port.flowcontrol", PORT, mode_rx="PFC") == (
        "data field mode_rx is read-only"
    )
    assert refused(client, "tm.pipe.multicast_fifo", None, depth=[1]) == (
        "data field depth has 1 items, not 4"
    )
    assert refused(client, "tm.pipe.multicast_fifo", None, arbitration_mode=["FAST"] * 4) == (
        "data field arbitration_mode: 'FAST' is not one of STRICT_PRIORITY, WRR"
    )
    assert refused(client, "tm.pool.cfg", {"pool": "POOL"}, size_cells=1) == (
        "key field pool: 'POOL' is not one of IG_APP_POOL_0, IG_APP_POOL_1, IG_APP_POOL_2, "
        "IG_APP_POOL_3, EG_APP_POOL_0, EG_APP_POOL_1, EG_APP_POOL_2, EG_APP_POOL_3, IG_SKID_POOL, "
        "IG_EG_NEGATIVE_MIRROR_POOL, EG_PRE_FIFO, IG_EG_GUARANTEED_MIN, EG_UNICAST_CUT_THROUGH, "
        "EG_MULTICAST_CUT_THROUGH"
    )
    assert refused(client, "tm.pool.color", {"color": "RED"}) == (
        "data field color_drop_resume_limit_cells is missing"
    )
    assert refused(client, "tm.pool.app", {"pool": "EG_APP_POOL_0"}) == (
        "an action is missing: color_drop_enable or color_drop_disable"
    )
    assert refused(client, "tm.counter.dpg", PORT, drop_count_packets=1) == (
        "counters can only be set to 0"
    )
    assert refused(client, "tm.port.group_cfg", None, pg_queues=1) == "it can only be read"
    with pytest.raises(grpc.RpcError, match="cannot be cleared"):
        client.write(("DELETE", client.entry("tm.pool.cfg", None)))


def test_scheduling_nodes_of_tofino_2(second: Client) -> None:
    node = {"pg_id": 1, "pg_l1_node": 9}
    first, free = (
        second.read("tm.l1_node.sched_cfg", {"pg_id": 1, "pg_l1_node": n}, pipe=0)[0]
        for n in (1, 9)
    )
    assert (first["action"], first["dev_port"], first["pg_queues"]) == ("in_use", 9, [16])
    assert (free["action"], free["queues_count"]) == ("free", 0)
    modify(second, "tm.l1_node.sched_cfg", node, "in_use", pipe=0, dev_port=9, dwrr_weight=7)
    modify(second, "tm.queue.sched_cfg", {"pg_id": 1, "pg_queue": 16}, pipe=0, pg_l1_node=9)
    (shown,) = second.read("tm.l1_node.sched_cfg", node, pipe=0)
    assert (shown["action"], shown["pg_queues"], shown["dwrr_weight"]) == ("in_use", [16], 7)
    (port,) = second.read("tm.port.sched_cfg", PORT)
    assert (port["l1_nodes"], port["l1_nodes_count"]) == ([1, 9], 2)
    assert refused(second, "tm.l1_node.sched_cfg", node, "free", pipe=0) == (
        "node 9 of group 1 has queues: move them first"
    )
    assert refused(second, "tm.l1_node.sched_cfg", node, "in_use", pipe=0, dev_port=10) == (
        "node 9 of group 1 is port 9's: free it first"
    )
    assert refused(second, "tm.l1_node.sched_cfg", node, "in_use", pipe=0, dev_port=1) == (
        "dev_port 1: the group's ports are 8, 9, 10, 11, 12, 13, 14, 15"
    )
    queue = {"pg_id": 1, "pg_queue": 16}
    assert refused(second, "tm.queue.sched_cfg", queue, pipe=0, pg_l1_node=2) == (
        "node 2 is not one of port 9: see tm.l1_node.sched_cfg"
    )
    assert second.default("tm.cfg")["ig_buffer_limit_cells"] == 256000


def test_every_table_can_be_read(second: Client, client: Client) -> None:
    for one in (second, client):
        for name, table in one.tables.items():
            if ".tm." not in name:
                continue
            if table["key"]:
                assert one.read(name, pipe=0) or table["table_type"] in ("TmPpgCfg", "TmCounterPpg")
            else:
                assert set(one.default(name)) == {f["singleton"]["name"] for f in table["data"]}
