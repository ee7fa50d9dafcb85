"""A tree of parameter servers: sums, what recompresses, quorums of all levels, late groups; and
rings in the place of its lowest servers."""

from collections import Counter

import numpy as np
import pytest
from memory_network import make_job
from ring_network import ring_sums
from wired import Wired

from gradplane import codecs
from gradplane.hosts.config import ConfigError
from gradplane.hosts.group_tree import levels, workers_of
from gradplane.hosts.protocols.job_codec import between_codec, check_group_sums, push_codec
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.server_tree import server
from gradplane.hosts.protocols.several_rounds import served_worker

ROOT = ("10.0.0.99", 21003)
GROUPS = ((0, 1, 2), (3, 4))
N = 1000


def tree_job(groups=GROUPS, workers=5, **changes):
    workers = len(workers_of(groups)) if groups else workers
    count = sum(map(len, levels(groups)))
    servers = tuple((f"10.0.0.{100 + n}", 21003) for n in range(count))
    if changes.get("rings"):
        leaders = [f"10.0.0.{1 + workers_of(ring)[0]}" for ring in levels(groups)[0]]
        servers = (*((ip, 21003) for ip in leaders), *servers[len(leaders) :])
    given = {"aggregation": "ps", "codec": ("float32", {}), "error_feedback": False}
    given |= {"workers": workers, "groups": groups, "server_address": ROOT, "servers": servers}
    return make_job(**given | changes)


def vectors(workers=5, seed=0, n=N):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=n).astype(np.float32) for _ in range(workers)]


def wire(job, seed=0, held=()):
    peers = [job.addresses.stream(w) for w in range(job.workers)]
    servers = {a: server(job, a) for a in job.servers.values() if a not in peers}
    workers = [served_worker(job, w) for w in range(job.workers)]
    return Wired(job, workers, servers, seed, held)


def total(vectors):
    found = np.zeros(vectors[0].size, np.float32)
    for vector in vectors:
        found += vector
    return found


def mean_of(groups, xs, of_workers=total):
    """Return the documented mean: groups' sums in worker order, added in the groups' order."""

    def summed(group):
        if isinstance(group[0], tuple):
            return total([summed(member) for member in group])
        return of_workers([xs[w] for w in group])

    return summed(groups) / np.float32(len(xs))


THREE_LEVELS = (((0, 1, 2), (3, 4)), ((5,), (6, 7)))
FOUR_LEVELS = ((((3, 0), (1,)), ((2,),)), (((4, 5), (6,)),))
SHAPES = [GROUPS, ((0,), (1,)), ((4, 0), (2, 1, 3)), ((0,), (1,), (2,)), THREE_LEVELS, FOUR_LEVELS]


