"""A BFRuntime session with a Tofino's driver, with the methods of a P4Runtime `Connection`.

The driver (bf_switchd) runs the program that it was started with, on a chip or its model: the
controller finds it there and does not push one.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import finsy
import grpc
from finsy import p4entity
from finsy.p4schema import P4Table
from finsy.proto import rpc_status

from gradplane import _bfruntime as bf
from gradplane._connection_reasons import short_reason
from gradplane.controller.bfruntime_entries import GROUPS, NODES, PORTS, Entries, p4info
from gradplane.controller.connection import E, Entity, Pipeline, schema_of
from gradplane.controller.controller_errors import ControllerError, RequestError
from gradplane.controller.targets import Target

_ALL_PIPES = 0xFFFF
_TIMEOUT = 300  # seconds for an answer: a busy driver is slow
_CLIENTS = 64  # ids that are tried
_LARGEST_MESSAGE = 256 << 20  # bytes
_LARGEST_DETAILS = 4 << 20  # bytes of a failed request's errors, one for each update
_ALREADY_EXISTS = grpc.StatusCode.ALREADY_EXISTS.value[0]
_NOT_FOUND = grpc.StatusCode.NOT_FOUND.value[0]
_CLEARED = ("Register", "Counter")


class BfRuntimeConnection:
    """An open session, used as `async with BfRuntimeConnection(address, device_id, target)`.

    The first of several controllers is bound to the program and may write; the others read. Every
    method raises RequestError where the driver refuses.
    """

    def __init__(
        self,
        address: str,
        device_id: int,
        target: Target,
        credentials: finsy.GRPCCredentialsTLS | None = None,
    ) -> None:
        self.address = address
        self._device_id, self._target = device_id, target
        self._credentials = credentials
        self._client_id = 0
        self._bound = False
        self._name = ""
        self._entries = Entries([])
        self._schema: finsy.P4Schema | None = None
        self._channel: grpc.aio.Channel | None = None
        self._stream: Any = None

    async def __aenter__(self) -> BfRuntimeConnection:
        options = [
            ("grpc.max_receive_message_length", _LARGEST_MESSAGE),
            ("grpc.max_send_message_length", _LARGEST_MESSAGE),
            ("grpc.max_metadata_size", _LARGEST_DETAILS),
            ("grpc.absolute_max_metadata_size", _LARGEST_DETAILS),
        ]
        if self._credentials is None:
            self._channel = grpc.aio.insecure_channel(self.address, options=options)
        else:
            tls = self._credentials.to_client_credentials()
            self._channel = grpc.aio.secure_channel(self.address, tls, options=options)
        try:
            with self._in_words("connect"):
                await self._subscribe()
                await self._find_program()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.cancel()
        if self._channel is not None:
            await self._channel.close()

    @property
    def schema(self) -> finsy.P4Schema:
        """The schema of the running program. Raises RequestError if there is none."""
        if self._schema is None:
            raise RequestError(
                f"{self.address}: the driver runs no program: start bf_switchd with one"
            )
        return self._schema

    async def load(self, pipeline: Pipeline, force: bool = False) -> None:
        """Check that this program runs there.

        force: remove all entries and groups and set registers and counters to 0, as if the program
        had just been started. Raises ControllerError for another program, and RequestError while
        another client is bound to it.
        """
        self._check_bound()
        wanted, running = pipeline.schema, self.schema
        there = {table.name: table for table in running.tables}
        for table in wanted.tables:
            found = there.get(table.name)
            if found is None or _keys(found) != _keys(table):
                raise ControllerError(
                    f"{self.address}: the driver runs {self._name}, which has no table {table.name}"
                    " like the program's: compile the program for the chip and start bf_switchd"
                    " with it"
                )
        if force:
            kept = {table.name for table in wanted.tables if table.is_const}
            names = [table.name for table in wanted.tables if table.name not in kept]
            await self._clear(names)

    async def put(self, entities: Iterable[Entity]) -> None:
        """Insert the entities; those that exist are modified instead."""
        for batch in self._batches(self._encoded(entities)):
            with self._in_words("insert"):
                failed = await self._write("INSERT", batch, allowed=_ALREADY_EXISTS)
                if failed:
                    await self._write("MODIFY", [batch[i] for i in failed])

    async def remove(self, entities: Iterable[Entity]) -> None:
        """Delete the entities; those that do not exist are no error."""
        entries: list[Any] = []
        for message in p4entity.encode_entities(entities, self.schema):
            if message.HasField("table_entry"):
                message.table_entry.ClearField("action")
                entries.append(self._entries.table_entry(message.table_entry))
            else:
                group = message.packet_replication_engine_entry.multicast_group_entry
                present = [self._entries.number(node) async for node in self._read(NODES)]
                number = group.multicast_group_id
                entries += self._entries.group_keys(number, iter(present))
        for batch in self._batches(iter(entries)):
            with self._in_words("delete"):
                await self._write("DELETE", batch, allowed=_NOT_FOUND)

    async def check_ports(self, wanted: Iterable[int]) -> None:
        """Raise ControllerError for ports that the driver does not have.

        A driver that lists none is not asked further: a model may forward without added ports.
        """
        if PORTS not in self._entries.by_name:
            return
        with self._in_words("read"):
            there = {self._entries.number(entry) async for entry in self._read(PORTS)}
        lacking = sorted(set(wanted) - there)
        if there and lacking:
            raise ControllerError(
                f"{self.address}: the driver has no port {', '.join(map(str, lacking))}; it has"
                f" {', '.join(map(str, sorted(there)))}: correct the numbers, or add the ports"
            )

    async def read(self, *patterns: E) -> AsyncIterator[E]:
        """Yield the entities that match a pattern: all of a table, or all counters."""
        schema, by_id = self.schema, self._entries.by_id
        with self._in_words("read"):
            for asked in p4entity.encode_entities(patterns, schema):
                if asked.HasField("table_entry"):
                    async for entry in self._read(by_id[asked.table_entry.table_id]["name"]):
                        if not entry.is_default_entry:
                            entity = p4entity.decode_entity(self._entries.entity(entry), schema)
                            entity.table_id = schema.tables[entity.table_id].name
                            yield entity
                    continue
                for counter in schema.counters:
                    async for entry in self._read(by_id[counter.id]["name"]):
                        entity = p4entity.decode_entity(self._entries.counter_entity(entry), schema)
                        entity.counter_id = counter.name
                        yield entity

    # -- the session ----------------------------------------------------------------------------

    async def _subscribe(self) -> None:
        """Open the stream under the first id that no other client has."""
        self._stream = self._method("StreamChannel")()
        for number in range(1, _CLIENTS + 1):
            request = bf.StreamMessageRequest(client_id=number)
            request.subscribe.device_id = self._device_id
            await self._stream.write(request)
            answer = await self._stream.read()
            if answer is grpc.aio.EOF:
                raise RequestError(f"{self.address}: the driver closed the stream")
            status = answer.subscribe.status
            if status.code == 0:
                self._client_id = number
                return
            if status.code != _ALREADY_EXISTS:
                raise RequestError(f"{self.address}: connect refused: {status.message}")
        raise RequestError(f"{self.address}: {_CLIENTS} clients are connected: close one")

    async def _find_program(self) -> None:
        request = bf.message("GetForwardingPipelineConfigRequest")(
            device_id=self._device_id, client_id=self._client_id
        )
        answer = await self._method("GetForwardingPipelineConfig")(request, timeout=_TIMEOUT)
        if not answer.config:
            return
        config = answer.config[0]
        own = json.loads(config.bfruntime_info)["tables"]
        fixed = json.loads(answer.non_p4_config.bfruntime_info or b'{"tables": []}')["tables"]
        self._name, self._entries = config.p4_name, Entries([*own, *fixed])
        self._schema = schema_of(p4info(config.p4_name, own))
        bind = bf.SetForwardingPipelineConfigRequest(
            device_id=self._device_id,
            client_id=self._client_id,
            action=bf.SetForwardingPipelineConfigRequest.BIND,
        )
        bind.config.add(p4_name=config.p4_name)
        try:
            await self._method("SetForwardingPipelineConfig")(bind, timeout=_TIMEOUT)
            self._bound = True
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
                raise

    async def _clear(self, tables: Iterable[str]) -> None:
        by_name = {table.name: table.id for table in self.schema.tables}
        names = [self._entries.by_id[by_name[table]]["name"] for table in tables]
        names += [
            name
            for name, table in self._entries.by_name.items()
            if table["table_type"] in _CLEARED and not name.startswith("$")
        ]
        with self._in_words("clear"):
            for name in (*names, GROUPS, NODES):
                await self._write("DELETE", [self._entries.all_of(name)], allowed=_NOT_FOUND)

    # -- messages -------------------------------------------------------------------------------

    def _encoded(self, entities: Iterable[Entity]) -> Iterator[Any]:
        try:
            for message in p4entity.encode_entities(entities, self.schema):
                if message.HasField("table_entry"):
                    yield self._entries.table_entry(message.table_entry)
                else:
                    engine = message.packet_replication_engine_entry
                    yield from self._entries.group_entries(engine.multicast_group_entry)
        except ValueError as error:  # finsy's, for names and values that are not the program's
            raise RequestError(f"{self.address}: insert: {error}") from error

    def _batches(self, entries: Iterator[Any]) -> Iterator[list[Any]]:
        while batch := list(itertools.islice(entries, self._target.batch)):
            yield batch

    def _check_bound(self) -> None:
        if self._schema is not None and not self._bound:
            raise RequestError(
                f"{self.address}: another client is bound to {self._name}: stop it first"
            )

    async def _write(self, kind: str, entries: list[Any], allowed: int = 0) -> list[int]:
        """Write entries; return the places of those that failed with the allowed code."""
        self._check_bound()
        request = bf.WriteRequest(client_id=self._client_id, p4_name=self._name)
        self._everywhere(request)
        for entry in entries:
            update = request.updates.add(type=getattr(bf.Update, kind))
            update.entity.table_entry.CopyFrom(entry)
        try:
            await self._method("Write")(request, timeout=_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            codes = [detail.canonical_code for detail in _details(error)]
            if len(codes) != len(entries) or not set(codes) <= {0, allowed}:
                raise
            return [place for place, code in enumerate(codes) if code]
        return []

    async def _read(self, name: str) -> AsyncIterator[Any]:
        """Yield all entries of a table, as the chip has them."""
        request = bf.message("ReadRequest")(client_id=self._client_id, p4_name=self._name)
        self._everywhere(request)
        entry = request.entities.add().table_entry
        entry.CopyFrom(self._entries.all_of(name))
        entry.table_flags.from_hw = True
        async for answer in self._method("Read")(request, timeout=_TIMEOUT):
            for entity in answer.entities:
                yield entity.table_entry

    def _everywhere(self, request: Any) -> None:
        request.target.device_id, request.target.pipe_id = self._device_id, _ALL_PIPES
        request.target.direction = request.target.prsr_id = 0xFF

    def _method(self, name: str) -> Any:
        assert self._channel is not None, "the session is not open"
        method = bf.METHODS[name]
        kinds = {
            (False, False): self._channel.unary_unary,
            (False, True): self._channel.unary_stream,
            (True, True): self._channel.stream_stream,
        }
        return kinds[method.requests, method.responses](
            f"/{bf.SERVICE}/{name}",
            request_serializer=bf.message(method.request).SerializeToString,
            response_deserializer=bf.message(method.response).FromString,
        )

    @contextmanager
    def _in_words(self, what: str) -> Iterator[None]:
        try:
            yield
        except grpc.aio.AioRpcError as error:
            failed = [detail for detail in _details(error) if detail.canonical_code]
            lines = [detail.message for detail in failed[:5]]
            lines += [f"and {len(failed) - 5} more"] if len(failed) > 5 else []
            hint = ""
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                hint = " (is the driver running, and is this its BFRuntime address?)"
            reason = short_reason(error.details() or "")
            text = "\n    ".join(lines) or f"{error.code().name}: {reason}{hint}"
            raise RequestError(f"{self.address}: {what} refused: {text}") from error
        except ValueError as error:  # finsy's
            raise RequestError(f"{self.address}: {what}: {error}") from error


def _keys(table: P4Table) -> set[tuple[str, int]]:
    """Return the names and widths of a table's match fields."""
    return {(field.name, field.bitwidth) for field in table.match_fields}


def _details(error: grpc.aio.AioRpcError) -> list[Any]:
    """Return the errors of a request's updates, in their order; empty if there are none."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = rpc_status.Status.FromString(value)
            return [bf.Error.FromString(detail.value) for detail in status.details]
    return []
