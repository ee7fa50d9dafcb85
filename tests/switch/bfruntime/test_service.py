"""Clients, programs, batches, errors, attributes and notifications."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import grpc
import pytest
from bfrt_client import ALL_PIPES, Client, errors_of, failing, mac
from bfrt_served import PROGRAM, Served

from gradplane import _bfruntime as bf
from gradplane.switch.bfruntime.tables.cell_fields import UNLIMITED
from gradplane.switch.p4runtime.device_config import device_config

DST = 0x0200000000AA


def test_one_client_is_bound(interpreted: Served, make_client: Callable[..., Client]) -> None:
    _, client = interpreted
    assert client.name == "program"
    with make_client(id=2, bind=False) as other:
        with pytest.raises(grpc.RpcError, match="client 1 is bound to program"):
            other.bind("program")
        error = failing(other, ("INSERT", mac(other, 1)))
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert "client 2 is bound to no program: bind to program first" in error.details()
        with pytest.raises(grpc.RpcError, match="there is no program 'another'"):
            client.bind("another")
        client.close()
        for _ in range(1500):  # until the server has seen that the first client is gone
            try:
                other.bind("program")
                break
            except grpc.RpcError:
                time.sleep(0.02)
        other.write(("INSERT", mac(other, 1)))


def test_a_client_id_is_taken_once(make_client: Callable[..., Client]) -> None:
    with make_client(id=1, bind=False) as second:
        assert second.status.message == "another client has the id 1: choose another"


def test_a_client_need_not_subscribe(make_client: Callable[..., Client]) -> None:
    with make_client(id=None) as client:
        client.id = 77
        client.write(("INSERT", mac(client, 1)))
        assert len(client.read("macs")) == 1


def test_errors_name_the_update_and_the_way_out(interpreted: Served) -> None:
    _, client = interpreted
    wrong = mac(client, 3)
    wrong.data.fields[0].stream = b"\xff\xff"
    error = failing(
        client, ("INSERT", mac(client, 1)), ("INSERT", wrong), ("DELETE", mac(client, 9))
    )
    assert error.code() == grpc.StatusCode.UNKNOWN
    found = errors_of(error)
    assert [code for code, _ in found] == ["OK", "INVALID_ARGUMENT", "NOT_FOUND"]
    assert found[1][1] == ("table pipe.Ingress.macs: data field port: 65535 does not fit 9 bits")
    assert [e["h.ethernet.dst"] for e in client.read("macs")] == [1]


def test_a_default_that_is_const_is_reset_without_effect(interpreted: Served) -> None:
    """As with the chip's driver: controllers reset all tables when they begin."""
    _, client = interpreted
    default = client.entry("masked", None)
    default.is_default_entry = True
    client.write(("DELETE", default))
    with pytest.raises(grpc.RpcError, match="its default action is const in the source"):
        client.set_default("masked", "Ingress.mark", type=1)


def test_a_batch_is_rolled_back(interpreted: Served) -> None:
    _, client = interpreted
    client.add("totals", {"$REGISTER_INDEX": 1}, f1=[1, 2, 3, 4])
    client.write(("INSERT", mac(client, 1, port=5)))
    for atomicity in (bf.WriteRequest.ROLLBACK_ON_ERROR, bf.WriteRequest.DATAPLANE_ATOMIC):
        error = failing(
            client,
            ("INSERT", mac(client, 2)),
            ("MODIFY", mac(client, 1, port=6)),
            ("MODIFY", client.entry("totals", {"$REGISTER_INDEX": 1}, f1=9)),
            ("INSERT", mac(client, 1)),
            ("INSERT", mac(client, 3)),
            atomicity=atomicity,
        )
        assert [code for code, _ in errors_of(error)] == ["OK", "OK", "OK", "ALREADY_EXISTS"]
        (entry,) = client.read("macs")
        assert (entry["h.ethernet.dst"], entry["port"]) == (1, 5)
        assert client.read("totals", {"$REGISTER_INDEX": 1})[0]["Ingress.totals.f1"] == [1, 2, 3, 4]


