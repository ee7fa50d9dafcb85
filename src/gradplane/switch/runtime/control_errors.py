"""The errors that a control-plane request can raise."""

from __future__ import annotations


class SwitchError(Exception):
    """A request that a switch cannot carry out; the text says why, and what it can do."""


class TableError(SwitchError):
    """A change of a switch's state that is refused.

    `code` is the name of one of gRPC's canonical codes: ALREADY_EXISTS, NOT_FOUND,
    INVALID_ARGUMENT, OUT_OF_RANGE, RESOURCE_EXHAUSTED, FAILED_PRECONDITION or
    PERMISSION_DENIED. `pi_text`: the message of PI, BMv2's P4Runtime library, for the same error,
    where tests of controllers compare it.
    """

    def __init__(self, code: str, message: str, pi_text: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.pi_text = pi_text


def os_error_text(error: OSError) -> str:
    """Return the file and what is wrong with it, without the error's number."""
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
