"""Fields that P4Runtime 1.5 and 1.6 added: a set's own mode and sizes, weights, Capabilities."""

from __future__ import annotations

from typing import Any

import pytest
from finsy.proto import p4r
from google.protobuf import text_format

from gradplane.switch import Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.read import read
from gradplane.switch.p4runtime.service import P4RuntimeService
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError
from gradplane.switch.p4runtime.write import write
from gradplane.switch.runtime.control_errors import TableError

V1MODEL = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> x; bit<8> flow; }
struct H { h_t h; }
struct M { }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control C(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action to(bit<9> port) { s.egress_spec = port; }
    NOTE
    action_selector(HashAlgorithm.crc16, 64, 16) selector;
    direct_counter(CounterType.packets) hits;
    table t {
        key = { h.h.x : exact; h.h.flow : selector; }
        actions = { to; NoAction; }
        implementation = selector;
    }
    table u { key = { h.h.x : exact; } actions = { to; NoAction; } counters = hits; }
    apply { t.apply(); u.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
PSA = """
#include <core.p4>
#include <psa.p4>
struct empty_t { }
header h_t { bit<8> x; }
struct H { h_t h; }
parser IP(packet_in p, out H h, inout empty_t m, in psa_ingress_parser_input_metadata_t i,
          in empty_t r, in empty_t c) { state start { p.extract(h.h); transition accept; } }
control IC(inout H h, inout empty_t m, in psa_ingress_input_metadata_t i,
           inout psa_ingress_output_metadata_t o) {
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) hits;
    DirectMeter(PSA_MeterType_t.PACKETS) rate;
    action counted() { hits.count(); }
    action metered() { PSA_MeterColor_t colour = rate.execute(); }
    action nothing() { }
    table t {
        key = { h.h.x : exact; }
        actions = { counted; metered; nothing; }
        psa_direct_counter = hits;
        psa_direct_meter = rate;
    }
    ActionSelector(PSA_HashAlgorithm_t.CRC16, 64, 16) chosen;
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) group_hits;
    action group_counted() { group_hits.count(); }
    table u {
        key = { h.h.x : exact; h.h.x : selector; }
        actions = { group_counted; nothing; }
        psa_implementation = chosen;
        psa_direct_counter = group_hits;
    }
    apply { t.apply(); u.apply(); }
}
control ID(packet_out p, out empty_t c, out empty_t r, out empty_t n, inout H h, in empty_t m,
           in psa_ingress_output_metadata_t i) { apply { p.emit(h); } }
parser EP(packet_in p, out H h, inout empty_t m, in psa_egress_parser_input_metadata_t i,
          in empty_t n, in empty_t a, in empty_t b) { state start { transition accept; } }
control EC(inout H h, inout empty_t m, in psa_egress_input_metadata_t i,
           inout psa_egress_output_metadata_t o) { apply { } }
control ED(packet_out p, out empty_t c, out empty_t r, inout H h, in empty_t m,
           in psa_egress_output_metadata_t i, in psa_egress_deparser_input_metadata_t j) {
    apply { }
}
IngressPipeline(IP(), IC(), ID()) ip;
EgressPipeline(EP(), EC(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
"""


def device(text: str) -> Device:
    program = compile_program("t.p4", text=text)
    made = Device(lambda source: program, Switch)
    made.load(program)
    return made


def v1model(note: str = "") -> Device:
    return device(V1MODEL.replace("NOTE", note))


def action(made: Device, name: str) -> int:
    assert made.pipeline is not None
    found = made.pipeline.catalog.actions.items()
    return next(n for n, info in found if info.name.split(".")[-1] == name)


def refusal(made: Device, entity: p4r.Entity) -> str:
    try:
        write(made.target, [p4r.Update(type=p4r.Update.INSERT, entity=entity)])
    except BatchError as error:
        return str(error.errors[0])
    return ""


def entry(made: Device, table: str, **parts: Any) -> p4r.Entity:
    assert made.pipeline is not None
    info = made.pipeline.catalog.table_named(table)
    assert info is not None
    entity = p4r.Entity(table_entry=p4r.TableEntry(table_id=info.id, **parts))
    entity.table_entry.match.add(field_id=1).exact.value = b"\x07"
    return entity


def one_shot(made: Device, weight: int = 1, text: str = "") -> p4r.Entity:
    entity = entry(made, "I.t")
    chosen = entity.table_entry.action.action_profile_action_set
    text_format.Parse(text, chosen)
    one = chosen.action_profile_actions.add(weight=weight)
    one.action.action_id = action(made, "to")
    one.action.params.add(param_id=1, value=b"\x03")
    return entity


@pytest.mark.p4runtime("9.2.3-5")
@pytest.mark.parametrize(
    "text",
    ["", "action_selection_mode: HASH", "size_semantics: SUM_OF_WEIGHTS",
     "action_selection_mode: HASH size_semantics: SUM_OF_WEIGHTS"],
)  # fmt: skip
def test_a_set_that_asks_for_what_the_selector_does_reads_as_written(text: str) -> None:
    made = v1model()
    wanted = one_shot(made, text=text)
    assert refusal(made, wanted) == ""
    state = made.save_state()
    for _ in range(2):
        query = p4r.Entity(table_entry=p4r.TableEntry(table_id=wanted.table_entry.table_id))
        [answer] = read(made.target, [query])
        assert list(answer.entities) == [wanted]
        made.load_state(state)


@pytest.mark.p4runtime("9.2.3-6")
@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("action_selection_mode: RANDOM", "UNIMPLEMENTED: table I.t: the set's"
         " action_selection_mode RANDOM is not offered: the selector's hash chooses"),
        ("size_semantics: SUM_OF_MEMBERS", "UNIMPLEMENTED: table I.t: the set's size_semantics is"
         " not the selector's, SUM_OF_WEIGHTS"),
        ("action_selection_mode: 7", "INVALID_ARGUMENT: table I.t: the set's action_selection_mode"
         " 7 is unknown"),
        ("size_semantics: 9", "INVALID_ARGUMENT: table I.t: the set's size_semantics 9 is unknown"),
    ],
)  # fmt: skip
def test_other_wishes_are_refused(text: str, wrong: str) -> None:
    made = v1model()
    assert refusal(made, one_shot(made, text=text)) == wrong


