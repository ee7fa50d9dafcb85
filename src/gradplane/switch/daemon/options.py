"""The command line of `gradplane switch`, compatible with simple_switch_grpc's.

    gradplane switch [FILE.p4 ...] -i PORT@INTERFACE ... [OPTIONS] [-- TARGET OPTIONS]

Options for features of that switch only (its debugger, nanomsg) are ignored with a note.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from gradplane import _shipped_programs
from gradplane._option_tables import Option, OptionError, help_text, parse
from gradplane._suggestions import near_file
from gradplane.switch.p4runtime.limits import DEFAULT_ADDRESS, DEFAULT_LIMITS, Limits
from gradplane.switch.p4runtime.server import ServerTls
from gradplane.switch.runtime.egress_queues import MOST_PACKETS, PRIORITIES

BFRT_ADDRESS = "127.0.0.1:50052"  # of the server in the driver of Tofino
PORTS = 512  # of simple_switch
DROP_PORT = 511
MOST_CORES = 64

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
    "--packet-in": "packets come from interfaces: -i PORT@INTERFACE, or from files: --use-files",
    "--packet-out": "packets go to interfaces: -i PORT@INTERFACE",
}


@dataclass(frozen=True, slots=True)
class SwitchOptions:
    """The options of a live switch.

    program: None to wait for a pushed one. beside: other programs of the same chip. externs: a
    Python file that implements user-defined externs. interfaces: (port, network interface).
    cores: loops that read the ports (ports/packet_loops.py).
    use_files: packets come from captures, which are named after the interfaces, after so many
    seconds (packet_files.py); end_with_files: the last of them ends the switch.
    pcap: the folder for INTERFACE_in.pcap and INTERFACE_out.pcap.
    engine: None for the default. log_console, log_file: write each packet's trace, with its first
    `dump_bytes`, to stderr or a file.
    commands: files of commands to run at the start. restore_state: state that serialize_state
    of `gradplane cli` saved, to start with. priority_queues: the queues of each port; None:
    one, and a packet's priority has no effect. queue_rate: packets a second that leave each
    queue, None for no limit; queue_depth: packets that wait in one, None for the default.
    bfrt_address: of the BFRuntime server, None for none. thrift_port: a second port for
    `gradplane cli`, on loopback and without TLS. pipe_scopes: the pipes that run each pipeline
    of the program. restricted: entries must keep to the program's annotations. fixed_names:
    numbers of names, by the types that are translated to strings. limits: of the servers.
    unix_socket: for the commands of its owner, None for the one where they look for it.
    notes: a line for each ignored option, and on unprotected connections.
    """

    program: Path | None = None
    beside: tuple[Path, ...] = ()
    externs: Path | None = None
    interfaces: tuple[tuple[int, str], ...] = ()
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    cores: int = 1
    use_files: int | None = None
    end_with_files: bool = False
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
    restricted: bool = True
    fixed_names: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    cpu_port: int | None = None
    drop_port: int = DROP_PORT
    priority_queues: int | None = None
    queue_rate: int | None = None
    queue_depth: int | None = None
    grpc_address: str = DEFAULT_ADDRESS
    bfrt_address: str | None = None
    tls: ServerTls | None = None
    pipe_scopes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    limits: Limits = DEFAULT_LIMITS
    unix_socket: Path | None = None
    notes: tuple[str, ...] = ()


def parse_options(arguments: Sequence[str]) -> SwitchOptions:
    """Parse a command line. Raises OptionError."""
    known, notes = _without_ignored(arguments)
    parsed = _parsed(known)
    program, pcap = parsed.program, parsed.pcap
    if program is None and pcap is not None and pcap.suffix in (".p4", ".json"):
        program, pcap = pcap, Path()  # --pcap without a folder, before the program
    if program is not None:
        program = _shipped_programs.find(program)
    beside = tuple(map(_shipped_programs.find, parsed.beside))
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
                text = f"{option} {file}: there is no such file{near_file(Path(file))}"
                raise OptionError(text)
    if parsed.thrift_port is not None and not 1 <= parsed.thrift_port <= 65535:
        raise OptionError(f"--thrift-port {parsed.thrift_port}: not within 1 to 65535")
    queues = parsed.priority_queues
    if queues is not None and not 1 <= queues <= PRIORITIES:
        raise OptionError(f"--priority-queues {queues}: a port has 1 to {PRIORITIES}")
    if queues is None and parsed.bfrt_addr is not None:
        queues = PRIORITIES  # the chip's ports start with so many, which scripts configure
    for option, value in (("rate", parsed.queue_rate), ("depth", parsed.queue_depth)):
        if value is not None and not 0 <= value < MOST_PACKETS:
            raise OptionError(f"--queue-{option} {value}: not within 0 to {MOST_PACKETS - 1}")
    if parsed.use_files is not None and (parsed.use_files < 0 or not parsed.interface):
        raise OptionError(
            f"--use-files {parsed.use_files}: the seconds to wait, such as 0, and the ports:"
            " -i 1@h1 reads h1_in.pcap and writes h1_out.pcap"
        )
    if parsed.end_with_files and parsed.use_files is None:
        raise OptionError("--end-with-files: packets come from files by --use-files SECONDS")
    cores, ports = parsed.cores, len(parsed.interface)
    if not 1 <= cores <= MOST_CORES:
        raise OptionError(f"--cores {cores}: not within 1 to {MOST_CORES}")
    if cores > 1 and parsed.use_files is not None:
        raise OptionError(
            f"--cores {cores}: packets of files (--use-files) come one after the other, by the"
            " captures' times: one core"
        )
    if cores > max(ports, 1):
        notes.append(f"--cores {cores}: a port is read by one core, and there are {ports} ports")
    logs = parsed.log_level in PACKET_LEVELS
    interfaces = tuple(_interface(text) for text in parsed.interface)
    check_ports(interfaces, parsed.cpu_port, parsed.drop_port)
    tls = _tls(parsed)
    if parsed.thrift_port is not None:
        if tls is not None and tls.client_auth:
            raise OptionError(
                f"--thrift-port {parsed.thrift_port}: with --grpc-server-with-client-auth no port"
                " is open to clients without certificates; commands use the switch's Unix socket"
            )
        notes.append(
            f"--thrift-port {parsed.thrift_port}: every user of this machine may become a primary"
            " controller there"
        )
    addresses = (("--grpc-server-addr", parsed.grpc_server_addr), ("--bfrt-addr", parsed.bfrt_addr))
    for option, address in addresses:
        if address is not None and not address.startswith("unix:") and ":" not in address:
            raise OptionError(f"{option} {address}: expected HOST:PORT")
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
        beside=beside,
        externs=parsed.externs,
        interfaces=interfaces,
        include_dirs=tuple(parsed.include),
        defines=tuple(parsed.define),
        cores=cores,
        use_files=parsed.use_files,
        end_with_files=parsed.end_with_files,
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
        priority_queues=queues,
        queue_rate=parsed.queue_rate,
        queue_depth=parsed.queue_depth,
        grpc_address=parsed.grpc_server_addr,
        bfrt_address=parsed.bfrt_addr,
        tls=tls,
        pipe_scopes=parse_pipe_scopes(parsed.pipe_scope),
        limits=_limits(parsed.limit),
        unix_socket=parsed.unix_socket,
        restricted=not parsed.no_restrictions,
        fixed_names=_fixed_names(parsed.names),
        notes=tuple(notes),
    )


_TARGET = "target options (after --)"
_OPTIONS = (
    Option("-h --help", "", "print this text"),
    Option("-i --interface", "PORT@INTERFACE", "open an interface as a port", many=True),
    Option("-I --include", "DIR", "a folder of includes", Path, many=True),
    Option("-D --define", "NAME[=VALUE]", "define a macro", many=True),
    Option("--use-files", "SECONDS", "read packets from INTERFACE_in.pcap, so long after the start,"
           " and write INTERFACE_out.pcap; the captures' times are the clock", int),
    Option("--end-with-files", "", "end after the last packet of --use-files, where simple_switch"
           " stays"),
    Option("--cores", "N", "read the ports on so many cores, each of which has some of them", int,
           1),
    Option("--pcap", "DIR", "capture the packets of each port", Path, alone=Path()),
    Option("--externs", "FILE.py", "implements the user-defined externs", Path),
    Option("--seed", "N", "the seed of random numbers", int, 0),
    Option("--engine", "ENGINE", "jit or interpreter"),
    Option("--log-console", "", "print a trace of each packet"),
    Option("--log-file", "NAME", "write the traces to NAME.txt", Path),
    Option("-L --log-level", "LEVEL", f"{', '.join(LOG_LEVELS)}; above debug: no traces",
           default="trace", choices=LOG_LEVELS),
    Option("--log-format", "FORM", "the form of the traces: " + " or ".join(LOG_FORMATS),
           default="gradplane", choices=LOG_FORMATS),
    Option("--dump-packet-data", "N", "show the first N bytes of each packet, too", int, 0),
    Option("--commands", "FILE", "simple_switch_CLI's commands, or runtime JSON, to run first",
           Path, many=True),
    Option("--restore-state", "FILE", "start with what serialize_state saved", Path),
    Option("--queue-rate", "N", "packets a second that leave each queue (set_queue_rate)", int),
    Option("--queue-depth", "N", "packets that wait in each queue at most (set_queue_depth)", int),
    Option("--thrift-port", "PORT", "a second port for gradplane cli; no Thrift", int),
    Option("--bfrt-addr", "HOST:PORT", f"serve BFRuntime, at {BFRT_ADDRESS} or this address",
           alone=BFRT_ADDRESS),
    Option("--pipe-scope", "NAME=PIPE,PIPE", "the pipes that run a TNA program's pipeline, or one"
           " of several programs",
           many=True),
    Option("--unix-socket", "PATH", "for commands of its owner; default: where they look", Path),
    Option("--limit", "NAME=N", "what one client may use (docs/switch.md)", many=True),
    Option("--names", "FILE", "numbers of names of translated types, as JSON", Path),
    Option("--no-restrictions", "", "take entries that @entry_restriction and the like forbid"),
    Option("--no-p4", "", "start without a program"),
    Option("--device-id", "N", "the P4Runtime device id", int, 0),
    Option("--grpc-server-addr", "HOST:PORT",
           f"the P4Runtime server's address, default {DEFAULT_ADDRESS}",
           default=DEFAULT_ADDRESS, group=_TARGET),
    Option("--grpc-server-ssl", "", "encrypt connections (TLS)", group=_TARGET),
    Option("--grpc-server-cert", "FILE", "the server's certificate, PEM", Path, group=_TARGET),
    Option("--grpc-server-key", "FILE", "its private key, PEM", Path, group=_TARGET),
    Option("--grpc-server-cacert", "FILE", "the clients' authority, PEM", Path, group=_TARGET),
    Option("--grpc-server-with-client-auth", "", "require their certificates", group=_TARGET),
    Option("--cpu-port", "PORT", "the port of packet-ins and packet-outs", int, group=_TARGET),
    Option("--drop-port", "PORT", "the port that mark_to_drop sets", int, DROP_PORT, group=_TARGET),
    Option("--priority-queues", "N", "queues of each port, 1 to 8 (with --bfrt-addr: 8)", int,
           group=_TARGET),
)  # fmt: skip
_USAGE = "gradplane switch [OPTIONS] [FILE.p4 ...] [-- TARGET OPTIONS]"
_ABOUT = """Run a P4 switch on network interfaces, under P4Runtime.

