"""A program on both engines side by side: the same tables, the same packets, the same results."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from jit_chip import random_exclusions, random_queues, random_scopes

from gradplane.switch import MeterConfig, Switch, TableError
from gradplane.switch.interp.interpreter_values import plain
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.runtime.control_messages import Digest, Message
from gradplane.switch.runtime.entries import (
    ActionData,
    Entry,
    EntryAction,
    GroupRef,
    MemberRef,
    OneShot,
)
from gradplane.switch.runtime.filters import Filter, FilterConfig
from gradplane.switch.runtime.match_fields import KeyField, Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.packet_buffers import pack
from gradplane.switch.runtime.profiles import Weighted


class Clock:
    """Time that stands still while packets are processed."""

    def __init__(self) -> None:
        self.now = 10**9

    def __call__(self) -> int:
        return self.now


class Pair:
    """`interpreter` and `jit`: two switches with one clock, changed and fed alike.

    `other`: what the interpreter runs, a program with the same meaning; one of the two may lack
    tables that are never applied.
    """

    def __init__(
        self,
        program: ir.Program,
        seed: int = 0,
        cpu_port: int | None = None,
        other: ir.Program | None = None,
        quick: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.same = other is None
        self.clock = Clock()
        self.interpreter, self.jit = (
            Switch(runs, engine=engine, seed=seed, clock=self.clock, cpu_port=cpu_port, quick=quick)
            for engine, runs in (("interpreter", other or program), ("jit", program))
        )
        self.both = self.interpreter, self.jit

    # -- packets --------------------------------------------------------------------------------

    def check(self, packets: Sequence[bytes], ports: Sequence[int] | None = None) -> int:
        """Run packets through both and compare everything visible; return the number of outputs."""
        ports = ports or [self.rng.randrange(512) for _ in packets]
        expected = self.interpreter.process_batch(ports, packets)
        got = self._run_jit(ports, packets)
        for i, (a, b) in enumerate(zip(expected, got, strict=False)):
            assert a == b, f"output {i}: {_text(a)} became {_text(b)} ({packets[a[0]].hex()})"
        assert len(expected) == len(got), (len(expected), len(got))
        waited = [switch.poll() for switch in self.both]
        assert waited[0] == waited[1]
        self.check_state()
        return len(expected) + len(waited[0])

    def _run_jit(
        self, ports: Sequence[int], packets: Sequence[bytes]
    ) -> list[tuple[int, int, bytes]]:
        """Run packets in one of three ways."""
        way = self.rng.randrange(3)
        if way == 0:
            return self.jit.process_batch(ports, packets)
        if way == 1:
            singles = [self.jit.process(a, p) for a, p in zip(ports, packets, strict=True)]
            return [(i, *o) for i, outputs in enumerate(singles) for o in outputs]
        out, data, offsets, causes = self.jit.process_buffer(*pack(ports, packets))
        whole = data.tobytes()
        rows = zip(causes.tolist(), out.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(),
                   strict=True)  # fmt: skip
        return [(c, p, whole[a:b]) for c, p, a, b in rows]

    def check_state(self) -> None:
        """Compare registers, counters, meters, tables, messages, drops and random numbers."""
        expected, got = (_visible(switch) for switch in self.both)
        if self.same:
            assert expected.keys() == got.keys()
        for name in expected.keys() & got.keys():
            assert expected[name] == got[name], name
        messages = [[_message(m) for m in switch.messages()] for switch in self.both]
        assert messages[0] == messages[1]

    # -- control --------------------------------------------------------------------------------

    def populate(self, entries: int = 12) -> None:
        """Set random contents of everything that the control plane sets."""
        random_scopes(self.rng, self.both)
        for pipe, name in self._owners("profiles"):
            self._profile(name, pipe)
        for pipe, name in self._owners("tables"):
            for _ in range(entries):
                self._insert(name, pipe)
        for pipe, name in self._owners("meters"):
            for index in range(0, self.jit.meter(name, pipe).size, 2):
                config = self._meter_config()
                for switch in self.both:
                    switch.meter(name, pipe).write(index, config, self.clock())
        for pipe, name in self._owners("filters"):
            for index in range(0, self.jit.state.filters[name].size, 2):
                settings = self._filter_config()
                for switch in self.both:
                    cells = switch.state.scopes.pipes[pipe].filters[name]
                    cells.write(index, settings, self.clock())
        for pipe, name in self._owners("value_sets"):
            fields = self.jit.value_set(name).fields
            members = [tuple(self.match(f) for f in fields) for _ in range(3)]
            for switch in self.both:
                switch.value_set(name, pipe).replace(members)
        for group in range(1, 6):
            ports = [(self.rng.randrange(9), self.rng.randrange(5)) for _ in range(group % 4)]
            truncate = self.rng.choice([0, 0, 7, 200])
            for switch in self.both:
                switch.multicast(group, ports)
                switch.clone_session(group, ports, truncate)
        random_exclusions(self.rng, self.both)
        if not self.rng.randrange(3):
            random_queues(self.rng, self.both)

    def disturb(self) -> None:
        """Change some of it again: entries modified and removed, defaults, time."""
        self.clock.now += self.rng.randrange(10**7)
        for pipe, name in self._owners("tables"):
            table = self._table(self.jit, name, pipe)
            for entry in list(table.entries())[:: self.rng.randrange(2, 5)]:
                change = self.rng.choice(["delete", "modify"])
                target = self._target(table)
                self._both(
                    name, pipe, change, lambda e=entry, t=target: Entry(e.matches, t, e.priority)
                )
            self._insert(name, pipe)
            data = self.rng.choice([self._action(table), self._target(table)])
            for switch in self.both:
                try:
                    self._table(switch, name, pipe).set_default(data)
                except TableError:
                    continue

    def _owners(self, kind: str) -> list[tuple[int, str]]:
        """Return each table or extern of a kind, with the first of the pipes that share it."""
        scopes = self.jit.state.scopes
        names = scopes.pipes[0].of(kind)
        return [(pipes[0], name) for name in names for pipes in scopes.groups(name)]

    @staticmethod
    def _table(switch: Switch, name: str, pipe: int) -> MatchTable:
        return switch.state.scopes.pipes[pipe].tables[name]

    def _insert(self, name: str, pipe: int) -> None:
        table = self._table(self.jit, name, pipe)
        matches = tuple(self.match(f) for f in table.fields)
        priority = self.rng.randrange(1, 6) if table.with_priority else 0
        target, config = self._target(table), self._meter_config()
        filtered = table.table.filter
        settings = None if filtered is None else self._filter_config()

        def make() -> Entry:
            entry = Entry(matches, target, priority)
            entry.meter.configure(config, self.clock())
            if filtered is not None:
                entry.filter = Filter(filtered.name, 1)
                entry.filter.write(0, settings, self.clock())
            return entry

        self._both(name, pipe, "insert", make)

    def _both(self, name: str, pipe: int, change: str, make: Any) -> None:
        """Change a table in both switches; both must accept or both refuse it."""
        refused = []
        for switch in self.both:
            try:
                getattr(self._table(switch, name, pipe), change)(make())
                refused.append("")
            except TableError as error:
                refused.append(str(error))
        assert refused[0] == refused[1]

    def _profile(self, name: str, pipe: int) -> None:
        of_pipe = self.jit.state.scopes.pipes[pipe].tables.values()
        tables = [t for t in of_pipe if t.profile and t.profile.name == name]
        if not tables:
            return
        allowed = tables[0].actions.for_entries
        if not allowed:
            return
        actions = [self._action(tables[0], allowed) for _ in range(6)]
        groups = [
            [Weighted(self.rng.randrange(1, 7), self.rng.randrange(1, 4)) for _ in range(n)]
            for n in (0, 1, 3)
        ]
        for switch in self.both:
            profile = switch.state.scopes.pipes[pipe].profiles[name]
            new = not profile.members
            for i, action in enumerate(actions):
                (profile.add_member if new else profile.modify_member)(i + 1, action)
            for i, group in enumerate(groups if profile.has_groups else []):
                (profile.add_group if new else profile.modify_group)(i + 1, group)

    def _target(self, table: MatchTable) -> EntryAction:
        if table.profile is None:
            return self._action(table)
        choices: list[EntryAction] = [MemberRef(self.rng.randrange(1, 7))]
        if table.profile.has_groups:
            choices.append(GroupRef(self.rng.randrange(1, 4)))
            choices.append(OneShot(((self._action(table), 2, b""), (self._action(table), 1, b""))))
        return self.rng.choice(choices)

    def _action(self, table: MatchTable, allowed: Sequence[str] = ()) -> ActionData:
        """Return one of the table's actions, of those allowed if there are any."""
        names = [a.action.name for a in table.table.actions]
        index = names.index(self.rng.choice(allowed or names))
        params = table.table.actions[index].action.params
        return ActionData(index, tuple(self._argument(p) for p in params))

    def _argument(self, param: ir.Var) -> int:
        if not isinstance(param.type, Bits):
            return self.rng.randrange(2)
        value = self.number(param.type.width)
        if param.type.signed and value >> (param.type.width - 1):
            value -= 1 << param.type.width
        return value

    def _filter_config(self) -> FilterConfig | None:
        if not self.rng.randrange(4):
            return None
        low, rate = self.rng.randrange(100), bool(self.rng.randrange(2))
        gain, decay = (self.rng.choice([1.0, 1e3, 1e7]) for _ in range(2))
        return FilterConfig(gain, decay, rate, self.rng.randrange(3), low, low + 100, 0.5)

    def _meter_config(self) -> MeterConfig | None:
        if not self.rng.randrange(4):
            return None
        cir, cburst = self.rng.randrange(10**6), self.rng.randrange(400)
        period = self.rng.choice((1, 1, 10, 10**9, (1 << 31) - 1))
        if self.rng.randrange(2):
            pir = cir + self.rng.randrange(10**9)
            return MeterConfig(cir, cburst, pir, cburst + 100, period=period)
        return MeterConfig(cir, cburst, eburst=self.rng.randrange(1, 500), period=period)

    def number(self, width: int) -> int:
        return likely_number(self.rng, width)

    def match(self, field: KeyField) -> Match:
        """Return a match that the field accepts."""
        value, other = self.number(field.width), self.number(field.width)
        if field.kind != "exact" and not self.rng.randrange(4):
            return None
        match field.kind:
            case "lpm":
                length = self.rng.randrange(field.width + 1)
                return value & field.mask(length), length
            case "ternary":
                return value & other, other
            case "range":
                low, high = sorted((value, other), key=field.order)
                return low, high
        return (value,)


