"""A Tofino, or its model, under a driver (bf_switchd): it is there before and after a run."""

from __future__ import annotations

from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.targets import LoadableProgram, Start
from gradplane.controller.targets.tna import Tna


class Tofino(Tna):
    """The target tofino: the controller finds the program there, over BFRuntime.

    The program is compiled by the chip's compiler and loaded by the driver, which no network of
    this package starts.
    """

    networks = ()
    announces = False
    queues = False
    protocol = "bfruntime"
    lasting = True

    def pipeline(self, program: LoadableProgram) -> tuple[bytes, bytes]:
        """Return P4Info, to compare with the running program, and no device config."""
        return super().pipeline(program)[0], b""

    def command(self, start: Start) -> list[str]:
        """Raise ControllerError: the driver runs elsewhere."""
        raise ControllerError(
            f"target {self.name}: start bf_switchd with the compiled program yourself"
            " (docs/tofino.md), and configure it by its BFRuntime address"
        )
