"""The live switch's command line: simple_switch_grpc's, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradplane.switch.options import OptionError, SwitchOptions, parse_options


def test_what_simple_switch_grpc_scripts_say() -> None:
    line = (
        "-i 1@s1-eth1 --interface 2@s1-eth2 --pcap /tmp/p --nanolog ipc:///tmp/x --device-id 3"
        " --thrift-port 9090 --notifications-addr=ipc:///y --log-console -L debug --no-p4 prog.p4"
        " -- --grpc-server-addr 0.0.0.0:50051 --cpu-port 255 --drop-port 511"
    )
    ignored = ("--nanolog", "--thrift-port", "--notifications-addr", "-L", "--no-p4")
    assert parse_options(line.split()) == SwitchOptions(
        program=Path("prog.p4"),
        interfaces=((1, "s1-eth1"), (2, "s1-eth2")),
        pcap=Path("/tmp/p"),
        log_console=True,
        device_id=3,
        cpu_port=255,
        grpc_address="0.0.0.0:50051",
        notes=tuple(f"{o} has no meaning for this switch and is ignored" for o in ignored),
    )


def test_our_own_options() -> None:
    line = "p.p4 --seed 7 --engine interpreter -I a -I b -D X=1 -D Y --pcap"
    assert parse_options(line.split()) == SwitchOptions(
        program=Path("p.p4"),
        seed=7,
        engine="interpreter",
        include_dirs=(Path("a"), Path("b")),
        defines=("X=1", "Y"),
        pcap=Path(),
    )
    assert parse_options([]) == SwitchOptions()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-i eth0", "-i eth0: expected PORT@INTERFACE, for example 1@veth0"),
        ("-i 1@", "-i 1@: expected PORT@INTERFACE, for example 1@veth0"),
        ("-i 1@a -i 1@b", "-i 1@b: port 1 has an interface already"),
        ("-i 511@a", "-i 511@a: ports are 0 to 510"),
        ("-i 64@a --cpu-port 64", "-i 64@a: port 64 is the CPU port"),
        ("--cpu-port 0", "--cpu-port 0: expected 1 to 510"),
        ("--drop-port 9", "--drop-port 9: v1model programs drop to port 511 here; leave the option"
         " out"),
        ("--seed x", "argument --seed: invalid int value: 'x'"),
        ("--sede=1", "unrecognized arguments: --sede=1"),
    ],
)  # fmt: skip
def test_what_is_refused(line: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_options(line.split())
    assert str(caught.value) == message
