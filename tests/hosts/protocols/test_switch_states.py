"""The tables of the worker's states, the one error they can lead to, and their diagram."""

from pathlib import Path

import pytest

from gradplane.hosts.protocols.switch_states import (
    CHUNK,
    PARTITION,
    ChunkEvent,
    ChunkState,
    IllegalEvent,
    PartitionEvent,
    PartitionState,
    after,
    diagrams,
)

DOCUMENT = Path(__file__).parents[3] / "docs" / "architecture.md"


@pytest.mark.parametrize("table, states", [(PARTITION, PartitionState), (CHUNK, ChunkState)])
def test_every_state_has_its_row_and_can_be_reached(table, states):
    assert list(table) == list(states)
    reached = {next(iter(states))}
    for _ in states:
        reached |= {state for left in reached for state in table[left].values()}
    assert reached == set(states)


@pytest.mark.parametrize(
    "table, events",
    [
        (PARTITION, set(PartitionEvent) - {PartitionEvent.TURN, PartitionEvent.NO_NORM}),
        (CHUNK, {ChunkEvent.RETRY, ChunkEvent.EXPIRY}),
    ],
)
def test_what_the_network_or_a_timer_causes_is_legal_in_every_state(table, events):
    assert all(events <= set(row) for row in table.values())


def test_an_event_without_a_row_is_an_error():
    message = (
        r"^ChunkState\.EARLY: OVERTAKEN cannot happen, the events of this state are TURN, RETRY, "
        r"EXPIRY$"
    )
    with pytest.raises(IllegalEvent, match=message):
        after(CHUNK, ChunkState.EARLY, ChunkEvent.OVERTAKEN)


def test_the_documents_diagram_is_the_tables():
    """The text is what `python -m gradplane.hosts.protocols.switch_states` prints."""
    assert diagrams() in DOCUMENT.read_text()
