"""BMv2's simple_switch_grpc (p4lang/behavioral-model): its device config is BMv2's JSON.

It starts without a program (--no-p4) and is configured over P4Runtime. Its options are those of
targets/simple_switch_grpc/README.md and of `simple_switch_grpc --help`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.targets import LoadableProgram, QueueSettings, Start, Target

if TYPE_CHECKING:
    from gradplane._p4runtime import p4i

SWITCH = "simple_switch_grpc"
P4C = "p4c-bm2-ss"
COMPILERS = ("gradplane", "p4c")
OLDEST = (1, 15)
"""The oldest version of BMv2 that is accepted; 1.15.5 is the one that is tested."""

_PLACE = "https://github.com/p4lang/behavioral-model"


class Bmv2(Target):
    """BMv2's simple_switch_grpc in Mininet. binary: command or path; compiler: one of COMPILERS."""

    batch = 512
    networks = ("mininet", "cluster")
    pass_ns = 500_000.0  # of eight a packet, a few hundred packets a second
    cable = (508, 509)  # p4/tos_compress.p4 makes packets longer than a pass there can
    keys = ("binary", "compiler")

    def __init__(self, name: str, binary: str = SWITCH, compiler: str = COMPILERS[0]) -> None:
        super().__init__(name)
        if compiler not in COMPILERS:
            choices = " or ".join(f'"{known}"' for known in COMPILERS)
            raise ControllerError(f'compiler = "{compiler}": use {choices}')
        self.binary, self.compiler = binary, compiler

    def missing(self) -> str | None:
        """Return what is wrong with the switch's command, or that p4c is missing; None if ready."""
        path = shutil.which(self.binary)
        if path is None:
            lacking = "is no executable file" if "/" in self.binary else "is not on PATH"
            return (
                f"{self.binary} {lacking}: install BMv2 ({_PLACE}), or name the program:"
                f' [switch] binary = "/path/to/{SWITCH}"'
            )
        version = _version(path)
        if not version:
            return f"{path} --version prints no version: is it {SWITCH}?"
        if version[:2] < OLDEST:
            found, oldest = (".".join(map(str, v)) for v in (version, OLDEST))
            return f"{path} is version {found}, too old: install BMv2 {oldest} or newer ({_PLACE})"
        if "--grpc-server-addr" not in _options(path):
            return f"{path} --help lists no --grpc-server-addr: is it {SWITCH}?"
        if self.compiler == "p4c" and shutil.which(P4C) is None:
            return f'{P4C} is not on PATH: install p4c, or use compiler = "{COMPILERS[0]}"'
        return None

    def description(self) -> str:
        """Return the name with the switch's version and the compiler."""
        version = ".".join(map(str, _version(shutil.which(self.binary) or self.binary)))
        return f"{self.name} ({SWITCH} {version}, compiled by {self.compiler})"

    def pipeline(self, program: LoadableProgram) -> tuple[p4i.P4Info, bytes]:
        """Return P4Info and BMv2's JSON, both of the chosen compiler.

        Raises ControllerError where p4c refuses the program.
        """
        if self.compiler == "p4c":
            return _p4c(program)
        return program.p4info("bmv2"), program.compiled_for("bmv2")

    def command(self, start: Start) -> list[str]:
        """Return the command line of simple_switch_grpc, without a program.

        Thrift, which BMv2 may be built without, takes any free port, so that several switches start
        beside each other. Logging of every packet, the default, is off.
        """
        words = [self.binary, "--no-p4", "--device-id", str(self.device_id)]
        for port, interface in start.interfaces.items():
            words += ["-i", f"{port}@{interface}"]
        if "--thrift-port" in _options(shutil.which(self.binary) or self.binary):
            words += ["--thrift-port", "0"]
        if not {"--log-level", "-L"} & set(start.options):
            words += ["--log-level", "off"]
        queues = ["--priority-queues", "8"]  # all priorities; without a queue packets are dropped
        return [*words, *start.options, "--", "--grpc-server-addr", start.address, *queues]

    def listens(self, start: Start) -> Mapping[str, str]:
        """Return the addresses of P4Runtime, and of Thrift where the options name a port."""
        found = dict(super().listens(start))
        words = list(start.options)
        if "--thrift-port" in words[:-1]:
            found["Thrift"] = f"0.0.0.0:{words[words.index('--thrift-port') + 1]}"
        return found

    def options(
        self, engine: str, seed: int, pcap: Path | None, queues: QueueSettings | None = None
    ) -> list[str]:
        """Return the folder of captures as an option; engine and seed are the embedded switch's."""
        return [] if pcap is None else [f"--pcap={pcap}"]


@cache
def _said(path: str, option: str) -> str:
    """Return what a program prints when it is given that option; nothing if it cannot be run."""
    try:
        done = subprocess.run([path, option], capture_output=True, text=True, timeout=30)
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _version(path: str) -> tuple[int, ...]:
    """Return the version that a program prints ("1.15.5", or "1.15.0-b447ac4c"); () if none."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", _said(path, "--version"))
    return tuple(int(number) for number in found.groups("0")) if found else ()


def _options(path: str) -> str:
    """Return a program's list of options; a switch that is built without Thrift has fewer."""
    return _said(path, "--help")


def _p4c(program: LoadableProgram) -> tuple[p4i.P4Info, bytes]:
    """Compile with p4c; return its P4Info and JSON."""
    with tempfile.TemporaryDirectory() as folder:
        info, json = Path(folder, "program.p4info.txtpb"), Path(folder, "program.json")
        words = [P4C, "--arch", "v1model", "-o", str(json), "--p4runtime-files", str(info)]
        words += [f"-I{folder}" for folder in program.include_dirs]
        words += [f"-D{key}={value}" for key, value in program.defines.items()]
        done = subprocess.run([*words, str(program.path)], capture_output=True, text=True)
        if done.returncode != 0:
            raise ControllerError(
                f"{P4C} ended with status {done.returncode}: {done.stderr.strip()}"
            )
        from gradplane.controller.connection import parse_p4info

        return parse_p4info(info.read_bytes()), json.read_bytes()
