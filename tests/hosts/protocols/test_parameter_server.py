import re

import numpy as np
import pytest
from memory_network import MemoryNetwork, make_job
from wired import Wired

from gradplane import codecs
from gradplane.hosts.config import UnsuitableCodecError
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import Deliver, SendMessage
from gradplane.hosts.protocols.job_codec import reduce_seed
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, kind_of, parse
from gradplane.hosts.protocols.parameter_server import PsServer, PsWorker
from gradplane.hosts.protocols.results import ReduceError
from gradplane.hosts.protocols.ring_plan import RingPlan

SERVER = ("10.0.0.9", 21003)
N = 3000


def make(**changes):
    """Return the server and the workers of a job."""
    given = {"aggregation": "ps", "server_address": SERVER, "codec": ("float32", {})}
    job = make_job(**given | {"error_feedback": False} | changes)
    return job, PsServer(job), [PsWorker(job, w) for w in range(job.workers)]


def vectors(workers, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=N).astype(np.float32) for _ in range(workers)]


def wire(job, server, workers, held=()):
    return Wired(job, workers, {SERVER: server}, seed=None, held=held)


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_float32_is_exact_in_worker_order(workers):
    wired = wire(*make(workers=workers))
    xs = vectors(workers)
    wired.reduce(0, xs[:1] + xs[1:])
    total = np.zeros(N, np.float32)
    for x in xs:
        total += x
    mean = total / np.float32(workers)
    for w in range(workers):
        result = wired.delivered[w, 0]
        assert np.array_equal(result.mean, mean)
        assert (result.counts.tolist(), result.missed) == ([workers], 0)
        assert result.gradient == digest(xs[w])
        assert result.codes == digest(xs[w].tobytes())
        assert result.sums == digest(mean.tobytes())


def test_the_digests_are_of_the_vector_and_of_what_was_sent():
    wired = wire(*make(codec=("int8", {})))
    xs = vectors(4)
    wired.reduce(0, xs)
    job = wired.job
    for w, x in enumerate(xs):
        codes, _ = codecs.get("int8").encode(x, None, reduce_seed(job, 0), None, w)
        assert wired.delivered[w, 0].gradient == digest(x)
        assert wired.delivered[w, 0].codes == digest(codes)


def test_marked_vectors_travel_as_values_and_answers_do_not():
    job, server, workers = make(marked=True, bound=10, error_feedback=True)
    wired, xs = wire(job, server, workers), vectors(4)
    (push,) = PsWorker(job, 0).reduce(0, xs[0], 7)
    assert (push.values, len(push.data)) == (xs[0].astype(">f4").tobytes(), 20)
    wired.reduce(0, xs)
    exact = wire(*make())
    exact.reduce(0, xs)
    assert np.array_equal(wired.delivered[1, 0].mean, exact.delivered[1, 0].mean)


def test_the_order_of_arrival_does_not_matter():
    job, server, workers = make()
    xs = vectors(4)
    straight = wire(job, server, workers)
    straight.reduce(0, xs)
    late = wire(*make(), held=[0, 2])
    late.reduce(0, xs)
    late.release()
    assert np.array_equal(straight.delivered[0, 0].mean, late.delivered[3, 0].mean)


def test_a_statistic_is_reduced_by_maximum_first():
    wired = wire(*make(codec=("thc", {})))
    xs = vectors(4)
    wired.reduce(0, xs)
    codec = codecs.get("thc")
    shared, seed = codec.combine([codec.local(x) for x in xs]), reduce_seed(wired.job, 0)
    mean = np.zeros(N, np.float32)
    for w, x in enumerate(xs):
        mean += codec.decode(codec.encode(x, shared, seed, None, w)[0], N)
    assert np.array_equal(wired.delivered[2, 0].mean, mean / np.float32(4))


SUMMED = [(name, {}) for name in codecs.names() if codecs.get(name).summable]


