"""The live switch: a program on network interfaces, under P4Runtime. `gradplane switch` runs it."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gradplane._option_tables import OptionError
from gradplane._shipped_programs import INCLUDE_DIRS
from gradplane._user_folders import private_obstacle
from gradplane.switch.arch.registry import architecture, combined
from gradplane.switch.daemon.clients import local_socket
from gradplane.switch.daemon.command_service import CommandService
from gradplane.switch.daemon.live_ports import LivePorts
from gradplane.switch.daemon.options import SwitchOptions, parse_options
from gradplane.switch.daemon.packet_files import PacketFiles
from gradplane.switch.daemon.trace_service import TraceService
from gradplane.switch.gnmi.service import GnmiService
from gradplane.switch.ir import nodes as ir
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.device_config import Source, parse_device_config, parse_several
from gradplane.switch.p4runtime.server import P4RuntimeServer, ServerError
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.packet_tracing import Tracing
from gradplane.switch.ports.packet_loops import PacketLoops
from gradplane.switch.program_cache import load_program, load_source
from gradplane.switch.runtime.control_errors import SwitchError, os_error_text
from gradplane.switch.runtime.links import Links
from gradplane.switch.source import CompileError
from gradplane.switch.switch import DEFAULT_ENGINE, Switch
from gradplane.switch.user_externs_file import load_externs

if TYPE_CHECKING:
    from gradplane.switch.bfruntime.server import BfRuntimeServer
    from gradplane.switch.bfruntime.snapshots import Placement
    from gradplane.switch.daemon.bmv2_log import Bmv2Log
    from gradplane.switch.interp.trace_events import Trace

log = logging.getLogger(__name__)

_ENDING = signal.SIGTERM, signal.SIGINT
_LONGEST_SOCKET = 107  # bytes that the kernel has for a Unix socket's path (man 7 unix)

SWITCH_INTERVAL = 0.0002
"""Seconds after which a waiting Python thread gets its turn: a batch of packets takes less than
Python's default of 5 ms, and controllers' requests must not hold it up for longer."""

USAGE = 2  # exit status of a wrong command line


class ConsoleTracing(Tracing):
    """Prints the trace of each packet, and its first bytes, to stderr or a file.

    log: formats it instead, without the bytes.
    """

    def __init__(self, out: TextIO, dump_bytes: int, log: Bmv2Log | None = None) -> None:
        super().__init__(None, None, None, end=lambda tracing: None)
        self._out = out
        self._dump_bytes = dump_bytes
        self._log = log

    def deliver(self, trace: Trace) -> None:
        if self._log is not None:
            print(self._log.text(trace), end="", file=self._out, flush=True)
            return
        heading = f"port {trace.port}, {len(trace.packet)} bytes"
        start = trace.packet[: self._dump_bytes].hex()
        lines = [heading, *([start] if start else []), trace.text()]
        print("\n".join(lines), file=self._out, flush=True)


def main(arguments: Sequence[str], place: Placement | None = None) -> int:
    """Run a switch with a command line's options; return the exit status. place: places tables in
    a chip's stages, for BFRuntime's snapshots."""
    try:
        options = parse_options(arguments)
    except OptionError as error:
        print(f"gradplane switch: {error}", file=sys.stderr)
        return USAGE
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    for note in options.notes:
        print(f"note: {note}", file=sys.stderr)
    try:
        serve(options, place)
    except OSError as error:
        print(f"gradplane switch: {os_error_text(error)}", file=sys.stderr)
        return 1
    except (CompileError, ServerError, SwitchError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def serve(options: SwitchOptions, place: Placement | None = None) -> None:
    """Run a switch until SIGTERM or SIGINT; it ends the process, so both are ignored from then on.

    One line of JSON on stdout reports that the switch accepts packets and controllers, with the
    P4Runtime server's address. Raises CompileError, PortError, ServerError, SwitchError or OSError
    where it cannot be started.
    """
    with ExitStack() as stack:
        files = None
        if options.use_files is not None:
            files = stack.enter_context(PacketFiles(options.interfaces, options.use_files))
        clock = time.monotonic_ns if files is None else files.clock
        ports = stack.enter_context(LivePorts(options))
        device = make_device(options, ports.links, _log_file(options, stack), clock)
        _run_commands(device, options.commands)
        loop = ports.loop(device)
        device.transmit = loop.send if files is None else files.send
        guarded = options.tls is not None and options.tls.client_auth
        commands = CommandService(device, ports, guarded)
        limits = options.limits
        traces, interfaces = TraceService(device, limits), GnmiService(ports, limits)
        server = stack.enter_context(
            P4RuntimeServer(
                device,
                options.grpc_address,
                [traces.handler, commands.handler, interfaces.handler],
                limits.traces + limits.subscriptions,
                _also(options),
                options.tls,
                limits,
            )
        )
        commands.primaries = server.service.arbitration.primaries
        bfrt = _bfruntime(options, device, ports, place)
        if bfrt is not None:
            stack.enter_context(bfrt)
        stack.enter_context(_stopped_by_signals(loop))
        stack.enter_context(_short_turns())
        stack.enter_context(short_collections())
        print(json.dumps(_ready(options, server, bfrt)), flush=True)
        if files is not None:
            files.start(device, loop.stop, not options.end_with_files)
        loop.run()
        if files is not None:
            files.check()


def _also(options: SwitchOptions) -> list[str]:
    """Return the addresses beside P4Runtime's: of --thrift-port, and the Unix socket."""
    found = [f"127.0.0.1:{options.thrift_port}"] if options.thrift_port else []
    socket = options.unix_socket
    if socket is None:
        if options.grpc_address.endswith(":0"):
            return found  # nobody could know its name
        socket = local_socket(options.grpc_address)
        if obstacle := _obstacle(socket):
            log.warning("there is no Unix socket: %s", obstacle)
            return found
    socket.unlink(missing_ok=True)  # of a switch that was killed; its address is checked first
    return [*found, f"unix:{socket}"]


