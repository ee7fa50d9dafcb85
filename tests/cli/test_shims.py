"""`gradplane shims`: stand-ins for p4c and BMv2's programs, with the options that scripts use."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import json_format, text_format

from gradplane.cli import bmv2_commands, p4c_command
from gradplane.cli.bmv2_commands import write_shims
from gradplane.switch import Switch
from gradplane.switch.p4runtime.device_config import parse_device_config
from gradplane.switch.runtime.control_errors import SwitchError

PROGRAM = """\
#include <core.p4>
#include <v1model.p4>
#include "macs.p4"

struct headers { ethernet_t ethernet; }
struct metadata {}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    action forward(bit<9> port) { standard.egress_spec = port; }
    table bridge {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; NoAction; }
        default_action = forward(LAST);
    }
    apply { bridge.apply(); }
}

control Nothing(inout headers hdr, inout metadata meta) { apply {} }
control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {}
}
control MyDeparser(packet_out packet, in headers hdr) { apply { packet.emit(hdr.ethernet); } }

V1Switch(P(), Nothing(), MyIngress(), MyEgress(), Nothing(), MyDeparser()) main;
"""
MACS = "header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }\n"
PACKET = bytes.fromhex("020000000001020000000002") + b"\x12\x34"
ACCEPTED = re.compile(r"^accepted: .*--p4runtime-files .*--Werror\[=KIND\]$", re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with bridge.p4 and include/macs.p4."""
    (tmp_path / "bridge.p4").write_text(PROGRAM)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "macs.p4").write_text(MACS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ports_of(config: Path) -> list[tuple[int, bytes]]:
    """Return the ports to which a switch with this device config sends the packet."""
    source = parse_device_config(config.read_bytes())
    program = config.with_suffix(".packed.p4")
    program.write_text(source.text)
    return Switch(program).process(1, PACKET)


OPTIONS = ["-I", "include", "-DLAST=7"]


def test_p4c_bm2_ss_writes_a_config_and_p4info(folder: Path) -> None:
    """As the Makefile of the P4 tutorials calls it."""
    (folder / "build").mkdir()
    arguments = "--p4v 16 --p4runtime-files build/bridge.p4.p4info.txtpb -o build/bridge.json"
    assert p4c_command.main("p4c-bm2-ss", [*arguments.split(), *OPTIONS, "bridge.p4"]) == 0
    assert ports_of(folder / "build" / "bridge.json") == [(7, PACKET)]
    p4info = p4i.P4Info()
    text_format.Parse((folder / "build" / "bridge.p4.p4info.txtpb").read_text(), p4info)
    assert [table.preamble.name for table in p4info.tables] == ["MyIngress.bridge"]


def test_p4c_writes_into_a_folder(folder: Path) -> None:
    """As p4-guide and p4-utils call it: -o is a folder, by default the current one."""
    arguments = ["--target", "bmv2", "--arch", "v1model", "--std", "p4-16", *OPTIONS, "bridge.p4"]
    assert p4c_command.main("p4c", arguments) == 0
    assert p4c_command.main("p4c", [*arguments, "-o", "out/new"]) == 0
    assert ports_of(folder / "bridge.json") == ports_of(folder / "out" / "new" / "bridge.json")


def test_preprocessing_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text has no includes left, and compiles to the same program."""
    assert p4c_command.main("p4c-bm2-ss", ["-E", *OPTIONS, "bridge.p4"]) == 0
    text = capsys.readouterr().out
    assert 'include "macs.p4"' not in text and "LAST" not in text
    (folder / "expanded.p4").write_text(text)
    assert Switch(folder / "expanded.p4").process(1, PACKET) == [(7, PACKET)]
    assert not (folder / "bridge.json").exists()


def test_preprocessing_and_compiling_apart(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As p4net 1.8.0 calls p4c: -E writes OUT/NAME.p4i, which -e compiles."""
    assert p4c_command.main("p4c", ["-E", "-o", "out", *OPTIONS, "bridge.p4"]) == 0
    assert capsys.readouterr().out == ""
    assert [file.name for file in (folder / "out").iterdir()] == ["bridge.p4i"]
    (folder / "include" / "macs.p4").unlink()
    assert p4c_command.main("p4c", ["-e", "-o", "out", "bridge.p4"]) == 0
    assert ports_of(folder / "out" / "bridge.json") == [(7, PACKET)]
    assert p4c_command.main("p4c-bm2-ss", ["--nocpp", "-o", "b.json", "out/bridge.p4i"]) == 0
    assert ports_of(folder / "b.json") == [(7, PACKET)]


def test_the_preprocessed_program_lies_beside_the_result(folder: Path) -> None:
    assert p4c_command.main("p4c", ["-o", "out", *OPTIONS, "bridge.p4"]) == 0
    assert sorted(file.name for file in (folder / "out").iterdir()) == ["bridge.json", "bridge.p4i"]
    assert p4c_command.main("p4c-bm2-ss", ["-o", "out2/b.json", *OPTIONS, "bridge.p4"]) == 0
    assert [file.name for file in (folder / "out2").iterdir()] == ["b.json"]


def test_the_steps_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-###", "-o", "out", "bridge.p4"]
    assert p4c_command.main("p4c", arguments) == 0
    assert capsys.readouterr().out == (
        "preprocessor:\nbridge.p4 -> out/bridge.p4i\ncompiler:\nbridge.p4 -> out/bridge.json\n"
    )
    assert not (folder / "out").exists()


def test_options_that_are_passed_on_and_options_without_effect(folder: Path) -> None:
    passed = "-Xpreprocessor=-DLAST=7 -Xp4c --Wdisable=unused,shadow -D FIRST -U FIRST -I include"
    others = "-c -S -O2 --parser-inline-opt --loopsUnroll --maxErrorCount 3 -Xlinker x -Wall"
    arguments = [*passed.split(), *others.split(), "--std", "P4\u2081\u2086", "-W", "undef"]
    arguments += ["-Xassembler=-x", "-O", "--Wwarn", "--Wwarn=unused", "--Wwarn", "bridge.p4", "-O"]
    assert p4c_command.main("p4c", arguments) == 0
    assert ports_of(folder / "bridge.json") == [(7, PACKET)]


@pytest.mark.parametrize("option", ["--help-targets", "--help-pragmas", "-V", "--help"])
def test_what_needs_no_program(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        p4c_command.main("p4c", [option])
    assert not ended.value.code
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--top4", "p4c's own passes are not run here; see gradplane p4 ir"),
        ("-Tnode:3", "p4c's own passes are not run here; see gradplane p4 ir"),
        ("--metrics=all", "metrics of code are not computed"),
        ("-MD", "rules for make are not written"),
        ("--ndebug", "assert and assume count; remove them from the program"),
    ],
)
def test_options_that_have_no_meaning_here(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str, reason: str
) -> None:
    assert p4c_command.main("p4c", [option, *OPTIONS, "bridge.p4"]) == 2
    assert capsys.readouterr().err == f"p4c: cannot use {option.partition('=')[0]}: {reason}\n"
    assert not (folder / "bridge.json").exists()


