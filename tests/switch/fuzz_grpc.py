"""Random and damaged gRPC messages to a running switch: python tests/switch/fuzz_grpc.py.

Requests of every RPC, as bytes: random ones, and well-formed ones with fields changed, nested,
repeated and cut; requests for traces, with filters put together at random; and simple_switch_CLI's
commands with words that are not meant for them. Whatever comes, the server answers in time, with a
status that the protocol has for it; packets go on being forwarded; and at the end a controller
finds it in order.
"""

from __future__ import annotations

import argparse
import json
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import grpc
from finsy.proto import U128, p4r, p4r_grpc, rpc_status
from google.protobuf.message import Message

from gradplane.switch import commands
from gradplane.switch.daemon.clients import ACCEPTED
from gradplane.switch.daemon.clients import SERVICE as LIVE
from gradplane.switch.daemon.clients import TRACE as METHOD
from gradplane.switch.daemon.command_service import CommandService
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.daemon.trace_service import TraceService
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.device_config import device_config
from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS
from gradplane.switch.p4runtime.server import P4RuntimeServer

ROUTER = Path(__file__).parent / "p4runtime" / "programs" / "router.p4"
PATIENCE = 30.0  # seconds for one answer
SERVICE = "/p4.v1.P4Runtime/"
REQUESTS: dict[str, type[Message]] = {
    "Write": p4r.WriteRequest,
    "Read": p4r.ReadRequest,
    "SetForwardingPipelineConfig": p4r.SetForwardingPipelineConfigRequest,
    "GetForwardingPipelineConfig": p4r.GetForwardingPipelineConfigRequest,
    "Capabilities": p4r.CapabilitiesRequest,
    "StreamChannel": p4r.StreamMessageRequest,
}
STREAMS = ("Read", "StreamChannel")  # RPCs that answer with a stream
TRACE, COMMANDS = "Trace", "Commands"
ELECTION_ID = (1 << 128) - 1  # of the primary: higher than any that random messages have
PORT = 1  # where packets come in
WORDS = """hdr.ethernet.type hdr.ipv4.ttl hdr.ipv4.dst hdr.ipv4.isValid() hdr meta 10.0.0.1
02:00:00:00:00:01 ::1 0x0800 8w1 1 -1 true == == != < && || ! ( ) [7:0] [ + << ++ ? : / . , { }
mark_to_drop standard_metadata error.NoError \u00e9 \" ; \0"""  # of filters
COMMAND_WORDS = """=> 0 1 2 -1 0x10 ipv4_lpm ipv4_forward drop flood seen routed
10.0.0.0/8 10.0.0.0/33 1&&&1 0->5 0.1:5 nan:1 1e300:1 | 16777216 99999999999999999999 512 65535 true
MyIngress.ipv4_lpm 02:00:00:00:00:01 :: \u00e9 \0 # {"""
EDGES = (0, 1, 2, 3, 7, 255, 256, 65535, 1 << 31, (1 << 32) - 1)
BYTES = (b"", b"\0", b"\1", b"\xff" * 4, b"\0" * 40, b"x" * 3000)


