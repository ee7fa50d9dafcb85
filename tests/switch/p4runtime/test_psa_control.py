"""A PSA program under a stock P4Runtime client (finsy): its P4Info, and every kind of entity."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import finsy
import pytest
from controlled import Served, control, read, serving
from finsy.proto import p4i, p4r

from gradplane.switch import MeterConfig
from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.p4runtime.reconcile import carry_over
from gradplane.switch.runtime.replicas import CloneSession, Replica

PROGRAM = Path(__file__).parent / "programs" / "psa_switch.p4"
PORT_CPU = 0xFFFF_FFFD
FRAME = bytes.fromhex("0200000000aa 0200000000bb 1234") + b"data"


@pytest.fixture
def served() -> Iterator[Served]:
    """Provide a device without an option for the CPU port, and its server's address."""
    with serving(program=PROGRAM) as served:
        yield served


def mac_entry(action: finsy.P4TableAction, **more: Any) -> finsy.P4TableEntry:
    match = finsy.Match({"dst": 0x0200000000AA})
    return finsy.P4TableEntry("macs", match=match, action=action, **more)


# -- P4Info -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def info() -> p4i.P4Info:
    return build_p4info(compile_program(PROGRAM))


@pytest.mark.p4runtime("6.2-1 18.1.1-2")
def test_the_architecture_and_its_types_are_named(info: p4i.P4Info) -> None:
    assert info.pkg_info.arch == "psa"
    new = info.type_info.new_types
    assert new["PortId_t"].translated_type.uri == "p4.org/psa/v1/PortId_t"
    assert new["PortId_t"].translated_type.sdn_bitwidth == 32
    assert new["ClassOfService_t"].translated_type.sdn_bitwidth == 8
    actions = {a.preamble.alias: a for a in info.actions}
    assert [(p.bitwidth, p.type_name.name) for p in actions["mirror"].params] == [
        (16, "CloneSessionId_t"), (8, "ClassOfService_t")
    ]  # fmt: skip
    tables = {t.preamble.name: t for t in info.tables}
    (port, _) = tables["ingress.sources"].match_fields
    assert (port.name, port.bitwidth, port.type_name.name) == ("s.ingress_port", 32, "PortId_t")
    headers = {h.preamble.name: h for h in info.controller_packet_metadata}
    fields = [(f.name, f.bitwidth, f.type_name.name) for f in headers["packet_in"].metadata]
    assert fields == [("ingress_port", 32, "PortIdInHeader_t"),
                      ("service", 8, "ClassOfServiceInHeader_t")]  # fmt: skip


@pytest.mark.p4runtime("6.4.4-2 6.4.5-3 6.4.8-1 18.1.6-1")
def test_arrays_have_the_types_of_their_indices(info: p4i.P4Info) -> None:
    (counter,), (meter,), (register,) = info.counters, info.meters, info.registers
    assert (counter.preamble.name, counter.size) == ("ingress.per_port", 16)
    assert counter.spec.unit == p4i.CounterSpec.BOTH
    assert counter.index_type_name.name == "PortId_t"
    assert meter.spec.unit == p4i.MeterSpec.BYTES
    assert meter.index_type_name.name == "ClassOfService_t"
    assert (register.size, register.type_spec.new_type.name) == (4, "PortId_t")
    assert not register.HasField("index_type_name")


@pytest.mark.p4runtime("6.4.1-6 6.4.1-7 6.4.1-8 6.4.1-9 6.4.3-1 6.4.4-1 6.4.5-1 6.4.9-1")
def test_tables_have_what_their_properties_say(info: p4i.P4Info) -> None:
    tables = {t.preamble.alias: t for t in info.tables}
    macs = tables["macs"]
    (counter,), (meter,) = info.direct_counters, info.direct_meters
    assert list(macs.direct_resource_ids) == [counter.preamble.id, meter.preamble.id]
    assert counter.direct_table_id == meter.direct_table_id == macs.preamble.id
    assert counter.spec.unit == p4i.CounterSpec.PACKETS
    assert meter.spec.unit == p4i.MeterSpec.PACKETS
    assert (macs.size, macs.idle_timeout_behavior) == (256, p4i.Table.NOTIFY_CONTROL)
    profiles = {p.preamble.alias: p for p in info.action_profiles}
    assert [f.name for f in tables["balanced"].match_fields] == ["h.ethernet.type"]
    assert tables["balanced"].implementation_id == profiles["spread"].preamble.id
    spread, hops = profiles["spread"], profiles["hops"]
    assert (spread.with_selector, spread.size, spread.max_group_size) == (True, 32, 4)
    assert (hops.with_selector, hops.size) == (False, 8)
    (digest,) = info.digests
    assert digest.preamble.name == "IngressDeparserImpl.learnt"
    members = info.type_info.structs["learn_t"].members
    assert members[0].type_spec.bitstring.bit.bitwidth == 48
    assert members[1].type_spec.new_type.name == "PortId_t"


