"""The service without gRPC: batches, pipelines, streams. Messages in, messages out."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace as Object

import pytest
from finsy.proto import U128, p4d, p4i, p4r, stratum
from google.protobuf import any_pb2, text_format
from google.protobuf.wrappers_pb2 import StringValue
from hand_made_device import (
    DELETE,
    INSERT,
    MODIFY,
    announce,
    entity,
    ids,
    read_all,
    request,
    service,
)
from hand_made_ir import program
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch.ir.nodes import TypeInfo
from gradplane.switch.ir.types import (
    ERROR,
    Bits,
    Bool,
    Enum,
    Field,
    Header,
    NewType,
    SerEnum,
    Stack,
    Struct,
    Type,
    Union,
    Varbit,
)
from gradplane.switch.p4runtime import device as device_module
from gradplane.switch.p4runtime.catalog import Catalog
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.digest_lists import DigestLists
from gradplane.switch.p4runtime.p4data import show_data
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.p4runtime.service import P4RuntimeService
from gradplane.switch.p4runtime.status_errors import TEXT_BYTES, BatchError, RpcError, rpc_status_of
from gradplane.switch.runtime.control_messages import Digest, IdleNotice, PacketIn
from gradplane.switch.runtime.entries import ActionData, Entry

Push = p4r.SetForwardingPipelineConfigRequest
Get = p4r.GetForwardingPipelineConfigRequest
INFO = build_p4info(program())
ALL = p4r.Entity(table_entry=p4r.TableEntry(table_id=INFO.tables[0].preamble.id))


def route(host: int, action: str = "drop") -> p4r.Entity:
    return entity(
        INFO,
        f"table_entry {{ table_id: $ipv4_lpm action {{ action {{ action_id: ${action} }} }} match"
        f' {{ field_id: 1 lpm {{ value: "\\{host:03o}" prefix_len: 32 }} }} }}',
    )


def hosts(made: P4RuntimeService) -> list[int]:
    entries = read_all(made, ALL)
    return [int.from_bytes(e.table_entry.match[0].lpm.value, "big") for e in entries]


def codes(error: BatchError) -> list[str]:
    return ["OK" if e is None else e.code for e in error.errors]


# -- batches -------------------------------------------------------------------------------------


@pytest.mark.p4runtime("12-6 12.2-1 12.3-3")
def test_by_default_every_update_is_attempted() -> None:
    made = service()
    with pytest.raises(BatchError) as caught:
        made.write(request([(INSERT, route(1)), (DELETE, route(9)), (INSERT, route(2))]))
    assert codes(caught.value) == ["OK", "NOT_FOUND", "OK"]
    assert hosts(made) == [1, 2]
    assert caught.value.message == (
        "1 of 3 updates failed; number 1: table MyIngress.ipv4_lpm: it has no entry for"
        " hdr.ipv4.dst 0x9/32"
    )


@pytest.mark.p4runtime("10-1 10-2 12.3-3")
def test_the_status_has_one_error_an_update() -> None:
    made = service()
    with pytest.raises(BatchError) as caught:
        made.write(request([(INSERT, route(1)), (MODIFY, route(9))]))
    status = rpc_status_of(caught.value)
    assert (status.code, status.message) == (2, caught.value.message)
    in_full = any_pb2.Any()
    in_full.Pack(
        StringValue(value="table MyIngress.ipv4_lpm: it has no entry for hdr.ipv4.dst 0x9/32")
    )
    details = []
    for packed in status.details:
        detail = p4r.Error()
        assert packed.Unpack(detail)
        details.append(detail)
    assert details == [
        p4r.Error(canonical_code=0),
        p4r.Error(
            canonical_code=5,
            message="Cannot find match entry",
            space="gradplane",
            code=5,
            details=in_full,
        ),
    ]


def test_a_status_stays_small() -> None:
    """gRPC's clients refuse large ones; every update has its code, the first ones their text."""
    made = service()
    with pytest.raises(BatchError) as caught:
        made.write(request([(MODIFY, route(9))] * 500))
    status = rpc_status_of(caught.value)
    errors = [p4r.Error.FromString(packed.value) for packed in status.details]
    assert {error.canonical_code for error in errors} == {5}
    assert errors[0].message == "Cannot find match entry" and errors[0].details.value
    assert errors[-1].message == ""
    assert status.ByteSize() < TEXT_BYTES + 512 * 60


