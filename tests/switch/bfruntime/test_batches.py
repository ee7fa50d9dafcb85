"""Requests that fail take back what they wrote, and nothing that packets wrote meanwhile."""

from __future__ import annotations

import pytest
import tnaprograms
from bfrt_served import Controller

LOCALS = """
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) each;
    DirectMeter(MeterType_t.PACKETS) rate;
    DirectRegister<bit<16>>(3) own;
    DirectRegisterAction<bit<16>, bit<16>>(own) once = {
        void apply(inout bit<16> value) { value = value + 1; }
    };
    Counter<bit<32>, bit<8>>(16, CounterType_t.PACKETS) hits;
    Meter<bit<8>>(4, MeterType_t.PACKETS) limits;
    Register<bit<16>, bit<8>>(16) seen;
    RegisterAction<bit<16>, bit<8>, bit<16>>(seen) more = {
        void apply(inout bit<16> value) { value = value + 1; }
    };
    action mark(bit<8> v) { h.a.z = v; each.count(); h.a.kind = (bit<8>) rate.execute(); }
    table t {
        key = { h.a.x : exact; }
        actions = { mark; }
        counters = each; meters = rate; size = 8;
    }
    action note() { once.execute(); }
    table flows {
        key = { h.a.x : exact; }
        actions = { note; }
        registers = own;
    }"""
INGRESS = """
    tm.ucast_egress_port = 1;
    hits.count(h.a.x); more.execute(h.a.x); flows.apply();
    h.a.y = (bit<8>) limits.execute(0);
    t.apply();"""
X1, X2 = {"h.a.x": 1}, {"h.a.x": 2}
RED = 3


@pytest.fixture(params=["interpreter", "jit"])
def client(request: pytest.FixtureRequest) -> Controller:
    sw = tnaprograms.switch(request.param, lambda: 10**9, ingress_locals=LOCALS, ingress=INGRESS)
    made = Controller(sw)
    made.add("t", X1, "mark", v=11)
    made.add("flows", X1, "note")
    return made


