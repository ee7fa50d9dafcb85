"""Errors as the protocol reports them: a canonical code and a text.

Codes are the names of google.rpc.Code ("NOT_FOUND", ...).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from finsy.proto import p4r, rpc_code, rpc_status
from google.protobuf.wrappers_pb2 import StringValue

ERROR_SPACE = "gradplane"


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


def refuse(code: str, message: str) -> NoReturn:
    """Raise RpcError, in an expression."""
    raise RpcError(code, message)


def code_number(code: str) -> int:
    """Return the number of a canonical code's name."""
    return int(rpc_code.Code.Value(code))


def rpc_status_of(error: RpcError) -> rpc_status.Status:
    """Return google.rpc.Status.

    A BatchError's details hold a p4.v1.Error for each entity, in order. Where its message is PI's,
    its details hold ours, a google.protobuf.StringValue.
    """
    status = rpc_status.Status(code=code_number(error.code), message=error.message)
    if isinstance(error, BatchError):
        for item in error.errors:
            status.details.add().Pack(_entity_error(item))
    return status


def _entity_error(error: RpcError | None) -> p4r.Error:
    if error is None:
        return p4r.Error(canonical_code=code_number("OK"))
    number = code_number(error.code)
    found = p4r.Error(
        canonical_code=number,
        message=error.pi_text or error.message,
        space=ERROR_SPACE,
        code=number,
    )
    if error.pi_text:
        found.details.Pack(StringValue(value=error.message))
    return found
