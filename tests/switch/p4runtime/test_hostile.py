"""Damaged messages: each is answered with an error that says why, never with one of ours."""

from __future__ import annotations

import pytest
from finsy.proto import U128, p4r
from google.protobuf.message import DecodeError
from hand_made_device import announce, entity, request, service
from hand_made_ir import program
from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError

INFO = build_p4info(program())
TEXTS = [
    """table_entry { table_id: $ipv4_lpm match { field_id: 1 lpm { value: "\\n" prefix_len: 32 } }
       action { action { action_id: $ipv4_forward params { param_id: 1 value: "\\002" }
       params { param_id: 2 value: "\\003" } } } counter_data { packet_count: 1 } }""",
    """table_entry { table_id: $acl priority: 3 match { field_id: 3 exact { value: "\\000" } }
       match { field_id: 1 ternary { value: "\\001" mask: "\\003" } }
       match { field_id: 2 range { low: "\\001" high: "\\003" } }
       action { action { action_id: $drop } } }""",
    "table_entry { table_id: $ipv4_lpm is_default_action: true }",
    "direct_counter_entry { table_entry { table_id: $ipv4_lpm } data { packet_count: 1 } }",
    "counter_entry { counter_id: $seen index { index: 3 } data { packet_count: 8 } }",
    'register_entry { register_id: $acc index { index: 3 } data { bitstring: "\\001\\000" } }',
    """meter_entry { meter_id: $rate index { index: 2 } config { cir: 1 pir: 3 pburst: 4 }
       counter_data { green {} red {} } }""",
    """packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 7
       replicas { port: "\\001" instance: 1 backup_replicas { port: "\\002" } } } }""",
    """packet_replication_engine_entry { clone_session_entry { session_id: 5
       replicas { egress_port: 3 } packet_length_bytes: 64 } }""",
]
ENTITIES = [entity(INFO, text).SerializeToString() for text in TEXTS]


@st.composite
def damaged_entities(draw: st.DrawFn) -> p4r.Entity:
    data = bytearray(draw(st.sampled_from(ENTITIES)))
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    try:
        return p4r.Entity.FromString(bytes(data))
    except DecodeError:
        return p4r.Entity()


batches = st.lists(st.tuples(st.integers(0, 3), damaged_entities()), max_size=6)


@settings(max_examples=300, deadline=None)
@given(batches, st.sampled_from([0, 1, 2]))
def test_damaged_updates_and_queries(batch: list, atomicity: int) -> None:
    made = service()
    errors: list[RpcError | None] = []
    try:
        made.write(request(batch, atomicity))
    except BatchError as error:
        errors += error.errors
    try:
        query = p4r.ReadRequest(device_id=1, entities=[e for _, e in batch])
        for _ in made.read(query):
            pass
    except BatchError as error:
        errors += error.errors
    for error in errors:
        assert error is None or (error.code != "INTERNAL" and error.message), error


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_stream_message(data: bytes) -> None:
    made = service()
    try:
        message = p4r.StreamMessageRequest.FromString(data)
    except DecodeError:
        return
    try:
        made.stream_message("c", message)
    except RpcError as error:
        assert error.code in ("FAILED_PRECONDITION", "INVALID_ARGUMENT")
    made.stream_message("other", announce(1 << 100))


@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_any_device_config(data: bytes) -> None:
    push = p4r.SetForwardingPipelineConfigRequest(
        device_id=1,
        election_id=U128.encode(1),
        action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        config=p4r.ForwardingPipelineConfig(p4_device_config=data),
    )
    made = service(loaded=False)
    if data == b"":
        with pytest.raises(RpcError):
            made.set_pipeline(push)
        return
    try:
        made.set_pipeline(push)
    except RpcError as error:
        assert error.code == "INVALID_ARGUMENT"
