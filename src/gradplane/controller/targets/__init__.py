"""Targets: the switches that can run a network's P4 program. Each file is one, found by its name.

A target says what makes a program loadable, how a switch is started, what it can do, and whether it
is installed. It gives plain data (bytes, command lines): the controller loads, and the networks in
`topologies/` start processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from gradplane import _plugins
from gradplane._suggestions import did_you_mean, quoted
from gradplane.controller.controller_errors import ControllerError

if TYPE_CHECKING:
    from gradplane._p4runtime import p4i


class LoadableProgram(Protocol):
    """A P4 program to load. Its methods raise CompileError where it is wrong."""

    @property
    def path(self) -> Path:
        """The source file."""

    @property
    def include_dirs(self) -> Sequence[Path]:
        """The folders that its includes are looked for in."""

    @property
    def defines(self) -> Mapping[str, str]:
        """The macros that it is compiled with."""

    def p4info(self, switch: str = "") -> p4i.P4Info:
        """Return its P4Info. switch: as in compiled_for; "": the embedded one."""

    def packed_source(self) -> bytes:
        """Return its source with all includes, as the embedded switch takes it."""

    def compiled_for(self, switch: str) -> bytes:
        """Return it in the form that another kind of switch loads ("bmv2": JSON)."""


@dataclass(frozen=True)
class Start:
    """The parameters of a switch's process.

    interfaces: by port number. address: of its P4Runtime server; with port 0 the target announces
    the port that it took. options: further options of the target's own command.
    """

    program: Path
    interfaces: Mapping[int, str]
    address: str
    include_dirs: Sequence[Path] = ()
    defines: Mapping[str, str] | None = None
    options: Sequence[str] = ()


@dataclass(frozen=True)
class QueueSettings:
    """The queue of each port: packets a second that leave it, and packets that wait in it at most.

    depth None: as many as the switch holds by default.
    """

    rate: int
    depth: int | None = None


class Attachment(NamedTuple):
    """The place of a host at a running switch: its port, and the interface that leads there."""

    port: int
    interface: str


class Target(ABC):
    """A kind of switch."""

    device_id: int = 0
    """Its P4Runtime or BFRuntime device id."""
    address: str = ""
    """The address of its control server, if it runs before a network starts."""
    attachments: Mapping[str, Attachment] = MappingProxyType({})
    """The places of the hosts, by name, at a switch that runs before a network starts."""
    batch: ClassVar[int]
    """The maximum number of updates in one write request."""
    networks: ClassVar[tuple[str, ...]] = ("mininet",)
    """The networks that can have it. On "sim" gradplane's engine stands for it."""
    announces: ClassVar[bool] = False
    """The process prints {"ready": true, "grpc": ADDRESS} as a line of JSON when it takes packets.
    Otherwise it is given a free port and is ready when that port takes connections."""
    cable: ClassVar[tuple[int, int] | None] = None
    """Two ports that the network connects with each other: a packet that leaves through the first
    comes back through the second. Their interfaces carry 3000 bytes."""
    suffix: ClassVar[str] = ""
    """The end of the names of shipped programs that are written for this target ("_tna": thc_tna.p4
    in the place of thc.p4)."""
    roles: ClassVar[bool] = False
    """A program is compiled for one part in a tree of switches that sum a job: the macro ROLE."""
    queues: ClassVar[bool] = False
    """Its switches can be started with queues of a rate and depth."""
    cores: ClassVar[bool] = False
    """Its switches take `--cores N`, as `gradplane switch` does."""
    keys: ClassVar[tuple[str, ...]] = ()
    """The keys of an experiment's [switch] that are for this target; they go to __init__."""

    protocol: ClassVar[str] = "p4runtime"
    """The control protocol: "p4runtime" or "bfruntime"."""
    pass_ns: ClassVar[float] = 0.0
    """How long it works on a pass of thc.p4, while other packets wait; 0: too short to matter."""
    lasting: ClassVar[bool] = False
    """Its switches are there before and after a run, so they may have entries and register values
    of an earlier one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def description(self) -> str:
        """Return the name for reports, with a version if the switch is not this package's."""
        return self.name

    def missing(self) -> str | None:
        """Return what is not installed and how to install it; None if the target can be used."""
        return None

    def port(self, number: int, neighbour: str) -> int:
        """Return the port that is a switch's `number`-th, counted from 1, and leads to a node."""
        return number

    @abstractmethod
    def pipeline(self, program: LoadableProgram) -> tuple[p4i.P4Info, bytes]:
        """Return the program's P4Info and device config, as they are pushed."""

    @abstractmethod
    def command(self, start: Start) -> list[str]:
        """Return the command line that runs a switch."""

    def listens(self, start: Start) -> Mapping[str, str]:
        """Return the TCP addresses that the switch listens on, by the name of the protocol.

        A port 0 stands for any free one.
        """
        return {"P4Runtime": start.address}

    def options(
        self, engine: str, seed: int, pcap: Path | None, queues: QueueSettings | None = None
    ) -> list[str]:
        """Return the options of the command for an experiment's [switch] and [output] keys.

        pcap: a folder that gets a packet capture for each port; None: no captures. queues: those of
        all ports; None, and always where `queues` is False: the target's own.
        """
        return []


def _words(found: Any) -> bool:
    return isinstance(found, list | tuple) and all(isinstance(word, str) for word in found)


_DOORS: _plugins.Doors = {
    "description": (lambda found: isinstance(found, str), "a name"),
    "missing": (lambda found: isinstance(found, str | None), "what is missing, or None"),
    "port": (lambda found: isinstance(found, int), "a port's number"),
    "pipeline": (
        lambda found: isinstance(found, tuple) and [*map(type, found)] == [bytes, bytes],
        "(P4Info, config), bytes",
    ),
    "command": (_words, "a list of words, such as ['simple_switch_grpc', ...]"),
    "listens": (lambda found: isinstance(found, Mapping), "addresses by protocol"),
    "options": (_words, "a list of words"),
}
"""Checks of the results of a user's target, by method."""


def names() -> list[str]:
    """Return the names of all targets."""
    return _plugins.names(__path__)


def get(name: str, **values: Any) -> Target:
    """Return the target of that name, or a user's, with the values of its own keys.

    Raises ControllerError, with what is known, for another name or a key that is not the target's;
    LoadError for a user's that is none.
    """
    kind = _kind(name)
    for key in values:
        if key not in kind.keys:
            known = ", ".join(kind.keys) or "none"
            raise ControllerError(f'{key} is no key of target "{name}"; its own keys: {known}')
    return kind(name, **values)


def keys(name: str) -> tuple[str, ...]:
    """Return the keys that are the target's own. Raises ControllerError, with the known names."""
    return _kind(name).keys


def _kind(name: str) -> type[Target]:
    kind: type[Target]
    if _plugins.is_reference(name):
        kind = _plugins.load("target", name, Target)
        if lacking := sorted(kind.__abstractmethods__):
            raise _plugins.LoadError(f"target {name}: {kind.__name__} lacks {', '.join(lacking)}")
        _plugins.watch(f"target {name}", kind, _DOORS)
        return kind
    if name not in names():
        near = did_you_mean(name, names(), quoted)
        listed = f"known: {', '.join(names())}, {_plugins.own(name)}"
        raise ControllerError(f'no target "{name}": {near}{" " * bool(near)}{listed}')
    kind = _plugins.find(__name__, name, Target)
    return kind
