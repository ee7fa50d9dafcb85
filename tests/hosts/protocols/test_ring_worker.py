"""A worker of the ring by itself: sums, order, what it refuses, how long it takes."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ring_network import SUMS, ring_job, ring_mail, ring_sums, worker_sums

from gradplane import codecs
from gradplane.codecs.dynamiq import DynamiQ
from gradplane.hosts.config import ConfigError
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import SendMessage, SetTimer
from gradplane.hosts.protocols.compute_time import ComputeQueue
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.results import SCATTERED, ReduceError, own_part
from gradplane.hosts.protocols.ring_plan import RingPlan
from gradplane.hosts.protocols.ring_worker import RingWorker
from gradplane.hosts.wire.marked_values import Marked, truncated


def vectors(workers, size, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return [(scale * rng.normal(size=size)).astype(np.float32) for _ in range(workers)]


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(0, 40), st.integers(1, 3), st.integers(0, 2**32))
def test_every_worker_has_the_same_exact_sums(workers, size, tickets, seed):
    mail = ring_mail(ring_job(workers=workers), seed)
    rounds = [vectors(workers, size, ticket) for ticket in range(tickets)]
    for ticket, xs in enumerate(rounds):  # all in flight at once
        mail.reduce(ticket, xs, tensor=ticket)
    mail.run()
    for ticket, xs in enumerate(rounds):
        expected = ring_sums(xs)
        for w in range(workers):
            result = mail.delivered[w, ticket]
            assert np.array_equal(result.total, expected)
            assert np.array_equal(result.mean, expected / np.float32(workers))
            assert (result.counts.tolist(), result.missed) == ([workers], 0)
            assert result.gradient == digest(xs[w])
            assert result.sums == digest(expected)


@settings(max_examples=60)
@given(
    st.integers(2, 8),
    st.integers(1, 4000),
    st.sampled_from(["normal", "mixed"]),
    st.integers(0, 2**32),
)
def test_sums_in_the_workers_order_are_numpys(workers, size, kind, seed):
    """Two reduces are in flight, and messages come in any order; of the second each worker needs
    its own part. In mixed vectors another order of additions gives other bits."""
    mail = ring_mail(ring_job(workers=workers, sum_order="workers"), seed)
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.integers(-8, 9, (2, workers, size)) if kind == "mixed" else 1
    xs = (scales * rng.normal(size=(2, workers, size))).astype(np.float32)
    parts = xs[1][:, : size - size % workers]
    mail.reduce(0, xs[0], tensor=0)
    mail.reduce(1, parts, tensor=SCATTERED)
    mail.run()
    expected, scattered = worker_sums(xs[0]), worker_sums(parts)
    for w in range(workers):
        assert mail.delivered[w, 0].total.tobytes() == expected.tobytes()
        own = own_part(scattered.size, w, workers)
        assert mail.delivered[w, 1].total[own].tobytes() == scattered[own].tobytes()


@settings(max_examples=40)
@given(st.integers(2, 6), st.integers(1, 30), st.sampled_from(sorted(SUMS)), st.integers(0, 2**32))
def test_workers_that_begin_late_find_what_came_early(workers, size, order, seed):
    mail = ring_mail(ring_job(workers=workers, sum_order=order), seed)
    rounds = [vectors(workers, size, ticket) for ticket in range(3)]
    begun = [0] * workers
    while min(begun) < 3:  # a worker begins a ticket once it has the last, at a time of its own
        w = mail.random.randrange(workers)
        ticket = begun[w]
        if ticket < 3 and (ticket == 0 or (w, ticket - 1) in mail.delivered):
            mail.perform(w, mail.workers[w].reduce(ticket, rounds[ticket][w], 0))
            begun[w] += 1
        mail.step()
    mail.run()
    for ticket, xs in enumerate(rounds):
        for w in range(workers):
            assert np.array_equal(mail.delivered[w, ticket].total, SUMS[order](xs))


def test_each_worker_sends_as_much_whatever_their_number():
    for workers in (2, 4, 8):
        mail = ring_mail(ring_job(workers=workers))
        mail.reduce(0, vectors(workers, 800))
        mail.run()
        sent = [
            sum(len(data) - 20 for w, _, data, _ in mail.sent if w == k) for k in range(workers)
        ]
        assert sent == [2 * (workers - 1) * 3200 // workers] * workers


def test_the_steps_of_algorithm_1():
    mail = ring_mail(ring_job(workers=3))
    mail.reduce(0, vectors(3, 7))
    mail.run()
    steps = [(w, parse(data)) for w, _, data, _ in mail.sent]
    assert sorted((w, m.kind.name, m.count, m.bitmap) for w, m in steps) == [
        (0, "PARTIAL_BLOCK", 0, 0b001),
        (0, "PARTIAL_BLOCK", 2, 0b101),
        (0, "WHOLE_BLOCK", 0, 0b111),
        (0, "WHOLE_BLOCK", 1, 0b111),
        (1, "PARTIAL_BLOCK", 0, 0b011),
        (1, "PARTIAL_BLOCK", 1, 0b010),
        (1, "WHOLE_BLOCK", 1, 0b111),
        (1, "WHOLE_BLOCK", 2, 0b111),
        (2, "PARTIAL_BLOCK", 1, 0b110),
        (2, "PARTIAL_BLOCK", 2, 0b100),
        (2, "WHOLE_BLOCK", 0, 0b111),
        (2, "WHOLE_BLOCK", 2, 0b111),
    ]


def test_the_steps_in_the_workers_order():
    """Both blocks start at worker 0; as many bytes are sent as in the rotated order."""
    mail = ring_mail(ring_job(workers=3, sum_order="workers"))
    mail.reduce(0, vectors(3, 500))
    mail.run()
    steps = [(w, parse(data)) for w, _, data, _ in mail.sent]
    assert sorted((w, m.kind.name, m.bitmap) for w, m in steps if m.count == 1) == [
        (0, "PARTIAL_BLOCK", 0b001),
        (0, "WHOLE_BLOCK", 0b111),
        (1, "PARTIAL_BLOCK", 0b011),
        (2, "WHOLE_BLOCK", 0b111),
    ]
    assert {m.count for _, m in steps} == {0, 1}
    assert sum(len(m.body) for _, m in steps) == 2 * (3 - 1) * 500 * 4


@pytest.mark.parametrize("size, pieces", [(1, 1), (350, 1), (351, 2), (10**6, 16)])
def test_pieces_of_a_vector_in_the_workers_order(size, pieces):
    plan = RingPlan.of(ring_job(workers=3, sum_order="workers"))
    blocks, parts = plan.cut(size), plan.cut(3 * size, scattered=True)
    assert blocks.number == pieces and parts.number % 3 == 0
    for cut in (blocks, parts):
        stops = [0]
        for block in range(cut.number):
            assert cut.span(block).start == stops[-1]
            stops.append(cut.span(block).stop)
        assert stops[-1] == cut.size
    assert {size, 2 * size} < set(stops), "no piece is in two parts"


@pytest.mark.parametrize("order", sorted(SUMS))
@pytest.mark.parametrize(
    "codec",
    ["float16", "int8", "inceptionn", "mxfp", "natural", "sdp4bit", "topk", "onebit", "zeropp"],
)
@pytest.mark.parametrize("error_feedback", [False, True])
def test_a_codec_of_the_hosts_on_every_hop(codec, error_feedback, order):
    job = ring_job(workers=4, codec=(codec, {}), error_feedback=error_feedback, sum_order=order)
    means = []
    for seed in (1, 2):
        mail = ring_mail(job, seed)
        for ticket in range(3):
            mail.reduce(ticket, vectors(4, 800, ticket))
            mail.run()
            sums = {mail.delivered[w, ticket].sums for w in range(4)}
            assert len(sums) == 1, "all have the same bits"
            means.append(mail.delivered[0, ticket].mean)
    assert np.array_equal(means[:3], means[3:]), "the order of arrival does not matter"


def test_blocks_are_whole_units_of_the_codecs():
    plan = RingPlan.of(ring_job(workers=3), DynamiQ().carriers[1])
    long, short = plan.cut(1100), plan.cut(200)
    spans = [(long.span(block).start, long.span(block).stop) for block in range(3)]
    assert spans == [(0, 512), (512, 1024), (1024, 1100)]
    assert [short.span(block).stop for block in range(3)] == [200, 200, 200]


def test_error_feedback_is_kept_by_block():
    """A worker adds the error of a block when it encodes that block the next time."""
    job = ring_job(workers=2, codec=("inceptionn", {"bound": 6}), error_feedback=True)
    mail, xs = ring_mail(job), [np.full(2, 0.012, np.float32), np.zeros(2, np.float32)]
    for ticket in range(40):
        mail.reduce(ticket, xs)
        mail.run()
    total = sum(mail.delivered[1, ticket].total for ticket in range(40))
    assert np.allclose(total, 40 * 0.012, atol=2**-5)


def test_with_a_statistic_a_codec_is_refused():
    text = (
        "codec thc: its workers agree on a statistic before they encode, partial sums have none: "
        "use another codec, such as float16 or inceptionn"
    )
    with pytest.raises(ConfigError, match=f"^{re.escape(text)}$"):
        RingPlan.of(ring_job(codec=("thc", {})))


# What makes no sense


def partial(**changes):
    """Return worker 0's first message to worker 1 of 3, for a vector of 4 values."""
    given = {"n": 4, "count": 0, "bitmap": 1, "body": np.ones(2, "<f4").tobytes()}
    return Message(**{"kind": Kind.PARTIAL_BLOCK, "ticket": 0} | given | changes).pack()


