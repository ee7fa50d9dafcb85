"""Over gRPC, on a loopback port: a stock client (finsy) against a router that runs."""

from __future__ import annotations

import asyncio
import queue
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import finsy
import grpc
import pytest
from controlled import Served, control, serving
from finsy.proto import U128, p4r, p4r_grpc, rpc_status
from google.protobuf.wrappers_pb2 import StringValue
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradplane.experiment.p4_programs import P4Program
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.p4runtime.device_config import Source, device_config
from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS
from gradplane.switch.p4runtime.p4info import p4info_text
from gradplane.switch.p4runtime.server import P4RuntimeServer, ServerError
from gradplane.switch.p4runtime.service import P4RuntimeService
from gradplane.switch.source import CompileError

ROUTER = Path(__file__).parent / "programs" / "router.p4"
LOOPBACK = "127.0.0.1:0"
CPU_PORT = 510
PACKET = bytes(Ether(dst="02:00:00:00:00:99") / IP(dst="10.0.1.5") / UDP(dport=9) / b"data")
FORWARD = finsy.P4TableAction("ipv4_forward", dstAddr="02:00:00:00:00:01", port=3)


@pytest.fixture
def served() -> Iterator[Served]:
    """Provide a device with the router loaded, and its server's address."""
    with serving(program=ROUTER, cpu_port=CPU_PORT) as served:
        yield served


@pytest.fixture
def empty() -> Iterator[Served]:
    with serving(cpu_port=CPU_PORT) as served:
        yield served


def route(prefix: str = "10.0.1.0/24", action: finsy.P4TableAction = FORWARD) -> finsy.P4TableEntry:
    return finsy.P4TableEntry("ipv4_lpm", match=finsy.Match(dst=prefix), action=action)


def routes(address: str) -> list[tuple[Any, ...]]:
    async def read(sw: finsy.Switch) -> list[finsy.P4TableEntry]:
        return [entry async for entry in sw.read(finsy.P4TableEntry("ipv4_lpm"))]

    return [(dict(e.match), e.action) for e in control(address, read)]


@pytest.mark.p4runtime("3.2-1 19-1")
def test_a_pushed_program_runs(empty: Served, tmp_path: Path) -> None:
    device, address = empty
    blob = device_config(ROUTER)
    source = make_device(SwitchOptions(program=ROUTER)).target.catalog.p4info
    (tmp_path / "router.p4info.txtpb").write_text(p4info_text(source))

    async def push(sw: finsy.Switch) -> str:
        await sw.write([+route()])
        return sw.p4info.tables["ipv4_lpm"].name

    options = {"p4info": tmp_path / "router.p4info.txtpb", "p4blob": blob}
    assert control(address, push, finsy.SwitchOptions(**options)) == "MyIngress.ipv4_lpm"
    ((port, out),) = device.process(1, PACKET)
    assert (port, Ether(out).dst) == (3, "02:00:00:00:00:01")
    assert Ether(out)[IP].ttl == 63


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "P4DeviceConfig"])
def test_bmv2_json_is_a_device_config(empty: Served, tmp_path: Path, wrapped: bool) -> None:
    """As p4c's output is pushed: the JSON, and a P4Info whose ids are its own."""
    device, address = empty
    program = P4Program(ROUTER, {})
    text = p4info_text(program.p4info()).replace("37375156", "33554439")
    (tmp_path / "router.p4info.txtpb").write_text(text)
    blob = program.compiled_for("bmv2")
    if wrapped:
        blob = b"\x08\x01\x1a" + length(len(blob)) + blob

    async def push(sw: finsy.Switch) -> int:
        await sw.write([+route()])
        return sw.p4info.tables["ipv4_lpm"].id

    options = {"p4info": tmp_path / "router.p4info.txtpb", "p4blob": blob}
    assert control(address, push, finsy.SwitchOptions(**options)) == 33554439
    ((port, out),) = device.process(1, PACKET)
    assert (port, Ether(out).dst) == (3, "02:00:00:00:00:01")
    (headers,) = [h for h in device.target.catalog.headers.values() if h.name == "packet_in"]
    assert [(f.name, f.width) for f in headers.fields] == [("ingress_port", 9), ("_pad", 7)]