@pytest.mark.p4runtime("12.2-2 12.2-3 12-5")
@pytest.mark.parametrize(
    "atomicity", [p4r.WriteRequest.ROLLBACK_ON_ERROR, p4r.WriteRequest.DATAPLANE_ATOMIC]
)
def test_all_or_none(atomicity: int) -> None:
    made = service()
    made.write(request([(INSERT, route(1)), (INSERT, route(2))], atomicity))
    before = everything(made)
    batch = [
        (INSERT, route(3)),
        (MODIFY, route(2, "NoAction")),
        (DELETE, route(1)),
        *[(kind, entity(INFO, text)) for kind, text in OTHER_UPDATES],
        (INSERT, route(3)),
        (INSERT, route(4)),
    ]
    with pytest.raises(BatchError) as caught:
        made.write(request(batch, atomicity))
    assert codes(caught.value)[-2:] == ["ALREADY_EXISTS", "ABORTED"]
    assert set(codes(caught.value)[:-2]) == {"ABORTED"}
    assert caught.value.errors[0] is not None
    assert caught.value.errors[0].message == "not applied, since update 9 of the batch failed"
    assert sorted(map(str, everything(made))) == sorted(map(str, before))


OTHER_UPDATES = [
    (MODIFY, "table_entry { table_id: $ipv4_lpm is_default_action: true"
             " action { action { action_id: $drop } } counter_data { packet_count: 3 } }"),
    (MODIFY, "counter_entry { counter_id: $seen data { packet_count: 7 } }"),
    (MODIFY, 'register_entry { register_id: $acc data { bitstring: "\\001" } }'),
    (MODIFY, "meter_entry { meter_id: $rate config { cir: 1 pir: 1 } }"),
    (INSERT, "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 1 } }"),
    (INSERT, "packet_replication_engine_entry { clone_session_entry { session_id: 1 } }"),
]  # fmt: skip

QUERIES = [
    "table_entry { counter_data {} }", "table_entry { is_default_action: true counter_data {} }",
    "counter_entry {}", "register_entry {}", "meter_entry {}", "extern_entry {}",
    "packet_replication_engine_entry { multicast_group_entry {} }",
    "packet_replication_engine_entry { clone_session_entry {} }",
    "direct_counter_entry { table_entry {} }",
]  # fmt: skip


def everything(made: P4RuntimeService) -> list[p4r.Entity]:
    return [e for query in QUERIES for e in read_all(made, entity(INFO, query))]


steps = st.tuples(st.sampled_from([INSERT, MODIFY, DELETE]), st.integers(1, 3))


@pytest.mark.p4runtime("12.2-2")
@given(st.lists(steps, max_size=8), st.lists(steps, max_size=8))
def test_a_rollback_leaves_no_trace(first: list, second: list) -> None:
    made = service()
    for kind, host in first:
        try:
            made.write(request([(kind, route(host))]))
        except BatchError:
            continue
    before = sorted(map(str, everything(made)))
    failing = (DELETE, route(77))
    with pytest.raises(BatchError):
        batch = [(kind, route(host)) for kind, host in second]
        made.write(request([*batch, failing], p4r.WriteRequest.ROLLBACK_ON_ERROR))
    assert sorted(map(str, everything(made))) == before


@pytest.mark.p4runtime("12-9")
@pytest.mark.parametrize(
    ("update", "message"),
    [
        (p4r.Update(type=INSERT), "the update has no entity; expected one of table_entry,"
         " direct_counter_entry, direct_meter_entry, action_profile_member, action_profile_group,"
         " counter_entry, meter_entry, register_entry, packet_replication_engine_entry,"
         " value_set_entry, digest_entry"),
        (p4r.Update(entity=route(1)),
         "the update has no type; expected INSERT, MODIFY or DELETE"),
        (p4r.Update(type=9, entity=route(1)),  # type: ignore[arg-type]
         "the update has type 9; expected INSERT, MODIFY or DELETE"),
    ],
)  # fmt: skip
def test_malformed_updates(update: p4r.Update, message: str) -> None:
    made = service()
    with pytest.raises(BatchError) as caught:
        made.write(p4r.WriteRequest(device_id=1, election_id=U128.encode(1), updates=[update]))
    assert caught.value.errors[0] is not None
    assert caught.value.errors[0].message == message


@pytest.mark.p4runtime("12.2-4")
def test_an_unknown_atomicity_is_refused() -> None:
    made, before = service(), everything(service())
    with pytest.raises(RpcError, match="INVALID_ARGUMENT: atomicity 7 is not known"):
        made.write(request([(INSERT, route(1))], atomicity=7))
    assert everything(made) == before


