"""Requirements of the P4Runtime specification that no other test covers, and the page of all."""

from __future__ import annotations

import runpy
import threading
from pathlib import Path

import pytest
from finsy.proto import U128, p4r, stratum
from hand_made_device import DELETE, INSERT, MODIFY, announce, entity, read_all, request

from gradplane.switch import Switch
from gradplane.switch.compiler import compile_source
from gradplane.switch.p4runtime import server
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.p4runtime.service import P4RuntimeService
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError
from gradplane.switch.runtime.control_messages import PacketIn
from gradplane.switch.source import CompileError

TEXT = """
#include <core.p4>
#include <v1model.p4>
type bit<16> kind_t;
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; }
struct M { }
struct pair_t { @match(ternary) bit<8> first; @id(7) kind_t second; }
@brief("What a parser does.")
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    value_set<bit<8>>(2) single;
    value_set<pair_t>(2) pair;
    state start {
        p.extract(h.h);
        transition select(h.h.a) { single: marked; default: more; }
    }
    state more {
        transition select(h.h.a, (kind_t) h.h.c) { pair: marked; default: accept; }
    }
    state marked { h.h.c = 0xffff; transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    @two_rate_three_color meter(4, MeterType.packets) two;
    @single_rate_three_color meter(4, MeterType.packets) three;
    @single_rate_two_color meter(4, MeterType.packets) colours;
    counter(4, CounterType.packets) seen;
    register<bit<8>>(4) kept;
    direct_meter<bit<8>>(MeterType.packets) pace;
    action set(bit<8> v) { h.h.b = v; }
    action paced() { pace.read(h.h.b); }
    action flood(bit<16> group) { s.mcast_grp = group; }
    @brief("Marks.") @description("In full.") @note[1, 1 == 2]
    table t {
        key = { h.h.a : ternary; } actions = { set; flood; NoAction; }
        support_timeout = true;
        const default_action = set(5);
    }
    table fixed {
        key = { h.h.a : exact; } actions = { set; NoAction; }
        const entries = { 1 : set(1); }
    }
    table given {
        key = { h.h.a : exact; } actions = { set; NoAction; }
        entries = { const 1 : set(1); 2 : set(2); }
    }
    table ordered {
        key = { h.h.a : ternary; } actions = { set; NoAction; }
        entries = { priority=7: 1 : set(1); 2 : set(2); }
    }
    table none { actions = { set; NoAction; } }
    table limited { key = { h.h.a : exact; } actions = { paced; NoAction; } meters = pace; }
    @max_group_size(4) action_selector(HashAlgorithm.crc16, 32w8, 32w8) sel;
    table chosen {
        key = { h.h.a : exact; h.h.b : selector; } actions = { set; NoAction; }
        implementation = sel;
    }
    @weights_disallowed action_selector(HashAlgorithm.crc16, 32w8, 32w8) even;
    table evenly {
        key = { h.h.a : exact; h.h.b : selector; } actions = { set; NoAction; }
        implementation = even;
    }
    action_profile(2) prof;
    table plain {
        key = { h.h.a : exact; } actions = { set; NoAction; } implementation = prof;
    }
    apply {
        s.egress_spec = 1;
        fixed.apply(); given.apply(); ordered.apply(); none.apply(); limited.apply();
        chosen.apply(); plain.apply(); evenly.apply(); t.apply();
        bit<8> colour;
        two.execute_meter(0, colour);
        three.execute_meter(0, colour);
        colours.execute_meter(0, colour);
        seen.count(0);
        @atomic { kept.read(colour, 0); kept.write(0, colour + 1); }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
@pkginfo(arch="other", name="marks") V1Switch(P(), V(), I(), E(), V(), D()) main;
"""
PROGRAM = compile_source("conformance.p4", text=TEXT).program
INFO = build_p4info(PROGRAM)
TABLES = {t.preamble.alias: t for t in INFO.tables}
SET = 'action { action { action_id: $set params { param_id: 1 value: "\\%03o" } } }'
ENTRY = 'table_entry { table_id: $%s match { field_id: 1 exact { value: "\\%03o" } } %s }'
WILD = (
    'table_entry { table_id: $t match { field_id: 1 ternary { value: "\\%03o" mask: "\\%03o" } }'
    " priority: %d %s }"
)


