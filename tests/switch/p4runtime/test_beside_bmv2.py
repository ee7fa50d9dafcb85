"""What simple_switch_grpc does otherwise (behavioral-model 1.15.5 with PI), and this switch by the
specifications: the rows of docs/coming-from-bmv2.md, "P4Runtime errors" and "Under P4Runtime".

The tests whose names begin with test_there run simple_switch_grpc, where it is on PATH.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from beside_bmv2 import real_switch
from finsy.proto import U128, p4d, p4r
from hand_made_device import INSERT, announce, entity, read_all, request

from gradplane.differ.bmv2_switch import Bmv2Switch, DiffError
from gradplane.experiment import p4_programs
from gradplane.switch import Switch
from gradplane.switch.compiler import compile_source
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.digest_lists import DigestLists
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.p4runtime.service import P4RuntimeService
from gradplane.switch.p4runtime.status_errors import BatchError

TEXT = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
header g_t { bit<16> x; bit<16> y; }
struct H { h_t h; g_t g; }
struct M { }
struct one_t { bit<8> v; }
struct two_t { bit<16> v; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout H h, inout M m) {
    apply { verify_checksum(true, { h.g.x }, h.g.y, HashAlgorithm.csum16); }
}
control I(inout H h, inout M m, inout standard_metadata_t s) {
    meter(4, MeterType.packets) rates;
    counter(4, CounterType.packets) seen;
    action set(bit<8> v) { h.h.b = v; }
    table t {
        key = { h.h.a : ternary; } actions = { set; NoAction; }
        support_timeout = true;
    }
    table fixed {
        key = { h.h.a : ternary; } actions = { set; NoAction; }
        const entries = { 1 : set(1); 2 &&& 2 : set(2); _ : set(3); }
    }
    table given {
        key = { h.h.a : exact; } actions = { set; NoAction; }
        entries = { 1 : set(1); }
    }
    action_selector(HashAlgorithm.crc16, 32w4, 32w8) sel;
    table chosen {
        key = { h.h.a : exact; h.h.b : selector; } actions = { set; NoAction; }
        implementation = sel;
    }
    action_profile(4) prof;
    table plain {
        key = { h.h.a : exact; h.g.isValid() : exact; } actions = { set; NoAction; }
        implementation = prof;
    }
    apply {
        bit<8> colour;
        rates.execute_meter(0, colour);
        seen.count(0);
        s.egress_spec = 1;
        fixed.apply(); given.apply(); t.apply(); chosen.apply();
        plain.apply();
        digest<one_t>(1, { h.h.a });
        digest<two_t>(1, { h.h.c });
        h.h.c = (bit<16>) s.checksum_error;
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control K(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), K(), D()) main;
"""
COMPILED = compile_source("beside.p4", text=TEXT)
PROGRAM = COMPILED.program
INFO = build_p4info(PROGRAM)
# Two tables share a profile, and list different actions.
SHARED_TEXT = TEXT.replace(
    "apply {\n        bit<8> colour;",
    """action more(bit<8> v) { h.h.b = h.h.b + v; }
    table other {
        key = { h.h.a : exact; } actions = { more; NoAction; }
        implementation = prof;
    }
    apply {
        other.apply();
        bit<8> colour;""",
)
SHARED = compile_source("shared.p4", text=SHARED_TEXT)
SHARED_INFO = build_p4info(SHARED.program)
SHARED_MEMBER = (
    "action_profile_member { action_profile_id: $prof member_id: 1"
    ' action { action_id: $more params { param_id: 1 value: "\\001" } } }'
)
WITH_MEMBER = (
    'table_entry { table_id: $%s match { field_id: 1 exact { value: "\\007" } } %s'
    " action { action_profile_member_id: 1 } }"
)
INVALID_KEY = 'match { field_id: 2 exact { value: "\\000" } }'


@pytest.fixture(params=["interpreter", "jit"])
def switch(request: pytest.FixtureRequest) -> Switch:
    return Switch(PROGRAM, engine=request.param)