@pytest.mark.parametrize("atomicity", ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"])
def test_entries_and_their_parts(client: Controller, atomicity: str) -> None:
    for _ in range(3):
        client.send(1)
    before, entry = client.one("t", X1), client.entry
    client.meanwhile = lambda: client.send(1)
    client.fail(
        ("MODIFY", entry("t", X1, "mark", v=99, COUNTER_SPEC_PKTS=50, COUNTER_SPEC_BYTES=0)),
        ("INSERT", entry("t", X2, "mark", v=22, COUNTER_SPEC_PKTS=5)),
        ("MODIFY", entry("flows", X1, f1=[100])),
        ("DELETE", entry("flows", X1)),
        atomicity=atomicity,
    )  # fmt: skip
    assert client.send(1)[3] == 11 and client.send(2)[3] == 0
    after = client.one("t", X1)
    size = before["$COUNTER_SPEC_BYTES"] // 3
    assert before["$COUNTER_SPEC_PKTS"] == 3
    assert after["$COUNTER_SPEC_PKTS"] == 3 + 5 + 1  # 5 meanwhile, 1 after it
    assert after["$COUNTER_SPEC_BYTES"] == 9 * size
    assert client.read("t", X1 | {"h.a.x": 1})[0]["v"] == 11
    (name,) = (n for n in client.one("flows", X1) if n.endswith("own.f1"))
    # Packets of pipe 0 wrote the cell since: 100 and one, before the entry was gone; one after it.
    assert client.one("flows", X1)[name] == [102, 3, 3, 3]


def test_counters_and_registers(client: Controller) -> None:
    for x in (1, 2):
        client.send(x)
    client.meanwhile = lambda: client.send(1)
    client.fail(
        ("MODIFY", client.entry("hits", {"$COUNTER_INDEX": 1}, COUNTER_SPEC_PKTS=1000)),
        ("MODIFY", client.entry("hits", {"$COUNTER_INDEX": 2}, COUNTER_SPEC_PKTS=1000)),
        ("MODIFY", client.entry("seen", {"$REGISTER_INDEX": 1}, f1=[500])),
        ("MODIFY", client.entry("seen", {"$REGISTER_INDEX": 2}, f1=[500])),
    )
    counts = [client.one("hits", {"$COUNTER_INDEX": i})["$COUNTER_SPEC_PKTS"] for i in (1, 2)]
    assert counts == [1 + 5, 1]
    cells = [client.one("seen", {"$REGISTER_INDEX": i})["ingress.seen.f1"] for i in (1, 2)]
    assert cells == [[500 + 3, 0, 0, 0], [1, 0, 0, 0]]  # three packets after the update
    client.fail(("DELETE", client.entry("hits", None)), ("DELETE", client.entry("seen", None)))
    counts = [client.one("hits", {"$COUNTER_INDEX": i})["$COUNTER_SPEC_PKTS"] for i in (1, 2)]
    assert counts == [6 + 3, 1]
    cells = [client.one("seen", {"$REGISTER_INDEX": i})["ingress.seen.f1"] for i in (1, 2)]
    assert cells == [[2, 0, 0, 0], [1, 0, 0, 0]]


def rates(packets: int) -> dict[str, int]:
    return {
        "METER_SPEC_CIR_PPS": 1, "METER_SPEC_PIR_PPS": 1,
        "METER_SPEC_CBS_PKTS": packets, "METER_SPEC_PBS_PKTS": packets,
    }  # fmt: skip


@pytest.mark.parametrize(("table", "colour"), [("t", 0), ("limits", 2)])
def test_meters_keep_the_tokens_that_are_left(client: Controller, table: str, colour: int) -> None:
    key = X1 if table == "t" else {"$METER_INDEX": 0}
    client.write(("MODIFY", client.entry(table, key, **rates(9))))
    client.send(1)
    # Nobody took a token of the new burst: those of before are back.
    client.fail(("MODIFY", client.entry(table, key, **rates(3))))
    shown = client.one(table, key)
    assert {n: shown[f"${n}"] for n in rates(9)} == rates(9)
    assert [client.send(1)[colour] for _ in range(2)] == [0, 0]
    client.meanwhile = lambda: client.send(1)
    client.fail(("MODIFY", client.entry(table, key, **rates(3))))
    # Two of three were taken meanwhile: one of them is left.
    assert [client.send(1)[colour] for _ in range(3)] == [0, RED, RED]
    shown = client.one(table, key)
    assert {n: shown[f"${n}"] for n in rates(9)} == rates(9)


def test_settings_of_the_chip(client: Controller) -> None:
    """What follows from a setting is taken back with it."""
    links, name = client.sw.state.links, "tf1"
    before = {t: client.read(t) for t in ("tf1.tm.pipe.cfg", "tf1.tm.ppg.cfg", "$PORT")}
    loopback = bytes(links.loopback)
    client.fail(
        ("INSERT", client.entry(f"{name}.tm.ppg.cfg", {"ppg_id": 4}, "mirror_port", icos_1=True)),
        ("INSERT", client.entry(f"{name}.pktgen.port_cfg", {"dev_port": 68},
                                recirculation_enable=True)),
        ("INSERT", client.entry("$PORT", {"$DEV_PORT": 9}, SPEED="BF_SPEED_10G",
                                FEC="BF_FEC_TYP_NONE", PORT_ENABLE=True,
                                LOOPBACK_MODE="BF_LPBK_MAC_NEAR")),
        ("MODIFY", client.entry(f"{name}.tm.pipe.cfg", None, mirror_drop_pg_id=1,
                                mirror_drop_pg_queue=2)),
    )  # fmt: skip
    assert {t: client.read(t) for t in before} == before
    assert bytes(links.loopback) == loopback and not links.queues.deflections


def test_drops_of_queues(client: Controller) -> None:
    queues = client.sw.state.links.queues
    queues.set_rate(1, 1)
    queues.set_depth(1, 1)

    def send() -> None:
        client.sw.process(0, tnaprograms.packet(x=1))

    for _ in range(5):
        send()
    dropped = queues.queue(1, 0).dropped
    assert dropped
    client.meanwhile = send
    client.fail(("DELETE", client.entry("tf1.tm.counter.queue", None)))
    assert queues.queue(1, 0).dropped == dropped + 2


def test_debug_counters(client: Controller) -> None:
    key = {"tbl_name": "ingress.t"}
    client.add("tbl_dbg_counter", key, type="TBL_HIT", value=0)
    client.send(1)
    client.meanwhile = lambda: client.send(1)
    client.fail(("MODIFY", client.entry("tbl_dbg_counter", key, value=100)))
    assert client.one("tbl_dbg_counter", key)["value"] == 1 + 2
