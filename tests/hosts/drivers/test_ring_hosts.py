"""Hosts in a ring, and hosts whose vectors the network compresses, on the virtual network."""

from functools import partial

import numpy as np
import pytest
from host_configs import make_hosts, make_job
from ring_network import compressed
from virtual_network import Network

LOSS = {"model": "bernoulli", "rate": 0.05, "seed": 3}


def run(job, impairments=()):
    compress = partial(compressed, bound=job.coding.bound) if job.coding.marked else None
    network = Network(compress=compress)
    for config in make_hosts(job, impairments):
        network.add(config)
    network.run()
    return network


def of(network, kind, worker=0):
    return [r for r in network.records if r["kind"] == kind and r.get("worker") == worker]


def weights(network):
    return [r["weights"] for r in of(network, "round")]


@pytest.fixture(scope="module")
def plain():
    return run(make_job(aggregation="ring", sync=True))


@pytest.fixture(scope="module")
def marked():
    return run(make_job(aggregation="ring", marked=True, bound=10))


def test_it_learns(plain):
    assert of(plain, "done")[0]["test_accuracy"] > 0.93


def test_it_learns_as_well_compressed(plain, marked):
    accuracies = [of(network, "done")[0]["test_accuracy"] for network in (plain, marked)]
    assert accuracies[1] > accuracies[0] - 0.01
    assert weights(plain) != weights(marked)


def test_every_worker_has_the_same_weights_all_along(plain, marked):
    for network in (plain, marked):
        for key in ("weights", "sums"):
            by_worker = [[r[key] for r in of(network, "round", w)] for w in range(4)]
            assert all(digests == by_worker[0] for digests in by_worker)


def test_an_epoch_ends_with_a_synchronisation_that_copies_nothing(plain):
    epochs = of(plain, "epoch", 2)
    assert [(e["epoch"], e["missed"], e["source"], e["bytes"]) for e in epochs] == [
        (epoch, 0, None, 0) for epoch in range(4)
    ]


def test_losses_change_no_weight_in_the_workers_order():
    job = make_job(aggregation="ring", epochs=1, sum_order="workers")
    own, lossy = run(job), run(job, [LOSS])
    assert weights(own) == weights(lossy) and len(weights(own)) == 22
    assert any(r["kind"] == "verdict" for r in lossy.records)


@pytest.mark.parametrize("changes", [{}, {"marked": True, "bound": 10}])
def test_losses_change_no_weight(plain, marked, changes):
    lossy = run(make_job(aggregation="ring", epochs=1, **changes), [LOSS])
    verdicts = [r for r in lossy.records if r["kind"] == "verdict"]
    kinds = {"stream", "values", "ack"} if changes else {"stream", "ack"}
    assert {verdict["type"] for verdict in verdicts} == kinds
    assert weights(lossy) == weights(marked if changes else plain)[:22]


def test_a_rounds_traffic_is_its_blocks(marked):
    for record in of(marked, "round", 1):
        # 4060 values: 3 partial and 3 whole blocks of a quarter each way, and their headers.
        assert record["payload_up"] == record["payload_down"] == 6 * (1015 * 4 + 20)


def test_results_are_in_the_log(plain):
    arrivals = of(plain, "arrival", 3)
    assert [a["ticket"] for a in arrivals] == list(range(88))
    assert arrivals[0] | {"at": 0, "digest": ""} == {
        "kind": "arrival",
        "ip": "10.0.0.4",
        "job": 1,
        "ticket": 0,
        "worker": 3,
        "slot": None,
        "use": None,
        "result": "in time",
        "count": 4,
        "bitmap": "000000000000000f",
        "digest": "",
        "attempts": 1,
        "notices": 0,
        "at": 0,
    }
    assert [a["digest"] for a in arrivals] == [r["sums"] for r in of(plain, "round", 3)]


def test_a_single_worker_is_a_ring():
    assert of(run(make_job(aggregation="ring", workers=1)), "done")[0]["test_accuracy"] > 0.9


# Through a server, compressed on the way there


