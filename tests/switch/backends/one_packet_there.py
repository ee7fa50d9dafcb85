"""One packet through BMv2, with our JSON or with p4c's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gradplane.controller.targets.bmv2 import Bmv2
from gradplane.differ.bmv2_switch import Bmv2Switch
from gradplane.experiment import p4_programs
from gradplane.switch.compiler import compile_source


def sent(text: str, packet: bytes, config: bytes | None = None) -> list[tuple[int, bytes]]:
    """Return what BMv2 sends of a packet that enters at port 1; config: the JSON, by default ours.

    Skips the test where there is no BMv2; raises DiffError where BMv2 ends."""
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    compiled = compile_source("case.p4", text=text)
    with Bmv2Switch(Bmv2("bmv2")) as switch:
        info = p4_programs.p4info_message(compiled.program, "bmv2")
        switch.load(info, config or p4_programs.compiled_for("bmv2", compiled).encode())
        return switch.process(1, packet)


def p4c(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run p4c, whose JSON is case.json in the folder; skip the test where there is none."""
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("p4c-bm2-ss is not on PATH")
    (folder / "case.p4").write_text(text)
    words = ["p4c-bm2-ss", "--Wdisable", "-o", "case.json", "case.p4"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)
