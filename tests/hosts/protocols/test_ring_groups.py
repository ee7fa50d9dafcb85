"""Rings over groups of workers: sums, codecs, several reduces at once, what each link carries."""

from collections import Counter

import numpy as np
import pytest
from ring_network import ring_job, ring_sums, worker_sums
from wired import Wired

from gradplane.hosts.group_tree import levels, workers_of
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.ring_groups import GroupPlans, GroupRingWorker
from gradplane.hosts.protocols.several_rounds import ring_worker

GROUPS = [
    ((0, 1), (2, 3)),
    ((0, 1, 2), (3, 4, 5)),
    ((0,), (1, 2, 3, 4)),
    ((3, 0), (1, 4), (2, 5)),
    ((0, 1, 2, 3, 4), (5,), (6, 7)),
    (((0, 1, 2), (3, 4)), ((5,), (6, 7))),
    ((((3, 0), (1,)), ((2,),)), (((4, 5), (6,)),), (((7,),),)),
]


def job_of(groups, **changes):
    return ring_job(workers=len(workers_of(groups)), groups=groups, **changes)


def vectors(workers, n=1001, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 0.01, n).astype(np.float32) for _ in range(workers)]


def mail_of(job, seed=0):
    """Return the workers, with their messages in memory."""
    return Wired(job, [ring_worker(job, w) for w in range(job.workers)], seed=seed, run=False)


