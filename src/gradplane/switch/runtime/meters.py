"""Meters: two-rate three-colour (RFC 2698) and single-rate three-colour (RFC 2697).

The tokens due at a time are counted from the clock's origin, rate * t // 10^9, so that rounding
loses nothing however often a meter runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.shared_memory import signed_words

GREEN, YELLOW, RED = 0, 1, 2
SECOND = 10**9


@dataclass(frozen=True, slots=True)
class MeterConfig:
    """Rates in bytes or packets a second, bursts in bytes or packets.

    eburst 0: two rates, committed and peak. Else a single rate cir with bursts cburst and eburst.
    period: the seconds that the rates are for, so that they may be below one a second.
    """

    cir: int
    cburst: int
    pir: int = 0
    pburst: int = 0
    eburst: int = 0
    period: int = 1

    def __post_init__(self) -> None:
        for name in ("cir", "cburst", "pir", "pburst", "eburst"):
            value = getattr(self, name)
            if not 0 <= value < 1 << 63:
                raise TableError(
                    "INVALID_ARGUMENT", f"meter: {name} is {value}, not within 0 to 2^63 - 1"
                )
        if not 0 < self.period < 1 << 31:
            raise TableError(
                "INVALID_ARGUMENT", f"meter: period is {self.period}, not within 1 to 2^31 - 1"
            )
        if not self.eburst and self.pir < self.cir:
            raise TableError(
                "INVALID_ARGUMENT",
                f"meter: peak rate {self.pir} is below committed rate {self.cir}",
            )


# The contents of a meter's 64-bit words. The last six count the packets and bytes of each colour.
CELL_WORDS = ("configured", "cir", "cburst", "pir", "pburst", "eburst", "committed", "excess",
              "last", "period", "green packets", "green bytes", "yellow packets", "yellow bytes",
              "red packets", "red bytes")  # fmt: skip
COUNTS = CELL_WORDS.index("green packets")  # by colour, packets and bytes

ColourCounts = tuple[tuple[int, int], ...]
"""Packets and bytes of each colour: green, yellow, red."""


class MeterCell:
    """One meter. Without a config every packet is green. Its numbers are in `cells`."""

    __slots__ = ("cells",)

    def __init__(self, cells: memoryview[int] | None = None) -> None:
        self.cells = signed_words(len(CELL_WORDS)) if cells is None else cells

    @property
    def config(self) -> MeterConfig | None:
        if not self.cells[0]:
            return None
        cir, cburst, pir, pburst, eburst = self.cells[1:6]
        return MeterConfig(cir, cburst, pir, pburst, eburst, self.cells[9])

    def configure(self, config: MeterConfig | None, now: int = 0) -> None:
        """Set the rates and fill both buckets; `now` in ns. The counts stay as they are."""
        rates = (0,) * 5 if config is None else (
            config.cir, config.cburst, config.pir, config.pburst, config.eburst
        )  # fmt: skip
        self.cells[0] = config is not None
        for i, rate in enumerate(rates):
            self.cells[1 + i] = rate
        self.last = now
        self.cells[9] = config.period if config else 1
        self.committed = config.cburst if config else 0
        self.excess = (config.eburst or config.pburst) if config else 0

    @property
    def counts(self) -> ColourCounts:
        """The packets and bytes counted for each colour."""
        numbers = self.cells[COUNTS:].tolist()
        return tuple(zip(numbers[::2], numbers[1::2], strict=True))

    def clear_counts(self) -> None:
        for i in range(COUNTS, len(CELL_WORDS)):
            self.cells[i] = 0

    def restore(self, words: Sequence[int]) -> None:
        """Restore former `cells`."""
        for i, word in enumerate(words):
            self.cells[i] = word

    @property
    def committed(self) -> int:
        """Tokens in the first bucket."""
        return self.cells[6]

    @committed.setter
    def committed(self, tokens: int) -> None:
        self.cells[6] = tokens

    @property
    def excess(self) -> int:
        """Tokens in the second bucket."""
        return self.cells[7]

    @excess.setter
    def excess(self, tokens: int) -> None:
        self.cells[7] = tokens

    @property
    def last(self) -> int:
        """The time at which tokens were last added, in ns."""
        return self.cells[8]

    @last.setter
    def last(self, now: int) -> None:
        self.cells[8] = now

    def execute(self, now: int, nbytes: int, by_packets: bool, before: int = GREEN) -> int:
        """Return the colour of a packet at `now` ns, take its tokens (its bytes, or one) and
        count it.

        `before`: the colour it has from elsewhere; the new one is no better. A meter without a
        config gives green, whatever was before.
        """
        colour = self._colour(now, 1 if by_packets else nbytes, before)
        at = COUNTS + 2 * colour
        self.cells[at] += 1
        self.cells[at + 1] += nbytes
        return colour

    def _colour(self, now: int, amount: int, before: int) -> int:
        config = self.config
        if config is None:
            return GREEN
        step = self._single_rate if config.eburst else self._two_rates
        return step(config, now, amount, before)

    def _two_rates(self, c: MeterConfig, now: int, amount: int, before: int) -> int:
        self.committed = min(c.cburst, self.committed + self._gained(c.cir, now, c.period))
        self.excess = min(c.pburst, self.excess + self._gained(c.pir, now, c.period))
        self.last = max(self.last, now)
        if before == RED or self.excess < amount:
            return RED
        self.excess -= amount
        if before == YELLOW or self.committed < amount:
            return YELLOW
        self.committed -= amount
        return GREEN

    def _single_rate(self, c: MeterConfig, now: int, amount: int, before: int) -> int:
        total = self.committed + self._gained(c.cir, now, c.period)
        self.committed = min(c.cburst, total)
        self.excess = min(c.eburst, self.excess + total - self.committed)
        self.last = max(self.last, now)
        if before == GREEN and self.committed >= amount:
            self.committed -= amount
            return GREEN
        if before != RED and self.excess >= amount:
            self.excess -= amount
            return YELLOW
        return RED

    def _gained(self, rate: int, now: int, period: int) -> int:
        unit = SECOND * period
        return max(0, rate * now // unit - rate * self.last // unit)


class Meter:
    """An array of meters; unit "packets" or "bytes". `memory`: the words of its cells, in order."""

    def __init__(self, name: str, size: int, unit: str) -> None:
        self.name = name
        self.size = size
        self.by_packets = unit == "packets"
        # A NumPy array touches the memory of a cell only when it is used.
        self.memory = np.zeros(max(size, 1) * len(CELL_WORDS), dtype=np.int64)
        self._words = memoryview(self.memory).cast("B").cast("q")  # type: ignore[arg-type]

    def read(self, index: int) -> MeterConfig | None:
        """Return a cell's config; raises TableError OUT_OF_RANGE."""
        return self.cell(index).config

    def write(self, index: int, config: MeterConfig | None, now: int = 0) -> None:
        """Set a cell's config (None: every packet is green) and fill its buckets."""
        self.cell(index).configure(config, now)

    def counts(self, index: int) -> ColourCounts:
        """Return a cell's (packets, bytes) of green, yellow and red; raises TableError."""
        return self.cell(index).counts

    def clear(self) -> None:
        """Remove the config of all cells."""
        self.memory.fill(0)

    def execute(self, index: int, now: int, nbytes: int, before: int = GREEN) -> int:
        """Return a packet's colour: 0 green, 1 yellow, 2 red; green if `index` is out of range."""
        if not 0 <= index < self.size:
            return GREEN
        return self.cell(index).execute(now, nbytes, self.by_packets, before)

    def cell(self, index: int) -> MeterCell:
        """Return one of the meters; raises TableError OUT_OF_RANGE."""
        if not 0 <= index < self.size:
            raise TableError(
                "OUT_OF_RANGE",
                f"meter {self.name}: index {index} is not within 0 to {self.size - 1}",
            )
        start = index * len(CELL_WORDS)
        return MeterCell(self._words[start : start + len(CELL_WORDS)])
