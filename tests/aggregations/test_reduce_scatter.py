"""In a reduce-scatter through switches a worker gets the sums of its own part, and no others."""

from dataclasses import replace

import numpy as np
import pytest
from levels_network import VALUES, Faults, Network, deployment, play

from gradplane.hosts.config import UDP_OVERHEAD
from gradplane.hosts.protocols.results import CUT, SCATTERED, TRANSIENT, own_part
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type, WireError, parse
from gradplane.hosts.wire.payloads import Payloads

FAULTS = [
    Faults(),
    Faults(losses=0.1),
    Faults(0.1, 0.1, 0.1),
    Faults(0.2, 0.2, 0.2),
    Faults(0.05, 0.05, 0.05, restarts=3, late=True),
]
WORKERS, CHUNKS = 4, 4  # of 1,000 values each


def scattered(deployed, seed: int = 0, faults: Faults = FAULTS[0]) -> Network:
    return play(deployed, seed, faults, tensor=CUT)


def digests(network: Network) -> list[list[str]]:
    """Return the digests of each worker's sums, by ticket."""
    return [[found[ticket].sums for ticket in range(2)] for found in network.results]


@pytest.mark.parametrize("leaves", [1, 2, 0])  # 1: a star; 0: three levels
def test_sums_are_right_whatever_happens_on_the_links(leaves: int) -> None:
    expected = digests(scattered(deployment(WORKERS, 1)))
    assert len({digest for found in expected for digest in found}) == 2 * WORKERS
    tree = deployment(WORKERS, leaves)
    for seed, faults in enumerate(FAULTS):
        network = scattered(tree, seed, faults)
        assert digests(network) == expected
        taken = [line for line in network.arrivals if line["digest"]]
        assert network.check() == len(taken) == 2 * CHUNKS
        assert len(network.arrivals) == WORKERS * len(taken)


def test_a_worker_has_the_mean_of_its_part_and_zeros() -> None:
    network = scattered(deployment(WORKERS, 1))
    vectors = [np.random.default_rng([7, 1, w]).normal(size=VALUES) for w in range(WORKERS)]
    for worker, found in enumerate(network.results):
        part, mean = own_part(VALUES, worker, WORKERS), found[1].mean.copy()
        exact = np.mean(vectors, axis=0)[part]
        assert np.square(mean[part] - exact).sum() < 0.1 * np.square(exact).sum()
        mean[part] = 0
        assert not mean.any()
        assert (found[1].missed, found[1].counts.tolist()) == (0, [WORKERS] * CHUNKS)


@pytest.mark.parametrize("leaves", [1, 2])
def test_sums_cross_the_link_of_the_worker_that_needs_them(leaves: int) -> None:
    network = scattered(deployment(WORKERS, leaves))
    each = {(worker, True): 2 for worker in range(WORKERS)}
    others = {(worker, False): 2 * (CHUNKS - 1) for worker in range(WORKERS)}
    assert network.sums == each | others
    if leaves == 1:
        header = 42 + aggregation.HEADER_SIZE
        norms = 2 * WORKERS * WORKERS * 2 * header
        up, down = WORKERS * CHUNKS * 512, WORKERS * 1024
        assert (
            sum(len(frame) for *_, frame in network.frames)
            == 2 * (up + down + 2 * WORKERS * CHUNKS * header) + norms
        )


@pytest.mark.parametrize("leaves", [1, 2])
@pytest.mark.parametrize("sum_bits", [8, 32])
def test_integers_are_exact(leaves: int, sum_bits: int) -> None:
    network = Network(deployment(WORKERS, leaves, sum_bits=sum_bits), 3, FAULTS[2])
    total = network.reduce_integers(0, 7, CUT)
    network.run(0)
    for worker, found in enumerate(network.results):
        part = own_part(VALUES, worker, WORKERS)
        assert (found[0].total[part] == total[part]).all()
        assert not np.delete(found[0].total, part).any()


