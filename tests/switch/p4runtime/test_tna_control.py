"""A TNA program under a stock P4Runtime client (finsy): its P4Info, and what it controls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import finsy
import pytest
from finsy.proto import p4i

from gradplane.switch.compiler import compile_program
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.p4runtime.server import P4RuntimeServer

PROGRAM = Path(__file__).parent / "programs" / "tna_switch.p4"
FRAME = bytes.fromhex("0200000000aa 0200000000bb 1234") + b"data"

Served = tuple[Device, str]


@pytest.fixture
def served() -> Iterator[Served]:
    device = make_device(SwitchOptions(program=PROGRAM, device_id=1))
    with P4RuntimeServer(device, "127.0.0.1:0") as server:
        yield device, server.address


def control(address: str, job: Callable[[finsy.Switch], Coroutine[Any, Any, Any]]) -> Any:
    """Run a job as a finsy controller; return its result."""

    async def run() -> Any:
        async with finsy.Switch("sw", address, finsy.SwitchOptions()) as switch:
            return await asyncio.wait_for(job(switch), 120)

    return asyncio.run(run())


def test_p4info_describes_the_program() -> None:
    info: p4i.P4Info = build_p4info(compile_program(PROGRAM))
    assert info.pkg_info.arch == "tna"
    tables = {t.preamble.name: t for t in info.tables}
    macs, balanced = tables["Ingress.macs"], tables["Ingress.balanced"]
    (hits,), (rate,) = info.direct_counters, info.direct_meters
    assert list(macs.direct_resource_ids) == [hits.preamble.id, rate.preamble.id]
    assert macs.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL
    (groups,) = info.action_profiles
    assert groups.preamble.name == "Ingress.groups"
    assert (groups.with_selector, groups.size, groups.max_group_size) == (True, 32, 8)
    assert balanced.implementation_id == groups.preamble.id
    assert [f.name for f in balanced.match_fields] == ["type"]
    (counter,), (register,), (digest,) = info.counters, info.registers, info.digests
    assert (counter.preamble.name, counter.size) == ("Ingress.per_port", 512)
    assert counter.spec.unit == p4i.CounterSpec.BOTH
    assert (register.preamble.name, register.size) == ("Ingress.pairs", 16)
    assert digest.preamble.name == "IngressDeparser.learned"
    assert [v.preamble.name for v in info.value_sets] == ["IngressParser.known"]


def test_a_client_controls_tables_groups_and_mirror_sessions(served: Served) -> None:
    device, address = served

    async def job(sw: finsy.Switch) -> tuple[Any, Any]:
        match = finsy.Match(dst=0x0200000000AA)
        entry = finsy.P4TableEntry(
            "macs", match=match, action=finsy.P4TableAction("flood", group=7)
        )
        await sw.write([
            +finsy.P4MulticastGroupEntry(7, replicas=[(3, 1), (4, 2)]),
            +finsy.P4CloneSessionEntry(5, replicas=[9]),
            +entry,
        ])  # fmt: skip
        sent = device.process(2, FRAME)
        found = sw.read(finsy.P4DirectCounterEntry(table_entry=entry))
        direct = [count.data.packet_count async for count in found]
        found = sw.read(finsy.P4CounterEntry("per_port", index=2))
        counted = [(c.data.packet_count, c.data.byte_count) async for c in found]
        return sent, direct + counted

    sent, counted = control(address, job)
    assert sent == [(9, b"\0\x02" + FRAME), (3, FRAME), (4, FRAME)]
    assert counted == [1, (1, len(FRAME) + 4)]
    assert device.target.state.registers["Ingress.pairs"].read(3) == 1
