"""No kernel is compiled in a round: the host compiles them all before it says that it is ready."""

import socket
import sys
from contextlib import closing
from itertools import count

import numpy as np
import pytest
from memory_network import MemoryNetwork, make_job
from numba.core.dispatcher import Dispatcher

from gradplane._addresses import address_of
from gradplane._kernels import Kernel
from gradplane.hosts.drivers.datagram_socket import DatagramSocket, OrdinaryResults
from gradplane.hosts.drivers.warm_up import exercise_switch_worker, warm_up
from gradplane.hosts.protocols.fast_results import WORKER
from gradplane.hosts.wire.payloads import Payloads

VECTOR = np.linspace(-1, 1, 16_000, dtype=np.float32)  # 16 chunks


class NothingInFlight:
    """The record of a worker without a reduce in flight: every packet is left to it."""

    def __init__(self):
        self._record = np.zeros(1, WORKER)
        self.address = address_of(self._record)
        self.answer_size = 536


def signatures():
    """Return what each kernel of the hosts and codecs is compiled for."""
    return {
        f"{module}.{name}": set(value.signatures)
        for module in list(sys.modules)
        if module.startswith(("gradplane.hosts", "gradplane.codecs"))
        for name, value in vars(sys.modules[module]).items()
        if isinstance(value, Dispatcher | Kernel)
    }


def lose_every(number):
    """Return a network's fate that loses every so manyth packet."""
    sent = count(1)
    return lambda direction, worker, payload: [50_000] if next(sent) % number else []


@pytest.mark.parametrize("sum_bits", [8, 16, 32])
@pytest.mark.parametrize("reliability", ["lossy", "retransmit"])
def test_a_workers_kernels(reliability, sum_bits):
    job = make_job(reliability=reliability, sum_bits=sum_bits)
    warm_up(job)
    exercise_switch_worker(job)
    before = signatures()
    network = MemoryNetwork(job, fate=lose_every(7))
    network.reduce(0, [VECTOR] * job.workers)
    network.run()
    assert all(0 in delivered for delivered in network.delivered.values())
    assert signatures() == before


def test_the_kernel_of_a_socket():
    exercise_switch_worker(make_job())
    before = signatures()
    ordinary = OrdinaryResults(NothingInFlight(), ("127.0.0.1", 9), lambda: 0)
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        place = probe.getsockname()
    got = []
    with closing(DatagramSocket(*place, ordinary)) as opened:
        opened.send(*place, Payloads.of([b"one", b"two"]))
        while len(got) < 2:
            opened.receive(lambda ip, port, payloads: got.extend(payloads))
    assert got == [b"one", b"two"]
    assert signatures() == before
