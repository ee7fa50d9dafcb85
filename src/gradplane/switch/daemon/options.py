"""The command line of `gradplane switch`, compatible with simple_switch_grpc's.

    gradplane switch [FILE.p4] -i PORT@INTERFACE ... [OPTIONS] [-- TARGET OPTIONS]

Options for features of that switch only (its debugger, nanomsg) are ignored with a note.
"""

from __future__ import annotations

import argparse
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from gradplane import _shipped_programs
from gradplane.switch.p4runtime.server import DEFAULT_ADDRESS, ServerTls
from gradplane.switch.runtime.egress_queues import MOST_PACKETS, PRIORITIES

BFRT_ADDRESS = "127.0.0.1:50052"  # of the server in the driver of Tofino
PORTS = 512  # of simple_switch
DROP_PORT = 511

LOG_FORMATS = ("gradplane", "bmv2")
LOG_LEVELS = ("trace", "debug", "info", "warn", "error", "off")
PACKET_LEVELS = ("trace", "debug")  # at which simple_switch logs the processing of packets

# simple_switch_grpc's options without a meaning here: number of values, and the replacement.
_IGNORED = {
    "--notifications-addr": (1, "digests and idle entries are reported over P4Runtime"),
    "--log-flush": (0, "log lines are written at once"),
    "--debugger": (0, "gradplane trace --at ADDRESS traces packets"),
    "--debugger-addr": (1, "gradplane trace --at ADDRESS traces packets"),
    "--nanolog": (1, "gradplane trace --at ADDRESS traces packets"),
    "--max-port-count": (1, f"there are {PORTS} ports"),
    "--enable-swap": (0, "a pushed program replaces the one that runs"),
}
_REFUSED = {
    "--use-files": "packets are not read from files; see gradplane stf, or replay them (tcpreplay)",
    "--packet-in": "packets come from interfaces: -i PORT@INTERFACE",
    "--packet-out": "packets go to interfaces: -i PORT@INTERFACE",
}


class OptionError(Exception):
    """The command line is not valid; the message says what is expected."""


