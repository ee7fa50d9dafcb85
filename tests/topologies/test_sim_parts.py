"""The simulated network's parts: frames, events, channels, a host's stack."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradplane.hosts.protocols.actions import Send
from gradplane.hosts.wire.payloads import Payloads
from gradplane.topologies import HostNode, NetworkError
from gradplane.topologies.description import Link
from gradplane.topologies.network import SwitchConfig
from gradplane.topologies.sim import frames
from gradplane.topologies.sim.events import Channel, EventQueue
from gradplane.topologies.sim.sim_host import HostStack, SimEnvironment
from gradplane.topologies.sim.sim_switch import SimSwitch, compiled
from gradplane.topologies.sim.spare_cores import SpareCores

H1 = frames.Address("00:00:00:00:00:01", "10.0.0.1", 20000)
H2 = frames.Address("00:00:00:00:00:02", "10.0.0.2", 18256)


@given(st.binary(max_size=1472), st.integers(0, 65535), st.integers(0, 255))
def test_a_frame_comes_apart_as_it_was_built(payload, port, tos):
    source = frames.Address(H1.mac, H1.ip, port)
    frame = frames.build(source, H2, payload, tos)
    assert len(frame) == frames.HEADERS + len(payload)
    datagram = frames.UdpDatagram(H1.ip, port, H2.ip, H2.port, payload, tos)
    assert frames.parse(frame, H2.mac) == datagram


def test_scapy_agrees_on_every_byte():
    for payload in (b"", b"a", b"\0" * 7, bytes(range(256)) * 4):
        theirs = bytes(
            Ether(src=H1.mac, dst=H2.mac)
            / IP(src=H1.ip, dst=H2.ip, id=0, flags="DF", tos=0x28)
            / UDP(sport=H1.port, dport=H2.port)
            / payload
        )
        assert frames.build(H1, H2, payload, 0x28) == theirs


@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_changed_bit_is_never_taken(payload, data):
    """Every header field is checked; only TOS, swapped addresses and the like are left to
    checksums."""
    frame = bytearray(frames.build(H1, H2, payload))
    bit = data.draw(st.integers(14 * 8, len(frame) * 8 - 1))
    frame[bit // 8] ^= 1 << bit % 8
    with pytest.raises(frames.FrameError):
        frames.parse(bytes(frame), H2.mac)


@given(st.binary(max_size=100))
def test_any_bytes_are_parsed_or_refused(data):
    frame = bytes.fromhex("000000000002000000000001") + data
    with pytest.raises(frames.FrameError):
        frames.parse(frame, H2.mac)


def _with(offset, value, fix=True):
    frame = bytearray(frames.build(H1, H2, b"payload"))
    frame[offset : offset + len(value)] = value
    if fix:
        frame[24:26] = b"\0\0"
        frame[24:26] = struct.pack("!H", frames.internet_checksum(bytes(frame[14:34])))
    return bytes(frame)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b"\0" * 41, "41 bytes are shorter than the headers"),
        (_with(0, b"\1"), "for 01:00:00:00:00:02, not for 00:00:00:00:00:02"),
        (_with(12, b"\x08\x06"), "EtherType 0x0806 is not IPv4"),
        (_with(14, b"\x65"), "IP version and header length 0x65, total length 35"),
        (_with(16, b"\x01\x00"), "IP version and header length 0x45, total length 256"),
        (_with(22, b"\x01", fix=False), "the IP header's checksum is wrong"),
        (_with(20, b"\x20"), "a fragment (0x2000), or protocol 17 is not UDP"),
        (_with(23, b"\x06"), "a fragment (0x4000), or protocol 6 is not UDP"),
        (_with(38, b"\x01\x00"), "UDP length 256 in 15 bytes"),
        (_with(45, b"x"), "the UDP checksum is wrong"),
    ],
)
def test_what_a_stack_drops(frame, message):
    with pytest.raises(frames.FrameError) as error:
        frames.parse(frame, H2.mac)
    assert str(error.value) == message


def test_no_udp_checksum_is_allowed_and_padding_is_cut():
    frame = _with(40, b"\0\0") + b"\0" * 10
    assert frames.parse(frame, H2.mac).payload == b"payload"


def test_a_datagram_beyond_the_mtu():
    with pytest.raises(NetworkError) as error:
        frames.build(H1, H2, bytes(1473))
    assert str(error.value) == (
        "a datagram of 1473 bytes makes an IP packet of 1501: the MTU is 1500,"
        " send 1472 bytes or fewer"
    )


@given(st.binary(max_size=64))
def test_the_checksum_is_the_sum_of_words(data):
    words = struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert frames.internet_checksum(data) == 0xFFFF - total


def test_events_happen_in_order_of_time_then_of_asking():
    events, seen = EventQueue(), []
    events.at(20, lambda: seen.append(("b", events.now)))
    events.at(10, lambda: seen.append(("a", events.now)))
    events.at(20, lambda: seen.append(("c", events.now)))
    events.at(15, lambda: events.at(3, lambda: seen.append(("past", events.now))))
    events.at(12, lambda: seen.append(("never", events.now))).cancel()
    while events.step():
        pass
    assert seen == [("a", 10), ("past", 15), ("b", 20), ("c", 20)]


def _channel(rate=None, delay=0, limit=10):
    events, out = EventQueue(), []
    return events, out, Channel(events, rate, delay, limit, lambda f: out.append((events.now, f)))


def test_a_channel_takes_its_time_for_every_bit():
    events, out, channel = _channel(rate=8_000_000, delay=500)  # a byte a microsecond
    channel.send(b"12345", len(b"12345"))
    channel.send(b"123", len(b"123"))
    while events.step():
        pass
    assert out == [(5_500, b"12345"), (8_500, b"123")]
    assert (channel.packets, channel.bytes, channel.dropped) == (2, 8, 0)


def test_a_full_queue_drops_the_last_and_counts():
    events, out, channel = _channel(rate=8_000_000, limit=2)
    for frame in (b"1", b"2", b"3"):
        channel.send(frame, len(frame))
    events.at(1_000, lambda: channel.send(b"4", len(b"4")))
    while events.step():
        pass
    assert [frame for _, frame in out] == [b"1", b"2", b"4"]
    assert (channel.packets, channel.bytes, channel.dropped) == (3, 3, 1)


@pytest.mark.parametrize(
    ("rate", "arrivals"),
    [
        (1_000_000, [8_016_000, 16_032_000, 24_048_000]),
        (3_000_000, [2_672_000, 5_344_000, 8_016_000]),
        (7_000_000, [1_145_143, 2_290_286, 3_435_429]),
        (7, [1_145_142_857_143]),
    ],
)
def test_a_channel_has_the_times_of_a_link_of_ns3(rate, arrivals):
    """ns-3 3.37's point-to-point device with packets of 1000 bytes: docs/experiments.md, "Two
    networks"."""
    events, out, channel = _channel(rate=rate)
    for _ in arrivals:
        channel.send(b"", 1000 + 2)  # PPP's header
    while events.step():
        pass
    assert [time for time, _ in out] == arrivals


