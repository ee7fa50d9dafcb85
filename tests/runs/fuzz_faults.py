"""Random faults in whole runs, on the simulated network or Mininet: `make fuzz`, or by hand.

    python tests/runs/fuzz_faults.py [--net mininet] [--seconds 60] [--seed N] [--from N]

Each experiment has 1 to 3 jobs of 2 to 64 workers, vectors of one or more partitions, any scheme,
and a random schedule of impairments, absences, compute times and background traffic. Every worker
must end; every sum that a host gets must be the sum of the codes that its bitmap names, computed
here from the workers' packets; workers that retransmit to a full quorum must end with equal
weights; and the run must replay equal. `--seed N` repeats an experiment, which is printed when it
fails. On Mininet, hosts are processes of their own, so nobody compares each sum with the codes; the
replay, which computes all sums again, does.
"""

import argparse
import random
import secrets
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from gradplane.codecs._grid import GridCodec
from gradplane.experiment.document import ExperimentError, dumps
from gradplane.experiment.loading import Experiment, load
from gradplane.hosts.drivers.host import Host
from gradplane.hosts.impairments.host_link import HostLink
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type
from gradplane.runs import run_experiment
from gradplane.runs.replayer.replay_run import replay

PARTITION = 2**11  # values, instead of 2^20, so that a short vector has several partitions
MOST_COST = 1e6  # of an experiment: codes that cross the switch
SIZES = (2, 2, 3, 3, 4, 4, 5, 8, 10, 16, 33, 64)
MOST_HOSTS = {"sim": 200, "mininet": 10}


class Oracle:
    """Adds the codes that hosts send, and compares the sums and norms that they get."""

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        self.reset()

    def reset(self, watch: bool = True) -> None:
        """Forget everything that was sent. Without `watch`, kernels take results unseen."""
        self._watch = watch
        self._codes: dict[tuple[int, int, int, int], bytes] = {}
        self._norms: dict[tuple[int, int, int, int], int] = {}
        self._tables: dict[int, Any] = {}
        self._known: dict[tuple[Any, ...], bytes] = {}

    def install(self) -> None:
        """Watch every host's link."""
        send, receive = HostLink.send, HostLink.receive
        oracle = self

        def watched_send(link: HostLink, sent: Any) -> None:
            if sent.port == aggregation.UDP_PORT:
                for payload in sent.payloads:
                    oracle._sent(bytes(payload))
            send(link, sent)

        def watched_receive(link: HostLink, port: int, ip: str, source: int, got: Any) -> None:
            if source == aggregation.UDP_PORT:
                for payload in got:
                    oracle._got(bytes(payload))
            receive(link, port, ip, source, got)

        fast = Host.fast_results
        HostLink.send, HostLink.receive = watched_send, watched_receive  # type: ignore[method-assign]
        Host.fast_results = (  # type: ignore[method-assign]
            lambda host, port: None if oracle._watch else fast(host, port)
        )

    def job(self, number: int, table: Any) -> None:
        """Take the lookup table of a job."""
        self._tables[number] = np.array(table, np.int64)

    def _sent(self, payload: bytes) -> None:
        header, body = aggregation.parse(payload)
        key = header.job, header.slot, header.round, header.worker
        if header.type is Type.INDICES:
            assert self._codes.setdefault(key, body) == body, f"{key}: other codes sent again"
        elif header.type is Type.NORM:
            assert self._norms.setdefault(key, header.norm) == header.norm, f"{key}: other norm"

    def _got(self, payload: bytes) -> None:
        header, body = aggregation.parse(payload)
        if header.type not in (Type.SUMS, Type.NORM_RESULT):
            return
        place = header.type, header.job, header.slot, header.round
        known = self._known.setdefault(place, payload)
        assert known == payload, f"{place}: two different results"
        if known is not payload:
            return
        who = [w for w in range(64) if header.bitmap >> w & 1]
        assert len(who) == header.count, f"{place}: {header.count} workers, bitmap {who}"
        keys = [(*place[1:], w) for w in who]
        self.checked[header.type.name] += 1
        if header.type is Type.NORM_RESULT:
            assert header.norm == max(self._norms[key] for key in keys), f"{place}: wrong norm"
            return
        if not self._watch and not self._codes.keys() >= set(keys):
            return  # a kernel has sent some of the codes
        table = self._tables[header.job]
        bits = header.code_bits
        total = sum(table[aggregation.unpack_indices(self._codes[key], bits)] for key in keys)
        found = aggregation.unpack_sums(body, header.sum_bits)
        assert np.array_equal(found, total), f"{place}: wrong sum of workers {who}"