@pytest.mark.p4runtime("12-1 12-2 12.3-2 14-1 14-2")
@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"device_id": 2}, "NOT_FOUND", "device id 2 is not served here, only 1"),
        ({"role": "x"}, "NOT_FOUND", 'role "x" is not known on device 1'),
        ({"election_id": U128.encode(7)}, "PERMISSION_DENIED",
         "election id 7 is not the primary's of the default role, which is 1"),
    ],
)  # fmt: skip
def test_whole_requests_that_are_refused(change: dict, code: str, message: str) -> None:
    made = service()
    given = {"device_id": 1, "election_id": U128.encode(1)} | change
    for call, kind in ((made.write, p4r.WriteRequest), (made.set_pipeline, Push)):
        with pytest.raises(RpcError) as caught:
            call(kind(**given))  # type: ignore[arg-type]
        assert (caught.value.code, caught.value.message) == (code, message)
        assert not rpc_status_of(caught.value).details


@pytest.mark.p4runtime("13.2-1 13.3-1 13.3-2")
def test_reads_go_on_after_a_bad_query() -> None:
    made = service()
    made.write(request([(INSERT, route(1))]))
    queries = [ALL, p4r.Entity(), ALL]
    answers: list[p4r.Entity] = []
    with pytest.raises(BatchError) as caught:
        for answer in made.read(p4r.ReadRequest(device_id=1, entities=queries)):
            answers.extend(answer.entities)
    assert len(answers) == 2
    assert codes(caught.value) == ["OK", "INVALID_ARGUMENT", "OK"]


@pytest.mark.p4runtime("13.3-3")
def test_long_answers_come_in_parts() -> None:
    made = service()
    made.write(request([(INSERT, route(i)) for i in range(1, 128)]))
    query = p4r.ReadRequest(device_id=1, entities=[ALL, ALL, ALL])
    assert [len(a.entities) for a in made.read(query)] == [127, 127, 127]
    assert len(hosts(made)) == 127


# -- pipelines -----------------------------------------------------------------------------------


def push(action: int, source: bytes | None = b"whole", **config: object) -> Push:
    message = Push(device_id=1, election_id=U128.encode(1), action=action)  # type: ignore[arg-type]
    if source is not None:
        message.config.p4_device_config = source
        message.config.MergeFrom(p4r.ForwardingPipelineConfig(**config))  # type: ignore[arg-type]
    return message


@pytest.mark.p4runtime("12-3 13-2")
def test_before_a_program_there_is_nothing_to_read_or_write() -> None:
    made = service(loaded=False)
    assert made.device.process(1, b"packet") == []
    assert made.device.lost == 1
    for call, message in (
        (made.get_pipeline, Get(device_id=1)),
        (made.write, request([])),
        (made.read, p4r.ReadRequest(device_id=1)),
    ):
        with pytest.raises(RpcError) as caught:
            call(message)  # type: ignore[arg-type]
        assert caught.value.code == "FAILED_PRECONDITION"
        assert caught.value.message == (
            "No forwarding pipeline config set for this device: push a program"
        )


@pytest.mark.p4runtime("14-3")
def test_verify_changes_nothing() -> None:
    made = service(loaded=False)
    made.set_pipeline(push(Push.VERIFY))
    assert made.device.pipeline is None
    assert made.device.saved is None


@pytest.mark.p4runtime("14-9")
def test_verify_and_commit_starts_afresh() -> None:
    made = service(loaded=False)
    made.set_pipeline(push(Push.VERIFY_AND_COMMIT))
    made.write(request([(INSERT, route(1))]))
    made.set_pipeline(push(Push.VERIFY_AND_COMMIT))
    assert hosts(made) == []
    assert made.device.process(3, b"packet") == [(3, b"packet")]


@pytest.mark.p4runtime("14-5 14-6 14-7")
def test_what_is_written_after_a_save_waits_for_the_commit() -> None:
    made = service()
    made.write(request([(INSERT, route(1))]))
    running = made.device.pipeline
    assert running is not None
    made.set_pipeline(push(Push.VERIFY_AND_SAVE))
    made.write(request([(INSERT, route(2))]))
    assert made.device.pipeline is running
    assert len(running.state.tables["MyIngress.ipv4_lpm"]) == 1
    assert hosts(made) == [2]
    made.set_pipeline(push(Push.COMMIT, None))
    assert hosts(made) == [2]
    assert made.device.pipeline is not running
    with pytest.raises(RpcError) as caught:
        made.set_pipeline(push(Push.COMMIT, None))
    assert (caught.value.code, caught.value.message) == (
        "NOT_FOUND",
        "no config is saved: VERIFY_AND_SAVE comes before COMMIT",
    )


