"""What is wrong with a command."""

from __future__ import annotations

from gradplane.switch.runtime.control_errors import SwitchError


class CommandError(SwitchError):
    """A command that is not understood, or commands of a file that failed, a line each."""
