"""Workers that join: they get the donor's state, and nobody goes on before all of them have it."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_network import make_job

from gradplane.hosts.absences import Absence, joining
from gradplane.hosts.protocols.actions import Deliver, Forget, SendMessage, SetTimer
from gradplane.hosts.protocols.messages import Kind, Message, MessageError, parse
from gradplane.hosts.protocols.results import Joined
from gradplane.hosts.protocols.synchronisation import Joining

N = 20


def state(worker):
    return Joined(np.full(N, worker, np.float32), np.full(N, -worker, np.float32))


class Group:
    """The workers of a job; messages wait in `mail` until they are passed on."""

    def __init__(self, workers, absences):
        self.job = make_job(workers=workers).changed(absences=absences)
        self.machines = [Joining(self.job, w) for w in range(workers)]
        self.peers = [self.job.addresses.stream(w) for w in range(workers)]
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
            self.deliver_one()

    def deliver_one(self, lost=False):
        if self.mail:
            source, to, data = self.mail.pop(0)
            if not lost:
                self.perform(to, self.machines[to].receive(self.peers[source], data, 0))

    def ask_again(self):
        for worker, machine in enumerate(self.machines):
            self.perform(worker, machine.timer("join", 10**9))

    def wait(self):
        self.ask_again()
        self.deliver()


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
    assert sorted(group.results) == [0, 1]
    group.wait()
    assert sorted(group.results) == [0, 1, 2]


def test_an_announcement_is_not_given_up_before_the_new_life_is_heard_of():
    group = Group(2, (Absence(0, 1, 2), Absence(1, 3, 4)))
    group.join(0, 2)
    group.join(1, 2)
    group.deliver()
    assert sorted(group.results) == [0, 1]
    group.forgotten.clear()
    group.join(0, 4)  # the other may not have heard of round 2 yet
    assert (0, 1) not in group.forgotten
    group.machines[1] = Joining(group.job, 1)
    group.join(1, 4)
    group.deliver()
    assert (0, 1) in group.forgotten
    assert {delivered.ticket for delivered in group.results.values()} == {4}


@given(st.data())
def test_every_worker_ends_whatever_is_lost(data):
    """Workers run at paces of their own through all rounds, as with a quorum of one; each message
    may be lost, and is if its receiver has crashed since."""
    workers, rounds = data.draw(st.integers(2, 4), "workers"), 9
    schedule = []
    for worker in range(1, workers):  # worker 0 stays, so that there is a donor
        times = sorted(
            data.draw(st.sets(st.integers(0, rounds - 1), min_size=2, max_size=4), "times")
        )
        pairs = zip(times[::2], times[1::2], strict=False)
        schedule += [Absence(worker, first, back) for first, back in pairs]
    group = Group(workers, tuple(schedule))
    at = [0] * workers

    def advance(worker):
        while at[worker] < rounds:
            group.results.pop(worker, None)
            away = [a for a in schedule if a.worker == worker and a.first == at[worker]]
            if away:
                group.machines[worker] = Joining(group.job, worker)
                group.mail = [mail for mail in group.mail if mail[1] != worker]
                at[worker] = away[0].back
            if joining(schedule, at[worker]):
                group.join(worker, at[worker])
                if worker not in group.results:
                    return
            at[worker] += 1
        group.results.pop(worker, None)

    def go_on():
        for worker in list(group.results):
            at[worker] += 1
            advance(worker)

    for worker in data.draw(st.permutations(range(workers)), "order"):
        advance(worker)
    for lost in data.draw(st.lists(st.booleans(), min_size=20, max_size=60), "lost"):
        group.deliver_one(lost)
        go_on()
    for _ in range(4 * rounds):
        group.deliver()
        go_on()
        group.ask_again()
    assert at == [rounds] * workers


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