@pytest.mark.parametrize("workers", [3, 4])
@pytest.mark.parametrize("codec", [*SUMMED, ("signsgd", {"vote": True})], ids=str)
def test_a_sum_means_the_same_through_the_switch_and_the_server(codec, workers):
    """A ring refuses codecs whose workers share a statistic, as these all do."""
    rng = np.random.default_rng(workers)
    xs = [rng.integers(-1, 2, 300).astype(np.float32) for _ in range(workers)]
    given = {"codec": codec, "workers": workers, "error_feedback": False, "sum_bits": 16}
    switched = MemoryNetwork(make_job(**given))
    switched.reduce(0, xs)
    switched.run()
    served = wire(*make(**given))
    served.reduce(0, xs)
    for w in range(workers):
        summed, merged = switched.delivered[w][0].mean, served.delivered[w, 0].mean
        rounded = 0.2 if "thc" in codec[0] else 1e-6  # by other random numbers on the two ways
        assert np.linalg.norm(summed - merged) <= rounded * np.linalg.norm(summed)
    with pytest.raises(UnsuitableCodecError, match="agree on a statistic"):
        RingPlan.of(make_job(**given))


def test_a_majority_votes_through_the_server():
    xs = [np.array(x, np.float32) for x in ((1, 1), (1, -1), (-1, 1))]
    for vote, expected in ((True, [1, 1]), (False, [1 / 3, 1 / 3])):
        wired = wire(*make(codec=("signsgd", {"vote": vote}), workers=3))
        wired.reduce(0, xs)
        np.testing.assert_allclose(wired.delivered[2, 0].mean, expected, rtol=1e-6)


def test_the_mean_is_encoded_by_the_pull_codec():
    wired = wire(*make(pull_codec=("float16", {})))
    xs = vectors(4)
    wired.reduce(0, xs)
    pulled = wired.delivered[1, 0].mean
    assert np.array_equal(pulled, pulled.astype(np.float16))
    assert np.abs(pulled - np.mean(xs, axis=0)).max() < 1e-3


def test_at_a_quorum_late_vectors_are_ignored_but_answered():
    wired = wire(*make(quorum=3), held=[1])
    xs = vectors(4)
    wired.reduce(0, xs)
    assert [record.fields["bitmap"] for record in wired.records] == ["000000000000000d"] * 4
    expected = (xs[0] + xs[2] + xs[3]) / np.float32(3)
    assert np.array_equal(wired.delivered[1, 0].mean, expected)
    wired.release()
    assert len(wired.delivered) == 4
    assert not wired.servers[SERVER]._tickets, "nothing is kept of what is over"


def test_a_result_that_comes_before_its_reduce_is_kept():
    """The others' quorum does not wait for a worker that is still computing."""
    job, server, workers = make(codec=("thc", {}), quorum=3)
    late, xs = 3, vectors(4)
    inbox, mean = [], []

    def pump(worker, actions):
        for action in actions:
            if not isinstance(action, SendMessage):
                continue
            for answer in server.receive(job.addresses.stream(worker), action.data, 0):
                (inbox if answer.peer == job.addresses.stream(late) else mean).append(answer)
        while mean:
            answer = mean.pop(0)
            to = next(w for w in range(4) if job.addresses.stream(w) == answer.peer)
            pump(to, workers[to].receive(job.addresses.server_address, answer.data, 0))

    for worker in range(3):
        pump(worker, workers[worker].reduce(0, xs[worker], 0))
    for answer in inbox:
        assert workers[late].receive(job.addresses.server_address, answer.data, 0) == []
    actions = workers[late].reduce(0, xs[late], 0)
    assert [a.ticket for a in actions if isinstance(a, Deliver)] == [0]