def test_the_selectors_own_semantics_are_the_only_ones() -> None:
    made = v1model('@selector_size_semantics("sum_of_members")')
    assert refusal(made, one_shot(made, text="size_semantics: SUM_OF_MEMBERS")) == ""
    wrong = refusal(made, one_shot(made, text="size_semantics: SUM_OF_WEIGHTS"))
    assert wrong.endswith("not the selector's, SUM_OF_MEMBERS")


@pytest.mark.p4runtime("9.2.3-7")
def test_a_group_action_is_refused_and_not_lost() -> None:
    """Field 5 of 1.6, which the messages here do not have."""
    made = v1model()
    entity = one_shot(made)
    chosen = entity.table_entry.action.action_profile_action_set
    chosen.MergeFromString(b"\x2a\x02\x08\x01")
    assert refusal(made, entity) == (
        "UNIMPLEMENTED: table I.t: the set's group_action is not offered"
    )


@pytest.mark.p4runtime("6.4.1-3 9.2.3-7")
def test_a_groups_action_is_no_entrys() -> None:
    """@groupaction of 1.6: for the group_action of a set alone."""
    made = device(
        V1MODEL.replace("NOTE", "")
        .replace("{ to; NoAction; }", "{ to; @groupaction NoAction; }")
        .replace("implementation = selector;", "implementation = selector; default_action = to(1);")
        .replace("counters = hits;", "counters = hits; default_action = to(1);")
    )
    assert made.pipeline is not None
    group = action(made, "NoAction")
    [profile] = made.pipeline.catalog.profiles
    member = p4r.ActionProfileMember(action_profile_id=profile, member_id=1)
    member.action.action_id = group
    direct, shot = entry(made, "I.u"), entry(made, "I.t")
    direct.table_entry.action.action.action_id = group
    one = shot.table_entry.action.action_profile_action_set.action_profile_actions.add(weight=1)
    one.action.action_id = group
    default = p4r.Entity(table_entry=p4r.TableEntry(table_id=direct.table_entry.table_id))
    default.table_entry.is_default_action = True
    default.table_entry.action.action.action_id = group
    for table in made.pipeline.catalog.p4info.tables:
        assert [r.scope for r in table.action_refs if r.id == group] == [3]
    for entity, owner in (
        (direct, "table I.u"),
        (shot, "table I.t"),
        (p4r.Entity(action_profile_member=member), "action profile I.selector"),
    ):
        assert refusal(made, entity) == (
            f"PERMISSION_DENIED: {owner}: action NoAction may only be a set's group_action"
        )
    with pytest.raises(BatchError, match="may only be a set's group_action"):
        write(made.target, [p4r.Update(type=p4r.Update.MODIFY, entity=default)])
    switch: Any = made.pipeline.switch
    with pytest.raises(TableError, match="action NoAction is @groupaction"):
        switch.table("I.u").add({"h.h.x": 9}, "NoAction")