def served(switch: Switch) -> P4RuntimeService:
    device = Device(lambda _: switch.program, lambda _: switch)
    device.load(switch.program)
    made = P4RuntimeService(device)
    made.stream_message("c", announce(1))
    return made


def entry(value: int, mask: int, result: int, priority: int = 10) -> p4r.Entity:
    return entity(
        INFO,
        f'table_entry {{ table_id: $t match {{ field_id: 1 ternary {{ value: "\\{value:03o}"'
        f' mask: "\\{mask:03o}" }} }} priority: {priority} action {{ action {{ action_id: $set'
        f' params {{ param_id: 1 value: "\\{result:03o}" }} }} }} }}',
    )


@pytest.mark.p4runtime("9.1-3")
def test_of_entries_of_one_priority_the_oldest_wins(switch: Switch) -> None:
    """On BMv2 a new entry takes the place of one that was deleted, and may win."""
    made = served(switch)
    first, second, third = entry(1, 1, 1), entry(2, 2, 2), entry(4, 4, 3)
    made.write(request([(INSERT, first), (INSERT, second)]))
    made.write(request([(p4r.Update.DELETE, first), (INSERT, third)]))
    [(_, out)] = switch.process(0, bytes([7, 0, 0, 0]))
    assert out[1] == 2


def test_all_digests_of_a_packet_are_sent(switch: Switch) -> None:
    """BMv2 sends that of the last call."""
    switch.process(0, bytes([7, 0, 0, 9]))
    assert [(d.name, d.data) for d in switch.messages()] == [("one_t", [7]), ("two_t", [9])]


def test_a_checksum_over_an_invalid_header(switch: Switch) -> None:
    """As on BMv2 it is no error."""
    [(_, out)] = switch.process(0, bytes([7, 0, 0, 9]))
    assert out[2:4] == b"\0\0"


@pytest.mark.p4runtime("9.1.4-3 9.1.4-4")
def test_priorities_of_const_entries(switch: Switch) -> None:
    """P4Runtime 1.5, "Constant Tables": N to 1. BMv2 has 2^31 - 1 less the JSON's priority, and
    does not set is_const."""
    query = entity(INFO, "table_entry { table_id: $fixed }")
    found = [e.table_entry for e in read_all(served(switch), query)]
    assert [(e.priority, e.is_const) for e in found] == [(3, True), (2, True), (1, True)]


@pytest.mark.p4runtime("9.1.5-1")
def test_entries_of_the_source_without_const_are_read(switch: Switch) -> None:
    """On BMv2 each read of such a table fails."""
    query = entity(INFO, "table_entry { table_id: $given }")
    assert len(read_all(served(switch), query)) == 1


@pytest.mark.p4runtime("9.1.6-3")
def test_a_read_with_a_priority_filters_by_it(switch: Switch) -> None:
    """BMv2 answers both."""
    made = served(switch)
    made.write(request([(INSERT, entry(1, 1, 1, 10)), (INSERT, entry(2, 2, 2, 20))]))
    query = entity(INFO, "table_entry { table_id: $t priority: 10 }")
    assert [e.table_entry.priority for e in read_all(made, query)] == [10]


def test_a_group_that_is_refused_does_not_exist(switch: Switch) -> None:
    """On BMv2 it exists afterwards, without members."""
    made = served(switch)
    text = "action_profile_group { action_profile_id: $sel %s }"
    members = "group_id: 2 max_size: 4 members { member_id: 9 weight: 1 }"
    with pytest.raises(BatchError):
        made.write(request([(INSERT, entity(INFO, text % members))]))
    assert read_all(made, entity(INFO, text % "")) == []


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_a_member_with_another_tables_action_is_refused(engine: str) -> None:
    switch = Switch(SHARED.program, engine=engine)
    made = served(switch)
    good, bad = (
        entity(SHARED_INFO, WITH_MEMBER % words)
        for words in (("other", ""), ("plain", INVALID_KEY))
    )
    made.write(request([(INSERT, entity(SHARED_INFO, SHARED_MEMBER)), (INSERT, good)]))
    with pytest.raises(BatchError) as refused:
        made.write(request([(INSERT, bad)]))
    assert refused.value.errors[0] is not None
    assert refused.value.errors[0].code == "INVALID_ARGUMENT"
    [(_, out)] = switch.process(0, bytes([7, 0, 0, 0]))
    assert out[1] == 2  # of the const entries, which come behind