@dataclass(frozen=True, slots=True)
class SwitchOptions:
    """The options of a live switch.

    program: None to wait for a pushed one. externs: a Python file that implements user-defined
    externs. interfaces: (port, network interface). pcap: the folder for INTERFACE_in.pcap and
    INTERFACE_out.pcap. engine: None for the default. log_console, log_file: write each packet's
    trace, with its first `dump_bytes`, to stderr or a file. commands: files of commands to run at
    the start. restore_state: state that serialize_state of `gradplane cli` saved, to start with.
    priority_queues: the queues of each port; None: one, and a packet's priority has no effect.
    queue_rate: packets a second that leave each queue, None for no limit; queue_depth: packets that
    wait in one, None for the default. bfrt_address: of the BFRuntime server, None for none.
    thrift_port: a second port for `gradplane cli`, on loopback
    and without TLS. pipe_scopes: the pipes that run each pipeline of the program. notes: a line for
    each ignored option, and on unprotected connections.
    """

    program: Path | None = None
    externs: Path | None = None
    interfaces: tuple[tuple[int, str], ...] = ()
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    pcap: Path | None = None
    seed: int = 0
    engine: str | None = None
    log_console: bool = False
    log_file: Path | None = None
    log_format: str = "gradplane"
    log_level: str = "trace"
    dump_bytes: int = 0
    commands: tuple[Path, ...] = ()
    restore_state: Path | None = None
    thrift_port: int | None = None
    device_id: int = 0
    cpu_port: int | None = None
    drop_port: int = DROP_PORT
    priority_queues: int | None = None
    queue_rate: int | None = None
    queue_depth: int | None = None
    grpc_address: str = DEFAULT_ADDRESS
    bfrt_address: str | None = None
    tls: ServerTls | None = None
    pipe_scopes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def parse_options(arguments: Sequence[str]) -> SwitchOptions:
    """Parse a command line. Raises OptionError."""
    known, notes = _without_ignored(arguments)
    parsed = _parser().parse_args(known)
    program, pcap = parsed.program, parsed.pcap
    if program is None and pcap is not None and pcap.suffix in (".p4", ".json"):
        program, pcap = pcap, Path()  # --pcap without a folder, before the program
    if program is not None:
        program = _shipped_programs.find(program)
    if parsed.commands and program is None:
        raise OptionError("--commands: commands need a program; give FILE.p4")
    state = parsed.restore_state
    if state is not None and program is None:
        raise OptionError("--restore-state: state needs a program; give FILE.p4")
    if parsed.pipe_scope and program is None:
        raise OptionError("--pipe-scope: the pipelines are a program's; give FILE.p4")
    for option, files in (("--commands", parsed.commands), ("--restore-state", [state])):
        for file in files:
            if file is not None and not file.is_file():
                raise OptionError(f"{option} {file}: there is no such file")
    if parsed.thrift_port is not None and not 1 <= parsed.thrift_port <= 65535:
        raise OptionError(f"--thrift-port {parsed.thrift_port}: not within 1 to 65535")
    queues = parsed.priority_queues
    if queues is not None and not 1 <= queues <= PRIORITIES:
        raise OptionError(f"--priority-queues {queues}: a port has 1 to {PRIORITIES}")
    for option, value in (("rate", parsed.queue_rate), ("depth", parsed.queue_depth)):
        if value is not None and not 0 <= value < MOST_PACKETS:
            raise OptionError(f"--queue-{option} {value}: not within 0 to {MOST_PACKETS - 1}")
    logs = parsed.log_level in PACKET_LEVELS
    interfaces = tuple(_interface(text) for text in parsed.interface)
    check_ports(interfaces, parsed.cpu_port, parsed.drop_port)
    tls = _tls(parsed)
    addresses = (("--grpc-server-addr", parsed.grpc_server_addr), ("--bfrt-addr", parsed.bfrt_addr))
    for option, address in addresses:
        port = (address or "").rpartition(":")[2]
        if port.isdecimal() and int(port) > 65535:  # gRPC would take another port
            raise OptionError(f"{option} {address}: ports are 0 to 65535")
        if tls is None and address is not None and not _is_loopback(address):
            notes.append(
                f"{option} {address}: other machines may control the switch, and connections are"
                " not encrypted; see --grpc-server-ssl"
            )
    return SwitchOptions(
        program=program,
        externs=parsed.externs,
        interfaces=interfaces,
        include_dirs=tuple(parsed.include),
        defines=tuple(parsed.define),
        pcap=pcap,
        seed=parsed.seed,
        engine=parsed.engine,
        log_console=parsed.log_console and logs,
        log_file=parsed.log_file if logs else None,
        log_format=parsed.log_format,
        log_level=parsed.log_level,
        dump_bytes=parsed.dump_packet_data,
        commands=tuple(parsed.commands),
        restore_state=parsed.restore_state,
        thrift_port=parsed.thrift_port,
        device_id=parsed.device_id,
        cpu_port=parsed.cpu_port,
        drop_port=parsed.drop_port,
        priority_queues=parsed.priority_queues,
        queue_rate=parsed.queue_rate,
        queue_depth=parsed.queue_depth,
        grpc_address=parsed.grpc_server_addr,
        bfrt_address=parsed.bfrt_addr,
        tls=tls,
        pipe_scopes=_pipe_scopes(parsed.pipe_scope),
        notes=tuple(notes),
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gradplane switch",
        description="Run a P4 switch on network interfaces, under P4Runtime.",
        epilog="simple_switch_grpc's other options are accepted and ignored, or refused.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("program", nargs="?", type=Path, metavar="FILE.p4",
        help="the program, or a shipped one's name; without it, wait for a pushed one")  # fmt: skip
    add("-i", "--interface", action="append", default=[], metavar="PORT@INTERFACE",
        help="open an interface as a port")  # fmt: skip
    add("-I", "--include", action="append", default=[], type=Path, metavar="DIR",
        help="a folder of includes")  # fmt: skip
    add("-D", "--define", action="append", default=[], metavar="NAME[=VALUE]",
        help="define a macro")  # fmt: skip
    add("--pcap", nargs="?", const=Path(), type=Path, metavar="DIR",
        help="capture the packets of each port")  # fmt: skip
    add("--externs", type=Path, metavar="FILE.py", help="implements the user-defined externs")
    add("--seed", type=int, default=0, metavar="N", help="the seed of random numbers")
    add("--engine", help="jit or interpreter")
    add("--log-console", action="store_true", help="print a trace of each packet")
    add("--log-file", type=Path, metavar="NAME", help="write the traces to NAME.txt")
    add("-L", "--log-level", choices=LOG_LEVELS, default="trace", metavar="LEVEL",
        help=f"{', '.join(LOG_LEVELS)}; above debug: no traces")  # fmt: skip
    add("--log-format", choices=LOG_FORMATS, default="gradplane", help="the form of the traces")
    add("--dump-packet-data", type=int, default=0, metavar="N",
        help="show the first N bytes of each packet, too")  # fmt: skip
    add("--commands", action="append", default=[], type=Path, metavar="FILE",
        help="simple_switch_CLI's commands, or runtime JSON, to run first")  # fmt: skip
    add("--restore-state", type=Path, metavar="FILE",
        help="start with what serialize_state saved")  # fmt: skip
    add("--queue-rate", type=int, metavar="N",
        help="packets a second that leave each queue (set_queue_rate)")  # fmt: skip
    add("--queue-depth", type=int, metavar="N",
        help="packets that wait in each queue at most (set_queue_depth)")  # fmt: skip
    add("--thrift-port", type=int, metavar="PORT",
        help="a second port for gradplane cli; no Thrift")  # fmt: skip
    add("--bfrt-addr", nargs="?", const=BFRT_ADDRESS, metavar="HOST:PORT",
        help=f"serve BFRuntime, at {BFRT_ADDRESS} or this address")  # fmt: skip
    add("--pipe-scope", action="append", default=[], metavar="NAME=PIPE,PIPE",
        help="the pipes that run a pipeline of a TNA program")  # fmt: skip
    add("--no-p4", action="store_true", help="start without a program")
    add("--device-id", type=int, default=0, metavar="N", help="the P4Runtime device id")
    target = parser.add_argument_group("target options (after --)")
    add = target.add_argument
    add("--grpc-server-addr", default=DEFAULT_ADDRESS, metavar="HOST:PORT",
        help=f"the P4Runtime server's address, default {DEFAULT_ADDRESS}")  # fmt: skip
    add("--grpc-server-ssl", action="store_true", help="encrypt connections (TLS)")
    add("--grpc-server-cert", type=Path, metavar="FILE", help="the server's certificate, PEM")
    add("--grpc-server-key", type=Path, metavar="FILE", help="its private key, PEM")
    add("--grpc-server-cacert", type=Path, metavar="FILE", help="the clients' authority, PEM")
    add("--grpc-server-with-client-auth", action="store_true", help="require their certificates")
    add("--cpu-port", type=int, metavar="PORT", help="the port of packet-ins and packet-outs")
    add("--drop-port", type=int, default=DROP_PORT, metavar="PORT",
        help="the port that mark_to_drop sets")  # fmt: skip
    add("--priority-queues", type=int, metavar="N", help="queues of each port, 1 to 8")
    return parser


