"""The time limits of bounded transport, from observed times (OptiReduce, NSDI 2025).

The first reduces of a size are observed: all of them arrive, however long it takes. From then on a
stage ends after the 95th percentile of these times at the latest (the paper's t_B), and once the
last packets of all others have come, when nothing more comes for a tenth of the time that the
workers expect it to take (t_C): the median of their estimates, which their packets carry. A
worker's estimate is the time that its last stage took, divided by the share that came.

Sources: the authors' code (OptiReduce/benchmark, gloo_uhc.patch: the median, the share and the
tenth) and a summary of the paper (the percentile). The paper's moving average of t_C, and its tenth
that adapts to losses, are not in that code, and not here.
"""

from __future__ import annotations

from statistics import median_low

PERCENTILE = 95
PATIENCE = 10
"""Without a packet for this part of the expected time, a stage ends."""


class TimeLimits:
    """The limits of one stage of reduces of one size, in ns."""

    def __init__(self, ceiling: int, least: int) -> None:
        """ceiling: no stage takes longer. least: no limit is shorter."""
        self._ceiling, self._least = ceiling, least
        self._observed: list[int] = []
        self._estimates: dict[int, int] = {}  # by worker

    def observe(self, worker: int, elapsed: int) -> None:
        """Take the time of a stage in which everything arrived at a worker, this one."""
        self._observed.append(elapsed)
        self._estimates[worker] = elapsed

    def ended(self, worker: int, elapsed: int, share: float) -> None:
        """Take the time of a bounded stage of this worker, and the share that came."""
        self._estimates[worker] = round(elapsed / share) if share else self.longest

    def heard(self, worker: int, estimate: int) -> None:
        """Take another worker's estimate."""
        self._estimates[worker] = estimate

    def own(self, worker: int) -> int:
        """Return this worker's estimate; 0 where it has none."""
        return self._estimates.get(worker, 0)

    @property
    def longest(self) -> int:
        """The time after which a stage ends."""
        times = sorted(self._observed)
        at = -(-PERCENTILE * len(times) // 100) - 1
        return min(max(times[at], self._least), self._ceiling) if times else self._ceiling

    @property
    def patience(self) -> int:
        """The time without a packet after which a stage ends, once all last packets have come."""
        known = [estimate for estimate in self._estimates.values() if estimate]
        expected = min(median_low(known), self.longest) if known else self.longest
        return max(expected // PATIENCE, self._least)
