"""The network of machines that exist: their hosts' processes by Dask Distributed, their switches at
addresses. Nothing is started but the hosts' processes.

A clock is read on each machine, so that hosts count time from one moment although no two machines'
clocks agree; the error is half of the shortest time that a question and its answer took.
"""

from __future__ import annotations

import itertools
import logging
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from gradplane._quiet_dask import quiet_dask
from gradplane._version import __version__
from gradplane.controller.plan import ControlServer, TlsFiles
from gradplane.hosts.config import HostConfig
from gradplane.topologies.child_process import check_running, wait_for
from gradplane.topologies.cluster.machine import Clock, Machine, News, Traffic, version
from gradplane.topologies.cluster.plan import Cluster, HostMachine
from gradplane.topologies.description import Topology
from gradplane.topologies.host_runner import Places, ProcessNetwork
from gradplane.topologies.network import LinkCounters, SwitchRestart
from gradplane.topologies.topology_errors import NetworkError

log = logging.getLogger(__name__)

PATIENCE = 30.0
"""Seconds for a machine to answer, and for a switch to come back."""
CONNECTING = 30.0
"""Seconds in which a scheduler answers."""
_LASTING = [
    ("grpc.client_idle_timeout_ms", 2**31 - 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]
_BETWEEN_TRIES = 0.5  # seconds
JOINING = 60.0
"""Seconds without a new worker, or for a switch to answer, after which nothing is waited for."""
_POLL = 0.05  # seconds
_PINGS = 10  # readings of a machine's clock, of which the fastest counts


class ClusterNetwork(ProcessNetwork):
    """The `Network` of real machines. used: the hosts that have something to do."""

    def __init__(self, topology: Topology, cluster: Cluster, used: frozenset[str]) -> None:
        self.topology = topology
        self._cluster, self._used = cluster, used
        self._exit = ExitStack()
        self._machines: dict[str, _RemoteMachine] = {}
        self._watches: dict[str, _SwitchWatch] = {}
        self._restarted: list[str] = []
        self._before: dict[str, Traffic] = {}

    def __enter__(self) -> ClusterNetwork:
        with ExitStack() as on_failure:
            client = on_failure.enter_context(_connected(self._cluster))
            used = [host.name for host in self.topology.hosts if host.name in self._used]
            workers = _workers(client, self._cluster, used)
            _check_versions(client, workers, self._cluster, used)
            for host in used:
                place = self._cluster.hosts[host]
                about = _about(self._cluster, host)
                machine = _RemoteMachine(client, workers[place.machine], about, place)
                on_failure.callback(machine.leave)
                self._machines[host] = machine
            self.topology = self._with_macs()
            for name, machine in self._machines.items():
                own = self.topology.host[name].ip
                others = {ip: mac for ip, mac in self.topology.arp.items() if ip != own}
                machine.call("set_up", f"{own}/{self.topology.prefix_length}", others)
            for name, server in self._cluster.switches.items():
                self._watches[name] = on_failure.enter_context(_SwitchWatch(name, server))
            for watch in self._watches.values():
                watch.wait()
            self._before = self._traffic()
            self._exit = on_failure.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def _with_macs(self) -> Topology:
        """Return the topology with the MAC addresses of the machines' interfaces."""
        macs = {name: machine.mac for name, machine in self._machines.items()}
        hosts = (replace(one, mac=macs.get(one.name, one.mac)) for one in self.topology.hosts)
        return replace(self.topology, hosts=tuple(hosts))

    @property
    def switch_addresses(self) -> Mapping[str, ControlServer]:
        """See Network."""
        return self._cluster.switches

    @contextmanager
    def _places(self, hosts: Sequence[HostConfig]) -> Iterator[Places]:
        yield lambda config: self._machines[config.name]

    def _fetch(self) -> None:
        """Ask all machines at once."""
        asked = [(machine, machine.ask()) for machine in self._machines.values()]
        for machine, answer in asked:
            machine.take(answer)

    def _check(self) -> None:
        for watch in self._watches.values():
            watch.check()

    def _returned(self) -> list[str]:
        """See ProcessNetwork."""
        found = [name for name, watch in self._watches.items() if watch.returned()]
        self._restarted += found
        for name in found:
            log.warning("switch %s was away: its entries are installed again", name)
        return found

    def _restart(self, planned: SwitchRestart) -> None:
        raise NetworkError(
            f"switch {planned.switch} is not started by the run: restart it yourself"
        )

    def link_counters(self) -> list[LinkCounters]:
        """See Network; counted by the hosts' interfaces, so links between switches, and those of
        hosts without a machine, are not in it. What is dropped before a host gets it is not known
        there."""
        found = []
        now = self._traffic()
        for link in self.topology.links:
            host = link.a if link.a in now else link.b
            if host in now:
                pairs = zip(now[host], self._before[host], strict=True)
                sent, sent_bytes, lost, *received = (new - old for new, old in pairs)
                ways = [(sent, sent_bytes, lost), (*received, 0)]
                up, down = ways if host == link.a else reversed(ways)
                found.append(LinkCounters(link.name, *up, *down))
        return found

    def queue_peaks(self) -> None:
        """See Network."""
        return None

    def about(self) -> dict[str, Any]:
        """See Network: how the machines' clocks differ from the one here, and the switches that
        have lost their state, each time."""
        clocks = {name: one.clock.values() for name, one in self._machines.items()}
        return {"clocks": clocks, "restarted": self._restarted}

    def cli(self) -> None:
        """See Network; machines have prompts of their own."""
        raise NetworkError("a cluster has no prompt: log in to its machines")

    def _traffic(self) -> dict[str, Traffic]:
        return {name: machine.call("traffic") for name, machine in self._machines.items()}


class _SwitchWatch:
    """A connection to a switch's control server, which is there for its end to be seen.

    A switch is taken to have lost its state when it is reached again: whatever it still has is
    replaced then. A context manager: ends the connection."""

    def __init__(self, name: str, server: ControlServer) -> None:
        self._name, self._server = name, server
        self._away = self._back = False  # since it was reached first, or last returned
        self._reached = False
        self._since = self._again = 0.0  # that it is away; when it is tried again
        self._channel = self._opened()
        self._channel.subscribe(self._changed, try_to_connect=True)

    def _opened(self) -> Any:
        import grpc

        tls, address = self._server.tls, self._server.address
        if tls is None:
            return grpc.insecure_channel(address, _LASTING)
        files = (file and file.read_bytes() for file in (tls.cacert, tls.key, tls.cert))
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(*files), _LASTING)

    def __enter__(self) -> _SwitchWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def _changed(self, state: Any) -> None:
        """Take a state of the connection, in a thread of gRPC's."""
        if state.name == "READY":
            self._back = self._away
            self._reached = True
        elif self._reached and not self._away:
            self._since = time.monotonic()
            self._away = True

    def wait(self) -> None:
        """Wait until it is reached. Raises NetworkError where it is not."""
        begun = time.monotonic()
        while not self._reached:
            if time.monotonic() - begun > JOINING:
                tls = "" if self._server.tls is None else " with these certificates"
                raise NetworkError(
                    f"switch {self._name}: nothing answers at {self._server.address}{tls}: is the"
                    " switch running, and is this its control server's address?"
                )
            time.sleep(_POLL)

    def returned(self) -> bool:
        """Return whether it was away since the last call, and is there again."""
        found = self._back
        if found:
            self._away = self._back = False
        return found

    def check(self) -> None:
        """Reach for it while it is away; raise NetworkError if that is too long."""
        if not self._away or self._back:
            return
        now = time.monotonic()
        if now > self._again:  # a connection that has ended is not made again by itself
            self._again = now + _BETWEEN_TRIES
            self._channel.unsubscribe(self._changed)
            self._channel.subscribe(self._changed, try_to_connect=True)
        if now - self._since > PATIENCE:
            raise NetworkError(
                f"switch {self._name} at {self._server.address} is gone for {PATIENCE:g} s"
            )


