"""docs/extending-the-switch.md: its externs and its table, added to a copy of the package, work."""

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

V1MODEL, PSA, JSON = "arch/v1model", "arch/psa", '            "truncate": self._truncate,\n'
OBJECT = "extern ActionProfile {"
EDITS = [  # file, a text that it has, and what replaces it: <NAME> is a block of the document
    (f"{V1MODEL}/include/v1model.p4", "extern void truncate", "<declarations>extern void truncate"),
    (f"{V1MODEL}/externs.py", "# -- the table", "<functions>\n\n# -- the table"),
    (f"{V1MODEL}/externs.py", '    ("", "truncate")', '<row><text-row>    ("", "truncate")'),
    (f"{V1MODEL}/path.p4", "control checksum_differs", "<text>\ncontrol checksum_differs"),
    ("bmv2_names.py", "PARAMETER_COUNTS = {", 'PARAMETER_COUNTS = {\n    "ones": 2,'),
    ("backends/bmv2/externs.py", JSON, f'{JSON}            "ones": self._ones,\n'),
    ("backends/bmv2/externs.py", "    # -- messages", "<bmv2-writer>\n    # -- messages"),
    ("frontends/bmv2/primitives.py", JSON, f'{JSON}            "ones": self._ones,\n'),
    ("frontends/bmv2/primitives.py", "    # -- messages", "<bmv2-reader>\n    # -- messages"),
    (f"{PSA}/include/psa.p4", OBJECT, f"<object-declaration>{OBJECT}"),
    (f"{PSA}/path.p4", "control ingress(in", "<object-text>\ncontrol ingress(in"),
    (f"{PSA}/__init__.py", '        "Packet', '<object-kind>        "Packet'),
    (f"{PSA}/__init__.py", "    asserting =", "<object-row>    asserting ="),
    ("backends/bmv2/psa.py", '            "Hash', '<object-writer-row>            "Hash'),
    ("backends/bmv2/psa.py", "    # -- numbers", "<object-writer>\n    # -- numbers"),
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

PSA_PROGRAM = """
#include <core.p4>
#include <psa.p4>
header h_t { bit<32> a; bit<32> b; }
struct headers_t { h_t h; }
struct empty_t {}
parser IP(packet_in p, out headers_t h, inout empty_t m, in psa_ingress_parser_input_metadata_t i,
          in empty_t r, in empty_t c) {
    state start { p.extract(h.h); transition accept; }
}
control IG(inout headers_t h, inout empty_t m, in psa_ingress_input_metadata_t i,
           inout psa_ingress_output_metadata_t o) {
    Saturate() saturate;
    apply { h.h.b = saturate.add(h.h.a, h.h.b); send_to_port(o, (PortId_t)2); }
}
control ID(packet_out p, out empty_t c, out empty_t r, out empty_t n, inout headers_t h,
           in empty_t m, in psa_ingress_output_metadata_t o) { apply { p.emit(h.h); } }
parser EP(packet_in p, out headers_t h, inout empty_t m, in psa_egress_parser_input_metadata_t i,
          in empty_t n, in empty_t c, in empty_t e) {
    state start { p.extract(h.h); transition accept; }
}
control EG(inout headers_t h, inout empty_t m, in psa_egress_input_metadata_t i,
           inout psa_egress_output_metadata_t o) { apply {} }
control ED(packet_out p, out empty_t c, out empty_t r, inout headers_t h, in empty_t m,
           in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t d) {
    apply { p.emit(h.h); }
}
IngressPipeline(IP(), IG(), ID()) ip;
EgressPipeline(EP(), EG(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
"""

RUN_OBJECTS = """
from gradplane.switch import Switch

packet, full = bytes.fromhex("ffff0000 00020000 77"), bytes.fromhex("ffff0000 ffffffff 77")
for engine in ("interpreter", "jit"):
    out = Switch("saturate.p4", engine=engine).process(1, packet)
    assert out == [(2, full)], (engine, out)
assert "usat_cast" in open("saturate.json").read()
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

sys.path[:0] = [{str(ROOT / "tests/switch/bfruntime")!r}, {str(ROOT / "tests/switch")!r}]
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
    (folder / "saturate.p4").write_text(PSA_PROGRAM)
    _python(folder, "-m", "gradplane.switch.machine.path_texts")
    return folder


def _python(package: Path, *arguments: str) -> None:
    env = os.environ | {"PYTHONPATH": str(package), "XDG_CACHE_HOME": str(package / "cache")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=package, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_extern_works_in_both_engines_and_in_bmv2s_json(package: Path) -> None:
    _python(package, "-m", "gradplane", "p4", "compile", "ones.p4", "-o", "ones.json")
    _python(package, "-c", RUN_EXTERNS)


def test_objects_work_in_both_engines_and_are_written_for_bmv2(package: Path) -> None:
    _python(package, "-m", "gradplane", "p4", "compile", "saturate.p4", "-o", "saturate.json")
    _python(package, "-c", RUN_OBJECTS)


def test_the_table_keeps_what_is_written_and_refuses_what_the_rule_says(package: Path) -> None:
    _python(package, "-c", RUN_TABLE)
