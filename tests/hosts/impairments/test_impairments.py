from collections import Counter
from random import Random

import pytest
from host_configs import complete

from gradplane.hosts.impairments.verdicts import Impairments
from gradplane.hosts.stream.segments import Ack, DataSegment, ValuesSegment
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type
from gradplane.hosts.wire.payloads import Payloads

SWITCH, PEER = ("10.0.0.254", 18256), ("10.0.0.2", 21003)


def edge(*specs, link="h1", worker=0, workers=4):
    return Impairments([complete(spec) for spec in specs], link, worker, workers, job=3)


def packet(kind=Type.INDICES, slot=0, round=1):
    header = Header(kind, 3, 0, slot, round, 8)
    return header.pack() + bytes(aggregation.body_size(kind, 8, 4))


def fates(impairments, packets, direction="up", source=SWITCH):
    return getattr(impairments, direction)(*source, Payloads.of(packets))


def fate(impairments, payload, direction="up", source=SWITCH):
    (verdict,) = fates(impairments, [payload], direction, source)
    return verdict


def lost(verdicts):
    return [k for k, verdict in enumerate(verdicts) if verdict.drop]


PACKETS = [packet(slot=s, round=r) for r in range(1, 26) for s in range(40)]
BERNOULLI = {"model": "bernoulli", "rate": 0.1, "seed": 5}


def test_without_impairments_everything_passes():
    assert lost(fates(edge(), PACKETS)) == []


def test_bernoulli_loses_at_its_rate():
    assert 60 < len(lost(fates(edge(BERNOULLI), PACKETS))) < 140
    assert len(lost(fates(edge(BERNOULLI | {"rate": 1}), PACKETS))) == 1000
    assert lost(fates(edge(BERNOULLI | {"rate": 0}), PACKETS)) == []


def test_a_verdict_depends_on_the_packet_and_not_on_the_order():
    order = list(range(1000))
    Random(1).shuffle(order)
    straight = lost(fates(edge(BERNOULLI), PACKETS))
    shuffled = lost(fates(edge(BERNOULLI), [PACKETS[k] for k in order]))
    assert sorted(order[k] for k in shuffled) == straight


@pytest.mark.parametrize(
    "other",
    [
        lambda: fates(edge(BERNOULLI | {"seed": 6}), PACKETS),
        lambda: fates(edge(BERNOULLI, link="h2"), PACKETS),
        lambda: fates(edge(BERNOULLI), PACKETS, "down"),
        lambda: fates(edge(BERNOULLI), PACKETS * 2)[1000:],
    ],
    ids=["seed", "link", "direction", "attempt"],
)
def test_a_verdict_depends_on(other):
    assert lost(other()) != lost(fates(edge(BERNOULLI), PACKETS))


def test_a_verdict_is_recorded_with_its_key():
    spec = complete({"model": "bernoulli", "rate": 1}) | {"number": 2}
    impairments = Impairments([spec], "h1", 0, 4, job=3)
    fates(impairments, [packet(slot=7, round=9)])
    (verdict,) = fates(impairments, [packet(slot=7, round=9)])
    assert [(r.kind, r.fields) for r in verdict.records] == [
        (
            "verdict",
            {
                "link": "h1",
                "direction": "up",
                "job": 3,
                "type": "indices",
                "training_round": 0,
                "use": 9,
                "slot": 7,
                "attempt": 1,
                "peer": "",
                "verdict": "drop",
                "delay_ns": 0,
                "impairment": 2,
            },
        )
    ]


@pytest.mark.parametrize(
    "payload, kind, round, slot",
    [
        (DataSegment(1, 9, 4, 2, 3, bytes(1400)).pack(), "stream", 4, 2),
        (ValuesSegment(1, 12, bytes(8)).pack(), "values", 12, 0),
        (Ack(1, 1, 17, 0).pack(), "ack", 17, 0),
        (b"hello", "other", 0, 0),
    ],
)
def test_streams_have_keys_of_their_own(payload, kind, round, slot):
    (verdict,) = fates(edge({"model": "nth", "n": 1}), [payload], "down", PEER)
    fields = verdict.records[0].fields
    assert (fields["type"], fields["use"], fields["slot"]) == (kind, round, slot)
    assert fields["peer"] == "10.0.0.2:21003"


def test_recorded_verdicts_are_a_drop_list():
    first = fates(edge(BERNOULLI, {"model": "nth", "n": 7}), PACKETS)
    listed = [record.fields for verdict in first for record in verdict.records]
    spec = {"model": "drop list", "packets": listed}
    again = fates(edge(spec), PACKETS)
    assert [v.drop for v in again] == [v.drop for v in first]
    assert lost(fates(edge(spec, link="h2"), PACKETS)) == []


def test_a_drop_list_matches_what_it_names():
    entries = [{"type": "sums", "slot": 2}, {"use": 2, "slot": 1, "attempt": 1}]
    impairments = edge({"model": "drop list", "packets": entries})
    sums = [packet(Type.SUMS, slot, 1) for slot in range(4)]
    down = fates(impairments, sums, "down")
    assert lost(down) == [2] and down[2].records[0].fields["entry"] == 0
    again = fates(impairments, [packet(slot=1, round=2)] * 3)
    assert lost(again) == [1] and again[1].records[0].fields["entry"] == 1


def test_every_nth():
    impairments = edge({"model": "nth", "n": 3})
    assert lost(fates(impairments, PACKETS[:10])) == [2, 5, 8]
    assert lost(fates(impairments, PACKETS[:4], "down")) == [2]