class Maker:
    """Makes requests: known ids and values now and then, so that some get far."""

    def __init__(self, device: Device, chance: random.Random) -> None:
        self._chance = chance
        assert device.pipeline is not None
        info = device.pipeline.catalog.p4info
        groups = (info.tables, info.actions, info.counters, info.meters, info.registers)
        self._ids = [each.preamble.id for group in groups for each in group]

    def request(self, rpc: str) -> bytes:
        chance = self._chance
        if chance.random() < 0.1:
            return chance.randbytes(chance.randrange(200))
        message = REQUESTS[rpc]()
        self._fill(message, 0)
        if "device_id" in message.DESCRIPTOR.fields_by_name and chance.random() < 0.9:
            message.device_id = 1  # type: ignore[attr-defined]
        if "election_id" in message.DESCRIPTOR.fields_by_name and chance.random() < 0.9:
            message.election_id.CopyFrom(U128.encode(ELECTION_ID))  # type: ignore[attr-defined]
        for role in ("role", "role_id"):
            if role in message.DESCRIPTOR.fields_by_name and chance.random() < 0.95:
                message.ClearField(role)
        if rpc == "SetForwardingPipelineConfig" and chance.random() < 0.5:
            message.config.p4_device_config = self._device_config()  # type: ignore[attr-defined]
        data = bytearray(message.SerializeToString())
        if data and chance.random() < 0.1:
            data[chance.randrange(len(data))] = chance.randrange(256)
        return bytes(data)

    def trace(self) -> bytes:
        """Return a request for traces, sometimes a valid one."""
        chance = self._chance
        if chance.random() < 0.1:
            return chance.randbytes(chance.randrange(60))
        values = [None, True, -1, 0, 1, 2, 1 << 32, 1 << 70, 0.5, "", [], {}, "hdr.ipv4.ttl == 1"]
        where = " ".join(chance.choices(WORDS.split(), k=chance.choice([1, 3, 3, 5, 12])))
        if chance.random() < 0.05:
            where = chance.choice("([{!~-") * chance.choice([50, 3000, 9999])
        likely = {"port": PORT, "count": chance.randrange(1, 4), "where": where}
        wanted = {key: value for key, value in likely.items() if chance.random() < 0.5}
        if chance.random() < 0.2:
            wanted[chance.choice(["port", "where", "count", "more"])] = chance.choice(values)
        return json.dumps(wanted).encode()

    def commands(self) -> bytes:
        """Return a request for commands; sometimes a runtime JSON file, some other JSON or none."""
        chance = self._chance
        if chance.random() < 0.1:
            return chance.randbytes(chance.randrange(60))

        def line() -> str:
            words = chance.choices(COMMAND_WORDS.split(), k=chance.randrange(6))
            return " ".join([chance.choice([*commands.COMMANDS, ""]), *words])

        if chance.random() < 0.2:
            return json.dumps({"complete": line()}).encode()
        text = "\n".join(line() for _ in range(chance.randrange(4)))
        if chance.random() < 0.2:
            values = [None, 1, "", [], [1], [{}], [{"table": "ipv4_lpm", "action_name": 1}], {}]
            keys = ["target", "table_entries", "clone_session_entries", "multicast_group_entries"]
            text = json.dumps({chance.choice(keys): chance.choice(values)})
        return json.dumps({"text": text, chance.choice(["file", "file", "x"]): "f"}).encode()

    def _device_config(self) -> bytes:
        """Return our device config, damaged."""
        data = bytearray(device_config(ROUTER))
        for _ in range(self._chance.randrange(1, 4)):
            data[self._chance.randrange(len(data))] = self._chance.randrange(256)
        return bytes(data)

    def _fill(self, message: Message, depth: int) -> None:
        """Fill some of the fields with random values."""
        for field in message.DESCRIPTOR.fields:
            if self._chance.random() < 0.4 or depth > 6:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                continue
            if field.message_type is not None:
                if field.is_repeated:
                    for _ in range(self._chance.randrange(3)):
                        self._fill(getattr(message, field.name).add(), depth + 1)
                else:
                    inner = getattr(message, field.name)
                    inner.SetInParent()
                    self._fill(inner, depth + 1)
            elif field.is_repeated:
                getattr(message, field.name).extend([self._value(field)])
            else:
                setattr(message, field.name, self._value(field))

    def _value(self, field: object) -> object:
        chance, kind = self._chance, field.cpp_type  # type: ignore[attr-defined]
        if kind == field.CPPTYPE_STRING:  # type: ignore[attr-defined]
            data = chance.choice([*BYTES, chance.randbytes(chance.randrange(9))])
            is_text = field.type == field.TYPE_STRING  # type: ignore[attr-defined]
            return data.decode("latin-1") if is_text else data
        if kind == field.CPPTYPE_BOOL:  # type: ignore[attr-defined]
            return chance.random() < 0.5
        if kind == field.CPPTYPE_ENUM:  # type: ignore[attr-defined]
            return chance.choice(list(field.enum_type.values_by_number))  # type: ignore[attr-defined]
        if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):  # type: ignore[attr-defined]
            return chance.random()
        number = chance.choice([*EDGES, *self._ids, chance.randrange(20)])
        if kind in (field.CPPTYPE_INT32, field.CPPTYPE_INT64):  # type: ignore[attr-defined]
            return min(number, (1 << 31) - 1) * chance.choice([1, 1, -1])
        return number


def raw(data: bytes) -> bytes:
    return data


