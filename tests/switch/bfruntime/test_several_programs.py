"""Several programs on one chip: pipes, names, clients, pushes, saved state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from bfrt_client import Client, bf
from finsy.proto import p4r

from gradplane._option_tables import OptionError
from gradplane.switch import Switch
from gradplane.switch.arch.registry import program_name
from gradplane.switch.bfruntime.program_schema import bfrt_json
from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import parse_options
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.device_config import device_config, device_config_of_several
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.program_cache import load_program
from gradplane.switch.runtime.control_errors import SwitchError

SOURCE = Path(__file__).parent / "one_of_several.p4"
SEVERAL = bf.SetForwardingPipelineConfigRequest

World = tuple[Device, Client, Client]


def program(folder: Path, name: str, add: int) -> Path:
    """Write a version of the program under a name of its own."""
    file = folder / f"{name}.p4"
    file.write_text(f"#define ADD {add}\n{SOURCE.read_text()}")
    return file


def packet(kind: int) -> bytes:
    return bytes([kind, 0, 99])


@pytest.fixture(params=["interpreter", "jit"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A device on whose pipes 0 and 1 runs `one`, on 2 and 3 `other`, and a client of each."""
    files = [str(program(tmp_path, name, add)) for name, add in (("one", 1), ("other", 16))]
    scopes = ["--pipe-scope", "one=0,1", "--pipe-scope", "other=2,3"]
    device = make_device(parse_options([*files, *scopes, "--engine", request.param]))
    with (
        BfRuntimeServer(device, "127.0.0.1:0") as server,
        Client(server.address, program="one", learn=True, idletimeout=True) as one,
        Client(server.address, 2, program="other", learn=True, idletimeout=True) as other,
    ):
        yield device, one, other


def refused(client: Client, act: Any, code: str = "INVALID_ARGUMENT") -> str:
    with pytest.raises(grpc.RpcError) as error:
        act(client)
    assert error.value.code().name == code
    return str(error.value.details())


def push(client: Client, programs: dict[str, tuple[bytes, list[int]]], action: int) -> None:
    """Push programs: the device config of each, empty for one that runs, and its pipes."""
    config = [
        {"p4_name": name, "profiles": [
            {"profile_name": "pipe", "binary": binary, "pipe_scope": pipes}
        ]}
        for name, (binary, pipes) in programs.items()
    ]  # fmt: skip
    client.rpc("SetForwardingPipelineConfig", client_id=client.id, action=action, config=config)


def there(client: Client) -> dict[str, list[int]]:
    """Return the pipes of each program of the device."""
    found = client.rpc("GetForwardingPipelineConfig", client_id=client.id).config
    return {c.p4_name: [n for p in c.profiles for n in p.pipe_scope] for c in found}


def seen(client: Client) -> list[int]:
    (cell,) = client.read("pipe.Ingress.seen", {"$REGISTER_INDEX": 0})
    values: list[int] = cell["Ingress.seen.f1"]
    return values


def test_packets_run_the_program_of_their_port(world: World) -> None:
    device, one, other = world
    one.add("pipe.Ingress.t", {"hdr.number.kind": 1}, "Ingress.send", port=5)
    other.add("pipe.Ingress.t", {"hdr.number.kind": 1}, "Ingress.send", port=2 << 7 | 6)
    other.add("pipe.Ingress.t", {"hdr.number.kind": 2}, "Ingress.send", port=7)
    # Ingress of a pipe's program sets the value, egress of the port's pipe adds its own.
    left = [[device.process(pipe << 7, packet(kind)) for pipe in range(4)] for kind in (1, 2)]
    assert left[0] == [[(5, bytes([1, 2, 99]))]] * 2 + [[(2 << 7 | 6, bytes([1, 32, 99]))]] * 2
    assert left[1] == [[], [], *[[(7, bytes([2, 17, 99]))]] * 2]
    assert (seen(one), seen(other)) == ([2, 2], [2, 2])


def test_a_client_sees_its_program_only(world: World, tmp_path: Path) -> None:
    _, one, other = world
    assert there(one) == {"one": [0, 1], "other": [2, 3]}
    for client, add in ((one, 1), (other, 16)):
        alone = bfrt_json(load_program(program(tmp_path, client.name, add)))
        names = {"tables": [], "learn_filters": []} | json.loads(alone)
        assert client.info == names  # ids, too, are those that it has alone
    one.add("pipe.Ingress.t", {"hdr.number.kind": 1}, "Ingress.send", port=5)
    assert other.read("pipe.Ingress.t") == []
    lacks = "no table has id"
    entry = other.entry("pipe.Ingress.more", {"hdr.number.value": 1}, "NoAction")
    assert lacks in refused(one, lambda c: c.write(("INSERT", entry)), "UNKNOWN")
    foreign = "client 1 is bound to one: to read and write other, subscribe another client"
    wrong = one.entry("pipe.Ingress.t", {"hdr.number.kind": 9}, "Ingress.drop")
    assert foreign in refused(
        one, lambda c: c.write(("INSERT", wrong), p4_name="other"), "PERMISSION_DENIED"
    )
    pipe = "pipe 2 runs another pipeline; use pipe 0, 1"
    assert pipe in refused(one, lambda c: c.read("pipe.Ingress.t", pipe=2), "UNKNOWN")


