import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_network import MS, A, B, StreamNetwork, chaos

from gradplane.hosts.protocols.actions import Received, Record, Send, SetTimer
from gradplane.hosts.stream import segments
from gradplane.hosts.stream.outgoing import timeouts
from gradplane.hosts.stream.segments import SEGMENT, Ack, DataSegment, ValuesSegment
from gradplane.hosts.stream.stream import MAX_MESSAGE, Stream, StreamError
from gradplane.hosts.wire.payloads import Payloads


def take(stream, datagram, now=0):
    """Let a stream take a datagram of A."""
    return stream.receive(A, Payloads.of([datagram]), now)


@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0, 0.01, 0.2]),
    st.sampled_from([0, 0.3]),
    st.sampled_from([0, 2, 50]),
    st.lists(st.sampled_from([0, 1, 1399, 1400, 1401, 9000, 300_000]), max_size=4),
    st.booleans(),
)
def test_messages_arrive_whole_once_and_in_order(seed, loss, repeats, jitter, sizes, probes):
    net = StreamNetwork(chaos(seed, loss, repeats, jitter), probes=probes)
    there = [Random(size).randbytes(size) for size in sizes]
    for k, data in enumerate(there):
        net.send(A, B, data)
        net.send(B, A, data[::-1] + bytes([k]))
    net.run()
    assert net.received[A, B] == there
    assert net.received[B, A] == [data[::-1] + bytes([k]) for k, data in enumerate(there)]
    assert all(stream.idle for stream in net.streams.values())
    assert not net.timers


@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0, 0.01, 0.2]),
    st.sampled_from([0, 50]),
    st.lists(st.tuples(st.sampled_from([0, 20, 1400, 3000]), st.integers(0, 3000)), max_size=4),
)
def test_values_arrive_behind_their_messages_bytes(seed, loss, jitter, sizes):
    net = StreamNetwork(chaos(seed, loss, 0.1, jitter))
    random, sent = Random(seed), []
    for size, values in sizes:
        sent.append((random.randbytes(size), random.randbytes(4 * values)))
        net.perform(A, net.streams[A].send_message(B, sent[-1][0], net.now, sent[-1][1]))
    net.run()
    assert net.received[A, B] == [data + values for data, values in sent]
    kinds = [(type(segments.parse(d)), len(d)) for d in net.datagrams]
    assert net.tos == [0x28 if kind is ValuesSegment else 0 for kind, _ in kinds]
    assert all(size <= 1040 for kind, size in kinds if kind is ValuesSegment)


@settings(max_examples=30)
@given(
    st.integers(0, 2**32),
    st.lists(st.tuples(st.sampled_from([0, 20, 1400, 9000]), st.integers(0, 1500)), max_size=4),
    st.booleans(),
)
def test_a_batch_is_its_datagrams_one_after_the_other(seed, sizes, in_order):
    net, random = StreamNetwork(), Random(seed)
    for size, values in sizes:
        message = random.randbytes(size), random.randbytes(4 * values)
        net.perform(A, net.streams[A].send_message(B, message[0], net.now, message[1]))
    net.run()
    sent = [d for d in net.datagrams if not isinstance(segments.parse(d), Ack)]
    if not in_order:
        sent = [d for d in sent for _ in range(random.choice((1, 1, 2)))]
        sent.insert(random.randrange(len(sent) + 1), b"\xda\x01 junk")
    single, batched = Stream(B[1]), Stream(B[1])
    one_by_one = [action for datagram in sent for action in take(single, datagram)]
    together, acks = [], 0
    while sent:
        count = random.randint(1, 9)
        actions = batched.receive(A, Payloads.of(sent[:count]), 0)
        acks += sum(isinstance(action, Send) for action in actions)
        together += actions
        sent = sent[count:]
    received = [
        [a for a in actions if isinstance(a, Received)] for actions in (one_by_one, together)
    ]
    assert received[0] == received[1] == [Received(A, data) for data in net.received[A, B]]
    assert single.refused == batched.refused
    assert acks <= sum(isinstance(action, Send) for action in one_by_one)


