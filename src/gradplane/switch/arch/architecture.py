"""The record of an architecture, by which the switch knows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING

from gradplane.switch.internal_errors import internal_errors_reported
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.replicas import GROUPS, CloneSession
from gradplane.switch.source import Diagnostic

if TYPE_CHECKING:
    from gradplane.switch.arch.device_facts import DeviceFacts
    from gradplane.switch.interp.user_externs import Implementations, UserExterns
    from gradplane.switch.jit.engine import Engine
    from gradplane.switch.machine.extern_table import Externs
    from gradplane.switch.machine.externs.direct_resources import DirectResources
    from gradplane.switch.machine.model import Model
    from gradplane.switch.machine.weaving import Path
    from gradplane.switch.runtime.state import State

Prepare = Callable[[ir.Program], Iterable[Diagnostic]]
"""Completes a program in place (done twice it changes nothing more) -> the errors found."""

Rule = Callable[[ir.Program], Iterable[Diagnostic]]
"""Returns what a program uses that the architecture does not allow."""

Natives = Mapping[tuple[str, str], ir.InstanceKind | None]
"""The externs there are: ("", function), (type, method), and (type, "") with its kind."""

PipeScopes = Mapping[str, Sequence[int]]
"""The pipes that run each pipeline of a program, by the pipelines' names."""


@dataclass(frozen=True, eq=False)
class Implementation:
    """The part of an architecture that runs its programs, in both engines.

    externs: functions and methods, each with its implementations. direct: what tables do with their
    direct counters and meters. places: the blocks in words, by package parameter ("ingress.ip":
    within the package that is parameter `ingress`). path: weaves a packet's path, which is text,
    around a program. prepare: what is settled about a program when it is loaded, in this order.
    rules: what is refused then, besides externs that are missing or misplaced. sees_queues: whether
    a program's metadata give away how long packets wait for egress. replaced: externs without
    implementations, since preparation replaces their calls. device: returns what a control protocol
    can configure in the chip; None where the architecture is not a chip's. place: returns a program
    whose pipelines run in given pipes; combine: returns one of the programs of a chip, by their
    names; they raise SwitchError.
    """

    externs: Externs
    direct: DirectResources
    places: Mapping[str, str]
    path: Callable[[ir.Program], Path]
    prepare: Sequence[Prepare] = ()
    rules: Sequence[Rule] = ()
    sees_queues: Callable[[ir.Program], bool] = lambda program: False
    replaced: Iterable[tuple[str, str]] = ()
    device: Callable[[ir.Program], DeviceFacts | None] = lambda program: None
    place: Callable[[ir.Program, PipeScopes], ir.Program] | None = None
    combine: Callable[[Mapping[str, ir.Program]], ir.Program] | None = None


@dataclass(frozen=True)
class Architecture:
    """An architecture of P4 programs.

    name: the folder's name, and P4Info's. package: the type of a program's `main`. other_packages:
    types that `main` may have in its place. parameters: those that it has at least, since programs
    declare packages of these names, too. pkginfo: names one of which @pkginfo of the package's
    declaration has, if other architectures may use the package's name. instances: the extern types
    that a program can instantiate, each with the kind of its instances, which decides what they are
    in P4Info and in the switch's state, and the roles of the constructor's arguments. load: returns
    the implementation; it imports the modules that an architecture's record alone does not need.
    ports, sessions, groups: how many ports, clone sessions and multicast groups can exist; their
    numbers are below it. table_size: of tables whose source gives none. cpu_port: the port to the
    control plane, None if the user chooses it. drops_by_port: programs drop packets by sending them
    to a port, which the user chooses. clone_sessions: those that exist from the start.
    """

    name: str
    package: str
    instances: Mapping[str, ir.InstanceKind]
    load: Callable[[], Implementation]
    ports: int
    sessions: int = 1 << 16
    groups: int = GROUPS
    cpu_port: int | None = None
    drops_by_port: bool = False
    clone_sessions: Mapping[int, CloneSession] = field(default_factory=dict)
    pkginfo: tuple[str, ...] = ()
    table_size: int = 1024
    parameters: tuple[str, ...] = ()
    other_packages: tuple[str, ...] = ()

    def declares(self, package: ir.PackageType) -> bool:
        """Return whether a package is this architecture's."""
        named = any(f'"{name}"' in body for name in self.pkginfo for body in package.info)
        known = package.name in (self.package, *self.other_packages)
        complete = set(self.parameters) <= set(package.parameters)
        return known and complete and (named or not self.pkginfo)

    @property
    def port_bits(self) -> int:
        """The width of a port number."""
        return (self.ports - 1).bit_length()

    def check_port(self, port: int) -> None:
        """Raise SwitchError for a port that cannot exist."""
        if not 0 <= port < self.ports:
            raise SwitchError(f"port {port} is not within 0 to {self.ports - 1}")

    @cached_property
    def implementation(self) -> Implementation:
        return self.load()

    @cached_property
    def natives(self) -> Natives:
        """The externs that a program need not bring along."""
        made = self.implementation
        functions: Natives = dict.fromkeys([*made.externs, *made.replaced])
        return {**functions, **{(name, ""): kind for name, kind in self.instances.items()}}

    def path(self, program: ir.Program) -> Path:
        """Return the path around a program that was checked."""
        return woven(self.implementation, program)

    def placed(self, program: ir.Program, scopes: PipeScopes) -> ir.Program:
        """Return a program whose pipelines run in these pipes; none: where they run now. Raises
        SwitchError."""
        if not scopes:
            return program
        if self.implementation.place is None:
            raise SwitchError(f"pipe scopes: a switch of {self.name} has no pipes")
        return self.implementation.place(program, scopes)

    def interpreter(
        self,
        program: ir.Program,
        state: State,
        externs: Implementations | None = None,
        later: bool = False,
    ) -> Model:
        """Load a program that was checked into the interpreter.

        externs, later: as in Model.
        """
        from gradplane.switch.machine.model import Model

        with internal_errors_reported(program.package.span):
            return Model(self, program, state, externs, later)

    def engine(
        self,
        program: ir.Program,
        state: State,
        cpu_port: int | None = None,
        user_externs: UserExterns | None = None,
        quick: bool = False,
    ) -> Engine:
        """Compile a program, which the interpreter has loaded, to machine code; quick: Native."""
        from gradplane.switch.jit.engine import Engine  # LLVM is loaded where it is used
        from gradplane.switch.machine.native_paths import write_path
        from gradplane.switch.machine.primitives import IN_BODIES

        made = self.implementation
        builders = {("", name): row.compile for name, row in IN_BODIES.items()}
        builders |= {name: extern.compile for name, extern in made.externs.items()}
        with internal_errors_reported(program.package.span):
            path = partial(write_path, path=self.path(program))
            return Engine(
                program, state, path, builders, made.direct.compile, self.sessions,
                self.groups, cpu_port=cpu_port, user_externs=user_externs, quick=quick,
            )  # fmt: skip


@lru_cache(maxsize=1)
def woven(made: Implementation, program: ir.Program) -> Path:
    """Return the path around a program: once for both engines."""
    from gradplane.switch.machine.unreached import without_unreached

    return without_unreached(made.path(program), program, made.externs)