def test_clients_bind_to_one_program_each(world: World) -> None:
    _, one, other = world
    with Client(one.address, 3, bind=False) as third:
        taken = "client 2 is bound to other: it must leave first"
        assert taken in refused(third, lambda c: c.bind("other"), "ALREADY_EXISTS")
        unknown = "there is no program 'third'; the switch runs one, other"
        assert unknown in refused(third, lambda c: c.bind("third"), "NOT_FOUND")
        which = "client 3 is bound to no program: bind to one, other first"
        assert which in refused(third, lambda c: c.read("pipe.Ingress.t"), "FAILED_PRECONDITION")
        other.close()
        while True:
            try:
                third.bind("other")
                break
            except grpc.RpcError:
                continue  # its stream has not ended yet
    with Client(one.address, None) as nobody:
        which = "the switch runs one, other: name the program (p4_name), or bind to it"
        assert which in refused(nobody, lambda c: c.read("pipe.Ingress.t"))
        entry = nobody.entry("pipe.Ingress.t", {"hdr.number.kind": 4}, "Ingress.drop")
        nobody.write(("INSERT", entry), p4_name="one")
    assert [entry["hdr.number.kind"] for entry in one.read("pipe.Ingress.t")] == [4]


def test_digests_and_idle_entries_go_to_the_clients_of_their_program(world: World) -> None:
    device, one, other = world
    for client, port in ((one, 5), (other, 6)):
        client.add("pipe.Ingress.t", {"hdr.number.kind": 3}, "Ingress.report", port=port)
        mode = client.attribute("pipe.Ingress.t", "idle_table")
        idle = mode.table_attribute.idle_table
        idle.enable, idle.idle_table_mode = True, 1
        idle.ttl_query_interval, idle.max_ttl, idle.min_ttl = 100, 10000, 100
        client.write(("MODIFY", mode))
    device.process(2 << 7, packet(3))
    device.process(0, packet(3))
    for client, add in ((one, 1), (other, 16)):
        digest = client.next_message("digest")
        assert digest.digest_id == client.info["learn_filters"][0]["id"]
        assert [f.stream for f in digest.data[0].fields] == [b"\3", bytes([add])]
    mine = other.entry("pipe.Ingress.t", {"hdr.number.kind": 8}, "Ingress.drop", ENTRY_TTL=100)
    other.write(("INSERT", mine))
    notice = other.next_message("idle_timeout_notification")
    assert notice.table_entry.key.fields[0].exact.value == b"\x08"


def test_a_program_is_replaced_while_the_other_is_kept(world: World, tmp_path: Path) -> None:
    device, one, other = world
    third = device_config(program(tmp_path, "third", 4))
    programs = {"one": (b"", [0, 2]), "third": (third, [1, 3])}
    push(one, programs, SEVERAL.VERIFY)
    assert there(one) == {"one": [0, 1], "other": [2, 3]}
    push(one, programs, SEVERAL.VERIFY_AND_WARM_INIT_BEGIN)
    one.add("pipe.Ingress.t", {"hdr.number.kind": 1}, "Ingress.send", port=5)
    assert device.process(0, packet(1)) == []  # until it ends
    one.rpc("SetForwardingPipelineConfig", client_id=1, action=SEVERAL.WARM_INIT_END)
    assert there(one) == {"one": [0, 2], "third": [1, 3]}
    assert device.process(2 << 7, packet(1)) == [(5, bytes([1, 2, 99]))]
    with Client(one.address, 3, program="third") as client:
        client.add("pipe.Ingress.t", {"hdr.number.kind": 1}, "Ingress.send", port=1 << 7)
    assert device.process(3 << 7, packet(1)) == [(1 << 7, bytes([1, 8, 99]))]
    gone = "there is no program 'other'; the switch runs one, third"
    assert gone in refused(other, lambda c: c.read("pipe.Ingress.t"), "NOT_FOUND")
    both = device.pipeline
    assert both is not None and both.binaries == {"one": b"", "third": third}