def test_values_may_change_on_the_way_but_not_their_number():
    net = StreamNetwork()
    net.perform(A, net.streams[A].send_message(B, b"head", 0, bytes(1028)))
    first, second = (d for d in net.datagrams[:3] if isinstance(segments.parse(d), ValuesSegment))
    assert (len(first), len(second)) == (16 + 1024, 16 + 4)
    stream = Stream(B[1])
    for datagram in (net.datagrams[0], first, second[:16] + b"\xff\x00\xff\x00"):
        actions = take(stream, datagram)
    assert actions[-1] == Received(A, b"head" + bytes(1024) + b"\xff\x00\xff\x00")


@pytest.mark.parametrize("flags, place", [(False, (0, 3)), (True, (0, 1)), (True, (1, 3))])
def test_values_that_no_message_announced_make_none(flags, place):
    stream = Stream(B[1])
    take(stream, DataSegment(1, 0, 0, *place, bytes(SEGMENT), flags).pack())
    for sequence in (1, 2):
        actions = take(stream, ValuesSegment(1, sequence, bytes(8)).pack())
        assert not [action for action in actions if isinstance(action, Received)]


def test_values_never_acknowledged_are_named():
    net = StreamNetwork(lambda payload: [MS] if payload[1] != 3 else [], attempts=4)
    net.perform(A, net.streams[A].send_message(B, b"head", 0, bytes(8)))
    net.run()
    message = (
        "no answer: segment 1 of the connection, of values, was sent 4 times: "
        "is its host up and reachable?"
    )
    assert net.failed[A] == [(B, message)]


def test_nothing_is_sent_twice_without_loss():
    net = StreamNetwork()
    net.send(A, B, bytes(100 * SEGMENT))
    net.run()
    data = [d for d in net.datagrams if isinstance(segments.parse(d), DataSegment)]
    assert len(data) == 100
    assert 50 <= len(net.datagrams) - len(data) <= 60, "every second segment is acknowledged"


def test_many_peers_share_a_port():
    peers = tuple((f"10.0.0.{k}", 21003) for k in range(1, 6))
    net = StreamNetwork(chaos(1, 0.05, 0.1, 5), peers)
    for peer in peers[1:]:
        net.send(peers[0], peer, peer[0].encode() * 1000)
        net.send(peer, peers[0], peer[0].encode())
    net.run()
    for peer in peers[1:]:
        assert net.received[peers[0], peer] == [peer[0].encode() * 1000]
        assert net.received[peer, peers[0]] == [peer[0].encode()]


def test_a_lost_segment_is_sent_again_when_it_is_overtaken():
    dropped = []

    def fate(payload):
        segment = segments.parse(payload)
        if isinstance(segment, DataSegment) and segment.sequence == 3 and not dropped:
            dropped.append(payload)
            return []
        return [MS]

    net = StreamNetwork(fate)
    net.send(A, B, bytes(20 * SEGMENT))
    net.run()
    assert len(net.received[A, B]) == 1
    assert net.last_received < 10 * MS, "long before the first retransmission time"


def test_what_is_sent_again_is_recorded_and_is_no_message_of_its_own():
    stream = Stream(1, trip=30 * MS, about={"job": 3, "link": "h1"})
    stream.send_message(A, bytes(5 * SEGMENT), 7 * MS)
    take(stream, Ack(1, 1, 0, 0b100).pack(), 40 * MS)
    assert not [a for a in take(stream, Ack(1, 1, 0, 0b100).pack()) if isinstance(a, Record)]
    (again,) = (a for a in stream.timer(A, 200 * MS) if isinstance(a, Record))
    where = {"job": 3, "link": "h1", "peer": "10.0.0.1:21003", "message": 0}
    times = {"since": 7 * MS, "at": 200 * MS}
    assert again == Record("resend", where | times | {"segments": 2, "cause": "timeout"})
    assert stream.take_bytes() == (5 * SEGMENT, 0)
    assert stream.take_bytes() == (0, 0)


def probing():
    """Return a stream to A that waits for a processor; it has measured 2 ms."""
    stream = Stream(1, granularity=25 * MS, trip=MS, about={}, probes=True)
    stream.send_message(A, b"first", 0)
    take(stream, Ack(1, 1, 1, 0).pack(), 2 * MS)
    return stream


