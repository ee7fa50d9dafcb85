"""Single events and their answers; whole runs are in test_switch_properties.py."""

import re
from dataclasses import replace

import numpy as np
import pytest
from memory_network import AGGREGATOR, HOP, TIMEOUT, MemoryNetwork, make_job

from gradplane import codecs
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.actions import CancelTimer, Defer, Deliver, Record, Send, SetTimer
from gradplane.hosts.protocols.results import ReduceError
from gradplane.hosts.protocols.switch_worker import TIMER, SwitchWorker
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type
from gradplane.hosts.wire.payloads import Payloads
from gradplane.runs.records.run_data import expanded

X = np.linspace(-1, 1, 4000, dtype=np.float32)  # 4096 lanes, 4 chunks
LONG = np.linspace(-1, 1, 8000, dtype=np.float32)  # 8 chunks, each slot twice
NORM = aggregation.norm_bits(np.float32(50))


def sent(actions):
    sends = [action for action in actions if isinstance(action, Send)]
    return [aggregation.parse(payload)[0] for send in sends for payload in send.payloads]


def lines(actions):
    """The log lines, those of arrivals one a chunk."""
    records = [{"kind": action.kind} | action.fields for action in of(actions, Record)]
    return list(expanded(records, "records"))


def of(actions, kind):
    return [action for action in actions if isinstance(action, kind)]


def answer(worker, kind, slot, round, body=b"", now=0, **fields):
    fields = {"count": 4, "bitmap": 15, "norm": NORM} | fields
    header = Header(kind, 3, 0, slot, round, 8, **fields)
    return worker.receive(*AGGREGATOR, Payloads.of([header.pack() + body]), now)


def expire(worker, now):
    """Let the worker's timer run out."""
    return worker.timer(TIMER, now)


def sums(worker, slot, round, value=0, **fields):
    return answer(worker, Type.SUMS, slot, round, bytes([value]) * 1024, **fields)


def started(x=X, **changes):
    """A worker whose norm is answered: chunks 0 and 1 are in flight."""
    worker = SwitchWorker(make_job(**changes), 1)
    worker.reduce(0, x, 0)
    answer(worker, Type.NORM_RESULT, 0, 1)
    return worker


def test_a_reduce_starts_with_the_norm():
    worker = SwitchWorker(make_job(), 1)
    actions = worker.reduce(0, X, 5)
    norm = codecs.get("thc").local(X)
    assert sent(actions) == [Header(Type.NORM, 3, 1, 0, 1, 8, aggregation.norm_bits(norm[0]))]
    assert of(actions, Send)[0].source_port == 20003
    assert of(actions, SetTimer) == [SetTimer(TIMER, 5 + TIMEOUT)]


def test_the_norm_lets_a_window_of_chunks_out():
    worker = SwitchWorker(make_job(), 1)
    worker.reduce(0, X, 0)
    actions = answer(worker, Type.NORM_RESULT, 0, 1, now=9)
    chunks = [(h.type, h.slot, h.round, h.norm) for h in sent(actions)]
    assert chunks == [(Type.INDICES, 0, 1, NORM), (Type.INDICES, 1, 1, NORM)]
    assert worker.waits == [("chunk", 0), ("chunk", 1)]
    assert of(actions, Record)[0].fields == {
        "job": 3,
        "worker": 1,
        "ticket": 0,
        "partition": 0,
        "slot": 0,
        "use": 1,
        "result": "in time",
        "norm": NORM,
        "bitmap": "000000000000000f",
        "at": 9,
    }


def test_a_large_vector_is_sent_before_what_packets_do_not_need_is_computed():
    large = np.linspace(-1, 1, 1 << 18, dtype=np.float32)
    worker, eager = (SwitchWorker(make_job(), 1) for _ in range(2))
    first, second = [], []
    for each, actions in ((worker, first), (eager, second)):
        each.reduce(0, large, 0)
        actions += answer(each, Type.NORM_RESULT, 0, 1)
    (put_off,) = of(first, Defer)
    assert first.index(put_off) > first.index(of(first, Send)[0])
    for value in of(second, Defer)[0].values:
        value.get()
    (residual,) = put_off.values
    assert residual.get().shape == large.shape
    assert sent(first) == sent(second)