@pytest.mark.p4runtime("14-10")
def test_reconcile_keeps_the_state() -> None:
    made = service()
    made.write(request([(INSERT, route(1))]))
    made.write(request([(kind, entity(INFO, text)) for kind, text in OTHER_UPDATES]))
    before, old = everything(made), made.device.pipeline
    made.set_pipeline(push(Push.RECONCILE_AND_COMMIT))
    assert made.device.pipeline is not old
    assert everything(made) == before


def test_saved_state_is_loaded_again() -> None:
    made = service()
    made.write(request([(INSERT, route(host)) for host in (1, 2)]))
    state = made.device.save_state()
    made.write(request([(DELETE, route(1)), (INSERT, route(3))]))
    made.device.load_state(state)
    assert hosts(made) == [1, 2]
    with pytest.raises(RpcError, match="INVALID_ARGUMENT: this is no saved state: "):
        made.device.load_state("x")
    with pytest.raises(RpcError, match="the program has no place for the saved state: no table"):
        made.device.load_state(
            '{"updates": [{"type": "INSERT", "entity": {"table_entry": {"table_id": 7}}}]}'
        )
    assert hosts(made) == [1, 2]
    with pytest.raises(RpcError, match="the switch runs no program yet"):
        service(loaded=False).device.save_state()


@pytest.mark.p4runtime("14-11")
def test_reconcile_refuses_state_that_has_no_place() -> None:
    made = service()
    made.write(request([(INSERT, entity(INFO, ACL))]))
    old = made.device.pipeline
    with pytest.raises(RpcError) as caught:
        made.set_pipeline(push(Push.RECONCILE_AND_COMMIT, b"without acl"))
    assert (caught.value.code, caught.value.message) == (
        "INVALID_ARGUMENT",
        "the new program has no place for state of the old one: there is no table"
        " MyIngress.acl; there are: MyIngress.ipv4_lpm, MyEgress.fixed",
    )
    assert made.device.pipeline is old
    made.write(request([(DELETE, entity(INFO, ACL))]))
    made.set_pipeline(push(Push.RECONCILE_AND_COMMIT, b"without acl"))


ACL = """table_entry { table_id: $acl priority: 3 match { field_id: 3 exact { value: "\\000" } }
  action { action { action_id: $drop } } }"""


def test_an_empty_device_config_is_the_program_that_runs() -> None:
    made = service()
    made.write(request([(INSERT, route(1))]))
    made.set_pipeline(push(Push.VERIFY_AND_COMMIT, b"", p4info=INFO))
    assert hosts(made) == []
    with pytest.raises(RpcError, match="neither a device config nor a P4Info"):
        made.set_pipeline(push(Push.VERIFY_AND_COMMIT, b""))


@pytest.mark.p4runtime("15-4")
@pytest.mark.parametrize("before", [b"\x08\x01", b"", b"\x08\x01\x12\x05\x0a\x03\x0a\x01k"])
def test_a_device_config_in_a_p4_device_config(before: bytes) -> None:
    """The tutorials' p4runtime_lib pushes this form: reassign, extras and device_data."""
    wrapped = before + b"\x1a\x0bwithout acl"
    made = service(loaded=False)
    made.set_pipeline(push(Push.VERIFY_AND_COMMIT, wrapped))
    config = made.get_pipeline(Get(device_id=1)).config
    assert "MyIngress.acl" not in [t.preamble.name for t in config.p4info.tables]
    assert config.p4_device_config == wrapped


@pytest.mark.p4runtime("7-1 15-2 15-4")
def test_what_get_answers() -> None:
    made = service(loaded=False)
    cookie = p4r.ForwardingPipelineConfig.Cookie(cookie=0)
    made.set_pipeline(push(Push.VERIFY_AND_COMMIT, cookie=cookie))
    asked = {
        kind: made.get_pipeline(Get(device_id=1, response_type=kind)).config
        for kind in (
            Get.ALL,
            Get.COOKIE_ONLY,
            Get.P4INFO_AND_COOKIE,
            Get.DEVICE_CONFIG_AND_COOKIE,
        )
    }
    fields = {kind: [f.name for f, _ in config.ListFields()] for kind, config in asked.items()}
    assert fields == {
        Get.ALL: ["p4info", "p4_device_config", "cookie"],
        Get.COOKIE_ONLY: ["cookie"],
        Get.P4INFO_AND_COOKIE: ["p4info", "cookie"],
        Get.DEVICE_CONFIG_AND_COOKIE: ["p4_device_config", "cookie"],
    }
    assert asked[Get.ALL].p4info == INFO
    assert asked[Get.ALL].p4_device_config == b"whole"
    with pytest.raises(RpcError, match="INVALID_ARGUMENT: response type 9 is not known"):
        made.get_pipeline(Get(device_id=1, response_type=9))  # type: ignore[arg-type]


