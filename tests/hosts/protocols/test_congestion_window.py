"""How a worker's window follows marks: AIMD (hosts/protocols/congestion_window.py)."""

import numpy as np
from memory_network import AGGREGATOR, make_job

from gradplane.hosts.protocols.actions import Record, Send
from gradplane.hosts.protocols.congestion_window import CongestionWindow
from gradplane.hosts.protocols.switch_worker import SwitchWorker
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type
from gradplane.hosts.wire.payloads import ECN_CAPABLE, ECN_MARKED, Payloads

NORM = aggregation.norm_bits(1.0)


def test_it_grows_by_a_result_until_it_is_marked_and_then_by_one_a_round_trip() -> None:
    window = CongestionWindow(64)
    assert window.size == 4
    for sent in range(4):
        window.result(sent, False, 10)
    assert window.size == 8
    window.result(4, True, 11)
    assert window.size == 6
    for sent in range(12, 19):
        window.result(sent, False, 20)
    assert window.size == 7


def test_it_is_cut_once_for_what_was_in_flight_then() -> None:
    window = CongestionWindow(64)
    for sent in range(28):
        window.result(sent, False, 30)
    window.result(29, True, 40)
    window.result(40, True, 41)
    window.lost(35, 42)
    assert window.size == 25
    window.lost(43, 50)
    assert window.size == 12
    assert window.take() == {"size": 12.8, "least": 4.0, "marks": 2}
    assert window.take() == {"size": 12.8, "least": 12.8, "marks": 0}


def test_it_is_no_smaller_than_one_chunk_and_no_larger_than_all() -> None:
    window = CongestionWindow(6)
    for sent in range(100):
        window.result(sent, False, sent)
    assert window.size == 6
    for sent in range(200, 210):
        window.lost(sent, sent)
    assert window.size == 1


def sums(worker: SwitchWorker, slot: int, tos: int) -> list[Send]:
    """Answer a slot in its first round; return what the worker sends."""
    header = Header(Type.SUMS, 3, 0, slot, 1, 8, NORM, 15, count=4)
    payloads = Payloads.of([header.pack() + bytes(1024)]).with_tos(tos)
    actions = worker.receive(*AGGREGATOR, payloads, 0)
    return [action for action in actions if isinstance(action, Send)]


def test_a_worker_sends_as_many_chunks_as_its_window_has() -> None:
    worker = SwitchWorker(make_job(slots=32, ecn=True), 1)
    (norm,) = (a for a in worker.reduce(0, np.ones(16384, np.float32), 0) if isinstance(a, Send))
    assert norm.tos == ECN_CAPABLE
    answer = Header(Type.NORM_RESULT, 3, 0, 0, 1, 8, NORM, 15, count=4).pack()
    actions = worker.receive(*AGGREGATOR, Payloads.of([answer]), 0)
    (first,) = (action for action in actions if isinstance(action, Send))
    assert (len(first.payloads), first.tos) == (4, ECN_CAPABLE)
    assert worker.waits == [("chunk", number) for number in range(4)]
    (two,) = sums(worker, 0, ECN_CAPABLE)
    assert [aggregation.parse(payload)[0].slot for payload in two.payloads] == [4, 5]
    assert sums(worker, 3, ECN_MARKED) == [], "four are in flight, and the window has four"
    (third,) = sums(worker, 2, ECN_MARKED)
    assert [aggregation.parse(payload)[0].slot for payload in third.payloads] == [6]


def test_the_window_of_each_reduce_is_recorded() -> None:
    worker = SwitchWorker(make_job(slots=32, ecn=True), 1)
    worker.reduce(5, np.ones(1024, np.float32), 0)
    answer = Header(Type.NORM_RESULT, 3, 0, 0, 1, 8, NORM, 15, count=4).pack()
    worker.receive(*AGGREGATOR, Payloads.of([answer]), 0)
    header = Header(Type.SUMS, 3, 0, 0, 1, 8, NORM, 15, count=4).pack()
    payloads = Payloads.of([header + bytes(1024)]).with_tos(ECN_MARKED)
    (line,) = (
        action
        for action in worker.receive(*AGGREGATOR, payloads, 9)
        if isinstance(action, Record) and action.kind == "window"
    )
    window = {"size": 3.2, "least": 3.2, "marks": 1}
    assert line.fields == {"job": 3, "worker": 1, "ticket": 5} | window | {"at": 9}
