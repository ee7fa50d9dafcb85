"""The socket environment on loopback: datagrams, timers, records. The clock is the test's."""

import io
import json
import os
import select
import socket
import threading
from contextlib import ExitStack, closing
from dataclasses import replace

import numpy as np
import pytest
from memory_network import make_job

from gradplane._deferred import Deferred
from gradplane.hosts.drivers.datagram_socket import DatagramSocket
from gradplane.hosts.drivers.socket_environment import SocketEnvironment
from gradplane.hosts.protocols.actions import Deliver, Send
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.protocols.switch_worker import SwitchWorker
from gradplane.hosts.wire.aggregation import Type, parse, unpack_indices
from gradplane.hosts.wire.payloads import ECN_CAPABLE, ECN_MARKED, Payloads

ADDRESS = f"127.{os.getpid() >> 14 & 255}.{os.getpid() >> 6 & 255}.{os.getpid() % 64 + 100}"
"""A loopback address that no other test process uses: its ports are free."""


class Clock:
    def __init__(self):
        self.time = 5_000

    def __call__(self):
        return self.time


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log():
    return io.StringIO()


@pytest.fixture
def env(clock, log):
    with SocketEnvironment(ADDRESS, log, clock) as env:
        yield env


def test_datagrams_carry_ports_addresses_and_bytes(env):
    ports = [free_port(), free_port()]
    got = []
    for port in ports:
        env.listen(port, lambda *place: got.append((*place[:-1], *place[-1])))
    for payload in (b"one", b"", b"x" * 1500):
        env.send(Send(ports[0], ADDRESS, ports[1], Payloads.of([payload])))
        env.step()
    assert got == [(ports[1], ADDRESS, ports[0], p) for p in (b"one", b"", b"x" * 1500)]


def test_marks_of_packets_are_read_where_marks_are_heeded():
    """A socket that has sent a packet with ECN bits reads those of the packets that arrive."""
    ports, got = [free_port(), free_port()], []
    with (
        closing(DatagramSocket(ADDRESS, ports[0])) as one,
        closing(DatagramSocket(ADDRESS, ports[1])) as other,
    ):

        def taken():
            select.select([one], [], [])
            one.receive(lambda ip, port, payloads: got.append(payloads.marked))

        other.send(ADDRESS, ports[0], Payloads.of([b"early"]), ECN_MARKED)
        taken()
        one.send(ADDRESS, ports[1], Payloads.of([b"heeds"]), ECN_CAPABLE)
        for tos in (ECN_CAPABLE, ECN_MARKED, 0x2B, 0x28, ECN_MARKED):
            other.send(ADDRESS, ports[0], Payloads.of([b"x"]), tos)
            taken()
    plain = [None if marked is None else marked.tolist() for marked in got]
    assert plain == [None, None, [True], [True], None, [True]]


@pytest.fixture(params=["segments", "messages"])
def pair(request):
    """Two sockets; the first sends with GSO, if the kernel has it, or with sendmmsg."""
    with closing(DatagramSocket(ADDRESS, free_port())) as sender:
        if request.param == "messages":
            sender._segments = False
        port = free_port()
        with closing(DatagramSocket(ADDRESS, port)) as receiver:
            yield sender, receiver, port


@pytest.mark.parametrize("sizes", [[700] * 300, [700] * 150 + [3], [5, 1400, 0, 33], [1400, 20]])
def test_batches_arrive_datagram_by_datagram(pair, sizes):
    sender, receiver, port = pair
    sent = [bytes([k % 256]) * size for k, size in enumerate(sizes)]
    sender.send(ADDRESS, port, Payloads.of(sent))
    got = []
    while len(got) < len(sent):
        select.select([receiver], [], [], 30)
        receiver.receive(lambda ip, port, payloads: got.extend(payloads))
    assert got == sent
    assert (sender.unsent, receiver.too_long) == (0, 0)


def test_values_that_were_put_off_are_computed_beside(env):
    computed = threading.Event()
    env.when_idle(Deferred(computed.set))
    assert computed.wait(60)


def test_a_batch_of_several_peers_is_one_for_each(env):
    with ExitStack() as opened:
        peers = [opened.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(2)]
        receiver = opened.enter_context(closing(DatagramSocket(ADDRESS, port := free_port())))
        for peer in peers:
            peer.bind((ADDRESS, 0))
        for k in range(6):
            peers[k % 2].sendto(bytes([k]), (ADDRESS, port))
        got = []
        receiver.receive(lambda *place: got.append((*place[:-1], list(place[-1]))))
        names = [peer.getsockname() for peer in peers]
    assert got == [
        (*names[0], [b"\0", b"\2", b"\4"]),
        (*names[1], [b"\1", b"\3", b"\5"]),
    ]


def test_a_datagram_that_is_too_long_is_counted():
    with closing(DatagramSocket(ADDRESS, port := free_port())) as receiver:
        with socket.socket(type=socket.SOCK_DGRAM) as peer:
            peer.sendto(bytes(3000), (ADDRESS, port))
        got = []
        receiver.receive(lambda ip, port, payloads: got.extend(payloads))
    assert (got, receiver.too_long) == ([], 1)


