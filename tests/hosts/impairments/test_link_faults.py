"""Corruption, duplication, reordering and jitter: verdicts, and their effect on a host's link."""

from statistics import fmean, stdev

import pytest
from host_configs import complete, make_hosts, make_job
from hypothesis import given
from hypothesis import strategies as st

from gradplane.hosts.impairments.host_link import HostLink, LocalPort, aggregation_payload
from gradplane.hosts.impairments.impairment_models import MODELS, MOST_BITS
from gradplane.hosts.impairments.verdicts import Impairments
from gradplane.hosts.protocols.actions import Send
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type
from gradplane.hosts.wire.payloads import Payloads
from gradplane.topologies.sim import frames

SWITCH = ("10.0.0.254", 18256)
MS = 1_000_000


def edge(*specs):
    return Impairments([complete(spec) for spec in specs], "h1", 0, 4, job=3)


def packets(count):
    bodies = bytes(aggregation.body_size(Type.INDICES, 8, 4))
    return [Header(Type.INDICES, 3, 0, n % 8, n // 8 + 1, 8).pack() + bodies for n in range(count)]


def judged(impairments, count=1000):
    return impairments.up(*SWITCH, Payloads.of(packets(count)))


def kinds(verdict):
    return [record.fields["verdict"] for record in verdict.records]


def test_corrupted_packets_are_lost_and_recorded():
    verdicts = judged(edge({"model": "corruption", "rate": 0.1}))
    damaged = [verdict for verdict in verdicts if verdict.drop]
    assert 60 < len(damaged) < 140
    assert {tuple(kinds(verdict)) for verdict in damaged} == {("corrupt",)}


def test_duplicates_are_passed_on_twice():
    verdicts = judged(edge({"model": "duplication", "rate": 0.1, "delay_ms": 2}))
    twice = [verdict for verdict in verdicts if verdict.copies]
    assert 60 < len(twice) < 140 and not any(verdict.drop for verdict in verdicts)
    assert {verdict.copies for verdict in twice} == {(2 * MS,)}
    assert {tuple(kinds(verdict)) for verdict in twice} == {("duplicate",)}


def test_reordered_packets_are_held_back():
    verdicts = judged(edge({"model": "reordering", "rate": 0.1, "delay_ms": 3}))
    held = [verdict.delay_ns for verdict in verdicts if verdict.delay_ns]
    assert 60 < len(held) < 140 and set(held) == {3 * MS}


@pytest.mark.parametrize(("distribution", "deviation"), [("uniform", 2 / 3**0.5), ("normal", 2.0)])
def test_jitter_has_its_mean_and_spread(distribution, deviation):
    spec = {"model": "jitter", "delay_ms": 20, "jitter_ms": 2, "distribution": distribution}
    delays = [verdict.delay_ns / MS for verdict in judged(edge(spec))]
    assert fmean(delays) == pytest.approx(20, rel=0.02)
    assert stdev(delays) == pytest.approx(deviation, rel=0.1)
    if distribution == "uniform":
        assert 18 <= min(delays) < 18.1 and 21.9 < max(delays) <= 22


def test_a_delay_is_never_below_zero():
    verdicts = judged(edge({"model": "jitter", "jitter_ms": 2}))
    assert min(verdict.delay_ns for verdict in verdicts) == 0
    assert all(bool(verdict.records) == bool(verdict.delay_ns) for verdict in verdicts)


def test_of_several_models_losses_decide_delays_and_copies_add_up():
    always = [
        {"model": "reordering", "rate": 1, "delay_ms": 3},
        {"model": "duplication", "rate": 1},
        {"model": "duplication", "rate": 1, "delay_ms": 1},
        {"model": "reordering", "rate": 1, "delay_ms": 4},
    ]
    (verdict,) = judged(edge(*always), 1)
    assert (verdict.drop, verdict.delay_ns, verdict.copies) == (False, 7 * MS, (0, MS))
    assert kinds(verdict) == ["delay", "duplicate", "duplicate", "delay"]
    (verdict,) = judged(edge(*always, {"model": "corruption", "rate": 1}), 1)
    assert verdict.drop and kinds(verdict) == ["corrupt"]


class Environment:
    def __init__(self):
        self.sent, self.calls, self.records = [], [], []

    def now(self):
        return 5

    def send(self, datagram):
        self.sent.append(datagram.payload)

    def call_at(self, at, callback):
        self.calls.append((at, callback))

    def record(self, kind, **fields):
        self.records.append(fields["verdict"])


def test_a_link_sends_the_packet_and_its_copy_and_counts_it_once():
    env = Environment()
    spec = {"model": "duplication", "rate": 1, "delay_ms": 2}
    link = HostLink(make_hosts(make_job(), (spec,))[0], env)
    got = []
    link.ports[20001] = LocalPort(lambda *datagram: got.append(datagram), aggregation_payload)
    (packet,) = packets(1)
    link.send(Send(20001, *SWITCH, Payloads.of([packet])))
    assert env.sent == [packet] and [at for at, _ in env.calls] == [5 + 2 * MS]
    env.calls.pop()[1]()
    assert env.sent == [packet, packet] and env.records == ["duplicate"]
    link.receive(20001, *SWITCH, Payloads.of([packet]))
    env.calls.pop()[1]()
    assert len(got) == 2
    traffic = link.ports[20001].take_traffic()
    assert (traffic.packets_up, traffic.packets_down) == (1, 1)


def test_models_of_damage_and_order_are_found():
    assert {"corruption", "duplication", "reordering", "jitter"} <= MODELS.keys()


ADDRESSES = (
    frames.Address("00:00:00:00:00:01", "10.0.0.1", 20001),
    frames.Address("00:00:00:00:00:02", "10.0.0.2", 18256),
)


@given(st.binary(max_size=200), st.integers(1, 2**MOST_BITS - 1), st.integers(min_value=0))
def test_a_damaged_datagram_is_always_found(payload, burst, place):
    """A burst of up to 15 flipped bits anywhere behind the IP header changes the UDP checksum, or
    makes the lengths disagree; a checksum of 0, which would mean none, cannot come out."""
    frame = frames.build(*ADDRESSES, payload)
    first = 8 * (14 + 20)
    last = 8 * len(frame) - burst.bit_length()
    shift = 8 * len(frame) - (first + place % (last - first + 1)) - burst.bit_length()
    damaged = (int.from_bytes(frame, "big") ^ burst << shift).to_bytes(len(frame), "big")
    with pytest.raises(frames.FrameError):
        frames.parse(damaged, ADDRESSES[1].mac)