class World:
    """A service of the program, with controller "c" as the primary."""

    def __init__(self) -> None:
        self.device = Device(lambda _: PROGRAM, lambda program: Switch(program))
        self.device.load(PROGRAM)
        self.service = P4RuntimeService(self.device)
        self.service.stream_message("c", announce(1))

    @property
    def switch(self) -> Switch:
        assert self.device.pipeline is not None
        assert isinstance(self.device.pipeline.switch, Switch)
        return self.device.pipeline.switch

    def write(self, kind: int, text: str) -> str:
        """Write an update; return its code."""
        try:
            self.service.write(request([(kind, entity(INFO, text))]))
        except BatchError as error:
            assert error.errors[0] is not None
            return error.errors[0].code
        return "OK"

    def read(self, text: str) -> list[p4r.Entity]:
        return read_all(self.service, entity(INFO, text))

    def packet(self, a: int, b: int = 0, c: int = 0) -> list[tuple[int, bytes]]:
        return self.switch.process(0, bytes([a, b, c >> 8, c & 255]))


@pytest.fixture
def world() -> World:
    return World()


# -- the page -------------------------------------------------------------------------------------


def test_the_page_is_up_to_date() -> None:
    script = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "conformance.py"))
    assert script["PAGE"].read_text() == script["page"](), "run make conformance"


# -- services, roles, elections -------------------------------------------------------------------


@pytest.mark.p4runtime("3.1-1")
def test_the_port_is_the_one_of_p4runtime() -> None:
    assert server.DEFAULT_ADDRESS.endswith(":9559")


@pytest.mark.p4runtime("3.5-1 5.1-2 13-1 13-4 15-1")
def test_a_new_server_knows_nothing_and_needs_no_session_to_read() -> None:
    device = Device(lambda _: PROGRAM, lambda program: Switch(program))
    device.load(PROGRAM)
    made = P4RuntimeService(device)
    assert made.stream_message("c", announce(0))[0][0][1].arbitration.status.code == 0
    assert read_all(P4RuntimeService(device), entity(INFO, "table_entry { table_id: $t }")) == []
    for unknown in (0, 9):
        with pytest.raises(RpcError, match="NOT_FOUND"):
            list(made.read(p4r.ReadRequest(device_id=unknown)))
        with pytest.raises(RpcError, match="NOT_FOUND"):
            made.get_pipeline(p4r.GetForwardingPipelineConfigRequest(device_id=unknown))


def role_update(election_id: int, config: stratum.P4RoleConfig | None) -> p4r.StreamMessageRequest:
    message = announce(election_id, "r")
    if config is not None:
        message.arbitration.role.config.Pack(config)
    return message


@pytest.mark.p4runtime("5.1-1 5.2-4 9.1.6-5 12-8")
def test_what_a_role_may_do(world: World) -> None:
    t = TABLES["t"].preamble.id
    config = stratum.P4RoleConfig(exclusive_p4_ids=[t])
    world.service.stream_message("r", role_update(1, config))
    update = request([(INSERT, entity(INFO, WILD % (1, 1, 5, SET % 1)))])
    update.role = "r"
    world.service.write(update)
    other = request([(INSERT, entity(INFO, ENTRY % ("given", 9, SET % 1)))])
    other.role = "r"
    with pytest.raises(BatchError) as caught:
        world.service.write(other)
    assert caught.value.errors[0] is not None
    assert caught.value.errors[0].code == "PERMISSION_DENIED"
    query = p4r.ReadRequest(device_id=1, role="r", entities=[entity(INFO, "table_entry {}")])
    found = [e for answer in world.service.read(query) for e in answer.entities]
    assert {e.table_entry.table_id for e in found} == {t}


