"""The blocks that use each header instance and each metadata field.

BMv2 has one set of instances for a packet's whole path. An instance that only one block uses
becomes a local variable of that block, which the engines keep in registers where they can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

BLOCKS = ("p", "ig", "eg")  # the blocks that have local variables
SHARED = "shared"
_PIPELINES = {"ingress": "ig", "egress": "eg"}

Reference = tuple[str, str]
"""An instance, stack or union and "", or a header instance and a field."""


class Uses:
    """Collects the blocks that refer to an instance; `blocks` has them by reference."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.blocks: defaultdict[Reference, set[str]] = defaultdict(set)
        self._calculations = _named(document, "calculations", "name")
        self._learn_lists = _named(document, "learn_lists", "id")
        self._meters = _named(document, "meter_arrays", "name")
        self._actions = _named(document, "actions", "id")
        self._walk(document.get("parsers"), "p")
        for pipeline in _objects(document.get("pipelines")):
            self._pipeline(pipeline, _PIPELINES.get(str(pipeline.get("name")), SHARED))
        for section in ("checksums", "deparsers", "field_lists"):
            self._walk(document.get(section), SHARED)
        for checksum in _objects(document.get("checksums")):
            self._note(checksum.get("target"), SHARED)
            self._walk(_found(self._calculations, checksum.get("calculation")), SHARED)
        for deparser in _objects(document.get("deparsers")):
            self._walk_names(deparser.get("order"), SHARED)

    def _pipeline(self, pipeline: dict[str, Any], block: str) -> None:
        self._walk(pipeline.get("conditionals"), block)
        self._walk(pipeline.get("action_profiles"), block)
        actions: dict[Any, None] = {}
        for table in _objects(pipeline.get("tables")):
            for key in _objects(table.get("key")):
                self._note(key.get("target"), block)
            meter = _found(self._meters, table.get("direct_meters"))
            if meter is not None:
                self._note(meter.get("result_target"), block)
            actions |= dict.fromkeys(_hashables(table.get("action_ids")))
            default = table.get("default_entry")
            if isinstance(default, dict):
                actions |= dict.fromkeys(_hashables([default.get("action_id")]))
            if "action_ids" not in table:
                names = set(_hashables(table.get("actions")))
                actions |= {
                    i: None for i, a in self._actions.items() if str(a.get("name")) in names
                }
        for call in _objects(pipeline.get("action_calls")):
            actions |= dict.fromkeys(_hashables([call.get("action_id")]))
        for action in actions:
            self._walk(self._actions.get(action), block)

    def _walk_names(self, value: Any, block: str) -> None:
        for name in value if isinstance(value, list) else ():
            self._note(name, block)

    def _walk(self, value: Any, block: str) -> None:
        pending = [value]
        while pending:
            here = pending.pop()
            if isinstance(here, list):
                pending += here
            elif isinstance(here, dict):
                self._object(here, block)
                pending += [v for v in here.values() if isinstance(v, dict | list)]

    def _object(self, here: dict[str, Any], block: str) -> None:
        kind, value = here.get("type"), here.get("value")
        if kind == "calculation" and isinstance(value, str):
            self._walk(self._calculations.get(value), block)
        elif isinstance(kind, str) and value is not None and kind not in ("hexstr", "string"):
            self._note(value, block)
        if here.get("op") == "generate_digest":
            for parameter in _objects(here.get("parameters"))[1:]:
                text = parameter.get("value")
                if isinstance(text, str):
                    try:
                        self._walk(self._learn_lists.get(int(text, 16)), block)
                    except ValueError:
                        continue

    def _note(self, value: Any, block: str) -> None:
        if isinstance(value, str):
            self.blocks[value, ""].add(block)
        elif isinstance(value, list) and value and isinstance(value[0], str):
            name = value[1] if len(value) > 1 and isinstance(value[1], str) else ""
            self.blocks[value[0], name].add(block)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _named(document: dict[str, Any], section: str, key: str) -> dict[Any, dict[str, Any]]:
    found = _objects(document.get(section))
    return {v[key]: v for v in found if isinstance(v.get(key), str | int)}


def _found(known: dict[Any, dict[str, Any]], key: Any) -> dict[str, Any] | None:
    return known.get(key) if isinstance(key, str | int) else None


def _hashables(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from (v for v in value if isinstance(v, str | int))
