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

_ALPHA, _BETA, _K = 1 / 8, 1 / 4, 4

Measured = tuple[int, int, int, float, float]
"""1 once something was measured, when it was last, the timeout (ns); SRTT and RTTVAR (ns)."""

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

    @property
    def bounds(self) -> tuple[int, int]:
        """The least timeout and the ceiling, in ns."""
        return self._least, self._most

    @property
    def measured(self) -> Measured:
        """The part of the state that measure() changes."""
        known = self._smoothed is not None
        smoothed = self._smoothed or 0.0
        return int(known), self._measured_at, self.value, smoothed, self._variation

    @measured.setter
    def measured(self, measured: Measured) -> None:
        known, self._measured_at, self.value, smoothed, self._variation = measured
        self._smoothed = smoothed if known else None

    def measure(self, sent_at: int, now: int) -> None:
        """Take the round-trip time of a packet that was sent once; this also ends the back-off.

        Of the packets of one round trip, only the first counts: what delays one delays all.
        """
        if sent_at < self._measured_at:
            return
        self._measured_at, round_trip = now, now - sent_at
        known = self._smoothed is not None
        self._smoothed, self._variation = smooth(
            known, self._smoothed or 0.0, self._variation, round_trip
        )
        self.value = self._estimate()

    def answered(self, sent_at: int, now: int) -> None:
        """Take the answer to a packet that was sent more than once, last at `sent_at`.

        Its round trip lasted at least since then, and counts where it is longer than the estimate.
        """
        if now - sent_at > (self._smoothed or self._least):
            known = self._smoothed is not None
            self._smoothed, self._variation = smooth(
                known, self._smoothed or 0.0, self._variation, now - sent_at
            )
        if self._smoothed is None or now - sent_at >= self._smoothed / 2:
            self.value = self._estimate()

    def _estimate(self) -> int:
        if self._smoothed is None:
            return self._first
        return estimate(self._smoothed, self._variation, self._least, self._most)

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