class ClockDifference(NamedTuple):
    """How far a machine's clocks are ahead of those here, in ns: the one that hosts count time by,
    and the time of day; and the most by which that is wrong."""

    machine: str
    ahead: int
    of_day_ahead: int
    error: int

    def values(self) -> dict[str, Any]:
        """Return them for summary.json."""
        numbers = {f"{name}_ns": value for name, value in self._asdict().items()}
        return {"machine": numbers.pop("machine_ns")} | numbers


class _RemoteMachine:
    """A machine, as the run sees it; the place of its host's processes."""

    def __init__(self, client: Any, address: str, about: str, place: HostMachine) -> None:
        self.about, self._place = about, place
        self._numbers = itertools.count()
        self._hosts: dict[int, _RemoteHost] = {}
        self._commands: dict[int, list[str | None]] = defaultdict(list)
        self._lost = False
        self._actor: Any = None
        with self._named():
            self._actor = client.submit(
                Machine, place.interface, actor=True, workers=[address], pure=False
            ).result(PATIENCE)
        self._folder, self.mac = self.call("about")
        self.clock = self._compare_clocks()

    def _compare_clocks(self) -> ClockDifference:
        found = []
        for _ in range(_PINGS):
            before, wall = time.monotonic_ns(), time.time_ns()
            there: Clock = self.call("clock")
            half = (time.monotonic_ns() - before) // 2
            found.append((half, there.monotonic - before - half, there.wall - wall - half))
        error, ahead, of_day = min(found)
        return ClockDifference(self._place.machine, ahead, of_day, error)

    @property
    def clock_ahead(self) -> int:
        """See Place."""
        return self.clock.ahead

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Raise NetworkError with the machine's name for what Dask, or the machine, says."""
        try:
            yield
        except NetworkError as error:
            raise NetworkError(f"{self.about}: {error}") from None
        except TimeoutError:
            self._lost = True
            raise NetworkError(f"{self.about} has not answered for {PATIENCE:g} s") from None
        except Exception as error:
            self._lost = True
            raise NetworkError(f"{self.about} is lost: {error}{self._left()}") from None

    def _left(self) -> str:
        if not self._hosts:
            return ""
        return f"; what its hosts recorded after the last answer is there, in {self._folder}"

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the Machine. Raises NetworkError."""
        return self.result(self._call(method, *arguments))

    def _call(self, method: str, *arguments: Any) -> Any:
        with self._named():
            if self._lost:
                raise NetworkError("it is lost")
            return getattr(self._actor, method)(*arguments)

    def result(self, answer: Any) -> Any:
        """Wait for an answer."""
        with self._named():
            return answer.result(PATIENCE)

    def begin(self, name: str, config: HostConfig) -> _RemoteHost:
        """See Place."""
        number = next(self._numbers)
        self.call("begin", number, name, config.to_json())
        self._hosts[number] = _RemoteHost(f"host {name}", self, number)
        return self._hosts[number]

    def command(self, number: int, line: str | None) -> None:
        """Have a line, or the end of its input, given to a process with the next question."""
        self._commands[number].append(line)

    def ask(self) -> Any:
        """Ask for all news."""
        commands, self._commands = dict(self._commands), defaultdict(list)
        return self._call("exchange", commands)

    def take(self, answer: Any) -> None:
        """Pass the news of an answer on to the hosts."""
        for number, news in self.result(answer).items():
            self._hosts[number].add(news)

    def end(self, number: int) -> None:
        """End a process."""
        del self._hosts[number]
        with suppress(NetworkError):
            self.call("close", number)

    def leave(self) -> None:
        """Leave nothing there."""
        with suppress(NetworkError):
            self.call("leave")


class _RemoteHost:
    """A process on another machine, with the news that have come of it; a StartedHost."""

    def __init__(self, name: str, machine: _RemoteMachine, number: int) -> None:
        self.name = name
        self._machine, self._number = machine, number
        self._answers: list[dict[str, Any]] = []
        self._lines: list[str] = []
        self._news = News([], [], None, "", 0.0)

    def add(self, news: News) -> None:
        """Take what is new."""
        self._answers += news.answers
        self._lines += news.lines
        self._news = news

    @property
    def status(self) -> int | None:
        """Its exit status; None while it ran, when the machine was asked."""
        return self._news.status

    @property
    def ended(self) -> bool:
        """See StartedHost."""
        return self.status is not None

    def send(self, line: str) -> None:
        """See StartedHost."""
        self._machine.command(self._number, line)

    def answers(self) -> list[dict[str, Any]]:
        """See StartedHost."""
        found, self._answers = self._answers, []
        return found

    def lines(self) -> list[str]:
        """See StartedHost."""
        found, self._lines = self._lines, []
        return found

    def check(self) -> None:
        """See StartedHost."""
        check_running(self)

    def last_words(self) -> str:
        """Return the end of its stderr, once it has ended."""
        return self._news.last_words or "it printed nothing"

    def processor_time(self) -> float:
        """Ask the machine; return the seconds of processor time that it used."""
        self._machine.take(self._machine.ask())
        return self._news.processor_time

    def wait_for(self, key: str) -> dict[str, Any]:
        """See StartedHost."""
        return wait_for(self, key)

    def end(self) -> None:
        """See StartedHost."""
        self._machine.command(self._number, None)
        while not self.ended:
            self._machine.take(self._machine.ask())
        if self.status != 0:
            self.check()

    def close(self) -> None:
        """See StartedHost."""
        self._machine.end(self._number)


# Dask


@contextmanager
def _connected(cluster: Cluster) -> Iterator[Any]:
    """Connect to a scheduler. Raises NetworkError where none answers."""
    with quiet_dask():
        client = _client(cluster)
        with client, client.as_current():
            yield client


def _security(tls: TlsFiles) -> Any:
    """Return Dask's settings of an encrypted connection; what is not given is as Dask has it."""
    import distributed

    files = {"tls_ca_file": tls.cacert, "tls_client_cert": tls.cert, "tls_client_key": tls.key}
    given = {key: str(path) for key, path in files.items() if path is not None}
    return distributed.Security(require_encryption=True, **given)  # type: ignore[no-untyped-call]