@pytest.mark.p4runtime("9.8-5")
def test_a_digest_that_fills_its_list_waits_for_no_timeout() -> None:
    """On BMv2 it comes after twice the timeout, unless there is an ack_timeout_ns."""
    config = p4r.DigestEntry.Config(max_timeout_ns=2_000_000_000, max_list_size=1)
    lists = DigestLists({5: config}.get)
    (sent,) = lists.offer(5, p4d.P4Data(bitstring=b"\1").SerializeToString(), 0)
    assert [d.bitstring for d in sent.data] == [b"\1"]


def test_rates_of_meters_are_read_as_they_were_written(switch: Switch) -> None:
    """BMv2 reads 250 and 501 for 251 and 502."""
    made = served(switch)
    text = "meter_entry { meter_id: $rates index { index: 1 } %s }"
    rates = "config { cir: 251 cburst: 10 pir: 502 pburst: 20 }"
    made.write(request([(p4r.Update.MODIFY, entity(INFO, text % rates))]))
    (found,) = read_all(made, entity(INFO, text % ""))
    assert (found.meter_entry.config.cir, found.meter_entry.config.pir) == (251, 502)


def test_replicas_read_back_in_the_order_of_writing_up_to_group_65535(switch: Switch) -> None:
    """BMv2 sorts them, and has groups to 0x7FFF."""
    made = served(switch)
    replicas = " ".join(
        f"replicas {{ egress_port: {port} instance: {instance} }}"
        for port, instance in ((3, 1), (2, 1), (2, 2))
    )
    text = (
        "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 65535 %s } }"
    )
    made.write(request([(INSERT, entity(INFO, text % replicas))]))
    (found,) = read_all(made, entity(INFO, text % ""))
    group = found.packet_replication_engine_entry.multicast_group_entry
    assert [(r.egress_port, r.instance) for r in group.replicas] == [(3, 1), (2, 1), (2, 2)]


