"""Runs inside a network namespace of its own: three veth pairs, a live switch, and PTF on them.

Arguments: the old clients' Python, the folder that PTF is installed in, a folder for files.
Standard error and the status are PTF's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text

SUITE = Path(__file__).parent / "ptf_suite"
SOURCE = SUITE / "l3.p4"
PORTS = (1, 2, 3)
TIMEOUT = 60.0


def main(python: str, installed: Path, folder: Path) -> int:
    build_links()
    (folder / "p4info.txt").write_text(p4info_text(build_p4info(compile_program(SOURCE))))
    program = "import sys; from gradplane.switch.daemon import live_switch as live; "
    program += "sys.exit(live.main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "--device-id", "1"]
    for port in PORTS:
        command += ["-i", f"{port}@s{port}"]
    command += ["--", "--grpc-server-addr", "127.0.0.1:0", "--cpu-port", "510"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as switch:
        try:
            assert switch.stdout is not None
            address = json.loads(switch.stdout.readline())["grpc"]
            return run_ptf(python, installed, folder, address)
        finally:
            switch.send_signal(signal.SIGTERM)


def run_ptf(python: str, installed: Path, folder: Path, address: str) -> int:
    params = {"address": address, "p4info": str(folder / "p4info.txt"), "source": str(SOURCE)}
    command = [python, str(installed / "bin" / "ptf"), "--test-dir", str(SUITE)]
    command += ["--log-file", str(folder / "ptf.log")]
    command += ["--test-params", ";".join(f"{k}={v!r}" for k, v in params.items())]
    for port in PORTS:
        command += ["-i", f"{port}@h{port}"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment["PYTHONPATH"] = str(installed)
    done = subprocess.run(command, env=environment, stdout=sys.stderr, timeout=TIMEOUT, cwd=folder)
    return done.returncode


def build_links() -> None:
    def ip(arguments: str) -> None:
        subprocess.run(["ip", *arguments.split()], check=True)

    ip("link set lo up")
    for port in PORTS:
        ip(f"link add h{port} type veth peer name s{port}")
        for end in (f"h{port}", f"s{port}"):
            Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
            ip(f"link set {end} up")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
