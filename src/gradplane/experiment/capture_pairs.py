"""The packets of a capture that are not in a second one, taken further along their path.

Packets of equal content are told apart by order and times. A content that is in both captures
equally often lost nothing; its packets are anchors, which say what delays the path has and, unless
they overtake each other, between which others the packets of further contents lie. Of such a
content the packets that left pair, in order, with those that entered, so that the delays differ
least from the anchors'.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gradplane._captures import ETHERNET, RAW_IP, Captured, read_capture

Ints = npt.NDArray[np.int64]
Delays = npt.NDArray[np.float64]

_IPV4, _IPV6, _VLAN = b"\x08\x00", b"\x86\xdd", (b"\x81\x00", b"\x88\xa8")
_MOST_CELLS = 1 << 30  # packets that left times losses, of one content: seconds, and 128 MiB
_SAMPLE = 500  # packets, and delays, that are tried where there is no anchor
_PRECISION = 1000  # ns, of most captures


@dataclass(frozen=True)
class Missing:
    """The packets of a first capture that a second one lacks.

    packets: of the first capture. lost: index and ns since the first packet of each. guessed: how
    many of these are a guess, among `alike` packets that look alike. strangers: packets of the
    second capture that the first one lacks."""

    packets: int
    lost: list[tuple[int, int]]
    guessed: int
    alike: int
    strangers: int


@dataclass(frozen=True)
class _Alike:
    """Packets of equal content: their indices in the first and in the second capture."""

    entered: Ints
    left: Ints

    @property
    def complete(self) -> bool:
        return len(self.entered) == len(self.left)


def missing_packets(entered: Path, left: Path) -> Missing:
    """Return the packets of a capture that are not in a second one. Raises CaptureError."""
    before, first = _read(entered)
    after, second = _read(left)
    groups = [
        _Alike(np.array(places, np.int64), np.array(after.get(content, ()), np.int64))
        for content, places in before.items()
    ]
    anchors = [group for group in groups if group.complete]
    partly = [group for group in groups if 0 < len(group.left) < len(group.entered)]
    lost = [group.entered for group in groups if not len(group.left)]
    guessed = alike = 0
    if partly:
        anchors, partly, between = _cut(anchors, partly)
        lost += between
        delays = _Path(anchors, partly, first, second)
        for group in partly:
            chosen, certain = delays.pairs(group)
            lost.append(np.delete(group.entered, chosen))
            guessed += 0 if certain else len(lost[-1])
            alike += 0 if certain else len(group.entered)
    indices = sorted(chain.from_iterable(part.tolist() for part in lost))
    strangers = len(second) - sum(len(group.left) for group in groups)
    lost_at = [(i, int(first[i] - first[0])) for i in indices]
    return Missing(len(first), lost_at, guessed, alike, strangers)


def _read(path: Path) -> tuple[dict[bytes, list[int]], Ints]:
    """Return the places of each content in a capture, and the packets' times."""
    contents: dict[bytes, list[int]] = defaultdict(list)
    times = []
    for index, packet in enumerate(read_capture(path)):
        contents[_invariant(packet)].append(index)
        times.append(packet.time)
    return contents, np.array(times, np.int64)


def _cut(
    anchors: list[_Alike], groups: list[_Alike]
) -> tuple[list[_Alike], list[_Alike], list[Ints]]:
    """Return anchors, groups and packets that are lost, with the groups cut at the anchors.

    A part that is complete is an anchor, too. Where packets overtake each other, nothing is cut."""
    lost: list[Ints] = []
    while (places := _in_order(anchors)) is not None:
        parts = [part for group in groups for part in _parts(group, *places)]
        if any(len(part.left) > len(part.entered) for part in parts):
            break
        lost += [part.entered for part in parts if not len(part.left)]
        found = [part for part in parts if part.complete]
        groups = [part for part in parts if 0 < len(part.left) < len(part.entered)]
        anchors = [*anchors, *found]
        if not found:
            break
    return anchors, groups, lost


def _in_order(anchors: Iterable[_Alike]) -> tuple[Ints, Ints] | None:
    """Return the anchors' indices in both captures; None unless both rise."""
    entered, left = _joined(anchors)
    return (entered, left) if bool(np.all(np.diff(left) > 0)) and len(left) else None


def _joined(anchors: Iterable[_Alike]) -> tuple[Ints, Ints]:
    anchors = list(anchors)
    none = np.zeros(0, np.int64)
    entered = np.concatenate([none, *(anchor.entered for anchor in anchors)])
    left = np.concatenate([none, *(anchor.left for anchor in anchors)])
    order = np.argsort(entered, kind="stable")
    return entered[order], left[order]


def _parts(group: _Alike, entered: Ints, left: Ints) -> Iterator[_Alike]:
    """Yield the packets of a group between two anchors each."""
    before, after = np.searchsorted(entered, group.entered), np.searchsorted(left, group.left)
    for gap in np.unique(np.concatenate([before, after])):
        yield _Alike(group.entered[before == gap], group.left[after == gap])


