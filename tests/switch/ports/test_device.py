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

ROUTER = Path(__file__).parent.parent / "p4runtime" / "programs" / "router.p4"


def test_the_json_that_is_pushed(tmp_path: Path) -> None:
    (tmp_path / "router.json").write_bytes(device_config(ROUTER))
    device = make_device(SwitchOptions(program=tmp_path / "router.json"))
    assert device.pipeline is not None
    assert "MyIngress.ipv4_lpm" in device.pipeline.state.tables


def test_what_was_compiled_for_bmv2(tmp_path: Path) -> None:
    """The P4Info beside it has the ids."""
    file, program = tmp_path / "router.json", P4Program(ROUTER, {})
    file.write_bytes(program.compiled_for("bmv2"))
    info = program.p4info().decode().replace("37375156", "33554439")
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
    file.write_text("serialised by BMv2")
    what = f"--restore-state {file}: this is no saved state: "
    with pytest.raises(SwitchError, match=re.escape(what)):
        make_device(SwitchOptions(program=ROUTER, restore_state=file))
