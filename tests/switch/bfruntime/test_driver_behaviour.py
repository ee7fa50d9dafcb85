"""Answers of the chip's driver that one would not guess. Each test names its place in the driver's
sources, p4lang/open-p4studio, pkgsrc/bf-drivers/src, at commit 1f97778f."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from bfrt_client import Client, errors_of, failing, mac
from bfrt_served import Served

from gradplane import _bfruntime as bf

OK, NOT_FOUND, ALREADY_EXISTS = (
    getattr(grpc.StatusCode, name).value[0] for name in ("OK", "NOT_FOUND", "ALREADY_EXISTS")
)
IN_RESPONSE = ("error_in_resp", "1")


def statuses(response: Any) -> list[tuple[int, int]]:
    return [(status.canonical_code, status.code) for status in response.status]


def ask(client: Client, *entries: Any, metadata: Any = None) -> list[Any]:
    """Send one Read with several table entries."""
    entities = [bf.Entity(table_entry=entry) for entry in entries]
    return list(client.rpc("Read", metadata, client_id=client.id, target={"pipe_id": 0xFFFF},
                           entities=entities))  # fmt: skip


# -- statuses: bf_rt/proto/bf_rt_server_impl.cpp, Write and Read ----------------------------------


def test_a_read_of_several_keys_answers_those_that_are_there(interpreted: Served) -> None:
    _, client = interpreted
    for dst in (1, 3):
        client.write(("INSERT", mac(client, dst, port=dst)))
    keys = [client.entry("macs", {"h.ethernet.dst": dst}) for dst in (1, 2, 3, 4)]
    (response,) = ask(client, *keys, metadata=[IN_RESPONSE])
    shown = [client.shown("macs", entity.table_entry)["port"] for entity in response.entities]
    assert shown == [1, 3]
    wanted = [(OK, OK), (NOT_FOUND, NOT_FOUND)] * 2
    assert statuses(response) == wanted
    with pytest.raises(grpc.RpcError, match="2 of 4 entities failed: .* no entry for") as caught:
        ask(client, *keys)
    assert [code for code, _ in errors_of(caught.value)] == ["OK", "NOT_FOUND"] * 2


def test_an_entry_that_was_modified_existed(interpreted: Served) -> None:
    _, client = interpreted
    updates = [("INSERT_OR_MODIFY", mac(client, 1, port)) for port in (5, 6)]
    response = client.write(*updates, metadata=[IN_RESPONSE])
    assert statuses(response) == [(OK, OK), (OK, ALREADY_EXISTS)]
    assert statuses(client.write(updates[0])) == [(OK, ALREADY_EXISTS)]
    assert client.read("macs")[0]["port"] == 5


def test_ignored_entries_that_are_missing_are_told(interpreted: Served) -> None:
    _, client = interpreted
    metadata = [IN_RESPONSE, ("ignore_not_found", "1")]
    for atomicity in (bf.WriteRequest.CONTINUE_ON_ERROR, bf.WriteRequest.ROLLBACK_ON_ERROR):
        client.write(("INSERT", mac(client, 1)))
        gone = [("DELETE", mac(client, dst)) for dst in (9, 1)]
        response = client.write(*gone, metadata=metadata, atomicity=atomicity)
        assert statuses(response) == [(OK, NOT_FOUND), (OK, OK)]
        assert client.read("macs") == []


def test_a_request_that_is_taken_back_ends_with_its_error(interpreted: Served) -> None:
    _, client = interpreted
    client.write(("INSERT", mac(client, 2)))
    updates = [("INSERT", mac(client, dst)) for dst in (1, 2, 3)]
    rollback = {"atomicity": bf.WriteRequest.ROLLBACK_ON_ERROR}
    error = failing(client, *updates, **rollback)
    assert [code for code, _ in errors_of(error)] == ["OK", "ALREADY_EXISTS"]
    response = client.write(*updates, metadata=[IN_RESPONSE], **rollback)
    assert statuses(response) == [(OK, OK), (ALREADY_EXISTS, ALREADY_EXISTS)]
    assert [entry["h.ethernet.dst"] for entry in client.read("macs")] == [2]


@pytest.mark.parametrize("broken", [False, True])
def test_a_client_whose_stream_ended_is_gone(
    interpreted: Served, make_client: Callable[..., Client], broken: bool
) -> None:
    device, client = interpreted
    if broken:
        client.channel.close()
    else:
        client._requests.put(None)  # as the driver's client ends its stream
        assert list(client.stream) == []
    for _ in range(500):
        with make_client(id=1, bind=False, learn=True) as other:
            if not other.status.code:
                other.bind("program")
                other.set_default("macs", "Ingress.send", port=1)
                device.process(1, bytes(14))
                assert other.next_message("digest").data
                return
        time.sleep(0.02)
    raise AssertionError("the client that ended its stream keeps its id")


# -- handles --------------------------------------------------------------------------------------


def handle(client: Client, table: str, key: dict[str, Any]) -> int:
    asked = bf.Entity()
    asked.handle.table_id = client.table(table)["id"]
    asked.handle.key.CopyFrom(client.entry(table, key).key)
    (found,) = client.read_entities(asked)
    return int(found.handle.handle_id)


def by_handle(client: Client, table: str, number: int) -> dict[str, Any]:
    entry = bf.TableEntry(table_id=client.table(table)["id"], handle_id=number)
    (found,) = client.read_entities(bf.Entity(table_entry=entry))
    return client.shown(table, found.table_entry)


def test_the_handle_of_a_cell_is_its_index(interpreted: Served) -> None:
    """bf_rt_p4/bf_rt_p4_table_impl.cpp: tableEntryHandleGet of counters, meters and registers;
    pipe_mgr/pipe_mgr_phase0_tbl_mgr.c: that of a port is one more than its number."""
    _, client = interpreted
    client.add("totals", {"$REGISTER_INDEX": 0}, f1=7)
    assert handle(client, "totals", {"$REGISTER_INDEX": 0}) == 0
    assert by_handle(client, "totals", 0)["Ingress.totals.f1"] == [7, 7, 7, 7]
    client.add("per_port", {"$COUNTER_INDEX": 0}, COUNTER_SPEC_PKTS=5)
    assert by_handle(client, "per_port", 0)["$COUNTER_SPEC_PKTS"] == 5
    for table, key in (("police", "$METER_INDEX"), ("average", "$LPF_INDEX"),
                       ("early", "$WRED_INDEX")):  # fmt: skip
        assert by_handle(client, table, 3)[key] == handle(client, table, {key: 3}) == 3
    client.add("$PORT_METADATA", {"ig_intr_md.ingress_port": 0}, group=3, label=4, vlan=5)
    assert handle(client, "$PORT_METADATA", {"ig_intr_md.ingress_port": 0}) == 1
    assert by_handle(client, "$PORT_METADATA", 1)["vlan"] == 5
    with pytest.raises(grpc.RpcError, match="INDEX 16 is not within 0 to 15"):
        by_handle(client, "totals", 16)


def test_the_handle_of_a_tables_first_entry_is_2(interpreted: Served) -> None:
    """pipe_mgr/pipe_mgr_exm_tbl_mgr.h: 1 is that of the default entry."""
    _, client = interpreted
    client.write(("INSERT", mac(client, 1, port=9)))
    assert handle(client, "macs", {"h.ethernet.dst": 1}) == 2
    assert by_handle(client, "macs", 2)["port"] == 9
    with pytest.raises(grpc.RpcError) as caught:
        by_handle(client, "macs", 0)
    [(code, text)] = errors_of(caught.value)
    assert (code, text.split(": ", 1)[1]) == (
        "NOT_FOUND", "it has no entry with handle 0; handles: 2"
    )  # fmt: skip


# -- what was seen last: bf_rt_p4_table_impl.cpp; pipe_mgr/pipe_mgr_stful_tbl_mgr.c ----------------


def seen(client: Client, table: str, key: dict[str, Any]) -> dict[str, Any]:
    """Read an entry, or the default one, without asking the chip."""
    entry = client.entry(table, key or None)
    entry.is_default_entry = not key
    (found,) = client.read_entities(bf.Entity(table_entry=entry))
    return client.shown(table, found.table_entry)


def operate(client: Client, table: str, name: str) -> None:
    entity = bf.Entity()
    entity.table_operation.table_id = client.table(table)["id"]
    entity.table_operation.table_operations_type = name
    client.write(("INSERT", entity))


@pytest.mark.parametrize(
    ("table", "key", "field", "operation", "counted"),
    [
        ("per_port", {"$COUNTER_INDEX": 1}, "$COUNTER_SPEC_PKTS", "Sync", [0, 2, 7]),
        ("totals", {"$REGISTER_INDEX": 5}, "Ingress.totals.f1", "Sync",
         [[0] * 4, [2, 0, 0, 0], [7] * 4]),
        ("macs", {"h.ethernet.dst": 0}, "$COUNTER_SPEC_PKTS", "SyncCounters", [0, 2, 7]),
    ],
)  # fmt: skip
def test_cells_are_read_as_they_were_seen_last(
    served: Served, table: str, key: dict[str, Any], field: str, operation: str, counted: list[Any]
) -> None:
    device, client = served
    client.write(("INSERT", mac(client, 0)))
    none, two, written = counted

    def send() -> None:
        for _ in range(2):
            device.process(1, bytes(14))

    send()
    assert seen(client, table, key)[field] == none
    operate(client, table, operation)
    assert seen(client, table, key)[field] == two
    send()
    assert seen(client, table, key)[field] == two
    asked = client.read(table, key)[0][field]  # which asks the chip
    assert asked != two and seen(client, table, key)[field] == asked
    value = 7 if field.startswith("$") else [7]
    written_entry = client.entry(
        table, key, **{field.strip("$").replace("Ingress.totals.", ""): value}
    )
    missing = ("DELETE", mac(client, 99))
    failing(client, ("MODIFY", written_entry), missing, atomicity=bf.WriteRequest.ROLLBACK_ON_ERROR)
    assert seen(client, table, key)[field] == asked
    client.write(("MODIFY", written_entry))
    send()
    assert seen(client, table, key)[field] == written


def test_a_register_has_a_scope(interpreted: Served) -> None:
    """bf_rt_p4_table_impl.cpp: BfRtRegisterTable::tableAttributesSet."""
    _, client = interpreted

    def scope(**mode: int) -> None:
        entity = client.attribute("totals", "entry_scope")
        for name, value in mode.items():
            setattr(entity.table_attribute.entry_scope.pipe_scope, name, value)
        client.write(("MODIFY", entity))

    def shown() -> Any:
        (found,) = client.read_entities(client.attribute("totals", "entry_scope"))
        return found.table_attribute.entry_scope.pipe_scope

    def write(pipe: int, value: int) -> Any:
        entry = client.entry("totals", {"$REGISTER_INDEX": 1}, f1=[value])
        client.write(("INSERT", entry), target={"pipe_id": pipe})
        return client.read("totals", {"$REGISTER_INDEX": 1})[0]["Ingress.totals.f1"]

    assert shown().predef == 0
    scope(predef=1)
    assert (shown().predef, write(2, 7)) == (1, [0, 0, 7, 0])
    assert client.read("totals", {"$REGISTER_INDEX": 1}, pipe=2)[0]["Ingress.totals.f1"] == [7]
    scope(user_defined=0x0A05)
    assert (shown().user_defined, write(3, 8)) == (0x0A05, [0, 8, 7, 8])
    with pytest.raises(grpc.RpcError, match="each of the pipes 0, 1, 2, 3 must be in one scope"):
        scope(user_defined=0x0101)
    assert shown().user_defined == 0x0A05


def test_no_table_has_the_attribute_of_dynamic_hashing(interpreted: Served) -> None:
    """bf_rt_p4_table_impl.cpp: tableAttributesSet refuses it for every kind of table."""
    _, client = interpreted
    for table in ("macs", "balanced", "Ingress.groups"):
        tried = client.attribute(table, "dyn_hashing")
        ((code, text),) = errors_of(failing(client, ("MODIFY", tried)))
        assert code == "UNIMPLEMENTED"
        assert "it has no attribute DynamicHashing; attributes: " in text


# -- the replication engine: mc_mgr/mc_mgr_intf.c, bf_mc_node_destroy, bf_mc_ecmp_destroy ---------


def test_nodes_and_ecmp_groups_in_use_are_deleted(interpreted: Served) -> None:
    device, client = interpreted
    node, ecmp, group = "$MULTICAST_NODE_ID", "$MULTICAST_ECMP_ID", "$MGID"
    for number, port in ((1, 11), (2, 12), (3, 13)):
        client.add("$pre.node", {node: number}, MULTICAST_RID=0, MULTICAST_LAG_ID=[],
                   DEV_PORT=[port])  # fmt: skip
    client.add("$pre.ecmp", {ecmp: 5}, MULTICAST_NODE_ID=[2, 3])
    flags = {f"MULTICAST_{kind}_L1_XID{end}": [False if end else 0] * count
             for kind, count in (("NODE", 1), ("ECMP", 1)) for end in ("_VALID", "")}  # fmt: skip
    client.add("$pre.mgid", {group: 7}, MULTICAST_NODE_ID=[1], MULTICAST_ECMP_ID=[5], **flags)
    client.set_default("macs", "Ingress.flood", group=7)
    frame = bytes(14)
    assert [port for port, _ in device.process(1, frame)] == [11, 12]
    client.write(("DELETE", client.entry("$pre.node", {node: 2})))
    assert client.read("$pre.ecmp")[0][node] == [3]
    assert [port for port, _ in device.process(1, frame)] == [11, 13]
    client.write(("DELETE", client.entry("$pre.ecmp", {ecmp: 5})))
    (found,) = client.read("$pre.mgid")
    assert (found[node], found[ecmp]) == ([1], [])
    gone = ("DELETE", client.entry("$pre.node", {node: 1}))
    failing(client, gone, gone, atomicity=bf.WriteRequest.ROLLBACK_ON_ERROR)
    assert [port for port, _ in device.process(1, frame)] == [11]  # back in its group
    client.write(gone)
    assert client.read("$pre.mgid")[0][node] == []
    assert device.process(1, frame) == []


def test_an_ecmp_group_without_nodes_can_be_in_a_group(interpreted: Served) -> None:
    _, client = interpreted
    client.write(("INSERT", client.entry("$pre.ecmp", {"$MULTICAST_ECMP_ID": 5})))
    client.add("$pre.mgid", {"$MGID": 7}, MULTICAST_ECMP_ID=[5],
               MULTICAST_ECMP_L1_XID_VALID=[False], MULTICAST_ECMP_L1_XID=[0])  # fmt: skip
    (found,) = client.read("$pre.mgid")
    assert (found["$MULTICAST_NODE_ID"], found["$MULTICAST_ECMP_ID"]) == ([], [5])
    assert client.read("$pre.ecmp")[0]["$MULTICAST_NODE_ID"] == []


# -- selectors: pipe_mgr/pipe_mgr_select_tbl.c, bf_rt_p4_table_impl.cpp ---------------------------


def test_a_group_that_entries_use_has_an_active_member(interpreted: Served) -> None:
    _, client = interpreted
    key, entry = {"$SELECTOR_GROUP_ID": 1}, {"type": 5}
    client.add("members", {"$ACTION_MEMBER_ID": 1}, "Ingress.to", port=11)
    client.add("Ingress.groups", key, ACTION_MEMBER_ID=[], ACTION_MEMBER_STATUS=[])
    empty = "group 1 has no members, so no entry can refer to it"
    for kind, where in (("INSERT", entry), ("MODIFY", None)):
        tried = client.entry("balanced", where, SELECTOR_GROUP_ID=1)
        tried.is_default_entry = where is None
        ((code, text),) = errors_of(failing(client, (kind, tried)))
        assert (code, text) == ("NOT_FOUND", f"table pipe.Ingress.balanced: {empty}")
    whole = client.entry("Ingress.groups", key, ACTION_MEMBER_ID=[1], ACTION_MEMBER_STATUS=[True])
    client.write(("MODIFY", whole))
    client.add("balanced", entry, SELECTOR_GROUP_ID=1)
    for members, active in (([], []), ([1], [False])):
        tried = client.entry("Ingress.groups", key, ACTION_MEMBER_ID=members,
                             ACTION_MEMBER_STATUS=active)  # fmt: skip
        ((code, text),) = errors_of(failing(client, ("MODIFY", tried)))
        assert code == "INVALID_ARGUMENT"
        used = "group 1 is used by table Ingress.balanced, entry type 0x5"
        assert text.endswith(f"{used}, so it needs an active member")
    client.write(("DELETE", client.entry("balanced", entry)))
    client.write(("MODIFY", tried))


# -- idle time: pipe_mgr/pipe_mgr_idle.c, bf_rt_p4_table_impl.cpp ---------------------------------


def idle(client: Client, **values: Any) -> Any:
    return client.attribute("macs", "idle_table", **values)


def test_the_mode_to_poll_has_no_interval(interpreted: Served) -> None:
    _, client = interpreted
    client.write(("MODIFY", idle(client, enable=True, idle_table_mode=0, ttl_query_interval=70,
                                 max_ttl=700)))  # fmt: skip
    (found,) = client.read_entities(idle(client))
    shown = found.table_attribute.idle_table
    assert (shown.enable, shown.idle_table_mode) == (True, 0)
    assert (shown.ttl_query_interval, shown.max_ttl, shown.min_ttl) == (0, 0, 0)


def test_a_life_is_an_interval_at_least(interpreted: Served) -> None:
    _, client = interpreted
    client.write(("MODIFY", idle(client, enable=True, idle_table_mode=1, ttl_query_interval=100,
                                 min_ttl=1000, max_ttl=2000)))  # fmt: skip
    for dst, ttl in enumerate((0, 100, 999, 5000)):
        client.write(("INSERT", mac(client, dst, ENTRY_TTL=ttl)))
    ((code, text),) = errors_of(failing(client, ("INSERT", mac(client, 9, ENTRY_TTL=99))))
    assert (code, text.partition("$")[2]) == (
        "INVALID_ARGUMENT", "ENTRY_TTL 99 ms is shorter than the query interval, 100 ms"
    )  # fmt: skip


def test_numbers_that_no_enum_has(interpreted: Served) -> None:
    """bf_rt_server_impl.cpp: idle modes and scopes are refused, an atomicity is the default."""
    _, client = interpreted
    wrong = idle(client, enable=True, idle_table_mode=7)
    ((code, text),) = errors_of(failing(client, ("MODIFY", wrong)))
    assert (code, text) == (
        "INVALID_ARGUMENT",
        "table Ingress.macs: idle_table_mode 7 is neither 0, to poll, nor 1",
    )
    for part in ("pipe_scope", "gress_scope", "prsr_scope"):
        wrong = client.attribute("macs", "entry_scope")
        getattr(wrong.table_attribute.entry_scope, part).predef = 9
        assert [c for c, _ in errors_of(failing(client, ("MODIFY", wrong)))] == ["INVALID_ARGUMENT"]
    (shown,) = client.read_entities(client.attribute("macs", "entry_scope"))
    assert shown.table_attribute.entry_scope.pipe_scope.predef == 0
    failing(client, ("INSERT", mac(client, 1)), ("INSERT", mac(client, 1)), atomicity=9)
    assert len(client.read("macs")) == 1


def test_lives_begin_when_idle_time_is_enabled(interpreted: Served) -> None:
    device, client = interpreted
    client.write(("INSERT", mac(client, 1, ENTRY_TTL=60_000)))
    assert device.pipeline is not None
    (entry,) = device.pipeline.state.tables["Ingress.macs"].entries()
    entry.last_hit_ns -= 50 * 10**9  # it was added long ago
    client.write(("MODIFY", idle(client, enable=True, idle_table_mode=1, ttl_query_interval=1000)))
    assert client.read("macs")[0]["$ENTRY_TTL"] == 60_000
