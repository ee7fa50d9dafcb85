"""The live switch: a program on network interfaces, under P4Runtime. `gradplane switch` runs it."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from types import FrameType

from gradplane.switch.compiler import compile_program
from gradplane.switch.ir import nodes as ir
from gradplane.switch.options import OptionError, SwitchOptions, parse_options
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.device_config import Source
from gradplane.switch.p4runtime.ids import P4InfoError
from gradplane.switch.p4runtime.server import P4RuntimeServer, ServerError
from gradplane.switch.ports.loop import Capture, PacketLoop
from gradplane.switch.ports.pcap import PcapWriter
from gradplane.switch.ports.port import Port
from gradplane.switch.runtime.errors import SwitchError
from gradplane.switch.source import CompileError
from gradplane.switch.switch import Switch

log = logging.getLogger(__name__)

USAGE = 2  # exit status of a wrong command line


class TracedSwitch(Switch):
    """Tells what happened to each packet on stderr."""

    def process(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        trace = self.trace(port, packet)
        print(f"port {port}, {len(packet)} bytes\n{trace.text()}", file=sys.stderr, flush=True)
        return trace.outputs


def main(arguments: Sequence[str]) -> int:
    """Run a switch with a command line's options; the exit status."""
    try:
        options = parse_options(arguments)
    except OptionError as error:
        print(f"gradplane switch: {error}", file=sys.stderr)
        return USAGE
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    for note in options.notes:
        print(f"note: {note}", file=sys.stderr)
    try:
        serve(options)
    except (CompileError, OSError, P4InfoError, ServerError, SwitchError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def serve(options: SwitchOptions) -> None:
    """Run a switch until SIGTERM or SIGINT.

    One line of JSON on stdout says that packets and controllers are taken, and the P4Runtime
    server's address. Raises CompileError, P4InfoError, PortError, ServerError, SwitchError or
    OSError where it cannot be started.
    """
    with ExitStack() as stack:
        ports = {n: stack.enter_context(closing(Port(n, i))) for n, i in options.interfaces}
        device = make_device(options)
        loop = PacketLoop(ports, device.process, _captures(options, stack))
        stack.callback(loop.close)
        device.transmit = loop.send
        server = stack.enter_context(P4RuntimeServer(device, options.grpc_address))
        stack.enter_context(_stopped_by_signals(loop))
        print(json.dumps(_ready(options, server)), flush=True)
        loop.run()


def make_device(options: SwitchOptions) -> Device:
    """The P4Runtime device of a switch, with the options' program loaded if there is one."""
    kind: Callable[..., Switch] = TracedSwitch if options.log_console else Switch

    if options.engine is not None:
        kind = partial(kind, engine=options.engine)

    def start(program: ir.Program) -> Switch:
        return kind(program, seed=options.seed, cpu_port=options.cpu_port)

    def compiled(source: Source) -> ir.Program:
        return compile_program(source.file, defines=source.defines, text=source.text)

    device = Device(compiled, start, options.device_id, options.cpu_port)
    if options.program is not None:
        program = compile_program(options.program, options.include_dirs, options.defines)
        device.load(program)
    return device


def _captures(options: SwitchOptions, stack: ExitStack) -> dict[int, Capture]:
    if options.pcap is None:
        return {}
    options.pcap.mkdir(parents=True, exist_ok=True)

    def writer(name: str) -> PcapWriter:
        assert options.pcap is not None
        return stack.enter_context(PcapWriter(options.pcap / name))

    return {
        number: Capture(writer(f"{name}_in.pcap"), writer(f"{name}_out.pcap"))
        for number, name in options.interfaces
    }


@contextmanager
def _stopped_by_signals(loop: PacketLoop) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        loop.stop()

    former = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _ready(options: SwitchOptions, server: P4RuntimeServer) -> dict[str, object]:
    return {
        "ready": True,
        "grpc": server.address,
        "device_id": options.device_id,
        "program": str(options.program) if options.program else None,
        "ports": {str(number): name for number, name in options.interfaces},
    }
