"""The P4Runtime service of one device: messages in, messages out. No I/O, no threads.

Unary requests return their answer or raise RpcError. Stream requests and messages of the switch
return deliveries, (stream, message) each. Only one thread may call it at a time; server.py holds a
lock for that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from google.protobuf.message import Message as ProtobufMessage

from gradplane._p4runtime import U128, p4r
from gradplane.switch.ir.types import Type
from gradplane.switch.p4runtime.arbitration import Arbitration, Client, Notice, Stream, request_role
from gradplane.switch.p4runtime.catalog import Catalog, HeaderInfo, Value
from gradplane.switch.p4runtime.device import Device, Outputs
from gradplane.switch.p4runtime.digest_lists import DigestLists
from gradplane.switch.p4runtime.entities.table_entries import show_entry
from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS, Limits
from gradplane.switch.p4runtime.p4data import Encode, bits_encoder, delimited, encoder
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.read import read
from gradplane.switch.p4runtime.reconcile import carry_over
from gradplane.switch.p4runtime.response_streams import Encoded
from gradplane.switch.p4runtime.roles import RoleConfig
from gradplane.switch.p4runtime.status_errors import RpcError, code_number, invalid
from gradplane.switch.p4runtime.write import write
from gradplane.switch.runtime.control_messages import Digest, Fault, IdleNotice, Message, PacketIn

API_VERSION = "1.5.0"

log = logging.getLogger(__name__)

Delivery = tuple[Stream, p4r.StreamMessageResponse | Encoded]
_Set = p4r.SetForwardingPipelineConfigRequest
_Get = p4r.GetForwardingPipelineConfigRequest


class P4RuntimeService:
    """Handles arbitration, requests and notifications of `device`."""

    def __init__(self, device: Device, limits: Limits = DEFAULT_LIMITS) -> None:
        self.device = device
        self.arbitration = Arbitration(device.id, limits)
        self._made: Outgoing | None = None

    # -- unary requests --------------------------------------------------------------------------

    def write(self, request: p4r.WriteRequest) -> p4r.WriteResponse:
        """Apply a batch; others have the device in between, where its updates stand for themselves.

        Raises RpcError for the whole request, BatchError for some of its updates.
        """
        rights, target = self._primary_rights(request), self.device.target

        def pause() -> None:
            if self.device.pause():
                self._primary_rights(request)
                if self.device.target is not target:
                    what = "not applied: another pipeline was pushed while the request was served"
                    raise RpcError("ABORTED", what)

        write(target, request.updates, request.atomicity, rights, pause)
        return p4r.WriteResponse()

    def read(self, request: p4r.ReadRequest) -> Iterator[p4r.ReadResponse]:
        self._check_device(request.device_id)
        rights = self.arbitration.rights(request.role)
        return read(self.device.target, request.entities, rights)

    def set_pipeline(self, request: _Set) -> p4r.SetForwardingPipelineConfigResponse:
        rights = self._primary_rights(request)
        if not rights.can_push_pipeline:
            raise RpcError("PERMISSION_DENIED", "the role may not push a pipeline")
        device = self.device
        if request.action == _Set.COMMIT:
            device.commit(self._saved(request))
            return p4r.SetForwardingPipelineConfigResponse()
        if request.action not in (
            _Set.VERIFY,
            _Set.VERIFY_AND_SAVE,
            _Set.VERIFY_AND_COMMIT,
            _Set.RECONCILE_AND_COMMIT,
        ):
            raise invalid(f"action {request.action} is not known")
        if not request.HasField("config"):
            raise invalid(f"{_action(request)} needs a config; none is given")
        pipeline = device.prepare(request.config)
        match request.action:
            case _Set.VERIFY_AND_SAVE:
                device.saved = pipeline
            case _Set.VERIFY_AND_COMMIT:
                device.commit(pipeline)
            case _Set.RECONCILE_AND_COMMIT:
                self._reconcile(pipeline)
        return p4r.SetForwardingPipelineConfigResponse()

    def get_pipeline(self, request: _Get) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the current config.

        Raises RpcError while there is no program, as PI does: clients such as p4-utils push theirs
        then. To the specification an empty response is an answer, too.
        """
        self._check_device(request.device_id)
        if request.response_type not in _Get.ResponseType.values():
            what = f"response type {request.response_type} is not known"
            raise invalid(what)
        response = p4r.GetForwardingPipelineConfigResponse()
        kept, config = self.device.target.config, response.config
        config.SetInParent()
        if kept.HasField("cookie"):
            config.cookie.CopyFrom(kept.cookie)
        if request.response_type in (_Get.ALL, _Get.P4INFO_AND_COOKIE):
            config.p4info.CopyFrom(kept.p4info)
        if request.response_type in (_Get.ALL, _Get.DEVICE_CONFIG_AND_COOKIE):
            config.p4_device_config = kept.p4_device_config
        return response

    def capabilities(self, request: p4r.CapabilitiesRequest) -> p4r.CapabilitiesResponse:
        if request.device_id:  # 0: not asked about a device
            self._check_device(request.device_id)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def is_primary(self, head: p4r.WriteRequest | _Set) -> bool:
        """Return whether the start of a request names a primary, which may send a large one."""
        given = U128.decode(head.election_id) if head.HasField("election_id") else None
        primaries = self.arbitration.primaries()
        return any(client.election_id == given for client, _ in primaries)

    # -- streams ---------------------------------------------------------------------------------

    def stream_message(
        self, stream: Stream, request: p4r.StreamMessageRequest
    ) -> tuple[list[Delivery], Outputs]:
        """Handle a message on a stream.

        Return what to deliver and the packets to send through ports. Raises RpcError when the
        stream is to be ended with that status.
        """
        match request.WhichOneof("update"):
            case "arbitration":
                return _arbitration(self.arbitration.announce(stream, request.arbitration)), []
            case "packet":
                return self._packet_out(stream, request.packet)
            case "digest_ack":
                return self._digest_ack(stream, request.digest_ack), []
        error = p4r.StreamError(
            canonical_code=code_number("INVALID_ARGUMENT"),
            message="expected arbitration, packet or digest_ack",
            other=p4r.StreamOtherError(),
        )
        return [(stream, p4r.StreamMessageResponse(error=error))], []

    def stream_closed(self, stream: Stream) -> list[Delivery]:
        return _arbitration(self.arbitration.leave(stream))

    # -- messages of the switch -------------------------------------------------------------------

    def switch_message(
        self, message: Message, now: int
    ) -> list[tuple[Stream, p4r.StreamMessageResponse]]:
        """Return deliveries of a message for the primaries it concerns; `now`: ns since 1970.

        A message of the program that ran before is dropped if the current one has no such object.
        """
        return [
            (stream, p4r.StreamMessageResponse.FromString(response.SerializeToString()))
            for stream, response in self._deliveries(message, now, self._receivers())
        ]

    def switch_messages(self, messages: Iterable[Message], now: int) -> Iterator[Delivery]:
        """Yield the deliveries of messages, as of `switch_message`; what fails is logged."""
        receivers = self._receivers()
        for message in messages:
            try:
                yield from self._deliveries(message, now, receivers)
            except Exception:
                log.exception("a message of the switch could not be passed on: %s", message)

    def _deliveries(
        self, message: Message, now: int, receivers: Sequence[tuple[Client, RoleConfig]]
    ) -> Sequence[Delivery]:
        pipeline = self.device.pipeline
        if pipeline is None:
            return []
        match message:
            case PacketIn(packet=packet):
                encoder = self._outgoing(pipeline).packet_ins
                given = [client for client, rights in receivers if encoder.passes(rights, packet)]
                if not given:
                    return []
                response = encoder.encode(packet)
                return [(client.stream, response) for client in given]
            case Digest():
                return self._digest_deliveries(self._outgoing(pipeline).digest(message, now))
            case IdleNotice():
                return self._idle(pipeline, message, now)
            case Fault(text=text):
                log.warning("%s", text)
        return []

    @property
    def counts_time(self) -> bool:
        """True if something may become due: entries have idle timeouts, or a digest list waits."""
        pipeline = self.device.pipeline
        if pipeline is None:
            return False
        return bool(pipeline.state.timed_tables) or self._outgoing(pipeline).lists.waiting

    def tick(self, now: int) -> Sequence[Delivery]:
        """Check for idle entries and return the digest lists due at `now`, ns since 1970."""
        pipeline = self.device.pipeline
        if pipeline is None:
            return []
        if pipeline.state.timed_tables:
            with pipeline.switch.lock:
                pipeline.state.check_idle()
        return self._digest_deliveries(self._outgoing(pipeline).lists.tick(now))

    # -- parts -----------------------------------------------------------------------------------

    def _primary_rights(self, request: p4r.WriteRequest | _Set) -> RoleConfig:
        self._check_device(request.device_id)
        given = request.HasField("election_id")
        election_id = U128.decode(request.election_id) if given else None
        role = request_role(request.role, request.role_id)
        return self.arbitration.check_primary(role, election_id)

    def _check_device(self, device_id: int) -> None:
        if device_id != self.device.id:
            raise RpcError(
                "NOT_FOUND", f"device id {device_id} is not served here, only {self.device.id}"
            )

    def _saved(self, request: _Set) -> Pipeline:
        if request.HasField("config"):
            raise invalid("COMMIT takes no config: it commits the saved one")
        if self.device.saved is None:
            raise RpcError("NOT_FOUND", "no config is saved: VERIFY_AND_SAVE comes before COMMIT")
        return self.device.saved

    def _reconcile(self, pipeline: Pipeline) -> None:
        old = self.device.pipeline
        if old is None:
            self.device.commit(pipeline)
            return
        with old.switch.lock:
            carry_over(old, pipeline)
            self.device.commit(pipeline)

    def _packet_out(self, stream: Stream, message: p4r.PacketOut) -> tuple[list[Delivery], Outputs]:
        try:
            self._need_primary(stream, "send packets")
            pipeline = self.device.pipeline
            port = None if pipeline is None else pipeline.switch.cpu_port
            if pipeline is None or port is None:
                why = "runs no program" if pipeline is None else "has no CPU port (--cpu-port)"
                raise RpcError("FAILED_PRECONDITION", f"packet_out: the switch {why}")
            packet = packet_out_bytes(pipeline.catalog, message)
        except RpcError as error:
            details = p4r.PacketOutError(packet_out=message)
            return [(stream, _stream_error(error, packet_out=details))], []
        return [], self.device.process(port, packet)

    def _digest_ack(self, stream: Stream, message: p4r.DigestListAck) -> list[Delivery]:
        pipeline = self.device.pipeline
        try:
            self._need_primary(stream, "acknowledge digests")
            if pipeline is None or message.digest_id not in pipeline.catalog.digests:
                raise invalid(f"no digest has id {message.digest_id}")
        except RpcError as error:
            details = p4r.DigestListAckError(digest_list_ack=message)
            return [(stream, _stream_error(error, digest_list_ack=details))]
        self._outgoing(pipeline).lists.acknowledge(message.digest_id, message.list_id)
        return []

    def _need_primary(self, stream: Stream, what: str) -> None:
        client = self.arbitration.clients.get(stream)
        primary = None if client is None else self.arbitration.primary(client.role)
        if client is None or primary is not client:
            raise RpcError("PERMISSION_DENIED", f"only a primary controller may {what}")

    def _receivers(self) -> Sequence[tuple[Client, RoleConfig]]:
        """Return the primaries that get packet-ins, with their rights."""
        primaries = self.arbitration.primaries()
        return [(client, rights) for client, rights in primaries if rights.receives_packet_ins]

    def _outgoing(self, pipeline: Pipeline) -> Outgoing:
        """Return what the current pipeline's messages are made with; a new one starts anew."""
        if self._made is None or self._made.pipeline is not pipeline:
            self._made = Outgoing(pipeline)
        return self._made

    def _digest_deliveries(self, lists: Sequence[p4r.DigestList]) -> list[Delivery]:
        return [
            (client.stream, p4r.StreamMessageResponse(digest=digest))
            for digest in lists
            for client in self._primaries_of(digest.digest_id)
        ]

    def _idle(self, pipeline: Pipeline, notice: IdleNotice, now: int) -> list[Delivery]:
        info = pipeline.catalog.table_named(notice.table)
        if info is None:
            return []
        message = p4r.IdleTimeoutNotification(
            table_entry=[show_entry(pipeline, info, notice.entry)], timestamp=now
        )
        return [
            (client.stream, p4r.StreamMessageResponse(idle_timeout_notification=message))
            for client in self._primaries_of(info.id)
        ]

    def _primaries_of(self, p4_id: int) -> list[Client]:
        primaries = self.arbitration.primaries()
        return [client for client, rights in primaries if rights.may_access(p4_id)]


