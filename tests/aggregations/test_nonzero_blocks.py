"""Blocks whose codes repeat travel as headers (nonzero_blocks), and the sums are the dense ones."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from levels_network import VALUES, Faults, Network, deployment, play

from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import load_deployment
from gradplane.hosts.protocols.results import TRANSIENT
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type, WireError, parse
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer.replay_run import replay

SPARSE = {"push": "switchml", "error_feedback": False}
FAULTS = [Faults(), Faults(0.1, 0.1, 0.1), Faults(0.05, 0.05, 0.05, restarts=2, late=True)]
Runs = Callable[..., Summary]


def sparse(leaves: int, nonzero_blocks: bool, **keys: object):
    return deployment(4, leaves, **SPARSE, nonzero_blocks=nonzero_blocks, **keys)


def dense_sums(deployed) -> list[str]:
    """Return the digests of the sums of the sparse vectors, sent whole."""
    network = Network(deployed)
    network.sparse = True
    for ticket in range(2):
        network.reduce(ticket, 7)
        network.run(ticket)
    return [network.results[0][ticket].sums for ticket in range(2)]


@pytest.mark.parametrize("sum_bits", [8, 16, 32])
@pytest.mark.parametrize("leaves", [1, 2, 0])
def test_sums_are_those_of_whole_packets(leaves: int, sum_bits: int) -> None:
    expected = dense_sums(sparse(1, nonzero_blocks=False, sum_bits=sum_bits))
    for seed, faults in enumerate(FAULTS):
        network = play(sparse(leaves, True, sum_bits=sum_bits), seed, faults)
        found = [[one[t].sums for t in range(2)] for one in network.results]
        assert found == [expected] * 4
        assert network.check() == len(network.arrivals) > 0


def test_zeros_cost_a_header_up_and_a_few_sums_down() -> None:
    network = Network(sparse(1, True))
    vectors = np.zeros((4, VALUES), np.float32)
    vectors[0, 0] = vectors[3, -1] = 1
    for worker, vector in enumerate(vectors):
        network._perform(worker, network.workers[worker].reduce(0, vector, 0))
    network.run(0)
    assert [one[0].mean[[0, -1]].tolist() for one in network.results] == [[0.25, 0.25]] * 4
    chunks, whole, header = 32, 512, 42 + aggregation.HEADER_SIZE
    last = 1  # of each worker: its codes end before the packet does
    up = 4 * chunks * header + (2 + 4 * last - 1) * whole
    down = 4 * (chunks * header + (chunks - 2) * 16 + 2 * 1024)
    norms = 2 * 4 * header
    assert sum(len(frame) for *_, frame in network.frames) == up + down + norms


def test_integers_are_exact() -> None:
    network = Network(sparse(1, True))
    vectors = np.random.default_rng(3).integers(-99, 99, (4, VALUES), np.int32)
    vectors[:, 1000:] = 0
    for worker, vector in enumerate(vectors):
        actions = network.workers[worker].reduce(0, vector, 0, TRANSIENT)
        network._perform(worker, actions)
    network.run(0)
    for found in network.results:
        assert (found[0].total == vectors.sum(axis=0)).all()


@pytest.mark.parametrize("code_bits", [1, 2, 4, 8])
@pytest.mark.parametrize("sum_bits", [8, 16, 32])
def test_the_wire_format(sum_bits: int, code_bits: int) -> None:
    unit = random.Random(code_bits).randbytes(8)
    place = (3, 0, 1, 2, sum_bits)
    keys = {"flags": aggregation.REPEATS, "code_bits": code_bits}
    codes = Header(Type.INDICES, *place, bitmap=int.from_bytes(unit, "big"), **keys).pack()
    lanes = aggregation.LANES[sum_bits]
    assert parse(codes)[1] == unit * (lanes * code_bits // 64)
    sums = random.Random(sum_bits).randbytes(64 // code_bits * sum_bits // 8)
    header = Header(Type.SUMS, *place, **keys).pack()
    assert parse(header + sums)[1] == sums * (1024 // len(sums))
    with pytest.raises(WireError, match=rf"^SUMS: 1024 bytes after the header, .* {len(sums)}$"):
        parse(header + bytes(1024))


TRAINING = (
    'job.push={name="switchml", workers=2}', "job.error_feedback=false", "job.epochs=1",
    "job.model=gradplane.studies.word_topics:bag", "job.data=gradplane.studies.word_topics:texts",
    "job.nonzero_blocks=true", "job.reliability=retransmit", "topology.workers=2",
    "output.baseline=false",
)  # fmt: skip


def test_a_run_and_its_replay(tmp_path: Path) -> None:
    from gradplane.runs.run_experiment import run

    losses = 'impairment=[{model="bernoulli", rate=0.02}]'
    ended = run("thc-star", tmp_path / "run", net="sim", settings=(*TRAINING, losses))
    (job,) = ended.values["jobs"]
    assert job["traffic"]["payload_up"] < 4 * job["values"] / 3
    assert replay(tmp_path / "run").difference is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (("job.push=thc",), 'its rotation leaves no block of zeros: use push = "switchml"'),
        (("job.aggregation=ps",), 'only the switch of aggregation = "switch" fills in the blocks'),
        (("job.aggregation=shared",), 'only the switch of aggregation = "switch"'),
        (("switch.target=tofino",), 'on switches of target = "embedded" only'),
    ],
)
def test_where_nothing_fills_in_zeros(settings: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ExperimentError, match=reason):
        load_deployment("thc-star", (*TRAINING, *settings))