def test_one_of_them_runs_alone_then_beside_another(world: World, tmp_path: Path) -> None:
    device, one, _ = world
    begins = SEVERAL.VERIFY_AND_WARM_INIT_BEGIN_AND_END
    push(one, {"one": (b"", [])}, begins)
    assert there(one) == {"one": [0, 1, 2, 3]}
    one.add("pipe.Ingress.t", {"hdr.number.kind": 1}, "Ingress.send", port=3 << 7)
    assert device.process(3 << 7, packet(1)) == [(3 << 7, bytes([1, 2, 99]))]
    third = device_config(program(tmp_path, "third", 4))
    push(one, {"third": (third, [0, 1, 2, 3])}, begins)  # an ordinary one again
    assert there(one) == {"third": [0, 1, 2, 3]}
    push(one, {"third": (b"", [0]), "other": (third.replace(b"third.p4", b"other.p4"), [1, 2, 3])},
         SEVERAL.VERIFY)  # fmt: skip
    assert device.pipeline is not None and not device.pipeline.catalog.program.label
    names = [table.name for table in device.pipeline.catalog.program.tables]
    assert names == ["Ingress.t", "Ingress.more"]  # those of the running program stay


def test_what_cannot_run_together_is_refused(world: World, tmp_path: Path) -> None:
    _, one, _ = world
    third = device_config(program(tmp_path, "third", 4))
    verify = SEVERAL.VERIFY
    wrong: list[tuple[dict[str, tuple[bytes, list[int]]], str]] = [
        ({"one": (b"", [0, 1]), "third": (third, [1, 2])}, "each of the pipes 0 to 3 must be"),
        ({"one": (b"", [0, 1]), "fourth": (third, [2, 3])}, "there is no program 'fourth'"),
        ({"one": (b"", [0, 1]), "fourth": (b"", [2, 3])}, "name one of the running programs"),
        ({"one": (b"", [0, 1]), "x": (b'{"source": "control", "file": "x.p4"}', [2])}, "x.p4:1"),
    ]
    for programs, message in wrong:
        code = "NOT_FOUND" if "there is no" in message else "INVALID_ARGUMENT"
        assert message in refused(one, lambda c, p=programs: push(c, p, verify), code)
    assert there(one) == {"one": [0, 1], "other": [2, 3]}


def test_the_device_table_starts_all_anew(world: World) -> None:
    device, one, other = world

    def asked(action: str, *names: str) -> Any:
        entry = one.entry("dev.warm_init", None, action)
        entry.is_default_entry = True
        listed = entry.data.fields.add(field_id=4).container_arr_val if names else None
        for name in names:
            listed.container.add().val.add(field_id=5, str_val=name)
        return "MODIFY", entry

    missing = "p4_programs names one, and the switch runs one, other: name them"
    assert missing in refused(one, lambda c: c.write(asked("begin", "one")), "UNKNOWN")
    other.add("pipe.Ingress.t", {"hdr.number.kind": 1}, "Ingress.drop")
    one.write(asked("begin", "one", "other"))
    other.add("pipe.Ingress.t", {"hdr.number.kind": 2}, "Ingress.send", port=6)
    one.write(asked("completed"))
    assert [entry["hdr.number.kind"] for entry in other.read("pipe.Ingress.t")] == [2]
    assert device.process(3 << 7, packet(2)) == [(6, bytes([2, 17, 99]))]


def test_the_state_of_all_is_saved(world: World) -> None:
    device, one, other = world
    for client, port in ((one, 5), (other, 6)):
        client.add("pipe.Ingress.t", {"hdr.number.kind": 1}, "Ingress.send", port=port)
    device.process(0, packet(1))
    device.load_state(device.save_state())
    assert (seen(one), seen(other)) == ([1, 0], [0, 0])
    assert [device.process(pipe << 7, packet(1))[0][0] for pipe in range(4)] == [5, 5, 6, 6]


def test_snapshots_and_debug_counters_are_a_programs_own(world: World) -> None:
    device, one, other = world
    other.add("pipe.Ingress.t", {"hdr.number.kind": 1}, "Ingress.send", port=6)
    for client in (one, other):
        client.write(("MODIFY", client.entry(
            "tbl_dbg_counter", {"tbl_name": "pipe.Ingress.t"}, type="TBL_HIT"
        )))  # fmt: skip
    device.process(3 << 7, packet(1))
    assert [e["value"] for e in one.read("tbl_dbg_counter")] == [0]
    assert [e["value"] for e in other.read("tbl_dbg_counter")] == [1, 0]


