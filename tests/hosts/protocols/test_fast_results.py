"""The kernel of ordinary results does what the state machine does, and leaves it all others."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_network import AGGREGATOR, TIMEOUT, make_job

from gradplane._addresses import address_of
from gradplane.hosts.protocols.actions import Send
from gradplane.hosts.protocols.fast_results import NO_ANSWER, UNTAKEN, take, take_batch
from gradplane.hosts.protocols.results import CUT, ReduceError
from gradplane.hosts.protocols.switch_worker import TIMER, SwitchWorker
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type
from gradplane.hosts.wire.payloads import Payloads

X = np.linspace(-1, 1, 16_000, dtype=np.float32)  # 16 chunks: each slot four times
NORM = aggregation.norm_bits(np.float32(50))
PEER = 7  # the first word of the aggregator's socket address
JOBS = [
    {"reliability": "retransmit"},
    {"reliability": "retransmit", "quorum": 2},
    {"reliability": "lossy"},
    {"reliability": "retransmit", "sum_bits": 16},
    {"reliability": "retransmit", "sum_bits": 32},
]


class Fast:
    """A worker whose packets are offered to the kernel first."""

    def __init__(self, worker):
        self.worker, self.record, self.taken = worker, worker.record, 0
        self._counted = [0, 0, 0]

    @property
    def counted(self):
        """Return the results and answers that the record has counted."""
        self.count()
        return self._counted

    def count(self):
        """Take the record's counts, as a host does at the end of a round."""
        for place, number in enumerate(self.record.take_counts()):
            self._counted[place] += number

    def receive(self, payload, now):
        """Return the payloads and other actions that answer a packet."""
        data = np.frombuffer(bytearray(payload), np.uint8)
        answer, size = take(self.record.address, address_of(data), len(data), now)
        if answer == UNTAKEN:
            return shown(self.worker.receive(*AGGREGATOR, Payloads.of([payload]), now))
        self.taken += 1
        return [] if answer == NO_ANSWER else [ctypes.string_at(answer, size)]

    def receive_batch(self, payloads, senders, now):
        """Take a batch as a socket does: as many as the kernel takes, then one, and again."""
        stride = max(map(len, payloads))
        data = np.zeros((len(payloads), stride), np.uint8)
        for row, payload in zip(data, payloads, strict=True):
            row[: len(payload)] = np.frombuffer(payload, np.uint8)
        names = np.array([[sender, 0] for sender in senders], np.uint64)
        sizes = np.array([len(payload) for payload in payloads], np.uint32)
        answers = np.zeros((len(payloads), 2), np.uint64)
        found, at = [], 0
        while at < len(payloads):
            rest = data[at:], names[at:], sizes[at:], len(payloads) - at
            taken, count, _ = take_batch(self.record.address, np.uint64(PEER), *rest, now, answers)
            self.taken += taken
            places = answers[:count].tolist()
            found += [ctypes.string_at(address, size) for address, size in places]
            at += taken
            if at < len(payloads):
                if senders[at] == PEER:
                    one = Payloads.of([payloads[at]])
                    found += shown(self.worker.receive(*AGGREGATOR, one, now))
                at += 1
        return found


def shown(actions):
    """Return what a list of actions does; payloads as bytes."""
    found = []
    for action in actions:
        found += list(action.payloads) if isinstance(action, Send) else [repr(action)]
    return found


def outcome(receive):
    """Return what a worker does about a packet, or what it says when it ends."""
    try:
        return receive()
    except ReduceError as error:
        return [str(error)]


def packet(job, slot, round, value, kind=Type.SUMS, count=4, bitmap=15, norm=NORM, bare=False):
    place, flags = (slot, round, job.transport.sum_bits), aggregation.BARE * bare
    header = Header(kind, job.number, 0, *place, norm, bitmap, flags, count=count)
    body = bytes([value]) * aggregation.body_size(kind, job.transport.sum_bits, 4, flags)
    return header.pack() + body


