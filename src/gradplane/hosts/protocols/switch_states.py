"""The states of a switch worker's partitions and chunks, and the events that lead between them.

Two rules: every transition is a row of PARTITION or CHUNK, and this module knows no packets, timers
or time. `switch_worker` decides which event has happened; an event that
has no row in the present state is a bug there and raises IllegalEvent.

`python -m gradplane.hosts.protocols.switch_states` prints diagrams() for docs/architecture.md.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

import numpy as np
import numpy.typing as npt


class PartitionState(Enum):
    """The states of a partition; the value describes the state."""

    NEW = "its first chunk's turn has not come"
    NORM = "the worker has sent its norm and waits for the common one"
    SENDING = "encoded; chunks are sent as their turns come"
    SILENT = "the common norm never came; the worker only listens for results"


class PartitionEvent(Enum):
    """The events of a partition; the value describes the event."""

    TURN = "its first chunk's turn comes, and the codec needs a common norm"
    NO_NORM = "its first chunk's turn comes, and the codec needs no common norm"
    NORM_RESULT = "the switch sends the common norm"
    RETRY = "its timer runs out, and the norm is sent again"
    EXPIRY = "its timer runs out after the last attempt"
    OVERTAKEN = "a straggler notice says that its slot is in a later round"


class ChunkState(Enum):
    """The states of a chunk; the value describes the state."""

    WAITING = "its turn has not come, or its partition is not encoded"
    EARLY = "its result came before its turn"
    PENDING = "sent or, where the partition is silent, listened for"
    MISSED = "given up without a result"
    DONE = "its result is in hand and its turn is over"


class ChunkEvent(Enum):
    """The events of a chunk; the value describes the event."""

    TURN = "its chain reaches it, and its partition is sending or silent"
    RESULT = "its first valid result arrives"
    RETRY = "its timer runs out, and it is sent again"
    EXPIRY = "its timer runs out, and it is given up"
    OVERTAKEN = "a packet says that its slot is in a later round"


ILLEGAL = 255
State = TypeVar("State", bound=Enum)
Event = TypeVar("Event", bound=Enum)

# Packets and timers may come at any time, so a state that they do not concern has a row that leads
# back to it. The only such row that stands for work is RETRY: PENDING sends again, NORM asks again.
PARTITION: Mapping[PartitionState, Mapping[PartitionEvent, PartitionState]] = {
    PartitionState.NEW: {
        PartitionEvent.TURN: PartitionState.NORM,
        PartitionEvent.NO_NORM: PartitionState.SENDING,
        PartitionEvent.NORM_RESULT: PartitionState.NEW,
        PartitionEvent.RETRY: PartitionState.NEW,
        PartitionEvent.EXPIRY: PartitionState.NEW,
        PartitionEvent.OVERTAKEN: PartitionState.NEW,
    },
    PartitionState.NORM: {
        PartitionEvent.NORM_RESULT: PartitionState.SENDING,
        PartitionEvent.RETRY: PartitionState.NORM,
        PartitionEvent.EXPIRY: PartitionState.SILENT,
        PartitionEvent.OVERTAKEN: PartitionState.SILENT,
    },
    PartitionState.SENDING: {
        PartitionEvent.NORM_RESULT: PartitionState.SENDING,
        PartitionEvent.RETRY: PartitionState.SENDING,
        PartitionEvent.EXPIRY: PartitionState.SENDING,
        PartitionEvent.OVERTAKEN: PartitionState.SENDING,
    },
    PartitionState.SILENT: {
        PartitionEvent.NORM_RESULT: PartitionState.SILENT,
        PartitionEvent.RETRY: PartitionState.SILENT,
        PartitionEvent.EXPIRY: PartitionState.SILENT,
        PartitionEvent.OVERTAKEN: PartitionState.SILENT,
    },
}
CHUNK: Mapping[ChunkState, Mapping[ChunkEvent, ChunkState]] = {
    ChunkState.WAITING: {
        ChunkEvent.TURN: ChunkState.PENDING,
        ChunkEvent.RESULT: ChunkState.EARLY,
        ChunkEvent.RETRY: ChunkState.WAITING,
        ChunkEvent.EXPIRY: ChunkState.WAITING,
    },
    ChunkState.EARLY: {
        ChunkEvent.TURN: ChunkState.DONE,
        ChunkEvent.RETRY: ChunkState.EARLY,
        ChunkEvent.EXPIRY: ChunkState.EARLY,
    },
    ChunkState.PENDING: {
        ChunkEvent.RESULT: ChunkState.DONE,
        ChunkEvent.RETRY: ChunkState.PENDING,
        ChunkEvent.EXPIRY: ChunkState.MISSED,
        ChunkEvent.OVERTAKEN: ChunkState.MISSED,
    },
    ChunkState.MISSED: {
        ChunkEvent.RESULT: ChunkState.DONE,
        ChunkEvent.RETRY: ChunkState.MISSED,
        ChunkEvent.EXPIRY: ChunkState.MISSED,
    },
    ChunkState.DONE: {ChunkEvent.RETRY: ChunkState.DONE, ChunkEvent.EXPIRY: ChunkState.DONE},
}


class IllegalEvent(RuntimeError):
    """An event that the present state has no row for; the message lists the rows there are."""


def after(table: Mapping[State, Mapping[Event, State]], state: State, event: Event) -> State:
    """Return the state that `event` leads to; IllegalEvent if `state` does not allow it."""
    try:
        return table[state][event]
    except KeyError:
        allowed = ", ".join(each.name for each in table[state])
        where = f"{type(state).__name__}.{state.name}"
        raise IllegalEvent(
            f"{where}: {event.name} cannot happen, the events of this state are {allowed}"
        ) from None


def transitions(table: Mapping[State, Mapping[Event, State]]) -> npt.NDArray[np.uint8]:
    """Return the table for kernels: uint8[states, events], the state after each event.

    States and events are numbered in the order of their Enum; ILLEGAL stands where there is no row.
    """
    states = list(type(next(iter(table))))
    events = list(type(next(iter(next(iter(table.values()))))))
    numbers = np.full((len(states), len(events)), ILLEGAL, np.uint8)
    for state, row in table.items():
        for event, reached in row.items():
            numbers[states.index(state), events.index(event)] = states.index(reached)
    return numbers


def diagrams() -> str:
    """Return both tables as Mermaid state diagrams, each with its states and events described."""
    partition = _diagram("a partition", PARTITION, PartitionState.NEW, PartitionEvent)
    return "\n".join([*partition, "", *_diagram("a chunk", CHUNK, ChunkState.WAITING, ChunkEvent)])


def _diagram(
    what: str, table: Mapping[State, Mapping[Event, State]], first: State, events: type[Event]
) -> list[str]:
    arrows = [
        f"    {state.name} --> {reached.name}: "
        + ", ".join(event.name for event, leads_to in row.items() if leads_to is reached)
        for state, row in table.items()
        for reached in dict.fromkeys(row.values())
    ]
    states = [f"| `{state.name}` | {state.value} |" for state in table]
    return [
        *("```mermaid", "stateDiagram-v2", f"    [*] --> {first.name}", *arrows, "```", ""),
        *(f"| state of {what} | |", "| --- | --- |", *states, ""),
        *(f"| event of {what} | |", "| --- | --- |"),
        *(f"| `{event.name}` | {event.value} |" for event in events),
    ]


if __name__ == "__main__":
    print(diagrams())
