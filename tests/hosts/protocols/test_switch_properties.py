"""Workers wired to the switch model by a network that loses, repeats, delays and reorders."""

from collections import defaultdict
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from memory_network import AGGREGATOR, HOP, TIMEOUT, MemoryNetwork, make_job

from gradplane import codecs
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import Deliver
from gradplane.hosts.protocols.job_codec import push_codec, reduce_seed
from gradplane.hosts.protocols.results import CUT, ReduceError, own_part
from gradplane.hosts.protocols.switch_worker import TIMER, SwitchWorker
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type
from gradplane.hosts.wire.payloads import Payloads


class Chaos:
    """A network's fates, and what the workers sent."""

    def __init__(self, seed, loss, repeats, jitter):
        self.random = Random(seed)
        self.loss, self.repeats, self.jitter = loss, repeats, jitter
        self.indices = {}

    def __call__(self, direction, worker, payload):
        header, body = aggregation.parse(payload)
        if header.type is Type.INDICES:
            key = (header.slot, header.round, worker)
            assert self.indices.setdefault(key, body) == body, "a retransmission differs"
        if self.random.random() < self.loss:
            return []
        copies = 2 if self.random.random() < self.repeats else 1
        return [HOP + int(HOP * self.jitter * self.random.random()) for _ in range(copies)]

    def lose_pass(self, worker, header, number):
        return self.random.random() < self.loss / 8


CHAOS = st.builds(
    Chaos,
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0, 0.01, 0.1, 0.3]),
    repeats=st.sampled_from([0, 0.3]),
    jitter=st.sampled_from([0, 3, 60]),
)
JOBS = st.fixed_dictionaries(
    {
        "workers": st.integers(2, 5),
        "slots": st.sampled_from([2, 4, 16]),
        "sum_bits": st.sampled_from([8, 16, 32]),
        "error_feedback": st.booleans(),
    }
)
SIZES = st.lists(st.sampled_from([1, 700, 2048, 8000]), min_size=1, max_size=3)


def gradients(sizes, workers, rounds):
    """Return vectors by tensor, round and worker."""
    make = np.random.default_rng(1).normal
    return [
        [[make(size=n).astype(np.float32) for _ in range(workers)] for _ in range(rounds)]
        for n in sizes
    ]


def run(job, chaos, sizes, rounds=3, granularity=0):
    """Run all rounds, workers independently; return the network and the vectors."""
    network = MemoryNetwork(job, chaos, lose_pass=chaos.lose_pass, granularity=granularity)
    vectors = gradients(sizes, job.workers, rounds)
    network.train([list(rows) for rows in zip(*vectors, strict=True)])
    network.run()
    return network, vectors


def expected(job, rows, tensor, tensors):
    """Yield one tensor's means by round from the codec's arithmetic, with all workers in."""
    codec, n = push_codec(job), rows[0][0].size
    states = [codec.start(n) for _ in range(job.workers)]
    table = np.array(codec.table)
    for round, xs in enumerate(rows):
        seed = reduce_seed(job, round * tensors + tensor)
        shared = codec.combine([codec.local(x, s) for x, s in zip(xs, states, strict=True)])
        sums = np.zeros(codec.lanes(n), np.int64)
        for w, x in enumerate(xs):
            codes, states[w] = codec.codes(x, shared, seed, states[w], w)
            sums += table[codes]
        yield codec.decode_sum(sums, n, job.workers, shared, seed)


def check_sums(network, exact_bitmaps=True):
    """Check that the replicas of a result are equal, and the sum of the codes of the workers in its
    bitmap."""
    table = np.array(push_codec(network.job).table)
    copies = defaultdict(set)
    for payload in network.sums_sent:
        header, _ = aggregation.parse(payload)
        copies[header.slot, header.round].add(payload)
    for (slot, round), payloads in copies.items():
        assert len(payloads) == 1, "copies of a result differ"
        header, body = aggregation.parse(payloads.pop())
        assert header.count == header.bitmap.bit_count() == network.job.quorum
        members = [w for w in range(network.job.workers) if header.bitmap >> w & 1]
        codes = [
            aggregation.unpack_indices(network.fate.indices[slot, round, w], 4) for w in members
        ]
        if exact_bitmaps:
            sums = table[np.array(codes)].sum(0)
            assert np.array_equal(aggregation.unpack_sums(body, header.sum_bits), sums)


