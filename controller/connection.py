"""A P4Runtime session with one switch, on finsy: entities in and out, errors in words."""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import finsy
from finsy.proto import p4i
from google.protobuf import text_format

from gradplane.controller.errors import ControllerError, SwitchError
from gradplane.controller.targets import Target

Entity = finsy.P4TableEntry | finsy.P4MulticastGroupEntry
E = TypeVar("E", finsy.P4TableEntry, finsy.P4MulticastGroupEntry, finsy.P4CounterEntry)

_HINTS = {
    finsy.GRPCStatusCode.UNAVAILABLE: "is the switch running, and is this its P4Runtime address?",
    finsy.GRPCStatusCode.PERMISSION_DENIED: "another controller is the primary one",
}


@dataclass(frozen=True)
class Pipeline:
    """A program as it is pushed: P4Info (protobuf text), and the target's device config."""

    p4info: bytes
    device_config: bytes


def parse_p4info(text: bytes) -> p4i.P4Info:
    """P4Info from protobuf text. Raises ControllerError where it is not."""
    try:
        info: p4i.P4Info = text_format.Parse(text.decode(), p4i.P4Info())
        return info
    except (UnicodeDecodeError, text_format.ParseError) as error:
        raise ControllerError(f"the P4Info is not protobuf text: {error}") from error


def _existing(error: finsy.P4ClientError) -> list[int]:
    """Which updates of an insert failed only because the entity is there; else, the error again."""
    codes = {detail.canonical_code for detail in error.details.values()}
    if codes != {finsy.GRPCStatusCode.ALREADY_EXISTS}:
        raise error
    return list(error.details)


def _name_in_full(entity: Any, schema: finsy.P4Schema) -> None:
    """finsy takes a name in full or as the P4Info's alias, and gives the alias."""
    if isinstance(entity, finsy.P4TableEntry):
        entity.table_id = schema.tables[entity.table_id].name
    elif isinstance(entity, finsy.P4CounterEntry):
        entity.counter_id = schema.counters[entity.counter_id].name


class Connection:
    """An open session, used as `async with Connection(address, device_id, target)`.

    `schema` describes the program that the switch runs, be it ours or found there. Every method
    raises SwitchError where the switch refuses.
    """

    def __init__(self, address: str, device_id: int, target: Target) -> None:
        self.address = address
        self._device_id = device_id
        self._target = target
        self._session = AsyncExitStack()
        self._switch: finsy.Switch | None = None

    async def __aenter__(self) -> Connection:
        # finsy warns of what a server lacks, such as gNMI: only for those who set logging up.
        logging.getLogger("finsy").addHandler(logging.NullHandler())
        await self._open(self._options(), None)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    @property
    def schema(self) -> finsy.P4Schema:
        """Raises SwitchError where no program is loaded."""
        schema = self._open_switch.p4info
        if not schema.exists:
            raise SwitchError(f"{self.address}: the switch runs no program yet: load one first")
        return schema

    async def load(self, pipeline: Pipeline, force: bool = False) -> None:
        """Run this program. If it runs already it goes on, with all its state, unless `force`."""
        p4info = parse_p4info(pipeline.p4info)
        blob = self._target.device_config(pipeline.device_config)
        await self._close()
        await self._open(self._options(p4blob=blob, p4force=force), p4info)

    async def put(self, entities: Iterable[Entity]) -> None:
        """Insert the entities; those that exist are modified instead."""
        switch = self._primary()
        for batch in self._batches(entities):
            with self._in_words("insert"):
                try:
                    await switch.insert(batch)
                except finsy.P4ClientError as error:
                    await switch.modify([batch[index] for index in _existing(error)])

    async def remove(self, entities: Iterable[Entity]) -> None:
        """Delete the entities; those that do not exist are no error."""
        switch = self._primary()
        for batch in self._batches(entities):
            with self._in_words("delete"):
                await switch.delete(batch, strict=False)

    async def read(self, pattern: E) -> AsyncIterator[E]:
        """All entities that match the pattern, a wildcard in what it leaves out; names in full."""
        # finsy declares its async generators as coroutines.
        schema = self.schema
        found = cast(AsyncIterator[E], self._open_switch.read(pattern))
        with self._in_words("read"):
            async for entity in found:
                _name_in_full(entity, schema)
                yield entity

    def _options(self, **options: Any) -> finsy.SwitchOptions:
        return finsy.SwitchOptions(device_id=self._device_id, **options)

    async def _open(self, options: finsy.SwitchOptions, p4info: p4i.P4Info | None) -> None:
        switch = finsy.Switch(self.address, self.address, options)
        if p4info is not None:
            switch.p4info.set_p4info(p4info)
        with self._in_words("connect" if p4info is None else "load the program"):
            await self._session.enter_async_context(switch)
        self._switch = switch

    async def _close(self) -> None:
        self._switch = None
        await self._session.aclose()

    @property
    def _open_switch(self) -> finsy.Switch:
        assert self._switch is not None, "used outside `async with`"
        return self._switch

    def _primary(self) -> finsy.Switch:
        """The session, if there is a program and we may write."""
        _ = self.schema
        if not self._open_switch.is_primary:
            raise SwitchError(
                f"{self.address}: another controller (election id"
                f" {self._open_switch.primary_id}) is the primary one: end it first"
            )
        return self._open_switch

    def _batches(self, entities: Iterable[Entity]) -> Iterator[list[Entity]]:
        rest = iter(entities)
        while batch := list(itertools.islice(rest, self._target.BATCH)):
            yield batch

    @contextmanager
    def _in_words(self, what: str) -> Iterator[None]:
        try:
            yield
        except finsy.P4ClientError as error:
            raise self._refused(what, error) from error
        except ValueError as error:  # finsy's, for a name that the program does not have
            raise SwitchError(f"{self.address}: {what}: {error}") from error

    def _refused(self, what: str, error: finsy.P4ClientError) -> SwitchError:
        details = [f"{d.canonical_code.name}: {d.message}" for d in error.details.values()]
        hint = f" ({_HINTS[error.code]})" if error.code in _HINTS else ""
        lines = details[:5] or [f"{error.code.name}: {error.message}{hint}"]
        more = [f"and {len(details) - 5} more"] if len(details) > 5 else []
        return SwitchError(f"{self.address}: {what} refused: " + "\n    ".join(lines + more))