def test_error_feedback_keeps_what_the_codes_left_out():
    wired = wire(*make(codec=("thc", {}), error_feedback=True))
    xs = vectors(4)
    wired.reduce(0, xs)
    codec, seed = codecs.ErrorFeedback(codecs.get("thc")), reduce_seed(wired.job, 0)
    states = [codec.start(N)] * 4
    shared = codec.combine([codec.local(x, s) for x, s in zip(xs, states, strict=True)])
    _, state = codec.encode(xs[1], shared, seed, states[1], 1)
    actions = wired.workers[1].reduce(1, xs[1], 0)
    stat = np.frombuffer(parse(actions[0].data).body, "<f4")
    assert np.array_equal(stat, codec.local(xs[1], state))


def test_many_reduces_at_once():
    job, server, workers = make(error_feedback=True, codec=("thc", {}))
    wired = wire(job, server, workers, held=[0, 1, 2, 3])
    for tensor in range(3):
        wired.reduce(tensor, vectors(4, tensor), tensor)
    wired.release()
    assert sorted(wired.delivered) == [(w, t) for w in range(4) for t in range(3)]


def test_a_record_for_each_answer():
    wired = wire(*make())
    wired.reduce(0, vectors(4))
    assert wired.records[2].fields == {
        "job": 3,
        "ticket": 0,
        "worker": 2,
        "slot": None,
        "use": None,
        "result": "in time",
        "count": 4,
        "bitmap": "000000000000000f",
        "digest": wired.delivered[2, 0].sums,
        "attempts": 1,
        "notices": 0,
        "at": 0,
    }


PUSH = Message(Kind.PUSH, 0, n=2, body=bytes(8)).pack()


@pytest.mark.parametrize(
    "peer, data, message",
    [
        (("10.0.0.7", 1), PUSH, "PUSH from ('10.0.0.7', 1), which is not a worker of this job"),
        (
            ("10.0.0.2", 21003),
            Message(Kind.PUSH, 0, n=3, body=bytes(12)).pack(),
            "worker 1, ticket 0: 3 values, others sent 2",
        ),
        (
            ("10.0.0.2", 21003),
            Message(Kind.PUSH, 0, n=2, body=bytes(7)).pack(),
            "worker 1, ticket 0: truncated: 2 float32 values, 8 bytes from byte 0 on, 7 left",
        ),
        (
            ("10.0.0.2", 21003),
            Message(Kind.STAT, 0, n=2, body=bytes(7)).pack(),
            "STAT: 7 bytes are not float32 values",
        ),
        (("10.0.0.2", 21003), PUSH[:19], "message of 19 bytes, the header alone takes 20"),
        (("10.0.0.2", 21003), b"\x11" + PUSH[1:], "message of kind 17, known are 1 to 16"),
    ],
)
def test_messages_that_the_server_refuses(peer, data, message):
    _, server, _ = make()
    server.receive(("10.0.0.1", 21003), PUSH, 0)
    with pytest.raises(MessageError, match=f"^{re.escape(message)}$"):
        server.receive(peer, data, 0)


def test_a_worker_wants_its_messages_in_turn():
    _, _, workers = make()
    workers[0].reduce(0, vectors(1)[0], 0)
    with pytest.raises(MessageError, match="^ticket 0: PUSH out of turn$"):
        workers[0].receive(SERVER, PUSH, 0)


def test_a_worker_listens_to_the_server_only():
    _, _, workers = make()
    message = "PUSH from ('10.0.0.7', 1), the server is ('10.0.0.9', 21003)"
    with pytest.raises(MessageError, match=f"^{re.escape(message)}$"):
        workers[0].receive(("10.0.0.7", 1), PUSH, 0)


def test_a_tensor_has_one_reduce_in_flight():
    _, _, workers = make()
    x = vectors(1)[0]
    workers[0].reduce(0, x, 0)
    message = "worker 0, ticket 1, tensor 0: ticket or tensor is in flight: wait for its result"
    with pytest.raises(ReduceError, match=f"^{re.escape(message)}$"):
        workers[0].reduce(1, x, 0)


