"""Entries of a program's own tables: [switch] entries, a file in the form of the P4 tutorials'
runtime JSON, or the same keys in the experiment file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from gradplane._suggestions import near_file
from gradplane._toml_documents import Document, explain
from gradplane.experiment.document import ExperimentError
from gradplane.switch import SwitchError, runtime_json
from gradplane.switch.runtime_json import Entries

if TYPE_CHECKING:
    from gradplane.controller.connection import Entity


def read(name: str, folder: Path) -> Entries:
    """Return the entries of a file, which is looked for from a folder. Raises ExperimentError."""
    path = folder / name
    try:
        values = runtime_json.values_of(path.read_text("utf-8"))
    except OSError as error:
        reason = f"{error.strerror or error}{near_file(path)}"
        raise ExperimentError(f"{path}: {reason}") from None
    except (UnicodeDecodeError, SwitchError) as error:
        raise ExperimentError(f"{path}: {error}") from None
    for key in runtime_json.PROGRAM:
        values.pop(key, None)
    try:
        return Entries.model_validate(values)
    except ValidationError as error:
        raise ExperimentError(explain(Document(str(path), values), Entries, error)) from None


def entities(entries: Entries) -> Iterator[Entity]:
    """Yield all for the controller: groups and sessions before the entries that use them."""
    import finsy

    for group in entries.multicast_group_entries:
        yield finsy.P4MulticastGroupEntry(group.multicast_group_id, replicas=group.pairs)
    for session in entries.clone_session_entries:
        yield finsy.P4CloneSessionEntry(
            session.clone_session_id,
            class_of_service=session.class_of_service,
            packet_length_bytes=session.packet_length_bytes,
            replicas=session.pairs,
        )
    for entry in entries.table_entries:
        yield finsy.P4TableEntry(
            entry.table,
            match=finsy.Match(entry.match) if entry.match else None,
            action=finsy.Action(entry.action_name, **entry.action_params),
            priority=entry.priority,
            is_default_action=entry.default_action,
        )