@pytest.mark.p4runtime("5.3-7 5.3-8 5.3-11 5.4-2")
def test_later_messages_of_a_stream(world: World) -> None:
    made = world.service
    made.stream_message("a", role_update(5, None))
    made.stream_message("b", role_update(3, None))
    with pytest.raises(RpcError, match="INVALID_ARGUMENT: election id 5 is already used"):
        made.stream_message("b", role_update(5, None))
    made.stream_closed("b")
    wrong = role_update(5, None)
    wrong.arbitration.role.config.type_url = "type.example/x.Y"
    with pytest.raises(RpcError, match="INVALID_ARGUMENT: role config of type"):
        made.stream_message("a", wrong)
    made.stream_closed("a")
    made.stream_message("a", role_update(6, None))
    made.stream_message("b", role_update(3, None))
    notices, _ = made.stream_message("a", role_update(6, stratum.P4RoleConfig()))
    assert {stream for stream, _ in notices} == {"a", "b"}
    assert all(n.arbitration.role.HasField("config") for _, n in notices)
    notices, _ = made.stream_message("c2", role_update(9, None))
    assert [stream for stream, _ in notices][-1] == "c2"


# -- P4Info ---------------------------------------------------------------------------------------


@pytest.mark.p4runtime("6.1.1-1 6.1.3-1 6.2.1-3")
def test_documentation() -> None:
    t = TABLES["t"].preamble
    assert (t.doc.brief, t.doc.description) == ("Marks.", "In full.")
    assert not [a for a in t.annotations if a.startswith(("@brief", "@description"))]
    assert (INFO.pkg_info.arch, INFO.pkg_info.name) == ("v1model", "marks")


@pytest.mark.p4runtime("6.1.4-3")
@pytest.mark.parametrize("twice", ["@note[1] @note[2]", "@note[k=1, k=2]"])
def test_structured_annotations_are_unique(twice: str) -> None:
    text = TEXT.replace("@note[1, 1 == 2]", twice)
    with pytest.raises(CompileError):
        build_p4info(compile_source("x.p4", text=text).program)


@pytest.mark.p4runtime("6.4.1-4 6.4.1-10")
def test_what_tables_say_of_their_entries() -> None:
    actions = {a.preamble.alias: a.preamble.id for a in INFO.actions}
    assert TABLES["t"].const_default_action_id == actions["set"]
    kinds = {n: (t.is_const_table, t.has_initial_entries) for n, t in TABLES.items()}
    assert (kinds["t"], kinds["fixed"], kinds["given"]) == (
        (False, False), (True, True), (False, True),
    )  # fmt: skip


@pytest.mark.p4runtime("6.4.3-4 6.4.5-2")
def test_annotations_of_selectors_and_meters() -> None:
    profiles = {p.preamble.alias: p.weights_disallowed for p in INFO.action_profiles}
    assert profiles == {"sel": False, "even": True, "prof": False}
    meters = {m.preamble.alias: m.spec.Type.Name(m.spec.type) for m in INFO.meters}
    assert meters == {
        "two": "TWO_RATE_THREE_COLOR",
        "three": "SINGLE_RATE_THREE_COLOR",
        "colours": "SINGLE_RATE_TWO_COLOR",
    }


@pytest.mark.p4runtime("6.4.7-1 6.4.7-2 6.4.7-3 6.4.7-5")
def test_fields_of_value_sets() -> None:
    sets = {s.preamble.alias: s for s in INFO.value_sets}
    [one] = sets["single"].match
    assert (one.id, one.bitwidth, one.match_type) == (1, 8, one.EXACT)
    first, second = sets["pair"].match
    assert (first.name, first.match_type, first.id) == ("first", first.TERNARY, 1)
    assert (second.name, second.id, second.type_name.name) == ("second", 7, "kind_t")
    assert second.match_type == second.EXACT


@pytest.mark.p4runtime("8.4.6-3")
def test_only_bits_are_translated() -> None:
    text = TEXT.replace("type bit<16> kind_t;", '@p4runtime_translation("u", 32) type bool k;')
    with pytest.raises(CompileError, match="k is a bool, not a bit<W>"):
        compile_source("x.p4", text=text.replace("kind_t", "bit<16>"))


# -- tables ---------------------------------------------------------------------------------------


