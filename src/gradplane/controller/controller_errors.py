"""The errors of the controller: plans that cannot work, and refusals of a switch."""

from __future__ import annotations


class ControllerError(Exception):
    """A failure of the controller; the message says what to do about it."""


class PlanError(ControllerError):
    """A job that does not fit this program or the other jobs. Nothing was installed."""


class RequestError(ControllerError):
    """The switch cannot be reached, or refused a request."""


class NotServedError(RequestError):
    """The switch does not serve this kind of entity, as BMv2 no registers."""


class NoAnswerError(RequestError):
    """The switch did not answer in time, as on a machine with too much other work."""