FILE.p4: the program, or a shipped one's name; without it, wait for a pushed one. Several: TNA
programs, each for some of the chip's pipes."""
_OTHERS = "simple_switch_grpc's other options are accepted and ignored, or refused."


def _parsed(arguments: Sequence[str]) -> SimpleNamespace:
    """Return the values of the options, and the `program`. Prints the help where that is asked."""
    found, others = parse(_OPTIONS, arguments)
    if found.help:
        print(help_text(_USAGE, _ABOUT, _OPTIONS, _OTHERS), end="")
        raise SystemExit
    programs = [other for other in others if not other.startswith("-")]
    more = [other for other in programs[1:] if Path(other).suffix in (".p4", ".json")]
    unknown = [other for other in others if other not in (*programs[:1], *more)]
    if unknown:
        raise OptionError(f"unrecognized arguments: {' '.join(unknown)}")
    found.program = Path(programs[0]) if programs else None
    found.beside = [Path(other) for other in more]
    return found


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


def parse_pipe_scopes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the pipes by the names of NAME=PIPES. Raises OptionError."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, pipes = text.partition("=")
        if not (name and re.fullmatch("[0-9]{1,3}(,[0-9]{1,3})*", pipes)):
            raise OptionError(f"--pipe-scope {text}: expected NAME=PIPES, for example pipeA=0,1")
        if name in found:
            raise OptionError(f"--pipe-scope {text}: {name} is given twice")
        found[name] = tuple(map(int, pipes.split(",")))
    return found


def _limits(texts: Sequence[str]) -> Limits:
    try:
        return Limits.parse(texts)
    except ValueError as error:
        raise OptionError(f"--limit {error}") from error


def _fixed_names(file: Path | None) -> dict[str, dict[str, int]]:
    """Read {"vrf_t": {"vrf-blue": 3}, ...}."""
    if file is None:
        return {}
    form = 'expected {"TYPE": {"NAME": NUMBER, ...}, ...}'
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(f"--names {file}: {error}") from error
    if not isinstance(found, dict):
        raise OptionError(f"--names {file}: {form}")
    for type_name, numbers in found.items():
        if not isinstance(numbers, dict) or any(type(n) is not int for n in numbers.values()):
            raise OptionError(f"--names {file}: {type_name}: {form}")
    return found


def _tls(parsed: SimpleNamespace) -> ServerTls | None:
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