def again(actions):
    """Return the segments that actions send, and why they are sent again."""
    sent = [
        segments.parse(payload) for a in actions if isinstance(a, Send) for payload in a.payloads
    ]
    causes = [a.fields["cause"] for a in actions if isinstance(a, Record)]
    return [segment.sequence for segment in sent], causes


def test_a_lost_tail_is_found_by_a_probe():
    stream = probing()
    *_, timer = stream.send_message(A, bytes(5 * SEGMENT), 10 * MS)
    assert timer == SetTimer(A, 14 * MS), "twice the round trip"
    *_, timer = take(stream, Ack(1, 1, 3, 0).pack(), 12 * MS)
    assert timer.at == 16 * MS
    *probe, timer = stream.timer(A, 16 * MS)
    assert again(probe) == ([5], ["probe"])
    assert timer.at == 24 * MS, "again after twice the time"
    found = take(stream, Ack(1, 1, 3, 0b10).pack(), 18 * MS)
    assert again(found) == ([3, 4], ["overtaken"])
    take(stream, Ack(1, 1, 6, 0).pack(), 20 * MS)
    assert stream.idle


def test_probes_that_are_not_answered_come_more_and_more_seldom_and_leave_the_timeout():
    stream = probing()
    *_, timer = stream.send_message(A, b"second", 10 * MS)
    for at, cause in ((14, "probe"), (22, "probe"), (38, "probe"), (63, "timeout")):
        assert timer.at == at * MS
        *resent, timer = stream.timer(A, timer.at)
        assert again(resent) == ([1], [cause])
    assert timer.at == 113 * MS, "a timeout of 25 ms, doubled, and no probe"


@pytest.mark.parametrize(
    ("granularity", "trip", "first", "least"),
    [(0, 0, 20, 5), (25, 0, 50, 25), (0, 30, 90, 30), (25, 30, 90, 30), (25, 2, 52, 25)],
)
def test_timeouts_come_from_the_links(granularity, trip, first, least):
    assert timeouts(granularity * MS, trip * MS) == (first * MS, least * MS)


def test_a_silent_peer_is_given_up_and_named():
    net = StreamNetwork(lambda payload: [])
    net.send(A, B, bytes(3 * SEGMENT))
    net.run()
    message = (
        "no answer: message 0, segment 1 of 3, was sent 40 times: is its host up and reachable?"
    )
    assert net.failed[A] == [(B, message)]
    assert 60_000 * MS < net.now < 90_000 * MS
    assert net.streams[A].idle
    assert not net.timers
    net.fate = lambda payload: [MS]
    net.send(A, B, b"again")
    net.run()
    assert net.received[A, B] == [b"again"]


def test_a_restarted_sender_starts_anew():
    net = StreamNetwork()
    net.send(A, B, b"one")
    net.run()
    old = net.datagrams[0]
    net.streams[A] = Stream(A[1], 2)
    net.send(A, B, b"two")
    net.run()
    net.perform(B, take(net.streams[B], old, net.now))
    assert net.received[A, B] == [b"one", b"two"]
    assert net.streams[B].refused == {"earlier connection": 1}


def test_a_restarted_receiver_is_reported():
    net = StreamNetwork()
    net.send(A, B, b"one")
    net.run()
    net.streams[B] = Stream(B[1], 2)
    net.send(A, B, b"two")
    net.run()
    assert net.failed[A] == [(B, "it restarted: messages in flight to it are lost")]
    net.send(A, B, b"three")
    net.run()
    assert net.received[A, B] == [b"one", b"three"]


def test_a_receiver_holds_no_more_than_its_window():
    stream = Stream(1)
    for sequence in range(1, 2000):
        stream.receive(
            A, Payloads.of([DataSegment(1, sequence, 0, sequence, 3000, bytes(SEGMENT)).pack()]), 0
        )
    (action,) = stream.receive(
        A, Payloads.of([DataSegment(1, 5000, 0, 5000, 9000, bytes(SEGMENT)).pack()]), 0
    )
    ack = segments.parse(action.payload)
    assert (ack.next, ack.beyond.bit_count()) == (0, 256)


