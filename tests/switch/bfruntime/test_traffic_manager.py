"""The traffic manager's tables: the switch's own queues, in both engines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from bfrt_client import Client
from bfrt_served import PROGRAM, Served

from gradplane.switch.bfruntime.schema import parse_tables
from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.bfruntime.traffic_schema import TRAFFIC_MANAGER
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.runtime.egress_queues import EgressQueues
from gradplane.switch.runtime.links import Links

FRAME = bytes.fromhex("0200000000aa 0200000000bb 1234") + b"data"
QUEUE = {"pg_id": 2, "pg_queue": 8}  # of port 9, the second of its group


@pytest.fixture
def prioritised() -> Iterator[Client]:
    links = Links(queues=EgressQueues(4))
    device = make_device(SwitchOptions(program=PROGRAM, engine="interpreter"), links)
    with BfRuntimeServer(device, "127.0.0.1:0") as server, Client(server.address) as client:
        yield client


def modify(
    client: Client, name: str, key: dict[str, Any], action: str | None = None, **data: Any
) -> None:
    client.write(("MODIFY", client.entry(name, key, action, **data)))


def refused(client: Client, name: str, key: dict[str, Any], **data: Any) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        modify(client, name, key, **data)
    return str(caught.value.details()).removeprefix("1 of 1 updates failed: ")


def test_a_queue_has_the_rate_and_the_depth_that_are_set(served: Served) -> None:
    device, client = served
    client.set_default("macs", "Ingress.send", port=9)
    modify(client, "tm.queue.sched_shaping", QUEUE, unit="PPS", max_rate=1)
    assert device.process(1, FRAME) == [(9, FRAME)]  # not yet enabled
    modify(client, "tm.queue.sched_cfg", QUEUE, max_rate_enable=True)
    modify(client, "tm.queue.buffer", QUEUE, "shared_pool", guaranteed_cells=1, pool_max_cells=2)
    assert [device.process(1, FRAME) for _ in range(5)] == [[]] * 5
    (counts,) = client.read("tm.counter.queue", QUEUE)
    shown = counts["drop_count_packets"], counts["usage_cells"], counts["watermark_cells"]
    assert shown == (2, 3, 3)
    (counts,) = client.read("tm.counter.eg_port", {"dev_port": 9})
    assert counts["drop_count_packets"] == 2
    modify(client, "tm.counter.queue", QUEUE, drop_count_packets=0)
    (counts,) = client.read("tm.counter.queue", QUEUE)
    assert (counts["drop_count_packets"], counts["watermark_cells"]) == (0, 3)
    (buffer,) = client.read("tm.queue.buffer", QUEUE)
    assert (buffer["action"], buffer["guaranteed_cells"], buffer["pool_max_cells"]) == (
        "shared_pool", 1, 2,
    )  # fmt: skip
    status = device.target.state.links.queues.queue(9, 0)
    assert (status.rate, status.depth) == (1, 3)


def test_rates_in_bits_are_those_of_links(interpreted: Served) -> None:
    device, client = interpreted
    queues = device.target.state.links.queues
    modify(client, "tm.port.sched_shaping", {"dev_port": 9}, unit="BPS", max_rate=25_000)
    modify(client, "tm.port.sched_cfg", {"dev_port": 9}, max_rate_enable=True)
    assert queues.bit_rate(9) == 25_000_000
    modify(client, "tm.queue.sched_cfg", QUEUE, max_rate_enable=True)
    modify(client, "tm.queue.sched_shaping", QUEUE, unit="BPS", max_rate=10)
    assert queues.queue(9, 0).bit_rate == 10_000
    (shaping,) = client.read("tm.queue.sched_shaping", QUEUE)
    assert (shaping["unit"], shaping["max_rate"]) == ("BPS", 10)
    client.write(("DELETE", client.entry("tm.queue.sched_shaping", None)))
    client.write(("DELETE", client.entry("tm.port.sched_cfg", None)))
    assert (queues.bit_rate(9), queues.queue(9, 0).bit_rate) == (0, 0)


def test_rates_and_depths_set_elsewhere_are_shown(interpreted: Served) -> None:
    device, client = interpreted
    queues = device.target.state.links.queues
    queues.set_rate(500, 9)
    queues.set_depth(7, 9)
    (shaping,) = client.read("tm.queue.sched_shaping", QUEUE)
    (config,) = client.read("tm.queue.sched_cfg", QUEUE)
    (buffer,) = client.read("tm.queue.buffer", QUEUE)
    assert (shaping["unit"], shaping["max_rate"], config["max_rate_enable"]) == ("PPS", 500, True)
    assert (buffer["guaranteed_cells"], buffer["tail_drop_enable"]) == (7, True)
    modify(client, "tm.queue.buffer", QUEUE, tail_drop_enable=False)
    (buffer,) = client.read("tm.queue.buffer", QUEUE)
    assert buffer["tail_drop_enable"] is False
    assert queues.queue(9, 0).rate == 500
    queues.set_rate(0, 9)
    (shaping,) = client.read("tm.queue.sched_shaping", QUEUE)
    assert shaping["max_rate"] == 0


def test_a_failed_batch_leaves_the_queues_as_they_were(interpreted: Served) -> None:
    device, client = interpreted
    queues = device.target.state.links.queues
    queues.set_rate(500, 9)
    good = client.entry("tm.queue.sched_shaping", QUEUE, max_rate=7)
    bad = client.entry("tm.queue.sched_shaping", {"pg_id": 99, "pg_queue": 0}, max_rate=7)
    with pytest.raises(grpc.RpcError):
        client.write(("MODIFY", good), ("MODIFY", bad), atomicity=1)
    assert queues.queue(9, 0).rate == 500


def test_ports_queues_and_classes_lead_to_each_other(prioritised: Client) -> None:
    (port,) = prioritised.read("tm.port.cfg", {"dev_port": 137})  # port 9 of pipe 1
    assert (port["pg_id"], port["pg_port_nr"], port["port_queues_count"]) == (2, 1, 4)
    assert port["egress_qid_queues"] == [8, 9, 10, 11] * 8
    assert port["ingress_qid_map"] == [0, 1, 2, 3] * 8
    (queue,) = prioritised.read("tm.queue.map", {"pg_id": 2, "pg_queue": 10}, pipe=1)
    assert (queue["dev_port"], queue["queue_nr"], queue["ingress_qid_list"]) == (
        137, 2, [2, 6, 10, 14, 18, 22, 26, 30],
    )  # fmt: skip
    assert len(prioritised.read("tm.queue.map", pipe=1)) == 72 * 4
    assert len(prioritised.read("tm.port.cfg")) == 4 * 72


def test_a_write_for_all_pipes_sets_each(prioritised: Client) -> None:
    key = {"pg_id": 0, "pg_queue": 3}
    modify(prioritised, "tm.queue.sched_shaping", key, unit="PPS", max_rate=9)
    found = [prioritised.read("tm.queue.sched_shaping", key, pipe=p)[0] for p in range(4)]
    assert [entry["max_rate"] for entry in found] == [9] * 4


def test_what_is_not_there_is_refused(interpreted: Served) -> None:
    _, client = interpreted
    shaping = "tf1.tm.queue.sched_shaping"
    assert refused(client, "tm.queue.sched_shaping", {"pg_id": 2, "pg_queue": 9}, max_rate=1) == (
        f"table {shaping}: port 9 of a pipe has queues 0 to 0, and this is queue 1; start the "
        "switch with more (--priority-queues N), or see tm.port.group"
    )
    assert refused(client, "tm.queue.sched_shaping", {"pg_id": 18, "pg_queue": 0}, max_rate=1) == (
        f"table {shaping}: there is no group 18 with a queue 0: a pipe has groups 0 to 17 with "
        "32 queues each"
    )
    assert refused(client, "tm.port.sched_shaping", {"dev_port": 100}, max_rate=1) == (
        "table tf1.tm.port.sched_shaping: the traffic manager has no port 100"
    )
    assert refused(client, "tm.counter.queue", QUEUE, drop_count_packets=1) == (
        "table tf1.tm.counter.queue: counters can only be set to 0"
    )


def test_tofino_2_has_larger_groups() -> None:
    first, second = (
        {t.name.partition(".")[2]: t for t in parse_tables(text)}
        for text in (TRAFFIC_MANAGER["tf1"], TRAFFIC_MANAGER["tf2"])
    )
    assert second.keys() - first.keys() == {"tm.l1_node.sched_cfg", "tm.l1_node.sched_shaping"}
    assert not first.keys() - second.keys()
    assert [t["tm.queue.map"].size for t in (first, second)] == [2304, 4608]
    assert all(first[name].id == second[name].id for name in first)


def test_a_port_has_a_rate_in_packets(served: Served) -> None:
    device, client = served
    client.set_default("macs", "Ingress.send", port=9)
    modify(client, "tm.port.sched_shaping", {"dev_port": 9}, unit="PPS", max_rate=2)
    modify(client, "tm.port.sched_cfg", {"dev_port": 9}, max_rate_enable=True)
    queues = device.target.state.links.queues
    assert (queues.packet_rate(9), queues.bit_rate(9)) == (2, 0)
    (shaping,) = client.read("tm.port.sched_shaping", {"dev_port": 9})
    assert (shaping["unit"], shaping["max_rate"]) == ("PPS", 2)
    for _ in range(3):
        device.process(1, FRAME)
    now = device.target.state.clock()
    gone = []
    while (due := queues.next_departure()) is not None:
        gone.append(due - now)
        (item,) = queues.due(due)
        queues.sent(9, len(FRAME), due)
    assert gone[1] - gone[0] == gone[2] - gone[1] == 500_000_000
    client.write(("DELETE", client.entry("tm.port.sched_cfg", None)))
    assert queues.packet_rate(9) == 0


def test_a_queue_that_is_not_scheduled_keeps_its_packets(served: Served) -> None:
    device, client = served
    queues = device.target.state.links.queues
    client.set_default("macs", "Ingress.send", port=9)
    modify(client, "tm.queue.sched_cfg", QUEUE, scheduling_enable=False)
    assert device.process(1, FRAME) == []
    assert (queues.next_departure(), queues.queue(9, 0).waiting) == (None, 1)
    (config,) = client.read("tm.queue.sched_cfg", QUEUE)
    assert config["scheduling_enable"] is False
    modify(client, "tm.queue.sched_cfg", QUEUE, scheduling_enable=True)
    assert device.process(1, FRAME) == []  # behind the one that waits
    rows, data = device.poll()
    assert (rows[:, 0].tolist(), bytes(data)) == ([9, 9], FRAME * 2)
    assert device.process(1, FRAME) == [(9, FRAME)]
