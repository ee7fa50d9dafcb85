"""The ring over Streams, on a network that loses, repeats, reorders and compresses."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ring_network import SUMS, RingNetwork, ring_job
from stream_network import MS, chaos

from gradplane.hosts.stream import segments
from gradplane.hosts.stream.segments import ValuesSegment
from gradplane.hosts.wire.marked_values import truncated


def vectors(workers, size, seed, scale=0.01):
    rng = np.random.default_rng(seed)
    return [(scale * rng.normal(size=size)).astype(np.float32) for _ in range(workers)]


def totals(network, ticket):
    return [network.delivered[peer, ticket].total for peer in network.plan.peers]


@settings(max_examples=40)
@given(
    st.integers(1, 6),
    st.sampled_from([0, 1, 5, 300, 3000]),
    st.sampled_from([0, 0.02, 0.2]),
    st.sampled_from([0, 0.3]),
    st.sampled_from([0, 2, 50]),
    st.sampled_from(sorted(SUMS)),
    st.integers(0, 2**32),
)
def test_sums_are_exact_on_any_network(workers, size, loss, repeats, jitter, order, seed):
    job = ring_job(workers=workers, sum_order=order)
    network = RingNetwork(job, chaos(seed, loss, repeats, jitter))
    xs = vectors(workers, size, seed)
    network.reduce(0, xs)
    network.run()
    for total in totals(network, 0):
        assert np.array_equal(total, SUMS[order](xs))
    assert not any(network.marked)


@settings(max_examples=60)
@given(
    st.integers(2, 6),
    st.sampled_from([1, 7, 300, 3001]),
    st.sampled_from([6, 8, 10]),
    st.sampled_from([0.001, 0.01, 1.0, 30.0]),
    st.sampled_from([0, 0.05]),
    st.sampled_from([0, 0.5, 1]),
    st.sampled_from(sorted(SUMS)),
    st.integers(0, 2**32),
)
def test_compression_on_each_hop_keeps_its_bound(
    workers, size, bound, scale, loss, share, order, seed
):
    """Whichever packets are compressed, all have the same bits, and the mean's error is below
    2^-bound: each of n encodings of a sum adds less than that, and the mean is a sum over n."""
    job = ring_job(workers=workers, marked=True, bound=bound, sum_order=order)
    random = Random(seed)
    network = RingNetwork(job, chaos(seed, loss, loss, 2), lambda payload: random.random() < share)
    xs = vectors(workers, size, seed, scale)
    network.reduce(0, xs)
    network.run()
    first, *others = totals(network, 0)
    assert all(total.tobytes() == first.tobytes() for total in others)
    exact = np.sum(np.array(xs, np.float64), axis=0)
    rounding = workers * np.abs(np.array(xs)).sum(axis=0).max() * 2.0**-24
    assert np.abs(first - exact).max() < workers * 2.0**-bound + rounding
    if share == 0:
        assert np.array_equal(first, truncated(SUMS[order](xs), bound))


def test_a_marked_job_marks_its_values_and_nothing_else():
    network = RingNetwork(ring_job(workers=2, marked=True, bound=10))
    network.reduce(0, vectors(2, 2000, 1))
    network.run()
    kinds = [type(segments.parse(payload)).__name__ for payload in network.datagrams]
    marked = [isinstance(segments.parse(payload), ValuesSegment) for payload in network.datagrams]
    assert network.marked == marked
    # Two workers, two transfers of 1000 values each: a head, and 4 segments of up to 256.
    assert (kinds.count("DataSegment"), kinds.count("ValuesSegment")) == (4, 16)
    assert network.tos == [0x28 if mark else 0 for mark in marked]


@pytest.mark.parametrize(
    "workers, ring, ring_most, server, server_most",
    [
        (2, 0.124, 0.91, 0.110, 0.91),
        (4, 0.100, 0.56, 0.080, 0.68),
        (8, 0.078, 0.35, 0.058, 0.36),
        (16, 0.060, 0.24, 0.042, 0.23),
    ],
)
def test_the_error_is_what_the_docstring_says(workers, ring, ring_most, server, server_most):
    job = ring_job(workers=workers, marked=True, bound=10)
    network = RingNetwork(job, lambda payload: [MS], lambda payload: True)
    xs = vectors(workers, 20_000, 5)
    network.reduce(0, xs)
    network.run()
    mean = network.delivered[network.plan.peers[0], 0].mean
    exact = np.mean(np.array(xs, np.float64), axis=0)
    error = np.abs(mean - exact) * 2**10
    assert (error.mean(), error.max()) == pytest.approx((ring, ring_most), abs=0.005)
    error = np.abs(np.mean([truncated(x, 10) for x in xs], axis=0) - exact) * 2**10
    assert (error.mean(), error.max()) == pytest.approx((server, server_most), abs=0.005)