# -- entities -----------------------------------------------------------------------------------


@pytest.mark.p4runtime("9.1.7-1 9.3.1-4 18.1.4-1")
def test_entries_with_their_counters_and_meters(served: Served) -> None:
    device, address = served
    entry = mac_entry(finsy.P4TableAction("forward", port=70000))

    async def work(sw: finsy.Switch) -> tuple[Any, Any]:
        await sw.write([+entry])
        config = finsy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
        await sw.write([~finsy.P4DirectMeterEntry(table_entry=entry, config=config)])
        assert device.process(1, FRAME) == [(70000, FRAME)]
        (count,) = await read(sw, finsy.P4DirectCounterEntry(table_entry=entry))
        (meter,) = await read(sw, finsy.P4DirectMeterEntry(table_entry=entry))
        return count.data.packet_count, meter.config

    packets, config = control(address, work)
    assert packets == 1
    assert (config.cir, config.cburst, config.pir, config.pburst) == (1, 2, 3, 4)


@pytest.mark.p4runtime("8.2.1.7-1 8.2.1.11-1 9.7-1 18.1.6-1")
def test_counters_meters_and_registers(served: Served) -> None:
    device, address = served
    device.process(3, FRAME)

    async def work(sw: finsy.Switch) -> list[Any]:
        found = []
        (cell,) = await read(sw, finsy.P4CounterEntry("per_port", index=3))
        found.append((cell.data.packet_count, cell.data.byte_count))
        data = finsy.P4CounterData(packet_count=5, byte_count=6)
        await sw.write([~finsy.P4CounterEntry("per_port", index=2, data=data)])
        config = finsy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
        await sw.write([~finsy.P4MeterEntry("rates", index=1, config=config)])
        (meter,) = await read(sw, finsy.P4MeterEntry("rates", index=1))
        found.append(meter.config.pburst)
        await sw.write([~finsy.P4RegisterEntry("last", index=3, data=9)])
        cells = await read(sw, finsy.P4RegisterEntry("last"))
        found.append([cell.data for cell in cells])
        return found

    assert control(address, work) == [(1, len(FRAME)), 4, [3, 77, 77, 9]]
    state = device.target.state
    assert state.counters["ingress.per_port"].read(2) == (5, 6)
    assert state.meters["ingress.rates"].read(1) == MeterConfig(1, 2, 3, 4)


@pytest.mark.p4runtime("9.2.1-7 9.2.2-11")
def test_members_and_groups(served: Served) -> None:
    device, address = served

    async def work(sw: finsy.Switch) -> Any:
        to = [finsy.P4TableAction("to", port=port) for port in (4, 5)]
        members = [+finsy.P4ActionProfileMember("hops", member_id=1, action=to[0])]
        members += [+finsy.P4ActionProfileMember("spread", member_id=i + 1, action=a)
                    for i, a in enumerate(to)]  # fmt: skip
        await sw.write(members)
        chosen = [finsy.P4Member(1, weight=1), finsy.P4Member(2, weight=2)]
        await sw.write(
            [+finsy.P4ActionProfileGroup("spread", group_id=1, max_size=4, members=chosen)]
        )
        match = finsy.Match(type=0x1234)
        await sw.write([
            +finsy.P4TableEntry("routed", match=match, action=finsy.P4IndirectAction(member_id=1)),
        ])  # fmt: skip
        first = device.process(1, FRAME)
        await sw.write([
            +finsy.P4TableEntry("balanced", match=match,
                                action=finsy.P4IndirectAction(group_id=1)),
        ])  # fmt: skip
        (group,) = await read(sw, finsy.P4ActionProfileGroup("spread"))
        return first, [(m.member_id, m.weight) for m in group.members]

    assert control(address, work) == ([(4, FRAME)], [(1, 1), (2, 2)])
    frames = [FRAME[:6] + bytes([2, 0, 0, 0, 0, i]) + FRAME[12:] for i in range(40)]
    assert {device.process(1, frame)[0][0] for frame in frames} == {4, 5}


