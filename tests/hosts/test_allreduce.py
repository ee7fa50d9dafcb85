"""The ring for user programs, over UDP on loopback."""

import os
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from random import Random

import numpy as np
import pytest
from ring_network import ring_sums

from gradplane.hosts.allreduce import PORT, Ring, RingError, RingTimeout
from gradplane.hosts.stream import segments
from gradplane.hosts.wire.marked_values import truncated

_nets = count(1)


def addresses(n):
    """Return n loopback addresses that no other test uses, in this process or another."""
    pid, net = os.getpid(), next(_nets)
    return [f"127.{pid >> 8 & 255}.{pid & 255}.{net * 8 + k}" for k in range(n)]


def together(n, program, kind=Ring, timeout=120.0):
    """Run program(ring) for each rank of n, in threads; return the results by rank."""
    peers = addresses(n)

    def run(rank):
        with kind(rank, peers, timeout) as ring:
            return program(ring, rank)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(run, range(n)))


def vectors(n, size, scale=0.01):
    rng = np.random.default_rng(size)
    return [(scale * rng.normal(size=size)).astype(np.float32) for _ in range(n)]


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_sums_of_any_shape(n):
    def program(ring, rank):
        return [ring.allreduce(xs[rank].reshape(shape)) for xs, shape in zip(*given, strict=True)]

    given = [vectors(n, 6000), vectors(n, 1), vectors(n, 0)], [(20, 30, 10), (), (0, 3)]
    for results in together(n, program):
        for result, xs, shape in zip(results, *given, strict=True):
            assert (result.shape, result.dtype) == (shape, np.float32)
            assert np.array_equal(result.ravel(), ring_sums(xs))


def test_sums_in_the_order_of_the_ranks():
    class Ordered(Ring):
        def __init__(self, *arguments):
            super().__init__(*arguments, sum_order="workers")

    xs = vectors(3, 6000)
    expected = xs[0] + xs[1] + xs[2]
    for exact, tight in together(
        3,
        lambda ring, rank: (ring.allreduce(xs[rank]), ring.allreduce_compressed(xs[rank])),
        Ordered,
    ):
        assert np.array_equal(exact, expected)
        assert np.array_equal(tight, truncated(expected, 10))


def test_compressed_sums_are_what_the_bound_leaves():
    xs = vectors(3, 5000)

    def program(ring, rank):
        loose, exact = ring.allreduce_compressed(xs[rank], 6), ring.allreduce(xs[rank])
        ring.barrier()
        return loose, exact, ring.allreduce_compressed(xs[rank])

    for loose, exact, tight in together(3, program):
        assert np.array_equal(exact, ring_sums(xs))
        assert np.array_equal(loose, truncated(exact, 6))
        assert np.array_equal(tight, truncated(exact, 10))


def test_losses_change_nothing():
    class Lossy(Ring):
        random = Random(1)

        def _send(self, send):
            if self.random.random() > 0.1:
                super()._send(send)

    xs = vectors(3, 20_000)
    results = together(3, lambda ring, rank: ring.allreduce(xs[rank]), Lossy)
    assert all(np.array_equal(result, ring_sums(xs)) for result in results)


