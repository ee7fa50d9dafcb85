"""All-gathers and broadcasts under any order of messages."""

from collections import Counter
from random import Random

import pytest
from host_configs import make_job

from gradplane.hosts.protocols.actions import Deliver, SendMessage
from gradplane.hosts.protocols.gathering import Gathering
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse


def play(workers, begun, seed):
    """Let all workers begin the same gathers, each of (source, bytes of all), at any time; return
    what each worker got by ticket, and how often each sent."""
    job = make_job(aggregation="ps", workers=workers)
    machines = [Gathering(job, worker) for worker in range(workers)]
    random, found = Random(seed), [{} for _ in machines]
    to_begin = [list(enumerate(begun)) for _ in machines]
    under_way, sent = [], Counter()

    def perform(worker, actions):
        for action in actions:
            if isinstance(action, SendMessage):
                sent[worker, parse(action.data).ticket] += 1
                under_way.append((worker, job.addresses.streams.index(action.peer), action.data))
            else:
                assert isinstance(action, Deliver)
                found[worker][action.ticket] = action.result.parts

    while under_way or any(to_begin):
        if any(to_begin) and random.random() < 0.3 or not under_way:
            worker = random.choice([w for w in range(workers) if to_begin[w]])
            ticket, (source, parts) = to_begin[worker].pop(0)
            perform(worker, machines[worker].begin(ticket, parts[worker], source))
        else:
            sender, to, data = under_way.pop(random.randrange(len(under_way)))
            perform(to, machines[to].receive(job.addresses.streams[sender], data, 0))
    return found, sent


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5, 8, 9])
def test_all_get_the_same_whatever_comes_first(workers):
    random = Random(workers)
    for seed in range(5):
        sources = [random.choice([None, random.randrange(workers)]) for _ in range(6)]
        begun = [
            (source, [random.randbytes(10 + ticket) for _ in range(workers)])
            for ticket, source in enumerate(sources)
        ]
        found, sent = play(workers, begun, seed)
        expected = {
            ticket: tuple(parts) if source is None else (parts[source],)
            for ticket, (source, parts) in enumerate(begun)
        }
        assert found == [expected] * workers
        for ticket, source in enumerate(sources):
            each = [sent[worker, ticket] for worker in range(workers)]
            if source is None:
                assert each == [workers - 1] * workers
            else:
                assert sum(each) == workers - 1
                assert max(each) == each[source] == (workers - 1).bit_length()


def test_a_message_that_does_not_fit_is_refused():
    job = make_job(aggregation="ps", workers=4)
    peers, stranger = job.addresses.streams, ("10.9.9.9", 1)
    machine = Gathering(job, 2)
    machine.begin(0, b"part")
    assert machine.receive(peers[1], message(0, 1, b"part"), 0) == []
    for peer, ticket, owner, body, count in (
        (peers[1], 0, 1, b"part", 0),  # again
        (peers[3], 0, 0, b"part", 0),  # by another worker
        (stranger, 0, 0, b"part", 0),
        (peers[0], 0, 0, b"longer", 0),
        (peers[0], 0, 0, b"part", 1),  # of a broadcast
        (peers[1], 1, 0, b"part", 1),  # which comes from worker 0 itself
        (peers[0], 1, 4, b"part", 1),
    ):
        with pytest.raises(MessageError, match=rf"^{len(body)} bytes of worker {owner} from "):
            machine.receive(peer, message(ticket, owner, body, count), 0)
    assert machine.missing(0) == [0, 3]


def message(ticket, owner, body, count=0):
    return Message(Kind.PART, ticket, len(body), tensor=owner, count=count, body=body).pack()