def test_a_result_lets_the_next_chunk_of_its_chain_out():
    worker = started()
    actions = sums(worker, 1, 1, 60, now=7)
    assert [(h.slot, h.round) for h in sent(actions)] == [(3, 1)]
    assert sums(worker, 1, 1, 60) == [], "a duplicate is no news"


def test_a_batch_of_results_lets_out_a_batch():
    worker = started()
    headers = [Header(Type.SUMS, 3, 0, slot, 1, 8, NORM, 15, count=4).pack() for slot in (1, 0, 1)]
    batch = Payloads.of([header + bytes(1024) for header in headers])
    wide = np.pad(batch.data, ((0, 0), (0, 900)), constant_values=255)
    batch = Payloads(wide, batch.sizes)  # as in a buffer for packets of any size
    actions = worker.receive(*AGGREGATOR, batch, 0)
    (send,) = of(actions, Send)
    assert [(h.slot, h.round) for h in sent([send])] == [(2, 1), (3, 1)]


def test_delivery_records_every_chunk():
    worker = started()
    for slot in range(4):
        actions = sums(worker, slot, 1, 60 + slot, now=7 + slot)
    chunks = lines(actions)
    assert [line["slot"] for line in chunks] == [0, 1, 2, 3]
    assert chunks[1] == {
        "kind": "arrival",
        "job": 3,
        "worker": 1,
        "ticket": 0,
        "slot": 1,
        "use": 1,
        "result": "in time",
        "count": 4,
        "bitmap": "000000000000000f",
        "digest": digest(bytes([61]) * 1024),
        "attempts": 1,
        "notices": 0,
        "at": 8,
        "sent": 0,
    }
    assert of(actions, CancelTimer) == [CancelTimer(TIMER)]


def test_delivery_is_the_mean_by_the_codecs_arithmetic():
    worker = started(error_feedback=False)
    for slot in range(3):
        assert not of(sums(worker, slot, 1, 10 * slot), Deliver)
    (delivered,) = of(sums(worker, 3, 1, 30), Deliver)
    result, values = delivered.result, np.repeat(np.arange(4) * 10, 1024)
    seed = codecs.key(7, "job", 3, "reduce", 0, 0)
    shared = np.array([50], np.float32)
    expected = codecs.get("thc").decode_sum(values, 4000, 4, shared, seed)
    assert delivered.ticket == 0
    assert np.array_equal(result.mean, expected)
    assert (result.counts.tolist(), result.missed) == ([4, 4, 4, 4], 0)
    assert result.gradient == digest(X)
    assert result.sums == digest(values.astype(np.uint8))


def test_reduces_share_the_slots_in_order():
    worker = started()
    assert worker.reduce(1, X, 0, tensor=1) == []
    for slot in range(4):
        actions = sums(worker, slot, 1)
    assert [(h.type, h.slot, h.round) for h in sent(actions)] == []
    assert worker.reduce(2, X, 0) == []


def test_the_next_reduce_starts_its_norm_in_its_first_chunks_slot():
    worker = started()
    worker.reduce(1, X, 0, tensor=1)
    sums(worker, 0, 1)
    actions = sums(worker, 2, 1)
    assert [(h.type, h.slot, h.round) for h in sent(actions)] == [(Type.NORM, 0, 2)]


def test_an_empty_vector_is_delivered_at_once():
    actions = SwitchWorker(make_job(), 0).reduce(3, np.zeros(0, np.float32), 0)
    (delivered,) = of(actions, Deliver)
    assert (delivered.ticket, delivered.result.mean.size, delivered.result.missed) == (3, 0, 0)


MS, SECOND = 1_000_000, 1_000_000_000


