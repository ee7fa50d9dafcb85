"""Tables, profiles and cells that pipes have of their own (attribute EntryScope), and their state
when it is saved."""

from __future__ import annotations

import binascii
from typing import Any

import grpc
import pytest
import tnaprograms
from bfrt_client import ALL_PIPES, Client
from bfrt_served import Controller, Served

from gradplane import _bfruntime as bf
from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.program_schema import ProgramSchema, program_tables
from gradplane.switch.bfruntime.tables.control_table import Flags, Scope
from gradplane.switch.control.records import dump, load
from gradplane.switch.p4runtime.catalog import Catalog
from gradplane.switch.p4runtime.status_errors import RpcError

SOURCE = 1


def scope(client: Client, table: str, **mode: int) -> None:
    entity = client.attribute(table, "entry_scope")
    for name, value in mode.items():
        setattr(entity.table_attribute.entry_scope.pipe_scope, name, value)
    client.write(("MODIFY", entity))


def in_pipe(client: Client, pipe: int, kind: str, entry: Any) -> Any:
    return client.write((kind, entry), target={"pipe_id": pipe})


def frame(dst: int, ether_type: int = 0x800) -> bytes:
    return dst.to_bytes(6, "big") + SOURCE.to_bytes(6, "big") + ether_type.to_bytes(2, "big")


def test_pipes_have_entries_counters_and_members_of_their_own(served: Served) -> None:
    device, client = served
    for table in ("macs", "balanced", "per_port", "police", "average"):
        scope(client, table, predef=1)
    for pipe in range(4):
        in_pipe(client, pipe, "INSERT", client.entry("macs", {"h.ethernet.dst": 5},
                                                     "send", port=pipe + 10))  # fmt: skip
        assert device.process(pipe << 7 | 3, frame(5)) == [(pipe + 10, frame(5))]
    assert device.process(3, frame(5)) == [(10, frame(5))]
    (entry,) = client.read("macs", pipe=2)
    assert (entry["port"], entry["$COUNTER_SPEC_PKTS"]) == (12, 1)
    key = {"$COUNTER_INDEX": 3}
    assert client.read("per_port", key, pipe=0)[0]["$COUNTER_SPEC_PKTS"] == 2
    assert client.read("per_port", {"$COUNTER_INDEX": 3})[0]["$COUNTER_SPEC_PKTS"] == 2
    assert client.read("per_port", {"$COUNTER_INDEX": 131}, pipe=1)[0]["$COUNTER_SPEC_PKTS"] == 1
    assert client.read("per_port", {"$COUNTER_INDEX": 131}, pipe=0)[0]["$COUNTER_SPEC_PKTS"] == 0
    assert client.read("per_port", {"$COUNTER_INDEX": 131})[0]["$COUNTER_SPEC_PKTS"] == 1
    in_pipe(client, 3, "INSERT", client.entry("members", {"$ACTION_MEMBER_ID": 1}, "to", port=20))
    in_pipe(client, 3, "INSERT", client.entry("balanced", {"type": 0x900}, ACTION_MEMBER_ID=1))
    assert device.process(3 << 7, frame(6, 0x900)) == [(20, frame(6, 0x900))]
    assert device.process(0, frame(6, 0x900)) == []


def test_requests_name_a_pipe_or_do_not(interpreted: Served) -> None:
    _, client = interpreted
    entry = client.entry("macs", {"h.ethernet.dst": 5}, "send", port=1)
    reply = "all pipes share its entries: leave the target's pipe at 0xffff"
    assert reply in _error(lambda: in_pipe(client, 1, "INSERT", entry))
    scope(client, "macs", user_defined=0x0C03)
    reply = "pipes have entries of their own: name one in the request's target"
    assert reply in _error(lambda: client.write(("INSERT", entry)))
    in_pipe(client, 1, "INSERT", entry)
    assert len(client.read("macs", pipe=0)) == 1
    assert client.read("macs", pipe=3) == []
    assert "its scope can change while it has no entries" in _error(
        lambda: scope(client, "macs", predef=0)
    )
    client.write(("DELETE", client.entry("macs", None)))
    scope(client, "macs", predef=0)
    client.write(("INSERT", entry))
    reply = "each of the pipes 0 to 3 must be in one scope"
    assert reply in _error(lambda: scope(client, "per_port", user_defined=0x0101))


