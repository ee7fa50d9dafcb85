"""Snapshots of packets in the stages, and debug counters of tables, in both engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from bfrt_client import Client
from bfrt_served import Served

from gradplane import _bfruntime as bf
from gradplane.fit.analysis import chip_for, fit
from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.bfruntime.snapshots import Capture, Snapshot, snapshot_fields, values_of
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Field, Struct, make_array

PROGRAM = Path(__file__).parent / "stages.p4"
RANGE = {"start_stage": 0, "end_stage": 2}


@pytest.fixture(params=["interpreter", "jit"])
def staged(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A program of three tables in ingress and one in egress, with two entries."""
    device = make_device(SwitchOptions(program=PROGRAM, engine=request.param))
    place = lambda program: fit(program, chip_for(program)).stages_of_tables()  # noqa: E731
    with (
        BfRuntimeServer(device, "127.0.0.1:0", place=place) as server,
        Client(server.address) as client,
    ):
        client.add("first", {"hdr.ethernet.dst": 0xAA}, "Ingress.classify", **{"class": 3})
        client.add("second", {"md.class": 3}, "Ingress.send", port=5)
        yield device, client


def frame(dst: int) -> bytes:
    return dst.to_bytes(6, "big") + bytes(6) + b"\x08\x00data"


def arm(client: Client, thread: str = "INGRESS", **trigger: Any) -> None:
    client.add("snapshot.cfg", RANGE, thread=thread)
    enable(client, thread, **trigger)


def enable(client: Client, thread: str = "INGRESS", **trigger: Any) -> None:
    name = f"snapshot.{thread.lower()}_trigger"
    client.write(("INSERT", client.entry(name, {"stage": 0}, enable=True, **trigger)))


def captured(client: Client, stage: int, gress: str = "ingress", pipe: int = 0) -> dict[str, Any]:
    """Read what a stage captured, containers as lists of dicts."""
    name = f"snapshot.{gress}_data"
    entity = bf.Entity(table_entry=client.entry(name, {"stage": stage}))
    found = next(client.read_entities(entity, pipe=pipe)).table_entry
    known = {f["singleton"]["id"]: f["singleton"] for f in client.table(name)["data"]}
    out: dict[str, Any] = {}
    for f in found.data.fields:
        about = known[f.field_id]
        if "container" not in about:
            value = getattr(f, f.WhichOneof("value"))
            out[about["name"]] = int.from_bytes(value, "big") if isinstance(value, bytes) else value
            continue
        inner = {i["singleton"]["id"]: i["singleton"]["name"] for i in about["container"]}
        out[about["name"]] = [
            {inner[v.field_id]: getattr(v, v.WhichOneof("value")) for v in item.val}
            for item in f.container_arr_val.container
        ]
    return out


def states(client: Client, pipe: int = 0xFFFF) -> list[str]:
    (shown,) = client.read("snapshot.ingress_trigger", {"stage": 0}, pipe)
    return list(shown["trigger_state"])


def test_the_first_packet_with_the_triggers_values_is_captured(staged: Served) -> None:
    device, client = staged
    arm(client, **{"trig.hdr.ethernet.dst": 0xAA, "trig.hdr.ethernet.dst_mask": (1 << 48) - 1})
    assert states(client) == ["ARMED"] * 4
    assert device.process(1, frame(0xBB)) == []
    assert states(client, pipe=0) == ["ARMED"]
    (sent,) = device.process(1, frame(0xAA))
    assert states(client) == ["FULL", "ARMED", "ARMED", "ARMED"]
    first, second, third = (captured(client, stage) for stage in range(3))
    assert (first["local_stage_trigger"], first["prev_stage_trigger"]) == (True, False)
    assert (second["local_stage_trigger"], second["prev_stage_trigger"]) == (False, True)
    assert [s["md.class"] for s in (first, second, third)] == [0, 3, 3]
    assert [s["tm.ucast_egress_port"] for s in (first, second, third)] == [0, 0, 5]
    assert first["hdr.ethernet.$valid"] == 1 and first["hdr.vlan$0.$valid"] == 0
    assert "hdr.vlan$0.tag" not in first
    assert first["next_table_name"] == "pipe.Ingress.second"
    (table,) = second["table_info"]
    handle = bf.Entity()
    handle.handle.table_id = client.table("second")["id"]
    handle.handle.key.CopyFrom(client.entry("second", {"md.class": 3}).key)
    (known,) = client.read_entities(handle)
    assert int.from_bytes(table.pop("match_hit_handle"), "big") == known.handle.handle_id
    assert table == {"table_name": "pipe.Ingress.second", "table_hit": True,
                     "table_inhibited": False, "table_executed": True}  # fmt: skip
    (table,) = third["table_info"]
    assert (table["table_name"], table["table_executed"]) == ("pipe.Ingress.third", False)
    assert third["next_table_name"] == "NO_NEXT_TABLE"
    (shown,) = client.read("snapshot.cfg", RANGE)
    assert (shown["thread"], shown["ingress_capture"]) == ("INGRESS", [0])
    assert device.process(1, frame(0xAA)) == [sent]
    assert captured(client, 0)["hdr.ethernet.src"] == 0


