"""A host's end of its link: losses, delays, counts."""

from dataclasses import asdict
from types import SimpleNamespace

import pytest
from host_configs import make_hosts, make_job

from gradplane.hosts.impairments.host_link import (
    HostLink,
    LocalPort,
    aggregation_payload,
)
from gradplane.hosts.protocols.actions import Send
from gradplane.hosts.stream.segments import Ack, DataSegment, message_bytes
from gradplane.hosts.wire.aggregation import Header, Type
from gradplane.hosts.wire.payloads import Payloads

PORT = 20001
PEER = ("10.0.0.254", 18256)


class Environment:
    def __init__(self):
        self.sent, self.calls, self.records = [], [], []

    def now(self):
        return 1_000

    def send(self, datagram):
        self.sent.append(datagram)

    def call_at(self, at, callback):
        self.calls.append((at, callback))

    def record(self, kind, **fields):
        self.records.append((kind, fields))


def packet(kind, round_=1, body=b""):
    return Header(kind, 1, 0, 0, round_, 8).pack() + body


def make_link(*impairments):
    env = Environment()
    link = HostLink(make_hosts(make_job(), impairments)[0], env)
    got = []
    link.ports[PORT] = LocalPort(lambda *datagram: got.append(datagram), aggregation_payload)
    return env, link, got


def send(link, payload):
    link.send(Send(PORT, *PEER, Payloads.of([payload])))


def traffic(link):
    return {key: value for key, value in asdict(link.ports[PORT].take_traffic()).items() if value}


def test_traffic_separates_headers_from_payload_and_restarts_when_taken():
    env, link, got = make_link()
    send(link, packet(Type.NORM))
    send(link, packet(Type.INDICES, body=bytes(512)))
    link.receive(PORT, *PEER, Payloads.of([packet(Type.SUMS, body=bytes(1024))]))
    assert traffic(link) == {
        "packets_up": 2,
        "packets_down": 1,
        "payload_up": 512,
        "payload_down": 1024,
        "wire_up": 512 + 2 * (30 + 8 + 20 + 14),
        "wire_down": 1024 + 30 + 8 + 20 + 14,
        "needed_up": 512,
        "needed_down": 1024,
    }
    assert traffic(link) == {}
    assert len(env.sent) == 2 and len(got) == 1


def test_a_path_is_a_header_of_what_comes_down_whoever_takes_it():
    """In a job over levels, for the results that a kernel took and for the others."""
    env, link, _ = make_link()
    counts = [(2, 0, 0)]
    record = SimpleNamespace(body=38, answer_size=542, take_counts=lambda: counts.pop())
    link.ports[PORT] = LocalPort(lambda *_: None, aggregation_payload, record)
    link.receive(PORT, *PEER, Payloads.of([packet(Type.SUMS, body=bytes(8 + 1024))]))
    link.receive(PORT, *PEER, Payloads.of([packet(Type.NORM_RESULT, body=bytes(8))]))
    send(link, packet(Type.INDICES, body=bytes(512)))
    found = traffic(link)
    assert (found["payload_up"], found["payload_down"]) == (512, 3 * 1024)
    assert found["wire_down"] == 3 * 1024 + 4 * (8 + 30 + 8 + 20 + 14)


def test_what_is_lost_on_the_link_was_sent_and_is_in_the_traffic():
    env, link, got = make_link({"model": "nth", "n": 1})
    send(link, packet(Type.INDICES, body=bytes(512)))
    link.receive(PORT, *PEER, Payloads.of([packet(Type.SUMS, body=bytes(1024))]))
    assert env.sent == [] and got == []
    counted = traffic(link)
    assert (counted["payload_up"], counted["payload_down"]) == (512, 1024)
    assert [(kind, f["direction"], f["verdict"]) for kind, f in env.records] == [
        ("verdict", "up", "drop"),
        ("verdict", "down", "drop"),
    ]


def test_a_straggler_sends_later_in_its_rounds():
    env, link, _ = make_link({"model": "straggler", "workers": [0], "delay_ms": 2, "rounds": [5]})
    for number in (4, 5):
        link.start_round(number)
        send(link, packet(Type.NORM, round_=number))
    assert [datagram.payload for datagram in env.sent] == [packet(Type.NORM, round_=4)]
    ((at, callback),) = env.calls
    assert at == 2_001_000
    callback()
    assert env.sent[1].payload == packet(Type.NORM, round_=5)


LEFT_OUT = {"model": "straggler", "workers": [0], "leave_out": True, "rounds": [0]}


def test_what_a_left_out_straggler_does_not_send_is_no_traffic():
    env, link, _ = make_link(LEFT_OUT)
    link.start_round(0)
    send(link, packet(Type.INDICES, body=bytes(512)))
    assert env.sent == [] and traffic(link) == {}
    assert env.records[0][1]["verdict"] == "leave out"


def make_lossy_link():
    env = Environment()
    link = HostLink(make_hosts(make_job(reliability="lossy"), (LEFT_OUT,))[0], env)
    link.ports[PORT] = LocalPort(lambda *datagram: None, aggregation_payload)
    link.start_round(0)
    return env, link


def test_a_left_out_straggler_of_a_lossy_job_sends_once_the_result_is_there():
    env, link = make_lossy_link()
    sums = Payloads.of([packet(Type.SUMS, body=bytes(1024))])
    send(link, packet(Type.INDICES, body=bytes(512)))
    assert env.sent == [] and traffic(link) == {}
    link.receive(PORT, *PEER, Payloads.of([packet(Type.NORM_RESULT)]))
    assert env.sent == [], "the norm's result says nothing of the sums"
    link.receive(PORT, *PEER, sums)
    assert [sent.payload for sent in env.sent] == [packet(Type.INDICES, body=bytes(512))]
    assert traffic(link)["packets_up"] == 1
    send(link, packet(Type.INDICES, body=bytes(512)))
    assert len(env.sent) == 2, "it is late already"


def test_what_no_result_releases_leaves_with_the_next_round():
    env, link = make_lossy_link()
    send(link, packet(Type.NORM))
    link.start_round(1)
    send(link, packet(Type.NORM, round_=2))
    assert [sent.payload for sent in env.sent] == [packet(Type.NORM), packet(Type.NORM, round_=2)]


def test_datagrams_for_a_port_that_is_not_open_are_counted():
    _, link, got = make_link()
    link.receive(PORT + 1, *PEER, Payloads.of([b"hello"]))
    assert link.strays == 1 and got == []


@pytest.mark.parametrize(
    ("payload", "size"),
    [
        (DataSegment(1, 0, 0, 0, 1, b"x" * 40).pack(), 40),
        (Ack(1, 1, 3, 0).pack(), 0),
        (b"", 0),
        (bytes(60), 0),
    ],
)
def test_acknowledgements_carry_no_payload(payload, size):
    assert message_bytes(Payloads.of([payload])) == size
