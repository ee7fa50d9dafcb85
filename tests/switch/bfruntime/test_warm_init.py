"""The table that starts the program anew."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from bfrt_client import Client
from bfrt_served import Served

from gradplane import _bfruntime as bf

FRAME = bytes.fromhex("0200000000aa 0200000000bb 1234") + b"data"


def asked(client: Client, action: str, *programs: str, **data: Any) -> Any:
    """Make the default entry with an action, and the names of programs."""
    entry = client.entry("dev.warm_init", None, action, **data)
    entry.is_default_entry = True
    for name in programs:
        container = entry.data.fields.add(field_id=4).container_arr_val.container.add()
        container.val.add(field_id=5, str_val=name)
    return entry


def refused(client: Client, entry: Any) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        client.write(("MODIFY", entry))
    return str(caught.value.details()).removeprefix("1 of 1 updates failed: ")


def error(client: Client) -> bool:
    found = bf.Entity(table_entry=client.entry("dev.warm_init", None))
    (shown,) = client.read_entities(found)
    return bool(next(f.bool_val for f in shown.table_entry.data.fields if f.field_id == 1))


def test_the_program_starts_anew_with_what_was_written_meanwhile(served: Served) -> None:
    device, client = served
    client.add("macs", {"h.ethernet.dst": 0x0200000000AA}, "Ingress.send", port=3)
    client.write(("MODIFY", asked(client, "begin", "program", init_mode="WARM_INIT_FAST_RECFG")))
    client.set_default("macs", "Ingress.send", port=9)
    assert device.process(1, FRAME) == [(3, FRAME)]  # until it is completed
    client.write(("MODIFY", asked(client, "completed")))
    assert device.process(1, FRAME) == [(9, FRAME)]
    assert client.read("macs") == []
    assert not error(client)


def test_what_runs_is_shown(interpreted: Served) -> None:
    _, client = interpreted
    (shown,) = client.read_entities(bf.Entity(table_entry=client.entry("dev.warm_init", None)))
    values = {f.field_id: f for f in shown.table_entry.data.fields}
    assert values[2].str_val == "INIT_COLD"
    (program,) = values[4].container_arr_val.container
    inner = {f.field_id: f for f in program.val}
    assert inner[5].str_val == "program"
    (pipeline,) = inner[6].container_arr_val.container
    parts = {f.field_id: f for f in pipeline.val}
    assert (parts[9].str_val, list(parts[10].int_arr_val.val)) == ("pipe", [0, 1, 2, 3])


def test_wrong_requests_are_refused(interpreted: Served) -> None:
    _, client = interpreted
    assert refused(client, asked(client, "completed")) == "there was no WARM_INIT_BEGIN"
    assert error(client)
    assert refused(client, asked(client, "begin", "other")) == (
        "table tf1.dev.warm_init: p4_programs names other, and the switch runs program: name it, or"
        " load another with SetForwardingPipelineConfig"
    )
    entry = client.entry("dev.warm_init", None)
    entry.is_default_entry = True
    assert refused(client, entry) == (
        "table tf1.dev.warm_init: an action is missing: begin or completed"
    )
