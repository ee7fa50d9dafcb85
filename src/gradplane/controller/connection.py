"""A P4Runtime session with one switch, on finsy's client: entities in and out, errors as text."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import finsy
from finsy import p4entity
from finsy.p4schema import P4SchemaCache
from finsy.proto import U128, p4i, p4r
from google.protobuf import text_format

from gradplane._connection_reasons import short_reason
from gradplane.controller.controller_errors import (
    ControllerError,
    NoAnswerError,
    NotServedError,
    RequestError,
)
from gradplane.controller.targets import Target

Entity = finsy.P4TableEntry | finsy.P4MulticastGroupEntry | finsy.P4CloneSessionEntry
R = TypeVar("R")
E = TypeVar(
    "E",
    finsy.P4TableEntry,
    finsy.P4MulticastGroupEntry,
    finsy.P4CounterEntry,
    finsy.P4RegisterEntry,
)

_HINTS = {
    finsy.GRPCStatusCode.UNAVAILABLE: "is the switch running, and is this its P4Runtime address?",
    finsy.GRPCStatusCode.PERMISSION_DENIED: "another controller is the primary one",
}
_KINDS = {
    finsy.GRPCStatusCode.DEADLINE_EXCEEDED: NoAnswerError,
    finsy.GRPCStatusCode.UNIMPLEMENTED: NotServedError,
}


_ATTEMPTS = 30  # at a request that is not answered; finsy waits for 10 s each time
_PROPOSALS, _PROPOSAL_SECONDS = 40, 0.05  # before a primary that does not leave is an error
_ELECTION_ID = 10  # leaves lower ids for later controllers, which only read


@dataclass(frozen=True)
class Pipeline:
    """A program as it is pushed: P4Info (a message, or protobuf text), and the target's device
    config.

    `targets.Target.pipeline` makes both."""

    p4info: p4i.P4Info | bytes
    device_config: bytes

    @property
    def schema(self) -> finsy.P4Schema:
        """The program's tables, counters and so on.

        Raises ControllerError for an invalid P4Info.
        """
        return schema_of(parse_p4info(self.p4info), self.device_config)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle P4Info by its bytes: the class of the message is in no module of its name."""
        binary = parse_p4info(self.p4info).SerializeToString()
        return _pipeline_of, (binary, self.device_config)


def _pipeline_of(p4info: bytes, device_config: bytes) -> Pipeline:
    return Pipeline(p4i.P4Info.FromString(p4info), device_config)


def parse_p4info(given: p4i.P4Info | bytes) -> p4i.P4Info:
    """Return P4Info that is given as a message or as protobuf text. Raises ControllerError."""
    if isinstance(given, p4i.P4Info):
        return given
    try:
        info: p4i.P4Info = text_format.Parse(given.decode(), p4i.P4Info())
        return info
    except (UnicodeDecodeError, text_format.ParseError) as error:
        raise ControllerError(f"the P4Info is not protobuf text: {error}") from error


_SHARED = P4SchemaCache()  # type: ignore[no-untyped-call]
_RECENT: deque[finsy.P4Schema] = deque(maxlen=8)
"""The schemas whose parts _SHARED keeps: it has weak references only."""


def schema_of(p4info: p4i.P4Info, device_config: bytes | None = None) -> finsy.P4Schema:
    """Return the schema of a program. What finsy makes of an equal P4Info is shared: a run needs
    that of each of its switches several times, and it takes as long as the program's start."""
    with _SHARED if P4SchemaCache.current() is None else nullcontext():
        schema = finsy.P4Schema(p4info, device_config)
    _RECENT.append(schema)
    return schema


def _is_in_use(error: finsy.P4ClientError) -> bool:
    """Return True if another live controller has this election id.

    Servers word that differently.
    """
    refused = error.code == finsy.GRPCStatusCode.INVALID_ARGUMENT
    return refused and "election id" in error.message.lower()


def _existing(error: finsy.P4ClientError) -> list[int]:
    """Return the updates of an insert that failed because the entity exists.

    Raises any other error.
    """
    codes = {detail.canonical_code for detail in error.details.values()}
    if codes != {finsy.GRPCStatusCode.ALREADY_EXISTS}:
        raise error
    return list(error.details)