def by_parser(client: Client, pipes: int, parsers: int) -> None:
    """Set the scope of the value set `known`."""
    entity = client.attribute("known", "entry_scope")
    entity.table_attribute.entry_scope.pipe_scope.predef = pipes
    entity.table_attribute.entry_scope.prsr_scope.predef = parsers
    client.write(("MODIFY", entity))


def of_parser(client: Client, parser: int, pipe: int = ALL_PIPES) -> list[tuple[int, int]]:
    """Return the entries of `known` that a parser has."""
    request = {"target": {"pipe_id": pipe, "prsr_id": parser}, "client_id": client.id}
    entity = bf.Entity(table_entry=client.entry("known", None))
    (found,) = client.rpc("Read", entities=[entity], **request) or [bf.ReadResponse()]
    fields = [e.table_entry.key.fields[0].ternary for e in found.entities]
    return [(int.from_bytes(f.value, "big"), int.from_bytes(f.mask, "big")) for f in fields]


def test_parsers_have_members_of_value_sets_of_their_own(served: Served) -> None:
    device, client = served
    key = {"src": (0, 0), "vlan": (0xFFF, 0xFFF), "dst": (0, 0), "$MATCH_PRIORITY": 1}
    client.add("filters", key, "Ingress.mark", type=0x99)
    client.set_default("macs", "Ingress.send", port=1)

    def noted(port: int, kind: int) -> bool:
        return device.process(port, frame(5, kind)) == [(1, frame(5, 0x99))]

    def insert(parser: int, kind: int, pipe: int = ALL_PIPES) -> Any:
        entry = client.entry("known", {"f1": (kind, 0xFFFF)})
        return client.write(("INSERT", entry), target={"pipe_id": pipe, "prsr_id": parser})

    insert(7, 0x1111)  # for all, whichever it names
    assert [noted(port, 0x1111) for port in (0, 31, 2 << 7 | 70)] == [True] * 3
    assert "its scope can change while it has no entries" in _error(lambda: by_parser(client, 0, 1))
    client.write(("DELETE", client.entry("known", None)))
    by_parser(client, 0, 1)
    (shown,) = client.read_entities(client.attribute("known", "entry_scope"))
    assert shown.table_attribute.entry_scope.prsr_scope.predef == 1
    insert(0, 0x1111)
    insert(2, 0x1111)
    insert(2, 0x2222)
    for pipe in (0, 3):  # parsers of all pipes; ports 4 n to 4 n + 3 are parser n's
        ports = [pipe << 7 | local for local in (0, 3, 4, 7, 8, 11, 12, 68)]
        assert [noted(port, 0x1111) for port in ports] == [True, True, False, False,
                                                           True, True, False, False]  # fmt: skip
        assert [noted(port, 0x2222) for port in ports] == [False] * 4 + [True, True, False, False]
    assert of_parser(client, 2) == [(0x1111, 0xFFFF), (0x2222, 0xFFFF)]
    assert of_parser(client, 1) == []
    assert len(of_parser(client, 0xFF)) == 3
    assert "prsr_id), 0 to 17" in _error(lambda: insert(18, 1))
    assert "the entry exists" in _error(lambda: insert(2, 0x2222))
    device.load_state(device.save_state())
    assert [noted(port, 0x2222) for port in (0, 8)] == [False, True]
    entry = client.entry("known", {"f1": (0x2222, 0xFFFF)})
    client.write(("DELETE", entry), target={"pipe_id": ALL_PIPES, "prsr_id": 2})
    assert not noted(8, 0x2222)
    everywhere = {"pipe_id": ALL_PIPES, "prsr_id": 0xFF}
    client.write(("DELETE", client.entry("known", None)), target=everywhere)
    by_parser(client, 1, 1)  # each parser of each pipe
    insert(1, 0x3333, pipe=2)
    assert [noted(pipe << 7 | 5, 0x3333) for pipe in range(4)] == [False, False, True, False]
    assert of_parser(client, 1, pipe=1) == []


def test_other_tables_have_no_scope_by_parser(interpreted: Served) -> None:
    _, client = interpreted
    entity = client.attribute("macs", "entry_scope")
    entity.table_attribute.entry_scope.prsr_scope.predef = 1
    assert "a pipe's parsers share its entries" in _error(lambda: client.write(("MODIFY", entity)))


