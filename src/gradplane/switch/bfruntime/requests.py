"""Reads and writes of a program's tables: each entity of a request, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradplane import _bfruntime as bf
from gradplane.switch.bfruntime.codec import (
    ALL_PIPES,
    Data,
    Key,
    read_data,
    read_key,
    show_data,
    show_key,
    target_pipes,
    wanted_fields,
)
from gradplane.switch.bfruntime.program_schema import MATCH_ACTION
from gradplane.switch.bfruntime.schema import LearnFilter
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Flags, Scope
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.control_errors import SwitchError, TableError

ATTRIBUTES = {
    "idle_table": "IdleTimeout", "entry_scope": "EntryScope", "dyn_key_mask": "DynamicKeyMask",
    "dyn_hashing": "DynamicHashing", "byte_count_adj": "MeterByteCountAdjust",
    "port_status_notify": "port_status_notif_cb", "intvl_ms": "poll_intvl_ms",
    "pre_device_config": "pre_device_config", "selector_update_notify": "SelectorUpdateCb",
}  # fmt: skip
"""The attributes of a table: their fields in messages, and their names in bf-rt.json."""


class Remark(RpcError):
    """A status that a client is told of an update that is no error: its canonical code is OK."""


class _Failed(Exception):
    """An update failed, so the request is undone."""


class Requests:
    """The tables that a client can read and write: its program's and the device's."""

    def __init__(
        self,
        tables: Mapping[int, ControlTable],
        learn_filters: Sequence[LearnFilter],
        pipes: int,
        store: Store,
    ) -> None:
        self.tables = tables
        self.learn_filters = learn_filters
        self.pipes = pipes
        self.store = store

    # -- writing --------------------------------------------------------------------------------

    def write(
        self, request: Any, ignore_missing: bool = False, pause: Callable[[], None] = lambda: None
    ) -> list[RpcError | None]:
        """Carry out the updates; return an item for each: None for one that was carried out, or
        what else there is to say about it.

        With ROLLBACK_ON_ERROR and DATAPLANE_ATOMIC, which the caller makes true by holding the
        switch's lock, the first error ends the request and takes back what came before; it is the
        last item then. ignore_missing: to delete an entry that does not exist is no error. pause:
        called between updates that do not depend on each other; raises RpcError if those that are
        left may not be made any more.
        """
        errors: list[RpcError | None] = []
        whole = (bf.WriteRequest.ROLLBACK_ON_ERROR, bf.WriteRequest.DATAPLANE_ATOMIC)
        if request.atomicity not in whole:  # numbers without a meaning, too, as in the driver
            for update in request.updates:
                try:
                    if errors:
                        pause()
                except RpcError as error:
                    return errors + [error] * (len(request.updates) - len(errors))
                errors.append(self._attempt(request.target, update, ignore_missing))
            return errors
        try:
            with self.store.batch():
                for update in request.updates:
                    errors.append(self._attempt(request.target, update, ignore_missing))
                    if is_error(errors[-1]):
                        raise _Failed
        except _Failed:
            pass
        return errors

    def _attempt(self, target: Any, update: Any, ignore_missing: bool) -> RpcError | None:
        try:
            with self.store.batch():
                return self._update(target, update)
        except (RpcError, SwitchError) as error:
            found = _rpc_error(error)
        if ignore_missing and update.type == bf.Update.DELETE and found.code == "NOT_FOUND":
            return Remark(found.code, found.message)
        return found

    def _update(self, target: Any, update: Any) -> Remark | None:
        entity = update.entity
        kind = entity.WhichOneof("entity")
        if kind == "table_entry":
            entry = entity.table_entry
            own = entry.entry_tgt if entry.HasField("entry_tgt") else target
            return self._write_entry(self._scope(own), update.type, entry)
        if kind == "table_attribute":
            table, name = self._attribute(entity.table_attribute)
            table.set_attribute(self._scope(target), name, entity.table_attribute)
        elif kind == "table_operation":
            self._operate(entity.table_operation)
        else:
            what = f"an update of {kind or 'nothing'}: write table entries"
            raise RpcError("UNIMPLEMENTED", what)
        return None

    def _scope(self, target: Any) -> Scope:
        if target.device_id:
            raise RpcError("NOT_FOUND", f"there is no device {target.device_id}: use 0")
        pipes = target_pipes(target, self.pipes)
        return Scope(pipes, target.pipe_id == ALL_PIPES, parser=target.prsr_id)

    def _write_entry(self, scope: Scope, kind: int, entry: Any) -> Remark | None:
        table = self.table(entry.table_id)
        if entry.is_default_entry:
            self._write_default(table, scope, kind, entry)
            return None
        try:
            key = self._key(table, scope, entry)
            if key is not None:
                return self._write_keyed(table, scope, key, kind, entry)
            self._write_keyless(table, scope, kind, entry)
        except TableError as error:
            raise table.worded(error) from error
        return None

    def _write_keyless(self, table: ControlTable, scope: Scope, kind: int, entry: Any) -> None:
        if kind == bf.Update.DELETE:
            table.clear(scope)
        elif table.schema.keys:
            raise table.invalid("the key is missing")
        elif kind == bf.Update.RESET:
            table.reset_default(scope)
        else:  # the only entry of a table without a key is the default entry
            table.set_default(scope, read_data(table.schema, entry.data))

    def _write_keyed(
        self, table: ControlTable, scope: Scope, key: Key, kind: int, entry: Any
    ) -> Remark | None:
        if kind in (bf.Update.DELETE, bf.Update.RESET):
            (table.delete if kind == bf.Update.DELETE else table.reset)(scope, key)
            return None
        data = read_data(table.schema, entry.data)
        match kind:
            case bf.Update.INSERT:
                table.add(scope, key, data)
            case bf.Update.MODIFY:
                table.modify(scope, key, data, _flags(entry))
            case bf.Update.MODIFY_INC:
                table.modify_incrementally(scope, key, data, _flags(entry))
            case bf.Update.INSERT_OR_MODIFY:
                try:
                    with self.store.batch():
                        table.add(scope, key, data)
                except (RpcError, TableError) as refusal:
                    error = _rpc_error(refusal, table)
                    if error.code != "ALREADY_EXISTS":
                        raise
                    table.modify(scope, key, data, _flags(entry))
                    return Remark(error.code, f"{error.message}: it was modified")
            case _:
                raise table.invalid("the update has no type")
        return None

    def _write_default(self, table: ControlTable, scope: Scope, kind: int, entry: Any) -> None:
        if entry.HasField("key") and entry.key.fields:
            raise table.invalid("the default entry has no key")
        if kind in (bf.Update.DELETE, bf.Update.RESET):
            table.reset_default(scope)
        elif kind in (bf.Update.MODIFY, bf.Update.INSERT_OR_MODIFY):
            table.set_default(scope, read_data(table.schema, entry.data))
        else:
            raise table.refused(
                "the default entry always exists: use MODIFY, or DELETE to reset it"
            )

    def _attribute(self, message: Any) -> tuple[ControlTable, str]:
        table, name = self.table(message.table_id), message.WhichOneof("attribute")
        if name is None:
            raise table.invalid("the attribute is missing")
        for_selector = table.schema.kind == "Selector" and name == "selector_update_notify"
        attributes = (*table.schema.attributes, *table.schema.unlisted)
        if ATTRIBUTES[name] not in attributes and not for_selector:
            known = ", ".join(attributes) or "none"
            raise table.refused(f"it has no attribute {ATTRIBUTES[name]}; attributes: {known}")
        return table, name

    def _operate(self, message: Any) -> None:
        table, name = self.table(message.table_id), message.table_operations_type
        if name not in table.schema.operations:
            known = ", ".join(table.schema.operations) or "none"
            raise table.refused(f"it has no operation {name!r}; operations: {known}")
        table.operate(name)

    # -- reading --------------------------------------------------------------------------------

    def read(self, request: Any, errors: list[RpcError | None]) -> Iterator[Any]:
        """Yield what is found; append to `errors`, for each entity of a request, why it cannot be
        read, or None."""
        for entity in request.entities:
            try:
                yield from self._read(request.target, entity)
            except (RpcError, SwitchError) as error:
                errors.append(_rpc_error(error))
            else:
                errors.append(None)

    def _read(self, target: Any, entity: Any) -> Iterator[Any]:
        kind = entity.WhichOneof("entity")
        readers: Mapping[str, Callable[[Any, Any], Iterator[Any]]] = {
            "table_entry": self._read_entry,
            "table_usage": self._read_usage,
            "table_attribute": self._read_attribute,
            "object_id": self._read_id,
            "handle": self._read_handle,
        }
        if kind not in readers:
            raise RpcError("UNIMPLEMENTED", f"{kind or 'nothing'} cannot be read")
        yield from readers[kind](target, getattr(entity, kind))

    def _read_entry(self, target: Any, query: Any) -> Iterator[Any]:
        own = query.entry_tgt if query.HasField("entry_tgt") else None
        from_hw = query.table_flags.from_hw or query.table_read_flag.from_hw
        scope = replace(self._scope(own or target), from_hw=from_hw)
        table = self.table(query.table_id)
        wanted = wanted_fields(table.schema, query.data)
        keys_only = query.table_flags.key_only or query.table_read_flag.key_only

        def shown(key: Key | None, data: Data, default: bool = False) -> Any:
            out = bf.Entity()
            out.table_entry.table_id = table.schema.id
            out.table_entry.is_default_entry = default
            if own is not None:
                out.table_entry.entry_tgt.CopyFrom(own)
            if key is not None:
                out.table_entry.key.SetInParent()
                show_key(table.schema, key, out.table_entry.key)
            if not keys_only:
                out.table_entry.data.SetInParent()
                show_data(table.schema, data, wanted, out.table_entry.data)
            return out

        try:
            key = self._key(table, scope, query)
            found = None if key is None or query.is_default_entry else table.find(scope, key)
        except TableError as error:
            raise table.worded(error) from error
        if found is not None:
            _check_action(table, query, found[1])
            yield shown(*found)
            return
        if not query.is_default_entry and table.schema.keys:
            for known, data in table.entries(scope):
                if _has_action(query, data):
                    yield shown(known, data)
        default = table.default(scope)
        if default is not None:
            if query.is_default_entry:
                _check_action(table, query, default)
            yield shown(None, default, bool(table.schema.keys) or query.is_default_entry)
        elif query.is_default_entry:
            raise table.refused("it has no default entry")

    def _read_usage(self, target: Any, query: Any) -> Iterator[Any]:
        table = self.table(query.table_id)
        out = bf.Entity()
        out.table_usage.table_id, out.table_usage.usage = (
            table.schema.id,
            table.usage(self._scope(target)),
        )
        yield out

    def _read_attribute(self, target: Any, query: Any) -> Iterator[Any]:
        table, name = self._attribute(query)
        out = bf.Entity()
        out.table_attribute.table_id = table.schema.id
        table.attribute(self._scope(target), name, out.table_attribute)
        yield out

    def _read_handle(self, target: Any, query: Any) -> Iterator[Any]:
        table = self.table(query.table_id)
        if query.WhichOneof("value") != "key":
            raise table.invalid("give the key whose handle is wanted")
        out = bf.Entity()
        out.handle.table_id = table.schema.id
        try:
            key = read_key(table.schema, query.key)
            out.handle.handle_id = table.handle(self._scope(target), key)
        except TableError as error:
            raise table.worded(error) from error
        yield out

    def _read_id(self, target: Any, query: Any) -> Iterator[Any]:
        out = bf.Entity()
        out.object_id.CopyFrom(query)
        out.object_id.id = self._id_of(query)
        yield out

    def _id_of(self, query: Any) -> Any:
        if query.WhichOneof("object") == "learn_object":
            asked = query.learn_object
            known = {f.name: f for f in self.learn_filters}
            found = _named("digest", asked.learn_name, known)
            if not asked.HasField("data_field_name"):
                return found.id
            fields = {f.name: f.id for f in found.fields}
            return _named("field", asked.data_field_name.field, fields)
        asked = query.table_object
        schema = _named("table", asked.table_name,
                        {t.schema.name: t for t in self.tables.values()}).schema  # fmt: skip
        match asked.WhichOneof("names"):
            case "action_name":
                actions = {a.name: a.id for a in schema.actions}
                return _named("action", asked.action_name.action, actions)
            case "key_field_name":
                keys = {f.name: f.id for f in schema.keys}
                return _named("key field", asked.key_field_name.field, keys)
            case "data_field_name":
                names = asked.data_field_name
                fields = {f.name: f.id for f in schema.data_by_id.values()}
                if names.action:
                    spec = _named("action", names.action, {a.name: a for a in schema.actions})
                    fields |= {f.name: f.id for f in spec.data}
                return _named("data field", names.field, fields)
        return schema.id

    # -- shared by all --------------------------------------------------------------------------

    def table(self, number: int) -> ControlTable:
        """Return the table of an id. Raises RpcError."""
        found = self.tables.get(number)
        if found is None:
            raise RpcError("NOT_FOUND", f"no table has id {number}; bf-rt.json lists the tables")
        return found

    def _key(self, table: ControlTable, scope: Scope, entry: Any) -> Key | None:
        given = entry.WhichOneof("value")
        if given == "handle_id":
            return table.key_of(scope, entry.handle_id)
        if given is None or (not entry.key.fields and not table.schema.keys):
            return None
        return read_key(table.schema, entry.key)


def _flags(entry: Any) -> Flags:
    flags = entry.table_flags
    removes = entry.table_mod_inc_flag.type == 1 or flags.mod_del
    return Flags(removes, flags.reset_ttl, flags.reset_stats)


def _has_action(query: Any, data: Data) -> bool:
    return not query.data.action_id or (
        data.action is not None and data.action.id == query.data.action_id
    )


def _check_action(table: ControlTable, query: Any, data: Data) -> None:
    """Refuse to read an entry of a match-action table as one of another action, as the driver
    does."""
    if table.schema.kind == MATCH_ACTION and not _has_action(query, data):
        (wanted,) = (a.name for a in table.schema.actions if a.id == query.data.action_id)
        has = "no action" if data.action is None else f"the action {data.action.name}"
        raise table.invalid(f"the entry has {has}, not {wanted}")


def _named(kind: str, name: str, known: Mapping[str, Any]) -> Any:
    """Return the object with a name, or with the only name that it is the end of."""
    ends = [full for full in known if full == name or full.endswith(f".{name}")]
    if name in known:
        return known[name]
    if len(ends) != 1:
        there = ", ".join(known) or "none"
        raise RpcError("NOT_FOUND", f"there is no {kind} {name!r}; there are: {there}")
    return known[ends[0]]


def is_error(status: RpcError | None) -> bool:
    """Return whether what is said about an update is an error."""
    return status is not None and not isinstance(status, Remark)


def _rpc_error(error: RpcError | SwitchError, table: ControlTable | None = None) -> RpcError:
    if isinstance(error, RpcError):
        return error
    if isinstance(error, TableError):
        return table.worded(error) if table is not None else RpcError(error.code, error.message)
    return invalid(str(error))
