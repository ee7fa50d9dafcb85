"""Values of types that are translated to strings: names such as "vrf-blue" in place of numbers."""

from __future__ import annotations

import json
from typing import Any

import finsy
import pytest
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch import Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.p4data import show_data
from gradplane.switch.p4runtime.read import read
from gradplane.switch.p4runtime.service import PacketIns
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError
from gradplane.switch.p4runtime.write import write
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.translations import Translation

TEXT = """
#include <core.p4>
#include <v1model.p4>
@p4runtime_translation("", string) type bit<9> port_t;
@p4runtime_translation("", string)
@p4runtime_translation_mappings({ {"", 0}, {"vrf-default", 3} })
type bit<10> vrf_t;
header h_t { bit<16> vrf; bit<32> dst; }
@controller_header("packet_in") header in_t { port_t ingress; @padding bit<7> pad; }
struct H { in_t cpu; h_t h; }
struct M { vrf_t vrf; port_t port; }
struct note_t { vrf_t vrf; bit<32> dst; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control C(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    register<vrf_t>(4) seen;
    action forward(port_t port) { m.port = port; s.egress_spec = (bit<9>) port; }
    action punt() { s.egress_spec = 510; }
    table routes {
        key = { m.vrf : exact @name("vrf"); m.port : optional @name("port"); }
        actions = { forward; punt; NoAction; }
    }
    apply {
        m.vrf = (vrf_t) (bit<10>) h.h.vrf;
        m.port = (port_t) s.ingress_port;
        routes.apply();
        seen.write(0, m.vrf);
        digest<note_t>(1, { m.vrf, h.h.dst });
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) {
    apply {
        if (s.egress_port == 510) { h.cpu.setValid(); h.cpu.ingress = (port_t) s.ingress_port; }
    }
}
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


class Client:
    """Writes and reads entries of `routes`."""

    def __init__(self, text: str = TEXT, **fixed: Any) -> None:
        program = compile_program("vrf.p4", text=text)
        self.device = Device(
            lambda source: program, lambda p: Switch(p, cpu_port=510), fixed_names=fixed
        )
        self.device.load(program)
        assert self.device.pipeline is not None
        self.schema = finsy.P4Schema(self.device.pipeline.config.p4info)

    def route(self, vrf: str, to: str, port: str | None = None) -> str:
        match = finsy.Match(vrf=vrf) if port is None else finsy.Match(vrf=vrf, port=port)
        action = finsy.P4TableAction("forward", port=to)
        entry = finsy.P4TableEntry("routes", match=match, action=action, priority=1)
        [message] = finsy.p4entity.encode_entities([entry], self.schema)
        try:
            write(self.device.target, [p4r.Update(type=p4r.Update.INSERT, entity=message)])
        except BatchError as error:
            return str(error.errors[0])
        return ""

    def routes(self) -> list[tuple[Any, Any]]:
        query = p4r.Entity()
        query.table_entry.SetInParent()
        found = []
        for answer in read(self.device.target, [query]):
            for message in answer.entities:
                entry: Any = finsy.p4entity.decode_entity(message, self.schema)
                assert entry.match is not None and entry.action is not None
                found.append((dict(entry.match), dict(entry.action.args)))
        return found

    def number(self, type_name: str, name: str) -> int:
        assert self.device.pipeline is not None
        return self.device.pipeline.catalog.translations[type_name].number(name)


@pytest.mark.p4runtime("8.4.6-2 18.1.3-1 18.1.4-1")
def test_names_are_what_was_written() -> None:
    client = Client()
    assert client.route("vrf-blue", "Ethernet0") == ""
    assert client.route("vrf-red", "Ethernet4", "Ethernet0") == ""
    assert client.routes() == [
        ({"vrf": "vrf-blue"}, {"port": "Ethernet0"}),
        ({"vrf": "vrf-red", "port": "Ethernet0"}, {"port": "Ethernet4"}),
    ]
    blue, red = client.number("vrf_t", "vrf-blue"), client.number("vrf_t", "vrf-red")
    assert (blue, red) == (1, 2)
    packet = bytes([0, red]) + bytes(4)
    assert client.device.process(client.number("port_t", "Ethernet0"), packet) == [
        (client.number("port_t", "Ethernet4"), packet)
    ]


def test_a_request_that_fails_or_only_asks_gives_no_numbers() -> None:
    client = Client()
    assert client.route("vrf-blue", "Ethernet0") == ""
    known = client.device.save_state()
    good = finsy.P4TableEntry(
        "routes", match=finsy.Match(vrf="a"), action=finsy.P4TableAction("forward", port="b")
    )
    good.priority = 1
    unknown = finsy.P4TableEntry("routes", match=finsy.Match(vrf="c", port="d"), priority=1)
    inserted, asked = finsy.p4entity.encode_entities([good, unknown], client.schema)
    list(read(client.device.target, [asked]))
    with pytest.raises(BatchError, match="NOT_FOUND|it has no entry"):
        write(client.device.target, [p4r.Update(type=p4r.Update.DELETE, entity=asked)])
    both = [
        p4r.Update(type=p4r.Update.INSERT, entity=inserted),
        p4r.Update(type=p4r.Update.MODIFY, entity=asked),
    ]
    with pytest.raises(BatchError):
        write(client.device.target, both, p4r.WriteRequest.ROLLBACK_ON_ERROR)
    assert client.device.save_state() == known
    with pytest.raises(BatchError):
        write(client.device.target, both)
    assert client.number("vrf_t", "a") == 2 and client.number("port_t", "b") == 2
    assert client.number("vrf_t", "c") == 4  # 3 is the program's


def test_no_name_gets_a_number_of_the_sources_entries_and_defaults() -> None:
    text = TEXT.replace(
        "actions = { forward; punt; NoAction; }",
        "actions = { forward; punt; NoAction; } default_action = forward((port_t) 1);"
        " entries = { priority=1: ((vrf_t) 1, _) : punt(); }",
    )
    client = Client(text)
    assert client.number("vrf_t", "vrf-blue") == 2 and client.number("port_t", "Ethernet0") == 2
    assert client.route("1", "1", "1") == ""  # digits stand for them


def test_digits_stand_for_their_number_and_for_themselves() -> None:
    client = Client()
    assert client.route("7", "1") == ""
    assert client.device.process(5, bytes([0, 7, 0, 0, 0, 0]))[0][0] == 1
    assert client.routes() == [({"vrf": "7"}, {"port": "1"})]


def test_the_program_and_a_file_fix_names() -> None:
    client = Client(vrf_t={"vrf-blue": 9}, port_t={"Ethernet0": 20})
    assert [client.number("vrf_t", n) for n in ("", "vrf-default", "vrf-blue")] == [0, 3, 9]
    assert client.route("", "Ethernet0") == ""
    assert client.device.process(1, bytes(6))[0][0] == 20
    for fixed, reason in (
        ({"vrf_t": {"x": 3}}, "type vrf_t: 'x' = 3 is beside 'vrf-default'"),
        ({"vrf_t": {"x": 1024}}, "type vrf_t: 1024 does not fit bit<10>"),
        (
            {"vrfs": {}},
            "names are given for vrfs, which is no type that is translated to strings; there are:"
            " port_t, vrf_t",
        ),
    ):
        with pytest.raises(RpcError) as error:
            Client(**fixed)
        assert error.value.message == reason


@pytest.mark.p4runtime("16.1-6 18.1.1-1 18.1.2-1")
def test_names_in_registers_digests_and_packet_ins() -> None:
    client = Client()
    assert client.route("vrf-blue", "Ethernet0") == ""
    pipeline = client.device.pipeline
    assert pipeline is not None
    messages: list[Any] = []
    pipeline.state.listener = messages.append
    packet = bytes([0, 1, 10, 0, 0, 1])
    client.device.process(client.number("port_t", "Ethernet8"), packet)
    query = p4r.Entity()
    query.register_entry.register_id = next(iter(pipeline.catalog.registers))
    query.register_entry.index.index = 0
    [answer] = read(client.device.target, [query])
    assert answer.entities[0].register_entry.data.bitstring == b"vrf-blue"
    [digest] = messages
    found = pipeline.catalog.digest_of(digest.name, digest.type)
    assert found is not None and found.data is not None
    shown = show_data(found.data, digest.data, pipeline.catalog)
    assert shown.struct.members[0].bitstring == b"vrf-blue"
    messages.clear()
    assert client.route("vrf-cpu", "510") == ""
    client.device.process(client.number("port_t", "Ethernet8"), bytes([0, 2]) + bytes(4))
    encoded = PacketIns(pipeline.catalog).encode(messages[-1].packet)
    punted = p4r.StreamMessageResponse.FromString(encoded.data)
    assert [m.value for m in punted.packet.metadata] == [b"Ethernet8", b"\0"]


@pytest.mark.p4runtime("18.1.5-1")
def test_ports_of_replicas_and_watched_ports_have_names() -> None:
    """The type of `ingress_port` in the packet-in is that of ports, as in programs on SAI."""
    text = (
        TEXT.replace("port_t ingress;", "port_t ingress_port;")
        .replace("h.cpu.ingress =", "h.cpu.ingress_port =")
        .replace("action punt", "action_selector(HashAlgorithm.crc16, 8, 8) paths; action punt")
        .replace(
            "    apply {\n        m.vrf",
            """    table spread {
        key = { h.h.vrf : exact; h.h.dst : selector; }
        actions = { forward; }
        implementation = paths;
    }
    apply {
        spread.apply();
        m.vrf""",
        )
    )
    client = Client(text, port_t={"Ethernet0": 5, "Ethernet4": 6})
    table = client.schema.tables["spread"]
    shot, group = p4r.Entity(), p4r.Entity()
    shot.table_entry.table_id = table.id
    shot.table_entry.match.add(field_id=1).exact.value = b"\1"
    for name in (b"Ethernet0", b"Ethernet4"):
        one = shot.table_entry.action.action_profile_action_set.action_profile_actions.add()
        one.weight, one.watch_port = 1, name
        one.action.action_id = client.schema.actions["forward"].id
        one.action.params.add(param_id=1, value=name)
    made = group.packet_replication_engine_entry.multicast_group_entry
    made.multicast_group_id = 3
    first = made.replicas.add(port=b"Ethernet0", instance=1)
    first.backup_replicas.add(port=b"Ethernet4", instance=2)
    updates = [p4r.Update(type=p4r.Update.INSERT, entity=e) for e in (shot, group)]
    write(client.device.target, updates)
    queries = [p4r.Entity(), p4r.Entity()]
    queries[0].table_entry.table_id = table.id
    queries[1].packet_replication_engine_entry.multicast_group_entry.SetInParent()
    for _ in range(2):
        found = [e for a in read(client.device.target, queries) for e in a.entities]
        assert found == [shot, group]
        client.device.load_state(client.device.save_state())
    [replica] = client.device.target.store.replication.groups.replicas(3)
    assert (replica.port, replica.backups[0].port) == (5, 6)
    frames = [bytes([0, 1]) + number.to_bytes(4, "big") for number in range(20)]
    assert {client.device.process(9, frame)[0][0] for frame in frames} == {5, 6}
    links = client.device.target.state.links
    links.set(5, up=False)
    assert {client.device.process(9, frame)[0][0] for frame in frames} == {6}

    links.ports = frozenset({5, 6})
    for port, wrong in (
        (b"Ethernet8", "watch_port 1 is no port of the switch; there are: 5, 6"),
        (b"\x01\x00", "watch_port 256 is no port of the switch; there are: 5, 6"),
        (b"\xff\xff", "watch_port: value 65535 does not fit bit<9> (0 to 511)"),
    ):
        one.watch_port = port
        with pytest.raises(BatchError) as error:
            write(client.device.target, [p4r.Update(type=p4r.Update.MODIFY, entity=shot)])
        assert str(error.value.errors[0]) == f"INVALID_ARGUMENT: table I.spread: {wrong}"
    one.watch_port = b"\x06"  # no text: a number
    write(client.device.target, [p4r.Update(type=p4r.Update.MODIFY, entity=shot)])
    [answer] = read(client.device.target, queries[:1])
    chosen = answer.entities[0].table_entry.action.action_profile_action_set
    assert chosen.action_profile_actions[1].watch_port == b"Ethernet4"


def test_names_in_traces_and_messages() -> None:
    client = Client()
    assert client.route("vrf-blue", "1", "Ethernet0") == ""
    assert client.device.pipeline is not None
    switch: Any = client.device.pipeline.switch
    port = client.number("port_t", "Ethernet0")
    text = switch.trace(port, bytes([0, 1]) + bytes(4)).text()
    assert 'hit vrf "vrf-blue", port "Ethernet0", priority 1;' in text
    assert f'I.forward(port "1" ({client.number("port_t", "1")}))' in text
    assert client.route("vrf-blue", "1", "Ethernet0") == (
        'ALREADY_EXISTS: table I.routes: it has an entry for vrf "vrf-blue", port "Ethernet0",'
        " priority 1"
    )


def test_what_is_no_name_is_refused() -> None:
    client = Client()
    [message] = finsy.p4entity.encode_entities(
        [finsy.P4TableEntry("routes", match=finsy.Match(vrf="a"), priority=1)], client.schema
    )
    for data, reason in ((b"\xff", "invalid start byte at byte 0"), (b"a" * 300, "300 bytes")):
        message.table_entry.match[0].exact.value = data
        with pytest.raises(BatchError) as error:
            write(client.device.target, [p4r.Update(type=p4r.Update.DELETE, entity=message)])
        assert "is no name in UTF-8" in str(error.value) and reason in str(error.value)


def test_a_mask_of_names_is_a_number() -> None:
    client = Client(TEXT.replace("m.vrf : exact", "m.vrf : ternary"))
    table = client.schema.tables["routes"]
    message = p4r.Entity()
    entry = message.table_entry
    entry.table_id, entry.priority = table.id, 1
    entry.match.add(field_id=1).ternary.value = b"vrf-blue"
    entry.action.action.action_id = client.schema.actions["punt"].id
    update = p4r.Update(type=p4r.Update.INSERT, entity=message)
    ternary = update.entity.table_entry.match[0].ternary
    for mask in ("vrf-red", "1024", ""):
        ternary.mask = mask.encode()
        with pytest.raises(BatchError) as error:
            write(client.device.target, [update])
        assert str(error.value.errors[0]) == (
            f"INVALID_ARGUMENT: table I.routes: field vrf: mask: {mask!r} is a name; a mask of"
            " names is decimal digits, a number of bit<10>"
        )
    ternary.mask = b"1023"
    write(client.device.target, [update])
    [answer] = read(client.device.target, [p4r.Entity(table_entry=p4r.TableEntry())])
    assert answer.entities[0].table_entry.match[0].ternary == ternary
    assert client.number("vrf_t", "vrf-red") == 2  # no mask has got a number


def test_saved_state_keeps_the_numbers() -> None:
    client = Client()
    for name in ("vrf-red", "vrf-blue"):
        assert client.route(name, "Ethernet0") == ""
    state = client.device.save_state()
    assert json.loads(state)["translations"]["vrf_t"]["vrf-blue"] == 2
    client.device.load_state(state)
    assert client.number("vrf_t", "vrf-blue") == 2
    assert [match["vrf"] for match, _ in client.routes()] == ["vrf-red", "vrf-blue"]


@given(st.lists(st.one_of(st.text(max_size=3), st.integers(0, 20)), max_size=30))
def test_names_and_numbers_are_a_bijection(steps: list[str | int]) -> None:
    translation = Translation("t", 4)
    for step in steps:
        try:
            if isinstance(step, str):
                assert translation.name(translation.number(step)) == step
            elif step < 16:
                assert translation.number(translation.name(step)) == step
        except TableError as error:
            assert error.code == "RESOURCE_EXHAUSTED"
            assert len(dict(translation.items())) == 16
    numbers = [number for _, number in translation.items()]
    assert len(set(numbers)) == len(numbers)