def test_a_snapshot_of_egress_and_one_that_is_armed_again(staged: Served) -> None:
    device, client = staged
    arm(client, "EGRESS", **{"trig.eg_intr_md.egress_port": 5})
    assert len(device.process(1, frame(0xAA))) == 1
    assert captured(client, 0, "egress")["hdr.ethernet.dst"] == 0xAA
    enable(client, "EGRESS")
    assert "hdr.ethernet.dst" not in captured(client, 0, "egress")


def test_batches_are_captured_too(staged: Served) -> None:
    device, client = staged
    arm(client, **{"trig.hdr.ethernet.dst": 0xAA})
    switch: Any = device.target.switch
    out = switch.process_batch([1, 1, 129], [frame(0xBB), frame(0xAA), frame(0xAA)])
    assert [(cause, port) for cause, port, _ in out] == [(1, 5), (2, 5)]
    assert states(client) == ["FULL", "FULL", "ARMED", "ARMED"]


def test_packets_are_followed_only_while_that_is_needed(staged: Served) -> None:
    device, client = staged
    one = {"pipe_id": 0}
    client.write(("INSERT", client.entry("snapshot.cfg", RANGE, thread="INGRESS")), target=one)
    entry = client.entry("snapshot.ingress_trigger", {"stage": 0}, enable=True)
    assert device.target.state.probe is None
    client.write(("INSERT", entry), target=one)
    assert device.target.state.probe is not None
    device.process(129, frame(0xAA))
    assert states(client, pipe=0) == ["ARMED"]
    device.process(1, frame(0xAA))
    assert device.target.state.probe is None


def test_a_timer_captures_without_a_packet() -> None:
    snapshot = Snapshot("ingress", range(2), True, 0, 1,
                        {"timer_enable": True, "timer_value_usecs": 5})  # fmt: skip
    snapshot.enable(True, now=1000)
    snapshot.captures[1] = packet = Capture({}, (), {})
    snapshot.expire(5999)
    assert snapshot.state(0) == "ARMED"
    snapshot.expire(6000)
    assert snapshot.captures == {0: Capture(None), 1: packet}


def test_where_a_field_can_be_used(staged: Served) -> None:
    _, client = staged
    (shown,) = client.read("snapshot.ingress_liveness", {"field_name": "hdr.ethernet.dst"})
    assert shown["valid_stages"] == list(range(12))


def refused(client: Client, kind: str, entry: Any, **fields: Any) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        client.write((kind, entry), **fields)
    return str(caught.value.details()).removeprefix("1 of 1 updates failed: ")


def test_refusals(staged: Served) -> None:
    _, client = staged
    entry = client.entry("snapshot.ingress_trigger", {"stage": 0}, enable=True)
    assert refused(client, "INSERT", entry) == (
        "table pipe.snapshot.ingress_trigger: no ingress snapshot of all pipes begins at stage 0:"
        " add one to pipe.snapshot.cfg"
    )
    arm(client)
    entry = client.entry("snapshot.cfg", {"start_stage": 2}, thread="EGRESS")
    assert refused(client, "INSERT", entry, target={"pipe_id": 1}) == (
        "table pipe.snapshot.cfg: stages 0 to 2 have a snapshot, of ingress: delete it"
    )
    entry = client.entry("snapshot.cfg", {"start_stage": 3, "end_stage": 12}, thread="ALL")
    assert refused(client, "INSERT", entry) == (
        "table pipe.snapshot.cfg: stages 3 to 12 are not a range within 0 to 11"
    )
    with pytest.raises(grpc.RpcError, match="a capture is one pipe's: name it in the target"):
        captured(client, 0, pipe=0xFFFF)
    entry = client.entry("tbl_dbg_counter", {"tbl_name": "first"}, type="GW_TBL_HIT")
    assert refused(client, "MODIFY", entry) == (
        "table tbl_dbg_counter (TblDbgCnt): GW_TBL_HIT: conditions are not counted; use TBL_HIT,"
        " TBL_MISS, DISABLED"
    )


