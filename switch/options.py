"""The command line of `gradplane switch`, which takes what simple_switch_grpc takes.

    gradplane switch [FILE.p4] -i PORT@INTERFACE ... [OPTIONS] [-- TARGET OPTIONS]

What only that switch has (its debugger, thrift, log files) is accepted with a note and ignored.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

DEFAULT_ADDRESS = "0.0.0.0:9559"
DROP_PORT = 511  # v1model's mark_to_drop

# simple_switch_grpc's options without a meaning here: name -> number of values.
_IGNORED = {
    "--thrift-port": 1,
    "--notifications-addr": 1,
    "--use-files": 1,
    "--log-file": 1,
    "-L": 1,
    "--log-level": 1,
    "--log-flush": 0,
    "--debugger": 0,
    "--debugger-addr": 1,
    "--nanolog": 1,
    "--restore-state": 1,
    "--max-port-count": 1,
    "--no-p4": 0,
    "--enable-swap": 0,
    "--priority-queues": 1,
}


class OptionError(Exception):
    """The command line is not understood; the text says what is expected."""


@dataclass(frozen=True, slots=True)
class SwitchOptions:
    """What a live switch is started with.

    program: None to wait for a pushed one. interfaces: (port, network interface). pcap: the folder
    for INTERFACE_in.pcap and INTERFACE_out.pcap. engine: None for the switch's own choice.
    log_console: each packet's trace goes to stderr. notes: what was ignored, a line each.
    """

    program: Path | None = None
    interfaces: tuple[tuple[int, str], ...] = ()
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    pcap: Path | None = None
    seed: int = 0
    engine: str | None = None
    log_console: bool = False
    device_id: int = 0
    cpu_port: int | None = None
    grpc_address: str = DEFAULT_ADDRESS
    notes: tuple[str, ...] = ()


def parse_options(arguments: Sequence[str]) -> SwitchOptions:
    """The options of a command line. Raises OptionError."""
    known, notes = _without_ignored(arguments)
    parsed = _parser().parse_args(known)
    interfaces = tuple(_interface(text) for text in parsed.interface)
    _check_ports(interfaces, parsed.cpu_port)
    if parsed.drop_port != DROP_PORT:
        raise OptionError(
            f"--drop-port {parsed.drop_port}: v1model programs drop to port {DROP_PORT} here; leave"
            " the option out"
        )
    return SwitchOptions(
        program=parsed.program,
        interfaces=interfaces,
        include_dirs=tuple(parsed.include),
        defines=tuple(parsed.define),
        pcap=parsed.pcap,
        seed=parsed.seed,
        engine=parsed.engine,
        log_console=parsed.log_console,
        device_id=parsed.device_id,
        cpu_port=parsed.cpu_port,
        grpc_address=parsed.grpc_server_addr,
        notes=tuple(notes),
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gradplane switch",
        description="Run a P4 switch on network interfaces, under P4Runtime.",
        epilog="simple_switch_grpc's other options are accepted and ignored.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("program", nargs="?", type=Path, metavar="FILE.p4", help="none: wait for a pushed program")
    add("-i", "--interface", action="append", default=[], metavar="PORT@INTERFACE")
    add("-I", "--include", action="append", default=[], type=Path, metavar="DIR")
    add("-D", "--define", action="append", default=[], metavar="NAME[=VALUE]")
    add("--pcap", nargs="?", const=Path(), type=Path, metavar="DIR", help="record each port")
    add("--seed", type=int, default=0, help="of the program's random()")
    add("--engine", help="what runs the program")
    add("--log-console", action="store_true", help="tell what happens to each packet")
    add("--device-id", type=int, default=0)
    target = parser.add_argument_group("target options (after --)")
    add = target.add_argument
    add("--grpc-server-addr", default=DEFAULT_ADDRESS, metavar="HOST:PORT")
    add("--cpu-port", type=int, metavar="PORT", help="for packet-in and packet-out")
    add("--drop-port", type=int, default=DROP_PORT, metavar="PORT")
    return parser


def _without_ignored(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments less `--` and the ignored options, and a note on each of these."""
    kept: list[str] = []
    notes: list[str] = []
    left = iter(arguments)
    for argument in left:
        name, _, value = argument.partition("=")
        if name in _IGNORED:
            notes.append(f"{name} has no meaning for this switch and is ignored")
            if _IGNORED[name] and not value:
                next(left, None)
        elif argument != "--":
            kept.append(argument)
    return kept, notes


def _interface(text: str) -> tuple[int, str]:
    number, at, name = text.partition("@")
    if not (at and name and number.isdecimal()):
        raise OptionError(f"-i {text}: expected PORT@INTERFACE, for example 1@veth0")
    return int(number), name


def _check_ports(interfaces: Sequence[tuple[int, str]], cpu_port: int | None) -> None:
    seen: set[int] = set()
    for port, name in interfaces:
        if port >= DROP_PORT:
            raise OptionError(f"-i {port}@{name}: ports are 0 to {DROP_PORT - 1}")
        if port in seen:
            raise OptionError(f"-i {port}@{name}: port {port} has an interface already")
        if port == cpu_port:
            raise OptionError(f"-i {port}@{name}: port {port} is the CPU port")
        seen.add(port)
    if cpu_port is not None and not 0 < cpu_port < DROP_PORT:
        raise OptionError(f"--cpu-port {cpu_port}: expected 1 to {DROP_PORT - 1}")
