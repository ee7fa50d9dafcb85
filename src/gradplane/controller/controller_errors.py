"""Errors of the controller: what cannot work, and what a switch refused."""

from __future__ import annotations


class ControllerError(Exception):
    """Anything the controller gives up on; the message says what to do about it."""


class PlanError(ControllerError):
    """A job that cannot work on this program or beside the other jobs. Nothing was installed."""


class SwitchError(ControllerError):
    """The switch cannot be reached, or refused a request."""
