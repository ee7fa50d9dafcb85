"""The error of a command."""

from __future__ import annotations

from gradplane.switch.runtime.control_errors import SwitchError


class CommandError(SwitchError):
    """A command is not understood, or commands of a file failed, one line each."""
