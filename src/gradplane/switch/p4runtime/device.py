"""The device that a P4Runtime server serves: at most one running switch and one saved pipeline."""

from __future__ import annotations

import json
import logging
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Lock, get_ident
from typing import Any, TypeVar

from gradplane._p4runtime import p4i, p4r
from gradplane.switch.arch.architecture import PipeScopes
from gradplane.switch.arch.registry import combined, of_package, program_name
from gradplane.switch.control.store import Store
from gradplane.switch.ir import nodes as ir
from gradplane.switch.p4runtime.catalog import Catalog
from gradplane.switch.p4runtime.constraints import ConstraintError
from gradplane.switch.p4runtime.device_config import Source, parse_device_config, parse_several
from gradplane.switch.p4runtime.entry_rules import EntryRules
from gradplane.switch.p4runtime.pipeline import Pipeline, RunningSwitch
from gradplane.switch.p4runtime.reconcile import load_state, saved_state
from gradplane.switch.p4runtime.response_streams import Losses
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.control_messages import Message
from gradplane.switch.runtime.packet_buffers import Bytes, Ints, Sent, sent
from gradplane.switch.runtime.replicas import GROUPS
from gradplane.switch.source import CompileError, Diagnostic, InternalCompilerError

log = logging.getLogger(__name__)

Outputs = list[tuple[int, bytes]]
T = TypeVar("T")
_DIFFERENCES_SHOWN = 5
_TURN = 0.005  # seconds that a request of many parts has the device for itself


class FairLock:
    """A re-entrant lock that threads get in the order in which they ask.

    A thread that lets Python's own lock go and takes it again at once leaves those that wait with
    nothing. A long read gives the lock back between its parts, so the order matters.
    """

    def __init__(self) -> None:
        self._state = Lock()  # of what follows, held for moments
        self._owner: int | None = None
        self._depth = 0
        self._waiting: deque[tuple[int, Lock]] = deque()

    @property
    def held_once(self) -> bool:
        """Whether this thread holds it, and gives it back when it leaves."""
        return self._owner == get_ident() and not self._depth

    def __enter__(self) -> None:
        me = get_ident()
        if self._owner == me:
            self._depth += 1
            return
        turn: Lock | None = None
        with self._state:
            if self._owner is None:
                self._owner = me
            else:
                turn = Lock()
                turn.acquire()
                self._waiting.append((me, turn))
        if turn is not None:
            turn.acquire()  # the thread before has made this one the owner

    def __exit__(self, *error: object) -> None:
        if self._depth:
            self._depth -= 1
            return
        with self._state:
            if not self._waiting:
                self._owner = None
                return
            self._owner, turn = self._waiting.popleft()
        turn.release()


