"""Elections, pipelines and streams of simple_switch_grpc (behavioral-model 1.15.5 with PI) that
differ: rows of docs/coming-from-bmv2.md, "P4Runtime errors" and "Under P4Runtime".

What this switch does is in test_arbitration.py, test_service.py and test_server.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from beside_bmv2 import Controller, called, ended, leave, real_switch
from finsy.proto import p4i, p4r
from v1programs import packet, source

from gradplane.differ.bmv2_switch import Bmv2Switch
from gradplane.experiment import p4_programs
from gradplane.switch.compiler import compile_source

TEXT = source(
    types='@controller_header("packet_out") header out_t { bit<9> port; bit<7> pad; }',
    headers="out_t sent;",
    parser="transition select(s.ingress_port) { 510: sent; default: a; }",
    states="state sent { pkt.extract(h.sent); transition a; }"
    " state a { pkt.extract(h.a); transition accept; }",
    ingress_locals="table t { key = { h.a.x : exact; } actions = { NoAction; } }",
    ingress="t.apply(); s.egress_spec = 1;"
    " if (h.sent.isValid()) { s.egress_spec = h.sent.port; h.sent.setInvalid(); }",
)
COMPILED = compile_source("sessions.p4", text=TEXT)
INFO = p4_programs.p4info_message(COMPILED.program, "bmv2")
CONFIG = p4_programs.compiled_for("bmv2", COMPILED).encode()
OTHER = compile_source(
    "other.p4",
    text=source(
        ingress_locals="action mark() { h.a.y = 9; }"
        " table u { key = { h.a.x : exact; } actions = { mark; NoAction; } }",
        ingress="u.apply(); s.egress_spec = 2;",
    ),
)
OTHER_INFO = p4_programs.p4info_message(OTHER.program, "bmv2")
OTHER_CONFIG = p4_programs.compiled_for("bmv2", OTHER).encode()
Push = p4r.SetForwardingPipelineConfigRequest
LEAVES = [(1, packet(7))]


@pytest.fixture
def theirs() -> Iterator[Bmv2Switch]:
    """Provide a process of its own: these requests may leave nothing that works."""
    with real_switch() as made:
        yield made


@pytest.fixture
def running(theirs: Bmv2Switch) -> Bmv2Switch:
    theirs.load(INFO, CONFIG)
    assert theirs.process(0, packet(7)) == LEAVES
    return theirs


def written(switch: Bmv2Switch, *election_id: int, **fields: int) -> str:
    """Return what becomes of a write of nothing, with an election id or none."""
    made = p4r.WriteRequest(**fields)  # type: ignore[arg-type]
    if election_id:
        made.election_id.high, made.election_id.low = election_id
    return called(switch, "Write", made)


def pushed(switch: Bmv2Switch, action: int, config: bytes, info: p4i.P4Info = INFO) -> str:
    made = Push(action=action)  # type: ignore[arg-type]
    made.election_id.low = 1
    made.config.p4info.CopyFrom(info)
    made.config.p4_device_config = config
    return called(switch, "SetForwardingPipelineConfig", made)


def test_a_primary_loses_its_role_in_silence_and_its_end_ends_the_switch(
    theirs: Bmv2Switch,
) -> None:
    """An assertion of PI fails."""
    first, second = Controller(theirs), Controller(theirs)
    assert first.announce(5, 0) == "Is primary"
    assert second.announce(3, 0) == "Is backup"
    assert second.announce(5, 0) == "INVALID_ARGUMENT"
    assert written(theirs, 5, 0) == "PERMISSION_DENIED"
    with pytest.raises(grpc.RpcError):
        first.leave()
    assert ended(theirs) != 0


def test_any_device_has_a_primary(theirs: Bmv2Switch) -> None:
    assert Controller(theirs).announce(0, 1, device=7) == "Is primary"


def test_a_sole_controller_that_lowers_its_id_stays_primary(theirs: Bmv2Switch) -> None:
    made = Controller(theirs)
    assert [made.announce(5, 0), made.announce(2, 0)] == ["Is primary", "Is primary"]
    assert written(theirs, 5, 0) == "PERMISSION_DENIED"


def test_a_stream_without_an_id_is_like_one_with_0(theirs: Bmv2Switch) -> None:
    first, second = Controller(theirs), Controller(theirs)
    assert first.announce(0, 0) == "Is backup"
    assert second.announce() == "INVALID_ARGUMENT"


def test_ids_are_forgotten_when_all_have_left(running: Bmv2Switch) -> None:
    first = Controller(running)
    assert first.announce(5, 0) == "Is primary"
    first.leave()
    leave(running)
    assert any(written(running) == "OK" for _ in range(1000))  # once the stream has ended there
    assert written(running, 5, 0) == "PERMISSION_DENIED"
    last = Controller(running)
    assert last.announce(0, 2) == "Is primary"


def test_streams_without_a_reply(running: Bmv2Switch) -> None:
    """A backup's packet-out, an acknowledgement of an unknown digest, and an empty message."""
    backup = Controller(running)
    assert backup.announce(0, 0) == "Is backup"
    sent = p4r.StreamMessageRequest()
    sent.packet.payload = packet(7)
    backup.send(sent)
    running.send(p4r.StreamMessageRequest(digest_ack=p4r.DigestListAck(digest_id=5)))
    running.send(p4r.StreamMessageRequest())
    assert running.received(0.3) == []
    assert pushed(running, Push.VERIFY, CONFIG) == "OK"


