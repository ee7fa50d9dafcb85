"""The programs that a switch can be started with: P4 source, the pushed JSON, BMv2's JSON."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradplane.experiment.p4_programs import P4Program
from gradplane.switch import Switch, SwitchError
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.p4runtime.device_config import device_config
from gradplane.switch.p4runtime.p4info import p4info_text

ROUTER = Path(__file__).parent.parent / "p4runtime" / "programs" / "router.p4"
SELECTOR = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t { }
parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control MyIngress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    action_selector(HashAlgorithm.crc16, 16, 16) ways;
    action forward(bit<9> port) { standard_metadata.egress_spec = port; }
    table routes {
        key = { hdr.ethernet.type : exact; hdr.ethernet.dst : selector; }
        actions = { forward; }
        implementation = ways;
    }
    apply { routes.apply(); }
}
control MyEgress(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) { apply { } }
control MyChecksum(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(MyParser(), MyChecksum(), MyIngress(), MyEgress(), MyChecksum(), MyDeparser()) main;
"""


def test_the_json_that_is_pushed(tmp_path: Path) -> None:
    (tmp_path / "router.json").write_bytes(device_config(ROUTER))
    device = make_device(SwitchOptions(program=tmp_path / "router.json"))
    assert device.pipeline is not None
    assert "MyIngress.ipv4_lpm" in device.pipeline.state.tables


def test_what_was_compiled_for_bmv2(tmp_path: Path) -> None:
    """The P4Info beside it has the ids."""
    file, program = tmp_path / "router.json", P4Program(ROUTER, {})
    file.write_bytes(program.compiled_for("bmv2"))
    info = p4info_text(program.p4info()).replace("37375156", "33554439")
    (tmp_path / "router.p4.p4info.txtpb").write_text(info)
    device = make_device(SwitchOptions(program=file))
    assert device.pipeline is not None
    assert device.pipeline.catalog.tables[33554439].name == "MyIngress.ipv4_lpm"


def test_a_file_that_is_neither(tmp_path: Path) -> None:
    file = tmp_path / "router.json"
    file.write_text('{"sauce": ""}')
    with pytest.raises(SwitchError) as caught:
        make_device(SwitchOptions(program=file))
    assert str(caught.value) == (
        f"{file}: the device config has the keys ['sauce']; expected P4 source, BMv2's JSON, or"
        ' JSON with "source", "file" and "defines"'
    )


def test_a_switch_starts_with_saved_state(tmp_path: Path) -> None:
    first, file = make_device(SwitchOptions(program=ROUTER)), tmp_path / "state.txt"
    assert first.pipeline is not None and isinstance(first.pipeline.switch, Switch)
    first.pipeline.switch.multicast(7, [1, 2])
    file.write_text(first.save_state())
    again = make_device(SwitchOptions(program=ROUTER, restore_state=file))
    assert again.pipeline is not None
    assert [replica.port for replica in again.pipeline.state.multicast[7]] == [1, 2]
    for text in ("serialised by BMv2", "{}", "[1, 2]"):
        file.write_text(text)
        what = f"--restore-state {file}: this is no saved state: "
        with pytest.raises(SwitchError, match=re.escape(what)):
            make_device(SwitchOptions(program=ROUTER, restore_state=file))


def test_what_commands_number_from_0_is_saved(tmp_path: Path) -> None:
    """Members, groups and mirroring sessions: a controller cannot write these with id 0."""
    program, file = tmp_path / "selector.p4", tmp_path / "state.txt"
    program.write_text(SELECTOR)
    first = make_device(SwitchOptions(program=program))
    assert first.pipeline is not None and isinstance(first.pipeline.switch, Switch)
    first.pipeline.switch.run_commands(
        """
        act_prof_create_member ways forward 2
        table_indirect_add routes 0x0801 => 0
        act_prof_create_group ways
        act_prof_add_member_to_group ways 0 0
        table_indirect_add routes 0x0800 => 0
        table_indirect_add_with_group routes 0x0806 => 0
        mirroring_add 0 3
        table_delete routes 0
        """
    )
    file.write_text(first.save_state())
    again = make_device(SwitchOptions(program=program, restore_state=file))
    assert again.pipeline is not None and isinstance(again.pipeline.switch, Switch)
    look = "table_dump routes\nmirroring_get 0"
    dumped = again.pipeline.switch.run_commands(look)
    assert dumped == first.pipeline.switch.run_commands(look)
    assert "Members: [0]" in dumped
    for kind in (0x0800, 0x0806):
        packet = bytes(12) + kind.to_bytes(2, "big")
        assert again.pipeline.switch.process(1, packet) == [(2, packet)]
