"""The test program, what the fixtures give, and a client without a channel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tnaprograms
from bfrt_client import ALL_PIPES, Client
from finsy.proto import p4r

from gradplane import _bfruntime as bf
from gradplane.switch import Switch
from gradplane.switch.bfruntime.bound_program import bind
from gradplane.switch.p4runtime.catalog import Catalog
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError

PROGRAM = Path(__file__).parent / "program.p4"

Served = tuple[Device, Client]


class Controller(Client):
    """A client without a channel. meanwhile: called after each update of a request."""

    def __init__(self, sw: Switch) -> None:
        self.sw = sw
        pipeline = Pipeline(Catalog(sw.program), sw, p4r.ForwardingPipelineConfig())
        device = bind(pipeline)
        bound = device.only
        assert bound is not None
        listed = [*json.loads(bound.json())["tables"], *json.loads(device.fixed_json())["tables"]]
        self.tables = {table["name"]: table for table in listed}
        self.requests = bound.requests
        self.meanwhile: Callable[[], object] = int
        attempt = self.requests._attempt

        def attempt_among_packets(target: Any, update: Any, ignore_missing: bool) -> Any:
            error = attempt(target, update, ignore_missing)
            self.meanwhile()
            return error

        self.requests._attempt = attempt_among_packets  # type: ignore[method-assign]

    def send(self, x: int, pipe: int = 0) -> bytes:
        ((_, out),) = self.sw.process(pipe << 7, tnaprograms.packet(x=x))
        return out

    def write(self, *updates: tuple[str, Any], metadata: Any = None, **fields: Any) -> Any:
        request = bf.WriteRequest(target={"pipe_id": ALL_PIPES}, **fields)
        for kind, entry in updates:
            request.updates.add(type=getattr(bf.Update, kind)).entity.table_entry.CopyFrom(entry)
        with self.sw.lock:
            return [error and error.code for error in self.requests.write(request)]

    def read_entities(self, *entities: Any, pipe: int = ALL_PIPES) -> Iterator[Any]:
        request = bf.message(bf.METHODS["Read"].request)(
            target={"pipe_id": pipe}, entities=entities
        )
        errors: list[RpcError | None] = []
        with self.sw.lock:
            yield from self.requests.read(request, errors)
        assert errors == [None] * len(entities)

    def fail(self, *updates: tuple[str, Any], atomicity: str = "ROLLBACK_ON_ERROR") -> None:
        """Write updates, then one that is refused."""
        last = "DELETE", self.entry("t", {"h.a.x": 77})
        mode = getattr(bf.WriteRequest, atomicity)
        found = self.write(*updates, last, atomicity=mode)
        assert found == [None] * len(updates) + ["NOT_FOUND"]

    def one(self, table: str, key: dict[str, int]) -> dict[str, Any]:
        (found,) = self.read(table, key)
        return found
