"""Background traffic: when datagrams leave, when a flow ends, what is counted."""

import heapq
from dataclasses import replace
from statistics import fmean

import pytest

from gradplane.hosts.config import Flow
from gradplane.hosts.drivers.background import PORT, Sender
from gradplane.hosts.wire.payloads import Payloads

MS = 1_000_000
FLOW = Flow(3, "10.0.0.1", "10.0.0.2", 100_000_000, 958, 0, None, None, False, 1)
"""958 bytes and 42 of headers: 80 us each at 100 Mbit/s."""


class Clock:
    """An environment in which timers fire in order, `late` ns after their time."""

    def __init__(self, late=0):
        self.time, self.late, self.calls, self.sent = 0, late, [], []

    def now(self):
        return self.time

    def call_at(self, at, callback):
        heapq.heappush(self.calls, (at, len(self.sent), callback))

    def send(self, send):
        for payload in send.payloads:
            self.sent.append((self.time, replace(send, payloads=Payloads.of([payload]))))

    def run(self, until):
        while self.calls and self.calls[0][0] + self.late <= until:
            at, _, callback = heapq.heappop(self.calls)
            self.time = max(self.time, at + self.late)
            callback()


def sent(flow, until=10 * MS, late=0):
    clock = Clock(late)
    sender = Sender(flow, clock)
    sender.start()
    clock.run(until)
    assert sender.sent == len(clock.sent)
    return clock.sent


def changed(**values):
    return Flow(**vars(FLOW) | values)


def test_a_constant_flow_has_its_rate_headers_included():
    times = [time for time, _ in sent(FLOW)]
    assert times == [80_000 * n for n in range(126)]


def test_a_late_timer_sends_all_that_is_due_and_loses_no_rate():
    """After 100 ms, only packets due in the last 5 ms have not left."""
    on_time, late = (len(sent(FLOW, 100 * MS, late)) for late in (0, 5 * MS))
    assert on_time - 5 * MS // 80_000 - 1 <= late <= on_time


def test_datagrams_carry_the_flow_and_their_number():
    datagrams = [datagram for _, datagram in sent(FLOW)]
    assert {(d.source_port, d.ip, d.port, len(d.payload)) for d in datagrams} == {
        (PORT, "10.0.0.2", PORT, 958)
    }
    assert [d.payload[:8] for d in datagrams[:2]] == [
        bytes([0, 0, 0, 3, 0, 0, 0, 0]),
        bytes([0, 0, 0, 3, 0, 0, 0, 1]),
    ]


def test_a_flow_starts_and_stops():
    times = [time for time, _ in sent(changed(start_ns=2 * MS, stop_ns=4 * MS))]
    assert times[0] == 2 * MS and times[-1] < 4 * MS and len(times) == 25
    assert len(sent(changed(packets=7))) == 7


def test_poisson_arrivals_have_the_mean_rate_and_depend_on_the_seed():
    flow = changed(poisson=True)
    times = [time for time, _ in sent(flow, until=400 * MS)]
    gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
    assert fmean(gaps) == pytest.approx(80_000, rel=0.05)
    assert max(gaps) > 4 * 80_000 > 80_000 / 4 > min(gaps)
    assert times == [time for time, _ in sent(flow, until=400 * MS)]
    assert times != [time for time, _ in sent(changed(poisson=True, seed=2), until=400 * MS)]