def _always_exists(entity: Entity) -> bool:
    return isinstance(entity, finsy.P4TableEntry) and entity.is_default_action


def _name_in_full(entity: Any, schema: finsy.P4Schema) -> None:
    """Replace an entity's alias, which finsy gives, with the full name."""
    if isinstance(entity, finsy.P4TableEntry):
        entity.table_id = schema.tables[entity.table_id].name
    elif isinstance(entity, finsy.P4CounterEntry):
        entity.counter_id = schema.counters[entity.counter_id].name


async def _patiently(call: Callable[[], Awaitable[R]]) -> R:
    """Make a call that may be made again until it is answered in time.

    A switch compiles a program as it loads it, which on a busy machine takes longer than finsy
    waits for an answer. A write that took effect after all is answered with ALREADY_EXISTS or
    NOT_FOUND the next time, and neither is an error here."""
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            return await call()
        except finsy.P4ClientError as error:
            late = error.code == finsy.GRPCStatusCode.DEADLINE_EXCEEDED
            if not (late and attempts_left):
                raise
    raise AssertionError("the last attempt returns or raises")


class Connection:
    """An open session, used as `async with Connection(address, device_id, target)`.

    Of several controllers the first is the primary, which may write; the others read. Every method
    raises RequestError where the switch refuses.
    """

    def __init__(
        self,
        address: str,
        device_id: int,
        target: Target,
        credentials: finsy.GRPCCredentialsTLS | None = None,
    ) -> None:
        self.address = address
        self._device_id = device_id
        self._target = target
        self._client = finsy.P4Client(address, credentials, wait_for_ready=False)
        self._election_id = _ELECTION_ID
        self._primary = False
        self._primary_id = 0
        self._schema: finsy.P4Schema | None = None
        self._cookie: int | None = None

    async def __aenter__(self) -> Connection:
        await self._client.open(complete_request=self._sign)
        try:
            await self._arbitrate()
            await self._find_program()
        except BaseException:
            await self._client.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    @property
    def schema(self) -> finsy.P4Schema:
        """The schema of the running program, loaded or found there.

        Raises RequestError if there is none.
        """
        if self._schema is None:
            raise RequestError(f"{self.address}: the switch runs no program yet: load one first")
        return self._schema

    async def load(self, pipeline: Pipeline, force: bool = False) -> None:
        """Run this program. If it runs already it goes on, with all its state, unless `force`."""
        schema = pipeline.schema
        if force or self._cookie != schema.p4cookie:
            await self._become_primary()
            await self._push(schema.get_pipeline_config())
        self._schema, self._cookie = schema, schema.p4cookie

    async def put(self, entities: Iterable[Entity]) -> None:
        """Insert the entities; those that exist, as default entries do, are modified instead."""
        given = list(entities)
        for batch in self._batches(filter(_always_exists, given)):
            with self._in_words("modify"):
                await self._write(p4r.Update.MODIFY, batch)
        for batch in self._batches(itertools.filterfalse(_always_exists, given)):
            with self._in_words("insert"):
                try:
                    await self._write(p4r.Update.INSERT, batch)
                except finsy.P4ClientError as error:
                    existing = [batch[index] for index in _existing(error)]
                    await self._write(p4r.Update.MODIFY, existing)

    async def remove(self, entities: Iterable[Entity]) -> None:
        """Delete the entities; those that do not exist are no error."""
        for batch in self._batches(entities):
            with self._in_words("delete"):
                try:
                    await self._write(p4r.Update.DELETE, batch)
                except finsy.P4ClientError as error:
                    if not error.is_not_found_only:
                        raise

    async def read(self, *patterns: E) -> AsyncIterator[E]:
        """Yield the entities that match a pattern, an unset field any, in one request; names are
        full.

        Raises NotServedError for a kind of entity that the switch does not serve.
        """
        schema = self.schema
        request = p4r.ReadRequest(
            device_id=self._device_id, entities=p4entity.encode_entities(patterns, schema)
        )
        with self._in_words("read"):
            for reply in await _patiently(lambda: self._replies(request)):
                for message in reply.entities:
                    entity = p4entity.decode_entity(message, schema)
                    _name_in_full(entity, schema)
                    yield entity

    async def _replies(self, request: p4r.ReadRequest) -> list[p4r.ReadResponse]:
        return [reply async for reply in self._client.request_iter(request)]

    async def _arbitrate(self) -> None:
        """Become primary if there is none; where an election id is in use, try the one below it."""
        while True:
            try:
                await self._propose()
                return
            except finsy.P4ClientError as error:
                if not _is_in_use(error) or self._election_id == 1:
                    raise self._refused("connect", error) from error
                self._election_id -= 1

    async def _propose(self) -> None:
        answer = await self._propose_once()
        if answer.status.code == finsy.GRPCStatusCode.NOT_FOUND.value:
            # The last primary has left; its election id is the lowest that is accepted now.
            self._election_id = U128.decode(answer.election_id)
            answer = await self._propose_once()
        self._primary = answer.status.code == finsy.GRPCStatusCode.OK.value
        self._primary_id = U128.decode(answer.election_id)

    async def _propose_once(self) -> p4r.MasterArbitrationUpdate:
        message = p4r.MasterArbitrationUpdate(
            device_id=self._device_id, election_id=U128.encode(self._election_id)
        )
        await self._client.send(p4r.StreamMessageRequest(arbitration=message))
        return (await self._client.receive()).arbitration

    async def _find_program(self) -> None:
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self._device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE,
        )
        with self._in_words("connect"):
            try:
                config = (await _patiently(lambda: self._client.request(request))).config
            except finsy.P4ClientError as error:
                if error.is_pipeline_missing:
                    return
                raise
        if config.HasField("p4info"):
            self._schema = schema_of(config.p4info)
            self._cookie = config.cookie.cookie if config.HasField("cookie") else None

    async def _push(self, config: p4r.ForwardingPipelineConfig) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self._device_id,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=config,
        )
        with self._in_words("load the program"):
            await _patiently(lambda: self._client.request(request))

    async def _write(self, kind: p4r.Update.Type.ValueType, entities: Iterable[Entity]) -> None:
        messages = p4entity.encode_entities(entities, self.schema)
        await self._become_primary()
        updates = [p4r.Update(type=kind, entity=message) for message in messages]
        request = p4r.WriteRequest(device_id=self._device_id, updates=updates)
        await _patiently(lambda: self._client.request(request))

    def _sign(self, request: Any) -> None:
        if isinstance(request, p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest):
            request.election_id.CopyFrom(U128.encode(self._election_id))

    async def _become_primary(self) -> None:
        """Propose again while a primary is leaving; raise RequestError if it stays.

        A controller that has just closed its stream is the primary one until the switch has seen
        the end of that stream.
        """
        for _ in range(_PROPOSALS):
            if self._primary:
                return
            await asyncio.sleep(_PROPOSAL_SECONDS)
            await self._propose()
        if not self._primary:
            raise RequestError(
                f"{self.address}: another controller (election id {self._primary_id}) is the"
                " primary one: stop it first"
            )

    def _batches(self, entities: Iterable[Entity]) -> Iterator[list[Entity]]:
        rest = iter(entities)
        while batch := list(itertools.islice(rest, self._target.batch)):
            yield batch

    @contextmanager
    def _in_words(self, what: str) -> Iterator[None]:
        try:
            yield
        except finsy.P4ClientError as error:
            raise self._refused(what, error) from error
        except ValueError as error:  # finsy's, for names and values that are not the program's
            raise RequestError(f"{self.address}: {what}: {error}") from error

    def _refused(self, what: str, error: finsy.P4ClientError) -> RequestError:
        details = [f"{d.canonical_code.name}: {d.message}" for d in error.details.values()]
        hint = f" ({_HINTS[error.code]})" if error.code in _HINTS else ""
        lines = details[:5] or [f"{error.code.name}: {short_reason(error.message)}{hint}"]
        more = [f"and {len(details) - 5} more"] if len(details) > 5 else []
        if details and error.message not in ("", *(d.message for d in error.details.values())):
            more.append(error.message)  # the embedded switch's own words for the first one
        kind = _KINDS.get(error.code, RequestError)
        return kind(f"{self.address}: {what} refused: " + "\n    ".join(lines + more))
