"""The reducer for user programs, over UDP on loopback."""

import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Barrier

import numpy as np
import pytest
from host_configs import complete
from loopback_job import loopback_job, running

from gradplane.hosts.config import ConfigError, HostConfig
from gradplane.hosts.reducer import Reducer, ReducerError, ReducerTimeout

SCHEMES = ["switch", "ps", "ring"]
ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def together(job, program, timeout=60.0, **changes):
    """Run program(reducer) for each worker of a job, in threads; return the results by rank."""

    def run(config):
        with Reducer(replace(config, **changes), timeout) as reducer:
            return program(reducer)

    with running(job) as hosts, ThreadPoolExecutor(job.workers) as pool:
        return list(pool.map(run, hosts))


def vectors(n, size):
    rng = np.random.default_rng(size)
    return [rng.normal(size=size).astype(np.float32) for _ in range(n)]


def error(found, xs):
    """Return the squared error of a mean, relative to the square of the mean."""
    mean = np.mean(xs, axis=0, dtype=np.float64)
    return float(((found - mean) ** 2).sum() / (mean**2).sum())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_means_of_many_reduces(scheme):
    """All workers get equal bits, near the mean; float32 is exact but for its rounding."""
    xs = vectors(3, 6000)

    def program(reducer):
        x = xs[reducer.rank].reshape(20, 300)
        return [reducer.reduce(x) for _ in range(5)]

    results = together(loopback_job(scheme, 3), program)
    for means in zip(*results, strict=True):
        assert all(np.array_equal(mean, means[0]) for mean in means)
        assert (means[0].shape, means[0].dtype) == ((20, 300), np.float32)
        assert error(means[0].ravel(), xs) < (0.2 if scheme == "switch" else 1e-12)


@pytest.mark.parametrize(
    ("scheme", "order", "sums"),
    [("ps", "rotated", {1.0}), ("ring", "workers", {1.0}), ("ring", "rotated", {0.0, 1.0})],
)
def test_the_order_of_a_sum(scheme, order, sums):
    """A server and a ring add in the workers' order, whatever the place and the size; a rotated
    ring's order begins at another worker for each block. Of these numbers the exact sum is 2."""

    def program(reducer):
        x = np.float32([1e8, 1, -1e8, 1])[reducer.rank]
        return [set(reducer.start(np.full(n, x)).result().sum.tolist()) for n in (4, 501)]

    given = {"codec": ("float32", {}), "error_feedback": False, "sum_order": order}
    assert together(loopback_job(scheme, 4, **given), program) == [[sums, sums]] * 4


@pytest.mark.parametrize(
    ("scheme", "order", "less"),
    [
        ("ring", "rotated", 0.6),
        ("ring", "workers", 0.8),
        ("ps", "rotated", 0.5),
        ("switch", "rotated", 0.4),
    ],
)
def test_each_worker_may_need_only_its_part(scheme, order, less):
    """A ring then takes half of its steps, or passes sums on as far as they are needed, and a
    server and a switch answer with a part."""

    def reduced(scattered):
        """Return each rank's first mean, and the bytes that it got for all means."""

        def program(reducer):
            x = np.arange(3000, dtype=np.float32).reshape(3, 1000) % 7 * (reducer.rank + 1)
            started = (reducer.start(x, None, None, scattered) for _ in range(5))
            means = [each.result().mean for each in started]
            return means[0], reducer.take_traffic().payload_down

        return together(loopback_job(scheme, 3, error_feedback=False, sum_order=order), program)

    whole, parts = reduced(scattered=False), reduced(scattered=True)
    for rank, ((mean, _), (part, _)) in enumerate(zip(whole, parts, strict=True)):
        assert part[rank].any()
        if scheme != "switch":  # each reduce of THC is rounded by itself
            assert (part[rank] == mean[rank]).all()
        part[rank] = 0
        assert order == "workers" or not part.any()
    assert sum(got for _, got in parts) < less * sum(got for _, got in whole)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_several_at_once(scheme):
    """Reduces in flight, of different sizes, do not touch each other."""
    sizes = [5000, 1, 300, 2048]
    given = [vectors(2, size) for size in sizes]

    def program(reducer):
        found = []
        for _ in range(3):
            futures = [reducer.start(xs[reducer.rank], tensor) for tensor, xs in enumerate(given)]
            found.append([future.result() for future in futures])
        return found

    for rounds in together(loopback_job(scheme, 2), program):
        for results in rounds:
            for result, xs in zip(results, given, strict=True):
                assert (result.workers, result.missed) == (2, 0)
                assert np.array_equal(result.sum, result.mean * 2)
                assert error(result.mean, xs) < (0.5 if scheme == "switch" else 1e-12)