def _arbitration(notices: Sequence[Notice]) -> list[Delivery]:
    return [(stream, p4r.StreamMessageResponse(arbitration=update)) for stream, update in notices]


def _stream_error(error: RpcError, **details: ProtobufMessage) -> p4r.StreamMessageResponse:
    message = p4r.StreamError(
        canonical_code=code_number(error.code), message=error.message, **details
    )
    return p4r.StreamMessageResponse(error=message)


def _action(request: _Set) -> str:
    return str(_Set.Action.Name(request.action))


# -- packet-in and packet-out: controller headers between messages and the CPU port ---------------

_NO_HEADER = HeaderInfo("", ())
_PACKET, _PAYLOAD, _METADATA, _VALUE = (
    message.DESCRIPTOR.fields_by_name[name].number
    for message, name in (
        (p4r.StreamMessageResponse, "packet"), (p4r.PacketIn, "payload"),
        (p4r.PacketIn, "metadata"), (p4r.PacketMetadata, "value"),
    )
)  # fmt: skip


def packet_out_bytes(catalog: Catalog, message: p4r.PacketOut) -> bytes:
    """Return the packet to give to the CPU port: the packet_out header and the payload.

    A metadata field that is left out, or has no bytes, is 0, as in PI: pipelines have fields that
    controllers do not know, such as padding.
    """
    header = catalog.headers.get("packet_out", _NO_HEADER)
    given: dict[int, bytes] = {}
    known = {f.id: f for f in header.fields if f.id}
    for item in message.metadata:
        if item.metadata_id not in known or item.metadata_id in given:
            there = ", ".join(f"{f.name} ({f.id})" for f in known.values()) or "none"
            what = "is given twice" if item.metadata_id in given else "is not known"
            raise invalid(f"packet_out: metadata {item.metadata_id} {what}; there are: {there}")
        given[item.metadata_id] = item.value
    bits = 0
    for f in header.fields:
        value = given.get(f.id, b"")
        bits = bits << f.width | (_value(f, value) if value else 0)
    padding = header.size * 8 - sum(f.width for f in header.fields)
    return (bits << padding).to_bytes(header.size, "big") + message.payload


