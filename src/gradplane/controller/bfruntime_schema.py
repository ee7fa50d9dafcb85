"""bf-rt.json, which a Tofino's driver serves, as the P4Info that the controller works with.

Both describe one program by the same names, and P4Info can take over the numbers. Fields that the
driver adds to tables ($MATCH_PRIORITY, $ENTRY_TTL, ...) have no place in P4Info.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from finsy.proto import p4i

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
    """Return the tables, actions, registers and counters of a program as P4Info."""
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
