"""Means and sums over a job's workers, through the network of an experiment, for user programs.

    with Reducer(HostConfig.from_json(text)) as reducer:
        mean = reducer.reduce(gradient)
        first, second = reducer.start(a, tensor=1), reducer.start(b, tensor=2)
        total = first.result().sum

The program takes the place of one worker of a job whose switch, or server, is running: by whatever
scheme the job has, with its codecs, its error feedback, and the impairments of the worker's host.
All workers' programs begin the same reduces in the same order, of vectors of the same size.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane._plugins import load
from gradplane._suggestions import quoted
from gradplane.hosts.config import ConfigError, HostConfig
from gradplane.hosts.digest import digest, function
from gradplane.hosts.drivers.action_driver import ActionDriver
from gradplane.hosts.drivers.roles import ReducingRole
from gradplane.hosts.drivers.socket_environment import SocketThread
from gradplane.hosts.drivers.training_host import about
from gradplane.hosts.drivers.warm_up import exercise_switch_worker, warm_up
from gradplane.hosts.drivers.worker_reducers import SwitchReducer, WorkerReducer
from gradplane.hosts.impairments.host_link import HostLink, LocalPort, PortTraffic
from gradplane.hosts.protocols.actions import Deliver, Failed
from gradplane.hosts.protocols.device_vector import DeviceVector
from gradplane.hosts.protocols.gathering import Gathered, Gathering
from gradplane.hosts.protocols.job_codec import keeps_sums, parts, pull_codec, push_codec
from gradplane.hosts.protocols.messages import GATHER_KINDS, HEADER_SIZE
from gradplane.hosts.protocols.once import is_constant
from gradplane.hosts.protocols.phases import Phase
from gradplane.hosts.protocols.results import (
    CUT,
    SCATTERED,
    TRANSIENT,
    Floats,
    Reduced,
    ReduceError,
    is_integers,
)
from gradplane.hosts.saved_state import StateError, pack, unpack
from gradplane.hosts.stream.stream import MAX_MESSAGE
from gradplane.hosts.vector_file import Place, VectorFile

VECTORS = ".gradients"
"""The ending of the file of vectors, which has the log's name."""
MOST_GATHERED = MAX_MESSAGE - HEADER_SIZE
"""The most bytes of a gather's part."""
_TRIED = 8  # values of a vector by which a codec shows whether it has a state
_LINGER = 2.0  # seconds that close() waits for the last acknowledgements


class ReducerError(RuntimeError):
    """An invalid call, or a network that cannot be reached; the message names the way out."""


class ReducerTimeout(ReducerError, TimeoutError):
    """A reduce that took longer than the timeout; the message says what it waits for."""


@dataclass(frozen=True)
class Result:
    """The result of a reduce, of the shape of the array that was given.

    mean: float32, over the workers that are in it; workers: the number of the job's. `missed` is
    the number of chunks without a result, whose values are 0 before the codec's inverse transform,
    as happens in lossy jobs only.
    """

    mean: Floats
    workers: int
    missed: int
    total: npt.NDArray[Any] | None = None  # of integers: their sums, in their type

    @property
    def sum(self) -> npt.NDArray[Any]:
        """The mean times the job's workers: the sum where all are in. Of integers it is exact."""
        return self.mean * np.float32(self.workers) if self.total is None else self.total


@dataclass
class _Flight:
    """A reduce that has not been delivered."""

    future: "Future[Result]"
    given: npt.NDArray[Any] | DeviceVector
    tensor: int
    started: int  # ns, of the environment's time
    timer: Any  # a Handle
    kept: Place | None  # where its vector is in the file of vectors
    watch: "Callable[[Phase], None] | None"


@dataclass
class _Gather:
    """An all-gather, or a broadcast of `source`, that has not been delivered."""

    future: "Future[list[bytes]]"
    source: int | None
    started: int
    timer: Any