@pytest.mark.p4runtime("9.1-2 12-7 12.1-2 12.3-1")
def test_the_higher_priority_wins_as_soon_as_it_is_written(world: World) -> None:
    assert world.write(INSERT, WILD % (1, 1, 5, SET % 1)) == "OK"
    assert world.packet(3)[0][1][1] == 1
    assert world.write(INSERT, WILD % (2, 2, 6, SET % 2)) == "OK"
    assert world.packet(3)[0][1][1] == 2
    assert world.write(DELETE, WILD % (2, 2, 6, "metadata: 'any'")) == "OK"
    assert world.packet(3)[0][1][1] == 1


@pytest.mark.p4runtime("9.1-5")
def test_a_table_without_keys_takes_no_entry(world: World) -> None:
    assert world.write(INSERT, f"table_entry {{ table_id: $none {SET % 1} }}") == "INVALID_ARGUMENT"


@pytest.mark.p4runtime("9.1.4-5 9.1.3-4")
def test_default_actions_of_constant_tables(world: World) -> None:
    default = f"table_entry {{ table_id: $%s is_default_action: true {SET % 8} }}"
    assert world.write(MODIFY, default % "fixed") == "OK"
    assert world.write(MODIFY, default % "t") == "PERMISSION_DENIED"


@pytest.mark.p4runtime("9.1.5-1 9.1.5-2 9.1.5-3 9.1.5-4")
def test_a_table_with_initial_entries(world: World) -> None:
    assert world.write(MODIFY, ENTRY % ("given", 1, SET % 9)) == "PERMISSION_DENIED"
    assert world.write(DELETE, ENTRY % ("given", 1, "")) == "PERMISSION_DENIED"
    assert world.write(MODIFY, ENTRY % ("given", 2, SET % 9)) == "OK"
    assert world.write(DELETE, ENTRY % ("given", 2, "")) == "OK"
    assert world.write(INSERT, ENTRY % ("given", 3, SET % 9)) == "OK"
    found = [e.table_entry for e in world.read("table_entry { table_id: $given }")]
    assert sorted((e.match[0].exact.value, e.is_const) for e in found) == [
        (b"\1", True), (b"\3", False),
    ]  # fmt: skip
    ordered = world.read("table_entry { table_id: $ordered }")
    assert [e.table_entry.priority for e in ordered] == [7, 6]


@pytest.mark.p4runtime("9.1.8-6")
def test_nobody_sets_when_an_entry_was_hit(world: World) -> None:
    text = WILD % (1, 1, 5, SET % 1 + " time_since_last_hit { elapsed_ns: 1 }")
    assert world.write(INSERT, text) == "INVALID_ARGUMENT"


@pytest.mark.p4runtime("8.4.2-2")
def test_members_of_types_are_in_order() -> None:
    """Every type_info of the tests' programs says so, too (test_p4info_of_programs)."""
    text = TEXT.replace("register<bit<8>>", "register<pair_t>").replace(
        "kept.read(colour, 0); kept.write(0, colour + 1);", ""
    )
    info = build_p4info(compile_source("x.p4", text=text).program)
    assert [m.name for m in info.type_info.structs["pair_t"].members] == ["first", "second"]


# -- profiles -------------------------------------------------------------------------------------

MEMBER = (
    "action_profile_member { action_profile_id: $%s member_id: %d action { action_id: $set"
    ' params { param_id: 1 value: "\\%03o" } } }'
)
GROUP = "action_profile_group { action_profile_id: $sel group_id: %d %s }"


@pytest.mark.p4runtime("9.2.1-5")
def test_a_profile_is_full(world: World) -> None:
    codes = [world.write(INSERT, MEMBER % ("prof", n, n)) for n in (1, 2, 3)]
    assert codes == ["OK", "OK", "RESOURCE_EXHAUSTED"]