def other_info(**change: object) -> p4r.ForwardingPipelineConfig:
    config = p4r.ForwardingPipelineConfig(p4info=INFO)
    table = config.p4info.tables[0]
    for name, value in change.items():
        setattr(table.match_fields[0] if name != "id" else table.preamble, name, value)
    return config


def wrong_info(text: str) -> p4i.P4Info:
    parsed: p4i.P4Info = text_format.Parse(text, p4i.P4Info())
    return parsed


IDS = ids(INFO)
DISAGREES = (
    "the P4Info does not belong to the program: {}. Make it from the same source (gradplane p4 info"
    " FILE.p4), or leave it empty"
)


@pytest.mark.p4runtime("14-4 14-8")
@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        (push(Push.UNSPECIFIED), "INVALID_ARGUMENT", "action 0 is not known"),
        (push(Push.VERIFY_AND_COMMIT, None), "INVALID_ARGUMENT",
         "VERIFY_AND_COMMIT needs a config; none is given"),
        (push(Push.COMMIT), "INVALID_ARGUMENT",
         "COMMIT takes no config: it commits the saved one"),
        (push(Push.VERIFY, b""), "INVALID_ARGUMENT",
         "the config has neither a device config nor a P4Info: push the .p4 source"),
        (push(Push.VERIFY, b"", p4info=INFO), "INVALID_ARGUMENT",
         "the device config is empty and no program runs: push the .p4 source"),
        (push(Push.VERIFY, b"broken"), "INVALID_ARGUMENT", "x.p4:3:5: error: no such thing"),
        (push(Push.VERIFY, b'{"source": 1}'), "INVALID_ARGUMENT",
         "the device config has the keys ['source']; expected P4 source, BMv2's JSON, or JSON"
         " with \"source\", \"file\" and \"defines\""),
        (push(Push.VERIFY, b"{"), "INVALID_ARGUMENT",
         "the device config is not valid JSON: Expecting property name enclosed in double quotes:"
         " line 1 column 2 (char 1); expected P4 source, BMv2's JSON, or JSON with"
         " \"source\", \"file\" and \"defines\""),
        (push(Push.VERIFY, b"\xff"), "INVALID_ARGUMENT",
         "the device config is binary data ('utf-8' codec can't decode byte 0xff in position 0:"
         " invalid start byte); expected P4 source, BMv2's JSON, or JSON with"
         " \"source\", \"file\" and \"defines\""),
        (push(Push.VERIFY, p4info=other_info(id=7).p4info), "INVALID_ARGUMENT",
         DISAGREES.format("table MyIngress.ipv4_lpm has id 7, in the program 37375156")),
        (push(Push.VERIFY, p4info=other_info(bitwidth=31).p4info), "INVALID_ARGUMENT",
         DISAGREES.format("table MyIngress.ipv4_lpm: field hdr.ipv4.dst, 31 bits, lpm, in the"
                          " program field hdr.ipv4.dst, 32 bits, lpm")),
        (push(Push.VERIFY, p4info=wrong_info('pkg_info { arch: "psa" }')), "INVALID_ARGUMENT",
         DISAGREES.format("its architecture is psa, the program's v1model")),
        (push(Push.VERIFY, p4info=wrong_info(
            "pkg_info { platform_properties { multicast_group_table_size: 65536 } }")),
         "INVALID_ARGUMENT",
         DISAGREES.format("it asks for 65536 multicast groups, the switch has 65535")),
        (push(Push.VERIFY, p4info=wrong_info(
            f"tables {{ preamble {{ id: {IDS['ipv4_lpm']} name: 'MyIngress.ipv4_lpm' }}"
            " match_fields { id: 1 name: 'hdr.ipv4.dst' bitwidth: 32 match_type: LPM }"
            " action_refs { id: 5 } implementation_id: 7 }")), "INVALID_ARGUMENT",
         DISAGREES.format("table MyIngress.ipv4_lpm has action 5, which the program's table does"
                          " not have;"
                          " table MyIngress.ipv4_lpm has implementation 7, in the program 0")),
        (push(Push.VERIFY, b"without acl", p4info=INFO), "INVALID_ARGUMENT",
         DISAGREES.format("table MyIngress.acl is not in the program, which has:"
                          " MyIngress.ipv4_lpm, MyEgress.fixed")),
    ],
)  # fmt: skip
def test_refused_pushes(message: Push, code: str, text: str) -> None:
    made = service(loaded=False)
    with pytest.raises(RpcError) as caught:
        made.set_pipeline(message)
    assert (caught.value.code, caught.value.message) == (code, text)
    assert made.device.pipeline is None


