"""A host of a job, worker or parameter server, on whatever network its Environment stands for."""

from gradplane.hosts.config import HostConfig
from gradplane.hosts.drivers.action_driver import Machines
from gradplane.hosts.drivers.environment import Environment
from gradplane.hosts.drivers.training_host import Worker
from gradplane.hosts.impairments.host_link import Link, Port, stream_payload
from gradplane.hosts.protocols.actions import Deliver, Failed
from gradplane.hosts.protocols.messages import SERVER_KINDS
from gradplane.hosts.protocols.parameter_server import PsServer


class Host:
    """Drives what the configuration says through `env`.

    It answers its peers until whoever runs it stops calling receive(); `finished` says that it has
    nothing more to do by itself. Raises ConfigError and LoadError at once for what cannot work;
    start() and the callbacks raise TrainingError if training diverges and HostError if a worker
    cannot reach a peer it needs.
    """

    def __init__(self, config: HostConfig, env: Environment) -> None:
        self._env, self._start_at = env, config.start_at
        self._link = Link(config, env)
        role = Worker if config.role == "worker" else Server
        self._role: Worker | Server = role(config, env, self._link)

    @property
    def ports(self) -> tuple[int, ...]:
        """The local UDP ports it listens on."""
        return tuple(self._link.ports)

    @property
    def finished(self) -> bool:
        """Whether only others may still need it; a server is so from the start."""
        return self._role.finished

    @property
    def ignored(self) -> dict[str, int]:
        """What arrived and was of no use, by reason."""
        return {"strays": self._link.strays} | self._role.ignored

    def start(self) -> None:
        """Begin, or be called back at the time that the configuration says."""
        if self._start_at is None:
            self._role.start()
        else:
            self._env.call_at(self._start_at, self._role.start)

    def receive(self, port: int, ip: str, source_port: int, payload: bytes) -> None:
        """A datagram for local `port`. Whatever is in it, it raises nothing by being malformed."""
        self._link.receive(port, ip, source_port, payload)


class Server:
    """The parameter server's host: all it does is answer."""

    finished = True

    def __init__(self, config: HostConfig, env: Environment, link: Link) -> None:
        assert config.job.server_address is not None
        _, port = config.job.server_address
        self._machines = Machines(env, port, link.send, self._deliver, self._failed)
        server = PsServer(config.job)
        self._machines.route(SERVER_KINDS, server.receive, server.timer)
        link.ports[port] = Port(self._machines.receive, stream_payload)
        self._unreachable = 0  # workers that no longer acknowledge, such as finished ones

    @property
    def ignored(self) -> dict[str, int]:
        """See Host."""
        return self._machines.ignored | {"unreachable": self._unreachable}

    def start(self) -> None:
        """Nothing: the workers speak first."""

    def _deliver(self, delivered: Deliver) -> None:
        raise AssertionError(f"a parameter server reduces nothing itself, but got {delivered}")

    def _failed(self, failure: Failed) -> None:
        self._unreachable += 1
