"""Packets that enter a switch, what one pass through its pipelines gives, and limits on passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

PASS_LIMIT = 1000  # passes that a packet and its replicas may take one after the other
CLONE_LIMIT = 10 * PASS_LIMIT  # clones of one arrival, and their clones
PASSES_A_PACKET = 10 * PASS_LIMIT  # passes of one injected packet and all that it causes

# Why packets that exceed the limits are dropped.
TOO_OFTEN = f"a packet was resubmitted or recirculated {PASS_LIMIT} times"
CLONED_TOO_OFTEN = f"a packet was cloned {PASS_LIMIT} times in a row"
TOO_MANY_CLONES = f"a packet was cloned more than {CLONE_LIMIT} times"
TOO_MANY_PASSES = f"one packet took {PASSES_A_PACKET} passes"
ENDLESS = frozenset({TOO_OFTEN, CLONED_TOO_OFTEN, TOO_MANY_CLONES, TOO_MANY_PASSES})

Output = tuple[int, bytes]
"""A packet that leaves: port, bytes."""


@dataclass(slots=True)
class Arrival:
    """A packet about to be parsed.

    `kind`: 0 for a packet from a port; the architecture numbers the other ways to come in. `meta`:
    the metadata from the previous pass, None if there is none. `passes`: how many passes the packet
    it comes from has taken.
    """

    port: int
    packet: bytes
    kind: int = 0
    meta: Any = None
    passes: int = 0


@dataclass(slots=True)
class PassResult:
    """The packets that leave after one pass, those that are resubmitted or recirculated, and the
    number of those that wait in a queue of the switch's own. clones: how many were made, counted by
    the interpreter."""

    outputs: list[Output] = field(default_factory=list)
    again: list[Arrival] = field(default_factory=list)
    waiting: int = 0
    clones: int = 0


class NativePass(NamedTuple):
    """How other compiled code runs passes of a switch, and finds what they give.

    once: the address of void once(ptr data, i64 size, i64 port, i64 kind, ptr meta, i64 passes),
    which runs one pass; meta is null for a packet from a port. now, microseconds: addresses of the
    words with the clock's time in ns and the time since `start` in us, to be set before a pass; 0
    where the program does not read them. sent, out, again, messages, waiting: addresses of
    vectors, (address, length, capacity) in 8-byte words (`jit/entry_points.py`), to be emptied
    after a pass. node_size, meta_size: bytes of a node in `again` and of its metadata. cpu_port: -1
    for none. Packets to that port, messages and packets that wait in queues need
    `Switch.native_result`.

    state, own, words: of code that several switches of a program share the address of the words
    that it works on, and where those of this switch are, so many, when no pass runs; state == own
    where the code is the switch's alone.
    """

    once: int
    now: int
    microseconds: int
    sent: int
    out: int
    again: int
    messages: int
    waiting: int
    start: int
    node_size: int
    meta_size: int
    cpu_port: int
    state: int
    own: int
    words: int


SharedCode = dict[str, Any]
"""The machine code that switches share whose passes one thread runs, by the program's assembly."""


def no_such_group(groups: int) -> str:
    """Return the reason of a drop: a multicast group beyond those that can exist."""
    return f"multicast group of {groups} or more"
