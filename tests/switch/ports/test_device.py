"""The programs that a switch can be started with: P4 source, the pushed JSON; not BMv2's."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradplane.switch import SwitchError
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
    file = tmp_path / "router.json"
    file.write_text('{"header_types": [], "parsers": []}')
    with pytest.raises(SwitchError) as caught:
        make_device(SwitchOptions(program=file))
    assert str(caught.value) == (
        f"{file}: the device config is BMv2's compiled JSON, which this switch does not run: push"
        " the .p4 source instead, router.p4"
    )
