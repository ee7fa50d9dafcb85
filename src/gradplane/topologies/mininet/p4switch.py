"""gradplane's switch in Mininet, for our own networks and for any script:

from functools import partial
from mininet.net import Mininet
from gradplane.topologies import P4Switch

net = Mininet(topo, switch=partial(P4Switch, program="prog.p4"), controller=None)
"""

from __future__ import annotations

import inspect
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from mininet.node import Switch

from gradplane._suggestions import nearest
from gradplane.controller import targets
from gradplane.switch.daemon.clients import CommandClient
from gradplane.switch.ports import offload
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.topologies.child_process import (
    LEASH,
    Process,
    Start,
    check_free,
    free_port,
    wait_for_port,
)
from gradplane.topologies.mininet.netns import switch_off_offloads
from gradplane.topologies.topology_errors import NetworkError

_MTU = ("mtu", "3000")


class P4Switch(Switch):  # type: ignore[misc]  # mininet has no types
    """A switch that runs `program` (P4 source); port N is the interface NAME-ethN.

    address: of its P4Runtime server, complete once it is started; port 0: a free one. target: what
    runs the program, a name of `gradplane.controller.targets` or one of its objects; all but
    "embedded" get the program from a controller. options: further ones of its command, by default
    `gradplane switch`, which also takes commands, a file of simple_switch_CLI's
    commands or a runtime JSON file, and externs, a Python file that implements the program's
    user-defined externs. `start` raises NetworkError, with the switch's words, where the program or
    a command is wrong. batch: the network's switches start at the same time; Mininet sets it where
    a topology's switches are of this class. start: starts its process, as subprocess.Popen does.
    """

    def __init__(
        self,
        name: str,
        program: Path | str,
        include_dirs: Iterable[Path | str] = (),
        defines: Mapping[str, str] | None = None,
        address: str = "127.0.0.1:0",
        options: Sequence[str] = (),
        commands: Path | str | None = None,
        externs: Path | str | None = None,
        batch: bool = False,
        target: str | targets.Target = "embedded",
        start: Start | None = None,
        **params: Any,
    ) -> None:
        _check_spelling(params)
        super().__init__(name, **params)
        self.batch = batch
        self.program = Path(program)
        self.address = address
        self.target = targets.get(target) if isinstance(target, str) else target
        self.include_dirs = [Path(folder) for folder in include_dirs]
        self.defines = dict(defines or {})
        self.options = list(options)
        if externs is not None:
            self.options += ["--externs", str(externs)]
        if commands is not None:
            self.options += ["--commands", str(commands)]
        self.process: Process | None = None
        self._start = start or _leashed
        self._cable: dict[int, str] = {}  # interfaces by port

    def start(self, controllers: object = ()) -> None:
        """Run the switch; return when it accepts packets and controllers.

        `controllers` is ignored.
        """
        self.launch()
        if not self.batch:
            self.wait_ready()

    @classmethod
    def batchStartup(cls, switches: Sequence[P4Switch]) -> Sequence[P4Switch]:  # noqa: N802 - Mininet's
        """Wait for the switches that Mininet started together."""
        for switch in switches:
            if switch.batch:
                switch.wait_ready()
                switch.batch = False  # a later start is not part of this batch
        return switches

    def launch(self) -> None:
        """Start the process without waiting for it."""
        for interface in self._links():
            link = interface.link
            for end in (link.intf1, link.intf2):
                switch_off_offloads(end.node.pid, end.name)
        if self.target.cable is not None and not self._cable:
            self._lay_cable(*self.target.cable)
        if not self.target.announces and self.address.endswith(":0"):
            self.address = f"{self.address[:-2]}:{free_port()}"
        if not self.target.announces:
            for protocol, address in self.target.listens(self._start_parameters()).items():
                check_free(f"switch {self.name}", protocol, address)
        self.process = Process(f"switch {self.name}", self.command(), self._start)

    def wait_ready(self) -> None:
        """Wait until it accepts packets and controllers. Raises NetworkError where it cannot."""
        assert self.process is not None, f"switch {self.name} was not launched"
        if self.target.announces:
            self.address = self.process.wait_for("ready")["grpc"]
        else:
            wait_for_port(self.process, self.address)

    def defaultDpid(self, dpid: str | None = None) -> str:  # noqa: N802 - Mininet's
        """Return an OpenFlow datapath id, which nothing here uses, so that any name will do."""
        return dpid or f"{crc32(self.name.encode()):016x}"

    def attach(self, interface: Any) -> None:
        """Make an interface of a link that was added later a port of the running switch.

        interface: the object, or its name. Raises NetworkError where that is not possible.
        """
        found = self.nameToIntf[str(interface)]
        for end in (found.link.intf1, found.link.intf2):
            switch_off_offloads(end.node.pid, end.name)
        self._change_ports(f"port_add {found.name} {self.ports[found]}")

    def detach(self, interface: Any) -> None:
        """Take a port from the running switch; its interface stays. Raises NetworkError."""
        self._change_ports(f"port_remove {self.ports[self.nameToIntf[str(interface)]]}")

    def _change_ports(self, command: str) -> None:
        if self.process is None or not self.target.announces:
            reason = "it is not running" if self.process is None else "its target has fixed ports"
            raise NetworkError(f"switch {self.name}: {command}: {reason}")
        try:
            with CommandClient(self.address) as client:
                answers = [answer for answer in client.run(command, f"switch {self.name}")]
        except SwitchError as error:
            raise NetworkError(f"switch {self.name}: {command}: {error}") from None
        if errors := [answer["error"] for answer in answers if answer.get("error")]:
            raise NetworkError(errors[0])

    def check(self) -> None:
        """Raise NetworkError, with its last messages, if it has ended."""
        assert self.process is not None, f"switch {self.name} was not launched"
        self.process.check()

    def command(self) -> list[str]:
        """Return the command line of the switch."""
        return self.target.command(self._start_parameters())

    def _start_parameters(self) -> targets.Start:
        interfaces = {self.ports[interface]: interface.name for interface in self._links()}
        interfaces |= self._cable
        folders, options = self.include_dirs, self.options
        return targets.Start(self.program, interfaces, self.address, folders, self.defines, options)

    def kill(self) -> None:
        """End the process; the interfaces stay, so that `launch` runs it again."""
        assert self.process is not None, f"switch {self.name} was not launched"
        self.process.close()
        self.process = None

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 - Mininet's name
        """Stop the switch."""
        if self.process is not None:
            self.process.close()
            self.process = None
        for name in list(self._cable.values())[:1]:  # the other end goes with it
            subprocess.run(["ip", "link", "delete", name], check=False)
        self._cable = {}
        super().stop(deleteIntfs)

    def _lay_cable(self, out: int, back: int) -> None:
        """Connect two ports with each other."""
        self._cable = {port: f"{self.name}-eth{port}" for port in (out, back)}
        one, other = self._cable.values()
        ends = [one, *_MTU, "type", "veth", "peer", "name", other, *_MTU]
        subprocess.run(["ip", "link", "add", *ends], check=True)
        for name in (one, other):
            offload.switch_off(name)
            subprocess.run(["ip", "link", "set", name, "up"], check=True)

    def _links(self) -> list[Any]:
        return [interface for interface in self.intfList() if interface.link is not None]


def _leashed(argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own: Ctrl-C at Mininet's prompt does not end it."""
    return subprocess.Popen([*LEASH, *argv], start_new_session=True, **options)


def _check_spelling(params: Iterable[str]) -> None:
    """Refuse misspelt parameters: Mininet accepts any name, so one near to ours is a mistake."""
    ours = list(inspect.signature(P4Switch.__init__).parameters)[2:-1]
    for name in params:
        if near := nearest(name, ours, similarity=0.75):
            raise TypeError(f"P4Switch has no parameter {name}; did you mean {near[0]}?")