class _Path:
    """The delays of a path, in ns: the anchors', or without any the constant one that fits best."""

    def __init__(
        self, anchors: list[_Alike], groups: list[_Alike], entered: Ints, left: Ints
    ) -> None:
        self._entered, self._left = entered, left
        places, arrivals = _joined(anchors)
        self._times = left[arrivals]
        self._delays = self._times - entered[places]
        order = np.argsort(self._times, kind="stable")
        self._times, self._delays = self._times[order], self._delays[order]
        self._certain = True
        if not len(places) and groups:
            self._without_anchor(max(groups, key=lambda group: len(group.left)))

    def _without_anchor(self, group: _Alike) -> None:
        """Take the delay at which the packets that left fit best to times of those that entered.

        Of several that fit, the smallest that is not negative, as with equal clocks."""
        entered, left = np.sort(self._entered[group.entered]), np.sort(self._left[group.left])
        delays = left[0] - entered[: len(entered) - len(left) + 1][:_SAMPLE]
        some = left[:: 1 + len(left) // _SAMPLE]
        misfits = np.array([_misfit(entered, some - delay) for delay in delays])
        fitting = delays[misfits <= 2 * misfits.min() + _PRECISION * len(some)]
        causal = fitting[fitting >= 0]
        best = causal.min() if len(causal) else fitting.max()
        self._times, self._delays = left[:1], np.array([best])
        self._certain = len(fitting) == 1 or best == 0

    def pairs(self, group: _Alike) -> tuple[Ints, bool]:
        """Return which of a group's packets that entered left, and whether delays and order allow
        no others."""
        order = np.argsort(self._entered[group.entered], kind="stable")
        entered, left = self._entered[group.entered][order], np.sort(self._left[group.left])
        if len(left) * (len(entered) - len(left) + 1) > _MOST_CELLS:
            return order[: len(left)], False
        typical = np.interp(left, self._times, self._delays)
        chosen = _closest(entered, left - typical)
        delays = np.concatenate([self._delays, left - entered[chosen]])
        earliest, latest = _extremes(entered, left, int(delays.min()), int(delays.max()))
        return order[chosen], self._certain and earliest == latest


def _misfit(times: Ints, wanted: Ints) -> int:
    """Return the sum of the distances of some times from the nearest of others, which rise."""
    after = np.searchsorted(times[1:-1], wanted) + 1
    nearest = np.minimum(abs(times[after] - wanted), abs(times[after - 1] - wanted))
    return int(nearest.sum())


def _closest(entered: Ints, wanted: Delays) -> Ints:
    """Return the places in `entered`, rising, whose times are closest in sum to the wanted ones.

    Dynamic programming over the packets that left and the number of losses before each."""
    losses = len(entered) - len(wanted)
    cost = np.zeros(losses + 1)
    newest = []  # of each packet, a bit a number of losses: fewer before the last one cost more
    for index, time in enumerate(wanted):
        cost = np.minimum.accumulate(cost) + abs(entered[index : index + losses + 1] - time)
        least = np.minimum.accumulate(cost)
        newest.append(np.packbits(np.concatenate([[True], cost[1:] < least[:-1]])))
    places = np.empty(len(wanted), np.int64)
    before = losses
    for index in range(len(wanted) - 1, -1, -1):
        bits = np.unpackbits(newest[index], count=before + 1)
        before = int(np.flatnonzero(bits)[-1])
        places[index] = index + before
    return places


def _extremes(entered: Ints, left: Ints, least: int, most: int) -> tuple[list[int], list[int]]:
    """Return the earliest and the latest places in `entered` that a delay's limits allow."""
    earliest, place = [], 0
    for time in left.tolist():
        while time - entered[place] > most:
            place += 1
        earliest.append(place)
        place += 1
    latest, place = [], len(entered) - 1
    for time in left[::-1].tolist():
        while time - entered[place] < least:
            place -= 1
        latest.append(place)
        place -= 1
    return earliest, latest[::-1]


def _invariant(packet: Captured) -> bytes:
    """Return what switches and routers leave of a packet: from IP on, without its time to live."""
    data = packet.data
    if packet.link_type == ETHERNET:
        kind, data = data[12:14], data[14:]
        while kind in _VLAN:
            kind, data = data[2:4], data[4:]
    elif packet.link_type in RAW_IP:
        kind = _IPV4 if data[:1] and data[0] >> 4 == 4 else _IPV6
    else:
        return packet.data
    if kind == _IPV4 and len(data) >= 20:  # time to live, checksum of the header
        size = int.from_bytes(data[2:4])
        return b"".join(chain((data[:8], data[9:10], data[12:size])))
    if kind == _IPV6 and len(data) >= 40:
        size = 40 + int.from_bytes(data[4:6])
        return data[:7] + data[8:size]
    return packet.data