LEFT = ("10.0.0.1", 21003)


@pytest.mark.parametrize(
    "peer, data, message",
    [
        (
            ("10.0.0.3", 21003),
            partial(),
            "ticket 0, PARTIAL_BLOCK 0: from ('10.0.0.3', 21003), "
            "the left neighbour is ('10.0.0.1', 21003)",
        ),
        (
            LEFT,
            partial(n=5),
            "ticket 0, PARTIAL_BLOCK 0: 5 values of tensor 0, here it is 4 of tensor 0: "
            "all workers reduce the same",
        ),
        (
            LEFT,
            partial(tensor=1),
            "ticket 0, PARTIAL_BLOCK 0: 4 values of tensor 1, here it is 4 of tensor 0: "
            "all workers reduce the same",
        ),
        (LEFT, partial(count=1), "ticket 0, PARTIAL_BLOCK 1: not expected, or not again"),
        (LEFT, partial(count=3), "ticket 0, PARTIAL_BLOCK 3: not expected, or not again"),
        (LEFT, partial(kind=Kind.PUSH), "ticket 0, PUSH 0: not expected, or not again"),
        (
            LEFT,
            partial(bitmap=3),
            "ticket 0, PARTIAL_BLOCK 0: sum over workers 11 (bitmap), not 1",
        ),
        (
            LEFT,
            partial(body=bytes(9)),
            "ticket 0, PARTIAL_BLOCK 0: 1 bytes too many: 8 expected, got 9",
        ),
        (
            LEFT,
            partial(body=np.full(2, np.nan, "<f4").tobytes()),
            "ticket 0, PARTIAL_BLOCK 0: NaN at index 0",
        ),
        (
            LEFT,
            partial(kind=Kind.WHOLE_BLOCK, ticket=1),
            "ticket 1, WHOLE_BLOCK 0: not without this worker, which has not begun",
        ),
        (LEFT, b"\x08", "message of 1 bytes, the header alone takes 20"),
    ],
)
def test_messages_that_a_worker_refuses(peer, data, message):
    worker = RingWorker(RingPlan.of(ring_job(workers=3)), 1)
    worker.reduce(0, np.ones(4, np.float32), 0)
    with pytest.raises(MessageError, match=f"^{re.escape(message)}$"):
        worker.receive(peer, data, 0)
    assert worker.receive(LEFT, partial(), 0), "and goes on"