def test_error_feedback_is_the_tensors():
    """The same vector again and again: with feedback the mean of the results comes near it."""
    xs = vectors(2, 4000)

    def program(reducer):
        return [reducer.reduce(xs[reducer.rank]) for _ in range(16)]

    once, *_ = together(loopback_job("switch", 2), program)
    assert error(np.mean(once, axis=0), xs) < error(once[0], xs) / 10


def test_losses_of_the_experiment_change_nothing():
    """The impairments of the worker's host are in force, and retransmission repairs them."""
    xs = vectors(2, 40_000)
    impairments = (complete({"model": "bernoulli", "rate": 0.1, "seed": 7}),)

    def program(reducer):
        mean = reducer.reduce(xs[reducer.rank])
        return mean, reducer.take_traffic().packets_up

    job = loopback_job("switch", 2, timeout_ns=50_000_000)
    clean, lossy = together(job, program), together(job, program, impairments=impairments)
    assert all(np.array_equal(mean, clean[0][0]) for mean, _ in clean + lossy)
    assert all(packets > clean[0][1] for _, packets in lossy)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_gathers_and_broadcasts_are_exact_under_losses(scheme):
    """Beside a reduce, several at once, and counted."""
    impairments = (complete({"model": "bernoulli", "rate": 0.05, "seed": 7}),)
    parts = [Random(worker).randbytes(30_000) for worker in range(3)]
    all_done = Barrier(3)

    def program(reducer):
        part, started = parts[reducer.rank], reducer.start(np.ones(3000, np.float32))
        flying = [reducer.gather(part, source) for source in (None, 2, None, 0)]
        found = [each.result() for each in flying]
        assert started.result().missed == 0
        all_done.wait(60)  # who has its results may still have to send the others theirs
        return found, reducer.take_traffic().payload_up

    for found, sent in together(loopback_job(scheme, 3), program, impairments=impairments):
        assert found == [parts, parts[2:], parts, parts[:1]]
        assert sent > 4 * 30_000  # two parts, each to two others; and the reduce


def test_gathers_that_cannot_be():
    def program(reducer):
        for source in (-1, 2):
            with pytest.raises(ReducerError, match=f"^source = {source}: it must be from 0 to 1$"):
                reducer.gather(b"part", source)
        if reducer.rank:
            time.sleep(2)
            return "", ""
        waiting = reducer.start(np.ones(3, np.float32))
        late = reducer.gather(b"part", timeout=0.5)
        with pytest.raises(ReducerTimeout) as raised:
            late.result()
        return str(raised.value), str(waiting.exception())

    (first, other), _ = together(loopback_job("ring", 2), program)
    assert first.endswith("worker 0, gather 0: not done after 0.5 s; it waits for the parts of"
                          " worker 1: do all workers make the same gathers?")  # fmt: skip
    assert other == first


def integers(workers, kind):
    """Return vectors of all magnitudes, whose sums overflow here and there."""
    info, rng = np.iinfo(kind), np.random.default_rng(3)
    xs = rng.integers(info.min, info.max, (workers, 3000), dtype=kind, endpoint=True)
    xs[:, :5], xs[:, 5], xs[:, 6] = np.arange(-2, 3), info.min, info.max
    return xs


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_integers_are_summed_exactly(scheme, kind):
    """With losses, beside a reduce of float32; sums wrap as those of NumPy do."""
    xs, ys = integers(3, kind), vectors(3, 500)
    impairments = (complete({"model": "bernoulli", "rate": 0.05, "seed": 7}),)
    codec = {} if scheme == "switch" else {"codec": ("float32", {})}

    def program(reducer):
        plain = reducer.start(ys[reducer.rank])
        found = [reducer.start(xs[reducer.rank].reshape(30, 100)) for _ in range(2)]
        scattered = reducer.start(xs[reducer.rank].reshape(30, 100), None, scattered=True)
        sums = [each.result().sum for each in found]
        own = np.split(scattered.result().sum, 3)[reducer.rank]
        return sums, np.array_equal(own, np.split(total, 3)[reducer.rank]), plain.result().mean

    job = loopback_job(scheme, 3, timeout_ns=50_000_000, **codec)
    total = xs.sum(axis=0, dtype=kind).reshape(30, 100)
    for sums, own, mean in together(job, program, impairments=impairments):
        assert own and all(np.array_equal(found, total) and found.dtype == kind for found in sums)
        assert error(mean, ys) < 0.2


