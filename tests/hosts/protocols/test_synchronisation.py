import re
from itertools import permutations

import numpy as np
import pytest
from memory_network import make_job

from gradplane.hosts.protocols.actions import Deliver, SendMessage
from gradplane.hosts.protocols.messages import Kind, Message, MessageError
from gradplane.hosts.protocols.results import ReduceError
from gradplane.hosts.protocols.synchronisation import Synchronisation

N = 50


def synchronise(missed, threshold=2, start=None, epoch=0):
    """Return results by worker; the workers start in the order `start`, messages in between."""
    job = make_job(workers=len(missed), sync_threshold=threshold)
    syncs = [Synchronisation(job, w) for w in range(job.workers)]
    addresses = [job.addresses.stream(w) for w in range(job.workers)]
    results, queue = {}, []

    def perform(w, actions):
        for action in actions:
            if isinstance(action, Deliver):
                assert action.ticket == epoch
                results[w] = action.result
            else:
                assert isinstance(action, SendMessage)
                queue.append((addresses[w], action))

    for w in start or range(job.workers):
        perform(w, syncs[w].synchronise(epoch, missed[w], np.full(N, w, np.float32), 0))
        while queue:
            source, message = queue.pop(0)
            to = addresses.index(message.peer)
            perform(to, syncs[to].receive(source, message.data, 0))
    return [results[w] for w in range(job.workers)]


@pytest.mark.parametrize(
    "missed, source",
    [
        ([0, 0, 0, 0], None),
        ([2, 1, 2, 0], None),
        ([3, 0, 1, 0], 1),
        ([0, 3, 0, 0], 0),
        ([9, 8, 7, 6], 3),
        ([9, 9, 9, 9], 0),
        ([9], 0),
    ],
)
def test_who_is_copied(missed, source):
    for w, result in enumerate(synchronise(missed)):
        assert result.source == source
        assert set(result.parameters) == {w if source is None else source}


def test_bytes_are_counted_where_they_are_sent_and_received():
    results = synchronise([5, 0, 1, 0])
    assert [result.nbytes for result in results] == [4 * N, 3 * 4 * N, 4 * N, 4 * N]
    assert [result.nbytes for result in synchronise([0, 0])] == [0, 0]


def test_the_order_of_starting_does_not_matter():
    for start in permutations(range(4)):
        assert [result.source for result in synchronise([3, 2, 0, 1], start=start)] == [2] * 4


def test_an_epoch_synchronises_once():
    sync = Synchronisation(make_job(), 1)
    sync.synchronise(4, 0, np.zeros(N, np.float32), 0)
    message = "worker 1: epoch 4 is being synchronised already"
    with pytest.raises(ReduceError, match=f"^{message}$"):
        sync.synchronise(4, 0, np.zeros(N, np.float32), 0)


@pytest.mark.parametrize(
    "peer, sent, message",
    [
        (
            ("10.0.0.7", 1),
            Message(Kind.REPORT, 0),
            "synchronisation message from ('10.0.0.7', 1), which is not a worker of this job",
        ),
        (
            ("10.0.0.2", 21003),
            Message(Kind.DECISION, 0, n=1, count=1),
            "decision of worker 1 for worker 1",
        ),
        (
            ("10.0.0.1", 21003),
            Message(Kind.DECISION, 0, n=4, count=1),
            "decision of worker 0 for worker 4",
        ),
        (("10.0.0.1", 21003), Message(Kind.PARAMETERS, 0, n=4), "4 parameters in 0 bytes"),
    ],
)
def test_messages_that_are_refused(peer, sent, message):
    with pytest.raises(MessageError, match=f"^{re.escape(message)}$"):
        Synchronisation(make_job(), 2).receive(peer, sent.pack(), 0)