def test_p4info_in_each_format(folder: Path) -> None:
    names = "a.txt,a.txtpb,a.json,a.bin"
    arguments = ["--p4runtime-files", names, "--p4runtime-file", "b", *OPTIONS, "bridge.p4"]
    assert p4c_command.main("p4c-bm2-ss", arguments) == 0
    text = (folder / "a.txt").read_text()
    expected = text_format.Parse(text, p4i.P4Info())
    assert (folder / "a.txtpb").read_text() == text
    as_json = (folder / "a.json").read_text()
    assert json_format.Parse(as_json, p4i.P4Info()) == expected
    assert p4i.P4Info.FromString((folder / "a.bin").read_bytes()) == expected
    assert (folder / "b").read_bytes() == (folder / "a.bin").read_bytes()
    assert not (folder / "bridge.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--other", "bridge.p4"], "p4c-bm2-ss: cannot use --other\n"),
        (["bridge.p4", "two.p4"], "p4c-bm2-ss: cannot use two.p4\n"),
        (["--p4v", "14", "bridge.p4"], "p4c-bm2-ss: argument -x/--std/--p4v: invalid choice: '14'"),
        (["--target", "ebpf", "bridge.p4"], "p4c-bm2-ss: argument -b/--target: invalid choice"),
        (["-o", "x.json"], "p4c-bm2-ss: the following arguments are required: FILE.p4"),
    ],
)
def test_other_options_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """The message lists the options that are accepted."""
    assert p4c_command.main("p4c-bm2-ss", arguments) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(message)
    assert ACCEPTED.search(errors)
    assert not (folder / "x.json").exists()


