"""Measure the embedded switch beside simple_switch_grpc: python benchmarks/bmv2.py.

Both take the same packets from one veth pair, and the packets that reach the other are counted
(switch_ports.py has the network). Without simple_switch_grpc on PATH nothing is measured.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import finsy
import switch_ports
from google.protobuf import text_format
from switch_memory import LANES, ROUTER, lanes_packets, router_packets
from switch_ports import Bench, Entries, Live

from gradplane.controller import targets
from gradplane.controller.targets import Start
from gradplane.experiment.p4_programs import P4Program

RUNS = 3
ADDRESS = "127.0.0.1:50051"  # in a network namespace of its own


def main() -> None:
    missing = targets.get("bmv2").missing()
    if missing:
        print(f"embedded beside BMv2: not measured: {missing}")
        return
    if "inside" not in sys.argv:
        sys.exit(subprocess.call([*switch_ports._isolated(), sys.executable, __file__, "inside"]))
    compiler = shutil.which("cc")
    if compiler is None:
        sys.exit("no C compiler here: the sender and the sink are in C")
    with tempfile.TemporaryDirectory() as folder:
        logging.disable(logging.WARNING)  # finsy's, about gNMI
        Beside(Path(folder), compiler).run()


class Beside(Bench):
    """The same network, with two switches in alternating runs."""

    def run(self) -> None:
        """Print a line for each program."""
        small = self._file("router", switch_ports._split(router_packets()))
        large = self._file("lanes", switch_ports._split(lanes_packets()))
        self._beside("router, 128 bytes", small, ROUTER, switch_ports.router_entries(), "h2")
        self._beside("128 lanes, 144 bytes", large, LANES, switch_ports.lanes_entries(), "h1")

    def _beside(self, name: str, packets: Path, program: Path, entries: Entries, sink: str) -> None:
        ours, theirs = [], []
        for _ in range(RUNS):
            with switch_ports.switch(program) as live:
                asyncio.run(switch_ports.install(live.address, program, entries))
                ours.append(self._measured(packets, live.pid, sink)[0])
            with simple_switch() as live:
                asyncio.run(install(program, entries))
                theirs.append(self._measured(packets, live.pid, sink)[0])
        one, other = max(ours), max(theirs)
        rates = f"embedded {one:,.0f}/s, simple_switch_grpc {other:,.0f}/s"
        print(f"{name:22}{rates}, ratio {one / max(other, 1):.1f}", flush=True)


@contextmanager
def simple_switch() -> Iterator[Live]:
    """Run simple_switch_grpc, without a program, on the two interfaces."""
    command = targets.get("bmv2").command(Start(Path(), {1: "s1", 2: "s2"}, ADDRESS))
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            time.sleep(1)
            yield Live(process, ADDRESS)
        finally:
            process.kill()


async def install(program: Path, entries: Entries) -> None:
    """Push the program and insert the entries."""
    info, config = targets.get("bmv2").pipeline(P4Program(program, {}))
    with tempfile.TemporaryDirectory() as folder:
        p4info, blob = Path(folder) / "p4info.txt", Path(folder) / "program.json"
        p4info.write_text(text_format.MessageToString(info))
        blob.write_bytes(config)
        options = finsy.SwitchOptions(p4info=p4info, p4blob=blob, device_id=0)
        async with finsy.Switch("sw", ADDRESS, options) as live:
            await live.write(entries)


if __name__ == "__main__":
    main()