@pytest.mark.p4runtime("9.2.2-1 9.2.2-10 9.2.2.1-2 9.2.4-3")
def test_groups(world: World) -> None:
    world.write(INSERT, MEMBER % ("sel", 1, 7))
    assert world.write(INSERT, GROUP % (1, "members { member_id: 1 weight: 1 }")) == (
        "INVALID_ARGUMENT"  # without a max_size
    )
    full = "max_size: 4 members { member_id: 1 weight: 1 }"
    codes = [world.write(INSERT, GROUP % (n, text)) for n, text in
             ((1, full), (2, full), (1, full), (3, "max_size: 4"))]  # fmt: skip
    assert codes == ["OK", "OK", "ALREADY_EXISTS", "OK"]
    for n in (1, 2):
        chosen = f"action {{ action_profile_group_id: {n} }}"
        assert world.write(INSERT, ENTRY % ("chosen", n + 10, chosen)) == "OK"
    assert world.write(INSERT, WILD % (0, 1, 9, "action { action { action_id: $NoAction } }"))
    assert world.write(MODIFY, MEMBER % ("sel", 1, 9)) == "OK"
    keep = "action { action { action_id: $NoAction } }"
    assert world.write(INSERT, WILD % (1, 1, 1, keep)) == "OK"
    assert world.packet(11)[0][1][1] == 9
    world.write(INSERT, WILD % (12, 255, 1, keep))
    assert world.packet(12)[0][1][1] == 9


# -- cells ----------------------------------------------------------------------------------------

RATES = "config { cir: 1 cburst: 2 pir: 1 pburst: 2 }"


@pytest.mark.p4runtime("9.3.2-5")
def test_a_counter_without_data_stays(world: World) -> None:
    world.packet(0)
    cell = "counter_entry { counter_id: $seen index { index: 0 } }"
    assert world.write(MODIFY, cell) == "OK"
    assert world.read(cell)[0].counter_entry.data.packet_count == 1


@pytest.mark.p4runtime("9.4-1 9.4-2 9.4-3")
@pytest.mark.parametrize(
    ("meter", "config", "code"),
    [
        ("two", RATES.replace("}", "eburst: 1 }"), "INVALID_ARGUMENT"),
        ("three", RATES.replace("}", "eburst: 1 }"), "OK"),
        ("three", RATES.replace("pir: 1", "pir: 3"), "INVALID_ARGUMENT"),
        ("colours", RATES, "OK"),
        ("colours", RATES.replace("}", "eburst: 1 }"), "INVALID_ARGUMENT"),
        ("colours", RATES.replace("pir: 1", "pir: 3"), "INVALID_ARGUMENT"),
    ],
)
def test_rates_by_the_kind_of_meter(world: World, meter: str, config: str, code: str) -> None:
    text = f"meter_entry {{ meter_id: ${meter} index {{ index: 1 }} {config} }}"
    assert world.write(MODIFY, text) == code


@pytest.mark.p4runtime("9.4.2-1 9.4.2-2 9.4.2-3 9.4.2-4")
def test_cells_of_meters(world: World) -> None:
    text = "meter_entry { meter_id: $two %s }"
    assert [world.write(kind, text % RATES) for kind in (INSERT, DELETE)] == (
        ["INVALID_ARGUMENT"] * 2
    )
    assert world.write(MODIFY, text % "index { index: -1 }") == "INVALID_ARGUMENT"
    assert world.write(MODIFY, text % "index { index: 4 }") == "OUT_OF_RANGE"
    assert world.write(MODIFY, text % RATES) == "OK"
    assert world.write(MODIFY, text % "index { index: 2 }") == "OK"
    given = [e.meter_entry.HasField("config") for e in world.read(text % "")]
    assert given == [True, True, False, True]


@pytest.mark.p4runtime("9.4.1-1 9.4.1-3")
def test_direct_meters(world: World) -> None:
    paced = "action { action { action_id: $paced } }"
    assert world.write(INSERT, ENTRY % ("limited", 1, paced)) == "OK"
    text = "direct_meter_entry { %s }"
    there = text % (ENTRY % ("limited", 1, ""))
    assert [world.write(kind, there) for kind in (INSERT, DELETE)] == ["INVALID_ARGUMENT"] * 2
    assert world.write(MODIFY, there) == "OK"
    assert world.write(MODIFY, text % (ENTRY % ("limited", 2, ""))) == "NOT_FOUND"


@pytest.mark.p4runtime("9.7-2")
def test_cells_of_registers(world: World) -> None:
    text = 'register_entry { register_id: $kept index { index: %d } data { bitstring: "\\1" } }'
    codes = [world.write(MODIFY, text % index) for index in (-1, 4, 3)]
    assert codes == ["INVALID_ARGUMENT", "OUT_OF_RANGE", "OK"]


