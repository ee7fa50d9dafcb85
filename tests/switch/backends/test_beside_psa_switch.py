"""psa_switch (behavioral-model 1.15.5) and PSA here: what docs/coming-from-bmv2.md says of PSA
programs under "Compile for BMv2"."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import bmv2_runner
import pytest
from psaprograms import source

from gradplane.experiment import p4_programs
from gradplane.switch import Switch
from gradplane.switch.compiler import Compiled, compile_source

HASHES = """Hash<bit<16>>(PSA_HashAlgorithm_t.TARGET_DEFAULT) any;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc16;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC32) crc32;"""
COMPARES = """send_to_port(o, (PortId_t) 1); bit<16> n = any.get_hash({h.a.kind});
    h.a.x = n == crc16.get_hash({h.a.kind}) ? 8w1 : 0;
    h.a.y = n == crc32.get_hash({h.a.kind}) ? 8w1 : 0;"""
OTHERS = "resubmitted|recirculated|clone|resubmit|normal|cloned_i2e|cloned_e2e|recirculate"


@pytest.fixture(scope="module")
def text() -> str:
    """The program without metadata of other packets, which psa_switch does not keep."""
    found = source(ingress_locals=HASHES, ingress=COMPARES)
    return re.sub(rf"metadata_t (?={OTHERS})", "empty_t ", found)


@pytest.fixture(scope="module")
def compiled(text: str) -> Compiled:
    return compile_source("hashes.p4", text=text)


@pytest.fixture(autouse=True)
def there(request: pytest.FixtureRequest) -> None:
    if request.node.name.startswith("test_there") and not bmv2_runner.available("psa"):
        pytest.skip("psa_switch and psa_switch_CLI are not on PATH")


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_here_the_default_hash_is_crc32(engine: str, compiled: Compiled) -> None:
    sent = Switch(compiled.program, engine=engine).process(0, bytes([7, 0, 0, 0]))
    assert sent == [(1, bytes([7, 0, 1, 0]))]


def test_there_the_default_hash_is_crc16(text: str, tmp_path: Path) -> None:
    (program := tmp_path / "hashes.p4").write_text(text)
    (tmp_path / "hashes.stf").write_text("packet 0 07000000\nexpect 1 07010000 $\n")
    assert bmv2_runner.run(program, tmp_path) == []


@pytest.mark.parametrize("extern", ["Checksum", "Digest", "DirectMeter"])
def test_there_is_no_such_extern(extern: str, compiled: Compiled, tmp_path: Path) -> None:
    """A JSON with one is refused at load."""
    config = json.loads(p4_programs.compiled_for("bmv2", compiled))
    one = {"name": "ingress.c", "id": 9, "type": extern, "attribute_values": []}
    config["extern_instances"].append(one)
    (file := tmp_path / "extern.json").write_text(json.dumps(config))
    command = ["psa_switch", str(file), "--thrift-port", str(bmv2_runner._free_port())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode > 0
    assert f"Invalid reference to extern type '{extern}'" in done.stdout + done.stderr


RANDOM = {
    "keys": """
        action set(bit<8> x, bit<8> y) { h.a.x = x; h.a.y = y; }
        action off() { ingress_drop(o); }
        table exact_ { key = { h.a.kind : exact; } actions = { set; off; NoAction; } }
        table masked { key = { h.a.x : ternary; h.a.y : lpm; } actions = { set; off; NoAction; } }
        table ranged { key = { h.a.z : range; } actions = { set; NoAction; } }
        @exact_.apply(); if (masked.apply().hit) { ranged.apply(); } """,
    "registers": """Register<bit<8>, bit<8>>(256) seen;
        Hash<bit<8>>(PSA_HashAlgorithm_t.CRC32) mixed;
        @h.a.y = seen.read(h.a.x); seen.write(h.a.x, h.a.z |+| 8w3); h.a.x = h.a.kind << 3;
        h.a.z = mixed.get_hash(8w7, {h.a.kind, h.a.z}, 8w50); """,
}


@pytest.mark.parametrize("name", RANDOM)
def test_there_random_packets_with_random_entries_leave_as_here(name: str, tmp_path: Path) -> None:
    declared, applied = RANDOM[name].split("@", 1)
    text = source(ingress_locals=declared, ingress=f"send_to_port(o, (PortId_t) 1); {applied}")
    (program := tmp_path / "random.p4").write_text(
        re.sub(rf"metadata_t (?={OTHERS})", "empty_t ", text)
    )
    assert bmv2_runner.random_packets(program, tmp_path, count=40, seed=3) == []
