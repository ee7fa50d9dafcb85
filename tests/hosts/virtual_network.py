"""Hosts in one process under virtual time: event queue, link delay, a stand-in for the switch."""

import heapq
import itertools

from switch_model import Member, SwitchModel

from gradplane import codecs
from gradplane.hosts.drivers.host import Host
from gradplane.hosts.wire.payloads import Payloads
from gradplane.runs.records.run_data import expanded

DELAY_NS = 10_000


class Network:
    """All datagrams arrive DELAY_NS later. Those for `switch_ip` go to `switch`, which is called
    with (ip, source port, payload) and returns a list of (ip, port, payload)."""

    def __init__(self, switch_ip=None, switch=None, switch_port=18256, compress=None):
        self.time, self.records = 0, []
        self._compress = compress  # what arrives of a payload with ToS 0x28
        self._events, self._order = [], itertools.count()
        self._switch_ip, self._switch, self._switch_port = switch_ip, switch, switch_port
        self.hosts = {}

    def add(self, config):
        host = Host(config, HostEnvironment(self, config.ip))
        self.hosts.setdefault(config.ip, []).append(host)
        return host

    def run(self, limit_ns=10**15):
        """Run until all hosts are finished."""
        hosts = [host for group in self.hosts.values() for host in group]
        for host in hosts:
            host.start()
        while not all(host.finished for host in hosts):
            assert self._events, "stuck: no event is left and a host is not finished"
            self.time, _, call = heapq.heappop(self._events)
            assert self.time < limit_ns, f"stuck at {self.time} ns"
            if call.callback is not None:
                call.callback()

    def at(self, time, callback):
        call = Call(callback)
        heapq.heappush(self._events, (max(time, self.time), next(self._order), call))
        return call

    def carry(self, ip, source_port, to_ip, to_port, payload, tos=0):
        if self._compress and tos == 0x28:
            payload = self._compress(payload)
        self.at(
            self.time + DELAY_NS,
            lambda: self._arrive(ip, source_port, to_ip, to_port, payload),
        )

    def _arrive(self, ip, source_port, to_ip, to_port, payload):
        if to_ip == self._switch_ip:
            for answer_ip, answer_port, answer in self._switch(ip, source_port, payload):
                self.carry(to_ip, self._switch_port, answer_ip, answer_port, answer)
            return
        for host in self.hosts[to_ip]:
            if to_port in host.ports:
                host.receive(to_port, ip, source_port, Payloads.of([payload]))


class Call:
    def __init__(self, callback):
        self.callback = callback

    def cancel(self):
        self.callback = None


class HostEnvironment:
    granularity = 0

    def __init__(self, network, ip):
        self._network, self._ip = network, ip

    def now(self):
        return self._network.time

    def send(self, send):
        for payload in send.payloads:
            to = (send.ip, send.port)
            self._network.carry(self._ip, send.source_port, *to, payload, send.tos)

    def call_at(self, at, callback):
        return self._network.at(at, callback)

    def record(self, kind, **fields):
        line = {"kind": kind, "ip": self._ip} | fields
        self._network.records += expanded([line], "records")


def make_switch(job):
    """Return the model, by addresses: worker w is on the switch's port w + 1."""
    name, params = job.coding.codec
    members = [Member(worker, worker + 1) for worker in range(job.workers)]
    table = codecs.get(name, **params).table
    model = SwitchModel(
        job.number, members, job.quorum, job.transport.slots, table, job.transport.sum_bits
    )

    def receive(ip, source_port, payload):
        worker = job.addresses.worker_addresses.index((ip, source_port))
        return [
            (*job.addresses.worker_addresses[w], out)
            for w, out in model.receive(worker + 1, payload)
        ]

    return receive
