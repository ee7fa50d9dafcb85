"""The error of a network interface that cannot be a port."""

from __future__ import annotations

from gradplane.switch.runtime.control_errors import SwitchError


class PortError(SwitchError):
    """A port cannot be opened; the message names the interface and the remedy."""
