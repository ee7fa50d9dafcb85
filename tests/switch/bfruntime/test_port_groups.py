"""The table that deals out the queues of a group of ports; packets follow its maps, in both
engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from bfrt_client import Client
from bfrt_served import PROGRAM, Served

from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.runtime.egress_queues import EgressQueues
from gradplane.switch.runtime.links import Links

GROUP = {"pg_id": 2}  # ports 8 to 11 of a pipe


def frame(qid: int) -> bytes:
    return bytes.fromhex("0200000000aa 02000000") + bytes([0, qid]) + b"\x12\x34data"


@pytest.fixture(params=["interpreter", "jit"])
def queued(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """A switch with four queues a port; the last byte of a packet's source is its qid."""
    sends = "tm.ucast_egress_port = port; hits"
    text = PROGRAM.read_text()
    assert sends in text
    chosen = "tm.ucast_egress_port = port; tm.qid = h.ethernet.src[4:0]; hits"
    program = tmp_path / "queued.p4"
    program.write_text(text.replace(sends, chosen))
    links = Links(queues=EgressQueues(4))
    device = make_device(SwitchOptions(program=program, engine=request.param), links)
    with BfRuntimeServer(device, "127.0.0.1:0") as server, Client(server.address) as client:
        client.set_default("macs", "Ingress.send", port=9)
        yield device, client


def change(client: Client, action: str, pipe: int = 0xFFFF, **data: Any) -> None:
    entry = client.entry("tm.port.group", GROUP, action, **data)
    client.write(("MODIFY", entry), target={"pipe_id": pipe})


def refused(client: Client, action: str, **data: Any) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        change(client, action, **data)
    prefix = "1 of 1 updates failed: table tf1.tm.port.group: "
    return str(caught.value.details()).removeprefix(prefix)


def queues_of(device: Any, qids: list[int]) -> list[int | None]:
    """Return the queue that a packet of each qid waits in, None for one that is dropped."""
    queues = device.target.state.links.queues
    queues.set_rate(1, 9)
    found: list[int | None] = []
    for qid in qids:
        before = [q.most for q in (queues.queue(9, i) for i in range(4))]
        device.process(1, frame(qid))
        after = [queues.queue(9, i).most for i in range(4)]
        found.append(next((i for i in range(4) if after[i] > before[i]), None))
    return found


def test_packets_wait_in_the_queue_that_the_map_names(queued: Served) -> None:
    device, client = queued
    change(client, "map", port_queue_count=[4, 2, 4, 4], ingress_qid_map_1=[1, 0] * 16)
    assert queues_of(device, [0, 1, 2, 31]) == [1, 0, 1, 0]
    assert queues_of(device, [5]) == [0]


def test_qids_go_round_the_queues_until_a_map_is_set(queued: Served) -> None:
    device, client = queued
    assert queues_of(device, [3, 6]) == [3, 2]
    change(client, "even")
    assert queues_of(device, [6, 31]) == [0, 3]
    client.write(("DELETE", client.entry("tm.port.group", None)))
    assert queues_of(device, [5]) == [1]


def test_the_actions_fill_the_maps(queued: Served) -> None:
    _, client = queued
    change(client, "even", port_queue_count=[4, 2, 1, 0])
    (shown,) = client.read("tm.port.group", GROUP)
    assert (shown["action"], shown["pg_dev_ports"]) == ("map", [8, 9, 10, 11])
    assert shown["port_queue_count"] == [4, 2, 1, 0]
    assert shown["ingress_qid_map_0"] == [q for q in range(4) for _ in range(8)]
    assert shown["egress_qid_queues_1"] == [4] * 16 + [5] * 16
    assert (shown["ingress_qid_map_2"], shown["egress_qid_queues_3"]) == ([0] * 32, [])
    change(client, "seq", port_queue_count=[4, 4, 4, 4])
    change(client, "crop", port_queue_count=[4, 3, 4, 4])
    (shown,) = client.read("tm.port.group", GROUP)
    assert shown["ingress_qid_map_0"] == [0, 1, 2, 3] * 8
    assert shown["ingress_qid_map_1"] == [0, 1, 2, 0] * 8


def test_the_queues_keys_follow(queued: Served) -> None:
    device, client = queued
    change(client, "seq", pipe=0, port_queue_count=[1, 4, 4, 4])
    (queue,) = client.read("tm.queue.map", {"pg_id": 2, "pg_queue": 2}, pipe=0)
    assert (queue["dev_port"], queue["queue_nr"]) == (9, 1)
    (queue,) = client.read("tm.queue.map", {"pg_id": 2, "pg_queue": 9}, pipe=1)
    assert (queue["dev_port"], queue["queue_nr"]) == (137, 1)
    entry = client.entry("tm.queue.sched_shaping", {"pg_id": 2, "pg_queue": 2}, max_rate=7)
    client.write(("MODIFY", entry), target={"pipe_id": 0})
    enabled = client.entry("tm.queue.sched_cfg", {"pg_id": 2, "pg_queue": 2}, max_rate_enable=True)
    client.write(("MODIFY", enabled), target={"pipe_id": 0})
    assert device.target.state.links.queues.queue(9, 1).bit_rate == 7000
    assert len(client.read("tm.queue.map", pipe=0)) == 72 * 4 - 3


def test_wrong_deals_are_refused(queued: Served) -> None:
    _, client = queued
    assert (
        refused(client, "map", port_queue_count=[4, 4, 4]) == "port_queue_count has 3 items, not 4"
    )
    assert refused(client, "seq", port_queue_count=[8, 8, 8, 8]) == (
        "8 queues of a port: here a port has 4; start the switch with more (--priority-queues N, "
        "at most 8)"
    )
    assert refused(client, "seq", port_queue_count=[30, 1, 1, 1]) == "33 queues: a group has 32"
    assert refused(client, "map") == "map needs an ingress_qid_map at least"
    assert refused(client, "crop") == "crop needs port_queue_count"
    assert refused(client, "map", ingress_qid_map_0=[0]) == (
        "ingress_qid_map_0 has 1 items, not 32"
    )
    assert refused(client, "map", ingress_qid_map_0=[4] * 32) == (
        "ingress_qid_map_0: queue 4 of a port with 4"
    )
    assert refused(client, "map", port_queue_count=[1, 4, 4, 4], ingress_qid_map_1=[0] * 32) == (
        "port 0 of the group has other queues, but no new map"
    )
    with pytest.raises(grpc.RpcError, match="there is no group 18: a pipe has 18"):
        client.read("tm.port.group", {"pg_id": 18})
    with pytest.raises(grpc.RpcError, match="an action is missing: map, seq, even, crop"):
        client.write(("MODIFY", client.entry("tm.port.group", GROUP)))


def test_what_was_dealt_outlasts_the_program(queued: Served) -> None:
    device, client = queued
    change(client, "map", port_queue_count=[4, 2, 4, 4], ingress_qid_map_1=[1, 0] * 16)
    (before,) = client.read("tm.port.group", GROUP)
    entry = client.entry("dev.warm_init", None, "begin")
    entry.is_default_entry = True
    program = entry.data.fields.add(field_id=4).container_arr_val.container.add()
    program.val.add(field_id=5, str_val="queued")
    client.write(("MODIFY", entry))
    entry = client.entry("dev.warm_init", None, "completed")
    entry.is_default_entry = True
    client.write(("MODIFY", entry))
    assert client.read("tm.port.group", GROUP) == [before]
    client.set_default("macs", "Ingress.send", port=9)
    assert queues_of(device, [0]) == [1]