class Client:
    """Sends requests as bytes."""

    def __init__(self, address: str) -> None:
        channel = grpc.insecure_channel(address)
        self.stub = p4r_grpc.P4RuntimeStub(channel)
        self._commands = channel.unary_stream(f"/{LIVE}/{COMMANDS}", raw, raw)
        self._trace = channel.unary_stream(f"/{LIVE}/{METHOD}", raw, raw)
        self._calls = {
            rpc: channel.unary_stream(SERVICE + rpc, raw, raw)
            if rpc == "Read"
            else channel.stream_stream(SERVICE + rpc, raw, raw)
            if rpc == "StreamChannel"
            else channel.unary_unary(SERVICE + rpc, raw, raw)
            for rpc in REQUESTS
        }

    def send(self, rpc: str, requests: list[bytes]) -> str:
        """Return the name of the status that the request ends with."""
        try:
            if rpc == "StreamChannel":
                list(self._calls[rpc](iter(requests), timeout=PATIENCE))
            elif rpc == "Read":
                list(self._calls[rpc](requests[0], timeout=PATIENCE))
            else:
                self._calls[rpc](requests[0], timeout=PATIENCE)
        except grpc.RpcError as error:
            return worst(error)
        return "OK"

    def commands(self, request: bytes) -> str:
        """Return the status of a request for commands."""
        try:
            for answer in self._commands(request, timeout=PATIENCE):
                assert json.loads(answer).keys() in ({"where", "output", "error"}, {"choices"})
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    def trace(self, request: bytes, packet: Callable[[], object]) -> str:
        """Return the status of a request for traces, which is ended after a packet."""
        call = self._trace(request, timeout=PATIENCE)
        try:
            if ACCEPTED not in call.initial_metadata():
                next(call)  # raises what the switch says instead
            packet()
            wanted = json.loads(request)
            if "where" not in wanted and wanted.get("port", PORT) == PORT:
                for answer in islice(call, 1):
                    assert json.loads(answer).keys() == {"text", "trace"}
            call.cancel()
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"


def worst(error: grpc.RpcError) -> str:
    """Return the status of a request, INTERNAL if one of its parts has that."""
    assert error.details(), f"{error.code().name} without a text"
    trailing = dict(error.trailing_metadata() or ())
    status = rpc_status.Status.FromString(trailing.get("grpc-status-details-bin", b""))
    parts = p4r.Error()
    codes = [parts.canonical_code for detail in status.details if detail.Unpack(parts)]
    return "INTERNAL" if grpc.StatusCode.INTERNAL.value[0] in codes else str(error.code().name)


def primary(stub: p4r_grpc.P4RuntimeStub) -> Iterator[p4r.StreamMessageResponse]:
    """Yield a stream of the controller that may write, for as long as it is kept."""

    def requests() -> Iterator[p4r.StreamMessageRequest]:
        update = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(ELECTION_ID))
        yield p4r.StreamMessageRequest(arbitration=update)
        while True:
            time.sleep(1)

    stream: Iterator[p4r.StreamMessageResponse] = stub.StreamChannel(requests())
    next(stream)
    return stream


def run(seconds: float, seed: int) -> None:
    """Run until the time is over; AssertionError for an answer that is not allowed."""
    chance = random.Random(seed)
    device = make_device(SwitchOptions(program=ROUTER, device_id=1, cpu_port=510))
    others = [TraceService(device).handler, CommandService(device, commands.NoPorts()).handler]
    with P4RuntimeServer(device, "127.0.0.1:0", others, DEFAULT_LIMITS.traces) as server:
        client, maker = Client(server.address), Maker(device, chance)
        stream = primary(client.stub)
        statuses: Counter[str] = Counter()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            rpc = chance.choice([*REQUESTS, TRACE, COMMANDS])
            if rpc == TRACE:
                requests = [maker.trace()]
                status = client.trace(requests[0], lambda: device.process(PORT, bytes(60)))
            elif rpc == COMMANDS:
                requests = [maker.commands()]
                status = client.commands(requests[0])
            else:
                requests = [maker.request(rpc) for _ in range(3 if rpc == "StreamChannel" else 1)]
                status = client.send(rpc, requests)
            never = ["DEADLINE_EXCEEDED", "UNAVAILABLE", "INTERNAL"]
            never += ["UNKNOWN"] * (rpc in (TRACE, COMMANDS))
            assert status not in never, (rpc, status, [data.hex() for data in requests])
            device.process(PORT, chance.randbytes(chance.randrange(100)))
            statuses[status] += 1
            if statuses.total() % 100 == 0:
                print(f"\r{statuses.total()} requests ", end="", flush=True)
        client.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=PATIENCE)
        assert stream.is_active(), "the primary controller was cut off"  # type: ignore[attr-defined]
        stream.cancel()  # type: ignore[attr-defined]
    counts = ", ".join(f"{name} {count}" for name, count in statuses.most_common())
    print(f"\r{statuses.total()} requests, every answer in order: {counts}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long (default 60)")
    parser.add_argument("--seed", type=int, help="of the messages (default: random)")
    options = parser.parse_args()
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    run(options.seconds, seed)


if __name__ == "__main__":
    main()