def test_a_queue_of_ns3_has_the_frame_in_transmission_beside_it():
    """Of 20 packets at once six arrive there with MaxSize 5p; here the frame is one of six."""
    events, out, channel = _channel(rate=1_000_000, limit=5 + 1)
    for _ in range(20):
        channel.send(b"", 1002)
    while events.step():
        pass
    assert len(out) == 6


def test_a_duration_is_rounded_up():
    events, out, channel = _channel(rate=3_000_000_000)
    channel.send(b"1", len(b"1"))
    events.step()
    assert out == [(3, b"1")]


def _stack():
    sent = []
    arp = {"10.0.0.1": H1.mac, "10.0.0.2": H2.mac}
    return sent, HostStack(HostNode.numbered(1), arp, sent.append)


def test_a_stack_sends_and_receives():
    sent, stack = _stack()
    stack.send(Send(20000, "10.0.0.2", 18256, Payloads.of([b"hello"]), 0x28))
    assert sent == [frames.build(H1, H2, b"hello", 0x28)]
    got = []
    stack.listen(20000, lambda *place: got.append((*place[:-1], *place[-1])))
    stack.receive(frames.build(H2, H1, b"world"))
    assert got == [(20000, "10.0.0.2", 18256, b"world")]


def test_a_stack_counts_what_it_drops():
    _, stack = _stack()
    stack.receive(frames.build(H2, H1, b""))
    stack.receive(frames.build(H1, H2, b""))
    stack.receive(frames.build(H2, frames.Address(H1.mac, "10.0.0.9", 5), b""))
    assert dict(stack.rejected) == {
        "no listener at 10.0.0.1 port 20000": 1,
        "for 00:00:00:00:00:02, not for 00:00:00:00:00:01": 1,
        "no listener at 10.0.0.9 port 5": 1,
    }