def _client(cluster: Cluster) -> Any:
    """Return a client. Its own time limit does not hold where another server answers, such as
    Dask's page."""
    try:
        import distributed
    except ImportError:
        raise NetworkError(
            "--net cluster needs distributed: pip install 'gradplane[sweep]'"
        ) from None

    made: Future[Any] = Future()

    def make() -> None:
        try:
            made.set_result(
                distributed.Client(  # type: ignore[no-untyped-call]
                    cluster.scheduler,
                    timeout=CONNECTING,
                    set_as_default=False,
                    security=None if cluster.tls is None else _security(cluster.tls),
                )
            )
        except Exception as error:
            made.set_exception(error)

    threading.Thread(target=make, daemon=True).start()
    try:
        return made.result(CONNECTING + 10)
    except (OSError, ValueError, TimeoutError) as error:
        why = str(error) or "what listens there does not speak its protocol"
        raise NetworkError(f"{cluster.scheduler}: no Dask scheduler answers: {why}") from None


def _workers(client: Any, cluster: Cluster, hosts: Iterable[str]) -> dict[str, str]:
    """Return the addresses of the hosts' workers, by the file's machines, once they have all come.

    A machine is a worker's name, or the name or IP address of the only worker's machine, as what
    starts workers may name them by itself. Raises NetworkError where one does not come, with those
    that are there, and where more than one may be meant."""
    machines = {host: cluster.hosts[host].machine for host in hosts}
    known: dict[str, _Names] = {}  # by address
    newest = time.monotonic()
    while True:
        there = client.scheduler_info(n_workers=-1)["workers"]
        known = {address: names for address, names in known.items() if address in there}
        if new := [address for address in there if address not in known]:
            newest = time.monotonic()
            called = client.run(socket.gethostname, workers=new, on_error="return")
            for address, machine in called.items():
                worker = there[address]
                known[address] = _Names(str(worker["name"]), str(machine), worker["host"])
        found = {host: _meant(machine, known) for host, machine in machines.items()}
        missing = [host for host, addresses in found.items() if not addresses]
        if not missing:
            break
        if time.monotonic() - newest > JOINING:
            raise _no_worker(cluster, missing[0], known)
        time.sleep(_BETWEEN_TRIES)
    for host, addresses in found.items():
        if len(addresses) > 1:
            what = f"{len(addresses)} Dask workers are there: name one"
            raise NetworkError(f"{_about(cluster, host)}: {what}")
        others = [other for other in found if other != host and found[other] == addresses]
        if others:
            raise NetworkError(f"{_about(cluster, host)}: it is {others[0]}'s machine, too")
    return {machines[host]: addresses[0] for host, addresses in found.items()}


