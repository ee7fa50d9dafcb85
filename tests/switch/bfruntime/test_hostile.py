"""Requests with random parts: each gets an answer or an RpcError, and undoing leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from bfrt_served import PROGRAM, Served
from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane import _bfruntime as bf
from gradplane.switch.bfruntime.requests import Requests
from gradplane.switch.bfruntime.service import BfRuntimeService
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.p4runtime.status_errors import RpcError

Service = tuple[BfRuntimeService, list[Any]]


@pytest.fixture(scope="module", params=["tna.p4", "t2na.p4"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The service of a Tofino 1 and of a Tofino 2."""
    program = tmp_path_factory.mktemp("hostile") / "program.p4"
    program.write_text(PROGRAM.read_text().replace("<tna.p4>", f"<{request.param}>"))
    service = BfRuntimeService(make_device(SwitchOptions(program=program, engine="interpreter")))
    yield service, [table.schema for table in _requests(service).tables.values()]


def _requests(service: BfRuntimeService) -> Requests:
    program = service.running.only
    assert program is not None
    return program.requests


BYTES = st.binary(max_size=9)
SMALL = st.sampled_from([0, 1, 2, 3, 5, 7, 16, 255, 65535, (1 << 32) - 1])


def messages(draw: st.DrawFn, schemas: list[Any]) -> Any:
    """Draw a TableEntry whose ids exist but for a few."""
    schema = draw(st.sampled_from(schemas))
    entry = bf.TableEntry(table_id=schema.id, is_default_entry=draw(st.booleans()))
    for field in schema.keys if draw(st.booleans()) else ():
        part = entry.key.fields.add(field_id=field.id)
        kind = draw(st.sampled_from(["exact", "ternary", "lpm", "range", "optional"]))
        if draw(st.integers(0, 3)):
            kind = {"Exact": "exact", "Ternary": "ternary", "LPM": "lpm", "Range": "range"}.get(
                field.match, "optional"
            )
        inner = getattr(part, kind)
        for side in inner.DESCRIPTOR.fields:
            if side.name == "prefix_len":
                inner.prefix_len = draw(st.integers(-1, 49))
            elif side.name == "is_valid":
                inner.is_valid = draw(st.booleans())
            else:
                size = draw(st.sampled_from([0, field.type.size, field.type.size, 20]))
                setattr(inner, side.name, draw(st.binary(min_size=size, max_size=size)))
    specs = [None, *schema.actions]
    spec = draw(st.sampled_from(specs))
    if spec is not None:
        entry.data.action_id = spec.id
    for field in [*schema.data, *(spec.data if spec is not None else ())]:
        if draw(st.booleans()):
            value(draw, field, entry.data.fields.add(field_id=field.id))
    return entry


def value(draw: st.DrawFn, field: Any, out: Any) -> None:
    kind = draw(st.integers(0, 9))
    if kind == 9:
        out.stream = draw(BYTES)
    elif field.repeated and field.type.name == "bool":
        out.bool_arr_val.val.extend(draw(st.lists(st.booleans(), max_size=3)))
    elif field.repeated and field.type.name == "string":
        choices = st.sampled_from([*field.type.choices, "other"])
        out.str_arr_val.val.extend(draw(st.lists(choices, min_size=3, max_size=4)))
    elif field.repeated:
        out.int_arr_val.val.extend(draw(st.lists(SMALL, max_size=3)))
    elif field.type.name == "bool":
        out.bool_val = draw(st.booleans())
    elif field.type.name == "float":
        out.float_val = draw(st.floats(width=32))
    elif field.type.name in ("string", "enum"):
        out.str_val = draw(st.sampled_from([*field.type.choices, "", "other"]))
    else:
        size = draw(st.sampled_from([1, field.type.size]))
        out.stream = draw(st.binary(min_size=size, max_size=size))


def snapshot(service: BfRuntimeService) -> dict[str, Any]:
    """Return what all tables say, but what time changes."""
    found = {}
    everything = bf.message("ReadRequest")
    for table in _requests(service).tables.values():
        if table.schema.kind in ("PortStat", "SnapshotPhv"):  # the other one is always refused
            continue
        pipe = 0 if table.schema.kind == "SnapshotData" else 0xFFFF  # a capture is one pipe's
        request = everything(target={"pipe_id": pipe})
        request.entities.add().table_entry.table_id = table.schema.id
        found[table.schema.name] = [r.SerializeToString() for r in service.read(request, {})]
    return found


@settings(max_examples=17)
@given(data=st.data())
def test_random_updates(served: Service, data: st.DataObject) -> None:
    service, schemas = served
    before, requests = snapshot(service), []
    for _ in range(3):
        request = bf.WriteRequest(
            target={"pipe_id": data.draw(st.sampled_from([0xFFFF, 0xFFFF, 0, 3, 9]))}
        )
        for _ in range(data.draw(st.integers(1, 4))):
            update = request.updates.add(type=data.draw(st.integers(0, 6)))
            update.entity.table_entry.CopyFrom(messages(data.draw, schemas))
        # The last one fails, so that all before it are taken back.
        request.updates.add(type=1).entity.table_entry.table_id = 1
        request.atomicity = bf.WriteRequest.ROLLBACK_ON_ERROR
        with pytest.raises(RpcError):
            service.write(request, {})
        requests.append(request)
    assert snapshot(service) == before
    for request in requests:  # the next example begins with what they leave
        request.atomicity = bf.WriteRequest.CONTINUE_ON_ERROR
        with pytest.raises(RpcError):
            service.write(request, {})


@settings(max_examples=40)
@given(data=st.data())
def test_random_reads(served: Service, data: st.DataObject) -> None:
    service, schemas = served
    request = bf.message("ReadRequest")(target={"pipe_id": 0xFFFF})
    entity = request.entities.add()
    kind = data.draw(st.sampled_from(["table_entry", "table_usage", "handle", "object_id"]))
    if kind == "table_entry":
        entity.table_entry.CopyFrom(messages(data.draw, schemas))
    elif kind == "object_id":
        entity.object_id.table_object.table_name = data.draw(st.sampled_from(["macs", "x", ""]))
        entity.object_id.table_object.data_field_name.field = data.draw(st.text(max_size=3))
    else:
        getattr(entity, kind).table_id = data.draw(st.sampled_from(schemas)).id
    try:
        list(service.read(request, {}))
    except RpcError as error:
        assert error.message


@pytest.mark.parametrize("rpc", bf.METHODS)
def test_bytes_that_are_no_message(interpreted: Served, rpc: str) -> None:
    call = interpreted[1].channel.stream_stream(
        f"/{bf.SERVICE}/{rpc}", request_serializer=bytes, response_deserializer=bytes
    )
    with pytest.raises(grpc.RpcError) as caught:
        list(call(iter([b"\xff\xff\xff"])))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert f"no {bf.PACKAGE}.{bf.METHODS[rpc].request}: compare" in caught.value.details()
