"""The rules of DESIGN.md, one by one, on the model that stands for them."""

import numpy as np
import pytest
from switch_model import Flight, Member, SwitchModel

from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type

TABLE = [0, 2, 3, 5, 7, 9, 11, 13, 17, 19, 21, 23, 25, 27, 28, 30]


def make(quorum=2, **options):
    """Return a model with two workers on ports 1 and 2, and four slots."""
    return SwitchModel(3, [Member(0, 1), Member(1, 2)], quorum, 4, TABLE, **options)


def send(model, worker, kind=Type.INDICES, index=1, port=None, norm=5, **fields):
    fields = {"slot": 0, "round": 1, "sum_bits": model.sum_bits} | fields
    header = Header(kind, 3, worker, norm=norm, **fields)
    body = b""
    if kind is Type.INDICES:
        width = aggregation.LANES[fields["sum_bits"]]
        body = aggregation.pack_indices(np.full(width, index, np.uint8), fields["sum_bits"], 4)
    out = model.receive(port or worker + 1, header.pack() + body)
    return [(to, *aggregation.parse(payload)) for to, payload in out]


def summary(out):
    """Return receiver, type, round, count and bitmap."""
    return [(to, h.type, h.round, h.count, h.bitmap) for to, h, _ in out]


@pytest.mark.parametrize("sum_bits", [8, 16, 32])
def test_the_last_of_the_quorum_sends_the_sums_to_all(sum_bits):
    model = make(sum_bits=sum_bits)
    assert send(model, 1, index=15) == []
    out = send(model, 0, index=1)
    assert summary(out) == [(0, Type.SUMS, 1, 2, 3), (1, Type.SUMS, 1, 2, 3)]
    assert {tuple(aggregation.unpack_sums(body, sum_bits)) for _, _, body in out} == {
        (32,) * aggregation.LANES[sum_bits]
    }


def test_a_retransmission_counts_once_and_is_answered_when_closed():
    model = make()
    assert send(model, 0) == []
    assert send(model, 0) == []
    first = send(model, 1)
    again = send(model, 0)
    assert summary(again) == [(0, Type.SUMS, 1, 2, 3)]
    assert again[0][1:] == first[0][1:]


def test_beyond_the_quorum_nothing_is_added():
    model = make(quorum=1)
    first = send(model, 0, index=1)
    late = send(model, 1, index=15)
    assert summary(late) == [(1, Type.SUMS, 1, 1, 1)]
    assert late[0][2] == first[0][2]


def test_a_higher_round_resets_the_slot_and_a_lower_gets_a_notice():
    model = make()
    send(model, 0)
    assert send(model, 0, round=2) == []
    assert summary(send(model, 1, round=1)) == [(1, Type.STRAGGLER, 2, 1, 1)]
    assert summary(send(model, 1, round=2))[0] == (0, Type.SUMS, 2, 2, 3)


def test_a_packet_lost_between_passes_is_completed_by_its_retransmission():
    lost = {(0, 3)}
    model = make(lose_pass=lambda worker, header, number: (worker, number) in lost)
    assert send(model, 0) == []
    assert send(model, 1) == []
    lost.clear()
    out = send(model, 0, index=1)
    assert summary(out) == [(0, Type.SUMS, 1, 2, 3), (1, Type.SUMS, 1, 2, 3)]
    assert set(out[0][2]) == {4}


def test_packets_may_come_between_passes():
    model = make()
    flights = []
    for worker in (0, 1):
        header = Header(Type.INDICES, 3, worker, 0, 1, 8)
        body = aggregation.pack_indices(np.ones(1024, np.uint8), 8, 4)
        flights.append(model.begin(worker + 1, header.pack() + body))
    while isinstance(flights[1], Flight):
        flights = [model.step(flight) for flight in flights]
    assert flights[0] == []
    assert [to for to, _ in flights[1]] == [0, 1]


def test_the_norm_is_the_largest_and_repeated():
    model = make()
    assert send(model, 0, Type.NORM, norm=7) == []
    assert send(model, 0, Type.NORM, norm=9) == []
    out = send(model, 1, Type.NORM, norm=5)
    assert [(to, h.type, h.norm) for to, h, _ in out] == [
        (0, Type.NORM_RESULT, 7),
        (1, Type.NORM_RESULT, 7),
    ]
    assert [(to, h.norm) for to, h, _ in send(model, 0, Type.NORM, norm=9)] == [(0, 7)]
    assert summary(send(model, 1, Type.NORM, round=0)) == [(1, Type.STRAGGLER, 1, 2, 3)]


@pytest.mark.parametrize("norm", [0x80000000, 0x7F800000, 0x7FC00000, 2**32 - 1])
def test_norms_that_are_refused(norm):
    model = make(quorum=1)
    assert send(model, 0, Type.NORM, norm=norm) == []


def test_indices_of_another_norm_are_refused():
    model = make()
    send(model, 0, norm=5)
    assert send(model, 1, norm=6) == []
    assert summary(send(model, 1, norm=5))[0] == (0, Type.SUMS, 1, 2, 3)


@pytest.mark.parametrize(
    "fields",
    [
        {"port": 2},
        {"passed": 1},
        {"slot": 4},
        {"sum_bits": 16},
        {"kind": Type.SUMS},
        {"kind": Type.STATUS, "flags": 1},
    ],
)
def test_what_is_dropped(fields):
    model = make(quorum=1)
    if fields.get("kind") is Type.SUMS:
        header = Header(Type.SUMS, 3, 0, 0, 1, 8)
        assert model.receive(1, header.pack() + bytes(1024)) == []
    else:
        assert send(model, 0, **fields) == []
    assert model.receive(1, b"short") == []
    assert summary(send(model, 0))[0] == (0, Type.SUMS, 1, 1, 1)


def test_status():
    model = make()
    send(model, 1)
    (open_,) = send(model, 0, Type.STATUS)
    assert (open_[0], open_[1].flags, open_[1].bitmap, open_[1].count) == (0, 1, 2, 1)
    send(model, 0)
    assert send(model, 0, Type.STATUS)[0][1].flags == 3