@settings(max_examples=60)
@given(JOBS, CHAOS, SIZES)
def test_retransmission_with_a_full_quorum_is_exact(changes, chaos, sizes):
    job = make_job(**changes)
    network, vectors = run(job, chaos, sizes)
    check_sums(network)
    for tensor, rows in enumerate(vectors):
        for round, mean in enumerate(expected(job, rows, tensor, len(sizes))):
            ticket = round * len(sizes) + tensor
            for worker in range(job.workers):
                result = network.delivered[worker][ticket]
                assert np.array_equal(result.mean, mean)
                assert result.missed == 0
                assert result.gradient == digest(rows[round][worker])
            assert len({network.delivered[w][ticket].sums for w in range(job.workers)}) == 1


@settings(max_examples=12)
@given(JOBS, CHAOS, SIZES, st.sampled_from([0, 0.05, 0.5]))
def test_windows_that_adapt_change_no_sum(changes, chaos, sizes, marks):
    """Each worker's window is another one, as it sees other marks and losses."""
    static, _ = run(make_job(**changes), Chaos(0, 0, 0, 0), sizes)
    job = make_job(ecn=True, **changes)
    network = MemoryNetwork(job, chaos, lose_pass=chaos.lose_pass)
    network.marked = lambda: chaos.random.random() < marks
    network.train([list(rows) for rows in zip(*gradients(sizes, job.workers, 3), strict=True)])
    network.run()
    for worker, results in static.delivered.items():
        assert set(network.delivered[worker]) == set(results)
        for ticket, result in results.items():
            assert network.delivered[worker][ticket].sums == result.sums
    lines = [line for line in network.records if line.kind == "window"]
    assert all(1 <= line.fields["least"] <= job.transport.window for line in lines)
    assert len(lines) == job.workers * 3 * len(sizes)


@settings(max_examples=8)
@given(CHAOS, SIZES)
def test_windows_that_adapt_stop_no_lossy_job(chaos, sizes):
    job = make_job(ecn=True, reliability="lossy", quorum=3, slots=16)
    network = MemoryNetwork(job, chaos, lose_pass=chaos.lose_pass)
    network.marked = lambda: chaos.random.random() < 0.2
    network.train([list(rows) for rows in zip(*gradients(sizes, job.workers, 3), strict=True)])
    network.run()
    assert all(len(network.delivered[w]) == 3 * len(sizes) for w in range(job.workers))


@settings(max_examples=10, deadline=None)
@given(CHAOS, st.sampled_from(["lossy", "retransmit"]), st.integers(0, 3))
def test_rounds_go_on_after_2_to_the_32(chaos, reliability, before):
    """The workers begin so many reduces before the rounds of their slots roll over to 0."""
    job = make_job(reliability=reliability, quorum=4 if reliability == "retransmit" else 3)
    network = MemoryNetwork(job, chaos)
    for worker in network.workers:
        worker.skip(2**32 - 1 - before, 4000)  # a round of all four slots each
    vectors = gradients([4000], job.workers, 5)[0]
    network.train([[xs] for xs in vectors])
    network.run()
    rounds = {aggregation.parse(payload)[0].round for payload in network.sums_sent}
    if reliability == "retransmit":
        first = (2**32 - before) % 2**32
        assert rounds == {(first + k) % 2**32 for k in range(5)}
        for round, mean in enumerate(expected(job, vectors, 0, 1)):
            assert all(np.array_equal(network.delivered[w][round].mean, mean) for w in range(4))
    assert all(set(network.delivered[w]) == set(range(5)) for w in range(4))


def rebuilt(network, worker, ticket, n):
    """Return a worker's result from its log and the packets: what came in time, decoded."""
    job, codec = network.job, codecs.get("thc")
    width = aggregation.LANES[job.transport.sum_bits]
    sent = {}
    for payload in network.sums_sent:
        header, body = aggregation.parse(payload)
        sent[header.slot, header.round] = (
            header,
            aggregation.unpack_sums(body, job.transport.sum_bits),
        )
    lines = [r for r in network.of_kind("arrival") if r["worker"] == worker]
    lines = [r for r in lines if r["ticket"] == ticket and r["result"] != "late"]
    lines.sort(key=lambda r: (r["use"], r["slot"]))
    sums = np.zeros((len(lines), width), np.int64)
    counts, norm = np.zeros(len(lines), np.int64), None
    for k, line in enumerate(lines):
        if line["result"] == "in time":
            header, sums[k] = sent[line["slot"], line["use"]]
            counts[k], norm = line["count"], header.norm
    if norm is None:
        return counts, np.zeros(n, np.float32)
    lanes = codec.lanes(n)
    shared = np.array([aggregation.norm_value(norm)], np.float32)
    per_lane, seed = np.repeat(counts, width)[:lanes], reduce_seed(job, ticket)
    return counts, codec.decode_sum(sums.ravel()[:lanes], n, per_lane, shared, seed)