def test_a_refused_modification_changes_nothing(interpreted: Served) -> None:
    _, client = interpreted
    client.write(("INSERT", mac(client, 1, port=5)))
    client.set_default("macs", "Ingress.send", port=3)
    wrong = {"COUNTER_SPEC_PKTS": 9, "METER_SPEC_CIR_KBPS": 8, "METER_SPEC_PIR_KBPS": 7}
    default = client.entry("macs", None, "Ingress.send", port=6, **wrong)
    default.is_default_entry = True
    for kind, entry in (("MODIFY", mac(client, 1, port=6, **wrong)), ("MODIFY", default),
                        ("INSERT", mac(client, 2, port=6, **wrong))):  # fmt: skip
        error = failing(client, (kind, entry))
        ((code, message),) = errors_of(error)
        assert code == "INVALID_ARGUMENT"
        assert message.endswith("the peak rate 7 is below the committed rate 8")
    (entry,) = client.read("macs")
    for shown, port in ((entry, 5), (client.default("macs"), 3)):
        assert (shown["port"], shown["$COUNTER_SPEC_PKTS"]) == (port, 0)
        assert shown["$METER_SPEC_CIR_KBPS"] == UNLIMITED


def test_errors_may_come_in_the_response(interpreted: Served) -> None:
    _, client = interpreted
    updates = (("DELETE", mac(client, 9)), ("INSERT", mac(client, 1)), ("INSERT", mac(client, 1)))
    response = client.write(*updates, metadata=[("error_in_resp", "1"), ("ignore_not_found", "1")])
    assert [s.canonical_code for s in response.status] == [
        0,
        0,
        grpc.StatusCode.ALREADY_EXISTS.value[0],
    ]


def test_insert_or_modify_and_clear(interpreted: Served) -> None:
    _, client = interpreted
    client.write(("INSERT_OR_MODIFY", mac(client, 1, 5)), ("INSERT_OR_MODIFY", mac(client, 1, 6)))
    (entry,) = client.read("macs")
    assert entry["port"] == 6
    client.write(("DELETE", client.entry("macs", None)))
    assert client.read("macs") == []


def test_pipes_that_do_not_exist(interpreted: Served) -> None:
    _, client = interpreted
    with pytest.raises(grpc.RpcError, match="pipe 4 does not exist: pipes are 0 to 3"):
        client.read("totals", {"$REGISTER_INDEX": 1}, pipe=4)
    entry = client.entry("totals", {"$REGISTER_INDEX": 1}, f1=7)
    client.write(("INSERT", entry), target={"pipe_id": 2})
    assert client.read("totals", {"$REGISTER_INDEX": 1})[0]["Ingress.totals.f1"] == [0, 0, 7, 0]


def test_handles_usage_and_ids(interpreted: Served) -> None:
    _, client = interpreted
    client.write(("INSERT", mac(client, 1, 5)))
    table = client.table("macs")
    asked = bf.Entity()
    asked.handle.table_id = table["id"]
    asked.handle.key.CopyFrom(client.entry("macs", {"h.ethernet.dst": 1}).key)
    (found,) = client.read_entities(asked)
    by_handle = bf.TableEntry(table_id=table["id"], handle_id=found.handle.handle_id)
    (entry,) = client.read_entities(bf.Entity(table_entry=by_handle))
    assert client.shown("macs", entry.table_entry)["port"] == 5
    usage = bf.Entity()
    usage.table_usage.table_id = table["id"]
    assert [u.table_usage.usage for u in client.read_entities(usage)] == [1]
    named = bf.Entity()
    named.object_id.table_object.table_name = "Ingress.macs"
    named.object_id.table_object.data_field_name.action = "Ingress.send"
    named.object_id.table_object.data_field_name.field = "port"
    assert [e.object_id.id for e in client.read_entities(named)] == [1]


def test_idle_entries_are_reported_once(interpreted: Served) -> None:
    device, client = interpreted
    idle = client.attribute("macs", "idle_table", enable=True, idle_table_mode=1, min_ttl=1,
                            max_ttl=1000, ttl_query_interval=5)  # fmt: skip
    client.write(("INSERT", idle))
    (shown,) = client.read_entities(client.attribute("macs", "idle_table"))
    assert (shown.table_attribute.idle_table.enable, shown.table_attribute.idle_table.min_ttl) == (
        True,
        1,
    )
    entry = client.entry("macs", {"h.ethernet.dst": DST}, "Ingress.send", port=1, ENTRY_TTL=5)
    client.write(("INSERT", entry))
    notice = client.next_message("idle_timeout_notification")
    assert notice.type == 1
    assert client.shown("macs", notice.table_entry)["h.ethernet.dst"] == DST
    device.process(1, DST.to_bytes(6, "big") + bytes(10))
    assert client.next_message("idle_timeout_notification").type == 0
    wrong = client.entry("macs", {"h.ethernet.dst": 9}, "Ingress.send", port=1, ENTRY_TTL=4)
    ((_, text),) = errors_of(failing(client, ("INSERT", wrong)))
    assert text == (
        "table pipe.Ingress.macs: $ENTRY_TTL 4 ms is shorter than the query interval, 5 ms"
    )