@pytest.mark.p4runtime("9.5.1-1 9.5.2-1 18.1.5-1")
def test_multicast_groups_and_clone_sessions(served: Served) -> None:
    device, address = served

    async def work(sw: finsy.Switch) -> list[Any]:
        group = finsy.P4MulticastGroupEntry(5, replicas=[(70001, 1), (2, 7)])
        session = finsy.P4CloneSessionEntry(
            50000, class_of_service=3, packet_length_bytes=14, replicas=[(6, 1)]
        )
        await sw.write([+group, +session])
        source = finsy.Match({"s.ingress_port": 1})
        mirror = finsy.P4TableAction("mirror", session=50000, service=9)
        await sw.write([
            +mac_entry(finsy.P4TableAction("flood", group=5)),
            +finsy.P4TableEntry("sources", match=source, action=mirror, priority=1),
        ])  # fmt: skip
        found = await read(sw, finsy.P4CloneSessionEntry())
        return [(s.session_id, s.class_of_service, s.packet_length_bytes) for s in found]

    # The session to the CPU, which PSA has from the start, is not the controller's.
    assert control(address, work) == [(50000, 3, 14)]
    state = device.target.state
    assert state.clone_sessions[50000] == CloneSession([Replica(6, 1)], 14, 3)
    assert device.process(1, FRAME) == [(6, FRAME[:14]), (70001, FRAME), (2, FRAME)]


@pytest.mark.p4runtime("16.1-6 16.3-1 18.1.2-1 18.1.3-1")
def test_digests_idle_entries_and_packets(served: Served) -> None:
    device, address = served
    sent: list[tuple[int, bytes]] = []
    device.transmit = sent.extend

    async def work(sw: finsy.Switch) -> Any:
        await sw.write([+finsy.P4DigestEntry("learnt", max_list_size=1)])
        source = finsy.Match({"s.ingress_port": 9})
        learn = finsy.P4TableEntry(
            "sources", match=source, action=finsy.P4TableAction("learn"), priority=1
        )
        await sw.write([+learn])
        await sw.write([+mac_entry(finsy.P4TableAction("to_cpu"))])
        await sw.write([finsy.P4PacketOut(FRAME, egress_port=70002)])
        while not sent:  # a packet-out is not answered; control() waits no longer than 20 s
            await asyncio.sleep(0.01)
        device.process(9, FRAME)
        async for digest in sw.read_digests("learnt"):
            data = list(digest.data)
            break
        async for packet in sw.read_packets():
            return data, packet.payload, packet["ingress_port"]

    data, payload, port = control(address, work)
    assert data == [{"mac": 0x0200000000BB, "port": 9}]
    assert (payload, port) == (FRAME, 9)
    assert sent == [(70002, FRAME)]


@pytest.mark.p4runtime("9.5.2-5")
def test_a_class_of_service_has_8_bits(served: Served) -> None:
    _, address = served

    async def work(sw: finsy.Switch) -> str:
        try:
            await sw.write([+finsy.P4CloneSessionEntry(3, class_of_service=256, replicas=[1])])
        except finsy.P4ClientError as error:
            return str(error)
        return ""

    assert "class_of_service 256 is beyond 8 bits" in control(address, work)


def test_a_new_program_keeps_a_registers_cells(served: Served) -> None:
    """Also those that became zero, though the register starts otherwise."""
    device, _ = served
    device.target.state.registers["ingress.last"].write(2, 0)
    fresh = device.prepare(p4r.ForwardingPipelineConfig(p4info=device.target.catalog.p4info))
    carry_over(device.target, fresh)
    assert list(fresh.state.registers["ingress.last"].values) == [77, 77, 0, 77]


def test_a_new_program_keeps_what_meters_gave_and_when_entries_were_hit(served: Served) -> None:
    device, address = served
    new = mac_entry(finsy.P4TableAction("forward", port=7))
    control(address, lambda sw: sw.write([+new]))
    state = device.target.state
    state.meters["ingress.rates"].write(1, MeterConfig(1, 20, 3, 40))
    state.meters["ingress.rates"].execute(1, state.clock(), 15)
    (entry,) = state.tables["ingress.macs"].entries()
    entry.meter.execute(state.clock(), 15, by_packets=True)
    entry.last_hit_ns = 5
    fresh = device.prepare(p4r.ForwardingPipelineConfig(p4info=device.target.catalog.p4info))
    carry_over(device.target, fresh)
    rates = fresh.state.meters["ingress.rates"]
    assert rates.counts(1) == ((1, 15), (0, 0), (0, 0))
    assert rates.cell(1).committed == 5
    (kept,) = fresh.state.tables["ingress.macs"].entries()
    assert (kept.meter.counts[0], kept.last_hit_ns) == ((1, 15), 5)
