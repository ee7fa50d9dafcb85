"""A program with two pipelines under BFRuntime: names, pipes of requests, profiles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from bfrt_client import Client, bf
from bfrt_served import Served

from gradplane._option_tables import OptionError
from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions, parse_options
from gradplane.switch.p4runtime.device_config import device_config

PROGRAM = Path(__file__).parent / "pipelines.p4"
TAGGED = bytes([0xBB, 9, 3, 4, 5, 6])


@pytest.fixture(params=["interpreter", "jit"])
def running(request: pytest.FixtureRequest) -> Iterator[Served]:
    device = make_device(SwitchOptions(program=PROGRAM, engine=request.param))
    with BfRuntimeServer(device, "127.0.0.1:0") as server, Client(server.address) as client:
        yield device, client


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(grpc.RpcError) as error:
        act()
    return str(error.value.details())


def tag(client: Client, port: int) -> Any:
    key = {"hdr.tag.tag": 0xBB, "hdr.word.word": (0, 0), "$MATCH_PRIORITY": 1}
    return client.entry("pipeB.BIngress.t", key, "BIngress.send", port=port)


def profiles(client: Client) -> dict[str, list[int]]:
    (config,) = client.rpc("GetForwardingPipelineConfig", client_id=1).config
    return {p.profile_name: list(p.pipe_scope) for p in config.profiles}


def push(client: Client, scopes: dict[str, list[int]], binary: bytes | None = None) -> None:
    pushed = device_config(PROGRAM) if binary is None else binary
    made = [
        {"profile_name": name, "binary": pushed, "pipe_scope": pipes}
        for name, pipes in scopes.items()
    ]
    kind = bf.SetForwardingPipelineConfigRequest.VERIFY_AND_WARM_INIT_BEGIN_AND_END
    info = json.dumps(client.info).encode()
    config = [{"p4_name": client.name, "profiles": made, "bfruntime_info": info}]
    client.rpc("SetForwardingPipelineConfig", client_id=1, action=kind, config=config)


def test_tables_have_their_pipelines_names(running: Served) -> None:
    device, client = running
    client.add("pipeA.Ingress.t", {"hdr.number.kind": 1}, "Ingress.send", port=1 << 7 | 68)
    client.write(("INSERT", tag(client, 5)))
    assert device.process(0, bytes([1, 2, 0, 0])) == [(5, bytes([1, 3, 0, 1]))]
    (cell,) = client.read("pipeA.Ingress.seen", {"$REGISTER_INDEX": 0})
    assert cell["Ingress.seen.f1"] == [1, 0]  # pipes 0 and 2
    (cell,) = client.read("pipeB.BIngress.ports", {"$REGISTER_INDEX": 0})
    assert cell["BIngress.ports.f1"] == [1 << 7 | 68, 0]


def test_requests_are_for_pipes_of_the_tables_pipeline(running: Served) -> None:
    device, client = running
    other = "pipe 0 runs another pipeline; use pipe 1, 3"
    assert other in refused(lambda: client.read("pipeB.BIngress.t", pipe=0))
    index = {"$REGISTER_INDEX": 0}
    assert other in refused(lambda: client.read("pipeB.BIngress.ports", index, pipe=0))
    entity = client.attribute("pipeB.BIngress.t", "entry_scope")
    entity.table_attribute.entry_scope.pipe_scope.predef = 1
    client.write(("MODIFY", entity))
    for pipe in (1, 3):
        client.write(("INSERT", tag(client, 10 + pipe)), target={"pipe_id": pipe})
    assert other in refused(lambda: client.write(("INSERT", tag(client, 1)), target={"pipe_id": 0}))
    assert [device.process(pipe << 7, TAGGED)[0][0] for pipe in (1, 3)] == [11, 13]
    entity.table_attribute.entry_scope.pipe_scope.user_defined = 0x0C03
    client.write(("DELETE", client.entry("pipeB.BIngress.t", None)))
    assert "each of the pipes 1, 3 must be in one scope" in refused(
        lambda: client.write(("MODIFY", entity))
    )
    entity.table_attribute.entry_scope.pipe_scope.user_defined = 0x0A
    client.write(("MODIFY", entity))


def test_the_state_of_both_pipelines_is_saved(running: Served) -> None:
    device, client = running
    entity = client.attribute("pipeA.Ingress.t", "entry_scope")
    entity.table_attribute.entry_scope.pipe_scope.predef = 1
    client.write(("MODIFY", entity))
    key = {"hdr.number.kind": 0xBB}
    for pipe in (0, 2):
        entry = client.entry("pipeA.Ingress.t", key, "Ingress.send", port=10 + pipe)
        client.write(("INSERT", entry), target={"pipe_id": pipe})
    client.write(("INSERT", tag(client, 7)))
    before = [device.process(pipe << 7, TAGGED)[0][0] for pipe in range(4)]
    assert before == [10, 7, 12, 7]
    device.load_state(device.save_state())
    assert [device.process(pipe << 7, TAGGED)[0][0] for pipe in range(4)] == before
    assert device.pipeline is not None
    registers = device.pipeline.state.pipe_registers("pipeA.Ingress.seen")
    assert [int(r.read(0)) for r in registers] == [2, 0, 2, 0]


def test_profiles_choose_the_pipes_of_pipelines(running: Served) -> None:
    device, client = running
    assert profiles(client) == {"pipeA": [0, 2], "pipeB": [1, 3]}
    for binary in (None, b"\0a binary for the chip", b""):
        for scopes in ({"pipeA": [0, 1], "pipeB": [2, 3]}, {"pipeA": [0, 3], "pipeB": [1, 2]}):
            push(client, scopes, binary)
            assert profiles(client) == scopes
            client.write(("INSERT", tag(client, 7)))
            assert [bool(device.process(pipe << 7, TAGGED)) for pipe in range(4)] == [
                pipe in scopes["pipeB"] for pipe in range(4)
            ]


@pytest.mark.parametrize(
    ("scopes", "message"),
    [
        ({"pipeA": [0, 1], "pipeB": [1, 2]}, "each of the pipes 0 to 3 must be given once"),
        ({"pipeA": [0], "pipeB": [1]}, "each of the pipes 0 to 3 must be given once, not 0, 1"),
        ({"pipeA": [0, 1], "pipeB": [2, 99]}, "each of the pipes 0 to 3 must be given once"),
        ({"pipeA": [0, 1], "pipe": [2, 3]}, "there is no pipeline 'pipe'; pipelines: pipeA, pipeB"),
        ({"pipeA": [0, 1, 2, 3], "pipeB": []}, "pipeline pipeB has no pipe"),
    ],
)
def test_profiles_that_cannot_be_are_refused(
    running: Served, scopes: dict[str, list[int]], message: str
) -> None:
    _, client = running
    assert message in refused(lambda: push(client, scopes))
    assert profiles(client) == {"pipeA": [0, 2], "pipeB": [1, 3]}


def warm_init(client: Client, scopes: dict[str, list[int]]) -> Any:
    """Make the default entry that starts the program anew with these scopes."""
    entry = client.entry("dev.warm_init", None, "begin")
    entry.is_default_entry = True
    program = entry.data.fields.add(field_id=4).container_arr_val.container.add()
    program.val.add(field_id=5, str_val=client.name)
    listed = program.val.add(field_id=6).container_arr_val
    for name, pipes in scopes.items():
        pipeline = listed.container.add()
        pipeline.val.add(field_id=9, str_val=name)
        pipeline.val.add(field_id=10).int_arr_val.val.extend(pipes)
    return entry


def test_the_device_table_chooses_the_pipes_of_pipelines(running: Served) -> None:
    device, client = running
    wrong = warm_init(client, {"pipeA": [0, 1], "pipeB": [1, 2]})
    message = "each of the pipes 0 to 3 must be given once, not 0, 1, 1, 2"
    assert message in refused(lambda: client.write(("MODIFY", wrong)))
    scopes = {"pipeA": [1, 2], "pipeB": [0, 3]}
    client.write(("MODIFY", warm_init(client, scopes)))
    client.write(("INSERT", tag(client, 7)))
    completed = client.entry("dev.warm_init", None, "completed")
    completed.is_default_entry = True
    client.write(("MODIFY", completed))
    assert profiles(client) == scopes
    assert [bool(device.process(pipe << 7, TAGGED)) for pipe in range(4)] == [
        pipe in scopes["pipeB"] for pipe in range(4)
    ]


def test_a_program_with_pipelines_runs_beside_another(running: Served, tmp_path: Path) -> None:
    device, client = running
    other = tmp_path / "other.p4"
    other.write_text(PROGRAM.read_text())
    scopes = {"pipelines": {"pipeA": [0], "pipeB": [1]}, "other": {"pipeA": [3], "pipeB": [2]}}
    pushed = device_config(other)
    kind = bf.SetForwardingPipelineConfigRequest.VERIFY_AND_WARM_INIT_BEGIN_AND_END
    config = [
        {"p4_name": program, "profiles": [
            {"profile_name": name, "pipe_scope": pipes,
             "binary": pushed if program == "other" else b""}
            for name, pipes in found.items()
        ]}
        for program, found in scopes.items()
    ]  # fmt: skip
    client.rpc("SetForwardingPipelineConfig", client_id=1, action=kind, config=config)
    found = client.rpc("GetForwardingPipelineConfig", client_id=1).config
    assert {
        c.p4_name: {p.profile_name: list(p.pipe_scope) for p in c.profiles} for c in found
    } == scopes
    client.write(("INSERT", tag(client, 7)))
    assert [bool(device.process(pipe << 7, TAGGED)) for pipe in range(4)] == [
        False, True, False, False
    ]  # fmt: skip
    with Client(client.address, 2, program="other") as second:
        second.write(("INSERT", tag(second, 7)))
    assert device.process(2 << 7, TAGGED) != []


def test_unknown_programs_are_refused_with_the_way_out(running: Served) -> None:
    _, client = running
    kind = bf.SetForwardingPipelineConfigRequest.VERIFY
    config = [{"p4_name": name} for name in ("one", "other")]
    message = refused(
        lambda: client.rpc("SetForwardingPipelineConfig", client_id=1, action=kind, config=config)
    )
    assert "one: the profile has no binary" in message
    assert "name the running program (pipelines)" in message


def test_the_command_line_chooses_the_pipes() -> None:
    options = parse_options(
        [str(PROGRAM), "--pipe-scope", "pipeA=3,0", "--pipe-scope", "pipeB=1,2"]
    )
    device = make_device(options)
    with BfRuntimeServer(device, "127.0.0.1:0") as server, Client(server.address) as client:
        assert profiles(client) == {"pipeA": [0, 3], "pipeB": [1, 2]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pipeA"], "--pipe-scope pipeA: expected NAME=PIPES, for example pipeA=0,1"),
        (["pipeA=0,"], "--pipe-scope pipeA=0,: expected NAME=PIPES"),
        (["pipeA=0", "pipeA=1"], "--pipe-scope pipeA=1: pipeA is given twice"),
    ],
)
def test_wrong_scopes_on_the_command_line(arguments: list[str], message: str) -> None:
    given = [part for text in arguments for part in ("--pipe-scope", text)]
    with pytest.raises(OptionError, match=message):
        parse_options([str(PROGRAM), *given])
    with pytest.raises(OptionError, match="give FILE.p4|expected|twice"):
        parse_options(["--no-p4", *given])
