"""Runtime JSON, the P4 tutorials' form of a switch's entries (p4lang/tutorials, p4runtime_lib).

    {"target": "bmv2", "p4info": "...", "bmv2_json": "...",
     "table_entries": [{"table": "MyIngress.routes", "match": {"hdr.ipv4.dst": ["10.0.1.1", 32]},
                        "action_name": "MyIngress.forward", "action_params": {"port": 1}}],
     "multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 1}]}],
     "clone_session_entries": [{"clone_session_id": 100, "replicas": [{"egress_port": 255}]}]}

Keys that begin with "_" are comments, as are texts at keys that resemble no known one (the
tutorials' controller passes over "comment"), and null is the same as no key. Priorities are
P4Runtime's: of two entries the one with the larger priority wins. Experiment files have the same
sections.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from gradplane._suggestions import nearest
from gradplane._toml_documents import Section, faults, models_in
from gradplane.switch.runtime.control_errors import SwitchError


def _value(given: Any) -> Any:
    """Return a value as controllers take it: one, or a pair as a tuple; a list of one is the one.

    Raises ValueError."""
    parts = given if isinstance(given, list | tuple) else [given]
    if not parts or not all(isinstance(part, int | str) for part in parts):
        raise ValueError(f"{given!r} is not a number, a text, or a list of them")
    plain = [int(part) if isinstance(part, bool) else part for part in parts]
    return plain[0] if len(plain) == 1 else tuple(plain)


Values = dict[str, Annotated[Any, BeforeValidator(_value)]]
"""An exact value; or a value and its prefix length or mask; or the ends of a range."""
Number = Annotated[int, Field(ge=1, lt=1 << 31)]


class TableEntry(Section):
    """An entry; of two that match, the one with the larger priority wins; 0 is no priority."""

    table: str
    match: Values = {}
    action_name: str
    action_params: Values = {}
    default_action: bool = False
    priority: Annotated[int, Field(ge=0, lt=1 << 31)] = 0


class Replica(Section):
    """A copy of a packet."""

    egress_port: Annotated[int, Field(ge=0, lt=1 << 32)]
    instance: Annotated[int, Field(ge=0, lt=1 << 16)] = 0


class _Replicated(Section):
    replicas: list[Replica] = Field(min_length=1)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Port and instance of each replica."""
        return [(replica.egress_port, replica.instance) for replica in self.replicas]


class MulticastGroup(_Replicated):
    """A multicast group."""

    multicast_group_id: Number


class CloneSession(_Replicated):
    """A clone session; of each copy, so many bytes, or 0 for all."""

    clone_session_id: Number
    packet_length_bytes: Annotated[int, Field(ge=0, lt=1 << 16)] = 0
    class_of_service: Annotated[int, Field(ge=0, lt=1 << 8)] = 0


class Entries(Section):
    """All entries of a switch."""

    table_entries: list[TableEntry] = []
    multicast_group_entries: list[MulticastGroup] = []
    clone_session_entries: list[CloneSession] = []


PROGRAM = ("target", "p4info", "bmv2_json")
"""The keys of a file that say which program BMv2 runs."""


def values_of(text: str) -> dict[str, Any]:
    """Return the object in a file, without comments. Raises SwitchError if there is none."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SwitchError(
            f"not JSON: {error}; the form is that of the P4 tutorials' s1-runtime.json"
        ) from None
    if not isinstance(whole, dict):
        keys = ", ".join(Entries.model_fields)
        raise SwitchError(f"not runtime JSON: expected an object with keys {keys}")
    found: dict[str, Any] = _known(Entries, _without_comments(whole), PROGRAM)
    return found


def entry_of(key: str, given: object) -> Any:
    """Return one entry of the list at a key of Entries. Raises SwitchError."""
    (model,) = models_in(Entries.model_fields[key].annotation)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise SwitchError("; ".join(faults(model, error))) from None


def _without_comments(value: Any) -> Any:
    if isinstance(value, dict):
        given = {k: v for k, v in value.items() if not k.startswith("_") and v is not None}
        return {k: _without_comments(v) for k, v in given.items()}
    return [_without_comments(item) for item in value] if isinstance(value, list) else value


def _known(model: type[BaseModel], given: Any, others: tuple[str, ...] = ()) -> Any:
    """Return an object without texts at keys that resemble none of a model's, or `others`."""
    if not isinstance(given, dict):
        return given
    names = [*model.model_fields, *others]
    kept = {k: v for k, v in given.items() if not isinstance(v, str) or nearest(k, names)}
    for key, field in model.model_fields.items():
        for inner in models_in(field.annotation):
            if isinstance(kept.get(key), list):
                kept[key] = [_known(inner, item) for item in kept[key]]
    return kept
