"""The subscribed clients: each has an id of its own on a stream; one is bound to the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradplane import _bfruntime as bf
from gradplane.switch.p4runtime.status_errors import RpcError, code_number

DEVICE_ID = 0
"""The number of the only device."""

Delivery = tuple[object, Any]
"""A stream, and the response to send there."""


@dataclass(slots=True, eq=False)
class Client:
    """A subscribed client. `stream`: what its responses are sent to; only its owner knows it."""

    id: int
    stream: object
    notifications: Any
    bound: bool = False


class Clients:
    """The clients by their ids."""

    def __init__(self) -> None:
        self._known: dict[int, Client] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, number: int) -> Client | None:
        return self._known.get(number)

    def subscribe(self, stream: object, request: Any) -> Delivery:
        """Subscribe the client of a message, or change its subscription; return the response."""
        response = bf.StreamMessageResponse()
        response.subscribe.CopyFrom(request.subscribe)
        known = self._known.get(request.client_id)
        status = response.subscribe.status
        if request.subscribe.device_id != DEVICE_ID:
            status.code = code_number("NOT_FOUND")
            status.message = f"there is no device {request.subscribe.device_id}: use {DEVICE_ID}"
        elif known is not None and known.stream is not stream:
            status.code = code_number("ALREADY_EXISTS")
            status.message = f"another client has the id {request.client_id}: choose another"
        else:
            status.SetInParent()
            wanted = request.subscribe.notifications
            self._known[request.client_id] = Client(
                request.client_id, stream, wanted, known is not None and known.bound
            )
        return stream, response

    def known(self, number: int) -> Client:
        """Return a client. Raises RpcError for one that did not subscribe."""
        client = self._known.get(number)
        if client is None:
            raise RpcError(
                "FAILED_PRECONDITION",
                f"client {number} is unknown: subscribe on a StreamChannel first",
            )
        return client

    def bind(self, client: Client, program: str) -> None:
        """Bind a client to the program. Raises RpcError while another one is bound."""
        owner = next((c for c in self._known.values() if c.bound and c is not client), None)
        if owner is not None:
            raise RpcError(
                "ALREADY_EXISTS", f"client {owner.id} is bound to {program}: it must leave first"
            )
        client.bound = True

    def close(self, stream: object) -> None:
        """Forget the clients of a stream."""
        for client in [c for c in self._known.values() if c.stream is stream]:
            del self._known[client.id]

    def to_all(self, response: Any) -> list[Delivery]:
        """Return a response for each client."""
        return [(client.stream, response) for client in self._known.values()]

    def to(self, response: Any, wanted: str, bound: bool = True) -> list[Delivery]:
        """Return a response for the clients that asked for such, the bound one only unless `bound`
        is false."""
        return [
            (client.stream, response)
            for client in self._known.values()
            if getattr(client.notifications, wanted) and (client.bound or not bound)
        ]


def check_device(number: int) -> None:
    """Raise RpcError for any other device."""
    if number != DEVICE_ID:
        raise RpcError("NOT_FOUND", f"there is no device {number}: use {DEVICE_ID}")