def test_the_state_of_each_pipe_is_saved(interpreted: Served) -> None:
    device, client = interpreted
    scope(client, "macs", predef=1)
    scope(client, "per_port", predef=1)
    for pipe in (0, 2):
        in_pipe(client, pipe, "INSERT",
                client.entry("macs", {"h.ethernet.dst": 5}, "send", port=pipe + 1))  # fmt: skip
        device.process(pipe << 7, frame(5))
    text = device.save_state()
    device.load_state(text)
    assert device.process(2 << 7, frame(5)) == [(3, frame(5))]
    assert device.process(1 << 7, frame(5)) == []
    assert device.process(0, frame(5)) == [(1, frame(5))]
    pipeline = device.pipeline
    assert pipeline is not None
    counts = [int(r.read(5)) for r in pipeline.state.pipe_registers("Ingress.totals")]
    assert counts == [2, 1, 2, 0]
    counters = [p.counters["Ingress.per_port"] for p in pipeline.state.scopes.pipes]
    assert [c.read(2 << 7)[0] for c in counters] == [0, 0, 2, 0]


def test_the_algorithm_of_a_hash_changes(served: Served) -> None:
    device, client = served
    client.add("macs", {"h.ethernet.dst": 0x313233343536}, "send", port=1)

    def found() -> int:
        ((_, packet),) = device.process(0, frame(0x313233343536, 0xEEEE))
        return int.from_bytes(packet[12:14], "big")

    def algorithm(action: str, **data: Any) -> None:
        client.write(("MODIFY", client.entry("digest.algorithm", None, action, **data)))

    def computed() -> int:
        (entry,) = client.read("digest.compute", {"h.ethernet.dst": 0x313233343536})
        return int(entry["hash_value"])

    assert client.default("digest.algorithm")["algorithm_name"] == "XOR"
    assert found() == computed() == 0x3132 ^ 0x3334 ^ 0x3536
    algorithm("pre_defined", algorithm_name="CRC_32")
    assert found() == computed() == binascii.crc32(b"123456") & 0xFFFF
    algorithm("user_defined", polynomial=0x1021, hash_bit_width=16)
    assert found() == binascii.crc_hqx(b"123456", 0)
    algorithm("user_defined", polynomial=0x1021, hash_bit_width=16, init=0x1D0F)
    assert found() == binascii.crc_hqx(b"123456", 0x1D0F)
    shown = client.default("digest.algorithm")
    assert (shown["polynomial"], shown["init"], shown["hash_bit_width"]) == (0x1021, 0x1D0F, 16)
    reply = "final_xor 0x10000 does not fit 16 bits"
    assert reply in _error(
        lambda: algorithm("user_defined", polynomial=1, hash_bit_width=16, final_xor=1 << 16)
    )
    algorithm("pre_defined", algorithm_name="CRC_16", seed=7)
    assert client.default("digest.algorithm")["init"] == 7
    algorithm("pre_defined", algorithm_name="XOR")
    assert found() == 0x3132 ^ 0x3334 ^ 0x3536
    other = "IDENTITY is not the program's algorithm: use XOR, or the name of a CRC"
    assert other in _error(lambda: algorithm("pre_defined", algorithm_name="IDENTITY"))
    reply = "XOR takes no seed: use XOR, or the name of a CRC"
    assert reply in _error(lambda: algorithm("pre_defined", algorithm_name="XOR", seed=1))


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_a_computed_hash_is_that_of_packets(engine: str) -> None:
    """Constants, parts of fields and whole headers are hashed as in the program."""
    sw = tnaprograms.switch(
        engine,
        ingress_locals="""
            CRCPolynomial<bit<16>>(0x1021, false, false, false, 0xFFFF, 0) ccitt;
            Hash<bit<12>>(HashAlgorithm_t.CUSTOM, ccitt) first;
            Hash<bit<16>>(HashAlgorithm_t.CRC32) second;
            Hash<bit<16>>(HashAlgorithm_t.CRC16) third;""",
        ingress="""
            tm.ucast_egress_port = 1;
            bit<16> found = 0;
            if (h.a.kind == 1) { found = 4w0 ++ first.get({ h.a.x[3:0], 16w0x1234, h.a.y }); }
            else if (h.a.kind == 2) { found = second.get(h.a); }
            else if (h.a.kind == 3) { found = third.get({ h.a.x }); }
            else { found = third.get({ h.a.y }); }
            h.a.y = found[15:8]; h.a.z = found[7:0];""",
    )
    schema = ProgramSchema(Catalog(sw.program))
    tables = program_tables(schema, sw.store)
    made = {t.schema.name.rpartition("ingress.")[2]: t for t in tables.values()}
    scope = Scope(range(4), True)
    key: Key = {"h.a.x[3:0]": (5,), "h.a.y": (0x77,)}
    _, data = made["first.compute"].find(scope, key)
    ((_, sent),) = sw.process(0, tnaprograms.packet(1, 0xA5, 0x77))
    assert data.values["hash_value"] == int.from_bytes(sent[2:4], "big")
    _, data = made["second.compute"].find(scope, {"h.a.kind": (2,), "h.a.y": (9,)})
    ((_, sent),) = sw.process(0, tnaprograms.packet(2, 0, 9))
    assert data.values["hash_value"] == int.from_bytes(sent[2:4], "big")
    assert "third.compute" not in made and "third.algorithm" in made