@pytest.mark.parametrize(
    ("scheme", "changes", "text"),
    [
        ("switch", {"reliability": "lossy"}, "integers are summed where nothing is left out: with"),
        ("ps", {"quorum": 1}, "integers are summed where nothing is left out: with"),
        (
            "ring",
            {"codec": ("inceptionn", {})},
            'integers are summed exactly with push = "float32", and this job has "inceptionn"',
        ),
    ],
)
def test_a_job_that_does_not_sum_integers_says_so(scheme, changes, text):
    job = loopback_job(scheme, 2, **changes)
    with running(job) as hosts, Reducer(hosts[0]) as reducer:
        assert reducer.integers_obstacle.startswith(text)
        with pytest.raises(ReducerError, match="^" + re.escape(text)):
            reducer.reduce(np.arange(3))


def test_records_go_to_the_log(tmp_path):
    job = loopback_job("switch", 1)
    log = tmp_path / "h1.jsonl"
    together(job, lambda reducer: reducer.reduce(np.ones(9, np.float32)), log=str(log))
    kinds = [json.loads(line)["kind"] for line in log.read_text().splitlines()]
    assert kinds == ["joined", "norm", "arrivals", "reduce"]


@pytest.mark.parametrize(
    ("scheme", "awaited"),
    [
        ("switch", r"the norm of slot 0, use 1, of 127.*:18256"),
        ("ps", r"the mean of 127.*:21001"),
        ("ring", r"2 blocks of 127.*:21001"),
    ],
)
def test_what_a_reduce_waits_for_is_named(scheme, awaited):
    """A worker alone: its reduce ends at the timeout, and so does every later one at once."""
    job = loopback_job(scheme, 2)
    with running(job) as hosts, Reducer(hosts[0], timeout=0.3) as reducer:
        x = np.ones(9, np.float32)
        text = rf"^host h1, worker 0, reduce 0: not done after 0.3 s; it waits for {awaited}: is"
        with pytest.raises(ReducerTimeout, match=text):
            reducer.reduce(x)
        with pytest.raises(ReducerError, match="an earlier reduce failed .* open another"):
            reducer.reduce(x)


def test_wrong_arguments_do_no_harm():
    def program(reducer):
        x = np.ones(9, np.float32)
        for wrong, tensor, text in (
            (np.ones(9), 0, "expected a float32 array, got float64: use x.astype('float32')"),
            ([1.0], 0, "expected a float32 array, got list: use x.astype('float32')"),
            (x, 65536, "tensor = 65536: it must be from 0 to 32,767, or None"),
            (x * np.nan, 0, "worker 0, ticket 1: nan at index 0: did the training diverge?"),
            (x[:5], 0, "worker 0, ticket 1, tensor 0: 5 values, earlier 9: use another tensor"),
        ):
            if not len(seen):
                seen.append(reducer.reduce(x))
            with pytest.raises(ReducerError, match="^" + re.escape(text)):
                reducer.reduce(wrong, tensor)
        return reducer.reduce(x)

    seen = []
    (last,) = together(loopback_job("switch", 1), program)
    assert error(last, [np.ones(9)]) < 0.1


def test_parts_are_equal_and_of_no_tensor():
    with running(loopback_job("ps", 2)) as hosts, Reducer(hosts[0]) as reducer:
        for n, tensor in ((3, None), (4, 0)):
            with pytest.raises(
                ReducerError, match=f"^scattered: {n} values of tensor {tensor}: ten"
            ):
                reducer.start(np.ones(n, np.float32), tensor, None, True)


def test_a_closed_reducer_says_so():
    job = loopback_job("ring", 2)
    with running(job) as hosts:
        with Reducer(hosts[0]) as reducer:
            future = reducer.start(np.ones(9, np.float32))
        with pytest.raises(ReducerError, match="^the reducer was closed$"):
            future.result()
        with pytest.raises(ReducerError, match="^the reducer is closed: open another$"):
            reducer.reduce(np.ones(9, np.float32))


def test_a_host_that_cannot_reduce():
    with running(loopback_job("ps", 1)) as hosts:
        planned = replace(hosts[0], role="gradplane.hosts.drivers.roles:PlannedWorkerRole")
        with pytest.raises(ConfigError, match="^host h1: aggregation = .* is for the job's own"):
            Reducer(planned)
        adaptive = ("adt", {"policy": "awp"})
        weights = replace(hosts[0], job=hosts[0].job.changed(pull_codec=adaptive))
        with pytest.raises(ConfigError, match="^host h1: its server makes the steps of the job"):
            Reducer(weights)
        server = HostConfig.from_json(replace(hosts[0], worker=None).to_json())
        with pytest.raises(ConfigError, match="^host h1 has no worker of job 1$"):
            Reducer(server)