def test_marked_values_have_the_type_of_service_and_the_port_that_switches_know():
    peers = addresses(2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as right, Ring(0, peers, 0.2) as ring:
        right.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        right.bind((peers[1], PORT))
        right.settimeout(60)
        with pytest.raises(RingTimeout):
            ring.allreduce_compressed(np.ones(1000, np.float32))
        head, values = (right.recvmsg(2048, 64) for _ in range(2))
    assert isinstance(segments.parse(head[0]), segments.DataSegment)
    assert values[0][16:] == np.ones(256, ">f4").tobytes()
    assert [message[1][0][2][0] for message in (head, values)] == [0, 0x28]


def test_who_is_silent_is_named():
    peers = addresses(3)
    with Ring(1, peers, timeout=0.3) as ring:
        text = (
            rf"allreduce, call 0, rank 1: not done after 0.3 s; rank 0 \({peers[0]}:18257\) was "
            rf"never heard and owes 4 of 4 blocks; rank 2 \({peers[2]}:18257\) does not acknowledge"
        )
        with pytest.raises(RingTimeout, match=f"^{text}$"):
            ring.allreduce(np.ones(9, np.float32))
        with pytest.raises(
            RingError, match=r"^barrier: an earlier call failed \(allreduce, call 0"
        ):
            ring.barrier()


def test_who_fell_silent_is_named():
    def program(ring, rank):
        ring.barrier()
        if rank == 1:
            with pytest.raises(
                RingTimeout, match=r"rank 0 \(.*\) was last heard \d+\.\d s ago and ow"
            ):
                ring.barrier()

    together(2, program, timeout=4)


def test_differing_calls_are_refused():
    def program(ring, rank):
        x = np.ones(4, np.float32)
        with pytest.raises(RingError) as caught:
            ring.allreduce(x) if rank else ring.allreduce_compressed(x, 8)
        return str(caught.value)

    first, second = together(2, program)
    way_out = ": all must make the same calls in the same order"
    said = "rank 1 sums 4 values, rank 0 4 values with bound 8"
    assert first == f"allreduce_compressed(bound=8), call 0: {said}{way_out}"
    said = "rank 0 sums 4 values with bound 8, rank 1 4 values"
    assert second == f"allreduce, call 0: {said}{way_out}"


def test_differing_sizes_are_refused():
    def program(ring, rank):
        text = (
            rf"call 0: rank {1 - rank} sums {5 - rank} values, rank {rank} {4 + rank} values: all"
        )
        with pytest.raises(RingError, match=text):
            ring.allreduce(np.ones(4 + rank, np.float32))

    together(2, program)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda ring: ring.allreduce([1.0]),
            "allreduce: expected a float32 array, got list: use x.astype('float32')",
        ),
        (
            lambda ring: ring.allreduce(np.ones(2)),
            "allreduce: expected a float32 array, got float64: use x.astype('float32')",
        ),
        (
            lambda ring: ring.allreduce_compressed(np.ones(2, np.float32), bound=7),
            "bound = 7: it must be 6, 8 or 10",
        ),
        (
            lambda ring: ring.allreduce(np.full(2, np.inf, np.float32)),
            "allreduce, call 0: worker 0, ticket 0: inf at index 0: did the training diverge?",
        ),
    ],
)
def test_calls_that_cannot_be_made(call, message):
    with Ring(0, addresses(1)) as ring, pytest.raises(RingError, match=f"^{re.escape(message)}$"):
        call(ring)


@pytest.mark.parametrize(
    "rank, peers, message",
    [
        (0, [], "0 addresses: it must be from 1 to 64"),
        (2, ["127.0.0.1", "127.0.0.2"], "rank = 2: it must be from 0 to 1, a place in addresses"),
        (
            0,
            ["127.0.0.1", ("127.0.0.1", PORT)],
            "address 127.0.0.1:18257 is given twice: each process has its own",
        ),
    ],
)
def test_rings_that_cannot_be(rank, peers, message):
    with pytest.raises(RingError, match=f"^{re.escape(message)}$"):
        Ring(rank, peers)


def test_an_unknown_order_is_refused():
    with pytest.raises(
        RingError, match=r"""^sum_order = 'rank': it must be "rotated" or "workers"$"""
    ):
        Ring(0, addresses(1), sum_order="rank")


def test_an_address_that_is_taken_leaves_nothing_open():
    peers = addresses(1)
    before = len(os.listdir("/proc/self/fd"))
    with Ring(0, peers), pytest.raises(OSError, match="in use"):
        Ring(0, peers)
    assert len(os.listdir("/proc/self/fd")) == before


PROGRAM = """
import sys
import numpy as np
from gradplane.hosts.allreduce import Ring

rank, *addresses = sys.argv[1:]
with Ring(int(rank), addresses) as ring:
    x = np.full((100, 50), int(rank) + 0.5, np.float32)
    assert (ring.allreduce(x) == 8).all()
    print(ring.allreduce_compressed(x).sum())
"""


def test_processes_of_their_own():
    peers = addresses(4)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), *peers], stdout=subprocess.PIPE, text=True
        )
        for rank in range(4)
    ]
    assert [process.communicate(timeout=300)[0] for process in started] == ["40000.0\n"] * 4
