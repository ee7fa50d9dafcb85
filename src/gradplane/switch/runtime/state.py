"""All state of a running switch, by control-plane name."""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from gradplane._splitmix64 import MASK, mix
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.arrays import Homes, Register, make_registers, one_pipe
from gradplane.switch.runtime.control_messages import IdleNotice, Message
from gradplane.switch.runtime.crcs import CustomCrc, custom_crcs
from gradplane.switch.runtime.dynamic_hashes import DynamicHash
from gradplane.switch.runtime.links import Links
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.pipe_scopes import PipeScopes, make_resources
from gradplane.switch.runtime.replicas import CloneSession, Replica
from gradplane.switch.runtime.replication_tree import ReplicationTree
from gradplane.switch.runtime.stage_probe import StageProbe
from gradplane.switch.runtime.translations import Translation
from gradplane.switch.runtime.written_tables import ExpireTimes

Clock = Callable[[], int]

QueueChange = Callable[[int, int, int], None]
"""Called with a port, a priority and the queue's length, when that has changed."""

EXCLUSIONS = 512  # level 2 exclusion ids
DROP_PORT = 511  # simple_switch's own choice
MESSAGES_KEPT = 100_000  # the oldest are lost beyond it, so that unread ones do not fill memory


class State:
    """Tables, externs, groups and messages of one switch.

    clock: returns nanoseconds. drop_port: where v1model's mark_to_drop sends packets. links: which
    ports are down. `cpu_port`: the switch's, for architectures that copy packets to it. pipes: of a
    chip, each of which has cells of its own in registers. port_metadata: how many ports have
    metadata, and how many bytes, which `port_metadata` then holds; those that were set are
    `ports_with_metadata`. `pruned`: the ports that a level 2 exclusion id leaves out. `scopes`: the
    tables and externs of each pipe; `tables`, `counters` and so on are the first pipe's.
    `global_rid`: the replication id that stands for all in exclusion. `digests`: how a controller
    wants the messages of those that it has enabled, by name. `kept`: what notations keep, by name:
    settings without an effect on packets."""

    def __init__(
        self,
        program: ir.Program,
        seed: int = 0,
        clock: Clock = time.monotonic_ns,
        drop_port: int = DROP_PORT,
        links: Links | None = None,
        pipes: int = 1,
        port_metadata: tuple[int, int] = (0, 0),
        homes: Homes = one_pipe,
    ) -> None:
        self.program = program
        self.clock = clock
        self.drop_port = drop_port
        self.cpu_port: int | None = None
        self.links = links or Links()
        self.start = clock()
        self.rng = Rng(seed)
        by_kind: dict[str, list[ir.ExternInstance]] = {}
        for instance in program.externs:
            by_kind.setdefault(instance.kind, []).append(instance)
        made = make_registers(by_kind.get("register", []), pipes, homes)
        self.register_memory, self.registers = made.memory, made.by_name
        self.register_cells, self.current_pipe = made.cells, made.current
        self._pipe_registers = made.pipes
        self.port_metadata = np.zeros(port_metadata, dtype=np.uint8)
        self.ports_with_metadata: dict[int, bool] = {}
        self.pruned = np.zeros((EXCLUSIONS, port_metadata[0]), dtype=np.uint8)
        self.global_rid: int | None = None
        self.expire_times = ExpireTimes()
        self.flow_ids = np.zeros(1, dtype=np.int64)  # how many packets have been given
        made_of = program, self.links, clock, self.registers, pipes, self.expire_times
        self.scopes = PipeScopes(partial(make_resources, *made_of), pipes, homes)
        first = self.scopes.pipes[0]
        self.tables, self.profiles = first.tables, first.profiles
        self.counters, self.meters, self.filters = first.counters, first.meters, first.filters
        self.value_sets = first.value_sets
        self.hashes = {i.name: DynamicHash(i) for i in by_kind.get("hash", [])}
        self.byte_adjustments = first.adjustments
        self.multicast: WatchedDict[int, list[Replica]] = WatchedDict()
        self.clone_sessions: WatchedDict[int, CloneSession] = WatchedDict()
        self.replication = ReplicationTree(self.multicast, self.clone_sessions)
        crcs = custom_crcs(program)
        named = {crc: CustomCrc(*crc) for crc in crcs.values()}
        self.crcs = {call: named[crc] for call, crc in crcs.items()}
        self.digests: dict[str, dict[str, Any]] = {}
        self.kept: dict[str, dict[Any, Any]] = {}
        self.translations: dict[str, Translation] = {}  # P4Runtime's, by the types' names
        self.messages: deque[Message] = deque(maxlen=MESSAGES_KEPT)
        self.listener: Callable[[Message], None] | None = None
        self.drops: Tally[str] = Tally()  # packets dropped, by reason
        self.queue_changed: QueueChange = _nothing
        self.probe: StageProbe | None = None  # of packets that are traced

    def report(self, message: Message) -> None:
        """Hand a message to the listener (the switch's lock is held), or keep it for
        Switch.messages()."""
        if self.listener is not None:
            self.listener(message)
        else:
            self.messages.append(message)

    def microseconds(self) -> int:
        """Return the time since the switch started."""
        return self.nanoseconds() // 1000

    def nanoseconds(self) -> int:
        """Return the time since the switch started."""
        return self.clock() - self.start

    def check_idle(self) -> None:
        """Report each entry that has been idle for its timeout since its last hit or notice."""
        now = self.clock()
        for table in self.timed_tables:
            for entry in table.idle(now):
                self.report(IdleNotice(table.table.name, entry, table))

    def pipe_registers(self, name: str) -> list[Register]:
        """Return a register in each pipe; one item where the architecture has no pipes."""
        return [registers[name] for registers in self._pipe_registers]

    @property
    def timed_tables(self) -> list[MatchTable]:
        """The tables whose entries are reported when they are idle."""
        tables = self.scopes.every("tables")
        return [t for t in tables if t.table.support_timeout and not t.table.auto_delete]


