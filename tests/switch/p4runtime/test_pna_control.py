"""A PNA program under stock P4Runtime clients: pushed, its entities, and what packets write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import finsy
import pytest
from controlled import Served, control, read, serving
from finsy.proto import p4i
from pnaprograms import flow, seen, tracking

from gradplane.switch.p4runtime.device_config import device_config
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text
from gradplane.switch.program_cache import load_program

MORE = """
    Counter<bit<32>, bit<32>>(4, PNA_CounterType_t.PACKETS_AND_BYTES) ways;
    Register<bit<32>, bit<32>>(4) last;
    Digest<flow_t>() told;
    action note() { told.pack(hdr.flow); }
    table notes { key = { hdr.flow.kind : exact; } actions = { note; NoAction; } }
    apply {
        ways.count(SelectByDirection(i.direction, 32w0, 32w1));
        last.write(0, hdr.flow.src);
        notes.apply();
        if (hdr.flow.kind == 9) { send_to_port((PortId_t) 0xfffffffd); return; }
        mirror_packet((MirrorSlotId_t) 1, (MirrorSessionId_t) 5);
        flows.apply();"""
ENGINES = ("interpreter", "jit")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the program: it tracks flows, counts, keeps a register, tells and mirrors."""
    path: Path = tmp_path_factory.mktemp("pna") / "track.p4"
    path.write_text(tracking().replace("    apply { flows.apply();", MORE))
    return path


@pytest.fixture(params=ENGINES)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    """Provide a device without a program, and its server's address."""
    with serving(engine=request.param) as served:
        yield served


def pushing(program: Path, folder: Path) -> finsy.SwitchOptions:
    """Return a client's options to push a program."""
    info, blob = folder / "p4info.txt", folder / "program.bin"
    info.write_text(p4info_text(build_p4info(load_program(program))))
    blob.write_bytes(device_config(program))
    return finsy.SwitchOptions(p4info=info, p4blob=blob, p4force=True)


@pytest.fixture
def options(program: Path, tmp_path: Path) -> finsy.SwitchOptions:
    return pushing(program, tmp_path)


def test_p4info_has_the_tables_that_packets_write(program: Path) -> None:
    info = build_p4info(load_program(program))
    tables = {t.preamble.alias: t for t in info.tables}
    assert info.pkg_info.arch == "pna"
    assert tables["flows"].idle_timeout_behavior == p4i.Table.NO_TIMEOUT  # it notifies nobody
    assert [f.name for f in tables["flows"].match_fields] == ["far", "near"]
    types = info.type_info.new_types
    assert types["PortId_t"].translated_type.uri == "p4.org/pna/v1/PortId_t"


@pytest.mark.p4runtime("8.2.1.2-2")
def test_a_program_is_pushed_and_what_packets_write_is_read(
    served: Served, options: finsy.SwitchOptions
) -> None:
    device, address = served

    async def work(sw: finsy.Switch) -> dict[str, Any]:
        await sw.write([
            +finsy.P4CloneSessionEntry(session_id=5, replicas=[20]),
            +finsy.P4TableEntry("flows", match=finsy.Match(far=3, near=4),
                                action=finsy.P4TableAction("tracked", id=99, port=0x107)),
        ])  # fmt: skip
        left = [
            (port, seen(packet))
            for packet in (flow(0, 3, 4), flow(1, 1, 2, profile=1), flow(0, 1, 2))
            for port, packet in device.process(1, packet)
        ]
        entries = await read(sw, finsy.P4TableEntry("flows"))
        (added,) = [entry for entry in entries if entry.match["far"] == 1]
        query = finsy.P4TableEntry("flows", match=added.match, time_since_last_hit=0)
        (timed,) = await read(sw, query)
        (direct,) = await read(sw, finsy.P4DirectCounterEntry(table_entry=added))
        (ways,) = await read(sw, finsy.P4CounterEntry("ways", index=0))
        (last,) = await read(sw, finsy.P4RegisterEntry("last", index=0))
        await sw.write([-added])
        left += [(port, seen(packet)) for port, packet in device.process(1, flow(0, 1, 2))]
        return {
            "left": left, "entries": len(entries), "params": dict(added.action.args),
            "timeout": added.idle_timeout_ns, "since": timed.time_since_last_hit,
            "direct": direct.data.packet_count, "ways": ways.data.packet_count, "last": last.data,
        }  # fmt: skip

    found = control(address, work, options)
    hit, added, again, missed = (0x107, (1, 99)), (0x101, (2, 0)), (0x100, (1, 0)), (0x101, (3, 0))
    mirrored = [(20, one[1]) for one in (hit, added, again, missed)]
    pairs = zip(mirrored, (hit, added, again, missed), strict=True)
    assert found["left"] == [one for pair in pairs for one in pair]
    assert found["entries"] == 2
    assert found["params"] == {"id": 0, "port": 0x100}
    assert found["timeout"] == 30_000_000_000
    assert found["since"] >= 0
    assert (found["direct"], found["ways"], found["last"]) == (1, 3, 1)


def test_timeouts_are_written_and_entries_leave(
    served: Served, options: finsy.SwitchOptions
) -> None:
    device, address = served

    async def work(sw: finsy.Switch) -> list[int]:
        device.process(1, flow(1, 1, 2, profile=15))  # a profile without a time
        (entry,) = await read(sw, finsy.P4TableEntry("flows"))
        entry.idle_timeout_ns = 1
        await sw.write([~entry])
        counts = [len(await read(sw, finsy.P4TableEntry("flows")))]
        device.process(1, flow(1, 1, 2, profile=15))
        counts.append(len(await read(sw, finsy.P4TableEntry("flows"))))
        return counts

    assert control(address, work, options) == [0, 1]


def test_digests_and_packets_to_the_controller(
    served: Served, options: finsy.SwitchOptions
) -> None:
    device, address = served

    async def work(sw: finsy.Switch) -> tuple[Any, bytes]:
        note = finsy.P4TableAction("note")
        await sw.write([
            +finsy.P4TableEntry("notes", match=finsy.Match({"hdr.flow.kind": 9}), action=note),
            +finsy.P4DigestEntry("told", max_list_size=1),
        ])  # fmt: skip
        packets, digests = sw.read_packets(), sw.read_digests("told")
        device.process(1, flow(9, 6, 7))
        return await anext(digests), (await anext(packets)).payload

    digest, payload = control(address, work, options)
    assert [message["src"] for message in digest] == [6]
    assert payload == flow(9, 6, 7)


def test_the_service_speaks_of_a_table_without_timers(
    served: Served, program: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.p4"
    text = program.read_text().replace("pna_idle_timeout", "// ")
    plain.write_text(text.replace("update_expire_info", "// "))
    action = finsy.P4TableAction("tracked", id=1, port=2)
    match = finsy.Match(far=1, near=2)
    entry = finsy.P4TableEntry("flows", match=match, action=action, idle_timeout_ns=5)

    async def work(sw: finsy.Switch) -> str:
        with pytest.raises(finsy.P4ClientError) as refused:
            await sw.write([+entry])
        return str(refused.value)

    told = control(served[1], work, pushing(plain, tmp_path))
    assert "idle_timeout_ns is set, but the source does not" in told
