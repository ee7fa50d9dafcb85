"""A P4 switch in this process: P4 source in, packets through."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gradplane.switch.arch import load_checks
from gradplane.switch.arch.registry import architecture, combined
from gradplane.switch.control.store import Store
from gradplane.switch.control_handles import (
    CounterHandle,
    MeterHandle,
    Profile,
    RegisterHandle,
    ReplicaSpec,
    Table,
    ValueSetHandle,
    replicas,
    set_group,
    set_session,
)
from gradplane.switch.garbage_pause import collections_paused
from gradplane.switch.interp.user_externs import Implementations, UserExternLock
from gradplane.switch.interpreted_passes import InterpretedPasses
from gradplane.switch.ir import nodes as ir
from gradplane.switch.naming import resolve
from gradplane.switch.packet_tracing import PacketWatcher, Tracing, UnfinishedTraces, Watchers
from gradplane.switch.program_cache import load_program
from gradplane.switch.queue_departures import Departed, QueueDepartures
from gradplane.switch.runtime.arrays import Homes, one_pipe
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.control_messages import Message, PacketIn
from gradplane.switch.runtime.egress_queues import EgressQueues
from gradplane.switch.runtime.links import Links
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
from gradplane.switch.runtime.packet_passes import (
    Arrival,
    NativePass,
    Output,
    PassResult,
    SharedCode,
)
from gradplane.switch.runtime.pipe_scopes import KINDS
from gradplane.switch.runtime.replicas import Replica
from gradplane.switch.runtime.state import DROP_PORT, State
from gradplane.switch.user_externs_file import load_externs

if TYPE_CHECKING:
    from gradplane.switch.interp.trace_events import Trace, TraceEvent
    from gradplane.switch.jit.engine import Engine

ENGINES = ("interpreter", "jit")
DEFAULT_ENGINE = "jit"
BATCH = 4096  # packets for which process_buffer holds the lock

Recirculated = Arrival
"""A packet that is processed again (resubmitted or recirculated); pass it to Switch.run_once."""


class Switch:
    """A running P4 program.

    program: a .p4 file, an ir.Program, or several files of a chip's programs, which it names by
    their files. arch: "v1model", "psa", "pna", "tna"; None: the architecture of the program's
    package. engine: "interpreter", "jit". seed: of random numbers. clock: nanoseconds; timestamps
    count from the switch's start. include_dirs, defines: for the preprocessor. text: the source, if
    `program` is only its name. cpu_port: packets that leave there become PacketIn messages; PSA has
    a fixed CPU port and ignores this. drop_port: the port that v1model's mark_to_drop sets. links:
    the state of the ports' links, to share it. externs: the implementations of user-defined
    externs: functions and classes by name, a module, or a Python file. pipe_scopes: the pipes that
    run each pipeline of a chip's program, by the pipelines' names, or each of several programs.
    quick: machine code that is ready sooner and slower, for tests of a few packets.
    Raises CompileError if the program is not accepted, SwitchError for other arguments.

    `lock` is held for each packet and each change; hold it to do several as one. `state` holds the
    program's tables, registers and so on (gradplane.switch.runtime); `store` is how control planes
    write and read them (gradplane.switch.control).
    """

    @collections_paused()
    def __init__(
        self,
        program: str | Path | ir.Program | Sequence[str | Path],
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
        pipe_scopes: Mapping[str, Sequence[int]] | None = None,
        quick: bool = False,
    ) -> None:
        if engine not in ENGINES:
            raise SwitchError(f"there is no engine {engine!r}; engines: {', '.join(ENGINES)}")
        if isinstance(program, str | Path):
            program = load_program(program, include_dirs, defines, text)
        elif not isinstance(program, ir.Program):
            program = combined([load_program(file, include_dirs, defines) for file in program])
        self.architecture = architecture(arch, program)
        load_checks.prepare(program, self.architecture)
        program = self.architecture.placed(program, pipe_scopes or {})
        self.program = program
        fixed = self.architecture.cpu_port
        self.cpu_port = cpu_port if fixed is None else fixed
        most = self.architecture.ports - 1
        by_port = self.architecture.drops_by_port
        if by_port and (not 0 <= drop_port <= most or drop_port == self.cpu_port):
            raise SwitchError(f"drop port {drop_port}: expected 0 to {most} and not the CPU port")
        chip = self.architecture.implementation.device(program)
        pipes, metadata = 1, (0, 0)
        homes: Homes = one_pipe
        if chip is not None:
            pipes, metadata = chip.pipes, (chip.ports, chip.port_metadata_bytes)
            homes = chip.pipes_of
        self.state = State(program, seed, clock, drop_port, links, pipes, metadata, homes)
        self.state.links.queues.go_round(chip is not None)
        self.state.cpu_port = self.cpu_port
        self.state.clone_sessions.update(self.architecture.clone_sessions)
        if isinstance(externs, str | Path):
            externs = load_externs(externs)
        later = engine == "jit"
        self._model = self.architecture.interpreter(program, self.state, externs, later)
        users = self._model.user_externs
        self.lock: AbstractContextManager[Any] = RLock() if users is None else UserExternLock(users)
        self.store = Store(self.state, self.architecture, self.lock)
        self._passes = InterpretedPasses(self.state)
        self._watchers = Watchers()
        self._engine: Engine | None = None
        if engine == "jit":
            self._engine = self.architecture.engine(
                program, self.state, self.cpu_port, users, quick
            )
        self.state.scopes.changed.append(self._pipes_changed)
        self._departures = QueueDepartures(self.state, self._model, self._engine)
        self._unfinished = UnfinishedTraces()

    # -- packets --------------------------------------------------------------------------------

    def process(self, port: int, packet: bytes) -> list[Output]:
        """Process a packet; return those that leave because of it, in order: (port, packet)."""
        self.architecture.check_port(port)
        with self.lock:
            if self._watchers and (wanting := self._watchers.wanting(port, packet)):
                return list(self._trace(port, packet, wanting).outputs)
            if self._engine is not None:
                return self._engine.process_one(port, packet)
            return self._leaving(self._process(port, packet, None).outputs)

    def process_batch(
        self, ports: Sequence[int], packets: Sequence[bytes]
    ) -> list[tuple[int, int, bytes]]:
        """Process packets in order; return (index of the cause, port, packet) for each result."""
        if len(ports) != len(packets):
            raise SwitchError(f"{len(ports)} ports for {len(packets)} packets: give one for each")
        numbers, data, offsets = pack(ports, packets)
        self._check_ports(numbers)
        return outputs(*self.process_spans(numbers, data, offsets[:-1], offsets[1:]))

    def process_buffer(
        self,
        ports: npt.NDArray[np.integer],
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.integer],
    ) -> Buffers:
        """Process packets in arrays: packet i is data[offsets[i]:offsets[i + 1]].

        Returns ports, data, offsets and the index of each packet's cause, in the same layout. Works
        in batches, between which other threads can take the lock. Raises SwitchError for offsets
        that are not within the data.
        """
        where = np.ascontiguousarray(ports, dtype=np.int64)
        whole = np.ascontiguousarray(data, dtype=np.uint8)
        at = np.ascontiguousarray(offsets, dtype=np.int64)
        check_offsets(len(where), len(whole), at)
        self._check_ports(where)
        starts, ends = at[:-1], at[1:]
        parts = []
        for first in range(0, len(where), BATCH):
            part = slice(first, first + BATCH)
            parts.append((first, self.process_spans(where[part], whole, starts[part], ends[part])))
        rows, out = joined(parts)
        columns = np.empty((3, len(rows) + 1), dtype=np.int64)
        columns[1, 0] = 0
        columns[:, 1:] = rows.T
        return columns[0, 1:], out, columns[1], columns[2, 1:]

    def process_spans(self, ports: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent:
        """Process one batch in arrays, unchecked: packet i is data[starts[i]:ends[i]].

        Returns rows of (port, end of its bytes, index of its cause), and the bytes. The arrays must
        be contiguous, the packets within the data, the ports the architecture's: none is checked.
        """
        with self.lock:
            if self._engine is None:
                return sent(self._interpreted(ports, data, starts, ends))
            if self._watchers:
                return self._with_traces(self._engine, ports, data, starts, ends)
            return self._engine.process(ports, data, starts, ends)

    def _with_traces(
        self, engine: Engine, ports: Ints, data: Bytes, starts: Ints, ends: Ints
    ) -> Sent:
        """Process a batch: traced packets in the interpreter, the others in the engine."""
        parts: list[tuple[int, Sent]] = []
        done = 0

        def up_to(i: int) -> None:
            some = slice(done, i)
            if i > done:
                parts.append((done, engine.process(ports[some], data, starts[some], ends[some])))

        for i, packet, wanting in self._watchers.chosen(ports, data, starts, ends):
            up_to(i)
            left = self._trace(int(ports[i]), packet, wanting).outputs
            parts.append((i, sent((0, *output) for output in left)))
            done = i + 1
        up_to(len(ports))
        return joined(parts)

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
        """Run one pass, for callers that give recirculation a time of its own.

        Returns the packets that leave and those that are processed again, to be passed in later as
        `packet`; `port` is ignored for them. Packets that wait in queues come out of `poll_once`.
        """
        if isinstance(packet, Arrival):
            arrival = packet
        else:
            self.architecture.check_port(port)
            arrival = Arrival(port, bytes(packet))
        with self.lock:
            result = (self._engine or self._model).run(arrival)
            return self._leaving(result.outputs), result.again

    # -- passes that other compiled code runs -----------------------------------------------------

    def native_pass(self, shared: SharedCode | None = None) -> NativePass | None:
        """Return what compiled code needs to run single passes, as `run_once` does, by itself.

        shared: code that other switches run, too, which keeps it in the processor's caches; it is
        added where it lacks. Whoever runs it puts a switch's words into their place first.
        None where Python runs them: in the interpreter, with user-defined externs, or where packets
        add entries. The addresses are valid as long as the switch lives. Passes may run inside
        `native_passes` only.
        """
        if self._engine is None or self._model.user_externs is not None:
            return None
        return self._engine.native_pass(shared)

    @contextmanager
    def native_passes(self) -> Iterator[None]:
        """Hold the lock while compiled code runs passes; count their drops at the end."""
        assert self._engine is not None, "the interpreter has no native passes"
        with self.lock:
            self._engine.begin_native_passes()
            try:
                yield
            finally:
                self._engine.end_native_passes()

    def native_result(self) -> tuple[list[Output], list[Recirculated]]:
        """Return what `run_once` would, of the pass that compiled code has just run.

        It is needed where a pass gave messages or packets that wait in queues, which are
        reported and put into their queues now.
        """
        assert self._engine is not None, "the interpreter has no native passes"
        with self.lock:
            result = self._engine.native_result()
            return self._leaving(result.outputs), result.again

    # -- queues ---------------------------------------------------------------------------------

    @property
    def queues(self) -> EgressQueues:
        """The switch's own queues, which have no rate from the start; hold `lock` to change them.

        While a port has queues, the packets to it wait between ingress and egress, and no method
        that processes packets returns them. `poll` does, when their time has come.
        """
        return self.state.links.queues

    @property
    def sees_queues(self) -> bool:
        """Whether the program's metadata give away how long packets wait for egress."""
        return self.architecture.implementation.sees_queues(self.program)

    def next_departure(self) -> int | None:
        """Return when a packet may leave a queue next, by the clock; None while none waits."""
        return self.queues.next_departure()

    def poll(self) -> list[Output]:
        """Run egress of the packets whose queues let them go by now; return those that leave.

        Now is the clock's time. Packets that are resubmitted or recirculated are processed, too.
        """
        left: list[Output] = []
        with self.lock:
            for packets in self._departures.rounds():
                again: list[tuple[Departed, Arrival]] = []
                for departed in packets:
                    result = departed.result
                    left += self._left(departed.events, result, len(result.again) - 1)
                    again += [(departed, arrival) for arrival in result.again]
                for departed, arrival in again:
                    rest = self._passes.run(departed.run, arrival)
                    left += self._left(departed.events, rest, -1)
        return left

    def poll_once(self) -> tuple[list[Output], list[Recirculated]]:
        """Do as `poll` does, but return the packets that are processed again, for `run_once`."""
        left: list[Output] = []
        again: list[Recirculated] = []
        with self.lock:
            for departed in chain.from_iterable(self._departures.rounds()):
                left += self._left(departed.events, departed.result, -1)
                again += departed.result.again
        return left, again

    def _left(
        self, events: list[TraceEvent] | None, result: PassResult, change: int
    ) -> list[Output]:
        """Return a result's packets that leave the switch, and take note of them in a trace.

        change: how many more passes it waits for beside those in queues.
        """
        leaving = self._leaving(result.outputs)
        if events is not None:
            self._unfinished.went_on(events, leaving, result.waiting + change)
        return leaving

    def limit_passes(self, limit: int) -> None:
        """Drop a packet that takes so many passes, all that it causes included; a clone counts as
        one. For the interpreter only."""
        self._passes.limit(limit)
        self._model.clone_limit = limit

    # -- traces ---------------------------------------------------------------------------------

    def trace(self, port: int, packet: bytes) -> Trace:
        """Process a packet, with all its effects, and trace everything that happens to it.

        While some of it waits in a queue, the trace lacks that; `poll` completes it.
        """
        self.architecture.check_port(port)
        with self.lock:
            return self._trace(port, packet, [])

    def _trace(self, port: int, packet: bytes, wanting: list[PacketWatcher]) -> Trace:
        """Process a packet; deliver its trace, at once or when all of it has left the queues."""
        from gradplane.switch.interp.trace_events import Trace

        events: list[TraceEvent] = []
        result = self._process(port, packet, events)
        trace = Trace(port, bytes(packet), events, self._leaving(result.outputs))
        self._unfinished.begin(trace, wanting, result.waiting)
        return trace

    def tracing(
        self, port: int | None = None, where: str | None = None, count: int | None = None
    ) -> Tracing:
        """Trace packets to come: the next `count` that arrive at `port` and satisfy `where`.

        None: any. `where` is a P4 expression on the parser's parameters as they are after it ran,
        with textual addresses: "hdr.ipv4.isValid() && hdr.ipv4.dst == 10.0.0.5". The switch keeps
        its tables, registers and counters; packets keep their order. Iterate over the result, and
        close it, or use `with`. Packets given to run_once are not examined. Raises CompileError for
        an invalid filter.
        """
        chooses = None if where is None else self.packet_filter(where)
        tracing = Tracing(port, chooses, count, self.unwatch)
        self.watch(tracing)
        return tracing

    def packet_filter(self, where: str) -> Callable[[int, bytes], bool]:
        """Return the function of a port and a packet that says whether `where`, as `tracing` has
        it, is true. Raises CompileError for an invalid one."""
        from gradplane.switch.packet_filters import PacketFilter  # imports the compiler

        return PacketFilter(self._model, where)

    def watch(self, watcher: PacketWatcher) -> None:
        """Let a tracing, or another watcher, choose from the packets to come."""
        with self.lock:
            self._watchers.add(watcher)

    def unwatch(self, watcher: PacketWatcher) -> None:
        """End what `watch` began."""
        with self.lock:
            self._watchers.remove(watcher)

    # -- single packets -------------------------------------------------------------------------

    def _process(self, port: int, packet: bytes, events: list[TraceEvent] | None) -> PassResult:
        run = partial(self._model.run, events=events)
        return self._passes.run(run, Arrival(port, bytes(packet)), events)

    def _leaving(self, left: list[Output]) -> list[Output]:
        if self.cpu_port is None:
            return left
        for port, packet in left:
            if port == self.cpu_port:
                self.state.report(PacketIn(packet))
        return [output for output in left if output[0] != self.cpu_port]

    # -- control --------------------------------------------------------------------------------

    def table(self, name: str, pipe: int = 0) -> Table:
        """Return a handle of a table, to add, modify and remove entries.

        pipe: whose entries, where pipes have their own (`set_scope`).
        """
        return Table(self.store.names.find("table", name, pipe), self.store, self.lock)

    def profile(self, name: str, pipe: int = 0) -> Profile:
        """Return a handle of an action profile or selector; for a profile that a selector is made
        with, that of the selector, which has its members. pipe: as for `table`."""
        profile = self.store.names.find("action profile", name, pipe)
        for selector in self.program.externs if not profile.tables else ():
            made_with = [a.name for a in selector.args if isinstance(a, ir.ExternInstance)]
            if selector.kind == "action_selector" and profile.name in made_with:
                profile = self.store.names.find("action profile", selector.name, pipe)
        return Profile(profile, self.store, self.lock)

    def register(self, name: str) -> RegisterHandle:
        """Return a register array: read(index), write(index, value), values."""
        return RegisterHandle(self.store.names.find("register", name), self.store, self.lock)

    def counter(self, name: str, pipe: int = 0) -> CounterHandle:
        """Return an indirect counter array: read(index) -> (packets, bytes).

        Direct counters are the `counter` of table entries. pipe: as for `table`.
        """
        found = self.store.names.find("counter", name, pipe)
        return CounterHandle(found, self.store, self.lock)

    def meter(self, name: str, pipe: int = 0) -> MeterHandle:
        """Return an indirect meter array: write(index, MeterConfig(...)), read(index).

        pipe: as for `table`.
        """
        return MeterHandle(self.store.names.find("meter", name, pipe), self.store, self.lock)

    def expire_time(self, profile: int) -> int:
        """Return the nanoseconds of one of PNA's expire time profiles; 0: entries with it stay."""
        time: int = self.store.expire_times.read(profile)["time_ns"]
        return time

    def set_expire_time(self, profile: int, nanoseconds: int) -> None:
        """Set them, for what packets do from now on. Raises SwitchError for what cannot be."""
        with self.lock:
            self.store.expire_times.modify(profile, time_ns=nanoseconds)

    def set_scope(self, name: str, groups: Iterable[Iterable[int]] | None = None) -> None:
        """Let each pipe of a chip have a table, profile, counter, meter or the like of its own.

        groups: the pipes that share one instead, [[0, 1], [2, 3]]. A table and its profile have one
        scope, which can change while they have no entries. Raises SwitchError.
        """
        scopes = self.state.scopes
        known = dict.fromkeys(chain.from_iterable(scopes.pipes[0].of(kind) for kind in KINDS))
        with self.lock:
            whole = resolve("table or extern", name, known)
            self.store.scopes.set(whole, scopes.apart(whole) if groups is None else groups)

    def _pipes_changed(self) -> None:
        self._model.compile_again()
        if self._engine is not None:
            self._engine.share_pipes()

    def value_set(self, name: str, pipe: int = 0) -> ValueSetHandle:
        """Return a parser value set: replace(members). pipe: as for `table`."""
        found = self.store.names.find("value set", name, pipe)
        return ValueSetHandle(found, self.store, self.lock)

    def multicast(self, group: int, ports: Iterable[ReplicaSpec]) -> None:
        """Set a multicast group's ports; without ports, delete the group."""
        with self.lock:
            set_group(self.store, group, ports)

    def set_link(self, port: int, up: bool) -> None:
        """Set a port's link state.

        While a port is down, group members that watch it are skipped, and replicas through it are
        replaced with their backups.
        """
        self.store.links.put(port, {"up": up})

    def clone_session(
        self,
        session: int,
        ports: Iterable[ReplicaSpec],
        truncate: int = 0,
        class_of_service: int = 0,
    ) -> None:
        """Set a clone session's ports; without ports, delete the session.

        `truncate`: the maximum bytes with which clones leave (PSA: enter egress); 0: all.
        `class_of_service`: the clones' class in PSA.
        """
        with self.lock:
            set_session(self.store, session, ports, truncate, class_of_service)

    @property
    def clone_sessions(self) -> int:
        """The number of clone sessions: session numbers are below it."""
        return self.architecture.sessions

    def replicas(self, ports: Iterable[ReplicaSpec]) -> list[Replica]:
        """Make replicas through ports. Raises SwitchError for ports beyond the architecture's."""
        return replicas(self.store, ports)

    def _check_ports(self, ports: Ints) -> None:
        if len(ports):
            last = int(ports[ports.view(np.uint64).argmax()])  # there a negative one is the last
            self.architecture.check_port(last if last >= 0 else int(ports.min()))

    def reset(self) -> None:
        """Reset tables, registers, counters, meters and groups to their initial state."""
        with self.lock:
            self.store.reset()
            self.state.clone_sessions.update(self.architecture.clone_sessions)

    def run_commands(self, text: str, file: str = "commands") -> str:
        """Run simple_switch_CLI's commands, one in a line, or a file of runtime JSON.

        Returns their output. All lines are tried; raises CommandError that lists all that failed,
        with their lines of `file`.
        """
        from gradplane.switch.commands import run  # it imports this module

        return run(self, text, file)

    def messages(self) -> list[Message]:
        """Return packet-ins, digests, idle notices and faults since the last call."""
        with self.lock:
            self.state.check_idle()
            out = list(self.state.messages)
            self.state.messages.clear()
        return out