MEMBER = (
    "action_profile_member { action_profile_id: $sel member_id: %d action { action_id: $set"
    ' params { param_id: 1 value: "\\001" } } }'
)
ONE_SHOT = (
    'table_entry { table_id: $%s match { field_id: 1 exact { value: "\\002" } } %s'
    " action { action_profile_action_set { %s } } }"
)
CHOICE = (
    "action_profile_actions { weight: 1 action { action_id: $set"
    ' params { param_id: 1 value: "\\001" } } }'
)
TERNARY = (
    'table_entry { table_id: $t match { field_id: 1 ternary { value: "%s" mask: "\\377" } } %s'
    ' action { action { action_id: $set params { param_id: 1 value: "\\001" } } } }'
)
VALID = 'match { field_id: 2 exact { value: "\\001" } }'
REFUSED = [
    (INSERT, MEMBER % 0, "INVALID_ARGUMENT", "OK"),
    (INSERT, "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 9"
             " replicas { egress_port: 600 instance: 1 } } }", "OUT_OF_RANGE", "OK"),
    (INSERT, ONE_SHOT % ("plain", VALID, CHOICE), "INVALID_ARGUMENT", "UNKNOWN"),
    (p4r.Update.MODIFY, "action_profile_group { action_profile_id: $sel group_id: 7"
                        " members { member_id: 7 weight: 1 } }", "INVALID_ARGUMENT", "OK"),
    (p4r.Update.DELETE, "counter_entry { counter_id: $seen index { index: 0 } }",
     "INVALID_ARGUMENT", "OK"),
    (INSERT, "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 8"
             " replicas { egress_port: 1 instance: 70000 } } }", "INVALID_ARGUMENT", "OK"),
    (INSERT, "digest_entry { digest_id: $one_t config { max_timeout_ns: -1 } }",
     "INVALID_ARGUMENT", "OK"),
    # "P4Runtime errors"
    (INSERT, TERNARY % ("\\001\\001", "priority: 10"), "OUT_OF_RANGE", "INVALID_ARGUMENT"),
    (INSERT, TERNARY % ("\\001", "priority: -1"), "INVALID_ARGUMENT", "UNKNOWN"),
    (p4r.Update.DELETE, "table_entry { table_id: $fixed priority: 3 match { field_id: 1"
                        ' ternary { value: "\\001" mask: "\\377" } } }',
     "PERMISSION_DENIED", "NOT_FOUND"),
    (p4r.Update.MODIFY, "meter_entry { meter_id: $rates index { index: 1 }"
                        " config { cir: 5 cburst: 1 pir: 4 pburst: 1 } }",
     "INVALID_ARGUMENT", "UNKNOWN"),
    (p4r.Update.MODIFY, "meter_entry { meter_id: $rates index { index: 4 } }",
     "OUT_OF_RANGE", "UNKNOWN"),
    (p4r.Update.MODIFY, "counter_entry { counter_id: $seen index { index: 4 }"
                        " data { packet_count: 1 } }", "OUT_OF_RANGE", "UNKNOWN"),
    (p4r.Update.DELETE, "action_profile_member { action_profile_id: $sel member_id: 7 }",
     "FAILED_PRECONDITION", "UNKNOWN"),
    (INSERT, 'table_entry { table_id: $chosen match { field_id: 1 exact { value: "\\003" } }'
             " action { action_profile_member_id: 99 } }", "NOT_FOUND", "INVALID_ARGUMENT"),
    (INSERT, "", "INVALID_ARGUMENT", "UNKNOWN"),
]  # fmt: skip
BEFORE = [
    MEMBER % 7,
    "action_profile_group { action_profile_id: $sel group_id: 7 max_size: 4"
    " members { member_id: 7 weight: 1 } }",
]


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_what_bmv2_takes_and_is_refused_here(
    switch: Switch, case: tuple[int, str, str, str]
) -> None:
    """Or what both refuse with other codes."""
    kind, text, code, _ = case
    made = served(switch)
    for other in BEFORE:
        if "_id: 7" in text:
            made.write(request([(INSERT, entity(INFO, other))]))
    with pytest.raises(BatchError) as caught:
        made.write(request([(kind, entity(INFO, text))]))
    (error,) = caught.value.errors
    assert error is not None and error.code == code


@pytest.mark.p4runtime("9.2.4-3")
def test_a_one_shot_without_actions(switch: Switch) -> None:
    """UNIMPLEMENTED on BMv2."""
    served(switch).write(request([(INSERT, entity(INFO, ONE_SHOT % ("chosen", "", "")))]))


@pytest.mark.p4runtime("9.8-4")
def test_a_digest_comes_again_after_one_timeout() -> None:
    """On BMv2 the next may have to wait for two."""
    config = p4r.DigestEntry.Config(max_list_size=1, ack_timeout_ns=1000)
    lists = DigestLists({5: config}.get)
    data = p4d.P4Data(bitstring=b"\1").SerializeToString()
    assert [len(lists.offer(5, data, now)) for now in (50, 1040, 1050, 2040)] == [1, 0, 1, 0]


@pytest.mark.p4runtime("9.1.8-1 16.4-1 16.4-2 16.4-3")
def test_idle_notices_have_the_metadata_and_come_at_each_timeout() -> None:
    """On BMv2 they have none, and come with a sweep of its own."""
    now = 0
    switch = Switch(PROGRAM, clock=lambda: now)
    made, messages = served(switch), list[object]()
    assert made.device.pipeline is not None
    made.device.pipeline.state.listener = messages.append
    mark = 'idle_timeout_ns: 1500 metadata: "mark"'
    update = entity(INFO, IDLE % mark)
    made.write(request([(INSERT, update)]))
    for now in range(0, 5000, 500):  # noqa: B007
        made.tick(0)
    assert len(messages) == 3
    ((_, message),) = made.switch_message(messages[0], 0)  # type: ignore[arg-type]
    [noticed] = message.idle_timeout_notification.table_entry
    assert (noticed.metadata, noticed.idle_timeout_ns) == (b"mark", 1500)
    (found,) = read_all(made, entity(INFO, "table_entry { table_id: $t time_since_last_hit {} }"))
    assert found.table_entry.time_since_last_hit.elapsed_ns == 4500