class _Names(NamedTuple):
    """The names that a file may use for a Dask worker: its own, its machine's, its IP address."""

    worker: str
    machine: str
    ip: str


def _meant(machine: str, known: Mapping[str, _Names]) -> list[str]:
    """Return the addresses of the workers that a name stands for."""
    named = [address for address, names in known.items() if names.worker == machine]
    return named or [address for address, names in known.items() if machine in names[1:]]


def _no_worker(cluster: Cluster, host: str, known: Mapping[str, _Names]) -> NetworkError:
    """Return the error for a worker that does not come, with what each that has may be called."""
    name = cluster.hosts[host].machine
    several = Counter(names.machine for names in known.values())
    there = sorted(
        f"{names.worker} on {names.machine}"
        if several[names.machine] == 1 and names.machine != names.worker
        else names.worker
        for names in known.values()
    )
    return NetworkError(
        f'host {host}: no Dask worker has the name "{name}"; the scheduler has'
        f" {', '.join(there) or 'none'}: start it on that machine: dask worker {cluster.scheduler}"
        f" --name {name}"
    )


def _check_versions(
    client: Any, workers: Mapping[str, str], cluster: Cluster, hosts: Iterable[str]
) -> None:
    """Raise NetworkError for a machine that has not this version of gradplane."""
    machines = {workers[cluster.hosts[host].machine]: _about(cluster, host) for host in hosts}
    found = client.run(version, workers=list(machines), on_error="return")
    for address, there in found.items():
        if there != __version__:
            what = f"no gradplane that can take part: {there}"
            if isinstance(there, str):
                what = f"gradplane {there} is there, and {__version__} here"
            raise NetworkError(f"{machines[address]}: {what}: install the same")


def _about(cluster: Cluster, host: str) -> str:
    return f"machine {cluster.hosts[host].machine} (host {host})"
