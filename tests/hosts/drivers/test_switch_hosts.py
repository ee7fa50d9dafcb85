"""Four hosts around a model of the switch on the virtual network: loss, stragglers, junk."""

from functools import cache

import pytest
from host_configs import make_hosts, make_job
from virtual_network import Network, make_switch

from gradplane.hosts.wire.payloads import Payloads

LOSS = {"model": "bernoulli", "rate": 0.02, "seed": 3}


def build(job, impairments=()):
    network = Network(job.addresses.aggregator[0], make_switch(job))
    return network, [network.add(config) for config in make_hosts(job, impairments)]


@cache
def run(loss=False, straggler=(), **changes):
    impairments = [LOSS] if loss else []
    if straggler:
        impairments.append({"model": "straggler"} | dict(straggler))
    network, _ = build(make_job(**changes), impairments)
    network.run()
    return network.records


def of(records, kind, worker=0):
    return [r for r in records if r["kind"] == kind and r.get("worker") == worker]


def weights(records, kind="round"):
    """Return each worker's weights over the rounds."""
    return [[r["weights"] for r in of(records, kind, worker)] for worker in range(4)]


def test_it_learns_and_all_workers_stay_equal():
    records = run()
    assert of(records, "done")[0]["test_accuracy"] > 0.93
    assert weights(records) == [weights(records)[0]] * 4


def test_a_run_repeats_in_every_record_and_the_seed_changes_it():
    first, other = run(loss=True, epochs=1), run(loss=True, epochs=1, seed=2)
    run.cache_clear()
    assert run(loss=True, epochs=1) == first
    assert weights(other) != weights(first)


def test_traffic_of_a_round_is_its_norm_and_four_chunks():
    for record in of(run(), "round", 2):
        assert (record["packets_up"], record["packets_down"]) == (5, 5)
        assert (record["payload_up"], record["payload_down"]) == (4 * 512, 4 * 1024)
        headers = 5 * (14 + 20 + 8 + 30)
        assert (record["wire_up"], record["wire_down"]) == (2048 + headers, 4096 + headers)


def test_payload_against_float32():
    record = of(run(), "round")[0]
    assert 4 * 4060 / record["payload_up"] > 7.8
    assert 4 * 4060 / record["payload_down"] > 3.9


def test_retransmission_gives_the_weights_of_a_run_without_losses():
    records = run(loss=True, reliability="retransmit", epochs=1)
    assert sum(r["kind"] == "verdict" for r in records) > 10
    assert sum(r["missed"] for r in records if r["kind"] == "round") == 0
    assert weights(records) == weights(run(epochs=1))


def test_losses_are_missed_results_and_pull_workers_apart():
    records = run(loss=True)
    missed = [sum(r["missed"] for r in of(records, "round", w)) for w in range(4)]
    assert all(missed)
    lost = [sum(r["result"] == "lost" for r in of(records, "arrival", w)) for w in range(4)]
    assert lost == missed
    assert len({ends[0] for ends in weights(records, "done")}) == 4


def test_synchronisation_brings_them_together_at_the_source():
    records = run(loss=True, sync=True)
    for epochs in zip(*(of(records, "epoch", w) for w in range(4)), strict=True):
        missed = [epoch["missed"] for epoch in epochs]
        (source,) = {epoch["source"] for epoch in epochs}
        assert source == missed.index(min(missed))
        sent = [3 * 4 * 4060 if w == source else 4 * 4060 for w in range(4)]
        assert [epoch["bytes"] for epoch in epochs] == sent
        assert len({epoch["test_accuracy"] for epoch in epochs}) == 1
    assert len({ends[0] for ends in weights(records, "done")}) == 1
    assert of(records, "done")[0]["test_accuracy"] > 0.93


def test_a_threshold_above_what_was_missed_leaves_workers_apart():
    records = run(loss=True, sync=True, sync_threshold=1000, epochs=1)
    epochs = [of(records, "epoch", w)[0] for w in range(4)]
    assert [(e["source"], e["bytes"]) for e in epochs] == [(None, 0)] * 4
    assert any(epoch["missed"] for epoch in epochs)