def test_debug_counters_count_hits_or_misses(staged: Served) -> None:
    device, client = staged

    def counted() -> int:
        (shown,) = client.read("tbl_dbg_counter", {"tbl_name": "pipe.Ingress.first"})
        return int(shown["value"])

    for kind, expected in (("TBL_HIT", 2), ("TBL_MISS", 1), ("DISABLED", 0)):
        entry = client.entry("tbl_dbg_counter", {"tbl_name": "pipe.Ingress.first"}, type=kind)
        client.write(("MODIFY", entry))
        for dst in (0xAA, 0xAA, 0xBB):
            device.process(1, frame(dst))
        assert counted() == expected


def test_captures_are_counted_over_all_pipes(staged: Served) -> None:
    _, client = staged
    query = bf.Entity()
    query.table_usage.table_id = client.table("snapshot.ingress_data")["id"]
    arm(client)
    (found,) = client.read_entities(query)
    (first,) = client.read_entities(query, pipe=0)
    assert (found.table_usage.usage, first.table_usage.usage) == (12, 3)


def test_debug_counters_by_stage(staged: Served) -> None:
    device, client = staged
    spot = {"stage": 1, "log_tbl": 0}  # of the second table, which depends on the first
    client.write(("MODIFY", client.entry("log_tbl_counter", spot, type="TBL_HIT")))
    (named,) = client.read("tbl_dbg_counter", {"tbl_name": "pipe.Ingress.second"})
    assert named["type"] == "TBL_HIT"
    device.process(1, frame(0xAA))
    (shown,) = client.read("log_tbl_counter", spot)
    assert (shown["type"], shown["value"]) == ("TBL_HIT", 1)
    client.write(("DELETE", client.entry("log_tbl_counter", None)))
    (shown,) = client.read("log_tbl_counter", spot)
    assert (shown["type"], shown["value"]) == ("TBL_HIT", 0)
    assert len(client.read("log_tbl_counter")) == 12 * 16
    entry = client.entry("log_tbl_counter", {"stage": 1, "log_tbl": 15}, type="TBL_HIT")
    assert refused(client, "MODIFY", entry) == (
        "table tf1.log_tbl_counter: no table is there: see pipe.snapshot.ingress_data"
    )
    entry = client.entry("log_tbl_counter", {"stage": 12}, type="TBL_HIT")
    assert refused(client, "MODIFY", entry) == (
        "table tf1.log_tbl_counter: stages are 0 to 11, with tables 0 to 15"
    )


def test_containers_are_refused_with_the_way_out(staged: Served) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        staged[1].read("snapshot.phv", {"stage": 0})
    assert caught.value.details() == (
        "table tf1.snapshot.phv (SnapshotPhv): fields are in no containers here: "
        "pipe.snapshot.ingress_data and .egress_data have them by name"
    )


def test_elements_of_an_array_are_fields() -> None:
    array, pairs = make_array(Bits(8), 2), make_array(Struct("p", (Field("q", Bits(4)),)), 1)
    struct = Struct("m_t", (Field("a", array), Field("s", pairs)))
    control = ir.Control("C", [ir.Param("md", "inout", ir.Var(struct, "md", 0))], [], [])
    facts = SimpleNamespace(name="pipe", controls={"ingress": control})
    fields = snapshot_fields([facts])["pipe", "ingress"]  # type: ignore[list-item]
    values = values_of(fields, [[[7, 8], [[3]]]])
    assert values == {"md.a$0": 7, "md.a$1": 8, "md.s$0.q": 3}
