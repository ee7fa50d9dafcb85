"""--log-console, --log-file: what happens to each packet."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.runtime.packet_buffers import outputs, pack

ROUTER = Path(__file__).parent.parent / "p4runtime" / "programs" / "router.p4"


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_each_packet_of_a_batch_is_told(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    device = make_device(SwitchOptions(program=ROUTER, log_console=True, engine=engine))
    ports, data, offsets = pack([1, 2], [bytes(14), bytes(20)])
    assert outputs(*device.process_spans(ports, data, offsets[:-1], offsets[1:])) == []
    lines = [line for line in capsys.readouterr().err.splitlines() if line and line[0] != " "]
    told = ["== parser", "== ingress"]
    assert lines == ["port 1, 14 bytes", *told, "port 2, 20 bytes", *told]


def test_to_a_file_with_the_packets_first_bytes(tmp_path: Path) -> None:
    with (tmp_path / "s1.txt").open("w") as file:
        device = make_device(SwitchOptions(program=ROUTER, dump_bytes=4), log_file=file)
        device.process(3, bytes.fromhex("0102030405060708090a0b0c0d0e"))
    lines = (tmp_path / "s1.txt").read_text().splitlines()
    assert lines[:3] == ["port 3, 14 bytes", "01020304", "== parser"]
