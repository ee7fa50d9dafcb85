"""The table that starts the programs anew: "begin" makes them ready, "completed" lets them run.

Between the two, what is written and read is the new ones'. To start another program, clients use
SetForwardingPipelineConfig.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gradplane.switch.arch.architecture import PipeScopes
from gradplane.switch.arch.device_facts import DeviceFacts
from gradplane.switch.bfruntime.codec import Data
from gradplane.switch.bfruntime.schema import DataField, FieldType, TableSchema
from gradplane.switch.bfruntime.tables.control_table import Scope, SettingsTable
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.status_errors import RpcError

_TEXT = FieldType("string")
_PIPELINE = (
    DataField(7, "runtime_context_file", _TEXT),
    DataField(8, "binary_path", _TEXT),
    DataField(9, "pipeline_name", _TEXT),
    DataField(10, "pipe_scope", FieldType("uint32"), repeated=True),
)
_PROGRAM = (
    DataField(5, "p4_name", _TEXT),
    DataField(6, "p4_pipelines", _TEXT, repeated=True, container=_PIPELINE),
    DataField(11, "bfrt_json_file", _TEXT),
)
PROGRAMS = DataField(4, "p4_programs", _TEXT, repeated=True, container=_PROGRAM)


@dataclass(slots=True)
class Restart:
    """Starts the running programs anew. begin, end: do so; they raise RpcError; begin takes the
    pipes of each of several pipelines. undo: forgets what began; what ended cannot be undone.
    programs: those that run. error: whether that failed the last time. mode: the last one asked
    for; all are the same here."""

    begin: Callable[[PipeScopes], None]
    end: Callable[[], None]
    undo: Callable[[], None]
    programs: Callable[[], Mapping[str, DeviceFacts | None]]
    error: bool = False
    mode: str = "INIT_COLD"


class WarmInitTable(SettingsTable):
    """Its default entry is what runs; an action changes that."""

    def __init__(self, schema: TableSchema, store: Store, restart: Restart) -> None:
        super().__init__(replace(schema, data=(*schema.data, PROGRAMS)), store)
        self.restart = restart

    def set_default(self, scope: Scope, data: Data) -> None:
        if data.action is None:
            raise self.invalid("an action is missing: begin or completed")
        restart, begins = self.restart, data.action.name == "begin"
        programs = data.values.get("p4_programs", [])
        if begins:
            self._check(programs)
        try:
            if begins:
                restart.begin(_scopes(programs))
                self.store.journal.record(restart.undo)
            else:
                restart.end()
        except RpcError:
            restart.error = True
            raise
        restart.error = False
        self.store.journal.set(restart, "mode", data.values.get("init_mode", restart.mode))

    def reset_default(self, scope: Scope) -> None:
        raise self.refused("it cannot be reset: set it with an action, begin or completed")

    def default(self, scope: Scope) -> Data:
        restart = self.restart
        return Data(self.schema.action_named("completed"), {
            "error": restart.error, "init_mode": restart.mode, "upgrade_agents": False,
            "p4_programs": [_shown(*program) for program in restart.programs().items()],
        })  # fmt: skip

    def _check(self, programs: list[dict[str, Any]]) -> None:
        there = list(self.restart.programs())
        names = [program.get("p4_name", "") for program in programs]
        if sorted(names) != sorted(there):
            raise self.invalid(
                f"p4_programs names {', '.join(names) or 'nothing'}, and the switch runs"
                f" {', '.join(there)}: name {'it' if len(there) < 2 else 'them'}, or load"
                f" {'another' if len(there) < 2 else 'others'} with SetForwardingPipelineConfig"
            )


def _shown(name: str, facts: DeviceFacts | None) -> dict[str, Any]:
    pipelines = [
        {"runtime_context_file": "", "binary_path": "",
         "pipeline_name": pipeline.name.removeprefix(facts.label if facts else ""),
         "pipe_scope": list(pipeline.pipes)}
        for pipeline in (facts.pipelines if facts is not None else ())
    ]  # fmt: skip
    return {"p4_name": name, "p4_pipelines": pipelines, "bfrt_json_file": ""}


def _scopes(programs: list[dict[str, Any]]) -> PipeScopes:
    """Return the pipes of the programs' pipelines, by name, as far as they are given."""
    return {
        ("" if len(programs) == 1 else f"{program['p4_name']}.") + p.get("pipeline_name", ""):
            p["pipe_scope"]
        for program in programs for p in program.get("p4_pipelines", []) if p.get("pipe_scope")
    }  # fmt: skip
