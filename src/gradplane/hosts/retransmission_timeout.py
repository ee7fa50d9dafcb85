"""The time to wait for an answer, estimated from measured round-trip times (RFC 6298).

SRTT and RTTVAR follow section 2; the timeout is SRTT + 4 RTTVAR between two bounds. The RFC's least
timeout of 1 s is for the Internet; here the caller sets it.

Karn's rule (section 3) forbids measuring packets that were sent more than once, so that in a path
that is seldom used a back-off would last for long. Their answers end it all the same, unless they
come so soon that they must answer an earlier transmission. And where short messages alternate with
long ones, whose packets wait behind each other, the timeout of the short ones would send the long
ones again and again: a round trip since the last transmission is none too long, so it may raise the
estimate.
"""

import numpy as np

from gradplane._addresses import Real, Record, Whole

_ALPHA, _BETA, _K = 1 / 8, 1 / 4, 4
NEVER = 2**63 - 1  # ns

TIMEOUT = np.dtype(
    [(name, np.int64) for name in ("least", "most", "measured", "value")]
    + [(name, np.float64) for name in ("smoothed", "variation")]
)
"""An estimate. least, most: the bounds of the timeout `value`, ns. measured: 1 once something was.
smoothed, variation: SRTT and RTTVAR, ns."""

# Kernels compile these two functions, too (`protocols/fast_results.py`).


def smooth(
    measured: bool, smoothed: float, variation: float, round_trip: int
) -> tuple[float, float]:
    """Return SRTT and RTTVAR, ns, after a further measurement, or after the first one."""
    if not measured:
        return float(round_trip), round_trip / 2
    variation += _BETA * (abs(round_trip - smoothed) - variation)
    smoothed += _ALPHA * (round_trip - smoothed)
    return smoothed, variation


def estimate(smoothed: float, variation: float, least: int, most: int) -> int:
    """Return the timeout of SRTT and RTTVAR, in ns."""
    return min(max(int(smoothed + _K * variation), least), most)


class RetransmissionTimeout(Record):
    """The estimate of one path. Times are int nanoseconds.

    first: the timeout before anything was measured, at most `most`. least, most: its bounds.
    value: the timeout.
    """

    layout = TIMEOUT
    least, most, value = Whole(), Whole(), Whole()
    measured = Whole()
    smoothed, variation = Real(), Real()

    def __init__(self, first: int, least: int, most: int) -> None:
        self._first = min(first, most)
        super().__init__(least=min(least, most), most=most, value=self._first)
        self._doubled_at = -1  # when it was last doubled; packets sent before do not count again

    def measure(self, sent_at: int, now: int) -> None:
        """Take the round-trip time of a packet that was sent once; this also ends the back-off.

        Each packet of a window counts: they wait behind each other, and the timeout is for the
        last.
        """
        self._smooth(now - sent_at)
        self.value = self._estimate()

    def answered(self, sent_at: int, now: int) -> None:
        """Take the answer to a packet that was sent more than once, last at `sent_at`.

        Its round trip lasted at least since then, and counts where it is longer than the estimate.
        """
        if now - sent_at > (self.smoothed or self.least):
            self._smooth(now - sent_at)
        if not self.measured or now - sent_at >= self.smoothed / 2:
            self.value = self._estimate()

    def _smooth(self, round_trip: int) -> None:
        known = bool(self.measured)
        self.smoothed, self.variation = smooth(known, self.smoothed, self.variation, round_trip)
        self.measured = 1

    def _estimate(self) -> int:
        if not self.measured:
            return self._first
        return estimate(self.smoothed, self.variation, self.least, self.most)

    def back_off(self, sent_at: int, now: int) -> None:
        """Double the timeout, as a packet sent at `sent_at` was not answered in time.

        Of many packets that were lost together, only the first counts.
        """
        if sent_at >= self._doubled_at:
            self._doubled_at = now
            self.value = min(2 * self.value, self.most)

    def prompt(self, least: int) -> int:
        """Return the time after which to ask where `least`, ns, is enough and asking costs little:
        twice the smoothed round trip, as for tail loss probes (RFC 8985, section 7.2); the timeout
        where its lower bound is not above `least`, or before anything was measured."""
        if not self.measured or self.least <= least:
            return self.value
        return min(max(int(2 * self.smoothed), least), self.value)

    def after(self, attempts: int, least: int) -> int:
        """Return the timeout of a packet's attempt number `attempts`, from 1, which doubles each
        time; `least`, ns, is enough for the first."""
        return min(self.prompt(least) << min(max(attempts - 1, 0), 32), self.most)