def _bearable(models: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the models without those beyond which a link loses more than half of its packets: a
    stream rightly gives up a message that is lost 40 times."""
    kept, arriving = [], 1.0
    for model in models:
        lost = {
            "bernoulli": lambda m: m["rate"],
            "corruption": lambda m: m["rate"],
            "nth": lambda m: 1 / m["n"],
            "burst": lambda m: m["p"] / (m["p"] + m["r"]),
        }.get(model["model"], lambda m: 0.0)(model)
        if arriving * (1 - lost) >= 0.5:
            arriving *= 1 - lost
            kept.append(model)
    return kept


class Draw:
    """Draws an experiment."""

    def __init__(self, seed: int, net: str = "sim") -> None:
        self._r = random.Random(seed)
        self.seed = seed
        self._net = net
        self._most_hosts = MOST_HOSTS[net]

    def experiment(self) -> dict[str, Any]:
        """Return the sections of an experiment file."""
        r = self._r
        possible = [size for size in SIZES if size <= self._most_hosts]
        sizes = [r.choice(possible) for _ in range(r.choice((1, 1, 1, 2, 3)))]
        bits = 16 if max(sizes) > 12 or r.random() < 0.3 else 8
        hosts = max(sizes) if r.random() < 0.5 else min(sum(sizes), self._most_hosts)
        jobs, first = [], 1
        for size in sizes:
            if first + size - 1 > hosts:
                first = 1
            jobs.append(self._job(size, first, bits))
            first += size
        return {
            "name": "fuzz",
            "seed": self.seed,
            "patience_s": 60.0,
            "topology": self._topology(hosts),
            "job": jobs,
            "impairment": [
                *_bearable([self._impairment(sizes) for _ in range(r.randrange(6))]),
                *(absence for n, job in enumerate(jobs) for absence in self._absences(n, job)),
            ],
            "traffic": [self._traffic(hosts) for _ in range(r.choice((0, 0, 1, 2)))],
            "output": {"baseline": False},
        }

    def _topology(self, hosts: int) -> dict[str, Any]:
        r = self._r
        topology: dict[str, Any] = {"workers": hosts}
        if r.random() < 0.7:
            topology["rate"] = r.choice(("50Mbit", "1Gbit", "10Gbit"))
        if r.random() < 0.5 and self._net == "sim":  # Mininet needs the kernel's netem for it
            topology["delay"] = r.choice(("1us", "50us", "2ms"))
        if r.random() < 0.3:
            topology["queue"] = r.choice((4, 16, 100))
        return topology

    def _job(self, size: int, first: int, bits: int) -> dict[str, Any]:
        r = self._r
        scheme = r.choices(("switch", "ps", "ring"), (8, 1, 1))[0]
        rounds = r.randint(2, 8)
        most = min(6 * PARTITION, int(MOST_COST / size / rounds / 8))
        values = r.randint(1, max(most, 2))
        most_g = (2**bits - 1) // size
        job: dict[str, Any] = {
            "aggregation": scheme,
            "workers": size,
            "first_host": first,
            "sum_bits": bits,
            "push": {"name": "thc", "bits": 4, "granularity": min(most_g, 30)},
            "model": {"name": "synthetic", "values": values},
            "data": {"name": "blank", "rows": size * rounds},
            "batch": 1,
            "epochs": r.choice((1, 1, 2)),
            "slots": r.choice((2, 4, 8, 16, 64)),
            "timeout_ms": r.choice((2.0, 20.0, 200.0)),
            "retries": r.choice((0, 2, 10)),
            "compute_ms": self._compute(size),
            "sync": r.random() < 0.4,
            "sync_threshold": r.choice((0, 0, 3)),
            "seed": r.randrange(1000),
        }
        if scheme == "switch":
            job["reliability"] = r.choice(("lossy", "lossy", "retransmit"))
            job["error_feedback"] = r.random() < 0.8
            if r.random() < 0.6:
                job["quorum"] = r.randint(max(1, size // 2), size)
            if r.random() < 0.2 and most_g >= 15:
                job["push"] = r.choice(({"name": "uniform_thc"}, {"name": "terngrad"}))
            elif most_g < 15:
                job["push"] = r.choice(({"name": "terngrad"}, {"name": "signsgd"}))
        else:
            job |= {"reliability": "retransmit", "push": {"name": "float32"}}
            job |= self._groups(scheme, size)
        return job

    def _groups(self, scheme: str, size: int) -> dict[str, Any]:
        """Draw groups of a job that hosts sum, with a codec and quorums where servers do."""
        r = self._r
        if r.random() < 0.5:
            return {}
        count = r.randint(2, size)
        groups: Any = count
        if r.random() < 0.5:
            workers = r.sample(range(size), size)
            groups = [workers[n::count] for n in range(count)]
        deep = count > 2 and r.random() < 0.4
        if deep:
            groups = [groups, 2] if groups == count else [groups[:2], groups[2:]]
        found: dict[str, Any] = {"groups": groups}
        if scheme == "ps" and r.random() < 0.3:
            return found | {"rings": True} | r.choice(({}, {"push": "onebit", "between": "topk"}))
        if scheme == "ring":
            return found | r.choice(({}, {"push": "threelc"}, {"push": "bfloat16"}))
        found |= r.choice(
            ({}, {"push": "threelc", "pull": "threelc"}, {"push": "onebit", "between": "topk"})
        )
        if r.random() < 0.5:
            most = [size // count, count // 2, 2] if deep else [size // count, count]
            if deep and groups[0] != count:
                most[1] = min(2, count - 2)
            found["quorums"] = [r.randint(1, few) for few in most]
        return found

    def _compute(self, size: int) -> Any:
        r = self._r
        return r.choice(
            (
                0.0,
                1.0,
                [r.choice((0.1, 1.0, 5.0)) for _ in range(size)],
                {"distribution": "exponential", "mean": 2.0},
                {"distribution": "pareto", "mean": 2.0, "alpha": 1.5},
            )
        )

    def _impairment(self, sizes: list[int]) -> dict[str, Any]:
        r = self._r
        rate = r.choice((0.001, 0.01, 0.05, 0.2))
        model: dict[str, Any] = r.choice(
            (
                {"model": "bernoulli", "rate": rate},
                {"model": "nth", "n": r.randint(2, 50)},
                {"model": "burst", "p": rate / 4, "r": 0.3},
                {"model": "corruption", "rate": rate},
                {"model": "duplication", "rate": rate, "delay_ms": r.choice((0.0, 1.0, 30.0))},
                {"model": "reordering", "rate": rate, "delay_ms": r.choice((0.05, 3.0, 30.0))},
                {"model": "jitter", "jitter_ms": r.choice((0.05, 2.0))},
                {"model": "straggler"},
            )
        )
        least = min(sizes)
        if model["model"] == "straggler":
            if r.random() < 0.5:
                model["count"] = r.randint(1, least)
            else:
                model["workers"] = r.sample(range(least), r.randint(1, least))
            model |= r.choice(({"leave_out": True}, {"delay_ms": r.choice((0.5, 10.0, 100.0))}))
            model |= r.choice(({}, {"probability": 0.5}, {"every": 2}, {"rounds": [1, 2]}))
            return model
        model["direction"] = r.choice(("both", "both", "up", "down"))
        if r.random() < 0.3:
            model["link"] = f"h{r.randint(1, least)}"
        if r.random() < 0.3:
            model["flow"] = r.choice(("agg", "stream", ["norm", "sums"], ["indices", "ack"]))
        return model

    def _absences(self, number: int, job: dict[str, Any]) -> list[dict[str, Any]]:
        """Draw workers that crash or join late; the job may not be able to go on without them."""
        r, size = self._r, job["workers"]
        rounds = job["epochs"] * job["data"]["rows"] // size
        if job["aggregation"] != "switch" or rounds < 4 or r.random() < 0.5:
            return []
        found: list[dict[str, Any]] = []
        spare = size - job.get("quorum", size) or 1
        for worker in r.sample(range(size), min(size - 1, r.randint(1, spare))):
            back = r.randint(2, rounds - 1)
            common = {"job": number, "worker": worker}
            if r.random() < 0.3:
                found.append(common | {"model": "late join", "round": back})
            else:
                first = r.randint(1, back - 1)
                found.append(common | {"model": "crash", "round": first, "back": back})
        return found

    def _traffic(self, hosts: int) -> dict[str, Any]:
        r = self._r
        source, destination = r.sample(range(1, hosts + 1), 2)
        return {
            "source": f"h{source}",
            "destination": f"h{destination}",
            "rate": r.choice(("1Mbit", "20Mbit")),
            "start_ms": r.choice((0.0, 5.0)),
            "stop_ms": r.choice((10.0, 40.0)),
            "arrivals": r.choice(("constant", "poisson")),
        }


def check(seed: int, oracle: Oracle, found: Counter[str], net: str) -> None:
    """Run the experiment of a seed; raise AssertionError or what the run raises."""
    sections = Draw(seed, net).experiment()
    try:
        experiment = load(Experiment.model_validate(sections))
    except ExperimentError as error:
        found[f"refused: {str(error).splitlines()[0][:90]}"] += 1
        return
    except ValueError:
        print(dumps(sections))
        raise
    oracle.reset(watch=seed % 4 != 0)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        try:
            _run(experiment, out, oracle, net)
        except BaseException:
            print(f"seed {seed}:\n{dumps(experiment.values())}", flush=True)
            raise
    print(f"{seed} ended", flush=True)
    found["runs"] += 1
    found["workers"] += sum(job.size for job in experiment.job)


def _run(experiment: Experiment, out: Path, oracle: Oracle, net: str) -> None:
    deployment = run_experiment.load_deployment(experiment)
    for deployed in deployment.jobs:
        if deployed.job.aggregation == "switch":
            oracle.job(deployed.config.number, summed_codec(deployed.config).table)
    summary = run_experiment.run(experiment, out, net=net).values
    exact = defaultdict(set)
    for number, (job, ended) in enumerate(zip(experiment.job, summary["jobs"], strict=True)):
        assert len(ended["weights"]) == job.size, f"job {number}: not all workers ended"
        if job.reliability == "retransmit" and job.quorum == job.workers:
            exact[number] = set(ended["weights"].values())
            assert len(exact[number]) == 1, f"job {number}: weights differ: {exact[number]}"
    result = replay(out)
    assert result.equal, result.text()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", choices=MOST_HOSTS, default="sim", help="the network (sim)")
    parser.add_argument("--seconds", type=float, default=60, help="start experiments so long (60)")
    parser.add_argument("--seed", type=int, help="of the only experiment (default: many, random)")
    parser.add_argument("--from", type=int, dest="first", help="the first of many seeds")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    options = parser.parse_args()
    oracle, found = Oracle(), Counter[str]()
    if options.net == "sim":
        GridCodec._max_partition = PARTITION
        oracle.install()
    first = secrets.randbelow(2**31) if options.first is None else options.first
    first = first if options.seed is None else options.seed
    print(f"seeds from {first}", flush=True)
    end, seed, failed = time.monotonic() + options.seconds, first, 0
    while True:
        try:
            check(seed, oracle, found, options.net)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"FAILED: --seed {seed}", flush=True)
            if not options.keep_going:
                break
        seed += 1
        if options.seed is not None or time.monotonic() >= end:
            break
    for what, count in sorted((found + oracle.checked).items()):
        print(f"{count:8,} {what}")
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
