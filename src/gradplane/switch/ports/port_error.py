"""What cannot be done with a network interface, and the way out."""

from __future__ import annotations

from gradplane.switch.runtime.control_errors import SwitchError


class PortError(SwitchError):
    """A port cannot be opened; the text names the interface and what to do."""