def test_a_p4info_file_of_no_known_format(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert p4c_command.main("p4c", ["--p4runtime-files", "a.p4info", "bridge.p4"]) == 2
    assert capsys.readouterr().err == (
        "p4c: --p4runtime-files a.p4info: the suffix must be one of .txt, .txtpb, .json, .bin\n"
    )


def test_errors_of_the_program_and_of_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert p4c_command.main("p4c", ["-I", "include", "bridge.p4"]) == 1
    assert capsys.readouterr().err.startswith("bridge.p4:18:34: error: ")
    assert p4c_command.main("p4c", ["--arch", "psa", *OPTIONS, "bridge.p4"]) == 1
    assert "error: the program is for v1model, not for psa" in capsys.readouterr().err
    assert p4c_command.main("p4c", ["-b", "bmv2-psa", *OPTIONS, "bridge.p4"]) == 1
    assert "error: the program is for v1model, not for psa" in capsys.readouterr().err
    assert p4c_command.main("p4c", ["none.p4"]) == 1
    assert "none.p4" in capsys.readouterr().err
    assert not (folder / "bridge.json").exists()


def test_a_target_may_name_its_architecture(folder: Path) -> None:
    assert p4c_command.main("p4c", ["-b", "bmv2-v1model", *OPTIONS, "bridge.p4"]) == 0
    assert (folder / "bridge.json").exists()


def test_warnings_can_be_disabled_or_made_errors(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unused = "action forward(bit<9> port) { bit<8> never; "
    text = PROGRAM.replace("action forward(bit<9> port) { ", unused)
    (folder / "bridge.p4").write_text(text)
    arguments = [*OPTIONS, "bridge.p4"]
    assert p4c_command.main("p4c", arguments) == 0
    shown = capsys.readouterr().err
    found = re.search(r"warning: .*\[(\w+)\]", shown)
    assert found is not None
    kind = found[1]
    for disabled in ("--Wdisable", f"--Wdisable={kind}"):
        assert p4c_command.main("p4c", [disabled, "--Werror", *arguments]) == 0
        assert capsys.readouterr().err == ""
    (folder / "bridge.json").unlink()
    assert p4c_command.main("p4c", [f"--Werror={kind}", *arguments]) == 1
    assert capsys.readouterr().err.endswith("bridge.p4: 1 warnings are errors (--Werror)\n")
    assert not (folder / "bridge.json").exists()


def test_the_line_that_puts_them_on_the_path(tmp_path: Path) -> None:
    folder = tmp_path / "stand ins"
    line = write_shims(folder)
    assert line == f"export PATH='{folder}':$PATH"
    assert write_shims(folder) == line
    assert sorted(file.name for file in folder.iterdir()) == sorted(bmv2_commands.COMMANDS)
    assert all(os.access(file, os.X_OK) for file in folder.iterdir())


def test_real_programs_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "simple_switch").write_text("#!/bin/sh\n")
    with pytest.raises(SwitchError) as refused:
        write_shims(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}/simple_switch exists and is not a stand-in: choose another folder"
    )
    assert os.listdir(tmp_path) == ["simple_switch"]


@pytest.fixture
def on_path(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_shims(tmp_path / "shims")
    monkeypatch.setenv("PATH", f"{tmp_path}/shims:{os.environ['PATH']}")
    source = str(Path(bmv2_commands.__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", source)


@pytest.fixture
def running(on_path: None, folder: Path) -> Iterator[tuple[int, int]]:
    """Compile for a switch with the stand-ins and start it: its process, its port for commands."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    subprocess.run(["p4c", *OPTIONS, "bridge.p4"], check=True)
    command = ["simple_switch", "--log-console", "bridge.json", "--thrift-port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as switch:
        assert switch.stdout is not None and switch.stderr is not None
        ready = switch.stdout.readline()
        assert ready, switch.stderr.read().decode()
        assert json.loads(ready)["program"] == "bridge.json"
        yield switch.pid, port
        switch.send_signal(signal.SIGTERM)
        assert switch.wait() == 0


def test_the_process_has_the_name_of_the_program(running: tuple[int, int]) -> None:
    """Scripts end switches by `pkill simple_switch`."""
    assert Path(f"/proc/{running[0]}/comm").read_text() == "simple_switch\n"


def test_the_switch_and_its_command_line(running: tuple[int, int]) -> None:
    done = subprocess.run(
        ["simple_switch_CLI", "--thrift-port", str(running[1])],
        input="table_add bridge forward 02:00:00:00:00:01 => 3\ntable_num_entries bridge\n",
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("RuntimeCmd: ")
    assert "Entry has been added with handle 0" in done.stdout


def test_the_options_that_mininet_scripts_pass(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They replace the original's defaults."""
    from gradplane.switch.daemon import live_switch
    from gradplane.switch.daemon.options import parse_options

    seen = []
    monkeypatch.setattr(live_switch, "main", lambda arguments: seen.append(arguments) or 0)
    text = (
        "-i 1@s1-eth1 -i 2@s1-eth2 --pcap pcaps --nanolog ipc:///tmp/bm-0-log.ipc --device-id 3"
        " bridge.json --log-console --dump-packet-data 64 --thrift-port 9091 --"
        " --grpc-server-addr 127.0.0.1:50051 --cpu-port 510 --priority-queues 8"
    )
    for name in ("simple_switch_grpc", "simple_switch"):
        assert bmv2_commands.COMMANDS[name](text.split()) == 0
        assert bmv2_commands.COMMANDS[name](["--pcap", "bridge.json"]) == 0
    full, short, other_full, other_short = map(parse_options, seen)
    assert (short.program, short.pcap) == (Path("bridge.json"), Path())
    assert full == other_full
    assert full.interfaces == ((1, "s1-eth1"), (2, "s1-eth2"))
    assert (full.program, full.pcap) == (Path("bridge.json"), Path("pcaps"))
    assert (full.device_id, full.cpu_port, full.dump_bytes) == (3, 510, 64)
    assert (full.thrift_port, full.grpc_address) == (9091, "127.0.0.1:50051")
    assert (full.log_console, full.log_format) == (True, "bmv2")
    assert (short.thrift_port, short.grpc_address) == (9090, "127.0.0.1:9559")
    assert (other_short.thrift_port, other_short.grpc_address) == (9090, "127.0.0.1:0")
