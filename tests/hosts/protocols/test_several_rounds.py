"""Codecs whose workers take several means a reduce, through a server and a ring."""

from random import Random

import numpy as np
import pytest
from memory_network import make_job

from gradplane import codecs
from gradplane.hosts.config import ConfigError, UnsuitableCodecError
from gradplane.hosts.protocols.actions import Deliver, Record, SendMessage
from gradplane.hosts.protocols.job_codec import push_codec, reduce_seed
from gradplane.hosts.protocols.parameter_server import PsServer
from gradplane.hosts.protocols.several_rounds import ring_worker, served_worker

SERVER = ("10.0.0.9", 21003)
MATRIX, VECTOR = ("powersgd", {"rank": 2, "columns": 15}), ("float32", {})
N, WORKERS = 300, 3


def by_tensor(*parts):
    return "per_tensor", {"parts": [[n, {"name": name} | args] for n, (name, args) in parts]}


WHOLE = MATRIX
SPLIT = by_tensor((270, MATRIX), (30, VECTOR))
MIXED = by_tensor((270, MATRIX), (30, ("onebit", {})))


def run(aggregation, codec, xs, rounds=3, **changes):
    """Return what workers deliver, by worker and ticket, and their records: two reduces at once,
    messages in random order."""
    given = {"aggregation": aggregation, "server_address": SERVER, "workers": WORKERS}
    job = make_job(**given | {"codec": codec, "reliability": "retransmit"} | changes)
    served = aggregation == "ps"
    workers = [(served_worker if served else ring_worker)(job, w) for w in range(WORKERS)]
    addresses = [job.addresses.stream(w) for w in range(WORKERS)]
    machines = dict(zip(addresses, workers, strict=True)) | {SERVER: served and PsServer(job)}
    random, queues, found, records = Random(1), {}, {}, []

    def perform(source, actions):
        for action in actions:
            if isinstance(action, SendMessage):
                queues.setdefault((source, action.peer), []).append(action.data)
            elif isinstance(action, Deliver):
                found[addresses.index(source), action.ticket] = action.result
            elif isinstance(action, Record):
                records.append((action.kind, action.fields))

    for first in range(0, 2 * rounds, 2):
        for worker, address in enumerate(addresses):
            for tensor in (0, 1):
                x = xs[first + tensor, worker]
                perform(address, workers[worker].reduce(first + tensor, x, 0, tensor))
        while queues:
            source, peer = random.choice(sorted(queues))
            data = queues[source, peer].pop(0)
            if not queues[source, peer]:
                del queues[source, peer]
            perform(peer, machines[peer].receive(source, data, 0))
    return job, found, records


def expected(job, xs):
    """Return the means by the codec alone, its carriers without loss."""
    means, states = [], {}
    for ticket, vectors in enumerate(xs):
        codec, tensor = push_codec(job), ticket % 2
        seed = reduce_seed(job, ticket)
        own = [states.get((tensor, w), codec.start(N)) for w in range(WORKERS)]
        steps = [codec.reduce(x, seed, own[w], w) for w, x in enumerate(vectors)]
        sent = [next(step) for step in steps]
        for carrier in codec.carriers:
            mean, sent = carrier.merge(sent), []
            for w, step in enumerate(steps):
                try:
                    sent.append(step.send(mean))
                except StopIteration as end:
                    result, states[tensor, w] = end.value
        means.append(result)
    return means


@pytest.mark.parametrize("codec", [WHOLE, SPLIT], ids=["whole", "by tensor"])
@pytest.mark.parametrize("aggregation", ["ps", "ring"])
def test_a_reduce_is_the_codecs_steps(aggregation, codec):
    xs = np.random.default_rng(3).standard_normal((6, WORKERS, N)).astype(np.float32)
    job, found, records = run(aggregation, codec, xs)
    for ticket, mean in enumerate(expected(job, xs)):
        for worker in range(WORKERS):
            np.testing.assert_allclose(found[worker, ticket].mean, mean, rtol=0, atol=1e-5)
    kinds = [kind for kind, fields in records if fields["ticket"] == 4 and fields["worker"] == 1]
    assert kinds == ["norm", "arrival"]
    assert len({found[w, 5].sums for w in range(WORKERS)}) == 1 and len(found) == 18


@pytest.mark.parametrize("aggregation", ["ps", "ring"])
def test_dynamiqs_rounds_change_their_lengths(aggregation):
    """From reduce to reduce as many values have 2, 4 and 8 bits as their squares ask for."""
    rng = np.random.default_rng(6)
    sizes = np.repeat(10.0 ** rng.integers(-3, 1, (6, 1, 4)), 75, axis=2)
    xs = np.repeat(sizes * rng.standard_normal((6, WORKERS, N)), 5, axis=2).astype(np.float32)
    codec = ("dynamiq", {"bits": 6})
    job, found, records = run(aggregation, codec, xs, error_feedback=False)
    again = run(aggregation, codec, xs, error_feedback=False)[1]
    for ticket, x in enumerate(xs):
        mean = found[0, ticket].mean
        assert len({found[w, ticket].sums for w in range(WORKERS)}) == 1
        assert np.array_equal(mean, again[2, ticket].mean)
        error, exact = mean - x.mean(axis=0), x.mean(axis=0)
        assert np.dot(error, error) < 0.01 * np.dot(exact, exact)
    kinds = [kind for kind, fields in records if fields["ticket"] == 4 and fields["worker"] == 1]
    assert kinds == ["norm", "norm", "norm", "arrival"]
    assert push_codec(job).workers == WORKERS


def test_dynamiq_refuses_error_feedback():
    job = make_job(aggregation="ring", codec=("dynamiq", {}), error_feedback=True)
    with pytest.raises(ConfigError, match="dynamiq: it is unbiased, .*: use error_feedback = fal"):
        ring_worker(job, 0)


def test_tensors_of_other_rounds_are_refused():
    mixed = by_tensor((270, MATRIX), (30, ("dynamiq", {})))
    job = make_job(aggregation="ps", codec=mixed, error_feedback=False)
    with pytest.raises(codecs.CodecError, match="^tensors by powersgd and dynamiq: their rounds"):
        served_worker(job, 0)


def test_the_other_tensors_have_their_codecs_at_a_server():
    xs = np.random.default_rng(4).standard_normal((2, WORKERS, N)).astype(np.float32)
    _, found, _ = run("ps", MIXED, xs, rounds=1, error_feedback=False)
    onebit = codecs.get("onebit")
    decoded = [onebit.decode(onebit.encode(x[270:])[0], 30) for x in xs[0]]
    np.testing.assert_allclose(found[0, 0].mean[270:], onebit.merge(decoded), atol=1e-6)


def test_local_steps_leave_rounds_out():
    xs = np.random.default_rng(5).standard_normal((4, WORKERS, N)).astype(np.float32)
    job, found, _ = run("ps", SPLIT, xs, rounds=2, local_steps=2)
    assert not found[0, 0].mean.any() and found[0, 2].mean.any()


def test_a_ring_refuses_a_lossy_codec_beside():
    job = make_job(aggregation="ring", codec=MIXED, error_feedback=False)
    with pytest.raises(UnsuitableCodecError, match="^codec by tensor: a ring's workers sum whole"):
        ring_worker(job, 0)
