"""A P4 switch in this process: source in, packets through."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from gradplane.switch.arch.registry import architecture
from gradplane.switch.arch.v1model import PASS_LIMIT, Arrival, Output
from gradplane.switch.compiler import compile_program
from gradplane.switch.control import Profile, Table
from gradplane.switch.interp.trace import Event, Trace
from gradplane.switch.ir import nodes as ir
from gradplane.switch.naming import resolve
from gradplane.switch.runtime.arrays import Counter, Register
from gradplane.switch.runtime.errors import SwitchError
from gradplane.switch.runtime.messages import Fault, Message, PacketIn
from gradplane.switch.runtime.meters import Meter
from gradplane.switch.runtime.state import CloneSession, Replica, State
from gradplane.switch.runtime.valuesets import ParserValueSet

if TYPE_CHECKING:
    from gradplane.switch.jit.engine import Engine

T = TypeVar("T")

ENGINES = ("interpreter", "jit")
PASSES_A_PACKET = 10 * PASS_LIMIT  # of one injected packet and all that comes of it

Recirculated = Arrival
"""A packet that comes in again (resubmitted or recirculated); hand it to Switch.run_once."""

Buffers = tuple[
    npt.NDArray[np.int64], npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]
]


class Switch:
    """A running P4 program.

    program: a .p4 file, or an ir.Program. arch: "v1model". engine: "interpreter", "jit". seed: of
    random(). clock: nanoseconds; timestamps count from the switch's start. include_dirs, defines:
    for the preprocessor. text: the source, if `program` is but its name. cpu_port: packets that
    leave there become PacketIn messages.
    Raises CompileError if the program is not accepted, SwitchError for other arguments.

    `lock` is held for each packet and each change; hold it to do several as one. `state` is what
    the program's tables, registers and so on contain (gradplane.switch.runtime).
    """

    def __init__(
        self,
        program: str | Path | ir.Program,
        arch: str = "v1model",
        engine: str = "jit",
        seed: int = 0,
        clock: Callable[[], int] = time.monotonic_ns,
        include_dirs: Sequence[str | Path] = (),
        defines: Mapping[str, str] | Sequence[str] | None = None,
        cpu_port: int | None = None,
        text: str | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise SwitchError(f"there is no engine {engine!r}; engines: {', '.join(ENGINES)}")
        if not isinstance(program, ir.Program):
            program = compile_program(program, include_dirs, defines, text)
        self.program = program
        self.cpu_port = cpu_port
        self.lock = RLock()
        kind = architecture(arch, program)
        self.state = State(program, seed=seed, clock=clock)
        self._model = kind.model(program, self.state)
        self._engine: Engine | None = None
        if engine == "jit":
            self._engine = _jit(kind.name, program, self.state, cpu_port)

    # -- packets --------------------------------------------------------------------------------

    def process(self, port: int, packet: bytes) -> list[Output]:
        """Everything that leaves because of a packet: (port, packet) each, in order."""
        with self.lock:
            if self._engine is not None:
                return self._engine.process_one(port, packet)
            return self._process(port, packet, None)

    def process_batch(
        self, ports: Sequence[int], packets: Sequence[bytes]
    ) -> list[tuple[int, int, bytes]]:
        """Packets one after the other -> (index of the cause, port, packet) for all that leaves."""
        if self._engine is not None:
            with self.lock:
                return self._engine.process_list(ports, packets)
        out = []
        with self.lock:
            for i, (port, packet) in enumerate(zip(ports, packets, strict=True)):
                out += [(i, *output) for output in self._process(port, packet, None)]
        return out

    def process_buffer(
        self,
        ports: npt.NDArray[np.integer],
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.integer],
    ) -> Buffers:
        """The same on arrays: packet i is data[offsets[i]:offsets[i + 1]], n + 1 offsets in all.

        -> ports, data, offsets and the index of each packet's cause, in the same layout.
        """
        if self._engine is not None:
            return self._engine.process_buffer(self.lock, ports, data, offsets)
        whole = np.ascontiguousarray(data, dtype=np.uint8).tobytes()
        at = [int(offset) for offset in offsets]
        packets = [whole[a:b] for a, b in zip(at, at[1:], strict=False)]
        results = self.process_batch([int(port) for port in ports], packets)
        lengths = [0, *(len(packet) for _, _, packet in results)]
        return (
            np.array([port for _, port, _ in results], dtype=np.int64),
            np.frombuffer(b"".join(p for _, _, p in results), dtype=np.uint8),
            np.cumsum(lengths, dtype=np.int64),
            np.array([cause for cause, _, _ in results], dtype=np.int64),
        )

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

    def trace(self, port: int, packet: bytes) -> Trace:
        """Processes a packet for good and tells everything that happened to it."""
        events: list[Event] = []
        with self.lock:
            outputs = self._process(port, packet, events)
        return Trace(events, outputs)

    def _process(self, port: int, packet: bytes, events: list[Event] | None) -> list[Output]:
        outputs: list[Output] = []
        waiting = deque([Arrival(port, bytes(packet))])
        for _ in range(PASSES_A_PACKET):
            if not waiting:
                return self._leaving(outputs)
            result = self._model.run(waiting.popleft(), events)
            outputs += result.outputs
            waiting += result.again
        self._storm(len(waiting))
        return self._leaving(outputs)

    def _storm(self, left: int) -> None:
        reason = f"one packet took {PASSES_A_PACKET} passes"
        self.state.drops[reason] += left
        self.state.tell(Fault(f"{left} packets dropped: {reason}"))

    def _leaving(self, outputs: list[Output]) -> list[Output]:
        if self.cpu_port is None:
            return outputs
        for port, packet in outputs:
            if port == self.cpu_port:
                self.state.tell(PacketIn(packet))
        return [output for output in outputs if output[0] != self.cpu_port]

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

    def multicast(self, group: int, ports: Iterable[int | tuple[int, int]]) -> None:
        """Sets a multicast group's ports: port or (port, egress_rid). No ports: ends the group."""
        if not 0 < group < 1 << 16:
            raise SwitchError(f"multicast group {group} is not within 1 to 65535")
        replicas = _replicas(ports)
        with self.lock:
            _set(self.state.multicast, group, replicas)

    def clone_session(
        self, session: int, ports: Iterable[int | tuple[int, int]], truncate: int = 0
    ) -> None:
        """Sets a clone session's ports; copies leave with `truncate` bytes at most (0: whole)."""
        if not 0 <= session < 1 << 15:
            raise SwitchError(f"clone session {session} is not within 0 to 32767")
        replicas = _replicas(ports)
        with self.lock:
            whole = CloneSession(replicas, truncate) if replicas else None
            _set(self.state.clone_sessions, session, whole)

    def messages(self) -> list[Message]:
        """Packet-ins, digests, idle notices and faults since the last call."""
        with self.lock:
            self.state.check_idle()
            out = list(self.state.messages)
            self.state.messages.clear()
        return out


def _jit(arch: str, program: ir.Program, state: State, cpu_port: int | None) -> Engine:
    if arch != "v1model":
        raise SwitchError(f"engine jit runs v1model only, not {arch}: use engine interpreter")
    from gradplane.switch.jit.engine import Engine  # LLVM is loaded where it is used

    return Engine(program, state, PASSES_A_PACKET, cpu_port)


def _named(kind: str, name: str, known: Mapping[str, T]) -> T:
    return known[resolve(kind, name, known)]


def _set(groups: dict[int, Any], id: int, value: Any) -> None:
    if value:
        groups[id] = value
    else:
        groups.pop(id, None)


def _replicas(ports: Iterable[int | tuple[int, int]]) -> list[Replica]:
    return [Replica(*port) if isinstance(port, tuple) else Replica(port) for port in ports]