def grouped_sums(groups, xs):
    """Return the documented sums: each group's ring, then a ring of their sums, with its blocks."""

    def of_group(group):
        if isinstance(group, tuple):
            return ring_sums([of_group(member) for member in group])
        return xs[group]

    of_groups = list(map(of_group, groups))
    count, size = len(groups), xs[0].size
    blocks = count * -(-max(len(group) for row in levels(groups) for group in row) // count)
    total, start = np.empty(size, np.float32), 0
    for block in range(blocks):
        stop = start + size // blocks + (block < size % blocks)
        part = of_groups[block % count][start:stop].copy()
        for k in range(1, count):
            part += of_groups[(block + k) % count][start:stop]
        total[start:stop] = part
        start = stop
    return total


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("seed", range(3))
def test_sums_are_those_of_the_documented_order_whatever_order_messages_come_in(groups, seed):
    mail, xs = mail_of(job_of(groups), seed), vectors(len(workers_of(groups)))
    mail.reduce(0, xs)
    mail.run()
    total, n = grouped_sums(groups, xs), len(xs)
    assert np.allclose(total, sum(x.astype(float) for x in xs), atol=1e-6)
    for w in range(n):
        result = mail.delivered[w, 0]
        assert np.array_equal(result.total, total)
        assert np.array_equal(result.mean, total / np.float32(n))
        assert (result.counts.tolist(), result.missed) == ([n], 0)
    assert {line.fields["bitmap"] for line in mail.records} == {f"{(1 << n) - 1:016x}"}


@pytest.mark.parametrize("groups", GROUPS)
def test_in_the_workers_order_each_group_is_summed_from_its_first_member_on(groups):
    def sums(group):
        return worker_sums([sums(one) for one in group]) if isinstance(group, tuple) else xs[group]

    mail, xs = mail_of(job_of(groups, sum_order="workers")), vectors(len(workers_of(groups)))
    mail.reduce(0, xs)
    mail.run()
    for w in range(len(xs)):
        assert np.array_equal(mail.delivered[w, 0].total, sums(groups))


@pytest.mark.parametrize("n", [0, 1, 3, 17])
def test_vectors_shorter_than_the_rings(n):
    groups = GROUPS[6]
    mail, xs = mail_of(job_of(groups)), vectors(8, n)
    mail.reduce(0, xs)
    mail.run()
    assert np.array_equal(mail.delivered[7, 0].total, grouped_sums(groups, xs))


@pytest.mark.parametrize("codec", ["float16", "inceptionn", "topk", "threelc", "qsgd", "powersgd"])
@pytest.mark.parametrize("groups", [GROUPS[1], GROUPS[5]])
def test_all_workers_have_the_same_mean_under_lossy_codecs(codec, groups):
    job = job_of(groups, codec=(codec, {}), error_feedback=True)
    mail = mail_of(job, seed=2)
    for first in (0, 2):
        for ticket in (first, first + 1):
            mail.reduce(ticket, vectors(job.workers, 900, seed=ticket), tensor=ticket - first)
        mail.run()
    for ticket in range(4):
        means = [mail.delivered[w, ticket].mean for w in range(job.workers)]
        assert all(np.array_equal(means[0], mean) for mean in means)
        assert np.any(means[0])


def test_error_stays_below_the_documented_bound():
    groups, bound = ((0, 1, 2, 3), (4, 5, 6, 7)), 2.0**-10
    mail = mail_of(job_of(groups, codec=("inceptionn", {"bound": 10})))
    xs = vectors(8, 20_000)
    mail.reduce(0, xs)
    mail.run()
    exact = sum(x.astype(float) for x in xs) / 8
    assert np.abs(mail.delivered[3, 0].mean - exact).max() < bound * (1 + 2 / 8)


def test_times_of_work_pass_one_after_another_and_change_no_sum():
    groups = GROUPS[1]
    busy = mail_of(job_of(groups, codec=("float16", {}), codec_ns=2.0, reduce_ns=1.0), seed=4)
    idle = mail_of(job_of(groups, codec=("float16", {})), seed=5)
    xs = vectors(6)
    for mail in (busy, idle):
        for ticket in range(3):
            mail.reduce(ticket, xs, tensor=ticket)
        mail.run()
    for place, result in idle.delivered.items():
        assert np.array_equal(result.mean, busy.delivered[place].mean)
    assert busy.now > 0 and busy.delivered[0, 2].codec_ns > busy.delivered[1, 2].codec_ns > 0
    assert busy.delivered[0, 0].reduce_ns > busy.delivered[1, 0].reduce_ns > 0


def test_links_carry_what_the_docstring_says():
    groups = ((0, 1, 2, 3), (4, 5, 6, 7))
    mail, n = mail_of(job_of(groups)), 9600
    mail.reduce(0, vectors(8, n))
    mail.run()
    vector, carried = 4 * n, Counter()
    for w, to, data, _ in mail.sent:
        carried[w, to] += len(parse(data).body)
    assert carried[0, 4] == carried[4, 0] == vector  # 2 (G - 1) / G
    assert carried[0, 1] == 0.75 * vector + vector  # a block each, and all blocks down
    assert carried[3, 0] == 0.75 * vector + 0.75 * vector  # up to the leader, nothing down
    assert not any(kind is Kind.WHOLE_BLOCK for kind in _kinds(mail, 0, 1))


def test_links_of_three_levels():
    groups = (((0, 1), (2, 3)), ((4, 5), (6, 7)))
    mail, n = mail_of(job_of(groups)), 9600
    mail.reduce(0, vectors(8, n))
    mail.run()
    vector, carried = 4 * n, Counter()
    for w, to, data, _ in mail.sent:
        carried[w, to] += len(parse(data).body)
    assert carried[0, 4] == carried[4, 0] == vector
    assert carried[0, 2] == carried[0, 1] == carried[6, 7] == 1.5 * vector  # half up, all down
    assert carried[2, 0] == carried[1, 0] == vector  # half of it summed there, up to the leader
    assert len(carried) == 14 and sum(carried.values()) == 17 * vector


def _kinds(mail, w, to):
    return [parse(data).kind for a, b, data, _ in mail.sent if (a, b) == (w, to)]


def test_marked_values_travel_apart_from_their_header():
    job = job_of(GROUPS[0], marked=True, bound=10)
    mail, xs = mail_of(job), vectors(4)
    mail.reduce(0, xs)
    mail.run()
    assert {parse(data).kind for _, _, data, values in mail.sent if values} == {
        Kind.PARTIAL_BLOCK, Kind.WHOLE_BLOCK, Kind.TOTAL_BLOCK,
    }  # fmt: skip
    assert all(len(data) == 20 for _, _, data, _ in mail.sent)


def test_saved_and_restored_workers_go_on():
    job = job_of(GROUPS[1], codec=("threelc", {}), error_feedback=True)
    straight, first = mail_of(job), mail_of(job)
    for mail in (straight, first):
        mail.reduce(0, vectors(6))
        mail.run()
    second = mail_of(job)
    for old, new in zip(first.workers, second.workers, strict=True):
        new.restore(old.save())
    for mail in (straight, second):
        mail.reduce(1, vectors(6, seed=1))
        mail.run()
    assert np.array_equal(straight.delivered[5, 1].mean, second.delivered[5, 1].mean)


def test_messages_that_do_not_fit_are_refused():
    job = job_of(GROUPS[1])
    worker = GroupRingWorker(GroupPlans.of(job), 1)
    left, right = job.addresses.stream(0), job.addresses.stream(2)
    block = Message(Kind.TOTAL_BLOCK, 0, 9, 0, 0, 3, bytes(12)).pack()
    with pytest.raises(MessageError, match="ticket 0, TOTAL_BLOCK 0: not expected"):
        worker.receive(left, block, 0)
    worker.reduce(0, np.ones(9, np.float32), 0)
    assert worker.missing(0) == [
        *(f"PARTIAL_BLOCK {block}" for block in (0, 2)),
        *(f"TOTAL_BLOCK {block}" for block in range(4)),
    ]
    with pytest.raises(MessageError, match="the left neighbour is"):
        worker.receive(right, block, 0)
    with pytest.raises(MessageError, match="TOTAL_BLOCK 0: "):
        worker.receive(left, block[:-1], 0)