def test_from_python(tmp_path: Path) -> None:
    files = [program(tmp_path, name, add) for name, add in (("one", 1), ("other", 16))]
    switch = Switch(files, pipe_scopes={"one.pipe": [3], "other": [0, 1, 2]})
    switch.table("one.pipe.Ingress.t").add({"hdr.number.kind": 1}, "send", {"port": 0})
    assert switch.process(3 << 7, packet(1)) == [(0, bytes([1, 17, 99]))]
    with pytest.raises(SwitchError, match="known by their files' names: one, one"):
        Switch([files[0], files[0]])
    plain = tmp_path / "plain.p4"
    plain.write_text(
        "#include <v1model.p4>\nstruct h {} struct m {}\n"
        "parser P(packet_in p, out h a, inout m b, inout standard_metadata_t c)"
        " { state start { transition accept; } }\n"
        "control C(inout h a, inout m b) { apply {} }\n"
        "control I(inout h a, inout m b, inout standard_metadata_t c) { apply {} }\n"
        "control D(packet_out p, in h a) { apply {} }\n"
        "V1Switch(P(), C(), I(), I(), C(), D()) main;\n"
    )
    with pytest.raises(SwitchError, match=r"for tna, v1model: only the pipes of a chip \(tna\)"):
        Switch([files[0], plain])


def test_pipelines_without_scopes_are_placed_as_those_of_one_program(tmp_path: Path) -> None:
    files = [program(tmp_path, f"p{i}", 1) for i in range(5)]
    assert Switch(files[:2], engine="interpreter").program.pipe_scopes == {
        "p0.pipe": (0, 2), "p1.pipe": (1, 3)
    }  # fmt: skip
    with pytest.raises(SwitchError, match="5 pipelines for 4 pipes"):
        Switch(files, engine="interpreter")


def test_other_words_on_the_command_line_are_no_programs() -> None:
    with pytest.raises(OptionError, match="unrecognized arguments: word"):
        parse_options([str(SOURCE), "word"])


def test_a_program_has_the_name_of_the_file_that_includes_its_main(tmp_path: Path) -> None:
    included = program(tmp_path, "frame", 1)
    (file := tmp_path / "one.p4").write_text('#include "frame.p4"\n')
    assert [program_name(load_program(path)) for path in (file, included)] == ["one", "frame"]


# -- pushed over P4Runtime ------------------------------------------------------------------------


def both(folder: Path, **pipes: list[int]) -> bytes:
    files = [program(folder, name, add) for name, add in (("one", 1), ("other", 16))]
    return device_config_of_several(files, [], [], pipes)


def test_several_programs_are_pushed_in_one_device_config(tmp_path: Path) -> None:
    device = make_device(parse_options([]))
    pushed = p4r.ForwardingPipelineConfig(p4_device_config=both(tmp_path, one=[0, 1], other=[2, 3]))
    device.commit(device.prepare(pushed))
    config = device.target.config
    assert config.p4_device_config == pushed.p4_device_config
    names = [t.preamble.name for t in config.p4info.tables]
    assert {name.partition(".")[0] for name in names} == {"one", "other"}
    device.commit(device.prepare(config))  # with the P4Info that it has
    (file := tmp_path / "both.json").write_bytes(pushed.p4_device_config)
    started = make_device(parse_options([str(file)]))  # the switch starts with it, too
    assert started.target.config.p4info == config.p4info
    assert started.pipeline is not None and device.pipeline is not None
    placed = device.pipeline.catalog.program.pipe_scopes
    assert started.pipeline.catalog.program.pipe_scopes == placed != {}


@pytest.mark.parametrize(
    "change, found",
    [
        ({"pipe_scopes": {"one": "0"}}, "pipe_scopes: expected lists of pipes by name"),
        ({"pipe_scopes": {"one": [0], "other": [0, 1]}}, "must be given once, not 0, 0, 1"),
        ({"programs": {}}, "the device config has the keys"),
        ({"programs": {"one": {"source": "x"}}}, "x"),
        ({"programs": {"one": {"programs": {"one": {}}}}}, "the device config has the keys"),
    ],
)
def test_device_configs_of_several_programs_that_are_none(
    tmp_path: Path, change: dict[str, Any], found: str
) -> None:
    config = {**json.loads(both(tmp_path)), **change}
    device = make_device(parse_options([]))
    with pytest.raises(RpcError, match=found) as error:
        device.prepare(p4r.ForwardingPipelineConfig(p4_device_config=json.dumps(config).encode()))
    assert error.value.code == "INVALID_ARGUMENT"


def test_a_push_over_p4runtime_takes_the_place_of_all_programs(
    world: World, tmp_path: Path
) -> None:
    device = world[0]
    alone = device_config(program(tmp_path, "one", 1))
    device.commit(device.prepare(p4r.ForwardingPipelineConfig(p4_device_config=alone)))
    assert {t.preamble.name for t in device.target.config.p4info.tables} >= {"Ingress.t"}
    assert not any("other" in t.preamble.name for t in device.target.config.p4info.tables)