# -- streams -------------------------------------------------------------------------------------


def packet_out(port: bytes, payload: bytes = b"data") -> p4r.StreamMessageRequest:
    message = p4r.PacketOut(payload=payload)
    message.metadata.add(metadata_id=1, value=port)
    message.metadata.add(metadata_id=2, value=b"\0")
    return p4r.StreamMessageRequest(packet=message)


@pytest.mark.p4runtime("16.1-2")
def test_a_packet_out_enters_at_the_cpu_port_behind_its_header() -> None:
    made = service()
    deliveries, outputs = made.stream_message("c", packet_out(b"\x01\x05"))
    assert deliveries == []
    assert outputs == [(510, bytes([0b1000_0010, 0b1000_0000]) + b"data")]


@pytest.mark.parametrize("pad", [None, b""])
def test_metadata_of_a_packet_out_that_has_no_value_is_zero(pad: bytes | None) -> None:
    """As PI does (p4lang/PI of 2026-06): ONOS sends the egress port and no padding."""
    message = p4r.PacketOut(payload=b"data")
    message.metadata.add(metadata_id=1, value=b"\x01\x05")
    if pad is not None:
        message.metadata.add(metadata_id=2, value=pad)
    made = service()
    _, outputs = made.stream_message("c", p4r.StreamMessageRequest(packet=message))
    assert outputs == [(510, bytes([0b1000_0010, 0b1000_0000]) + b"data")]
    _, outputs = made.stream_message("c", p4r.StreamMessageRequest(packet=p4r.PacketOut()))
    assert outputs == [(510, b"\0\0")]


@pytest.mark.p4runtime("5-6 16.1-1")
def test_only_the_primary_gets_a_packet_in_with_its_header() -> None:
    made = service()
    made.stream_message("backup", announce(0))
    ((stream, message),) = made.switch_message(PacketIn(b"\x82\x80data"), 0)
    assert stream == "c"
    assert message.packet == p4r.PacketIn(
        payload=b"data",
        metadata=[
            p4r.PacketMetadata(metadata_id=1, value=b"\x01\x05"),
            p4r.PacketMetadata(metadata_id=2, value=b"\0"),
        ],
    )
    ((_, short),) = made.switch_message(PacketIn(b"x"), 0)
    assert short.packet == p4r.PacketIn(payload=b"x")


@pytest.mark.p4runtime("5.2-2")
def test_a_role_gets_the_packets_that_its_filter_lets_through() -> None:
    made = service()
    hears = announce(1, "hears")
    config = stratum.P4RoleConfig(receives_packet_ins=True)
    config.packet_in_filter.metadata_id = 1
    config.packet_in_filter.value = b"\0\1\5"  # as long as the controller likes
    hears.arbitration.role.config.Pack(config)
    made.stream_message("listener", hears)
    for byte, heard in ((0x82, ["c", "listener"]), (0x83, ["c"])):
        deliveries = made.switch_message(PacketIn(bytes([byte, 0x80]) + b"data"), 0)
        assert [stream for stream, _ in deliveries] == heard


def test_pending_messages_of_the_previous_program_are_dropped() -> None:
    made = service()
    assert made.switch_message(Digest("gone_t", Bits(8), 1), 0) == []
    assert made.switch_message(IdleNotice("MyIngress.gone", Entry((), ActionData(0))), 0) == []


@pytest.mark.p4runtime("13-3")
def test_an_unknown_role_reads_nothing() -> None:
    query = p4r.ReadRequest(device_id=1, role="x", entities=[entity(INFO, "table_entry {}")])
    with pytest.raises(RpcError, match='NOT_FOUND: role "x" is not known on device 1'):
        list(service().read(query))


def stream_error(made: P4RuntimeService, stream: str, message: object) -> tuple[int, str]:
    ((receiver, response),), outputs = made.stream_message(stream, message)  # type: ignore[arg-type]
    assert (receiver, outputs) == (stream, [])
    return response.error.canonical_code, response.error.message