def _visible(switch: Switch) -> dict[str, Any]:
    state = switch.state
    seen: dict[str, Any] = {"rng": state.rng.state.tolist(), "drops": dict(state.drops)}
    for name, register in state.registers.items():
        for pipe, cells in enumerate((register, *register.copies)):
            seen[f"register {name}, {pipe}"] = [int(v) for v in cells.values]
    for pipe, own in enumerate(state.scopes.pipes):
        for name, counter in own.counters.items():
            seen[f"counter {name}, {pipe}"] = counter.packets.tolist(), counter.bytes.tolist()
        for name, meter in own.meters.items():
            seen[f"meter {name}, {pipe}"] = meter.memory.tolist()
        for name, filter in own.filters.items():
            seen[f"filter {name}, {pipe}"] = filter.cells.tolist()
        for name, table in own.tables.items():
            seen[f"table {name}, {pipe}"] = [_entry(e) for e in table.entries()]
            seen[f"default of {name}, {pipe}"] = list(table.default_counter.cells)
            seen[f"default meter of {name}, {pipe}"] = list(table.default_meter.cells)
    return seen


def _entry(entry: Entry) -> Any:
    stats = list(entry.counter.cells), list(entry.meter.cells), list(entry.times)
    filtered = None if entry.filter is None else entry.filter.cells.tolist()
    return entry.matches, entry.priority, stats, filtered


def _message(message: Message) -> Any:
    if isinstance(message, Digest):
        return message.name, plain(message.type, message.data), message.pipe
    return message


def _text(output: tuple[int, int, bytes]) -> str:
    cause, port, packet = output
    return f"(packet {cause}, port {port}, {packet.hex()})"


def likely_number(rng: random.Random, width: int) -> int:
    """Return a number that is often small, so that keys are met."""
    top = (1 << width) - 1
    choices = [0, 1, 2, 3, top, top >> 1, rng.getrandbits(width) if width else 0]
    return rng.choice(choices) & top


def random_packet(rng: random.Random, length: int) -> bytes:
    """Return bytes that are often small or extreme."""
    kinds = [lambda: rng.randrange(256), lambda: rng.randrange(16), lambda: 0, lambda: 255,
             lambda: rng.choice([1, 2, 3, 4, 0x81, 0x80])]  # fmt: skip
    kind = rng.choice(kinds)
    return bytes(kind() if rng.randrange(3) else rng.randrange(256) for _ in range(length))
