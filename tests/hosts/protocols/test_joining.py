"""Workers that join: they get the donor's state, and nobody goes on before all of them have it."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from memory_network import make_job

from gradplane.hosts.absences import Absence
from gradplane.hosts.protocols.actions import Deliver, Forget, SendMessage, SetTimer
from gradplane.hosts.protocols.joining import Joining
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.results import Joined

N = 20


def state(worker):
    return Joined(np.full(N, worker, np.float32), np.full(N, -worker, np.float32))


class Group:
    """The workers of a job; messages wait in `mail` until they are passed on."""

    def __init__(self, workers, absences):
        self.job = replace(make_job(workers=workers), absences=absences)
        self.machines = [Joining(self.job, w) for w in range(workers)]
        self.peers = [self.job.stream_address(w) for w in range(workers)]
        self.mail, self.results, self.forgotten, self.timers = [], {}, set(), set()

    def perform(self, worker, actions):
        for action in actions:
            if isinstance(action, SendMessage):
                self.mail.append((worker, self.peers.index(action.peer), action.data))
            elif isinstance(action, Deliver):
                self.results[worker] = action
            elif isinstance(action, Forget):
                self.forgotten.add((worker, self.peers.index(action.peer)))
            elif isinstance(action, SetTimer):
                self.timers.add(worker)

    def join(self, worker, round):
        self.perform(worker, self.machines[worker].join(round, state(worker), 0))

    def deliver(self):
        while self.mail:
            source, to, data = self.mail.pop(0)
            self.perform(to, self.machines[to].receive(self.peers[source], data, 0))


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_newcomers_get_the_state_of_the_first_that_stayed(order):
    group = Group(4, (Absence(0, 2, 6), Absence(3, 0, 6)))
    for place, worker in enumerate(order):
        group.join(worker, 6)
        group.deliver()
        assert (len(group.results) == 4) == (place == 3)
    for worker, delivered in group.results.items():
        source = 1 if worker in (0, 3) else worker
        assert delivered.ticket == 6
        assert set(delivered.result.parameters) == {source}
        assert set(delivered.result.momentum) == {-source}
    stayed = {(1, 0), (1, 3), (2, 0), (2, 3)}
    assert stayed <= group.forgotten <= stayed | {(0, 3), (3, 0)}


def test_a_worker_that_crashes_after_others_are_back_hears_of_them():
    group = Group(3, (Absence(0, 2, 6), Absence(2, 5, 6)))
    for worker in (0, 1):
        group.join(worker, 6)
    group.deliver()  # the third worker hears of the first, in the life that ends now
    assert not group.results
    group.machines[2] = Joining(group.job, 2)
    group.join(2, 6)
    group.deliver()
    assert sorted(group.results) == [0, 1, 2]


def test_who_is_away_in_that_round_takes_no_part():
    group = Group(3, (Absence(0, 1, 4), Absence(2, 3, 9)))
    for worker in (0, 1):
        group.join(worker, 4)
    assert {to for _, to, _ in group.mail} == {1}
    group.deliver()
    assert sorted(group.results) == [0, 1]


def test_a_request_that_is_lost_is_repeated():
    group = Group(2, (Absence(1, 1, 4),))
    group.join(1, 4)
    assert group.timers == {1}
    group.mail.clear()  # the donor was restarting itself
    group.join(0, 4)
    group.deliver()
    assert group.results == {}
    for _ in range(2):
        group.perform(1, group.machines[1].timer("join", 10**9))
    group.deliver()
    assert sorted(group.results) == [0, 1]
    assert group.machines[1].timer("join", 2 * 10**9) == []


def test_wrong_messages_are_refused():
    group = Group(3, (Absence(1, 1, 4),))
    group.join(1, 4)
    machine, (_, donor, request) = group.machines[1], group.mail[0]
    assert donor == 0 and parse(request).kind is Kind.JOIN
    body = np.zeros(2 * N, "<f4").tobytes()
    short = Message(Kind.STATE, 4, n=N, body=body[:-4]).pack()
    with pytest.raises(MessageError, match="state of 20 values from worker 0, ours are 20"):
        machine.receive(group.peers[0], short, 0)
    with pytest.raises(MessageError, match="from worker 2"):
        machine.receive(group.peers[2], Message(Kind.STATE, 4, n=N, body=body).pack(), 0)
    with pytest.raises(MessageError, match="worker 2 does not join in round 4"):
        group.machines[0].receive(group.peers[2], request, 0)
    with pytest.raises(MessageError, match="which is not a worker of this job"):
        machine.receive(("10.9.9.9", 1), request, 0)
