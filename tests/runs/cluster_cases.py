"""The parts of the tests of clusters that run among the machines of docs/cluster.md's script:

    sh machines.sh python cluster_cases.py FOLDER

FOLDER has the page's files; what was found is written into found.json there.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gradplane.controller import ControllerError
from gradplane.experiment.loading import ExperimentError
from gradplane.runs.run_experiment import run
from gradplane.topologies import NetworkError
from gradplane.topologies.cluster import cluster_network

PLAIN = ("output.baseline=false", "output.report=false")
REFUSED = {
    "name": 'cluster.hosts.h1.machine="m8"',
    "interface": 'cluster.hosts.h1.interface="eth8"',
    "scheduler": 'cluster.scheduler="tcp://10.1.0.254:1"',
    "switch": 'cluster.switches.s1.address="10.1.0.100:1"',
    "device": "cluster.switches.s1.device_id=5",
    "twice": 'cluster.hosts.h2.machine="10.1.0.1"',
    "several": f'cluster.hosts.h1.machine="{socket.gethostname()}"',
}
AWAITED = {"name": "JOINING", "switch": "JOINING", "scheduler": "CONNECTING"}
SLOW = "job.compute_ms=200"
BY_ADDRESS = [f'cluster.hosts.h{n}.machine="10.1.0.{n}"' for n in (1, 2, 3)]
BMV2 = """on s simple_switch_grpc --no-p4 -i 1@eth1 -i 2@eth2 -i 3@eth3 -i 4@eth4 --thrift-port 0 \
    --log-level off -- --grpc-server-addr 10.1.0.100:9559 --priority-queues 8"""


class Machines:
    """The running script's machines. folder: has its text."""

    def __init__(self, folder: Path) -> None:
        text = (folder / "machines.sh").read_text()
        (self._on,) = re.findall(r"^on\(\).*?^}\n", text, re.MULTILINE | re.DOTALL)
        (self.switch,) = re.findall(r"^on s .*?(?= >)", text, re.MULTILINE | re.DOTALL)

    def start(self, command: str) -> None:
        """Start a command that begins with "on MACHINE"."""
        subprocess.Popen(["sh", "-c", self._on + command], stdout=subprocess.DEVNULL)

    def kill(self, name: str) -> None:
        """Kill every process of a machine; return when none is left."""
        while pids := subprocess.check_output(["ip", "netns", "pids", name], text=True).split():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


@contextlib.contextmanager
def impatient(name: str | None) -> Iterator[None]:
    """Let a time be short that passes anyway, as nothing comes."""
    before = getattr(cluster_network, name or "JOINING")
    if name:
        setattr(cluster_network, name, 1.0)
    yield
    setattr(cluster_network, name or "JOINING", before)


def attempt(file: Path, out: Path, *settings: str) -> str:
    """Return what a run raises, and its notes."""
    try:
        run(file, out, net="cluster", settings=[*PLAIN, *settings])
    except (NetworkError, ControllerError, ExperimentError) as error:
        return "\n".join([str(error), *getattr(error, "__notes__", ())])
    return ""


def during(file: Path, out: Path, act: Callable[[], None], *settings: str) -> str:
    """Return what a run raises; `act` is called after its second round."""
    raised: list[str] = []
    running = threading.Thread(target=lambda: raised.append(attempt(file, out, *settings)))
    running.start()
    lines = out / "metrics.jsonl"
    while running.is_alive() and (not lines.exists() or len(lines.read_bytes().splitlines()) < 2):
        time.sleep(0.01)
    act()
    running.join()
    return raised[0]


def main(folder: Path) -> None:
    """Run the page's experiment; then what goes wrong."""
    machines, file = Machines(folder), folder / "lab.toml"
    found: dict[str, Any] = {}
    for name in ("PATIENCE", "JOINING", "CONNECTING"):  # however slow the machine is
        setattr(cluster_network, name, 600.0)
    run(file, folder / "cluster", net="cluster")
    found["refused"] = {}
    for key, setting in REFUSED.items():
        with impatient(AWAITED.get(key)):
            found["refused"][key] = attempt(file, folder / key, setting)

    def restart() -> None:
        machines.kill("s")
        machines.start(machines.switch)

    found["restarted"] = during(file, folder / "restarted", restart, SLOW, *BY_ADDRESS)
    if shutil.which("simple_switch_grpc"):
        machines.kill("s")
        machines.start(BMV2)
        found["bmv2"] = attempt(file, folder / "bmv2", 'switch.target="bmv2"')
    bmv2 = ['switch.target="bmv2"'] if "bmv2" in found else []
    endless = "job.epochs=1000", *bmv2
    found["lost"] = during(file, folder / "lost", lambda: machines.kill("m3"), *endless)
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