def test_the_type_of_service_is_the_datagrams(env):
    port = free_port()
    env.listen(port, lambda *_: None)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind((ADDRESS, 0))
        peer.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        seen = []
        for tos in (0x28, 0):
            env.send(Send(port, ADDRESS, peer.getsockname()[1], Payloads.of([b""]), tos))
            select.select([peer], [], [])
            _, ancillary, _, _ = peer.recvmsg(100, 100)
            seen.append(ancillary[0][2][0])
    assert seen == [0x28, 0]


def test_a_type_of_service_does_not_change_the_priority_in_the_hosts_queues():
    with (
        closing(DatagramSocket(ADDRESS, free_port())) as sender,
        socket.socket(fileno=os.dup(sender.fileno())) as same,
    ):
        priorities = []
        for tos in (0, 0x28, 0x88, ECN_CAPABLE):
            sender.send(ADDRESS, free_port(), Payloads.of([b"x"]), tos)
            priorities.append(same.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY))
    assert priorities == [0, 0, 0, 0]


def test_what_the_kernel_refuses_is_counted(env):
    port = free_port()
    env.listen(port, lambda *_: None)
    env.send(Send(port, ADDRESS, 9, Payloads.of([b"x" * 70_000])))
    assert env.unsent == 1
    env.send(Send(port, ADDRESS, 9, Payloads.of([b"x" * 70_000, b"y"])))
    assert env.unsent == 2


def test_timers_fire_in_order_of_time_then_of_setting(env, clock):
    fired = []
    for at, name in ((30, "c"), (10, "a"), (10, "b"), (-5, "past"), (99, "later")):
        env.call_at(at, lambda name=name: fired.append((name, env.now())))
    clock.time += 30
    env.step()
    assert fired == [("past", 30), ("a", 30), ("b", 30), ("c", 30)]


def test_a_cancelled_call_does_not_happen_even_at_its_own_time(env, clock):
    fired = []
    second = env.call_at(20, lambda: fired.append("second"))
    env.call_at(10, second.cancel)
    env.call_at(30, lambda: fired.append("third"))
    clock.time += 30
    env.step()
    second.cancel()
    assert fired == ["third"]


def test_a_call_made_in_a_call_waits_for_it_to_return(env, clock):
    order = []

    def outer():
        env.call_at(0, lambda: order.append("inner"))
        order.append("outer")

    env.call_at(0, outer)
    clock.time += 1
    env.step()
    assert order == ["outer", "inner"]


def test_time_counts_from_the_origin(env, clock):
    assert env.now() == 0
    env.origin = 1_000
    assert env.now() == 4_000


def test_records_are_json_lines_with_plain_values(env, log):
    env.record("round", loss=np.float32(0.5), missed=np.int64(3), missing=[1], source=None)
    env.record("done")
    assert [json.loads(line) for line in log.getvalue().splitlines()] == [
        {"kind": "round", "loss": 0.5, "missed": 3, "missing": [1], "source": None},
        {"kind": "done"},
    ]


class Switch:
    """Answers each packet that a lone worker sends, as the switch would."""

    def __init__(self, job):
        self.job = job
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.bind(job.addresses.aggregator)
        self.socket.settimeout(60)

    def run(self, packets):
        for _ in range(packets):
            payload, sender = self.socket.recvfrom(2048)
            header, body = parse(payload)
            kind = Type.NORM_RESULT if header.type is Type.NORM else Type.SUMS
            table = np.array(summed_codec(self.job).table, np.uint8)
            sums = table[unpack_indices(body, 4)].tobytes() if body else b""
            answer = replace(header, type=kind, count=1, bitmap=1).pack() + sums
            self.socket.sendto(answer, sender)


@pytest.mark.parametrize("segmented", [True, False])
def test_a_kernel_exchanges_ordinary_packets(log, segmented):
    port, found = free_port(), []
    places = {"worker_addresses": ((ADDRESS, port),), "aggregator": (ADDRESS, free_port())}
    job = make_job(workers=1, timeout_ns=60 * 10**9, **places)
    worker = SwitchWorker(job, 0)

    def perform(actions):
        for action in actions:
            if isinstance(action, Send):
                env.send(action)
            elif isinstance(action, Deliver):
                found.append(action.result)

    def receive(port, ip, source, payloads):
        perform(worker.receive(ip, source, payloads, env.now()))

    vector = np.linspace(-1, 1, 40_000, dtype=np.float32)
    with SocketEnvironment(ADDRESS, log) as env, closing((switch := Switch(job)).socket):
        env.listen(port, receive, worker.record, job.addresses.aggregator)
        env._sockets[port]._segments &= segmented
        cuts = summed_codec(job).partitions(vector.size)
        packets = sum(1 + part.lanes // 1024 for part in cuts)  # with the norm of each
        other = threading.Thread(target=switch.run, args=(packets,))
        other.start()
        perform(worker.reduce(0, vector, env.now()))
        while not found:
            env.step()
        other.join()
    assert found[0].missed == 0 and set(found[0].counts.tolist()) == {1}
    assert worker.record.results > 0, "the kernel took some"
    assert np.square(found[0].mean - vector).mean() < 0.02, "no chunk is out of its place"