steps = st.lists(
    st.one_of(
        st.tuples(st.just("next"), st.integers(0, 1), st.integers(0, 60)),
        st.tuples(st.just("next"), st.integers(0, 1), st.integers(0, 60)),
        st.tuples(st.just("bare"), st.integers(0, 1), st.integers(0, 1)),
        st.tuples(st.just("norm"), st.just(0), st.just(0)),
        st.tuples(st.just("any"), st.integers(0, 5), st.integers(1, 5)),
        st.tuples(st.just("other norm"), st.integers(0, 3), st.integers(1, 4)),
        st.tuples(st.just("notice"), st.integers(0, 3), st.integers(1, 4)),
        st.tuples(st.just("cut"), st.integers(0, 60), st.integers(1, 4)),
        st.tuples(st.just("too large"), st.integers(0, 3), st.integers(1, 4)),
        st.tuples(st.just("timer"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("count"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@pytest.mark.parametrize("tensor", [0, CUT])
@pytest.mark.parametrize("changes", JOBS)
@given(steps=steps)
def test_it_is_the_state_machine(changes, tensor, steps):
    job = make_job(**changes)
    plain, fast = SwitchWorker(job, 1), Fast(SwitchWorker(job, 1))
    for worker in (plain, fast.worker):
        worker.reduce(0, X, 0, tensor)
    now, received = 0, 0
    script = [packet(job, 0, 1, 0, Type.NORM_RESULT)]
    for kind, a, b in steps:
        match kind:
            case "next" | "bare":  # the result of a chunk whose turn it is
                waits = [number for what, number in plain.waits if what == "chunk"]
                number = waits[a % len(waits)] if waits else 0
                place = number % job.transport.slots, number // job.transport.slots + 1
                script.append(packet(job, *place, b, bare=kind == "bare"))
            case "norm":
                for number in [number for what, number in plain.waits if what == "norm"]:
                    place = number % job.transport.slots, number // job.transport.slots + 1
                    script.append(packet(job, *place, 0, Type.NORM_RESULT))
            case "any":
                script.append(packet(job, a, b, 7))
            case "other norm":
                script.append(packet(job, a, b, 7, norm=NORM + 1))
            case "notice":
                script.append(packet(job, a, b, 0, Type.STRAGGLER))
            case "cut":
                script.append(packet(job, 0, b, 7)[:a])
            case "too large":
                script.append(packet(job, a, b, 200, count=1, bitmap=1))
            case "timer":
                now += a * TIMEOUT
                for worker in (plain, fast.worker):
                    worker.timer(TIMER, now)
            case "count":
                fast.count()
        for payload in script:
            now += 1000
            received += 1
            one = Payloads.of([payload])
            theirs = outcome(lambda: shown(plain.receive(*AGGREGATOR, one, now)))  # noqa: B023
            assert outcome(lambda: fast.receive(payload, now)) == theirs  # noqa: B023
        script = []
        assert fast.worker.waits == plain.waits
    now += 10 * TIMEOUT
    ends = [shown(worker.timer(TIMER, now)) for worker in (plain, fast.worker)]
    assert ends[0] == ends[1]
    assert fast.worker.refused == plain.refused
    assert fast.counted[0] == fast.taken


@pytest.mark.parametrize("changes", JOBS)
@given(st.lists(st.lists(st.sampled_from(["next", "next", "next", "notice", "stranger", "cut"]),
                         min_size=1, max_size=9), max_size=9))  # fmt: skip
def test_a_batch_is_its_packets_one_by_one(changes, batches):
    job = make_job(**changes)
    plain, fast = SwitchWorker(job, 1), Fast(SwitchWorker(job, 1))
    for worker in (plain, fast.worker):
        worker.reduce(0, X, 0)
        worker.receive(*AGGREGATOR, Payloads.of([packet(job, 0, 1, 0, Type.NORM_RESULT)]), 1)
    now = 1000
    for kinds in batches:
        now += 1000
        payloads, senders, expected = [], [], []
        for kind in kinds:
            waits = [number for what, number in plain.waits if what == "chunk"]
            number = waits[len(payloads) % len(waits)] if waits else 0
            place = number % job.transport.slots, number // job.transport.slots + 1, len(payloads)
            payload = packet(job, *place, Type.STRAGGLER if kind == "notice" else Type.SUMS)
            payloads.append(payload[:-1] if kind == "cut" else payload)
            senders.append(PEER + 1 if kind == "stranger" else PEER)
            if kind != "stranger":
                one = Payloads.of(payloads[-1:])
                expected += shown(plain.receive(*AGGREGATOR, one, now))
        assert fast.receive_batch(payloads, senders, now) == expected
        assert fast.worker.waits == plain.waits
    ends = [shown(worker.timer(TIMER, now + 10 * TIMEOUT)) for worker in (plain, fast.worker)]
    assert ends[0] == ends[1]
    assert fast.worker.refused == plain.refused
    assert fast.counted[0] == fast.taken


def test_the_ordinary_course_of_a_reduce_is_taken():
    job = make_job(reliability="retransmit")
    fast = Fast(SwitchWorker(job, 1))
    fast.worker.reduce(0, X, 0)
    fast.receive(packet(job, 0, 1, 0, Type.NORM_RESULT), 1000)
    for number in range(15):
        fast.receive(packet(job, number % 4, number // 4 + 1, number), 2000 + number)
    assert fast.taken == 15
    actions = fast.worker.receive(*AGGREGATOR, Payloads.of([packet(job, 3, 4, 15)]), 3000)
    (delivered,) = [action for action in actions if type(action).__name__ == "Deliver"]
    assert delivered.result.missed == 0
    assert fast.counted == [15, 14, 0]


def test_results_of_others_parts_are_taken_without_sums():
    job = make_job(reliability="retransmit")
    fast = Fast(SwitchWorker(job, 1))
    fast.worker.reduce(0, X, 0, CUT)
    for number in range(16):
        place = number % 4, number // 4 + 1
        if number % 4 == 0:
            fast.receive(packet(job, *place, 0, Type.NORM_RESULT), 1000 + number)
        mine = 4 <= number < 8
        fast.receive(packet(job, *place, number, bare=not mine), 2000 + number)
    assert fast.counted[2] > 6
    assert fast.counted[0] == fast.taken
    assert fast.worker.waits == []


def reduced(job, changed):
    """Return what a worker's reduce gives, with other sums in these chunks."""
    worker, bits = SwitchWorker(job, 1), job.transport.sum_bits
    worker.reduce(0, X, 0)
    fast, chunks = Fast(worker), 2 * bits
    fast.receive(packet(job, 0, 1, 0, Type.NORM_RESULT), 1000)
    for number in range(chunks):
        value = number % 16 + 20 * (number in changed)
        header = packet(job, number % 4, number // 4 + 1, 0)[: aggregation.HEADER_SIZE]
        payload = header + value.to_bytes(bits // 8, "big") * aggregation.LANES[bits]
        if number < chunks - 1:
            fast.receive(payload, 2000 + number)
    actions = worker.receive(*AGGREGATOR, Payloads.of([payload]), 3000)
    (found,) = [action.result for action in actions if type(action).__name__ == "Deliver"]
    return found.sums, found.mean.tobytes()


@pytest.mark.parametrize("changes", JOBS)
@pytest.mark.parametrize("changed", [(0,), (7,), (15, 31, 63), (0, 7, 15)])
def test_workers_of_one_job_may_get_different_sums(changes, changed):
    job = make_job(**changes)
    found = [reduced(job, other) for other in ((), changed, ())]
    alone = [reduced(make_job(**changes), other) for other in ((), changed)]
    assert found == [*alone, alone[0]]
    assert alone[0] != alone[1]


def test_counts_are_taken_while_a_reduce_is_in_flight():
    job = make_job(reliability="retransmit")
    fast = Fast(SwitchWorker(job, 1))
    fast.worker.reduce(0, X, 0)
    fast.receive(packet(job, 0, 1, 0, Type.NORM_RESULT), 1000)
    for number in range(15):
        fast.receive(packet(job, number % 4, number // 4 + 1, number), 2000 + number)
        fast.count()
    assert fast.counted == [15, 14, 0]
    actions = fast.worker.receive(*AGGREGATOR, Payloads.of([packet(job, 3, 4, 15)]), 3000)
    assert [type(action).__name__ for action in actions].count("Deliver") == 1


def test_two_reduces_in_flight_are_left_to_the_state_machine():
    job = make_job(reliability="retransmit")
    fast = Fast(SwitchWorker(job, 1))
    fast.worker.reduce(0, X, 0)
    fast.worker.reduce(1, X, 0, tensor=1)
    fast.receive(packet(job, 0, 1, 0, Type.NORM_RESULT), 1000)
    fast.receive(packet(job, 0, 1, 5), 2000)
    assert fast.taken == 0