@pytest.mark.p4runtime("14-5 14-6")
@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_after_a_save_requests_go_to_the_new_program_and_packets_to_the_old(engine: str) -> None:
    """As on BMv2, entries that are written between VERIFY_AND_SAVE and COMMIT included."""
    device = Device(lambda _: PROGRAM, lambda program: Switch(program, engine=engine))
    device.load(PROGRAM)
    made = P4RuntimeService(device)
    made.stream_message("c", announce(1))
    assert device.pipeline is not None
    running = device.pipeline.switch
    config = p4r.ForwardingPipelineConfig(p4info=INFO, cookie={"cookie": 7})
    push = p4r.SetForwardingPipelineConfigRequest(
        device_id=1, election_id=U128.encode(1), config=config
    )
    push.action = push.VERIFY_AND_SAVE
    made.set_pipeline(push)
    answer = made.get_pipeline(p4r.GetForwardingPipelineConfigRequest(device_id=1))
    assert answer.config.cookie.cookie == 7
    made.write(request([(INSERT, entry(1, 1, 9))]))
    assert running.process(0, bytes([7, 0, 0, 0]))[0][1][1] == 2  # of the const entries
    push.ClearField("config")
    push.action = push.COMMIT
    made.set_pipeline(push)
    assert device.pipeline.switch.process(0, bytes([7, 0, 0, 0]))[0][1][1] == 9


IDLE = (
    'table_entry { table_id: $t match { field_id: 1 ternary { value: "\1" mask: "\1" } }'
    ' priority: 5 %s action { action { action_id: $set params { param_id: 1 value: "\1" } } } }'
)


# -- simple_switch_grpc itself --------------------------------------------------------------------


@pytest.fixture(scope="module")
def process() -> Iterator[Bmv2Switch]:
    with real_switch() as made:
        yield made


@pytest.fixture
def theirs(process: Bmv2Switch) -> Bmv2Switch:
    """Return the process with the program just loaded."""
    info = p4_programs.p4info_message(PROGRAM, "bmv2")
    process.load(info, p4_programs.compiled_for("bmv2", COMPILED).encode())
    process.received(0.01)
    return process


def accepted(theirs: Bmv2Switch, *texts: str) -> None:
    for text in texts:
        assert theirs.insert(entity(INFO, text)) == ""


def found(theirs: Bmv2Switch, text: str) -> list[p4r.Entity]:
    code, entities = theirs.read(entity(INFO, text))
    assert code == "OK"
    return entities


def test_there_a_new_entry_takes_the_place_of_a_deleted_one(theirs: Bmv2Switch) -> None:
    first, second, third = entry(1, 1, 1), entry(2, 2, 2), entry(4, 4, 3)
    for kind, e in ((INSERT, first), (INSERT, second), (p4r.Update.DELETE, first), (INSERT, third)):
        assert theirs.write(kind, e)[0] == "OK"
    [(_, out)] = theirs.process(0, bytes([7, 0, 0, 0]))
    assert out[1] == 3


def test_there_a_checksum_over_an_invalid_header_is_no_error(theirs: Bmv2Switch) -> None:
    [(_, out)] = theirs.process(0, bytes([7, 0, 0, 9]))
    assert out[2:4] == b"\0\0"


def test_there_the_digest_of_the_last_call_is_sent(theirs: Bmv2Switch) -> None:
    for name in ("one_t", "two_t"):
        accepted(theirs, f"digest_entry {{ digest_id: ${name} config {{ max_list_size: 1 }} }}")
    theirs.process(0, bytes([7, 0, 0, 9]))
    [message] = theirs.received(0.5)
    [data] = message.digest.data
    assert [m.bitstring for m in data.struct.members] == [b"\x09"]


