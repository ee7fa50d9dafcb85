"""Tables in BMv2's JSON: what they match, their actions, default entry and constant entries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from gradplane.switch.backends.bmv2.actions import source_info
from gradplane.switch.backends.bmv2.storage import Json, scalar_width
from gradplane.switch.bmv2_names import LARGEST_PRIORITY, MISS
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.entries import ActionData
from gradplane.switch.runtime.match_table import MatchTable

_KINDS = ("exact", "lpm", "ternary", "range")  # of a table: the last that one of its keys has


def table_size(table: ir.Table) -> int:
    """Return the most entries of a table: those of the source, if any, as BMv2 takes no others."""
    return len(table.entries) or table.size


def table_json(
    table: ir.Table, id: int, keys: list[Json], action_ids: list[int], next_nodes: Json
) -> Json:
    """Return a table, with the entries that the source gives.

    keys: its match fields. action_ids: of its actions, in their order. next_nodes: what follows, by
    the action's name or by hit and miss."""
    kinds = {key["match_type"] for key in keys}
    default = table.actions[table.default.index].action.name
    found: Json = {
        "name": table.name,
        "id": id,
        "key": keys,
        "match_type": next((kind for kind in reversed(_KINDS) if kind in kinds), "exact"),
        "type": "simple",
        "max_size": table_size(table),
        "with_counters": table.counter is not None,
        "support_timeout": table.support_timeout,
        "direct_meters": None if table.meter is None else table.meter.name,
        "action_ids": action_ids,
        "actions": [choice.action.name for choice in table.actions],
        "base_default_next": next_nodes.get(MISS) or next_nodes.get(default),
        "next_tables": next_nodes,
    } | source_info(table.span)
    if table.implementation is not None:
        selector = table.implementation.kind == "action_selector"
        found["type"] = "indirect_ws" if selector else "indirect"
        found["action_profile"] = table.implementation.name
    found["default_entry"] = _default(table, action_ids)
    if table.entries:
        found["entries"] = _entries(table, action_ids)
    return found


def _default(table: ir.Table, numbers: list[int]) -> Json:
    constant = table.const_default and table.implementation is None
    return {
        "action_id": numbers[table.default.index],
        "action_const": constant,
        "action_data": _data(table, table.default.index, table.default.args),
        "action_entry_const": constant,
    }


def _entries(table: ir.Table, numbers: list[int]) -> list[Json]:
    kinds = [(key.match_kind, scalar_width(key.expr.type)) for key in table.keys]
    found = []
    for at, entry in enumerate(MatchTable(table).entries()):
        assert isinstance(entry.action, ActionData), entry
        matches = zip(kinds, entry.matches, strict=True)
        choices = [_matches(kind, width, match) for (kind, width), match in matches]
        rest = {
            "action_entry": {
                "action_id": numbers[entry.action.index],
                "action_data": _data(table, entry.action.index, entry.action.args),
            },
            "priority": LARGEST_PRIORITY - entry.priority if entry.priority else at + 1,
        }
        found += [{"match_key": list(keys)} | rest for keys in product(*choices)]
    return found


def _data(table: ir.Table, index: int, args: Sequence[int | bool]) -> list[str]:
    params = table.actions[index].action.params
    return [
        hex(int(value) & ((1 << scalar_width(p.type)) - 1))
        for value, p in zip(args, params, strict=True)
    ]


def _matches(kind: str, width: int, match: tuple[int, ...] | None) -> list[Json]:
    """Return the matches that stand for one of an entry: two for a range across 0, as BMv2 compares
    without signs."""
    if kind == "range" and match is not None and match[0] > match[1]:
        ones = (1 << width) - 1
        return [_match(kind, width, half) for half in ((match[0], ones), (0, match[1]))]
    return [_match(kind, width, match)]


def _match(kind: str, width: int, match: tuple[int, ...] | None) -> Json:
    """Return a match of an entry; None is "don't care"."""

    def text(value: int) -> str:
        return f"0x{value & ((1 << width) - 1):0{2 * ((width + 7) // 8)}x}"

    ones = (1 << width) - 1
    if kind == "lpm":
        value, length = match or (0, 0)
        return {"match_type": "lpm", "key": text(value), "prefix_length": length}
    if kind == "ternary":
        value, mask = match or (0, 0)
        return {"match_type": "ternary", "key": text(value), "mask": text(mask)}
    if kind == "range":
        low, high = match or (0, ones)
        return {"match_type": "range", "start": text(low), "end": text(high)}
    if kind == "optional":
        value, mask = (match[0], ones) if match else (0, 0)
        return {"match_type": "ternary", "key": text(value), "mask": text(mask)}
    assert match is not None, kind
    return {"match_type": "exact", "key": text(match[0])}