def _without_ignored(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments without `--` and the ignored options, and a note on each of these."""
    kept: list[str] = []
    notes: list[str] = []
    left = iter(arguments)
    for argument in left:
        name, _, value = argument.partition("=")
        if name in _REFUSED:
            raise OptionError(f"{name}: {_REFUSED[name]}")
        if name in _IGNORED:
            values, why = _IGNORED[name]
            notes.append(f"{name} is ignored: {why}")
            if values and not value:
                next(left, None)
        elif argument != "--":
            kept.append(argument)
    return kept, notes


def _interface(text: str) -> tuple[int, str]:
    number, at, name = text.partition("@")
    if not (at and name and number.isdecimal()):
        raise OptionError(f"-i {text}: expected PORT@INTERFACE, for example 1@veth0")
    return int(number), name


def _pipe_scopes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, pipes = text.partition("=")
        if not (name and re.fullmatch("[0-9]{1,3}(,[0-9]{1,3})*", pipes)):
            raise OptionError(f"--pipe-scope {text}: expected NAME=PIPES, for example pipeA=0,1")
        if name in found:
            raise OptionError(f"--pipe-scope {text}: {name} is given twice")
        found[name] = tuple(map(int, pipes.split(",")))
    return found


def _tls(parsed: argparse.Namespace) -> ServerTls | None:
    cert, key, cacert = (
        parsed.grpc_server_cert, parsed.grpc_server_key, parsed.grpc_server_cacert
    )  # fmt: skip
    with_client_auth = parsed.grpc_server_with_client_auth
    if not parsed.grpc_server_ssl:
        if cert or key or cacert or with_client_auth:
            raise OptionError("the other --grpc-server options of TLS: only with --grpc-server-ssl")
        return None
    if cert is None or key is None:
        raise OptionError("--grpc-server-ssl: give --grpc-server-cert and --grpc-server-key")
    if with_client_auth and cacert is None:
        raise OptionError("--grpc-server-with-client-auth: give --grpc-server-cacert")
    return ServerTls(cert, key, cacert, with_client_auth)


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost" or address.startswith("unix:"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_ports(
    interfaces: Sequence[tuple[int, str]], cpu_port: int | None, drop_port: int
) -> None:
    """Raise OptionError for port numbers that are invalid or special, and for what is given
    twice."""
    if not 0 <= drop_port < PORTS:
        raise OptionError(f"--drop-port {drop_port}: expected 0 to {PORTS - 1}")
    seen: dict[int, str] = {}
    for port, name in interfaces:
        if port >= PORTS:
            raise OptionError(f"-i {port}@{name}: ports are 0 to {PORTS - 1}")
        if port == drop_port:
            raise OptionError(f"-i {port}@{name}: port {port} is the drop port (--drop-port)")
        if port in seen:
            raise OptionError(f"-i {port}@{name}: port {port} has an interface already")
        if port == cpu_port:
            raise OptionError(f"-i {port}@{name}: port {port} is the CPU port")
        if name in seen.values():
            other = next(number for number, known in seen.items() if known == name)
            raise OptionError(f"-i {port}@{name}: interface {name} is port {other} already")
        seen[port] = name
    if cpu_port is not None and (not 0 < cpu_port < PORTS or cpu_port == drop_port):
        raise OptionError(
            f"--cpu-port {cpu_port}: expected 1 to {PORTS - 1} and not the drop port, {drop_port}"
        )