def test_retransmission_backs_off_up_to_the_ceiling():
    worker, now, waits = started(timeout_ns=SECOND, slots=2), 0, []
    actions = sums(worker, 0, 1, now=10_000_000)  # measured: 10 ms, so a timeout of 30 ms
    for _ in range(7):
        at = of(actions, SetTimer)[-1].at
        waits.append((at - now) // 1_000_000)
        now = at
        actions = expire(worker, now)
        assert sent(actions)[0].type is Type.INDICES
        answer(worker, Type.STATUS, 1, 1, flags=1, now=now)
    assert waits == [40, 60, 120, 240, 480, 960, 1000]


@pytest.mark.parametrize(
    ("reliability", "granularity", "expected"),
    [
        ("retransmit", 0, 30_000_000),  # three round trips, as after a first measurement
        ("retransmit", 25_000_000, 130_000_000),
        ("lossy", 0, 30_000_000),
        ("lossy", 25_000_000, 100_000_000),  # half of timeout_ns
    ],
)
def test_the_first_timeout_follows_from_the_round_trip(reliability, granularity, expected):
    job = make_job(reliability=reliability, timeout_ns=SECOND // 5, round_trip_ns=10_000_000)
    (timer,) = of(SwitchWorker(job, 1, granularity).reduce(0, X, 0), SetTimer)
    assert timer.at == expected


def test_a_short_round_trip_makes_no_first_timeout_below_the_least():
    job = make_job(timeout_ns=SECOND, round_trip_ns=1000)
    (timer,) = of(SwitchWorker(job, 1).reduce(0, X, 0), SetTimer)
    assert timer.at == 1_000_000


def test_a_long_wait_asks_for_the_status_once():
    worker = started()
    actions = expire(worker, TIMEOUT)
    assert [(h.type, h.slot) for h in sent(actions)] == [
        (Type.INDICES, 0),
        (Type.INDICES, 1),
        (Type.STATUS, 0),
    ]
    answer(worker, Type.STATUS, 0, 1, flags=1, now=TIMEOUT + 1)
    assert [h.type for h in sent(expire(worker, 2 * TIMEOUT))] == [Type.INDICES] * 2 + [Type.STATUS]


def test_lossy_gives_a_chunk_up_and_goes_on():
    worker = started(reliability="lossy")
    actions = expire(worker, TIMEOUT)
    assert [(h.type, h.slot) for h in sent(actions)] == [
        (Type.STATUS, 0),
        (Type.INDICES, 2),
        (Type.INDICES, 3),
    ]
    assert sent(expire(worker, TIMEOUT)) == [], "chunks 2 and 3 have just been sent"


def lossy_and_waiting_for_a_processor(**changes):
    """Return a worker that waits for its first chunks since 0 ms."""
    job = make_job(reliability="lossy", timeout_ns=SECOND, **changes)
    worker = SwitchWorker(job, 1, 25 * MS)
    worker.reduce(0, X, 0)
    answer(worker, Type.NORM_RESULT, 0, 1)
    return worker


def asked(actions):
    return [h.slot for h in sent(actions) if h.type is Type.STATUS]


def test_a_lossy_chunk_is_given_up_sooner_once_a_later_one_has_its_result():
    worker = lossy_and_waiting_for_a_processor()
    actions = sums(worker, 1, 1, now=2 * MS)  # measured: a round trip of 2 ms
    assert asked(actions) == [0]
    assert [h.slot for h in sent(actions) if h.type is Type.INDICES] == [3]
    assert asked(expire(worker, 6 * MS)) == [3], "the last one"
    assert [h.slot for h in sent(expire(worker, 10 * MS)) if h.type is Type.INDICES] == [2]
    assert worker.waits == [("chunk", 2), ("chunk", 3)]
    actions = sums(worker, 2, 1, now=12 * MS)
    assert not of(actions, SetTimer), "chunk 3 was sent before chunk 2, but is a later one"


@pytest.mark.parametrize("round, count, ends", [(1, 3, 7 * MS), (2, 1, 7 * MS), (1, 2, 52 * MS)])
def test_the_last_lossy_chunk_is_given_up_where_the_switch_has_its_sum(round, count, ends):
    """The result was sent before the answer. Nothing of the chunk is sent again."""
    worker = lossy_and_waiting_for_a_processor(quorum=3)
    for chunk in (0, 1, 2):
        sums(worker, chunk, 1, now=2 * MS)
    assert not asked(expire(worker, 5 * MS))
    assert asked(expire(worker, 6 * MS)) == [3]
    answer(worker, Type.STATUS, 3, round, flags=1, count=count, bitmap=7, now=7 * MS)
    before = expire(worker, ends - 1)
    assert not of(before, Deliver) and {h.type for h in sent(before)} <= {Type.STATUS}
    assert of(expire(worker, ends), Deliver)[0].result.missed == 1


def test_the_last_lossy_chunk_of_a_batch_is_asked_about_soon_after_another_has_its_result():
    worker = lossy_and_waiting_for_a_processor(slots=8)
    sums(worker, 2, 1, now=5 * MS)
    assert not asked(expire(worker, 6 * MS - 1))
    assert asked(expire(worker, 6 * MS)) == [3]


@pytest.mark.parametrize(
    "quorum, others",
    [(4, 13), (4, 14), (3, 9), (3, 5)],  # lost: this worker's, another's, both
)
def test_a_lossy_chunk_is_given_up_where_others_of_its_batch_have_results(quorum, others):
    """others: whose packets the switch has. What it lacks of those in the results is lost."""
    worker = lossy_and_waiting_for_a_processor(slots=8, quorum=quorum)
    for chunk in (0, 1, 3):
        fields = {"count": quorum, "bitmap": (1 << quorum) - 1}
        actions = sums(worker, chunk, 1, **fields, now=4 * MS)
    assert asked(actions) == [2]
    fields = {"count": others.bit_count(), "bitmap": others}
    answer(worker, Type.STATUS, 2, 1, flags=1, **fields, now=6 * MS)
    assert of(expire(worker, 6 * MS), Deliver)[0].result.missed == 1


@pytest.mark.parametrize("quorum, others, waits", [(4, 13, False), (4, 2, True), (3, 5, True)])
def test_a_lossy_chunk_that_others_may_still_send_is_waited_for(quorum, others, waits):
    worker = lossy_and_waiting_for_a_processor(slots=8, quorum=quorum)
    now = SECOND // 2
    assert asked(expire(worker, now)) == [3], "nothing of the batch has come"
    fields = {"count": others.bit_count(), "bitmap": others}
    answer(worker, Type.STATUS, 3, 1, flags=1, **fields, now=now + 1)
    expire(worker, now + 1)
    assert (("chunk", 3) in worker.waits) is waits


def test_lossy_uses_a_late_result_until_delivery():
    worker = started(reliability="lossy")
    expire(worker, TIMEOUT)
    sums(worker, 0, 1, now=TIMEOUT + 5)
    actions = expire(worker, 2 * TIMEOUT)
    (delivered,) = of(actions, Deliver)
    assert (delivered.result.counts.tolist(), delivered.result.missed) == ([4, 0, 0, 0], 3)
    results = [(r["slot"], r["result"]) for r in lines(actions) if r["kind"] == "arrival"]
    assert results == [(0, "in time"), (1, "lost"), (2, "lost"), (3, "lost")]
    (late,) = lines(sums(worker, 1, 1, now=9 * TIMEOUT))
    assert (late["result"], late["at"]) == ("late", 9 * TIMEOUT)
    assert sums(worker, 1, 1) == []


def test_lossy_without_a_norm_sends_nothing_and_keeps_everything():
    worker = SwitchWorker(make_job(reliability="lossy", retries=2), 1)
    worker.reduce(0, X, 0)
    for attempt in (1, 2):
        assert sent(expire(worker, attempt * TIMEOUT))[0].type is Type.NORM
    actions = expire(worker, 3 * TIMEOUT)
    assert all(h.type is Type.STATUS for h in sent(actions))
    assert [r.fields["result"] for r in of(actions, Record) if r.kind == "norm"] == ["lost"]
    late = answer(worker, Type.NORM_RESULT, 0, 1)
    assert [line["result"] for line in lines(late)] == ["late"]
    for attempt in (4, 5):
        actions = expire(worker, attempt * TIMEOUT)
        assert all(h.type is Type.STATUS for h in sent(actions))
    (delivered,) = of(actions, Deliver)
    assert not delivered.result.mean.any()
    again = sent(worker.reduce(1, X, 0))
    assert again[0].slot == 0 and again[0].round == 2, "the chunks were counted"
    assert aggregation.norm_value(again[0].norm) == codecs.get("thc").local(2 * X)[0]


def test_lossy_catches_up_with_a_later_reduce_at_once():
    worker = started(reliability="lossy", quorum=3)
    actions = answer(worker, Type.NORM_RESULT, 0, 2, count=3, bitmap=13)
    (delivered,) = of(actions, Deliver)
    assert (delivered.result.missed, sent(actions)) == (4, [])
    assert worker.waits == []


def test_lossy_catches_up_from_the_norm_stage_and_keeps_everything():
    worker = SwitchWorker(make_job(reliability="lossy", quorum=3), 1)
    worker.reduce(0, X, 0)
    actions = answer(worker, Type.NORM_RESULT, 0, 2, count=3, bitmap=13)
    assert [line["result"] for line in lines(actions)] == ["lost"] * 5
    (again,) = sent(worker.reduce(1, X, 0))
    assert aggregation.norm_value(again.norm) == codecs.get("thc").local(2 * X)[0]


def test_several_tensors_may_overlap_so_that_a_later_reduce_says_nothing():
    worker = started(reliability="lossy", quorum=3, slots=16)
    worker.reduce(1, X, 0, tensor=1)
    assert not of(answer(worker, Type.NORM_RESULT, 8, 1, count=3, bitmap=13), Deliver)


def test_a_silent_worker_uses_the_others_results():
    worker = SwitchWorker(make_job(reliability="lossy", quorum=3, retries=0), 3)
    worker.reduce(0, X, 0)
    expire(worker, TIMEOUT)
    for slot in range(4):
        actions = sums(worker, slot, 1, 40, count=3, bitmap=7)
    (delivered,) = of(actions, Deliver)
    assert (delivered.result.counts.tolist(), delivered.result.mean.any()) == ([3, 3, 3, 3], True)


@pytest.mark.parametrize("reliability, quorum", [("lossy", 4), ("retransmit", 3)])
def test_a_notice_of_a_later_round_ends_a_chunk(reliability, quorum):
    worker = started(LONG, reliability=reliability, quorum=quorum)
    assert answer(worker, Type.STRAGGLER, 0, 1, count=0, bitmap=0) == []
    actions = answer(worker, Type.STRAGGLER, 0, 2, count=1, bitmap=1)
    assert [(h.type, h.slot) for h in sent(actions)] == [(Type.INDICES, 2)]


def test_with_a_full_quorum_only_a_result_ends_a_chunk():
    worker = started()
    assert answer(worker, Type.STRAGGLER, 0, 1) == []
    for slot in range(4):
        actions = sums(worker, slot, 1)
    assert [line["notices"] for line in lines(actions)] == [1, 0, 0, 0]


def test_a_notice_in_the_norm_stage_silences_the_partition():
    worker = SwitchWorker(make_job(quorum=3), 1)
    worker.reduce(0, X, 0)
    actions = answer(worker, Type.STRAGGLER, 0, 2)
    assert sent(actions) == []
    assert worker.waits == [("chunk", 0), ("chunk", 1)]


def test_a_result_of_a_later_round_ends_a_chunk():
    worker = started(LONG, reliability="lossy")
    assert [h.slot for h in sent(sums(worker, 0, 2))] == [2]


def test_results_that_come_before_their_turn_are_kept():
    worker = started(quorum=3)
    for slot in (2, 3):
        assert sums(worker, slot, 1, count=3, bitmap=13) == []
    assert sent(sums(worker, 0, 1)) == []
    (delivered,) = of(sums(worker, 1, 1), Deliver)
    assert delivered.result.counts.tolist() == [4, 4, 3, 3]


@pytest.mark.parametrize(
    "round, bitmap, missing",
    [(1, 0b0110, [0, 3]), (1, 0b1111, []), (0, 0b1111, [0, 1, 2, 3]), (2, 0b1, None)],
)
def test_a_stall_names_who_is_missing(round, bitmap, missing):
    worker, at = started(), TIMEOUT + 9
    expire(worker, TIMEOUT)
    actions = answer(worker, Type.STATUS, 0, round, bitmap=bitmap, flags=1, count=0, now=at)
    stall = {"job": 3, "worker": 1, "slot": 0, "use": 1, "missing": missing, "at": at}
    assert [r.fields for r in of(actions, Record)] == [stall]


def test_a_stall_without_an_answer_names_nobody():
    worker = started()
    expire(worker, TIMEOUT)
    *timeouts, record = of(expire(worker, 2 * TIMEOUT), Record)
    assert [timeout.kind for timeout in timeouts] == ["timeout"] * len(timeouts)
    assert (record.kind, record.fields["missing"]) == ("stall", None)


def test_a_wait_that_is_given_up_ends_as_its_timeout_would():
    worker = started(reliability="lossy")
    assert [h.slot for h in sent(worker.give_up(("chunk", 1), 0))] == [3]
    assert worker.waits == [("chunk", 0), ("chunk", 3)]
    silent = SwitchWorker(make_job(), 1)
    silent.reduce(0, X, 0)
    assert sent(silent.give_up(("norm", 0), 0)) == []
    assert silent.waits == [("chunk", 0), ("chunk", 1)]


GOOD = Header(Type.SUMS, 3, 0, 0, 1, 8, NORM, 15, count=4)


@pytest.mark.parametrize(
    "reason, header, body",
    [
        ("malformed", GOOD, bytes(1023)),
        ("another job", replace(GOOD, job=4), bytes(1024)),
        ("another job", replace(GOOD, sum_bits=16), bytes(1024)),
        ("no such slot", replace(GOOD, slot=4), bytes(1024)),
        ("another epoch", replace(GOOD, epoch=2), bytes(1024)),
        ("malformed", replace(GOOD, code_bits=3), bytes(1024)),
        ("another job", replace(GOOD, code_bits=2), bytes(1024)),
        ("no result", replace(GOOD, type=Type.INDICES), bytes(512)),
        ("no result", replace(GOOD, passed=1), bytes(1024)),
        ("no result", replace(GOOD, type=Type.STATUS), b""),
        ("count", replace(GOOD, count=3), bytes(1024)),
        ("count", replace(GOOD, count=0, bitmap=0), bytes(1024)),
        ("count", replace(GOOD, bitmap=0x1E), bytes(1024)),
        ("another norm", replace(GOOD, norm=NORM + 1), bytes(1024)),
        ("sums beyond the table", GOOD, bytes(1023) + b"\x79"),
        ("sums beyond the table", replace(GOOD, count=1, bitmap=1), b"\x1f" + bytes(1023)),
    ],
)
def test_packets_that_make_no_sense_are_counted(reason, header, body):
    worker = started()
    assert worker.receive(*AGGREGATOR, Payloads.of([header.pack() + body]), 0) == []
    assert worker.refused == {reason: 1}


@pytest.mark.parametrize("bit", range(8 * aggregation.HEADER_SIZE))
def test_a_result_with_a_flipped_bit_is_counted(bit):
    worker, packet = started(), bytearray(GOOD.pack() + bytes(1024))
    packet[bit // 8] ^= 1 << bit % 8
    assert worker.receive(*AGGREGATOR, Payloads.of([bytes(packet)]), 0) == []
    assert worker.refused == {"malformed" if bit in (4, 5, 6, 7) else "damaged header": 1}


def test_a_worker_that_all_others_went_on_without_says_so_and_ends():
    """With a full quorum no slot has a later round than one that waits for this worker."""
    message = (
        "job 3, worker 1: slot 0 is in round 500, which needs all workers, and this one is in"
        " round 1: it was started anew, or another has its number. Start the job's workers"
        " together, under a new epoch if the switch has not forgotten the last ones"
    )
    with pytest.raises(ReduceError, match=f"^{re.escape(message)}$"):
        answer(started(), Type.STRAGGLER, 0, 500)
    answer(started(quorum=3), Type.STRAGGLER, 0, 500)
    answer(started(), Type.STRAGGLER, 0, 1)  # of a copy that came late


def test_a_worker_of_another_life_says_so_and_ends():
    message = (
        "job 3, worker 1: the switch has the job in epoch 23, and this worker is of epoch 1: it is"
        " left of an earlier life of the job"
    )
    for changes in ({}, {"reliability": "lossy"}):
        with pytest.raises(ReduceError, match=f"^{re.escape(message)}$"):
            answer(started(**changes), Type.EPOCH, 0, 0, epoch=23)


def test_a_notice_of_an_earlier_life_came_late():
    """It answers a packet of a life before that one; the lives go round, 16 of them."""
    for own, noticed in ((23, 1), (1, 240), (250, 160)):
        assert answer(started(epoch=own), Type.EPOCH, 0, 0, epoch=noticed) == []
    with pytest.raises(ReduceError, match="left of an earlier life"):
        answer(started(epoch=250), Type.EPOCH, 0, 0, epoch=1)


def test_a_later_epoch_of_its_life_lets_a_worker_send_again_what_is_under_way():
    worker = started(LONG)
    sums(worker, 0, 1, now=5)
    actions = answer(worker, Type.EPOCH, 0, 0, epoch=2, now=9)
    assert [(line["kind"], line["epoch"]) for line in lines(actions)] == [("redo", 2)]
    again = [(h.type, h.slot, h.epoch) for h in sent(actions)]
    # The chunk before the one that waits in its chain, and both that wait.
    assert again == [(Type.INDICES, slot, 2) for slot in (0, 1, 2)]
    for epoch in (2, 1):
        assert answer(worker, Type.EPOCH, 0, 0, epoch=epoch) == []
    assert sums(worker, 1, 1, now=20) == [] and worker.refused["another epoch"] == 1
    assert [h.slot for h in sent(sums(worker, 0, 1, now=20, epoch=2))] == []
    assert [h.slot for h in sent(sums(worker, 1, 1, now=20, epoch=2))] == [3]


def test_an_epoch_before_the_first_result_lets_a_worker_send_its_norm_again():
    actions = answer(started(), Type.EPOCH, 0, 0, epoch=2)
    kinds = [(h.type, h.slot, h.epoch) for h in sent(actions)]
    assert kinds == [(Type.NORM, 0, 2), (Type.INDICES, 0, 2), (Type.INDICES, 1, 2)]


def test_strangers_are_refused():
    worker = started()
    payloads = Payloads.of([GOOD.pack() + bytes(1024)])
    assert worker.receive("10.0.0.3", 18256, payloads, 0) == []
    assert worker.refused == {"stranger": 1}


@pytest.mark.parametrize("norm", [0x7F800000, 0xBF800000])
def test_a_norm_that_is_none_is_refused(norm):
    worker = SwitchWorker(make_job(), 1)
    worker.reduce(0, X, 0)
    assert answer(worker, Type.NORM_RESULT, 0, 1, norm=norm) == []
    assert worker.refused == {"another norm": 1}


@pytest.mark.parametrize(
    "ticket, vector, tensor, message",
    [
        (
            0,
            X,
            1,
            "worker 1, ticket 0, tensor 1: ticket 0 is reducing tensor 0: wait for its result",
        ),
        (
            1,
            X,
            0,
            "worker 1, ticket 1, tensor 0: ticket 0 is reducing tensor 0: wait for its result",
        ),
        (
            1,
            X.astype(float),
            1,
            "worker 1, ticket 1: expected float32 of shape (n,), got float64 (4000,)",
        ),
        (
            1,
            np.array([0, np.nan], np.float32),
            1,
            "worker 1, ticket 1: nan at index 1: did the training diverge?",
        ),
    ],
)
def test_reduces_that_cannot_start(ticket, vector, tensor, message):
    worker = started()
    with pytest.raises(ReduceError, match=f"^{re.escape(message)}$"):
        worker.reduce(ticket, vector, 0, tensor)


def test_a_tensor_keeps_its_size():
    network = MemoryNetwork(make_job())
    network.reduce(0, [X] * 4)
    network.run()
    message = "worker 0, ticket 1, tensor 0: 10 values, earlier 4000: use another tensor number"
    with pytest.raises(ReduceError, match=f"^{message}$"):
        network.workers[0].reduce(1, X[:10], network.now)


def test_codecs_without_a_statistic_skip_the_norm_stage(monkeypatch):
    monkeypatch.setattr(
        codecs.get("uniform_thc").__class__, "local", lambda self, x, state=None: None
    )
    worker = SwitchWorker(make_job(codec=("uniform_thc", {"bits": 4}), error_feedback=False), 0)
    monkeypatch.setattr(
        codecs.get("uniform_thc").__class__,
        "codes",
        lambda self, x, shared, seed, state, worker: (
            np.zeros(self.lanes(x.size), np.uint8),
            state,
        ),
    )
    assert [h.type for h in sent(worker.reduce(0, X, 0))] == [Type.INDICES] * 2


def test_time_is_only_an_argument():
    """A run in which everything arrives after HOP ends when the last result does."""
    network = MemoryNetwork(make_job())
    network.reduce(0, [X] * 4)
    network.run()
    assert max(r["at"] for r in network.of_kind("arrival")) == (2 + 4) * HOP