def _obstacle(socket: Path) -> str:
    """Make a socket's folder; return what keeps the socket from being there, "" if nothing."""
    if obstacle := private_obstacle(socket.parent):
        return obstacle
    if len(os.fsencode(socket)) > _LONGEST_SOCKET:
        return f"{socket} is longer than {_LONGEST_SOCKET} bytes; use --unix-socket PATH"
    return ""


def make_device(
    options: SwitchOptions,
    links: Links | None = None,
    log_file: TextIO | None = None,
    clock: Callable[[], int] = time.monotonic_ns,
) -> Device:
    """Make the P4Runtime device of a switch, with the options' program loaded if there is one.

    `links` holds the state of the ports' links; traces of packets go to `log_file` and, with
    --log-console, to stderr. clock: the switch's, in nanoseconds.
    """
    externs = load_externs(options.externs)

    def start(program: ir.Program) -> Switch:
        visit_all()  # objects of the former program
        engine = options.engine or DEFAULT_ENGINE
        switch = Switch(
            program,
            engine=engine,
            seed=options.seed,
            clock=clock,
            cpu_port=options.cpu_port,
            drop_port=options.drop_port,
            links=links,
            externs=externs,
        )
        for out in (sys.stderr if options.log_console else None, log_file):
            if out is not None:
                log_format = None
                if options.log_format == "bmv2":
                    from gradplane.switch.daemon.bmv2_log import Bmv2Log

                    log_format = Bmv2Log(program, options.log_level == "trace")
                switch.watch(ConsoleTracing(out, options.dump_bytes, log_format))
        return switch

    def compiled(source: Source) -> ir.Program:
        if not source.compiled:
            from gradplane.switch.syntax.preprocess import preprocess

            # A pushed program must not read files of this machine through its includes.
            preprocess(source.file, defines=source.defines, text=source.text, shipped_only=True)
        return load_source(source)

    device = Device(compiled, start, options.device_id)
    device.restricted, device.fixed_names = options.restricted, options.fixed_names

    if options.program is not None:
        files = (options.program, *options.beside)
        found = [_programs(options, file) for file in files]
        program = combined([one for programs, _ in found for one in programs])
        if scopes := options.pipe_scopes or {
            n: tuple(p) for _, own in found for n, p in own.items()
        }:
            program = architecture(None, program).placed(program, scopes)
        try:
            device.load(program)
        except RpcError as error:
            raise SwitchError(f"{options.program}: {error.message}") from error
        _restore(device, options.restore_state)
    return device


