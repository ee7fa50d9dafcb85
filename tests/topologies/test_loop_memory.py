"""The compiled event loop's memory has room for an event of each packet and each call."""

from gradplane.topologies.sim import loop_layout as at
from gradplane.topologies.sim.compiled_events import CompiledEvents


def test_packets_that_are_added_leave_room_for_calls_that_wait() -> None:
    events = CompiledEvents()
    for _ in range(1000):
        events.at(1, lambda: None)
    for count in (2048, 4096, 8192):
        events._memory.grow_packets(count)
        assert len(events._memory.table(at.HEAP)) >= count + 1000
        assert len(events._memory.table(at.LEAVES)) >= count
