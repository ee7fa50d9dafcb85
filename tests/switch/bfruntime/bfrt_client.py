"""A small BFRuntime client: it finds tables and fields by name in bf-rt.json, as others do."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator, Mapping
from typing import Any

import grpc
import pytest
from finsy.proto import rpc_status

from gradplane import _bfruntime as bf

ALL_PIPES = 0xFFFF
MATCHES = {"Exact": "exact", "Ternary": "ternary", "LPM": "lpm", "Range": "range",
           "Optional": "optional"}  # fmt: skip


def number(value: int, width: int) -> bytes:
    return (value & ((1 << width) - 1)).to_bytes((width + 7) // 8, "big")


def width_of(t: Mapping[str, Any]) -> int:
    return int(t.get("width") or {"int32": 32}.get(t["type"]) or t["type"].removeprefix("uint"))


class Client:
    """Subscribed under an id, unless `id` is None; bound to the program, unless `bind` is False.
    program: the name of one of several."""

    def __init__(
        self, address: str, id: int | None = 1, bind: bool = True, program: str = "", **wanted: bool
    ) -> None:
        self.address = address
        self.channel = grpc.insecure_channel(address)
        self.id = id or 0
        self._requests: queue.Queue[Any] = queue.Queue()
        self.incoming: queue.Queue[Any] = queue.Queue()
        self.stream: Any = None
        if id is not None:
            self.subscribe(wanted)
        config = self.rpc("GetForwardingPipelineConfig", client_id=self.id)
        own = next(c for c in config.config if program in ("", c.p4_name))
        self.name = own.p4_name
        self.info = json.loads(own.bfruntime_info)
        fixed = json.loads(config.non_p4_config.bfruntime_info)
        self.tables = {t["name"]: t for t in [*self.info["tables"], *fixed["tables"]]}
        if id is not None and bind:
            self.bind(self.name)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._requests.put(None)
        if self.stream is not None:
            self.stream.cancel()
        self.channel.close()

    # -- messages -------------------------------------------------------------------------------

    def rpc(self, name: str, metadata: Any = None, **fields: Any) -> Any:
        method = bf.METHODS[name]
        kind = self.channel.unary_stream if method.responses else self.channel.unary_unary
        call = kind(
            f"/{bf.SERVICE}/{name}",
            request_serializer=bf.message(method.request).SerializeToString,
            response_deserializer=bf.message(method.response).FromString,
        )
        request = bf.message(method.request)(**fields)
        found = call(request, metadata=metadata, timeout=60)
        return list(found) if method.responses else found

    def subscribe(self, wanted: Mapping[str, bool]) -> None:
        method = bf.METHODS["StreamChannel"]
        self.stream = self.channel.stream_stream(
            f"/{bf.SERVICE}/StreamChannel",
            request_serializer=bf.message(method.request).SerializeToString,
            response_deserializer=bf.message(method.response).FromString,
        )(iter(self._requests.get, None), timeout=120)
        request = bf.StreamMessageRequest(client_id=self.id)
        request.subscribe.SetInParent()
        for name in wanted:
            setattr(request.subscribe.notifications, f"enable_{name}_notifications", True)
        self._requests.put(request)
        self.status = next(self.stream).subscribe.status

    def next_message(self, kind: str) -> Any:
        """Return the next message of a kind; others are passed over."""
        return next(getattr(m, kind) for m in self.stream if m.HasField(kind))

    def attribute(self, table: str, kind: str, **values: Any) -> Any:
        """Make an entity of a table's attribute."""
        out = bf.Entity()
        out.table_attribute.table_id = self.table(table)["id"]
        part = getattr(out.table_attribute, kind)
        part.SetInParent()
        for name, value in values.items():
            setattr(part, name, value)
        return out

    def key_id(self, table: str, field: str) -> int:
        return int(next(f["id"] for f in self.table(table)["key"] if f["name"] == field))

    def key_masks(self, table: str) -> dict[int, bytes]:
        """Read a table's key masks, by the fields' ids."""
        (found,) = self.read_entities(self.attribute(table, "dyn_key_mask"))
        return {f.field_id: f.mask for f in found.table_attribute.dyn_key_mask.fields}

    def mask_keys(self, table: str, masks: Mapping[int, bytes]) -> None:
        """Set a table's key masks, by the fields' ids."""
        entity = self.attribute(table, "dyn_key_mask")
        for number, mask in masks.items():
            entity.table_attribute.dyn_key_mask.fields.add(field_id=number, mask=mask)
        self.write(("MODIFY", entity))

    def bind(self, name: str) -> None:
        request = {"client_id": self.id, "config": [{"p4_name": name}]}
        self.rpc("SetForwardingPipelineConfig", **request)

    # -- by name --------------------------------------------------------------------------------

    def table(self, name: str) -> Any:
        found = [t for n, t in self.tables.items() if n == name or n.endswith(f".{name}")]
        assert len(found) == 1, (name, list(self.tables))
        return found[0]

    def _fields(self, table: Any, action: str | None) -> dict[str, Any]:
        listed = list(table["data"])
        for spec in table.get("action_specs", []):
            if spec["name"] == action or spec["name"].endswith(f".{action}"):
                listed += spec["data"]
        return {f["name"]: f for one in listed
                for f in one.get("oneof", [one.get("singleton", one)])}  # fmt: skip

    def entry(
        self, name: str, key: Mapping[str, Any] | None, action: str | None = None, **data: Any
    ) -> Any:
        """Make a TableEntry; names of data fields have _ for $ and __ for a dot."""
        table = self.table(name)
        out = bf.TableEntry(table_id=table["id"])
        for f in table["key"] if key is not None else ():
            if f["name"] not in key:
                continue
            value, t = key[f["name"]], f["type"]
            part = getattr(out.key.fields.add(field_id=f["id"]), MATCHES[f["match_type"]])
            if t["type"] == "string":
                part.value = value.encode()
                continue
            width = width_of(t)
            if f["match_type"] == "Exact":
                part.value = number(value, width)
            elif f["match_type"] == "Optional":
                part.is_valid = value is not None
                part.value = number(value or 0, width)
            elif f["match_type"] == "LPM":
                part.value, part.prefix_len = number(value[0], width), value[1]
            else:
                names = ("value", "mask") if f["match_type"] == "Ternary" else ("low", "high")
                for side, given in zip(names, value, strict=True):
                    setattr(part, side, number(given, width))
        if action is not None:
            specs = [a for a in table["action_specs"]
                     if a["name"] == action or a["name"].endswith(f".{action}")]  # fmt: skip
            out.data.action_id = specs[0]["id"]
        fields = self._fields(table, action)
        for short, value in data.items():
            f = next(f for n, f in fields.items() if n in (short, f"${short}") or
                     n.endswith(f".{short}"))  # fmt: skip
            for one in value if not f["repeated"] and isinstance(value, list) else [value]:
                self._set(out.data.fields.add(field_id=f["id"]), f, one)
        return out

    def _set(self, out: Any, f: Any, value: Any) -> None:
        kind = f["type"]["type"]
        if f["repeated"]:
            short = {"bool": "bool", "string": "str"}.get(kind, "int")
            part = getattr(out, f"{short}_arr_val")
            part.SetInParent()
            part.val.extend(value)
        elif kind == "bool":
            out.bool_val = value
        elif kind == "float":
            out.float_val = value
        elif kind in ("string", "enum"):
            out.str_val = value
        else:
            out.stream = number(value, width_of(f["type"]))

    def write(self, *updates: tuple[str, Any], metadata: Any = None, **fields: Any) -> Any:
        """Write (type of update, TableEntry or Entity) pairs."""
        request = {"client_id": self.id, "target": {"pipe_id": ALL_PIPES}, **fields}
        made = []
        for kind, entry in updates:
            given = entry if isinstance(entry, bf.Entity) else bf.Entity(table_entry=entry)
            made.append(bf.Update(type=getattr(bf.Update, kind), entity=given))
        return self.rpc("Write", metadata, updates=made, **request)

    def add(
        self, name: str, key: Mapping[str, Any], action: str | None = None, **data: Any
    ) -> None:
        self.write(("INSERT", self.entry(name, key, action, **data)))

    def set_default(self, name: str, action: str | None = None, **data: Any) -> None:
        entry = self.entry(name, None, action, **data)
        entry.is_default_entry = True
        self.write(("MODIFY", entry))

    def read_entities(self, *entities: Any, pipe: int = ALL_PIPES) -> Iterator[Any]:
        target = {"pipe_id": pipe}
        for response in self.rpc("Read", client_id=self.id, target=target, entities=entities):
            yield from response.entities

    def read(
        self, name: str, key: Mapping[str, Any] | None = None, pipe: int = ALL_PIPES
    ) -> list[dict[str, Any]]:
        """Return the entries as dicts of key and data fields; default entries are left out. Like
        the driver's client, it reads the chip."""
        entity = bf.Entity(table_entry=self.entry(name, key))
        entity.table_entry.table_flags.from_hw = True
        found = self.read_entities(entity, pipe=pipe)
        return [
            self.shown(name, e.table_entry) for e in found if not e.table_entry.is_default_entry
        ]

    def default(self, name: str) -> dict[str, Any]:
        entry = self.entry(name, None)
        entry.is_default_entry = entry.table_flags.from_hw = True
        (found,) = self.read_entities(bf.Entity(table_entry=entry))
        return self.shown(name, found.table_entry)

    def shown(self, name: str, entry: Any) -> dict[str, Any]:
        table, out = self.table(name), {}
        keys = {f["id"]: f for f in table["key"]}
        for f in entry.key.fields:
            part = getattr(f, f.WhichOneof("match_type"))
            values = []
            for _, value in part.ListFields():
                values.append(int.from_bytes(value, "big") if isinstance(value, bytes) else value)
            out[keys[f.field_id]["name"]] = values[0] if len(values) == 1 else tuple(values)
        spec = next((a for a in table.get("action_specs", []) if a["id"] == entry.data.action_id),
                    None)  # fmt: skip
        if spec is not None:
            out["action"] = spec["name"]
        known = {f["id"]: f for f in self._fields(table, spec and spec["name"]).values()}
        for f in entry.data.fields:
            value = getattr(f, f.WhichOneof("value"))
            if f.WhichOneof("value") == "stream":
                value = int.from_bytes(value, "big")
            elif f.WhichOneof("value").endswith("arr_val"):
                value = list(value.val)
            about = known[f.field_id]
            per_pipe = any(a["name"] == "$bfrt_field_class" for a in about["annotations"])
            if per_pipe:
                out.setdefault(about["name"], []).append(value)
            else:
                out[about["name"]] = value
        return out


def errors_of(error: grpc.RpcError) -> list[tuple[str, str]]:
    """Return the canonical code and text of each update."""
    trailing = dict(error.trailing_metadata())
    status = rpc_status.Status.FromString(trailing["grpc-status-details-bin"])
    found = [bf.Error.FromString(detail.value) for detail in status.details]
    codes = {number: code.name for code in grpc.StatusCode for number in [code.value[0]]}
    return [(codes[e.canonical_code], e.message) for e in found]


def failing(client: Client, *updates: tuple[str, object], **fields: object) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        client.write(*updates, **fields)
    return caught.value


def mac(client: Client, dst: int, port: int = 1, **data: int) -> object:
    return client.entry("macs", {"h.ethernet.dst": dst}, "Ingress.send", port=port, **data)
