"""The packets of a left-out straggler, which leave once the sum that they are too late for is done.

A straggler's link sees the results that the switch sends to all workers, so it knows when a slot's
quorum has closed: what it held for that slot leaves then. What no result has released leaves when
the straggler's next training round starts.
"""

from collections import defaultdict

from gradplane.hosts.protocols.actions import Send
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Type
from gradplane.hosts.wire.payloads import Payloads

_CLOSES = {Type.NORM_RESULT: Type.NORM, Type.SUMS: Type.INDICES}

_Slot = tuple[Type, int]


class LatePackets:
    """The packets of one host that wait."""

    def __init__(self) -> None:
        self._closed: dict[_Slot, int] = {}  # the last round with a result
        self._held: defaultdict[_Slot, list[tuple[int, Send]]] = defaultdict(list)

    def hold(self, send: Send) -> bool:
        """Keep one packet until its slot's quorum has closed; False if it has already."""
        header, _ = aggregation.parse(send.payload)
        slot = header.type, header.slot
        if header.round <= self._closed.get(slot, 0):
            return False
        self._held[slot].append((header.round, send))
        return True

    def released(self, payloads: Payloads) -> list[Send]:
        """Return the packets that these arriving results release."""
        out: list[Send] = []
        for payload in payloads:
            try:
                header, _ = aggregation.parse(payload)
            except aggregation.WireError:
                continue
            if header.type not in _CLOSES:
                continue
            slot = _CLOSES[header.type], header.slot
            self._closed[slot] = max(self._closed.get(slot, 0), header.round)
            held = self._held.pop(slot, [])
            out += [send for round, send in held if round <= header.round]
            if left := [(round, send) for round, send in held if round > header.round]:
                self._held[slot] = left
        return out

    def all(self) -> list[Send]:
        """Return all packets that wait, in the order of their slots, and forget them."""
        out = [send for held in self._held.values() for _, send in held]
        self._held.clear()
        return out
