"""How many of a worker's chunks may be in flight, where switches mark packets at their queues.

Additive increase, multiplicative decrease: by one a round trip, and one a result until the first
mark; to four fifths for a result that is marked (RFC 8511: queues that mark are short), to half for
a packet whose timer ran out, once for all that was in flight then. A result is marked where a
packet of any of the job's workers was, so that all of them see the same marks.
"""

_FIRST = 4  # RFC 3390's, in packets
_LEAST = 1.0
_AT_MARK, _AT_LOSS = 0.8, 0.5


class CongestionWindow:
    """One worker's window, at most `most` chunks."""

    def __init__(self, most: int) -> None:
        self._most = self._slow_to = float(most)
        self._size = min(float(_FIRST), self._most)
        self._cut_at = -1  # when it was last cut
        self._least, self._marks = self._size, 0

    @property
    def size(self) -> int:
        """The number of chunks."""
        return int(self._size)

    def result(self, sent_at: int, marked: bool, now: int) -> None:
        """Take note of the result of a chunk, which was sent at `sent_at`."""
        self._marks += marked
        if marked:
            self._cut(_AT_MARK, sent_at, now)
        else:
            grown = self._size + (1 if self._size < self._slow_to else 1 / self._size)
            self._size = min(grown, self._most)

    def lost(self, sent_at: int, now: int) -> None:
        """Take note of a packet whose timer ran out."""
        self._cut(_AT_LOSS, sent_at, now)

    def _cut(self, to: float, sent_at: int, now: int) -> None:
        """Make it smaller, but once for all packets that had been sent when it was."""
        if sent_at > self._cut_at:
            self._size = self._slow_to = max(self._size * to, _LEAST)
            self._least, self._cut_at = min(self._least, self._size), now

    def take(self) -> dict[str, float]:
        """Return chunks now, the least since the last call, and the marked results since then."""
        taken = {"size": round(self._size, 3), "least": round(self._least, 3), "marks": self._marks}
        self._least, self._marks = self._size, 0
        return taken