def test_saved_state_has_the_algorithms_of_hashes(served: Served) -> None:
    device, client = served
    client.add("macs", {"h.ethernet.dst": 0x313233343536}, "send", port=1)
    crc = {"polynomial": 0x1021, "hash_bit_width": 16, "init": 0x1D0F}
    client.write(("MODIFY", client.entry("digest.algorithm", None, "user_defined", **crc)))
    text = device.save_state()
    client.write(("MODIFY", client.entry("digest.algorithm", None, "pre_defined",
                                         algorithm_name="XOR")))  # fmt: skip
    device.load_state(text)
    ((_, found),) = device.process(0, frame(0x313233343536, 0xEEEE))
    assert int.from_bytes(found[12:14], "big") == binascii.crc_hqx(b"123456", 0x1D0F)
    assert client.default("digest.algorithm")["init"] == 0x1D0F
    for wrong, message in (
        (text.replace("Ingress.digest", "Ingress.other"), "there is no hash Ingress.other"),
        (text.replace('"polynomial": 4129', '"polynomial": 65536'), "65536 does not fit 16 bits"),
    ):
        with pytest.raises(RpcError) as caught:
            device.load_state(wrong)
        assert message in caught.value.message


def test_idle_entries_of_pipes_are_reported_with_their_pipe(served: Served) -> None:
    device, client = served
    scope(client, "macs", predef=1)
    idle = client.attribute("macs", "idle_table", enable=True, idle_table_mode=1, min_ttl=1,
                            max_ttl=60_000, ttl_query_interval=5)  # fmt: skip
    client.write(("INSERT", idle))
    key = {"h.ethernet.dst": 5}
    for pipe, ttl in ((0, 60_000), (3, 5)):
        entry = client.entry("macs", key, "Ingress.send", port=1, ENTRY_TTL=ttl)
        in_pipe(client, pipe, "INSERT", entry)
    notice = client.next_message("idle_timeout_notification")
    assert (notice.type, notice.target.pipe_id) == (1, 3)
    assert client.shown("macs", notice.table_entry)["h.ethernet.dst"] == 5
    device.process(0, frame(5))  # hits the first pipe's entry only
    device.process(3 << 7, frame(5))
    notice = client.next_message("idle_timeout_notification")
    assert (notice.type, notice.target.pipe_id) == (0, 3)