@settings(max_examples=60)
@given(
    *(JOBS, CHAOS, SIZES, st.sampled_from(["lossy", "retransmit"]), st.integers(1, 5)),
    st.sampled_from([0, 25 * TIMEOUT]),
)
def test_every_reduce_ends_and_is_what_its_packets_say(
    changes, chaos, sizes, reliability, quorum, granularity
):
    quorum = min(quorum, changes["workers"])
    changes |= {"quorum": quorum, "timeout_ns": TIMEOUT + 4 * granularity}
    job = make_job(reliability=reliability, **changes)
    network, vectors = run(job, chaos, sizes, granularity=granularity)
    check_sums(network, exact_bitmaps=chaos.loss == 0 or quorum == job.workers)
    for worker in range(job.workers):
        for ticket in range(3 * len(sizes)):
            result = network.delivered[worker][ticket]
            n = vectors[ticket % len(sizes)][0][0].size
            counts, mean = rebuilt(network, worker, ticket, n)
            assert result.counts.tolist() == counts.tolist()
            assert result.missed == (counts == 0).sum()
            assert np.array_equal(result.mean, mean)


def part_of_mean(job, xs, ticket, worker):
    """Return a worker's part of a mean from the codec's arithmetic, with all workers in."""
    codec, part = push_codec(job), own_part(xs[0].size, worker, job.workers)
    pieces, seed = [x[part] for x in xs], reduce_seed(job, ticket, worker)
    n, table = pieces[0].size, np.array(codec.table)
    shared = codec.combine([codec.local(x, codec.start(n)) for x in pieces])
    codes = [codec.codes(x, shared, seed, codec.start(n), w)[0] for w, x in enumerate(pieces)]
    return codec.decode_sum(table[np.array(codes)].sum(0), n, job.workers, shared, seed)


@settings(max_examples=60)
@given(
    *(JOBS, CHAOS, st.sampled_from([1, 700, 2048])),
    *(st.sampled_from(["lossy", "retransmit"]), st.integers(1, 5), st.booleans()),
)
def test_every_reduce_scatter_ends_with_the_own_part(
    changes, chaos, size, reliability, quorum, together
):
    workers = changes["workers"]
    quorum = min(quorum, workers)
    job = make_job(reliability=reliability, **changes | {"quorum": quorum})
    network = MemoryNetwork(job, chaos, lose_pass=chaos.lose_pass)
    vectors = gradients([size * workers], workers, 3)[0]
    for ticket, xs in enumerate(vectors):
        network.reduce(ticket, xs, 0 if together else ticket * 400 * TIMEOUT, CUT + ticket)
    network.run()
    exact = reliability == "retransmit" and quorum == workers
    for worker, (ticket, xs) in product(range(workers), enumerate(vectors)):
        result, part = network.delivered[worker][ticket], own_part(xs[0].size, worker, workers)
        assert not np.delete(result.mean, part).any()
        if exact or (chaos.loss == chaos.jitter == 0 and quorum == workers):
            assert np.array_equal(result.mean[part], part_of_mean(job, xs, ticket, worker))
    owned = {aggregation.parse(payload)[1] != b"" for payload in network.sums_sent}
    assert owned == {False, True}


@settings(max_examples=20)
@given(CHAOS, st.integers(0, 3))
def test_a_worker_that_never_speaks(chaos, mute):
    """A worker that the quorum leaves out follows the others; the sums are theirs."""

    def fate(direction, worker, payload):
        fates = chaos(direction, worker, payload)
        return [] if direction == "up" and worker == mute else fates

    network = MemoryNetwork(make_job(quorum=3, reliability="lossy"), fate)
    network.reduce(0, gradients([4000], 4, 1)[0][0])
    network.run()
    assert set(network.delivered) == {0, 1, 2, 3}
    in_time = [r["bitmap"] for r in network.of_kind("arrival") if r["result"] == "in time"]
    assert {int(bitmap, 16) for bitmap in in_time} <= {15 - (1 << mute)}


