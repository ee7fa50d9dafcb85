"""The live switch on interfaces, in a network namespace, with `--bfrt-addr`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bfrt_served import PROGRAM

COMMAND = ["unshare", "--net", "--map-root-user"]


def test_packets_and_ports_under_bfruntime() -> None:
    try:
        tried = subprocess.run([*COMMAND, "true"], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no unshare(1) here")
    if tried.returncode:
        pytest.skip(f"no network namespace here: {tried.stderr.strip()}")
    world = Path(__file__).parent / "live_world.py"
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    done = subprocess.run(
        [*COMMAND, sys.executable, str(world), str(PROGRAM)],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "forwarded": True,
        "kept": True,
        "let go": True,
        "names": {"1": ["s1", True], "2": ["s2", True]},
        "counted": True,
        "disabled": False,
        "link of a disabled port": False,
        "link of an enabled port": True,
        "forwarded again": True,
        "enabled": True,
        "up": False,
        "exit status": 0,
    }