def test_pushed_vectors_are_compressed_and_answers_are_not():
    seen = []

    def compress(payload):
        seen.append(payload)
        return compressed(payload, 10)

    job = make_job(aggregation="ps", marked=True, bound=10, epochs=2)
    network = Network(compress=compress)
    for config in make_hosts(job):
        network.add(config)
    network.run()
    assert of(network, "done")[0]["test_accuracy"] > 0.9
    assert len({of(network, "done", w)[0]["weights"] for w in range(4)}) == 1
    pushed = 4 * 44 * 16  # workers, rounds, segments of 256 of 4060 values
    assert len(seen) == pushed, "nothing else is marked"


# Where the time goes


@pytest.mark.parametrize(
    "changes, codec, reduce",
    [
        # Of 4060 values: own quarter encoded; 2 decoded, added and encoded; one more, which is then
        # whole; 3 whole ones decoded.
        ({"aggregation": "ring", "codec": ("float16", {})}, 10 * 1015 * 2, 3 * 1015 * 1),
        ({"aggregation": "ring"}, 0, 3 * 1015 * 1),
        ({"aggregation": "ps", "codec": ("float16", {})}, 4060 * 2, 0),
        ({"aggregation": "ps", "pull_codec": ("float16", {})}, 4060 * 2, 0),
    ],
)
def test_a_rounds_parts(changes, codec, reduce):
    free = run(make_job(epochs=1, batch=300, **changes))
    timed = run(make_job(epochs=1, batch=300, codec_ns=2.0, reduce_ns=1.0, **changes))
    assert weights(free) == weights(timed), "time changes no value"
    for record in of(timed, "round"):
        assert (record["codec"], record["reduce"]) == (codec, reduce)
        assert record["finished"] - record["computed"] > codec + reduce
    for record in of(free, "round"):
        assert (record["codec"], record["reduce"]) == (0, 0)


def test_a_servers_parts_are_a_record_of_its_own():
    job = make_job(
        aggregation="ps", codec=("float16", {}), epochs=1, batch=300, codec_ns=2.0, reduce_ns=1.0
    )
    network = run(job)
    (parts,) = (r for r in network.records if r["kind"] == "parts")
    (record,) = of(network, "round")
    assert parts | {"at": 0} == {
        "kind": "parts",
        "ip": "10.0.0.5",
        "job": 1,
        "ticket": 0,
        "codec": 4 * 4060 * 2,
        "reduce": 3 * 4060 * 1,
        "at": 0,
    }
    assert record["finished"] - record["computed"] > 4060 * 2 + parts["codec"] + parts["reduce"]


def test_through_a_switch_coding_takes_time_before_and_after():
    from virtual_network import make_switch

    ended = []
    for ns in (0.0, 3.0):
        job = make_job(epochs=1, batch=300, codec_ns=ns)
        network = Network(job.addresses.aggregator[0], make_switch(job))
        for config in make_hosts(job):
            network.add(config)
        network.run()
        (record,) = of(network, "round")
        ended.append(record["finished"])
        assert record["codec"] == 2 * 4060 * ns
    assert ended[1] - ended[0] == 2 * 4060 * 3


# Exchanges without learning


def test_a_synthetic_model_exchanges_and_learns_nothing():
    job = make_job(
        aggregation="ring",
        model="synthetic",
        model_args={"values": 100_000, "scale": 0.01},
        data="blank",
        data_args={"rows": 8},
        batch=1,
        epochs=2,
    )
    network = run(job)
    assert len(of(network, "round")) == 4
    assert len({r["gradient"] for w in range(4) for r in of(network, "round", w)}) == 8
    assert of(network, "done")[0]["test_accuracy"] == 0.0
    for record in of(network, "round")[1:]:
        assert record["payload_up"] == 6 * (25_000 * 4 + 20)


def test_a_recorded_gradient_is_exchanged(tmp_path):
    from gradplane.hosts.training.models import build

    recorded = np.arange(10, dtype=np.float32)
    np.save(tmp_path / "gradient.npy", recorded)
    args = {"file": str(tmp_path / "gradient.npy"), "scale": 0.5}
    model = build("synthetic", args, features=1, classes=1)
    x, y = np.ones((1, 1), np.float32), np.zeros(1, np.int64)
    loss, gradient = model.loss_and_gradient(model.parameters(1), x, y)
    assert (loss, sorted(gradient)) == (0.0, sorted(recorded / 2))