# -- replication, value sets ----------------------------------------------------------------------


@pytest.mark.p4runtime("9.5.1-2 9.5.2-4")
def test_groups_that_are_not_there(world: World) -> None:
    flood = 'action { action { action_id: $flood params { param_id: 1 value: "\\7" } } }'
    assert world.write(INSERT, WILD % (1, 1, 5, flood)) == "OK"
    assert world.packet(1) == []
    text = (
        "packet_replication_engine_entry { clone_session_entry { session_id: 1"
        " replicas { egress_port: 1 instance: 65536 } } }"
    )
    assert world.write(INSERT, text) == "INVALID_ARGUMENT"


@pytest.mark.p4runtime("9.6-4 9.6-5")
def test_a_value_set_is_emptied(world: World) -> None:
    text = "value_set_entry { value_set_id: $single %s }"
    member = 'members { match { field_id: 1 exact { value: "\\x09" } } }'
    assert world.write(MODIFY, text % member) == "OK"
    assert world.packet(9)[0][1][2:] == b"\xff\xff"
    assert world.write(MODIFY, text % "") == "OK"
    assert world.packet(9)[0][1][2:] == b"\0\0"


# -- requests -------------------------------------------------------------------------------------


@pytest.mark.p4runtime("12-4")
def test_the_device_is_checked_first_then_the_primary_then_the_pipeline() -> None:
    made = P4RuntimeService(Device(lambda _: PROGRAM, lambda program: Switch(program)))
    made.stream_message("c", announce(1))
    codes = []
    for device, election in ((9, 7), (1, 7), (1, 1)):
        with pytest.raises(RpcError) as caught:
            made.write(p4r.WriteRequest(device_id=device, election_id=U128.encode(election)))
        codes.append(caught.value.code)
    assert codes == ["NOT_FOUND", "PERMISSION_DENIED", "FAILED_PRECONDITION"]


QUERIES = [
    "table_entry {}", "table_entry { is_default_action: true }", "counter_entry {}",
    "direct_meter_entry { table_entry { } }", "meter_entry {}", "register_entry {}",
    "value_set_entry {}", "action_profile_member {}", "action_profile_group {}",
    "packet_replication_engine_entry { multicast_group_entry {} }",
    "packet_replication_engine_entry { clone_session_entry {} }", "digest_entry {}",
]  # fmt: skip


@pytest.mark.p4runtime("13.2-2 12.1-1 13.4-1")
def test_everything_is_read_by_one_query_of_each_kind(world: World) -> None:
    """Requests are handled one after another, under one lock."""
    queries = [entity(INFO, text) for text in QUERIES]
    answers = world.service.read(p4r.ReadRequest(device_id=1, entities=queries))
    kinds = {e.WhichOneof("entity") for answer in answers for e in answer.entities}
    assert {"table_entry", "counter_entry", "meter_entry", "register_entry", "value_set_entry"} <= (
        kinds
    )


@pytest.mark.p4runtime("11-1 11-2 12.1-1 13.4-1")
def test_packets_and_requests_take_turns(world: World) -> None:
    """A packet is handled under the switch's lock from its first block to its last."""
    done = threading.Event()

    def write() -> None:
        world.write(INSERT, WILD % (1, 1, 5, SET % 1))
        done.set()

    writer = threading.Thread(target=write)
    with world.switch.lock:
        writer.start()
        assert not done.wait(0.05)
    assert done.wait(60)
    writer.join()


@pytest.mark.p4runtime("6.4.6-3")
def test_without_controller_headers_packets_go_whole() -> None:
    device = Device(lambda _: PROGRAM, lambda program: Switch(program, cpu_port=510))
    device.load(PROGRAM)
    made = P4RuntimeService(device)
    made.stream_message("c", announce(1))
    message = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=b"1234"))
    assert made.stream_message("c", message) == ([], [(1, b"1\x0534")])  # through the program
    ((_, answer),) = made.switch_message(PacketIn(b"5678"), 0)
    assert answer.packet == p4r.PacketIn(payload=b"5678")