def test_a_stack_refuses_what_cannot_be():
    _, stack = _stack()
    with pytest.raises(NetworkError) as error:
        stack.send(Send(1, "10.0.0.77", 1, Payloads.of([b""])))
    assert str(error.value) == "h1 sends to 10.0.0.77, which no host has"
    stack.listen(7, print)
    with pytest.raises(NetworkError) as error:
        stack.listen(7, print)
    assert str(error.value) == "h1: UDP port 7 is taken"


def test_an_environment_counts_time_from_its_start_and_records_plain_values():
    events, records = EventQueue(), []
    _, stack = _stack()
    events.at(100, lambda: None)
    events.step()
    env = SimEnvironment(events, stack, records.append, events.now, lambda back: None, SpareCores())
    env.call_at(7, lambda: env.record("round", at=env.now(), loss=np.float32(0.5), pair=(1, 2)))
    events.step()
    assert records == [{"kind": "round", "at": 7, "loss": 0.5, "pair": [1, 2]}]


DEPTHS = """
#include <core.p4>
#include <v1model.p4>
header seen_t { bit<8> enq; bit<8> deq; bit<16> waited; }
struct headers_t { seen_t seen; }
struct metadata_t { }
parser P(packet_in pkt, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { pkt.extract(h.seen); transition accept; }
}
control V(inout headers_t h, inout metadata_t m) { apply { } }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 2; }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        h.seen.enq = (bit<8>) s.enq_qdepth;
        h.seen.deq = (bit<8>) s.deq_qdepth;
        h.seen.waited = (bit<16>) s.deq_timedelta;
    }
}
control C(inout headers_t h, inout metadata_t m) { apply { } }
control D(packet_out pkt, in headers_t h) { apply { pkt.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def _seen_by_egress(folder, engine, frames):
    """Send frames (when in us, bytes) to a link of a byte in a microsecond, which holds four.

    Returns what leaves, (when, bytes, enq_qdepth, deq_qdepth, deq_timedelta) with times in us since
    the first frame's egress may run, and how many were dropped.
    """
    program = folder / "depths.p4"
    program.write_text(DEPTHS)
    config = SwitchConfig(program, engine=engine)
    events, left = EventQueue(), []

    def transmit(port, frame):
        when, rest = divmod(events.now - config.latency, 1000)
        assert (port, rest) == (2, 0)
        left.append((when, len(frame), frame[0], frame[1], int.from_bytes(frame[2:4], "big")))

    links = {1: Link("h1", "s1", 0, 1), 2: Link("h2", "s1", 0, 2, rate=8_000_000, queue=4)}
    with SimSwitch("s1", links, config, compiled(config)[""], events, transmit) as switch:
        for when, size in frames:
            events.at(1000 * when, lambda size=size: switch.receive(1, bytes(size)))
        while events.step():
            pass
        return left, switch.queue_dropped(2)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_egress_sees_the_queue_of_its_ports_link(tmp_path, engine):
    left, dropped = _seen_by_egress(tmp_path, engine, [(0, 1000)] * 6)
    # All six come before the first one leaves.
    assert left == [(1000 * i, 1000, i, 3 - i, 1000 * i) for i in range(4)]
    assert dropped == 2


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_each_packet_waits_until_its_link_has_sent_those_before(tmp_path, engine):
    """Packet by packet, as one would reckon it on paper."""
    frames = [(0, 1000), (200, 500), (900, 250), (1600, 1000), (1700, 100), (5000, 64)]
    assert _seen_by_egress(tmp_path, engine, frames) == (
        [
            (0, 1000, 0, 0, 0),  # the link is free, and then busy until 1000
            (1000, 500, 0, 1, 800),  # waits alone; behind it waits the next, since 900
            (1500, 250, 1, 0, 600),  # came behind the one before, and leaves nobody behind
            (1750, 1000, 0, 1, 150),
            (2750, 100, 1, 0, 1050),
            (5000, 64, 0, 0, 0),  # the link has been free since 2850
        ],
        0,
    )