def _nothing(port: int, priority: int, length: int) -> None:
    """Ignore a queue's length: most programs do not see it before egress."""


class PipeState(State):
    """The state of a switch as the packets of one pipe see it."""

    def __init__(self, state: State, pipe: int) -> None:
        self._state = state
        own = state.scopes.pipes[pipe]
        self.tables, self.profiles = own.tables, own.profiles
        self.counters, self.meters, self.filters = own.counters, own.meters, own.filters
        self.value_sets, self.byte_adjustments = own.value_sets, own.adjustments
        self.registers = state._pipe_registers[pipe]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


# -- a dict that counts its changes, so that its mirrors can detect them --------------------------

K = TypeVar("K")
V = TypeVar("V")


class WatchedDict(dict[K, V]):
    """A dict whose `changes` grows with every change of an item, but not inside the items."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = 0

    def __setitem__(self, key: K, value: V) -> None:
        self.changes += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        self.changes += 1
        super().__delitem__(key)

    def pop(self, key: K, *default: Any) -> Any:
        self.changes += 1
        return super().pop(key, *default)

    def clear(self) -> None:
        self.changes += 1
        super().clear()

    def update(self, *args: Any, **kwargs: Any) -> None:
        self.changes += 1
        super().update(*args, **kwargs)


# -- random numbers by counting: the n-th draw depends on the seed and n only ---------------------


class Rng:
    """A stream of 64-bit numbers, which `state` (uint64: seed, draws so far) determines."""

    def __init__(self, seed: int) -> None:
        # Seeds and counts are small numbers: the seed is inverted so that seeds share no draws.
        self.state = np.array([mix(~seed & MASK), 0], dtype=np.uint64)

    def draw(self) -> int:
        """Return the next number, 0 to 2^64 - 1."""
        seed, count = (int(v) for v in self.state)
        self.state[1] = (count + 1) & MASK
        return mix(seed ^ mix(count))

    def between(self, low: int, high: int) -> int:
        """Return a number from low to high, both included; low if high is less."""
        span = high - low + 1
        if span <= 1:
            return low
        value = 0
        for _ in range((span - 1).bit_length() // 64 + 1):
            value = value << 64 | self.draw()
        return low + value % span