@pytest.mark.parametrize("action", ["VERIFY", "VERIFY_AND_COMMIT"])
def test_a_config_that_is_no_program_is_taken_and_the_old_one_runs_on(
    running: Bmv2Switch, action: str
) -> None:
    assert pushed(running, Push.Action.Value(action), b"xx") == "OK"
    assert running.process(0, packet(7)) == LEAVES


def test_after_a_save_requests_go_to_the_new_program_and_packets_to_the_old(
    running: Bmv2Switch,
) -> None:
    """As here: entries that are written before COMMIT are there after it."""
    assert pushed(running, Push.VERIFY_AND_SAVE, OTHER_CONFIG, OTHER_INFO) == "OK"
    get = running.channel.unary_unary(
        "/p4.v1.P4Runtime/GetForwardingPipelineConfig",
        p4r.GetForwardingPipelineConfigRequest.SerializeToString,
        p4r.GetForwardingPipelineConfigResponse.FromString,
    )
    saved = get(p4r.GetForwardingPipelineConfigRequest(), timeout=10)
    assert saved.config.p4_device_config == OTHER_CONFIG
    (table,) = OTHER_INFO.tables
    entry = p4r.Entity()
    entry.table_entry.table_id = table.preamble.id
    entry.table_entry.match.add(field_id=1).exact.value = b"\0"
    entry.table_entry.action.action.action_id = table.action_refs[0].id
    assert running.write(p4r.Update.INSERT, entry) == ("OK", "")
    assert running.process(0, packet(7)) == LEAVES
    commit = Push(action=Push.COMMIT)
    commit.election_id.low = 1
    assert called(running, "SetForwardingPipelineConfig", commit) == "OK"
    assert running.process(0, packet(7)) == [(2, packet(7, 0, 9))]


def test_after_a_save_that_failed_no_pipeline_is_taken(running: Bmv2Switch) -> None:
    for config in (b"xx", CONFIG):
        assert pushed(running, Push.VERIFY_AND_SAVE, config) == "UNKNOWN"
    assert pushed(running, Push.VERIFY_AND_COMMIT, CONFIG) == "UNKNOWN"
    assert running.process(0, packet(7)) == LEAVES


def test_codes_of_requests(running: Bmv2Switch) -> None:
    """Another device, batches that succeed or fail as a whole, and bytes that are no message."""
    other = p4r.WriteRequest(device_id=9)
    other.election_id.low = 1
    assert called(running, "Write", other) == "PERMISSION_DENIED"
    get = p4r.GetForwardingPipelineConfigRequest(device_id=9)
    assert called(running, "GetForwardingPipelineConfig", get) == "FAILED_PRECONDITION"
    for atomicity in (p4r.WriteRequest.ROLLBACK_ON_ERROR, p4r.WriteRequest.DATAPLANE_ATOMIC):
        assert written(running, 0, 1, atomicity=atomicity) == "UNIMPLEMENTED"
    assert called(running, "Write", b"\xff\xff\xff") == "INTERNAL"


def test_a_read_ends_with_its_first_failure(running: Bmv2Switch) -> None:
    missing, unknown = p4r.Entity(), p4r.Entity(table_entry=p4r.TableEntry(table_id=5))
    group = missing.packet_replication_engine_entry.multicast_group_entry
    group.multicast_group_id = 77
    for queries, code in (
        ((missing, unknown), "NOT_FOUND"),
        ((unknown, missing), "INVALID_ARGUMENT"),
    ):
        assert called(running, "Read", p4r.ReadRequest(entities=queries)) == code


PORTS = {
    "left out": ([], 0),
    "no bytes": ([(1, b"")], 0),
    "one id twice": ([(1, b"\2"), (1, b"\3")], 3),
    "padding left out": ([(1, b"\4")], 4),
    "too wide": ([(1, b"\2\0")], None),
    "an unknown id": ([(1, b"\5"), (9, b"\1")], None),
}


@pytest.fixture(scope="module")
def with_cpu_port() -> Iterator[Bmv2Switch]:
    with real_switch(cpu_port=510) as made:
        made.load(INFO, CONFIG)
        made.process(0, packet(7))
        yield made


@pytest.mark.parametrize(("metadata", "port"), PORTS.values(), ids=PORTS)
def test_metadata_of_a_packet_out(
    with_cpu_port: Bmv2Switch, metadata: list[tuple[int, bytes]], port: int | None
) -> None:
    """Here what is too wide, unknown, or given twice is a StreamError."""
    message = p4r.StreamMessageRequest()
    message.packet.payload = packet(7)
    for number, value in metadata:
        message.packet.metadata.add(metadata_id=number, value=value)
    left = with_cpu_port.send_packet(message, int(port is not None), 0.15)
    assert left == ([] if port is None else [(port, packet(7))])
    assert with_cpu_port.received(0.01) == []