@pytest.mark.parametrize("reliability", ["lossy", "retransmit"])
def test_a_left_out_straggler_is_in_no_sum_and_gets_every_result(reliability):
    straggler = (("count", 1), ("leave_out", True))
    records = run(straggler=straggler, quorum=3, reliability=reliability)
    for number in range(88):
        rounds = [r for r in records if r["kind"] == "round" and r["round"] == number]
        lines = [r for r in records if r["kind"] == "arrival" and r["ticket"] == number]
        (bitmap,) = {int(line["bitmap"], 16) for line in lines}
        assert bitmap.bit_count() == 3
        assert sum(r["missed"] for r in rounds) == 0
        silent = [r["worker"] for r in rounds if r["payload_up"] == 0]
        # In a lossy job its packets come late; else it has its results before it would send again.
        assert silent == ([] if reliability == "lossy" else [(0b1111 ^ bitmap).bit_length() - 1])
    assert weights(records) == [weights(records)[0]] * 4
    assert of(records, "done")[0]["test_accuracy"] > 0.9


def spans(records):
    """Return start and end of each round, by worker."""
    return [[(r["started"], r["finished"]) for r in of(records, "round", w)] for w in range(4)]


def test_a_straggler_of_one_round_delays_no_other_round():
    straggler = (("workers", (2,)), ("leave_out", True), ("rounds", (5, 6, 9)))
    late = run(straggler=straggler, quorum=3, epochs=1)
    assert spans(late) == spans(run(quorum=3, epochs=1))
    bitmaps = {
        number: {r["bitmap"][-1] for r in of(late, "arrival") if r["ticket"] == number}
        for number in (4, 5, 6, 7)
    }
    assert bitmaps[5] == bitmaps[6] == {"b"}
    assert bitmaps[4] == bitmaps[7] == {"7"}


def test_a_straggler_among_losses_delays_nobody_for_long():
    """It waits as long as others who miss a result, not through all its timeouts."""
    straggler = (("count", 1), ("leave_out", True))
    late = run(loss=True, straggler=straggler, quorum=3, epochs=1, timeout_ns=200_000_000)
    # In the first rounds nothing is measured yet.
    assert max(end - start for worker in spans(late) for start, end in worker[4:]) < 100_000_000
    missed = [[r["missed"] for r in of(late, "round", w)] for w in range(4)]
    assert not [counts for counts in zip(*missed, strict=True) if counts == (4, 4, 4, 4)]


def test_a_delayed_straggler_makes_nobody_wait_where_the_quorum_does_not_need_it():
    straggler = (("workers", (3,)), ("delay_ms", 0.5))
    quorum = run(straggler=straggler, quorum=3, epochs=1)
    everyone = run(straggler=straggler, reliability="retransmit", timeout_ns=10**8, epochs=1)
    usual = run(epochs=1)
    last = [of(records, "done")[0]["at"] for records in (usual, quorum, everyone)]
    assert last[0] == last[1] < last[2]
    # Per round the norm waits 0.5 ms, and both chunks of each of two windows together 0.5 ms more.
    assert last[2] - last[0] == 22 * 3 * 500_000
    assert weights(everyone) == weights(usual)


def test_junk_is_counted_and_changes_nothing():
    job = make_job(epochs=1)
    network, hosts = build(job)
    junk = [b"", b"\x12", bytes(24), b"\x14" + bytes(1047), b"\xda\x01" + bytes(40), bytes(9000)]
    for at in range(0, 3_000_000, 100_000):
        for host in hosts:
            for port in (*host.ports, 5):
                for payload in junk:
                    for sender in (("10.9.9.9", 7), job.addresses.aggregator):
                        network.at(
                            at,
                            lambda h=host, p=port, s=sender, b=payload: h.receive(
                                p, *s, Payloads.of([b])
                            ),
                        )
    network.run()
    assert weights(network.records) == weights(run(epochs=1))
    for host in hosts:
        assert host.ignored["strays"] == 30 * 6 * 2
        assert sum(host.ignored.values()) == 3 * host.ignored["strays"]