def length(count: int) -> bytes:
    """Return a number as a protobuf varint."""
    out = b""
    while count > 127:
        out += bytes([count & 127 | 128])
        count >>= 7
    return out + bytes([count])


@pytest.mark.parametrize("how", ['"{}"', "<{}>"])
def test_a_pushed_program_reads_no_file_of_the_switchs_machine(tmp_path: Path, how: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("password")
    source = Source("#include " + how.format(secret), str(tmp_path / "pushed.p4"))
    with pytest.raises(CompileError, match="cannot find") as caught:
        make_device(SwitchOptions()).compile(source)
    assert "password" not in str(caught.value)
    assert "looked in" not in str(caught.value), "the folders of the switch's machine"
    assert "push it with all its includes in one file (gradplane p4 config)" in str(caught.value)


def test_a_program_with_an_error_is_refused_with_its_line(empty: Served, tmp_path: Path) -> None:
    """The files are at the controller only; the message shows the line all the same."""
    _, address = empty
    (tmp_path / "ethernet.p4").write_text((ROUTER.parent / "ethernet.p4").read_text())
    text = ROUTER.read_text().replace("hdr.ipv4.ttl - 1", "hdr.ipv4.tll - 1")
    wrong = tmp_path / "wrong.p4"
    wrong.write_text(text)
    line = next(i for i, x in enumerate(text.split("\n"), 1) if "tll" in x)

    with grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        with Stream(stub, 1):
            request = p4r.SetForwardingPipelineConfigRequest(
                device_id=1,
                election_id=U128.encode(1),
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=p4r.ForwardingPipelineConfig(p4_device_config=device_config(wrong)),
            )
            with pytest.raises(grpc.RpcError) as caught:
                stub.SetForwardingPipelineConfig(request)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    first, source, caret = caught.value.details().split("\n")[:3]
    assert first.startswith(f"{wrong}:{line}:")
    assert source.strip() == "hdr.ipv4.ttl = hdr.ipv4.tll - 1;"
    assert caret.index("^") == source.index("hdr.ipv4.tll")


def test_entries_are_written_modified_read_and_deleted(served: Served) -> None:
    device, address = served

    async def insert(sw: finsy.Switch) -> None:
        await sw.write([+route(), +route("10.0.2.0/24", finsy.P4TableAction("drop"))])

    async def modify(sw: finsy.Switch) -> None:
        await sw.write([~route(action=finsy.P4TableAction("drop"))])

    async def delete(sw: finsy.Switch) -> None:
        await sw.delete([route()])

    control(address, insert)
    assert len(routes(address)) == 2
    assert len(device.process(1, PACKET)) == 1
    control(address, modify)
    assert device.process(1, PACKET) == []
    control(address, delete)
    assert [match for match, _ in routes(address)] == [{"dst": (0x0A000200, 24)}]


def test_the_default_entry_counters_and_registers(served: Served) -> None:
    device, address = served

    async def work(sw: finsy.Switch) -> tuple[Any, ...]:
        await sw.write([~finsy.P4TableEntry("ipv4_lpm", action=FORWARD, is_default_action=True)])
        device.process(1, PACKET)
        device.process(1, PACKET)
        seen = finsy.P4CounterEntry("seen", index=1)
        (counter,) = [entry async for entry in sw.read(seen)]
        (register,) = [e async for e in sw.read(finsy.P4RegisterEntry("last", index=0))]
        await sw.write([~finsy.P4CounterEntry("seen", index=1, data=finsy.P4CounterData())])
        (zero,) = [entry async for entry in sw.read(seen)]
        return counter.data, register.data, zero.packet_count

    data, register, zero = control(address, work)
    assert (data.packet_count, data.byte_count) == (2, 2 * len(PACKET))
    assert (register, zero) == (0x0A000105, 0)


def test_direct_counters_come_with_their_entries(served: Served) -> None:
    device, address = served

    async def work(sw: finsy.Switch) -> list[int]:
        await sw.write([+route()])
        device.process(1, PACKET)
        query = finsy.P4TableEntry("ipv4_lpm", counter_data=finsy.P4CounterData())
        return [e.counter_data.packet_count async for e in sw.read(query) if e.counter_data]

    assert control(address, work) == [1]


@pytest.mark.p4runtime("9.5.1-1 9.5.1-9")
def test_multicast_groups(served: Served) -> None:
    device, address = served

    async def work(sw: finsy.Switch) -> list[Any]:
        await sw.write(
            [
                +finsy.P4MulticastGroupEntry(5, replicas=[1, 2, 4]),
                +route(action=finsy.P4TableAction("flood", group=5)),
            ]
        )
        return [group async for group in sw.read(finsy.P4MulticastGroupEntry())]

    (group,) = control(address, work)
    assert (group.multicast_group_id, len(group.replicas)) == (5, 3)
    assert [port for port, _ in device.process(1, PACKET)] == [1, 2, 4]


def test_an_error_names_the_update_the_table_and_the_choices(served: Served) -> None:
    _, address = served

    async def work(sw: finsy.Switch) -> None:
        await sw.write([+route(), +route(), +route("10.0.9.0/24")])

    with pytest.raises(finsy.P4ClientError) as caught:
        control(address, work)
    assert caught.value.details[1].canonical_code == finsy.GRPCStatusCode.ALREADY_EXISTS
    assert caught.value.details[1].message == (
        "Match entry exists, use MODIFY if you wish to change action"
    )
    assert caught.value.message == (
        "1 of 3 updates failed; number 1: table MyIngress.ipv4_lpm: it has an entry for"
        " hdr.ipv4.dst 0xa000100/24"
    )
    assert list(caught.value.details) == [1]
    assert len(routes(address)) == 2  # by default the other updates are done


@pytest.mark.p4runtime("16.1-1 16.1-2")
def test_packet_in_and_packet_out(served: Served) -> None:
    device, address = served
    sent: list[tuple[int, bytes]] = []
    device.transmit = sent.extend

    async def work(sw: finsy.Switch) -> tuple[bytes, int]:
        await sw.write([+route(action=finsy.P4TableAction("to_cpu"))])
        await sw.write([finsy.P4PacketOut(PACKET, egress_port=7, _pad=0)])
        while not sent:  # a packet-out is not answered; control() waits no longer than 120 s
            await asyncio.sleep(0.01)
        device.process(6, PACKET)
        async for packet in sw.read_packets():
            return packet.payload, packet["ingress_port"]
        raise AssertionError("no packet-in")

    assert control(address, work) == (PACKET, 6)
    assert sent == [(7, PACKET)]


@pytest.mark.p4runtime("16.3-1")
def test_digests(served: Served) -> None:
    device, address = served
    frame = bytes(Ether(src="02:00:00:00:00:07", type=0x1234))

    async def work(sw: finsy.Switch) -> list[dict[str, Any]]:
        await sw.write([+finsy.P4DigestEntry("learn_t", max_list_size=1)])
        device.process(5, frame)
        async for digest in sw.read_digests("learn_t"):
            return list(digest.data)
        raise AssertionError("no digest")

    assert control(address, work) == [{"mac": 0x020000000007, "port": 5}]


@pytest.mark.p4runtime("5-8 12-2")
def test_a_backup_may_read_but_not_write(served: Served) -> None:
    _, address = served

    async def work(primary: finsy.Switch) -> str:
        options = finsy.SwitchOptions(initial_election_id=1)
        async with finsy.Switch("backup", address, options) as backup:
            assert (primary.is_primary, backup.is_primary) == (True, False)
            with pytest.raises(finsy.P4ClientError) as caught:
                await backup.write([+route()])
            return str(caught.value.message)

    message = control(address, work, finsy.SwitchOptions(initial_election_id=10))
    assert message == "election id 1 is not the primary's of the default role, which is 10"


def test_state_survives_the_controller(served: Served) -> None:
    device, address = served

    async def insert(sw: finsy.Switch) -> None:
        await sw.write([+route()])

    control(address, insert)
    assert len(device.process(1, PACKET)) == 1
    control(address, insert_more)
    assert len(routes(address)) == 2


async def insert_more(sw: finsy.Switch) -> None:
    await sw.write([+route("10.0.2.0/24")])


class Stream:
    """An open StreamChannel that has announced an election id."""

    def __init__(self, stub: p4r_grpc.P4RuntimeStub, election_id: int, device_id: int = 1) -> None:
        update = p4r.MasterArbitrationUpdate(
            device_id=device_id, election_id=U128.encode(election_id)
        )
        self._requests = Requests(p4r.StreamMessageRequest(arbitration=update))
        self.responses = stub.StreamChannel(self._requests)

    def __enter__(self) -> Stream:
        self.first = next(self.responses).arbitration
        return self

    def __exit__(self, *_: object) -> None:
        self._requests.end()
        for _ in self.responses:
            pass


class Requests:
    """A request iterator that stays open until end() is called."""

    def __init__(self, *first: p4r.StreamMessageRequest) -> None:
        self._waiting: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        for request in first:
            self._waiting.put(request)

    def __iter__(self) -> Requests:
        return self

    def __next__(self) -> p4r.StreamMessageRequest:
        request = self._waiting.get()
        if request is None:
            raise StopIteration
        return request

    def end(self) -> None:
        self._waiting.put(None)


@pytest.mark.p4runtime("10-1 10-2")
def test_the_status_details_are_in_the_trailing_metadata(served: Served) -> None:
    _, address = served
    with grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        with Stream(stub, 1) as stream:
            assert stream.first.status.code == 0
            request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1))
            request.updates.add(type=p4r.Update.INSERT).entity.table_entry.table_id = 1
            with pytest.raises(grpc.RpcError) as caught:
                stub.Write(request)
    text = "no table has id 1; there are: MyIngress.ipv4_lpm (37375156)"
    assert caught.value.code() == grpc.StatusCode.UNKNOWN
    assert caught.value.details() == f"1 of 1 updates failed; number 0: {text}"
    trailing = dict(caught.value.trailing_metadata())
    status = rpc_status.Status.FromString(trailing["grpc-status-details-bin"])
    assert (status.code, status.message) == (2, caught.value.details())
    error = p4r.Error()
    assert status.details[0].Unpack(error)
    assert (error.canonical_code, error.message) == (3, "Invalid P4 id")
    in_full = StringValue()
    assert error.details.Unpack(in_full) and in_full.value == text