def test_nothing_is_taken_twice():
    worker = RingWorker(RingPlan.of(ring_job(workers=3)), 1)
    worker.reduce(0, np.ones(4, np.float32), 0)
    worker.receive(LEFT, partial(), 0)
    with pytest.raises(MessageError, match=r"^ticket 0, PARTIAL_BLOCK 0: not expected, or not aga"):
        worker.receive(LEFT, partial(), 0)
    mail = ring_mail(ring_job(workers=3))
    mail.reduce(0, vectors(3, 4))
    mail.run()
    with pytest.raises(MessageError, match=r"^ticket 0, PARTIAL_BLOCK 0: that ticket is done$"):
        mail.workers[1].receive(LEFT, partial(), 0)


def test_a_ring_of_one_takes_no_messages():
    worker = RingWorker(RingPlan.of(ring_job(workers=1)), 0)
    with pytest.raises(MessageError, match=r"^ticket 0, PARTIAL_BLOCK 0: from"):
        worker.receive(LEFT, partial(), 0)


def test_an_early_message_that_does_not_fit_ends_the_reduce():
    worker = RingWorker(RingPlan.of(ring_job(workers=3)), 1)
    assert worker.receive(LEFT, partial(n=5), 0) == []
    text = (
        "worker 1: ticket 0, PARTIAL_BLOCK 0: 5 values of tensor 0, here it is 4 of tensor 0: "
        "all workers reduce the same"
    )
    with pytest.raises(ReduceError, match=f"^{re.escape(text)}$"):
        worker.reduce(0, np.ones(4, np.float32), 0)


