"""Target bmv2: its checks, which need no BMv2, and its command line."""

from pathlib import Path

import pytest

from gradplane.controller import targets
from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.targets import Start


def fake(folder: Path, output: str, name: str = "simple_switch_grpc") -> str:
    """Return a program that prints that, whatever it is asked."""
    path = folder / name
    path.write_text(f"#!/bin/sh\nprintf '%s' '{output}'\n")
    path.chmod(0o755)
    return str(path)


def test_a_missing_switch_is_reported_with_the_remedy() -> None:
    missing = targets.get("bmv2", binary="/nowhere/simple_switch_grpc").missing()
    assert missing == (
        "/nowhere/simple_switch_grpc is no executable file: install BMv2"
        " (https://github.com/p4lang/behavioral-model), or name the program:"
        ' [switch] binary = "/path/to/simple_switch_grpc"'
    )


def test_versions(tmp_path: Path) -> None:
    path = fake(tmp_path, "1.14.0-6b0ab1f4")
    assert targets.get("bmv2", binary=path).missing() == (
        f"{path} is version 1.14.0, too old: install BMv2 1.15 or newer"
        " (https://github.com/p4lang/behavioral-model)"
    )


def test_a_new_enough_switch_is_described_with_its_version(tmp_path: Path) -> None:
    target = targets.get("bmv2", binary=fake(tmp_path, "1.15.5 --grpc-server-addr arg"))
    assert target.missing() is None
    assert target.description() == "bmv2 (simple_switch_grpc 1.15.5, compiled by gradplane)"


def test_another_program_is_refused(tmp_path: Path) -> None:
    path = fake(tmp_path, "no number")
    expected = f"{path} --version prints no version: is it simple_switch_grpc?"
    assert targets.get("bmv2", binary=path).missing() == expected


def test_another_program_with_a_version_is_refused(tmp_path: Path) -> None:
    """simple_switch, which has no P4Runtime server, and most programs of a system."""
    path = fake(tmp_path, "simple_switch 1.15.5 --no-p4")
    expected = f"{path} --help lists no --grpc-server-addr: is it simple_switch_grpc?"
    assert targets.get("bmv2", binary=path).missing() == expected


def test_a_missing_p4c_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = targets.get("bmv2", binary=fake(tmp_path, "1.15 --grpc-server-addr"), compiler="p4c")
    monkeypatch.setenv("PATH", "/bin")
    expected = 'p4c-bm2-ss is not on PATH: install p4c, or use compiler = "gradplane"'
    assert target.missing() == expected


def test_the_command_line(tmp_path: Path) -> None:
    binary = fake(tmp_path, "--no-p4 --thrift-port arg")
    start = Start(Path("p.p4"), {1: "s1-eth1", 2: "s1-eth2"}, "127.0.0.1:50001")
    words = f"{binary} --no-p4 --device-id 0 -i 1@s1-eth1 -i 2@s1-eth2 --thrift-port 0"
    words += " --log-level off -- --grpc-server-addr 127.0.0.1:50001"
    expected = f"{words} --priority-queues 8"
    assert targets.get("bmv2", binary=binary).command(start) == expected.split()
    without = fake(tmp_path, "--no-p4 --grpc-server-addr arg", "without_thrift")
    words = expected.replace(binary, without).replace(" --thrift-port 0", "")
    assert targets.get("bmv2", binary=without).command(start) == words.split()


def test_keys_of_another_target_are_refused() -> None:
    with pytest.raises(ControllerError) as error:
        targets.get("embedded", compiler="p4c")
    assert str(error.value) == 'compiler is no key of target "embedded"; its own keys: none'


def test_the_addresses_that_it_listens_on() -> None:
    target = targets.get("bmv2")
    start = Start(Path("p.p4"), {}, "127.0.0.1:50001")
    assert target.listens(start) == {"P4Runtime": "127.0.0.1:50001"}
    start = Start(Path("p.p4"), {}, "127.0.0.1:50001", options=("--thrift-port", "9090"))
    expected = {"P4Runtime": "127.0.0.1:50001", "Thrift": "0.0.0.0:9090"}
    assert target.listens(start) == expected