@pytest.mark.p4runtime("9.2.2-6 9.2.3-4")
def test_weights_that_the_switch_has() -> None:
    made = v1model("@weights_disallowed")
    assert made.pipeline is not None
    [profile] = made.pipeline.catalog.p4info.action_profiles
    assert profile.weights_disallowed and not profile.preamble.annotations
    assert refusal(made, one_shot(made, weight=2)) == (
        "INVALID_ARGUMENT: table I.t: weight 2 of a member: @weights_disallowed leaves only 0"
    )
    wanted = one_shot(made, weight=0)
    assert refusal(made, wanted) == ""
    query = p4r.Entity(table_entry=p4r.TableEntry(table_id=wanted.table_entry.table_id))
    [answer] = read(made.target, [query])
    assert list(answer.entities) == [wanted]
    assert made.process(1, b"\x07\x01") == [(3, b"\x07\x01")]


@pytest.mark.p4runtime("9.2.3-3 9.2.3-4")
def test_sizes_of_sets_by_members() -> None:
    made = v1model(
        '@selector_size_semantics("sum_of_members") @max_member_weight(3) @max_group_size(2)'
    )
    assert refusal(made, one_shot(made, weight=4)) == (
        "INVALID_ARGUMENT: action profile I.selector: weight 4 is above its max_member_weight of 3"
    )
    three = one_shot(made, weight=3)
    chosen = three.table_entry.action.action_profile_action_set.action_profile_actions
    chosen.extend([chosen[0], chosen[0]])
    assert refusal(made, three) == (
        "INVALID_ARGUMENT: action profile I.selector: a group of 3 members is above its size of 2"
    )
    del chosen[2]
    assert refusal(made, three) == ""


@pytest.mark.p4runtime("9.2.2-6")
def test_weights_of_group_members() -> None:
    for note, weight, wrong in (
        ("", 0, "member 1 has weight 0, expected at least 1"),
        ("@weights_disallowed", 1, "@weights_disallowed leaves only 0"),
        ("@weights_disallowed", 0, ""),
    ):
        made = v1model(note)
        assert made.pipeline is not None
        [number] = made.pipeline.catalog.profiles
        member = p4r.ActionProfileMember(action_profile_id=number, member_id=1)
        member.action.action_id = action(made, "to")
        member.action.params.add(param_id=1, value=b"\x03")
        assert refusal(made, p4r.Entity(action_profile_member=member)) == ""
        group = p4r.ActionProfileGroup(action_profile_id=number, group_id=1, max_size=4)
        group.members.add(member_id=1, weight=weight)
        assert refusal(made, p4r.Entity(action_profile_group=group)).endswith(wrong)
        if not wrong:
            query = p4r.Entity(action_profile_group=p4r.ActionProfileGroup())
            [answer] = read(made.target, [query])
            assert [e.action_profile_group for e in answer.entities] == [group]


