"""A TNA program under stock P4Runtime clients (finsy, p4runtime-shell): P4Info, every entity."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import finsy
import pytest
from controlled import Served, control, serving
from finsy.p4entity import P4ValueSetMember
from finsy.proto import p4i

from gradplane.cli import p4runtime_shell
from gradplane.switch import MeterConfig
from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.p4info import build_p4info

PROGRAM = Path(__file__).parent / "programs" / "tna_switch.p4"
FRAME = bytes.fromhex("0200000000aa 0200000000bb 1234") + b"data"


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(program=PROGRAM) as served:
        yield served


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
    (meter,) = info.meters
    assert (meter.preamble.name, meter.size) == ("Ingress.police", 16)
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


async def read(sw: finsy.Switch, entity: Any) -> list[Any]:
    return [found async for found in sw.read(entity)]


def mac_entry(action: finsy.P4TableAction, **more: Any) -> finsy.P4TableEntry:
    return finsy.P4TableEntry("macs", match=finsy.Match(dst=0x0200000000AA), action=action, **more)


def test_a_client_sets_meters_counters_and_registers(served: Served) -> None:
    device, address = served
    entry = mac_entry(finsy.P4TableAction("send", port=9))
    rate = finsy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4)

    async def job(sw: finsy.Switch) -> tuple[Any, ...]:
        count = finsy.P4CounterData(packet_count=5, byte_count=6)
        await sw.write([
            +entry,
            ~finsy.P4DirectMeterEntry(table_entry=entry, config=rate),
            ~finsy.P4MeterEntry("police", index=2, config=rate),
            ~finsy.P4CounterEntry("per_port", index=8, data=count),
            ~finsy.P4RegisterEntry("pairs", index=3, data={"first": 7, "second": 8}),
        ])  # fmt: skip
        (direct,) = await read(sw, finsy.P4DirectMeterEntry(table_entry=entry))
        (meter,) = await read(sw, finsy.P4MeterEntry("police", index=2))
        cells = await read(sw, finsy.P4RegisterEntry("pairs"))
        return direct.config, meter.config, [cell.data for cell in cells]

    direct, meter, cells = control(address, job)
    assert direct == meter == rate
    zero = {"first": 0, "second": 0}
    assert cells == [zero] * 3 + [{"first": 7, "second": 8}] + [zero] * 12
    state = device.target.state
    assert state.counters["Ingress.per_port"].read(8) == (5, 6)
    assert state.meters["Ingress.police"].read(2) == MeterConfig(1, 2, 3, 4)
    assert device.process(8, FRAME) == [(9, FRAME)]
    assert device.target.state.registers["Ingress.pairs"].read(3) == 7 << 16 | 9


def test_a_client_sets_a_selectors_members_and_groups(served: Served) -> None:
    device, address = served

    async def job(sw: finsy.Switch) -> list[Any]:
        members = [
            finsy.P4ActionProfileMember(
                "groups", member_id=port, action=finsy.P4TableAction("to", port=port)
            )
            for port in (4, 5)
        ]
        chosen = [finsy.P4Member(4, weight=1), finsy.P4Member(5, weight=2)]
        group = finsy.P4ActionProfileGroup("groups", group_id=1, max_size=4, members=chosen)
        await sw.write([+member for member in members])
        await sw.write([+group])
        entry = finsy.P4TableEntry(
            "balanced",
            match=finsy.Match(type=0x1234),
            action=finsy.P4IndirectAction(group_id=1),
        )
        await sw.write([+entry])
        (found,) = await read(sw, finsy.P4ActionProfileGroup("groups"))
        return [(member.member_id, member.weight) for member in found.members]

    assert control(address, job) == [(4, 1), (5, 2)]
    frames = [FRAME[:6] + bytes([2, 0, 0, 0, 0, i]) + FRAME[12:] for i in range(40)]
    assert {device.process(1, frame)[0][0] for frame in frames} == {4, 5}


def test_a_client_sets_value_sets_and_gets_digests_and_idle_entries(served: Served) -> None:
    device, address = served
    device.transmit = lambda sent: None

    async def job(sw: finsy.Switch) -> tuple[Any, ...]:
        idle = mac_entry(finsy.P4TableAction("send", port=9), idle_timeout_ns=1)
        member = P4ValueSetMember(0x5678)
        notice = asyncio.ensure_future(anext(sw.read_idle_timeouts()))
        await sw.write([
            +finsy.P4DigestEntry("learned", max_list_size=1),
            ~finsy.P4ValueSetEntry("known", members=[member]),
            +idle,
        ])  # fmt: skip
        device.process(5, FRAME)
        learned = await anext(sw.read_digests("learned"))
        (entry,) = (await notice).table_entry
        return list(learned.data), entry.action.args["port"]

    assert control(address, job) == ([{"address": 0x0200000000BB, "port": 5}], 9)
    known = FRAME.replace(b"\x12\x34", b"\x56\x78")
    assert device.process(5, known) == [(9, FRAME.replace(b"\x12\x34", b"\0\0"))]


SHELL = """
global_options["verbose"] = False
macs = table_entry["Ingress.macs"](action="Ingress.send")
macs.match["dst"] = "02:00:00:00:00:aa"
macs.action["port"] = "9"
macs.insert()
macs.meter_config.cir, macs.meter_config.cburst = 1, 2
macs.meter_config.pir, macs.meter_config.pburst = 3, 4
macs.modify()
police = meter_entry["Ingress.police"]
police.index, police.cir, police.cburst, police.pir, police.pburst = 2, 1, 2, 3, 4
police.modify()
counted = counter_entry["Ingress.per_port"]
counted.index, counted.packet_count, counted.byte_count = 8, 5, 6
counted.modify()
for number in (4, 5):
    member = action_profile_member["Ingress.groups"](member_id=number, action="Ingress.to")
    member.action["port"] = str(number)
    member.insert()
group = action_profile_group["Ingress.groups"](group_id=1)
group.max_size = 4
group.add(4, 1).add(5, 1)
group.insert()
balanced = table_entry["Ingress.balanced"](group_id=1)
balanced.match["type"] = "0x1234"
balanced.insert()
flood = multicast_group_entry(7)
flood.add(3, 1).add(4, 2)
flood.insert()
session = clone_session_entry(5)
session.add(6)
session.insert()
rates = direct_meter_entry["Ingress.rate"]
rates.table_entry.match["dst"] = "02:00:00:00:00:aa"
rates.read(lambda found: print("rate", found.cir, found.pburst))
table_entry["Ingress.macs"].read(lambda found: print("port", found.action["port"]))
counted.read(lambda found: print("counted", found.packet_count, found.byte_count))
"""


def test_the_stock_shell_controls_the_program(
    served: Served, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    device, address = served
    script = tmp_path / "script.py"
    script.write_text(SHELL)
    assert p4runtime_shell.open_shell(address, device_id=1, script=script) == 0
    printed = capfd.readouterr().out.split("\n")
    assert printed[0] == "rate 1 4"
    assert "counted 5 6" in printed
    state = device.target.state
    assert state.meters["Ingress.police"].read(2) == MeterConfig(1, 2, 3, 4)
    assert device.process(2, FRAME) == [(6, b"\0\x02" + FRAME), (9, FRAME)]
    other = b"\x02\0\0\0\0\xbb" + FRAME[6:]
    assert {port for port, _ in device.process(2, other)} in ({6, 4}, {6, 5})