@pytest.mark.parametrize("groups", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_float32_is_exact_in_the_documented_order(groups, seed):
    wired = wire(tree_job(groups), seed)
    xs = vectors(wired.job.workers)
    for ticket in range(2):
        wired.reduce(ticket, xs)
    for w in range(len(xs)):
        result = wired.delivered[w, 1]
        assert np.array_equal(result.mean, mean_of(groups, xs))
        assert (result.counts.tolist(), result.missed) == ([len(xs)], 0)
    assert not any(s._tickets for s in wired.servers.values())


@pytest.mark.parametrize("groups", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_rings_below_the_servers_add_in_their_order(groups, seed):
    wired = wire(tree_job(groups, rings=True), seed)
    xs = vectors(wired.job.workers)
    for ticket in range(2):
        wired.reduce(ticket, xs)
    for w in range(len(xs)):
        result = wired.delivered[w, 1]
        assert np.array_equal(result.mean, mean_of(groups, xs, ring_sums))
        assert (result.counts.tolist(), result.missed) == ([len(xs)], 0)
    assert not any(s._tickets for s in wired.servers.values())
    assert {record.fields["bitmap"] for record in wired.records} == {f"{(1 << len(xs)) - 1:016x}"}
    pulls = Counter(to for _, to, data, _ in wired.sent if parse(data).kind is Kind.PULL)
    assert len(wired.servers) == sum(map(len, levels(groups)[1:])) + 1
    assert all(pulls[w] == 2 for w in range(wired.job.workers))


@pytest.mark.parametrize("codec", ["float16", "inceptionn", "topk", "threelc", "powersgd"])
@pytest.mark.parametrize("groups", [GROUPS, THREE_LEVELS])
def test_all_workers_of_rings_have_the_same_mean_under_lossy_codecs(groups, codec):
    keys = {"codec": (codec, {}), "error_feedback": True, "codec_ns": 2.0, "reduce_ns": 1.0}
    wired = wire(tree_job(groups, rings=True, pull_codec=("float16", {}), **keys), seed=2)
    for ticket in range(3):
        wired.reduce(ticket, vectors(wired.job.workers, ticket, 900))
        results = [wired.delivered[w, ticket] for w in range(wired.job.workers)]
        assert np.any(results[0].mean)
        assert all(np.array_equal(results[0].mean, result.mean) for result in results)
        assert results[0].codec_ns > results[1].codec_ns > 0  # the leader encodes the sum, too


def test_saved_and_restored_workers_of_rings_go_on():
    job = tree_job(rings=True, codec=("threelc", {}), error_feedback=True)
    straight, first, second = wire(job), wire(job), wire(job)
    for wired in (straight, first):
        wired.reduce(0, vectors())
    for old, new in zip(first.workers, second.workers, strict=True):
        new.restore(old.save())
    for wired in (straight, second):
        wired.reduce(1, vectors(seed=1))
    assert straight.delivered[4, 1].sums == second.delivered[4, 1].sums


def test_what_does_not_fit_a_ring_below_a_server_is_refused():
    job = tree_job(rings=True)
    leader, second = served_worker(job, 0), served_worker(job, 1)
    pull = Message(Kind.PULL, 0, N, 0, 5, 0b11111, bytes(4 * N)).pack()
    with pytest.raises(MessageError, match="PULL from .*, the server is"):
        second.receive(ROOT, pull, 0)
    leader.reduce(0, np.ones(N, np.float32), 0)
    with pytest.raises(MessageError, match="ticket 0: PULL out of turn"):
        leader.receive(ROOT, pull, 0)
    assert leader.missing(0)[-1] == "STAT_RESULT" and "PARTIAL_BLOCK 1" in leader.missing(0)


@pytest.mark.parametrize("push", [("thc", {}), ("uniform_thc", {}), ("signsgd", {"vote": True})])
@pytest.mark.parametrize("groups", [GROUPS, (((0, 3), (1,)), ((2, 4),))])
def test_sums_of_codes_are_those_of_one_server(groups, push):
    keys = {"codec": push, "pull_codec": ("sums", {}), "error_feedback": True}
    tree = wire(tree_job(groups, **keys))
    flat = wire(tree_job(**keys, groups=()))
    for ticket in range(3):
        for wired in (tree, flat):
            wired.reduce(ticket, vectors(seed=ticket))
    for place, result in flat.delivered.items():
        assert np.array_equal(tree.delivered[place].mean, result.mean)
        assert tree.delivered[place].sums == result.sums


def test_a_codec_is_applied_again_to_the_groups_sums_with_a_residual_of_their_own():
    job = tree_job(codec=("threelc", {}), pull_codec=("threelc", {}), error_feedback=True)
    wired, codec = wire(job), codecs.get("threelc")
    own, pulled = [codec.start(N) for _ in range(5)], codec.start(N)
    residuals, between = [np.zeros(N, np.float32) for _ in GROUPS], codec.memoryless
    for ticket in range(3):
        xs, sums = vectors(seed=ticket), []
        wired.reduce(ticket, xs)
        decoded = []
        for w, x in enumerate(xs):
            data, own[w] = codec.encode(x, state=own[w])
            decoded.append(codec.decode(data, N))
        for g, group in enumerate(GROUPS):
            wanted = total([decoded[w] for w in group]) + residuals[g]
            found = between.decode(between.encode(wanted)[0], N)
            residuals[g] = wanted - found
            sums.append(found)
        mean = total(sums) / np.float32(5)
        data, pulled = codec.encode(mean, state=pulled)
        answer = codec.decode(data, N)
        assert np.array_equal(wired.delivered[4, ticket].mean, answer)


def test_between_chooses_the_codec_of_groups_sums():
    job = tree_job(codec=("threelc", {}), between=("float32", {}), error_feedback=True)
    wired = wire(job)
    wired.reduce(0, vectors())
    up = [parse(data) for _, to, data, _ in wired.sent if to == ROOT]
    assert [(m.kind, len(m.body)) for m in up] == [(Kind.PUSH, 4 * N)] * 2
    assert {(m.count, m.bitmap) for m in up} == {(3, 0b111), (2, 0b11000)}


def test_codecs_that_need_a_statistic_or_remember_gradients():
    job = tree_job(codec=("thc", {}))
    assert between_codec(job, push_codec(job)).name == "float32"
    wired = wire(job)
    wired.reduce(0, vectors())
    norms = [parse(data) for _, to, data, _ in wired.sent if to == ROOT]
    assert [m.kind for m in norms] == [Kind.STAT] * 2 + [Kind.PUSH] * 2
    assert len({wired.delivered[w, 0].sums for w in range(5)}) == 1
    momentum = between_codec(job, codecs.get("dgc"))
    assert isinstance(momentum, codecs.ErrorFeedback)
    with pytest.raises(ConfigError, match="agree on a statistic before they encode"):
        named = tree_job(between=("thc", {}))
        between_codec(named, push_codec(named))
    with pytest.raises(ConfigError, match="counts votes"):
        voting = tree_job(codec=("signsgd", {"vote": True}))
        check_group_sums(voting, push_codec(voting))


@pytest.mark.parametrize("codec", ["powersgd", "topk", "qsgd", "sparse", "dgc", "efsignsgd"])
def test_every_worker_has_the_same_mean(codec):
    wired = wire(tree_job(codec=(codec, {}), error_feedback=codec != "qsgd"), seed=3)
    for ticket in range(3):
        wired.reduce(ticket, vectors(seed=ticket, n=900))
        means = [wired.delivered[w, ticket].mean for w in range(5)]
        assert np.any(means[0]) and all(np.array_equal(means[0], mean) for mean in means)


def test_quorums_of_both_levels_leave_out_late_workers_and_groups():
    job = tree_job(quorums=(2, 1), quorum=2)
    wired, xs = wire(job, held=[0, 3, 4]), vectors()
    wired.reduce(0, xs)
    mean = total([xs[1], xs[2]]) / np.float32(2)
    assert sorted(wired.delivered) == [(w, 0) for w in range(5)]
    for w in range(5):
        assert np.array_equal(wired.delivered[w, 0].mean, mean)
    wired.release()
    assert {record.fields["bitmap"] for record in wired.records} == {f"{0b110:016x}"}
    empty = [parse(data) for _, to, data, _ in wired.sent if to == ROOT]
    assert sorted((m.count, m.bitmap, len(m.body)) for m in empty) == [
        (0, 0, 0),
        (2, 0b110, 4 * N),
    ]
    assert not any(s._tickets for s in wired.servers.values())


def test_quorums_of_three_levels():
    job = tree_job(THREE_LEVELS, quorums=(1, 2, 1), quorum=2)
    wired, xs = wire(job, held=[0, 4, 5, 6, 7]), vectors(8)
    wired.reduce(0, xs)
    slow = wired.delivered[7, 0]
    assert slow.counts.tolist() == [2] and len(wired.delivered) == 8
    ones = [w for w in (1, 2) if f"{1 << w | 1 << 3:016x}" == wired.records[0].fields["bitmap"]]
    assert np.array_equal(slow.mean, (xs[ones[0]] + xs[3]) / np.float32(2))
    wired.release()
    assert len({result.sums for result in wired.delivered.values()}) == 1
    assert not any(s._tickets for s in wired.servers.values())


def test_a_sum_that_came_too_late_leaves_the_residual_as_it_was():
    """So that a replay, which knows who is in a result, has the same residuals."""
    job = tree_job(codec=("onebit", {}), quorums=(2, 1), quorum=2, error_feedback=True)
    late = wire(job)
    slow = job.addresses.servers[1]
    late.held = {slow}  # its sum is sent after the root has answered
    late.reduce(0, vectors())
    late.release()
    early = wire(job, held=[3, 4])
    early.reduce(0, vectors())
    early.release()
    for wired in (late, early):
        wired.held = {job.addresses.servers[0]}  # the next result is the second group's
        wired.reduce(1, vectors(seed=1))
        wired.release()
    assert late.delivered[0, 1].sums == early.delivered[0, 1].sums


def test_work_takes_time_and_changes_no_mean():
    keys = {"codec": ("float16", {}), "codec_ns": 2.0, "reduce_ns": 1.0}
    busy, idle = wire(tree_job(**keys)), wire(tree_job(codec=("float16", {})))
    for wired in (busy, idle):
        wired.reduce(0, vectors())
    assert busy.delivered[0, 0].sums == idle.delivered[0, 0].sums
    found = [record.fields for record in busy.records if record.kind == "parts"]
    assert sorted((f.get("workers"), f["codec"], f["reduce"]) for f in found[:2]) == [
        (2, 3 * 2 * N, N),
        (3, 4 * 2 * N, 2 * N),
    ]
    assert (found[2].get("workers"), found[2]["codec"]) == (None, 2 * 2 * N)  # float32 down


def test_messages_that_do_not_fit_are_refused():
    job = tree_job()
    first, second = job.addresses.servers
    root, group = server(job, ROOT), server(job, second)
    body = bytes(4 * N)
    for members in (0, 0b1000):
        push = Message(Kind.PUSH, 0, N, 0, 1, members, body).pack()
        with pytest.raises(MessageError, match=r"group 0, ticket 0: a sum over workers .* 111"):
            root.receive(first, push, 0)
    with pytest.raises(MessageError, match="group 1, ticket 0: "):
        root.receive(second, Message(Kind.PUSH, 0, N, 0, 1, 0b1000, body[1:]).pack(), 0)
    with pytest.raises(MessageError, match="not a worker of this job"):
        group.receive(job.addresses.stream(0), Message(Kind.PUSH, 0, N, body=body).pack(), 0)
    group.receive(ROOT, Message(Kind.PULL, 0, N, 0, 3, 0b111, body).pack(), 0)
    with pytest.raises(MessageError, match="ticket 0: PULL again"):
        group.receive(ROOT, Message(Kind.PULL, 0, N, 0, 3, 0b111, body).pack(), 0)