@pytest.mark.parametrize("quorum, reliability", [(4, "retransmit"), (3, "lossy"), (4, "lossy")])
def test_partitions_of_a_large_vector(monkeypatch, quorum, reliability):
    """Each has a norm and a rotation, and starts when its first chunk's turn comes."""
    monkeypatch.setattr(type(codecs.get("thc")), "_max_partition", 2048)
    job = make_job(quorum=quorum, reliability=reliability, slots=2)
    network, _ = run(job, Chaos(5, 0, 0, 3), [5000], rounds=2)
    norms = [(r["ticket"], r["partition"], r["slot"], r["use"]) for r in network.of_kind("norm")]
    assert sorted(set(norms)) == [(0, 0, 0, 1), (0, 1, 0, 2), (0, 2, 0, 3)] + [
        (1, 0, 1, 3),
        (1, 1, 1, 4),
        (1, 2, 1, 5),
    ]
    for ticket in (0, 1):
        assert all(network.delivered[w][ticket].missed == 0 for w in range(4))
        assert len({network.delivered[w][ticket].mean.tobytes() for w in range(4)}) == 1
    exact = np.mean(gradients([5000], 4, 2)[0][0], axis=0)
    error = network.delivered[0][0].mean - exact
    assert quorum < 4 or np.square(error).sum() < 0.03 * np.square(exact).sum()


@settings(max_examples=20)
@given(CHAOS)
def test_runs_repeat(chaos):
    again = Chaos(0, chaos.loss, chaos.repeats, chaos.jitter)
    again.random.setstate(chaos.random.getstate())
    first, _ = run(make_job(reliability="lossy"), chaos, [4000])
    second, _ = run(make_job(reliability="lossy"), again, [4000])
    assert first.records == second.records


HEADERS = st.builds(
    aggregation.Header,
    type=st.sampled_from(Type),
    job=st.sampled_from([3, 3, 3, 4]),
    worker=st.integers(0, 5),
    slot=st.integers(0, 5),
    round=st.integers(0, 3),
    sum_bits=st.just(8),
    norm=st.sampled_from([0, 1, 0x42480000, 0x7F7FFFFF, 0x7F800000, 2**32 - 1]),
    bitmap=st.integers(0, 31),
    flags=st.integers(0, 3),
    passed=st.sampled_from([0, 0, 0, 1]),
    count=st.integers(0, 5),
    epoch=st.sampled_from([1] * 19 + [2]),
)
EVENTS = st.one_of(
    st.tuples(HEADERS, st.integers(0, 255)),
    st.tuples(st.just("timer"), st.integers(0, 5)),
)


# A worker whose norm was lost takes the norm that comes with sums; this one is infinite.
INFINITE_SUMS = aggregation.Header(Type.SUMS, 3, 0, 0, 1, 8, norm=0x7F800000, bitmap=1, count=1)


@settings(max_examples=150)
@given(st.sampled_from(["lossy", "retransmit"]), st.integers(1, 4), st.lists(EVENTS, max_size=40))
@example("lossy", 1, [("timer", 4), (INFINITE_SUMS, 0), ("timer", 4), ("timer", 2), ("timer", 2)])
def test_no_event_harms_a_worker(reliability, quorum, events):
    """A worker delivers finite values once, whatever packets arrive and timers fire."""
    worker = SwitchWorker(make_job(reliability=reliability, quorum=quorum), 1)
    actions, now = worker.reduce(0, gradients([4000], 4, 1)[0][0][1], 0), 0
    for what, value in events:
        if isinstance(what, str):
            now += value * TIMEOUT // 2
            actions += worker.timer(TIMER, now)
        else:
            body = bytes([value]) * aggregation.body_size(what.type, 8, 4)
            payloads = Payloads.of([what.pack() + body])
            try:
                actions += worker.receive(*AGGREGATOR, payloads, now)
            except ReduceError as error:  # it was told of a round or epoch that excludes it
                later = reliability == "retransmit" and quorum == 4
                assert later or "epoch" in str(error)
                return
    delivered = [action for action in actions if isinstance(action, Deliver)]
    assert len(delivered) <= 1
    assert all(np.isfinite(action.result.mean).all() for action in delivered)