@pytest.mark.parametrize(
    "first, second",
    [
        (DataSegment(1, 0, 0, 0, 2, bytes(SEGMENT)), DataSegment(1, 1, 0, 0, 2, bytes(SEGMENT))),
        (DataSegment(1, 0, 0, 1, 2, b"x"), DataSegment(1, 1, 0, 1, 2, b"x")),
        (DataSegment(1, 0, 0, 0, 2, bytes(SEGMENT)), DataSegment(1, 1, 1, 1, 2, b"x")),
        (
            DataSegment(1, 0, 0, 0, 2**31, bytes(SEGMENT)),
            DataSegment(1, 1, 0, 1, 2**31, bytes(SEGMENT)),
        ),
    ],
)
def test_pieces_that_do_not_fit_make_no_message(first, second):
    stream = Stream(1)
    actions = [a for data in (first, second) for a in take(stream, data.pack())]
    assert not [action for action in actions if isinstance(action, Received)]


@given(st.binary(max_size=80))
def test_garbage_is_refused(data):
    stream = Stream(1)
    assert take(stream, data) == [] or data[:4] == b"\xda\x01\0\0"


@pytest.mark.parametrize("next, beyond", [(1000, 0), (0, 2**256 - 1)])
def test_acknowledgements_of_what_was_never_sent(next, beyond):
    stream = Stream(1)
    stream.send_message(A, b"x", 0)
    take(stream, Ack(1, 1, next, beyond).pack())
    assert not stream.idle


def test_too_large_a_message():
    class Huge(bytes):
        def __len__(self):
            return MAX_MESSAGE

    message = "message of 268435456 bytes to 10.0.0.1:21003: at most 268434056: send it in parts"
    with pytest.raises(StreamError, match=f"^{re.escape(message)}$"):
        Stream(1).send_message(A, Huge(), 0)
    message = (
        "message of 367001620 bytes to 10.0.0.1:21003: at most 268434056, "
        "a segment of values counted as a full one: send it in parts"
    )
    with pytest.raises(StreamError, match=f"^{re.escape(message)}$"):
        Stream(1).send_message(A, bytes(20), 0, Huge())


def test_values_that_are_not_whole():
    text = r"^7 bytes to 10\.0\.0\.1:21003 are no float32 values$"
    with pytest.raises(StreamError, match=text):
        Stream(1).send_message(A, b"head", 0, bytes(7))


@pytest.mark.parametrize(
    "datagram, message",
    [
        (b"\xda\x01", "2 bytes are not a segment"),
        (bytes(40), "40 bytes from 00000000 are no segment"),
        (DataSegment(1, 0, 0, 2, 2, b"").pack(), "segment 2 of a message of 2"),
        (DataSegment(1, 0, 0, 0, 2, b"short").pack(), "segment 0 of 2 has 5 bytes, not 1400"),
        (Ack(1, 1, 0, 0).pack() + b"x", "57 bytes from da020000 are no segment"),
        (ValuesSegment(1, 0, b"").pack(), "16 bytes from da030000 are no segment"),
        (ValuesSegment(1, 0, bytes(1028)).pack(), "1044 bytes from da030000 are no segment"),
        (ValuesSegment(1, 0, bytes(7)).pack(), "7 bytes are not float32 values"),
        (b"\xda\x01\0\2" + bytes(24), "28 bytes from da010002 are no segment"),
        (b"\xda\x03\0\1" + bytes(16), "20 bytes from da030001 are no segment"),
    ],
)
def test_what_is_no_segment(datagram, message):
    with pytest.raises(segments.SegmentError, match=f"^{re.escape(message)}$"):
        segments.parse(datagram)


def test_segments_round_trip():
    for segment in (
        DataSegment(2**64 - 1, 5, 6, 7, 8, bytes(SEGMENT)),
        DataSegment(1, 5, 6, 0, 2, b"short", values=True),
        ValuesSegment(2**64 - 1, 2**32 - 1, bytes(1024)),
        Ack(3, 4, 5, 2**256 - 1),
    ):
        assert segments.parse(segment.pack()) == segment