def test_there_a_digest_may_wait_for_two_timeouts(theirs: Bmv2Switch) -> None:
    text = "digest_entry { digest_id: $two_t config { max_list_size: 1 ack_timeout_ns: %d } }"
    accepted(theirs, text % 10**9)
    times = []
    for _ in range(30):
        theirs.process(0, bytes([7, 0, 0, 9]))
        times += [m.digest.timestamp for m in theirs.received(0.1)]
    assert len(times) >= 2 and times[1] - times[0] > 1.0e9


def test_there_a_full_list_waits_for_its_timeout(theirs: Bmv2Switch) -> None:
    text = "digest_entry { digest_id: $two_t config { max_list_size: 1 max_timeout_ns: %d } }"
    accepted(theirs, text % (5 * 10**8))
    theirs.process(0, bytes([7, 0, 0, 9]))
    assert theirs.received(0.3) == []
    assert len(theirs.received(0.1, 1)) == 1


def test_there_const_entries_do_not_say_so(theirs: Bmv2Switch) -> None:
    """Our JSON has priorities that PI reads as the specification's; p4c's are 1, 2, 3."""
    rows = [e.table_entry for e in found(theirs, "table_entry { table_id: $fixed }")]
    assert sorted((e.priority, e.is_const) for e in rows) == [(n, False) for n in (1, 2, 3)]


def test_there_tables_with_entries_of_the_source_cannot_be_read(theirs: Bmv2Switch) -> None:
    assert theirs.read(entity(INFO, "table_entry { table_id: $given }"))[0] == "INTERNAL"


def test_there_a_priority_filters_nothing(theirs: Bmv2Switch) -> None:
    for e in (entry(1, 1, 1, 10), entry(2, 2, 2, 20)):
        assert theirs.insert(e) == ""
    assert len(found(theirs, "table_entry { table_id: $t priority: 10 }")) == 2


def test_there_a_refused_group_exists(theirs: Bmv2Switch) -> None:
    text = "action_profile_group { action_profile_id: $sel %s }"
    members = "group_id: 2 max_size: 4 members { member_id: 9 weight: 1 }"
    assert theirs.insert(entity(INFO, text % members)) != ""
    [group] = found(theirs, text % "")
    assert not group.action_profile_group.members


def test_there_rates_are_cut(theirs: Bmv2Switch) -> None:
    text = "meter_entry { meter_id: $rates index { index: 1 } %s }"
    rates = "config { cir: 251 cburst: 10 pir: 502 pburst: 20 }"
    assert theirs.write(p4r.Update.MODIFY, entity(INFO, text % rates))[0] == "OK"
    [row] = found(theirs, text % "")
    assert (row.meter_entry.config.cir, row.meter_entry.config.pir) == (250, 501)


TO_ALL = compile_source(
    "all.p4", text=TEXT.replace("s.egress_spec = 1;", "s.egress_spec = 1; s.mcast_grp = 6;")
)
GROUP = (
    "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 6"
    " replicas { egress_port: 2 instance: 1 } } }"
)


def test_a_group_ends_with_its_program() -> None:
    """On BMv2 it does not (tests/switch/testgen/test_on_bmv2.py)."""
    switches = [Switch(TO_ALL.program) for _ in range(2)]
    device = Device(lambda _: TO_ALL.program, lambda _: switches[-1])
    made = P4RuntimeService(device)
    made.stream_message("c", announce(1))
    while switches:
        device.load(TO_ALL.program)
        made.write(request([(INSERT, entity(INFO, GROUP))]))
        assert [port for port, _ in switches.pop().process(0, bytes([7, 0, 0, 0]))] == [2]


def test_there_a_clone_session_does_not_cut(theirs: Bmv2Switch) -> None:
    """Ours does."""
    text = (
        "packet_replication_engine_entry { clone_session_entry { session_id: 5"
        " replicas { egress_port: 3 instance: 1 } %s } }"
    )
    cuts = entity(INFO, text % "packet_length_bytes: 64")
    assert theirs.write(INSERT, cuts)[0] == "UNKNOWN"
    accepted(theirs, text % "")
    assert theirs.write(p4r.Update.DELETE, entity(INFO, text % ""))[0] == "OK"