@pytest.mark.p4runtime("17-2")
def test_capabilities_of_a_device() -> None:
    service = P4RuntimeService(v1model())
    for number in (0, 1):
        request = p4r.CapabilitiesRequest(device_id=number)
        assert service.capabilities(request).p4runtime_api_version == "1.5.0"
    with pytest.raises(RpcError) as error:
        service.capabilities(p4r.CapabilitiesRequest(device_id=9))
    assert str(error.value) == "NOT_FOUND: device id 9 is not served here, only 1"


@pytest.mark.p4runtime("9.1.7-7")
@pytest.mark.parametrize(
    ("name", "part", "executed"),
    [
        ("counted", "counter", True), ("metered", "counter", False), ("nothing", "counter", False),
        ("counted", "meter", False), ("metered", "meter", True), ("nothing", "meter", False),
    ],
)  # fmt: skip
def test_direct_resources_are_given_to_actions_that_execute_them(
    name: str, part: str, executed: bool
) -> None:
    """Section "Direct resources" of the specification, of PSA's externs."""
    made = device(PSA)
    entity = entry(made, "IC.t")
    entity.table_entry.action.action.action_id = action(made, name)
    field = "counter_data" if part == "counter" else "meter_config"
    getattr(entity.table_entry, field).SetInParent()
    assert refusal(made, entity) == (
        ""
        if executed
        else f"INVALID_ARGUMENT: table IC.t: {field} is set, but the action does not execute the"
        f" table's direct {part}"
    )


@pytest.mark.p4runtime("9.1.7-7")
def test_direct_resources_of_what_has_no_action_in_the_message() -> None:
    """Members, groups and sets of them; the source's default; what an entry has already."""
    made = device(PSA)
    wrong = "counter_data is set, but the action does not execute the table's direct counter"
    counts, silent = action(made, "group_counted"), action(made, "nothing")
    assert made.pipeline is not None
    [number] = made.pipeline.catalog.profiles
    for actions, refused in (([silent], True), ([counts, silent], False)):
        entity = entry(made, "IC.u")
        chosen = entity.table_entry.action.action_profile_action_set
        for number_of in actions:
            chosen.action_profile_actions.add(weight=1).action.action_id = number_of
        entity.table_entry.counter_data.packet_count = 1
        assert refusal(made, entity).endswith(wrong) == refused
        write(made.target, [p4r.Update(type=p4r.Update.DELETE, entity=entity)] * (not refused))
    for id, member_action in ((1, silent), (2, counts)):
        member = p4r.ActionProfileMember(action_profile_id=number, member_id=id)
        member.action.action_id = member_action
        assert refusal(made, p4r.Entity(action_profile_member=member)) == ""
        group = p4r.ActionProfileGroup(action_profile_id=number, group_id=id, max_size=4)
        group.members.add(member_id=id, weight=1)
        assert refusal(made, p4r.Entity(action_profile_group=group)) == ""
        for part in ("action_profile_member_id", "action_profile_group_id"):
            entity = entry(made, "IC.u")
            setattr(entity.table_entry.action, part, id)
            entity.table_entry.counter_data.packet_count = 1
            assert refusal(made, entity).endswith(wrong) == (id == 1)
            if id == 2:
                write(made.target, [p4r.Update(type=p4r.Update.DELETE, entity=entity)])
    there = entry(made, "IC.t")
    there.table_entry.action.action.action_id = silent
    assert refusal(made, there) == ""
    changed = entry(made, "IC.t")
    default = p4r.Entity(table_entry=p4r.TableEntry(table_id=changed.table_entry.table_id))
    default.table_entry.is_default_action = True
    for entity in (changed, default):
        entity.table_entry.counter_data.packet_count = 1
        with pytest.raises(BatchError) as error:
            write(made.target, [p4r.Update(type=p4r.Update.MODIFY, entity=entity)])
        assert str(error.value).endswith(wrong)


def test_in_v1model_every_hit_counts() -> None:
    made = v1model()
    entity = entry(made, "I.u")
    entity.table_entry.action.action.action_id = action(made, "NoAction")
    entity.table_entry.counter_data.packet_count = 5
    assert refusal(made, entity) == ""
