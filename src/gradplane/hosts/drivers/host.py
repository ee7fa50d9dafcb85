"""A host of a job in the role that its configuration names, on the network of its Environment."""

from typing import Any, Protocol

from gradplane._deferred import Deferred
from gradplane._plugins import load
from gradplane.hosts.config import HostConfig
from gradplane.hosts.drivers.environment import Environment
from gradplane.hosts.impairments.host_link import HostLink
from gradplane.hosts.impairments.interventions import Intervention
from gradplane.hosts.protocols.fast_results import WorkerRecord
from gradplane.hosts.wire.payloads import Payloads


class Role(Protocol):
    """The program of a host, made as object(config, env, link).

    It sets the handlers of its local UDP ports in `link.ports`, and raises ConfigError where the
    configuration does not fit it.
    """

    @property
    def finished(self) -> bool:
        """True when only other hosts may still need this one: for a server, from the start."""

    @property
    def ignored(self) -> dict[str, int]:
        """The number of datagrams that arrived and were ignored, by reason."""

    def start(self) -> None:
        """Start the role."""


class Host:
    """Drives the role that the configuration names through `env`.

    It answers its peers until whoever runs it stops calling receive(); `finished` says that it has
    nothing more to do by itself. Raises ConfigError and LoadError at once for what cannot work;
    start() and the callbacks raise TrainingError if training diverges and HostError if a worker
    cannot reach a peer it needs.
    """

    def __init__(self, config: HostConfig, env: Environment) -> None:
        self._env, self._start_at = env, config.start_at
        self._link = HostLink(config, env)
        self.role: Role = load("role", config.role)(config, env, self._link)

    @property
    def ports(self) -> tuple[int, ...]:
        """The local UDP ports it listens on."""
        return tuple(self._link.ports)

    @property
    def finished(self) -> bool:
        """True when only other hosts may still need this one."""
        return self.role.finished

    @property
    def ignored(self) -> dict[str, int]:
        """The number of datagrams that arrived and were ignored, by reason."""
        return {"strays": self._link.strays} | self.role.ignored

    def end(self) -> None:
        """Let the role record what it counted, if it has a method `end`; the run is over."""
        end = getattr(self.role, "end", None)
        if end is not None:
            end()

    def impair(self, intervention: Intervention) -> None:
        """Impair the host's link for a while; its configuration is `live`."""
        self._link.impair(intervention)

    def in_epoch(self, epoch: int) -> None:
        """Let the role go on in an epoch of its job, if it has a method `in_epoch`."""
        go_on = getattr(self.role, "in_epoch", None)
        if go_on is not None:
            go_on(epoch)

    def prepared(self, ticket: int, partition: int, norm: int) -> Deferred[Any] | None:
        """Return what the role will need after a norm of its job, if it has a method `prepared`."""
        prepare = getattr(self.role, "prepared", None)
        found: Deferred[Any] | None = prepare and prepare(ticket, partition, norm)
        return found

    def start(self) -> None:
        """Begin, or be called back at the time that the configuration says."""
        if self._start_at is None:
            self.role.start()
        else:
            self._env.call_at(self._start_at, self.role.start)

    def fast_results(self, port: int) -> WorkerRecord | None:
        """Return the record on which a kernel may take the ordinary packets for a local port.

        None where every packet has to come through receive().
        """
        return self._link.fast_results(port)

    def receive(self, port: int, ip: str, source_port: int, payloads: Payloads) -> None:
        """Take datagrams of one peer for local `port`. Malformed ones raise nothing."""
        self._link.receive(port, ip, source_port, payloads)
