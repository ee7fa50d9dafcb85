"""Measure jobs of many workers: python benchmarks/scale.py [ROW ...].

Simulated: a round of experiments/thc-1024.toml, beside its bare work: the codecs' encoding and
decoding of all workers, and all passes through switches, with the copies of results that these
send, run alone in the same process. The goal is a time of at most 1.3 times the bare work, divided
among the cores. Each row is a process of its own, as its memory is measured, too.

Mininet: the rounds a second of 128 workers in 4 racks with 10^4 values, through the switches beside
a parameter server, on links of 25 Mbit/s and on links without a rate.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gradplane
from gradplane.controller.blocking import configure
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.loading import load_deployment
from gradplane.hosts.protocols.job_codec import reduce_seed, summed_codec
from gradplane.hosts.protocols.switch_packets import SwitchPackets, indices_size
from gradplane.hosts.training import datasets, models
from gradplane.hosts.wire import aggregation
from gradplane.switch.runtime.packet_buffers import pack
from gradplane.topologies.sim import frames
from gradplane.topologies.sim.sim_network import SimNetwork

FILE = Path(__file__).parent.parent / "experiments" / "thc-1024.toml"
CORES = len(os.sched_getaffinity(0))
USES = 3
"""How often each slot is used while passes are timed, after once before."""


@dataclass
class Times:
    """Seconds of a clock and of all processors."""

    wall: float = 0.0
    cpu: float = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu


def simulated(*settings: str) -> None:
    """Print the times of a round, and of its bare work."""
    few = ("topology.workers=8", "topology.leaves=2", "job.data.rows=8")
    _round([*settings, *few])  # kernels are compiled, or read
    took = _round(settings)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    deployment = load_deployment(FILE, settings)
    workers = deployment.jobs[0].config.workers
    coding, switching = _coding(deployment), _switching(deployment)
    bare = coding + switching
    print(
        f"simulated, {workers:,} workers: a round takes {took.wall:.2f} s and"
        f" {took.cpu:.2f} s of {CORES} processors; bare: codecs {coding:.2f} s, passes"
        f" {switching:.2f} s; ratio {took.wall / (bare / CORES):.2f}, in processor time"
        f" {took.cpu / bare:.2f}; {memory:.2f} GiB",
        flush=True,
    )


def _round(settings: Any) -> Times:
    """Return the time that hosts, links and switches of a round take, with its records."""
    took, run = Times(), SimNetwork._run_to_end

    def timed(*arguments: Any) -> None:
        with took.measured():
            run(*arguments)

    SimNetwork._run_to_end = timed  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder:
            gradplane.run(
                FILE, Path(folder) / "run", net="sim", settings=[*settings, "output.report=false"]
            )
    finally:
        SimNetwork._run_to_end = run  # type: ignore[method-assign]
    return took


def _coding(deployment: Deployment) -> float:
    """Return the processor time of the codecs of all workers."""
    job = deployment.jobs[0].config
    codec, training = summed_codec(job), job.training
    data = datasets.build(training.data, training.data_args, job.seed)
    model = models.build(training.model, training.model_args, data.features, data.classes)
    _, x = model.loss_and_gradient(model.parameters(1), data.train_x[:1], data.train_y[:1])
    seed, took = reduce_seed(job, 0, 0), Times()
    pieces = [x[part.start : part.stop] for part in codec.partitions(x.size)]
    with took.measured():
        for worker in range(job.workers):
            for piece in pieces:
                codec.codes(piece, codec.local(piece), seed, None, worker)
    sums = [np.full(codec.lanes(piece.size), job.workers, np.uint16) for piece in pieces]
    with took.measured():
        for _ in range(job.workers):
            for piece, total in zip(pieces, sums, strict=True):
                norm = np.ones(1, np.float32)
                codec.decode_sum(total, piece.size, job.workers, norm, seed)
    return took.cpu


def _switching(deployment: Deployment) -> float:
    """Return the processor time of all passes through switches."""
    job, network, took = deployment.jobs[0].config, deployment.topology, Times()
    with SimNetwork(network, deployment.switch_config(None)) as net:
        for name, address in net.switch_addresses.items():
            configure(address, deployment.pipelines[name], deployment.setups[name])
        switches = {name: switch.running for name, switch in net._fabric.switches.items()}
        for use in range(1 + USES):
            waiting, results = _packets(deployment, use * job.transport.slots), 0
            while waiting:
                left: dict[str, list[tuple[int, bytes]]] = {}
                for name, arrivals in waiting.items():
                    packets, ends = pack(*zip(*arrivals, strict=True)), network.ports(name)
                    with took.measured() if use else nullcontext():
                        ports, data, offsets, _ = switches[name].process_buffer(*packets)
                    whole, at = data.tobytes(), offsets.tolist()
                    for i, port in enumerate(ports.tolist()):
                        node, end = ends[port].other_end(name)
                        if node in switches:
                            left.setdefault(node, []).append((end, whole[at[i] : at[i + 1]]))
                        else:
                            results += 1
                waiting = left
            assert results == job.transport.slots * job.workers, f"{results} results"
    lanes = summed_codec(job).lanes(deployment.jobs[0].values)
    chunks = -(-lanes // aggregation.LANES[job.transport.sum_bits])
    return took.cpu * chunks / (USES * job.transport.slots)


def _packets(deployment: Deployment, first: int) -> dict[str, list[tuple[int, bytes]]]:
    """Return what workers send of a chunk for each slot, from `first` on: ports and frames, in the
    order of the chunks, by the switch that gets them."""
    job, network = deployment.jobs[0].config, deployment.topology
    slots, ip_port = job.transport.slots, job.addresses.aggregator
    lanes = slots * aggregation.LANES[job.transport.sum_bits]
    codes = np.random.default_rng(1).integers(0, 16, lanes, dtype=np.uint8)
    found: dict[str, list[list[tuple[int, bytes]]]] = {}
    for worker, host in enumerate(deployment.jobs[0].members):
        switch, port = network.attachment(host.name)
        maker = SwitchPackets(job, worker, None)  # type: ignore[arg-type]
        source = frames.Address(host.mac, host.ip, job.addresses.worker_addresses[worker][1])
        to = frames.Address(network.arp[ip_port[0]], *ip_port)
        payloads = np.empty((slots, indices_size(job.transport)), np.uint8)
        maker.indices(first, codes, 0x3F800000, payloads)
        sent = [(port, frames.build(source, to, each.tobytes(), 0)) for each in payloads]
        found.setdefault(switch, []).append(sent)
    return {
        switch: [packet for chunk in zip(*workers, strict=True) for packet in chunk]
        for switch, workers in found.items()
    }


def mininet(*links: str) -> None:
    """Print the rounds a second through switches, and through a server."""
    thc, server = (_rate(job, links) for job in (THC, SERVER))
    where = " ".join(links) or "links without a rate"
    print(
        f"Mininet, 128 workers, {where}: {thc:.2f} rounds/s in the network, {server:.2f} through a"
        f" parameter server; ratio {thc / server:.2f}",
        flush=True,
    )


def _rate(job: str, links: tuple[str, ...]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "racks.toml"
        file.write_text(RACKS + job)
        summary = gradplane.run(file, Path(folder) / "run", net="mininet", settings=[*links])
        rate: float = summary.values["jobs"][0]["rounds_per_second"]
        return rate


RACKS = """
[topology]
kind = "leaf-spine"
workers = 128
leaves = 4
hosts_per_leaf = 33
[output]
baseline = false
report = false
[[job]]
model = { name = "synthetic", values = 10000 }
data = { name = "blank", rows = 1280 }
reliability = "retransmit"
error_feedback = false
batch = 1
epochs = 1
"""
THC = 'push = { name = "thc", bits = 4, granularity = 30 }\nsum_bits = 16\nslots = 64\n'
SERVER = 'aggregation = "ps"\npush = "float32"\n'

LARGER = (
    "topology.workers=4096", "topology.leaves=64", "job.push.granularity=15",
    "job.model.values=100000", "job.data.rows=4096",
)  # fmt: skip
SMALL = ("topology.workers=128", "topology.leaves=2", "job.data.rows=128")
ROWS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "1024": (simulated, ()),
    "4096": (simulated, LARGER),
    "small": (simulated, SMALL),
    "mininet": (mininet, ("topology.rate=25Mbit", "topology.oversubscription=4")),
    "mininet-fast": (mininet, ()),
}


def main() -> None:
    """Measure the rows that are named, all but "small" by default."""
    for name in sys.argv[1:] or [name for name in ROWS if name != "small"]:
        row, arguments = ROWS[name]
        process = multiprocessing.get_context("spawn").Process(target=row, args=arguments)
        process.start()
        process.join()
        if process.exitcode:
            sys.exit(f"{name}: exit status {process.exitcode}")


if __name__ == "__main__":
    main()
