"""Many messages of a stream: sent in bursts, whole and in order, however the stream ends."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from finsy.proto import U128, p4r

from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.p4runtime import response_streams
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.grpc_methods import Gate, RpcMethod, service_handler
from gradplane.switch.p4runtime.limits import Limits
from gradplane.switch.p4runtime.response_streams import Burst, Encoded, Losses, ResponseStream
from gradplane.switch.p4runtime.server import P4RuntimeServer
from gradplane.switch.p4runtime.status_errors import RpcError

COUNT = 3000
BURST = 20_000
ROUTER = Path(__file__).parent / "programs" / "router.p4"


class Server:
    """A service with one stream, which is there once a client has opened it."""

    def __init__(self) -> None:
        self.streams: queue.SimpleQueue[ResponseStream] = queue.SimpleQueue()
        self.closed = threading.Event()
        self.losses = Losses()
        gate = Gate(Limits())
        self._server, self._pool = gate.server("test", 4)
        method = RpcMethod(self._stream, None, None, requests=True, responses=True)
        # A message's class is not needed to serialise it, but for there being one.
        method = method._replace(response=Encoded)  # type: ignore[arg-type]
        self._server.add_generic_rpc_handlers((service_handler("t", {"S": method}, gate),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    def _stream(self, requests: Any, context: Any) -> Iterator[Any]:
        stream = ResponseStream(self.losses)
        self.streams.put(stream)
        yield from stream.serve(requests, lambda m: None, self.closed.set, "test", context)

    def __enter__(self) -> Server:
        self._server.start()
        self._channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        return self

    def __exit__(self, *error: object) -> None:
        self._channel.close()
        self._server.stop(0).wait()
        self._pool.shutdown()

    def open(self) -> tuple[Any, ResponseStream, Callable[[], None]]:
        """Open a stream; return both of its ends, and what closes it."""
        requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        call = self._channel.stream_stream("/t/S")(iter(requests.get, None))
        return call, self.streams.get(timeout=30), lambda: requests.put(None)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        yield found


def send(stream: ResponseStream, count: int = COUNT) -> list[bytes]:
    """Send messages of several sizes, one of them larger than a window; return them."""
    sent = [i.to_bytes(4, "big") * (1 + i % 7) for i in range(count)]
    sent[count // 2] = bytes(1 << 18)
    for data in sent:
        stream.send(Encoded(data, "packet"))
    return sent


@pytest.mark.parametrize("with_bursts", [True, False])
def test_all_come_in_order(
    server: Server, monkeypatch: pytest.MonkeyPatch, with_bursts: bool
) -> None:
    bursts: list[Burst] = []
    if not with_bursts:
        monkeypatch.setattr(response_streams, "_grpc_server", None)
    else:
        sends = Burst.send
        monkeypatch.setattr(Burst, "send", lambda b, first: bursts.append(b) or sends(b, first))
    call, stream, close = server.open()
    with ThreadPoolExecutor(1) as pool:
        for turn in range(20):
            sent = pool.submit(send, stream)
            assert [next(call) for _ in range(COUNT)] == sent.result()
            if turn and bool(bursts) == with_bursts:  # a reader may keep up with a slow sender
                break
    close()
    assert list(call) == []
    assert call.code() == grpc.StatusCode.OK
    assert bool(bursts) == with_bursts  # if this fails, grpcio has changed inside: see Burst
    assert server.losses.counts == {}


def test_an_error_comes_behind_those_that_wait(server: Server) -> None:
    call, stream, _ = server.open()
    sent = send(stream)
    stream.end(RpcError("RESOURCE_EXHAUSTED", "enough"))
    assert [next(call) for _ in sent] == sent
    with pytest.raises(grpc.RpcError):
        next(call)
    assert (call.code(), call.details()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "enough")


def test_a_client_that_goes_away_while_messages_wait(server: Server) -> None:
    for _ in range(3):
        call, stream, _ = server.open()
        send(stream)
        next(call)
        call.cancel()
        assert server.closed.wait(30)
        server.closed.clear()
    call, stream, close = server.open()  # the server goes on
    sent = send(stream, 10)
    assert [next(call) for _ in range(10)] == sent
    close()


def test_the_server_ends_while_a_client_does_not_read() -> None:
    with Server() as server:
        _, stream, _ = server.open()
        for _ in range(100):
            stream.send(Encoded(bytes(1 << 16), "packet"))


def test_a_burst_of_packet_ins_and_digests_is_whole() -> None:
    """All of 20,000 packet-ins and as many digests come, in order, as the switch sent them."""
    device = make_device(SwitchOptions(program=ROUTER, device_id=1, cpu_port=510))
    with P4RuntimeServer(device, "127.0.0.1:0") as server, grpc.insecure_channel(
        server.address, options=[("grpc.max_receive_message_length", -1)]
    ) as channel:  # fmt: skip
        stream = controller(channel, device)
        frames = [bytes(6) + i.to_bytes(6, "big") + b"\x12\x34" for i in range(BURST)]
        frames += [bytes(12) + b"\x08\0" + bytes(16) + i.to_bytes(4, "big") for i in range(BURST)]
        data = np.frombuffer(b"".join(frames), np.uint8)
        ends = np.cumsum([len(f) for f in frames], dtype=np.int64)
        starts = ends - [len(f) for f in frames]
        for first in range(0, len(frames), 200):
            some = slice(first, first + 200)
            device.process_spans(np.full(200, 3), data, starts[some], ends[some])
        digests: list[int] = []
        packets: list[bytes] = []
        while len(digests) < BURST or len(packets) < BURST:
            response = next(stream)
            packets += [response.packet.payload] if response.HasField("packet") else []
            for one in response.digest.data:
                mac, port = one.struct.members
                assert port.bitstring == b"\3"
                digests.append(int.from_bytes(mac.bitstring, "big"))
        assert response.HasField("packet")
        assert {m.metadata_id: m.value for m in response.packet.metadata}[1] == b"\3"
    assert digests == list(range(BURST))
    assert packets == frames[BURST:]
    assert device.losses.counts == {}


def controller(channel: grpc.Channel, device: Device) -> Iterator[Any]:
    """Become the primary, send IP packets to the CPU and enable the digest; return the stream."""
    update = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
    requests = chain([p4r.StreamMessageRequest(arbitration=update)], iter(queue.Queue().get, None))
    stream = channel.stream_stream(
        "/p4.v1.P4Runtime/StreamChannel",
        p4r.StreamMessageRequest.SerializeToString,
        p4r.StreamMessageResponse.FromString,
    )(requests)
    assert next(stream).arbitration.status.code == 0
    write = channel.unary_unary("/p4.v1.P4Runtime/Write", p4r.WriteRequest.SerializeToString, None)
    catalog = device.target.catalog
    request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1))
    digest = request.updates.add(type=p4r.Update.INSERT).entity.digest_entry
    (digest.digest_id,) = catalog.digests
    digest.config.max_list_size, digest.config.max_timeout_ns = 100, 10_000_000
    digest.config.ack_timeout_ns = 10**12
    entry = request.updates.add(type=p4r.Update.MODIFY).entity.table_entry
    entry.table_id = next(i for i, t in catalog.tables.items() if t.name.endswith("ipv4_lpm"))
    entry.is_default_action = True
    actions = catalog.p4info.actions
    to_cpu = next(a for a in actions if a.preamble.name.endswith("to_cpu"))
    entry.action.action.action_id = to_cpu.preamble.id
    write(request)
    return stream