@pytest.mark.p4runtime("5.3-1 16.6-4")
def test_a_stream_for_another_device_is_ended(served: Served) -> None:
    _, address = served
    with grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        with pytest.raises(grpc.RpcError) as caught, Stream(stub, 1, device_id=8):
            pass
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == "device id 8 is not served here, only 1"


def test_streams_that_announce_nothing_keep_nobody_waiting(served: Served) -> None:
    with grpc.insecure_channel(served[1]) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        silent = [Requests() for _ in range(DEFAULT_LIMITS.streams + 20)]
        open_ones = [stub.StreamChannel(requests) for requests in silent]
        assert stub.Capabilities(p4r.CapabilitiesRequest(), timeout=120).p4runtime_api_version
        ended: queue.SimpleQueue[grpc.Call] = queue.SimpleQueue()
        for call in open_ones:  # the server may meet them in another order
            call.add_done_callback(ended.put)
        refused = [ended.get(timeout=120) for _ in range(20)]
        assert {call.code() for call in refused} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        with Stream(stub, 1) as primary:
            assert primary.first.status.code == 0
        for requests in silent:
            requests.end()


def test_more_requests_than_may_wait_are_refused(served: Served) -> None:
    device, address = served
    limit, beyond = DEFAULT_LIMITS.calls, 20
    own = [("grpc.use_local_subchannel_pool", 1)]  # a connection of each, with limits of its own
    with grpc.insecure_channel(address, own) as one, grpc.insecure_channel(address, own) as other:
        stubs = [p4r_grpc.P4RuntimeStub(channel) for channel in (one, other)]
        with device.lock:
            calls = [
                stubs[i % 2].Capabilities.future(p4r.CapabilitiesRequest())
                for i in range(limit + beyond)
            ]
            answers = as_completed(calls)
            refused = [next(answers) for _ in range(beyond)]
        answered = list(answers)
    assert {call.code() for call in refused} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert {call.details() for call in refused} == {
        "128 requests are in progress, the limit (--limit calls=N)"
    }
    assert [call.code() for call in answered] == [grpc.StatusCode.OK] * limit


