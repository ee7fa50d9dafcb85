"""gradplane's own switch in the place of a Tofino: it runs the programs for that chip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.targets import LoadableProgram
from gradplane.controller.targets.embedded import Embedded

if TYPE_CHECKING:
    from gradplane._p4runtime import p4i

_ARCHITECTURE = "tna"  # of both chips, in P4Info
_FIRST, _PORTS, _PIPE = 8, 56, 128


class Tna(Embedded):
    """The target tna: the embedded switch with a program for Tofino and the chip's port numbers."""

    suffix = "_tna"
    roles = True

    def port(self, number: int, neighbour: str) -> int:
        """Return the chip's number of a switch's `number`-th port: 8 to 63 of pipe 0, then of 1 ...

        Below and above are ports to the CPU and for recirculation, of one chip or the other.
        """
        pipe, place = divmod(number - 1, _PORTS)
        return pipe * _PIPE + _FIRST + place

    def pipeline(self, program: LoadableProgram) -> tuple[p4i.P4Info, bytes]:
        """Return P4Info and the packed source.

        Raises ControllerError for a program of another architecture.
        """
        info, source = super().pipeline(program)
        if (architecture := info.pkg_info.arch) != _ARCHITECTURE:
            raise ControllerError(
                f"{program.path} is written for {architecture}: target {self.name} takes programs"
                " for Tofino (include tna.p4 or t2na.p4)"
            )
        return info, source
