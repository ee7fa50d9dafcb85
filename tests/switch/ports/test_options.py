"""The live switch's command line: simple_switch_grpc's, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradplane._option_tables import OptionError
from gradplane._shipped_programs import SHIPPED
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions, parse_options
from gradplane.switch.p4runtime.server import ServerTls


def test_what_simple_switch_grpc_scripts_say() -> None:
    line = (
        "-i 1@s1-eth1 --interface 2@s1-eth2 --pcap /tmp/p --nanolog ipc:///tmp/x --device-id 3"
        " --thrift-port 9090 --notifications-addr=ipc:///y --log-console -L debug --log-flush"
        " --log-file logs/s1 --dump-packet-data 64 --debugger --max-port-count 16 --enable-swap"
        " prog.p4 -- --grpc-server-addr 0.0.0.0:50051 --cpu-port 255 --drop-port 64"
        " --priority-queues 8"
    )
    tracing = "gradplane trace --at ADDRESS traces packets"
    assert parse_options(line.split()) == SwitchOptions(
        program=Path("prog.p4"),
        interfaces=((1, "s1-eth1"), (2, "s1-eth2")),
        pcap=Path("/tmp/p"),
        log_console=True,
        log_file=Path("logs/s1"),
        log_level="debug",
        dump_bytes=64,
        thrift_port=9090,
        device_id=3,
        cpu_port=255,
        drop_port=64,
        priority_queues=8,
        grpc_address="0.0.0.0:50051",
        notes=(
            f"--nanolog is ignored: {tracing}",
            "--notifications-addr is ignored: digests and idle entries are reported over P4Runtime",
            "--log-flush is ignored: log lines are written at once",
            f"--debugger is ignored: {tracing}",
            "--max-port-count is ignored: there are 512 ports",
            "--enable-swap is ignored: a pushed program replaces the one that runs",
            "--thrift-port 9090: every user of this machine may become a primary controller there",
            "--grpc-server-addr 0.0.0.0:50051: other machines may control the switch, and"
            " connections are not encrypted; see --grpc-server-ssl",
        ),
    )


def test_ports_have_the_chips_queues_under_bfruntime() -> None:
    """Scripts configure queue 7 of a port of the chip without dealing out queues first."""
    assert parse_options(["p.p4", "--bfrt-addr"]).priority_queues == 8
    assert (
        parse_options(["p.p4", "--bfrt-addr", "--", "--priority-queues", "2"]).priority_queues == 2
    )
    assert parse_options(["p.p4"]).priority_queues is None


def test_a_shipped_program_by_its_name_unless_there_is_such_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_options(["thc.p4"]).program == SHIPPED / "thc.p4"
    assert parse_options(["other/thc.p4"]).program == Path("other/thc.p4")
    Path("thc.p4").touch()
    assert parse_options(["thc.p4"]).program == Path("thc.p4")


def test_a_copy_of_a_shipped_program_finds_its_includes(tmp_path: Path) -> None:
    copy = tmp_path / "mine.p4"
    copy.write_text((SHIPPED / "thc.p4").read_text())
    device = make_device(parse_options([str(copy)]))
    assert device.pipeline is not None


def test_packets_are_not_traced_above_level_debug() -> None:
    options = parse_options(["p.p4", "--log-console", "--log-file", "s1", "--log-level", "info"])
    assert not options.log_console
    assert options.log_file is None


def test_a_capture_without_a_folder_before_the_program() -> None:
    options = parse_options(["--pcap", "p.p4", "--no-p4"])
    assert (options.program, options.pcap) == (Path("p.p4"), Path())


@pytest.mark.p4runtime("3.1-2")
def test_our_own_options(tmp_path: Path) -> None:
    commands = tmp_path / "c.txt"
    commands.touch()
    line = f"p.p4 --seed 7 --engine interpreter -I a -I b -D X=1 -D Y --commands {commands} --pcap"
    line += " --externs e.py"
    assert parse_options(line.split()) == SwitchOptions(
        program=Path("p.p4"),
        seed=7,
        engine="interpreter",
        include_dirs=(Path("a"), Path("b")),
        defines=("X=1", "Y"),
        commands=(commands,),
        externs=Path("e.py"),
        pcap=Path(),
    )
    assert parse_options([]) == SwitchOptions()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-i eth0", "-i eth0: expected PORT@INTERFACE, for example 1@veth0"),
        ("-i 1@", "-i 1@: expected PORT@INTERFACE, for example 1@veth0"),
        ("-i 1@a -i 1@b", "-i 1@b: port 1 has an interface already"),
        ("-i 511@a", "-i 511@a: port 511 is the drop port (--drop-port)"),
        ("-i 64@a --cpu-port 64", "-i 64@a: port 64 is the CPU port"),
        ("-i 512@a", "-i 512@a: ports are 0 to 511"),
        ("--cpu-port 0", "--cpu-port 0: expected 1 to 511 and not the drop port, 511"),
        ("--cpu-port 9 --drop-port 9",
         "--cpu-port 9: expected 1 to 511 and not the drop port, 9"),
        ("--drop-port 512", "--drop-port 512: expected 0 to 511"),
        ("--thrift-port 99999", "--thrift-port 99999: not within 1 to 65535"),
        ("--bfrt-addr 127.0.0.1", "--bfrt-addr 127.0.0.1: expected HOST:PORT"),
        (
            "-- --grpc-server-addr 127.0.0.1:99999",
            "--grpc-server-addr 127.0.0.1:99999: ports are 0 to 65535",
        ),
        ("--commands a.txt", "--commands: commands need a program; give FILE.p4"),
        ("p.p4 --commands no.txt", "--commands no.txt: there is no such file"),
        ("--use-files 1", "--use-files 1: the seconds to wait, such as 0, and the ports: -i 1@h1"
         " reads h1_in.pcap and writes h1_out.pcap"),
        ("--cores 0", "--cores 0: not within 1 to 64"),
        ("-i 1@a --end-with-files",
         "--end-with-files: packets come from files by --use-files SECONDS"),
        ("-i 1@a --use-files 0 --cores 2", "--cores 2: packets of files (--use-files) come one"
         " after the other, by the captures' times: one core"),
        ("--log-level loud", "argument -L/--log-level: invalid choice: 'loud' (choose from 'trace',"
         " 'debug', 'info', 'warn', 'error', 'off')"),
        ("--seed x", "argument --seed: invalid int value: 'x'"),
        ("--sede=1", "unrecognized arguments: --sede=1"),
    ],
)  # fmt: skip
def test_what_is_refused(line: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_options(line.split())
    assert str(caught.value) == message


def test_more_cores_than_ports_get_a_note() -> None:
    assert parse_options(["-i", "1@a", "-i", "2@b", "--cores", "2"]).notes == ()
    (note,) = parse_options(["-i", "1@a", "-i", "2@b", "--cores", "3"]).notes
    assert note == "--cores 3: a port is read by one core, and there are 2 ports"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "[::1]:1", "localhost:1", "unix:/tmp/switch"])
def test_loopback_needs_no_tls(address: str) -> None:
    assert SwitchOptions().grpc_address == "127.0.0.1:9559"
    assert parse_options(["--grpc-server-addr", address]).notes == ()


def test_the_options_of_tls() -> None:
    line = "--grpc-server-addr 0.0.0.0:1 --grpc-server-ssl --grpc-server-cert c --grpc-server-key k"
    options = parse_options(line.split())
    assert options.tls == ServerTls(Path("c"), Path("k"))
    assert options.notes == ()
    options = parse_options(
        [*line.split(), "--grpc-server-cacert=ca", "--grpc-server-with-client-auth"]
    )
    assert options.tls == ServerTls(Path("c"), Path("k"), Path("ca"), client_auth=True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--grpc-server-ssl --grpc-server-cert c",
         "--grpc-server-ssl: give --grpc-server-cert and --grpc-server-key"),
        ("--grpc-server-ssl --grpc-server-cert c --grpc-server-key k"
         " --grpc-server-with-client-auth",
         "--grpc-server-with-client-auth: give --grpc-server-cacert"),
        ("--grpc-server-cert c",
         "the other --grpc-server options of TLS: only with --grpc-server-ssl"),
    ],
)  # fmt: skip
def test_incomplete_options_of_tls(line: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_options(line.split())
    assert str(caught.value) == message


def test_saved_state_needs_its_file_and_a_program(tmp_path: Path) -> None:
    state = tmp_path / "state.txt"
    with pytest.raises(OptionError, match="--restore-state: state needs a program; give FILE.p4"):
        parse_options(["--no-p4", "--restore-state", str(state)])
    with pytest.raises(OptionError, match=f"--restore-state {state}: there is no such file"):
        parse_options(["p.p4", "--restore-state", str(state)])
    state.touch()
    assert parse_options(["p.p4", "--restore-state", str(state)]).restore_state == state
    with pytest.raises(OptionError, match="--queue-depth -1: not within 0 to 4294967295"):
        parse_options(["p.p4", "--queue-depth", "-1"])
    with pytest.raises(OptionError, match="--priority-queues 9: a port has 1 to 8"):
        parse_options(["p.p4", "--", "--priority-queues", "9"])