def as_completed(calls: Sequence[grpc.Future]) -> Iterator[Any]:
    """Yield calls in the order in which they end."""
    ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for call in calls:
        call.add_done_callback(ended.put)
    return (ended.get(timeout=120) for _ in calls)


@pytest.mark.p4runtime("16.2-1")
def test_the_highest_election_id_outlives_a_broken_connection(served: Served) -> None:
    device, address = served
    with grpc.insecure_channel(address) as other:
        channel = grpc.insecure_channel(address)
        primary = Stream(p4r_grpc.P4RuntimeStub(channel), 5).__enter__()
        assert primary.first.status.code == 0
        with Stream(p4r_grpc.P4RuntimeStub(other), 3) as backup:
            assert backup.first.status.code == 6
            channel.close()
            update = next(backup.responses).arbitration
            assert (update.status.code, U128.decode(update.election_id)) == (5, 5)
    assert device.pipeline is not None


@pytest.mark.p4runtime("17-1")
def test_capabilities_and_an_address_in_use(
    served: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    device, address = served
    with grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        answer = stub.Capabilities(p4r.CapabilitiesRequest())
    assert answer.p4runtime_api_version == "1.5.0"
    capfd.readouterr()
    with pytest.raises(ServerError) as caught:
        P4RuntimeServer(device, address).start()
    assert capfd.readouterr() == ("", "")
    assert str(caught.value) == (
        f"cannot listen on {address}: another program listens there (`ss -ltnp` shows which);"
        " choose another with --grpc-server-addr HOST:PORT (port 0: any free one)"
    )


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("192.0.2.1:9559", "it is no address of this machine (`ip address` shows them)"),
        ("127.0.0.1:65536", "ports end at 65535"),
        ("localhost", "it is not of the form HOST:PORT"),
        ("no.such.name.invalid:9559", "no machine has this name"),
    ],
)
def test_a_wrong_address_is_told_apart_from_one_in_use(
    served: Served, address: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ServerError) as caught:
        P4RuntimeServer(served[0], address).start()
    assert f"cannot listen on {address}: {reason}; choose another" in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_server_that_stops_frees_its_address(served: Served) -> None:
    device, _ = served
    with P4RuntimeServer(device, LOOPBACK) as server:
        address = server.address
    with socket.socket() as probe:
        host, _, port = address.rpartition(":")
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, int(port)))