def test_an_entry_is_not_read_as_one_of_another_action(interpreted: Served) -> None:
    _, client = interpreted
    client.add("macs", {"h.ethernet.dst": DST}, "Ingress.send", port=1)
    query = client.entry("macs", {"h.ethernet.dst": DST}, "Ingress.send")
    assert len(list(client.read_entities(bf.Entity(table_entry=query)))) == 1
    query = client.entry("macs", {"h.ethernet.dst": DST}, "Ingress.flood")
    with pytest.raises(grpc.RpcError) as caught:
        list(client.read_entities(bf.Entity(table_entry=query)))
    assert caught.value.details().endswith(
        "table pipe.Ingress.macs: the entry has the action Ingress.send, not Ingress.flood"
    )
    query.ClearField("key")  # all entries with the action
    assert not [
        found
        for found in client.read_entities(bf.Entity(table_entry=query))
        if not found.table_entry.is_default_entry
    ]


def test_the_time_that_an_idle_entry_has_left(interpreted: Served) -> None:
    device, client = interpreted
    mode = dict(min_ttl=1, max_ttl=5000, ttl_query_interval=1000)
    client.write(("INSERT", client.attribute("macs", "idle_table", enable=True,
                                             idle_table_mode=1, **mode)))  # fmt: skip
    client.add("macs", {"h.ethernet.dst": DST}, "Ingress.send", port=1, ENTRY_TTL=2500)
    assert device.pipeline is not None
    (entry,) = device.pipeline.state.tables["Ingress.macs"].entries()
    for seconds_ago, left in ((0, 2500), (1.5, 1500), (2.1, 500), (2.6, 0), (7, 0)):
        entry.last_hit_ns = device.pipeline.state.clock() - int(seconds_ago * 1e9)
        (shown,) = client.read("macs")
        assert shown["$ENTRY_TTL"] == left
        assert "$ENTRY_HIT_STATE" not in shown
    client.write(("INSERT", client.attribute("macs", "idle_table", enable=True,
                                             idle_table_mode=0, **mode)))  # fmt: skip
    (shown,) = client.read("macs")
    assert "$ENTRY_TTL" not in shown and shown["$ENTRY_HIT_STATE"] == "ENTRY_IDLE"


def test_changes_of_links_are_reported(interpreted: Served) -> None:
    device, client = interpreted
    client.write(("INSERT", client.attribute("$PORT", "port_status_notify", enable=True)))
    assert device.pipeline is not None
    client.read("macs")  # the server knows the program's ports from here on
    device.pipeline.state.links.set(3, False)
    notice = client.next_message("port_status_change_notification")
    assert (client.shown("$PORT", notice.table_entry)["$DEV_PORT"], notice.port_up) == (3, False)


def test_meters_in_kbits_and_packets(interpreted: Served) -> None:
    device, client = interpreted
    client.add("police", {"$METER_INDEX": 2}, METER_SPEC_CIR_PPS=100, METER_SPEC_PIR_PPS=200,
               METER_SPEC_CBS_PKTS=10, METER_SPEC_PBS_PKTS=20)  # fmt: skip
    assert device.pipeline is not None
    config = device.pipeline.state.meters["Ingress.police"].read(2)
    assert config is not None
    assert (config.cir, config.pir, config.cburst, config.pburst) == (100, 200, 10, 20)
    (entry,) = client.read("police", {"$METER_INDEX": 2})
    assert entry["$METER_SPEC_PIR_PPS"] == 200
    rates = {"METER_SPEC_CIR_KBPS": 8, "METER_SPEC_PIR_KBPS": 16, "METER_SPEC_CBS_KBITS": 8,
             "METER_SPEC_PBS_KBITS": 8}  # fmt: skip
    client.add("macs", {"h.ethernet.dst": 1}, "Ingress.send", port=1, **rates)
    (entry,) = client.read("macs")
    assert entry["$METER_SPEC_CIR_KBPS"] == 8


