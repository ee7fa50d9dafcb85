"""gradplane's own switch: its device config is P4 source, which it compiles itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from gradplane.controller.targets import LoadableProgram, QueueSettings, Start, Target

if TYPE_CHECKING:
    from gradplane._p4runtime import p4i


class Embedded(Target):
    """The target embedded: `gradplane switch` in Mininet, its engine in the simulated network."""

    batch = 512
    networks: ClassVar[tuple[str, ...]] = ("mininet", "sim", "cluster")
    announces = True
    cores = True
    queues = True

    def pipeline(self, program: LoadableProgram) -> tuple[p4i.P4Info, bytes]:
        """Return P4Info and the packed source."""
        return program.p4info(), program.packed_source()

    def command(self, start: Start) -> list[str]:
        """Return the command line of `gradplane switch`."""
        words = [sys.executable, "-P", "-m", "gradplane", "switch", str(start.program)]
        for port, interface in start.interfaces.items():
            words += ["-i", f"{port}@{interface}"]
        words += ["--device-id", str(self.device_id)]
        for folder in start.include_dirs:
            words += ["-I", str(folder)]
        for key, value in (start.defines or {}).items():
            words += ["-D", f"{key}={value}"]
        return [*words, *start.options, "--", "--grpc-server-addr", start.address]

    def options(
        self, engine: str, seed: int, pcap: Path | None, queues: QueueSettings | None = None
    ) -> list[str]:
        """Return engine, seed, folder of captures and queues as options of `gradplane switch`."""
        words = ["--engine", engine, "--seed", str(seed)]
        if pcap is not None:
            words += ["--pcap", str(pcap)]
        if queues is not None:
            words += ["--queue-rate", str(queues.rate)]
            words += [] if queues.depth is None else ["--queue-depth", str(queues.depth)]
        return words
