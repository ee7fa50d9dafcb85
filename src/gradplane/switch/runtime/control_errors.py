"""What the control plane is told when it asks for what cannot be."""

from __future__ import annotations


class SwitchError(Exception):
    """Something asked of a switch that it cannot do; the text says what and what it could."""


class TableError(SwitchError):
    """A refused change of a switch's state.

    `code` is the name of one of gRPC's canonical codes: ALREADY_EXISTS, NOT_FOUND,
    INVALID_ARGUMENT, OUT_OF_RANGE, RESOURCE_EXHAUSTED, FAILED_PRECONDITION or
    PERMISSION_DENIED.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def told(error: OSError) -> str:
    """The file and what is wrong with it, without the number."""
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}"
