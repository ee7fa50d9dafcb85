"""The store as plain records: saved, by way of JSON, and loaded into a fresh switch."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tnaprograms
import v1programs
from finsy.proto import p4r
from interfaces import INSERT, Interfaces, replica, session_entry

from gradplane.switch import Switch, SwitchError
from gradplane.switch.control.records import dump, load
from gradplane.switch.p4runtime.reconcile import load_state, saved_state
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.meters import MeterConfig

V1MODEL = v1programs.source(
    parser_locals="value_set<bit<8>>(4) known;",
    parser="pkt.extract(h.a); transition select(h.a.x) { known: more; default: accept; }",
    states="state more { transition accept; }",
    ingress_locals="""
        register<bit<8>>(4) cells; register<int<80>>(2) wide;
        counter(4, CounterType.packets) seen; meter(4, MeterType.bytes) rate;
        direct_counter(CounterType.packets) each; direct_meter<bit<8>>(MeterType.packets) every;
        direct_counter(CounterType.packets) always;
        action mark(bit<8> v) { h.a.z = v; every.read(h.a.kind); }
        action learn() { digest<bit<8>>(1, h.a.x); }
        table t {
            key = { h.a.x: ternary; h.a.y: lpm; } actions = { mark; NoAction; }
            default_action = NoAction; size = 8; counters = each; meters = every;
            support_timeout = true;
        }
        table fixed {
            key = { h.a.y: exact; } actions = { mark; learn; NoAction; }
            const entries = { 1 : NoAction(); } counters = always;
        }
        table grouped {
            key = { h.a.x: exact; h.a.y: selector; } actions = { mark; NoAction; }
            implementation = action_selector(HashAlgorithm.identity, 8, 8);
        }""",
    ingress="""bit<8> n; bit<16> crc; int<80> w;
        cells.read(n, 0); wide.read(w, 0); seen.count(1); rate.execute_meter((bit<32>) 0, n);
        hash(crc, HashAlgorithm.crc16_custom, (bit<16>) 0, { h.a.x }, (bit<32>) 65536);
        t.apply(); fixed.apply(); grouped.apply(); s.egress_spec = 1;""",
)


def v1model() -> Interfaces:
    all = Interfaces(Switch("x.p4", text=V1MODEL, engine="interpreter", clock=lambda: 10**9))
    return all


def filled_v1model() -> Interfaces:
    """A switch in which everything is set that a control plane can set."""
    all = v1model()
    sw = all.sw
    for number in (5, 3):
        sw.profile("implementation").add_member(number, "mark", {"v": number})
    sw.profile("implementation").add_group(4, [(3, 2, 300), 5])
    sw.table("grouped").add({"h.a.x": 1}, group=4)
    sw.table("grouped").add({"h.a.x": 2}, member=5)
    for x in (9, 2, 4):
        entry = sw.table("t").add({"h.a.x": (x, 15)}, "mark", {"v": x}, priority=3)
        entry.counter.packets = x
    sw.table("t").remove({"h.a.x": (9, 15)}, priority=3)  # so that handles are not in order
    all.cli("table_set_timeout t 1 500\nmeter_set_rates every 1 0.5:4 1:8")
    all.cli("table_set_default t mark 8\ncounter_write each 2 30 0")
    sw.value_set("known").replace([[(7,)]])
    sw.register("cells").write(2, 9)
    sw.register("wide").write(1, -5)
    sw.counter("seen").write(3, 1, 10)
    sw.meter("rate").write(1, MeterConfig(1, 2, 3, 4, period=10))
    all.cli("set_crc16_parameters calc 0x1021 0xffff 0 false false")
    all.cli("mc_mgrp_create 3\nmc_node_create 6 1 2\nmc_node_associate 3 0")
    sw.multicast(4, [1, (2, 7)])
    session = p4r.CloneSessionEntry(session_id=5, replicas=[replica(2)], packet_length_bytes=60)
    all.p4rt(INSERT, packet_replication_engine_entry=session_entry(session))
    digest = next(iter(all.pipeline.catalog.digests))
    config = p4r.DigestEntry.Config(max_timeout_ns=5, max_list_size=6, ack_timeout_ns=7)
    all.p4rt(INSERT, digest_entry=p4r.DigestEntry(digest_id=digest, config=config))
    sw.process(0, v1programs.packet(x=2, y=1))
    return all


def filled_tna() -> Interfaces:
    all = Interfaces(tna())
    sw = all.sw
    for name in ("t", "seen"):
        sw.set_scope(name, [[0, 1], [2, 3]])
    sw.table("t", pipe=2).add({"h.a.x": 1}, "mark", {"v": 3})
    sw.counter("seen", pipe=3).write(1, 7, 0)
    sw.state.pipe_registers("ingress.cells")[2].write(1, 44)
    all.bfrt("add", "$pre.node", {"$MULTICAST_NODE_ID": 9},
             MULTICAST_RID=6, MULTICAST_LAG_ID=[2], DEV_PORT=[1])  # fmt: skip
    all.bfrt("modify", "tm.pool.cfg", {"pool": "EG_APP_POOL_1"}, size_cells=5)
    all.bfrt("modify", "tm.queue.buffer", {"pg_id": 1, "pg_queue": 0}, "shared_pool",
             pool_id="EG_APP_POOL_2", hysteresis_cells=6)  # fmt: skip
    all.bfrt("add", "tm.ppg.cfg", {"ppg_id": 3}, "mirror_port", icos_2=True)
    all.bfrt("add", "$PORT", {"$DEV_PORT": 7}, SPEED="BF_SPEED_10G", FEC="BF_FEC_TYP_NONE",
             LOOPBACK_MODE="BF_LPBK_MAC_NEAR", PORT_ENABLE=True)  # fmt: skip
    all.bfrt("modify", "pktgen.port_cfg", {"dev_port": 68}, pktgen_enable=True)
    all.bfrt("modify", "pktgen.pkt_buffer", {"pkt_buffer_offset": 4, "pkt_buffer_size": 3},
             buffer=[1, 2, 3])  # fmt: skip
    all.bfrt("modify", "pktgen.app_cfg", {"app_id": 2}, "trigger_timer_periodic",
             timer_nanosec=50, app_enable=True, pkt_len=7)  # fmt: skip
    return all


def tna() -> Switch:
    text = tnaprograms.source(
        ingress_locals="""Register<bit<8>, bit<8>>(4) cells; Counter<bit<64>, bit<8>>(4,
            CounterType_t.PACKETS) seen;
            RegisterAction<bit<8>, bit<8>, bit<8>>(cells) get = {
                void apply(inout bit<8> value, out bit<8> found) { found = value; }
            };
            action mark(bit<8> v) { h.a.z = v; }
            table t { key = { h.a.x: exact; } actions = { mark; NoAction; } size = 8; }""",
        ingress="h.a.y = get.execute(0); seen.count(1); t.apply(); tm.ucast_egress_port = 1;",
    )
    return Switch("x.p4", text=text, engine="interpreter")


def plain(sw: Switch) -> Any:
    return json.loads(json.dumps(dump(sw.store)))


def without_serials(records: Any) -> Any:
    for table in records["tables"]:
        for entry in table["entries"]:
            del entry["serial"]
    return records


def test_everything_of_v1model_is_saved_and_loaded() -> None:
    filled, fresh = filled_v1model(), v1model()
    load_state(fresh.pipeline, json.dumps(saved_state(filled.pipeline, lambda: None)))
    assert without_serials(plain(fresh.sw)) == without_serials(plain(filled.sw))
    for command in ("table_dump t", "table_dump grouped", "mc_dump", "mirroring_get 5"):
        assert fresh.cli(command) == filled.cli(command)
    for query in ("table_entry", "counter_entry", "meter_entry", "register_entry", "digest_entry",
                  "value_set_entry", "action_profile_group"):  # fmt: skip
        entity = {query: getattr(p4r.Entity(), query)}
        assert fresh.p4rt_read(**entity) == filled.p4rt_read(**entity)
    found = [
        all.sw.process(0, v1programs.packet(x=x, y=3)) for all in (fresh, filled) for x in (1, 2)
    ]
    assert found[:2] == found[2:]


def test_everything_of_tna_is_saved_and_loaded() -> None:
    filled, fresh = filled_tna(), tna()
    load(fresh.store, plain(filled.sw))
    assert without_serials(plain(fresh)) == without_serials(plain(filled.sw))
    all = Interfaces(fresh)
    assert all.bfrt_read("tm.pool.cfg", {"pool": "EG_APP_POOL_1"})["size_cells"] == 5
    assert all.bfrt_read("$pre.node", {"$MULTICAST_NODE_ID": 9})["$DEV_PORT"] == [1]
    for name, key in (
        ("tm.queue.buffer", {"pg_id": 1, "pg_queue": 0}), ("tm.ppg.cfg", {"ppg_id": 3}),
        ("$PORT", {"$DEV_PORT": 7}), ("pktgen.port_cfg", {"dev_port": 68}),
        ("pktgen.app_cfg", {"app_id": 2}),
        ("pktgen.pkt_buffer", {"pkt_buffer_offset": 4, "pkt_buffer_size": 3}),
    ):  # fmt: skip
        assert all.bfrt_read(name, key) == filled.bfrt_read(name, key), name
    assert fresh.state.links.loopback[7] == 1


def test_state_that_an_earlier_version_saved_is_loaded() -> None:
    all = v1model()
    ids = {t.name: t.id for t in all.pipeline.catalog.tables.values()}
    mark = next(a.id for a in all.pipeline.catalog.actions.values() if a.name == "I.mark")
    action = {"action": {"action_id": mark, "params": [{"param_id": 1, "value": "CA=="}]}}
    match = [{"field_id": 1, "ternary": {"value": "Ag==", "mask": "Dw=="}}]
    entry = {"table_id": ids["I.t"], "match": match, "priority": 3, "action": action}
    state = {
        "updates": [{"type": "INSERT", "entity": {"table_entry": entry}}],
        "handles": {"I.t": [6]},
    }
    load_state(all.pipeline, json.dumps(state))
    (found,) = all.sw.table("t").entries()
    assert (found.matches, found.handle) == (((2, 15), None), 6)
    assert all.sw.process(0, v1programs.packet(x=2))[0][1][3] == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["tables"][0].update(name="I.gone"),
         "there is no table I.gone; there are: I."),
        (lambda r: r["tables"][0]["entries"][0]["action"].update(name="odd"),
         "table I.t: there is no action 'odd'"),
        (lambda r: r["tables"][0].update(fields=["h.a.x", "h.a.q"]),
         "table I.t: its key has changed from (h.a.x, h.a.q) to (h.a.x, h.a.y)"),
        (lambda r: r["registers"][0]["cells"].update({"9": 1}), "index 9 is not within 0 to 3"),
        (lambda r: r["registers"][0].update(name="gone"), "there is no register gone; there are"),
        (lambda r: r["counters"][0].update(name="gone"),
         "there is no counter gone; there are: I."),
    ],
)  # fmt: skip
def test_what_has_no_place_is_named(change: Any, message: str) -> None:
    records = plain(filled_v1model().sw)
    change(records)
    with pytest.raises(SwitchError) as caught:
        load(v1model().sw.store, records)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["x", "[]", "{}", '{"tables": 1}', '{"tables": []}', "{}}"])
def test_what_is_no_saved_state(text: str) -> None:
    with pytest.raises(RpcError, match="this is no saved state: "):
        load_state(v1model().pipeline, text)
