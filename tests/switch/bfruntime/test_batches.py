"""Requests that fail take back what they wrote, and nothing that packets wrote meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tnaprograms
from bfrt_client import ALL_PIPES, Client
from finsy.proto import p4r

from gradplane import _bfruntime as bf
from gradplane.switch import Switch
from gradplane.switch.bfruntime.bound_program import bind
from gradplane.switch.p4runtime.catalog import Catalog
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError

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


class Controller(Client):
    """A client without a channel. meanwhile: called after each update of a request."""

    def __init__(self, sw: Switch) -> None:
        self.sw = sw
        pipeline = Pipeline(Catalog(sw.program), sw, p4r.ForwardingPipelineConfig())
        device = bind(pipeline)
        bound = device.only
        assert bound is not None
        listed = [*json.loads(bound.json())["tables"], *json.loads(device.fixed_json())["tables"]]
        self.tables = {table["name"]: table for table in listed}
        self.requests = bound.requests
        self.meanwhile: Callable[[], object] = int
        attempt = self.requests._attempt

        def attempt_among_packets(target: Any, update: Any, ignore_missing: bool) -> Any:
            error = attempt(target, update, ignore_missing)
            self.meanwhile()
            return error

        self.requests._attempt = attempt_among_packets  # type: ignore[method-assign]

    def send(self, x: int, pipe: int = 0) -> bytes:
        ((_, out),) = self.sw.process(pipe << 7, tnaprograms.packet(x=x))
        return out

    def write(self, *updates: tuple[str, Any], metadata: Any = None, **fields: Any) -> Any:
        request = bf.WriteRequest(target={"pipe_id": ALL_PIPES}, **fields)
        for kind, entry in updates:
            request.updates.add(type=getattr(bf.Update, kind)).entity.table_entry.CopyFrom(entry)
        with self.sw.lock:
            return [error and error.code for error in self.requests.write(request)]

    def read_entities(self, *entities: Any, pipe: int = ALL_PIPES) -> Iterator[Any]:
        request = bf.message(bf.METHODS["Read"].request)(
            target={"pipe_id": pipe}, entities=entities
        )
        errors: list[RpcError | None] = []
        with self.sw.lock:
            yield from self.requests.read(request, errors)
        assert errors == [None] * len(entities)

    def fail(self, *updates: tuple[str, Any], atomicity: str = "ROLLBACK_ON_ERROR") -> None:
        """Write updates, then one that is refused."""
        last = "DELETE", self.entry("t", {"h.a.x": 77})
        mode = getattr(bf.WriteRequest, atomicity)
        found = self.write(*updates, last, atomicity=mode)
        assert found == [None] * len(updates) + ["NOT_FOUND"]

    def one(self, table: str, key: dict[str, int]) -> dict[str, Any]:
        (found,) = self.read(table, key)
        return found


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