def test_ports_of_the_device(interpreted: Served) -> None:
    _, client = interpreted
    (place,) = client.read("$PORT_HDL_INFO", {"$CONN_ID": 3, "$CHNL_ID": 1})
    assert place["$DEV_PORT"] == 9  # which was not added
    client.add("$PORT", {"$DEV_PORT": 8}, SPEED="BF_SPEED_100G", FEC="BF_FEC_TYP_NONE",
               PORT_ENABLE=True)  # fmt: skip
    (port,) = client.read("$PORT", {"$DEV_PORT": 8})
    assert (port["$SPEED"], port["$PORT_ENABLE"], port["$PORT_UP"]) == (
        "BF_SPEED_100G",
        True,
        False,
    )
    (place,) = client.read("$PORT_HDL_INFO", {"$CONN_ID": port["$CONN_ID"], "$CHNL_ID": 0})
    assert place["$DEV_PORT"] == 8
    ((_, text),) = errors_of(
        failing(client, ("MODIFY", client.entry("$PORT", {"$DEV_PORT": 8}, SPEED="1")))
    )
    assert text.startswith("table $PORT: data field $SPEED: '1' is not one of BF_SPEED_NONE, ")
    device = client.default("tf1.dev.device_configuration")
    assert (device["num_pipes"], device["sku"]) == (4, "BFN-T10-064Q")


def config_request(client: Client, action: str, **config: object) -> dict[str, object]:
    kind = getattr(bf.SetForwardingPipelineConfigRequest, action)
    return {"client_id": client.id, "action": kind, "config": [config] if config else []}


def test_a_program_is_pushed_in_steps(interpreted: Served) -> None:
    device, client = interpreted
    client.write(("INSERT", mac(client, 1)))
    profile = {"profile_name": "pipe", "binary": device_config(PROGRAM, (), ())}
    config = {"p4_name": "program", "profiles": [profile]}
    send = "SetForwardingPipelineConfig"
    client.rpc(send, **config_request(client, "VERIFY", **config))
    assert len(client.read("macs")) == 1
    client.rpc(send, **config_request(client, "VERIFY_AND_WARM_INIT_BEGIN", **config))
    message = client.next_message("set_forwarding_pipeline_config_response")
    assert message.set_forwarding_pipeline_config_response_type == 0
    client.add("macs", {"h.ethernet.dst": DST}, "Ingress.send", port=3)
    frame = DST.to_bytes(6, "big") + bytes(10)
    assert device.process(1, frame) == []  # the old program still runs
    client.rpc(send, **config_request(client, "WARM_INIT_END"))
    assert [port for port, _ in device.process(1, frame)] == [3]
    with pytest.raises(grpc.RpcError, match="there was no WARM_INIT_BEGIN"):
        client.rpc(send, **config_request(client, "WARM_INIT_END"))
    profile["binary"] = b"\x7fELF"
    with pytest.raises(grpc.RpcError, match="it runs P4 source, which `gradplane p4 config"):
        client.rpc(send, **config_request(client, "VERIFY", **{**config, "p4_name": "other"}))
    with pytest.raises(grpc.RpcError, match="its bf-rt.json is wrong"):
        client.rpc(send, **config_request(client, "VERIFY", **config))
    config["bfruntime_info"] = b'{"tables": []}'
    with pytest.raises(grpc.RpcError, match="lacks what runs: pipe.Ingress.macs, "):
        client.rpc(send, **config_request(client, "VERIFY", **config))
    config["bfruntime_info"] = json.dumps(client.info).encode()
    client.rpc(send, **config_request(client, "VERIFY_AND_WARM_INIT_BEGIN_AND_END", **config))
    assert client.read("macs") == []
    client.add("macs", {"h.ethernet.dst": DST}, "Ingress.send", port=3)
    running = {"p4_name": "program"}
    client.rpc(send, **config_request(client, "VERIFY_AND_WARM_INIT_BEGIN_AND_END", **running))
    assert client.read("macs") == []


def test_bf_rt_json_is_what_the_command_prints(interpreted: Served) -> None:
    from gradplane.experiment import p4_programs

    _, client = interpreted
    compiled = p4_programs.compiled(PROGRAM)
    p4_programs.check(compiled)
    assert json.loads(p4_programs.bfrt_info(compiled.program)) == client.info
    names = {t["name"]: t["table_type"] for t in client.info["tables"]}
    assert names["pipe.Ingress.groups"] == "Selector"
    assert names["pipe.IngressParser.$PORT_METADATA"] == "PortMetadata"
    assert client.table("Ingress.groups")["size"] == 4
    assert [f["name"] for f in client.info["learn_filters"][0]["fields"]] == ["address", "port"]


def test_random_bytes_do_not_stop_the_server(interpreted: Served) -> None:
    _, client = interpreted
    for number in range(1, 1 << 32, 97_000_003):
        with pytest.raises(grpc.RpcError):
            client.rpc("Read", client_id=client.id, target={"pipe_id": ALL_PIPES},
                       entities=[{"table_entry": {"table_id": number}}])  # fmt: skip
    assert client.read("macs") == []
