"""The client of Tofino's driver, unchanged, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bfrt_served import Served

from gradplane.runs import isolation
from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions

HERE = Path(__file__).parent
TEXT = (HERE.parents[2] / "docs" / "tofino.md").read_text()
BLOCKS = dict(re.findall(r"^```(?:p4|python) (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module", autouse=True)
def driver_client() -> None:
    """The client's package, bfrt_grpc, is not in the registries: skip where it is missing."""
    found = subprocess.run([sys.executable, "-c", "import bfrt_grpc.client"], capture_output=True)
    if found.returncode:
        pytest.skip("bfrt_grpc, the client in p4lang/open-p4studio, is not on PYTHONPATH")


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_client_controls_all_kinds_of_tables(interpreted: Served) -> None:
    _, client = interpreted
    client.close()  # one client is bound to a program
    assert run(str(HERE / "driver_client_script.py"), client.address).endswith("done\n")


def test_the_script_in_the_document_runs(tmp_path: Path) -> None:
    program = tmp_path / "aggregate.p4"
    program.write_text(BLOCKS["aggregate.p4"])
    device = make_device(SwitchOptions(program=program, engine="interpreter"))
    with BfRuntimeServer(device, "127.0.0.1:0") as server:
        script = BLOCKS["bfrt.py"].replace("127.0.0.1:50052", server.address)
        assert run("-c", script) == "[0, 0, 0, 0]\n"
    packet = bytes([7, 1, 0, 0]) + (30).to_bytes(4, "big")
    assert device.process(1, packet) == [(1, packet)]


@pytest.mark.skipif(not isolation.can_isolate()[0], reason=isolation.can_isolate()[1])
@pytest.mark.skipif("SWITCHML" not in os.environ, reason="no SWITCHML=FOLDER")
def test_switchml_sums_as_the_document_shows(tmp_path: Path) -> None:
    """SWITCHML names a folder with p4lang/p4app-switchML, which is not shipped."""
    (tmp_path / "p4app-switchML").symlink_to(Path(os.environ["SWITCHML"]).resolve())
    for name in ("switchml.py", "workers.py", "switchml_lab.py"):
        (tmp_path / name).write_text(BLOCKS[name])
    command = [sys.executable, "-m", "gradplane", "lab", "switchml_lab.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (shown,) = re.findall(
        r"^\$ gradplane lab switchml_lab.py\n\.\.\.\n(.*?)^```$", TEXT, re.M | re.S
    )
    assert done.stdout.endswith(shown)
