"""The time to wait for an answer, estimated from measured round-trip times (RFC 6298).

SRTT and RTTVAR follow section 2; the timeout is SRTT + 4 RTTVAR between two bounds. The RFC's least
timeout of 1 s is for the Internet; here the caller sets it.

Karn's rule (section 3) forbids measuring packets that were sent more than once, so that in a path
that is seldom used a back-off would last for long. Their answers end it all the same, unless they
come so soon that they must answer an earlier transmission.
"""

_ALPHA, _BETA, _K = 1 / 8, 1 / 4, 4


class RetransmissionTimeout:
    """The estimate of one path. Times are int nanoseconds.

    first: the timeout before anything was measured, at most `most`. least, most: its bounds.
    """

    def __init__(self, first: int, least: int, most: int) -> None:
        self._least, self._most = min(least, most), most
        self._smoothed: float | None = None
        self._variation = 0.0
        self._first = min(first, most)
        self._doubled_at = -1  # when it was last doubled; packets sent before do not count again
        self._measured_at = -1
        self.value = self._first
        """The timeout."""

    def measure(self, sent_at: int, now: int) -> None:
        """Take the round-trip time of a packet that was sent once; this also ends the back-off.

        Of the packets of one round trip, only the first counts: what delays one delays all.
        """
        if sent_at < self._measured_at:
            return
        self._measured_at, round_trip = now, now - sent_at
        if self._smoothed is None:
            self._smoothed, self._variation = float(round_trip), round_trip / 2
        else:
            self._variation += _BETA * (abs(round_trip - self._smoothed) - self._variation)
            self._smoothed += _ALPHA * (round_trip - self._smoothed)
        self.value = self._estimate()

    def answered(self, sent_at: int, now: int) -> None:
        """Take the answer to a packet that was sent more than once, last at `sent_at`."""
        if self._smoothed is None or now - sent_at >= self._smoothed / 2:
            self.value = self._estimate()

    def _estimate(self) -> int:
        if self._smoothed is None:
            return self._first
        wanted = int(self._smoothed + _K * self._variation)
        return min(max(wanted, self._least), self._most)

    def back_off(self, sent_at: int, now: int) -> None:
        """Double the timeout, as a packet sent at `sent_at` was not answered in time.

        Of many packets that were lost together, only the first counts.
        """
        if sent_at >= self._doubled_at:
            self._doubled_at = now
            self.value = min(2 * self.value, self._most)

    def after(self, attempts: int) -> int:
        """Return the timeout of a packet's attempt number `attempts`, from 1, which doubles each
        time."""
        return min(self.value << min(max(attempts - 1, 0), 32), self._most)