class Reducer:
    """One worker of a running job; a context manager.

    config: the host's, as `gradplane torchrun` writes it. timeout: seconds that a reduce may take.
    Raises ConfigError for a host that has no worker or whose scheme reduces no vectors of one's
    own, OSError if the host's address cannot be bound. A thread answers the network. After a
    failure, but an invalid argument's, the reducer cannot be used again.
    """

    def __init__(self, config: HostConfig, timeout: float = 60.0) -> None:
        kind = _reducer_of(config)
        self.config, self._timeout = config, timeout
        warm_up(config.job)
        if issubclass(kind, SwitchReducer):
            exercise_switch_worker(config.job)
        self._lock = threading.Lock()  # of the order of calls
        self._tickets = self._rounds = 0
        self._flights: dict[int, _Flight] = {}
        self._gathers: dict[int, _Gather] = {}
        self._gathers_begun = 0
        self._broken: Exception | None = None
        self._closed = False
        self._loop = SocketThread(config.ip, self._fail, config.log)
        self._vectors = _vector_file(config)
        self._link = HostLink(config, self._loop.env)
        assert config.worker is not None
        _, stream_port = config.job.addresses.stream(config.worker)
        self._machines = ActionDriver(
            *(self._loop.env, stream_port, self._link.send, self._deliver, self._gone),
            connection=time.time_ns(),
            trip=config.job.transport.stream_trip_ns,
            about=about(config),
        )
        self._stream = LocalPort.of_stream(self._machines)
        self._link.ports[stream_port] = self._stream
        self._reducer = kind(config, self._loop.env, self._link, self._machines, self._stream)
        self._gathering = Gathering(config.job, config.worker)
        self._machines.route(GATHER_KINDS, self._gathering.receive)
        self._reducer.machine.watch = self._entered
        for port in self._link.ports:
            fast = self._link.fast_results(port)
            self._loop.listen(port, self._link.receive, fast, config.job.addresses.aggregator)
        self._loop.env.record("joined", origin=self._loop.env.origin, digests=function())
        self._traffic = PortTraffic()  # of records since take_traffic()
        self._loop.start()

    @property
    def rank(self) -> int:
        """The worker's number in the job, from 0."""
        assert self.config.worker is not None
        return self.config.worker

    @property
    def workers(self) -> int:
        """The number of the job's workers."""
        return self.config.job.workers

    @property
    def integers_obstacle(self) -> str | None:
        """Why this job cannot sum integers exactly; None where it can."""
        return self._reducer.integers_obstacle()

    @property
    def takes_devices(self) -> bool:
        """Whether start() takes a DeviceVector now: where a vector is reduced in one round, and is
        not, or no longer, kept in a file for a replay."""
        kept = self._vectors is not None and not self._vectors.full
        return self._reducer.takes_devices and not kept

    def start(
        self,
        x: npt.NDArray[Any] | DeviceVector,
        tensor: int | None = 0,
        watch: Callable[[Phase], None] | None = None,
        scattered: bool = False,
    ) -> "Future[Result]":
        """Begin to reduce x, finite float32 of any shape, which must not change until it is done.

        x may be int32 or int64, too, where integers_obstacle is None: the Result's sum has the same
        type then and is exact but that it wraps there, and no error feedback is used.

        x may be a DeviceVector where takes_devices is true: the Result's mean is another.

        tensor: which error feedback is used, from 0 to 32,767; a tensor keeps its size and has one
        reduce in flight at a time. None: nothing is kept from this reduce for another. The future
        gets the Result, or ReducerError.

        scattered: this worker needs only its own part of the result, of as many equal parts as
        there are workers, in their order; the rest may be 0. With tensor None.

        watch: called in the network's thread when codes begin to be computed ("encode"), when they
        are known ("network") and when a result begins to be decoded ("decode"), again for each part
        that is encoded by itself.
        """
        if is_integers(x):
            tensor = None
            if (obstacle := self.integers_obstacle) is not None:
                raise ReducerError(obstacle)
        elif isinstance(x, DeviceVector):
            if not self.takes_devices:
                raise ReducerError("this reduce takes no vector of a device: give it an array")
        elif not isinstance(x, np.ndarray) or x.dtype != np.float32:
            found = x.dtype if isinstance(x, np.ndarray) else type(x).__name__
            raise ReducerError(f"expected a float32 array, got {found}: use x.astype('float32')")
        if scattered and (tensor is not None or x.size % self.workers):
            raise ReducerError(
                f"scattered: {x.size} values of tensor {tensor}: tensor must be None, and the"
                f" number of values be divisible by the {self.workers} workers"
            )
        if tensor is not None and not 0 <= tensor < TRANSIENT:
            raise ReducerError(f"tensor = {tensor}: it must be from 0 to 32,767, or None")
        if self._closed:
            raise ReducerError("the reducer is closed: open another")
        future: Future[Result] = Future()
        with self._lock:
            self._loop.call(lambda: self._begin(x, tensor, future, watch, scattered))
        return future

    def reduce(self, x: Floats, tensor: int | None = 0) -> Floats:
        """Return the mean of all workers' x; see start()."""
        return self.start(x, tensor).result().mean

    def gather(
        self, part: bytes, source: int | None = None, timeout: float | None = None
    ) -> "Future[list[bytes]]":
        """Begin to give all workers each other's parts, as they are; the future gets these, in the
        workers' order, or ReducerError.

        The parts go from host to host, and no switch adds anything. All workers begin the same
        gathers in the same order, with parts of the same size. source: only this worker's part is
        given to the others, and comes alone. timeout: seconds; None: the reducer's.
        """
        if len(part) > MOST_GATHERED:
            size = f"{len(part):,} bytes: at most {MOST_GATHERED:,}"
            raise ReducerError(f"a part of {size}: gather it in pieces")
        if source is not None and not 0 <= source < self.workers:
            raise ReducerError(f"source = {source}: it must be from 0 to {self.workers - 1}")
        if self._closed:
            raise ReducerError("the reducer is closed: open another")
        future: Future[list[bytes]] = Future()
        with self._lock:
            self._loop.call(lambda: self._begin_gather(bytes(part), source, timeout, future))
        return future

    def begin_round(self) -> None:
        """Begin a round, for which the host's impairments may choose new stragglers.

        The first begins by itself. An iteration of a training, with all its reduces, is a round.
        """
        self._loop.call(self._next_round)

    def take_traffic(self) -> PortTraffic:
        """Return the packets and bytes of reduces since the last call."""
        return self._loop.call(self._all_traffic).result()

    def state_dict(self) -> dict[str, bytes]:
        """Return what this worker keeps for later reduces, under its rank: error feedback,
        momentum, a factorisation's Q, and the number of reduces, which random numbers depend on.

        A worker of the same job that begins with it goes on bit for bit, where none of its results
        is lost. Raises ReducerError while a reduce is in flight, and where the server has a state
        that no worker knows.
        """
        return {self._name: self._loop.call(self._saved).result()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on where state_dict() was called; all workers do, after the same reduces.

        Raises ReducerError where it is not this worker's, is of a job with other codecs, or of
        fewer reduces than there were by now.
        """
        if self._name not in saved:
            found = ", ".join(sorted(map(str, saved))) or "nothing"
            raise ReducerError(
                f"{self._who}: the state has no entry {quoted(self._name)}, it has {found}: every"
                " rank saves its own, and there are as many ranks as then"
            )
        self._loop.call(lambda: self._restore(saved[self._name])).result()

    def close(self) -> None:
        """Wait at most 2 seconds until all messages are acknowledged, and close.

        Reduces in flight fail."""
        if self._closed:
            return
        self._closed = True
        until = time.monotonic() + (0.0 if self._broken else _LINGER)
        while (
            time.monotonic() < until and not self._loop.call(lambda: self._machines.idle).result()
        ):
            time.sleep(0.005)
        self._loop.call(lambda: self._fail(ReducerError("the reducer was closed"))).result()
        self._loop.close()
        if self._vectors is not None:
            self._vectors.close()

    def __enter__(self) -> "Reducer":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # In the loop's thread

    def _begin(
        self,
        x: npt.NDArray[Any] | DeviceVector,
        tensor: int | None,
        future: "Future[Result]",
        watch: Callable[[Phase], None] | None,
        scattered: bool,
    ) -> None:
        if self._broken is not None:
            future.set_exception(self._earlier_failure())
            return
        if self._rounds == 0:
            self._next_round()
        env, ticket = self._loop.env, self._tickets
        vector: Any = x if isinstance(x, DeviceVector) else x.reshape(-1)
        if is_integers(x):
            given, vector = vector, self._reducer.of_integers(vector)
            scattered = scattered and vector is given  # limbs of a value are not in one part
        if tensor is None:  # the same number on all workers, as messages carry it
            first, end = (CUT, 2**16) if scattered else (TRANSIENT, SCATTERED)
            tensor = first + ticket % (end - first)
        now = env.now()
        timer = env.call_at(now + round(self._timeout * 1e9), lambda: self._late(ticket))
        file = None if isinstance(x, DeviceVector) else self._vectors
        kept = None if file is None else file.append(vector)
        self._flights[ticket] = _Flight(future, x, tensor, now, timer, kept, watch)
        try:
            self._reducer.reduce(ticket, vector, tensor)
        except ReduceError as error:  # nothing has begun
            timer.cancel()
            del self._flights[ticket]
            future.set_exception(ReducerError(str(error)))
            return
        except Exception as error:
            self._fail(error)
        self._tickets += 1

    def _begin_gather(
        self, part: bytes, source: int | None, timeout: float | None, future: "Future[list[bytes]]"
    ) -> None:
        if self._broken is not None:
            future.set_exception(self._earlier_failure())
            return
        ticket, now = self._gathers_begun, self._loop.env.now()
        seconds = self._timeout if timeout is None else timeout
        late = partial(self._late_gather, ticket, seconds)
        timer = self._loop.env.call_at(now + round(seconds * 1e9), late)
        self._gathers[ticket] = _Gather(future, source, now, timer)
        self._gathers_begun += 1
        self._machines.perform(self._gathering.begin(ticket, part, source))

    @property
    def _name(self) -> str:
        """The key of this worker's state."""
        return f"rank {self.rank} of {self.workers}"

    def _coding(self) -> str:
        """Describe what decides how the job's vectors are encoded."""
        job = self.config.job
        groups = f", groups {job.groups}" if job.groups else ""
        order = "" if job.sum_order == "rotated" else f", sum_order {job.sum_order}"
        codes = f"{job.transport.sum_bits} bits, {job.coding}{groups}{order}"
        return f"{job.aggregation}, seed {job.seed}, {codes}"

    def _saved(self) -> bytes:
        job = self.config.job
        if self._flights:
            raise ReducerError(f"{self._who}: a reduce is in flight: wait for its result")
        if pull_codec(job).start(_TRIED) is not None:
            raise ReducerError(
                f"{self._who}: the server keeps a state of {job.coding.pull_codec[0]}, its answers'"
                " codec, which no worker can save: use a pull codec without error feedback"
            )
        if job.groups and job.addresses.servers and keeps_sums(job):
            raise ReducerError(
                f"{self._who}: the groups' servers keep what is left of their sums, which no worker"
                ' can save: use between = "float32"'
            )
        state = self._coding(), self._tickets, self._rounds, self._reducer.machine.save()
        try:
            return pack(state, list(parts(push_codec(job))))
        except StateError as error:
            raise ReducerError(f"{self._who}: {error}") from None

    def _restore(self, saved: bytes) -> None:
        try:
            coding, tickets, rounds, state = unpack(saved, list(parts(push_codec(self.config.job))))
        except (StateError, TypeError, ValueError) as error:
            raise ReducerError(f"{self._who}: the state cannot be read: {error}") from None
        if coding != self._coding():
            raise ReducerError(
                f"{self._who}: the state belongs to another job:\n{coding}\n"
                f"this one is:\n{self._coding()}"
            )
        if self._flights or self._tickets > tickets:
            raise ReducerError(
                f"{self._who}: the state was saved after {tickets} reduces, and"
                f" {self._tickets} have begun: load it before the training's first step"
            )
        self._tickets, self._rounds = tickets, rounds
        self._reducer.machine.restore(state)
        self._loop.env.record("restored", reduces=tickets)

    def _next_round(self) -> None:
        self._link.start_round(self._rounds)
        self._rounds += 1

    def _entered(self, ticket: int, phase: Phase) -> None:
        flight = self._flights.get(ticket)
        if flight is not None and flight.watch is not None:
            flight.watch(phase)

    def _deliver(self, delivered: Deliver) -> None:
        if isinstance(delivered.result, Gathered):
            self._deliver_parts(delivered.ticket, delivered.result)
            return
        flight = self._flights.pop(delivered.ticket, None)
        if flight is None:  # it failed before
            return
        flight.timer.cancel()
        reduced: Reduced = delivered.result
        self._record(delivered.ticket, flight, reduced)
        flight.future.set_result(self._result(flight.given, reduced))

    def _deliver_parts(self, ticket: int, gathered: Gathered) -> None:
        gather = self._gathers.pop(ticket, None)
        if gather is None:  # it failed before
            return
        gather.timer.cancel()
        self._loop.env.record(
            "gather",
            job=self.config.job.number,
            worker=self.rank,
            ticket=ticket,
            source=gather.source,
            bytes=len(gathered.parts[0]),
            iteration=self._rounds - 1,
            started=gather.started,
            finished=self._loop.env.now(),
            **vars(self._new_traffic(self._stream)),
        )
        gather.future.set_result(list(gathered.parts))

    def _result(self, given: npt.NDArray[Any] | DeviceVector, reduced: Reduced) -> Result:
        """Return the result of a vector that was given."""
        if isinstance(given, DeviceVector):
            return Result(reduced.mean, self.workers, reduced.missed)
        if not is_integers(given):
            mean = reduced.mean.copy() if is_constant(reduced.mean) else reduced.mean
            return Result(mean.reshape(given.shape), self.workers, reduced.missed)
        total = self._reducer.integer_sums(reduced, given.dtype).reshape(given.shape)
        mean = (total / self.workers).astype(np.float32)
        return Result(mean, self.workers, reduced.missed, total)

    def _all_traffic(self) -> PortTraffic:
        for port in {self._reducer.port, self._stream}:
            self._new_traffic(port)
        taken, self._traffic = self._traffic, PortTraffic()
        return taken

    def _new_traffic(self, port: LocalPort) -> PortTraffic:
        """Return a port's traffic since the last record."""
        new = port.take_traffic()
        for key, count in vars(new).items():
            setattr(self._traffic, key, getattr(self._traffic, key) + count)
        return new

    def _record(self, ticket: int, flight: _Flight, reduced: Reduced) -> None:
        self._loop.env.record(
            "reduce",
            job=self.config.job.number,
            worker=self.rank,
            ticket=ticket,
            tensor=flight.tensor,
            iteration=self._rounds - 1,
            values=reduced.mean.size,
            started=flight.started,
            finished=self._loop.env.now(),
            vector=flight.kept,
            missed=reduced.missed,
            gradient=reduced.gradient,
            codes=reduced.codes,
            sums=reduced.sums,
            mean="" if isinstance(flight.given, DeviceVector) else digest(reduced.mean),
            codec=reduced.codec_ns,
            reduce=reduced.reduce_ns,
            **vars(self._new_traffic(self._reducer.port)),
        )

    def _gone(self, failure: Failed) -> None:
        ip, port = failure.peer
        if self._flights or self._gathers:
            self._fail(ReducerError(f"{self._who}: {ip}:{port}: {failure.reason}"))

    def _late(self, ticket: int) -> None:
        waiting = self._reducer.waiting(ticket)
        self._fail(
            ReducerTimeout(
                f"{self._who}, reduce {ticket}: not done after {self._timeout:g} s; it waits for"
                f" {waiting}: is the network running, and do all workers make the same reduces?"
            )
        )

    def _late_gather(self, ticket: int, seconds: float) -> None:
        missing = ", ".join(f"worker {who}" for who in self._gathering.missing(ticket))
        self._fail(
            ReducerTimeout(
                f"{self._who}, gather {ticket}: not done after {seconds:g} s; it waits for the"
                f" parts of {missing}: do all workers make the same gathers?"
            )
        )

    def _earlier_failure(self) -> ReducerError:
        return ReducerError(f"an earlier reduce failed ({self._broken}): open another reducer")

    @property
    def _who(self) -> str:
        return f"host {self.config.name}, worker {self.rank}"

    def _fail(self, error: Exception) -> None:
        self._broken = self._broken or error
        flights, self._flights = self._flights, {}
        gathers, self._gathers = self._gathers, {}
        under_way: list[_Flight | _Gather] = [*flights.values(), *gathers.values()]
        for one in under_way:
            one.timer.cancel()
            one.future.set_exception(error)


def _vector_file(config: HostConfig) -> VectorFile | None:
    """Open the file of the vectors that the host keeps; None where it keeps none."""
    if not (config.log and config.kept_bytes):
        return None
    return VectorFile(Path(config.log).with_suffix(VECTORS), config.kept_bytes)


def _reducer_of(config: HostConfig) -> type[WorkerReducer]:
    """Return how the host's role reduces vectors."""
    if config.worker is None:
        raise ConfigError(f"host {config.name} has no worker of job {config.job.number}")
    if config.job.coding.served_steps:
        raise ConfigError(
            f"host {config.name}: its server makes the steps of the job's own training: a program"
            " of your own needs a `pull` without a policy, and pull_deltas = false"
        )
    role = load("role", config.role)
    if not (isinstance(role, type) and issubclass(role, ReducingRole)):
        raise ConfigError(
            f'host {config.name}: aggregation = "{config.job.aggregation}" is for the job\'s own'
            ' training: a program of your own reduces through "switch", "shared", "ps" or "ring"'
        )
    return role.reducer