def test_messages_round_trip():
    message = Message(Kind.PULL, 2**32 - 1, 5, 7, 4, 2**64 - 1, b"body")
    assert parse(message.pack()) == message
    assert kind_of(message.pack()) is Kind.PULL


CODECS = [
    ("thc", {}, 4, "u1"),
    ("thc", {"granularity": 100}, 4, "<u2"),
    ("thc", {"bits": 3, "granularity": 8}, 4, "u1"),
    ("thc", {"bits": 8, "granularity": 255}, 4, "<u2"),
    ("uniform_thc", {"rotate": False}, 3, "u1"),
    ("terngrad", {}, 4, "u1"),
    ("signsgd", {"vote": True}, 4, "u1"),
]


@pytest.mark.parametrize("name, params, quorum, kind", CODECS, ids=str)
def test_sums_of_codes_are_those_of_a_switch(name, params, quorum, kind):
    """The mean is that of the decoded sum, also with error feedback and for a quorum."""
    sizes = {"quorum": quorum, "workers": 4, "codec": (name, params), "pull_codec": ("sums", {})}
    held = [3] if quorum == 3 else []
    wired = wire(*make(error_feedback=True, **sizes), held=held)
    codec = codecs.ErrorFeedback(codecs.get(name, **params))
    states = [codec.start(N)] * 4
    for ticket in range(2):
        xs, seed = vectors(4, ticket), reduce_seed(wired.job, ticket)
        pairs = list(zip(xs, states, strict=True))[:quorum]
        shared = codec.combine([codec.local(x, state) for x, state in pairs])
        sent = [codec.codes(x, shared, seed, state, w) for w, (x, state) in enumerate(pairs)]
        states = [state for _, state in sent] + states[quorum:]
        sums = sum(np.array(codec.table)[codes] for codes, _ in sent)
        wired.reduce(ticket, xs)
        result = wired.delivered[0, ticket]
        assert result.sums == digest(sums.astype(kind).tobytes())
        assert np.array_equal(result.mean, codec.decode_sum(sums, N, quorum, shared, seed))
    wired.release()
    assert {wired.delivered[w, 1].sums for w in range(4)} == {result.sums}


def test_a_push_that_does_not_belong_to_the_sum_is_refused():
    job, server, workers = make(codec=("thc", {}), pull_codec=("sums", {}), workers=2, quorum=2)
    peers = [job.addresses.stream(w) for w in range(2)]
    xs = vectors(2)
    (first,), (second,) = (workers[w].reduce(0, xs[w], 0) for w in range(2))
    assert server.receive(peers[0], first.data, 0) == []
    push = codecs.get("thc").encode(xs[0], np.array([1.0, 1.0], np.float32), 0)[0]
    early = Message(Kind.PUSH, 0, N, 0, body=push)
    with pytest.raises(MessageError, match="shared statistic must be float32"):
        server.receive(peers[0], early.pack(), 0)
    server.receive(peers[1], second.data, 0)
    with pytest.raises(MessageError, match="statistic 1.0 of partition 0 is not the workers'"):
        server.receive(peers[0], early.pack(), 0)
    short = Message(Kind.PUSH, 0, N, 0, body=push[:-1])
    with pytest.raises(MessageError, match="truncated"):
        server.receive(peers[0], short.pack(), 0)


@pytest.mark.parametrize(
    "codec, message",
    [
        (("topk", {}), 'pull = "sums" with push = "topk": its codes cannot be summed'),
        (("switchml", {}), "the codes of switchml cannot be added by a server"),
        (("thc", {"bits": 8, "granularity": 4095}), "a sum of 64 workers needs 18 bits"),
    ],
    ids=str,
)
def test_codecs_whose_sums_a_server_does_not_answer(codec, message):
    workers = 64 if codec[0] == "thc" else 4
    with pytest.raises(UnsuitableCodecError) as error:
        make(codec=codec, pull_codec=("sums", {}), workers=workers, quorum=workers)
    assert str(error.value).startswith(message)