@dataclass(slots=True, eq=False, repr=False)
class Device:
    """Device `id`. `compile` and `start` make a switch of a pushed program.

    `pipeline` is the one that packets run through, None until a program is loaded or pushed.
    `saved` waits for a COMMIT; until then it is the one that is read and written. Messages of the
    running switch go to `listener`, from the thread that runs the packet. `restricted`: entries
    must keep to the program's rules (entry_rules.py). `fixed_names`: numbers of names, by
    translated types.
    """

    compile: Callable[[Source], ir.Program]
    start: Callable[[ir.Program], RunningSwitch]
    id: int = 1
    listener: Callable[[Message], None] = lambda message: None
    transmit: Callable[[Outputs], None] = lambda outputs: None
    pipeline: Pipeline | None = None
    saved: Pipeline | None = None
    lost: int = field(default=0)  # packets received while no program was loaded
    restricted: bool = True
    fixed_names: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    busy: bool = field(default=False)  # a request of the control plane is in progress
    # serialises requests; taken before a switch's lock
    lock: FairLock = field(default_factory=FairLock)
    losses: Losses = field(default_factory=Losses)  # of messages to controllers
    reading: FairLock = field(default_factory=FairLock)  # taken before `lock`: see `parts`
    _due: float = 0.0  # when a long request pauses, by the clock of time.monotonic

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the device for a controller's request or a command: one at a time."""
        with self.lock:
            self.busy, self._due = True, time.monotonic() + _TURN
            try:
                yield
            finally:
                self.busy = False

    def pause(self) -> bool:
        """Give the device to others that wait for it, and take it again; the caller holds its turn.

        Return whether it has done so: not while a part of the turn holds it once more, and only
        some milliseconds after the last time.
        """
        if not self.lock.held_once or time.monotonic() < self._due:
            return False
        self.busy = False
        self.lock.__exit__()
        self.lock.__enter__()  # behind all that wait for it
        self.busy, self._due = True, time.monotonic() + _TURN
        return True

    def parts(self, answers: Iterator[T]) -> Iterator[T]:
        """Yield the answers of a long read. The device is held while one is made, and is free
        between them; of several reads one waits for it at a time, so that a write waits for a part.
        """
        end = object()
        while True:
            with self.reading, self.turn():
                answer = next(answers, end)
            if answer is end:
                return
            yield answer  # type: ignore[misc]

    @property
    def target(self) -> Pipeline:
        """The pipeline that reads and writes apply to.

        Raises RpcError while there is no program, with PI's words, for which clients look.
        """
        pipeline = self.saved or self.pipeline
        if pipeline is None:
            raise RpcError(
                "FAILED_PRECONDITION",
                "No forwarding pipeline config set for this device: push a program",
            )
        return pipeline

    def process(self, port: int, packet: bytes) -> Outputs:
        """Run a packet through the current program and return the packets that leave."""
        while True:
            pipeline = self.pipeline
            if pipeline is None:
                self.lost += 1
                return []
            with pipeline.switch.lock:
                if pipeline is self.pipeline:  # not replaced while waiting for the lock
                    return pipeline.switch.process(port, packet)

    def process_spans(self, ports: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent:
        """Run a batch through it: packet i is data[starts[i]:ends[i]]; Switch.process_spans."""
        while True:
            pipeline = self.pipeline
            if pipeline is None:
                self.lost += len(ports)
                return sent(())
            with pipeline.switch.lock:
                if pipeline is self.pipeline:  # not replaced while waiting for the lock
                    return pipeline.switch.process_spans(ports, data, starts, ends)

    def next_departure(self) -> int | None:
        """Return when a packet may leave a queue next; None while none waits."""
        pipeline = self.pipeline
        if pipeline is None or not pipeline.state.links.queues.waiting:
            return None
        with pipeline.switch.lock:
            return pipeline.state.links.queues.next_departure()

    def poll(self) -> Sent:
        """Run egress of the packets whose queues let them go by now; return those that leave."""
        while True:
            pipeline = self.pipeline
            if pipeline is None:
                return sent(())
            with pipeline.switch.lock:
                if pipeline is self.pipeline:  # not replaced while waiting for the lock
                    return sent((0, *output) for output in pipeline.switch.poll())

    def load(self, program: ir.Program) -> None:
        """Run a program that was not pushed but given on the command line, for example."""
        self.commit(self._pipeline(program, p4r.ForwardingPipelineConfig()))

    def prepare(
        self, config: p4r.ForwardingPipelineConfig, pipe_scopes: PipeScopes | None = None
    ) -> Pipeline:
        """Make a pipeline of a pushed config. pipe_scopes: the pipes that run each pipeline of a
        chip's program; None: where they are by default, or run now.

        Raises RpcError INVALID_ARGUMENT where that is not possible.
        """
        if not (config.p4_device_config or config.p4info.ListFields()):
            raise invalid(
                "the config has neither a device config nor a P4Info: push the .p4 source"
            )
        several = parse_several(config.p4_device_config)
        if several is not None:
            return self.prepare_several(*several, config)
        program = self._program(config)
        try:
            return self._pipeline(_placed(program, pipe_scopes or {}), config)
        except CompileError as error:  # raised by its architecture or P4Info
            source = parse_device_config(config.p4_device_config)
            raise _refused(error, source) from error

    def prepare_several(
        self,
        pushed: Mapping[str, bytes],
        pipe_scopes: PipeScopes | None = None,
        whole: p4r.ForwardingPipelineConfig | None = None,
    ) -> Pipeline:
        """Make a pipeline of several programs of a chip. pushed: their device configs by name,
        empty for one that runs now. pipe_scopes: the pipes that run each, or each pipeline. whole:
        the config that they came in, if it was one.

        Raises RpcError INVALID_ARGUMENT where that is not possible.
        """
        programs = [
            self._program(p4r.ForwardingPipelineConfig(p4_device_config=config))
            if config else self._part(name)
            for name, config in pushed.items()
        ]  # fmt: skip
        for name, found in zip(pushed, map(program_name, programs), strict=True):
            if name != found:
                what = f"there is no program {name!r}: the source that is pushed for it is {found}"
                raise RpcError("NOT_FOUND", what)
        try:
            program = _placed(combined(programs), pipe_scopes or {})
            pipeline = self._pipeline(program, whole or p4r.ForwardingPipelineConfig())
        except CompileError as error:
            sources = map(parse_device_config, filter(None, pushed.values()))
            raise _refused(error, *sources) from error
        except SwitchError as error:
            raise invalid(str(error)) from error
        former = {} if self.pipeline is None else self.pipeline.binaries
        pipeline.binaries = {n: config or former.get(n, b"") for n, config in pushed.items()}
        return pipeline

    def _part(self, name: str) -> ir.Program:
        """Return one of the programs that run now, to run beside others. Raises RpcError."""
        program = None if self.pipeline is None else self.pipeline.catalog.program
        if program is not None and name in program.parts:
            return program.parts[name]
        if program is None or program_name(program) != name:
            raise RpcError("NOT_FOUND", f"there is no program {name!r} to run again")
        try:  # its objects are renamed, those of the running one are not
            alone: ir.Program = pickle.loads(pickle.dumps(program, 5))
        except RecursionError as error:
            what = f"{name} is nested too deeply to run beside others: push its source, too"
            raise invalid(what) from error
        return alone

    def commit(self, pipeline: Pipeline) -> None:
        """Run this pipeline from the next packet on; only the ports stay as they were."""
        pipeline.state.listener = self.listener
        old = self.pipeline
        if old is None:
            self.pipeline = pipeline
        else:
            with old.switch.lock:
                old.state.listener = None
                self.pipeline = pipeline
        self.saved = None

    def save_state(self) -> str:
        """Return the running program's state, for `load_state`. Raises RpcError.

        The caller does not hold the device: others have their turn meanwhile, packets too.
        """
        with ExitStack() as held:

            def pause() -> None:
                held.close()
                for lock in (self.reading, self.turn(), pipeline.switch.lock):
                    held.enter_context(lock)

            pipeline = self._running()
            pause()
            state = saved_state(pipeline, pause)
        return json.dumps(state, indent=2)  # whose parts are Python's: other threads run

    def load_state(self, text: str) -> None:
        """Start the running program anew with saved state, from the next packet on.

        Raises RpcError, and leaves all as it is, where the state is not of such a program.
        """
        old = self._running()
        new = self._pipeline(old.catalog.program, old.config)
        load_state(new, text)
        self.commit(new)

    def _running(self) -> Pipeline:
        if self.pipeline is None:
            raise RpcError("FAILED_PRECONDITION", "the switch runs no program yet")
        return self.pipeline

    def _program(self, config: p4r.ForwardingPipelineConfig) -> ir.Program:
        """Compile a device config.

        An empty one, which comes with a P4Info, stands for the running program.
        """
        if not config.p4_device_config:
            if self.pipeline is None:
                raise invalid("the device config is empty and no program runs: push the .p4 source")
            return self.pipeline.catalog.program
        p4info = config.p4info.SerializeToString(deterministic=True)
        source = parse_device_config(config.p4_device_config, p4info)
        try:
            return self.compile(source)
        except CompileError as error:
            raise _refused(error, source) from error

    def _pipeline(self, program: ir.Program, config: p4r.ForwardingPipelineConfig) -> Pipeline:
        catalog = Catalog(program, self.fixed_names)
        _check_agreement(config, catalog)
        try:
            switch = self.start(program)
        except SwitchError as error:
            raise invalid(str(error)) from error
        _name_values(switch.store, catalog)
        kept = p4r.ForwardingPipelineConfig()
        kept.CopyFrom(config)
        if not kept.p4info.ListFields():
            kept.p4info.CopyFrom(catalog.p4info)
        if not self.restricted:
            return Pipeline(catalog, switch, kept)
        try:
            rules = EntryRules(catalog, kept.p4info, switch.store)
            return Pipeline(catalog, switch, kept, rules=rules)
        except ConstraintError as error:
            raise invalid(
                f"{error}; correct it, or start the switch with --no-restrictions"
            ) from error


def _name_values(store: Store, catalog: Catalog) -> None:
    """Give the names of translated types' values to a program's state, for all who show them."""
    store.state.translations = catalog.translations
    for names in catalog.translations.values():
        names.record = store.journal.record
    for table in store.state.scopes.every("tables"):
        info = catalog.table_named(table.table.name)
        if info is not None:
            fields = sorted(info.fields.values(), key=lambda f: f.position)
            table.translations = [f.value.names for f in fields]


def _placed(program: ir.Program, scopes: PipeScopes) -> ir.Program:
    found = of_package(program.package.package_type)
    if found is None:
        return program
    try:
        return found.placed(program, scopes)
    except SwitchError as error:
        raise invalid(str(error)) from error


def _check_agreement(config: p4r.ForwardingPipelineConfig, catalog: Catalog) -> None:
    found = differences(config.p4info, catalog.p4info)
    if found:
        more = len(found) - _DIFFERENCES_SHOWN
        shown = found[:_DIFFERENCES_SHOWN] + ([f"and {more} more"] if more > 0 else [])
        raise invalid(
            "the P4Info does not belong to the program: "
            + "; ".join(shown)
            + ". Make it from the same source (gradplane p4 info FILE.p4), or leave it empty"
        )


def _refused(error: CompileError, *sources: Source) -> RpcError:
    """Return the answer to programs that cannot run; a bug of the compiler is logged, too."""
    if isinstance(error, InternalCompilerError):
        files = ", ".join(source.file for source in sources)
        log.error("the compiler failed on %s", files, exc_info=error)
    return invalid(_rendered(error, sources))


def _rendered(error: CompileError, sources: Iterable[Source]) -> str:
    """Format the diagnostics with the lines of the files that the sources were made of."""
    lines = {file: text for source in sources for file, text in source.lines().items()}

    def render(diagnostic: Diagnostic) -> str:
        return diagnostic.render(lines)

    return "\n".join(map(render, error.diagnostics))


# -- a pushed P4Info beside that of the program ---------------------------------------------------

_P4INFO_PARTS = {
    "tables": "table",
    "actions": "action",
    "action_profiles": "action profile",
    "counters": "counter",
    "direct_counters": "direct counter",
    "meters": "meter",
    "direct_meters": "direct meter",
    "controller_packet_metadata": "controller header",
    "value_sets": "value set",
    "registers": "register",
    "digests": "digest",
}
_P4INFO_FIELDS = {
    "tables": "match_fields",
    "actions": "params",
    "controller_packet_metadata": "metadata",
    "value_sets": "match",
}


def differences(given: p4i.P4Info, program: p4i.P4Info) -> list[str]:
    """List the statements of `given` that are not true of the program; empty when they agree.

    Compared: the architecture; ids and names; ids, names, widths and kinds of fields; actions and
    implementations of tables. Annotations, documentation and sizes may differ, and objects of the
    program may be missing in `given`. Requested platform properties must be available, too.
    """
    return list(_differences(given, program))


def _differences(given: p4i.P4Info, program: p4i.P4Info) -> Iterator[str]:
    arch, there_arch = given.pkg_info.arch, program.pkg_info.arch
    if arch not in ("", there_arch):
        yield f"its architecture is {arch}, the program's {there_arch}"
    yield from _platform(given.pkg_info.platform_properties)
    for part, kind in _P4INFO_PARTS.items():
        there = {o.preamble.name: o for o in getattr(program, part)}
        for claimed in getattr(given, part):
            name = claimed.preamble.name
            if name not in there and part == "actions" and not _is_used(claimed, given):
                continue  # p4c also lists actions that no table has
            if name not in there:
                known = ", ".join(there) or "none"
                yield f"{kind} {name} is not in the program, which has: {known}"
            elif claimed.preamble.id != there[name].preamble.id:
                ids = f"{claimed.preamble.id}, in the program {there[name].preamble.id}"
                yield f"{kind} {name} has id {ids}"
            elif part in _P4INFO_FIELDS:
                yield from _field_differences(
                    f"{kind} {name}", claimed, there[name], _P4INFO_FIELDS[part]
                )
            if part == "tables" and name in there:
                yield from _table_differences(claimed, there[name])
    if given.externs:
        yield f"extern {given.externs[0].extern_type_name} is not known to this switch"


def _is_used(action: p4i.Action, info: p4i.P4Info) -> bool:
    """Return whether a table has the action."""
    number = action.preamble.id
    return any(ref.id == number for table in info.tables for ref in table.action_refs)


def _platform(wanted: p4i.PlatformProperties) -> Iterator[str]:
    """Check what is limited: multicast groups are; replicas are limited by memory only."""
    size, there = wanted.multicast_group_table_size, GROUPS - 1  # group 0 is none
    if size > there:
        yield f"it asks for {size} multicast groups, the switch has {there}"


def _table_differences(claimed: p4i.Table, there: p4i.Table) -> Iterator[str]:
    name, known = claimed.preamble.name, {ref.id for ref in there.action_refs}
    for ref in claimed.action_refs:
        if ref.id not in known:
            yield f"table {name} has action {ref.id}, which the program's table does not have"
    if claimed.implementation_id != there.implementation_id:
        ids = f"{claimed.implementation_id}, in the program {there.implementation_id}"
        yield f"table {name} has implementation {ids}"


def _field_differences(where: str, claimed: Any, there: Any, part: str) -> Iterator[str]:
    ours = {f.id: f for f in getattr(there, part)}
    theirs = {f.id: f for f in getattr(claimed, part)}
    if set(ours) != set(theirs):
        yield f"{where} has the fields {_field_names(theirs)}, in the program {_field_names(ours)}"
        return
    for number, claim in theirs.items():
        if _shape(claim) != _shape(ours[number]):
            yield f"{where}: {_shape(claim)}, in the program {_shape(ours[number])}"


def _field_names(fields: dict[int, Any]) -> str:
    return ", ".join(f"{f.name} ({number})" for number, f in fields.items()) or "none"


def _shape(field: Any) -> str:
    text = f"field {field.name}, {field.bitwidth} bits"
    if isinstance(field, p4i.MatchField):
        text += f", {field.other_match_type.lower() or _match_kind(field.match_type)}"
    return text


def _match_kind(number: int) -> str:
    """Return the name of a match kind; a message may also have a number that none has."""
    known = p4i.MatchField.MatchType.values()
    return p4i.MatchField.MatchType.Name(number).lower() if number in known else f"kind {number}"
