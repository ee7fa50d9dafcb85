"""Hosts with a parameter server on the virtual network."""

import pytest
from host_configs import make_hosts, make_job
from virtual_network import DELAY_NS, Network

from gradplane.hosts.wire.payloads import Payloads

LOSS = {"model": "bernoulli", "rate": 0.05, "seed": 3}


def run(job, impairments=()):
    network = Network()
    for config in make_hosts(job, impairments):
        network.add(config)
    network.run()
    return network


def of(network, kind, worker=0):
    return [r for r in network.records if r["kind"] == kind and r["worker"] == worker]


@pytest.fixture(scope="module")
def plain():
    return run(make_job(aggregation="ps", sync=True))


def test_it_learns(plain):
    (done,) = of(plain, "done")
    assert done["test_accuracy"] > 0.93
    assert done["at"] <= plain.time


def test_every_worker_ends_with_the_same_weights(plain):
    assert len({of(plain, "done", worker)[0]["weights"] for worker in range(4)}) == 1


def test_a_rounds_times_are_the_computing_and_the_way_there_and_back(plain):
    for record in of(plain, "round"):
        assert record["computed"] - record["started"] == 100_000
        assert record["finished"] - record["computed"] >= 4 * DELAY_NS / 2


def test_a_rounds_traffic_is_its_messages():
    rounds = of(run(make_job(aggregation="ps", epochs=2)), "round")
    assert [r["epoch"] for r in rounds] == [0] * 22 + [1] * 22
    for record in rounds:
        assert record["payload_up"] == record["payload_down"] == 4 * 4060 + 20
        assert record["packets_up"] >= 12
        least = record["payload_up"] + record["packets_up"] * 42
        assert record["wire_up"] >= least


def test_an_epochs_record_shows_the_synchronisation(plain):
    epochs = of(plain, "epoch", 2)
    assert [(e["epoch"], e["missed"], e["source"], e["bytes"]) for e in epochs] == [
        (epoch, 0, None, 0) for epoch in range(4)
    ]
    assert epochs[-1]["test_accuracy"] == of(plain, "done", 2)[0]["test_accuracy"]


def test_losses_change_no_weight_and_every_verdict_is_in_the_log(plain):
    lossy = run(make_job(aggregation="ps", sync=True, epochs=1), [LOSS])
    verdicts = [r for r in lossy.records if r["kind"] == "verdict"]
    assert {(r["verdict"], r["direction"]) for r in verdicts} == {("drop", "up"), ("drop", "down")}
    assert [r["weights"] for r in of(lossy, "round")] == [
        r["weights"] for r in of(plain, "round")[:22]
    ]


def test_a_start_time_is_kept():
    job = make_job(aggregation="ps", epochs=1, batch=300)
    network = Network()
    import dataclasses

    for config in make_hosts(job):
        network.add(dataclasses.replace(config, start_at=7_000))
    network.run()
    assert {r["started"] for r in network.records if r["kind"] == "round"} == {7_000}


def test_what_is_hostile_or_astray_is_counted_and_changes_nothing(plain):
    job = make_job(aggregation="ps", sync=True, epochs=1)
    network = Network()
    hosts = [network.add(config) for config in make_hosts(job)]
    junk = [b"", b"\xda", b"\xda\x01\x00\x00" + bytes(24), b"\xda\x02" + bytes(54), bytes(2000)]
    for at in range(0, 3_000_000, 100_000):
        for host in hosts:
            for payload in (Payloads.of([datagram]) for datagram in junk):
                network.at(at, lambda h=host, p=payload: h.receive(h.ports[0], "10.9.9.9", 7, p))
                network.at(at, lambda h=host, p=payload: h.receive(5, "10.9.9.9", 7, p))
    network.run()
    assert [r["weights"] for r in of(network, "round")] == [
        r["weights"] for r in of(plain, "round")[:22]
    ]
    for host in hosts:
        assert host.ignored["strays"] > 100
        assert sum(host.ignored.values()) > 1.5 * host.ignored["strays"]


def test_a_server_that_is_not_there_ends_the_worker_with_the_reason():
    from gradplane.hosts.drivers.training_host import HostError

    job = make_job(aggregation="ps", workers=1)
    network = Network()
    network.add(make_hosts(job)[0])
    network.hosts["10.0.0.2"] = []
    with pytest.raises(HostError) as caught:
        network.run()
    assert str(caught.value).startswith("host h1: 10.0.0.2:21001")
