"""Why gRPC reached nobody at an address, in a few words."""

from __future__ import annotations

_NO_NAME = ("errors resolving", "DNS resolution failed", "address lookup failed")


def short_reason(details: str) -> str:
    """Return the reason in the details of a call's status.

    gRPC says "failed to connect to all addresses; last error: ...: remote host: Connection
    refused", and of a name that cannot be resolved which resolvers it asked.
    """
    if any(sign in details for sign in _NO_NAME):
        return "no machine has this name, or the name servers do not answer"
    return details.rpartition("last error: ")[2].rpartition("remote host: ")[2]
