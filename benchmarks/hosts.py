"""Measure reduces between hosts beside PyTorch's gloo: python benchmarks/hosts.py [ROW ...].

Each row has a baseline that is measured right after it. On Mininet that is gloo's all_reduce of as
many float32 values between the same four hosts, through the same switch (it needs the extra
`torch`); on the simulated network the reference, an event queue in Python; for an experiment with
losses the same one without. A round lasts from the first worker's start to the last one's end; the
median is printed, and on the simulated network, where that is virtual, the least processor time of
a round. Hosts, switch and other load share the machine's processors, so compare only numbers of one
run. Everything on Mininet is in private namespaces.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradplane.controller.blocking import configure
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.loading import load, load_deployment
from gradplane.runs import isolation
from gradplane.runs.records.recorder import Recorder
from gradplane.topologies.mininet.mininet_network import MininetNetwork
from gradplane.topologies.sim.sim_network import SimNetwork

GLOO = Path(__file__).with_name("gloo_allreduce.py")
EXPERIMENTS = Path(__file__).parents[1] / "experiments"
WARM = 2  # rounds that do not count
PATIENCE = 300.0  # seconds for gloo
THC = 'push = { name = "thc", bits = 4, granularity = 30, p = 0.03125 }\nslots = 256\n'
WIDE = 'push = { name = "thc", bits = 4, granularity = 30, p = 0.03125 }\nsum_bits = 16\n'
SERVER = 'aggregation = "ps"\npush = "float32"\n'
NO_LOSS = ("impairment=[]", "job.quorum=4")  # settings of an experiment with losses
JOB = """
[topology]
workers = {workers}
[[job]]
model = {{ name = "synthetic", values = {values} }}
data = {{ name = "blank", rows = {rows} }}
reliability = "retransmit"
batch = 1
epochs = 1
compute_ms = 0
{scheme}
[output]
baseline = false
"""


@dataclass(frozen=True)
class Row:
    """A row of the table: an exchange of `values`, or a shipped experiment."""

    title: str
    net: str
    values: int = 0
    workers: int = 4
    rounds: int = 8
    scheme: str = THC
    experiment: str = ""
    settings: tuple[str, ...] = ()  # of the experiment
    simulator: str = "compiled"

    @property
    def beside_gloo(self) -> bool:
        """Return whether gloo is its baseline."""
        return self.net == "mininet" and not self.experiment

    @property
    def baseline(self) -> Row:
        """Return the row to compare this one with, where that is not gloo."""
        if self.experiment:
            return replace(self, settings=NO_LOSS)
        return replace(self, simulator="reference", rounds=1)

    def deployment(self, folder: Path) -> Deployment:
        """Return what is run."""
        if self.experiment:
            settings = ["output.baseline=false", *self.settings]
            return load_deployment(load(EXPERIMENTS / self.experiment, settings))
        path = folder / "bench.toml"
        rows = self.workers * (self.rounds + WARM)
        sizes = {"workers": self.workers, "values": self.values, "rows": rows}
        path.write_text(JOB.format(**sizes, scheme=self.scheme))
        return load_deployment(load(path, []))


ROWS = {
    "thc": Row("THC in the switch, 10^6 values", "mininet", 10**6),
    "ps": Row("parameter server, 10^6 values", "mininet", 10**6, scheme=SERVER),
    "thc-large": Row("THC in the switch, 10^7 values", "mininet", 10**7, rounds=3),
    "loss": Row("thc-star-loss", "mininet", experiment="thc-star-loss.toml"),
    "sim": Row("THC in the switch, 10^6 values", "sim", 10**6),
    "sim-large": Row("THC in the switch, 10^7 values", "sim", 10**7, rounds=2),
    "sim-wide": Row("64 workers, 4,000 values", "sim", 4000, 64, scheme=WIDE),
    "sim-loss": Row("thc-star-loss", "sim", experiment="thc-star-loss.toml"),
}


@dataclass
class Found:
    """A run's measurements. Times are in ns: wall clock, or virtual on the simulated network."""

    rounds: dict[int, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    gloo: list[int] = field(default_factory=list)
    workers: int = 0
    ends: list[float] = field(default_factory=list)  # processor time at the rounds' ends, s
    cpu: float = 0.0  # of the whole run, s
    record_bytes: int = 0

    def take(self, record: dict[str, Any]) -> None:
        """Take a log record."""
        if record["kind"] == "round":
            self.rounds[record["round"]].append(record)
            if len(self.rounds[record["round"]]) == self.workers:
                self.ends.append(_cpu())

    @property
    def cpu_a_round(self) -> float:
        """The least processor time between the ends of two rounds, in seconds."""
        warm = self.ends[WARM - 1 :]
        return min(after - before for before, after in zip(warm, warm[1:], strict=False))

    @property
    def times(self) -> list[int]:
        """Each round's time."""
        return [
            max(r["finished"] for r in records) - min(r["started"] for r in records)
            for _, records in sorted(self.rounds.items())
        ]

    @property
    def rate(self) -> float:
        """Rounds a second."""
        records = [record for records in self.rounds.values() for record in records]
        first, last = min(r["started"] for r in records), max(r["finished"] for r in records)
        return len(self.rounds) * 1e9 / (last - first)


def main() -> None:
    """Print a line for each row."""
    names = [name for name in sys.argv[1:] if name != "inside"] or list(ROWS)
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        sys.exit(f"no row {unknown[0]}; the rows are {', '.join(ROWS)}")
    if "inside" not in sys.argv and any(ROWS[name].net == "mininet" for name in names):
        argv = [sys.executable, __file__, "inside", *names]
        sys.exit(subprocess.call(isolation.command(argv, [Path(__file__).parent])))
    for row in map(ROWS.__getitem__, names):
        found = measure(row)
        print(_line(row, found) + "; " + _comparison(row, found), flush=True)


def measure(row: Row) -> Found:
    """Run a row."""
    found = Found()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        deployment = row.deployment(folder)
        with _network(row, deployment) as net:
            for switch, setup in deployment.setups.items():
                address = net.switch_addresses[switch]
                configure(address, deployment.pipelines[switch], setup, deployment.target.name)
            before = _cpu()
            found.workers = row.workers
            sizes = [job.config.workers for job in deployment.jobs]
            with Recorder(folder, sizes, lambda recorder, job: None, 10**12) as recorder:
                net.run(deployment.hosts, lambda line: (recorder(line), found.take(line)))
            found.cpu = _cpu() - before
            found.record_bytes = sum(file.stat().st_size for file in folder.glob("*.jsonl"))
            if row.beside_gloo and importlib.util.find_spec("torch"):
                assert isinstance(net, MininetNetwork)
                found.gloo = _gloo(net, row)
    return found


def _network(row: Row, deployment: Deployment) -> MininetNetwork | SimNetwork:
    if row.net == "mininet":
        return MininetNetwork(deployment.topology, deployment.switch_config())
    return SimNetwork(deployment.topology, deployment.switch_config(), row.simulator)


def _gloo(net: MininetNetwork, row: Row) -> list[int]:
    """Return the time of each round of gloo on the row's hosts: that of the slowest."""
    hosts = net.topology.hosts[: row.workers]
    started = [
        net.start(
            host.name,
            [sys.executable, str(GLOO), str(rank), str(row.workers), hosts[0].ip,
             f"{host.name}-eth0", str(row.values), str(row.rounds + WARM)],
        )
        for rank, host in enumerate(hosts)
    ]  # fmt: skip
    answers = [json.loads(process.communicate(timeout=PATIENCE)[0]) for process in started]
    return [max(times) for times in zip(*answers, strict=True)]


def _line(row: Row, found: Found) -> str:
    head = f"{row.net:8} {row.title:32}"
    if row.experiment:
        cpu = f", {1e3 * found.cpu / len(found.rounds):.1f} ms of CPU a round"
        return f"{head} {found.rate:8.1f} rounds a second" + (cpu if row.net == "sim" else "")
    text = f"{head} {_median(found.times):8.1f} ms a round"
    if row.net == "sim":
        text += f", {1e3 * found.cpu_a_round:.0f} ms of CPU ({found.cpu:.1f} s in all)"
    return text + f", {found.record_bytes / len(found.rounds) / 1e3:.0f} kB of records"


def _comparison(row: Row, found: Found) -> str:
    """Measure the row's baseline, unless that is done, and return how the row compares."""
    if row.beside_gloo:
        if not found.gloo:
            return "gloo was not measured: pip install gradplane[torch]"
        gloo = _median(found.gloo)
        return f"gloo {gloo:.1f} ms: {_median(found.times) / gloo:.2f} times its time"
    base = measure(row.baseline)
    if row.experiment:
        return f"without losses {base.rate:.1f}: {found.rate / base.rate:.2f} times its rate"
    reference, cpu = base.cpu_a_round, found.cpu_a_round
    return f"the reference {1e3 * reference:.0f} ms: {cpu / reference:.3f} times its time"


def _median(times: list[int]) -> float:
    """Return the median in ms of the rounds that count."""
    return statistics.median(times[WARM:]) / 1e6


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