def raw(data: bytes) -> bytes:
    return data


@pytest.mark.parametrize(
    ("rpc", "message"),
    [
        ("Write", "WriteRequest"),
        ("Read", "ReadRequest"),
        ("SetForwardingPipelineConfig", "SetForwardingPipelineConfigRequest"),
        ("GetForwardingPipelineConfig", "GetForwardingPipelineConfigRequest"),
        ("Capabilities", "CapabilitiesRequest"),
        ("StreamChannel", "StreamMessageRequest"),
    ],
)
def test_bytes_that_are_no_message_are_the_clients_fault(
    served: Served, rpc: str, message: str
) -> None:
    with grpc.insecure_channel(served[1]) as channel:
        call = channel.stream_stream(f"/p4.v1.P4Runtime/{rpc}", raw, raw)
        with pytest.raises(grpc.RpcError) as caught:
            list(call(iter([b"\xff\xff\xff"])))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == (
        f"the request's 3 bytes are no p4.v1.{message}: compare the client's .proto files with the"
        " service's"
    )


def test_a_fault_of_the_switch_is_internal(monkeypatch: pytest.MonkeyPatch) -> None:
    def capabilities(self: object, request: object) -> object:
        raise KeyError("api")

    monkeypatch.setattr(P4RuntimeService, "capabilities", capabilities)
    device = make_device(SwitchOptions(device_id=1))
    with (
        P4RuntimeServer(device, LOOPBACK) as server,
        grpc.insecure_channel(server.address) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest())
    assert caught.value.code() == grpc.StatusCode.INTERNAL
    assert caught.value.details() == "a fault of the switch, KeyError: 'api'"
