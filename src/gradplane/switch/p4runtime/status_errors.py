"""Errors as the protocol reports them: a canonical code and a text.

Codes are the names of google.rpc.Code ("NOT_FOUND", ...).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NoReturn

from google.protobuf.wrappers_pb2 import StringValue

from gradplane._p4runtime import p4r, rpc_code, rpc_status

ERROR_SPACE = "gradplane"
TEXT_BYTES = 4096  # of a status; with codes for a hundred updates it is below 8 KiB, gRPC's default

log = logging.getLogger(__name__)


class RpcError(Exception):
    """A request, or one entity of it, is refused. `pi_text`: as in TableError."""

    def __init__(self, code: str, message: str, pi_text: str = "") -> None:
        self.code = code
        self.message = message
        self.pi_text = pi_text
        super().__init__(f"{code}: {message}")


class BatchError(RpcError):
    """Some entities of a request failed; `errors`: an item for each entity, None for success."""

    def __init__(self, message: str, errors: Sequence[RpcError | None]) -> None:
        super().__init__("UNKNOWN", message)
        self.errors = tuple(errors)


def invalid(message: str) -> RpcError:
    """Return the error INVALID_ARGUMENT."""
    return RpcError("INVALID_ARGUMENT", message)


def refuse(code: str, message: str) -> NoReturn:
    """Raise RpcError, in an expression."""
    raise RpcError(code, message)


def internal_error(error: Exception, doing: str) -> RpcError:
    """Log a fault of ours with its traceback, and return the error to answer with."""
    log.error("a fault of the switch: %s", doing, exc_info=error)
    return RpcError("INTERNAL", f"a fault of the switch, {type(error).__name__}: {error}")


def code_number(code: str) -> int:
    """Return the number of a canonical code's name."""
    return int(rpc_code.Code.Value(code))


def rpc_status_of(error: RpcError) -> rpc_status.Status:
    """Return google.rpc.Status.

    A BatchError's details hold a p4.v1.Error for each entity, in order. Where its message is PI's,
    its details hold ours, a google.protobuf.StringValue. gRPC's clients refuse a large status: when
    TEXT_BYTES are used up, errors have no text.
    """
    status = rpc_status.Status(code=code_number(error.code), message=error.message)
    if isinstance(error, BatchError):
        room = TEXT_BYTES
        for item in error.errors:
            forms = [_coded(item), _with_text(item), _with_details(item)]
            sizes = [form.ByteSize() - forms[0].ByteSize() for form in forms]
            chosen = max(i for i, size in enumerate(sizes) if size <= room)
            room -= sizes[chosen]
            status.details.add().Pack(forms[chosen])
    return status


def _coded(error: RpcError | None) -> p4r.Error:
    if error is None:
        return p4r.Error(canonical_code=code_number("OK"))
    number = code_number(error.code)
    return p4r.Error(canonical_code=number, space=ERROR_SPACE, code=number)


def _with_text(error: RpcError | None) -> p4r.Error:
    found = _coded(error)
    if error is not None:
        found.message = error.pi_text or error.message
    return found


def _with_details(error: RpcError | None) -> p4r.Error:
    found = _with_text(error)
    if error is not None and error.pi_text:
        found.details.Pack(StringValue(value=error.message))
    return found
