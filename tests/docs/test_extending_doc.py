"""docs/extending-the-switch.md: its extern and its table, added to a copy of the package, work."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "extending-the-switch.md").read_text()
BLOCKS = {
    name: text
    for name, text in re.findall(r"^```\w+ ([\w-]+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
}

V1MODEL, JSON = "arch/v1model", '            "truncate": self._truncate,\n'
EDITS = [  # file, a text that it has, and what replaces it: <NAME> is a block of the document
    (f"{V1MODEL}/include/v1model.p4", "extern void truncate", "<declarations>extern void truncate"),
    (f"{V1MODEL}/externs.py", "# -- the table", "<functions>\n\n# -- the table"),
    (f"{V1MODEL}/externs.py", '    ("", "truncate")', '<row><text-row>    ("", "truncate")'),
    (f"{V1MODEL}/path.p4", "control checksum_differs", "<text>\ncontrol checksum_differs"),
    ("bmv2_names.py", "PRIMITIVES = {", 'PRIMITIVES = {\n    "ones": 2,'),
    ("backends/bmv2/externs.py", JSON, f'{JSON}            "ones": self._ones,\n'),
    ("backends/bmv2/externs.py", "    # -- messages", "<bmv2-writer>\n    # -- messages"),
    ("frontends/bmv2/primitives.py", JSON, f'{JSON}            "ones": self._ones,\n'),
    ("frontends/bmv2/primitives.py", "    # -- messages", "<bmv2-reader>\n    # -- messages"),
    ("bfruntime/traffic_schema.py", "table {chip}.tm.port.cfg", "<table>table {chip}.tm.port.cfg"),
    ("bfruntime/tables/kept_tables.py", "RULES: ", "<rule>\n\nRULES: "),
    ("bfruntime/tables/kept_tables.py", '    "TmCfg"', '<rule-row>    "TmCfg"'),
]

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> a; bit<32> b; }
struct headers_t { h_t h; }
struct meta_t {}
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply {} }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 2; h.h.b = ones(h.h.a); CLAMP }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers_t h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""

RUN_EXTERNS = """
from gradplane.switch import Switch

packet = bytes.fromhex("ffff0001 00000000 7788")
for engine in ("interpreter", "jit"):
    out = Switch("both.p4", engine=engine).process(1, packet)
    assert out == [(2, bytes.fromhex("000003e8 00000011 7788"))], (engine, out)
    out = Switch("ones.json", engine=engine).process(1, packet)
    assert out == [(2, bytes.fromhex("ffff0001 00000011 7788"))], (engine, out)
"""

RUN_TABLE = f"""
import sys
import grpc

sys.path.insert(0, {str(ROOT / "tests" / "switch" / "bfruntime")!r})
from bfrt_client import Client
from bfrt_served import PROGRAM
from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions

device = make_device(SwitchOptions(program=PROGRAM, engine="interpreter"))
key, name = {{"dev_port": 9}}, "tm.port.colours"
with BfRuntimeServer(device, "127.0.0.1:0") as server, Client(server.address) as client:
    client.write(("MODIFY", client.entry(name, key, red_above_cells=400)))
    try:
        client.write(("MODIFY", client.entry(name, key, yellow_above_cells=500)))
    except grpc.RpcError as error:
        assert "yellow_above_cells is above red_above_cells" in error.details(), error
    else:
        raise AssertionError("it was accepted")
    (found,) = client.read(name, key)
assert found == {{"dev_port": 9, "yellow_above_cells": 100, "red_above_cells": 400}}, found
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of gradplane that the document's blocks were added to."""
    folder: Path = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "src" / "gradplane", folder / "gradplane")
    for name, old, new in EDITS:
        path = folder / "gradplane" / "switch" / name
        text = path.read_text()
        assert text.count(old) == 1, (name, old)
        for block, lines in BLOCKS.items():
            new = new.replace(f"<{block}>", lines)
        path.write_text(text.replace(old, new))
    (folder / "both.p4").write_text(PROGRAM.replace("CLAMP", "clamp(h.h.a, 1000);"))
    (folder / "ones.p4").write_text(PROGRAM.replace("CLAMP", ""))
    return folder


def _python(package: Path, *arguments: str) -> None:
    env = os.environ | {"PYTHONPATH": str(package), "XDG_CACHE_HOME": str(package / "cache")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=package, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_extern_works_in_both_engines_and_in_bmv2s_json(package: Path) -> None:
    _python(package, "-m", "gradplane.switch.machine.path_texts")
    _python(package, "-m", "gradplane", "p4", "compile", "ones.p4", "-o", "ones.json")
    _python(package, "-c", RUN_EXTERNS)


def test_the_table_keeps_what_is_written_and_refuses_what_the_rule_says(package: Path) -> None:
    _python(package, "-c", RUN_TABLE)