@pytest.mark.parametrize(("leaves", "keys"), [(1, {"quorum": 3}), (2, {"quorums": (1, 2)})])
@pytest.mark.parametrize("reliability", ["lossy", "retransmit"])
def test_with_a_smaller_quorum_nobody_is_stuck(
    leaves: int, keys: dict[str, object], reliability: str
) -> None:
    deployed = deployment(WORKERS, leaves, reliability=reliability, **keys)
    checked = 0
    for seed, faults in enumerate(FAULTS):
        checked += scattered(deployed, seed, faults).check()
    assert checked > 0


def test_a_lost_result_without_sums_is_no_miss() -> None:
    """In a lossy job worker 1 waits only for the results that its own part needs."""
    network = Network(deployment(WORKERS, 1, reliability="lossy"))
    network.reduce(0, 7, tensor=CUT)
    while not all(network.results):
        network.under_way[:] = [each for each in network.under_way if not _is_bare(*each)]
        network.step()
    found = network.results[1][0]
    assert (found.missed, found.counts.tolist()) == (0, [0, WORKERS, 0, 0])


def _is_bare(node: str, port: int, frame: bytes) -> bool:
    """Return whether a frame is a result without sums for worker 1."""
    payload = frame[UDP_OVERHEAD:]
    return node == "h2" and bool(payload[0] & 15 == Type.SUMS and payload[1] & aggregation.BARE)


def test_blocks_of_zeros_stay_headers() -> None:
    sparse = {"push": "switchml", "error_feedback": False, "nonzero_blocks": True}
    expected = digests(scattered(deployment(WORKERS, 1, **sparse)))
    for leaves, seed in ((1, 2), (2, 3)):
        network = scattered(deployment(WORKERS, leaves, **sparse), seed, FAULTS[seed])
        assert digests(network) == expected
        assert network.check() > 0


def test_rounds_of_both_kinds_share_slots() -> None:
    network = Network(deployment(WORKERS, 1), 5, FAULTS[2])
    for ticket in range(4):
        network.reduce(ticket, 7, tensor=(CUT if ticket % 2 else TRANSIENT) + ticket)
    for ticket in range(4):
        network.run(ticket)
    assert [len({found[t].sums for found in network.results}) for t in range(4)] == [1, 4, 1, 4]
    assert network.check() > 0


def test_those_in_records_of_older_versions_have_all_sums() -> None:
    network = play(deployment(WORKERS, 1), 0, FAULTS[0], tensor=SCATTERED)
    assert len({digest for found in digests(network) for digest in found}) == 2


def test_a_part_without_its_sums_is_refused() -> None:
    """The worker waits on, and takes the sums when they come."""
    network, held = Network(deployment(WORKERS, 1)), []
    network.reduce(0, 7, tensor=CUT)
    while not held:
        node, port, frame = network.under_way.pop(0)
        if node == "h1" and len(frame) > 1000:
            held.append((node, port, frame))
        else:
            network.arrive(node, port, frame)
    payload = held[0][2][UDP_OVERHEAD:]
    bare = replace(parse(payload)[0], flags=aggregation.BARE).pack()
    worker, source = network.workers[0], network.job.addresses.aggregator
    assert not worker.receive(*source, Payloads.of([bare]), network.now)
    assert worker.refused["no sums"] == 1
    network.arrive(*held[0])
    network.run(0)
    assert network.check() == CHUNKS


def test_the_wire_format() -> None:
    place = (Type.SUMS, 3, 0, 1, 2, 8)
    assert parse(Header(*place, flags=aggregation.BARE).pack())[1] == b""
    with pytest.raises(WireError, match=r"^SUMS: 1024 bytes after the header, expected 0$"):
        parse(Header(*place, flags=aggregation.BARE).pack() + bytes(1024))
    with pytest.raises(WireError, match=r"^SUMS: 0 bytes after the header, expected 1024$"):
        parse(Header(*place).pack())