def test_bursts_are_as_long_as_r_says():
    spec = {"model": "burst", "p": 0.05, "r": 0.25, "seed": 1}
    dropped = set(lost(fates(edge(spec), PACKETS * 10)))
    starts = [k for k in dropped if k - 1 not in dropped]
    assert 0.13 < len(dropped) / 10_000 < 0.20, "p / (p + r) = 0.167"
    assert 3.5 < len(dropped) / len(starts) < 4.5, "1 / r = 4"
    assert lost(fates(edge(spec | {"loss": 0}), PACKETS)) == []


@pytest.mark.parametrize(
    "spec, passing",
    [
        ({"direction": "down"}, {"indices", "stream", "ack", "other"}),
        ({"flow": "agg"}, {"stream", "ack", "other"}),
        ({"flow": "stream"}, {"indices", "other"}),
        ({"flow": ["indices", "ack"]}, {"stream", "other"}),
        ({"flow": "indices"}, {"stream", "ack", "other"}),
        ({"link": "h2"}, {"indices", "stream", "ack", "other"}),
        ({"link": "h1", "direction": "both"}, set()),
    ],
)
def test_which_packets_a_model_sees(spec, passing):
    impairments = edge({"model": "nth", "n": 1} | spec)
    sent = {
        "indices": (SWITCH, packet()),
        "stream": (PEER, DataSegment(1, 0, 0, 0, 1, b"x").pack()),
        "ack": (PEER, Ack(1, 1, 0, 0).pack()),
        "other": (PEER, b"x"),
    }
    assert {k for k, (to, p) in sent.items() if not fate(impairments, p, "up", to).drop} == passing


def stragglers(spec, rounds, payload=None):
    """Return, by round, the workers whose packet was dropped or delayed."""
    edges = [edge({"model": "straggler"} | spec, link=f"h{w + 1}", worker=w) for w in range(4)]
    touched = []
    for round in range(rounds):
        for impairments in edges:
            impairments.start_round(round)
        verdicts = [fate(e, payload or packet(round=round + 1)) for e in edges]
        touched.append([w for w, v in enumerate(verdicts) if v.drop or v.delay_ns])
    return touched


def test_stragglers_by_schedule():
    late = {"workers": [1, 3], "delay_ms": 2.5}
    assert stragglers(late, 2) == [[1, 3], [1, 3]]
    assert stragglers(late | {"every": 2}, 4) == [[1, 3], [], [1, 3], []]
    assert stragglers(late | {"rounds": [0, 3]}, 4) == [[1, 3], [], [], [1, 3]]


def test_stragglers_by_chance():
    half = stragglers({"workers": [0, 1, 2, 3], "delay_ms": 1, "probability": 0.5}, 400)
    counts = Counter(w for touched in half for w in touched)
    assert all(150 < counts[w] < 250 for w in range(4))


def test_drawn_stragglers_are_as_many_as_asked_for():
    drawn = stragglers({"count": 2, "leave_out": True, "seed": 3}, 200)
    assert {len(touched) for touched in drawn} == {2}
    assert all(60 < count < 140 for count in Counter(sum(drawn, [])).values())
    assert drawn == stragglers({"count": 2, "leave_out": True, "seed": 3}, 200)
    sometimes = stragglers({"count": 1, "delay_ms": 1, "probability": 0.25}, 400)
    assert 60 < sum(map(len, sometimes)) < 140


def test_a_delay_is_a_delay():
    impairments = edge({"model": "straggler", "workers": [0], "delay_ms": 2.5})
    verdict = fate(impairments, packet())
    assert (verdict.drop, verdict.delay_ns) == (False, 2_500_000)
    assert verdict.records[0].fields["verdict"] == "delay"
    assert fate(impairments, packet(Type.SUMS), "down").delay_ns == 0


def test_a_straggler_that_is_left_out_can_fetch_the_result():
    impairments = edge({"model": "straggler", "workers": [0], "leave_out": True})
    verdicts = fates(impairments, [packet(), packet(), packet(Type.STATUS)])
    assert lost(verdicts) == [0]
    assert verdicts[0].records[0].fields["verdict"] == "leave out"
    assert lost(fates(impairments, [packet(Type.SUMS)], "down")) == []


def test_a_straggler_of_a_lossy_job_is_left_out_for_the_round():
    spec = {"model": "straggler", "workers": [0], "leave_out": True}
    impairments = Impairments([complete(spec)], "h1", 0, 4, 3, lossy=True)
    again = [packet(Type.NORM), packet(Type.NORM), packet(), packet(), packet(Type.STATUS)]
    verdicts = fates(impairments, again)
    assert [verdict.late for verdict in verdicts] == [True] * 4 + [False]
    assert lost(verdicts) == []


def test_a_server_is_no_straggler():
    impairments = edge({"model": "straggler", "count": 4, "delay_ms": 1}, worker=None)
    assert fate(impairments, DataSegment(1, 0, 0, 0, 1, b"x").pack(), "up", PEER).delay_ns == 0


def test_delays_add_up_and_a_loss_ends_it():
    slow = {"model": "straggler", "workers": [0], "delay_ms": 1}
    (verdict,) = fates(edge(slow, slow), [packet()])
    assert (verdict.delay_ns, len(verdict.records)) == (2_000_000, 2)
    (verdict,) = fates(edge(slow, {"model": "nth", "n": 1}), [packet()])
    assert (verdict.drop, [r.fields["verdict"] for r in verdict.records]) == (True, ["drop"])