def _error(call: Any) -> str:
    """Return the message of a request that is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return str(caught.value)


def test_a_direct_register_has_a_value_for_each_pipe() -> None:
    """All pipes share the entry. A request to read may name one of them."""
    sw = tnaprograms.switch(
        ingress_locals="""
            DirectRegister<bit<16>>(3) seen;
            DirectRegisterAction<bit<16>, bit<16>>(seen) more = {
                void apply(inout bit<16> value) { value = value + 1; }
            };
            action count() { more.execute(); }
            table flows {
                key = { h.a.x : exact; }
                actions = { count; }
                registers = seen;
            }""",
        ingress="tm.ucast_egress_port = 1; flows.apply();",
    )
    tables = program_tables(ProgramSchema(Catalog(sw.program)), sw.store)
    (flows,) = (t for t in tables.values() if t.schema.name.endswith("ingress.flows"))
    everywhere, key = Scope(range(4), True), {"h.a.x": (7,)}
    (action,) = (a for a in flows.schema.actions if a.name.endswith("count"))
    (name,) = (f.name for f in flows.schema.data if f.name.endswith("seen.f1"))

    def values(scope: Scope) -> list[int]:
        found: list[int] = flows.find(scope, key)[1].values[name]
        return found

    flows.add(everywhere, key, Data(action, {}))
    assert values(everywhere) == [3, 3, 3, 3]
    for pipe in (1, 3, 3):
        sw.process(pipe << 7, tnaprograms.packet(0, 7))
    assert values(everywhere) == [3, 4, 3, 5]
    assert values(Scope(range(3, 4), False)) == [5]
    with pytest.raises(ZeroDivisionError), sw.store.batch():
        flows.modify(everywhere, key, Data(None, {name: [10, 20, 30, 40]}), Flags())
        assert values(everywhere) == [10, 20, 30, 40]
        raise ZeroDivisionError
    assert values(everywhere) == [3, 4, 3, 5]
    flows.modify(everywhere, key, Data(None, {name: [9]}), Flags())
    assert values(everywhere) == [9, 9, 9, 9]
    with pytest.raises(RpcError, match="2 values, but pipe 2 needs one"), sw.store.batch():
        flows.modify(everywhere, key, Data(None, {name: [1, 2]}), Flags())
    assert values(everywhere) == [9, 9, 9, 9]
    with pytest.raises(RpcError, match="2 values, but pipe 2 needs one"), sw.store.batch():
        flows.add(everywhere, {"h.a.x": (8,)}, Data(action, {name: [1, 2]}))
    assert flows.usage(everywhere) == 1


@pytest.mark.parametrize(("include", "width", "size"), [("tna.p4", 64, 8), ("t2na.p4", 128, 24)])
def test_the_default_field_of_port_metadata_is_its_first_bits(
    include: str, width: int, size: int
) -> None:
    """Behind Tofino 2's 128 bits are 64 that no entry sets."""
    sw = tnaprograms.switch("interpreter", include=include, ingress="tm.ucast_egress_port = 1;")
    tables = program_tables(ProgramSchema(Catalog(sw.program)), sw.store)
    (table,) = (t for t in tables.values() if t.schema.name.endswith("$PORT_METADATA"))
    (field,) = table.schema.data
    assert field.type.width == width
    everywhere, key = Scope(range(4), True), {table.schema.keys[0].name: (5,)}
    number = (0xAB << (width - 8)) + 0xCD
    table.add(everywhere, key, Data(None, {"$DEFAULT_FIELD": number}))
    held = sw.state.port_metadata[5].tobytes()
    assert (held[0], held[width // 8 - 1], len(held)) == (0xAB, 0xCD, size)
    assert not any(held[width // 8 :])
    assert table.find(everywhere, key)[1].values == {"$DEFAULT_FIELD": number}


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_pipes_adjust_what_their_meters_measure(engine: str) -> None:
    """In the scope of one pipe; the table of a direct meter and the meter have it together."""
    sw = tnaprograms.switch(
        engine,
        ingress_locals="""
            Meter<bit<8>>(16, MeterType_t.BYTES) police;
            DirectMeter(MeterType_t.BYTES) rate;
            action measure() { h.a.y = (bit<8>) rate.execute(adjust_byte_count = 4); }
            table rates {
                key = { h.a.kind : exact; } actions = { measure; } meters = rate; size = 4;
            }""",
        ingress="tm.ucast_egress_port = 1; h.a.x = police.execute(0); rates.apply();",
    )
    tables = program_tables(ProgramSchema(Catalog(sw.program)), sw.store).values()
    police, rates = (
        next(t for t in tables if t.schema.name.endswith(f"ingress.{name}"))
        for name in ("police", "rates")
    )
    everywhere, third = Scope(range(4), True), Scope(range(2, 3), False)

    def adjust(table: Any, scope: Scope, number: int) -> None:
        message = bf.message("TableAttribute")()
        message.byte_count_adj.byte_count_adjust = number
        table.set_attribute(scope, "byte_count_adj", message)

    def adjusted(table: Any) -> list[int]:
        found = []
        for pipe in range(4):
            message = bf.message("TableAttribute")()
            table.attribute(Scope(range(pipe, pipe + 1), False), "byte_count_adj", message)
            found.append(message.byte_count_adj.byte_count_adjust)
        return found

    message = bf.message("TableAttribute")()
    message.entry_scope.pipe_scope.predef = 1
    for table in (police, rates):
        table.set_attribute(everywhere, "entry_scope", message)
        adjust(table, everywhere, 8)
        adjust(table, third, 20)
        assert adjusted(table) == [8, 8, 20, 8]
    spec = {"$METER_SPEC_CIR_KBPS": 0, "$METER_SPEC_PIR_KBPS": 0, "$METER_SPEC_CBS_KBITS": 1,
            "$METER_SPEC_PBS_KBITS": 1}  # fmt: skip
    police.modify(everywhere, {"$METER_INDEX": (0,)}, Data(None, spec), Flags())
    for pipe in (0, 2):
        sw.process(pipe << 7, tnaprograms.packet())
    meters = [pipe.meters["ingress.police"] for pipe in sw.state.scopes.pipes]
    left = [meter.cell(0).committed for meter in meters]
    size = len(tnaprograms.packet()) + 4  # with the frame's checksum
    assert [left[1] - one for one in left] == [size + 8, 0, size + 20, 0]
    records = dump(sw.store)
    sw.reset()
    assert adjusted(police) == [0, 0, 0, 0]
    load(sw.store, records)
    assert adjusted(police) == adjusted(rates) == [8, 8, 20, 8]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_a_packet_goes_through_folded_pipes(engine: str) -> None:
    """Ports in loopback mode lead from pipe to pipe, as in SwitchML's packets of 256 numbers: each
    pipe adds one number of a packet to its own register."""
    sw = tnaprograms.switch(
        engine,
        ingress_locals="""
            Register<bit<8>, bit<1>>(1) sums;
            RegisterAction<bit<8>, bit<1>, bit<8>>(sums) kind = {
                void apply(inout bit<8> sum, out bit<8> now) { sum = sum + h.a.kind; now = sum; } };
            RegisterAction<bit<8>, bit<1>, bit<8>>(sums) x = {
                void apply(inout bit<8> sum, out bit<8> now) { sum = sum + h.a.x; now = sum; } };
            RegisterAction<bit<8>, bit<1>, bit<8>>(sums) y = {
                void apply(inout bit<8> sum, out bit<8> now) { sum = sum + h.a.y; now = sum; } };
            RegisterAction<bit<8>, bit<1>, bit<8>>(sums) z = {
                void apply(inout bit<8> sum, out bit<8> now) { sum = sum + h.a.z; now = sum; } };
            action next(PortId_t port) { tm.ucast_egress_port = port; tm.bypass_egress = 1; }
            table steps {
                key = { ig.ingress_port : exact; } actions = { next; } size = 8;
            }""",
        ingress="""
            if (ig.ingress_port[8:7] == 0) { h.a.kind = kind.execute(0); }
            else if (ig.ingress_port[8:7] == 1) { h.a.x = x.execute(0); }
            else if (ig.ingress_port[8:7] == 2) { h.a.y = y.execute(0); }
            else { h.a.z = z.execute(0); }
            steps.apply();""",
    )
    controller = Controller(sw)
    folded = [pipe << 7 | 4 for pipe in range(4)]
    for port, following in zip(folded, [*folded[1:], 9], strict=True):
        controller.add("steps", {"ig.ingress_port": port}, "next", port=following)
    for port in folded[1:]:
        controller.add("$PORT", {"$DEV_PORT": port}, SPEED="BF_SPEED_100G", FEC="BF_FEC_TYP_NONE",
                       LOOPBACK_MODE="BF_LPBK_MAC_NEAR", PORT_ENABLE=True)  # fmt: skip
    assert sw.process(4, bytes([1, 2, 3, 4])) == [(9, bytes([1, 2, 3, 4]))]
    assert sw.process(4, bytes([10, 20, 30, 40])) == [(9, bytes([11, 22, 33, 44]))]
    (cell,) = controller.read("sums", {"$REGISTER_INDEX": 0})
    assert cell["ingress.sums.f1"] == [11, 22, 33, 44]
    controller.write(("DELETE", controller.entry("$PORT", {"$DEV_PORT": folded[2]})))
    assert sw.process(4, bytes(4)) == [(folded[2], bytes([11, 22, 0, 0]))]  # out there
