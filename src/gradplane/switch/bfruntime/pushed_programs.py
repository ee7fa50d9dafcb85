"""The programs that clients push: the source of one, or the running one, to start anew."""

from __future__ import annotations

import json
from typing import Any

from finsy.proto import p4r

from gradplane.switch.arch.architecture import PipeScopes
from gradplane.switch.bfruntime.bound_program import BoundProgram, program_name
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError


def prepared(device: Device, running: BoundProgram, configs: Any) -> Pipeline:
    """Compile what a client pushes: a program of ours, or the running one anew.

    configs: of the request. Raises RpcError."""
    if len(configs) != 1:
        raise RpcError(
            "INVALID_ARGUMENT",
            f"{len(configs)} configs given: the device runs one program. Pipes may run"
            " different pipelines of one: put Switch(pipeA, pipeB) at the end of its source,"
            " and give each pipeline a profile with its pipe_scope",
        )
    (config,) = configs
    scopes = {p.profile_name: list(p.pipe_scope) for p in config.profiles if p.pipe_scope}
    if len(config.profiles) < 2:  # a single pipeline is for all pipes
        scopes = {}
    pushed = next((p.binary for p in config.profiles if p.binary), b"")
    if not pushed and config.p4_name not in ("", running.name):
        raise RpcError(
            "INVALID_ARGUMENT",
            f"{config.p4_name}: the profile has no binary; push the source that `gradplane"
            f" p4 config` makes, or name the running program ({running.name})",
        )
    if pushed.lstrip().startswith(b"{"):
        pipeline = device.prepare(p4r.ForwardingPipelineConfig(p4_device_config=pushed), scopes)
        if config.p4_name not in ("", program_name(pipeline)):
            raise no_program(config.p4_name, program_name(pipeline))
        return pipeline
    if pushed:
        _check_same(config, running)
    return anew(device, running, scopes)


def anew(device: Device, running: BoundProgram, scopes: PipeScopes) -> Pipeline:
    """Make the running program ready to start anew, with its pipelines in these pipes."""
    info = running.pipeline.catalog.p4info
    return device.prepare(p4r.ForwardingPipelineConfig(p4info=info), scopes)


def no_program(name: str, there: str) -> RpcError:
    """Return the refusal of a request for another program than the one that runs."""
    return RpcError("NOT_FOUND", f"there is no program {name!r}; the switch runs {there}")


def _check_same(config: Any, running: BoundProgram) -> None:
    """Accept a binary for the chip only if it comes with the running program's name and tables."""
    what = (
        "the binary is not a program for this switch: it runs P4 source, which `gradplane p4"
        " config FILE.p4` makes a binary of"
    )
    if config.p4_name != running.name:
        raise RpcError("INVALID_ARGUMENT", what)
    try:
        there = {t["name"]: t["table_type"] for t in json.loads(config.bfruntime_info)["tables"]}
    except (ValueError, KeyError, TypeError) as error:
        raise RpcError("INVALID_ARGUMENT", f"{what}; its bf-rt.json is wrong: {error}") from error
    missing = [t.name for t in running.schema.schema.tables if there.get(t.name) != t.kind]
    if missing:
        names = ", ".join(missing)
        raise RpcError("INVALID_ARGUMENT", f"{what}; its bf-rt.json lacks what runs: {names}")
