"""Nothing that comes to a slot keeps it from completing: damaged headers, rounds that are far
ahead, workers that were started anew, and the round after 2^32 - 1."""

import numpy as np
import pytest
from thc_switch import NORMS, PROGRAMS, TABLE, ThcSwitch, codes, indices, short

from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import HEADER_SIZE, Type

LAST = 2**32 - 1
ROUND_AHEAD, OTHER_EPOCH, STRAGGLER = 13, 14, 5
each = pytest.mark.parametrize(
    ("path", "engine"), [(path, engine) for path in PROGRAMS for engine in ("interpreter", "jit")]
)


def answers(switch: ThcSwitch, worker: int, payload: bytes) -> list[tuple[int, Type, int, int]]:
    """Return receiver, type, round and epoch of the answers to a worker's packet."""
    headers = [(to, aggregation.parse(out)[0]) for to, out in switch.send(worker + 1, payload)]
    return [(to, header.type, header.round, header.epoch) for to, header in headers]


def completes(switch: ThcSwitch, slot: int, round: int, epoch: int = 1) -> bool:
    """Let two workers send their codes; return whether both get the right sums at the end."""
    assert switch.send(1, indices(0, slot, round, epoch=epoch)) == []
    out = switch.send(2, indices(1, slot, round, epoch=epoch))
    right = TABLE[np.stack([codes(w, slot, round) for w in range(2)])].sum(axis=0)
    for _, payload in out:
        header, body = aggregation.parse(payload)
        assert (header.type, header.round, header.epoch) == (Type.SUMS, round, epoch)
        assert (aggregation.unpack_sums(body, 8) == right).all()
    return [to for to, _ in out] == [0, 1]


@each
def test_a_header_with_a_flipped_bit_is_dropped_and_counted(path: str, engine: str) -> None:
    switch = ThcSwitch(path, 2, 2, engine=engine)
    good = indices(0, 0, 1)
    for bit in range(8 * HEADER_SIZE):
        packet = bytearray(good)
        packet[bit // 8] ^= 1 << bit % 8
        assert switch.send(1, bytes(packet)) == []
    assert switch.counted("damaged") == {1: 8 * HEADER_SIZE - 4}
    assert switch.counted("other_version") == {1: 4}
    assert switch.events() == {}
    assert completes(switch, 0, 1)


@each
def test_packets_of_version_1_are_dropped_and_counted(path: str, engine: str) -> None:
    switch = ThcSwitch(path, 2, 2, engine=engine)
    norm = bytes.fromhex("11 00 03 00 00 00 00 08 00 00 00 01") + bytes(12)
    assert switch.send(1, norm) == []
    assert switch.send(2, b"\x13" + norm[1:] + bytes(512)) == []
    assert switch.counted("other_version") == {1: 1, 2: 1}
    assert switch.events() == {} and switch.counted("damaged") == {}


@each
def test_one_packet_of_a_higher_round(path: str, engine: str) -> None:
    """Where no round is left out, a slot takes its round and the next; an unused one takes any."""
    switch = ThcSwitch(path, 2, 2, engine=engine, next_only=True)
    assert completes(switch, 0, 500)
    assert switch.send(1, indices(0, 0, 501)) == []
    for round in (503, 600, 501 + 2**31 - 1):
        assert switch.send(2, indices(1, 0, round)) == []
    assert switch.events()[ROUND_AHEAD] == 3
    assert answers(switch, 1, indices(1, 0, 501)) == [(w, Type.SUMS, 501, 1) for w in range(2)]
    assert completes(switch, 0, 502)

    lossy = ThcSwitch(path, 2, 2, engine=engine)
    assert lossy.send(1, indices(0, 0, 1)) == []
    assert completes(lossy, 0, 7)


@each
def test_a_worker_that_begins_again_at_the_first_round(path: str, engine: str) -> None:
    """It is told where the slot is; in the job's next epoch all slots are as if unused."""
    switch = ThcSwitch(path, 2, 2, engine=engine, next_only=True)
    assert completes(switch, 0, 500)
    assert answers(switch, 0, indices(0, 0, 1)) == [(0, Type.STRAGGLER, 500, 1)]
    norm = short(Type.NORM, 0, 0, 500, NORMS[0])
    assert switch.send(1, norm) == []

    switch.raise_epoch(2)
    for packet in (indices(0, 0, 501), norm, short(Type.STATUS, 0, 0, 500)):
        assert answers(switch, 0, packet) == [(0, Type.EPOCH, 0, 2)]
    assert switch.events()[OTHER_EPOCH] == 3
    status = short(Type.STATUS, 0, 0, 1, epoch=2)
    assert answers(switch, 0, status) == [(0, Type.STATUS, 0, 2)]
    assert completes(switch, 0, 1, epoch=2)
    for worker in (0, 1):
        again = short(Type.NORM, worker, 0, 1, NORMS[0], epoch=2)
        out = answers(switch, worker, again)
    assert out == [(w, Type.NORM_RESULT, 1, 2) for w in range(2)]


@each
@pytest.mark.parametrize("next_only", [False, True])
def test_the_round_after_the_last_is_0(path: str, engine: str, next_only: bool) -> None:
    switch = ThcSwitch(path, 2, 2, engine=engine, next_only=next_only)
    for round in (LAST - 1, LAST, 0, 1):
        assert completes(switch, 3, round)
        late = answers(switch, 0, indices(0, 3, round - 1 & LAST))
        assert late == [(0, Type.STRAGGLER, round, 1)]
        norms = [answers(switch, w, short(Type.NORM, w, 3, round, NORMS[0])) for w in range(2)]
        assert norms == [[], [(w, Type.NORM_RESULT, round, 1) for w in range(2)]]
    assert switch.events()[STRAGGLER] == 4
