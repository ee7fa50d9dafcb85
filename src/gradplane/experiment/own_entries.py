"""Entries of a program's own tables: [switch] entries, a file in the form of the P4 tutorials'
runtime JSON, or the same keys in the experiment file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError

from gradplane._suggestions import near_file
from gradplane._toml_documents import Document, explain
from gradplane.experiment.document import ExperimentError
from gradplane.experiment.sections import Section

if TYPE_CHECKING:
    import finsy

    from gradplane.controller.connection import Entity

Value = int | str | list[int | str]
"""An exact value; or a value and its prefix length or mask; or the ends of a range."""
Positive = Annotated[int, Field(ge=1, lt=1 << 31)]
Values = dict[str, Value]
_OF_OTHER_TOOLS = ("target", "p4info", "bmv2_json")


class TableEntry(Section):
    """An entry; of two that match, the one with the larger priority wins."""

    table: str
    match: Values = {}
    action_name: str
    action_params: Values = {}
    default_action: bool = False
    priority: Positive | None = None

    def entity(self) -> finsy.P4TableEntry:
        """Return it for the controller."""
        import finsy

        params = {name: _value(value) for name, value in self.action_params.items()}
        match = {name: _value(value) for name, value in self.match.items()}
        return finsy.P4TableEntry(
            self.table,
            match=finsy.Match(match) if match else None,
            action=finsy.Action(self.action_name, **params),
            priority=self.priority or 0,
            is_default_action=self.default_action,
        )


class Replica(Section):
    """A copy of a packet."""

    egress_port: Annotated[int, Field(ge=0, lt=1 << 32)]
    instance: Annotated[int, Field(ge=0, lt=1 << 16)] = 0


class MulticastGroup(Section):
    """A multicast group."""

    multicast_group_id: Positive
    replicas: list[Replica] = Field(min_length=1)

    def entity(self) -> finsy.P4MulticastGroupEntry:
        """Return it for the controller."""
        import finsy

        return finsy.P4MulticastGroupEntry(self.multicast_group_id, replicas=_pairs(self.replicas))


class CloneSession(Section):
    """A clone session; of each copy, so many bytes, or 0 for all."""

    clone_session_id: Positive
    replicas: list[Replica] = Field(min_length=1)
    packet_length_bytes: Annotated[int, Field(ge=0, lt=1 << 16)] = 0
    class_of_service: Annotated[int, Field(ge=0, lt=1 << 8)] = 0

    def entity(self) -> finsy.P4CloneSessionEntry:
        """Return it for the controller."""
        import finsy

        return finsy.P4CloneSessionEntry(
            self.clone_session_id,
            class_of_service=self.class_of_service,
            packet_length_bytes=self.packet_length_bytes,
            replicas=_pairs(self.replicas),
        )


class OwnEntries(Section):
    """The entries that a switch gets beside those of its routes and jobs."""

    table_entries: list[TableEntry] = []
    multicast_group_entries: list[MulticastGroup] = []
    clone_session_entries: list[CloneSession] = []

    def entities(self) -> Iterator[Entity]:
        """Yield all for the controller: groups and sessions before the entries that use them."""
        yield from (group.entity() for group in self.multicast_group_entries)
        yield from (session.entity() for session in self.clone_session_entries)
        yield from (entry.entity() for entry in self.table_entries)


def read(name: str, folder: Path) -> OwnEntries:
    """Return the entries of a file, which is looked for from a folder. Raises ExperimentError."""
    path = folder / name
    try:
        values = json.loads(path.read_text("utf-8"))
    except OSError as error:
        reason = f"{error.strerror or error}{near_file(path)}"
        raise ExperimentError(f"{path}: {reason}") from None
    except (ValueError, RecursionError) as error:
        raise ExperimentError(
            f"{path}: not JSON: {error}; the form is that of the P4 tutorials' s1-runtime.json"
        ) from None
    if not isinstance(values, dict):
        known = ", ".join(OwnEntries.model_fields)
        raise ExperimentError(f"{path}: expected an object with {known}")
    values = _without_comments(values)
    for key in _OF_OTHER_TOOLS:
        values.pop(key, None)
    try:
        return OwnEntries.model_validate(values)
    except ValidationError as error:
        raise ExperimentError(explain(Document(str(path), values), OwnEntries, error)) from None


def _without_comments(value: Any) -> Any:
    """Return JSON without keys that begin with "_", as in "_comment"."""
    if isinstance(value, Mapping):
        return {k: _without_comments(v) for k, v in value.items() if not k.startswith("_")}
    return [_without_comments(item) for item in value] if isinstance(value, list) else value


def _value(value: Value) -> Any:
    """Return a value for finsy, for which a value with its length or mask is a tuple."""
    if not isinstance(value, list):
        return value
    return value[0] if len(value) == 1 else tuple(value)


def _pairs(replicas: list[Replica]) -> list[tuple[int, int]]:
    return [(replica.egress_port, replica.instance) for replica in replicas]