def test_the_documents_program(tmp_path):
    """docs/pytorch.md's, a process for each worker, as another prompt would start it."""
    text = (ROOT / "docs" / "pytorch.md").read_text()
    program = next(block for block in BLOCK.findall(text) if "Reducer" in block)
    job = loopback_job("ps", 2)
    with running(job) as hosts:
        started = []
        for config in hosts:
            (tmp_path / f"{config.name}.json").write_text(config.to_json())
            place = {"GRADPLANE_NETWORK": str(tmp_path), "GRADPLANE_HOST": config.name}
            started.append(
                subprocess.Popen(
                    [sys.executable, "-c", program],
                    env=os.environ | place | {"PYTHONPATH": str(ROOT / "src")},
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        assert [each.communicate()[0] for each in started] == ["1.5 -3.0 1.5\n"] * 2


STATEFUL = {
    "thc": ("thc", {}),
    "3lc": ("threelc", {"s": 1.75}),
    "dgc": ("dgc", {"fraction": 0.1}),
    "powersgd": ("powersgd", {"rank": 2}),
    "topk": ("topk", {"fraction": 0.1}),
}


@pytest.mark.parametrize(
    ("scheme", "codec"),
    [
        ("switch", "thc"),
        *(("ps", name) for name in STATEFUL if name != "thc"),
        ("ring", "powersgd"),
        ("groups", "3lc"),
    ],
)
def test_saved_state_goes_on_bit_for_bit(scheme, codec):
    """Six reduces equal three, a new network and workers with the state, and three more."""
    groups = ((0,), (1,)) if scheme == "groups" else ()
    job = loopback_job(
        scheme.replace("groups", "ring"),
        2,
        codec=STATEFUL[codec],
        error_feedback=codec in ("thc", "topk"),
        groups=groups,
    )
    steps = np.random.default_rng(1).normal(size=(6, 2, 3000)).astype(np.float32)
    states = {}

    def program(first, last):
        def run(reducer):
            if first:
                reducer.load_state_dict(states)
            means = [reducer.reduce(steps[step, reducer.rank]) for step in range(first, last)]
            return means, reducer.state_dict()

        return run

    whole = [means for means, _ in together(job, program(0, 6))]
    before = together(job, program(0, 3))
    for _, state in before:
        states |= state
    after = together(job, program(3, 6))
    for rank in range(2):
        again = before[rank][0] + after[rank][0]
        assert all(map(np.array_equal, whole[rank], again))


def test_a_state_of_others_is_refused():
    job = loopback_job("switch", 2)
    x = np.ones(3000, np.float32)

    def program(reducer):
        reducer.reduce(x)
        found = reducer.state_dict()
        reducer.reduce(x)
        with pytest.raises(ReducerError, match="after 1 reduces, and 2 have begun: load it before"):
            reducer.load_state_dict(found)
        return found

    first, second = together(job, program)

    def other(reducer):
        with pytest.raises(ReducerError, match='no entry "rank . of 2", it has rank 5 of 9: every'):
            reducer.load_state_dict({"rank 5 of 9": b""})
        damaged = {key: value[:-9] for key, value in (first | second).items()}
        with pytest.raises(ReducerError, match="the state cannot be read"):
            reducer.load_state_dict(damaged)

    together(job, other)

    def of_another_job(reducer):
        with pytest.raises(ReducerError, match="the state belongs to another job:\n"):
            reducer.load_state_dict(first | second)

    together(loopback_job("switch", 2, seed=7), of_another_job)


def test_the_answers_state_stays_at_the_server():
    job = loopback_job("ps", 2, pull_codec=("topk", {"fraction": 0.1}), pull_feedback=True)

    def program(reducer):
        with pytest.raises(ReducerError, match="the server keeps a state of topk"):
            reducer.state_dict()

    together(job, program)


def test_what_groups_servers_keep_of_their_sums_stays_there():
    servers = (("127.0.0.1", 9), ("127.0.0.1", 9))
    keys = {"codec": ("threelc", {}), "groups": ((0,), (1,)), "servers": servers}

    def program(reducer):
        with pytest.raises(ReducerError, match='can save: use between = "float32"'):
            reducer.state_dict()

    together(loopback_job("ps", 2, **keys), program)
    together(loopback_job("ps", 2, **keys, between=("float32", {})), lambda r: r.state_dict())
