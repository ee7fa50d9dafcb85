"""Entries between P4Runtime's messages, as finsy makes them, and BFRuntime's; and bf-rt.json, which
a Tofino's driver serves, as the P4Info that the controller works with.

Numbers have the width of their field in BFRuntime, and none in P4Runtime. A multicast group is one
entry there; here it is a node for each replica, and an entry that lists the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from finsy.proto import p4i, p4r

from gradplane import _bfruntime as bf

Json = Mapping[str, Any]

_MATCHES = {
    "Exact": p4i.MatchField.EXACT,
    "Ternary": p4i.MatchField.TERNARY,
    "LPM": p4i.MatchField.LPM,
    "Range": p4i.MatchField.RANGE,
    "Optional": p4i.MatchField.OPTIONAL,
}
_INDEX_WIDTHS = {"uint32": 32, "uint16": 16, "uint8": 8, "uint64": 64, "int32": 32}


def plain(name: str) -> str:
    """Return a table's name without the pipeline's, which is "pipe" in most programs."""
    return name.partition(".")[2] or name


def fields(data: Iterable[Json]) -> Iterator[Json]:
    """Yield the data fields of a table or action, which a table puts into "singleton"."""
    for field in data:
        yield field.get("singleton", field)


def width(field: Json) -> int:
    """Return the bits of a field."""
    t = field["type"]
    return int(t.get("width") or _INDEX_WIDTHS.get(t["type"], 0))


def p4info(name: str, tables: Iterable[Json]) -> p4i.P4Info:
    """Return the tables, actions, registers and counters of a program as P4Info.

    tables: those of bf-rt.json, which the driver serves. Both describe one program by the same
    names, and P4Info can take over the numbers. Fields that the driver adds to tables
    ($MATCH_PRIORITY, $ENTRY_TTL, ...) have no place in P4Info.
    """
    info = p4i.P4Info()
    info.pkg_info.name, info.pkg_info.arch = name, "tna"
    actions: dict[int, Json] = {}
    for table in tables:
        match table["table_type"]:
            case "MatchAction_Direct" | "MatchAction_Indirect" | "MatchAction_Indirect_Selector":
                specs = table.get("action_specs", ())
                actions |= {spec["id"]: spec for spec in specs}
                _add_table(info, table, specs)
            case "Register":
                register = info.registers.add(size=table["size"])
                bits = sum(width(field) for field in fields(table["data"]))
                register.type_spec.bitstring.bit.bitwidth = bits
                _name(register.preamble, table)
            case "Counter":
                counter = info.counters.add(size=table["size"])
                counter.spec.unit = p4i.CounterSpec.BOTH
                _name(counter.preamble, table)
    for spec in actions.values():
        action = info.actions.add()
        action.preamble.id, action.preamble.name = spec["id"], spec["name"]
        action.preamble.alias = _short(spec["name"])
        for field in _own(fields(spec.get("data", ()))):
            action.params.add(id=field["id"], name=field["name"], bitwidth=width(field))
    return info


def _add_table(info: p4i.P4Info, table: Json, specs: Iterable[Json]) -> None:
    added = info.tables.add(size=table["size"])
    _name(added.preamble, table)
    for key in _own(table.get("key", ())):
        kind = _MATCHES.get(key["match_type"], p4i.MatchField.EXACT)
        added.match_fields.add(id=key["id"], name=key["name"], bitwidth=width(key), match_type=kind)
    for spec in specs:
        added.action_refs.add(id=spec["id"])


def _name(preamble: p4i.Preamble, table: Json) -> None:
    preamble.id, preamble.name = table["id"], plain(table["name"])
    preamble.alias = _short(preamble.name)


def _short(name: str) -> str:
    """Return the last two parts of a name, as many as finsy takes."""
    return ".".join(name.split(".")[-2:])


def _own(found: Iterable[Json]) -> Iterator[Json]:
    """Yield the fields that the program declares itself."""
    return (field for field in found if not field["name"].startswith("$"))


NODES, GROUPS = "$pre.node", "$pre.mgid"
PORTS = "$PORT"
REPLICAS = 1 << 8
"""Nodes of group g are numbered from g * REPLICAS on; a job has at most 64 workers."""


class Entries:
    """The tables of a program and of the device, by number and by name."""

    def __init__(self, tables: list[Json]) -> None:
        self.by_id = {table["id"]: table for table in tables}
        self.by_name = {table["name"]: table for table in tables}

    # -- to BFRuntime ---------------------------------------------------------------------------

    def table_entry(self, entry: p4r.TableEntry) -> Any:
        """Return an entry of a match-action table."""
        table = self.by_id[entry.table_id]
        out = bf.TableEntry(table_id=entry.table_id)
        widths = {key["id"]: width(key) for key in table["key"]}
        for match in entry.match:
            field, bits = out.key.fields.add(field_id=match.field_id), widths[match.field_id]
            match match.WhichOneof("field_match_type"):
                case "exact":
                    field.exact.value = _sized(match.exact.value, bits)
                case "lpm":
                    field.lpm.value = _sized(match.lpm.value, bits)
                    field.lpm.prefix_len = match.lpm.prefix_len
                case "ternary":
                    field.ternary.value = _sized(match.ternary.value, bits)
                    field.ternary.mask = _sized(match.ternary.mask, bits)
        action = entry.action.action
        if action.action_id:
            specs = {spec["id"]: spec for spec in table["action_specs"]}
            params = {f["id"]: width(f) for f in fields(specs[action.action_id].get("data", ()))}
            out.data.action_id = action.action_id
            for param in action.params:
                value = _sized(param.value, params[param.param_id])
                out.data.fields.add(field_id=param.param_id, stream=value)
        return out

    def group_entries(self, group: p4r.MulticastGroupEntry) -> list[Any]:
        """Return the entries of a multicast group: the nodes, then the group itself."""
        numbers, out = [], []
        for place, replica in enumerate(group.replicas):
            numbers.append(group.multicast_group_id * REPLICAS + place)
            port = int.from_bytes(replica.port, "big") if replica.port else replica.egress_port
            node = self._keyed(NODES, numbers[-1])
            self._put(node, NODES, "$MULTICAST_RID", replica.instance)
            self._put(node, NODES, "$DEV_PORT", [port])
            out.append(node)
        entry = self._keyed(GROUPS, group.multicast_group_id)
        self._put(entry, GROUPS, "$MULTICAST_NODE_ID", numbers)
        self._put(entry, GROUPS, "$MULTICAST_NODE_L1_XID_VALID", [False] * len(numbers))
        self._put(entry, GROUPS, "$MULTICAST_NODE_L1_XID", [0] * len(numbers))
        return [*out, entry]

    def group_keys(self, group: int, present: Iterator[int]) -> list[Any]:
        """Return the keys of a group and of its nodes among those present, in this order."""
        first = group * REPLICAS
        own = [number for number in present if first <= number < first + REPLICAS]
        return [self._keyed(GROUPS, group), *(self._keyed(NODES, number) for number in own)]

    def all_of(self, name: str) -> Any:
        """Return the entry without a key that stands for all of a table."""
        return bf.TableEntry(table_id=self.by_name[name]["id"])

    def number(self, entry: Any) -> int:
        """Return the number that is the key of an entry that was read, such as a node's."""
        return int.from_bytes(entry.key.fields[0].exact.value, "big")

    def _keyed(self, name: str, number: int) -> Any:
        table = self.by_name[name]
        (key,) = table["key"]
        out = bf.TableEntry(table_id=table["id"])
        value = number.to_bytes((width(key) + 7) // 8, "big")
        out.key.fields.add(field_id=key["id"]).exact.value = value
        return out

    def _put(self, entry: Any, name: str, field: str, value: Any) -> None:
        """Set a data field, by its name, to a number or a list of numbers or truth values."""
        known = {f["name"]: f for f in fields(self.by_name[name]["data"])}[field]
        out = entry.data.fields.add(field_id=known["id"])
        if not isinstance(value, list):
            out.stream = value.to_bytes((width(known) + 7) // 8, "big")
        elif known["type"]["type"] == "bool":
            out.bool_arr_val.val.extend(value)
            out.bool_arr_val.SetInParent()
        else:
            out.int_arr_val.val.extend(value)
            out.int_arr_val.SetInParent()

    # -- to P4Runtime ---------------------------------------------------------------------------

    def entity(self, entry: Any) -> p4r.Entity:
        """Return an entry of a match-action table that was read."""
        table = self.by_id[entry.table_id]
        own = {key["id"] for key in table["key"] if not key["name"].startswith("$")}
        out = p4r.TableEntry(table_id=entry.table_id)
        for field in entry.key.fields:
            if field.field_id not in own:
                continue
            match field.WhichOneof("match_type"):
                case "exact":
                    out.match.add(field_id=field.field_id).exact.value = _least(field.exact.value)
                case "lpm" if field.lpm.prefix_len:
                    match = out.match.add(field_id=field.field_id)
                    match.lpm.value = _least(field.lpm.value)
                    match.lpm.prefix_len = field.lpm.prefix_len
                case "ternary" if any(field.ternary.mask):
                    match = out.match.add(field_id=field.field_id)
                    match.ternary.value = _least(field.ternary.value)
                    match.ternary.mask = _least(field.ternary.mask)
        specs = {spec["id"]: spec for spec in table["action_specs"]}
        action, spec = out.action.action, specs[entry.data.action_id]
        action.action_id = entry.data.action_id
        params = {f["id"] for f in fields(spec.get("data", ())) if not f["name"].startswith("$")}
        for field in entry.data.fields:
            if field.field_id in params:
                action.params.add(param_id=field.field_id, value=_least(field.stream))
        return p4r.Entity(table_entry=out)

    def counter_entity(self, entry: Any) -> p4r.Entity:
        """Return a counter's cell that was read."""
        table = self.by_id[entry.table_id]
        names: Mapping[int, str] = {f["id"]: f["name"] for f in fields(table["data"])}
        out = p4r.CounterEntry(counter_id=entry.table_id)
        out.index.index = int.from_bytes(entry.key.fields[0].exact.value, "big")
        for field in entry.data.fields:
            value = int.from_bytes(field.stream, "big")
            match names[field.field_id]:
                case "$COUNTER_SPEC_PKTS":
                    out.data.packet_count = value
                case "$COUNTER_SPEC_BYTES":
                    out.data.byte_count = value
        return p4r.Entity(counter_entry=out)


def _sized(value: bytes, bits: int) -> bytes:
    return int.from_bytes(value, "big").to_bytes((bits + 7) // 8, "big")


def _least(value: bytes) -> bytes:
    return value.lstrip(b"\0") or b"\0"