@pytest.mark.p4runtime("5-6 16.1-3 16.1-5 16.6-1 16.6-2")
def test_packet_outs_that_are_refused() -> None:
    made = service()
    assert stream_error(made, "stranger", packet_out(b"\1")) == (
        7,
        "only a primary controller may send packets",
    )
    assert stream_error(made, "c", packet_out(b"\2\0")) == (
        3,
        "packet_out: metadata egress_port: value 512 does not fit bit<9> (0 to 511)",
    )
    wrong = packet_out(b"\1")
    wrong.packet.metadata[1].metadata_id = 7
    assert stream_error(made, "c", wrong) == (
        3,
        "packet_out: metadata 7 is not known; there are: egress_port (1), _pad (2)",
    )
    wrong.packet.metadata[1].metadata_id = 1
    assert stream_error(made, "c", wrong) == (
        3,
        "packet_out: metadata 1 is given twice; there are: egress_port (1), _pad (2)",
    )
    assert made.device.pipeline is not None
    made.device.pipeline.switch.cpu_port = None  # type: ignore[misc]
    assert stream_error(made, "c", packet_out(b"\1")) == (
        9,
        "packet_out: the switch has no CPU port (--cpu-port)",
    )


@pytest.mark.p4runtime("16.5-1 16.6-3")
def test_other_stream_messages_that_are_refused() -> None:
    made = service()
    ack = p4r.StreamMessageRequest(digest_ack=p4r.DigestListAck(digest_id=5))
    assert stream_error(made, "c", ack) == (3, "no digest has id 5")
    assert stream_error(made, "c", p4r.StreamMessageRequest()) == (
        3,
        "expected arbitration, packet or digest_ack",
    )


@pytest.mark.p4runtime("5-7 12-2")
def test_a_controller_that_returns_finds_its_state() -> None:
    made = service()
    made.write(request([(INSERT, route(1))]))
    assert made.stream_closed("c") == []
    with pytest.raises(RpcError) as caught:
        made.write(request([(INSERT, route(2))]))
    assert caught.value.code == "PERMISSION_DENIED"
    assert hosts(made) == [1]
    made.stream_message("again", announce(1))
    made.write(request([(INSERT, route(2))]))
    assert hosts(made) == [1, 2]