def test_reduces_that_cannot_start():
    worker = RingWorker(RingPlan.of(ring_job(workers=3)), 1)
    worker.reduce(4, np.ones(4, np.float32), 0)
    for ticket, tensor in ((4, 1), (3, 1), (5, 0)):
        text = (
            f"worker 1, ticket {ticket}, tensor {tensor}: tickets must rise (the last is 4) "
            "and a tensor's last reduce be done: wait for its result"
        )
        with pytest.raises(ReduceError, match=f"^{re.escape(text)}$"):
            worker.reduce(ticket, np.ones(4, np.float32), 0, tensor)
    with pytest.raises(ReduceError, match=r"^worker 1, ticket 9: nan at index 0: did the training"):
        worker.reduce(9, np.full(1, np.nan, np.float32), 0, 1)


@pytest.mark.parametrize("marked", [{}, {"marked": True, "bound": 10}])
def test_a_sum_beyond_float32_is_said(marked):
    mail = ring_mail(ring_job(workers=2, **marked))
    with pytest.raises(ReduceError, match=r"^worker 0, ticket 0, block 1: the sum: infinity at in"):
        mail.reduce(0, [np.full(2, 3e38, np.float32)] * 2)
        mail.run()


# Marked transfers


def test_marked_blocks_travel_as_values_in_network_order():
    mail = ring_mail(ring_job(workers=2, marked=True, bound=10))
    mail.reduce(0, [np.array([0.5, 0.25], np.float32)] * 2)
    w, _, data, values = mail.sent[0]
    assert (w, parse(data).body, values) == (0, b"", np.array([0.5], ">f4").tobytes())


@pytest.mark.parametrize("bound", [6, 8, 10])
def test_the_owner_truncates_so_all_have_the_same_bits(bound):
    mail = ring_mail(ring_job(workers=3, marked=True, bound=bound))
    xs = vectors(3, 100, scale=0.01)
    mail.reduce(0, xs)
    mail.run()
    expected = truncated(ring_sums(xs), bound)
    for w in range(3):
        assert np.array_equal(mail.delivered[w, 0].total, expected)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_truncating_again_changes_nothing(values):
    once = truncated(np.array(values, np.float32), 8)
    assert truncated(once, 8).tobytes() == once.tobytes()


def test_marked_values_as_a_codec():
    x = np.array([1, -2.5, 3e-40], np.float32)
    data, _ = Marked().encode(x)
    assert data == x.astype(">f4").tobytes()
    assert np.array_equal(Marked().decode(data, 3), x)
    with pytest.raises(codecs.CodecError, match=r"^2 float32 values in 12 bytes$"):
        Marked().decode(data, 2)


# Time


def test_work_is_done_one_after_another():
    work, done = ComputeQueue(), []

    def note(at):
        done.append(at)
        return []

    assert work.do(0, note, 5) == []
    assert done == [5], "what takes no time needs no timer"
    assert work.do(10, note, 20) == [SetTimer("work", 30)]
    assert work.do(5, note, 22) == []
    assert work.do(0, note, 23) == []
    assert work.timer(30) == [SetTimer("work", 35)]
    assert work.timer(35) == [SetTimer("work", 35)]
    assert work.timer(35) == []
    assert done == [5, 30, 35, 35]


def test_adding_and_coding_take_the_time_that_the_job_says():
    job = ring_job(workers=2, codec=("float16", {}), codec_ns=3.0, reduce_ns=2.0)
    mail = ring_mail(job)
    mail.reduce(0, vectors(2, 20))
    assert not mail.sent
    mail.run()
    result = mail.delivered[0, 0]
    # Own block encoded, the other's decoded, added and encoded, the first's whole sum decoded.
    assert (result.codec_ns, result.reduce_ns) == (4 * 30, 20)
    assert mail.now == 4 * 30 + 20
    exact = ring_mail(ring_job(workers=2, codec_ns=3.0, reduce_ns=2.0))
    exact.reduce(0, vectors(2, 20))
    exact.run()
    assert (exact.now, exact.delivered[1, 0].codec_ns) == (20, 0), "floats need no codec"


def test_a_block_goes_on_as_soon_as_it_is_added():
    worker = RingWorker(RingPlan.of(ring_job(workers=3)), 1)
    worker.reduce(0, np.ones(4, np.float32), 0)
    (action,) = worker.receive(LEFT, partial(), 0)
    assert isinstance(action, SendMessage)
    assert np.array_equal(np.frombuffer(parse(action.data).body, "<f4"), [2, 2])


def test_what_is_missing_can_be_asked():
    worker = RingWorker(RingPlan.of(ring_job(workers=3)), 1)
    worker.reduce(0, np.ones(4, np.float32), 0)
    worker.receive(LEFT, partial(), 0)
    assert worker.missing(0) == ["PARTIAL_BLOCK 2", "WHOLE_BLOCK 0", "WHOLE_BLOCK 1"]
    assert worker.missing(7) == []