def _value(field: Value, data: bytes) -> int:
    """Decode a metadata value.

    Any error means that it does not match the P4Info: INVALID_ARGUMENT.
    """
    try:
        return field.read(data, f"packet_out: metadata {field.name}")
    except RpcError as error:
        raise invalid(error.message) from error


def _encoder_of(f: Value) -> Callable[[int], bytes]:
    """Return the function from a metadata field's bits to the field's message, as bytes."""
    number = p4r.PacketMetadata(metadata_id=f.id).SerializeToString()

    def whole(value: bytes) -> bytes:
        return delimited(_METADATA, number + delimited(_VALUE, value))

    if f.names is not None:
        return lambda bits: whole(f.show(bits))
    return bits_encoder(whole, max(f.width, f.wire))


class PacketIns:
    """Encodes the packets that left through the CPU port: they come by the thousand.

    A packet too short for the packet_in header is sent without metadata.
    """

    def __init__(self, catalog: Catalog) -> None:
        header = catalog.headers.get("packet_in", _NO_HEADER)
        self._size = header.size
        self._fields: dict[int, tuple[int, int, Value]] = {}  # by their ids: shift, mask
        left = header.size * 8
        for f in header.fields:
            left -= f.width
            if f.id:
                self._fields[f.id] = left, (1 << f.width) - 1, f
        self._encoders = [(at, mask, _encoder_of(f)) for at, mask, f in self._fields.values()]

    def encode(self, packet: bytes) -> Encoded:
        """Return the response."""
        encoded, size = b"", self._size
        if size and len(packet) >= size:
            bits = int.from_bytes(packet[:size], "big")
            encoded = b"".join([of(bits >> at & mask) for at, mask, of in self._encoders])
            packet = packet[size:]
        payload = delimited(_PAYLOAD, packet) if packet else b""
        return Encoded(delimited(_PACKET, payload + encoded), "packet")

    def passes(self, rights: RoleConfig, packet: bytes) -> bool:
        """Return whether a role's filter, if it has one, lets a packet-in through."""
        if rights.packet_in_filter is None:
            return True
        number, wanted = rights.packet_in_filter
        if number not in self._fields or len(packet) < self._size:
            return False
        at, mask, f = self._fields[number]
        value = f.show(int.from_bytes(packet[: self._size], "big") >> at & mask)
        return value.lstrip(b"\0") == wanted.lstrip(b"\0")


class Outgoing:
    """The parts of a pipeline from which messages to its controllers are made."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.lists = DigestLists(pipeline.digest_config)
        self.packet_ins = PacketIns(pipeline.catalog)
        self._digests: dict[str, tuple[Type, int, Encode]] = {}

    def digest(self, message: Digest, now: int) -> list[p4r.DigestList]:
        """Take a digest's data; return the lists that are full. There are none of unknown ones."""
        known = self._digests.get(message.name)
        if known is None or known[0] is not message.type:
            catalog = self.pipeline.catalog
            found = catalog.digest_of(message.name, message.type)
            if found is None or found.data is None or found.inside != message.type:
                return []
            known = message.type, found.id, encoder(found.data, catalog)
            self._digests[message.name] = known
        _, number, encode = known
        return self.lists.offer(number, encode(message.data), now)
