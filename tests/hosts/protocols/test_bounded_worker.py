"""OptiReduce's workers: exact where everything comes, in time where it does not."""

import random
from dataclasses import replace

import numpy as np
import pytest
from bounded_network import MS, Together

from gradplane import codecs
from gradplane.hosts.config import UnsuitableCodecError
from gradplane.hosts.protocols.actions import Send
from gradplane.hosts.protocols.results import ReduceError
from gradplane.hosts.protocols.time_limits import TimeLimits
from gradplane.hosts.wire.payloads import Payloads


def vectors(workers: int, n: int = 3000, ticket: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng([workers, n, ticket])
    return list(rng.normal(size=(workers, n)).astype(np.float32))


@pytest.mark.parametrize("codec", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [1, 5, 3000, 70_000])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_all_have_the_mean_where_nothing_is_lost(workers: int, n: int, codec: str) -> None:
    network = Together(workers, codec=(codec, {}), observed=1)
    for ticket in range(3):
        network.reduce(ticket, vectors(workers, n, ticket))
        network.run()
        results = [found[ticket] for found in network.results]
        expected = np.mean(vectors(workers, n, ticket), axis=0)
        error = {"float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}[codec]
        assert np.abs(results[0].mean - expected).max() < error * max(1, np.abs(expected).max())
        assert {result.sums for result in results} == {results[0].sums}
        assert (results[0].counts == workers).all() and results[0].missed == 0


def test_lost_parts_leave_the_mean_of_the_others() -> None:
    network = Together(3, lost=lambda h: h["type"] == 1 and h["worker"] == 1)
    for ticket in range(3):
        network.reduce(ticket, vectors(3, ticket=ticket))
        network.run()
    own = {(r["worker"], r["ticket"]): r["lost"] for r in network.records}
    assert own[0, 1] == {"parts": [0, own[0, 1]["parts"][1]], "means": [0, own[0, 1]["means"][1]]}
    assert own[0, 2]["parts"][0] == own[0, 2]["parts"][1] // 2 > 0
    assert own[1, 2]["parts"][0] == own[1, 2]["means"][0] == 0
    (result,) = {found[2].sums for found in network.results}
    counts = network.results[0][2].counts
    assert set(counts.tolist()) == {2, 3} and network.results[0][2].missed == 0


def test_losses_spread_over_all_values() -> None:
    chance = random.Random(4)
    network = Together(4, lost=lambda h: chance.random() < 0.1)
    x = np.zeros(60_000, np.float32)
    x[:200] = 1
    for ticket in range(3):
        network.reduce(ticket, [x] * 4)
        network.run()
    error = network.results[0][2].mean - x
    assert network.results[0][2].missed > 5
    assert np.abs(error[:200]).max() < 0.4 and np.count_nonzero(error) > 30_000


def test_who_is_late_is_left_out_and_gets_the_means_at_once() -> None:
    network = Together(3)
    for ticket in range(4):
        late = {2: 500 * MS} if ticket == 2 else {}
        network.reduce(ticket, vectors(3, ticket=ticket), late)
        begun = network.now
        network.run()
        assert network.now - begun < (510 if ticket == 2 else 10) * MS
    counts = network.results[0][2].counts
    assert counts.max() == 2 and network.results[2][2].missed == 0
    assert network.machines[0].refused["late"] > 0
    assert (network.results[0][3].counts == 3).all()


def test_packets_that_are_early_wait_for_their_reduce() -> None:
    network = Together(2, observed=1)
    network.reduce(0, vectors(2), {1: 5 * MS})
    network.run()
    network.reduce(1, vectors(2, ticket=1), {1: MS + MS // 4})
    network.run()
    assert (network.results[0][1].counts == 2).all() and (network.results[1][1].counts == 2).all()


def test_damaged_strange_and_repeated_packets_are_counted() -> None:
    network = Together(2, observed=1)
    sent = []
    for ticket in range(2):
        for w, vector in enumerate(vectors(2, ticket=ticket)):
            actions = network.machines[w].reduce(ticket, vector, 0)
            sent += [action for action in actions if isinstance(action, Send) and w == 1]
            network._perform(w, actions)
        if not ticket:
            network.run()
    (send,) = sent
    source = network.job.addresses.worker_addresses[1]
    damaged = send.payloads.data.copy()
    damaged[:, -1] ^= 1
    machine = network.machines[0]
    machine.receive(*source, replace(send.payloads, data=damaged), 1)
    machine.receive("10.9.9.9", 1, send.payloads, 1)
    machine.receive(*source, Payloads.of([b"\xb7\x01", b""]), 1)
    machine.receive(*source, send.payloads.select(np.array([0, 0])), 1)
    n = len(send.payloads)
    assert machine.refused == {"malformed": n + 2, "stranger": n, "again": 1}


def test_limits_follow_from_times() -> None:
    limits = TimeLimits(ceiling=10_000, least=10)
    assert (limits.longest, limits.patience) == (10_000, 1000)
    for elapsed in range(100, 2100, 100):  # 20 of them
        limits.observe(0, elapsed)
    assert limits.longest == 1900
    assert limits.patience == 190  # own: 2000, but no longer than the longest
    limits.heard(1, 500)
    limits.heard(2, 600)
    assert limits.patience == 60
    limits.ended(0, 300, 0.5)
    assert limits.own(0) == 600
    limits.ended(0, 300, 0.0)
    assert limits.own(0) == 1900


def test_what_cannot_be_sent() -> None:
    with pytest.raises(UnsuitableCodecError, match="use float32, float16, bfloat16"):
        Together(codec=("thc", {}))
    network = Together(2, codec=("float16", {}))
    with pytest.raises(ReduceError, match="^worker 0, ticket 0: rotated: "):
        network.reduce(0, [np.full(4, 1e6, np.float32)] * 2)
        network.run()


@pytest.mark.parametrize("n", [0, 1, 3, 1000, 5000, 70_001])
def test_a_rotation_is_undone(n: int) -> None:
    x = np.random.default_rng(n).normal(size=n).astype(np.float32)
    y = codecs.rotated(x, 7)
    assert y.size == codecs.rotated_size(n) >= n
    assert np.linalg.norm(y) == pytest.approx(np.linalg.norm(x), rel=1e-5)
    assert np.abs(codecs.unrotated(y, n, 7) - x).max(initial=0) < 1e-5
