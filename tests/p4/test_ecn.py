"""Marks of queues (ECN) in thc.p4 and shared.p4: how they are made, and how a sum carries them."""

import pytest
import shared_switch
from shared_switch import JOBS, PATIENCE, SharedSwitch, port_of, slot_of
from thc_switch import NORMS, ThcSwitch, checksum, frame, indices, short

from gradplane.hosts.wire.aggregation import Type
from gradplane.hosts.wire.payloads import ECN_CAPABLE, ECN_MARKED

WORKERS, THRESHOLD = 3, 8


@pytest.fixture(scope="module")
def switch() -> ThcSwitch:
    return ThcSwitch("p4/thc.p4", WORKERS, WORKERS, engine="jit", ecn=THRESHOLD)


def tos(packet: bytes) -> int:
    """Return the ToS byte of a frame, whose IP checksum is right."""
    assert checksum(packet[14:34]) == 0
    return packet[15]


def results(switch: ThcSwitch, round: int, bits: list[int], again: int | None = None) -> list[int]:
    """Send a packet of each worker with these ECN bits; return the results' ToS bytes."""
    out = []
    for worker, own in enumerate(bits):
        payload = indices(worker, 0, round)
        out += switch.switch.process(worker + 1, frame(worker, payload, tos=own))
    if again is not None:
        out = switch.switch.process(1, frame(0, indices(0, 0, round), tos=again))
    return [tos(packet) for _, packet in out]


@pytest.mark.parametrize("marked", range(WORKERS))
def test_a_sum_is_marked_if_a_packet_of_it_was(switch: ThcSwitch, marked: int) -> None:
    bits = [ECN_CAPABLE] * WORKERS
    bits[marked] = ECN_MARKED
    assert results(switch, 10 + 2 * marked, bits) == [ECN_MARKED] * WORKERS
    assert results(switch, 11 + 2 * marked, [ECN_CAPABLE] * WORKERS) == [ECN_CAPABLE] * WORKERS


def test_a_stored_result_keeps_its_mark(switch: ThcSwitch) -> None:
    bits = [ECN_CAPABLE, ECN_MARKED, ECN_CAPABLE]
    assert results(switch, 20, bits, again=ECN_CAPABLE) == [ECN_MARKED]


def test_who_knows_nothing_of_marks_gets_none(switch: ThcSwitch) -> None:
    switch.switch.state.links.queued[:] = 100
    assert results(switch, 30, [0] * WORKERS) == [0] * WORKERS
    switch.switch.state.links.queued[:] = 0


def test_a_packet_is_marked_at_the_threshold_of_its_own_queue(switch: ThcSwitch) -> None:
    queued = switch.switch.state.links.queued
    queued[:] = 0
    queued[1], queued[2] = THRESHOLD - 1, THRESHOLD
    found = results(switch, 40, [ECN_CAPABLE] * WORKERS)
    assert sorted(found) == [ECN_CAPABLE, ECN_CAPABLE, ECN_MARKED]
    passed = frame(0, b"of another flow", to="10.0.0.2", port=9, tos=0x50 | ECN_CAPABLE)
    assert [tos(packet) for _, packet in switch.switch.process(1, passed)] == [0x50 | ECN_MARKED]
    norms = [
        switch.switch.process(w + 1, frame(w, short(Type.NORM, w, 1, 1, NORMS[0]), tos=ECN_CAPABLE))
        for w in range(WORKERS)
    ]
    assert sorted(tos(packet) for _, packet in norms[-1]) == [ECN_CAPABLE, ECN_CAPABLE, ECN_MARKED]
    queued[:] = 0


# -- slots that jobs share


@pytest.fixture(scope="module")
def shared() -> SharedSwitch:
    return SharedSwitch(ecn=THRESHOLD)


def sent(shared: SharedSwitch, worker: int, slot: int, bits: int, **chunk: int) -> list[int]:
    """Send a worker's packet of a chunk; return the ToS bytes of what leaves to servers."""
    job = chunk.get("job", JOBS[0])
    payload = shared_switch.indices(job, worker, slot, chunk.get("round", 1), "direct" in chunk)
    out = shared.switch.process(
        port_of(job, worker), shared_switch.frame(port_of(job, worker), job, payload, bits)
    )
    assert all(port in [port_of(job, shared_switch.WORKERS) for job in JOBS] for port, _ in out)
    return [tos(packet) for _, packet in out]


@pytest.mark.parametrize("marked", range(shared_switch.WORKERS))
def test_a_partial_is_marked_if_a_packet_of_it_was(shared: SharedSwitch, marked: int) -> None:
    shared.clear()
    bits = [ECN_CAPABLE] * shared_switch.WORKERS
    bits[marked] = ECN_MARKED
    found = [sent(shared, worker, 0, own) for worker, own in enumerate(bits)]
    assert found == [[], [], [ECN_MARKED]]
    found = [sent(shared, worker, 0, ECN_CAPABLE, round=2) for worker in range(len(bits))]
    assert found == [[], [], [ECN_CAPABLE]]


def test_what_is_carried_away_has_its_own_marks(shared: SharedSwitch) -> None:
    """A marked packet carries an unmarked chunk away; a direct one takes its slot's marks along."""
    shared.clear()
    other = next(n for n in range(1, 9) if slot_of(JOBS[0], 1, n) == slot_of(JOBS[0], 0, 1))
    assert sent(shared, 0, 0, ECN_CAPABLE) == []
    for _ in range(PATIENCE - 1):
        assert sent(shared, 1, 1, ECN_MARKED, round=other) == [ECN_MARKED], "passed on"
    assert sent(shared, 1, 1, ECN_MARKED, round=other) == [ECN_CAPABLE], "the first chunk's"
    assert sent(shared, 1, 1, ECN_CAPABLE, round=other, direct=1) == [ECN_MARKED]
