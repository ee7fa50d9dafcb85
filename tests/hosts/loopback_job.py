"""A job's switch, or its server, on loopback, for the user programs of its workers."""

import os
import socket
import threading
from contextlib import ExitStack, closing, contextmanager
from itertools import count

from host_configs import make_hosts, make_job
from virtual_network import make_switch

from gradplane.hosts.drivers.host import Host
from gradplane.hosts.drivers.socket_environment import SocketThread

_nets = count(os.getpid() * 61)
_held = []  # sockets at the nets that this process has taken


def loopback_job(aggregation, workers, **changes):
    """Return a job on loopback addresses that no other test uses, in this process or another."""
    net = free_net()
    settings = {"reliability": "retransmit", "timeout_ns": 500_000_000} | changes
    return make_job(aggregation=aggregation, workers=workers, net=net, **settings)


def free_net():
    """Return the first three bytes of addresses, which are ours as long as this process lives."""
    while True:
        net = next(_nets) % (100 << 8)
        name = f"127.{128 + (net >> 8)}.{net & 255}"
        taken = socket.socket(type=socket.SOCK_DGRAM)
        try:
            taken.bind((f"{name}.254", 19_999))
        except OSError:
            taken.close()
            continue
        _held.append(taken)
        return name


@contextmanager
def running(job):
    """Run what the job's workers need beside each other; yield their configurations."""
    hosts = make_hosts(job)
    with ExitStack() as stack:
        if job.aggregation == "switch":
            stack.enter_context(switch_on_a_socket(job))
        for config in hosts:
            if config.worker is None:
                stack.enter_context(_server(config))
        yield [config for config in hosts if config.worker is not None]


@contextmanager
def _server(config):
    loop = SocketThread(config.ip, print)
    host = Host(config, loop.env)
    for port in host.ports:
        loop.listen(port, host.receive)
    loop.start()
    with closing(loop):
        yield


@contextmanager
def switch_on_a_socket(job):
    """Run a model of the switch at the job's aggregator; an empty datagram ends it."""
    switch = make_switch(job)
    with socket.socket(type=socket.SOCK_DGRAM) as opened:
        opened.bind(job.addresses.aggregator)

        def serve():
            while True:
                payload, sender = opened.recvfrom(65535)
                if not payload:
                    return
                for ip, port, answer in switch(*sender, payload):
                    opened.sendto(answer, (ip, port))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            opened.sendto(b"", job.addresses.aggregator)
            thread.join()