# -- long writes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("atomicity", "expected"),
    [
        (p4r.WriteRequest.CONTINUE_ON_ERROR, ["OK", "PERMISSION_DENIED", "PERMISSION_DENIED"]),
        (p4r.WriteRequest.ROLLBACK_ON_ERROR, []),
        (p4r.WriteRequest.DATAPLANE_ATOMIC, []),
    ],
)
def test_others_have_the_device_between_updates_that_stand_for_themselves(
    atomicity: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another controller waits for the device, to become the primary."""
    monkeypatch.setattr(device_module, "_TURN", 0)
    made = service()
    updates = [(INSERT, route(host)) for host in (1, 2, 3)]

    def take_over() -> None:
        with made.device.turn():
            made.stream_message("new", announce(5))

    other = threading.Thread(target=take_over)
    with made.device.turn():
        other.start()
        while not made.device.lock._waiting:
            time.sleep(0.001)
        if expected:
            with pytest.raises(BatchError) as caught:
                made.write(request(updates, atomicity))
            assert codes(caught.value) == expected
        else:
            made.write(request(updates, atomicity))
    other.join()
    assert hosts(made) == ([1] if expected else [1, 2, 3])


def test_a_write_ends_where_another_pipeline_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = service()

    def pause() -> bool:
        made.device.load(program())
        return True

    monkeypatch.setattr(Device, "pause", lambda self: pause())
    with pytest.raises(BatchError, match="another pipeline was pushed") as caught:
        made.write(request([(INSERT, route(host)) for host in (1, 2)]))
    assert codes(caught.value) == ["OK", "ABORTED"]
    assert hosts(made) == []


# -- digest lists --------------------------------------------------------------------------------


def data(value: int) -> bytes:
    return p4d.P4Data(bitstring=bytes([value])).SerializeToString()


def values(lists: list[p4r.DigestList]) -> list[tuple[int, list[int]]]:
    return [(d.list_id, [x.bitstring[0] for x in d.data]) for d in lists]


@pytest.mark.p4runtime("9.8-2 9.8-3 9.8-4")
def test_digests_are_gathered_and_sent_once() -> None:
    config = p4r.DigestEntry.Config(max_timeout_ns=100, max_list_size=3, ack_timeout_ns=1000)
    lists = DigestLists({5: config}.get)
    assert lists.offer(4, data(1), 0) == []  # not enabled
    assert [values(lists.offer(5, data(v), 10)) for v in (1, 1, 2)] == [[], [], []]
    assert values(lists.offer(5, data(3), 20)) == [(1, [1, 2, 3])]
    assert lists.offer(5, data(2), 30) == []  # not acknowledged yet
    assert values(lists.tick(500)) == []
    lists.acknowledge(5, 1)
    assert lists.offer(5, data(2), 600) == []
    assert values(lists.tick(699)) == []
    assert values(lists.tick(700)) == [(2, [2])]
    assert lists.offer(5, data(2), 1699) == []
    assert lists.offer(5, data(2), 1700) == []  # the acknowledgement is overdue
    assert values(lists.tick(1800)) == [(3, [2])]


@pytest.mark.p4runtime("9.8-2")
def test_a_list_is_never_longer_than_its_config_says_now() -> None:
    config = p4r.DigestEntry.Config(max_timeout_ns=50, max_list_size=9)
    lists = DigestLists({5: config}.get)
    for number in (1, 2, 3):
        assert lists.offer(5, data(number), 0) == []
    config.max_list_size = 2
    assert values(lists.tick(50)) == [(1, [1, 2]), (2, [3])]


@pytest.mark.p4runtime("9.8-5 9.8-6 9.8-7")
def test_without_a_timeout_every_digest_is_sent_at_once() -> None:
    lists = DigestLists({5: p4r.DigestEntry.Config()}.get)
    assert values(lists.offer(5, data(1), 0)) == [(1, [1])]
    assert values(lists.offer(5, data(1), 0)) == [(2, [1])]


def shown(t: Type, value: object) -> p4d.P4Data:
    given = program(errors=["NoError", "Odd"])
    given.types = {
        "port_t": TypeInfo("port_t", 9, "x", None),
        "wide_t": TypeInfo("wide_t", 9, "x", 32),
    }
    return show_data(t, value, Catalog(given))


@pytest.mark.p4runtime("8.4.3-1")
def test_digest_data_is_encoded_by_its_type() -> None:
    learn = Struct("learn_t", (Field("mac", Bits(48)), Field("delta", Bits(8, signed=True))))
    assert shown(learn, [258, -1]) == p4d.P4Data(
        struct=p4d.P4StructLike(
            members=[p4d.P4Data(bitstring=b"\1\2"), p4d.P4Data(bitstring=b"\xff")]
        )
    )


@pytest.mark.p4runtime("8.3-6 8.4.3-1 8.4.3-2 8.4.3-3")
def test_data_of_every_type() -> None:
    inner = Struct("s", (Field("x", Bits(4)), Field("y", Bool())))
    header = Header("h", (Field("a", Bits(8)), Field("s", inner), Field("v", Varbit(16))))
    valid = Object(valid=True, fields=[7, [3, True], (8, 255)])
    invalid = Object(valid=False, fields=[0, [0, False], (0, 0)])
    data = p4d.P4Header(is_valid=True, bitstrings=[b"\7", b"\3", b"\1", b"\xff"])
    assert shown(header, valid) == p4d.P4Data(header=data)
    union = Union("u", (Field("first", header), Field("second", header)))
    second = p4d.P4HeaderUnion(valid_header_name="second", valid_header=data)
    assert shown(union, [invalid, valid]) == p4d.P4Data(header_union=second)
    assert shown(union, [invalid, invalid]) == p4d.P4Data(header_union=p4d.P4HeaderUnion())
    assert shown(Stack(header, 2), Object(items=[valid, invalid])) == p4d.P4Data(
        header_stack=p4d.P4HeaderStack(entries=[data, p4d.P4Header()])
    )
    assert shown(Stack(union, 1), Object(items=[[invalid, valid]])) == p4d.P4Data(
        header_union_stack=p4d.P4HeaderUnionStack(entries=[second])
    )
    pair = Struct("tuple<bit<8>, varbit<9>>", (Field("f0", Bool()), Field("f1", Varbit(9))))
    assert shown(pair, [False, (9, 256)]) == p4d.P4Data(
        tuple=p4d.P4StructLike(
            members=[
                p4d.P4Data(bool=False),
                p4d.P4Data(varbit=p4d.P4Varbit(bitstring=b"\1\0", bitwidth=9)),
            ]
        )
    )


@pytest.mark.p4runtime("8.4.5-1 8.4.5-2")
def test_names_stand_for_members_of_enums_and_for_errors() -> None:
    colour, kind = Enum("colour_t", ("Red", "Green")), SerEnum("kind_t", Bits(8), {"A": 6})
    assert shown(colour, 1) == p4d.P4Data(enum="Green")
    assert shown(colour, 7) == p4d.P4Data(enum="")
    assert shown(kind, 6) == p4d.P4Data(enum_value=b"\6")
    assert shown(ERROR, 1) == p4d.P4Data(error="Odd")


@pytest.mark.p4runtime("18.1.1-1")
def test_translated_types_are_sent_as_controllers_number_them() -> None:
    assert shown(NewType("port_t", Bits(9)), 10) == p4d.P4Data(bitstring=b"10")
    assert shown(NewType("wide_t", Bits(9)), 10) == p4d.P4Data(bitstring=b"\n")
