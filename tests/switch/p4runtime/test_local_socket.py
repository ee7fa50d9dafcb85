"""Commands beside a primary controller: from the switch's own user, and from the network."""

from __future__ import annotations

import logging
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import pytest
from finsy.proto import U128, p4r, p4r_grpc

from gradplane.switch.commands import NoPorts, changing
from gradplane.switch.daemon import clients, live_switch
from gradplane.switch.daemon.command_service import CommandService, _same_user
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import OptionError, SwitchOptions, parse_options
from gradplane.switch.p4runtime.server import P4RuntimeServer

ROUTER = Path(__file__).parent / "programs" / "router.p4"
ADD = "table_add ipv4_lpm drop 10.0.0.0/8 =>"
REFUSED = (
    "table_add: a controller is primary, and commands of others than the switch's user, or from a"
    " network with certificates, change nothing then: run it as that user on the switch's machine,"
    " by its Unix socket (gradplane cli without --at)"
)
_AS_ANOTHER = """import os, sys
from gradplane.switch.daemon.clients import CommandClient, Refused
CommandClient("127.0.0.1:1").close()  # loads the modules that the user cannot read
os.setresuid(65534, 65534, 65534)
client = CommandClient(sys.argv[1])
for text in sys.argv[2:]:
    try:
        print(list(client.run(text, "file"))[0]["output"])
    except Refused as refused:
        print(refused)
"""
Served = tuple[str, str, Path]


@pytest.fixture(params=[False, True], ids=["open", "guarded"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """A switch with a primary controller; the addresses of its network and of its socket."""
    device = make_device(SwitchOptions(program=ROUTER, device_id=1))
    commands = CommandService(device, NoPorts(), guarded=request.param)
    path = tmp_path / "s"
    others, also = [commands.handler], [f"unix:{path}"]
    with P4RuntimeServer(device, "127.0.0.1:0", others, also=also) as server:
        commands.primaries = server.service.arbitration.primaries
        with grpc.insecure_channel(server.address) as channel:
            update = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
            message = p4r.StreamMessageRequest(arbitration=update)
            stream = p4r_grpc.P4RuntimeStub(channel).StreamChannel(forever(message))
            assert next(stream).arbitration.status.code == 0
            yield server.address, also[0], path
            stream.cancel()
    assert not path.exists()


def forever(message: p4r.StreamMessageRequest) -> Iterator[p4r.StreamMessageRequest]:
    yield message
    threading.Event().wait()


def run(address: str, text: str) -> list[str]:
    with clients.CommandClient(address) as client:
        return [answer["output"] or answer["error"] for answer in client.run(text, "file")]


def test_the_owner_writes_beside_a_primary(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    assert stat.S_IMODE(served[2].stat().st_mode) == 0o600
    with caplog.at_level(logging.WARNING):
        assert run(served[1], ADD) == ["Entry has been added with handle 0"]
    assert caplog.messages == ["table_add changes the switch beside a primary controller"]
    with clients.CommandClient(served[1]) as client:
        client.load_state(client.save_state())
    assert run(served[1], "table_num_entries ipv4_lpm") == ["1"]


def test_the_network_may_not_where_it_needs_certificates(
    served: Served, request: pytest.FixtureRequest
) -> None:
    assert run(served[0], "table_num_entries ipv4_lpm")
    if "open" in request.node.name:
        assert run(served[0], ADD) == ["Entry has been added with handle 0"]
        return
    with pytest.raises(clients.Refused) as caught:
        run(served[0], f"table_dump ipv4_lpm\n{ADD}")
    assert str(caught.value) == REFUSED
    with clients.CommandClient(served[0]) as client:
        state = client.save_state()
        with pytest.raises(clients.Refused, match="load_state: a controller is primary"):
            client.load_state(state)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run a program as another user")
@pytest.mark.parametrize("served", [False], indirect=True)
def test_another_user_of_the_machine_may_not(served: Served) -> None:
    command = [sys.executable, "-c", _AS_ANOTHER, served[0], "table_num_entries ipv4_lpm", ADD]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["0", REFUSED], done.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_whose_a_connection_is(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as server:
        server.bind((host, 0))
        server.listen()
        with socket.create_connection(server.getsockname()[:2]) as mine:
            port = mine.getsockname()[1]
            peer = f"ipv6:%5B::1%5D:{port}" if ":" in host else f"ipv4:{host}:{port}"
            assert _same_user(peer)
            assert not _same_user("ipv4:192.0.2.1:40000")
            assert not _same_user("of no known form")
            monkeypatch.setattr(os, "getuid", lambda: 4321)
            assert _same_user(peer) == (os.geteuid() == 0)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("help\nshow_ports\n  counter_read seen 1 # table_add", None),
        ("table_dump t\nmc_dump\nmeter_get_rates m 0\nact_prof_dump p\nswitch_info", None),
        ("table_info t\n\nregister_write r 0 1", "register_write"),
        ('{"table_entries": []}', "runtime JSON"),
        ("no_such_command", "no_such_command"),
    ],
)
def test_what_changes_a_switch(text: str, found: str | None) -> None:
    assert changing(text) == found


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder in which a socket's path does not become too long."""
    with TemporaryDirectory(prefix="gp-", dir="/tmp") as folder:
        yield Path(folder)


def test_the_commands_find_the_socket(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path = short_path
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert clients.default_address() == "127.0.0.1:9559"
    (address,) = live_switch._also(SwitchOptions())
    assert address == f"unix:{clients.local_socket('127.0.0.1:9559')}"
    assert stat.S_IMODE((tmp_path / "gradplane").stat().st_mode) == 0o700
    device = make_device(SwitchOptions())
    with P4RuntimeServer(device, "127.0.0.1:0", also=[address]):
        assert clients.default_address() == address
    assert live_switch._also(SwitchOptions(unix_socket=tmp_path / "x")) == [f"unix:{tmp_path}/x"]


def test_a_folder_that_others_can_enter_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "gradplane").mkdir(mode=0o755)
    assert live_switch._also(SwitchOptions()) == []
    assert caplog.messages == [
        f"there is no Unix socket: {tmp_path}/gradplane is not this user's alone"
    ]


@pytest.mark.parametrize(
    ("folder", "obstacle"),
    [
        ("not there", "{runtime}/gradplane: No such file or directory"),
        ("a" * 80, "is longer than 107 bytes; use --unix-socket PATH"),
    ],
)
def test_a_switch_starts_without_its_socket(
    folder: str, obstacle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    runtime = tmp_path / folder
    if folder[0] == "a":
        runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    assert live_switch._also(SwitchOptions()) == []
    assert obstacle.format(runtime=runtime) in caplog.text


def test_a_thrift_port_is_open() -> None:
    (note,) = parse_options(["--thrift-port", "9090"]).notes
    assert note == (
        "--thrift-port 9090: every user of this machine may become a primary controller there"
    )
    tls = ["--grpc-server-ssl", "--grpc-server-cert", "c", "--grpc-server-key", "k"]
    tls += ["--grpc-server-cacert", "a", "--grpc-server-with-client-auth"]
    with pytest.raises(
        OptionError, match="--thrift-port 9090: with --grpc-server-with-client-auth"
    ):
        parse_options(["--thrift-port", "9090", *tls])
