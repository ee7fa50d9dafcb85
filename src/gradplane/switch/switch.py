"""A P4 switch in this process: source in, packets through."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from gradplane.switch.arch.model import PASS_LIMIT, Arrival, Output
from gradplane.switch.arch.registry import architecture
from gradplane.switch.arch.user_extern_lock import OwnLock
from gradplane.switch.arch.user_externs import Implementations, OwnExterns
from gradplane.switch.control_handles import Profile, Table
from gradplane.switch.garbage_pause import collections_paused
from gradplane.switch.interp.trace_events import Event, Trace
from gradplane.switch.ir import nodes as ir
from gradplane.switch.naming import resolve
from gradplane.switch.packet_tracing import Tracing
from gradplane.switch.program_cache import load_program
from gradplane.switch.runtime.arrays import Counter, Register
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.control_messages import Fault, Message, PacketIn
from gradplane.switch.runtime.links import Links
from gradplane.switch.runtime.meters import Meter
from gradplane.switch.runtime.packet_buffers import (
    Buffers,
    Bytes,
    Ints,
    Sent,
    check_offsets,
    joined,
    outputs,
    pack,
    sent,
)
from gradplane.switch.runtime.replicas import CloneSession, Replica
from gradplane.switch.runtime.state import DROP_PORT, State
from gradplane.switch.runtime.valuesets import ParserValueSet
from gradplane.switch.user_externs_file import load_externs

if TYPE_CHECKING:
    from gradplane.switch.jit.engine import Engine

T = TypeVar("T")

ENGINES = ("interpreter", "jit")
DEFAULT_ENGINE = "jit"
V1_PORTS = 1 << 9  # port numbers of v1model
BATCH = 4096  # packets for which process_buffer holds the lock
PASSES_A_PACKET = 10 * PASS_LIMIT  # of one injected packet and all that comes of it

Copy = int | tuple[int, int] | tuple[int, int, Iterable[Any]]
"""Where a copy goes: port, (port, egress_rid), or (port, egress_rid, backups): copies of which the
first with a link takes its place while the port has none."""

Recirculated = Arrival
"""A packet that comes in again (resubmitted or recirculated); hand it to Switch.run_once."""


class Switch:
    """A running P4 program.

    program: a .p4 file, or an ir.Program. arch: "v1model", "psa"; None: as the program's package
    says. engine: "interpreter", "jit". seed: of random numbers. clock: nanoseconds; timestamps
    count from the switch's start. include_dirs, defines: for the preprocessor. text: the source, if
    `program` is but its name. cpu_port: packets that leave there become PacketIn messages; PSA has
    a port of its own for that, whatever is given here. drop_port: where v1model's mark_to_drop
    sends packets. links: which ports are down, where others know it too. externs: what implements
    the externs that the program declares itself: functions and classes by name, a module, or a
    Python file.
    Raises CompileError if the program is not accepted, SwitchError for other arguments.

    `lock` is held for each packet and each change; hold it to do several as one. `state` is what
    the program's tables, registers and so on contain (gradplane.switch.runtime).
    """

    @collections_paused()
    def __init__(
        self,
        program: str | Path | ir.Program,
        arch: str | None = None,
        engine: str = DEFAULT_ENGINE,
        seed: int = 0,
        clock: Callable[[], int] = time.monotonic_ns,
        include_dirs: Sequence[str | Path] = (),
        defines: Mapping[str, str] | Sequence[str] | None = None,
        cpu_port: int | None = None,
        text: str | None = None,
        drop_port: int = DROP_PORT,
        links: Links | None = None,
        externs: Implementations | str | Path | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise SwitchError(f"there is no engine {engine!r}; engines: {', '.join(ENGINES)}")
        if not isinstance(program, ir.Program):
            program = load_program(program, include_dirs, defines, text)
        self.program = program
        kind = architecture(arch, program)
        self.cpu_port = cpu_port if kind.model.cpu_port is None else kind.model.cpu_port
        if not 0 <= drop_port < V1_PORTS or drop_port == self.cpu_port:
            raise SwitchError(
                f"drop port {drop_port}: expected 0 to {V1_PORTS - 1} and not the CPU port"
            )
        self.state = State(program, seed, clock, drop_port, links)
        if isinstance(externs, str | Path):
            externs = load_externs(externs)
        self._model = kind.model(program, self.state, externs)
        own = self._model.own
        self.lock: AbstractContextManager[Any] = RLock() if own is None else OwnLock(own)
        self._first_sessions = dict(self.state.clone_sessions)  # what the architecture brings
        self._tracings: list[Tracing] = []
        self._engine: Engine | None = None
        if engine == "jit":
            self._engine = _jit(program, self.state, self.cpu_port, own)

    # -- packets --------------------------------------------------------------------------------

    def process(self, port: int, packet: bytes) -> list[Output]:
        """Everything that leaves because of a packet: (port, packet) each, in order."""
        with self.lock:
            if self._tracings and (wanting := self._wanting(port, packet)):
                return self._traced(port, packet, wanting)
            if self._engine is not None:
                return self._engine.process_one(port, packet)
            return self._process(port, packet, None)

    def process_batch(
        self, ports: Sequence[int], packets: Sequence[bytes]
    ) -> list[tuple[int, int, bytes]]:
        """Packets one after the other -> (index of the cause, port, packet) for all that leaves."""
        if len(ports) != len(packets):
            raise SwitchError(f"{len(ports)} ports for {len(packets)} packets: give one for each")
        numbers, data, offsets = pack(ports, packets)
        return outputs(*self.process_spans(numbers, data, offsets[:-1], offsets[1:]))

    def process_buffer(
        self,
        ports: npt.NDArray[np.integer],
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.integer],
    ) -> Buffers:
        """The same on arrays: packet i is data[offsets[i]:offsets[i + 1]], n + 1 offsets in all.

        -> ports, data, offsets and the index of each packet's cause, in the same layout. Goes in
        batches between which others can have the lock. Raises SwitchError for offsets that are
        not within the data.
        """
        where = np.ascontiguousarray(ports, dtype=np.int64)
        whole = np.ascontiguousarray(data, dtype=np.uint8)
        at = np.ascontiguousarray(offsets, dtype=np.int64)
        check_offsets(len(where), len(whole), at)
        starts, ends = at[:-1], at[1:]
        parts = []
        for first in range(0, len(where), BATCH):
            part = slice(first, first + BATCH)
            parts.append((first, self.process_spans(where[part], whole, starts[part], ends[part])))
        rows, out = joined(parts)
        rises = np.concatenate([np.zeros(1, dtype=np.int64), rows[:, 1]])
        return rows[:, 0].copy(), out, rises, rows[:, 2].copy()

    def process_spans(self, ports: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent:
        """One batch on arrays with the least ado: packet i is data[starts[i]:ends[i]].

        -> rows of (port, end of its bytes, index of its cause), and the bytes. The arrays must be
        contiguous and the packets within the data: neither is checked.
        """
        with self.lock:
            if self._engine is None:
                return sent(self._interpreted(ports, data, starts, ends))
            if self._tracings:
                return self._with_traces(self._engine, ports, data, starts, ends)
            return self._engine.process(ports, data, starts, ends)

    def _interpreted(
        self, ports: Ints, data: Bytes, starts: Ints, ends: Ints
    ) -> Iterator[tuple[int, int, bytes]]:
        spans = zip(ports.tolist(), starts.tolist(), ends.tolist(), strict=True)
        for i, (port, start, end) in enumerate(spans):
            for output in self.process(port, data[start:end].tobytes()):
                yield (i, *output)

    def run_once(
        self, port: int, packet: bytes | Recirculated
    ) -> tuple[list[Output], list[Recirculated]]:
        """One pass, for callers to whom recirculation takes time: -> what leaves, what comes back.

        What comes back is later passed in as `packet`; `port` does not matter for it.
        """
        arrival = packet if isinstance(packet, Arrival) else Arrival(port, bytes(packet))
        with self.lock:
            result = (self._engine or self._model).run(arrival)
            return self._leaving(result.outputs), result.again

    # -- traces ---------------------------------------------------------------------------------

    def trace(self, port: int, packet: bytes) -> Trace:
        """Processes a packet for good and tells everything that happened to it."""
        events: list[Event] = []
        with self.lock:
            leaving = self._process(port, packet, events)
        return Trace(port, bytes(packet), events, leaving)

    def tracing(
        self, port: int | None = None, where: str | None = None, count: int | None = None
    ) -> Tracing:
        """Traces of packets to come: those that come in through `port`, for which `where` holds,
        the next `count`; None: any.

        `where` is a P4 expression on the parser's parameters as they are once it ran, with
        addresses as text: "hdr.ipv4.isValid() && hdr.ipv4.dst == 10.0.0.5". The switch goes on
        with its tables, registers and counters; packets keep their order. Iterate over the result,
        and close it, or use `with`. Packets given to run_once are not looked at.
        Raises CompileError for a filter that is not understood.
        """
        from gradplane.switch.packet_filters import PacketFilter  # brings the compiler along

        chooses = None if where is None else PacketFilter(self._model, where)
        tracing = Tracing(port, chooses, count, self._end_tracing)
        self.watch(tracing)
        return tracing

    def watch(self, tracing: Tracing) -> None:
        """Has a tracing choose from the packets to come."""
        with self.lock:
            self._tracings.append(tracing)

    def _end_tracing(self, tracing: Tracing) -> None:
        with self.lock:
            if tracing in self._tracings:
                self._tracings.remove(tracing)

    def _wanting(self, port: int, packet: bytes) -> list[Tracing]:
        return [tracing for tracing in self._tracings if tracing.wants(port, packet)]

    def _traced(self, port: int, packet: bytes, wanting: list[Tracing]) -> list[Output]:
        trace = self.trace(port, packet)
        for tracing in wanting:
            tracing.deliver(trace)
        return trace.outputs

    def _with_traces(
        self, engine: Engine, ports: Ints, data: Bytes, starts: Ints, ends: Ints
    ) -> Sent:
        """A batch of which the engine processes what no tracing wants."""
        parts: list[tuple[int, Sent]] = []
        done = 0

        def up_to(i: int) -> None:
            some = slice(done, i)
            if i > done:
                parts.append((done, engine.process(ports[some], data, starts[some], ends[some])))

        for i, port in enumerate(ports.tolist()):
            if not any(tracing.port in (None, port) for tracing in self._tracings):
                continue
            packet = data[starts[i] : ends[i]].tobytes()
            wanting = self._wanting(port, packet)
            if wanting:
                up_to(i)
                parts.append((i, sent((0, *o) for o in self._traced(port, packet, wanting))))
                done = i + 1
        up_to(len(ports))
        return joined(parts)

    # -- one packet after the other -------------------------------------------------------------

    def _process(self, port: int, packet: bytes, events: list[Event] | None) -> list[Output]:
        left: list[Output] = []
        waiting = deque([Arrival(port, bytes(packet))])
        for _ in range(PASSES_A_PACKET):
            if not waiting:
                return self._leaving(left)
            result = self._model.run(waiting.popleft(), events)
            left += result.outputs
            waiting += result.again
        self._storm(len(waiting))
        return self._leaving(left)

    def _storm(self, left: int) -> None:
        reason = f"one packet took {PASSES_A_PACKET} passes"
        self.state.drops[reason] += left
        self.state.tell(Fault(f"{left} packets dropped: {reason}"))

    def _leaving(self, left: list[Output]) -> list[Output]:
        if self.cpu_port is None:
            return left
        for port, packet in left:
            if port == self.cpu_port:
                self.state.tell(PacketIn(packet))
        return [output for output in left if output[0] != self.cpu_port]

    # -- control --------------------------------------------------------------------------------

    def table(self, name: str) -> Table:
        """A table, to add, modify and remove entries."""
        return Table(_named("table", name, self.state.tables), self.lock)

    def profile(self, name: str) -> Profile:
        """An action profile or selector."""
        profile = _named("action profile", name, self.state.profiles)
        tables = [t for t in self.state.tables.values() if t.profile is profile]
        return Profile(profile, tables, self.lock)

    def register(self, name: str) -> Register:
        """A register array: read(index), write(index, value), values."""
        return _named("register", name, self.state.registers)

    def counter(self, name: str) -> Counter:
        """An indirect counter array: read(index) -> (packets, bytes). Direct counters are their
        entries' `counter`."""
        return _named("counter", name, self.state.counters)

    def meter(self, name: str) -> Meter:
        """An indirect meter array: write(index, MeterConfig(...)), read(index)."""
        return _named("meter", name, self.state.meters)

    def value_set(self, name: str) -> ParserValueSet:
        """A parser value set: replace(members)."""
        return _named("value set", name, self.state.value_sets)

    def multicast(self, group: int, ports: Iterable[Copy]) -> None:
        """Sets a multicast group's ports. No ports: ends the group."""
        if not 0 < group < 1 << 16:
            raise SwitchError(f"multicast group {group} is not within 1 to 65535")
        replicas = self.replicas(ports)
        with self.lock:
            _set(self.state.multicast, group, replicas)
            self.state.nodes.group_changed(group)

    def set_link(self, port: int, up: bool) -> None:
        """Says that a port has lost its link, or has it again: group members that watch it are left
        out, and replicas give way to their backups."""
        self.state.links.set(port, up)

    def clone_session(
        self,
        session: int,
        ports: Iterable[Copy],
        truncate: int = 0,
        class_of_service: int = 0,
    ) -> None:
        """Sets a clone session's ports. `truncate`: the most bytes with which copies leave (PSA:
        enter egress); 0: whole. `class_of_service`: what PSA's copies have."""
        most = self.clone_sessions - 1
        if not 0 <= session <= most:
            raise SwitchError(f"clone session {session} is not within 0 to {most}")
        if not 0 <= truncate < 1 << 31:
            raise SwitchError(f"clone session {session}: truncate {truncate} is not within 31 bits")
        if not 0 <= class_of_service < 1 << 8:
            what = f"class of service {class_of_service} is not within 0 to 255"
            raise SwitchError(f"clone session {session}: {what}")
        replicas = self.replicas(ports)
        with self.lock:
            whole = CloneSession(replicas, truncate, class_of_service) if replicas else None
            _set(self.state.clone_sessions, session, whole)

    @property
    def clone_sessions(self) -> int:
        """How many clone sessions there can be: their numbers are below it."""
        return self._model.sessions

    def replicas(self, ports: Iterable[Copy]) -> list[Replica]:
        """Copies through ports. Raises SwitchError for what does not fit the architecture."""
        return [
            self._replica(*port) if isinstance(port, tuple) else self._replica(port)
            for port in ports
        ]

    def _replica(self, port: int, instance: int = 0, backups: Iterable[Copy] = ()) -> Replica:
        if not 0 <= port < self._model.ports:
            raise SwitchError(f"port {port} is not within 0 to {self._model.ports - 1}")
        if not 0 <= instance < 1 << 16:
            raise SwitchError(f"egress_rid {instance} is not within 0 to 65535")
        return Replica(port, instance, tuple(self.replicas(backups)))

    def reset(self) -> None:
        """Tables, registers, counters, meters and groups as the program starts with them."""
        with self.lock:
            self.state.reset()
            self.state.clone_sessions.update(self._first_sessions)

    def run_commands(self, text: str, file: str = "commands") -> str:
        """Carries out simple_switch_CLI's commands, a line each, or the P4 tutorials' runtime JSON.

        -> what they print. All lines are tried; raises CommandError that tells all that failed,
        with their lines of `file`.
        """
        from gradplane.switch.commands import run  # it knows this module

        return run(self, text, file)

    def messages(self) -> list[Message]:
        """Packet-ins, digests, idle notices and faults since the last call."""
        with self.lock:
            self.state.check_idle()
            out = list(self.state.messages)
            self.state.messages.clear()
        return out


def _jit(program: ir.Program, state: State, cpu_port: int | None, own: OwnExterns | None) -> Engine:
    from gradplane.switch.jit.engine import Engine  # LLVM is loaded where it is used

    return Engine(program, state, PASSES_A_PACKET, cpu_port, own=own)


def _named(kind: str, name: str, known: Mapping[str, T]) -> T:
    return known[resolve(kind, name, known)]


def _set(groups: dict[int, Any], id: int, value: Any) -> None:
    if value:
        groups[id] = value
    else:
        groups.pop(id, None)