def _programs(
    options: SwitchOptions, file: Path
) -> tuple[list[ir.Program], Mapping[str, Sequence[int]]]:
    """Load P4 source, BMv2's JSON, or a device config that `gradplane p4 config` made, which may
    have several programs; return them and the pipes that it gives them."""
    if file.suffix != ".json":
        folders = (*options.include_dirs, *INCLUDE_DIRS)
        return [load_program(file, folders, options.defines)], {}
    try:
        several = parse_several(file.read_bytes())
        if several is not None:
            programs, scopes = several
            return [load_source(parse_device_config(one)) for one in programs.values()], scopes
        source = parse_device_config(file.read_bytes())
    except RpcError as error:
        raise SwitchError(f"{file}: {error.message}") from error
    return [load_program(file) if source.compiled else load_source(source)], {}


def _restore(device: Device, file: Path | None) -> None:
    """Start the program with saved state. Raises SwitchError where the file has no such state."""
    if file is None:
        return
    try:
        device.load_state(_text(file))
    except RpcError as error:
        raise SwitchError(f"--restore-state {file}: {error.message}") from error


def _run_commands(device: Device, files: Sequence[Path]) -> None:
    """Run the files' commands; raise CommandError with all that failed."""
    for file in files:
        pipeline = device.pipeline
        assert pipeline is not None and isinstance(pipeline.switch, Switch)
        for line in pipeline.switch.run_commands(_text(file), str(file)).splitlines():
            if line.startswith("note: "):
                print(line, file=sys.stderr)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8-sig", errors="replace")


def _log_file(options: SwitchOptions, stack: ExitStack) -> TextIO | None:
    """Open the log file; simple_switch appends .txt to its name, too."""
    if options.log_file is None:
        return None
    return stack.enter_context(Path(f"{options.log_file}.txt").open("w", encoding="utf-8"))


@contextmanager
def _stopped_by_signals(loop: PacketLoops) -> Iterator[None]:
    """Stop the loop at a signal. More of them are ignored: they would break off the end of servers
    and threads, without which the process does not end."""
    for number in _ENDING:
        signal.signal(number, lambda number, frame: loop.stop())
    try:
        yield
    finally:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def _short_turns() -> Iterator[None]:
    former = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(former)


def _bfruntime(
    options: SwitchOptions, device: Device, ports: LivePorts, place: Placement | None
) -> BfRuntimeServer | None:
    """Return the BFRuntime server if there is to be one; its modules are not loaded otherwise."""
    if options.bfrt_address is None:
        return None
    from gradplane.switch.bfruntime.server import BfRuntimeServer

    return BfRuntimeServer(device, options.bfrt_address, ports, options.tls, place, options.limits)


def _ready(
    options: SwitchOptions, server: P4RuntimeServer, bfrt: BfRuntimeServer | None
) -> dict[str, object]:
    return {
        "ready": True,
        "grpc": server.address,
        **({} if bfrt is None else {"bfrt": bfrt.address}),
        "device_id": options.device_id,
        "program": str(options.program) if options.program else None,
        **({"beside": list(map(str, options.beside))} if options.beside else {}),
        "ports": {str(number): name for number, name in options.interfaces},
    }


# -- short pauses of Python's garbage collector, for a process with many objects ------------------


@contextmanager
def short_collections() -> Iterator[None]:
    """Exempt objects that survive a full collection from later ones in this context."""
    gc.callbacks.append(_leave_alone)
    try:
        yield
    finally:
        gc.callbacks.remove(_leave_alone)
        gc.unfreeze()


def visit_all() -> None:
    """Make the next full collection visit every object, after many have fallen out of use."""
    gc.unfreeze()


def _leave_alone(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