def test_there_replicas_are_sorted_and_groups_end_at_32767(theirs: Bmv2Switch) -> None:
    text = (
        "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: %d"
        " replicas { egress_port: 3 instance: 1 } replicas { egress_port: 2 instance: 1 } } }"
    )
    accepted(theirs, text % 5)
    assert theirs.write(INSERT, entity(INFO, text % 0x8000))[0] == "OUT_OF_RANGE"
    [row] = found(theirs, text % 5)
    replicas = row.packet_replication_engine_entry.multicast_group_entry.replicas
    assert [r.egress_port for r in replicas] == [2, 3]
    assert theirs.write(p4r.Update.DELETE, entity(INFO, text % 5))[0] == "OK"


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_there_it_is_taken(theirs: Bmv2Switch, case: tuple[int, str, str, str]) -> None:
    """Or refused with another code."""
    kind, text, _, code = case
    if "_id: 7" in text:
        accepted(theirs, *BEFORE)
    assert theirs.write(kind, entity(INFO, text))[0] == code


def test_there_a_one_shot_needs_actions_and_its_size_is_not_enforced(theirs: Bmv2Switch) -> None:
    empty = entity(INFO, ONE_SHOT % ("chosen", "", ""))
    assert theirs.write(INSERT, empty)[0] == "UNIMPLEMENTED"
    accepted(theirs, ONE_SHOT % ("chosen", "", 5 * CHOICE))


def test_there_counters_have_what_their_type_counts_and_profiles_one_mode(
    theirs: Bmv2Switch,
) -> None:
    """Here a read of either is of all that there is."""
    text = "counter_entry { counter_id: $seen index { index: 3 } %s }"
    data = "data { packet_count: 5 byte_count: 7 }"
    assert theirs.write(p4r.Update.MODIFY, entity(INFO, text % data))[0] == "OK"
    [row] = found(theirs, text % "")
    assert (row.counter_entry.data.packet_count, row.counter_entry.data.byte_count) == (5, 0)
    accepted(theirs, ONE_SHOT % ("chosen", "", CHOICE))
    assert theirs.read(entity(INFO, "action_profile_member {}"))[0] == "INVALID_ARGUMENT"


def test_counters_are_read_whole_and_members_of_all_profiles(switch: Switch) -> None:
    made = served(switch)
    text = "counter_entry { counter_id: $seen index { index: 3 } %s }"
    whole = entity(INFO, text % "data { packet_count: 5 byte_count: 7 }")
    made.write(request([(p4r.Update.MODIFY, whole)]))
    assert read_all(made, entity(INFO, text % "")) == [whole]
    made.write(request([(INSERT, entity(INFO, ONE_SHOT % ("chosen", "", CHOICE)))]))
    assert read_all(made, entity(INFO, "action_profile_member {}")) == []


def test_there_idle_notices_lack_the_metadata_and_have_times_of_their_own(
    theirs: Bmv2Switch,
) -> None:
    accepted(theirs, IDLE % 'idle_timeout_ns: 1500000000 metadata: "mark"')
    first, second = theirs.received(0.1, 2)
    [noticed] = first.idle_timeout_notification.table_entry
    assert (noticed.metadata, noticed.idle_timeout_ns) == (b"", 1_500_000_000)
    times = [m.idle_timeout_notification.timestamp for m in (first, second)]
    assert times[1] - times[0] > 1.8e9
    [row] = found(theirs, "table_entry { table_id: $t time_since_last_hit {} }")
    assert row.table_entry.time_since_last_hit.elapsed_ns == 1_500_000_000


def test_there_a_member_with_another_tables_action_ends_the_switch() -> None:
    with real_switch() as made:
        info = p4_programs.p4info_message(SHARED.program, "bmv2")
        made.load(info, p4_programs.compiled_for("bmv2", SHARED).encode())
        with pytest.raises(DiffError, match="bmv2 has crashed"):
            for text in (SHARED_MEMBER, WITH_MEMBER % ("plain", INVALID_KEY)):
                made.insert(entity(SHARED_INFO, text))
            made.process(0, bytes([7, 0, 0, 0]))
